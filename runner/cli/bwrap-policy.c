/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bwrap-policy.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "child/landlock.h"
#include "child/limits.h"
#include "cli/message.h"
#include "guards/inputs.h"
#ifdef HOLT_FULL
#include "session/policy-files.h"
#endif

#define POLICY_VARIABLE "HOLT_BWRAP_POLICY"
#define REPORT_VARIABLE "HOLT_BWRAP_REPORT"

bool bwrap_policy_find(BwrapPolicy *policy) {
        policy->report_fd = FD_NONE;
        policy->name = getenv(POLICY_VARIABLE);
        policy->report = getenv(REPORT_VARIABLE);
        if (policy->name && !policy->name[0])
                policy->name = NULL;
        if (policy->report && !policy->report[0])
                policy->report = NULL;
        return policy->name && policy_name_is_file(policy->name);
}

/* --- the policy --- */

#ifdef HOLT_FULL
static int bwrap_policy_read(BwrapPolicy *policy, Error *reterr) {
        const char *const names[] = { policy->name };

        policy_files_start_from(NULL);
        return policy_files_apply(&policy->policy, names, 1, POLICY_VARIABLE, reterr);
}

static int bwrap_policy_inputs(LaunchPlan *judged, Error *reterr) {
        return policy_files_inputs(NULL, &judged->inputs, reterr);
}
#else
static int bwrap_policy_read(BwrapPolicy *policy, Error *reterr) {
        return policy_preset(&policy->policy, policy->name, POLICY_VARIABLE, reterr);
}

static int bwrap_policy_inputs(LaunchPlan *judged, Error *reterr) {
        (void)judged;
        (void)reterr;
        return 0;
}
#endif

/* The fields that add to bubblewrap's arguments. These decide everything else. */
static const char *const used_fields[] = {
        "syscalls.",   "layers.",           "limits.timeout",   "limits.memory",
        "limits.pids", "limits.open_files", "limits.file_size", "limits.kill_after",
};

static bool field_is_used(const char *path) {
        for (size_t i = 0; i < ELEMENTSOF(used_fields); i++)
                if (str_starts(path, used_fields[i]))
                        return true;
        return false;
}

static int bwrap_policy_check(const Policy *policy, const Assembly *a, Error *reterr) {
        for (size_t i = 0; i < policy->notes_count; i++)
                if (!field_is_used(policy->notes[i].field->path)) {
                        int r = error_set(reterr, ERROR_POLICY, 0,
                                          "%s has no effect here: bubblewrap's arguments decide "
                                          "on %s",
                                          policy->notes[i].where, policy->notes[i].field->path);

                        return error_cure(reterr, r,
                                          "Remove it from the policy: holt bwrap takes only "
                                          "syscalls, layers and limits.");
                }
        if (policy->timeout && !(a->namespaces & CLONE_NEWPID)) {
                int r = error_set(reterr, ERROR_POLICY, 0,
                                  "limits.timeout needs --unshare-pid, because only then does "
                                  "every process end");

                return error_cure(reterr, r, "Add --unshare-pid, or set limits.timeout to none.");
        }
        return 0;
}

/* --- the policy's own file --- */

/* A mount for each place of the host that the command can write. */
static int judged_add(LaunchPlan *judged, const AssemblyStep *step, const char *source,
                      Error *reterr) {
        PlanMount *mounts = reallocarray(judged->mounts, judged->mounts_count + 1, sizeof(*mounts));
        char cwd[PATH_MAX];
        PlanMount mount = { .kind = PLAN_BIND, .fd = FD_NONE, .tree_fd = FD_NONE };

        if (!mounts || !getcwd(cwd, sizeof(cwd)))
                return error_oom(reterr);
        judged->mounts = mounts;
        mount.source = path_join(cwd, source);
        mount.target = strdup(step->target);
        mount.origin = str_format("%s %s", step->option, source);
        if (!mount.source || !mount.target || !mount.origin)
                return error_oom(reterr);
        mounts[judged->mounts_count++] = mount;
        return 0;
}

static int judged_fill(LaunchPlan *judged, const Assembly *a, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->count; i++) {
                const AssemblyStep *step = &a->steps[i];
                char link[32], path[PATH_MAX];
                const char *source = step->source;
                ssize_t n = 0;

                if ((step->kind != ASSEMBLY_BIND && step->kind != ASSEMBLY_OVERLAY) ||
                    step->flags & ASSEMBLY_READ_ONLY)
                        continue;
                if (step->kind == ASSEMBLY_BIND && step->fd >= 0) {
                        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", step->fd);
                        n = readlink(link, path, sizeof(path) - 1);
                        path[n > 0 ? n : 0] = '\0';
                        source = path;
                }
                if (source && source[0])
                        r = judged_add(judged, step, source, reterr);
        }
        return r;
}

/* Refuses a policy file, or programs of holt, where the command can write. Read-only mounts that
 * cover them do not help: the command could rename a directory above them. */
