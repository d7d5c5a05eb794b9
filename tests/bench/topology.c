/* The reference of the topology gate: reads the files and lists the directories that discovery
 * reads and lists, as often as it is told, and prints the CPU seconds of one round.
 *
 *     topology LIST ROUNDS
 *
 * LIST has a line for each thing: 'f', a space and the path of a file, or 'd' and a directory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned long total; /* so that nothing is optimised away */

static void read_file(const char *path) {
    char buffer[1 << 16];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t got;
    while ((got = read(file, buffer, sizeof buffer)) > 0)
        total += (unsigned long)got;
    close(file);
}

static void list(const char *path) {
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        total += strlen(entry->d_name);
    closedir(folder);
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count != 3)
        return 2;
    FILE *lines = fopen(words[1], "r");
    if (!lines)
        return 2;
    char **things = NULL, *line = NULL;
    size_t size = 0, things_count = 0;
    for (ssize_t length; (length = getline(&line, &size, lines)) > 2; things_count++) {
        line[length - 1] = 0;
        things = realloc(things, (things_count + 1) * sizeof *things);
        things[things_count] = strdup(line);
    }
    int rounds = atoi(words[2]);
    double start = cpu_seconds();
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < things_count; i++)
            if (things[i][0] == 'f')
                read_file(things[i] + 2);
            else
                list(things[i] + 2);
    double used = cpu_seconds() - start;
    printf("%.9f %lu\n", used / rounds, total);
    return 0;
}
