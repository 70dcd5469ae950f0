/* SPDX-License-Identifier: Apache-2.0 */
#include "base/home.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/strings.h"
#include "base/util.h"

/* The last answer is cached, because most mounts belong to one user. */
const char *home_of_uid(uid_t uid) {
        static struct {
                bool known;
                uid_t uid;
                char home[PATH_MAX]; /* "" if there is none */
        } last;
        const struct passwd *entry;
        FILE *file;

        if (last.known && last.uid == uid)
                return last.home[0] ? last.home : NULL;
        last.known = true;
        last.uid = uid;
        last.home[0] = '\0';
        file = fopen("/etc/passwd", "re");
        while (file && !last.home[0] && (entry = fgetpwent(file)))
                if (entry->pw_uid == uid && entry->pw_dir && entry->pw_dir[0] == '/' &&
                    strlen(entry->pw_dir) < sizeof(last.home))
                        (void)strcpy(last.home, entry->pw_dir);
        if (file)
                (void)fclose(file);
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
