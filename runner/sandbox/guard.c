/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum { NAMES_TRIED = 9 };

/* NAME.holt-untrusted, NAME.holt-untrusted.2 and so on; the command may have taken all of them, so
 * that the last is one that it can't have guessed. */
static char *aside_name(const char *name, int attempt) {
        uint64_t random = 0;

        if (attempt == 1)
                return str_format("%s" GUARD_SUFFIX, name);
        if (attempt < NAMES_TRIED)
                return str_format("%s" GUARD_SUFFIX ".%d", name, attempt);
        (void)!syscall(SYS_getrandom, &random, sizeof(random), 0);
        return str_format("%s" GUARD_SUFFIX ".%016llx", name, (unsigned long long)random);
}

/* The command may have taken our right to enter or change a directory of its own; as its owner we
 * give it back. An O_PATH fd can't be asked to, its name in /proc can. */
static int make_usable(int dir_fd) {
        char path[32];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
        return chmod(path, 0755) < 0 ? -errno : 0;
}

/* Renames NAME in dir_fd aside; dir is for the report. */
static int set_aside(int dir_fd, const char *dir, const char *name, StrList *moved, Error *reterr) {
        int r = -EEXIST;

        for (int i = 1; i <= NAMES_TRIED && (r == -EEXIST || r == -EACCES); i++) {
                _cleanup_free_ char *aside = aside_name(name, i);

                if (!aside)
                        return error_oom(reterr);
                r = syscall(SYS_renameat2, dir_fd, name, dir_fd, aside, RENAME_NOREPLACE) < 0
                            ? -errno
                            : 0;
                if (r == 0)
                        return strlist_take(moved, str_format("%s%s", dir, aside)) < 0
                                       ? error_oom(reterr)
                                       : 0;
                if (r == -EACCES && make_usable(dir_fd) < 0)
                        break;
        }
        return error_set(reterr, ERROR_SETUP, -r,
                         "cannot set %s%s aside, which the command has made and which the policy "
                         "protects: do not use it",
                         dir, name);
}

/* One step of sweep_one(): the part called name in dir_fd, of which more is to come. Returns 1 with
 * the directory in *ret_fd, 0 when nothing is there, or a negative errno for what is no directory:
 * a file of that name, or a link, may be as good as the directory to whoever reads it. */
static int descend(int dir_fd, const char *name, int *ret_fd) {
        int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (faccessat(fd, ".", X_OK, AT_EACCESS) < 0)
                (void)make_usable(fd);
        *ret_fd = fd;
        return 1;
}

