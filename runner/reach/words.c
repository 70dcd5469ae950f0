/* SPDX-License-Identifier: Apache-2.0 */
#include "reach/words.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"

enum {
        ENDS_MAX = 16, /* number of places at which a path in a longer word may end */
        ENDS_RELATIVE_MAX = 3,
        LINE_MAX_LENGTH = 255, /* bytes of a script that the kernel reads */
};

bool word_is_of_path(char ch) {
        return isalnum((unsigned char)ch) || (ch && strchr("_.-+/~", ch)) ||
               (unsigned char)ch >= 0x80;
}

int word_parts_from(const char *text, WordPartFn fn, void *data) {
        const int max = strchr("/~", text[0]) ? ENDS_MAX : ENDS_RELATIVE_MAX;
        size_t end = 0;
        int r = 0;

        for (int i = 0; r == 0 && i < max && text[end]; i++) {
                _cleanup_free_ char *part = NULL;

                while (word_is_of_path(text[end]))
                        end++;
                if (!text[end])
                        break;
                part = strndup(text, end++);
                r = part ? fn(data, part) : -ENOMEM;
        }
        return r == 0 ? fn(data, text) : r;
}

int word_parts_of_option(const char *text, WordPartFn fn, void *data) {
        const char *slash = text + strcspn(text, "/~");
        int r = text[1] && text[2] ? word_parts_from(text + 2, fn, data) : 0;

        for (const char *at = text; r == 0 && at < slash; at++)
                if (!word_is_of_path(*at))
                        return 0; /* no path starts with the text after this */
        return r == 0 && *slash ? word_parts_from(slash, fn, data) : r;
}

bool word_starts_part(const char *word, unsigned long i) {
        return i == 0 || (!word_is_of_path(word[i - 1]) && word_is_of_path(word[i]));
}

/* Reads the first line of the script behind an O_PATH fd. Returns false if it is not a script. */
static bool script_read_line(int path_fd, char line[LINE_MAX_LENGTH + 2]) {
        _cleanup_close_ int fd = FD_NONE;
        char self[40];
        ssize_t n;

        (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
        fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        n = fd < 0 ? -1 : read(fd, line, LINE_MAX_LENGTH);
        if (n < 2 || line[0] != '#' || line[1] != '!')
                return false;
        line[n] = '\0';
        line[strcspn(line, "\n")] = '\0';
        return true;
}

int script_words(int path_fd, ScriptWordFn fn, void *data) {
        char line[LINE_MAX_LENGTH + 2], *word, *next = NULL;
        int r = 0;

        if (!script_read_line(path_fd, line))
                return 0;
        word = strtok_r(line + 2, " \t", &next);
        if (word && word[0] != '/')
                *--word = '/';
        for (; r == 0 && word; word = strtok_r(NULL, " \t", &next))
                if (word[0] == '/' || (word[0] != '-' && !strchr(word, '=') && !strchr(word, '/')))
                        r = fn(data, word);
        return r;
}
