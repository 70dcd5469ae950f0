/* SPDX-License-Identifier: Apache-2.0 */
/* holt link: makes signed, expiring URLs for the files of a session. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/path-text.h"
#include "base/strings.h"
#include "cli/ask.h"
#include "cli/verbs.h"

/* json is first, because its offset in ask_json_option is 0. */
typedef struct LinkOptions {
        bool json, upload, list;
        const char *time, *max_size, *revoke;
} LinkOptions;

static const Option link_options[] = {
        { "--for", "TIME", "time until the link expires, at most 7d; the default is 1h",
          OPTION_STRING, offsetof(LinkOptions, time), NULL },
        { "--upload", NULL, "accept one upload of PATH, instead of serving it", OPTION_BOOL,
          offsetof(LinkOptions, upload), NULL },
        { "--max-size", "SIZE", "for --upload: largest upload; the default is 100MiB",
          OPTION_STRING, offsetof(LinkOptions, max_size), NULL },
        { "--list", NULL, "list the links that have not expired", OPTION_BOOL,
          offsetof(LinkOptions, list), NULL },
        { "--revoke", "ID", "end a link by its number, or \"all\"", OPTION_STRING,
          offsetof(LinkOptions, revoke), NULL },
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(LinkOptions, json),
          NULL },
};

/* --- making --- */

static int link_make_params(const LinkOptions *options, const char *path, JsonWriter *w,
                            Error *reterr) {
        uint64_t time = 0, size = 0;
        int r;

        json_write_object(w, NULL);
        json_write_path(w, "path", path);
        json_write_bool(w, "upload", options->upload);
        if (options->time) {
                if (str_to_usec(options->time, &time) < 0 || time < 1000 ||
                    time > 7ULL * 24 * 3600 * 1000000) {
                        r = error_set(reterr, ERROR_USAGE, 0,
                                      "--for: \"%.40s\" is not a valid time", options->time);
                        return error_cure(reterr, r,
                                          "Use a number with a unit from 1ms to 7d, for example "
                                          "10m or 1h.");
                }
                json_write_uint(w, "for_ms", time / 1000);
        }
        if (!options->max_size)
                return 0;
        if (!options->upload)
                return error_set(reterr, ERROR_USAGE, 0, "--max-size needs --upload");
        if (str_to_bytes(options->max_size, &size) < 0 || size > 1ULL << 40) {
                r = error_set(reterr, ERROR_USAGE, 0, "--max-size: \"%.40s\" is not a valid size",
                              options->max_size);
                return error_cure(reterr, r,
                                  "Use a size of at most 1TiB, for example 64KiB or 2GiB.");
        }
        json_write_uint(w, "max_size", size);
        return 0;
}

static int link_make(const char *name, const char *path, const LinkOptions *options,
                     Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        int r = link_make_params(options, path, &w, reterr);

        if (r == 0)
                r = ask_keeper(name, "links.make", &w, &answer, reterr);
        if (r < 0 || options->json)
                return r < 0 ? r : ask_print_json(answer.result, reterr);
        (void)printf("%s\n", json_member_text(answer.result, "url"));
        return 0;
}

/* --- list, revoke --- */

/* A session at rest has no links. */
static int link_ask_live(const char *name, const char *method, JsonWriter *w, Answer *answer,
                         Error *reterr) {
        RpcClient *client = NULL;
        int r = ask_live(name, &client, reterr);

        if (r == 0)
                r = ask_client(client, method, w, answer, reterr);
        rpc_client_free(client);
        return r;
}

static void link_print(const JsonValue *link) {
        bool used = false, upload = false;
        uint64_t id = 0, expires = 0;
        char date[24];

        (void)json_bool(json_member(link, "used"), &used);
        (void)json_bool(json_member(link, "upload"), &upload);
        (void)json_uint(json_member(link, "id"), UINT32_MAX, &id);
        (void)json_uint(json_member(link, "expires_ms"), INT64_MAX, &expires);
        (void)printf("%-4" PRIu64 " %-6s %-19s  %s\n", id,
                     used     ? "used"
                     : upload ? "upload"
                              : "get",
                     ask_time(expires, date), json_member_text(link, "url"));
}

static int link_list(const char *name, bool json, Error *reterr) {
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        int r = link_ask_live(name, "links.list", NULL, &answer, reterr);

        if (r == -ENOENT && reterr->kind == ERROR_MISSING) {
                if (json)
                        (void)printf("{\"links\": []}\n");
                return 0;
        }
        if (r < 0 || json)
                return r < 0 ? r : ask_print_json(answer.result, reterr);
        (void)printf("%-4s %-6s %-19s  %s\n", "ID", "KIND", "EXPIRES", "URL");
        for (const JsonValue *link = json_first(json_member(answer.result, "links")); link;
             link = json_next(link))
                link_print(link);
        return 0;
}

static int link_revoke(const char *name, const LinkOptions *options, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        uint64_t id = 0;
        int r;

        if (!streq(options->revoke, "all") &&
            (str_to_uint(options->revoke, UINT32_MAX, &id) < 0 || id == 0)) {
                r = error_set(reterr, ERROR_USAGE, 0,
                              "--revoke: \"%.40s\" is not the number of a link", options->revoke);
                return error_cure(reterr, r, "To list the links: holt link NAME --list");
        }
        json_write_object(&w, NULL);
        if (id)
                json_write_uint(&w, "id", id);
        r = link_ask_live(name, "links.revoke", &w, &answer, reterr);
        if (r < 0 && id)
                return error_cure(reterr, r, "To list the links: holt link NAME --list");
        return r == 0 && options->json ? ask_print_json(answer.result, reterr) : r;
}

/* --- the verb --- */

static int do_link(const OptionResult *words, const void *data, Error *reterr) {
        const LinkOptions *options = data;
        const char *name = words->operands[0], *path = words->operands[1];
        int r;

        if (!options->list && !options->revoke) {
                if (path)
                        return link_make(name, path, options, reterr);
                return error_set(reterr, ERROR_USAGE, 0, "missing PATH");
        }
        if (path || options->upload || options->time || options->max_size ||
            (options->list && options->revoke)) {
                r = error_set(reterr, ERROR_USAGE, 0, "%s takes no PATH and no other option",
                              options->list ? "--list" : "--revoke");
                return error_cure(reterr, r, "To list the links: holt link NAME --list");
        }
        return options->list ? link_list(name, options->json, reterr)
                             : link_revoke(name, options, reterr);
}

int cmd_link(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "link",
                            .usage =
                                    "NAME PATH [--for TIME] [--upload [--max-size SIZE]] [--json]\n"
                                    "       holt link NAME --list | --revoke ID|all [--json]",
                            .summary = "Prints a URL by which programs of the host can read a file "
                                       "of /mnt/files.\nWith --upload, the URL accepts one file "
                                       "instead, by PUT or POST. Links end with the session's\n"
                                       "next stop at the latest.",
                            .options = link_options,
                            .options_count = ELEMENTSOF(link_options),
                            .operands = true },
                .least = 1,
                .most = 2,
                .run = do_link,
        };
        LinkOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
