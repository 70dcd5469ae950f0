/* SPDX-License-Identifier: Apache-2.0 */
/* New namespaces, and entering existing ones. In a user namespace of its own, a program has every
 * capability again, and with them the kernel's largest attack surface. */
#include "hostile.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* The kernel reads 32 bits of the flags: a filter that compares all 64 lets this pass. */
#define HIGH_BIT (1UL << 32)

struct clone3_args {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

static void unshare_flags(unsigned long flags) {
        got(syscall(SYS_unshare, flags));
}

static void unshare_user(char **args) {
        (void)args;
        unshare_flags(CLONE_NEWUSER);
}

static void unshare_all(char **args) {
        (void)args;
        unshare_flags(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID);
}

static void unshare_mount(char **args) {
        (void)args;
        unshare_flags(CLONE_NEWNS);
}

static void unshare_net(char **args) {
        (void)args;
        unshare_flags(CLONE_NEWNET);
}

static void unshare_pid(char **args) {
        (void)args;
        unshare_flags(CLONE_NEWPID);
}

static void unshare_time(char **args) {
        (void)args;
        unshare_flags(CLONE_NEWTIME);
}

/* Ends the child of a successful clone at once. */
static void cloned(long pid) {
        if (pid == 0)
                _exit(0);
        got(pid);
}

static void clone_flags(unsigned long flags) {
        cloned(syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0));
}

static void clone_user(char **args) {
        (void)args;
        clone_flags(CLONE_NEWUSER);
}

static void clone_user_high(char **args) {
        (void)args;
        clone_flags(CLONE_NEWUSER | HIGH_BIT);
}

static void clone_mount(char **args) {
        (void)args;
        clone_flags(CLONE_NEWNS);
}

/* clone3 takes its flags from memory, which a filter cannot read. So it must be refused as a whole,
 * with ENOSYS, so that C libraries fall back to clone. */
static void clone3_user(char **args) {
        struct clone3_args clone3 = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };

        (void)args;
        cloned(syscall(CALL_clone3, &clone3, sizeof(clone3)));
}

/* pid: the process whose namespace is entered. */
static void enter(const char *pid, const char *name, int type) {
        char path[64];
        int fd;

        (void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                held("%s", errno_name(errno));
        reached(syscall(SYS_setns, fd, type));
}

static void setns_uts(char **args) {
        enter(args[0], "uts", CLONE_NEWUTS);
}

static void setns_user(char **args) {
        enter(args[0], "user", CLONE_NEWUSER);
}

static void setns_mount(char **args) {
        enter(args[0], "mnt", CLONE_NEWNS);
}

static void write_map(char **args) {
        int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);

        (void)args;
        if (fd < 0)
                held("%s", errno_name(errno));
        got(write(fd, "0 0 1\n", 6));
}

static const Attack attacks[] = {
        { "unshare-user", unshare_user, 0 },   { "unshare-all", unshare_all, 0 },
        { "unshare-mount", unshare_mount, 0 }, { "unshare-net", unshare_net, 0 },
        { "unshare-pid", unshare_pid, 0 },     { "unshare-time", unshare_time, 0 },
        { "clone-user", clone_user, 0 },       { "clone-user-high-bit", clone_user_high, 0 },
        { "clone-mount", clone_mount, 0 },     { "clone3-user", clone3_user, 0 },
        { "setns-uts", setns_uts, 1 },         { "setns-user", setns_user, 1 },
        { "setns-mount", setns_mount, 1 },     { "write-uid-map", write_map, 0 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
