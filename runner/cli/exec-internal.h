/* SPDX-License-Identifier: Apache-2.0 */
/* One command in a session, for exec.c, exec-attend.c and sh.c. */
#pragma once

#include "cli/ask.h"
#include "cli/exec-asking.h"
#include "cli/exec-line.h"
#include "cli/tools.h"
#include "outcome/outcome.h"
#include "streams/tail.h"
#include "streams/terminal.h"

typedef struct Exec {
        ExecLine line;
        bool lost;         /* the session ended, so the command's end is unknown */
        bool ended;        /* the command was ended before it had started */
        uint64_t resuming; /* id of the process.resume request that is not answered yet; or 0 */
        TerminalPlan plan;
        Terminal *terminal;
        Interrupt interrupt;
        RpcClient *client;
        ToolHost *tools;
        ExecAsking *asking; /* NULL without --ask or a terminal */
        char id[32];
        int signal_fd;
        uint64_t deadline; /* usec of time_now_usec(); 0 is none */
        Waker waker;       /* set to deadline, if the command has a terminal */
        char *report_path; /* absolute, or NULL */
        int report_fd;
        Answer show;        /* reply to session.show, if a document is to be written */
        RpcMessage settled; /* the reply to process.wait */
        Tail printed;       /* the end of stderr, as far as it is known */
        off_t began;        /* offset at which the command's stderr began in its file, or -1 */
        Answer refused;     /* reply to process.explain */
} Exec;
/* The versions of clang-format disagree about this macro. */
/* clang-format off */
#define EXEC_NONE                                                                                  \
        {                                                                                          \
                .line = EXEC_LINE_NONE, .plan = { .output_fd = FD_NONE }, .signal_fd = FD_NONE,    \
                .report_fd = FD_NONE, .show = ANSWER_NONE, .refused = ANSWER_NONE,                 \
                .settled = RPC_MESSAGE_NONE                                                        \
        }
/* clang-format on */

/* Opens exec->signal_fd, for the signals that holt passes on. They are blocked then. */
int exec_open_signals(Exec *exec, Error *reterr);

/* Waits until the command has ended; started is the reply to process.spawn. The result goes to
 * exec->settled. Returns 0 or a negative errno. */
int exec_attend(Exec *exec, RpcMessage *started, Error *reterr);

/* Runs the command of exec->line and prints the result. Returns the exit code. */
int exec_main(Exec *exec, Error *error);

/* Prints the result, or error, which is NULL if holt itself did not fail. Returns the exit code. */
int exec_tell(const Exec *exec, Error *error);
