/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/paths.h"
#include "policy/syscalls.h"

/* The kernel takes no argument or variable longer than 32 pages (MAX_ARG_STRLEN, execve(2)). */
enum { ARG_STRLEN_MAX = 32 * 4096 };

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

void plan_clear(LaunchPlan *plan) {
        for (size_t i = 0; i < plan->mounts_count; i++) {
                free(plan->mounts[i].source);
                free(plan->mounts[i].target);
                free(plan->mounts[i].origin);
                free(plan->mounts[i].real);
                fd_close(plan->mounts[i].fd);
        }
        for (size_t i = 0; i < plan->guards_count; i++)
                free(plan->guards[i].path);
        free(plan->mounts);
        free(plan->guards);
        free(plan->rootfs);
        free(plan->rootfs_origin);
        free(plan->workspace);
        free(plan->cwd);
        free(plan->pids_origin);
        free(plan->program);
        free(plan->program_quiet);
        strlist_clear(&plan->argv);
        strlist_clear(&plan->env);
        *plan = (LaunchPlan){ 0 };
}

/* --- mounts --- */

/* Who has asked for a mount: a place in a document, else the option. */
static const char *asked_by(const Policy *policy, const char *field, const char *text,
                            const char *option) {
        const PolicyNote *note = policy_note(policy, field, text);

        return note ? note->where : option;
}

/* The same with what was asked for, for errors. Owned by the caller; NULL when memory is out. */
static char *make_origin(const char *where, const char *text) {
        return str_format("%s%s %s", where, where[0] == '-' ? "" : ":", text);
}

/* Adds a mount and takes source and target (NULL counts as memory being out). */
static int add_mount(LaunchPlan *plan, PlanMountKind kind, unsigned flags, char *source,
                     char *target, const char *where, const char *text, Error *reterr) {
        PlanMount *mount;

        if (plan->mounts_count == PLAN_MOUNTS_MAX) {
                free(source);
                free(target);
                return error_set(reterr, ERROR_POLICY, 0,
                                 "more than %d mounts; give a common parent directory instead",
                                 PLAN_MOUNTS_MAX);
        }
        mount = &plan->mounts[plan->mounts_count++];
        *mount = (PlanMount){ .kind = kind,
                              .flags = flags,
                              .source = source,
                              .target = target,
                              .origin = make_origin(where, text),
                              .fd = FD_NONE };
        if (!target || !mount->origin || (kind == PLAN_BIND && !source))
                return error_oom(reterr);
        return 0;
}

/* PATH[:TARGET]; without a target the place inside is the same as outside. */
static int add_bind(LaunchPlan *plan, const PlanContext *context, unsigned flags, const char *where,
                    const char *text, Error *reterr) {
        size_t length;
        const char *inside = policy_bind_split(text, &length);
        _cleanup_free_ char *path = strndup(text, length);
        char *source, *target;

        if (!path)
                return error_oom(reterr);
        source = path_join(context->cwd, path);
        target = path_join("/", inside ? inside : source ? source : "");
        return add_mount(plan, PLAN_BIND, flags, source, target, where, text, reterr);
}

