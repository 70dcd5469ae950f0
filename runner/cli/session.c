/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs that ask or tell a session something and print the answer: ls, show, stop, rm, ps,
 * kill, kv, history, audit. Those of a live session go through its keeper; ls and rm look for
 * themselves. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/options.h"
#include "cli/verbs.h"
#include "rpc/client.h"
#include "session/keeper.h"

typedef struct SessionOptions {
        bool json;
} SessionOptions;

static const Option session_options[] = {
        { "--json", NULL, "print it as JSON", OPTION_BOOL, offsetof(SessionOptions, json), NULL },
};

/* One request to the keeper of name; *ret is to be cleared by the caller. */
static int call(const char *name, const char *method, const JsonWriter *params, RpcMessage *ret,
                Error *reterr) {
        RpcClient *client = NULL;
        int fd, r = keeper_connect(name, &fd, reterr);

        if (r == 0)
                r = rpc_client_new(fd, &client, reterr);
        if (r == 0)
                r = rpc_client_call(client, method, params, NULL, 0, ret, reterr);
        rpc_client_free(client);
        return r;
}

/* --- ls --- */

typedef struct Listed {
        bool json;
        JsonWriter w;
} Listed;

static int list_one(void *data, const char *name, int dir_fd) {
        Listed *listed = data;
        const char *state = session_is_live(dir_fd) ? "live" : "at rest";

        if (!listed->json) {
                (void)printf("%-24s %s\n", name, state);
                return 0;
        }
        json_write_object(&listed->w, NULL);
        json_write_string(&listed->w, "name", name);
        json_write_string(&listed->w, "state", state);
        json_write_end(&listed->w);
        return 0;
}

static int do_ls(const OptionResult *words, const SessionOptions *options, Error *reterr) {
        Listed listed = { .json = options->json, .w = { .pretty = true } };
        int r;

        (void)words;
        json_write_array(&listed.w, NULL);
        r = session_each(list_one, &listed, reterr);
        json_write_end(&listed.w);
        if (r == 0 && options->json && json_write_finish(&listed.w) == 0)
                (void)fputs(listed.w.data, stdout);
        json_write_clear(&listed.w);
        return r;
}

/* --- show, ps, history, audit: what the keeper answers, as it is --- */

static int print_answer(const RpcMessage *message, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };

        json_copy(&w, NULL, message->result);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        (void)fputs(w.data, stdout);
        return 0;
}

static int ask(const char *name, const char *method, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        int r = call(name, method, NULL, &message, reterr);

        return r < 0 ? r : print_answer(&message, reterr);
}

static int do_show(const OptionResult *words, const SessionOptions *options, Error *reterr) {
        (void)options;
        return ask(words->operands[0], "session.show", reterr);
}

static const char *text_of(const JsonValue *object, const char *key) {
        const JsonValue *value = json_member(object, key);
        const char *text = value ? json_string(value) : NULL;

        return text ? text : "";
}

static int do_ps(const OptionResult *words, const SessionOptions *options, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        int r = call(words->operands[0], "process.list", NULL, &message, reterr);

        if (r < 0)
                return r;
        if (options->json)
                return print_answer(&message, reterr);
        (void)printf("%-6s %-11s %-5s %s\n", "ID", "STATE", "EXIT", "COMMAND");
        for (const JsonValue *p = json_first(json_member(message.result, "processes")); p;
             p = json_next(p)) {
                const JsonValue *code = json_member(p, "exit_code");
                char visible[256], number[12] = "";
                uint64_t exit_code;

                if (code && json_uint(code, 255, &exit_code) == 0)
                        (void)snprintf(number, sizeof(number), "%" PRIu64, exit_code);
                (void)printf("%-6s %-11s %-5s %s\n", text_of(p, "id"), text_of(p, "state"), number,
                             str_visible(text_of(p, "command"), visible, sizeof(visible)));
        }
        return 0;
}

static int do_history(const OptionResult *words, const SessionOptions *options, Error *reterr) {
        (void)options;
        return ask(words->operands[0], "history.list", reterr);
}

static int do_audit(const OptionResult *words, const SessionOptions *options, Error *reterr) {
        (void)options;
        return ask(words->operands[0], "audit.list", reterr);
}

/* --- stop, rm --- */

enum { STOP_TRIES = 3000, STOP_PAUSE = 10000000 }; /* of 10 ms each: half a minute */

/* Until the keeper has let the lock go. */
static int wait_for_rest(int dir_fd, const char *name, Error *reterr) {
        const struct timespec pause = { .tv_nsec = STOP_PAUSE };
        int r;

        for (int i = 0; i < STOP_TRIES; i++) {
                if (!session_is_live(dir_fd))
                        return 0;
                (void)nanosleep(&pause, NULL);
        }
        r = error_set(reterr, ERROR_BUSY, 0, "session \"%s\" does not stop", name);
        return error_cure(reterr, r, "kill -9 its keeper: pgrep -f 'holt keeper %s'", name);
}

static int stop(const char *name, int *ret_dir_fd, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        _cleanup_close_ int dir_fd = FD_NONE;
        RpcClient *client = NULL;
        int fd, r = session_open(name, &dir_fd, NULL, reterr);

        if (r < 0)
                return r;
        r = session_connect(dir_fd, &fd, reterr);
        if (r == 0)
                r = rpc_client_new(fd, &client, reterr);
        if (r == 0)
                r = rpc_client_call(client, "session.stop", NULL, NULL, 0, &message, reterr);
        rpc_client_free(client);
        if (r < 0 && r != -ENOENT && r != -ECONNREFUSED && r != -EPIPE)
                return r;
        r = wait_for_rest(dir_fd, name, reterr);
        if (r == 0)
                *ret_dir_fd = TAKE_FD(dir_fd);
        return r;
}

