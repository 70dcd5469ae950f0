/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the session store and the caller's settings from the sandbox.
 *
 * Theory of operation. holt obeys its store: the policies of sessions, and the sockets of their
 * keepers. The store also holds data of other sessions. So the directory "holt" in the caller's
 * data directory is hidden in every mount that shows it, even in read-only ones. No mount may start
 * in it, except those that a session makes of its own directory.
 *
 * holt obeys the caller's settings, too: the file config.json in the directory "holt" of the
 * configuration directory. They are hidden in the same way, as another store.
 *
 * Several stores may exist: the one of XDG_DATA_HOME, the one of the home directory, and a
 * session's own. If root runs holt, the stores of users whose directories are mounted count too. If
 * a store does not exist and the command could create it, holt creates it first, so that it can be
 * hidden. A symlink on the way to a store cannot be pinned. If the command could replace it, the
 * run is refused.
 *
 * The sockets of holt serve, which servers note in the store, are hidden as well. A command that
 * replaced one would get the requests of its clients.
 *
 * The kernel's paths are compared. They do not tell whether the host shows one directory in two
 * places, by bind mounts. The start of a session reads the mount table for that. A single run does
 * so only if a source is on the store's file system, but in another mount. The reason is that
 * reading the table takes 2 µs for each mount of the host. */
#include "reach/own-store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/entries.h"
#include "base/home.h"
#include "base/paths.h"
#include "base/sys.h"
#include "reach/mount-table.h"
#include "reach/reach.h"

enum {
        STORE_LINKS_MAX = 40, /* The kernel's own limit. */
        STORE_TRIES = 3,      /* Another holt may create or remove the store meanwhile. */
};

typedef struct StoreSearch {
        LaunchPlan *plan;
        const char *what; /* store_words or settings_words: the subject of errors */
        Reach *reach;     /* NULL unless the mount table is needed. */
        StrList hide;     /* Paths inside. */
        StrList sockets;  /* Sockets of servers, by their paths inside. */
} StoreSearch;

static const char store_words[] = "session store", settings_words[] = "settings";

/* --- errors --- */

static int store_refuse_source(const PlanMount *mount, const char *what, Error *reterr) {
        (void)error_set(reterr, ERROR_POLICY, EPERM, "%s: %s is part of holt's %s", mount->origin,
                        mount->real ? mount->real : mount->source, what);
        if (!streq(what, store_words))
                return error_cure(reterr, -EPERM,
                                  "A command there could read or change them. Pass another "
                                  "directory.");
        return error_cure(reterr, -EPERM,
                          "A command there could change the programs and policies of other "
                          "sessions. Copy the files that it needs: holt cp SESSION:PATH DIRECTORY");
}

static int store_refuse_link(const PlanMount *mount, const char *link, const char *what,
                             Error *reterr) {
        (void)error_set(reterr, ERROR_POLICY, EPERM,
                        "%s: the command could replace the symlink %s, which leads to holt's %s",
                        mount->origin, link, what);
        return error_cure(reterr, -EPERM,
                          "Replace the symlink by a directory. If XDG_%s_HOME names the symlink, "
                          "let it name the directory itself. Or pass a directory that does not "
                          "contain the symlink.",
                          streq(what, store_words) ? "DATA" : "CONFIG");
}

static int store_refuse_missing(const PlanMount *mount, const char *store, const char *what,
                                int errnum, Error *reterr) {
        _cleanup_free_ char *word = str_word(store);

        (void)error_set(reterr, ERROR_POLICY, errnum,
                        "%s: the command could create holt's %s, %s, which does not exist yet",
                        mount->origin, what, store);
        return error_cure(reterr, -EPERM,
                          "Create it first, as the owner of the directory above it, with mode "
                          "0700: mkdir -p -m 700 %s",
                          word ? word : "DIRECTORY");
}

/* --- host directories inside --- */

static bool store_is_writable(const PlanMount *mount) {
        return plan_mount_shows_host(mount) && !(mount->flags & PLAN_READ_ONLY);
}

/* Returns the path inside at which the mount shows `real`, owned by the caller. Returns NULL if the
 * mount does not show it, or if another mount covers it. */
static char *store_inside(const LaunchPlan *plan, const PlanMount *mount, const char *real) {
        const char *rest = plan_mount_shows_host(mount) ? path_rest(real, mount->real) : NULL;
        char *inside = rest ? path_join(mount->target, rest) : NULL;

        if (inside && plan_mount_above(plan, inside) == mount)
                return inside;
        free(inside);
        return NULL;
}

