/* SPDX-License-Identifier: Apache-2.0 */
/* "listen COMMAND [ARG...]" simulates a host on which another program already listens to the
 * command's system calls. A sandbox around holt may do that, and the kernel allows only one
 * listener. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog program = { .len = 1, .filter = &allow };
        int listener;

        if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return 2;
        listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
        /* While the fd is open somebody listens. */
        if (listener < 0 || fcntl(listener, F_SETFD, 0) < 0) {
                perror("listen");
                return 2;
        }
        execv(argv[1], argv + 1);
        perror(argv[1]);
        return 2;
}
