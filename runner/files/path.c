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
        LINKS_MAX = 40, /* as the kernel has it; path_resolution(7) */
        TRIES = 64,     /* of a path with "..", while somebody renames; openat2(2), EAGAIN */
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
        { EEXIST, ERROR_EXISTS, "Ask for it to be replaced, or take another name." },
        { ENOTDIR, ERROR_USAGE, "A part of the path that has to be a directory is none." },
        { EISDIR, ERROR_USAGE, "It is a directory; this works on files." },
        { ENOTEMPTY, ERROR_USAGE,
          "The directory is not empty; to remove all of it takes recursive." },
        { EINVAL, ERROR_USAGE, "The path has to end in a name, and nothing can go into itself." },
        { ENAMETOOLONG, ERROR_USAGE, "A name has 255 bytes at most, a path 4095." },
        { ELOOP, ERROR_USAGE,
          "Links lead round in a circle, or into a process (/proc/PID/fd, cwd, root), where none "
          "is "
          "followed." },
        { EOPNOTSUPP, ERROR_USAGE,
          "Only regular files are read and written: no device, fifo or socket, and nothing in "
          "/proc "
          "or /sys." },
        { EXDEV, ERROR_USAGE, "Mounts lie between the two." },
        { EROFS, ERROR_USAGE,
          "It is read-only inside, too. Write elsewhere, or mount it read-write in the policy." },
        { EACCES, ERROR_USAGE,
          "Its permissions refuse it to the sandbox's own user; a command inside can change them "
          "where it owns the file." },
        { EPERM, ERROR_USAGE, "It is not allowed on that file or file system, inside neither." },
        { EBUSY, ERROR_USAGE,
          "A mount of the sandbox is there, and it stays. What is below it can be changed." },
        { EAGAIN, ERROR_BUSY, "A process inside holds it or moves it all the time. Try again." },
        { ETXTBSY, ERROR_BUSY, "It is being executed." },
        { ENOSPC, ERROR_LIMIT, "The disk is full, or the size that the sandbox has there." },
        { EDQUOT, ERROR_LIMIT, "The disk quota is used up." },
        { EFBIG, ERROR_LIMIT,
          "The file system, or a limit of holt's process, has no room for it." },
        { EMLINK, ERROR_LIMIT, "The directory can't hold more directories." },
        { E2BIG, ERROR_LIMIT,
          "It has more than 10000000 entries, or directories that are nested more than 1024 deep. "
          "tar takes any depth along." },
};

static bool files_path_is_hidden(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan->mounts[i].kind == PLAN_HIDE && path_below(path, plan->mounts[i].target))
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
                if (plan->guards[i].pinned && path_below(inside, plan->guards[i].path))
                        return true;
        return false;
}

static bool is_guarded(const LaunchPlan *plan, const char *path) {
        bool guarded = is_guarded_by(plan, path);

        for (size_t i = 0; i < plan->others_count; i++)
                guarded |= is_guarded_by(&plan->others[i], path);
        return guarded;
}

/* Where the policy is the reason, as far as the path's own text tells: a link may lead there, too.
 * NULL where it is not. */
static const char *policy_cure(const Files *files, int r, const char *path) {
        static const int refusals[] = { EACCES, EPERM, EBUSY, EROFS, EXDEV };
        _cleanup_free_ char *full = files && files->plan ? path_join(files->cwd, path) : NULL;
        bool refused = false;

        for (size_t i = 0; i < ELEMENTSOF(refusals); i++)
                refused |= r == -refusals[i];
        if (full && (refused || r == -ENOENT || r == -ENOTDIR) &&
            files_path_is_hidden(files->plan, full))
                return "The session's policy hides it (--hide), from commands inside, too.";
        if (full && refused && is_guarded(files->plan, full))
                return "The session's policy protects it (--protect): it can be read, and changed "
                       "on the host alone.";
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
                          "Its directory is not there: files.mkdir with make_parents makes it, as "
                          "files.write with make_parents does.");
}

int files_glob_fail(int r, const char *pattern, Error *reterr) {
        char quoted[1024];

        if (r == -ENOMEM)
                return error_oom(reterr);
        (void)error_set(reterr, ERROR_USAGE, -r, "cannot search for %s",
                        str_quote(pattern, quoted, sizeof(quoted)));
        return error_cure(reterr, r,
                          "A pattern is relative to where the search begins, has no \"..\", and at "
                          "most 1024 bytes and 60 parts.");
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

/* Never normalised as text: what ".." after a link means is for the kernel to say. */
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

/* Splits full, of which slashes at the end go, and opens the directory. */
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

/* Where a link with that target at the end of full leads: again a path from the root, so that each
 * step is the kernel's. */
static int follow_path(char full[PATH_MAX], const char *target) {
        size_t kept = target[0] == '/' ? 0 : (size_t)(strrchr(full, '/') + 1 - full);

        if (kept + strlen(target) >= PATH_MAX)
                return -ENAMETOOLONG;
        (void)strcpy(full + kept, target);
        return 0;
}

/* There is no parent of an fd that could be trusted, so links at the end are followed by hand. Who
 * exchanges one meanwhile makes the result land elsewhere, in the sandbox's own view. */
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
                /* The text of a magic link is a path of the host's. */
                if (files_is_made_up(place.dir_fd))
                        return -ELOOP;
                target[n] = '\0';
                r = follow_path(full, target);
        }
        return r < 0 ? r : -ELOOP;
}

/* Makes every directory on the way to the last part. */
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
        if (n < 0) /* one of /proc, as "self", which leads nowhere for who has no process there */
                return 0;
        ret->target = strndup(target, (size_t)n);
        return ret->target ? 0 : -ENOMEM;
}
