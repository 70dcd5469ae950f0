/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time tool: prints syscalls-numbers.c, the numbers of all rows on the target architecture
 * ("x86_64" or "aarch64"). Only this tool links libseccomp, which knows the numbers of every
 * architecture. */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>

#include "policy/syscalls/table.h"

typedef struct Arch {
        const char *name;
        uint32_t seccomp_arch;
        const char *audit_arch;
} Arch;

static const Arch arches[] = {
        { "x86_64", SCMP_ARCH_X86_64, "AUDIT_ARCH_X86_64" },
        { "aarch64", SCMP_ARCH_AARCH64, "AUDIT_ARCH_AARCH64" },
};

/* From 424 on, a call has the same number on every architecture. libseccomp knows only the calls of
 * its release, and denies some that came to aarch64 later. So this table is looked at first. */
static const struct {
        const char *name;
        int nr;
} generic_numbers[] = {
        { "pidfd_send_signal", 424 },
        { "io_uring_setup", 425 },
        { "io_uring_enter", 426 },
        { "io_uring_register", 427 },
        { "open_tree", 428 },
        { "move_mount", 429 },
        { "fsopen", 430 },
        { "fsconfig", 431 },
        { "fsmount", 432 },
        { "fspick", 433 },
        { "pidfd_open", 434 },
        { "clone3", 435 },
        { "close_range", 436 },
        { "openat2", 437 },
        { "pidfd_getfd", 438 },
        { "faccessat2", 439 },
        { "process_madvise", 440 },
        { "epoll_pwait2", 441 },
        { "mount_setattr", 442 },
        { "quotactl_fd", 443 },
        { "landlock_create_ruleset", 444 },
        { "landlock_add_rule", 445 },
        { "landlock_restrict_self", 446 },
        { "memfd_secret", 447 },
        { "process_mrelease", 448 },
        { "futex_waitv", 449 },
        { "set_mempolicy_home_node", 450 },
        { "cachestat", 451 },
        { "fchmodat2", 452 },
        { "map_shadow_stack", 453 },
        { "futex_wake", 454 },
        { "futex_wait", 455 },
        { "futex_requeue", 456 },
        { "statmount", 457 },
        { "listmount", 458 },
        { "lsm_get_self_attr", 459 },
        { "lsm_set_self_attr", 460 },
        { "lsm_list_modules", 461 },
        { "mseal", 462 },
        { "setxattrat", 463 },
        { "getxattrat", 464 },
        { "listxattrat", 465 },
        { "removexattrat", 466 },
        { "open_tree_attr", 467 },
        { "file_getattr", 468 },
        { "file_setattr", 469 },
};

/* Calls only of x86_64, newer than some releases of libseccomp: from Linux 6.11 and 6.18. */
static const struct {
        const char *name;
        int nr;
} x86_64_numbers[] = {
        { "uretprobe", 335 },
        { "uprobe", 336 },
};

/* Returns -1 if the architecture has no such call. */
static int gen_number_of(const char *name, const Arch *arch) {
        int nr;

        for (size_t i = 0; i < ELEMENTSOF(generic_numbers); i++)
                if (streq(generic_numbers[i].name, name))
                        return generic_numbers[i].nr;
        for (size_t i = 0; i < ELEMENTSOF(x86_64_numbers); i++)
                if (streq(x86_64_numbers[i].name, name))
                        return arch->seccomp_arch == SCMP_ARCH_X86_64 ? x86_64_numbers[i].nr : -1;
        /* libseccomp returns negative numbers for calls of other architectures and for unknown
         * names. */
        nr = seccomp_syscall_resolve_name_arch(arch->seccomp_arch, name);
        return nr < 0 ? -1 : nr;
}

/* A name that no architecture has is a typing mistake in the table; the intended call would stay
 * unknown. */
static int gen_check_row(const SyscallRow *row) {
        for (size_t i = 0; i < ELEMENTSOF(arches); i++)
                if (gen_number_of(row->name, &arches[i]) >= 0)
                        return 0;
        (void)fprintf(stderr, "gen-syscalls: no system call is called \"%s\"\n", row->name);
        return -EINVAL;
}

static int print_numbers(const Arch *arch) {
        printf("/* Made by policy/syscalls/gen-syscalls.c. */\n"
               "#include <linux/audit.h>\n\n"
               "#include \"policy/syscalls/table.h\"\n\n"
               "const uint32_t syscalls_audit_arch = %s;\n"
               "const int16_t syscall_numbers[] = {\n",
               arch->audit_arch);
        for (size_t i = 0; i < syscall_rows_count; i++) {
                int nr = gen_number_of(syscall_rows[i].name, arch);

                if (gen_check_row(&syscall_rows[i]) < 0)
                        return -EINVAL;
                if (nr >= SYSCALL_NUMBERS_END) {
                        (void)fprintf(stderr, "gen-syscalls: %s is %d, past SYSCALL_NUMBERS_END\n",
                                      syscall_rows[i].name, nr);
                        return -ERANGE;
                }
                printf("        %d, /* %s */\n", nr, syscall_rows[i].name);
        }
        printf("};\n"
               "const size_t syscall_numbers_count = ELEMENTSOF(syscall_numbers);\n");
        return fflush(stdout) == 0 ? 0 : -EIO;
}

int main(int argc, char **argv) {
        for (size_t i = 0; argc == 2 && i < ELEMENTSOF(arches); i++)
                if (streq(arches[i].name, argv[1]))
                        return print_numbers(&arches[i]) < 0;
        (void)fprintf(stderr, "usage: gen-syscalls x86_64|aarch64 > syscalls-numbers.c\n");
        return 2;
}
