/* Reads files in turns through kept descriptors, as counters are read: the reference of reading.py.
 *
 *     reading LIST TICKS < BEATS
 *
 * Each line of LIST is "EVERY TURN KEPT PATH": the file is read at ticks of which EVERY leaves TURN,
 * through a descriptor that is kept, or opened, read and closed where KEPT is 0. A line is printed
 * once all are known. Each tick waits for a character of standard input and prints its CPU seconds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct file { int every, turn, fd; char *path; };

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}

int main(int count, char **words)
{
    static char buffer[65536], path[4096];
    size_t room = 1 << 16, files = 0;
    struct file *all = malloc(room * sizeof *all);
    FILE *list = count == 3 ? fopen(words[1], "r") : NULL;
    long ticks = count == 3 ? atol(words[2]) : 0;
    if (!list || !all)
        return 2;
    int kept;
    while (files < room) {
        struct file *one = &all[files];
        if (fscanf(list, "%d %d %d %4095s", &one->every, &one->turn, &kept, path) != 4)
            break;
        one->path = strdup(path);
        one->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (one->fd < 0 || pread(one->fd, buffer, sizeof buffer, 0) < 0) {
            perror(path);
            return 1;
        }
        if (!kept) {
            close(one->fd);
            one->fd = -1;
        }
        files++;
    }
    puts("");
    fflush(stdout);
    for (long tick = 0; tick < ticks; tick++) {
        if (getchar() == EOF)
            return 1;
        double start = now();
        for (size_t n = 0; n < files; n++)
            if (tick % all[n].every == all[n].turn) {
                int fd = all[n].fd < 0 ? open(all[n].path, O_RDONLY | O_CLOEXEC) : all[n].fd;
                if (pread(fd, buffer, 4096, 0) < 0)
                    return 1;
                if (all[n].fd < 0)
                    close(fd);
            }
        printf("%.9f\n", now() - start);
        fflush(stdout);
    }
    return 0;
}
