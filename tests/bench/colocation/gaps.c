/* Marks the time in which a host took a processor away, and said nothing: a FIFO thread on each CPU
 * wakes every half millisecond and notes when it came late.
 *
 *     gaps SECONDS MILLISECONDS
 *
 * Writes "CPU BEGIN END" (CLOCK_MONOTONIC, seconds) for each wake-up that was so many milliseconds
 * late, and last "-1 0 SECONDS" of CPU that it has used itself. It belongs in the root group: on cgroup v1 a child has no real-time budget.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const double STEP = 0.0005;
static double seconds, limit;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double at(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *watch(void *argument)
{
    long cpu = (long)argument;
    cpu_set_t set;
    struct sched_param priority = {.sched_priority = 50};
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority)) {
        fprintf(stderr, "gaps: SCHED_FIFO is refused\n");
        exit(1);
    }
    for (double next = at(CLOCK_MONOTONIC), end = next + seconds; next < end;) {
        next += STEP;
        struct timespec t = {(time_t)next, (long)((next - (double)(time_t)next) * 1e9)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        double woke = at(CLOCK_MONOTONIC);
        if (woke - next > limit) {
            pthread_mutex_lock(&lock);
            printf("%ld %.6f %.6f\n", cpu, next - STEP, woke);
            pthread_mutex_unlock(&lock);
        }
        if (woke > next)
            next = woke;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    seconds = atof(argv[1]);
    limit = atof(argv[2]) * 1e-3;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t *threads = calloc((size_t)cpus, sizeof *threads);
    for (long i = 0; i < cpus; i++)
        pthread_create(threads + i, NULL, watch, (void *)i);
    for (long i = 0; i < cpus; i++)
        pthread_join(threads[i], NULL);
    printf("-1 0 %.6f\n", at(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}
