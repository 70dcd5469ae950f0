/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/paths.h"
#include "policy/net/ports.h"
#include "policy/net/upstream.h"
#include "policy/plan-parts.h"
#include "policy/python-fields.h"
#include "policy/syscalls/syscalls.h"

/* The kernel accepts arguments and variables of up to 32 pages (MAX_ARG_STRLEN, execve(2)). */
enum { ARG_STRLEN_MAX = 32 * 4096 };

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static void mount_clear(PlanMount *mount) {
        if (mount->record)
                fd_close(mount->record->fd);
        free(mount->source);
        free(mount->target);
        free(mount->origin);
        free(mount->hidden_by);
        free(mount->real);
        free(mount->record);
        if (mount->source) {
                fd_close(mount->fd);
                fd_close(mount->tree_fd);
        }
}

static void guard_clear(PlanGuard *guard) {
        free(guard->path);
        free(guard->text);
        fd_close(guard->fd);
}

int plan_inputs_add(PlanInputs *inputs, const char *path, int fd, const char *text, size_t size) {
        struct PlanInput *items = reallocarray(inputs->items, inputs->count + 1, sizeof(*items));
        _cleanup_free_ char *copy = items ? strdup(path) : NULL;
        char *bytes = copy ? malloc(size + 1) : NULL;

        if (items)
                inputs->items = items;
        if (!bytes) {
                fd_close(fd);
                return -ENOMEM;
        }
        memcpy(bytes, text, size);
        bytes[size] = '\0';
        items[inputs->count++] = (struct PlanInput){ TAKE_PTR(copy), fd, bytes, size };
        return 0;
}

void plan_inputs_clear(PlanInputs *inputs) {
        for (size_t i = 0; i < inputs->count; i++) {
                free(inputs->items[i].path);
                free(inputs->items[i].text);
                fd_close(inputs->items[i].fd);
        }
        free(inputs->items);
        *inputs = (PlanInputs){ 0 };
}

/* Stops at the first submodule: guards of submodules hold no content, may be thousands, and come
 * last. */
const PlanGuard *plan_guard_read(const LaunchPlan *plan, dev_t device, ino_t inode) {
        for (size_t i = 0; i < plan->guards_count && !plan->guards[i].submodule; i++) {
                const PlanGuard *guard = &plan->guards[i];

                if (guard->text && guard->device == device && guard->inode == inode)
                        return guard;
        }
        return NULL;
}

static void guards_clear(LaunchPlan *plan) {
        for (size_t i = 0; i < plan->guards_count; i++)
                guard_clear(&plan->guards[i]);
        free(plan->guards);
        strlist_clear(&plan->strays.paths);
        strlist_clear(&plan->strays.targets);
        strlist_clear(&plan->plain_indexes);
}

static void others_clear(LaunchPlan *plan) {
        for (size_t i = 0; i < plan->others_count; i++) {
                guards_clear(&plan->others[i]);
                free(plan->others[i].workspace);
        }
        free(plan->others);
}

void plan_clear_files(LaunchPlan *plan) {
        for (size_t i = 0; i < plan->files_count; i++) {
                free(plan->files[i].path);
                free(plan->files[i].text);
        }
        free(plan->files);
        plan->files = NULL;
        plan->files_count = 0;
}

