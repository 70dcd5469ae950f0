/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the part of the system that a sandbox shows: /usr, and the entries of /etc and /var that
 * the tables name (policy/tree.c).
 *
 * An entry is shown only if every user of the host may read it. That is checked by its mode and not
 * by trying: if root runs holt, the command has neither root's rights nor root's groups. */
#include "reach/system-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/entries.h"
#include "base/paths.h"
#include "base/sys.h"
#include "base/util.h"

/* The search for entries. */
typedef struct SystemSearch {
        LaunchPlan *plan;
        SystemTree *system;
        int tree_fd;    /* O_PATH of the system tree. */
        bool from_root; /* The command gets a uid that owns no file. */
        StrList left;   /* Directories that --etc all leaves out: "ssh (ssh_host_rsa_key)". */
} SystemSearch;

/* --- one entry --- */

/* Takes ownership of path. */
static SystemEntry *system_add(SystemTree *system, char *path) {
        if (path && system->count == system->room) {
                const size_t room = system->room ? system->room * 2 : 64;
                SystemEntry *more = reallocarray(system->entries, room, sizeof(*more));

                if (!more) {
                        free(path);
                        return NULL;
                }
                system->entries = more;
                system->room = room;
        }
        if (!path)
                return NULL;
        system->entries[system->count] = (SystemEntry){ .path = path };
        return &system->entries[system->count++];
}

static char *system_read_link(int dir_fd, const char *name) {
        char buf[PATH_MAX];
        ssize_t n = readlinkat(dir_fd, name, buf, sizeof(buf) - 1);

        return n < 0 ? NULL : strndup(buf, (size_t)n);
}

/* Whether every user may use a file or directory of this mode. Returns false for devices, pipes and
 * sockets, which hold no settings. */
static bool system_is_public(mode_t mode) {
        const mode_t bits = S_ISDIR(mode) ? S_IROTH | S_IXOTH : S_IROTH;

        return S_ISLNK(mode) || ((S_ISDIR(mode) || S_ISREG(mode)) && (mode & bits) == bits);
}

/* Whether a file or mount of the policy conflicts with the entry. It may have the entry's own
 * place. Or it lies below the entry, and the host has nothing there; neither a file nor the target
 * of a mount can be made in a read-only entry. */
static bool is_in_the_way(const SystemSearch *search, const char *path) {
        for (size_t i = 0; i < search->plan->files_count; i++)
                if (path_below(search->plan->files[i].path, path))
                        return true;
        /* holt-gateway's certificates become files of the plan later. */
        if (search->plan->tls_hosts.count > 0 && path_below(&PLAN_CA_FILE[1], path))
                return true;
        for (size_t i = 0; i < search->plan->mounts_count; i++) {
                const PlanMount *mount = &search->plan->mounts[i];
                const char *rest = plan_mount_hides(mount) ? NULL
                                                           : path_rest(mount->target + 1, path);
                struct stat st;

                if (rest && (rest[0] == '\0' || fstatat(search->tree_fd, mount->target + 1, &st,
                                                        AT_SYMLINK_NOFOLLOW) < 0))
                        return true;
        }
        return false;
}

/* Notes the top directory called name, if it exists. */
static int system_look_at_top(SystemSearch *search, const char *name, Error *reterr) {
        char *link = system_read_link(search->tree_fd, name); /* Most of them are symlinks. */
        SystemEntry *entry;
        struct stat st;

        if (!link &&
            (errno == ENOENT || fstatat(search->tree_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0))
                return 0;
        entry = system_add(search->system, strdup(name));
        if (!entry) {
                free(link);
                return error_oom(reterr);
        }
        entry->link = link;
        entry->directory = !link && S_ISDIR(st.st_mode);
        return !link && S_ISLNK(st.st_mode) ? error_oom(reterr) : 0;
}

/* Notes the entry called name in a directory, if it exists and is public. */
static int system_look_at(SystemSearch *search, int dir_fd, const char *directory, const char *name,
                          Error *reterr) {
        _cleanup_free_ char *path = NULL;
        SystemEntry *entry;
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !system_is_public(st.st_mode))
                return 0;
        path = path_child(directory, name);
        if (!path)
                return error_oom(reterr);
        if (is_in_the_way(search, path))
                return 0;
        entry = system_add(search->system, TAKE_PTR(path));
        if (!entry)
                return error_oom(reterr);
        entry->directory = S_ISDIR(st.st_mode);
        if (S_ISLNK(st.st_mode)) {
                entry->link = system_read_link(dir_fd, name);
                return entry->link ? 0 : error_oom(reterr);
        }
        return 0;
}

