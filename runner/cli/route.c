/* SPDX-License-Identifier: Apache-2.0 */
/* holt route: adds, lists and removes the routes of a session. It does not start a session at rest.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/operands.h"
#include "cli/verbs.h"
#include "policy/routes/route.h"
#include "session/live.h"
#include "session/route-store.h"

typedef struct RouteOptions {
        bool json;
        const char *upstream, *timeout, *body, *requests, *bytes, *concurrent;
        StrList headers, queries, env, allow;
} RouteOptions;

static const Option route_options[] = {
        { "--upstream", "URL", "for add: the service, for a route of your own", OPTION_STRING,
          offsetof(RouteOptions, upstream), NULL },
        { "--header", "HEADER", "header to set, 'NAME: VALUE'; {env:X} is your variable X",
          OPTION_LIST, offsetof(RouteOptions, headers), NULL },
        { "--query", "NAME=VALUE", "query parameter to set", OPTION_LIST,
          offsetof(RouteOptions, queries), NULL },
        { "--env", "NAME=TEXT", "variable of commands; TEXT may have {url}, {token}, {address}",
          OPTION_LIST, offsetof(RouteOptions, env), NULL },
        { "--allow", "REQUEST", "requests to allow, such as 'GET /v1/*'; default: all", OPTION_LIST,
          offsetof(RouteOptions, allow), NULL },
        { "--timeout", "TIME", "maximum time of a request", OPTION_STRING,
          offsetof(RouteOptions, timeout), NULL },
        { "--body", "SIZE", "maximum size of a request's body", OPTION_STRING,
          offsetof(RouteOptions, body), NULL },
        { "--requests", "N/TIME", "maximum number of requests in a time, such as 60/1m",
          OPTION_STRING, offsetof(RouteOptions, requests), NULL },
        { "--bytes", "SIZE", "maximum size of all bodies together, in both directions",
          OPTION_STRING, offsetof(RouteOptions, bytes), NULL },
        { "--concurrent", "N", "maximum number of requests at once", OPTION_STRING,
          offsetof(RouteOptions, concurrent), NULL },
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(RouteOptions, json),
          NULL },
};

/* --- the route of the command line --- */

/* Splits "NAME<separator>VALUE", and writes the member. */
static int route_write_pair(const char *option, const char *text, char separator, JsonWriter *w,
                            Error *reterr) {
        const char *at = strchr(text, separator), *value = at ? at + 1 : NULL;
        _cleanup_free_ char *name = at ? strndup(text, (size_t)(at - text)) : NULL;

        if (!at || at == text)
                return error_set(reterr, ERROR_USAGE, 0,
                                 "%s takes a name and a value with \"%c\" between", option,
                                 separator);
        if (!name)
                return error_oom(reterr);
        if (separator == ':')
                value += strspn(value, " ");
        json_write_string(w, name, value);
        return 0;
}

static int route_write_pairs(const char *option, const char *key, const StrList *list,
                             char separator, JsonWriter *w, Error *reterr) {
        int r = 0;

        if (list->count == 0)
                return 0;
        json_write_object(w, key);
        for (size_t i = 0; r == 0 && i < list->count; i++)
                r = route_write_pair(option, list->items[i], separator, w, reterr);
        json_write_end(w);
        return r;
}

/* Without --env, commands get NAME_URL and NAME_TOKEN. */
static int route_write_variables(const char *name, const StrList *env, JsonWriter *w,
                                 Error *reterr) {
        char url[ROUTE_NAME_MAX + 8], token[ROUTE_NAME_MAX + 8];

        if (env->count > 0)
                return route_write_pairs("--env", "env", env, '=', w, reterr);
        (void)snprintf(url, sizeof(url), "%.*s_URL", ROUTE_NAME_MAX, name);
        (void)snprintf(token, sizeof(token), "%.*s_TOKEN", ROUTE_NAME_MAX, name);
        for (char *c = url; *c; c++)
                *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        for (char *c = token; *c; c++)
                *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        json_write_object(w, "env");
        json_write_string(w, url, "{url}");
        json_write_string(w, token, "{token}");
        json_write_end(w);
        return 0;
}