static bool is_there(int dir_fd, const char *name) {
        struct stat st;

        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* A mount holds only inside. Whoever renames what lies below it, the host's git or another holt
 * that sets it aside, takes the mount along, and the command may have had the name since then. */
static bool is_held(int dir_fd, const char *name, const PlanGuard *guard) {
        struct stat st;

        return guard->pinned && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               st.st_dev == guard->device && st.st_ino == guard->inode;
}

/* What is called name in dir_fd, where path has its last part or has something in its way. */
static int sweep_name(int dir_fd, const char *dir, const char *name, const PlanGuard *guard,
                      StrList *moved, Error *reterr) {
        if (!is_there(dir_fd, name) || is_held(dir_fd, name, guard))
                return 0;
        return set_aside(dir_fd, dir, name, moved, reterr);
}

/* Follows the path part by part. What goes aside is the last part, or the first that is a link, a
 * file or a directory that can't be looked into; of a submodule only the last, since git does not
 * follow another way to it. */
static int sweep_parts(int workspace_fd, const PlanGuard *guard, StrList *moved, Error *reterr) {
        _cleanup_close_ int dir_fd = openat(workspace_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *rest = strdup(guard->path), *dir = NULL;
        char *part = rest;

        if (!rest)
                return error_oom(reterr);
        for (;;) {
                size_t length = strcspn(part, "/");
                bool last = part[length] == '\0';
                int fd = FD_NONE, r = 0;

                part[length] = '\0';
                if (!last) {
                        r = descend(dir_fd, part, &fd);
                        if (r == 0 || (r == -ENOTDIR && guard->submodule))
                                return 0;
                }
                if (last || r < 0)
                        break;
                fd_close(dir_fd);
                dir_fd = fd;
                part += length + 1;
        }
        dir = strndup(guard->path, (size_t)(part - rest));
        return dir ? sweep_name(dir_fd, dir, part, guard, moved, reterr) : error_oom(reterr);
}

/* At once where nothing is in the way: there may be thousands of paths, each of thousands of parts.
 */
static int sweep_one(int workspace_fd, const PlanGuard *guard, StrList *moved, Error *reterr) {
        const char *slash = strrchr(guard->path, '/');
        _cleanup_free_ char *dir = strndup(guard->path,
                                           slash ? (size_t)(slash + 1 - guard->path) : 0);
        _cleanup_close_ int dir_fd = FD_NONE;

        if (!dir)
                return error_oom(reterr);
        dir_fd = sys_open_beneath(workspace_fd, slash ? dir : ".", O_PATH | O_DIRECTORY);
        if (dir_fd < 0 &&
            (errno == ENOENT || (guard->submodule && (errno == ENOTDIR || errno == ELOOP))))
                return 0;
        if (dir_fd < 0)
                return sweep_parts(workspace_fd, guard, moved, reterr);
        if (faccessat(dir_fd, ".", X_OK, AT_EACCESS) < 0)
                (void)make_usable(dir_fd);
        return sweep_name(dir_fd, dir, slash ? slash + 1 : guard->path, guard, moved, reterr);
}

/* --- submodules --- */

bool guard_holds(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->guards_count; i++)
                if (plan->guards[i].pinned && path_below(path, plan->guards[i].path))
                        return true;
        return false;
}

static int sweep_links(const LaunchPlan *plan, int workspace_fd, const StrList *links,
                       StrList *moved, Error *reterr) {
        int result = 0;

        for (size_t i = 0; i < links->count; i++) {
                _cleanup_free_ char *path = str_format("%s/.git", links->items[i]);
                const PlanGuard link = { .path = path, .submodule = true };
                int r = path ? 0 : error_oom(result ? NULL : reterr);

                if (path && !guard_holds(plan, path))
                        r = sweep_one(workspace_fd, &link, moved, result ? NULL : reterr);
                if (r < 0 && result == 0)
                        result = r;
        }
        return result;
}

/* git makes no sparse directory with a gitlink in it, and enters one all the same once something is
 * at its path: neither the directory nor what is there may be the command's. */
static bool has_new_tree(int workspace_fd, const StrList *trees, const StrList *before) {
        for (size_t i = 0; i < trees->count; i++)
                if (repository_tree_there(workspace_fd, trees->items[i]) &&
                    !strlist_has(before, trees->items[i]))
                        return true;
        return false;
}

/* The command may have put a repository of its own into the index. */
static int sweep_index(const LaunchPlan *plan, int workspace_fd, const IndexState *before,
                       StrList *moved, Error *reterr) {
        _cleanup_close_ int git_fd = openat(workspace_fd, ".git",
                                            O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_(strlist_clear) StrList links = { 0 };
        _cleanup_(index_state_clear) IndexState now = { 0 };
        int r;

        if (git_fd < 0 || !is_there(git_fd, "index") || repository_unchanged(git_fd, before))
                return 0;
        r = repository_links(git_fd, &links, &now);
        if (r == -ENOMEM)
                return error_oom(reterr);
        if (r == 0 && has_new_tree(workspace_fd, &now.trees, &before->trees))
                r = -EBADMSG;
        return r < 0 ? set_aside(git_fd, ".git/", "index", moved, reterr)
                     : sweep_links(plan, workspace_fd, &links, moved, reterr);
}

int guard_sweep(const LaunchPlan *plan, int workspace_fd, const IndexState *before, StrList *moved,
                Error *reterr) {
        int result = 0;

        for (size_t i = 0; i < plan->guards_count; i++) {
                int r = sweep_one(workspace_fd, &plan->guards[i], moved, result ? NULL : reterr);

                if (r < 0 && result == 0)
                        result = r;
        }
        if (plan_protects_git(plan)) {
                int r = sweep_index(plan, workspace_fd, before, moved, result ? NULL : reterr);

                result = result < 0 ? result : r;
        }
        return result;
}
