/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the sources of all mounts, refuses those that are too wide, and maps their owners if root
 * runs holt. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/beneath.h"
#include "base/home.h"
#include "base/paths.h"
#include "base/sys.h"
#include "child/identity.h"
#include "guards/hidden.h"
#include "reach/mount-table.h"
#include "reach/own-store.h"
#include "reach/recorded.h"
#include "reach/wide.h"
#include "sandbox/diagnose.h"
#include "sandbox/prepare.h"

/* --- sources --- */

/* Whether home is the directory of mount, or lies below it. */
static bool mount_holds_home(const PlanMount *mount, const char *home) {
        struct stat st;

        if (!home || home[0] != '/')
                return false;
        if (path_below(home, mount->real))
                return true;
        return stat(home, &st) == 0 && st.st_dev == mount->device && st.st_ino == mount->inode;
}

/* Whether the mount contains a home directory: the caller's by HOME, the caller's by its account,
 * or that of the directory's owner. Under sudo, HOME may be root's or the user's home, and the
 * command runs as the owner. */
static bool mount_holds_a_home(const PlanMount *mount, uid_t owner) {
        const uid_t caller = getuid();

        return mount_holds_home(mount, home_path()) ||
               mount_holds_home(mount, home_of_uid(caller)) ||
               (owner != caller && mount_holds_home(mount, home_of_uid(owner)));
}

/* Checks the kernel's path, so that a symlink to / is as wide as / itself. */
static int check_wide(const PlanMount *mount, uid_t owner, Error *reterr) {
        return path_is_wide(mount->real) || mount_holds_a_home(mount, owner)
                       ? plan_refuse_wide(mount, mount->real, reterr)
                       : 0;
}

static int source_error(const PlanMount *mount, int errnum, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, errnum, "%s", mount->origin);

        return path_cure(mount->source, r, reterr);
}

/* A rootfs has no target. */
static int check_directory(const LaunchPlan *plan, const PlanMount *mount, Error *reterr) {
        bool must = !mount->target || (plan->workspace && streq(mount->target, plan->workspace)) ||
                    streq(mount->target, "/mnt/files") || streq(mount->target, "/");

        return must && !mount->directory ? source_error(mount, ENOTDIR, reterr) : 0;
}

/* Whether the caller may use the source at all. If the caller may not, the command cannot either,
 * and its error would name the path inside. Always true for root, which gives root up later. */
static bool is_of_use(int fd, bool writable) {
        const int how = AT_EMPTY_PATH | AT_EACCESS;

        return geteuid() == 0 || faccessat(fd, "", R_OK, how) == 0 ||
               faccessat(fd, "", X_OK, how) == 0 ||
               (writable && faccessat(fd, "", W_OK, how) == 0) || errno != EACCES;
}

/* Opens a source. A directory that an earlier run could write may contain symlinks of its making,
 * see beneath.h. */
static int open_path(const LaunchPlan *plan, PlanMount *mount, const StrList *writable,
                     Error *reterr) {
        int fd;

        if (mount->record && mount->record->known)
                return recorded_open(plan, mount, &mount->fd, reterr);
        if (mount->flags & PLAN_NO_LINKS)
                return recorded_open_unlinked(plan, mount, &mount->fd, reterr);
        fd = beneath_open(mount->source, writable, O_PATH, 0);
        if (fd < 0)
                return source_error(mount, -fd, reterr);
        mount->fd = fd;
        return 0;
}

static int open_source(const LaunchPlan *plan, PlanMount *mount, const StrList *writable,
                       Error *reterr) {
        char real[PATH_MAX];
        MountFacts facts;
        int r = open_path(plan, mount, writable, reterr);
        const int fd = mount->fd;

        if (r < 0)
                return r;
        r = mount_facts(fd, &facts);
        if (r == 0)
                r = path_of_fd(fd, real);
        if (r < 0)
                return source_error(mount, -r, reterr);
        free(mount->real);
        mount->real = strdup(real);
        if (!mount->real)
                return error_oom(reterr);
        mount->device = facts.device;
        mount->inode = facts.inode;
        mount->mount_id = facts.mount_id;
        mount->owner = facts.owner;
        mount->directory = S_ISDIR(facts.mode);
        r = check_directory(plan, mount, reterr);
        if (r < 0)
                return r;
        if (mount->flags & PLAN_WIDE_CHECK && !plan->allow_wide &&
            check_wide(mount, facts.owner, reterr) < 0)
                return -EINVAL;
        if (!is_of_use(fd, !(mount->flags & PLAN_READ_ONLY)))
                return source_error(mount, EACCES, reterr);
        if (!mount->record)
                return 0;
        mount->record->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        return mount->record->known ? 0 : recorded_note(mount, reterr);
}

