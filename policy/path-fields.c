/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/path-fields.h"

#include <errno.h>
#include <string.h>

/* Walks the parts of *path, without "." and empty ones. Returns false at the end. */
static bool next_part(const char **path, const char **ret_part, size_t *ret_length) {
        const char *p = *path;

        for (;;) {
                size_t length;

                p += strspn(p, "/");
                length = strcspn(p, "/");
                if (length == 0)
                        return false;
                *path = p + length;
                if (length > 1 || *p != '.') {
                        *ret_part = p;
                        *ret_length = length;
                        return true;
                }
                p += length;
        }
}

static bool part_is(const char *part, size_t length, const char *name) {
        return strlen(name) == length && memcmp(part, name, length) == 0;
}

/* Returns the number of parts, or -EINVAL if one is "..". ".." would be removed from the text
 * before any link is followed, so the path could mean another place. */
static int field_count_parts(const char *path) {
        const char *part;
        size_t length;
        int count = 0;

        while (next_part(&path, &part, &length)) {
                if (part_is(part, length, ".."))
                        return -EINVAL;
                count++;
        }
        return count;
}

int path_field_check(const char *path, const char **ret_why) {
        if (strlen(path) > POLICY_PATH_MAX)
                return error_why(ret_why,
                                 "is longer than the kernel allows for a path (4095 bytes)");
        if (path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
                return error_why(ret_why,
                                 "starts with \"~\", which only a shell expands; write the "
                                 "directory in full");
        return 0;
}

/* Whether the path ends like a volume of docker: ":ro", ":z" or ":rw,z", for example. */
static bool field_ends_in_mode(const char *path) {
        static const char *const modes[] = { "ro", "rw", "z", "Z" };
        const char *colon = strrchr(path, ':');
        const size_t length = colon ? strcspn(colon + 1, ",") : 0;

        for (size_t i = 0; i < ELEMENTSOF(modes); i++)
                if (length == strlen(modes[i]) && strncmp(colon + 1, modes[i], length) == 0)
                        return true;
        return false;
}

int policy_target_check(const char *target, const char **ret_why) {
        const char *rest = target, *part;
        size_t length;
        int parts;

        if (target[0] != '/')
                return error_why(ret_why, "is not absolute; a path inside starts with /");
        if (strlen(target) > POLICY_PATH_MAX)
                return error_why(ret_why,
                                 "is longer than the kernel allows for a path (4095 bytes)");
        parts = field_count_parts(target);
        if (parts < 0)
                return error_why(ret_why, "contains \"..\"; write the path inside without it");
        if (parts == 0 || !next_part(&rest, &part, &length))
                return error_why(ret_why, "is the sandbox's root; choose a directory below it");
        if (part_is(part, length, "proc") || part_is(part, length, "dev"))
                return error_why(ret_why,
                                 "is in /proc or /dev, which the sandbox creates itself; choose "
                                 "another place");
        if (field_ends_in_mode(target))
                return error_why(ret_why, "ends in a mode, which only -v takes; without it, --ro "
                                          "mounts read-only, and --rw read-write");
        if (parts == 1 && part_is(part, length, "etc"))
                return error_why(ret_why, "is /etc, which the sandbox creates itself; choose a "
                                          "file or directory in it");
        return 0;
}

const char *policy_bind_split(const char *text, size_t *ret_path_length) {
        const char *found = NULL;

        for (const char *p = strstr(text, ":/"); p; p = strstr(p + 1, ":/"))
                found = p;
        *ret_path_length = found ? (size_t)(found - text) : strlen(text);
        return found ? found + 1 : NULL;
}

int path_field_check_bind(const char *text, const char **ret_why) {
        const char *target;
        size_t length;
        int r;

        r = path_field_check(text, ret_why);
        if (r < 0)
                return r;
        target = policy_bind_split(text, &length);
        if (length == 0)
                return error_why(ret_why, "has no path before the \":\"; write PATH:/TARGET");
        if (target)
                return policy_target_check(target, ret_why);
        if (strchr(text, ':'))
                return error_why(ret_why, "has a target that is not absolute; write "
                                          "PATH:/TARGET (also if the colon is part of PATH)");
        /* A relative path becomes its own target when the plan makes it absolute. */
        return text[0] == '/' && field_count_parts(text) >= 0 ? policy_target_check(text, ret_why)
                                                              : 0;
}

int path_field_check_hide(const char *path, const char **ret_why) {
        const char *part;
        size_t length;
        int r = path_field_check(path, ret_why);

        if (r < 0)
                return r;
        r = field_count_parts(path);
        if (r < 0)
                return error_why(ret_why, "contains \"..\"; write the path without it");
        if (r == 0)
                return error_why(ret_why, "is the whole file tree; name a file or directory in it");
        /* Many programs read /proc and /dev, and the sandbox has its own, so no file there can be
         * hidden. */
        if (path[0] == '/' && next_part(&path, &part, &length) &&
            (part_is(part, length, "proc") || part_is(part, length, "dev")))
                return error_why(ret_why, "is in /proc or /dev, which the sandbox creates "
                                          "itself without any file of the host");
        return 0;
}

int path_field_check_protect(const char *path, const char **ret_why) {
        if (path[0] == '/')
                return error_why(ret_why, "is absolute; write it relative to the workspace");
        return path_field_check_hide(path, ret_why);
}
