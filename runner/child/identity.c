/* SPDX-License-Identifier: Apache-2.0 */
#include "child/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "child/clone.h"

extern char **environ;

/* Uids from here on are above all that distributions, systemd (up to 0x6fffffff) and directory
 * services use. SSSD and FreeIPA go up to 2,000,200,000 (sssd-ldap(5), ldap_idmap_range_max). Many
 * programs accept no uid from 0x80000000 on. */
enum { ROOT_UID_BASE = 0x78000000, ROOT_UID_MASK = 0x07ffffff };

/* Returns 1 in the initial user namespace, which maps every id to itself (user_namespaces(7)).
 * Returns 0 in another one, or -EMFILE or -ENFILE if holt cannot find out. */
static int in_initial_namespace(void) {
        char buf[64] = "";
        unsigned inside, outside, count;
        _cleanup_close_ int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);

        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
                return -errno;
        if (fd < 0 || read(fd, buf, sizeof(buf) - 1) <= 0)
                return 0;
        return sscanf(buf, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
               outside == 0 && count == 4294967295U;
}

/* Whether uid 0 of this namespace is the host's root (sudo unshare -r). /proc/sys belongs to the
 * host's root, and only in such a namespace does its owner show as 0. Such a root has no other id
 * to give the command, and the kernel exempts it from limits. */
static bool is_host_root(void) {
        static const char *const paths[] = { "/proc/sys", "/dev/null", "/" };
        struct stat st;

        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                if (stat(paths[i], &st) < 0 || st.st_uid != 0)
                        return false;
        return true;
}

static int refuse_host_root(Error *reterr) {
        int r = error_layer(reterr, LAYER_USER, EPERM,
                            "this is the host's root in a user namespace, but the command must not "
                            "run as the host's root");

        return error_cure(reterr, r,
                          "Run holt outside of that namespace, where it gives root up by itself, "
                          "or as an ordinary user.");
}

/* Chooses a uid that no other running launch of root has. In one pid namespace, the pid is enough.
 * Containers that share the host's user namespace may use the same pids, and their roots cannot see
 * each other's choices. So each pid namespace counts from its own start, which is computed from its
 * inode number; no two living namespaces share one. The factor is 2^32 divided by the golden ratio
 * (Fibonacci hashing). It keeps the starts of consecutive numbers far apart: by more than 100,000
 * uids for 600 namespaces in a row. */
static int choose_own_uid(uid_t *ret, Error *reterr) {
        struct stat st;
        uint32_t place;

        if (stat("/proc/self/ns/pid", &st) < 0)
                return error_layer(reterr, LAYER_USER, errno, "cannot look at /proc/self/ns/pid");
        place = (uint32_t)st.st_ino * 0x9e3779b1U >> 5;
        *ret = ROOT_UID_BASE + ((place + (uint32_t)getpid()) & ROOT_UID_MASK);
        return 0;
}

int identity_choose(Launch *launch, Error *reterr) {
        Identity *identity = &launch->identity;
        int r;

        *identity = (Identity){ .uid = geteuid(), .gid = getegid() };
        if (identity->uid != 0)
                return 0;
        r = in_initial_namespace();
        if (r < 0)
                return error_set(reterr, ERROR_SETUP, -r, "cannot open /proc/self/uid_map");
        if (r == 0)
                return is_host_root() ? refuse_host_root(reterr) : 0;
        r = choose_own_uid(&identity->uid, reterr);
        if (r < 0)
                return r;
        identity->from_root = identity->taken = identity->id_mapped = true;
        identity->gid = identity->uid;
        return 0;
}

/* The id that files show if their owner is not mapped here: /proc/sys/kernel/overflowuid. */
static const uid_t overflow_id = 65534;

static bool may_change_ids(void) {
        const uint32_t needed = 1U << CAP_SETUID | 1U << CAP_SETGID;
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { 0 };

        return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & needed) == needed;
}

