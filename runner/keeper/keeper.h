/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper is the one host-side process of a live session.
 *
 * Theory of operation. A client that needs a session connects to its socket. If nobody listens
 * there, the client starts a keeper (keeper_connect()), a process outside the client's login
 * session and environment. The keeper takes the session's lock, so that no second keeper can exist.
 * It makes the sandbox, confines itself, and serves JSON-RPC (rpc/server.h) by the table of
 * methods that it is given, from one loop. Only long work on files uses threads (files/work.h,
 * receive.h).
 *
 * The keeper ends on request, after the session's idle time without use, when the session's
 * directory is removed, or with its sandbox. The sandbox always ends with its keeper
 * (PR_SET_PDEATHSIG). Lasting data is on disk.
 *
 * If root runs holt, the keeper and its sandbox have the session's own unprivileged uid. The keeper
 * then reaches the session's directory by an id-mapped mount (child/identity.h). */
#pragma once

#include <signal.h>

#include "files/files.h"
#include "files/work.h"
#include "keeper/connect.h"
#include "process/process.h"
#include "rpc/server.h"
#include "sandbox/launch.h"
#include "session/directory.h"
#include "session/owner.h"
#include "session/settings.h"
#include "store/store.h"

/* Event that a call waits for, and the reply that it gets then. */
typedef enum WaitFor {
        WAIT_START,
        WAIT_END,
        WAIT_GONE,       /* Everything that the command has started has ended, too. */
        WAIT_END_TEXT,   /* With the output as text. */
        WAIT_END_BASE64, /* With the output in base64. */
        WAIT_REST,       /* The session is at rest. */
} WaitFor;

typedef struct Sweeper Sweeper;

typedef struct Keeper {
        char name[SESSION_NAME_MAX + 1];
        int lock_fd, signal_fd, owner_fd;
        sigset_t signals;    /* Signals that signal_fd reports. */
        uint64_t started_ms; /* Milliseconds since the epoch. */
        Settings settings;
        LaunchPlan plan;
        Launch launch;
        Sandbox sandbox;
        Store *store;
        Files *files;
        Works *works; /* Long calls about files. */
        Loop *loop;
        const RpcMethod *methods;
        size_t methods_count;
        RpcServer *server;
        Processes *processes;
        struct Interpreters *interpreters, *shells;
        struct Tools *tools;
        struct Bridge *bridge;
        struct Waiters *waiters; /* See wait.c. */
        struct Acts *acts;
        struct Staged *staged;
        struct Links *links;               /* See links.h. */
        LoopWatch *network_watch;          /* NULL without a network. */
        LoopWatch *gateway_watch;          /* NULL without routes. */
        struct PortWaits *ports;           /* See ports.c. */
        struct GrantWait *grants;          /* See grants.c. */
        struct RouteChange *route_changes; /* See gateway.c. */
        StrList route_env; /* Variables of the live routes, once a client has changed these. */
        struct Questions *questions; /* See questions.c; NULL until a client attends. */
        uint32_t once_next;          /* Number of the next one-time grant. */
        LoopWatch *owner_watch;      /* Watches owner_fd; NULL in a session without an owner. */
        struct Receives *receives;
        Sweeper *sweeper;            /* See sweep.c. */
        struct Unwritten *unwritten; /* Rows of history and audit that wait for disk space. */
        Denials denials, audited;
        uint64_t used_at; /* usec of time_now_usec(), at the last use. */
        /* Why the last check could not set aside everything, or "". */
        char unguarded[PROCESS_UNGUARDED_MAX];
        LoopTimer *look_timer, *idle_timer, *stop_timer, *rest_timer, *route_timer;
        /* Path whose replacement stopped the sandbox (guards/watch.h), or NULL. */
        const char *replaced;
        StrList set_aside;         /* Paths set aside since it was told to stop. */
        struct Aside *aside;       /* See aside.c; NULL without protected paths. */
        struct Due *due;           /* See due.c; NULL without protected paths. */
        struct Notes *notes;       /* See notes.c. */
        struct Watching *watching; /* See watch.c. */
        bool lost;                 /* Init has gone. */
        /* stopping: the keeper must end. ending: it ends as soon as the last replies have left. */
        bool stopping, ending;
        uint64_t flush_until; /* usec of time_now_usec() at which it ends even without that. */
} Keeper;