static void route_write_limits(const RouteOptions *options, JsonWriter *w) {
        const struct {
                const char *key, *value;
        } texts[] = {
                { "timeout", options->timeout },
                { "body", options->body },
                { "requests", options->requests },
                { "bytes", options->bytes },
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (texts[i].value)
                        json_write_string(w, texts[i].key, texts[i].value);
}

static int route_write_options(const char *name, const RouteOptions *options, JsonWriter *w,
                               Error *reterr) {
        uint64_t concurrent = 0;
        int r;

        json_write_object(w, NULL);
        json_write_string(w, "name", name);
        json_write_string(w, "upstream", options->upstream);
        r = route_write_pairs("--header", "header", &options->headers, ':', w, reterr);
        if (r == 0)
                r = route_write_pairs("--query", "query", &options->queries, '=', w, reterr);
        if (r == 0)
                r = route_write_variables(name, &options->env, w, reterr);
        if (r == 0)
                r = ask_option("--concurrent", options->concurrent, 1, ROUTE_CONCURRENT_MAX,
                               &concurrent, reterr);
        if (r < 0)
                return r;
        if (options->allow.count > 0) {
                json_write_array(w, "allow");
                for (size_t i = 0; i < options->allow.count; i++)
                        json_write_string(w, NULL, options->allow.items[i]);
                json_write_end(w);
        }
        route_write_limits(options, w);
        if (concurrent)
                json_write_uint(w, "concurrent", concurrent);
        json_write_end(w);
        return json_write_finish(w) < 0 ? error_oom(reterr) : 0;
}

static bool route_has_options(const RouteOptions *options) {
        return options->headers.count || options->queries.count || options->env.count ||
               options->allow.count || options->timeout || options->body || options->requests ||
               options->bytes || options->concurrent;
}

/* Reads a whole file, or stdin for "-". */
static int route_take_file(const char *path, char **ret, size_t *ret_length, Error *reterr) {
        FILE *file = streq(path, "-") ? stdin : fopen(path, "re");
        _cleanup_free_ char *bytes = malloc(ROUTE_TEXT_MAX + 1);
        bool failed;

        if (!file)
                return error_set(reterr, ERROR_USAGE, errno, "cannot open %.200s", path);
        *ret_length = bytes ? fread(bytes, 1, ROUTE_TEXT_MAX + 1, file) : 0;
        failed = ferror(file);
        if (file != stdin)
                (void)fclose(file);
        if (!bytes)
                return error_oom(reterr);
        if (failed)
                return error_set(reterr, ERROR_USAGE, errno, "cannot read %.200s", path);
        if (*ret_length > ROUTE_TEXT_MAX)
                return error_set(reterr, ERROR_USAGE, 0, "%.200s: a route has at most %d bytes",
                                 path, ROUTE_TEXT_MAX);
        *ret = TAKE_PTR(bytes);
        return 0;
}

/* name: the file for messages, or "route" for the options. */
static int route_parse_own(const char *name, const char *bytes, size_t length, char **ret,
                           Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        _cleanup_free_ char *where = str_format("%.200s: $", name);
        int r = json_parse(bytes, length, name, &document, reterr);

        if (r < 0 || !where)
                return r < 0 ? r : error_oom(reterr);
        if (json_member(json_root(document), "bridge") ||
            json_member(json_root(document), "holt")) {
                r = error_set(reterr, ERROR_USAGE, 0, "%.200s: this is a policy, and not a route",
                              name);
                return error_cure(reterr, r,
                                  "Write one item of its bridge.routes into a file of its own.");
        }
        r = route_check(json_root(document), where, reterr);
        return r < 0 ? r : route_item_make(NULL, json_root(document), ret, reterr);
}

static int route_known(const char *name, char **ret, Error *reterr) {
        int r = route_item_make(name, NULL, ret, reterr);

        return r == 0 || r == -ENOMEM
                       ? r
                       : error_cure(reterr, r, "A route of your own needs --upstream.");
}

/* Makes the item of the operand: a known name, a name with --upstream, a file, or stdin. Names of
 * routes have neither "/" nor ".". */
static int route_read_item(const char *word, const RouteOptions *options, char **ret,
                           Error *reterr) {
        const bool file = streq(word, "-") || strpbrk(word, "/.");
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;
        int r;

        if (!options->upstream && (file || !route_has_options(options))) {
                if (!file)
                        return route_known(word, ret, reterr);
                r = route_take_file(word, &bytes, &length, reterr);
                return r < 0 ? r
                             : route_parse_own(streq(word, "-") ? "stdin" : word, bytes, length,
                                               ret, reterr);
        }
        if (file || !options->upstream) {
                r = error_set(reterr, ERROR_USAGE, 0,
                              file ? "a route from a file takes no options of a route"
                                   : "options of a route need --upstream");
                return error_cure(reterr, r,
                                  "holt policy routes NAME prints a known route; change it in a "
                                  "file, and add the file.");
        }
        r = route_write_options(word, options, &w, reterr);
        return r < 0 ? r : route_parse_own("route", w.data, w.length, ret, reterr);
}

/* --- requests --- */

/* Connects to the keeper. *ret is NULL if the session is at rest. */
static int route_connect(const char *name, RpcClient **ret, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE, fd = FD_NONE;
        int r = session_open(name, &dir_fd, NULL, reterr);

        *ret = NULL;
        if (r == 0)
                r = session_find_keeper(name, dir_fd, FIND_TIME, &fd, reterr);
        if (r == 0)
                r = rpc_client_new(TAKE_FD(fd), ret, reterr);
        return r == -ENOENT && !*ret && dir_fd >= 0 ? 0 : r;
}

static int route_add_live(RpcClient *client, const char *item, RpcMessage *ret, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(json_freep) JsonDocument *document = NULL;
        _cleanup_close_ int secrets_fd = FD_NONE;
        int r = route_secrets_pack(item, &secrets_fd, reterr);

        if (r == 0 && item[0] == '{')
                r = json_parse(item, strlen(item), "route", &document, reterr);
        if (r < 0)
                return r;
        json_write_object(&w, NULL);
        if (document)
                json_copy(&w, "route", json_root(document));
        else
                json_write_string(&w, "known", item);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        return rpc_client_call(client, "route.add", &w, &secrets_fd, secrets_fd >= 0, ret, reterr);
}

static int route_remove_live(RpcClient *client, const char *route, RpcMessage *ret, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "name", route);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        return rpc_client_call(client, "route.remove", &w, NULL, 0, ret, reterr);
}

