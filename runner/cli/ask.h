/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the verbs for sessions: they check their operands, send a request to a session
 * and read its reply. A verb starts a session at rest only if it needs a live one. */
#pragma once

#include "cli/options.h"
#include "rpc/client.h"
#include "store/store.h"

/* --- a verb --- */

typedef struct AskVerb {
        OptionSyntax syntax;
        size_t least, most; /* number of operands */
        bool streams;       /* it needs open standard streams, for the contents of files */
        bool makes; /* the first operand names no session yet, so cures keep the word NAME */
        const char *too_many; /* cure for more operands; NULL: the usage */
        /* options points to the struct that syntax->options fill. Returns an exit code, or a
         * negative errno with *reterr written. */
        int (*run)(const OptionResult *words, const void *options, Error *reterr);
} AskVerb;

/* Reads the command line into options, runs the verb and prints its error. Returns the exit code.
 */
int ask_main(const AskVerb *verb, void *options, int argc, char **argv);

/* The only option, --json, of a verb that prints nothing except errors. Its options struct is one
 * bool. */
extern const Option ask_json_option;

/* Parses the TIME of --timeout: *ret gets microseconds, at least 1000. "none" gives 0, which leaves
 * only the policy's limit. If text is NULL, *ret is unchanged. Returns 0 or -EINVAL. */
int ask_timeout(const char *text, uint64_t *ret, Error *reterr);
/* Parses the N of --limit. If text is NULL, *ret is unchanged. Returns 0 or -EINVAL. */
int ask_limit(const char *text, uint64_t *ret, Error *reterr);
/* Parses the SIZE of --output: bytes, at most CAPTURE_KEPT_MAX. If text is NULL, *ret is unchanged.
 * Returns 0 or -EINVAL. */
int ask_output(const char *text, uint64_t *ret, Error *reterr);
/* Parses the number of another option, from least to most. If text is NULL, *ret is unchanged.
 * Returns 0 or -EINVAL. */
int ask_option(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *ret,
               Error *reterr);

/* --- a reply --- */

typedef struct Answer {
        RpcMessage message;      /* owned; the reply of a live session */
        JsonDocument *document;  /* owned; the reply made from the database of a session at rest */
        const JsonValue *result; /* borrowed: an object in message or in document */
} Answer;

/* The versions of clang-format disagree about this macro. */
/* clang-format off */
#define ANSWER_NONE                                                                                \
        { .message = RPC_MESSAGE_NONE }
/* clang-format on */

void answer_clear(Answer *answer);

/* --- requests --- */

/* In all of these functions, params is an unfinished writer whose object is open, or NULL for no
 * parameters. */

/* Sends one request to the session's keeper, and starts the keeper if none runs. Returns 0 or a
 * negative errno. */
int ask_keeper(const char *name, const char *method, JsonWriter *params, Answer *ret,
               Error *reterr);

/* Connects to the keeper of a live session; the caller owns *ret. A session at rest has no
 * processes, and gives -ENOENT with an ERROR_MISSING. */
int ask_live(const char *name, RpcClient **ret, Error *reterr);

/* Sends one request over an open connection. */
int ask_client(RpcClient *client, const char *method, JsonWriter *params, Answer *ret,
               Error *reterr);
/* Sends one request about the process id, and adds id to params. */
int ask_process(RpcClient *client, const char *method, const char *id, JsonWriter *params,
                Answer *ret, Error *reterr);

/* Writes the members of a reply from the database of the session whose directory is path. */
typedef int (*AskStoreFn)(Store *store, const char *path, const void *data, JsonWriter *w,
                          Error *reterr);
/* Sends the request to the keeper if the session is live. Otherwise fn writes the reply, and the
 * session stays at rest. */
int ask_look(const char *name, const char *method, JsonWriter *params, AskStoreFn fn,
             const void *data, Answer *ret, Error *reterr);

/* Reads the database of a session, after ask_live() has returned -ENOENT. Returns 0 or a negative
 * errno. */
int ask_at_rest(const char *name, AskStoreFn fn, const void *data, Answer *ret, Error *reterr);
/* Lets fn write the reply for the session whose directory is dir_fd. */
int ask_store(int dir_fd, AskStoreFn fn, const void *data, Answer *ret, Error *reterr);

/* Writes the member "env" from the values of --env. An item is NAME=VALUE, or the NAME of one of
 * the caller's variables; an unset variable is left out. */
void ask_write_env(const StrList *env, JsonWriter *w);
/* Returns whether env has an item for the variable. */
bool ask_env_has(const StrList *env, const char *name);

/* --- printing --- */

/* Prints to stdout, one member a line. Returns 0 or -ENOMEM. */
int ask_print_json(const JsonValue *value, Error *reterr);
/* Ends the document and prints it to stdout. Returns 0 or -ENOMEM. */
int ask_print_document(JsonWriter *w, Error *reterr);

/* Formats ms, milliseconds since the epoch, as local time: "2026-11-21 19:02:47", or "-" for 0.
 * Returns buf. */
const char *ask_time(uint64_t ms, char buf[24]);

/* Adds the host's directories that the session's commands can write: its own directory and its
 * writable mounts. show is the result of session.show. Returns 0 or -ENOMEM. */
int ask_writable(const JsonValue *show, StrList *ret);
