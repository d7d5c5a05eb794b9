/* The first number of each file that standard input names, one a line: what another program sees.
 * A file of keys (cpu.stat) begins with its first key. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char path[4096], text[256];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        FILE *file = fopen(path, "r");
        if (!file || !fgets(text, sizeof text, file)) {
            fprintf(stderr, "%s: cannot be read\n", path);
            return 1;
        }
        fclose(file);
        char *number = text;
        while (*number && !isdigit((unsigned char)*number))
            number++;
        printf("%s%s", number, strchr(number, '\n') ? "" : "\n");
    }
    return 0;
}
