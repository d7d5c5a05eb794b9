/* Threads to move, and the reference for moving them.
 *
 * moving crowd PROCESSES THREADS   starts them, prints "pid tid tid ..." for each process, and
 *                                  waits until its standard input is closed
 * moving move TASKS                reads thread ids from standard input, writes each to TASKS with
 *                                  one write(2); prints its CPU seconds and how many were taken
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void *rest(void *nothing)
{
    pause();
    return nothing;
}

static int crowd(int processes, int threads)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    for (int i = 0; i < processes; i++) {
        int ready[2];
        char byte;
        if (pipe(ready) || fflush(stdout)) return 1;
        pid_t pid = fork();
        if (pid < 0) return 1;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(0);
            for (int t = 1; t < threads; t++) {
                pthread_t one;
                if (pthread_create(&one, &small, rest, NULL)) _exit(1);
            }
            if (write(ready[1], "x", 1) != 1) _exit(1);
            pause();
            _exit(0);
        }
        if (read(ready[0], &byte, 1) != 1) return 1;
        close(ready[0]);
        close(ready[1]);
        char where[64];
        snprintf(where, sizeof where, "/proc/%d/task", pid);
        DIR *tasks = opendir(where);
        if (!tasks) return 1;
        printf("%d", pid);
        for (struct dirent *one; (one = readdir(tasks));)
            if (one->d_name[0] != '.' && atoi(one->d_name) != pid) printf(" %s", one->d_name);
        closedir(tasks);
        printf("\n");
    }
    printf("ready\n");
    fflush(stdout);
    char end;
    while (read(0, &end, 1) > 0) continue;
    kill(0, SIGTERM);
    return 0;
}

static int move(const char *tasks)
{
    static char ids[65536][12];
    int count = 0, taken = 0;
    while (count < 65536 && scanf("%11s", ids[count]) == 1) count++;
    struct timespec start, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    int handle = open(tasks, O_WRONLY | O_CLOEXEC);
    if (handle < 0) return 1;
    for (int i = 0; i < count; i++) {
        size_t length = strlen(ids[i]);
        ids[i][length] = '\n';
        taken += write(handle, ids[i], length + 1) == (ssize_t)length + 1;
    }
    close(handle);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%.9f %d\n", end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9, taken);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "crowd")) return crowd(atoi(argv[2]), atoi(argv[3]));
    if (argc == 3 && !strcmp(argv[1], "move")) return move(argv[2]);
    return 2;
}