/* --- parts of the start that a reader shares (reader.c) --- */

/* Checks the command line and the descriptors that the process was given, leaves the caller's
 * session and streams, and sets the deadline for the start. Returns 0 or a negative errno. */
int keeper_begin(Keeper *keeper, int argc, char **argv, Error *reterr);
/* Reads the session's settings, and makes its plan. Returns 0 or a negative errno. */
int keeper_read_plan(Keeper *keeper, StoreMode mode, Error *reterr);
/* Makes the parts that read files in sandbox.root_fd. Returns 0 or a negative errno. */
int keeper_show_files(Keeper *keeper, Error *reterr);

/* Gives up permanently all rights that the keeper does not need to serve. Returns 0 or a negative
 * errno. A step in the tables of keepers and readers, so the argument is not const. */
int keeper_confine(Keeper *keeper, Error *reterr);

/* --- the last check of protected paths (due.c) --- */

/* Records that a check is due, and whether an earlier keeper was killed before its own check had
 * ended. */
int keeper_due_begin(Keeper *keeper, Error *reterr);
/* Returns why an earlier keeper's last check was incomplete, or "". */
const char *keeper_due_missed(const Keeper *keeper);
/* Audits and forgets that reason, after a reply has told it. */
void keeper_due_told(Keeper *keeper);
/* Removes the record that a check is due: the last check has ended, or nothing has run inside. */
void keeper_due_end(const Keeper *keeper);
/* Writes the members of the reply to session.stop that describe this check. */
void keeper_due_write(const Keeper *keeper, JsonWriter *w);
/* Frees what keeper_due_begin() has made. The record stays. */
void keeper_due_free(Keeper *keeper);

/* --- files of the host that are still set aside (aside.c) --- */

/* Reads the names that earlier keepers have noted. Returns 0 or -ENOMEM. */
int keeper_aside_load(Keeper *keeper, Error *reterr);
void keeper_aside_free(Keeper *keeper);
/* Notes the name of a file that a sweep has set aside, if the host made that file. */
void keeper_aside_add(Keeper *keeper, const char *moved);
/* Lists, in replies about process, the set-aside files that still exist. */
void keeper_aside_tell(Keeper *keeper, Process *process);
/* Notes the path for which this keeper stops, for the next one. A failure loses a reminder. */
void keeper_aside_note_stopped(const Keeper *keeper, const char *path);
/* Writes "stopped_for" into the first reply about a process, if an earlier keeper has stopped and
 * no reply has said so. */
void keeper_aside_write_stopped(const Keeper *keeper, const Process *process, JsonWriter *w);

/* --- deadlines of the keeper itself (end.c) --- */

/* Kills the keeper after usec microseconds, unless an earlier deadline is set. */
void keeper_end_within(uint64_t usec);
/* Cancels the deadline. */
void keeper_end_never(void);
/* Makes SIGTERM start that deadline from now on, even while the loop is blocked, and continue as
 * SIGHUP. */
void keeper_take_terminate(uint64_t usec);

/* Gives back memory that an idle keeper does not need. */
void keeper_rest(Keeper *keeper);

/* Removes, in the background, everything that a killed keeper of the session left unfinished
 * (files/unfinished.h). Call it before the keeper serves and after it has confined itself, because
 * the sweeping thread inherits the confinement. Returns 0 or a negative errno. */
int keeper_sweep_unfinished(Keeper *keeper, Error *reterr);

/* --- calls that wait (wait.c) --- */

/* Makes the list of these calls. Returns 0 or -ENOMEM. */
int keeper_waiters_new(Keeper *keeper, Error *reterr);
/* Replies to calls that wait for the start of process, which runs now or could not start. The
 * caller still owns master_fd, which may be FD_NONE. */
