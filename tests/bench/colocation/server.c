/* A latency-sensitive service and its clients: open loop, random arrivals, a few threads.
 *
 *     server THREADS MILLISECONDS SEED RATE:SECONDS[,RATE:SECONDS...]
 *
 * A client thread draws arrivals (Poisson) and wakes a worker for each, at rate 0 none; a request
 * takes so many milliseconds of processor time. Writes "ARRIVAL COMPLETION" (CLOCK_MONOTONIC, seconds) for each:
 * the time counts from the arrival, not from when somebody got round to it.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1 << 20 };
static double queue[MOST], arrived[MOST], finished[MOST], work;
static long head, tail, served;
static int done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

static double at(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (head == tail && !done)
            pthread_cond_wait(&ready, &lock);
        if (head == tail) {
            pthread_mutex_unlock(&lock);
            return NULL;
        }
        double arrival = queue[head++];
        pthread_mutex_unlock(&lock);
        volatile double x = 0;
        for (double end = at(CLOCK_THREAD_CPUTIME_ID) + work; at(CLOCK_THREAD_CPUTIME_ID) < end;)
            for (int i = 0; i < 200; i++)
                x += i;
        double completion = at(CLOCK_MONOTONIC);
        pthread_mutex_lock(&lock);
        arrived[served] = arrival;
        finished[served++] = completion;
        pthread_mutex_unlock(&lock);
    }
}

static void wait_until(double when)
{
    struct timespec t = {(time_t)when, (long)((when - (double)(time_t)when) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void arrive(double rate, double end, double *next)
{
    while (rate > 0 && (*next += -log(1 - drand48()) / rate) < end && tail < MOST) {
        wait_until(*next);
        pthread_mutex_lock(&lock);
        queue[tail++] = *next;
        pthread_cond_signal(&ready);
        pthread_mutex_unlock(&lock);
    }
    if (rate == 0)
        wait_until(end);
    *next = end;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    int threads = atoi(argv[1]);
    work = atof(argv[2]) * 1e-3;
    srand48(atol(argv[3]));
    pthread_t *each = calloc((size_t)threads, sizeof *each);
    for (int i = 0; i < threads; i++)
        pthread_create(each + i, NULL, serve, NULL);
    double next = at(CLOCK_MONOTONIC), end = next;
    for (char *part = strtok(argv[4], ","); part; part = strtok(NULL, ",")) {
        double rate, seconds;
        if (sscanf(part, "%lf:%lf", &rate, &seconds) != 2 || rate < 0) {
            fprintf(stderr, "server: not RATE:SECONDS: %s\n", part);
            return 2;
        }
        arrive(rate, end += seconds, &next);
    }
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_cond_broadcast(&ready);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < threads; i++)
        pthread_join(each[i], NULL);
    for (long i = 0; i < served; i++)
        printf("%.6f %.6f\n", arrived[i], finished[i]);
    return 0;
}
