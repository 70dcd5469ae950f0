/* SPDX-License-Identifier: Apache-2.0 */
#include "files/path.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/paths.h"
#include "base/sys.h"
#include "files/unfinished.h"

enum {
        LINKS_MAX = 40, /* The kernel's own limit; path_resolution(7). */
        /* Tries for a path with "..", while a process renames directories; openat2(2), EAGAIN. */
        TRIES = 64,
};

static const uint64_t in_root = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
static const uint64_t one_name = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

/* --- errors --- */

static const struct {
        int errnum;
        ErrorKind kind;
        const char *cure;
} failures[] = {
        { ENOENT, ERROR_MISSING, "" },
        { EEXIST, ERROR_EXISTS, "Set replace, or choose another name." },
        { ENOTDIR, ERROR_USAGE, "A part of the path is not a directory." },
        { EISDIR, ERROR_USAGE, "It is a directory, but a file is needed." },
        { ENOTEMPTY, ERROR_USAGE,
          "The directory is not empty. To remove it with its contents, set recursive." },
        { EINVAL, ERROR_USAGE,
          "The path must end in a name, and a directory cannot go into itself." },
        { ENAMETOOLONG, ERROR_USAGE, "A name may have 255 bytes, a path 4095." },
        { ELOOP, ERROR_USAGE,
          "Its symlinks form a loop, or lead into a process (/proc/PID/fd, cwd, root), which is "
          "not allowed." },
        { EOPNOTSUPP, ERROR_USAGE,
          "Only regular files can be read and written: no device, fifo or socket, and nothing in "
          "/proc or /sys." },
        { EXDEV, ERROR_USAGE, "The two paths are on different mounts." },
        { EROFS, ERROR_USAGE,
          "Commands cannot write it, either. Write elsewhere, or let the policy mount it "
          "read-write." },
        { EACCES, ERROR_USAGE,
          "Its permissions refuse the sandbox's own user. If that user owns the file, a command "
          "inside can change them." },
        { EPERM, ERROR_USAGE,
          "The file or its file system does not allow it, not even for commands inside." },
        { EBUSY, ERROR_USAGE,
          "A mount point of the sandbox cannot be replaced, renamed or removed. Files below it can "
          "be changed." },
        { EAGAIN, ERROR_BUSY,
          "A process inside has a lease on it, or keeps moving it. Try again." },
        { ETXTBSY, ERROR_BUSY, "A process executes it. Wait for its end, or write to a new file." },
        { ENOSPC, ERROR_LIMIT,
          "The disk is full, or the sandbox has reached its size limit there. Remove files." },
        { EDQUOT, ERROR_LIMIT, "The disk quota is used up. Remove files." },
        { EFBIG, ERROR_LIMIT,
          "The file exceeds the limit of the file system or of holt's process." },
        { EMLINK, ERROR_LIMIT, "The parent directory cannot hold more directories." },
        { E2BIG, ERROR_LIMIT,
          "It has more than 10000000 entries, or directories nested more than 1024 deep. tar "
          "handles any depth." },
};

static bool files_path_is_hidden(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan_mount_hides(&plan->mounts[i]) && path_below(path, plan->mounts[i].target))
                        return true;
        return false;
}

static bool is_guarded_by(const LaunchPlan *plan, const char *path) {
        const char *inside;

        if (!plan->workspace || !path_below(path, plan->workspace))
                return false;
        inside = path + strlen(plan->workspace);
        inside += *inside == '/';
        for (size_t i = 0; i < plan->guards_count; i++)
                if (path_below(inside, plan->guards[i].path))
                        return true;
        return false;
}

static bool is_guarded(const LaunchPlan *plan, const char *path) {
        bool guarded = is_guarded_by(plan, path);

        for (size_t i = 0; i < plan->others_count; i++)
                guarded |= is_guarded_by(&plan->others[i], path);
        return guarded;
}

/* Returns the cure if the policy is the reason, as far as the text of the path shows; a symlink may
 * lead there too. Otherwise returns NULL. */
