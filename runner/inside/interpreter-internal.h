/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of interpreter.h share: interpreter.c has the process, its channel and what waits
 * for it, interpreter-ask.c what clients ask, interpreter-answers.c what they are answered. */
#pragma once

#include "base/json.h"
#include "inside/interpreter.h"
#include "inside/tools.h"
#include "rpc/framing.h"

typedef struct Request {
        struct Request *next;
        struct Interpreter *interpreter;
        RpcCall *call;   /* NULL when its client has gone */
        uint64_t number; /* from 1; 0 is what the interpreter says at its start */
        JsonWriter line; /* finished */
        bool is_run;
        char *name;       /* by which its client knows it, or NULL */
        const char *what; /* of one that runs nothing: "variables", "save" or "load" */
        uint64_t timeout;
        size_t kept;
        bool keep_tail, base64;
        RpcConnection *watcher; /* or NULL */
        char *params;           /* for the history */
        Grant *grant;           /* until it has been answered; or NULL */
        uint64_t came_ms, asked_at;
        bool timed_out;
} Request;

typedef struct Interpreter {
        struct Interpreter *next; /* of those that run once */
        Interpreters *all;
        bool once;
        Process *process; /* NULL where there is none */
        int channel;      /* to be read */
        LoopWatch *watch;
        Framing in;
        bool ready, asked;            /* it has said so; the first request has been sent */
        bool stopped;                 /* it is being killed by word of a client */
        bool broken;                  /* it said what no interpreter says */
        bool has_run;                 /* or loaded, so that there may be variables */
        const char *lost;             /* how the one before ended by itself, between runs, with
                                         what it had; NULL once a run was told */
        uint64_t interrupts, settled; /* that were sent; of which it has been told */
        unsigned stale;               /* answers to what is answered, since the last other */
        Usage spent;                  /* up to its last answer, times only, by its own word */
        Request *first;
        JsonDocument *said; /* to the first, a run, until protected paths have been looked at */
        bool paused;        /* the channel is not watched meanwhile */
        unsigned waiting;
        LoopTimer *wake, *deadline;
} Interpreter;

struct Interpreters {
        InterpreterSession session;
        Interpreter *lasting, *once;
        uint64_t last_number;
};

/* One that has no process yet. 0 or -ENOMEM. */
int interpreter_new(Interpreters *all, bool once, Interpreter **ret, Error *reterr);
/* Interrupts the run that it has been asked for. */
void interpreter_signal(Interpreter *i);
/* By word of a client: fails what waits and kills it, whose process is there. */
void interpreter_end(Interpreter *i);

/* Returns NULL. */
Request *request_free(Request *request);
/* Has i take over a finished request of call, to be run in its turn. */
void request_append(Interpreter *i, Request *request, RpcCall *call);
/* The interpreter has been told. */
bool request_has_begun(const Request *request);
/* Frees one that has not begun. */
void request_take_back(Request *request);

/* Each answers a request, whose client may have gone, and leaves it to the caller. */

/* By what the interpreter has said, an object that may be an attacker's. */
void request_answer(Request *request, const JsonValue *root);
/* The interpreter has ended below it: by how its process did. */
void request_answer_lost(Request *request);