static int prepare_mount(const Launch *launch, PlanMount *mount, const StrList *writable,
                         Error *reterr) {
        int r = open_source(launch->plan, mount, writable, reterr);

        if (r == 0 && launch->identity.from_root)
                r = identity_map_mount(launch, mount, reterr);
        return r;
}

int prepare_rootfs(LaunchPlan *plan, Error *reterr) {
        _cleanup_(strlist_clear) StrList writable = { 0 };
        PlanMount *rootfs = &plan->rootfs;

        if (!rootfs->source)
                return 0;
        if (plan_writable(plan, &writable) < 0)
                return error_oom(reterr);
        return open_source(plan, rootfs, &writable, reterr);
}

static int open_mounts(Launch *launch, Error *reterr) {
        LaunchPlan *plan = launch->plan;
        _cleanup_(strlist_clear) StrList writable = { 0 };
        size_t binds = 0;
        int r = 0;

        for (size_t i = 0; i < plan->mounts_count; i++)
                binds += plan_mount_shows_host(&plan->mounts[i]);
        /* With one mount, no path can lead through another. */
        if (binds > 1 && plan_writable(plan, &writable) < 0)
                return error_oom(reterr);

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]))
                        r = prepare_mount(launch, &plan->mounts[i], &writable, reterr);
        if (r == 0 && plan->root.source)
                r = prepare_mount(launch, &plan->root, &writable, reterr);
        return r == 0 && plan->state.source ? prepare_mount(launch, &plan->state, &writable, reterr)
                                            : r;
}

static void close_mount(PlanMount *mount) {
        mount->fd = fd_close(mount->fd);
        mount->tree_fd = fd_close(mount->tree_fd);
        if (mount->record)
                mount->record->fd = fd_close(mount->record->fd);
}

void prepare_close_mounts(LaunchPlan *plan) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                close_mount(&plan->mounts[i]);
        if (plan->rootfs.source)
                close_mount(&plan->rootfs);
        if (plan->root.source) {
                close_mount(&plan->root);
                close_mount(&plan->state);
        }
}

static int refuse_root(const PlanMount *workspace, Error *reterr) {
        int r = error_layer(reterr, LAYER_IDMAP, 0,
                            "%s belongs to root, but a command in a sandbox is never root",
                            workspace->source);
        _cleanup_free_ char *word = str_word(workspace->source);

        return error_cure(reterr, r, "Make an ordinary user its owner: chown -R 1000:1000 %s",
                          word ? word : "DIRECTORY");
}

/* Prepares without id maps, because the host has none and the caller allows that. The command gets
 * the uid of the workspace's owner, so that it can write there. Any owner will do, except root. */
static int prepare_unmapped(Launch *launch, Error *reterr) {
        const PlanMount *workspace = plan_workspace(launch->plan);
        struct stat st;
        int r;

        launch->layers.missing |= LAYER_BIT(LAYER_IDMAP);
        launch->identity.id_mapped = false;
        prepare_close_mounts(launch->plan);
        r = open_mounts(launch, reterr);
        if (r < 0 || !workspace)
                return r;
        if (fstat(workspace->fd, &st) < 0)
                return source_error(workspace, errno, reterr);
        if (st.st_uid == 0 || st.st_gid == 0)
                return refuse_root(workspace, reterr);
        launch->identity.uid = st.st_uid;
        launch->identity.gid = st.st_gid;
        return 0;
}

/* Refuses a session. Its files belong to its caller, and a command with another id could use them
 * only through an id map. */
static int prepare_refuse_owner(const PlanMount *workspace, const struct stat *owner,
                                Error *reterr) {
        int r = error_layer(reterr, LAYER_IDMAP, 0,
                            "%s belongs to uid %u, and a session of root of a user namespace "
                            "cannot run as another user",
                            workspace->source, owner->st_uid);

        return error_cure(reterr, r, "Run holt as that user, or use holt run, which works there.");
}

static bool lacks_id_map(int r, const Error *error) {
        return r < 0 && error->kind == ERROR_LAYER && error->layer == LAYER_IDMAP;
}

/* Replaces the cure of a missing id map. A session's files belong to root, and its commands never
 * run as root. So the id map is required here. */
static int refuse_session(int r, Error *reterr) {
        return error_cure(reterr, r,
                          "If root runs holt, a session needs id-mapped mounts: run holt as an "
                          "ordinary user, or keep sessions (XDG_DATA_HOME) and the directories "
                          "that they mount on ext4, xfs or btrfs (tmpfs: since Linux 6.3)\nA "
                          "command without a session works without id maps: holt run "
                          "--allow-degraded idmap");
}

/* Takes the id of the workspace's owner. A process with that id may be unable to reach the paths,
 * so the mounts are cloned first. Only root of the mount namespace can clone its mounts; otherwise
 * the child looks the paths up with that id. */
