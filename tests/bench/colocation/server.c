/* A latency-sensitive server under open-loop load.
 *
 * Arrivals are drawn beforehand (Poisson, seeded). Each of W workers takes the next arrival, sleeps
 * until its time and then does a fixed amount of work. The latency of a request is the time from its
 * arrival, not from when somebody got round to it: waiting behind others counts.
 *
 *     server WORKERS LOOPS SEED RATE:SECONDS[,RATE:SECONDS...]
 *     server --calibrate
 *
 * Writes one line for each request, in order of arrival: arrival and latency in microseconds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double *arrivals;  /* seconds after the start */
static double *latencies; /* seconds */
static long count, loops;
static atomic_long next;
static double start;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The compiler must not see through the work. */
static void work(long n)
{
    volatile uint64_t x = 88172645463325252ull;
    for (long i = 0; i < n; i++) {
        uint64_t y = x;
        y ^= y << 13;
        y ^= y >> 7;
        y ^= y << 17;
        x = y;
    }
}

static void sleep_until(double when)
{
    struct timespec t = {.tv_sec = (time_t)when, .tv_nsec = (long)((when - floor(when)) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void *worker(void *unused)
{
    (void)unused;
    for (;;) {
        long mine = atomic_fetch_add(&next, 1);
        if (mine >= count)
            return NULL;
        sleep_until(start + arrivals[mine]);
        work(loops);
        latencies[mine] = now() - start - arrivals[mine];
    }
}

static uint64_t state;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static void schedule(char *text)
{
    long room = 1024;
    double at = 0, end = 0;
    arrivals = malloc((size_t)room * sizeof *arrivals);
    for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) {
        double rate, seconds;
        if (sscanf(part, "%lf:%lf", &rate, &seconds) != 2 || rate <= 0) {
            fprintf(stderr, "server: not RATE:SECONDS: %s\n", part);
            exit(2);
        }
        at = end;
        end += seconds;
        for (;;) {
            at -= log(uniform()) / rate;
            if (at >= end)
                break;
            if (count == room)
                arrivals = realloc(arrivals, (size_t)(room *= 2) * sizeof *arrivals);
            arrivals[count++] = at;
        }
    }
    latencies = calloc((size_t)count + 1, sizeof *latencies);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--calibrate") == 0) {
        /* Loops in one millisecond of processor time: the best of many tries. */
        double best = 1e9;
        for (int i = 0; i < 50; i++) {
            double before = processor();
            work(200000);
            double took = processor() - before;
            best = took < best ? took : best;
        }
        printf("%ld\n", (long)(200000 * 1e-3 / best));
        return 0;
    }
    if (argc != 5) {
        fprintf(stderr, "usage: server WORKERS LOOPS SEED RATE:SECONDS[,...]\n");
        return 2;
    }
    int workers = atoi(argv[1]);
    loops = atol(argv[2]);
    state = strtoull(argv[3], NULL, 10) * 2654435761ull + 1;
    for (int i = 0; i < 20; i++)
        uniform();
    schedule(argv[4]);
    pthread_t *threads = calloc((size_t)workers, sizeof *threads);
    start = now() + 0.05;
    for (int i = 0; i < workers; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    for (long i = 0; i < count; i++)
        printf("%.0f %.0f\n", arrivals[i] * 1e6, latencies[i] * 1e6);
    return 0;
}
