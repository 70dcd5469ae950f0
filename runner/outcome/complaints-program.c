/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/complaints-program.h"

#include <stdbool.h>
#include <string.h>

#include "base/strings.h"

/* The texts around the name. With a start, the line begins with it, perhaps behind a directory:
 * "/usr/bin/env: 'x'". An empty end is the end of the line. */
static const struct {
        const char *start, *before, *behind;
} shapes[] = {
        /* "bash: line 1: x: command not found", "ksh: x: not found", "sh: 1: x: not found". */
        { "", ": ", ": command not found" },
        { "", ": ", ": not found" },
        { "", "command not found: ", "" }, /* zsh */
        { "fish: ", "Unknown command: ", "" },
        /* Programs that start others. The errno is that of execvp(3). */
        { "env: ", "‘", "’: No such file or directory" },
        { "env: ", "'", "': No such file or directory" },
        { "env: ", "env: ", ": No such file or directory" },
        { "nice: ", "‘", "’: No such file or directory" },
        { "nice: ", "'", "': No such file or directory" },
        { "setsid: ", "failed to execute ", ": No such file or directory" },
        { "", "failed to run command ‘", "’: No such file or directory" },
        { "", "failed to run command '", "': No such file or directory" },
        { "xargs: ", "xargs: ", ": No such file or directory" },
        { "make", "]: ", ": No such file or directory" },
        { "make: ", "make: ", ": No such file or directory" },
        /* Go, node, Java and Python. */
        { "", "exec: \"", "\": executable file not found in $PATH" },
        { "", "spawn ", " ENOENT" },
        { "", "Cannot run program \"", "\"" },
        { "FileNotFoundError: ", "No such file or directory: '", "'" },
};

static bool program_is_name(const char *name, size_t length) {
        static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "._+-";

        return length > 0 && name[0] != '-' && name[0] != '.' && strspn(name, bytes) >= length;
}

/* Whether the line begins with the word start, or with a path that ends with it. */
static bool program_starts(const char *line, const char *start) {
        const char *word = line, *slash;

        while ((slash = strchr(word, '/')) && !memchr(word, ' ', (size_t)(slash - word)))
                word = slash + 1;
        return str_starts(word, start);
}

const char *complaint_program(const char *line, size_t *ret_length) {
        for (size_t i = 0; i < ELEMENTSOF(shapes); i++) {
                const size_t skip = strlen(shapes[i].before);
                const char *behind = shapes[i].behind;

                if (!program_starts(line, shapes[i].start))
                        continue;
                for (const char *at = line; (at = strstr(at, shapes[i].before)) != NULL; at++) {
                        const char *name = at + skip;
                        const char *end = behind[0] ? strstr(name, behind) : name + strlen(name);

                        if (!end || !program_is_name(name, (size_t)(end - name)))
                                continue;
                        *ret_length = (size_t)(end - name);
                        return name;
                }
        }
        return NULL;
}