static int do_stop(const OptionResult *words, const SessionOptions *options, Error *reterr) {
        int dir_fd, r = stop(words->operands[0], &dir_fd, reterr);

        (void)options;
        if (r == 0)
                fd_close(dir_fd);
        return r;
}

static int do_rm(const OptionResult *words, const SessionOptions *options, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE, lock_fd = FD_NONE;
        int r = stop(words->operands[0], &dir_fd, reterr);

        (void)options;
        if (r == 0)
                r = session_lock(dir_fd, &lock_fd, reterr);
        return r < 0 ? r : session_remove(words->operands[0], reterr);
}

/* --- kill, kv --- */

static int do_kill(const OptionResult *words, const SessionOptions *options, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;

        (void)options;
        json_write_object(&w, NULL);
        json_write_string(&w, "id", words->operands[1]);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        return call(words->operands[0], "process.kill", &w, &message, reterr);
}

typedef struct KvVerb {
        const char *name, *method;
        size_t operands; /* behind it */
        const char *keys[2];
} KvVerb;

static const KvVerb kv_verbs[] = {
        { "get", "kv.get", 1, { "key", NULL } },
        { "set", "kv.set", 2, { "key", "value" } },
        { "delete", "kv.delete", 1, { "key", NULL } },
        { "keys", "kv.keys", 1, { "prefix", NULL } },
};

static int print_kv(const RpcMessage *message, bool json, Error *reterr) {
        const JsonValue *keys = json_member(message->result, "keys");
        const JsonValue *value = json_member(message->result, "value");

        if (json)
                return print_answer(message, reterr);
        if (value)
                (void)printf("%s\n", json_string(value));
        for (const JsonValue *key = keys ? json_first(keys) : NULL; key; key = json_next(key))
                (void)printf("%s\n", json_string(key));
        return 0;
}

static int do_kv(const OptionResult *words, const SessionOptions *options, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        const char *const *operands = words->operands;
        const KvVerb *verb = NULL;
        int r;

        for (size_t i = 0; i < ELEMENTSOF(kv_verbs); i++)
                if (streq(kv_verbs[i].name, operands[1]))
                        verb = &kv_verbs[i];
        if (!verb || words->operands_count - 2 > verb->operands ||
            (words->operands_count - 2 < verb->operands && !streq(verb->name, "keys"))) {
                r = error_set(reterr, ERROR_USAGE, 0, "kv takes a session and what to do");
                return error_cure(reterr, r,
                                  "holt kv NAME get KEY | set KEY VALUE | delete KEY | keys "
                                  "[PREFIX]");
        }
        json_write_object(&w, NULL);
        for (size_t i = 0; i < words->operands_count - 2; i++)
                json_write_string(&w, verb->keys[i], operands[2 + i]);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        r = call(operands[0], verb->method, &w, &message, reterr);
        return r < 0 ? r : print_kv(&message, options->json, reterr);
}

/* --- the verbs --- */

typedef struct SessionVerb {
        OptionSyntax syntax;
        size_t least, most; /* operands */
        int (*run)(const OptionResult *words, const SessionOptions *options, Error *reterr);
} SessionVerb;

#define SYNTAX(name, use, what)                                                                    \
        {                                                                                          \
                .verb = (name), .usage = (use), .summary = (what), .options = session_options,     \
                .options_count = ELEMENTSOF(session_options), .operands = true                     \
        }

static const SessionVerb session_verbs[] = {
        { SYNTAX("ls", "[--json]", "Lists the sessions."), 0, 0, do_ls },
        { SYNTAX("show", "NAME", "Says what a session is and has."), 1, 1, do_show },
        { SYNTAX("stop", "NAME", "Ends all that runs in a session; its files stay."), 1, 1,
          do_stop },
        { SYNTAX("rm", "NAME", "Stops a session and takes it away with all its files."), 1, 1,
          do_rm },
        { SYNTAX("ps", "NAME [--json]", "Lists the processes of a session."), 1, 1, do_ps },
        { SYNTAX("kill", "NAME ID", "Kills all that a process of a session has started."), 2, 2,
          do_kill },
        { SYNTAX("kv", "NAME get KEY | set KEY VALUE | delete KEY | keys [PREFIX]",
                 "Keys and values that a session keeps."),
          2, 4, do_kv },
        { SYNTAX("history", "NAME", "What was done in a session, the newest first, as JSON."), 1, 1,
          do_history },
        { SYNTAX("audit", "NAME",
                 "What was refused, killed or limited, the newest first, as JSON."),
          1, 1, do_audit },
};

static int refuse_operands(const SessionVerb *verb, Error *reterr) {
        int r = error_set(reterr, ERROR_USAGE, 0, "%s: that are not its operands",
                          verb->syntax.verb);

        return error_cure(reterr, r, "holt %s %s", verb->syntax.verb, verb->syntax.usage);
}

int cmd_session(int argc, char **argv) {
        const SessionVerb *verb = session_verbs;
        SessionOptions options = { 0 };
        OptionResult words = { 0 };
        Error error;
        int r;

        while (!streq(verb->syntax.verb, argv[0]))
                verb++;
        r = options_parse(&verb->syntax, argc, (const char *const *)argv, &options, &words, &error);
        if (r == 0 && words.help) {
                options_help(&verb->syntax, stdout);
                return 0;
        }
        if (r == 0 && (words.operands_count < verb->least || words.operands_count > verb->most))
                r = refuse_operands(verb, &error);
        if (r == 0)
                r = verb->run(&words, &options, &error);
        options_clear(&words);
        if (r == 0)
                return 0;
        error_print(&error);
        return error_exit_code(&error);
}
