/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions that the files of interpreter.h share. interpreter.c has the process, its
 * channel and its queue; interpreter-ask.c takes requests of clients; interpreter-answers.c writes
 * the replies; interpreter-python.c and interpreter-shell.c have the two kinds. */
#pragma once

#include "base/json.h"
#include "inside/interpreter.h"
#include "inside/tools.h"
#include "rpc/framing.h"

enum {
        INTERPRETER_STALE_MAX = 16, /* Consecutive answers to earlier requests that are ignored. */
        INTERPRETER_WORD_SIZE = 33, /* 128 random bits in hexadecimal digits, and a NUL */
};

typedef struct Request {
        struct Request *next;
        struct Interpreter *interpreter;
        RpcCall *call;                    /* NULL once its client has gone. */
        uint64_t number;                  /* From 1; 0 marks the interpreter's first message. */
        JsonWriter line;                  /* The finished line or lines for the interpreter. */
        char word[INTERPRETER_WORD_SIZE]; /* The answer must have it; "" if there is none. */
        bool is_run;
        char *name;       /* The client's name for the run, or NULL. */
        const char *what; /* "variables", "save" or "load"; not for a run. */
        uint64_t timeout;
        size_t kept;
        bool keep_tail, base64;
        RpcConnection *watcher; /* Connection that receives output as it comes, or NULL. */
        char *params;           /* JSON for the history, or NULL. */
        Grant *grant;           /* Ends with the reply; owned, or NULL. */
        uint64_t came_ms, asked_at;
        bool timed_out;
} Request;

typedef struct Interpreter {
        struct Interpreter *next; /* Next in the list of single-run interpreters. */
        Interpreters *all;
        bool once;
        Process *process; /* NULL while none runs; borrowed from the processes. */
        int channel;      /* File descriptor that answers are read from. */
        LoopWatch *watch;
        Framing in;
        bool ready, asked; /* ready: its first message came. asked: the first request was sent. */
        bool stopped;      /* A client's request is killing it. */
        bool broken;       /* It violated the protocol. */
        bool has_run;      /* It ran or loaded something, so variables may exist. */
        bool replaces;     /* Its predecessor had run code, and no result has said so yet.
                            */
        bool had_run;      /* The session has run code, perhaps in an earlier interpreter. */
        /* Cause by which the previous interpreter ended between runs, losing its variables; NULL
         * once a run has reported it. */
        const char *lost;
        bool begun, signal_due; /* See InterpreterKind.tells_begin. */
        uint64_t repeat_at;     /* Time of the next interrupt of the current run, in usec, or 0. */
        uint64_t interrupts,
                settled; /* Interrupts that were sent, and how many of them have arrived. */
        char fence[INTERPRETER_WORD_SIZE]; /* See interpreter-shell.c. */
        uint64_t fence_at;                 /* Time of the last fence, in usec, or 0. */
        unsigned stale;                    /* Consecutive answers to earlier requests. */
        /* CPU times up to its last answer, as the interpreter reports them, or those before the
         * current run (InterpreterKind.measured). */
        Usage spent;
        bool spent_known; /* For InterpreterKind.measured. */
        Request *first;
        /* Answer to the first request, a run; held until protected paths have been checked. */
        JsonDocument *said;
        bool paused; /* The channel is not watched while an answer is held. */
        unsigned waiting;
        LoopTimer *wake, *deadline;
} Interpreter;

struct Interpreters {
        InterpreterSession session;
        Interpreter *lasting, *once;
        uint64_t last_number;
};

struct InterpreterKind {
        const char *noun;    /* "interpreter" */
        const char *method;  /* Method that runs code, "python.run". */
        const char *renewed; /* Member of its result that reports a new interpreter. */
        /* Fills in argv and env. Returns 0 or -ENOMEM. */
        int (*fill_command)(const InterpreterSession *session, ProcessSpec *spec);
        /* Sends what must come before the first request; or NULL. Returns 0 or a negative errno. */
        int (*begin)(Interpreter *i, Error *reterr);
        /* Writes the line of a run. Returns 0 or -ENOMEM. */
        int (*write_run)(Request *request, const CodeRun *run);
        /* Makes a JSON object of a line from the interpreter, or returns false if the line violates
         * the protocol. NULL if lines are JSON. */
        bool (*read_line)(const FramingLine *line, char *buf, size_t size);
        bool measured; /* The host measures the processor time, not the interpreter. */
        bool may_exit; /* A run that ends the interpreter with exit code 0 has succeeded. */
        /* Repeat an interrupt after this time, in usec, until the run has ended; 0: never. */
        uint64_t repeat;
        /* The interpreter sends the id alone when a run begins, and must not get SIGINT before. */
        bool tells_begin;
        /* Makes sure that no earlier interrupt reaches the next request. Returns 1 if that is
         * so, 0 if the answer comes later, or a negative errno. */
        int (*settle)(Interpreter *i, Error *reterr);
        /* Called after the current run was sent SIGINT; or NULL. */
        void (*interrupted)(Interpreter *i);
        /* Writes the members of the result that only this kind has. root: NULL if the interpreter
         * has ended. */
        void (*write_said)(const JsonValue *root, JsonWriter *w);
};

/* Makes an interpreter without a process. Returns 0 or -ENOMEM. */
int interpreter_new(Interpreters *all, bool once, Interpreter **ret, Error *reterr);
/* Notes the processor time before a run, if the kind says so. */
void interpreter_measure(Interpreter *i);
/* Interrupts the current run. */
void interpreter_signal(Interpreter *i);
/* Kills the interpreter at a client's request and fails all waiting requests. It must have a
 * process. */
void interpreter_end(Interpreter *i);

/* Takes a message with the id 0 from an interpreter that is ready. Returns false if too many of
 * them are not the answer to the last fence. */
bool shell_take_fence(Interpreter *i, const JsonValue *root);

/* NULL is legal; returns NULL. */
Request *request_free(Request *request);
/* Takes over a finished request of call and queues it. */
void request_append(Interpreter *i, Request *request, RpcCall *call);
/* Whether the request has been sent to the interpreter. */
bool request_has_begun(const Request *request);
/* Removes and frees a request that has not begun. */
void request_take_back(Request *request);

/* Makes a document of a line from the interpreter. Returns 0 or a negative errno. */
int interpreter_parse(const Interpreter *i, const FramingLine *line, JsonDocument **ret);
/* Copies the members that are text. object is an attacker's, and may be no object. */
void answer_copy_texts(const JsonValue *object, const char *key, JsonWriter *w);
/* Copies the named members as text; a missing one becomes `missing`. */
void answer_copy_named(const JsonValue *object, const char *const *names, size_t count,
                       const char *missing, JsonWriter *w);

/* Both functions below reply to a request if its client still exists. The caller still owns the
 * request. */

/* Replies with the interpreter's answer, an object that may be an attacker's. */
void request_answer(Request *request, const JsonValue *root);
/* Replies to a run whose interpreter has ended. The reply says how its process ended. */
void request_answer_lost(Request *request);
