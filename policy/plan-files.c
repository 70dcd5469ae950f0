/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/plan-files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"

/* Appends whole lines. */
static int plan_append(char **text, const char *more, const char **ret_why) {
        _cleanup_free_ char *before = *text;
        const size_t length = strlen(more);

        *text = str_format("%s%s%s", before ? before : "", more,
                           length > 0 && more[length - 1] != '\n' ? "\n" : "");
        if (!*text)
                return -ENOMEM;
        *ret_why = "the lines for this file are too long";
        return strlen(*text) < PLAN_ETC_MORE_MAX ? 0 : -EINVAL;
}

/* Whether the path is a file or symlink that holt makes itself, or lies below one. */
static bool plan_file_is_made(const char *path) {
        for (size_t i = 0; i < tree_nodes_count; i++)
                if (tree_nodes[i].link && path_below(path + 1, tree_nodes[i].path))
                        return true;
        for (size_t i = 0; i < tree_etc_files_count; i++)
                if (path_below(path + strlen("/etc/"), tree_etc_files[i].name))
                        return true;
        return false;
}

/* Whether one of the paths is the other one, or a directory above it. */
static bool plan_file_conflicts(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->files_count; i++)
                if (path_below(plan->files[i].path, path) || path_below(path, plan->files[i].path))
                        return true;
        return false;
}

int plan_add_file(LaunchPlan *plan, const char *path, char *text, size_t size,
                  const char **ret_why) {
        _cleanup_free_ char *owned = text;
        PlanFile *longer;

        if (streq(path, "/etc/gitconfig"))
                return plan_append(&plan->gitconfig, text, ret_why);
        if (streq(path, "/etc/hosts"))
                return plan_append(&plan->hosts, text, ret_why);
        *ret_why = plan_file_is_made(path) ? "holt writes this file itself"
                   : tree_shows(path)      ? "every sandbox has the host's entry of /etc there"
                   : plan_file_conflicts(plan, path + 1)
                           ? "another file of holt has this path, or one above or below it"
                           : NULL;
        if (*ret_why)
                return -EINVAL;
        longer = reallocarray(plan->files, plan->files_count + 1, sizeof(*longer));
        if (!longer)
                return -ENOMEM;
        plan->files = longer;
        plan->files[plan->files_count] = (PlanFile){ .path = strdup(path + 1), .size = size };
        plan->files[plan->files_count].text = TAKE_PTR(owned);
        return plan->files[plan->files_count++].path ? 0 : -ENOMEM;
}