static const char *policy_cure(const Files *files, int r, const char *path) {
        static const int refusals[] = { EACCES, EPERM, EBUSY, EROFS, EXDEV };
        _cleanup_free_ char *full = files && files->plan ? path_join(files->cwd, path) : NULL;
        bool refused = false;

        for (size_t i = 0; i < ELEMENTSOF(refusals); i++)
                refused |= r == -refusals[i];
        if (full && (refused || r == -ENOENT || r == -ENOTDIR) &&
            files_path_is_hidden(files->plan, full))
                return "The session's policy hides it (--hide), also from commands.";
        if (full && refused && is_guarded(files->plan, full))
                return "The session's policy protects it (--protect): only the host can make or "
                       "change it.";
        return NULL;
}

bool files_is_policy(const Files *files, int r, const char *path) {
        return policy_cure(files, r, path) != NULL;
}

int files_fail(const Files *files, int r, const char *doing, const char *path, Error *reterr) {
        const char *cure = policy_cure(files, r, path);
        char quoted[1024];

        if (r == -ENOMEM)
                return error_oom(reterr);
        if (r == -ENOENT && path_is_tilde(path))
                cure = PATH_TILDE_CURE;
        path = path[0] ? str_quote(path, quoted, sizeof(quoted)) : "\"\"";
        for (size_t i = 0; i < ELEMENTSOF(failures); i++)
                if (failures[i].errnum == -r) {
                        (void)error_set(reterr, failures[i].kind, -r, "cannot %s %s", doing, path);
                        return error_cure(reterr, r, "%s", cure ? cure : failures[i].cure);
                }
        return error_set(reterr, ERROR_SETUP, -r, "cannot %s %s", doing, path);
}

int files_fail_made(const Files *files, int r, const char *doing, const char *path,
                    bool make_parents, Error *reterr) {
        (void)files_fail(files, r, doing, path, reterr);
        if (r != -ENOENT || make_parents || path[0] == '\0' || !reterr || reterr->cure[0])
                return r;
        return error_cure(reterr, r,
                          "Its directory does not exist. Make it by files.mkdir with make_parents, "
                          "or set make_parents in files.write.");
}

int files_glob_fail(int r, const char *pattern, Error *reterr) {
        char quoted[1024];

        if (r == -ENOMEM)
                return error_oom(reterr);
        (void)error_set(reterr, ERROR_USAGE, -r, "cannot search for %s",
                        str_quote(pattern, quoted, sizeof(quoted)));
        return error_cure(reterr, r,
                          "A pattern must be relative to the directory of the search and without "
                          "\"..\". It may have 1024 bytes and 60 parts.");
}

/* --- paths --- */

int files_new(int root_fd, const char *cwd, Files **ret, Error *reterr) {
        _cleanup_free_ Files *files = calloc(1, sizeof(*files));

        if (!files)
                return error_oom(reterr);
        files->root_fd = root_fd;
        files->notes = (UnfinishedNotes){ FD_NONE, UNFINISHED_INSIDE };
        files->cwd = strdup(cwd);
        if (!files->cwd)
                return error_oom(reterr);
        *ret = TAKE_PTR(files);
        return 0;
}

void files_note_in(Files *files, int dir_fd) {
        files->notes.dir_fd = dir_fd;
}

void files_know_plan(Files *files, const LaunchPlan *plan) {
        files->plan = plan;
}

Files *files_free(Files *files) {
        if (files)
                free(files->cwd);
        free(files);
        return NULL;
}

void files_place_clear(FilesPlace *place) {
        place->dir_fd = fd_close(place->dir_fd);
}