void keeper_answer_started(Keeper *keeper, const Process *process, int master_fd);
/* Replies to calls whose commands have ended, if their clients read. */
void keeper_answer_settled(Keeper *keeper);
/* Fails the calls that wait for process, which is about to be freed to make room for others. */
void keeper_fail_dropped(Keeper *keeper, const Process *process);
/* Fails all calls that wait for a process. */
void keeper_fail_waiters(Keeper *keeper, const Error *error);
/* The first prepares the replies to session.stop, before the server goes. The second sends them
 * once the session is at rest, and frees the list. */
void keeper_take_last_answers(Keeper *keeper);
void keeper_send_last_answers(Keeper *keeper);

/* --- the end of a command or a run, in replies (outcome.c) --- */

/* Writes the denials in the session while the process ran, or since process_mark_denials(), and the
 * limits that were reached. refusals may be NULL. */
void keeper_write_refused(const Keeper *keeper, const Process *process, const Refusals *refusals,
                          const Symptoms *symptoms, JsonWriter *w);
/* Writes the same, and whether the project has set timeout (usec; 0 is none). */
void keeper_write_denials(const Keeper *keeper, const Process *process, uint64_t timeout,
                          const Refusals *refusals, const Symptoms *symptoms, JsonWriter *w);
/* Writes the members of a process that has settled. */
void keeper_write_result(const Keeper *keeper, const Process *process, WaitFor what, JsonWriter *w);

/* --- history and audit (notes.c) --- */

/* Makes the timer that adds commands that still run to the history. Returns 0 or -ENOMEM. */
int keeper_notes_new(Keeper *keeper, Error *reterr);
void keeper_notes_free(Keeper *keeper);
/* Completes the row of a command that has ended. */
void keeper_note_end(Keeper *keeper, Process *process);
/* Adds a call that has ended. Returns NULL, or the reason why it is not in the history yet. */
const char *keeper_note_call(Keeper *keeper, const char *method, const char *params,
                             const char *result, uint64_t started_ms);
/* Adds a finished call about files or mounts to the history, unless it is part of an act. data is
 * the Keeper. Meant for rpc_server_on_answer(). */
void keeper_note_answer(RpcCall *call, const Error *error, void *data);
/* Audits the calls refused since the last time. settled is the process whose command has just
 * ended, or NULL. */
void keeper_audit_denials(Keeper *keeper, const Process *settled);
/* Ends w, an open object that describes a denial of process, and audits it. */
void keeper_audit_denial_of(const Keeper *keeper, const Process *process, JsonWriter *w);
/* Returns the end of what the process wrote to stderr, as far as the keeper has read it, with
 * blanks for NUL bytes. Owned by the caller; NULL if memory is out (refused.c). */
char *keeper_last_words(const Process *process);
/* Finds the paths that the sandbox has refused to a failed process, or to a failed run of its code,
 * and audits them. more: text to search after stderr. words: the command, which ends with NULL, or
 * NULL; its words are searched if there is no text. *ret gets the other reasons for the failure.
 * Returns NULL if no path was refused. The caller owns the result (refused.c). */
Refusals *keeper_find_refusals(const Keeper *keeper, const Process *process, const char *more,
                               char *const *words, Symptoms *ret);
/* The same for a process that still runs. Only text is searched. */
Refusals *keeper_find_running(const Keeper *keeper, const Process *process, const char *text,
                              Symptoms *ret);
/* Audits the end of process id, or of a run of its code, if a limit or a client ended it. Other
 * causes are ignored. */
void keeper_audit_end(Keeper *keeper, const char *id, Cause cause);
/* Audits an event of a protected path: "set_aside", "restored", "failed" or "replaced",
 * with its text. */
void keeper_audit_guard(Keeper *keeper, const char *what, const char *text);
/* Audits that the sandbox ended because the host changed path. The word is
 * "replaced" if that stopped the sandbox, or "renewed" if nothing ran at the time. */