/* --- printing --- */

/* Prints the names of the variables that later commands get. */
static int route_print_variables(const char *item, Error *reterr) {
        _cleanup_(strlist_clear) StrList names = { 0 };

        if (route_item_variables(item, &names) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < names.count; i++)
                (void)printf("%s\n", names.items[i]);
        return 0;
}

/* result: NULL if the session is at rest. */
static int route_print_changed(const char *session, const char *item, const JsonValue *result,
                               bool json, Error *reterr) {
        const char *reason = json_member_string(result, "reason");
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (json && result)
                return ask_print_json(result, reterr);
        if (json) {
                json_write_object(&w, NULL);
                json_write_bool(&w, "live", false);
                json_write_null(&w, "reason");
                return ask_print_document(&w, reterr);
        }
        if (reason)
                (void)fprintf(stderr,
                              "holt: the %s applies from the next start of the session on: %s\n"
                              "  Stop the session: holt stop %s. The next command starts it "
                              "again.\n",
                              item ? "route" : "removal", reason, session);
        return item ? route_print_variables(item, reterr) : 0;
}

static int route_list_at_rest(Store *store, const char *path, const void *data, JsonWriter *w,
                              Error *reterr) {
        (void)path;
        (void)data;
        return route_store_write_at_rest(store, w, reterr);
}

static void route_print_one(const JsonValue *route, bool rest) {
        bool live = false;

        (void)json_bool(json_member(route, "live"), &live);
        (void)printf("%-16s %s", json_member_text(route, "name"),
                     json_member_text(route, "upstream"));
        for (const JsonValue *env = json_first(json_member(route, "env")); env;
             env = json_next(env))
                (void)printf("  %s", json_string(env));
        (void)printf("%s\n", live || rest ? "" : "  (from the next start on)");
}

/* --- the subverbs --- */

