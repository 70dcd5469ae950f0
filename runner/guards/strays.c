/* SPDX-License-Identifier: Apache-2.0 */
#include "guards/strays.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/entries.h"
#include "base/paths.h"
#include "base/sys.h"
#include "git/state.h"
#include "guards/guard.h"

enum {
        STRAYS_MAX = 2000,

        /* Roughly microseconds. The bound keeps the wait short, however many files the command has
         * made. */
        WORK_MAX = 2000000,
        WORK_MORE = 500000, /* After a run, beyond the work that the repository took before it. */
        WORK_ENTRY = 1,
        WORK_FILE = 8, /* Reading the beginning of a file. */
        WORK_DIRECTORY = 16,
        WORK_LENGTH = 16, /* This many bytes of a directory's path are one more unit. */
};

/* Only the names in these directories are checked: they have many files, and git opens none of them
 * for writing. */
static const char *const shallow[] = { "annex", "lfs", "objects" };

/* git's own entries in a workspace that is a git directory itself. */
static const char *const own[] = {
        "NOTES_MERGE_WORKTREE", "info", "logs",     "lost-found", "objects",   "rebase-apply",
        "rebase-merge",         "refs", "reftable", "rr-cache",   "sequencer",
};

typedef struct Walk {
        const LaunchPlan *plan;
        int tree_fd;
        bool repair;
        const char *git; /* "" or ".git/". */
        StrList left;    /* Directories still to look into; each ends in a slash. */
        size_t work;     /* Units of work done. */
        size_t work_max;
        /* Number of files already set aside. A sweep that found too many strays has left some in
         * place. */
        size_t aside;
        PlanStrays *found;
} Walk;

static bool strays_is_among(const char *name, const char *const *names, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (streq(name, names[i]))
                        return true;
        return false;
}

/* Opens a directory that the command has closed to its owner. */
static int strays_repair_directory(const Walk *walk, const char *path) {
        _cleanup_close_ int fd = sys_open_beneath(walk->tree_fd, path, O_PATH | O_DIRECTORY);
        int other;

        if (fd < 0)
                return -errno;
        if (faccessat(fd, ".", R_OK | X_OK, AT_EACCESS) < 0)
                (void)guard_make_usable(fd);
        other = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return other < 0 ? -errno : other;
}

static int strays_open_directory(const Walk *walk, const char *path) {
        int fd = sys_open_beneath(walk->tree_fd, path, O_RDONLY | O_DIRECTORY);

        if (fd >= 0 && (!walk->repair || faccessat(fd, ".", X_OK, AT_EACCESS) == 0))
                return fd;
        if (!walk->repair)
                return -errno;
        fd_close(fd);
        return strays_repair_directory(walk, path);
}

/* Whether to look into the directory `name` in `directory`. */
static bool strays_goes_on(const Walk *walk, const char *directory, const char *name,
                           const char *path) {
        const char *inner = directory + strlen(walk->git);

        for (size_t i = 0; i < ELEMENTSOF(shallow); i++)
                if (path_below(inner, shallow[i]) && inner[strlen(shallow[i]) + 1] == '\0')
                        return streq(inner, "objects/") && streq(name, "info");
        if (inner[0] != '\0')
                return true;
        if (!walk->git[0] && !strays_is_among(name, own, ELEMENTSOF(own)))
                return false;
        return !strstr(name, GUARD_SUFFIX) && !guard_holds(walk->plan, path);
}

/* Adds a stray. Its inode and change time are noted too: another run may have made it and removed
 * it before this run made it again. */
