/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal of a sandbox: a pty of its own, and the launcher between it and the caller's
 * terminal.
 *
 * The command never holds the caller's terminal: each of fds 0 to 2 that is one is replaced by the
 * slave of a pty made in the sandbox's own devpts; pipes and files go straight in. While the
 * command is in the foreground the caller's terminal is raw and all keys go through, so that Ctrl-C
 * and Ctrl-Z are those of the inner terminal. Where stdin is a terminal and stdout is not (holt run
 * -- ls | less), somebody else may be reading the keys: then the command starts in the background
 * of its terminal, and the keys are fetched when it asks for them (SIGTTIN), as sudo does. */
#pragma once

#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/error.h"
#include "streams/relay.h"
#include "streams/waker.h"

typedef struct TerminalPlan {
        unsigned fds;    /* bits 0 to 2: this fd is a terminal, and becomes the sandbox's */
        bool utf8;       /* the caller's terminal decodes UTF-8 */
        bool background; /* keys only when the command asks */
        int output_fd;   /* the caller's terminal opened anew, or FD_NONE */
        struct termios mode;
        struct winsize size;
} TerminalPlan;

/* Looks at fds 0 to 2; fds is 0 when none is a terminal. output_fd is owned by the plan: close it
 * at the end. */
void terminal_plan(TerminalPlan *ret);

typedef struct Terminal Terminal;

/* master_fd is borrowed and made non-blocking. What comes out of it counts against budget, which is
 * borrowed, or NULL for no limit. NULL when memory is out. */
Terminal *terminal_new(const TerminalPlan *plan, int master_fd, Budget *budget);
/* Gives the caller's terminal back as it was. What was typed and not read is thrown away if keys
 * were passed, or if the terminal may still answer what the command printed (replies.h). */
Terminal *terminal_free(Terminal *terminal);

/* Puts the caller's terminal into raw mode and starts to pass keys, if holt is in its foreground.
 */
void terminal_enter(Terminal *terminal);
/* Whether holt is in the foreground of the caller's terminal, and so may read from it. */
bool terminal_in_foreground(const Terminal *terminal);
/* Gives it back, before holt stops, without the answers to what was printed. */
void terminal_leave(Terminal *terminal);
/* Stops holt, or with pid 0 its whole process group, as a shell's job, and the caller's terminal is
 * as it was meanwhile; unless nobody would wake it: the kernel discards SIGTSTP, which the caller
 * has blocked, in an orphaned process group, as it would not do with SIGSTOP. Returns after
 * SIGCONT, which waker sends at its time, unless it is NULL.
 *
 * for_keys: only the keys are missing. Where holt has come to the foreground by now it does not
 * stop: a shell that has been told fg and knew of no stop sends no SIGCONT any more. */
void terminal_stop(Terminal *terminal, pid_t pid, bool for_keys, const Waker *waker);
/* Passes the caller's window size on. */
void terminal_resize(Terminal *terminal);

/* For poll(2): fills up to 3 entries and returns how many; after poll, terminal_pump() with the
 * same. */
struct pollfd;
size_t terminal_poll(const Terminal *terminal, struct pollfd *fds);
void terminal_pump(Terminal *terminal, const struct pollfd *fds, size_t count);
/* Writes out what the sandbox has printed, to its end: for when the command has ended. Waits for a
 * stalled reader at most one second at a time while nothing moves. What a command in a session has
 * left behind may print on and on: that ends with what the terminal can have held back. */
void terminal_drain(Terminal *terminal);
/* Writes out what it has printed by now, before holt stops; not without end, since somebody inside
 * may be printing still. */
void terminal_flush(Terminal *terminal);