static int store_blame(void *data, const PlanMount *mount, const char *inside, const char *rest) {
        (void)inside;
        *(const PlanMount **)data = mount;
        return rest && store_is_writable(mount);
}

/* Returns the mount through which the command could create, remove and rename entries of the
 * directory, or NULL. */
static const PlanMount *store_writable_by(const StoreSearch *search, const char *directory) {
        const LaunchPlan *plan = search->plan;
        const PlanMount *found = NULL;
        _cleanup_close_ int fd = FD_NONE;

        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];
                _cleanup_free_ char *inside = store_is_writable(mount)
                                                      ? store_inside(plan, mount, directory)
                                                      : NULL;

                if (inside)
                        return mount;
        }
        if (!search->reach)
                return NULL;
        fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd >= 0 && reach_each(search->reach, fd, store_blame, &found) == 1 ? found : NULL;
}

/* --- hiding the store --- */

/* Whether the mount is one that a session makes of its own directory. */
static bool store_is_own(const LaunchPlan *plan, const PlanMount *mount) {
        const char *rest = plan->state.source ? path_rest(mount->source, plan->state.source) : NULL;

        return mount == &plan->root || (rest && (streq(rest, "workspace") || streq(rest, "files")));
}

typedef struct StoreShown {
        StoreSearch *search;
        Error *reterr;
        bool told; /* *reterr is set. */
} StoreShown;

static int store_shown(void *data, const PlanMount *mount, const char *inside, const char *rest) {
        const bool within = !rest || !rest[0];
        StoreShown *shown = data;
        StrList *hide = &shown->search->hide;

        if (within && store_is_own(shown->search->plan, mount))
                return 0;
        if (!within && (strlist_has(hide, inside) || strlist_add(hide, inside) == 0))
                return 0;
        shown->told = true;
        return within ? store_refuse_source(mount, shown->search->what, shown->reterr)
                      : error_oom(shown->reterr);
}

static int store_hide_in_mounts(StoreSearch *search, const char *real, Error *reterr) {
        const LaunchPlan *plan = search->plan;
        StoreShown shown = { .search = search, .reterr = reterr };
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];
                _cleanup_free_ char *inside = store_inside(plan, mount, real);

                if (inside || (plan_mount_shows_host(mount) && path_below(mount->real, real)))
                        r = store_shown(&shown, mount, inside, path_rest(real, mount->real));
        }
        return r;
}

/* Hides the store in the system tree. The system tree is read-only, but shows the caller's own
 * files. */
static int store_hide_in_system(StoreSearch *search, const SystemTree *system, const char *real,
                                Error *reterr) {
        const PlanMount *rootfs = &search->plan->rootfs;
        const char *root = rootfs->source ? rootfs->real : "";

        if (path_below(root, real))
                return store_refuse_source(rootfs, search->what, reterr);
        for (size_t i = 0; i < system->count; i++) {
                const SystemEntry *entry = &system->entries[i];
                _cleanup_free_ char *source = NULL, *inside = NULL;
                const char *rest;

                if (!entry->directory)
                        continue;
                source = path_child(root, entry->path);
                rest = source ? path_rest(real, source) : NULL;
                inside = rest ? str_format("/%s/%s", entry->path, rest) : NULL;
                if (!source || (rest && (!inside || strlist_add(&search->hide, inside) < 0)))
                        return error_oom(reterr);
        }
        return 0;
}

/* Whether the mount table may know more places of the store than its path tells; see above. */
static bool store_needs_table(const LaunchPlan *plan, int fd, const char *real) {
        MountFacts facts;

        if (plan->root.source || mount_facts(fd, &facts) < 0)
                return true;
        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];

                if (plan_mount_shows_host(mount) && mount->device == facts.device &&
                    !(facts.mount_id && mount->mount_id == facts.mount_id) &&
                    !path_below(real, mount->real))
                        return true;
        }
        return false;
}

