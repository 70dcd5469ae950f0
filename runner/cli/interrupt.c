/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. If root runs holt, holt has given root up before Ctrl-C comes, so that
 * kill(2) reaches only holt itself. But the kernel can send a signal when a pipe has something to
 * read. The kernel judges the right to send it by the ids that the pipe's owner had when F_SETOWN
 * was called. So root prepares a pipe whose signal goes to the caller's process group, and nowhere
 * else. Thanks to that pipe, no process must stay root. */
#include "cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/util.h"
#include "base/strings.h"

static int group_pipe[2] = { FD_NONE, FD_NONE }; /* For the process group; or FD_NONE. */

void interrupt_prepare(void) {
        const pid_t group = getpgrp();

        /* The group is 0 if it is outside of holt's PID namespace. */
        if (geteuid() != 0 || group <= 1 || pipe2(group_pipe, O_CLOEXEC) < 0)
                return;
        if (fcntl(group_pipe[0], F_SETOWN, -group) == 0 &&
            fcntl(group_pipe[0], F_SETSIG, SIGINT) == 0)
                return;
        for (size_t i = 0; i < ELEMENTSOF(group_pipe); i++)
                group_pipe[i] = fd_close(group_pipe[i]);
}

/* Sends SIGINT to the caller's process group. The kernel sends signals for the pipe only with
 * O_ASYNC, which is set only here. */
static void interrupt_group(void) {
        (void)(group_pipe[0] >= 0 && fcntl(group_pipe[0], F_SETFL, O_ASYNC) == 0 &&
               write(group_pipe[1], "", 1) == 1);
        (void)kill(0, SIGINT);
}

/* The key went to the command's terminal alone, because holt had set the caller's terminal to raw
 * mode. Without raw mode, the kernel would have sent SIGINT to the whole job, for example to a
 * script that calls holt in a loop. So holt sends it now. */
int interrupt_end(const char *cause, int exit_code, Interrupt by) {
        sigset_t set;

        if (by == INTERRUPT_NONE || exit_code != 128 + SIGINT ||
            (!streq(cause, cause_name(CAUSE_SIGNALED)) && !streq(cause, cause_name(CAUSE_KILLED))))
                return exit_code;
        (void)fflush(NULL);
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGINT);
        (void)signal(SIGINT, SIG_DFL);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
        if (by == INTERRUPT_KEY)
                interrupt_group();
        (void)kill(getpid(), SIGINT);
        return exit_code;
}
