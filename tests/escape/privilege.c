/* SPDX-License-Identifier: Apache-2.0 */
/* Getting privilege back: by identity, by capability, or by a file that gives privilege, now or
 * later to another user of the host. */
#include "hostile.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* Finds a capability in the set `field` ("CapEff:", or "Cap" for all five) of process args[0]. */
static void no_caps(const char *pid, const char *field) {
        char path[64], line[256];
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
        f = fopen(path, "re");
        if (!f)
                untried("%s: %s", path, errno_name(errno));
        for (int seen = 0; fgets(line, sizeof(line), f); seen++) {
                line[strcspn(line, "\n")] = '\0';
                if (strncmp(line, field, strlen(field)) == 0 &&
                    strtoull(strchr(line, ':') + 1, NULL, 16) != 0)
                        broken("%s", line);
        }
        held("every set is empty");
}

static void capabilities(char **args) {
        no_caps(args[0], "Cap");
}

static void effective(char **args) {
        (void)args;
        no_caps("self", "CapEff:");
}

static void new_privs(char **args) {
        (void)args;
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
                held("no_new_privs is set");
        broken("no_new_privs is not set");
}

/* For a SUID copy of this program. */
static void effective_uid(char **args) {
        (void)args;
        if (geteuid() == 0 || geteuid() != getuid() || getegid() != getgid())
                broken("uid %d, effective %d", (int)getuid(), (int)geteuid());
        held("uid and effective uid %d", (int)geteuid());
}

static void become_root(char **args) {
        (void)args;
        got(syscall(SYS_setresuid, 0, 0, 0));
}

static void become_root_group(char **args) {
        (void)args;
        got(syscall(SYS_setresgid, 0, 0, 0));
}

static void drop_groups(char **args) {
        (void)args;
        got(syscall(SYS_setgroups, 0, NULL));
}

static void raise_caps(char **args) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { { .effective = 1U << CAP_SYS_ADMIN,
                                                    .permitted = 1U << CAP_SYS_ADMIN } };

        (void)args;
        got(syscall(SYS_capset, &header, data));
}

static void raise_inheritable(char **args) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { { .inheritable = 1U << CAP_SYS_ADMIN } };

        (void)args;
        got(syscall(SYS_capset, &header, data));
}

static void securebits(char **args) {
        (void)args;
        got(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
}

/* A listener of the command's own could answer "continue" to calls that holt's filter reports. */
static void listener(char **args) {
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog program = { .len = 1, .filter = &allow };

        (void)args;
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        got(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 8 /* NEW_LISTENER */, &program));
}

static void raise_limit(char **args) {
        struct rlimit limit;

        (void)args;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                untried("getrlimit: %s", errno_name(errno));
        limit.rlim_max++;
        got(setrlimit(RLIMIT_NOFILE, &limit));
}

/* --- files that carry privilege: args[0] is a path that does not exist yet --- */

static int make_file(const char *path, int flags, mode_t mode) {
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, mode);

        (void)umask(0);
        if (fd < 0)
                untried("%s: %s", path, errno_name(errno));
        return fd;
}

