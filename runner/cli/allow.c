/* SPDX-License-Identifier: Apache-2.0 */
/* holt allow: adds rules to the network of a session. It does not start a session at rest. */
#include <errno.h>

#include "cli/ask.h"
#include "cli/verbs.h"
#include "session/allow.h"
#include "session/live.h"

typedef struct AllowOptions {
        bool json, once;
} AllowOptions;

static const Option allow_options[] = {
        { "--once", NULL, "each rule allows only one connection", OPTION_BOOL,
          offsetof(AllowOptions, once), NULL },
        { "--json", NULL, "print an error as JSON", OPTION_BOOL, offsetof(AllowOptions, json),
          NULL },
};

/* Asks the keeper. *ret_rest: the session is at rest, and nothing was done. */
static int allow_live(const char *name, const StrList *grants, bool once, bool *ret_rest,
                      Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        _cleanup_close_ int dir_fd = FD_NONE, fd = FD_NONE;
        RpcClient *client = NULL;
        int r = session_open(name, &dir_fd, NULL, reterr);

        if (r < 0)
                return r;
        r = session_find_keeper(name, dir_fd, FIND_TIME, &fd, reterr);
        *ret_rest = r == -ENOENT;
        if (r == 0)
                r = rpc_client_new(fd, &client, reterr);
        if (r < 0)
                return r;
        fd = FD_NONE;
        json_write_object(&w, NULL);
        json_write_array(&w, "grants");
        for (size_t i = 0; i < grants->count; i++)
                json_write_string(&w, NULL, grants->items[i]);
        json_write_end(&w);
        if (once)
                json_write_bool(&w, "once", true);
        r = ask_client(client, "session.allow", &w, &answer, reterr);
        rpc_client_free(client);
        return r;
}

static int do_allow(const OptionResult *words, const void *options, Error *reterr) {
        const AllowOptions *chosen = options;
        const char *name = words->operands[0], *rule;
        _cleanup_(strlist_clear) StrList grants = { 0 };
        bool rest = false;
        int r = 0;

        for (size_t i = 1; r == 0 && i < words->operands_count; i++) {
                r = allow_parse(words->operands[i], &rule, reterr);
                if (r == 0 && strlist_add(&grants, words->operands[i]) < 0)
                        r = error_oom(reterr);
        }
        if (r == 0)
                r = allow_live(name, &grants, chosen->once, &rest, reterr);
        if (rest && chosen->once)
                return allow_refuse_once(name, &grants, reterr);
        return rest ? allow_at_rest(name, &grants, reterr) : r;
}

int cmd_allow(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "allow",
                            .usage = "NAME net:RULE|net:@SET... [--once] [--json]",
                            .summary = "Adds rules to the network of a session. In a live session, "
                                       "they apply\nimmediately. In a session at rest, they apply "
                                       "from the next start on.",
                            .options = allow_options,
                            .options_count = ELEMENTSOF(allow_options),
                            .operands = true },
                .least = 2,
                .most = 257,
                .run = do_allow,
        };
        AllowOptions chosen = { 0 };

        return ask_main(&verb, &chosen, argc, argv);
}