void keeper_audit_replaced(Keeper *keeper, const char *what, const char *path);

/* --- routes (gateway.c) --- */

/* Watches holt-gateway, if the session has routes. Returns 0 or a negative errno. */
int keeper_watch_gateway(Keeper *keeper, Error *reterr);
/* Reads the events that have come, so that a reply has its denials. */
void keeper_read_gateway(Keeper *keeper);
/* Ends holt-gateway, and audits its last requests. */
void keeper_end_gateway(Keeper *keeper);

/* --- changes of routes (gateway.c) --- */

/* Stores a route (session/route-store.h), makes it live if that is possible, and replies to call.
 * secrets_fd: a sealed memory file for holt-gateway, or FD_NONE; the caller keeps it. Returns 0 or
 * a negative errno. */
int keeper_route_add(Keeper *keeper, const char *item, int secrets_fd, RpcCall *call,
                     Error *reterr);
/* Removes the route, ends its requests, and replies to call. Returns 0 or a negative errno. */
int keeper_route_remove(Keeper *keeper, const char *name, RpcCall *call, Error *reterr);
/* holt-gateway has replied to the oldest change. reason: why it failed, or NULL. */
void keeper_on_route_changed(Keeper *keeper, const char *reason);
/* Replies to clients whose change holt-gateway has not carried out in time. */
void keeper_on_route_late(void *data);
/* holt-gateway has gone. */
void keeper_fail_routes(Keeper *keeper);
void keeper_routes_free(Keeper *keeper);

/* --- the network (network.c) --- */

/* Watches holt-egress, if the session has a network. Returns 0 or a negative errno. */
int keeper_watch_network(Keeper *keeper, Error *reterr);
/* Reads the events that have come, so that a reply has its denials. */
void keeper_read_network(Keeper *keeper);
/* Ends holt-egress, and audits its last connections. */
void keeper_end_network(Keeper *keeper);

/* --- forwarded ports (ports.c) --- */

/* Makes the list of calls that wait. Returns 0 or -ENOMEM. */
int keeper_ports_new(Keeper *keeper, Error *reterr);
void keeper_ports_free(Keeper *keeper);
/* Opens a port of the host for one inside, and replies to call with its address. If port->host is 0
 * and some port of the same address already leads to the port inside, the reply is that port.
 * Returns 0 or a negative errno. */
int keeper_forward_port(Keeper *keeper, const NetPort *port, RpcCall *call, Error *reterr);
/* Closes the ports of the host that lead to the port inside, or only the port `host` if it is not
 * 0. Replies to call with the last of them. Returns 0 or a negative errno. */
int keeper_close_port(Keeper *keeper, uint16_t inside, uint16_t host, RpcCall *call, Error *reterr);
/* Takes a reply of holt-egress. */
void keeper_on_port(Keeper *keeper, const EgressEvent *event);
/* Fails the calls that wait: holt-egress has ended. */
void keeper_fail_ports(Keeper *keeper);

/* --- grants (grants.c) --- */

/* Adds the rules, which are taken over, and replies to call when they are in force. once: each of
 * them holds for one connection. Returns 0 or a negative errno. */
int keeper_grant(Keeper *keeper, StrList *rules, bool once, RpcCall *call, Error *reterr);
/* The same for the answer to question id of holt-egress, without a call. */
int keeper_grant_asked(Keeper *keeper, StrList *rules, bool once, uint32_t id, Error *reterr);
/* holt-egress has replied to the oldest grant. */
void keeper_on_grant(Keeper *keeper, const EgressEvent *event);
/* holt-egress has gone. */
void keeper_fail_grants(Keeper *keeper);
void keeper_grants_free(Keeper *keeper);

/* --- questions (questions.c) --- */

