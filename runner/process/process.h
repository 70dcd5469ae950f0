/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that a session's clients have started: one for each exec, with everything it
 * started.
 *
 * A process is running until its command has ended; what that has left behind runs on below its
 * monitor (helpers/session-init.c), and prints on, until it is gone. Ended ones are kept for a
 * while, with their output. What comes from init is checked as an attacker's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/strings.h"
#include "helpers/session-protocol.h"
#include "sandbox/launch.h"
#include "sandbox/outcome.h"
#include "process/capture.h"

enum {
        PROCESSES_LIVE_MAX = SESSION_EXECS_MAX,
        PROCESSES_ENDED_MAX = 256,     /* that are kept, the oldest go first */
        PROCESSES_KEPT_MAX = 32 << 20, /* bytes of output of all ended ones */
        PROCESS_INPUT_MAX = 8 << 20,   /* bytes written to stdin that wait for the process */
        PROCESS_UNGUARDED_MAX = 400,   /* bytes of a text */
};

typedef struct Processes Processes;
typedef struct ProcessStart ProcessStart;

typedef enum ProcessInput {
        INPUT_NONE,   /* /dev/null */
        INPUT_PIPE,   /* open until process_close_input() */
        INPUT_SOCKET, /* the same, and the other end can be read: process->input */
} ProcessInput;

/* What to start. fds that are not FD_NONE are taken over in any case. */
typedef struct ProcessSpec {
        StrList argv, env; /* argv is taken over; env is the whole environment */
        const char *cwd;   /* borrowed; absolute */
        const char *asked; /* for what cwd, as messages name it; borrowed; NULL: as it is */
        uint64_t timeout;  /* usec of wall time from the request on; 0 is none */
        int fds[3]; /* for stdin, stdout and stderr; FD_NONE: a pipe of the keeper's, or input */
        ProcessInput input;
        unsigned terminal; /* a bit for each of fds 0 to 2 that is the terminal, made inside */
        bool background;   /* ... whose keys it gets only when it reads from it */
        bool give_master;  /* the terminal's master is the client's, who reads and writes it */
        uint16_t rows, columns;
        const uint8_t *mode; /* struct termios as TCSETS takes it, or NULL */
        size_t kept;         /* bytes of each stream */
        bool keep_tail;
        RpcConnection *owner; /* it is killed when this connection ends; or NULL */
        struct Grant *grant;  /* what it may call, or NULL; the process's once it is started */
} ProcessSpec;

typedef struct Process {
        struct Process *next;
        Processes *all;
        uint32_t number; /* p1, p2, ... */
        char id[16];
        StrList argv;  /* until it is answered */
        char *command; /* for people: the words, quoted where that is needed */
        char *cwd;     /* for people */
        int pid;       /* inside */
        bool answered; /* it has been started, or could not be */
        bool started, running, gone;
        bool alone;   /* its command has ended, and has left no process */
        bool done;    /* with what it was started for: how it ends is nothing to audit */
        bool stopped; /* as far as was heard: what goes on inside by itself says nothing */
        bool settled; /* it has ended, and its output up to there has been read */
        uint64_t started_at_ms, started_at, ended_at; /* since the epoch; usec of time_now_usec() */
        Outcome outcome;
        Error error; /* where cause is CAUSE_ERROR */
        Capture output;
        bool elsewhere[CAPTURE_STREAMS]; /* what it prints there goes to a client's fd or terminal
                                          */
        RpcConnection *owner;
        struct Grant *grant;     /* until it is gone; or NULL */
        char *params;            /* of the call that started it, as the history has them, or NULL */
        const char *method;      /* its name */
        uint64_t history;        /* a row of the store's while it runs, or 0 */
        char unrecorded[160];    /* why its end was not in the history at once; "" where it was */
        uint64_t unrecorded_row; /* as store/unwritten.h numbers it */
        Denials denied_before;
        /* It has settled, or a run of its code has, and the keeper has yet to look at protected
         * paths, or is looking: its end is told after that, and it does not make room before. */
        bool sweep_due, sweep_runs;
        StrList set_aside;                     /* what was, relative to the workspace */
        char unguarded[PROCESS_UNGUARDED_MAX]; /* why something could not be; or "" */
        const char *replaced; /* the path for which the sandbox was stopped, or NULL; borrowed */

        /* private */
        int streams[CAPTURE_STREAMS], input, master;
        LoopWatch *stream_watches[CAPTURE_STREAMS], *input_watch;
        char *pending; /* bytes for stdin */
        size_t pending_length;
        bool input_ends;
        LoopTimer *timer;
        uint64_t timeout;
        bool timed_out, killed, has_terminal, gives_master;
        bool doomed;         /* init was told KILL: the timer is for its report of the end */
        bool withdrawn;      /* ... or was not told of it at all */
        bool slow;           /* ... and the timer is for an end that takes long */
        bool hang_up;        /* its terminal is to be told so again, at the time of the timer */
        ProcessStart *start; /* init has not been told yet, or NULL */
        bool resume_due;     /* init is to put it into the foreground */
        uint64_t signals_due, kills_due; /* a bit for each that init is to be told: 1 is signal 1 */
} Process;

