/* SPDX-License-Identifier: Apache-2.0 */
#include "session/routes.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/json.h"
#include "base/paths.h"
#include "base/strings.h"
#include "network/caller-env.h"
#include "policy/plan-parts.h"
#include "policy/plan-routes.h"

enum { TOKEN_BYTES = 20 };

/* The prefix tells people who find a token that it is worth nothing. */
static char *routes_make_token(void) {
        static const char prefix[] = "holt-";
        unsigned char bytes[TOKEN_BYTES];
        char *token = malloc(sizeof(prefix) + (size_t)TOKEN_BYTES * 2);

        if (!token || getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
                free(token);
                return NULL;
        }
        memcpy(token, prefix, sizeof(prefix));
        for (size_t i = 0; i < sizeof(bytes); i++)
                (void)snprintf(token + sizeof(prefix) - 1 + i * 2, 3, "%02x", bytes[i]);
        return token;
}

static int refuse_unset(const char *route, const char *name, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "the route %s needs the environment variable %s, which is not set", route,
                          name);

        return error_cure(reterr, r, "Set it in the environment of holt: %s=... holt run", name);
}

/* --- files and programs --- */

/* The launch pins these files, or refuses to start if the command could change one of them
 * (guards/inputs.h). */
static int routes_add_input(LaunchPlan *plan, const char *path, Error *reterr) {
        return plan_inputs_add(&plan->inputs, path, FD_NONE, "", 0) < 0 ? error_oom(reterr) : 0;
}

static int routes_add_file(LaunchPlan *plan, const char *path, Error *reterr) {
        const char *home = str_starts(path, "~/") ? caller_env_get("HOME") : NULL;
        _cleanup_free_ char *full = home ? path_join(home, path + 2) : strdup(path);

        int r = full ? routes_add_input(plan, full, reterr) : error_oom(reterr);

        return r < 0 ? r : plan_hide_host(plan, full, "the credential of a route", reterr);
}

/* Adds each place in which holt-gateway looks for a program, up to the one that it executes. It
 * looks from the root directory, so a relative directory in PATH is one there. */
static int routes_add_searched(LaunchPlan *plan, const char *name, Error *reterr) {
        const char *places = caller_env_get("PATH");
        int r = 0;

        for (places = places ? places : "/bin:/usr/bin"; r == 0; places++) {
                const size_t length = strcspn(places, ":");
                _cleanup_free_ char *place = str_format("%.*s/%s", (int)length, places, name);
                _cleanup_free_ char *path = place ? path_join("/", place) : NULL;

                if (!path)
                        return error_oom(reterr);
                r = routes_add_input(plan, path, reterr);
                places += length;
                if (!*places || access(path, X_OK) == 0)
                        break;
        }
        return r;
}

/* Adds the program, and words that are absolute paths, or end in one after "=". */
static int routes_add_command(LaunchPlan *plan, const JsonValue *words, Error *reterr) {
        const char *program = json_string(json_first(words));
        int r = 0;

        if (!strchr(program, '/'))
                r = routes_add_searched(plan, program, reterr);
        else if (program[0] != '/')
                return error_set(reterr, ERROR_POLICY, 0,
                                 "bridge.routes: the command %s has a relative path; write an "
                                 "absolute one",
                                 program);
        for (const JsonValue *w = json_first(words); r == 0 && w; w = json_next(w)) {
                const char *word = json_string(w), *equals = strchr(word, '=');

                if (word[0] == '/')
                        r = routes_add_input(plan, word, reterr);
                else if (equals && equals[1] == '/')
                        r = routes_add_input(plan, equals + 1, reterr);
        }
        return r;
}

static int routes_add_sources(LaunchPlan *plan, const JsonValue *route, Error *reterr) {
        int r = 0;

        for (const JsonValue *i = json_first(json_member(route, "inject")); r == 0 && i;
             i = json_next(i)) {
                const char *file = json_member_string(i, "file");
                const JsonValue *command = json_member(i, "command");

                if (file)
                        r = routes_add_file(plan, file, reterr);
                else if (command)
                        r = routes_add_command(plan, command, reterr);
        }
        return r;
}

/* --- variables --- */

/* Gives the commands the variables of the caller that a route passes. A variable that the policy
 * sets stays as it is. */
static int routes_pass_env(LaunchPlan *plan, const JsonValue *route, Error *reterr) {
        for (const JsonValue *item = json_first(json_member(route, "pass")); item;
             item = json_next(item)) {
                const char *name = json_string(item), *value = caller_env_get(name);

                if (value && !plan_has_env(&plan->env, name) &&
                    plan_set_env(&plan->env, name, strlen(name), value) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

static int routes_check_env(const JsonValue *route, Error *reterr) {
        for (const JsonValue *inject = json_first(json_member(route, "inject")); inject;
             inject = json_next(inject)) {
                const char *name = json_member_string(inject, "env");
                const char *value = name ? caller_env_get(name) : NULL;

                if (name && (!value || !*value))
                        return refuse_unset(json_member_text(route, "name"), name, reterr);
        }
        return 0;
}

/* text: the route in the form that holt-gateway reads. */
static int routes_complete(LaunchPlan *plan, const char *text, bool needs_env, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        int r = json_parse(text, strlen(text), "route", &document, reterr);
        const JsonValue *route = r < 0 ? NULL : json_root(document);

        if (r == 0 && needs_env)
                r = routes_check_env(route, reterr);
        if (r == 0)
                r = routes_pass_env(plan, route, reterr);
        return r < 0 ? r : routes_add_sources(plan, route, reterr);
}

int routes_prepare(const Policy *policy, LaunchPlan *plan, bool needs_env, Error *reterr) {
        const char *certificates;
        int r;

        if (policy->routes.count == 0)
                return 0;
        certificates = caller_env_get("SSL_CERT_FILE");
        plan->route_token = routes_make_token();
        if (!plan->route_token)
                return error_oom(reterr);
        r = routes_plan(policy, plan->route_token, plan, reterr);
        for (size_t i = 0; r == 0 && i < plan->routes.count; i++)
                r = routes_complete(plan, plan->routes.items[i], needs_env, reterr);
        return r == 0 && certificates ? routes_add_input(plan, certificates, reterr) : r;
}