bool identity_adopt(Launch *launch, const struct stat *owner) {
        Identity *identity = &launch->identity;

        if (identity->uid != 0 || owner->st_uid == 0 || owner->st_gid == 0 ||
            owner->st_uid == overflow_id || owner->st_gid == overflow_id || !may_change_ids())
                return false;
        identity->uid = owner->st_uid;
        identity->gid = owner->st_gid;
        identity->taken = true;
        return true;
}

/* --- user namespaces that serve as id maps --- */

/* The id map of a mount is a user namespace that maps the owner's id to the launch's. */
typedef struct MapRequest {
        uid_t owner_uid, uid;
        gid_t owner_gid, gid;
        int fd; /* The resulting namespace; the child shares it by CLONE_FILES. */
        int errnum;
} MapRequest;

static int write_map(const char *path, unsigned inside, unsigned outside) {
        char line[48];
        int length = snprintf(line, sizeof(line), "%u %u 1\n", inside, outside);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, line, (size_t)length) == length ? 0 : -errno;
}

static int deny_setgroups(void) {
        _cleanup_close_ int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, "deny", 4) == 4 ? 0 : -errno;
}

/* Makes the id map. Runs in a child that shares memory and fds. A process that makes a user
 * namespace may map its own id to any other. So it takes the launch's uid and maps that to the
 * owner's, without help from outside. */
static int make_map(MapRequest *request) {
        int r;

        if (syscall(SYS_setresgid, request->gid, request->gid, request->gid) < 0 ||
            syscall(SYS_setresuid, request->uid, request->uid, request->uid) < 0 ||
            prctl(PR_SET_DUMPABLE, 1) < 0 || syscall(SYS_unshare, CLONE_NEWUSER) < 0)
                return -errno;
        r = write_map("/proc/self/uid_map", request->owner_uid, request->uid);
        if (r == 0)
                r = deny_setgroups();
        if (r == 0)
                r = write_map("/proc/self/gid_map", request->owner_gid, request->gid);
        if (r < 0)
                return r;
        request->fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
        return request->fd < 0 ? -errno : 0;
}

static void map_child(void *arg) {
        MapRequest *request = arg;

        request->errnum = -make_map(request);
        syscall(SYS_exit, 0);
        __builtin_unreachable();
}

static int owner_namespace(const Identity *identity, const struct stat *owner, int *ret_fd) {
        MapRequest request = { .owner_uid = owner->st_uid,
                               .uid = identity->uid,
                               .owner_gid = owner->st_gid,
                               .gid = identity->gid,
                               .fd = FD_NONE };
        pid_t pid = clone_vfork(CLONE_FILES, map_child, &request, NULL);

        if (pid < 0)
                return pid;
        (void)waitpid(pid, NULL, 0);
        if (request.errnum) {
                fd_close(request.fd);
                return -request.errnum;
        }
        *ret_fd = request.fd;
        return 0;
}

