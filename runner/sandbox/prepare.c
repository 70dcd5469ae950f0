/* SPDX-License-Identifier: Apache-2.0 */
/* Opens what a plan names, once, and decides all that depends on the host: nothing is looked up by
 * name after this but what root owns, and the child checks that it finds the same things again. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "sandbox/identity.h"
#include "sandbox/landlock.h"
#include "sandbox/launch.h"
#include "sandbox/prepare.h"

enum { TEXT_MAX = 16 * 1024 }; /* bytes; a longer file of /etc is mounted instead of copied */

/* --- stdio --- */

/* A closed fd 0 to 2 would be taken by the next file we open. A directory is a way out: openat(0,
 * ".."). */
int prepare_stdio(Error *reterr) {
        for (int fd = 0; fd <= 2; fd++) {
                static const char *const names[] = { "stdin", "stdout", "stderr" };
                struct stat st;
                int flags = fcntl(fd, F_GETFL);

                if (flags < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot open /dev/null");
                if (flags < 0 || fstat(fd, &st) < 0)
                        continue;
                if (flags & O_PATH || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
                        return error_set(
                                reterr, ERROR_USAGE, 0,
                                "%s is a %s, which would give the command a way out of the "
                                "sandbox; redirect it from a file, a pipe or /dev/null",
                                names[fd], S_ISBLK(st.st_mode) ? "block device" : "directory");
        }
        return 0;
}

/* --- the system tree --- */

static SystemEntry *add_entry(Launch *launch, const char *prefix, const char *name) {
        SystemEntry *entry = &launch->system[launch->system_count];

        *entry = (SystemEntry){ .path = str_format("%s%s", prefix, name) };
        if (!entry->path)
                return NULL;
        launch->system_count++;
        return entry;
}

static char *read_link(int dir_fd, const char *name) {
        char buf[PATH_MAX];
        ssize_t n = readlinkat(dir_fd, name, buf, sizeof(buf) - 1);

        return n < 0 ? NULL : strndup(buf, (size_t)n);
}

/* The text of a small file that everybody may read; NULL to have it mounted. */
static char *read_small(int dir_fd, const char *name, const struct stat *st, size_t *ret_size) {
        _cleanup_close_ int fd = FD_NONE;
        _cleanup_free_ char *text = NULL;
        ssize_t n;

        if (!S_ISREG(st->st_mode) || st->st_size > TEXT_MAX || !(st->st_mode & S_IROTH))
                return NULL;
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        text = malloc((size_t)st->st_size + 1);
        if (fd < 0 || !text)
                return NULL;
        n = read(fd, text, (size_t)st->st_size);
        if (n < 0)
                return NULL;
        *ret_size = (size_t)n;
        return TAKE_PTR(text);
}

/* Notes what the host has at name, if anything. */
static int look_at(Launch *launch, int dir_fd, const char *prefix, const char *name,
                   Error *reterr) {
        SystemEntry *entry;
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        entry = add_entry(launch, prefix, name);
        if (!entry)
                return error_oom(reterr);
        entry->directory = S_ISDIR(st.st_mode);
        if (S_ISLNK(st.st_mode)) {
                entry->link = read_link(dir_fd, name);
                return entry->link ? 0 : error_oom(reterr);
        }
        if (prefix[0])
                entry->text = read_small(dir_fd, name, &st, &entry->size);
        return 0;
}

static int look_at_etc(Launch *launch, int tree_fd, Error *reterr) {
        _cleanup_close_ int fd = openat(tree_fd, "etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r = 0;

        for (size_t i = 0; fd >= 0 && r == 0 && i < tree_etc_count; i++)
                r = look_at(launch, fd, "etc/", tree_etc[i], reterr);
        return r;
}

static int prepare_system(Launch *launch, Error *reterr) {
        const char *tree = launch->plan->rootfs[0] ? launch->plan->rootfs : "/";
        _cleanup_close_ int tree_fd = open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r = 0;

        if (tree_fd < 0)
                return error_set(reterr, ERROR_POLICY, errno, "--rootfs %s", tree);
        launch->system = calloc(tree_system_count + tree_etc_count, sizeof(*launch->system));
        if (!launch->system)
                return error_oom(reterr);
        for (size_t i = 0; r == 0 && i < tree_system_count; i++)
                r = look_at(launch, tree_fd, "", tree_system[i], reterr);
        if (r == 0 && launch->system_count == 0)
                r = error_set(reterr, ERROR_POLICY, 0,
                              "--rootfs %s: there is neither usr nor bin in it; name the top of a "
                              "system tree",
                              tree);
        return r < 0 ? r : look_at_etc(launch, tree_fd, reterr);
}

/* --- what the caller asked for --- */

/* Whoever can write here can write everybody's programs, or the caller's own start-up files. */
static const char *const wide_paths[] = {
        "/",     "/bin",  "/boot", "/dev",  "/etc", "/home", "/lib", "/media", "/mnt",       "/opt",
        "/proc", "/root", "/run",  "/sbin", "/srv", "/sys",  "/tmp", "/usr",   "/usr/local", "/var",
};

static bool is_home(const PlanMount *mount, const char *path) {
        const char *home = getenv("HOME");
        struct stat st;

        if (!home || home[0] != '/')
                return false;
        if (plan_path_below(home, path))
                return true;
        return stat(home, &st) == 0 && st.st_dev == mount->device && st.st_ino == mount->inode;
}

/* By the path that the kernel gives the open fd, so that a link to / is as wide as / itself. */
static int check_wide(const PlanMount *mount, Error *reterr) {
        char link[32], path[PATH_MAX];
        bool wide = false;
        ssize_t n;
        int r;

        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", mount->fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot read %s", link);
        path[n] = '\0';
        for (size_t i = 0; i < ELEMENTSOF(wide_paths) && !wide; i++)
                wide = streq(path, wide_paths[i]);
        if (!wide && !is_home(mount, path))
                return 0;
        r = error_set(reterr, ERROR_POLICY, 0,
                      "%s: %s is too wide to hand to a command that nobody has vetted",
                      mount->origin, path);
        return error_cure(reterr, r,
                          "Change to a project's own directory, or name one with --workspace DIR.\n"
                          "If this is what you want, say so: --allow-wide");
}

static int open_source(const LaunchPlan *plan, PlanMount *mount, Error *reterr) {
        struct stat st;

        mount->fd = open(mount->source, O_PATH | O_CLOEXEC);
        if (mount->fd < 0 || fstat(mount->fd, &st) < 0) {
                int r = error_set(reterr, ERROR_POLICY, errno, "%s", mount->origin);

                return errno == ENOENT
                               ? error_cure(reterr, r,
                                            "%s is not there: make it, or correct the path.",
                                            mount->source)
                               : r;
        }
        mount->device = st.st_dev;
        mount->inode = st.st_ino;
        mount->directory = S_ISDIR(st.st_mode);
        if (mount->flags & PLAN_WIDE_CHECK && !plan->allow_wide)
                return check_wide(mount, reterr);
        return 0;
}

static int check_workspace(const LaunchPlan *plan, const PlanMount *mount, Error *reterr) {
        bool must = (plan->workspace && streq(mount->target, plan->workspace)) ||
                    streq(mount->target, "/mnt/files");

        if (must && !mount->directory)
                return error_set(reterr, ERROR_POLICY, ENOTDIR, "%s", mount->origin);
        return 0;
}

static int prepare_mounts(Launch *launch, Error *reterr) {
        LaunchPlan *plan = launch->plan;

        for (size_t i = 0; i < plan->mounts_count; i++) {
                PlanMount *mount = &plan->mounts[i];
                int r;

                if (mount->kind != PLAN_BIND)
                        continue;
                r = open_source(plan, mount, reterr);
                if (r == 0)
                        r = check_workspace(plan, mount, reterr);
                if (r == 0 && launch->identity.from_root && launch->identity.id_mapped)
                        r = identity_map_mount(launch, mount, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The caller lets the id map go, and this host has none: the command gets the uid of the
 * workspace's owner. */
static int prepare_unmapped(Launch *launch, Error *reterr) {
        LaunchPlan *plan = launch->plan;

        launch->layers.missing |= LAYER_BIT(LAYER_IDMAP);
        launch->identity.id_mapped = false;
        for (size_t i = 0; i < plan->mounts_count; i++) {
                PlanMount *mount = &plan->mounts[i];
                struct stat st;

                if (plan->workspace && streq(mount->target, plan->workspace) &&
                    stat(mount->source, &st) == 0) {
                        launch->identity.uid = st.st_uid;
                        launch->identity.gid = st.st_gid;
                }
                mount->fd = fd_close(mount->fd);
                mount->tree = false;
        }
        return prepare_mounts(launch, reterr);
}

static int prepare_mapped(Launch *launch, Error *reterr) {
        Error error;
        int r = prepare_mounts(launch, &error);

        if (r < 0 && error.kind == ERROR_LAYER && error.layer == LAYER_IDMAP &&
            launch->plan->degraded & LAYER_BIT(LAYER_IDMAP))
                return prepare_unmapped(launch, reterr);
        if (r < 0 && reterr)
                *reterr = error;
        return r;
}

/* --- guards --- */

static const PlanMount *find_workspace(const LaunchPlan *plan) {
        for (size_t i = 0; plan->workspace && i < plan->mounts_count; i++)
                if (streq(plan->mounts[i].target, plan->workspace))
                        return &plan->mounts[i];
        return NULL;
}

static int open_guarded(int workspace_fd, const char *path) {
        return sys_openat2(workspace_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0,
                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* The .git of a worktree or a submodule is a file that names another directory: where a part of the
 * path is a file, that file is what has to stay. */
static int guard_file(int workspace_fd, char *path) {
        for (size_t i = 1; path[i]; i++) {
                _cleanup_close_ int fd = FD_NONE;
                struct stat st;

                if (path[i] != '/')
                        continue;
                path[i] = '\0';
                fd = open_guarded(workspace_fd, path);
                if (fd < 0)
                        return -errno;
                if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
                        return 0;
                path[i] = '/';
        }
        return -ENOTDIR;
}

static bool is_guarded(const LaunchPlan *plan, size_t index) {
        for (size_t i = 0; i < index; i++)
                if (plan->guards[i].pinned && streq(plan->guards[i].path, plan->guards[index].path))
                        return true;
        return false;
}

/* A link can't be mounted over, and what it leads to could be exchanged behind the guard. */
static int prepare_guard(PlanGuard *guard, const PlanMount *workspace, Error *reterr) {
        _cleanup_close_ int fd = open_guarded(workspace->fd, guard->path);
        int r = fd < 0 ? -errno : 0;

        if (r == -ENOTDIR)
                r = guard_file(workspace->fd, guard->path);
        if (r == -ELOOP) {
                r = error_set(reterr, ERROR_POLICY, ELOOP,
                              "cannot protect %s in %s: it is a link, or below one", guard->path,
                              workspace->source);
                return error_cure(reterr, r,
                                  "Put the real thing there, or give protection up for this run: "
                                  "--protect none");
        }
        if (r < 0 && r != -ENOENT)
                return error_set(reterr, ERROR_POLICY, -r, "cannot protect %s in %s", guard->path,
                                 workspace->source);
        guard->pinned = r == 0;
        return 0;
}

static int prepare_guards(Launch *launch, Error *reterr) {
        LaunchPlan *plan = launch->plan;
        const PlanMount *workspace = find_workspace(plan);

        if (!workspace)
                return 0;
        launch->workspace_fd = workspace->fd;
        for (size_t i = 0; i < plan->guards_count; i++) {
                PlanGuard *guard = &plan->guards[i];
                int r = prepare_guard(guard, workspace, reterr);

                if (r < 0)
                        return r;
                guard->twice = guard->pinned && is_guarded(plan, i);
        }
        return 0;
}

/* --- together --- */

static int check_landlock(Launch *launch, Error *reterr) {
        LandlockMode mode = launch->plan->landlock;
        int abi = mode == LANDLOCK_OFF ? 0 : landlock_abi();

        if (mode == LANDLOCK_OFF)
                launch->layers.switched_off |= LAYER_BIT(LAYER_LANDLOCK);
        if (launch->layers.missing & LAYER_BIT(LAYER_LANDLOCK))
                return 0;
        if (abi >= LANDLOCK_ABI_NEEDED) {
                launch->layers.landlock_abi = abi;
                return 0;
        }
        if (mode != LANDLOCK_REQUIRE)
                return 0;
        return error_layer(reterr, LAYER_LANDLOCK, abi ? 0 : ENOSYS,
                           abi ? "this kernel's Landlock is of ABI 1, which refuses every rename "
                                 "between directories"
                               : "this kernel has no Landlock in force");
}

int prepare_all(Launch *launch, Error *reterr) {
        int r = identity_choose(launch, reterr);

        launch->identity.id_mapped = launch->identity.from_root;
        if (r == 0)
                r = prepare_system(launch, reterr);
        if (r == 0)
                r = prepare_mapped(launch, reterr);
        if (r == 0)
                r = prepare_guards(launch, reterr);
        if (r == 0)
                r = check_landlock(launch, reterr);
        return r;
}
