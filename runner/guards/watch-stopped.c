/* SPDX-License-Identifier: Apache-2.0 */
/* The watch of a holt that is stopped as a job of the caller's shell.
 *
 * Theory of operation. A stopped holt reads no SIGIO, and processes inside may go on. For example,
 * a process whose timer sends it SIGCONT is not stopped. So a child watches in holt's place. It is
 * in a session of its own, which no key stops, and ends with holt. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/time.h"
#include "guards/watch.h"

static void stand_in(const Watch *watch, int pidfd, pid_t parent) {
        sigset_t changes;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(0);
        (void)setsid();
        (void)sigemptyset(&changes);
        (void)sigaddset(&changes, WATCH_SIGNAL);
        if (watch_take_over(watch) < 0)
                (void)sys_pidfd_send_signal(pidfd, SIGKILL);
        for (;;) {
                const uint64_t before = time_now_usec();
                struct timespec pause;

                if (watch_find_replaced(watch)) {
                        (void)sys_pidfd_send_signal(pidfd, SIGKILL);
                        _exit(0);
                }
                pause.tv_sec = 0;
                pause.tv_nsec = (long)(watch_pause(time_now_usec() - before) % 1000000) * 1000;
                (void)nanosleep(&pause, NULL);
                (void)sigwaitinfo(&changes, NULL);
        }
}

int watch_stopped_begin(const Watch *watch, int pidfd, pid_t *ret) {
        const pid_t parent = getpid();

        *ret = 0;
        if (!watch)
                return 0;
        *ret = fork();
        if (*ret == 0)
                stand_in(watch, pidfd, parent);
        return *ret < 0 ? -errno : 0;
}

int watch_stopped_end(const Watch *watch, pid_t pid) {
        if (pid <= 0)
                return 0;
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        return watch_take_over(watch);
}