static int identity_set_map(const Launch *launch, const PlanMount *mount, const int trees[2],
                            Error *reterr) {
        MountAttr attr = { .attr_set = MOUNT_ATTR_IDMAP };
        _cleanup_close_ int namespace_fd = FD_NONE;
        struct stat st;
        int r;

        if (fstat(mount->fd, &st) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot look at %s", mount->source);
        r = owner_namespace(&launch->identity, &st, &namespace_fd);
        if (r < 0)
                return error_layer(reterr, LAYER_USER, -r,
                                   "cannot make a user namespace, the id map for %s",
                                   mount->source);
        attr.userns_fd = (uint64_t)namespace_fd;
        for (int i = 0; i < 2; i++)
                if (sys_mount_setattr(trees[i], "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
                        return error_layer(reterr, LAYER_IDMAP, errno,
                                           "cannot mount %s with an id map", mount->source);
        return 0;
}

/* Whether the mode of the mount's source keeps strangers from reading it. For a mount that is only
 * shown (--ro), the command has the rights of a stranger, so that /etc, for example, keeps its
 * secrets. If the source itself is private, the caller has passed it on purpose, so it is
 * mapped. */
static bool identity_is_private(const PlanMount *mount) {
        struct stat st;

        return fstat(mount->fd, &st) == 0 && !(st.st_mode & S_IROTH);
}

static int identity_clone(const PlanMount *mount, int *ret, Error *reterr) {
        *ret = sys_open_tree(mount->fd, "",
                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
        return *ret < 0 ? error_layer(reterr, LAYER_MOUNT, errno, "cannot clone the mount of %s",
                                      mount->source)
                        : 0;
}

int identity_map_mount(const Launch *launch, PlanMount *mount, Error *reterr) {
        int trees[2] = { FD_NONE, FD_NONE }, r;

        r = identity_clone(mount, &trees[0], reterr);
        if (r == 0)
                r = identity_clone(mount, &trees[1], reterr);
        if (r == 0 && launch->identity.id_mapped &&
            (!(mount->flags & PLAN_SHOWN) || identity_is_private(mount)))
                r = identity_set_map(launch, mount, trees, reterr);
        if (r < 0) {
                fd_close(trees[0]);
                fd_close(trees[1]);
                return r;
        }
        fd_close(mount->fd);
        mount->fd = trees[0];
        mount->tree_fd = trees[1];
        return 0;
}

/* Erases root's environment, which a process with the uid that holt takes could read. The plan
 * already contains the variables for the sandbox. */
static void forget_environment(void) {
        for (char **item = environ; item && *item; item++)
                memset(*item, 0, strlen(*item));
}

/* Whether no other process has the uid. This is true for the host's root with an id map. In all
 * other cases, processes of the workspace's owner may run at the same time. */
static bool identity_is_own(const Identity *identity) {
        return identity->from_root && identity->id_mapped;
}

static bool set_capabilities(uint32_t permitted, uint32_t effective) {
        const struct __user_cap_data_struct data[2] = { { .permitted = permitted,
                                                          .effective = effective } };
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

        return syscall(SYS_capset, &header, data) == 0;
}

static int refuse_take(const Identity *identity, Error *reterr) {
        return error_layer(reterr, LAYER_IDMAP, errno, "cannot give root up for uid %u",
                           identity->uid);
}

/* Changes to the identity's uid. Afterwards, /proc/self belongs to root, but the sandbox's id map
 * is written through it. If no other process has the uid, PR_SET_DUMPABLE gives /proc/self to the
 * uid until the sandbox has started (launch.c). If another process may have it, that process could
 * then trace holt and take its descriptors, so identity_reach_maps() is used instead. */
int identity_take(const Launch *launch, Error *reterr) {
        const Identity *identity = &launch->identity;
        const bool own = identity_is_own(identity);

        forget_environment();
        if ((!own && prctl(PR_SET_KEEPCAPS, 1) < 0) || setgroups(0, NULL) < 0 ||
            setresgid(identity->gid, identity->gid, identity->gid) < 0 ||
            setresuid(identity->uid, identity->uid, identity->uid) < 0 ||
            !set_capabilities(own ? 0 : 1U << CAP_SETUID, 0) || prctl(PR_SET_DUMPABLE, own) < 0)
                return refuse_take(identity, reterr);
        return 0;
}

/* Takes root's id for file access (setfsuid(2)) for a while, so that this process can open root's
 * files in /proc/self. To write the map, only the effective uid counts. */
int identity_reach_maps(const Launch *launch, Error *reterr) {
        const Identity *identity = &launch->identity;

        if (!identity->taken || identity_is_own(identity))
                return 0;
        if (!set_capabilities(1U << CAP_SETUID, 1U << CAP_SETUID))
                return refuse_take(identity, reterr);
        (void)setfsuid(0);
        if (!set_capabilities(0, 0) || prctl(PR_SET_DUMPABLE, 0) < 0)
                return refuse_take(identity, reterr);
        return 0;
}

void identity_leave_maps(uid_t uid) {
        (void)setfsuid(uid);
        (void)prctl(PR_SET_DUMPABLE, 0);
}