static int store_hide(StoreSearch *search, const SystemTree *system, int fd, const char *real,
                      Error *reterr) {
        StoreShown shown = { .search = search, .reterr = reterr };
        int r = store_hide_in_mounts(search, real, reterr);

        if (r == 0)
                r = store_hide_in_system(search, system, real, reterr);
        if (r == 0 && !search->reach && store_needs_table(search->plan, fd, real))
                r = reach_new_all(search->plan, &search->reach, reterr);
        if (r < 0 || !search->reach)
                return r;
        r = reach_each(search->reach, fd, store_shown, &shown);
        if (r < 0 && !shown.told)
                return error_set(reterr, ERROR_SETUP, -r,
                                 "cannot find the mounts that show holt's %s, %s", search->what,
                                 real);
        return r;
}

/* --- sockets of holt serve --- */

typedef struct StoreSocket {
        StoreSearch *search;
        const char *name;
} StoreSocket;

static int store_add_socket(StoreSearch *search, const char *directory, const char *name) {
        _cleanup_free_ char *inside = path_join(directory, name);

        if (!inside)
                return -ENOMEM;
        return strlist_has(&search->sockets, inside) ? 0 : strlist_add(&search->sockets, inside);
}

static int store_socket_shown(void *data, const PlanMount *mount, const char *inside,
                              const char *rest) {
        const StoreSocket *socket = data;

        (void)mount;
        return rest ? store_add_socket(socket->search, inside, socket->name) : 0;
}

/* Hides the socket at path, as the kernel names it, in every mount that shows it. It may not exist:
 * a killed server leaves its note behind. */
static int store_hide_socket(StoreSearch *search, char *path, Error *reterr) {
        const LaunchPlan *plan = search->plan;
        char *slash = strrchr(path, '/');
        StoreSocket socket = { search, slash + 1 };
        _cleanup_close_ int fd = FD_NONE;
        struct stat st;
        int r = 0;

        if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
                return 0;
        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++) {
                _cleanup_free_ char *inside = store_inside(plan, &plan->mounts[i], path);

                r = inside ? strlist_add(&search->sockets, inside) : 0;
        }
        *slash = '\0';
        fd = open(slash == path ? "/" : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (r == 0 && fd >= 0 && !search->reach && store_needs_table(plan, fd, path))
                r = reach_new_all(plan, &search->reach, reterr);
        if (r == 0 && fd >= 0 && search->reach)
                r = reach_each(search->reach, fd, store_socket_shown, &socket);
        return r == -ENOMEM ? error_oom(reterr) : r == -ENOENT ? 0 : r;
}

/* Hides all sockets. Each note is a symlink in the directory "sockets" of the store
 * (serve/socket.h). */
static int store_hide_sockets(StoreSearch *search, int store_fd, Error *reterr) {
        _cleanup_close_ int fd = openat(store_fd, "sockets",
                                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _uninitialized_ Entries entries;
        int r = 0;

        if (fd < 0)
                return 0;
        entries_begin(&entries, fd);
        for (const struct dirent *entry; r == 0 && (entry = entries_next(&entries));) {
                char path[PATH_MAX];
                ssize_t n = readlinkat(fd, entry->d_name, path, sizeof(path) - 1);

                path[n < 0 ? 0 : n] = '\0';
                if (path[0] == '/')
                        r = store_hide_socket(search, path, reterr);
        }
        return r;
}

/* --- following a path --- */

typedef struct StoreWay {
        char rest[2 * PATH_MAX]; /* The part of the path still to follow. */
        char done[PATH_MAX];     /* The kernel's path of the part followed so far; "" is "/". */
        unsigned links;
} StoreWay;

static int store_splice(StoreWay *way, const char *text) {
        char rest[2 * PATH_MAX];

        if (++way->links > STORE_LINKS_MAX)
                return -ELOOP;
        if (snprintf(rest, sizeof(rest), "%s/%s", text, way->rest) >= (int)sizeof(rest))
                return -ENAMETOOLONG;
        (void)strcpy(way->rest, rest);
        if (text[0] == '/')
                way->done[0] = '\0';
        return 0;
}

static int store_enter(const StoreSearch *search, StoreWay *way, const char *name, Error *reterr) {
        const size_t length = strlen(way->done);
        const PlanMount *mount;
        char text[PATH_MAX];
        ssize_t n;

        if (streq(name, "..")) {
                char *slash = strrchr(way->done, '/');

                if (slash)
                        *slash = '\0';
                return 0;
        }
        if (length + strlen(name) + 2 > sizeof(way->done))
                return -ENAMETOOLONG;
        (void)snprintf(way->done + length, sizeof(way->done) - length, "/%s", name);
        n = readlink(way->done, text, sizeof(text) - 1);
        if (n < 0)
                return 0; /* It is not a symlink, or does not exist. */
        text[n] = '\0';
        way->done[length] = '\0';
        mount = store_writable_by(search, length ? way->done : "/");
        way->done[length] = '/';
        if (mount)
                return store_refuse_link(mount, way->done, search->what, reterr);
        way->done[length] = '\0';
        return store_splice(way, text);
}

/* Follows path as the kernel does, even if it does not exist. Refuses a symlink on the way that the
 * command could replace. */
static int store_follow(const StoreSearch *search, const char *path, char ret[PATH_MAX],
                        Error *reterr) {
        StoreWay way = { 0 };
        int r = 0;

        (void)strcpy(way.rest, path);
        while (r == 0) {
                const char *start = way.rest + strspn(way.rest, "/");
                const size_t length = strcspn(start, "/");
                char name[NAME_MAX + 1];

                if (length == 0)
                        break;
                if (length > NAME_MAX)
                        return -ENAMETOOLONG;
                (void)memcpy(name, start, length);
                name[length] = '\0';
                (void)memmove(way.rest, start + length, strlen(start + length) + 1);
                if (!streq(name, "."))
                        r = store_enter(search, &way, name, reterr);
        }
        if (r == 0)
                (void)strcpy(ret, way.done[0] ? way.done : "/");
        return r;
}

/* --- creating a store --- */

/* Creates the missing directories of `rest` below the directory fd. Root creates nothing in a place
 * where a user could replace it. */
static int store_make_below(int fd, const char *rest) {
        char path[PATH_MAX];
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid())
                return -EPERM;
        (void)snprintf(path, sizeof(path), "%s", rest);
        for (char *slash = path; slash; slash = strchr(slash + 1, '/')) {
                if (slash == path)
                        continue;
                *slash = '\0';
                if (mkdirat(fd, path, 0700) < 0)
                        return -errno;
                *slash = '/';
        }
        return mkdirat(fd, path, 0700) < 0 ? -errno : 0;
}

