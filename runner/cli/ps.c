/* SPDX-License-Identifier: Apache-2.0 */
/* holt ps, holt wait, holt kill: the processes of a session. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/exec-result.h"
#include "cli/verbs.h"
#include "methods/methods.h"
#include "methods/past.h"

/* --- ps --- */

typedef struct PsOptions {
        bool json;
} PsOptions;

static const Option ps_options[] = {
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(PsOptions, json),
          NULL },
};

/* A session at rest has no processes. */
static int none_at_rest(Store *store, const char *path, const void *data, JsonWriter *w,
                        Error *reterr) {
        (void)store;
        (void)path;
        (void)data;
        (void)reterr;
        json_write_array(w, "processes");
        json_write_end(w);
        json_write_array(w, "ports");
        json_write_end(w);
        return 0;
}

static void print_process(const JsonValue *process) {
        char when[24], visible[1024], code[24] = "";

        if (json_member(process, "exit_code"))
                (void)snprintf(code, sizeof(code), "%" PRIu64,
                               json_member_uint(process, "exit_code"));
        (void)printf("%-6s %-10s %-4s %-19s %s\n", json_member_text(process, "id"),
                     json_member_text(process, "state"), code,
                     ask_time(json_member_uint(process, "started_ms"), when),
                     str_visible(json_member_text(process, "command"), visible, sizeof(visible)));
}

static void print_ports(const JsonValue *ports) {
        if (json_first(ports))
                (void)printf("\n%-24s %s\n", "ADDRESS", "PORT");
        for (const JsonValue *p = json_first(ports); p; p = json_next(p))
                (void)printf("%-24s %" PRIu64 "\n", json_member_text(p, "address"),
                             json_member_uint(p, "port"));
}

static int do_ps(const OptionResult *words, const void *options, Error *reterr) {
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        const JsonValue *all;
        int r = ask_look(words->operands[0], "process.list", NULL, none_at_rest, NULL, &answer,
                         reterr);

        if (r < 0)
                return r;
        if (((const PsOptions *)options)->json)
                return ask_print_json(answer.result, reterr);
        (void)printf("%-6s %-10s %-4s %-19s %s\n", "ID", "STATE", "EXIT", "STARTED", "COMMAND");
        all = json_member(answer.result, "processes");
        for (const JsonValue *p = json_first(all); p; p = json_next(p))
                print_process(p);
        print_ports(json_member(answer.result, "ports"));
        return 0;
}

int cmd_ps(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "ps",
                            .usage = "NAME [--json]",
                            .summary = "Lists the processes of a session, the newest first, and "
                                       "the ports of the host that lead into it.",
                            .options = ps_options,
                            .options_count = ELEMENTSOF(ps_options),
                            .operands = true },
                .least = 1,
                .most = 1,
                .run = do_ps,
        };
        PsOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}

/* --- wait --- */

static int do_wait(const OptionResult *words, const void *options, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE, show = ANSWER_NONE;
        const char *name = words->operands[0], *id = words->operands[1];
        RpcClient *client = NULL;
        ExecResult result;
        Error ignored;
        int r = ask_live(name, &client, reterr);

        json_write_object(&w, NULL);
        if (r == -ENOENT)
                r = ask_at_rest(name, past_stored, &(const PastAsk){ PAST_WAIT, id }, &answer,
                                reterr);
        else if (r == 0)
                r = ask_process(client, "process.wait", id, &w, &answer, reterr);
        if (r == 0 && client && exec_result_needs_show(answer.result))
                (void)ask_client(client, "session.show", NULL, &show, &ignored);
        rpc_client_free(client);
        if (r < 0)
                return r;
        result = (ExecResult){
                .session = name, .id = id, .result = answer.result, .show = show.result
        };
        if (((const PsOptions *)options)->json)
                (void)ask_print_json(answer.result, reterr);
        else
                exec_result_tell(&result);
        return exec_result_code(&result);
}

int cmd_wait(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "wait",
                            .usage = "NAME ID [--json]",
                            .summary = "Waits until the command of a process has ended, and exits "
                                       "with its exit code.",
                            .options = ps_options,
                            .options_count = ELEMENTSOF(ps_options),
                            .operands = true },
                .least = 2,
                .most = 2,
                .run = do_wait,
        };
        PsOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}

/* --- kill --- */

typedef struct KillOptions {
        const char *signal;
        bool json;
} KillOptions;

static const Option kill_options[] = {
        { "--signal", "SIG", "send only this signal, to the command and its process group",
          OPTION_STRING, offsetof(KillOptions, signal), NULL },
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(KillOptions, json),
          NULL },
};

/* Users of docker expect that this ends the whole session. */
static int kill_refuse_session(Error *reterr) {
        int r = error_set(reterr, ERROR_USAGE, 0, "missing ID");

        return error_cure(reterr, r,
                          "To end one process: holt kill NAME ID; holt ps NAME lists them.\n"
                          "To end everything that runs in the session: holt stop NAME");
}

/* Waits until all of a killed process has ended, so that "holt ps" shows it so. The kill itself is
 * done; the wait may fail, for example if the session stops. */
static void kill_wait(RpcClient *client, const char *id) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        Error ignored;

        json_write_object(&w, NULL);
        json_write_bool(&w, "all", true);
        (void)ask_process(client, "process.wait", id, &w, &answer, &ignored);
}

static int do_kill(const OptionResult *words, const void *options, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        const KillOptions *kill = options;
        RpcClient *client = NULL;
        bool killed = false;
        int r;

        if (words->operands_count < 2)
                return kill_refuse_session(reterr);
        r = ask_live(words->operands[0], &client, reterr);
        json_write_object(&w, NULL);
        if (kill->signal)
                json_write_string(&w, "signal", kill->signal);
        if (r == -ENOENT)
                r = ask_at_rest(words->operands[0], past_stored,
                                &(const PastAsk){ kill->signal ? PAST_SIGNAL : PAST_KILL,
                                                  words->operands[1] },
                                &answer, reterr);
        else if (r == 0)
                r = ask_process(client, kill->signal ? "process.signal" : "process.kill",
                                words->operands[1], &w, &answer, reterr);
        if (r == 0 && client && !kill->signal &&
            json_bool(json_member(answer.result, "killed"), &killed) == 0 && killed)
                kill_wait(client, words->operands[1]);
        rpc_client_free(client);
        if (r < 0 || kill->json)
                return r < 0 ? r : ask_print_json(answer.result, reterr);
        if (!kill->signal && !killed)
                (void)fprintf(stderr, "holt: %s had ended already\n", words->operands[1]);
        return 0;
}

/* Lists the signals for people and for completions. The caller owns the text; NULL if memory is
 * out. */
static char *describe_signals(void) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        (void)fputs("Values:\n", out);
        options_help_values(
                "SIG", "name with or without SIG, or a number up to 64:", method_signal_name, out);
        if (fclose(out) != 0)
                return NULL;
        text[length - 1] = '\0'; /* the caller prints a newline */
        return text;
}

int cmd_kill(int argc, char **argv) {
        _cleanup_free_ char *signals = describe_signals();
        const AskVerb verb = {
                .syntax = { .verb = "kill",
                            .usage = "NAME ID [--signal SIG] [--json]",
                            .summary = "Kills a process of a session and everything that it has "
                                       "started.",
                            .options = kill_options,
                            .options_count = ELEMENTSOF(kill_options),
                            .operands = true,
                            .help_epilog = signals },
                .least = 1, /* the ID is missed in do_kill() */
                .most = 2,
                .run = do_kill,
        };
        KillOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
