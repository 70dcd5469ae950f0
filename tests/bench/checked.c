/* SPDX-License-Identifier: Apache-2.0 */
/* checked COMMAND...: runs a command under a filter that allows every system call, and under one
 * Landlock rule that allows writing everywhere. The kernel's own checks then cost as little as they
 * can, and none of holt's are there. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From landlock(7): the header of the build host may be older. */
enum { WRITE_FILE = 1 << 1, RULE_PATH_BENEATH = 1 };

struct __attribute__((packed)) path_rule {
        uint64_t allowed;
        int32_t parent_fd;
};

static int fail(const char *step) {
        perror(step);
        return 125;
}

int main(int argc, char **argv) {
        const uint64_t handled = WRITE_FILE;
        const struct path_rule rule = { WRITE_FILE, open("/", O_PATH | O_CLOEXEC) };
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        const struct sock_fprog filter = { 1, &allow };
        const int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);

        if (argc < 2)
                return 125;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return fail("no_new_privs");
        if (rules < 0 || syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0) < 0 ||
            syscall(SYS_landlock_restrict_self, rules, 0) < 0)
                return fail("Landlock");
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
                return fail("seccomp");
        execvp(argv[1], argv + 1);
        return fail(argv[1]);
}
