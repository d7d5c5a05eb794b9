/* Writes values into files and reads them back: what applying a plan cannot do without.
 *
 * Usage: writes LIST: lines of "PATH VALUE". Prints the CPU seconds of one round. The same calls as
 * ours: open for both, write, pread, close.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST 100000

static char *paths[MOST], *values[MOST];

static double used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    static char line[4096], text[4096];
    FILE *list = argc == 2 ? fopen(argv[1], "r") : NULL;
    int count = 0;
    if (!list)
        return 2;
    while (count < MOST && fgets(line, sizeof line, list)) {
        char *blank = strchr(line, ' ');
        if (!blank)
            return 2;
        *blank = 0;
        paths[count] = strdup(line);
        values[count++] = strdup(blank + 1);
    }
    double start = used();
    for (int i = 0; i < count; i++) {
        int file = open(paths[i], O_RDWR | O_CLOEXEC);
        size_t size = strlen(values[i]);
        if (file < 0 || write(file, values[i], size) != (ssize_t)size ||
            pread(file, text, sizeof text, 0) <= 0) {
            perror(paths[i]);
            return 1;
        }
        close(file);
    }
    printf("%.9f\n", used() - start);
    return 0;
}