static int adopt_owner(Launch *launch, Error *reterr) {
        const PlanMount *workspace = plan_workspace(launch->plan);
        struct stat st;
        int r = 0;

        if (launch->identity.taken || !workspace)
                return 0;
        if (fstat(workspace->fd, &st) < 0)
                return source_error(workspace, errno, reterr);
        if (!identity_adopt(launch, &st))
                return 0;
        if (launch->plan->state.source)
                return prepare_refuse_owner(workspace, &st, reterr);
        for (size_t i = 0; r == 0 && i < launch->plan->mounts_count; i++)
                if (plan_mount_shows_host(&launch->plan->mounts[i]))
                        r = identity_map_mount(launch, &launch->plan->mounts[i], reterr);
        return r == -EPERM ? 0 : r;
}

int prepare_mounts(Launch *launch, Error *reterr) {
        Error error;
        int r;

        (void)home_path();
        r = open_mounts(launch, &error);
        if (lacks_id_map(r, &error) && launch->plan->state.source)
                r = refuse_session(r, &error);
        else if (lacks_id_map(r, &error) && launch->plan->degraded & LAYER_BIT(LAYER_IDMAP))
                return prepare_unmapped(launch, reterr);
        if (r == 0)
                r = adopt_owner(launch, &error);
        if (r < 0 && reterr)
                *reterr = error;
        return r;
}

int prepare_open_inside(const LaunchPlan *plan, const char *path, int flags) {
        const PlanMount *mount = plan_mount_above(plan, path);
        const char *rest;
        int fd;

        if (!mount || !plan_mount_shows_host(mount) || !mount->directory)
                return -ENXIO;
        rest = path + strlen(mount->target);
        rest += strspn(rest, "/");
        fd = sys_openat2(mount->fd, *rest ? rest : ".", (uint64_t)(O_PATH | O_CLOEXEC | flags), 0,
                         RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
        return fd < 0 ? -errno : fd;
}

/* --- the report --- */

/* Hides the report file in every mount that shows it, so that the command can neither read, write
 * nor remove it. The kernel's paths are compared, since the given ones may contain symlinks. */
int prepare_report(Launch *launch, Error *reterr) {
        LaunchPlan *plan = launch->plan;
        char report[PATH_MAX];
        const size_t count = plan->mounts_count;

        if (plan->report_fd < 0 || path_of_fd(plan->report_fd, report) < 0)
                return 0;
        for (size_t i = 0; i < count; i++) {
                const PlanMount *mount = &plan->mounts[i];
                int r;
                if (!plan_mount_shows_host(mount) || !path_below(report, mount->real))
                        continue;
                r = plan_hide(plan, mount->target,
                              report + (streq(mount->real, "/") ? 0 : strlen(mount->real)), NULL,
                              reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* --- mounts of a plan that is launched later --- */

static int try_rootfs(Launch *launch, Error *reterr) {
        return prepare_rootfs(launch->plan, reterr);
}

/* The system tree is needed only for the policy's own names of /etc. */
static int try_system(Launch *launch, Error *reterr) {
        return launch->plan->etc.count == 0
                       ? 0
                       : system_tree_find(launch->plan, launch->identity.from_root, &launch->system,
                                          reterr);
}

static int try_mounts(Launch *launch, Error *reterr) {
        LaunchPlan *plan = launch->plan;
        _cleanup_(strlist_clear) StrList writable = { 0 };
        int r = plan_writable(plan, &writable) < 0 ? error_oom(reterr) : 0;

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]))
                        r = prepare_mount(launch, &plan->mounts[i], &writable, reterr);
        return lacks_id_map(r, reterr) ? refuse_session(r, reterr) : r;
}

static int try_owner(Launch *launch, Error *reterr) {
        const PlanMount *workspace = plan_workspace(launch->plan);
        struct stat st;

        return workspace && fstat(workspace->fd, &st) == 0 && identity_adopt(launch, &st)
                       ? prepare_refuse_owner(workspace, &st, reterr)
                       : 0;
}

static int try_hiding(Launch *launch, Error *reterr) {
        int r = hidden_globs_prepare(launch->plan, reterr);

        if (r == 0)
                r = hidden_prepare(launch->plan, reterr);
        return r < 0 ? r
                     : own_store_hide(launch->plan, &launch->system, launch->identity.from_root,
                                      reterr);
}

static int (*const try_steps[])(Launch *launch, Error *reterr) = {
        identity_choose, try_rootfs, try_system, try_mounts, try_owner, try_hiding,
};

int prepare_try_mounts(LaunchPlan *plan, Error *reterr) {
        Launch launch = LAUNCH_NONE;
        Error error;
        int r;

        launch.plan = plan;
        r = RUN_STEPS(try_steps, &launch, &error);
        system_tree_clear(&launch.system);
        if (r == 0)
                return 0;
        prepare_close_mounts(plan);
        r = diagnose(&error);
        if (reterr)
                *reterr = error;
        return r;
}
