/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the hostile programs share.
 *
 * Each program is a table of attacks on one boundary. "PROGRAM ATTACK [ARG...]" tries one of them
 * in a child of its own, prints one line, "ATTACK VERDICT DETAIL", and exits with
 *
 *   0  HOLDS    the boundary refused; the detail is the errno or the signal
 *   1  BROKEN   the attack succeeded
 *   2  UNTRIED  it could not be tried; the detail says why, and a test counts that as a failure
 *
 * Run without the sandbox, the same program is the control: it must print BROKEN there, or the test
 * could not fail. Controls run on a developer's machine, even as root, so an attack stops at the
 * first proof of its success. */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))

/* Calls from 424 on have the same number on every architecture; the C library's headers may be
 * older. */
enum {
        CALL_pidfd_getfd = 438,
        CALL_open_tree = 428,
        CALL_move_mount = 429,
        CALL_fsopen = 430,
        CALL_fsconfig = 431,
        CALL_fsmount = 432,
        CALL_fspick = 433,
        CALL_clone3 = 435,
        CALL_openat2 = 437,
        CALL_mount_setattr = 442,
        CALL_quotactl_fd = 443,
        CALL_fchmodat2 = 452,
        CALL_setxattrat = 463,
        CALL_open_tree_attr = 467,
};

typedef struct Attack {
        const char *name;
        void (*run)(
                char **args); /* Ends in held(), broken() or untried(). args is NULL-terminated. */
        int args;             /* Number of its arguments. */
} Attack;

static const char *attack_name;

__attribute__((noreturn, format(printf, 3, 4))) static void verdict(int code, const char *word,
                                                                    const char *fmt, ...) {
        char detail[600], line[800];
        va_list ap;
        int n;

        va_start(ap, fmt);
        (void)vsnprintf(detail, sizeof(detail), fmt, ap);
        va_end(ap);
        n = snprintf(line, sizeof(line), "%s %s %s\n", attack_name, word, detail);
        if (write(STDOUT_FILENO, line, (size_t)n) != n)
                _exit(2);
        _exit(code);
}

#define held(...) verdict(0, "HOLDS", __VA_ARGS__)
#define broken(...) verdict(1, "BROKEN", __VA_ARGS__)
#define untried(...) verdict(2, "UNTRIED", __VA_ARGS__)

static inline const char *errno_name(int errnum) {
        const char *name = strerrorname_np(errnum);

        return name ? name : "an unknown errno";
}

/* For a call whose success is the attacker's goal. */
__attribute__((noreturn, unused)) static void got(long result) {
        if (result >= 0)
                broken("returned %ld", result);
        held("%s", errno_name(errno));
}

/* For a call with harmless arguments: any answer except a refusal means that the kernel went past
 * its checks and looked at them. */
__attribute__((noreturn, unused)) static void reached(long result) {
        if (result < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS))
                held("%s", errno_name(errno));
        broken("the kernel acted on it: %s", result < 0 ? errno_name(errno) : "success");
}

static inline int hostile_end(int status) {
        if (WIFEXITED(status))
                return WEXITSTATUS(status);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
                printf("%s HOLDS SIGSYS\n", attack_name);
                return 0;
        }
        printf("%s UNTRIED ended with status %d\n", attack_name, status);
        return 2;
}

static inline int hostile_main(const Attack *attacks, size_t count, int argc, char **argv) {
        int status;
        pid_t pid;

        for (size_t i = 0; argc > 1 && i < count; i++) {
                if (strcmp(attacks[i].name, argv[1]) != 0 || argc != attacks[i].args + 2)
                        continue;
                attack_name = attacks[i].name;
                pid = fork();
                if (pid == 0) {
                        attacks[i].run(argv + 2);
                        untried("the attack gave no verdict");
                }
                if (pid < 0 || waitpid(pid, &status, 0) != pid)
                        return 2;
                return hostile_end(status);
        }
        fprintf(stderr, "usage: %s ATTACK [ARG...]\n", argv[0]);
        for (size_t i = 0; i < count; i++)
                fprintf(stderr, "  %s (%d arguments)\n", attacks[i].name, attacks[i].args);
        return 2;
}
