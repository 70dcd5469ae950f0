/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "files/copy.h"
#include "files/files.h"
#include "files/unfinished.h"
#include "files/walk.h"

/* --- remove --- */

enum { REMOVE_DEPTH_MAX = 64 };

typedef struct Removal {
        uint64_t left; /* Entries that may still be visited. */
        int top_fd;    /* Borrowed; the directory to remove. */
        unsigned depth;
} Removal;

static int remove_name(void *data, int dir_fd, const char *name, unsigned char type);

/* A command may have removed the permission to read or change its own directory. The keeper has the
 * same uid, so it can restore that. An O_PATH fd does not allow fchmod(2), but its name in /proc
 * does. */
static void make_usable(int dir_fd) {
        char path[32];

        if (faccessat(dir_fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) == 0)
                return;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
        (void)chmod(path, 0700);
}

/* Moves a directory that is nested too deeply up to the top, where the next pass finds it. So 64
 * levels of recursion suffice for a tree of any depth. */
static int bring_up(Removal *removal, int dir_fd, const char *name) {
        char above[UNFINISHED_NAME_SIZE];

        unfinished_name(above);
        return renameat(dir_fd, name, removal->top_fd, above) < 0 ? -errno : 0;
}

/* A process that keeps adding entries runs into the limit of entries. */
static int remove_dir(Removal *removal, int dir_fd, const char *name, int fd) {
        int r = 0;

        while (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0) {
                uint64_t before = removal->left;

                if (errno != ENOTEMPTY && errno != EEXIST)
                        return errno == ENOENT ? 0 : -errno;
                if (removal->depth >= REMOVE_DEPTH_MAX)
                        return bring_up(removal, dir_fd, name);
                if (removal->depth == 0)
                        removal->top_fd = fd;
                make_usable(fd);
                removal->depth++;
                r = walk_names(fd, removal->depth, &removal->left, remove_name, removal);
                removal->depth--;
                /* The directory is not empty but has no entry, so another one has its name by
                 * now. */
                if (r == 0 && before == removal->left)
                        return -EAGAIN;
        }
        return r;
}

static int remove_opened(Removal *removal, int dir_fd, const char *name, int fd) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return remove_dir(removal, dir_fd, name, fd);
        return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int remove_name(void *data, int dir_fd, const char *name, unsigned char type) {
        _cleanup_close_ int fd = files_child(dir_fd, name);

        (void)type;
        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        return remove_opened(data, dir_fd, name, fd);
}

int files_remove_tree(int dir_fd, const char *name) {
        Removal removal = { .left = WALK_ENTRIES_MAX, .top_fd = FD_NONE };

        return remove_name(&removal, dir_fd, name, DT_UNKNOWN);
}

int files_remove_opened(int dir_fd, const char *name, int fd) {
        Removal removal = { .left = WALK_ENTRIES_MAX, .top_fd = FD_NONE };

        return remove_opened(&removal, dir_fd, name, fd);
}

static int remove_place(const FilesPlace *place, bool recursive) {
        _cleanup_close_ int fd = files_child(place->dir_fd, place->name);
        struct stat st;

        if (fd < 0)
                return fd;
        if (recursive)
                return files_remove_tree(place->dir_fd, place->name);
        if (fstat(fd, &st) < 0)
                return -errno;
        return unlinkat(place->dir_fd, place->name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0
                       ? -errno
                       : 0;
}

int files_remove(Files *files, const char *path, bool recursive, Error *reterr) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        int r = files_place(files, path, false, &place);

        if (r == 0)
                r = remove_place(&place, recursive);
        return r < 0 ? files_fail(files, r, "remove", path, reterr) : 0;
}

/* --- copy --- */

typedef struct Copy {
        uint64_t left;     /* Entries that may still be visited. */
        uint64_t left_out; /* Files that are neither regular, directory nor symlink. */
        struct stat made;  /* The new directory, which may be inside the source. */
        unsigned depth;
        int to_fd;                    /* Borrowed; the directory being filled. */
        const Unfinished *unfinished; /* Borrowed; the note of the whole copy. */
        char at[PATH_MAX];            /* Entry that failed, below the source. */
} Copy;

#define COPY_NONE ((Copy){ .left = WALK_ENTRIES_MAX, .to_fd = FD_NONE })

static int copy_entry(Copy *copy, int from_fd, int to_dir_fd, const char *name);

static int copy_stamps(int fd, const struct stat *st) {
        const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };

        return fchmod(fd, st->st_mode & 0777) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