/* --- all entries --- */

/* Opens a directory of the tree. Returns FD_NONE if it is missing or not public. If the caller
 * passes the tree, a part of the path may be a symlink, which must not lead to a file outside the
 * tree. */
static int system_open(int tree_fd, const char *path) {
        int dir_fd = tree_fd;

        for (;;) {
                const size_t length = strcspn(path, "/");
                _cleanup_free_ char *name = strndup(path, length);
                struct stat st;
                int fd = name ? openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                              : FD_NONE;

                if (dir_fd != tree_fd)
                        fd_close(dir_fd);
                if (fd < 0)
                        return FD_NONE;
                if (fstat(fd, &st) < 0 || !(st.st_mode & S_IXOTH)) {
                        fd_close(fd);
                        return FD_NONE;
                }
                if (path[length] == '\0')
                        return fd;
                dir_fd = fd;
                path += length + 1;
        }
}

static int system_look_at_shown(SystemSearch *search, const TreeShown *shown, Error *reterr) {
        _cleanup_close_ int fd = system_open(search->tree_fd, shown->directory);
        int r = 0;

        for (size_t i = 0; fd >= 0 && r == 0 && i < shown->count; i++)
                r = system_look_at(search, fd, shown->directory, shown->names[i], reterr);
        return r;
}

/* Whether the command could use the directory, if an entry shows it. The caller's own rights count,
 * because the command of an ordinary user keeps the user's groups. */
static bool system_needs_mask(const SystemSearch *search, const char *path) {
        for (size_t i = 0; i < search->system->count; i++)
                if (search->system->entries[i].directory &&
                    path_below(path, search->system->entries[i].path))
                        return faccessat(search->tree_fd, path, X_OK, AT_EACCESS) == 0;
        return false;
}

/* Adds the masks. They come after the entries, because each covers a part of one. */
static int system_mask(SystemSearch *search, Error *reterr) {
        for (size_t i = 0; i < tree_masked_count; i++) {
                SystemEntry *entry;

                if (!system_needs_mask(search, tree_masked[i]))
                        continue;
                entry = system_add(search->system, strdup(tree_masked[i]));
                if (!entry)
                        return error_oom(reterr);
                entry->masked = true;
        }
        return 0;
}

/* --- entries that the policy adds --- */

enum {
        WALK_MAX = 4096,    /* Files and directories of one entry that are checked. */
        WALK_DEPTH = 16,    /* Directories below each other. */
        KEY_LENGTH = 16384, /* Bytes of a .pem file that are searched for a key. */
        LEFT_MAX = 8,       /* Names in the warning of --etc all. */
};

/* The search for a private file in one entry. */
typedef struct EtcWalk {
        bool from_root;
        unsigned left;            /* Files that may still be looked at. */
        char found[NAME_MAX + 1]; /* The name of the private file. */
} EtcWalk;

/* Whether the file, whose name ends in .pem, contains more than certificates. */
static bool has_private_key(int dir_fd, const char *name) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        _uninitialized_ char text[KEY_LENGTH];
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

        return n > 0 && memmem(text, (size_t)n, "PRIVATE KEY", strlen("PRIVATE KEY"));
}

/* Whether the command could read something that is private: a key, or a file that the caller may
 * read and others may not. */
