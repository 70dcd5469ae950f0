/* SPDX-License-Identifier: Apache-2.0 */
/* The session's interpreter: one python3 that lasts, started when it is first needed.
 *
 * Theory of operation. It is a process of the session like any other (process.h), which executes
 * helpers/python/holt_interpreter.py with a socket for stdin: one JSON object a line each way, one
 * request at a time, the rest waits here in order. What its code prints comes by the process's own
 * pipes, so that it is what all the code has started prints, and is taken apart by time: what has
 * come up to the answer belongs to the run. It waits for who watches it, as one that prints into a
 * pipe does, until it is interrupted. An answer is an attacker's word: it is bounded, parsed
 * strictly, and copied member by member.
 *
 * A run that takes too long is interrupted (SIGINT), and where that does not help within kill_after
 * the interpreter is killed with all it has started. The next run has a new one.
 *
 * When a client goes, what it has waiting goes with it. What runs goes on, for the variables are
 * everybody's; a run with an interpreter of its own has nobody left, and ends. */
#pragma once

#include "inside/tools.h"
#include "process/process.h"

enum {
        INTERPRETER_QUEUE_MAX = 64,        /* requests that wait */
        INTERPRETER_ANSWER_MAX = 16 << 20, /* bytes of one answer */
        INTERPRETERS_ONCE_MAX = 16,        /* of one run each, at the same time */
};

#define INTERPRETER_MODULE "/run/holt/python/holt_interpreter.py"

typedef struct Interpreters Interpreters;

/* What the interpreters need of the session that they belong to. */
typedef struct InterpreterSession {
        /* borrowed */
        Loop *loop;
        Processes *processes;
        const LaunchPlan *plan;
        const char *program;        /* the policy's python, or NULL */
        const Denials *denials;     /* of the session so far */
        void *data;                 /* handed to the functions */
        void (*on_run)(void *data); /* a run begins */
        /* A run has ended, and its process goes on. interpreter_swept() must follow. */
        void (*on_run_end)(void *data, Process *process);
        /* A run has exceeded its time; id is that of its process. */
        void (*on_timeout)(void *data, const char *id);
        /* Notes a run, both texts JSON. NULL, or why it is not in the history yet. */
        const char *(*note)(void *data, const char *params, const char *result,
                            uint64_t started_ms);
        /* Writes the member "denials". */
        void (*write_denials)(void *data, const Process *process, JsonWriter *w);
} InterpreterSession;

/* session is copied. 0 or -ENOMEM. */
int interpreters_new(const InterpreterSession *session, Interpreters **ret, Error *reterr);
/* NULL is legal; returns NULL. Before the processes are freed. */
Interpreters *interpreters_free(Interpreters *all);

/* What to run. All is borrowed. */
typedef struct PythonRun {
        const char *code, *cwd; /* cwd: absolute, or NULL for where the interpreter is */
        const char *file;       /* what the code calls itself, or NULL */
        const char *name;       /* for interpreter_interrupt(), or NULL */
        const StrList *env;     /* "NAME=VALUE", for this run */
        struct Grant *grant;    /* what it may call; taken over in any case, and ends with it */
        uint64_t timeout;       /* usec; 0 is none */
        size_t kept;            /* bytes of each stream */
        bool keep_tail, once;   /* once: in an interpreter of its own, which ends with it */
        bool watch;             /* the call's connection gets process.output as it comes */
        bool base64;
} PythonRun;

/* Answers call with what has become of it. 0, or a negative errno with the error: -EBUSY at one of
 * the limits, -ENOMEM, and those of process_start(). */
int interpreter_run(Interpreters *all, RpcCall *call, const PythonRun *run, Error *reterr);
/* Answers call with what the interpreter says to a request that runs no code: "variables", "save"
 * or "load"; path may be NULL. Errors as above. */
int interpreter_ask(Interpreters *all, RpcCall *call, const char *what, const char *path,
                    Error *reterr);

/* Interrupts what runs; false where nothing does. name: instead the run that client calls so,
 * wherever it runs; one that still waits is answered with an error. */
bool interpreter_interrupt(Interpreters *all, const RpcConnection *client, const char *name);
/* Kills it; what waits for it is answered with an error. false where there is none. name: instead
 * the interpreter that has come to that run; one that still waits just goes. */
bool interpreter_kill(Interpreters *all, const RpcConnection *client, const char *name);

/* A client reads again: what it has asked for, and was kept waiting for that, goes on. */
void interpreters_pump(Interpreters *all);
/* Process has settled, or a run of its code has, and protected paths have been looked at since: to
 * be called for every process. */
void interpreter_swept(Interpreters *all, Process *process);
