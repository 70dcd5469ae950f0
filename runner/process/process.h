/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that a session's clients have started: one for each exec, with everything it
 * started.
 *
 * A process is running until its command has ended. Processes that the command has left continue
 * below its monitor (helpers/session-init.c), and continue to print, until the last one is gone.
 * Ended processes are kept for a while, with their output. Every message from init is checked,
 * because an attacker may have sent it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/strings.h"
#include "helpers/session-protocol.h"
#include "outcome/outcome.h"
#include "process/capture.h"
#include "sandbox/launch.h"
#include "streams/tail.h"

enum {
        PROCESSES_LIVE_MAX = SESSION_EXECS_MAX,
        PROCESSES_ENDED_MAX = 256,     /* number kept; the oldest are dropped first */
        PROCESSES_UNREAD_MAX = 512,    /* the same with those whose output waits for a reader */
        PROCESSES_KEPT_MAX = 32 << 20, /* bytes of output kept of all ended processes */
        PROCESS_INPUT_MAX = 8 << 20,   /* bytes for stdin that wait until the process reads */
        PROCESS_UNGUARDED_MAX = 400,   /* bytes of the text */
};

typedef struct Processes Processes;
typedef struct ProcessStart ProcessStart;

typedef enum ProcessInput {
        INPUT_NONE, /* /dev/null */
        INPUT_PIPE, /* a pipe, open until process_close_input() */
        /* A socket, open until process_close_input(). The keeper can also read its end,
         * process->input. */
        INPUT_SOCKET,
} ProcessInput;

/* A command to start. process_start() always takes ownership of the fds that are not FD_NONE. */
typedef struct ProcessSpec {
        StrList argv, env; /* argv is taken over; env is the whole environment */
        const char *cwd;   /* borrowed; absolute */
        const char *asked; /* borrowed: the cwd as messages name it; NULL: cwd itself */
        uint64_t timeout;  /* usec of wall time, from the request on; 0 is none */
        /* stdin, stdout and stderr. FD_NONE: the keeper makes a pipe; for stdin, input decides. */
        int fds[3];
        unsigned detours; /* a bit for each of fds that the command must not get (detour.c) */
        ProcessInput input;
        unsigned terminal; /* a bit for each of fds 0 to 2 that is the terminal made inside */
        bool background;   /* that terminal gets keys only once the command reads from it */
        bool give_master;  /* the client gets the terminal's master, and reads and writes it */
        uint16_t rows, columns;
        const uint8_t *mode; /* struct termios as TCSETS takes it, or NULL */
        size_t kept;         /* bytes to keep of each stream */
        bool keep_tail;
        RpcConnection *owner; /* or NULL; its end kills the process */
        /* The tools that it may call, or NULL; owned by the process once it is started. */
        struct Grant *grant;
} ProcessSpec;

