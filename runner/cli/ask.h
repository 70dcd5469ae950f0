/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of sessions have in common: operands that are counted, a question to a session,
 * and its answer. A session that is at rest is started only by what needs a live one. */
#pragma once

#include "cli/options.h"
#include "rpc/client.h"
#include "store/store.h"

/* --- a verb --- */

typedef struct AskVerb {
        OptionSyntax syntax;
        size_t least, most; /* operands */
        /* options is what syntax->options point into. Returns an exit code, or a negative errno
         * with *reterr written. */
        int (*run)(const OptionResult *words, const void *options, Error *reterr);
} AskVerb;

/* Reads the command line into options, runs the verb and prints its error. Returns the exit code.
 */
int ask_main(const AskVerb *verb, void *options, int argc, char **argv);

/* --json of a verb that has nothing to print but what went wrong; its options are one bool. */
extern const Option ask_json_option;

/* TIME of --timeout, as holt run takes it: usec from 1ms on, or "none", 0, which is that of the
 * policy. NULL leaves *ret. 0, or -EINVAL. */
int ask_timeout(const char *text, uint64_t *ret, Error *reterr);
/* --limit N, where text is not NULL. 0, or -EINVAL. */
int ask_limit(const char *text, uint64_t *ret, Error *reterr);
/* SIZE of --output, CAPTURE_KEPT_MAX at most; the same. */
int ask_output(const char *text, uint64_t *ret, Error *reterr);
/* The same for another number of option, from least to most. */
int ask_option(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *ret,
               Error *reterr);

/* --- an answer --- */

typedef struct Answer {
        RpcMessage message;      /* of a live session */
        JsonDocument *document;  /* of one at rest */
        const JsonValue *result; /* an object in one of them */
} Answer;

/* Its versions do not agree on this. */
/* clang-format off */
#define ANSWER_NONE                                                                                \
        { .message = RPC_MESSAGE_NONE }
/* clang-format on */

void answer_clear(Answer *answer);

/* --- asking --- */

/* params, here and below: an unfinished writer whose object is open, or NULL for none. */

/* One question to the keeper, which is started where there is none. 0 or a negative errno. */
int ask_keeper(const char *name, const char *method, JsonWriter *params, Answer *ret,
               Error *reterr);

/* A connection to the keeper of a live session, owned by the caller. -ENOENT with an ERROR_MISSING
 * where it is at rest, and so has no processes. */
int ask_live(const char *name, RpcClient **ret, Error *reterr);

/* One question over it. */
int ask_client(RpcClient *client, const char *method, JsonWriter *params, Answer *ret,
               Error *reterr);
/* ... about the process id, which is added to params. */
int ask_process(RpcClient *client, const char *method, const char *id, JsonWriter *params,
                Answer *ret, Error *reterr);

/* Writes an answer's members from the database of the session whose directory is path. */
typedef int (*AskStoreFn)(Store *store, const char *path, const void *data, JsonWriter *w,
                          Error *reterr);
/* Asks the keeper where the session is live; otherwise fn answers, and it stays at rest. */
int ask_look(const char *name, const char *method, JsonWriter *params, AskStoreFn fn,
             const void *data, Answer *ret, Error *reterr);
/* What fn says of the session that dir_fd is the directory of. */
int ask_store(int dir_fd, AskStoreFn fn, const void *data, Answer *ret, Error *reterr);

/* The member env of --env: NAME=VALUE each, or a NAME whose value is the caller's, which is left
 * out where that is not set. */
void ask_write_env(const StrList *env, JsonWriter *w);
/* Whether it says anything of the variable. */
bool ask_env_has(const StrList *env, const char *name);

/* --- printing --- */

/* To stdout, one member a line. 0 or -ENOMEM. */
int ask_print_json(const JsonValue *value, Error *reterr);

/* A member as text, "" where there is none or another kind; as a number, 0 likewise. */
const char *ask_text(const JsonValue *object, const char *key);
uint64_t ask_number(const JsonValue *object, const char *key);

/* "2026-11-21 19:02:47", the caller's time; "-" for 0. Returns buf. */
const char *ask_time(uint64_t ms, char buf[24]);

/* Adds the host's directories that the session's commands can write, by the answer to session.show:
 * its own, and what it has read-write. 0 or -ENOMEM. */
int ask_writable(const JsonValue *show, StrList *ret);