static int add_stray(Walk *walk, int dir_fd, const char *name, const char *path,
                     const char *target) {
        struct stat st = { 0 };
        int r;

        if (walk->found->paths.count == STRAYS_MAX)
                return -E2BIG;
        (void)fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
        r = strlist_add(&walk->found->paths, path);
        return r < 0 ? r
                     : strlist_take(&walk->found->targets,
                                    str_format("%ju %jd.%09ld %s", (uintmax_t)st.st_ino,
                                               (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec,
                                               target));
}

/* Looks at an entry that is not a directory. */
static int look_at_file(Walk *walk, int dir_fd, const char *name, const char *path, mode_t type) {
        char target[PATH_MAX];
        ssize_t n;

        if (type == S_IFREG)
                return git_state_leads(walk->tree_fd, dir_fd, name, path + strlen(walk->git),
                                       target)
                               ? add_stray(walk, dir_fd, name, path, target)
                               : 0;
        n = readlinkat(dir_fd, name, target, sizeof(target) - 1);
        target[n < 0 ? 0 : n] = '\0';
        return add_stray(walk, dir_fd, name, path, target);
}

/* Returns the type from readdir(3) if the file system tells it, else asks fstatat(2). */
static mode_t strays_type_of(int dir_fd, const struct dirent *entry) {
        struct stat st;

        if (entry->d_type != DT_UNKNOWN)
                return (mode_t)DTTOIF(entry->d_type);
        return fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? S_IFREG
                                                                            : st.st_mode & S_IFMT;
}

/* Whether the entry was set aside, by this sweep or an earlier one of the session: then no program
 * uses its name. */
static bool is_aside(const char *directory, const char *name) {
        const char *end = guard_aside_end(directory);
        const size_t length = strlen(name), end_length = strlen(end);

        return strstr(name, GUARD_SUFFIX) && length >= end_length &&
               streq(name + length - end_length, end);
}

/* Whether the file is pinned: the command cannot change it. */
static bool strays_is_pinned(const Walk *walk, const char *directory, const char *path) {
        return streq(directory, walk->git) && guard_holds(walk->plan, path);
}

static int strays_look_at(Walk *walk, int dir_fd, const char *directory,
                          const struct dirent *entry) {
        const bool looks = git_state_in(directory + strlen(walk->git));
        const char *name = entry->d_name;
        _cleanup_free_ char *path = NULL;
        mode_t type;

        if (streq(name, ".") || streq(name, ".."))
                return 0;
        type = strays_type_of(dir_fd, entry);
        walk->work += type == S_IFREG && looks ? WORK_FILE : WORK_ENTRY;
        if (walk->work > walk->work_max)
                return -E2BIG;
        if (type == S_IFREG && !looks)
                return 0;
        if (type != S_IFDIR && is_aside(directory, name)) {
                walk->aside++;
                return 0;
        }
        path = str_format("%s%s", directory, name);
        if (!path)
                return -ENOMEM;
        if (type == S_IFREG && strays_is_pinned(walk, directory, path))
                return 0;
        if (type != S_IFDIR)
                return look_at_file(walk, dir_fd, name, path, type);
        return strays_goes_on(walk, directory, name, path)
                       ? strlist_take(&walk->left, str_format("%s/", path))
                       : 0;
}

/* Looks into a directory. An unreadable one is skipped, because the caller's git cannot read it
 * either. */
static int look_into(Walk *walk, const char *directory) {
        _cleanup_close_ int fd = strays_open_directory(walk, directory[0] ? directory : ".");
        _uninitialized_ Entries entries;
        const struct dirent *entry;
        int r = 0;

        walk->work += WORK_DIRECTORY + strlen(directory) / WORK_LENGTH;
        if (fd < 0)
                return 0;
        entries_begin(&entries, fd);
        while (r == 0 && (entry = entries_next(&entries)))
                r = strays_look_at(walk, fd, directory, entry);
        return r;
}

static int walk_all(Walk *walk, const char *git) {
        int r;

        walk->git = git;
        r = strlist_add(&walk->left, git);
        for (size_t i = 0; r == 0 && i < walk->left.count; i++)
                r = walk->work > walk->work_max ? -E2BIG : look_into(walk, walk->left.items[i]);
        strlist_clear(&walk->left);
        return r;
}

/* Whether git takes the workspace for a bare repository (gitrepository-layout(5)). A symlink counts
 * as a part, too; the search finds it, because it leads elsewhere. */
static bool is_bare(int tree_fd) {
        static const char *const parts[] = { "HEAD", "objects", "refs" };

        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                if (faccessat(tree_fd, parts[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        return false;
        return true;
}

int strays_find(const LaunchPlan *plan, int tree_fd, const PlanStrays *known, PlanStrays *ret) {
        Walk walk = { .plan = plan,
                      .tree_fd = tree_fd,
                      .repair = known != NULL,
                      .found = ret,
                      .work_max = WORK_MAX };
        int r;

        if (known && known->work < WORK_MAX - WORK_MORE)
                walk.work_max = known->work + WORK_MORE;
        r = walk_all(&walk, ".git/");

        if (r == 0 && is_bare(tree_fd))
                r = walk_all(&walk, "");
        ret->work = walk.work;
        return r == 0 && ret->paths.count + walk.aside > STRAYS_MAX ? -E2BIG : r;
}

bool strays_has(const PlanStrays *known, const PlanStrays *found, size_t index) {
        for (size_t i = 0; i < known->paths.count; i++)
                if (streq(known->paths.items[i], found->paths.items[index]) &&
                    streq(known->targets.items[i], found->targets.items[index]))
                        return true;
        return false;
}
