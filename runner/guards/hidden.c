/* SPDX-License-Identifier: Apache-2.0 */
/* Hides absolute paths. The caller may mean the path inside or the file on the host, so both are
 * hidden. policy/plan-mounts.c hides the path itself. This file finds every place inside where a
 * mount of the plan shows the host's file of that path. */
#include "guards/hidden.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "reach/reach.h"

typedef struct Hidden {
        const LaunchPlan *plan;
        Reach *reach;
        const char *below; /* "" or a name in the directory to look for. */
        bool found;        /* A place for the current path was found. */
        StrList inside;    /* The places to hide, for all paths. */
        StrList by;        /* The origin of the path that each place belongs to. */
} Hidden;

static int hidden_add(Hidden *hidden, const char *directory, const char *below) {
        _cleanup_free_ char *inside = path_join(directory, below);

        if (!inside)
                return -ENOMEM;
        if (streq(inside, "/"))
                return 0;
        hidden->found = true;
        return strlist_has(&hidden->inside, inside) ? 0 : strlist_add(&hidden->inside, inside);
}

static int hidden_add_shown(void *data, const PlanMount *mount, const char *inside,
                            const char *rest) {
        Hidden *hidden = data;

        (void)mount;
        return rest ? hidden_add(hidden, inside, hidden->below) : 0;
}

/* Adds a place in one mount. `top` is the path of the mount's top on the host. */
static int hidden_add_below(Hidden *hidden, const PlanMount *mount, const char *target,
                            const char *top, const char *path) {
        const char *rest = top ? path_rest(path, top) : NULL;
        _cleanup_free_ char *inside = rest ? path_join(target, rest) : NULL;

        if (!rest)
                return 0;
        if (!inside)
                return -ENOMEM;
        /* Another mount may cover that place. */
        if (!streq(target, "/") && plan_mount_above(hidden->plan, inside) != mount)
                return 0;
        return hidden_add(hidden, inside, "");
}

/* Compares the path with the paths of the sources, both as given and as the kernel names them. */
static int hidden_add_path(Hidden *hidden, const char *path) {
        const LaunchPlan *plan = hidden->plan;
        int r = hidden_add_below(hidden, &plan->rootfs, "/", plan->rootfs.real, path);

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];

                if (!plan_mount_shows_host(mount))
                        continue;
                r = hidden_add_below(hidden, mount, mount->target, mount->source, path);
                if (r == 0)
                        r = hidden_add_below(hidden, mount, mount->target, mount->real, path);
        }
        return r;
}

/* Finds an open directory or file in any bind mount that shows it. The layers of an overlay are
 * different files. A path that the caller cannot reach is skipped, because the command cannot reach
 * it either. */
static int hidden_add_open(Hidden *hidden, const char *path, const char *below) {
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        _cleanup_free_ char *full = NULL;
        char real[PATH_MAX];
        int r;

        if (fd < 0)
                return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
        r = path_of_fd(fd, real);
        if (r < 0)
                return r;
        full = path_join(real, below);
        if (!full)
                return -ENOMEM;
        r = hidden_add_path(hidden, full);
        hidden->below = below;
        return r < 0 ? r : reach_each(hidden->reach, fd, hidden_add_shown, hidden);
}

/* Finds the places of one path. The last name may be a symlink; both the symlink and its target are
 * hidden. */
static int hidden_find(Hidden *hidden, const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *parent = strndup(path, slash == path ? 1 : (size_t)(slash - path));
        int r = parent ? hidden_add_path(hidden, path) : -ENOMEM;

        if (r == 0)
                r = hidden_add_open(hidden, parent, slash + 1);
        return r == 0 ? hidden_add_open(hidden, path, "") : r;
}

static int hidden_find_places(LaunchPlan *plan, size_t index, Hidden *hidden, Error *reterr) {
        PlanMount *mount = &plan->mounts[index];
        struct stat st;
        int r = hidden->reach ? 0 : reach_new_all(plan, &hidden->reach, reterr);

        if (r < 0)
                return r;
        hidden->found = false;
        r = hidden_find(hidden, mount->target);
        if (r < 0)
                return error_set(reterr, ERROR_SETUP, -r,
                                 "%s: cannot find the mounts that show this file of the host",
                                 mount->origin);
        while (hidden->by.count < hidden->inside.count)
                if (strlist_add(&hidden->by, mount->hidden_by ? mount->hidden_by : mount->origin) <
                    0)
                        return error_oom(reterr);
        if (hidden->found && lstat(mount->target, &st) == 0)
                mount->flags |= PLAN_HIDE_SHOWN;
        return 0;
}

static bool hidden_already(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan_mount_hides(&plan->mounts[i]) && streq(plan->mounts[i].target, path))
                        return true;
        return false;
}

int hidden_prepare(LaunchPlan *plan, Error *reterr) {
        Hidden hidden = { .plan = plan };
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (plan->mounts[i].flags & PLAN_HIDE_ABSOLUTE)
                        r = hidden_find_places(plan, i, &hidden, reterr);
        reach_free(hidden.reach);
        /* Added only now, because plan_hide() may move the plan's mounts. */
        for (size_t i = 0; r == 0 && i < hidden.inside.count; i++)
                if (!hidden_already(plan, hidden.inside.items[i]))
                        r = plan_hide(plan, hidden.inside.items[i], "", hidden.by.items[i], reterr);
        strlist_clear(&hidden.inside);
        strlist_clear(&hidden.by);
        return r;
}
