/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: the one host-side process of a live session.
 *
 * Theory of operation. Whoever needs a session connects to its socket, and where nobody listens
 * there starts a keeper (keeper_connect()): a process of its own, out of the caller's session and
 * environment. The keeper takes the session's lock, so that there is no second one; makes the
 * sandbox; confines itself; and serves JSON-RPC (rpc/server.h) by the table of methods.c, from one
 * loop; only long work on files has threads (files/work.h, receive.h). It ends when it is told
 * to, when nothing has used it for the session's idle time, when its directory was removed, or with
 * its sandbox; and the sandbox ends with it, however that comes (PR_SET_PDEATHSIG). What lasts is
 * on disk.
 *
 * Run by root, the keeper is the session's unprivileged uid like its sandbox, and reaches the
 * session's directory by an id-mapped mount (child/identity.h). */
#pragma once

#include <signal.h>

#include "base/wait.h"
#include "files/files.h"
#include "keeper/connect.h"
#include "files/work.h"
#include "process/process.h"
#include "rpc/server.h"
#include "sandbox/launch.h"
#include "session/directory.h"
#include "session/owner.h"
#include "session/settings.h"
#include "store/store.h"

/* What a call waits for: the start of a process, or its end, and what it is answered then. */
typedef enum WaitFor {
        WAIT_START,
        WAIT_END,
        WAIT_END_TEXT,   /* with what was printed */
        WAIT_END_BASE64, /* ... in base64 */
        WAIT_REST,       /* of the session */
} WaitFor;

/* A call that waits for a process. */
typedef struct Waiter {
        struct Waiter *next;
        struct Keeper *keeper;
        RpcCall *call;
        Process *process; /* NULL for WAIT_REST */
        WaitFor what;
        RpcLast *last; /* the answer, when the server has gone */
} Waiter;

typedef struct Sweeper Sweeper;

typedef struct Keeper {
        char name[SESSION_NAME_MAX + 1];
        int lock_fd, ready_fd, signal_fd, owner_fd;
        sigset_t signals;    /* that signal_fd reports */
        uint64_t started_ms; /* since the epoch */
        Settings settings;
        LaunchPlan plan;
        Launch launch;
        Sandbox sandbox;
        Store *store;
        Files *files;
        Works *works; /* long calls about them */
        Loop *loop;
        RpcServer *server;
        Processes *processes;
        struct Interpreters *interpreters;
        struct Tools *tools;
        struct Bridge *bridge;
        Waiter *waiters;
        struct Acts *acts;
        struct Staged *staged;
        LoopWatch *owner_watch; /* of owner_fd; NULL where the session is nobody's own */
        struct Receives *receives;
        Sweeper *sweeper;            /* sweep.c */
        struct Unwritten *unwritten; /* history and audit that wait for room */
        Denials denials, audited;
        uint64_t used_at;                      /* usec of time_now_usec() */
        char unguarded[PROCESS_UNGUARDED_MAX]; /* why the last look could not set all aside; or ""
                                                */
        LoopTimer *look_timer, *idle_timer, *stop_timer, *rest_timer, *note_timer, *sweep_timer,
                *answer_timer, *quiet_timer, *listen_timer;
        const char *replaced; /* the path for which the sandbox was stopped (guards/watch.h) */
        StrList set_aside;    /* since it was told to stop */
        char missed[PROCESS_UNGUARDED_MAX]; /* why an earlier keeper's last look was not whole; or
                                               "" */
        bool due;                           /* keeper/due.c */
        bool swept; /* a sweep has begun after the last change from inside or by a client */
        bool quiet, renewed;   /* keeper/watch.c */
        bool noting;           /* note_timer is set */
        bool lost;             /* init is gone */
        bool stopping, ending; /* it is to end; it will, when the last answers have left */
        uint64_t flush_until;  /* ... or it is this late */
} Keeper;

/* Gives up what the keeper does not need to serve; for good. 0 or a negative errno. */
int keeper_confine(const Keeper *keeper, Error *reterr);

/* --- the last look at protected paths (due.c) --- */

/* Notes that one is due, and whether an earlier keeper was killed before its own had ended. */
int keeper_due_begin(Keeper *keeper, Error *reterr);
/* The last look has ended, or nothing has run inside. */
void keeper_due_end(const Keeper *keeper);
/* What the answer to session.stop says of it. */
void keeper_due_write(const Keeper *keeper, JsonWriter *w);

/* --- deadlines of the keeper itself (end.c) --- */

/* Kills the keeper after so many usec. An earlier time that was said before holds. */
void keeper_end_within(uint64_t usec);
/* Takes that back. */
void keeper_end_never(void);
/* From now on SIGTERM starts that time, even if the loop is held up, and goes on as SIGHUP. */
void keeper_take_terminate(uint64_t usec);

/* Gives back the memory that an idle keeper can do without. */
void keeper_rest(Keeper *keeper);