/* Returns an O_PATH fd, or -ELOOP if a symlink is on the way. Without a symlink, path is also the
 * kernel's own path. */
static int store_open_plain(const char *path) {
        int fd = strstr(path, "/..")
                         ? -ELOOP
                         : sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);

        return fd == -1 ? -errno : fd;
}

/* Creates the store if the command could create it. Returns 1 if it was created, 0 if that was not
 * needed, and -ELOOP without an error for a symlink on the way. */
static int store_make(const StoreSearch *search, const char *real, Error *reterr) {
        _cleanup_close_ int fd = -ENOENT;
        const PlanMount *mount;
        char above[PATH_MAX];
        size_t length = strlen(real);
        int r;

        (void)memcpy(above, real, length + 1);
        while (fd == -ENOENT && length > 1) {
                while (length > 1 && above[length - 1] != '/')
                        length--;
                above[length > 1 ? --length : length] = '\0';
                fd = store_open_plain(above);
        }
        if (fd == -ELOOP)
                return -ELOOP;
        mount = fd < 0 ? NULL : store_writable_by(search, above);
        if (!mount)
                return 0;
        r = store_make_below(fd, real + length + (length > 1));
        /* Another holt may have created it meanwhile. */
        return r < 0 && r != -EEXIST ? store_refuse_missing(mount, real, search->what, -r, reterr)
                                     : 1;
}

/* --- one store --- */

/* Handles a store with a symlink on the way. holt does not obey a store that the caller cannot
 * reach by this path, or that is behind endless symlinks. Such a store is skipped. */
static int store_keep_linked(StoreSearch *search, const SystemTree *system, const char *path,
                             Error *reterr) {
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        char real[PATH_MAX];
        int r = fd < 0 ? -errno : path_of_fd(fd, real);

        if (r < 0 && r != -ENOENT && r != -ENOTDIR)
                return 0;
        if (fd >= 0) {
                r = store_hide(search, system, fd, real, reterr);
                if (r == 0)
                        r = store_hide_sockets(search, fd, reterr);
        }
        if (fd < 0 || r == 0)
                r = store_follow(search, path, real, reterr);
        if (r == -ELOOP || r == -ENAMETOOLONG)
                return 0;
        return r < 0 || fd >= 0 ? r : store_make(search, real, reterr);
}