typedef struct Process {
        struct Process *next;
        Processes *all;
        uint32_t number; /* p1, p2, ... */
        char id[16];
        StrList argv;  /* empty once the process is answered */
        char *command; /* for people: the words, with quotes if needed */
        char *cwd;     /* for people */
        int pid;       /* PID inside */
        bool answered; /* it was started, or could not be started */
        bool started, running, gone;
        bool alone; /* its command has ended, and has left no process */
        bool done;  /* the code that it was started for has ended, so its own end is not audited */
        bool stopped; /* by init's reports; a stop inside the sandbox is not reported */
        bool settled; /* it has ended, and its output up to there was read or delivered */
        uint64_t started_at_ms, started_at, ended_at; /* ms since the epoch; usec */
        Outcome outcome;
        Error error; /* set if cause is CAUSE_ERROR */
        Capture output;
        bool elsewhere[CAPTURE_STREAMS]; /* the stream goes to a client's fd or terminal */
        RpcConnection *owner;
        struct Grant *grant;  /* until the process is gone; or NULL */
        char *params;         /* parameters of the call that started it, for the history, or NULL */
        const char *method;   /* name of the method that started it */
        uint64_t history;     /* id of its row in the store while it runs, or 0 */
        char unrecorded[160]; /* why the history did not get its end at once, or "" */
        uint64_t unrecorded_row; /* number of that row in store/unwritten.h */
        Denials denied_before;
        NetCounts net_denied_before;
        GatewayCounts gateway_denied_before;
        /* The process, or a run of its code, has ended. The keeper must still check protected paths
         * (due), or is checking them (runs). The end is reported, and the process may be dropped,
         * only after the check. */
        bool sweep_due, sweep_runs;
        StrList set_aside;                     /* paths set aside, relative to the workspace */
        StrList still_aside;                   /* those of the host that were set aside before */
        char unguarded[PROCESS_UNGUARDED_MAX]; /* why something could not be set aside, or "" */
        const char *replaced; /* borrowed: the path for which the sandbox was stopped, or NULL */
        /* The end of stderr, if it was read on its way to the caller's pipe (overhear.c), or NULL.
         */
        Tail *overheard;
        char stream_error[80]; /* why the caller's file could not be written or read; or "" */

        /* private */
        int streams[CAPTURE_STREAMS], input, master;
        LoopWatch *stream_watches[CAPTURE_STREAMS], *input_watch;
        /* detour.c: the caller's files, or FD_NONE; a watch while the file has no room. */
        int sinks[CAPTURE_STREAMS], source;
        LoopWatch *sink_watches[CAPTURE_STREAMS];
        bool sink_full[CAPTURE_STREAMS]; /* the stream waits until the sink has room */
        /* overhear.c: bits for the streams that it reads, and for those of them whose sink is not a
         * named pipe. */
        unsigned overhears, plain;
        /* The command has ended, and the process settles when the caller's pipe has taken `owed`
         * bytes, or at the time of the timer. */
        bool delivers;
        size_t owed[CAPTURE_STREAMS];
        off_t source_at;
        char *pending; /* bytes for stdin */
        size_t pending_length;
        bool input_ends;
        LoopTimer *timer;
        uint64_t timeout;
        bool timed_out, killed, has_terminal, gives_master;
        bool doomed;         /* init was told KILL, and the timer limits its report of the end */
        bool withdrawn;      /* killed before init was told to start it */
        bool slow;           /* doomed, and the timer gives a slow init more time */
        bool hang_up;        /* at the time of the timer, SIGHUP is sent to its terminal again */
        ProcessStart *start; /* the start that init was not told yet, or NULL */
        bool resume_due;     /* init must put it into the foreground */
        uint64_t signals_due, kills_due; /* a bit for each; bit 0 is signal 1 */
} Process;

typedef struct ProcessEvents {
        /* The process runs, or could not be started (process->outcome.cause is CAUSE_ERROR). The
         * handler owns master_fd, which is FD_NONE unless it was asked for. */
        void (*answered)(void *data, Process *process, int master_fd);
        /* Its command, which has a terminal, was stopped by signal: SIGTSTP, SIGTTIN, ... */
        void (*stopped)(void *data, Process *process, int signal);
        /* Its command has ended, and its output so far was read. */
        void (*settled)(void *data, Process *process);
        /* Its last process is gone. */
        void (*gone)(void *data, Process *process);
        /* Init has not ended a process that it was told to kill, so the sandbox must be stopped. */
        void (*stuck)(void *data);
        /* The process is dropped to make room, and is freed after this. */
        void (*dropped)(void *data, Process *process);
        void *data;
} ProcessEvents;

/* Returns true if no check of protected paths is due or running for the process. */
static inline bool process_is_swept(const Process *process) {
        return !process->sweep_due && !process->sweep_runs;
}

/* Makes the table. launch and sandbox are borrowed. Returns 0 or a negative errno. */
int processes_new(Loop *loop, const Launch *launch, Sandbox *sandbox, const ProcessEvents *events,
                  Processes **ret, Error *reterr);
/* Writes the output that waits for the caller's named pipes and terminals (detour.c), as far as
 * they have room until `end`, in usec of time_now_usec(). */
void processes_flush(Processes *all, uint64_t end);
/* Returns NULL. all may be NULL. */
Processes *processes_free(Processes *all);

/* The file in the session's directory that has the last number of a process. */
#define PROCESS_NUMBER_FILE "process.last"
/* Reads it. Returns 0 if fd is negative, or if no process has got a number. */
uint32_t process_read_number(int fd);
/* Continues the numbers of processes after those of earlier keepers. fd, which is taken, is the
 * file that has the last one. No number is used twice, so that an id never means another process.
 */