void plan_clear(LaunchPlan *plan) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                mount_clear(&plan->mounts[i]);
        mount_clear(&plan->rootfs);
        mount_clear(&plan->root);
        mount_clear(&plan->state);
        guards_clear(plan);
        others_clear(plan);
        for (size_t i = 0; i < plan->globs_count; i++) {
                free(plan->globs[i].pattern);
                free(plan->globs[i].origin);
        }
        free(plan->globs);
        free(plan->mounts);
        plan_inputs_clear(&plan->inputs);
        free(plan->workspace);
        free(plan->cwd);
        free(plan->pids_origin);
        free(plan->program);
        free(plan->program_quiet);
        strlist_clear(&plan->argv);
        strlist_clear(&plan->etc);
        strlist_clear(&plan->etc_origins);
        strlist_clear(&plan->etc_notes);
        free(plan->gitconfig);
        free(plan->hosts);
        plan_clear_files(plan);
        strlist_clear(&plan->env);
        strlist_clear(&plan->net_allow);
        strlist_clear(&plan->net_project);
        strlist_clear(&plan->net_publish);
        strlist_clear(&plan->net_import);
        free(plan->net_upstream);
        strlist_clear(&plan->routes);
        strlist_clear(&plan->route_variables);
        free(plan->route_token);
        strlist_clear(&plan->tls_hosts);
        *plan = (LaunchPlan){ 0 };
}

/* --- the command --- */

static const char *env_lookup(const char *const *env, const char *name) {
        size_t length = strlen(name);

        for (; env && *env; env++)
                if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
                        return *env + length + 1;
        return NULL;
}

bool plan_has_env(const StrList *env, const char *name) {
        const size_t length = strlen(name);

        for (size_t i = 0; i < env->count; i++)
                if (strncmp(env->items[i], name, length) == 0 && env->items[i][length] == '=')
                        return true;
        return false;
}

int plan_set_env(StrList *env, const char *name, size_t length, const char *value) {
        char *item = str_format("%.*s=%s", (int)length, name, value);

        for (size_t i = 0; item && i < env->count; i++)
                if (strncmp(env->items[i], item, length + 1) == 0) {
                        free(env->items[i]);
                        env->items[i] = item;
                        return 0;
                }
        return strlist_take(env, item);
}

typedef struct EnvPair {
        const char *name, *value;
} EnvPair;

static int env_set_all(StrList *env, const EnvPair *pairs, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (plan_set_env(env, pairs[i].name, strlen(pairs[i].name), pairs[i].value) < 0)
                        return -ENOMEM;
        return 0;
}

/* pip(1) reads its options from these variables. They make pip install only from the wheels. */
static const EnvPair env_wheels[] = {
        { "PIP_FIND_LINKS", PLAN_WHEELS },
        { "PIP_NO_INDEX", "1" },
};

/* pip installs into the home directory, which Debian's pip would otherwise refuse (PEP 668). */
static const EnvPair env_home[] = {
        { "PIP_USER", "1" },
        { "PIP_BREAK_SYSTEM_PACKAGES", "1" },
};

/* Sets the sources of packages, and tells the interpreter of a session whether it installs them
 * (helpers/python/holt_packages.py). */
static int plan_set_packages(LaunchPlan *plan, const Policy *policy) {
        const EnvPair index[] = { { "PIP_INDEX_URL", policy->index },
                                  { "UV_DEFAULT_INDEX", policy->index } };
        const EnvPair install = { PLAN_INSTALL, python_install[policy->install] };
        const bool ruled = policy->install != PYTHON_INSTALL_AUTO;
        int r = 0;

        if (policy->wheels)
                r = env_set_all(&plan->env, env_wheels, ELEMENTSOF(env_wheels));
        if (r == 0 && policy->index)
                r = env_set_all(&plan->env, index, ELEMENTSOF(index));
        if (r == 0 && ruled)
                r = env_set_all(&plan->env, &install, 1);
        if (r == 0 && (policy->wheels || policy->index || ruled))
                r = env_set_all(&plan->env, env_home, ELEMENTSOF(env_home));
        return r;
}

/* Without a network, no request succeeds later. npm would try again for 70 seconds, and pip for
 * nine. */
static const EnvPair env_offline[] = {
        { "PIP_RETRIES", "0" },
        { "npm_config_fetch_retries", "0" },
};

/* A refused name does not exist inside, and npm asks for it again after 10 and after 60 seconds. */
static const EnvPair env_ruled[] = {
        { "npm_config_fetch_retry_mintimeout", "500" },
        { "npm_config_fetch_retry_maxtimeout", "2000" },
};

