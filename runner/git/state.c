/* SPDX-License-Identifier: Apache-2.0 */
#include "git/state.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/sys.h"
#include "git/repository.h"

enum { SIZE_MAX_READ = 1 << 20 };

/* --- files --- */

static int open_read(int dir_fd, const char *name) {
        int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

/* Reads the beginning of the file. Returns 0 or a negative errno. */
static int read_begin(int dir_fd, const char *name, char ret[PATH_MAX]) {
        _cleanup_close_ int fd = open_read(dir_fd, name);
        ssize_t n = fd < 0 ? fd : read(fd, ret, PATH_MAX - 1);

        ret[n < 0 ? 0 : n] = '\0';
        return n >= 0 ? 0 : fd < 0 ? fd : -errno;
}

static bool state_is_ours(int dir_fd, const char *name) {
        struct stat st;

        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
}

/* --- symbolic refs --- */

/* Whether the name is one that git allows (git-check-ref-format(1)). Checks only the rules whose
 * violation could lead git elsewhere. git does not check a name when it writes through it. */
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
        if (strlen(text) == PATH_MAX - 1) /* The rest of the text was not read. */
                return true;
        text += strlen(prefix);
        return !is_ref(text + strspn(text, " \t\r\n"));
}

/* --- MERGE_RR --- */

/* Returns the path of HASH[.VARIANT]\tPATH. Returns NULL for any other entry; git ends with an
 * error there. */
static const char *rerere_path(const char *entry) {
        entry += strspn(entry, "0123456789abcdef");
        if (*entry == '.' && isdigit((unsigned char)entry[1]))
                entry += 1 + strspn(entry + 1, "0123456789");
        return *entry == '\t' && entry[1] ? entry + 1 : NULL;
}

/* Whether the path is a file of the work tree, or does not exist yet. */
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
        int r = repository_read(dir_fd, name, SIZE_MAX_READ, &text, &size);

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

/* --- in progress --- */

/* The commands of git-rebase(1) and their short forms, except for x and exec, which start a
 * shell. */
static const char *const commands[] = {
        "b",     "break",  "d",      "drop",  "e",      "edit", "f",    "fixup",
        "l",     "label",  "m",      "merge", "noop",   "p",    "pick", "r",
        "reset", "reword", "revert", "s",     "squash", "t",    "u",    "update-ref",
};

static bool is_command(const char *word, size_t length) {
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (strlen(commands[i]) == length && memcmp(word, commands[i], length) == 0)
                        return true;
        return false;
}

/* Whether a line of git-rebase-todo is harmless. A command begins with a letter; other lines are
 * comments, for which the caller chooses the character. update-ref takes the name of a ref that git
 * may create. */
static bool is_step(const char *line) {
        size_t length;

        line += strspn(line, " \t");
        length = strcspn(line, " \t\r");
        if (!isalpha((unsigned char)line[0]))
                return true;
        if (!is_command(line, length))
                return false;
        return line[0] != 'u' || is_ref(line + length + strspn(line + length, " \t"));
}

/* Lines of update-refs (rebase --update-refs) and refs-to-delete: names of refs, and hashes. */
static bool is_ref_or_hash(const char *line) {
        const size_t length = strspn(line, "0123456789abcdef");

        return line[length] == '\0' || is_ref(line);
}

/* A strategy named "x/y" would make git start the program git-merge-x/y in the work tree. */
static bool is_strategy(const char *line) {
        return !strchr(line, '/');
}

/* --build-fake-ancestor writes a file. git accepts any abbreviation of it. */
static bool is_apply_option(const char *line) {
        return !strstr(line, "--b");
}

/* Checks options that git-cherry-pick(1) keeps as a config. The text is checked as a whole, because
 * a path among its options looks the same as a strategy. */
static bool is_options(const char *text) {
        return !strcasestr(text, "strategy") || is_strategy(text);
}

/* Files by which git continues an operation. */
static const struct {
        const char *path;
        bool (*is_right)(const char *line); /* NULL: no content is harmless. */
        bool whole;                         /* Pass the whole text at once, not line by line. */
} states[] = {
        { .path = "MERGE_AUTOSTASH" },
        { .path = "objects/info/alternates" },
        { .path = "rebase-apply/apply-opt", .is_right = is_apply_option },
        { .path = "rebase-apply/autostash" },
        { .path = "rebase-merge/autostash" },
        { .path = "rebase-merge/git-rebase-todo", .is_right = is_step },
        { .path = "rebase-merge/refs-to-delete", .is_right = is_ref_or_hash },
        { .path = "rebase-merge/strategy", .is_right = is_strategy },
        { .path = "rebase-merge/update-refs", .is_right = is_ref_or_hash },
        { .path = "sequencer/opts", .is_right = is_options, .whole = true },
};

static bool is_led_by_state(size_t state, int dir_fd, const char *name) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r = states[state].is_right ? repository_read(dir_fd, name, SIZE_MAX_READ, &text, &size)
                                       : -EBADMSG;

        if (r < 0 || strlen(text) < size) /* git may read past the zero byte at which holt stops. */
                return r != -ENOENT;
        if (states[state].whole)
                return !states[state].is_right(text);
        for (char *line = text, *end; *line; line = end) {
                end = line + strcspn(line, "\n");
                if (*end)
                        *end++ = '\0';
                if (!states[state].is_right(line))
                        return true;
        }
        return false;
}

/* --- together --- */

bool git_state_in(const char *directory) {
        static const char *const others[] = {
                "", "objects/info/", "rebase-apply/", "rebase-merge/", "sequencer/",
        };

        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (streq(directory, others[i]))
                        return true;
        return str_starts(directory, "refs/");
}

/* Whether a readable file leads git astray, judged by its name and content. */
static bool leads_by(int tree_fd, int dir_fd, const char *name, const char *path,
                     char ret[PATH_MAX]) {
        if (streq(path, "MERGE_RR"))
                return is_led_by_rerere(tree_fd, dir_fd, name, ret);
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (streq(path, states[i].path))
                        return is_led_by_state(i, dir_fd, name);
        return (streq(path, name) || str_starts(path, "refs/")) && is_led_by_ref(ret);
}

bool git_state_leads(int tree_fd, int dir_fd, const char *name, const char *path,
                     char ret[PATH_MAX]) {
        int r;

        ret[0] = '\0';
        r = read_begin(dir_fd, name, ret);
        if (r < 0)
                return r != -ENOENT && state_is_ours(dir_fd, name);
        return leads_by(tree_fd, dir_fd, name, path, ret);
}