typedef struct ProcessEvents {
        /* It runs now, or could not be started (process->outcome.cause is CAUSE_ERROR). master_fd
         * is taken over if it was asked for, else FD_NONE. */
        void (*answered)(void *data, Process *process, int master_fd);
        /* Its command, which is on a terminal, was stopped by signal: SIGTSTP, SIGTTIN, ... */
        void (*stopped)(void *data, Process *process, int signal);
        /* Its command has ended and its output so far is there. */
        void (*settled)(void *data, Process *process);
        /* Nothing that it has started is there any more. */
        void (*gone)(void *data, Process *process);
        /* Init has not ended one that it was to kill: the sandbox has to be stopped. */
        void (*stuck)(void *data);
        /* It makes room for others, and is freed after this. */
        void (*dropped)(void *data, Process *process);
        void *data;
} ProcessEvents;

/* Whether no look at protected paths is to come that it waits for. */
static inline bool process_is_swept(const Process *process) {
        return !process->sweep_due && !process->sweep_runs;
}

/* launch and sandbox are borrowed. 0 or a negative errno. */
int processes_new(Loop *loop, const Launch *launch, Sandbox *sandbox, const ProcessEvents *events,
                  Processes **ret, Error *reterr);
/* NULL is legal; returns NULL. */
Processes *processes_free(Processes *all);

/* Reads what init says: to be called when sandbox->control_fd is readable. 0, or -EPIPE when init
 * is gone. */
int processes_listen(Processes *all);

/* The sandbox is killed because the host replaced path, which outlives all: notes that in every
 * process that has not settled. */
void processes_kill_replaced(Processes *all, const char *path);
/* The sandbox has ended: settles every process that init has reported the start of, but not the
 * end. */
void processes_settle(Processes *all);
/* The sandbox has ended, and with it those that were to end: that is their cause. */
void processes_end_told(Processes *all);

/* init is gone: what it was still to be told is not done. Those of whom it has not heard are
 * answered with ESHUTDOWN. */
void processes_give_up(Processes *all);

/* Starts a process; whether it runs the events say. -EBUSY with an ERROR_LIMIT at
 * PROCESSES_LIVE_MAX, -E2BIG, -ENOMEM. */
int process_start(Processes *all, ProcessSpec *spec, Process **ret, Error *reterr);

/* By "p3". -ENOENT with an ERROR_MISSING. */
int process_find(Processes *all, const char *id, Process **ret, Error *reterr);
Process *processes_first(Processes *all);
/* How many have a process inside. */
unsigned processes_live(const Processes *all);

/* The oldest of those that have ended go, where they have more than they may; not from an event.
 * A start does the same. */
void processes_make_room(Processes *all);

/* Takes in what it has printed up to now. */
void process_drain(Process *process);
/* Its watchers hold its output (capture_hold()) in another way than before. */
void process_follow_output(Process *process);

/* To its command's process group. */
void process_signal(Process *process, int signal);
/* To all that it has started, in whatever group, which goes on then if it was stopped. */
void process_signal_all(Process *process, int signal);
/* Puts its command into the foreground of its terminal and lets all that it has started go on. */
void process_resume(Process *process);
/* Whether nothing is left of it, or only its monitor, which is ending. */
bool process_is_over(const Process *process);
/* Kills everything it has started, what its command has left included, also before its command has
 * started. If init does not report that end within seconds, the process ends nevertheless, and the
 * sandbox is stopped. */
void process_kill(Process *process);
/* The same, by TERM first, with HUP for what has a terminal, and after the policy's kill_after by
 * KILL. */
void process_terminate(Process *process);

/* Writes bytes to stdin, and queues what it has no room for. -EPIPE with an ERROR_USAGE where that
 * is no pipe or has been closed, -ENOSPC with an ERROR_LIMIT at PROCESS_INPUT_MAX. */
int process_write(Process *process, const char *data, size_t length, Error *reterr);
/* Writes at once what there is room for. */
void process_flush_input(Process *process);
/* Once all queued bytes are written. */
void process_close_input(Process *process);
/* -ENOTTY with an ERROR_USAGE where it has no terminal here. */
int process_resize(Process *process, uint16_t rows, uint16_t columns, Error *reterr);

/* A client has gone: what it owned and has not ended is killed. */
void processes_forget(Processes *all, RpcConnection *connection);
/* The watchers of connection go on. */
void processes_pump(Processes *all);
