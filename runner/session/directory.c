/* SPDX-License-Identifier: Apache-2.0 */
#include "session/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/nearest.h"
#include "base/paths.h"
#include "base/private.h"
#include "base/strings.h"
#include "base/sys.h"
#include "files/unfinished.h"
#include "session/live.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/* Directories that every session has from the start. */
static const char *const parts[] = { "root", "workspace", "files" };

/* --- names --- */

static bool is_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool session_name_fits(const char *name) {
        if (!is_word(name[0]) || strlen(name) > SESSION_NAME_MAX)
                return false;
        for (const char *c = name; *c; c++)
                if (!is_word(*c) && !strchr("._-", *c))
                        return false;
        return true;
}

int session_name_check(const char *name, Error *reterr) {
        char quoted[160];
        int r;

        static_assert(SESSION_NAME_MAX == 64, "SESSION_NAME_CURE says it");
        if (session_name_fits(name))
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "\"%s\" is not a valid session name",
                      str_quote(name, quoted, sizeof(quoted)));
        return error_cure(reterr, r, "%s", SESSION_NAME_CURE);
}

static int find_base(char ret[PATH_MAX], Error *reterr) {
        const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
        int n, r;

        /* A relative path must be ignored (XDG Base Directory Specification). */
        if (data && data[0] == '/')
                n = snprintf(ret, PATH_MAX, "%s/holt/sessions", data);
        else if (home && home[0] == '/')
                n = snprintf(ret, PATH_MAX, "%s/.local/share/holt/sessions", home);
        else
                n = -1;
        if (n >= 0 && n < PATH_MAX - SESSION_NAME_MAX - 32)
                return 0;
        r = error_set(reterr, ERROR_SETUP, n < 0 ? 0 : ENAMETOOLONG,
                      "cannot tell where to store sessions: HOME and XDG_DATA_HOME are unset, "
                      "relative or too long");
        return error_cure(
                reterr, r,
                "Set HOME or XDG_DATA_HOME to the absolute path of a directory of yours.");
}