static int bwrap_policy_protect(const Assembly *a, Error *reterr) {
        LaunchPlan judged = { .report_fd = FD_NONE };
        ProgramsNear near = PROGRAMS_FAR;
        Reach *reach = NULL;
        int r = judged_fill(&judged, a, reterr);

        if (r == 0)
                r = bwrap_policy_inputs(&judged, reterr);
        if (r == 0)
                near = programs_near(&judged);
        if (r == 0 && (judged.inputs.count > 0 || near != PROGRAMS_FAR))
                r = reach_new(&judged, &reach, reterr);
        for (size_t i = 0; r == 0 && i < judged.inputs.count; i++) {
                Reached reached = { 0 };
                int fd = FD_NONE;

                (void)reach_path(reach, judged.inputs.items[i].path, &fd, &reached);
                fd_close(fd);
                if (!reached.how)
                        continue;
                r = error_set(reterr, ERROR_POLICY, 0,
                              "the command could change the policy file %s, because of %s",
                              judged.inputs.items[i].path,
                              reached.mount ? reached.mount->origin : "a hard link");
                r = error_cure(
                        reterr, r,
                        "Keep the file where no --bind leads, or name a preset: " POLICY_VARIABLE
                        "=standard");
        }
        if (r == 0 && near != PROGRAMS_FAR) {
                r = programs_protect(&judged, reach, near, reterr);
                if (r < 0)
                        r = error_cure(reterr, r,
                                       "Install holt where no --bind leads, or bind less.");
        }
        reach_free(reach);
        plan_clear(&judged);
        return r;
}

/* --- the plan --- */

static int bwrap_policy_landlock(const Policy *policy, Launch *launch, Error *reterr) {
        const int abi = policy->landlock == LANDLOCK_OFF ? 0 : landlock_abi();

        if (policy->landlock == LANDLOCK_OFF)
                launch->layers.switched_off |= LAYER_BIT(LAYER_LANDLOCK);
        if (abi >= LANDLOCK_ABI_NEEDED)
                launch->layers.landlock_abi = abi;
        else if (policy->landlock == LANDLOCK_REQUIRE)
                return error_layer(reterr, LAYER_LANDLOCK, ENOSYS,
                                   "this kernel has no Landlock that holt can use");
        return 0;
}

static int bwrap_policy_plan(BwrapPolicy *policy, const BwrapWords *words, LaunchPlan *plan,
                             Error *reterr) {
        const PlanContext context = { .cwd = "/",
                                      .argv = words->assembly.argv,
                                      .env = (const char *const *)words->env.items };
        int r;

        policy->policy.without_options = true;
        policy->policy.workspace_mode = WORKSPACE_NONE;
        policy->policy.network = words->assembly.namespaces & CLONE_NEWNET ? NETWORK_NONE
                                                                           : NETWORK_HOST;
        r = plan_make(&policy->policy, &context, plan, reterr);
        strlist_clear(&plan->env);
        return r;
}

/* The report must not be a file of the command's choice. */
static int bwrap_policy_open_report(BwrapPolicy *policy, const Assembly *a, Error *reterr) {
        _cleanup_(strlist_clear) StrList writable = { 0 };
        LaunchPlan judged = { .report_fd = FD_NONE };
        char cwd[PATH_MAX];
        _cleanup_free_ char *path = getcwd(cwd, sizeof(cwd)) ? path_join(cwd, policy->report)
                                                             : NULL;
        int r = path ? judged_fill(&judged, a, reterr) : error_oom(reterr);

        for (size_t i = 0; r == 0 && i < judged.mounts_count; i++)
                r = strlist_add(&writable, judged.mounts[i].source);
        if (r == 0)
                r = report_open(REPORT_VARIABLE, path, &writable, &policy->report_fd, reterr);
        plan_clear(&judged);
        return r;
}

int bwrap_policy_apply(BwrapPolicy *policy, const BwrapWords *words, LaunchPlan *plan,
                       Launch *launch, Error *reterr) {
        int r = 0;

        if (policy->report)
                r = bwrap_policy_open_report(policy, &words->assembly, reterr);
        if (r < 0 || !policy->name)
                return r;
        r = bwrap_policy_read(policy, reterr);
        if (r == 0)
                r = bwrap_policy_check(&policy->policy, &words->assembly, reterr);
        if (r == 0)
                r = bwrap_policy_protect(&words->assembly, reterr);
        if (r == 0)
                r = bwrap_policy_plan(policy, words, plan, reterr);
        if (r == 0)
                r = bwrap_policy_landlock(&policy->policy, launch, reterr);
        if (r == 0)
                limits_bound(plan);
        return r;
}

/* --- the result --- */

/* The command's output is not read, so only a signal tells of a limit. */
static void bwrap_policy_find_limits(const BwrapPolicy *policy, const LaunchPlan *plan,
                                     Outcome *out) {
        const int signal = out->exit_code == 128 + SIGXFSZ ? SIGXFSZ : out->signal;

        if (policy->name)
                out->symptoms.limits_hit = limits_hit_find(plan, NULL, 0, FD_NONE, NULL, signal);
}

void bwrap_policy_tell(const BwrapPolicy *policy, const BwrapWords *words, const Launch *launch,
                       const BwrapEnd *end, const Error *error) {
        RunResult result = { .command = words->assembly.argv,
                             .policy = policy->name ? &policy->policy : NULL,
                             .plan = launch->plan,
                             .identity = &launch->identity,
                             .layers = launch->layers,
                             .started = end->started,
                             .outcome = end->outcome,
                             .error = error };
        Message message;

        bwrap_policy_find_limits(policy, launch->plan, &result.outcome);
        if (policy->name && !error) {
                report_print_text(&result, message_open(&message));
                message_send(&message);
        }
        if (policy->report_fd >= 0)
                (void)report_write(policy->report_fd, policy->report, &result, NULL);
}
