/* So many threads that compute until they are killed. They begin together, once all are there: the
 * one that makes them would not get a turn among them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *spin(void *unused)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    volatile unsigned long number = 0;
    for (;;)
        number++;
    return unused;
}

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : 1, made = 0;
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16 << 10);
    pthread_mutex_lock(&gate);
    while (made < wanted && !pthread_create(&thread, &small, spin, NULL))
        made++;
    printf("%d\n", made);
    fflush(stdout);
    pthread_mutex_unlock(&gate);
    pause();
    return 0;
}