/* Appends NAME = "VALUE" to user's section of the config, quoted as in git-config(1). */
static int gitconfig_add(LaunchPlan *plan, const char *key, const char *value, Error *reterr) {
        _cleanup_free_ char *quoted = malloc(strlen(value) * 2 + 1), *before = plan->gitconfig;
        char *end = quoted;

        plan->gitconfig = NULL;
        for (; end && *value; value++) {
                if (*value == '"' || *value == '\\' || *value == '\n')
                        *end++ = '\\';
                *end++ = (char)(*value == '\n' ? 'n' : *value);
        }
        if (!end)
                return error_oom(reterr);
        *end = '\0';
        plan->gitconfig = str_format("%s[user]\n\t%s = \"%s\"\n", before ? before : "", key,
                                     quoted);
        if (!plan->gitconfig)
                return error_oom(reterr);
        if (strlen(plan->gitconfig) >= PLAN_GIT_IDENTITY_MAX)
                return error_set(reterr, ERROR_POLICY, 0, "env.git_identity: user.%s is too long",
                                 key);
        return 0;
}

/* Takes an item of env.set if it is meant for git's config. Returns 1 if the item was taken. */
static int gitconfig_take(LaunchPlan *plan, const char *item, Error *reterr) {
        static const EnvPair keys[] = { { PLAN_GIT_NAME "=", "name" },
                                        { PLAN_GIT_EMAIL "=", "email" } };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (str_starts(item, keys[i].name)) {
                        int r = gitconfig_add(plan, keys[i].value, item + strlen(keys[i].name),
                                              reterr);

                        return r < 0 ? r : 1;
                }
        return 0;
}

/* Passes LANG and TERM, which describe the caller's terminal. Without them programs fall back to
 * ASCII and dumb output. C.UTF-8 needs no locale data and is in glibc since 2.35. */
