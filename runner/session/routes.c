/* SPDX-License-Identifier: Apache-2.0 */
#include "session/routes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/paths.h"
#include "base/strings.h"
#include "network/caller-env.h"
#include "policy/plan-parts.h"
#include "policy/plan-routes.h"
#include "reach/words.h"

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

/* The inputs of one command. */
typedef struct RouteCommand {
        LaunchPlan *plan;
        int depth; /* of scripts that are interpreters of each other */
        Error *reterr;
} RouteCommand;

static int routes_add_script(const RouteCommand *command, const char *path);

/* Adds each place in which holt-gateway looks for a program, up to the one that it executes. It
 * looks from the root directory, so a relative directory in PATH is one there. If PATH has no such
 * program, the places count only if `needed`. */
static int routes_add_searched(const RouteCommand *command, const char *name, bool needed) {
        const char *places = caller_env_get("PATH");
        _cleanup_(strlist_clear) StrList tried = { 0 };
        bool found = false;
        int r = 0;

        for (places = places ? places : "/bin:/usr/bin"; !found; places++) {
                const size_t length = strcspn(places, ":");
                _cleanup_free_ char *place = str_format("%.*s/%s", (int)length, places, name);
                char *path = place ? path_join("/", place) : NULL;

                if (!path)
                        return error_oom(command->reterr);
                found = access(path, X_OK) == 0;
                /* A directory that the caller cannot enter is skipped, as a shell does. */
                if (!found && access(path, F_OK) < 0 && errno == EACCES)
                        free(path);
                else if (strlist_take(&tried, path) < 0)
                        return error_oom(command->reterr);
                places += length;
                if (!*places)
                        break;
        }
        for (size_t i = 0; r == 0 && (found || needed) && i < tried.count; i++)
                r = routes_add_script(command, tried.items[i]);
        return r;
}

static int routes_add_script_word(void *data, const char *word) {
        const RouteCommand *command = data;

        return word[0] == '/' ? routes_add_script(command, word)
                              : routes_add_searched(command, word, true);
}

/* Adds the file, and the interpreter if it is a script. */
static int routes_add_script(const RouteCommand *command, const char *path) {
        RouteCommand next = *command;
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        struct stat st;
        int r = routes_add_input(command->plan, path, command->reterr);

        if (r < 0 || fd < 0 || next.depth++ >= SCRIPT_DEPTH_MAX || fstat(fd, &st) < 0 ||
            !S_ISREG(st.st_mode))
                return r;
        return script_words(fd, routes_add_script_word, &next);
}

static bool routes_is_only_path(const char *part) {
        while (word_is_of_path(*part))
                part++;
        return *part == '\0';
}

/* Adds a part of a word that may be a path. Longer texts are paths only if they exist, and so are
 * relative ones, which lead from the root directory. */
static int routes_add_part(void *data, const char *part) {
        const RouteCommand *command = data;
        const char *home = str_starts(part, "~/") ? caller_env_get("HOME") : NULL;
        /* Not normalised: ".." after a symlink leads elsewhere. */
        _cleanup_free_ char *path = home             ? str_format("%s/%s", home, part + 2)
                                    : part[0] == '/' ? strdup(part)
                                                     : str_format("/%s", part);
        struct stat st;

        if (!path)
                return error_oom(command->reterr);
        if (streq(path, "/") || (!strchr(part, '/') && !home))
                return 0;
        if (lstat(path, &st) < 0 && !(routes_is_only_path(part) && (part[0] == '/' || home)))
                return 0;
        return routes_add_script(command, path);
}

static int routes_add_word(RouteCommand *command, const char *word) {
        int r = strchr(word, '/') || !word[0] ? 0 : routes_add_searched(command, word, false);

        for (size_t i = 0; r == 0 && word[i]; i++) {
                if (!word_starts_part(word, i))
                        continue;
                r = word_parts_from(word + i, routes_add_part, command);
                if (r == 0 && (word[i] == '-' || word[i] == '+'))
                        r = word_parts_of_option(word + i, routes_add_part, command);
        }
        return r == -ENOMEM ? error_oom(command->reterr) : r;
}

/* Adds the program, and what its words name: programs in PATH, which env(1) may start, and paths.
 */
static int routes_add_command(LaunchPlan *plan, const JsonValue *words, Error *reterr) {
        RouteCommand command = { .plan = plan, .reterr = reterr };
        const char *program = json_string(json_first(words));
        int r;

        r = program[0] == '/' ? routes_add_script(&command, program)
                              : routes_add_searched(&command, program, true);
        for (const JsonValue *w = json_next(json_first(words)); r == 0 && w; w = json_next(w))
                r = routes_add_word(&command, json_string(w));
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

/* Adds the variables that are credentials to the plan. They must be set. */
static int routes_add_variables(LaunchPlan *plan, const JsonValue *route, Error *reterr) {
        for (const JsonValue *inject = json_first(json_member(route, "inject")); inject;
             inject = json_next(inject)) {
                const char *name = json_member_string(inject, "env");
                const char *value = name ? caller_env_get(name) : NULL;

                if (name && (!value || !*value))
                        return refuse_unset(json_member_text(route, "name"), name, reterr);
                if (name && strlist_add(&plan->route_variables, name) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* text: the route in the form that holt-gateway reads. */
static int routes_complete(LaunchPlan *plan, const char *text, bool needs_env, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        int r = json_parse(text, strlen(text), "route", &document, reterr);
        const JsonValue *route = r < 0 ? NULL : json_root(document);

        if (r == 0 && needs_env)
                r = routes_add_variables(plan, route, reterr);
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
