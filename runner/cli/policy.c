/* SPDX-License-Identifier: Apache-2.0 */
/* holt policy show | check | schema | list | routes | syscalls */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json-write.h"
#include "base/json.h"
#include "base/nearest.h"
#include "cli/fail.h"
#include "cli/options.h"
#include "cli/policy-words.h"
#include "cli/verbs.h"
#include "policy/load.h"
#include "policy/net/rules.h"
#include "policy/plan-routes.h"
#include "policy/routes/route.h"
#include "policy/schema.h"
#include "policy/syscalls/syscalls.h"
#include "session/policy-files.h"

enum { SHOW_COLUMN = 30 };

typedef struct PolicyArgs {
        bool json;
} PolicyArgs;

static const Option json_option[] = {
        { .name = "--json",
          .help = "print JSON",
          .kind = OPTION_BOOL,
          .offset = offsetof(PolicyArgs, json) },
};

typedef struct PolicyVerb {
        const char *name;
        OptionSyntax syntax;
        int (*run)(const PolicyArgs *args, const OptionResult *result, Error *reterr);
} PolicyVerb;

/* --- output --- */

static int fail_output(Error *reterr) {
        return error_set(reterr, ERROR_SETUP, errno, "cannot write to stdout");
}

static int policy_verb_flush_output(Error *reterr) {
        return fflush(stdout) != 0 || ferror(stdout) ? fail_output(reterr) : 0;
}

static int policy_verb_print_json(JsonWriter *w, Error *reterr) {
        if (json_write_finish(w) < 0)
                return error_oom(reterr);
        if (fwrite(w->data, 1, w->length, stdout) != w->length)
                return fail_output(reterr);
        return policy_verb_flush_output(reterr);
}

/* --- show --- */

static int show_field(const Policy *policy, const PolicyField *field, Error *reterr) {
        for (size_t i = 0;; i++) {
                _cleanup_free_ char *text = policy_field_text(policy, field, i);
                const PolicyNote *note;
                char quoted[400];

                if (!text && i == 0)
                        (void)printf("%-*s(%s)\n", SHOW_COLUMN, field->path,
                                     field->unset ? field->unset : "none");
                if (!text)
                        return 0;
                note = policy_note(policy, field->path, text);
                (void)printf("%-*s%s%s\n", SHOW_COLUMN, i == 0 ? field->path : "",
                             field->objects ? str_visible(text, quoted, sizeof(quoted))
                                            : str_quote(text, quoted, sizeof(quoted)),
                             note && note->origin == ORIGIN_PROJECT ? " (" POLICY_PROJECT_FILE ")"
                                                                    : "");
                if (ferror(stdout))
                        return fail_output(reterr);
        }
}

static int show_text(const Policy *policy, Error *reterr) {
        char quoted[400];

        if (policy_files_config())
                (void)printf("%-*s%s\n", SHOW_COLUMN, "settings",
                             str_quote(policy_files_config(), quoted, sizeof(quoted)));
        (void)printf("%-*s%s\n", SHOW_COLUMN, "extends", policy->preset);
        for (size_t i = 0; i < policy_fields_count; i++) {
                int r = show_field(policy, &policy_fields[i], reterr);

                if (r < 0)
                        return r;
        }
        return policy_verb_flush_output(reterr);
}

/* "show NAME" is "show --policy NAME". */
static int resolve_shown(const OptionResult *result, Policy *policy, Error *reterr) {
        OptionResult both = *result;
        const char **all = calloc(result->policies_count + result->operands_count + 1,
                                  sizeof(*all));
        int r;

        if (!all)
                return error_oom(reterr);
        memcpy(all, result->policies, result->policies_count * sizeof(*all));
        memcpy(all + result->policies_count, result->operands,
               result->operands_count * sizeof(*all));
        both.policies = all;
        both.policies_count += result->operands_count;
        r = policy_words_resolve(policy, &both, reterr);
        free(all);
        return r;
}

/* --- named sets of network rules --- */

static int set_unknown(const char *name, Error *reterr) {
        Nearest nearest = { .word = name + 1 };
        char quoted[160];
        int r;

        for (size_t i = 0; i < net_sets_count; i++)
                nearest_try(&nearest, net_sets[i].name);
        r = error_set(reterr, ERROR_USAGE, 0, "no set of network rules is called \"%s\"%s%s%s",
                      str_quote(name, quoted, sizeof(quoted)),
                      nearest.best ? "; did you mean \"@" : "", nearest.best ? nearest.best : "",
                      nearest.best ? "\"?" : "");
        return error_cure(reterr, r, "List the sets: holt policy list");
}