static int tree_copy_file(Copy *copy, int from_fd, const struct stat *st, int to_dir_fd,
                          const char *name) {
        _cleanup_close_ int source_fd = files_reopen(from_fd, O_RDONLY), fd = FD_NONE;
        uint64_t length;
        int r;

        if (source_fd == -EOPNOTSUPP) {
                copy->left_out++;
                return 0;
        }
        if (source_fd < 0)
                return source_fd;
        fd = openat(to_dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if (copy->depth == 0)
                unfinished_made(copy->unfinished, fd);
        r = files_copy_contents(source_fd, fd, &length);
        return r < 0 ? r : copy_stamps(fd, st);
}

/* Not inlined: each frame of a recursion that is 1024 deep would contain its buffer. */
__attribute__((noinline)) static int copy_link(int from_fd, int to_dir_fd, const char *name) {
        char target[PATH_MAX];
        ssize_t n = readlinkat(from_fd, "", target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = '\0';
        return symlinkat(target, to_dir_fd, name) < 0 ? -errno : 0;
}

/* Puts name in front of `at`: called on the way up from the entry that failed. */
static int copy_failed(Copy *copy, const char *name, int r) {
        const size_t length = strlen(name), rest = strlen(copy->at);

        if (length + 1 + rest >= sizeof(copy->at))
                return r;
        memmove(copy->at + length + (rest > 0), copy->at, rest + 1);
        memcpy(copy->at, name, length);
        if (rest > 0)
                copy->at[length] = '/';
        return r;
}

static int copy_name(void *data, int dir_fd, const char *name, unsigned char type) {
        Copy *copy = data;
        _cleanup_close_ int fd = files_child_across(dir_fd, name);
        int r = fd == -ENOENT ? 0 : fd;

        (void)type;
        if (fd >= 0)
                r = copy_entry(copy, fd, copy->to_fd, name);
        return r < 0 ? copy_failed(copy, name, r) : 0;
}

static int copy_dir(Copy *copy, int from_fd, const struct stat *st, int to_dir_fd,
                    const char *name) {
        _cleanup_close_ int fd = FD_NONE;
        int r, above = copy->to_fd;

        if (copy->depth >= FILES_DEPTH_MAX)
                return -E2BIG;
        if (mkdirat(to_dir_fd, name, 0700) < 0)
                return -errno;
        fd = sys_open_beneath(to_dir_fd, name, O_RDONLY | O_DIRECTORY);
        if (fd < 0 || (copy->depth == 0 && fstat(fd, &copy->made) < 0))
                return -errno;
        if (copy->depth == 0)
                unfinished_made(copy->unfinished, fd);
        copy->to_fd = fd;
        copy->depth++;
        r = walk_names(from_fd, copy->depth, &copy->left, copy_name, copy);
        copy->depth--;
        copy->to_fd = above;
        return r < 0 ? r : copy_stamps(fd, st);
}

static int copy_entry(Copy *copy, int from_fd, int to_dir_fd, const char *name) {
        struct stat st;

        if (fstat(from_fd, &st) < 0)
                return -errno;
        if (copy->depth > 0 && st.st_dev == copy->made.st_dev && st.st_ino == copy->made.st_ino)
                return 0;
        if (S_ISREG(st.st_mode))
                return tree_copy_file(copy, from_fd, &st, to_dir_fd, name);
        if (S_ISLNK(st.st_mode))
                return copy_link(from_fd, to_dir_fd, name);
        if (S_ISDIR(st.st_mode) && !files_is_made_up(from_fd))
                return copy_dir(copy, from_fd, &st, to_dir_fd, name);
        copy->left_out++;
        return 0;
}

/* Returns 0 for a file, or for a directory if `recursive` is set. */
static int check_source(int from_fd, bool recursive) {
        struct stat st;

        if (fstat(from_fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return recursive ? 0 : -EISDIR;
        return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? 0 : -EOPNOTSUPP;
}

/* Verifies that the place is free or may be replaced. */
static int check_place(const FilesPlace *place, bool replace) {
        _cleanup_close_ int fd = files_child(place->dir_fd, place->name);

        if (fd == -ENOENT)
                return 0;
        if (fd < 0)
                return fd;
        return replace ? 0 : -EEXIST;
}

static void undo_copy(const FilesPlace *made, Unfinished *unfinished) {
        const atomic_bool *stop = walk_until(NULL);

        if (files_remove_tree(made->dir_fd, made->name) == 0)
                unfinished_end(unfinished);
        else
                unfinished_leave(unfinished);
        (void)walk_until(stop);
}

/* Copies under a temporary name first, so that the copy appears as a whole or not at all. whole:
 * nothing may be left out. */
static int copy_to(const Files *files, Copy *copy, int from_fd, const FilesPlace *to, bool replace,
                   bool whole) {
        FilesPlace made = { .dir_fd = to->dir_fd };
        Unfinished unfinished;
        int r;

        unfinished_begin(&files->notes, to->dir_fd, NULL, &unfinished);
        (void)strcpy(made.name, unfinished.name);
        copy->unfinished = &unfinished;
        r = copy_entry(copy, from_fd, to->dir_fd, made.name);
        copy->unfinished = NULL;
        if (r == 0 && whole && copy->left_out > 0)
                r = -EOPNOTSUPP;
        if (r == 0)
                r = files_rename(&made, to, replace);
        if (r < 0) {
                undo_copy(&made, &unfinished);
                return r;
        }
        unfinished_end(&unfinished);
        return 0;
}

/* Makes the error if a file must not be made at `to`, or in the place that it gets below `to`. */
static int files_fail_to(const Files *files, int r, const char *doing, const char *to,
                         const char *brought, Error *reterr) {
        _cleanup_free_ char *entry = brought ? str_format("%s/%s", to, brought) : NULL;

        return files_fail(files, r, doing, entry ? entry : to, reterr);
}

static int fail_copy(const Files *files, int r, const char *from, const char *to, const char *at,
                     Error *reterr) {
        _cleanup_free_ char *entry = at[0] ? str_format("%s/%s", from, at) : NULL;

        return entry ? files_fail(files, r, "copy", entry, reterr)
                     : files_fail(files, r, "copy to", to, reterr);
}

int files_copy(Files *files, const char *from, const char *to, bool recursive, bool replace,
               uint64_t *ret_left_out, Error *reterr) {
        _cleanup_close_ int from_fd = files_open(files, from, O_PATH | O_NOFOLLOW);
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        Copy copy = COPY_NONE;
        const char *brought;
        int r = from_fd < 0 ? from_fd : check_source(from_fd, recursive);

        if (r < 0) {
                (void)files_fail(files, r, "copy", from, reterr);
                return r != -EISDIR ? r
                                    : error_cure(reterr, r,
                                                 "It is a directory. To copy it with its contents, "
                                                 "set recursive.");
        }
        r = files_may_bring(files, to, from_fd, &brought);
        if (r < 0)
                return files_fail_to(files, r, "copy to", to, brought, reterr);
        r = files_place(files, to, false, &place);
        if (r == 0)
                r = check_place(&place, replace);
        if (r == 0)
                r = copy_to(files, &copy, from_fd, &place, replace, false);
        if (r < 0)
                return fail_copy(files, r, from, to, copy.at, reterr);
        *ret_left_out = copy.left_out;
        return 0;
}

/* --- move --- */

/* Moves between mounts. A copy must be complete, so one failure ends the whole copy. In the end
 * only the removal of the copied source may fail. */
static int move_across(const Files *files, const FilesPlace *from, int from_fd,
                       const FilesPlace *to, bool replace) {
        Copy copy = COPY_NONE;
        int r = check_source(from_fd, true);

        if (r == 0)
                r = copy_to(files, &copy, from_fd, to, replace, true);
        return r < 0 ? r : files_remove_tree(from->dir_fd, from->name);
}

static int move_place(const Files *files, const FilesPlace *from, const FilesPlace *to,
                      bool replace) {
        _cleanup_close_ int from_fd = files_child(from->dir_fd, from->name);
        int r = from_fd < 0 ? from_fd : check_place(to, replace);

        if (r == 0)
                r = files_rename(from, to, replace);
        return r == -EXDEV ? move_across(files, from, from_fd, to, replace) : r;
}

int files_move(Files *files, const char *from, const char *to, bool replace, Error *reterr) {
        _cleanup_(files_place_clear) FilesPlace source = FILES_PLACE_NONE, place = FILES_PLACE_NONE;
        _cleanup_close_ int from_fd = files_open(files, from, O_PATH | O_NOFOLLOW);
        const char *brought = NULL;
        int r = files_place(files, from, false, &source);

        if (r < 0)
                return files_fail(files, r, "move", from, reterr);
        r = from_fd < 0 ? 0 : files_may_bring(files, to, from_fd, &brought);
        if (r == 0)
                r = files_place(files, to, false, &place);
        if (r < 0)
                return files_fail_to(files, r, "move to", to, brought, reterr);
        r = move_place(files, &source, &place, replace);
        if (r == 0)
                return 0;
        return !files_is_policy(files, r, from) && files_is_policy(files, r, to)
                       ? files_fail(files, r, "move to", to, reterr)
                       : files_fail(files, r, "move", from, reterr);
}
