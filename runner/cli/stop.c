/* SPDX-License-Identifier: Apache-2.0 */
/* holt stop, holt rm: stop sessions and remove them. */
#include <stdio.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/exec-result.h"
#include "cli/fail.h"
#include "cli/verbs.h"
#include "keeper/stop.h"
#include "session/directory.h"

/* json is first, because the offset in ask_json_option is 0. */
typedef struct StopOptions {
        bool json, force;
} StopOptions;

static const Option rm_options[] = {
        { "--force", NULL, "accept names of sessions that do not exist", OPTION_BOOL,
          offsetof(StopOptions, force), NULL },
        { "-f", NULL, "short for --force", OPTION_BOOL, offsetof(StopOptions, force), NULL },
        { "--json", NULL, "print an error as JSON", OPTION_BOOL, offsetof(StopOptions, json),
          NULL },
};

static int stop_session(const char *name, int dir_fd, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        int r = keeper_ask_to_stop(name, dir_fd, &message, reterr);

        if (r == 0 && message.result)
                exec_result_tell_set_aside(message.result, NULL);
        return r;
}

static int stop_one(const char *name, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE;
        int r = session_open(name, &dir_fd, NULL, reterr);

        if (r == 0)
                r = stop_session(name, dir_fd, reterr);
        return r < 0 ? r : keeper_check_swept(name, dir_fd, reterr);
}

/* If the check of protected paths fails, the failure is reported and the session is still
 * removed. */
static int remove_one(const char *name, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE;
        Error left;
        int r = session_open(name, &dir_fd, NULL, reterr);

        if (r == 0)
                r = stop_session(name, dir_fd, reterr);
        if (r < 0)
                return r;
        if (keeper_check_swept(name, dir_fd, &left) < 0)
                error_print(&left, stderr);
        return session_remove(name, dir_fd, reterr);
}

/* Takes back the suggestion of another operand, which is stopped or removed anyway. */
static void stop_correct_cure(const OptionResult *words, Error *error) {
        for (size_t i = 0; error->kind == ERROR_MISSING && i < words->operands_count; i++) {
                _cleanup_free_ char *quoted = str_format("\"%s\"?", words->operands[i]);

                if (quoted && strstr(error->cure, quoted))
                        (void)error_cure(error, 0, "%s", session_none_cure);
        }
}

/* If one session fails, the others are stopped all the same. */
static int stop_each(const OptionResult *words, const void *options,
                     int (*fn)(const char *name, Error *reterr)) {
        const StopOptions *stop = options;
        int code = 0;

        for (size_t i = 0; i < words->operands_count; i++) {
                Error error;

                if (fn(words->operands[i], &error) == 0 ||
                    (stop->force && error.kind == ERROR_MISSING))
                        continue;
                stop_correct_cure(words, &error);
                code = fail_print(&error, stop->json);
        }
        return code;
}

static int do_stop(const OptionResult *words, const void *options, Error *reterr) {
        (void)reterr;
        return stop_each(words, options, stop_one);
}

static int stop_do_rm(const OptionResult *words, const void *options, Error *reterr) {
        (void)reterr;
        return stop_each(words, options, remove_one);
}

int cmd_stop(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "stop",
                            .usage = "NAME... [--json]",
                            .summary = "Ends every process of the sessions. Keeps their files.",
                            .options = &ask_json_option,
                            .options_count = 1,
                            .operands = true },
                .least = 1,
                .most = SIZE_MAX,
                .run = do_stop,
        };
        StopOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}

int cmd_rm(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "rm",
                            .usage = "NAME... [-f] [--json]",
                            .summary = "Stops sessions and removes them, with everything in their "
                                       "directories. Does not remove\na directory that --workspace "
                                       "named.",
                            .options = rm_options,
                            .options_count = ELEMENTSOF(rm_options),
                            .operands = true },
                .least = 1,
                .most = SIZE_MAX,
                .run = stop_do_rm,
        };
        StopOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
