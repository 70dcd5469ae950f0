/* SPDX-License-Identifier: Apache-2.0 */
#include "base/private.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/strings.h"

enum { WAY_LINKS_MAX = 40 }; /* the limit of the kernel's own look-up */

static int private_refuse_owner(const char *path, uid_t owner, Error *reterr) {
        (void)error_set(reterr, ERROR_SETUP, EPERM, "%s belongs to uid %u, and holt runs as uid %u",
                        path, owner, geteuid());
        return error_cure(
                reterr, -EPERM,
                "Its owner could make holt obey a policy that you did not write. Run holt "
                "as that user, or set XDG_DATA_HOME to a directory of yours (under sudo, "
                "HOME may be another user's).\n"
                "If the file is yours, take ownership of it with chown.");
}

static int refuse_mode(const char *path, mode_t mode, Error *reterr) {
        _cleanup_free_ char *word = str_word(path);

        (void)error_set(reterr, ERROR_SETUP, EPERM, "other users may write to %s (mode %04o)", path,
                        (unsigned)mode & 07777);
        return error_cure(reterr, -EPERM,
                          "They could make holt obey a policy that you did not write. If you trust "
                          "its contents, run: chmod go-w %s",
                          word ? word : "FILE");
}

int private_check(int dir_fd, const char *name, const char *path, Error *reterr) {
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT
                               ? -ENOENT
                               : error_set(reterr, ERROR_SETUP, errno, "cannot inspect %s", path);
        if (st.st_uid != geteuid())
                return private_refuse_owner(path, st.st_uid, reterr);
        if (S_ISLNK(st.st_mode)) {
                (void)error_set(reterr, ERROR_SETUP, EPERM, "%s is a symbolic link", path);
                return error_cure(reterr, -EPERM,
                                  "holt follows no symlinks here. Set XDG_DATA_HOME to the "
                                  "directory that holds the sessions.");
        }
        return st.st_mode & (S_IWGRP | S_IWOTH) ? refuse_mode(path, st.st_mode, reterr) : 0;
}

/* --- the directories above --- */

/* Words of the errors about a directory above holt's sessions, or above the settings. */
typedef struct WayWords {
        const char *part, *theirs, *elsewhere;
} WayWords;

static const WayWords to_sessions = {
        .part = "a parent directory of holt's sessions",
        .theirs = "replace your sessions",
        .elsewhere = "set XDG_DATA_HOME to another directory of yours",
};
static const WayWords to_settings = {
        .part = "which holds your settings of holt",
        .theirs = "change your settings",
        .elsewhere = "leave the settings out with --no-config",
};

static int way_refuse_owner(const char *path, uid_t owner, const WayWords *words, Error *reterr) {
        (void)error_set(reterr, ERROR_SETUP, EPERM,
                        "%s, %s, belongs to uid %u, and holt runs as uid %u", path, words->part,
                        owner, geteuid());
        return error_cure(reterr, -EPERM,
                          "Its owner could %s. Run holt as that user, or %s. All directories above "
                          "must belong to you or to root.",
                          words->theirs, words->elsewhere);
}

static const char group_rule[] =
        "\nA group that may write counts as private only if /etc/passwd lists "
        "it as your primary group and as nobody else's, and /etc/group lists no "
        "other members.";

static int way_refuse_mode(const char *path, const struct stat *st, const WayWords *words,
                           Error *reterr) {
        _cleanup_free_ char *word = str_word(path);

        (void)error_set(reterr, ERROR_SETUP, EPERM, "other users may write to %s, %s (mode %04o)",
                        path, words->part, (unsigned)st->st_mode & 07777);
        return error_cure(reterr, -EPERM, "They could %s. Either %s, or %s: chmod %s %s%s",
                          words->theirs, words->elsewhere,
                          st->st_uid == geteuid() ? "run" : "let its owner run",
                          st->st_mode & S_IWOTH ? "go-w" : "g-w", word ? word : "DIRECTORY",
                          st->st_mode & S_IWOTH ? "" : group_rule);
}

/* Whether /etc/passwd lists the group as the primary group of uid, and of no other user. If so,
 * *ret_name is the user's name. */
static bool is_primary_alone(uid_t uid, gid_t gid, char ret_name[NAME_MAX + 1]) {
        FILE *file = fopen("/etc/passwd", "re");
        const struct passwd *entry;
        bool mine = false, alone = true;

        while (file && (entry = fgetpwent(file))) {
                if (entry->pw_gid != gid)
                        continue;
                if (entry->pw_uid != uid)
                        alone = false;
                else if (strlen(entry->pw_name) <= NAME_MAX)
                        mine = strcpy(ret_name, entry->pw_name);
        }
        if (file)
                (void)fclose(file);
        return mine && alone;
}