/* result belongs to the call that should have set the bit; if it was refused, errno tells why. */
static void privileged_mode(const char *path, long result) {
        int errnum = errno;
        struct stat st;

        if (stat(path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
                broken("mode %o, owner %d", (unsigned)st.st_mode, (int)st.st_uid);
        held("%s", result < 0 ? errno_name(errnum) : "the bit was dropped");
}

/* A file that is created with S_ISGID and without S_IXGRP keeps the bit when it is written. */
static void born_privileged(const char *path, long result) {
        if (result < 0)
                held("%s", errno_name(errno));
        privileged_mode(path, result);
}

static void suid_chmod(char **args) {
        (void)make_file(args[0], 0, 0755);
        privileged_mode(args[0], chmod(args[0], 04755));
}

static void suid_fchmod(char **args) {
        privileged_mode(args[0], fchmod(make_file(args[0], 0, 0755), 04755));
}

static void suid_fchmodat(char **args) {
        (void)make_file(args[0], 0, 0755);
        privileged_mode(args[0], syscall(SYS_fchmodat, AT_FDCWD, args[0], 04755));
}

static void suid_fchmodat2(char **args) {
        (void)make_file(args[0], 0, 0755);
        privileged_mode(args[0], syscall(CALL_fchmodat2, AT_FDCWD, args[0], 04755, 0));
}

/* The kernel reads 16 bits of a mode. */
static void suid_high(char **args) {
        (void)make_file(args[0], 0, 0755);
        privileged_mode(args[0],
                        syscall(SYS_fchmodat, AT_FDCWD, args[0], 04755 | (1UL << 32) | 1 << 20));
}

static void suid_open(char **args) {
        (void)umask(0);
        born_privileged(args[0], syscall(SYS_openat, AT_FDCWD, args[0], O_RDWR | O_CREAT, 04755));
}

static void suid_openat2(char **args) {
        uint64_t how[3] = { O_RDWR | O_CREAT, 04755, 0 };

        (void)umask(0);
        born_privileged(args[0], syscall(CALL_openat2, AT_FDCWD, args[0], how, sizeof(how)));
}

/* A file without a name gets one after its mode was set. */
static void suid_tmpfile(char **args) {
        char dir[1000], path[64];
        int fd;

        (void)umask(0);
        (void)snprintf(dir, sizeof(dir), "%s", args[0]);
        *strrchr(dir, '/') = '\0';
        fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 04755);
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        born_privileged(args[0],
                        fd < 0 ? -1 : linkat(AT_FDCWD, path, AT_FDCWD, args[0], AT_SYMLINK_FOLLOW));
}

static void suid_mknod(char **args) {
        (void)umask(0);
        born_privileged(args[0], syscall(SYS_mknodat, AT_FDCWD, args[0], S_IFREG | 04755, 0));
}

#ifdef __x86_64__
static void suid_old_open(char **args) {
        (void)umask(0);
        born_privileged(args[0], syscall(SYS_open, args[0], O_RDWR | O_CREAT, 04755));
}

static void suid_creat(char **args) {
        (void)umask(0);
        born_privileged(args[0], syscall(SYS_creat, args[0], 04755));
}

static void suid_old_mknod(char **args) {
        (void)umask(0);
        born_privileged(args[0], syscall(SYS_mknod, args[0], S_IFREG | 04755, 0));
}

static void suid_old_chmod(char **args) {
        (void)make_file(args[0], 0, 0755);
        privileged_mode(args[0], syscall(SYS_chmod, args[0], 04755));
}
#endif

static void sgid_open(char **args) {
        (void)umask(0);
        born_privileged(args[0], syscall(SYS_openat, AT_FDCWD, args[0], O_RDWR | O_CREAT, 02745));
}

static void sgid_tmpfile(char **args) {
        char dir[1000];

        (void)umask(0);
        (void)snprintf(dir, sizeof(dir), "%s", args[0]);
        *strrchr(dir, '/') = '\0';
        got(open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 02745));
}

/* --- access control lists: a mode that seccomp does not see --- */

typedef enum XattrCall { BY_PATH, BY_LINK, BY_FD, BY_AT } XattrCall;

static long set_xattr(XattrCall call, const char *path, const char *name, const void *value,
                      size_t size) {
        const struct {
                uint64_t value;
                uint32_t size, flags;
        } at = { (uint64_t)(uintptr_t)value, (uint32_t)size, 0 };

        switch (call) {
        case BY_PATH:
                return syscall(SYS_setxattr, path, name, value, size, 0);
        case BY_LINK:
                return syscall(SYS_lsetxattr, path, name, value, size, 0);
        case BY_FD:
                return syscall(SYS_fsetxattr, open(path, O_RDONLY | O_CLOEXEC), name, value, size,
                               0);
        default:
                return syscall(CALL_setxattrat, AT_FDCWD, path, 0, name, &at, sizeof(at));
        }
}

/* acl(5) in the format of linux/posix_acl_xattr.h: owner, group, others. */
typedef struct Acl {
        uint32_t version;
        struct {
                uint16_t tag, perm;
                uint32_t id;
        } entries[3];
} Acl;

static const Acl all_of_it = {
        .version = 2,
        .entries = { { 0x01, 7, -1U }, { 0x04, 7, -1U }, { 0x20, 7, -1U } },
};

/* Creates the file with S_ISGID and without S_IXGRP, writes it, and makes it executable by an
 * ACL. */
