/* SPDX-License-Identifier: Apache-2.0 */
/* holt forward: lets programs of the host connect to a port of a session. */
#include <string.h>

#include "base/strings.h"
#include "cli/ask.h"
#include "cli/verbs.h"
#include "policy/net/ports.h"

/* json is first, because its offset in ask_json_option is 0. */
typedef struct ForwardOptions {
        bool json, stop;
} ForwardOptions;

static const Option forward_options[] = {
        { "--stop", NULL, "close the port of the host", OPTION_BOOL, offsetof(ForwardOptions, stop),
          NULL },
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(ForwardOptions, json),
          NULL },
};

/* Reads PORT, or the value of --publish. */
static int forward_parse(const char *text, NetPort *ret, Error *reterr) {
        const char *why = "";
        uint64_t inside;
        int r;

        if (str_to_uint(text, UINT16_MAX, &inside) == 0 && inside > 0) {
                *ret = (NetPort){ .address = net_loopback[0], .inside = (uint16_t)inside };
                return 0;
        }
        if (strchr(text, ':') && net_publish_parse(text, ret, &why) == 0)
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "\"%.100s\" %s", text,
                      *why ? why : "is not a port; write a number from 1 to 65535");
        return error_cure(reterr, r,
                          "The port inside alone gets a free port of the host: 3000\n"
                          "With a port of the host before it: 8080:3000");
}

static void forward_write(const NetPort *port, bool stop, JsonWriter *w) {
        char address[NET_ADDRESS_TEXT];

        json_write_object(w, NULL);
        json_write_uint(w, "port", port->inside);
        if (port->host)
                json_write_uint(w, "host_port", port->host);
        if (!stop)
                json_write_string(w, "address", net_address_text(&port->address, address));
}

/* A session at rest has no port to close. */
static int forward_stop(const char *name, JsonWriter *w, Answer *answer, Error *reterr) {
        RpcClient *client = NULL;
        int r = ask_live(name, &client, reterr);

        if (r == 0)
                r = ask_client(client, "ports.close", w, answer, reterr);
        rpc_client_free(client);
        return r;
}

/* The port was written first, and the session last. */
static bool forward_is_swapped(const OptionResult *words) {
        const char *name = words->operands[0], *port = words->operands[1];

        return strspn(name, "0123456789:") == strlen(name) && strspn(port, "0123456789:") == 0;
}

static int do_forward(const OptionResult *words, const void *options, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        const ForwardOptions *forward = options;
        const char *name = words->operands[0];
        NetPort port;
        int r = forward_parse(words->operands[1], &port, reterr);

        if (r < 0 && forward_is_swapped(words))
                return error_cure(reterr, r, "The session comes first: holt forward %s %s",
                                  words->operands[1], name);
        if (r < 0)
                return r;
        forward_write(&port, forward->stop, &w);
        r = forward->stop ? forward_stop(name, &w, &answer, reterr)
                          : ask_keeper(name, "ports.forward", &w, &answer, reterr);
        if (r < 0 || forward->json)
                return r < 0 ? r : ask_print_json(answer.result, reterr);
        if (!forward->stop)
                (void)printf("%s\n", json_member_text(answer.result, "address"));
        return 0;
}

int cmd_forward(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "forward",
                            .usage = "NAME [[ADDRESS:]HOSTPORT:]PORT [--stop] [--json]",
                            .summary = "Lets programs of the host connect to a port of a session, "
                                       "and prints the address.\nReturns immediately. The port "
                                       "stays open until the session stops, or until --stop.",
                            .options = forward_options,
                            .options_count = ELEMENTSOF(forward_options),
                            .operands = true },
                .least = 2,
                .most = 2,
                .run = do_forward,
        };
        ForwardOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