static int route_add(const char *const *operands, const RouteOptions *options, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        _cleanup_free_ char *item = NULL;
        RpcClient *client = NULL;
        int r = route_read_item(operands[1], options, &item, reterr);

        if (r == 0)
                r = route_connect(operands[0], &client, reterr);
        if (r < 0)
                return r;
        r = client ? route_add_live(client, item, &message, reterr)
                   : route_add_at_rest(operands[0], item, reterr);
        if (r == 0)
                r = route_print_changed(operands[0], item, client ? message.result : NULL,
                                        options->json, reterr);
        rpc_client_free(client);
        return r;
}

static int route_remove(const char *const *operands, const RouteOptions *options, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        RpcClient *client = NULL;
        int r = route_connect(operands[0], &client, reterr);

        if (r < 0)
                return r;
        r = client ? route_remove_live(client, operands[1], &message, reterr)
                   : route_remove_at_rest(operands[0], operands[1], reterr);
        if (r == 0)
                r = route_print_changed(operands[0], NULL, client ? message.result : NULL,
                                        options->json, reterr);
        rpc_client_free(client);
        return r;
}

static int route_list(const char *const *operands, const RouteOptions *options, Error *reterr) {
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        int r = ask_look(operands[0], "route.list", NULL, route_list_at_rest, NULL, &answer,
                         reterr);

        if (r < 0 || options->json)
                return r < 0 ? r : ask_print_json(answer.result, reterr);
        for (const JsonValue *route = json_first(json_member(answer.result, "routes")); route;
             route = json_next(route))
                route_print_one(route, answer.document != NULL);
        return 0;
}

static const struct {
        Subverb subverb;
        int (*run)(const char *const *operands, const RouteOptions *options, Error *reterr);
} route_subverbs[] = {
        { { "add", "NAME ROUTE", 2, 2 }, route_add },
        { { "list", "NAME", 1, 1 }, route_list },
        { { "remove", "NAME ROUTE", 2, 2 }, route_remove },
};

static int route_unknown_subverb(const char *word, Error *reterr) {
        char quoted[160];
        int r = error_set(reterr, ERROR_USAGE, 0, "unknown verb \"route %s\"",
                          str_quote(word, quoted, sizeof(quoted)));

        return error_cure(reterr, r, "The verbs are holt route add, list and remove.");
}

static int do_route(const OptionResult *words, const void *options, Error *reterr) {
        const RouteOptions *chosen = options;
        const char *const *operands = words->operands + 1;
        int r = -EINVAL;

        for (size_t i = 0; i < ELEMENTSOF(route_subverbs); i++) {
                const Subverb *subverb = &route_subverbs[i].subverb;
                char two[32];

                if (!streq(subverb->name, words->operands[0]))
                        continue;
                (void)snprintf(two, sizeof(two), "route %s", subverb->name);
                r = operands_check(two, subverb->usage, operands, words->operands_count - 1,
                                   subverb->least, subverb->most, reterr);
                if (r == 0 && i > 0 && (chosen->upstream || route_has_options(chosen)))
                        r = error_set(reterr, ERROR_USAGE, 0,
                                      "only \"add\" takes options of a route");
                if (r == 0)
                        r = route_subverbs[i].run(operands, chosen, reterr);
                if (r < 0)
                        operands_name_session(operands[0], reterr);
                return r;
        }
        return route_unknown_subverb(words->operands[0], reterr);
}

int cmd_route(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "route",
                            .usage = "add|list|remove NAME [ROUTE] [OPTIONS]",
                            .summary =
                                    "Adds, lists or removes routes of a session: services that its "
                                    "commands use with a\ncredential that stays outside. ROUTE is "
                                    "a "
                                    "known route, a name of your own with --upstream,\na JSON "
                                    "file, "
                                    "or \"-\" for stdin. \"add\" prints the variables that later "
                                    "commands get.",
                            .options = route_options,
                            .options_count = ELEMENTSOF(route_options),
                            .operands = true },
                .least = 1,
                .most = 3,
                .makes = true, /* the first operand is no session */
                .run = do_route,
        };
        RouteOptions chosen = { 0 };
        int r = ask_main(&verb, &chosen, argc, argv);

        strlist_clear(&chosen.headers);
        strlist_clear(&chosen.queries);
        strlist_clear(&chosen.env);
        strlist_clear(&chosen.allow);
        return r;
}
