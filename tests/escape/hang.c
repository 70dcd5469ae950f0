/* SPDX-License-Identifier: Apache-2.0 */
/* "hang CALL COMMAND [ARG...]": a host on which the system call with the number CALL hangs, as if
 * a server did not answer. It returns ENOSYS after COMMAND has ended. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argc > 2 ? (unsigned)atoi(argv[1]) : 0, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .filter = filter, .len = 4 };
        int listener, status = 0;
        pid_t pid;

        if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return 2;
        listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
        if (listener < 0) {
                perror("hang");
                return 2;
        }
        pid = fork();
        if (pid == 0) {
                (void)close(listener);
                execv(argv[2], argv + 2);
                perror(argv[2]);
                _exit(2);
        }
        (void)waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
