/* SPDX-License-Identifier: Apache-2.0 */
#include "base/home.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/strings.h"
#include "base/util.h"

/* Takes the home directory from a line of /etc/passwd (passwd(5)), if the line is about uid. */
static void home_take(char *line, uid_t uid, char ret[PATH_MAX]) {
        enum { ID = 2, HOME = 5, FIELDS = 7 };
        char *fields[FIELDS], *end;
        size_t count = 0;

        while (line && count < FIELDS)
                fields[count++] = strsep(&line, ":");
        if (count < FIELDS || fields[ID][0] < '0' || fields[ID][0] > '9' ||
            strtoull(fields[ID], &end, 10) != uid || *end || fields[HOME][0] != '/' ||
            strlen(fields[HOME]) >= PATH_MAX)
                return;
        (void)strcpy(ret, fields[HOME]);
}

/* Takes the home directory from the whole lines of the text, and returns the length of the rest,
 * which it moves to the beginning. */
static size_t home_take_lines(char *text, size_t length, uid_t uid, char ret[PATH_MAX]) {
        char *line = text, *end;

        while (!ret[0] && (end = memchr(line, '\n', length))) {
                *end = '\0';
                home_take(line, uid, ret);
                length -= (size_t)(end + 1 - line);
                line = end + 1;
        }
        memmove(text, line, length);
        return length;
}

/* Takes the home directory of the first line about uid. A line that is longer than the buffer is
 * skipped. stdio would take memory of the heap, which costs a start of holt as much as ten system
 * calls. */
static void home_search(uid_t uid, char ret[PATH_MAX]) {
        _cleanup_close_ int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
        _uninitialized_ char text[4096];
        size_t length = 0;
        ssize_t n = fd < 0 ? 0 : 1;

        while (n > 0 && !ret[0]) {
                n = read(fd, text + length, sizeof(text) - 1 - length);
                length = home_take_lines(text, length + (n > 0 ? (size_t)n : 0), uid, ret);
                if (length == sizeof(text) - 1)
                        length = 0;
        }
        text[length] = '\0';
        if (!ret[0])
                home_take(text, uid, ret);
}

/* The last answer is cached, because most mounts belong to one user. */
const char *home_of_uid(uid_t uid) {
        static struct {
                bool known;
                uid_t uid;
                char home[PATH_MAX]; /* "" if there is none */
        } last;

        if (last.known && last.uid == uid)
                return last.home[0] ? last.home : NULL;
        last.known = true;
        last.uid = uid;
        last.home[0] = '\0';
        home_search(uid, last.home);
        return last.home[0] ? last.home : NULL;
}

const char *home_path(void) {
        static char home[PATH_MAX];
        const char *set = getenv("HOME");

        if (!home[0] && (!set || set[0] != '/' || strlen(set) >= sizeof(home)))
                set = home_of_uid(getuid());
        if (!home[0] && set)
                (void)strcpy(home, set);
        return home[0] ? home : NULL;
}

char *home_config_directory(void) {
        const char *xdg = getenv("XDG_CONFIG_HOME"), *home = home_path();

        /* A relative path is ignored (XDG Base Directory Specification). */
        if (xdg && xdg[0] == '/')
                return strdup(xdg);
        return home ? str_format("%s/.config", home) : NULL;
}

const char *home_config(bool *ret_must) {
        static char path[PATH_MAX];
        const char *named = getenv("HOLT_CONFIG");
        _cleanup_free_ char *directory = named ? NULL : home_config_directory();
        int n;

        *ret_must = named != NULL;
        if (named)
                return named[0] == '\0' || streq(named, "none") ? NULL : named;
        n = directory ? snprintf(path, sizeof(path), "%s/holt/config.json", directory) : 0;
        return n > 0 && n < (int)sizeof(path) ? path : NULL;
}

bool home_lies_below(const char *path) {
        const char *home = home_path();
        char real[PATH_MAX];

        return home && (path_below(home, path) || (realpath(home, real) && path_below(real, path)));
}
