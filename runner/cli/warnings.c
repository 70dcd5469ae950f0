/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/warnings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/paths.h"
#include "base/util.h"
#include "policy/syscalls.h"
#include "sandbox/prepare.h"

/* Whether the command has the variable, from wherever. */
static bool has_variable(const LaunchPlan *plan, const char *name) {
        size_t length = strlen(name);

        for (size_t i = 0; i < plan->env.count; i++)
                if (strncmp(plan->env.items[i], name, length) == 0 &&
                    plan->env.items[i][length] == '=')
                        return true;
        return false;
}

static int find_unset(const Policy *policy, const LaunchPlan *plan, StrList *ret) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < policy->env_pass.count; i++) {
                const char *name = policy->env_pass.items[i];
                const PolicyNote *note = policy_note(policy, "env.pass", name);

                if (note && streq(note->where, "--env") && !has_variable(plan, name))
                        r = strlist_take(ret, str_format("--env %s: it is not set here, so there "
                                                         "is nothing to pass on",
                                                         name));
        }
        return r;
}

/* Whether there surely is nothing at path inside: it lies in a mount of the plan, and no link of
 * which only the sandbox knows where it leads is on the way. */
static bool is_nothing(const LaunchPlan *plan, const char *path) {
        _cleanup_close_ int fd = prepare_open_inside(plan, path, O_NOFOLLOW);

        return fd == -ENOENT || fd == -ENOTDIR;
}

static int find_unhidden(const LaunchPlan *plan, StrList *ret) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];
                char quoted[512];

                if (mount->kind == PLAN_HIDE && str_starts(mount->origin, "--hide ") &&
                    is_nothing(plan, mount->target))
                        r = strlist_take(
                                ret, str_format("%s: there is nothing to hide",
                                                str_quote(mount->origin, quoted, sizeof(quoted))));
        }
        return r;
}

/* Some of a group may well have been meant for its other calls; not most of it. */
static int find_vain(const Policy *policy, bool landlock, StrList *ret) {
        static const char why[] = "a capability all the same, which no command in a sandbox has";
        int r = 0;

        for (size_t i = 0; r == 0 && i < policy->syscalls_allow.count; i++) {
                const char *name = policy->syscalls_allow.items[i];
                const PolicyNote *note = policy_note(policy, "syscalls.allow", name);
                unsigned all, vain;

                syscalls_count(name, landlock ? NULL : &policy->syscalls_allow, &all, &vain);
                if (!note || !streq(note->where, "--allow-syscall") || vain * 2 <= all)
                        continue;
                if (vain == all)
                        r = strlist_take(ret,
                                         str_format("--allow-syscall %s: it takes %s", name, why));
                else
                        r = strlist_take(ret, str_format("--allow-syscall %s: %u of its %u calls "
                                                         "take %s",
                                                         name, vain, all, why));
        }
        return r;
}

/* The path of a guard that is missing in mount, or NULL. If the mount is the workspace as a whole,
 * git's files are guarded there as well (prepare-guards.c). */
static const char *find_bare_guard(const LaunchPlan *plan, const PlanMount *workspace,
                                   const PlanMount *mount) {
        const bool whole = streq(workspace->real, mount->real),
                   above = path_below(workspace->real, mount->real);
        const char *inside = "";

        if (!above && !path_below(mount->real, workspace->real))
                return NULL;
        if (!above)
                inside = mount->real + strlen(workspace->real) + 1;
        for (size_t i = 0; i < plan->guards_count; i++) {
                const char *path = plan->guards[i].path;

                if (whole ? !plan_guards_others(path)
                          : above || path_below(path, inside) || path_below(inside, path))
                        return path;
        }
        return NULL;
}

/* The workspace under another name, by a mount of it, or of a directory that it lies in or that is
 * in it and has something guarded. */
static int find_unguarded(const LaunchPlan *plan, StrList *ret) {
        const PlanMount *workspace = plan_workspace(plan);
        int r = 0;

        for (size_t i = 0; r == 0 && plan->guards_count > 0 && i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];
                const char *path = workspace && mount != workspace && mount->kind == PLAN_BIND &&
                                                   !(mount->flags & PLAN_READ_ONLY)
                                           ? find_bare_guard(plan, workspace, mount)
                                           : NULL;
                char quoted[512], name[256];

                if (path)
                        r = strlist_take(
                                ret,
                                str_format("%s: what the policy protects in the workspace (%s and "
                                           "the like) can be written there; give it read-only "
                                           "(--ro), or a directory that does not have it",
                                           str_quote(mount->origin, quoted, sizeof(quoted)),
                                           str_quote(path, name, sizeof(name))));
        }
        return r;
}

int warnings_find(const Policy *policy, const LaunchPlan *plan, bool landlock, StrList *ret) {
        int r = find_unset(policy, plan, ret);

        if (r == 0)
                r = find_unhidden(plan, ret);
        if (r == 0)
                r = find_unguarded(plan, ret);
        return r < 0 ? r : find_vain(policy, landlock, ret);
}