static bool walk_is_private(const EtcWalk *walk, int dir_fd, const char *name,
                            const struct stat *st) {
        const size_t length = strlen(name);

        if (!system_is_public(st->st_mode))
                return !walk->from_root &&
                       faccessat(dir_fd, name, S_ISDIR(st->st_mode) ? X_OK : R_OK, AT_EACCESS) == 0;
        if (!S_ISREG(st->st_mode))
                return false;
        return tree_is_key(name) ||
               (length > 4 && streq(name + length - 4, ".pem") && has_private_key(dir_fd, name));
}

static bool walk_finds_private(EtcWalk *walk, int dir_fd, const char *name, unsigned depth);

static bool walk_looks_at(EtcWalk *walk, int dir_fd, const char *name, unsigned depth) {
        struct stat st;

        if (streq(name, ".") || streq(name, "..") ||
            fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode))
                return false;
        if (walk->left == 0 || depth == WALK_DEPTH || walk_is_private(walk, dir_fd, name, &st)) {
                (void)snprintf(walk->found, sizeof(walk->found), "%s", name);
                return true;
        }
        walk->left--;
        return S_ISDIR(st.st_mode) && system_is_public(st.st_mode) &&
               walk_finds_private(walk, dir_fd, name, depth + 1);
}

/* Whether the directory contains something private. A directory that is too large to check counts
 * as private. */
static bool walk_finds_private(EtcWalk *walk, int dir_fd, const char *name, unsigned depth) {
        _cleanup_close_ int fd = openat(dir_fd, name,
                                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _uninitialized_ Entries entries;
        const struct dirent *entry;
        bool found = false;

        if (fd < 0)
                return true;
        entries_begin(&entries, fd);
        while (!found && (entry = entries_next(&entries)))
                found = walk_looks_at(walk, fd, entry->d_name, depth);
        return found || entries.errnum;
}

static bool system_has(const SystemSearch *search, const char *name) {
        for (size_t i = 0; i < search->system->count; i++) {
                const char *rest = path_rest(search->system->entries[i].path, "etc");

                if (rest && streq(rest, name))
                        return true;
        }
        return false;
}

static int etc_refuse(const char *origin, const char *name, const char *below, Error *reterr) {
        _cleanup_free_ char *path = str_format("/etc/%s", name),
                            *word = path ? str_word(path) : NULL;
        char quoted[300], file[300];
        int r;

        (void)str_quote(name, quoted, sizeof(quoted));
        (void)str_quote(below, file, sizeof(file));
        r = below[0] ? error_set(reterr, ERROR_POLICY, 0,
                                 "%s: /etc/%s contains a key or another private file: %s", origin,
                                 quoted, file)
                     : error_set(reterr, ERROR_POLICY, 0, "%s: not every user may read /etc/%s",
                                 origin, quoted);
        return error_cure(reterr, r, "To show it nevertheless: --ro %s", word ? word : "PATH");
}

/* Adds one name. A missing one is accepted, because a policy serves many hosts.
 */
static int etc_add(SystemSearch *search, int fd, const char *name, const char *origin,
                   Error *reterr) {
        EtcWalk walk = { .from_root = search->from_root, .left = WALK_MAX };
        struct stat st;

        if (system_has(search, name))
                return 0;
        if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return strlist_take(&search->plan->etc_notes,
                                    str_format("%s: this name does not exist in /etc, so nothing "
                                               "is shown",
                                               origin)) < 0
                               ? error_oom(reterr)
                               : 0;
        if (!system_is_public(st.st_mode))
                return etc_refuse(origin, name, "", reterr);
        if (S_ISDIR(st.st_mode) && walk_finds_private(&walk, fd, name, 0))
                return etc_refuse(origin, name, walk.found, reterr);
        return system_look_at(search, fd, "etc", name, reterr);
}

static int etc_add_public(SystemSearch *search, int fd, const char *name, Error *reterr) {
        EtcWalk walk = { .from_root = search->from_root, .left = WALK_MAX };
        const char *why;
        struct stat st;

        if (tree_etc_check(name, &why) < 0 || system_has(search, name) ||
            fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !system_is_public(st.st_mode))
                return 0;
        if (!S_ISDIR(st.st_mode) || !walk_finds_private(&walk, fd, name, 0))
                return system_look_at(search, fd, "etc", name, reterr);
        return strlist_take(&search->left, str_format("%s (%s)", name, walk.found)) < 0
                       ? error_oom(reterr)
                       : 0;
}

/* Names the directories that --etc all leaves out. */
static int etc_note_left(SystemSearch *search, const char *origin, Error *reterr) {
        _cleanup_free_ char *names = strdup("");

        for (size_t i = 0; names && i < search->left.count && i < LEFT_MAX; i++) {
                char *more = str_format("%s%s%s", names, i ? ", " : "", search->left.items[i]);

                free(names);
                names = more;
        }
        if (search->left.count == 0)
                return 0;
        if (!names ||
            strlist_take(&search->plan->etc_notes,
                         str_format("%s leaves out directories of /etc that contain a private "
                                    "file: %s%s",
                                    origin, names, search->left.count > LEFT_MAX ? ", ..." : "")) <
                    0)
                return error_oom(reterr);
        return 0;
}

static int etc_add_all(SystemSearch *search, int path_fd, const char *origin, Error *reterr) {
        _cleanup_close_ int fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _uninitialized_ Entries entries;
        const struct dirent *entry;
        int r = 0;

        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "%s: cannot read /etc", origin);
        entries_begin(&entries, fd);
        while (r == 0 && (entry = entries_next(&entries)))
                r = etc_add_public(search, path_fd, entry->d_name, reterr);
        return r < 0 ? r : etc_note_left(search, origin, reterr);
}