static void set_write(JsonWriter *w, const NetSet *set) {
        char name[80];

        (void)snprintf(name, sizeof(name), "@%s", set->name);
        json_write_object(w, NULL);
        json_write_string(w, "name", name);
        json_write_string(w, "description", set->description);
        json_write_array(w, "allow");
        for (const char *const *rule = set->rules; *rule; rule++)
                json_write_string(w, NULL, *rule);
        json_write_end(w);
        json_write_end(w);
}

/* Handles "show @NAME". */
static int set_show(const PolicyArgs *args, const char *name, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };
        const NetSet *set = net_set(name + 1);

        if (!set)
                return set_unknown(name, reterr);
        set_write(&w, set);
        if (args->json)
                return policy_verb_print_json(&w, reterr);
        (void)printf("%-*s%s\n", SHOW_COLUMN, "description", set->description);
        for (size_t i = 0; set->rules[i]; i++)
                (void)printf("%-*s%s\n", SHOW_COLUMN, i == 0 ? "network.allow" : "", set->rules[i]);
        return policy_verb_flush_output(reterr);
}

/* Replaces passwords, because a policy that is shown is often passed on. */
static int policy_verb_mask(Policy *policy, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];
                _cleanup_free_ char *text = field->mask ? policy_field_text(policy, field, 0)
                                                        : NULL;
                _cleanup_free_ char *masked = text ? field->mask(text) : NULL;

                if (text && !masked)
                        return error_oom(reterr);
                if (masked)
                        r = policy_set(policy, field->path, masked, ORIGIN_CALLER, "", reterr);
        }
        return r;
}

static int policy_show(const PolicyArgs *args, const OptionResult *result, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };
        _cleanup_(policy_clear) Policy policy = { 0 };
        int r;

        if (result->operands_count > 0 && result->operands[0][0] == '@') {
                if (result->operands_count == 1)
                        return set_show(args, result->operands[0], reterr);
                r = error_set(reterr, ERROR_USAGE, 0, "only one set can be shown at a time");
                return error_cure(reterr, r, "For example: holt policy show %.80s",
                                  result->operands[0]);
        }
        r = resolve_shown(result, &policy, reterr);
        if (r < 0)
                return r;
        r = policy_verb_mask(&policy, reterr);
        if (r < 0)
                return r;
        if (!args->json)
                return show_text(&policy, reterr);
        r = policy_document_print(&policy, &w);
        return r < 0 ? error_oom(reterr) : policy_verb_print_json(&w, reterr);
}

/* --- check --- */

/* Checks a policy file. A file with the name of a project's policy is checked by the stricter rules
 * of those. */
static int check_file(const char *name, Error *reterr) {
        const char *slash = strrchr(name, '/');
        bool project = streq(slash ? slash + 1 : name, POLICY_PROJECT_FILE);
        _cleanup_(policy_clear) Policy policy = { 0 };
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;
        int r;

        if (!project) {
                r = policy_files_load(&policy, name, reterr);
                policy_files_forget();
                return r < 0 ? r : routes_check(&policy, reterr);
        }
        r = policy_files_read(name, project, &bytes, &length, reterr);
        if (r == 0)
                r = policy_preset(&policy, POLICY_PRESET_DEFAULT, name, reterr);
        return r < 0 ? r : policy_load(&policy, bytes, length, name, ORIGIN_PROJECT, reterr);
}

static void policy_verb_check_json(JsonWriter *w, const char *name, const Error *error) {
        char sentence[ERROR_SENTENCE_MAX];

        json_write_object(w, NULL);
        json_write_string(w, "file", name);
        json_write_bool(w, "ok", !error);
        if (error) {
                json_write_object(w, "error");
                json_write_string(w, "kind", error_kind_name(error->kind));
                json_write_string(w, "message", error_sentence(error, sentence));
                json_write_string(w, "errno",
                                  error->errnum > 0 ? error_errno_name(error->errnum) : NULL);
                json_write_string(w, "cure", error->cure[0] ? error->cure : NULL);
                json_write_end(w);
        }
        json_write_end(w);
}

static void policy_verb_check_text(const char *name, const Error *error) {
        char quoted[400];

        if (error)
                error_print(error, stderr);
        else
                (void)printf("%s: ok\n", str_quote(name, quoted, sizeof(quoted)));
}