/* Debian and Fedora give each user a private group, and some systems set a umask of 002. */
static bool is_private_group(gid_t gid) {
        char name[NAME_MAX + 1] = "";
        const struct group *entry;
        bool found = false, alone = true;
        FILE *file;

        if (gid == 0)
                return true;
        if (!is_primary_alone(geteuid(), gid, name))
                return false;
        file = fopen("/etc/group", "re");
        while (file && (entry = fgetgrent(file))) {
                if (entry->gr_gid != gid)
                        continue;
                found = true;
                for (char **member = entry->gr_mem; *member; member++)
                        alone &= streq(*member, name);
        }
        if (file)
                (void)fclose(file);
        return found && alone;
}

/* If a file has an ACL, its group bits show the ACL's mask, and the ACL may name other users. */
static bool is_written_by_others(const char *path, const struct stat *st) {
        if (!(st->st_mode & (S_IWGRP | S_IWOTH)) || st->st_mode & S_ISVTX)
                return false;
        return st->st_mode & S_IWOTH || !is_private_group(st->st_gid) ||
               lgetxattr(path, "system.posix_acl_access", NULL, 0) >= 0;
}

/* In a user namespace, the files of the host belong to an unmapped id, including the root
 * directory. The owner of the root directory can replace everything anyway. */
static int way_check(const char *path, const struct stat *st, uid_t root, const WayWords *words,
                     Error *reterr) {
        if (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != root)
                return way_refuse_owner(path, st->st_uid, words, reterr);
        if (S_ISLNK(st->st_mode) || !is_written_by_others(path, st))
                return 0;
        return way_refuse_mode(path, st, words, reterr);
}

typedef struct Way {
        char rest[2 * PATH_MAX]; /* the part of the path still to follow */
        char done[PATH_MAX];     /* the part already followed; "" for the root directory */
        unsigned links;
} Way;

static int way_splice(Way *way, size_t length) {
        char rest[2 * PATH_MAX], text[PATH_MAX];
        ssize_t n = readlink(way->done, text, sizeof(text) - 1);

        if (n < 0)
                return -errno;
        text[n] = '\0';
        if (++way->links > WAY_LINKS_MAX)
                return -ELOOP;
        if (snprintf(rest, sizeof(rest), "%s%s", text, way->rest) >= (int)sizeof(rest))
                return -ENAMETOOLONG;
        (void)strcpy(way->rest, rest);
        way->done[text[0] == '/' ? 0 : length] = '\0';
        return 0;
}

/* Moves the next name from rest to the end of done. Returns 1, 0 at the last name, or a negative
 * errno. */
static int way_next(Way *way) {
        const size_t length = strlen(way->done);
        const char *name = way->rest + strspn(way->rest, "/");
        const size_t count = strcspn(name, "/");

        if (!name[count + strspn(name + count, "/")])
                return 0;
        if (length + count + 2 > sizeof(way->done))
                return -ENAMETOOLONG;
        if (count == 2 && memcmp(name, "..", 2) == 0) {
                char *slash = strrchr(way->done, '/');

                if (slash)
                        *slash = '\0';
        } else if (!(count == 1 && name[0] == '.')) {
                way->done[length] = '/';
                (void)memcpy(way->done + length + 1, name, count);
                way->done[length + 1 + count] = '\0';
        }
        (void)memmove(way->rest, name + count, strlen(name + count) + 1);
        return 1;
}

static int way_follow(const char *path, const WayWords *words, Error *reterr) {
        Way way = { 0 };
        struct stat st;
        uid_t root;
        int r;

        if (strlen(path) >= PATH_MAX || stat("/", &st) < 0)
                return error_set(reterr, ERROR_SETUP, ENAMETOOLONG, "%s", path);
        (void)strcpy(way.rest, path);
        root = st.st_uid;
        r = way_check("/", &st, root, words, reterr);
        if (r < 0)
                return r;
        for (;;) {
                const size_t length = strlen(way.done);

                r = way_next(&way);
                if (r == 0)
                        return 0;
                if (r > 0)
                        r = lstat(way.done[0] ? way.done : "/", &st) < 0 ? -errno : 0;
                if (r == -ENOENT)
                        return 0;
                if (r == 0 && way_check(way.done[0] ? way.done : "/", &st, root, words, reterr) < 0)
                        return -EPERM;
                if (r == 0 && S_ISLNK(st.st_mode))
                        r = way_splice(&way, length);
                if (r < 0)
                        return error_set(reterr, ERROR_SETUP, -r,
                                         "cannot inspect the directories above %s", path);
        }
}

int private_check_above(const char *path, Error *reterr) {
        return way_follow(path, &to_sessions, reterr);
}

int private_check_file(const char *path, Error *reterr) {
        _cleanup_free_ char *itself = str_format("%s/.", path);

        return itself ? way_follow(itself, &to_settings, reterr) : error_oom(reterr);
}
