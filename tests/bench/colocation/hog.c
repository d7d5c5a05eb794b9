/* Best-effort work without end, and how much of it was done.
 *
 *     hog COUNTER THREADS cpu          loops
 *     hog COUNTER THREADS memory MIB   a walk through so much memory, a cache line each time
 *     hog COUNTER THREADS io FILE      blocks of 64 KiB written to FILE and synced
 *
 * COUNTER is a file of 64 numbers of 8 bytes; each thread counts its rounds in one of them, which
 * whoever measures reads when he likes. A round is about 100 microseconds of an idle processor.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 64, LINE = 64, BLOCK = 65536 };

static volatile uint64_t *counters;
static const char *mode;
static size_t bytes;
static const char *file;

static void loop(volatile uint64_t *mine)
{
    volatile uint64_t x = 88172645463325252ull;
    for (;;) {
        for (int i = 0; i < 20000; i++) {
            uint64_t y = x;
            y ^= y << 13;
            y ^= y >> 7;
            y ^= y << 17;
            x = y;
        }
        ++*mine;
    }
}

static void walk(volatile uint64_t *mine)
{
    volatile char *memory = malloc(bytes);
    memset((void *)memory, 1, bytes);
    for (size_t at = 0;;) {
        for (int i = 0; i < 4096; i++) {
            memory[at]++;
            at = at + LINE < bytes ? at + LINE : 0;
        }
        ++*mine;
    }
}

static void writing(volatile uint64_t *mine)
{
    static char block[BLOCK];
    int handle = open(file, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    for (int i = 0;; i++) {
        if (pwrite(handle, block, BLOCK, (off_t)(i % 256) * BLOCK) != BLOCK)
            usleep(1000);
        if (i % 16 == 15)
            fdatasync(handle);
        ++*mine;
    }
}

static void *run(void *slot)
{
    volatile uint64_t *mine = slot;
    if (strcmp(mode, "memory") == 0)
        walk(mine);
    else if (strcmp(mode, "io") == 0)
        writing(mine);
    else
        loop(mine);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: hog COUNTER THREADS cpu|memory MIB|io FILE\n");
        return 2;
    }
    int threads = atoi(argv[2]), handle = open(argv[1], O_CREAT | O_RDWR, 0600);
    mode = argv[3];
    bytes = argc > 4 ? (size_t)atol(argv[4]) << 20 : 0;
    file = argc > 4 ? argv[4] : "";
    if (handle < 0 || ftruncate(handle, SLOTS * 8) != 0 || threads < 1 || threads > SLOTS) {
        perror("hog");
        return 1;
    }
    counters = mmap(NULL, SLOTS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    for (int i = 0; i < threads; i++) {
        pthread_t one;
        pthread_create(&one, NULL, run, (void *)&counters[i]);
    }
    pause();
    return 0;
}
