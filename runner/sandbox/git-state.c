/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/git-state.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/sys.h"
#include "sandbox/repository.h"

enum { RERERE_SIZE_MAX = 1 << 20 };

/* --- files --- */

static int open_read(int dir_fd, const char *name) {
        int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

/* How it begins. 0, or a negative errno. */
static int read_begin(int dir_fd, const char *name, char ret[PATH_MAX]) {
        _cleanup_close_ int fd = open_read(dir_fd, name);
        ssize_t n = fd < 0 ? fd : read(fd, ret, PATH_MAX - 1);

        ret[n < 0 ? 0 : n] = '\0';
        return n >= 0 ? 0 : fd < 0 ? fd : -errno;
}

static bool is_ours(int dir_fd, const char *name) {
        struct stat st;

        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
}

/* --- symbolic refs --- */

/* As git has them (git-check-ref-format(1)), as far as a name that is none could lead elsewhere.
 * To write one git does not check it. */
static bool is_ref(const char *name) {
        const char *end = name + strcspn(name, " \t\r\n");

        if (!str_starts(name, "refs/") || end[strspn(end, " \t\r\n")] != '\0')
                return false;
        for (const char *part = name; part < end; part++) {
                const size_t length = strcspn(part, "/ \t\r\n");

                if (length == 0 || part[0] == '.' || memmem(part, length, "..", 2) ||
                    (length >= 5 && memcmp(part + length - 5, ".lock", 5) == 0))
                        return false;
                part += length;
        }
        return true;
}

static bool is_led_by_ref(const char *text) {
        static const char prefix[] = "ref:";

        if (!str_starts(text, prefix))
                return false;
        if (strlen(text) == PATH_MAX - 1) /* and more that was not read */
                return true;
        text += strlen(prefix);
        return !is_ref(text + strspn(text, " \t\r\n"));
}

/* --- MERGE_RR --- */

/* The path of HASH[.VARIANT]\tPATH, or NULL: git dies of what is no such thing. */
static const char *rerere_path(const char *entry) {
        entry += strspn(entry, "0123456789abcdef");
        if (*entry == '.' && isdigit((unsigned char)entry[1]))
                entry += 1 + strspn(entry + 1, "0123456789");
        return *entry == '\t' && entry[1] ? entry + 1 : NULL;
}

/* A file of the work tree, or where one may be made. */
static bool is_in_tree(int tree_fd, const char *path) {
        _cleanup_free_ char *normal = path_join("/", path);
        _cleanup_close_ int fd = FD_NONE;
        struct stat st;

        if (path[0] == '/' || !normal || !streq(normal + 1, path))
                return false;
        fd = sys_open_beneath(tree_fd, path, O_PATH | O_NOFOLLOW);
        if (fd < 0)
                return errno == ENOENT || errno == ENOTDIR;
        return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_led_by_rerere(int tree_fd, int dir_fd, const char *name, char ret[PATH_MAX]) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r = repository_read(dir_fd, name, RERERE_SIZE_MAX, &text, &size);

        ret[0] = '\0';
        if (r < 0)
                return r != -ENOENT;
        for (size_t at = 0; at < size; at += strlen(text + at) + 1) {
                const char *path = rerere_path(text + at);

                if (path && is_in_tree(tree_fd, path))
                        continue;
                (void)snprintf(ret, PATH_MAX, "%s", text + at);
                return true;
        }
        return false;
}

/* --- together --- */

bool git_state_leads(int tree_fd, int dir_fd, const char *name, const char *path,
                     char ret[PATH_MAX]) {
        int r;

        ret[0] = '\0';
        r = read_begin(dir_fd, name, ret);
        if (r < 0)
                return r != -ENOENT && is_ours(dir_fd, name);
        if (streq(path, "MERGE_RR"))
                return is_led_by_rerere(tree_fd, dir_fd, name, ret);
        return streq(path, "MERGE_AUTOSTASH") || is_led_by_ref(ret);
}