static int system_add_etc(SystemSearch *search, Error *reterr) {
        const LaunchPlan *plan = search->plan;
        _cleanup_close_ int fd = plan->etc.count > 0 ? system_open(search->tree_fd, "etc")
                                                     : FD_NONE;
        int r = 0;

        for (size_t i = 0; fd >= 0 && r == 0 && i < plan->etc.count; i++)
                r = streq(plan->etc.items[i], "all")
                            ? etc_add_all(search, fd, plan->etc_origins.items[i], reterr)
                            : etc_add(search, fd, plan->etc.items[i], plan->etc_origins.items[i],
                                      reterr);
        return r;
}

/* --- together --- */

static int system_find(SystemSearch *search, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < tree_system_count; i++)
                r = system_look_at_top(search, tree_system[i], reterr);
        if (r == 0 && search->system->count == 0)
                r = error_set(reterr, ERROR_POLICY, 0,
                              "%s: it contains neither usr nor bin; name the top of a system tree",
                              search->plan->rootfs.origin);
        for (size_t i = 0; r == 0 && i < tree_shown_count; i++)
                r = system_look_at_shown(search, &tree_shown[i], reterr);
        if (r == 0)
                r = system_add_etc(search, reterr);
        return r < 0 ? r : system_mask(search, reterr);
}

int system_tree_find(LaunchPlan *plan, bool from_root, SystemTree *ret, Error *reterr) {
        const PlanMount *rootfs = &plan->rootfs;
        _cleanup_close_ int fd = rootfs->source ? fcntl(rootfs->fd, F_DUPFD_CLOEXEC, 0)
                                                : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        SystemSearch search = {
                .plan = plan, .system = ret, .tree_fd = fd, .from_root = from_root
        };
        int r;

        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot open the system tree");
        r = system_find(&search, reterr);
        strlist_clear(&search.left);
        return r;
}

void system_tree_clear(SystemTree *system) {
        for (size_t i = 0; i < system->count; i++) {
                free(system->entries[i].path);
                free(system->entries[i].link);
        }
        free(system->entries);
        *system = (SystemTree){ 0 };
}
