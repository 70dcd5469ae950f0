/* SPDX-License-Identifier: Apache-2.0 */
/* "refuse CALL:ERRNO:MASK[:ARGUMENT][,...] COMMAND [ARG...]": a host on which the kernel refuses
 * these calls. The kernel may be too old for them, or a container's seccomp profile may forbid
 * them. All are numbers. If MASK is not 0, a call is refused only if an argument has one of the
 * mask's bits. That argument is the first, or the one with the number ARGUMENT. An example is
 * clone(2) with a namespace flag. If ERRNO is 0, the call kills the thread that makes it. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ROOM = 200, RULE = 5 };

static struct sock_filter filter[ROOM];
static struct sock_fprog program = { .filter = filter };

static void add(unsigned short code, unsigned k, unsigned char yes, unsigned char no) {
        filter[program.len++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static void load(size_t offset) {
        add(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0);
}

static unsigned refusal(unsigned errnum) {
        return errnum ? SECCOMP_RET_ERRNO | errnum : SECCOMP_RET_KILL_THREAD;
}

static void add_rule(unsigned nr, unsigned errnum, unsigned mask, unsigned argument) {
        load(offsetof(struct seccomp_data, nr));
        add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3);
        load(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
        add(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1);
        add(BPF_RET | BPF_K, refusal(errnum), 0, 0);
}

static void add_refusal(unsigned nr, unsigned errnum) {
        load(offsetof(struct seccomp_data, nr));
        add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
        add(BPF_RET | BPF_K, refusal(errnum), 0, 0);
}

int main(int argc, char **argv) {
        if (argc < 3)
                return 2;
        for (char *rule = strtok(argv[1], ","); rule; rule = strtok(NULL, ",")) {
                unsigned nr, errnum, mask, argument = 0;

                if (sscanf(rule, "%u:%u:%u:%u", &nr, &errnum, &mask, &argument) < 3 ||
                    argument > 5 || program.len + RULE >= ROOM)
                        return 2;
                if (mask)
                        add_rule(nr, errnum, mask, argument);
                else
                        add_refusal(nr, errnum);
        }
        add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
                perror("refuse");
                return 2;
        }
        execv(argv[2], argv + 2);
        perror(argv[2]);
        return 2;
}