static int add_read_only(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                         Error *reterr) {
        for (size_t i = 0; i < policy->read_only.count; i++) {
                const char *text = policy->read_only.items[i];
                int r = add_bind(plan, context, PLAN_READ_ONLY | PLAN_SHOWN,
                                 asked_by(policy, "filesystem.read_only", text, "--ro"), text,
                                 reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_read_write(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                          Error *reterr) {
        for (size_t i = 0; i < policy->read_write.count; i++) {
                const char *text = policy->read_write.items[i];
                int r = add_bind(plan, context, PLAN_WIDE_CHECK,
                                 asked_by(policy, "filesystem.read_write", text, "--rw"), text,
                                 reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_workspace(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                         Error *reterr) {
        const char *source = policy->workspace_source ? policy->workspace_source : ".";
        unsigned flags = PLAN_WIDE_CHECK;
        char *path, *target;
        int r;

        if (policy->workspace_mode == WORKSPACE_NONE)
                return 0;
        if (policy->workspace_mode == WORKSPACE_READ_ONLY)
                flags |= PLAN_READ_ONLY;
        path = path_join(context->cwd, source);
        target = path_join("/", policy->workspace_target ? policy->workspace_target
                                : path                   ? path
                                                         : "");
        r = add_mount(plan, PLAN_BIND, flags, path, target,
                      asked_by(policy, "filesystem.workspace.source", source, "--workspace"),
                      source, reterr);
        if (r < 0)
                return r;
        plan->workspace = strdup(target);
        return plan->workspace ? 0 : error_oom(reterr);
}

static int add_files(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                     Error *reterr) {
        if (!policy->files)
                return 0;
        return add_mount(plan, PLAN_BIND, PLAN_WIDE_CHECK, path_join(context->cwd, policy->files),
                         strdup("/mnt/files"),
                         asked_by(policy, "filesystem.files.source", policy->files, "--files"),
                         policy->files, reterr);
}

static int add_private(LaunchPlan *plan, const Policy *policy, Error *reterr) {
        for (size_t i = 0; i < policy->tmpfs.count; i++) {
                const char *target = policy->tmpfs.items[i];
                int r = add_mount(plan, PLAN_PRIVATE, 0, NULL, path_join("/", target),
                                  asked_by(policy, "filesystem.tmpfs", target, "--tmpfs"), target,
                                  reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_hidden(LaunchPlan *plan, const Policy *policy, Error *reterr) {
        for (size_t i = 0; i < policy->hide.count; i++) {
                const char *path = policy->hide.items[i];
                int r = add_mount(plan, PLAN_HIDE, 0, NULL,
                                  path_join(plan->workspace ? plan->workspace : "/", path),
                                  asked_by(policy, "filesystem.hide", path, "--hide"), path,
                                  reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

int plan_hide(LaunchPlan *plan, const char *target, const char *rest, Error *reterr) {
        PlanMount *mounts = reallocarray(plan->mounts, plan->mounts_count + 1, sizeof(*mounts));

        if (!mounts)
                return error_oom(reterr);
        plan->mounts = mounts;
        return add_mount(plan, PLAN_HIDE, 0, NULL, str_format("%s%s", target, rest), "hidden", rest,
                         reterr);
}

const PlanMount *plan_workspace(const LaunchPlan *plan) {
        for (size_t i = 0; plan->workspace && i < plan->mounts_count; i++)
                if (plan->mounts[i].kind == PLAN_BIND &&
                    streq(plan->mounts[i].target, plan->workspace))
                        return &plan->mounts[i];
        return NULL;
}

const PlanMount *plan_mount_above(const LaunchPlan *plan, const char *path) {
        const PlanMount *best = NULL;

        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];

                if ((mount->kind == PLAN_BIND || mount->kind == PLAN_PRIVATE) &&
                    path_below(path, mount->target) &&
                    (!best || strlen(mount->target) > strlen(best->target)))
                        best = mount;
        }
        return best;
}

int plan_writable(const LaunchPlan *plan, StrList *ret) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (plan->mounts[i].kind == PLAN_BIND && !(plan->mounts[i].flags & PLAN_READ_ONLY))
                        r = strlist_add(ret, plan->mounts[i].source);
        return r;
}

static int compare_targets(const void *a, const void *b) {
        const PlanMount *x = a, *y = b;

        /* What hides comes after all that could lie above or below it. */
        if ((x->kind == PLAN_HIDE) != (y->kind == PLAN_HIDE))
                return x->kind == PLAN_HIDE ? 1 : -1;
        return strcmp(x->target, y->target);
}

/* What to give in place of it, by the option that asked for it; else by a policy file. */
static const struct {
        const char *option, *cure;
} wide_cures[] = {
        { "--workspace ",
          "Change to a project's own directory, or name one with --workspace DIR." },
        { "--files ", "Name a directory that is for this alone: --files DIR" },
        { "--rw ", "Name the directory in it that the command needs: --rw DIR; to be read only: "
                   "--ro DIR" },
        { "--ro ", "Name the directory in it that the command needs: --ro DIR; what is below /usr "
                   "is there anyway." },
        { "", "Name a directory in it there, the one that the command needs." },
};

int plan_refuse_wide(const PlanMount *mount, const char *path, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "%s: %s is too wide to hand to a command that nobody has vetted",
                          mount->origin, path);
        size_t i = 0;

        while (!str_starts(mount->origin, wide_cures[i].option))
                i++;
        /* Nothing can be allowed to lie over the root. */
        return error_cure(reterr, r, "%s%s", wide_cures[i].cure,
                          streq(mount->target, "/")
                                  ? ""
                                  : "\nIf this is what you want, say so: --allow-wide");
}

/* The fields were checked as they were written; a relative path has only now become its own target.
 */
static int check_target(const PlanMount *mount, Error *reterr) {
        const char *why;

        if (mount->kind == PLAN_HIDE || policy_target_check(mount->target, &why) == 0)
                return 0;
        if (mount->kind == PLAN_BIND && streq(mount->target, "/") && streq(mount->source, "/"))
                return plan_refuse_wide(mount, "/", reterr);
        return error_set(reterr, ERROR_POLICY, 0, "%s: the place inside, %s, %s: PATH:/TARGET",
                         mount->origin, mount->target, why);
}

/* Whether anything of the fixed tree but a plain directory of the root is at path or above it. */
static bool below_system(const char *path) {
        for (size_t i = 0; i < tree_system_count; i++) {
                size_t length = strlen(tree_system[i]);

                if (strncmp(path + 1, tree_system[i], length) == 0 &&
                    (path[1 + length] == '/' || path[1 + length] == '\0'))
                        return true;
        }
        return false;
}

static bool below_private(const char *path) {
        for (size_t i = 0; i < tree_private_count; i++)
                if (path_below(path, tree_private[i].target))
                        return true;
        return false;
}

/* Sorts parents before children and says of each target whether it has to be made, and where. */
static int order_mounts(LaunchPlan *plan, Error *reterr) {
        qsort(plan->mounts, plan->mounts_count, sizeof(*plan->mounts), compare_targets);
        for (size_t i = 0; i < plan->mounts_count; i++) {
                PlanMount *mount = &plan->mounts[i];
                const PlanMount *above = NULL;
                int r = check_target(mount, reterr);

                if (r < 0)
                        return r;
                if (mount->kind == PLAN_HIDE)
                        continue;
                if (i > 0 && streq(mount->target, mount[-1].target))
                        return error_set(reterr, ERROR_POLICY, 0,
                                         "%s and %s both have the target %s; keep one",
                                         mount[-1].origin, mount->origin, mount->target);
                for (size_t j = 0; j < i; j++)
                        if (path_below(mount->target, plan->mounts[j].target))
                                above = &plan->mounts[j];
                if (above ? above->kind == PLAN_PRIVATE : below_private(mount->target))
                        mount->flags |= PLAN_MAKE_TARGET;
                else if (!above && !below_system(mount->target))
                        mount->flags |= PLAN_MAKE_TARGET | PLAN_IN_ROOT;
        }
        return 0;
}

static int add_guards(LaunchPlan *plan, const Policy *policy, Error *reterr) {
        if (!plan->workspace || policy->workspace_mode == WORKSPACE_READ_ONLY)
                return 0;
        plan->guards = calloc(policy->protect.count + 1, sizeof(*plan->guards));
        if (!plan->guards)
                return error_oom(reterr);
        for (size_t i = 0; i < policy->protect.count; i++) {
                _cleanup_free_ char *path = path_join("/", policy->protect.items[i]);

                if (!path)
                        return error_oom(reterr);
                plan->guards[plan->guards_count].path = strdup(path + 1);
                if (!plan->guards[plan->guards_count++].path)
                        return error_oom(reterr);
        }
        return 0;
}

bool plan_protects_git(const LaunchPlan *plan) {
        for (size_t i = 0; i < plan->guards_count; i++)
                if (path_below(plan->guards[i].path, ".git"))
                        return true;
        return false;
}

static int add_rootfs(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                      Error *reterr) {
        const char *path = policy->rootfs ? policy->rootfs : "/";

        plan->rootfs = path_join(context->cwd, path);
        plan->rootfs_origin = make_origin(asked_by(policy, "filesystem.rootfs", NULL, "--rootfs"),
                                          path);
        if (!plan->rootfs || !plan->rootfs_origin)
                return error_oom(reterr);
        if (streq(plan->rootfs, "/"))
                plan->rootfs[0] = '\0';
        return 0;
}

static int plan_tree(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                     Error *reterr) {
        size_t most = policy->read_only.count + policy->read_write.count + policy->tmpfs.count +
                      policy->hide.count + 2;
        int r;

        plan->mounts = calloc(most < PLAN_MOUNTS_MAX ? most : PLAN_MOUNTS_MAX,
                              sizeof(*plan->mounts));
        if (!plan->mounts)
                return error_oom(reterr);
        r = add_rootfs(plan, policy, context, reterr);
        if (r == 0)
                r = add_workspace(plan, policy, context, reterr);
        if (r == 0)
                r = add_files(plan, policy, context, reterr);
        if (r == 0)
                r = add_read_only(plan, policy, context, reterr);
        if (r == 0)
                r = add_read_write(plan, policy, context, reterr);
        if (r == 0)
                r = add_private(plan, policy, reterr);
        if (r == 0)
                r = add_hidden(plan, policy, reterr);
        if (r == 0)
                r = order_mounts(plan, reterr);
        if (r == 0)
                r = add_guards(plan, policy, reterr);
        return r;
}

/* --- the command --- */

static const char *env_lookup(const char *const *env, const char *name) {
        size_t length = strlen(name);

        for (; env && *env; env++)
                if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
                        return *env + length + 1;
        return NULL;
}

/* Sets NAME=VALUE, in place of an earlier one. */
static int env_set(StrList *env, const char *name, size_t length, const char *value) {
        char *item = str_format("%.*s=%s", (int)length, name, value);

        for (size_t i = 0; item && i < env->count; i++)
                if (strncmp(env->items[i], item, length + 1) == 0) {
                        free(env->items[i]);
                        env->items[i] = item;
                        return 0;
                }
        return strlist_take(env, item);
}

/* LANG and TERM describe the caller's terminal; without them programs fall back to ASCII and dumb
 * output. C.UTF-8 needs no locale data and is in glibc since 2.35. */
static int plan_env(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                    Error *reterr) {
        const char *lang = env_lookup(context->env, "LANG");
        const char *term = env_lookup(context->env, "TERM");
        const struct {
                const char *name, *value;
        } base[] = {
                { "PATH", default_path },
                { "HOME", "/home/agent" },
                { "USER", "agent" },
                { "SHELL", "/bin/bash" },
                { "LANG", lang ? lang : "C.UTF-8" },
                { "TERM", term ? term : "dumb" },
                { "TMPDIR", "/tmp" },
        };

        for (size_t i = 0; i < ELEMENTSOF(base); i++)
                if (env_set(&plan->env, base[i].name, strlen(base[i].name), base[i].value) < 0)
                        return error_oom(reterr);
        for (size_t i = 0; i < policy->env_pass.count; i++) {
                const char *name = policy->env_pass.items[i];
                const char *value = env_lookup(context->env, name);

                if (value && env_set(&plan->env, name, strlen(name), value) < 0)
                        return error_oom(reterr);
        }
        for (size_t i = 0; i < policy->env_set.count; i++) {
                const char *item = policy->env_set.items[i];
                const char *equals = strchr(item, '=');

                if (equals && env_set(&plan->env, item, (size_t)(equals - item), equals + 1) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

static int check_lengths(const StrList *list, const char *what, Error *reterr) {
        for (size_t i = 0; i < list->count; i++) {
                size_t length = strlen(list->items[i]);

                if (length >= ARG_STRLEN_MAX) {
                        int r = error_set(reterr, ERROR_SETUP, E2BIG,
                                          "%s %zu (\"%.40s...\") is %zu bytes, and the kernel "
                                          "takes at most %d in one",
                                          what, i, list->items[i], length, ARG_STRLEN_MAX - 1);

                        return error_cure(reterr, r, "Pass it on stdin or in a file.");
                }
        }
        return 0;
}

/* A shell of one's own gets a prompt that says where one is; no rc file of the host is there to set
 * it. */
static int plan_shell(LaunchPlan *plan) {
        int r = strlist_add(&plan->argv, "bash");

        return r < 0 ? r : env_set(&plan->env, "PS1", 3, "holt:\\w\\$ ");
}

static int plan_command(LaunchPlan *plan, const PlanContext *context, Error *reterr) {
        int r = 0;

        if (!context->argv || !context->argv[0])
                r = plan_shell(plan);
        else
                for (size_t i = 0; r == 0 && context->argv[i]; i++)
                        r = strlist_add(&plan->argv, context->argv[i]);
        if (r < 0)
                return error_oom(reterr);
        r = check_lengths(&plan->argv, "argument", reterr);
        return r < 0 ? r : check_lengths(&plan->env, "environment variable", reterr);
}

/* Inside, the command starts where the caller stands when that is in the workspace, else at its
 * top. */
static int plan_cwd(LaunchPlan *plan, const PlanContext *context, Error *reterr) {
        const PlanMount *workspace = NULL;

        for (size_t i = 0; plan->workspace && i < plan->mounts_count; i++)
                if (plan->mounts[i].kind == PLAN_BIND &&
                    streq(plan->mounts[i].target, plan->workspace))
                        workspace = &plan->mounts[i];
        plan->cwd_asked = context->inside_cwd;
        if (context->inside_cwd)
                plan->cwd = path_join(plan->workspace ? plan->workspace : "/home/agent",
                                      context->inside_cwd);
        else if (!workspace)
                plan->cwd = strdup("/home/agent");
        else if (path_below(context->cwd, workspace->source))
                plan->cwd = str_format("%s%s", workspace->target,
                                       context->cwd + (streq(workspace->source, "/")
                                                               ? 0
                                                               : strlen(workspace->source)));
        else
                plan->cwd = strdup(workspace->target);
        return plan->cwd ? 0 : error_oom(reterr);
}

/* --- confinement --- */

static int compile(const Policy *policy, bool notify, struct sock_filter **ret,
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

static int plan_confine(LaunchPlan *plan, const Policy *policy, Error *reterr) {
        int r;

        plan->landlock = (LandlockMode)policy->landlock;
        plan->syscall_preset = policy->syscall_preset;
        if (policy->syscalls_allow.count == 0 && policy->syscalls_deny.count == 0)
                return 0;
        r = compile(policy, true, &plan->program, &plan->program_length, reterr);
        if (r < 0)
                return r;
        return compile(policy, false, &plan->program_quiet, &plan->program_quiet_length, reterr);
}

static int plan_limits(LaunchPlan *plan, const Policy *policy, Error *reterr) {
        plan->timeout = policy->timeout;
        plan->kill_after = policy->kill_after;
        plan->memory = policy->memory;
        plan->pids = policy->pids;
        plan->open_files = policy->open_files;
        plan->file_size = policy->file_size;
        plan->output = policy->output;
        plan->tmp_size = policy->tmp_size;
        if (policy->pids == 1)
                plan->pids_origin = policy_limit_text(policy, policy_field("limits.pids"));
        return policy->pids == 1 && !plan->pids_origin ? error_oom(reterr) : 0;
}

int plan_make(const Policy *policy, const PlanContext *context, LaunchPlan *ret, Error *reterr) {
        LaunchPlan plan = { .hostname = "holt",
                            .report_fd = FD_NONE,
                            .allow_wide = policy->allow_wide,
                            .degraded = context->degraded };
        int r;

        r = plan_limits(&plan, policy, reterr);
        if (r == 0)
                r = plan_tree(&plan, policy, context, reterr);
        if (r == 0)
                r = plan_env(&plan, policy, context, reterr);
        if (r == 0)
                r = plan_command(&plan, context, reterr);
        if (r == 0)
                r = plan_cwd(&plan, context, reterr);
        if (r == 0)
                r = plan_confine(&plan, policy, reterr);
        if (r < 0) {
                plan_clear(&plan);
                return r;
        }
        *ret = plan;
        return 0;
}
