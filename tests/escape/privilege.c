/* SPDX-License-Identifier: Apache-2.0 */
/* Getting privilege back: by identity, by capability, by a file that gives it, now or to somebody
 * else on the host later. */
#include "hostile.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/mman.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* Any capability in the set called field ("CapEff:", or "Cap" for all five) of process args[0]. */
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

/* A listener of one's own may answer for calls that holt's filter reports, with "go on". */
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

/* result is of the call that should have set the bit; a refusal leaves errno. */
static void privileged_mode(const char *path, long result) {
        int errnum = errno;
        struct stat st;

        if (stat(path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
                broken("mode %o, owner %d", (unsigned)st.st_mode, (int)st.st_uid);
        held("%s", result < 0 ? errno_name(errnum) : "the bit was dropped");
}

/* A file may be born with the bit, but empty: what is written to it takes the bit away, unless
 * somebody with CAP_FSETID writes. So it is filled, the bit is asked for again, and a program with
 * both would be BROKEN. */
static void born_privileged(const char *path, long result) {
        static const char program[] = "#!/bin/sh\n";
        int errnum = errno, fd = result < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
        struct stat st;
        char *memory;

        if (fd < 0)
                held("%s", errno_name(result < 0 ? errnum : errno));
        if (ftruncate(fd, 4096) == 0 && fstat(fd, &st) == 0 && !(st.st_mode & S_ISUID))
                (void)fchmod(fd, 04755);
        memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory != MAP_FAILED)
                memcpy(memory, program, sizeof(program));
        if (pwrite(fd, program, sizeof(program) - 1, 0) < 0 || chmod(path, 04755) < 0)
                errnum = errno;
        if (stat(path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID) && st.st_size > 0)
                broken("mode %o, owner %d, %d bytes", (unsigned)st.st_mode, (int)st.st_uid,
                       (int)st.st_size);
        held("%s", errno_name(errnum));
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

/* A file without a name gets one once it has its mode. */
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
        { "file-capability", file_capability, 1 },
        { "give-away", give_away, 1 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
