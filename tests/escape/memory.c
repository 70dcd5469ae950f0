/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the sandbox's readable memory and files for a secret of the caller's. The secret is
 * passed in hex, so that the search does not put it there. */
#include "hostile.h"

#include <fcntl.h>

static int hex_byte(const char *hex) {
        char digits[3] = { hex[0], hex[1], '\0' };

        return (int)strtol(digits, NULL, 16);
}

static int matches(const unsigned char *bytes, const char *hex) {
        for (; hex[0] && hex[1]; hex += 2, bytes++)
                if (*bytes != hex_byte(hex))
                        return 0;
        return 1;
}

/* Returns the place of the secret, or NULL. The secret is in hex. */
static const unsigned char *find(const unsigned char *start, size_t size, const char *hex) {
        size_t len = strlen(hex) / 2;

        for (size_t i = 0; size >= len && i <= size - len; i++)
                if (start[i] == hex_byte(hex) && matches(start + i, hex))
                        return start + i;
        return NULL;
}

static void own_memory(char **args) {
        unsigned long start, end;
        FILE *f = fopen("/proc/self/maps", "re");
        char line[512], readable;

        if (!f)
                untried("/proc/self/maps: %s", errno_name(errno));
        while (fgets(line, sizeof(line), f))
                if (sscanf(line, "%lx-%lx %c", &start, &end, &readable) == 3 && readable == 'r' &&
                    !strstr(line, "[v") && find((void *)start, end - start, args[0])) /* vvar */
                        broken("in %s", line);
        held("not in any mapping");
}

/* args: a path, the secret. */
static void in_file(char **args) {
        unsigned char *bytes = malloc(1 << 20);
        int fd = open(args[0], O_RDONLY | O_CLOEXEC);
        size_t size = 0;
        ssize_t n = 1;

        if (fd < 0)
                held("%s", errno_name(errno));
        while (bytes && size < 1 << 20 && (n = read(fd, bytes + size, (1 << 20) - size)) > 0)
                size += (size_t)n;
        if (n < 0)
                held("%s", errno_name(errno));
        if (find(bytes, size, args[1]))
                broken("in %s", args[0]);
        held("not in its %zu bytes", size);
}

static const Attack attacks[] = {
        { "own", own_memory, 1 },
        { "file", in_file, 2 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