/* The text is never normalised: only the kernel knows the meaning of ".." after a symlink. */
static int files_path_full_path(const Files *files, const char *path, char ret[PATH_MAX]) {
        bool absolute = path[0] == '/';
        int n = snprintf(ret, PATH_MAX, "%s%s%s", absolute ? "" : files->cwd, absolute ? "" : "/",
                         path);

        if (path[0] == '\0')
                return -ENOENT;
        return n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int open_with(int dir_fd, const char *path, int flags, uint64_t resolve) {
        for (int i = 0; i < TRIES; i++) {
                int fd = sys_openat2(dir_fd, path, (uint64_t)(unsigned)(flags | O_CLOEXEC), 0,
                                     resolve);

                if (fd >= 0)
                        return fd;
                if (errno != EAGAIN && errno != EINTR)
                        return -errno;
        }
        return -EAGAIN;
}

int files_open(const Files *files, const char *path, int flags) {
        char full[PATH_MAX];
        int r = files_path_full_path(files, path, full);

        return r < 0 ? r : open_with(files->root_fd, full, flags, in_root);
}

int files_child(int dir_fd, const char *name) {
        int fd = open_with(dir_fd, name, O_PATH | O_NOFOLLOW, one_name | RESOLVE_NO_XDEV);

        return fd == -EXDEV ? -EBUSY : fd;
}

int files_child_across(int dir_fd, const char *name) {
        return open_with(dir_fd, name, O_PATH | O_NOFOLLOW, one_name);
}

/* Splits full without its trailing slashes, and opens the directory. */
static int place_open(const Files *files, char full[PATH_MAX], FilesPlace *ret) {
        _cleanup_close_ int fd = FD_NONE;
        size_t length = strlen(full);
        char *name;

        while (length > 0 && full[length - 1] == '/')
                full[--length] = '\0';
        name = strrchr(full, '/');
        if (!name || !name[1] || streq(name + 1, ".") || streq(name + 1, ".."))
                return -EINVAL;
        if (strlen(name + 1) > NAME_MAX)
                return -ENAMETOOLONG;
        *name = '\0';
        fd = open_with(files->root_fd, full[0] ? full : "/", O_PATH | O_DIRECTORY, in_root);
        *name = '/';
        if (fd < 0)
                return fd;
        (void)strcpy(ret->name, name + 1);
        ret->dir_fd = TAKE_FD(fd);
        return 0;
}

/* Replaces full by the target of the symlink at its end. The result is a path from the root again,
 * so that the kernel resolves each step. */
static int follow_path(char full[PATH_MAX], const char *target) {
        size_t kept = target[0] == '/' ? 0 : (size_t)(strrchr(full, '/') + 1 - full);

        if (kept + strlen(target) >= PATH_MAX)
                return -ENAMETOOLONG;
        (void)strcpy(full + kept, target);
        return 0;
}

/* An fd has no parent that could be trusted, so symlinks at the end are followed here. A process
 * inside that replaces one meanwhile only changes where the result is, within the sandbox's own
 * view. */
int files_place(const Files *files, const char *path, bool follow, FilesPlace *ret) {
        char full[PATH_MAX], target[PATH_MAX];
        int r = files_path_full_path(files, path, full);

        for (int i = 0; r == 0 && i < LINKS_MAX; i++) {
                _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
                ssize_t n = -1;

                r = place_open(files, full, &place);
                if (r < 0)
                        return r;
                if (follow)
                        n = readlinkat(place.dir_fd, place.name, target, sizeof(target) - 1);
                if (n < 0) {
                        *ret = place;
                        place = FILES_PLACE_NONE;
                        return 0;
                }
                /* The text of a magic link is a path of the host. */
                if (files_is_made_up(place.dir_fd))
                        return -ELOOP;
                target[n] = '\0';
                r = follow_path(full, target);
        }
        return r < 0 ? r : -ELOOP;
}

/* Whether a part of the path is "..", which the text cannot resolve. */
static bool files_path_goes_up(const char *path) {
        for (const char *part = path; *part; part += strspn(part, "/")) {
                const size_t length = strcspn(part, "/");

                if (length == 2 && strncmp(part, "..", 2) == 0)
                        return true;
                part += length;
        }
        return false;
}

int files_may_make(const Files *files, const char *path) {
        _cleanup_free_ char *full = files->plan && !files_path_goes_up(path)
                                            ? path_join(files->cwd, path)
                                            : NULL;

        return full && is_guarded(files->plan, full) ? -EROFS : 0;
}

/* Returns the first protected path of a plan that lies below full and, in the same place, below
 * from_fd: the part below full. Borrowed; NULL if there is none. */
static const char *files_path_brought(const LaunchPlan *plan, const char *full, int from_fd) {
        for (size_t i = 0; plan->workspace && i < plan->guards_count; i++) {
                _cleanup_free_ char *path = path_join(plan->workspace, plan->guards[i].path);
                _cleanup_close_ int fd = FD_NONE;
                const char *rest = path && path_below(path, full) ? path + strlen(full) : "";

                rest += *rest == '/';
                if (*rest)
                        fd = sys_open_beneath(from_fd, rest, O_PATH | O_NOFOLLOW);
                if (fd >= 0)
                        return plan->guards[i].path + strlen(plan->guards[i].path) - strlen(rest);
        }
        return NULL;
}

int files_may_bring(const Files *files, const char *path, int from_fd, const char **ret) {
        _cleanup_free_ char *full = files->plan ? path_join(files->cwd, path) : NULL;

        *ret = full ? files_path_brought(files->plan, full, from_fd) : NULL;
        for (size_t i = 0; full && !*ret && i < files->plan->others_count; i++)
                *ret = files_path_brought(&files->plan->others[i], full, from_fd);
        return *ret ? -EROFS : files_may_make(files, path);
}

/* Makes every missing directory on the way to the last part. */
static int make_way(const Files *files, const char *path) {
        char full[PATH_MAX];
        int r = files_path_full_path(files, path, full);

        for (char *slash = r < 0 ? NULL : strchr(full + 1, '/'); slash;
             slash = strchr(slash + 1, '/')) {
                _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
                char part[PATH_MAX];
                _cleanup_close_ int fd = FD_NONE;

                (void)snprintf(part, sizeof(part), "%.*s", (int)(slash - full), full);
                fd = files_open(files, part, O_PATH | O_DIRECTORY);
                if (fd >= 0)
                        continue;
                r = fd == -ENOENT ? place_open(files, part, &place) : fd;
                if (r == 0 && mkdirat(place.dir_fd, place.name, 0755) < 0 && errno != EEXIST)
                        r = -errno;
                if (r < 0)
                        break;
        }
        return r;
}

int files_place_made(const Files *files, const char *path, bool follow, bool make_parents,
                     FilesPlace *ret) {
        int r = files_place(files, path, follow, ret);

        if (r != -ENOENT || !make_parents)
                return r;
        r = make_way(files, path);
        return r < 0 ? r : files_place(files, path, follow, ret);
}

/* --- files --- */

bool files_is_made_up(int fd) {
        static const unsigned long made_up[] = {
                PROC_SUPER_MAGIC, SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
                SECURITYFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,      BPF_FS_MAGIC,
        };
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return true;
        for (size_t i = 0; i < ELEMENTSOF(made_up); i++)
                if ((unsigned long)fs.f_type == made_up[i])
                        return true;
        return false;
}

int files_reopen(int path_fd, int flags) {
        char path[32];
        struct stat st;
        int fd;

        if (fstat(path_fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (!S_ISREG(st.st_mode) || files_is_made_up(path_fd))
                return -EOPNOTSUPP;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
        fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

void files_stat_fill(const struct stat *st, FileStat *ret) {
        static const struct {
                mode_t format;
                FileType type;
        } types[] = {
                { S_IFREG, FILE_REGULAR },
                { S_IFDIR, FILE_DIRECTORY },
                { S_IFLNK, FILE_LINK },
        };

        *ret = (FileStat){ .type = FILE_OTHER, .mode = st->st_mode & 07777 };
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if ((st->st_mode & S_IFMT) == types[i].format)
                        ret->type = types[i].type;
        ret->size = (uint64_t)st->st_size;
        if (st->st_mtim.tv_sec >= 0)
                ret->modified_ms = (uint64_t)st->st_mtim.tv_sec * 1000 +
                                   (uint64_t)st->st_mtim.tv_nsec / 1000000;
}

int files_stat_fd(int path_fd, FileStat *ret) {
        char target[PATH_MAX];
        struct stat st;
        ssize_t n;

        if (fstat(path_fd, &st) < 0)
                return -errno;
        files_stat_fill(&st, ret);
        if (ret->type != FILE_LINK)
                return 0;
        n = readlinkat(path_fd, "", target, sizeof(target));
        /* A symlink of /proc such as "self" leads nowhere for a reader without a process there. */
        if (n < 0)
                return 0;
        ret->target = strndup(target, (size_t)n);
        return ret->target ? 0 : -ENOMEM;
}