static void sgid_by_acl(const char *path, XattrCall call) {
        int fd = (umask(0), open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 02745));
        struct stat st;

        if (fd < 0)
                fd = make_file(path, 0, 0745); /* The ACL alone must be refused too. */
        if (write(fd, "#!/bin/sh\n", 10) != 10)
                untried("write: %s", errno_name(errno));
        if (set_xattr(call, path, "system.posix_acl_access", &all_of_it, sizeof(all_of_it)) < 0)
                held("%s", errno_name(errno));
        if (fstat(fd, &st) == 0 && st.st_mode & S_ISGID && st.st_mode & S_IXGRP)
                broken("mode %o, group %d", (unsigned)st.st_mode, (int)st.st_gid);
        broken("the mode is %o", (unsigned)st.st_mode);
}

static void sgid_acl(char **args) {
        sgid_by_acl(args[0], BY_PATH);
}

static void sgid_acl_link(char **args) {
        sgid_by_acl(args[0], BY_LINK);
}

static void sgid_acl_fd(char **args) {
        sgid_by_acl(args[0], BY_FD);
}

static void sgid_acl_at(char **args) {
        sgid_by_acl(args[0], BY_AT);
}

/* Makes files that root creates below it later writable for all, whatever root's umask. */
static void default_acl(char **args) {
        char path[1000];
        struct stat st;

        if (mkdir(args[0], 0755) < 0)
                untried("mkdir: %s", errno_name(errno));
        if (set_xattr(BY_PATH, args[0], "system.posix_acl_default", &all_of_it, sizeof(all_of_it)) <
            0)
                held("%s", errno_name(errno));
        (void)umask(077);
        (void)snprintf(path, sizeof(path), "%s/file", args[0]);
        if (stat(path, &st) < 0 && close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) == 0 &&
            stat(path, &st) == 0 && st.st_mode & S_IWOTH)
                broken("mode %o under umask 077", (unsigned)st.st_mode);
        broken("the ACL was set");
}

static void file_capability(char **args) {
        struct vfs_cap_data data = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                                     .data = { { .permitted = 1U << CAP_NET_RAW } } };

        (void)make_file(args[0], 0, 0755);
        got(setxattr(args[0], "security.capability", &data, sizeof(data), 0));
}

static void give_away(char **args) {
        (void)make_file(args[0], 0, 0755);
        got(chown(args[0], 0, 0));
}

static const Attack attacks[] = {
        { "capabilities", capabilities, 1 },
        { "effective", effective, 0 },
        { "new-privs", new_privs, 0 },
        { "effective-uid", effective_uid, 0 },
        { "become-root", become_root, 0 },
        { "become-root-group", become_root_group, 0 },
        { "drop-groups", drop_groups, 0 },
        { "raise-caps", raise_caps, 0 },
        { "raise-inheritable", raise_inheritable, 0 },
        { "securebits", securebits, 0 },
        { "raise-limit", raise_limit, 0 },
        { "listener", listener, 0 },
        { "suid-chmod", suid_chmod, 1 },
        { "suid-fchmod", suid_fchmod, 1 },
        { "suid-fchmodat", suid_fchmodat, 1 },
        { "suid-fchmodat2", suid_fchmodat2, 1 },
        { "suid-high-bit", suid_high, 1 },
        { "suid-open", suid_open, 1 },
        { "suid-openat2", suid_openat2, 1 },
        { "suid-tmpfile", suid_tmpfile, 1 },
        { "suid-mknod", suid_mknod, 1 },
#ifdef __x86_64__
        { "suid-old-open", suid_old_open, 1 },
        { "suid-creat", suid_creat, 1 },
        { "suid-old-mknod", suid_old_mknod, 1 },
        { "suid-old-chmod", suid_old_chmod, 1 },
#endif
        { "sgid-open", sgid_open, 1 },
        { "sgid-tmpfile", sgid_tmpfile, 1 },
        { "sgid-acl", sgid_acl, 1 },
        { "sgid-acl-link", sgid_acl_link, 1 },
        { "sgid-acl-fd", sgid_acl_fd, 1 },
        { "sgid-acl-at", sgid_acl_at, 1 },
        { "default-acl", default_acl, 1 },
        { "file-capability", file_capability, 1 },
        { "give-away", give_away, 1 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
