/* SPDX-License-Identifier: Apache-2.0 */
/* Sets one file aside: finds a free name for it, and gives it that name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "guards/guard-internal.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum {
        NAMES_TRIED = 9,
        WORK_ASIDE = 64, /* Units of work for one file that is renamed. */
};

/* Notes an error; the sweep goes on. */
void sweep_note(Sweep *sweep, int r) {
        if (sweep->result == 0)
                sweep->result = r;
}

/* Returns ".lock" in directories of refs: git does not take a name with that end for a ref
 * (git-check-ref-format(1)). Without ".lock", the next command could make a branch with the new
 * name, and git would write through it. */
const char *guard_aside_end(const char *dir) {
        static const char *const of_refs[] = { ".git/refs/", ".git/logs/", "refs/", "logs/" };

        for (size_t i = 0; i < ELEMENTSOF(of_refs); i++)
                if (str_starts(dir, of_refs[i]))
                        return ".lock";
        return "";
}

/* Returns NAME.holt-untrusted, NAME.holt-untrusted.2 and so on. The command may have taken all of
 * these names, so the last one contains a random number that it cannot guess. */
static char *aside_name(const char *dir, const char *name, int attempt) {
        const char *end = guard_aside_end(dir);
        uint64_t random = 0;

        if (attempt == 1)
                return str_format("%s" GUARD_SUFFIX "%s", name, end);
        if (attempt < NAMES_TRIED)
                return str_format("%s" GUARD_SUFFIX ".%d%s", name, attempt, end);
        (void)!syscall(SYS_getrandom, &random, sizeof(random), 0);
        return str_format("%s" GUARD_SUFFIX ".%016llx%s", name, (unsigned long long)random, end);
}

/* Restores the right to enter and change a directory. The command may have removed that right, but
 * the caller owns the directory. chmod does not work on an O_PATH fd, but on its name in /proc. */
int guard_make_usable(int dir_fd) {
        char path[32];
        struct stat st;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
        if (fstat(dir_fd, &st) < 0 || chmod(path, (st.st_mode & 07777) | S_IRWXU) < 0)
                return -errno;
        return 0;
}

void sweep_let_in(int dir_fd) {
        if (faccessat(dir_fd, ".", X_OK, AT_EACCESS) < 0)
                (void)guard_make_usable(dir_fd);
}

static int aside_move_to(Sweep *sweep, int dir_fd, const char *dir, const char *from, char *aside) {
        if (!aside)
                return -ENOMEM;
        if (syscall(SYS_renameat2, dir_fd, from, dir_fd, aside, RENAME_NOREPLACE) < 0)
                return -errno;
        return strlist_take(sweep->moved, str_format("%s%s", dir, aside));
}

/* Tries one name. The old name may be so long that no suffix fits; then the new name is only the
 * suffix. */
static int aside_move(Sweep *sweep, int dir_fd, const char *dir, const char *from, const char *name,
                      int attempt) {
        _cleanup_free_ char *aside = aside_name(dir, name, attempt), *other = NULL;
        int r = aside_move_to(sweep, dir_fd, dir, from, aside);

        if (r != -ENAMETOOLONG)
                return r;
        other = aside_name(dir, "", NAMES_TRIED);
        return aside_move_to(sweep, dir_fd, dir, from, other);
}

/* Takes away all permissions if the disk has no room for another name. Then only root can read the
 * file. */
static void aside_lock(Sweep *sweep, int dir_fd, const char *name) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        char path[32];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        sweep->locked |= fd >= 0 && chmod(path, 0) == 0;
}

void sweep_set_aside(Sweep *sweep, int dir_fd, const char *dir, const char *from,
                     const char *name) {
        int r = -EEXIST;

        (void)repository_works(&sweep->found, WORK_ASIDE);
        for (int i = 1; i <= NAMES_TRIED && (r == -EEXIST || r == -EACCES); i++) {
                r = aside_move(sweep, dir_fd, dir, from, name, i);
                if (r == 0)
                        return;
                if (r == -EACCES && guard_make_usable(dir_fd) < 0)
                        break;
        }
        if (r == -ENOSPC || r == -EDQUOT)
                aside_lock(sweep, dir_fd, from);
        sweep->foreign |= r == -EOVERFLOW;
        sweep_note(sweep, r);
        sweep_note(sweep, strlist_take(&sweep->left, str_format("%s%s", dir, from)));
}
