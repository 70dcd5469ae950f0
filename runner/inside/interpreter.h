/* SPDX-License-Identifier: Apache-2.0 */
/* A session has two lasting interpreters, each started when it is first needed: a python3, and a
 * bash, which is called the shell.
 *
 * Theory of operation. The interpreter is an ordinary process of the session (process.h). The
 * python3 executes helpers/python/holt_interpreter.py, and interpreter-shell.c says how the bash is
 * driven. stdin is a socket, on which each answer is one JSON object a line. An interpreter gets
 * one request at a time; the others wait here in order. Its code prints to the process's own pipes,
 * so output includes that of all programs that the code started. Time decides which run owns
 * output: everything read before the answer belongs to the run. Code waits for a watching client,
 * just as it would for the reader of a pipe, until it is interrupted. An answer is an attacker's
 * word: it is bounded, parsed strictly, and copied member by member.
 *
 * A run that takes too long is interrupted (SIGINT). If it goes on for kill_after, the interpreter
 * is killed with everything that it started, and the next run gets a new one.
 *
 * When a client goes, its waiting requests go too. Its current run continues, because the variables
 * belong to all clients. A run in a fresh interpreter has no other user, so it ends. */
#pragma once

#include "inside/tools.h"
#include "process/process.h"

enum {
        INTERPRETER_QUEUE_MAX = 64,        /* Requests that wait for one interpreter. */
        INTERPRETER_ANSWER_MAX = 16 << 20, /* Bytes of one answer. */
        INTERPRETERS_ONCE_MAX = 16,        /* Fresh interpreters, one per run, at the same time. */
};

#define INTERPRETER_MODULE "/run/holt/python/holt_interpreter.py"

typedef struct Interpreters Interpreters;

/* The functions of one language, Python or the shell (interpreter-internal.h). */
typedef struct InterpreterKind InterpreterKind;
extern const InterpreterKind interpreter_python, interpreter_shell;

/* Members of a session that its interpreters need. */
typedef struct InterpreterSession {
        /* These are borrowed. */
        const InterpreterKind *kind;
        Loop *loop;
        Processes *processes;
        const LaunchPlan *plan;
        const char *program;        /* Interpreter named in the policy, or NULL. */
        const Denials *denials;     /* Denials in the session so far. */
        const Network *network;     /* The session's network, whose denials count too. */
        const GatewayLink *gateway; /* The same for its routes. */
        void *data;                 /* Passed to the functions below. */
        void (*on_run)(void *data); /* A run begins. */
        /* Returns whether the session's history has a call of method. */
        bool (*has_run)(void *data, const char *method);
        /* A run has ended, but its process goes on. The session must call interpreter_swept()
         * afterwards. */
        void (*on_run_end)(void *data, Process *process);
        /* A run has exceeded its timeout; id is that of its process. */
        void (*on_timeout)(void *data, const char *id);
        /* Writes a run to the history, as a call of method; params and result are JSON. Returns
         * NULL, or the reason why the row is not written yet. */
        const char *(*note)(void *data, const char *method, const char *params, const char *result,
                            uint64_t started_ms);
        /* Writes the members "denials", "limits_hit" and "timeout_by_project". timeout: usec; 0
         * means no limit. complaint: the message of the error that ended the run, perhaps ""; NULL
         * if the run succeeded. */
        void (*write_denials)(void *data, const Process *process, uint64_t timeout,
                              const char *complaint, JsonWriter *w);
} InterpreterSession;

/* Copies session. Returns 0 or -ENOMEM. */
int interpreters_new(const InterpreterSession *session, Interpreters **ret, Error *reterr);
/* Must come before the processes are freed. NULL is legal; returns NULL. */
Interpreters *interpreters_free(Interpreters *all);

/* A run of code. Everything is borrowed, except the grant. */
typedef struct CodeRun {
        const char *code, *cwd; /* cwd: absolute path, or NULL to change nothing. */
        const char *file;       /* File name that the code sees as its own, or NULL. */
        const char *name;       /* Name for interpreter_interrupt(), or NULL. */
        const StrList *env;     /* "NAME=VALUE": python3 has them for this run, bash keeps them. */
        /* Tools that the run may call; taken over even on failure, ends with the run. */
        struct Grant *grant;
        uint64_t timeout;     /* usec; 0 means no limit. */
        size_t kept;          /* Bytes kept of each stream. */
        bool keep_tail, once; /* once: use a fresh interpreter, which ends with the run. */
        bool watch;           /* Send process.output notifications to the call's connection. */
        bool base64;
} CodeRun;

/* Runs code, and replies to call with the result. Returns 0 or a negative errno with the error:
 * -EBUSY at a limit, -ENOMEM, and those of process_start(). */
int interpreter_run(Interpreters *all, RpcCall *call, const CodeRun *run, Error *reterr);
/* Makes a request that runs no code ("variables", "save" or "load"), and replies to call with the
 * answer. path may be NULL. Errors as above. */
int interpreter_ask(Interpreters *all, RpcCall *call, const char *what, const char *path,
                    Error *reterr);

/* Interrupts the current run; false if nothing runs. With name, interrupts the client's run of that
 * name in any interpreter; a run that still waits is replied to with an error. */
bool interpreter_interrupt(Interpreters *all, const RpcConnection *client, const char *name);
/* Kills the interpreter and fails all waiting requests; false if none runs. With name, kills the
 * interpreter that has begun that run; a run that still waits is only cancelled. */
bool interpreter_kill(Interpreters *all, const RpcConnection *client, const char *name);

/* Continues requests that waited because their client did not read. Call it when a client reads
 * again. */
void interpreters_pump(Interpreters *all);
/* Call it for every process once the process or a run of its code has ended and protected paths
 * have been checked. */
void interpreter_swept(Interpreters *all, Process *process);