/* Creates path and its parents. Existing directories keep their modes. */
static int session_make_directories(char *path) {
        for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(path, 0700) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Opens the directory of all sessions, and checks it and its parents. No symlink is followed to it
 * or to "holt" above it, because both belong to holt. Returns -ENOENT without an error if it does
 * not exist. */
static int open_base(char ret[PATH_MAX], int *ret_fd, Error *reterr) {
        static const char last[] = "/sessions";
        const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        _cleanup_close_ int above_fd = FD_NONE, fd = FD_NONE;
        char above[PATH_MAX];
        int r = find_base(ret, reterr);

        if (r < 0)
                return r;
        (void)memcpy(above, ret, strlen(ret) + 1);
        above[strlen(ret) - strlen(last)] = '\0';
        r = private_check_above(above, reterr);
        if (r == 0)
                r = private_check(AT_FDCWD, above, above, reterr);
        if (r < 0)
                return r;
        above_fd = open(above, flags);
        if (above_fd >= 0)
                r = private_check(above_fd, "", above, reterr);
        if (above_fd >= 0 && r == 0)
                r = private_check(above_fd, last + 1, ret, reterr);
        if (r < 0)
                return r;
        if (above_fd >= 0)
                fd = openat(above_fd, last + 1, flags);
        if (fd < 0)
                return errno == ENOENT
                               ? -ENOENT
                               : error_set(reterr, ERROR_SETUP, errno, "cannot open %s", ret);
        r = private_check(fd, "", ret, reterr);
        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

static int base_make(char ret[PATH_MAX], int *ret_fd, Error *reterr) {
        int r = find_base(ret, reterr);

        /* Nothing is created below a directory in which another user could replace it. */
        if (r == 0)
                r = private_check_above(ret, reterr);
        if (r < 0)
                return r;
        r = session_make_directories(ret);
        if (r == 0)
                return open_base(ret, ret_fd, reterr);
        r = error_set(reterr, ERROR_SETUP, -r, "cannot make the directory %s", ret);
        return error_cure(reterr, r,
                          "holt stores sessions there. It must be a directory of yours; to use "
                          "another one, set XDG_DATA_HOME.");
}

int session_base(char ret[PATH_MAX], Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;

        return base_make(ret, &fd, reterr);
}

static UnfinishedNotes base_notes(int base_fd) {
        return (UnfinishedNotes){ base_fd, UNFINISHED_SESSION };
}

/* Removes sessions whose creation or removal was killed. */
static void base_sweep(int base_fd) {
        const UnfinishedNotes notes = base_notes(base_fd);

        unfinished_sweep(&notes, NULL, NULL, NULL);
}

/* --- one session --- */

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(const char *base, StrList *ret, Error *reterr) {
        DIR *dir = opendir(base);
        struct dirent *entry;
        int r = 0;

        if (!dir && errno == ENOENT)
                return 0;
        if (!dir)
                return error_set(reterr, ERROR_SETUP, errno, "cannot read %s", base);
        while (r == 0 && (entry = readdir(dir)))
                if (session_name_check(entry->d_name, NULL) == 0)
                        r = strlist_add(ret, entry->d_name);
        (void)closedir(dir);
        if (ret->count > 1)
                qsort(ret->items, ret->count, sizeof(*ret->items), compare_names);
        return r < 0 ? error_oom(reterr) : 0;
}

const char session_none_cure[] = "holt ls lists the sessions.";

static int refuse_missing(const char *base, const char *name, Error *reterr) {
        _cleanup_(strlist_clear) StrList names = { 0 };
        Nearest nearest = { .word = name };
        int r = error_set(reterr, ERROR_MISSING, 0, "session \"%s\" does not exist", name);

        (void)read_names(base, &names, NULL);
        for (size_t i = 0; i < names.count; i++)
                nearest_try(&nearest, names.items[i]);
        if (nearest.best)
                (void)error_cure(reterr, r, "Did you mean \"%s\"? holt ls lists the sessions.",
                                 nearest.best);
        else
                (void)error_cure(reterr, r, "%s", session_none_cure);
        return -ENOENT;
}

int session_open(const char *name, int *ret_fd, char ret_path[PATH_MAX], Error *reterr) {
        char base[PATH_MAX], path[PATH_MAX + SESSION_NAME_MAX + 2];
        _cleanup_close_ int base_fd = FD_NONE, fd = FD_NONE;
        int r = session_name_check(name, reterr);

        if (r < 0)
                return r;
        r = open_base(base, &base_fd, reterr);
        if (r == -ENOENT)
                return refuse_missing(base, name, reterr);
        if (r < 0)
                return r;
        (void)snprintf(path, sizeof(path), "%s/%s", base, name);
        fd = openat(base_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
                return refuse_missing(base, name, reterr);
        if (fd < 0) {
                r = error_set(reterr, ERROR_SETUP, errno, "cannot open %s", path);
                return error_cure(reterr, r,
                                  "A session belongs to the user who created it. Run holt as that "
                                  "user, or set XDG_DATA_HOME to another directory.");
        }
        r = private_check(fd, "", path, reterr);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        if (ret_path)
                (void)memcpy(ret_path, path,
                             strlen(path) + 1); /* find_base() has left room for it. */
        return 0;
}

int session_path(int dir_fd, char ret[PATH_MAX], Error *reterr) {
        const int r = path_of_fd(dir_fd, ret);

        return r < 0 ? error_set(reterr, ERROR_SETUP, -r,
                                 "cannot find the path of the session's directory")
                     : 0;
}

static int directory_refuse_existing(const char *name, Error *reterr) {
        (void)error_set(reterr, ERROR_EXISTS, 0, "session \"%s\" already exists", name);
        return error_cure(reterr, -EEXIST,
                          "Use it: holt exec %s -- COMMAND\nIts mounts and limits are fixed; for "
                          "other ones, choose another name.\nholt rm %s removes it, with its "
                          "files and keys.",
                          name, name);
}

static int make_parts(const SessionMaking *making, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        int r = mkdirat(making->base_fd, making->unfinished.name, 0700);

        if (r == 0)
                fd = openat(making->base_fd, making->unfinished.name,
                            O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make %s", making->path);
        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                if (mkdirat(fd, parts[i], 0755) < 0)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot make %s/%s",
                                         making->path, parts[i]);
        return 0;
}

/* Refuses a session beyond the limit, because each one costs disk space and slows every list down.
 * The limit is approximate: two sessions created at once may both become the last. */
static int check_count(const char *base, Error *reterr) {
        DIR *dir = opendir(base);
        unsigned count = 0;

        for (const struct dirent *entry; dir && (entry = readdir(dir));)
                count += entry->d_name[0] != '.';
        if (dir)
                (void)closedir(dir);
        if (count < SESSIONS_MAX)
                return 0;
        (void)error_set(reterr, ERROR_LIMIT, 0,
                        "%u sessions exist already, the most that one user can have", count);
        return error_cure(reterr, -ENOSPC, "Remove one: holt rm NAME. holt ls lists them.");
}

static int session_check_new(const char *base, int base_fd, const char *name, Error *reterr) {
        if (faccessat(base_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return directory_refuse_existing(name, reterr);
        return check_count(base, reterr);
}

int session_prepare(const char *name, SessionMaking *ret, Error *reterr) {
        SessionMaking making = SESSION_MAKING_NONE;
        UnfinishedNotes notes;
        char base[PATH_MAX];
        int r = session_name_check(name, reterr);

        if (r == 0)
                r = base_make(base, &making.base_fd, reterr);
        if (r < 0)
                return r;
        notes = base_notes(making.base_fd);
        base_sweep(making.base_fd);
        r = session_check_new(base, making.base_fd, name, reterr);
        if (r == 0) {
                unfinished_begin(&notes, FD_NONE, NULL, &making.unfinished);
                (void)snprintf(making.path, sizeof(making.path), "%.*s/%s",
                               PATH_MAX - UNFINISHED_NAME_SIZE - 1, base, making.unfinished.name);
                r = make_parts(&making, reterr);
        }
        if (r < 0)
                session_discard(&making);
        else
                *ret = making;
        return r;
}

int session_publish(SessionMaking *making, const char *name, Error *reterr) {
        if (syscall(SYS_renameat2, making->base_fd, making->unfinished.name, making->base_fd, name,
                    RENAME_NOREPLACE) < 0)
                return errno == EEXIST
                               ? directory_refuse_existing(name, reterr)
                               : error_set(reterr, ERROR_SETUP, errno, "cannot make %.*s/%s",
                                           (int)(strrchr(making->path, '/') - making->path),
                                           making->path, name);
        unfinished_end(&making->unfinished);
        making->base_fd = fd_close(making->base_fd);
        return 0;
}

/* --- removing --- */

/* An entry that cannot be removed now keeps its note for the next sweep. */
static int session_remove_unfinished(int base_fd, Unfinished *unfinished) {
        int r = files_remove_tree(base_fd, unfinished->name);

        if (r == 0)
                unfinished_end(unfinished);
        else
                unfinished_leave(unfinished);
        return r;
}

void session_discard(SessionMaking *making) {
        if (making->unfinished.name[0])
                (void)session_remove_unfinished(making->base_fd, &making->unfinished);
        making->base_fd = fd_close(making->base_fd);
}

static int directory_refuse_gone(const char *base, const char *name, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;

        if (session_open(name, &fd, NULL, NULL) < 0)
                return refuse_missing(base, name, reterr);
        (void)error_set(reterr, ERROR_MISSING, 0, "session \"%s\" was replaced meanwhile", name);
        return error_cure(reterr, -ENOENT, "%s", session_none_cure);
}

/* dir_fd keeps the inode open, so no other file can get its number meanwhile. */
static bool session_is_named(int dir_fd, int base_fd, const char *name) {
        struct stat st, named;

        return fstat(dir_fd, &st) == 0 &&
               fstatat(base_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
               st.st_dev == named.st_dev && st.st_ino == named.st_ino;
}

/* Renames the session first. So its name is free at once, even if the removal is interrupted. */
static int session_remove_named(const char *base, int base_fd, const char *name, Error *reterr) {
        const UnfinishedNotes notes = base_notes(base_fd);
        char path[PATH_MAX + UNFINISHED_NAME_SIZE];
        Unfinished unfinished;
        int r;

        unfinished_begin(&notes, FD_NONE, NULL, &unfinished);
        (void)snprintf(path, sizeof(path), "%s/%s", base, unfinished.name);
        if (renameat(base_fd, name, base_fd, unfinished.name) < 0) {
                r = error_set(reterr, ERROR_SETUP, errno, "cannot remove %s/%s", base, name);
                unfinished_end(&unfinished);
                return r;
        }
        r = session_remove_unfinished(base_fd, &unfinished);
        return r < 0 ? files_fail(NULL, r, "remove", path, reterr) : 0;
}

/* A session is renamed only under its lock. */
int session_remove(const char *name, int dir_fd, Error *reterr) {
        char base[PATH_MAX];
        _cleanup_close_ int lock_fd = FD_NONE, base_fd = FD_NONE;
        int r = base_make(base, &base_fd, reterr);

        if (r == 0)
                r = session_lock(dir_fd, &lock_fd, reterr);
        if (r < 0)
                return r == -ENOENT ? directory_refuse_gone(base, name, reterr) : r;
        if (!session_is_named(dir_fd, base_fd, name))
                return directory_refuse_gone(base, name, reterr);
        base_sweep(base_fd);
        return session_remove_named(base, base_fd, name, reterr);
}

/* --- all of them --- */

int session_each(int (*fn)(void *data, const char *name, int dir_fd), void *data, Error *reterr) {
        _cleanup_(strlist_clear) StrList names = { 0 };
        _cleanup_close_ int base_fd = FD_NONE;
        char base[PATH_MAX];
        int r = open_base(base, &base_fd, reterr);

        if (r == -ENOENT)
                return 0;
        if (r == 0)
                base_sweep(base_fd);
        if (r == 0)
                r = read_names(base, &names, reterr);
        for (size_t i = 0; r == 0 && i < names.count; i++) {
                _cleanup_close_ int fd = FD_NONE;

                if (session_open(names.items[i], &fd, NULL, NULL) == 0)
                        r = fn(data, names.items[i], fd);
        }
        return r;
}
