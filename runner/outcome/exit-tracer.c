/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/exit-tracer.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "base/sys.h"

/* Linux 5.5; some build hosts have older kernel headers. */
#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1U
#endif

/* Room for the kernel's struct, which may grow. */
enum { RESPONSE_ROOM = 512 };

/* Up to Linux 5.15, a process that dumps core waits for all processes with the same memory, and no
 * signal ends this wait. If one of them stopped before its end because the dumping process traces
 * it, both would wait forever. Since Linux 5.16, a process waits only for its own threads. */
static bool kernel_dumps_processes_alone(void) {
        unsigned major = 0, minor = 0;
        struct utsname name;

        if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
                return false;
        return major > 5 || (major == 5 && minor >= 16);
}

/* Whether the call sets options, as the first part of attaching to a process or later. The filter
 * reports that only if they contain PTRACE_O_TRACEEXIT. */
static bool sets_options(const struct seccomp_data *call) {
        return call->nr == SYS_ptrace && (call->args[3] & PTRACE_O_TRACEEXIT) &&
               (call->args[0] == PTRACE_SEIZE || call->args[0] == PTRACE_SETOPTIONS);
}

static bool exit_tracer_lives(const ExitTracer *tracer) {
        struct pollfd end = { .fd = tracer->pidfd, .events = POLLIN };

        if (tracer->pidfd < 0)
                return false;
        return poll(&end, 1, 0) < 0 || !(end.revents & POLLIN);
}

static int exit_tracer_continue(int listener_fd, uint64_t id) {
        union {
                struct seccomp_notif_resp resp;
                char room[RESPONSE_ROOM];
        } answer = { .resp = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE } };

        return ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0 ? -errno : 1;
}

/* If the answer can be sent, the caller has waited for it since the report. So pidfd_open() cannot
 * have opened another process with the same PID. */
int exit_tracer_answer(ExitTracer *tracer, int listener_fd, const struct seccomp_notif *call) {
        const pid_t pid = (pid_t)call->pid;
        int pidfd, r;

        if (!sets_options(&call->data) || !kernel_dumps_processes_alone())
                return 0;
        if (exit_tracer_lives(tracer))
                return pid == tracer->pid ? exit_tracer_continue(listener_fd, call->id) : 0;
        pidfd = sys_pidfd_open(pid);
        if (pidfd < 0)
                return 0;
        r = exit_tracer_continue(listener_fd, call->id);
        if (r < 0) {
                fd_close(pidfd);
                return r;
        }
        fd_close(tracer->pidfd);
        *tracer = (ExitTracer){ .pid = pid, .pidfd = pidfd };
        return r;
}