static int plan_env(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                    Error *reterr) {
        const char *lang = env_lookup(context->env, "LANG");
        const char *term = env_lookup(context->env, "TERM");
        const EnvPair base[] = {
                { "PATH", default_path },
                { "HOME", "/home/agent" },
                { "USER", "agent" },
                { "SHELL", "/bin/bash" },
                { "LANG", lang ? lang : "C.UTF-8" },
                { "TERM", term ? term : "dumb" },
                { "TMPDIR", "/tmp" },
        };

        if (env_set_all(&plan->env, base, ELEMENTSOF(base)) < 0 ||
            (policy->network == NETWORK_NONE &&
             env_set_all(&plan->env, env_offline, ELEMENTSOF(env_offline)) < 0) ||
            (policy->network == NETWORK_ALLOW &&
             (env_set_all(&plan->env, env_ruled, ELEMENTSOF(env_ruled)) < 0 ||
              (policy->net_proxy && net_proxy_add_env(&plan->env) < 0))) ||
            plan_set_packages(plan, policy) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < policy->env_pass.count; i++) {
                const char *name = policy->env_pass.items[i];
                const char *value = env_lookup(context->env, name);

                if (value && plan_set_env(&plan->env, name, strlen(name), value) < 0)
                        return error_oom(reterr);
        }
        for (size_t i = 0; i < policy->env_set.count; i++) {
                const char *item = policy->env_set.items[i];
                const char *equals = strchr(item, '=');
                int r = gitconfig_take(plan, item, reterr);

                if (r < 0)
                        return r;
                if (r == 0 && equals &&
                    plan_set_env(&plan->env, item, (size_t)(equals - item), equals + 1) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

int plan_check_lengths(const StrList *list, const char *what, Error *reterr) {
        for (size_t i = 0; i < list->count; i++) {
                size_t length = strlen(list->items[i]);

                if (length >= ARG_STRLEN_MAX) {
                        char start[48];
                        int r = error_set(
                                reterr, ERROR_SETUP, E2BIG,
                                "%s %zu (\"%s\") has %zu bytes, and the kernel accepts at most %d",
                                what, i, str_quote(list->items[i], start, sizeof(start)), length,
                                ARG_STRLEN_MAX - 1);

                        return error_cure(reterr, r, "Pass it on stdin or in a file.");
                }
        }
        return 0;
}

/* Gives an interactive shell a prompt that names the sandbox, because no rc file of the host sets
 * one. */
static int plan_shell(LaunchPlan *plan) {
        int r = strlist_add(&plan->argv, "bash");

        return r < 0 ? r : plan_set_env(&plan->env, "PS1", 3, "holt:\\w\\$ ");
}

static int plan_command(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                        Error *reterr) {
        int r = 0;

        (void)policy;
        if (context->session)
                return plan_check_lengths(&plan->env, "environment variable", reterr);
        if (!context->argv || !context->argv[0])
                r = plan_shell(plan);
        else
                for (size_t i = 0; r == 0 && context->argv[i]; i++)
                        r = strlist_add(&plan->argv, context->argv[i]);
        if (r < 0)
                return error_oom(reterr);
        r = plan_check_lengths(&plan->argv, "argument", reterr);
        return r < 0 ? r : plan_check_lengths(&plan->env, "environment variable", reterr);
}

/* The place of the caller's working directory inside, owned by the caller; NULL if it is not in the
 * workspace, or if memory is out. */
static char *plan_here(const PlanContext *context, const PlanMount *workspace) {
        const char *rest = workspace && !context->session
                                   ? path_rest(context->cwd, workspace->source)
                                   : NULL;

        return rest ? path_join(workspace->target, rest) : NULL;
}

/* Whether path is ".", "..", or starts with one of them and a slash. */
static bool plan_is_dotted(const char *path) {
        path += path[0] == '.';
        path += path[0] == '.';
        return path[0] == '\0' || path[0] == '/';
}

/* The directory of --cwd. A path such as "." or "./src" means the caller's own directory. */
static char *plan_cwd_asked(const char *asked, const char *here, const char *workspace) {
        const char *base = workspace ? workspace : "/home/agent";

        return path_join(here && asked[0] == '.' && plan_is_dotted(asked) ? here : base, asked);
}

/* Chooses the directory in which the command starts. If the caller's directory lies in the
 * workspace, it is that directory; otherwise the workspace's top. Commands of a session always
 * start at the top. */
static int plan_cwd(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                    Error *reterr) {
        const PlanMount *workspace = NULL;
        _cleanup_free_ char *here = NULL;

        (void)policy;
        for (size_t i = 0; plan->workspace && i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]) &&
                    streq(plan->mounts[i].target, plan->workspace))
                        workspace = &plan->mounts[i];
        here = plan_here(context, workspace);
        plan->cwd_asked = context->inside_cwd;
        if (context->inside_cwd)
                plan->cwd = plan_cwd_asked(context->inside_cwd, here, plan->workspace);
        else if (here)
                plan->cwd = TAKE_PTR(here);
        else
                plan->cwd = strdup(workspace ? workspace->target : "/home/agent");
        plan->cwd_here = plan->cwd && !context->session && streq(plan->cwd, context->cwd);
        return plan->cwd ? 0 : error_oom(reterr);
}

/* --- confinement --- */

static int plan_compile(const Policy *policy, bool notify, struct sock_filter **ret,
                        unsigned short *ret_length, Error *reterr) {
        struct sock_filter *program = calloc(SYSCALLS_PROGRAM_MAX, sizeof(*program));
        int r;

        if (!program)
                return error_oom(reterr);
        r = syscalls_compile(policy->syscall_preset, notify, &policy->syscalls_allow,
                             &policy->syscalls_deny, program, SYSCALLS_PROGRAM_MAX, ret_length,
                             reterr);
        if (r < 0)
                free(program);
        else
                *ret = program;
        return r;
}

static int plan_confine(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                        Error *reterr) {
        int r;

        plan->landlock = (LandlockMode)policy->landlock;
        plan->syscall_preset = policy->syscall_preset;
        plan->exit_tracer = syscalls_check(policy->syscall_preset, &policy->syscalls_allow,
                                           &policy->syscalls_deny, "ptrace");
        plan->unfiltered = policy->syscalls_allow.count > 0 ||
                           context->degraded & LAYER_BIT(LAYER_SECCOMP);
        if (policy->syscalls_allow.count == 0 && policy->syscalls_deny.count == 0)
                return 0;
        r = plan_compile(policy, true, &plan->program, &plan->program_length, reterr);
        if (r < 0)
                return r;
        return plan_compile(policy, false, &plan->program_quiet, &plan->program_quiet_length,
                            reterr);
}

uint64_t plan_limit(const LaunchPlan *plan, const PolicyField *field) {
        uint64_t value;

        memcpy(&value, (const char *)plan + field->plan, sizeof(value));
        return value;
}

static int plan_limits(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                       Error *reterr) {
        (void)context;
        for (const PolicyField *f = policy_fields; f < policy_fields + policy_fields_count; f++)
                if (f->plan)
                        memcpy((char *)plan + f->plan, (const char *)policy + f->offset,
                               sizeof(uint64_t));
        if (policy->pids == 1)
                plan->pids_origin = policy_limit_text(policy, policy_field("limits.pids"));
        return policy->pids == 1 && !plan->pids_origin ? error_oom(reterr) : 0;
}

static int plan_copy(StrList *list, const StrList *from) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < from->count; i++)
                r = strlist_add(list, from->items[i]);
        return r;
}