static int store_keep(StoreSearch *search, const SystemTree *system, const char *path,
                      Error *reterr) {
        int r = 1;

        if (strlen(path) >= PATH_MAX)
                return 0;
        for (int tries = 0; r == 1 && tries < STORE_TRIES; tries++) {
                _cleanup_close_ int fd = store_open_plain(path);

                if (fd >= 0) {
                        r = store_hide(search, system, fd, path, reterr);
                        return r < 0 ? r : store_hide_sockets(search, fd, reterr);
                }
                r = fd == -ENOENT || fd == -ENOTDIR ? store_make(search, path, reterr) : -ELOOP;
                if (r == -ELOOP)
                        r = store_keep_linked(search, system, path, reterr);
        }
        return r == 1 || r == -ELOOP
                       ? error_set(reterr, ERROR_SETUP, EAGAIN,
                                   "another process replaces %s, holt's %s, again and again", path,
                                   search->what)
                       : r;
}

static int store_add(StrList *stores, const char *base, const char *below) {
        _cleanup_free_ char *path = NULL;

        /* A relative path is ignored (XDG Base Directory Specification). */
        if (!base || base[0] != '/')
                return 0;
        /* Kept as it is, because the kernel resolves ".." after a symlink from the symlink's
         * target. */
        path = strstr(base, "/..") ? path_child(base, below) : path_join(base, below);
        if (!path)
                return -ENOMEM;
        return strlist_has(stores, path) ? 0 : strlist_add(stores, path);
}

/* Adds a directory in the home of the user who runs holt. For root, adds those of the users whose
 * directories it mounts. */
static int store_add_homes(const LaunchPlan *plan, bool from_root, const char *in_home,
                           StrList *ret) {
        int r = store_add(ret, home_path(), in_home);

        if (r == 0)
                r = store_add(ret, home_of_uid(getuid()), in_home);
        for (size_t i = 0; r == 0 && from_root && i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]) && plan->mounts[i].owner != getuid())
                        r = store_add(ret, home_of_uid(plan->mounts[i].owner), in_home);
        return r;
}

static int store_list(const LaunchPlan *plan, bool from_root, StrList *ret) {
        int r = store_add(ret, getenv("XDG_DATA_HOME"), "holt");

        /* STORE/sessions/NAME. The keeper has no environment, so it finds its store by this
         * path. */
        if (r == 0 && plan->state.source)
                r = store_add(ret, plan->state.source, "../..");
        return r < 0 ? r : store_add_homes(plan, from_root, ".local/share/holt", ret);
}

static int store_list_settings(const LaunchPlan *plan, bool from_root, StrList *ret) {
        int r = store_add(ret, getenv("XDG_CONFIG_HOME"), "holt");

        return r < 0 ? r : store_add_homes(plan, from_root, ".config/holt", ret);
}

static int store_keep_all(StoreSearch *search, const SystemTree *system, const StrList *paths,
                          const char *what, Error *reterr) {
        int r = 0;

        search->what = what;
        for (size_t i = 0; r == 0 && i < paths->count; i++)
                r = store_keep(search, system, paths->items[i], reterr);
        return r;
}

/* Called at the end, because plan_hide() may move the plan's mounts. */
static int store_hide_found(LaunchPlan *plan, const StoreSearch *search, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < search->hide.count; i++)
                r = plan_hide(plan, search->hide.items[i], "", NULL, reterr);
        for (size_t i = 0; r == 0 && i < search->sockets.count; i++) {
                r = plan_hide(plan, search->sockets.items[i], "", NULL, reterr);
                if (r == 0)
                        plan->mounts[plan->mounts_count - 1].flags |= PLAN_MAY_GO;
        }
        return r;
}

int own_store_hide(LaunchPlan *plan, const SystemTree *system, bool from_root, Error *reterr) {
        _cleanup_(strlist_clear) StrList stores = { 0 };
        _cleanup_(strlist_clear) StrList settings = { 0 };
        StoreSearch search = { .plan = plan };
        int r;

        if (store_list(plan, from_root, &stores) < 0 ||
            store_list_settings(plan, from_root, &settings) < 0)
                return error_oom(reterr);
        r = store_keep_all(&search, system, &stores, store_words, reterr);
        if (r == 0)
                r = store_keep_all(&search, system, &settings, settings_words, reterr);
        reach_free(search.reach);
        if (r == 0)
                r = store_hide_found(plan, &search, reterr);
        strlist_clear(&search.hide);
        strlist_clear(&search.sockets);
        return r;
}