/* Checks every file and prints its errors. Returns 1 if one of them has errors. */
static int policy_check(const PolicyArgs *args, const OptionResult *result, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };
        bool bad = false;
        Error error;
        int r;

        if (result->operands_count == 0) {
                r = error_set(reterr, ERROR_USAGE, 0, "missing FILE");
                return error_cure(reterr, r, "holt policy check FILE...");
        }
        json_write_array(&w, NULL);
        for (size_t i = 0; i < result->operands_count; i++) {
                const char *name = result->operands[i];
                bool ok = check_file(name, &error) == 0;

                bad = bad || !ok;
                if (args->json)
                        policy_verb_check_json(&w, name, ok ? NULL : &error);
                else
                        policy_verb_check_text(name, ok ? NULL : &error);
        }
        json_write_end(&w);
        r = args->json ? policy_verb_print_json(&w, reterr) : policy_verb_flush_output(reterr);
        return r < 0 ? r : bad;
}

/* --- schema, list, syscalls --- */

static int policy_schema(const PolicyArgs *args, const OptionResult *result, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };

        (void)args;
        (void)result;
        policy_schema_print(&w);
        return policy_verb_print_json(&w, reterr);
}

/* Writes a known route, the object included. */
static int list_write_route(JsonWriter *w, const RouteProvider *provider, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        int r = json_parse(provider->json, strlen(provider->json), provider->name, &document,
                           reterr);

        if (r < 0)
                return r;
        json_write_object(w, NULL);
        json_write_string(w, "name", provider->name);
        json_write_string(w, "description", provider->description);
        json_copy(w, "route", json_root(document));
        json_write_end(w);
        return 0;
}

/* prefix: a text before each name, unless JSON is printed. */
static int list_routes(const PolicyArgs *args, const char *prefix, JsonWriter *w, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < route_providers_count; i++) {
                const RouteProvider *provider = &route_providers[i];

                if (args->json)
                        r = list_write_route(w, provider, reterr);
                else
                        (void)printf("%s%-12s%s\n", prefix, provider->name, provider->description);
        }
        return r;
}

/* Prints the routes, or the object of one of them, which a policy can have in a changed form. */
static int policy_routes(const PolicyArgs *args, const OptionResult *result, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const RouteProvider *provider;
        const char *name = result->operands_count ? result->operands[0] : NULL, *why;
        int r;

        if (!name) {
                json_write_array(&w, NULL);
                r = list_routes(args, "", &w, reterr);
                json_write_end(&w);
                if (r < 0)
                        return r;
                return args->json ? policy_verb_print_json(&w, reterr)
                                  : policy_verb_flush_output(reterr);
        }
        provider = route_provider(name);
        if (!provider) {
                (void)route_refuse_name(name, &why);
                return error_set(reterr, ERROR_POLICY, 0, "\"%s\" %.*s", name,
                                 (int)strcspn(why, "\n"), why);
        }
        r = json_parse(provider->json, strlen(provider->json), name, &document, reterr);
        if (r < 0)
                return r;
        json_copy(&w, NULL, json_root(document));
        return policy_verb_print_json(&w, reterr);
}

static int policy_list(const PolicyArgs *args, const OptionResult *result, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };
        int r;

        (void)result;
        json_write_array(&w, NULL);
        for (size_t i = 0; i < policy_presets_count; i++) {
                const Preset *preset = &policy_presets[i];

                json_write_object(&w, NULL);
                json_write_string(&w, "name", preset->name);
                json_write_string(&w, "description", preset->description);
                json_write_end(&w);
                if (!args->json)
                        (void)printf("%-12s%s\n", preset->name, preset->description);
        }
        for (size_t i = 0; i < net_sets_count; i++) {
                set_write(&w, &net_sets[i]);
                if (!args->json)
                        (void)printf("@%-11s%s\n", net_sets[i].name, net_sets[i].description);
        }
        r = list_routes(args, "--route ", &w, reterr);
        if (r < 0)
                return r;
        json_write_end(&w);
        return args->json ? policy_verb_print_json(&w, reterr) : policy_verb_flush_output(reterr);
}

enum { SYSCALL_NUMBERS = 4096 }; /* greater than every system call number of holt's architectures */

static int policy_syscalls(const PolicyArgs *args, const OptionResult *result, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };

        (void)result;
        json_write_array(&w, NULL);
        for (unsigned nr = 0; nr < SYSCALL_NUMBERS; nr++) {
                const char *name = syscall_name(nr), *group = syscall_group(nr);

                if (!name || !group)
                        continue;
                json_write_object(&w, NULL);
                json_write_string(&w, "name", name);
                json_write_string(&w, "group", group);
                json_write_end(&w);
                if (!args->json)
                        (void)printf("%-28s%s\n", name, group);
        }
        json_write_end(&w);
        return args->json ? policy_verb_print_json(&w, reterr) : policy_verb_flush_output(reterr);
}

