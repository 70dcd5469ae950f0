/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/workspace-fields.h"

#include <string.h>

static int workspace_set_paths(Policy *policy, const char *path, const char *target,
                               Error *reterr) {
        static const char option[] = "--workspace";
        int r = policy_set(policy, "filesystem.workspace.source", path, ORIGIN_CALLER, option,
                           reterr);

        if (r == 0 && target)
                r = policy_set(policy, "filesystem.workspace.target", target, ORIGIN_CALLER, option,
                               reterr);
        return r;
}

/* Refuses a path that --ro would refuse too. */
static int workspace_refuse(const char *value, Error *reterr) {
        char quoted[160];
        const char *why = "";

        (void)policy_field("filesystem.read_only")->check(value, &why);
        return error_set(reterr, ERROR_POLICY, 0, "--workspace: \"%s\" %s",
                         str_quote(value, quoted, sizeof(quoted)), why);
}

int workspace_set(Policy *policy, const char *value, Error *reterr) {
        _cleanup_(policy_clear) Policy trial = { .workspace_mode = WORKSPACE_READ_WRITE };
        _cleanup_free_ char *path = NULL;
        const char *target;
        size_t length;
        int r;

        if (streq(value, "none"))
                return policy_set(policy, "filesystem.workspace.mode", "none", ORIGIN_CALLER,
                                  "--workspace", reterr);
        target = policy_bind_split(value, &length);
        if (!target && strchr(value, ':'))
                return workspace_refuse(value, reterr);
        path = strndup(value, length);
        if (!path)
                return error_oom(reterr);
        /* Set both paths or neither. */
        r = workspace_set_paths(&trial, path, target, reterr);
        if (r < 0)
                return r;
        free(policy->workspace_target);
        policy->workspace_target = NULL;
        if (policy->workspace_mode == WORKSPACE_NONE)
                policy->workspace_mode = WORKSPACE_READ_WRITE;
        return workspace_set_paths(policy, path, target, reterr);
}

int workspace_set_mode(Policy *policy, const char *value, Error *reterr) {
        const bool none = policy->workspace_mode == WORKSPACE_NONE;
        int r = policy_set(policy, "filesystem.workspace.mode", value, ORIGIN_CALLER,
                           "--workspace-mode", reterr);

        if (r < 0 || !none || policy->workspace_mode == WORKSPACE_NONE)
                return r;
        r = error_set(reterr, ERROR_USAGE, 0,
                      "--workspace-mode %s: the policy has no workspace (filesystem.workspace.mode "
                      "is \"none\")",
                      value);
        return error_cure(reterr, r, "Name the directory first: --workspace DIR");
}
