/* Applies a plan, as far as the kernel is concerned: the reference of writes.py.
 *
 *     writes LIST JOURNAL
 *
 * LIST has lines of "PATH VALUE". The same calls as ours, in the same order: stat of each group,
 * one record of each write appended to JOURNAL with its checksum and synced, then open for both,
 * write, pread and close of each file, and stat of each group again. Prints the CPU seconds of all
 * that, and of the writes alone.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST 100000

static char *paths[MOST], *values[MOST];
static uint32_t table[256];

static double used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static uint32_t checksum(const char *text, size_t size)
{
    uint32_t sum = ~0u;
    while (size--)
        sum = sum >> 8 ^ table[(sum ^ (uint8_t)*text++) & 255];
    return ~sum;
}

/* The inode of the directory of a file; the group before is not asked for again. */
static unsigned long identity(const char *path)
{
    static char last[4096];
    static unsigned long inode;
    size_t size = strrchr(path, '/') - path;
    struct stat found;
    if (strncmp(last, path, size) || last[size]) {
        memcpy(last, path, size);
        last[size] = 0;
        inode = stat(last, &found) ? 0 : found.st_ino;
    }
    return inode;
}

static int journal(const char *where, int count)
{
    size_t room = (size_t)count * 1024, filled = 0;
    char *text = malloc(room);
    int file = open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600), done;
    for (int i = 0; i < count; i++) {
        char *body = text + filled + 1;
        int size = snprintf(body, 1000,
            "{\"intent\":{\"kind\":\"WriteFile\",\"target\":\"%s\",\"policy\":\"bench\",\"original\":"
            "\"%s\",\"values\":[\"%s\",\"%s\"],\"knob\":\"\",\"group\":\"%s\",\"inode\":%lu,"
            "\"unix_time\":0.0,\"sure\":true}}", paths[i], values[i], values[i], values[i],
            strrchr(paths[i], '/'), identity(paths[i]));
        text[filled] = '\n';
        filled += 1 + size + sprintf(body + size, "\t%08x\n", checksum(body, size));
    }
    done = file >= 0 && write(file, text, filled) == (ssize_t)filled && !fsync(file);
    close(file);
    free(text);
    return done;
}

int main(int argc, char **argv)
{
    static char line[4096], text[4096];
    FILE *list = argc == 3 ? fopen(argv[1], "r") : NULL;
    int count = 0;
    if (!list)
        return 2;
    for (uint32_t n = 0; n < 256; n++) {
        table[n] = n;
        for (int bit = 0; bit < 8; bit++)
            table[n] = table[n] >> 1 ^ (table[n] & 1 ? 0xedb88320u : 0);
    }
    while (count < MOST && fgets(line, sizeof line, list)) {
        char *blank = strchr(line, ' ');
        if (!blank)
            return 2;
        *blank = 0;
        paths[count] = strdup(line);
        blank[1 + strcspn(blank + 1, "\n")] = 0;
        values[count++] = strdup(blank + 1);
    }
    double start = used();
    if (!journal(argv[2], count))
        return 1;
    double first = used();
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
    double alone = used() - first;
    for (int i = 0; i < count; i++)
        identity(paths[i]);
    printf("%.9f %.9f\n", used() - start, alone);
    return 0;
}