/* holt-gateway uses the proxy outside, too, even if commands have no network. */
static bool plan_wants_upstream(const Policy *policy) {
        return policy->net_upstream &&
               (policy->network == NETWORK_ALLOW || policy->routes.count > 0);
}

static int plan_network(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                        Error *reterr) {
        (void)context;
        plan->network = policy->network;
        plan->net_narrowed = policy->net_narrowed;
        plan->net_sni = policy->net_sni;
        plan->net_proxy = policy->net_proxy && policy->network == NETWORK_ALLOW;
        plan->net_ask = policy->net_ask && policy->network == NETWORK_ALLOW;
        plan->net_ask_timeout = policy->net_ask_timeout ? policy->net_ask_timeout
                                                        : NETWORK_ASK_TIMEOUT;
        if (plan_wants_upstream(policy))
                plan->net_upstream = strdup(policy->net_upstream);
        if ((policy->network == NETWORK_ALLOW &&
             plan_copy(&plan->net_allow, &policy->net_allow) < 0) ||
            plan_copy(&plan->net_project, &policy->net_project) < 0 ||
            plan_copy(&plan->net_publish, &policy->net_publish) < 0 ||
            plan_copy(&plan->net_import, &policy->net_import) < 0 ||
            (plan_wants_upstream(policy) && !plan->net_upstream))
                return error_oom(reterr);
        return net_imports_check(&plan->net_import, &plan->net_publish, reterr);
}

static int (*const plan_steps[])(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                                 Error *reterr) = {
        plan_limits, plan_tree, plan_env, plan_command, plan_cwd, plan_confine, plan_network,
};

int plan_make(const Policy *policy, const PlanContext *context, LaunchPlan *ret, Error *reterr) {
        LaunchPlan plan = { .hostname = "holt",
                            .report_fd = FD_NONE,
                            .allow_wide = policy->allow_wide,
                            .degraded = context->degraded };
        int r = RUN_STEPS(plan_steps, &plan, policy, context, reterr);

        if (r < 0) {
                plan_clear(&plan);
                return r;
        }
        *ret = plan;
        return 0;
}
