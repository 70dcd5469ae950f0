/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a session's interpreter or shell by a verb. It prints the output as it comes, passes
 * Ctrl-C on and serves the caller's tools. */
#pragma once

#include <signal.h>

#include "cli/ask.h"
#include "cli/tools.h"

typedef struct CodeOptions {
        const char *code, *cwd, *timeout, *output;
        StrList env, env_files, tools;
        bool fresh, restart, interrupt, json;
} CodeOptions;

typedef struct CodeCall CodeCall;

/* A verb, and its methods. */
typedef struct CodeVerb {
        const char *method, *interrupt, *restart;
        /* Prints the result, which is in call->answer, except for its output. Returns the exit
         * code, or a negative errno. */
        int (*print_end)(CodeCall *call, Error *reterr);
} CodeVerb;

struct CodeCall {
        const CodeVerb *verb;
        const char *name, *code; /* borrowed: the session, and the code to run */
        const CodeOptions *options;
        const char *file; /* borrowed: path of the code's file, or NULL */
        JsonWriter request;
        RpcClient *client;
        ToolHost *tools;
        int signal_fd;
        sigset_t blocked;
        uint64_t id;
        uint64_t timeout; /* usec of --timeout, or 0 */
        uint64_t printed; /* number of bytes of output printed */
        bool interrupted; /* Ctrl-C has interrupted the code */
        int told_by;      /* the signal that asked holt to end, and was passed to the code; or 0 */
        int ends_by;      /* the signal by which holt ends once the code has been told; or 0 */
        uint64_t told_id; /* id of the request that passes told_by to the code */
        Answer answer;
};

/* Runs code in session name, and returns the exit code or a negative errno. path: file of the code,
 * or NULL. */
int code_call(const CodeVerb *verb, const char *name, const CodeOptions *options, const char *path,
              const char *code, Error *reterr);

/* --- for print_end --- */

/* Prints bytes, and does not wait forever for a reader. */
void code_call_print_bytes(CodeCall *call, FILE *out, const char *bytes, size_t length);
/* Reports refused calls if the call has failed, and files that were set aside, as holt exec does.
 */
void code_call_tell_refused(const CodeCall *call);
/* From now on, signals end holt. A signal that it has received before ends it now. */
void code_call_let_signals(const CodeCall *call);
