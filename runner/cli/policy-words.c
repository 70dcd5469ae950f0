/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy-words.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/home.h"
#include "base/paths.h"
#include "base/sys.h"
#include "session/policy-files.h"

int policy_words_apply(Policy *policy, const OptionResult *result, Error *reterr) {
        bool must = false;
        const char *config = result->no_config ? NULL : home_config(&must);
        int r;

        policy_files_start_from(config && (must || access(config, F_OK) == 0) ? config : NULL);
        r = policy_files_apply(policy, result->policies, result->policies_count, "--policy",
                               reterr);
        return r < 0 ? r : options_apply(result, policy, reterr);
}

int policy_words_resolve(Policy *policy, const OptionResult *result, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        const char *workspace;
        char quoted[400];
        int r;

        r = policy_words_apply(policy, result, reterr);
        if (r < 0 || policy->workspace_mode == WORKSPACE_NONE)
                return r;
        workspace = policy->workspace_source ? policy->workspace_source : ".";
        fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
                const PolicyNote *note = policy_note(policy, "filesystem.workspace.source", NULL);
                const char *where = note ? note->where : "--workspace";

                r = error_set(reterr, ERROR_POLICY, errno, "%s%s %s", where,
                              where[0] == '-' ? "" : ":",
                              str_quote(workspace, quoted, sizeof(quoted)));
                return path_cure(workspace, r, reterr);
        }
        return policy_files_project(policy, fd, reterr);
}
