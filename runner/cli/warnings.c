/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/warnings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "policy/syscalls.h"

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
        const PlanMount *mount = plan_mount_above(plan, path);
        _cleanup_close_ int fd = FD_NONE;
        const char *rest;

        if (!mount || mount->kind != PLAN_BIND || !mount->directory)
                return false;
        rest = path + strlen(mount->target);
        rest += strspn(rest, "/");
        fd = sys_openat2(mount->fd, *rest ? rest : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC, 0,
                         RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
        return fd < 0 && (errno == ENOENT || errno == ENOTDIR);
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

enum { NUMBERS_END = 512 }; /* of system calls: none is above */

/* Of the calls that name stands for: how many there are here, and how many take a capability, which
 * no policy gives. */
static void count_calls(const char *name, const StrList *allow, unsigned *ret_all,
                        unsigned *ret_vain) {
        *ret_all = *ret_vain = 0;
        for (unsigned nr = 0; nr < NUMBERS_END; nr++) {
                const char *call = syscall_name(nr);

                if (!call || !streq(name[0] == '@' ? syscall_group(nr) : call, name))
                        continue;
                (*ret_all)++;
                *ret_vain += !syscall_grantable(nr, allow);
        }
}

/* Some of a group may well have been meant for its other calls; not most of it. */
static int find_vain(const Policy *policy, bool landlock, StrList *ret) {
        static const char why[] = "a capability all the same, which no command in a sandbox has";
        int r = 0;

        for (size_t i = 0; r == 0 && i < policy->syscalls_allow.count; i++) {
                const char *name = policy->syscalls_allow.items[i];
                const PolicyNote *note = policy_note(policy, "syscalls.allow", name);
                unsigned all, vain;

                count_calls(name, landlock ? NULL : &policy->syscalls_allow, &all, &vain);
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

int warnings_find(const Policy *policy, const Launch *launch, StrList *ret) {
        int r = find_unset(policy, launch->plan, ret);

        if (r == 0)
                r = find_unhidden(launch->plan, ret);
        return r < 0 ? r : find_vain(policy, launch->layers.landlock_abi > 0, ret);
}