/* Lets connection be asked about hosts. Returns 0, -ENOMEM, or -EINVAL without a network. */
int keeper_attend(Keeper *keeper, RpcConnection *connection, Error *reterr);
/* The connection ends, and is asked no more. */
void keeper_leave_questions(Keeper *keeper, const RpcConnection *connection);
/* A question of holt-egress has begun, or is over. */
void keeper_on_question(Keeper *keeper, const EgressEvent *event);
void keeper_on_question_end(Keeper *keeper, const EgressEvent *event);
/* Tells holt-egress the answer: one of the words of EGRESS_ANSWER. */
void keeper_answer_question(Keeper *keeper, uint32_t id, const char *word);
void keeper_questions_free(Keeper *keeper);

/* --- the check of protected paths (sweep.c) --- */

/* Makes the sweeper. Returns 0 or a negative errno. */
int keeper_sweeper_new(Keeper *keeper, Error *reterr);
/* Frees the sweeper, after a running check has ended. */
void keeper_sweeper_free(Keeper *keeper);
/* Sets aside files that commands made at protected paths, as at the end of `holt run`, and tells
 * the commands that await it. Restores files that the host replaced. Blocks until all is done, so
 * call it only when the sandbox has ended. */
void keeper_sweep(Keeper *keeper);
/* Starts a check now, on a thread, unless one runs. */
void keeper_sweep_start(Keeper *keeper);
/* Call it when a change from inside or by a client may have left a file at a protected path. */
void keeper_sweep_needed(Keeper *keeper);
/* Whether a check began after the last such change. */
bool keeper_is_swept(const Keeper *keeper);
/* Starts a check after a run whose process goes on; keeper_interpreters_swept() follows. Without
 * protected paths no check is due. */
void keeper_sweep_behind(Keeper *keeper, Process *process);
/* Waits for a running check, if any. */
void keeper_sweep_wait(Keeper *keeper);
/* Whether a check is running. */
bool keeper_sweep_goes_on(const Keeper *keeper);

/* --- protected paths that the host changes (watch.c) --- */

/* Call it when a client's call or a process inside has ended. with_files: it may have changed
 * files. */
void keeper_touched(Keeper *keeper, bool with_files);
/* Finds out whether the host replaced a protected path while the command ran. Call it before the
 * command's end is reported. */
void keeper_check_ended(Keeper *keeper, Process *process);
/* Handler of SIGIO (guards/watch.h). */
void keeper_on_change(Keeper *keeper);
/* Listens to changes again after a pause that depends on how long the last look took. The look
 * began at `began`, usec of time_now_usec(). */
void keeper_listen_later(Keeper *keeper, uint64_t began);
/* Finds out whether nothing runs inside. Call it after a sweep. */
void keeper_look_quiet(Keeper *keeper);
/* Whether the keeper ends because the host changed a path while nothing ran. */
bool keeper_is_renewed(const Keeper *keeper);
/* Makes the timers of watch.c. Returns 0 or -ENOMEM. */
int keeper_watching_new(Keeper *keeper, Error *reterr);
void keeper_watching_free(Keeper *keeper);
/* Stops listening, so that new clients wait for the next keeper. */
void keeper_deafen(Keeper *keeper);

/* --- for the methods --- */

/* Ends everything that runs, and then the keeper. */
void keeper_stop(Keeper *keeper);
/* Replies to call once the session is at rest: all processes have ended, the database is closed,
 * and another process may take the lock. Returns 0 or -ENOMEM. */
int keeper_wait_for_rest(Keeper *keeper, RpcCall *call, Error *reterr);
/* Number of calls that wait for that. */
size_t keeper_waits_for_rest(const Keeper *keeper);
/* Replies to call when process has started or settled. Returns 0 or -ENOMEM. */
int keeper_wait(Keeper *keeper, RpcCall *call, Process *process, WaitFor what, Error *reterr);
/* Adds process to the history as a call of method, which is borrowed, with params, which are taken
 * over. params is NULL if memory for them ran out. */
void keeper_note(Keeper *keeper, Process *process, const char *method, char *params);
/* Adds the row of a process now, before its end: for calls that are replied to at the start. */
void keeper_note_begun(Keeper *keeper, Process *process);
/* Records a use, which postpones the idle time and the return of memory. */
void keeper_used(Keeper *keeper);