void processes_continue_numbers(Processes *all, int fd);
/* Returns the last number that a process of the session has got, or 0. */
uint32_t processes_last_number(const Processes *all);

/* Reads messages from init; call it when sandbox->control_fd is readable. Returns 0, or -EPIPE if
 * init is gone. */
int processes_listen(Processes *all);

/* The sandbox is killed because the host replaced path. Notes this in every process that has not
 * settled. path must outlive all. */
void processes_kill_replaced(Processes *all, const char *path);
/* The sandbox has ended: settles every process that runs according to init's reports. */
void processes_settle(Processes *all);
/* The sandbox has ended: if holt had told a process to end, that becomes the cause of its end. */
void processes_end_told(Processes *all);

/* init is gone: drops the messages to it. A process that init has not reported yet is answered with
 * ESHUTDOWN. */
void processes_give_up(Processes *all);

/* Starts a process; events report whether it runs. Returns 0, -EBUSY with an ERROR_LIMIT at
 * PROCESSES_LIVE_MAX, -E2BIG or -ENOMEM. */
int process_start(Processes *all, ProcessSpec *spec, Process **ret, Error *reterr);

/* Finds a process by an id such as "p3". Returns -ENOENT with an ERROR_MISSING if it does not
 * exist. */
int process_find(Processes *all, const char *id, Process **ret, Error *reterr);
Process *processes_first(Processes *all);
/* Returns the number of entries that still have a process inside. */
unsigned processes_live(const Processes *all);

/* Drops the oldest processes that have ended, if there are too many. Must not be called from an
 * event. A start does the same. */
void processes_make_room(Processes *all);

/* Reads what the process has printed up to now. */
void process_drain(Process *process);
/* Returns the end of what it has written to the caller's pipe, with the bytes for which the pipe
 * has no room yet. process->overheard must not be NULL. */
void process_overheard(const Process *process, Tail *ret);
/* Whether some of its output waits for room in the caller's file. */
bool process_has_output(const Process *process);
/* Whether any process has such output. */
bool processes_have_output(const Processes *all);
/* Must be called after capture_hold() has changed whether its output is held. */
void process_follow_output(Process *process);

/* Returns whether init has read all messages. It acts on them in order, so that it has already
 * acted on all except the last. */
bool processes_are_told(const Processes *all);
/* Sends a signal to the command's process group. */
void process_signal(Process *process, int signal);
/* Sends a signal to everything that the process has started, in every process group, and continues
 * what was stopped. */
void process_signal_all(Process *process, int signal);
/* Puts the command into the foreground of its terminal, and continues everything that it has
 * started. */
void process_resume(Process *process);
/* Returns whether nothing is left of the process, except perhaps its ending monitor. */
bool process_is_over(const Process *process);
/* Kills everything that the process has started, also after its command's end and before its start.
 * If init does not report the end within seconds, the process ends nevertheless, and the sandbox is
 * stopped. */
void process_kill(Process *process);
/* Ends everything that the process has started: by TERM, and HUP if it has a terminal, and by KILL
 * after the policy's kill_after. */
void process_terminate(Process *process);

/* Writes bytes to stdin, and queues bytes that do not fit. Returns 0, -EPIPE with an ERROR_USAGE if
 * stdin is not a pipe or is closed, or -ENOSPC with an ERROR_LIMIT at PROCESS_INPUT_MAX. */
int process_write(Process *process, const char *data, size_t length, Error *reterr);
/* Writes as many queued bytes as fit now. */
void process_flush_input(Process *process);
/* Closes stdin once all queued bytes are written. */
void process_close_input(Process *process);
/* Resizes the terminal. Returns -ENOTTY with an ERROR_USAGE if the process has no terminal here. */
int process_resize(Process *process, uint16_t rows, uint16_t columns, Error *reterr);

/* A client has disconnected: kills the processes that it owned. */
void processes_forget(Processes *all, RpcConnection *connection);
/* Continues to send output to the watchers of connection, which has room again. */
void processes_pump(Processes *all);
