/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/git-hint.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/home.h"
#include "base/paths.h"
#include "base/strings.h"
#include "git/repository.h"

enum { GIT_FATAL = 128 };

static bool git_hint_has_repository(const PlanMount *workspace) {
        _cleanup_free_ char *path = path_join(workspace->real, ".git");

        return !path || faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Writes "..", "../.." and so on for the directory top above the working directory. */
static void git_hint_climb(const char *below, char *ret, size_t size) {
        size_t length = (size_t)snprintf(ret, size, "..");

        for (; (below = strchr(below, '/')) && length + 3 < size; below++)
                length += (size_t)snprintf(ret + length, size - length, "/..");
}

static void git_hint_tell(const LaunchPlan *plan, const PlanMount *workspace, const char *top,
                          FILE *out) {
        const char *below = path_rest(workspace->real, top);
        _cleanup_free_ char *word = str_word(top);
        char quoted[400], way[400];

        if (!below || !word)
                return;
        git_hint_climb(below, way, sizeof(way));
        (void)fprintf(out,
                      "holt: if git found no repository: it is %s, above the workspace\n  To make "
                      "the repository the workspace: --workspace %s\n",
                      str_quote(top, quoted, sizeof(quoted)), plan->cwd_here ? way : word);
}

void git_hint_print(const LaunchPlan *plan, const Outcome *outcome, FILE *out) {
        const PlanMount *workspace = plan ? plan_workspace(plan) : NULL;
        _cleanup_close_ int fd = FD_NONE;
        char top[PATH_MAX];

        if (outcome->cause != CAUSE_EXITED || outcome->exit_code != GIT_FATAL || !workspace ||
            !workspace->real || strlen(workspace->real) >= sizeof(top) ||
            git_hint_has_repository(workspace))
                return;
        (void)strcpy(top, workspace->real);
        fd = repository_open_above(top);
        /* A repository as wide as the home directory would be refused as workspace. */
        if (fd >= 0 && top[0] && !home_lies_below(top))
                git_hint_tell(plan, workspace, top, out);
}
