/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal of a sandbox: a pty of its own, relayed by the launcher to the caller's terminal.
 *
 * The command never holds the caller's terminal. Each fd from 0 to 2 that is a terminal is replaced
 * by the slave of a pty in the sandbox's own devpts. Pipes and files go straight in. While the
 * command is in the foreground, the caller's terminal is raw, and all keys go through. So Ctrl-C
 * and Ctrl-Z act on the inner terminal. If stdin is a terminal and stdout is not (holt run -- ls |
 * less), another program may be reading the keys. Then the command starts in the background of its
 * terminal, and gets keys when it asks for them (SIGTTIN), as under sudo. */
#pragma once

#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/error.h"
#include "streams/relay.h"
#include "streams/stdio.h"
#include "streams/waker.h"

typedef struct TerminalPlan {
        unsigned fds;    /* Bits 0 to 2: this fd is a terminal, and becomes the sandbox's. */
        bool utf8;       /* The caller's terminal decodes UTF-8. */
        bool background; /* Pass keys only after the command asks for them. */
        int output_fd;   /* The caller's terminal opened again, or FD_NONE. Owned. */
        struct termios mode;
        struct winsize size;
} TerminalPlan;

/* Looks at fds 0 to 2, which the facts are about. The plan's fds is 0 if none of them is a
 * terminal. The plan owns output_fd: close it at the end. */
void terminal_plan(const FdFacts stdio[3], TerminalPlan *ret);

typedef struct Terminal Terminal;

/* Makes a Terminal. master_fd is borrowed and made non-blocking. Its output counts against budget,
 * which is borrowed; NULL means no limit. Returns NULL if memory is out. */
Terminal *terminal_new(const TerminalPlan *plan, int master_fd, Budget *budget);
/* Keeps the last bytes of the output in tail, which is borrowed. */
void terminal_keep(Terminal *terminal, Tail *tail);
/* Restores the caller's terminal. Unread input is thrown away if keys were passed, or if the
 * terminal may still answer something that the command printed (replies.h). */
Terminal *terminal_free(Terminal *terminal);

/* If holt is in the foreground of the caller's terminal, sets raw mode and starts to pass keys. */
void terminal_enter(Terminal *terminal);
/* Whether holt is in the foreground of the caller's terminal, and so may read from it. */
bool terminal_in_foreground(const Terminal *terminal);
/* Stops holt as a shell's job; with pid 0, stops its whole process group. Restores the caller's
 * terminal for the time of the stop. The signal is SIGTSTP, which the caller must have blocked.
 * The kernel discards it in an orphaned process group, which nobody would continue after SIGSTOP.
 * Returns after SIGCONT. waker sends SIGCONT at its time; it may be NULL.
 *
 * for_keys: holt stops only because it cannot read keys, and goes on if it is in the foreground by
 * now. A shell that ran fg before it noticed the stop would send no SIGCONT. */
void terminal_stop(Terminal *terminal, pid_t pid, bool for_keys, const Waker *waker);
/* Whether the caller has typed the key that interrupts (Ctrl-C). */
bool terminal_interrupted(const Terminal *terminal);
/* Acts as if the caller had typed that key. When it returns, the signal is sent. */
void terminal_interrupt(Terminal *terminal);
/* Passes on the caller's window size. */
void terminal_resize(Terminal *terminal);

/* terminal_poll() fills up to 3 entries for poll(2) and returns their number. After poll(2),
 * terminal_pump() takes the same entries. */
struct pollfd;
size_t terminal_poll(const Terminal *terminal, struct pollfd *fds);
void terminal_pump(Terminal *terminal, const struct pollfd *fds, size_t count);
/* Writes the rest of the sandbox's output after the command has ended. Waits at most one second at
 * a time for a stalled reader. Processes that a command in a session left behind may print forever,
 * so this ends after as many bytes as a terminal can buffer. */
void terminal_drain(Terminal *terminal);