/* --- the verbs --- */

#define WITH_JSON .options = json_option, .options_count = ELEMENTSOF(json_option)

static const PolicyVerb verbs[] = {
        { "show",
          { .verb = "policy show",
            .usage = "[--json] [OPTIONS] [NAME|FILE...|@SET]",
            .summary = "Prints the policy that \"holt run\" with the same options would have. "
                       "\"show ci\" means\n\"show --policy ci\". With --json, prints a document "
                       "that --policy can read.\n\"show @python\" prints the rules of a set for "
                       "--net.",
            .policy = true,
            .operands = true,
            WITH_JSON },
          policy_show },
        { "check",
          { .verb = "policy check",
            .usage = "[--json] FILE...",
            .summary = "Checks policy files and prints their errors. \"-\" is stdin.",
            .operands = true,
            WITH_JSON },
          policy_check },
        { "schema",
          { .verb = "policy schema",
            .usage = "",
            .summary = "Prints the JSON Schema (draft 2020-12) of policy files.",
            WITH_JSON },
          policy_schema },
        { "list",
          { .verb = "policy list",
            .usage = "[--json]",
            .summary =
                    "Lists the presets for --policy and \"extends\", the sets for --net, and the "
                    "routes for --route.",
            WITH_JSON },
          policy_list },
        { "routes",
          { .verb = "policy routes",
            .usage = "[--json] [NAME]",
            .summary = "Lists the known routes for --route. With NAME, prints the route as JSON. "
                       "To change it, put\nit into \"bridge.routes\" of a policy.",
            .operands = true,
            WITH_JSON },
          policy_routes },
        { "syscalls",
          { .verb = "policy syscalls",
            .usage = "[--json]",
            .summary = "Lists the system calls for --allow-syscall and --deny-syscall on this "
                       "machine, each with\nits group.",
            WITH_JSON },
          policy_syscalls },
};

static void print_usage(FILE *out) {
        (void)fputs("Usage: holt policy VERB [OPTIONS]\n\n", out);
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                const OptionSyntax *syntax = &verbs[i].syntax;

                (void)fprintf(out, "  holt %s%s%s\n", syntax->verb, syntax->usage[0] ? " " : "",
                              syntax->usage);
        }
        (void)fputs("\n\"holt policy VERB --help\" describes a verb.\n", out);
}

static int policy_verb_unknown_verb(const char *name, Error *reterr) {
        Nearest nearest = { .word = name };
        char quoted[160], names[160] = "";
        int r;

        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                nearest_try(&nearest, verbs[i].name);
                (void)strncat(names, i ? ", " : "", sizeof(names) - strlen(names) - 1);
                (void)strncat(names, verbs[i].name, sizeof(names) - strlen(names) - 1);
        }
        r = error_set(reterr, ERROR_USAGE, 0, "no verb is called \"%s\"",
                      str_quote(name, quoted, sizeof(quoted)));
        if (nearest.best)
                return error_cure(reterr, r, "Did you mean \"holt policy %s\"?", nearest.best);
        return error_cure(reterr, r, "Its verbs are: %s.", names);
}

static int policy_verb_run_verb(const PolicyVerb *verb, int argc, char **argv, Error *reterr) {
        _cleanup_(options_clear) OptionResult result = { 0 };
        PolicyArgs args = { 0 };
        int r;

        r = options_parse(&verb->syntax, argc, (const char *const *)argv, &args, &result, reterr);
        if (r < 0)
                return r;
        if (result.help) {
                options_help(&verb->syntax, stdout);
                return policy_verb_flush_output(reterr);
        }
        return verb->run(&args, &result, reterr);
}

static int find_and_run(int argc, char **argv, Error *reterr) {
        if (argc < 2) {
                print_usage(stderr);
                return 1;
        }
        if (streq(argv[1], "--help") || streq(argv[1], "-h")) {
                print_usage(stdout);
                return policy_verb_flush_output(reterr);
        }
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (streq(verbs[i].name, argv[1]))
                        return policy_verb_run_verb(&verbs[i], argc - 1, argv + 1, reterr);
        return policy_verb_unknown_verb(argv[1], reterr);
}

int cmd_policy(int argc, char **argv) {
        Error error;
        int r = find_and_run(argc, argv, &error);

        if (r < 0)
                return fail_print(&error, fail_wants_json(argc, argv));
        return r == 0 ? 0 : 125;
}