/* Removes, in the background, everything that a killed keeper of the session has left unfinished
 * (files/unfinished.h). Call it before the keeper serves and after it has confined itself: the
 * thread that sweeps is confined as its maker. 0 or a negative errno. */
int keeper_sweep_unfinished(Keeper *keeper, Error *reterr);

/* --- calls that wait (wait.c) --- */

/* process runs now, or could not be started; master_fd, or FD_NONE, stays the caller's. */
void keeper_answer_started(Keeper *keeper, const Process *process, int master_fd);
/* Those whose commands have ended, as far as their clients read. */
void keeper_answer_settled(Keeper *keeper);
/* The answer timer's. */
void keeper_answer_more(void *data);
/* process makes room for others and is about to go. */
void keeper_fail_dropped(Keeper *keeper, const Process *process);
/* All that wait for a process. */
void keeper_fail_waiters(Keeper *keeper, const Error *error);
/* Before the server goes, with those that wait for anything else; and when all has come to rest. */
void keeper_take_last_answers(Keeper *keeper);
void keeper_send_last_answers(Keeper *keeper);

/* --- what is noted (notes.c) --- */

/* The note timer's: the commands that go on. */
void keeper_note_running(void *data);
/* Its command has ended. */
void keeper_note_end(Keeper *keeper, Process *process);
/* A call that took no time to speak of, or has ended. NULL, or why it is not in the history yet. */
const char *keeper_note_call(Keeper *keeper, const char *method, const char *params,
                             const char *result, uint64_t started_ms);
/* Calls that were refused since the last time; settled is the process whose command has just ended,
 * or NULL. */
void keeper_audit_denials(Keeper *keeper, const Process *settled);
/* What the process id did, or a run of its code, was ended: by a limit or by somebody. Nothing for
 * another cause. */
void keeper_audit_end(Keeper *keeper, const char *id, Cause cause);
/* An event of a protected path: "set_aside", "failed" or "replaced", and its text. */
void keeper_audit_guard(Keeper *keeper, const char *what, const char *text);
/* The sandbox was stopped because the host replaced the path; or, what is "renewed", ended because
 * the host changed it while nothing ran. */
void keeper_audit_replaced(Keeper *keeper, const char *what, const char *path);

/* --- the look at protected paths (sweep.c) --- */

/* 0 or a negative errno. */
int keeper_sweeper_new(Keeper *keeper, Error *reterr);
/* Waits for a look that runs. */
void keeper_sweeper_free(Keeper *keeper);
/* Sets aside what commands have made at protected paths, as after a single run, and tells those
 * whose sweep is due. Returns when that is done: for a keeper that ends. */
void keeper_sweep(Keeper *keeper);
/* The same beside the loop, from its next turn on. */
void keeper_sweep_soon(Keeper *keeper);
/* The sweep timer's. */
void keeper_sweep_start(void *data);
/* The same for a run that has ended and whose process goes on: interpreter_swept() follows. If the
 * policy protects nothing, nothing is due. */
void keeper_sweep_behind(Keeper *keeper, Process *process);
/* Waits for a look that runs, if any. */
void keeper_sweep_wait(Keeper *keeper);
/* Whether one runs. */
bool keeper_sweep_goes_on(const Keeper *keeper);

/* --- protected paths that the host changes (watch.c) --- */

/* A client's call, or a process inside, has ended. with_files: it may have changed some. */
void keeper_touched(Keeper *keeper, bool with_files);
/* Before the end of a command is told: whether the host replaced something while it ran. */
void keeper_check_ended(Keeper *keeper, Process *process);
/* SIGIO has come (guards/watch.h). */
void keeper_on_change(Keeper *keeper);
/* The listen timer's. */
void keeper_listen(void *data);
/* The quiet timer's, and for after a sweep. */
void keeper_look_quiet(void *data);
/* Nobody new finds the keeper; later clients wait for the next one. */
void keeper_deafen(Keeper *keeper);

/* --- for the methods --- */

/* Lets all that runs end, and then the keeper. */
void keeper_stop(Keeper *keeper);
/* Answers call when the keeper has let its session go: what runs has ended, the database is closed,
 * and somebody else may have the lock. 0 or -ENOMEM. */
int keeper_wait_for_rest(Keeper *keeper, RpcCall *call, Error *reterr);
/* Those that do. */
size_t keeper_waits_for_rest(const Keeper *keeper);
/* Answers call when process has been started, or has settled. 0 or -ENOMEM. */
int keeper_wait(Keeper *keeper, RpcCall *call, Process *process, WaitFor what, Error *reterr);
/* Has process noted in the history as a call of method, which is not copied, with params, which are
 * taken over; NULL when memory was out for them. */
void keeper_note(Keeper *keeper, Process *process, const char *method, char *params);
/* It is in the history from now on, its end still to come: for what is answered before that. */
void keeper_note_begun(Keeper *keeper, Process *process);
/* It has been used just now: neither idle nor at rest. */
void keeper_used(Keeper *keeper);
