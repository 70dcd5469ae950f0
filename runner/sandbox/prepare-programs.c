/* SPDX-License-Identifier: Apache-2.0 */
/* Holt's own programs, if they lie in a writable mount, as in a checkout or below a prefix in the
 * workspace.
 *
 * holt executes the first holt-full that it finds (cli/full.c). So a place that is looked at before
 * the right one must not be filled by the command either: the directory that it would lie in is
 * pinned. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/paths.h"
#include "base/programs.h"
#include "base/sys.h"
#include "sandbox/prepare.h"
#include "sandbox/reach.h"

static bool is_within_mounts(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];

                if (mount->kind == PLAN_BIND && !(mount->flags & PLAN_READ_ONLY) &&
                    ((mount->real && path_below(path, mount->real)) ||
                     path_below(path, mount->source)))
                        return true;
        }
        return false;
}

/* Whether any of them may lie in a writable mount. They are compared as text, and nothing is looked
 * up, since each start of holt does this. */
static int programs_are_near(const LaunchPlan *plan, const char *dir) {
        static const char *const parts[] = { ".", "../libexec", "../../bin", HOLT_LIBEXEC };
        bool near = false;

        for (size_t i = 0; !near && i < ELEMENTSOF(parts); i++) {
                _cleanup_free_ char *path = path_join(dir, parts[i]);

                if (!path)
                        return -ENOMEM;
                near = is_within_mounts(plan, path);
        }
        return near;
}

/* Adds the places of holt-full that holt looks at, up to the one that it executes. */
static int add_full(const char *light_dir, StrList *ret) {
        for (size_t i = 0; i < ELEMENTSOF(programs_full); i++) {
                char *path = path_join(light_dir, programs_full[i]);
                int r = strlist_take(ret, path);

                if (r < 0)
                        return r;
                if (access(path, X_OK) == 0)
                        break;
        }
        return 0;
}

/* Adds holt, which may have been exchanged since it was started, and what it executes. */
static int add_light(const char *dir, StrList *ret) {
        for (size_t i = 0; i < ELEMENTSOF(programs_light); i++) {
                _cleanup_free_ char *path = path_join(dir, programs_light[i]);
                int r;

                if (!path)
                        return -ENOMEM;
                if (access(path, F_OK) < 0)
                        continue;
                r = strlist_add(ret, path);
                *strrchr(path, '/') = '\0';
                return r < 0 ? r : add_full(path, ret);
        }
        return 0;
}

int prepare_programs_list(const LaunchPlan *plan, StrList *ret) {
        static const char deleted[] = " (deleted)";
        char self[PATH_MAX], *slash;
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        const char *name;
        int r;

        self[n < 0 ? 0 : n] = '\0';
        slash = strrchr(self, '/');
        if (!slash)
                return 0;
        /* A build has replaced it since it was started. */
        if ((size_t)n > sizeof(deleted) && streq(self + n - sizeof(deleted) + 1, deleted) &&
            access(self, F_OK) < 0)
                self[(size_t)n - sizeof(deleted) + 1] = '\0';
        *slash = '\0';
        name = slash + 1;
        r = programs_are_near(plan, self);
        if (r <= 0)
                return r;
        r = strlist_take(ret, path_join(self, name));
        if (r == 0)
                r = streq(name, "holt-full") ? add_light(self, ret) : add_full(self, ret);
        return r;
}

/* --- a place that is empty --- */

static int refuse_program(const char *path, const Reached *reached, Error *reterr) {
        char quoted[400], inside[400];
        int r = error_set(reterr, ERROR_POLICY, EPERM,
                          "holt would execute %s, and the command could make it (%s inside)",
                          str_quote(path, quoted, sizeof(quoted)),
                          str_quote(reached->inside, inside, sizeof(inside)));

        return error_cure(reterr, r,
                          "Install holt where the command cannot write: meson install -C build");
}

/* The directory that path would be made in: the first above it that exists. */
static char *existing_above(const char *path) {
        char *dir = strdup(path), *slash;

        while (dir && (slash = strrchr(dir, '/')) && slash != dir) {
                *slash = '\0';
                if (access(dir, F_OK) == 0)
                        break;
        }
        return dir;
}

int prepare_program(LaunchPlan *plan, const Reach *reach, const char *path, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE, dir_fd = FD_NONE, again_fd = FD_NONE;
        _cleanup_free_ char *dir = NULL;
        Reached reached, above;
        int r = reach_path(reach, path, &fd, &reached);

        if (r == 0)
                return prepare_input(plan, reach, path, FD_NONE, reterr);
        if (!reached.how)
                return 0;
        dir = existing_above(path);
        if (!dir)
                return error_oom(reterr);
        r = reach_path(reach, dir, &dir_fd, &above);
        if (r == 0)
                r = prepare_pin_input(plan, reach, dir_fd, reterr);
        if (r < 0)
                return r;
        (void)reach_path(reach, path, &again_fd, &reached);
        return reached.how ? refuse_program(path, &reached, reterr) : 0;
}
