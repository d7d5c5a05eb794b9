/* Best-effort work for a while, and how much of it was done.
 *
 *     hog SECONDS THREADS cpu          loops
 *     hog SECONDS THREADS memory MIB   a walk through so much memory, a cache line each time
 *     hog SECONDS THREADS cache FILE   a file of 256 MiB written and read again: a flood of page cache
 *     hog SECONDS THREADS io FILE      blocks of 64 KiB written to FILE and synced
 *     hog SECONDS THREADS fork         processes that end at once
 *
 * Writes the number of rounds; one is some 100 microseconds of an idle processor.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, APART = 8, LINE = 64, BLOCK = 65536, BLOCKS = 4096 };

static volatile long rounds[MOST * APART];
static const char *mode, *file;
static size_t bytes;

static void loop(volatile long *mine)
{
    volatile double x = 0;
    for (;; ++*mine)
        for (int i = 0; i < 40000; i++)
            x += i;
}

static void walk(volatile long *mine)
{
    volatile char *memory = malloc(bytes);
    memset((void *)memory, 1, bytes);
    for (size_t at = 0;; ++*mine)
        for (int i = 0; i < 4096; i++) {
            memory[at]++;
            at = at + LINE < bytes ? at + LINE : 0;
        }
}

static void blocks(volatile long *mine, int number, int synced)
{
    char block[BLOCK], name[512];
    snprintf(name, sizeof name, "%s.%d", file, number);
    memset(block, 7, sizeof block);
    int handle = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
    for (int i = 0;; i++, ++*mine) {
        off_t at = (off_t)(i % (synced ? 256 : BLOCKS)) * BLOCK;
        ssize_t did = (i / BLOCKS) % 2 && !synced ? pread(handle, block, BLOCK, at)
                                                  : pwrite(handle, block, BLOCK, at);
        if (did != BLOCK)
            usleep(1000);
        if (synced && i % 16 == 15)
            fdatasync(handle);
    }
}

static void children(volatile long *mine)
{
    for (;; ++*mine) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
        else
            usleep(1000);
    }
}

static void *run(void *argument)
{
    int number = (int)(long)argument;
    volatile long *mine = rounds + number * APART;
    if (strcmp(mode, "memory") == 0)
        walk(mine);
    else if (strcmp(mode, "fork") == 0)
        children(mine);
    else if (strcmp(mode, "cpu") == 0)
        loop(mine);
    else
        blocks(mine, number, strcmp(mode, "io") == 0);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4 || atoi(argv[2]) > MOST)
        return 2;
    int threads = atoi(argv[2]);
    mode = argv[3];
    file = argc > 4 ? argv[4] : "";
    bytes = (size_t)atol(file) << 20;
    pthread_t thread;
    for (long i = 0; i < threads; i++)
        pthread_create(&thread, NULL, run, (void *)i);
    usleep((useconds_t)(atof(argv[1]) * 1e6));
    long sum = 0;
    for (int i = 0; i < threads; i++)
        sum += rounds[i * APART];
    printf("%ld\n", sum);
    fflush(stdout);
    _exit(0);
}
