/* SPDX-License-Identifier: Apache-2.0 */
/* Protects holt's own programs if they lie in a writable mount, such as a checkout or a prefix in
 * the workspace.
 *
 * holt executes the first holt-full that it finds (cli/full.c). So the command must not create one
 * in a place that holt searches earlier: the directory of that place is pinned too. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/programs.h"
#include "base/sys.h"
#include "guards/inputs.h"
#include "reach/reach.h"

static bool is_within_mounts(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];

                if (plan_mount_shows_host(mount) && !(mount->flags & PLAN_READ_ONLY) &&
                    ((mount->real && path_below(path, mount->real)) ||
                     path_below(path, mount->source)))
                        return true;
        }
        return false;
}

/* Directories of both programs, relative to the directory of the running one. */
static const char *const program_directories[] = { ".", "../libexec", "../../bin", HOLT_LIBEXEC };

/* Returns the first directory, at path or above it, that exists. The caller owns it. */
static char *existing_at(const char *path) {
        char *dir = strdup(path), *slash;

        while (dir && access(dir, F_OK) < 0 && (slash = strrchr(dir, '/')) && slash != dir)
                *slash = '\0';
        return dir;
}

/* --- without the mount table --- */

static bool is_as_text(const LaunchPlan *plan, const char *dir) {
        bool near = false;

        for (size_t i = 0; !near && i < ELEMENTSOF(program_directories); i++) {
                _cleanup_free_ char *path = path_join(dir, program_directories[i]);

                near = !path || is_within_mounts(plan, path);
        }
        return near;
}

/* Whether a command with the rights of uid could change the file at path, or replace a directory
 * above it. Looks at all directories up to those that contain `asked`, which were checked before;
 * NULL means that none was. In a sticky directory, only the owner of an entry can replace it, and
 * the entry's owner is checked anyway. */
static bool programs_may_be_changed(const char *path, const char *asked, uid_t uid) {
        _cleanup_free_ char *at = strdup(path);
        struct stat st;

        while (at && at[0] && !(asked && path_below(asked, at))) {
                const bool there = stat(at, &st) == 0;

                if (there && (st.st_uid == uid ||
                              (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))))
                        return true;
                if (!there && errno != ENOENT)
                        return true;
                *strrchr(at, '/') = '\0';
        }
        return !at;
}

/* Whether the command could change holt's own files. Usually root has installed holt and another
 * user runs it: then no mount of the host lets the command change it. If root runs holt, the
 * command may change everything that is mounted read-write. */
static bool may_be_ours(const char *self, const char *dir) {
        const uid_t uid = geteuid();
        bool may = uid == 0 || programs_may_be_changed(self, NULL, uid);

        for (size_t i = 1; !may && i < ELEMENTSOF(program_directories); i++) {
                _cleanup_free_ char *path = path_join(dir, program_directories[i]);

                may = !path || programs_may_be_changed(path, dir, uid);
        }
        return may;
}

/* Whether a mount shows one of the directories. It compares open directories: the path by which
 * holt was started says nothing about other mounts of the same directory. */
static bool is_reached(const Reach *reach, const char *dir) {
        for (size_t i = 0; i < ELEMENTSOF(program_directories); i++) {
                _cleanup_free_ char *path = path_join(dir, program_directories[i]);
                _cleanup_free_ char *there = path ? existing_at(path) : NULL;
                _cleanup_close_ int fd = there ? open(there, O_PATH | O_CLOEXEC) : FD_NONE;

                if (fd < 0 || reach_place(reach, fd) != REACH_OUTSIDE)
                        return true;
        }
        return false;
}

/* --- the list of programs --- */

/* Adds the places in which holt looks for a program, up to the one that it executes. */
static int add_places(const char *light_dir, const char *const *places, size_t count,
                      StrList *ret) {
        for (size_t i = 0; i < count; i++) {
                char *path = path_join(light_dir, places[i]);
                int r = strlist_take(ret, path);

                if (r < 0)
                        return r;
                if (access(path, X_OK) == 0)
                        break;
        }
        return 0;
}

static int add_executed(const char *light_dir, StrList *ret) {
        int r = add_places(light_dir, programs_full, ELEMENTSOF(programs_full), ret);

        if (r == 0)
                r = add_places(light_dir, programs_egress, ELEMENTSOF(programs_egress), ret);
        return r < 0 ? r
                     : add_places(light_dir, programs_gateway, ELEMENTSOF(programs_gateway), ret);
}

/* Adds holt, which may have been replaced since it was started, and the programs that it
 * executes. */
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
                return r < 0 ? r : add_executed(path, ret);
        }
        return 0;
}

/* --- a program that does not exist --- */

static int refuse_program(const char *path, const Reached *reached, Error *reterr) {
        char quoted[400], inside[400];
        int r = error_set(reterr, ERROR_POLICY, EPERM,
                          "holt would execute %s, but the command could create it (%s inside)",
                          str_quote(path, quoted, sizeof(quoted)),
                          str_quote(reached->inside, inside, sizeof(inside)));

        return error_cure(
                reterr, r,
                "Install holt in a place where the command cannot write: meson install -C build");
}

static int programs_protect_one(LaunchPlan *plan, const Reach *reach, const char *path,
                                Error *reterr) {
        _cleanup_close_ int fd = FD_NONE, dir_fd = FD_NONE, again_fd = FD_NONE;
        _cleanup_free_ char *dir = NULL;
        Reached reached, above;
        int r = reach_path(reach, path, &fd, &reached);

        if (r == 0)
                return inputs_protect_path(plan, reach, path, FD_NONE, reterr);
        if (!reached.how)
                return 0;
        dir = existing_at(path);
        if (!dir)
                return error_oom(reterr);
        r = reach_path(reach, dir, &dir_fd, &above);
        if (r == 0)
                r = inputs_pin(plan, reach, dir_fd, reterr);
        if (r < 0)
                return r;
        (void)reach_path(reach, path, &again_fd, &reached);
        return reached.how ? refuse_program(path, &reached, reterr) : 0;
}

/* --- together --- */

/* Stores the kernel's path of the running program, or "". */
static void find_self(char ret[PATH_MAX]) {
        static const char deleted[] = " (deleted)";
        ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

        ret[n < 0 ? 0 : n] = '\0';
        /* A build has replaced the program since it was started. */
        if (n > (ssize_t)sizeof(deleted) && streq(ret + n - sizeof(deleted) + 1, deleted) &&
            access(ret, F_OK) < 0)
                ret[(size_t)n - sizeof(deleted) + 1] = '\0';
}

static int list_programs(char self[PATH_MAX], StrList *ret) {
        char *slash = strrchr(self, '/');
        const char *name = slash + 1;
        int r;

        *slash = '\0';
        r = strlist_take(ret, path_join(self, name));
        if (r == 0)
                r = streq(name, "holt-full") ? add_light(self, ret) : add_executed(self, ret);
        return r;
}

static bool has_writable(const LaunchPlan *plan) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]) &&
                    !(plan->mounts[i].flags & PLAN_READ_ONLY))
                        return true;
        return plan->root.source;
}

ProgramsNear programs_near(const LaunchPlan *plan) {
        _cleanup_free_ char *dir = NULL;
        char self[PATH_MAX];

        find_self(self);
        if (!strrchr(self, '/') || !has_writable(plan))
                return PROGRAMS_FAR;
        dir = path_join(self, "..");
        if (!dir || is_as_text(plan, dir))
                return PROGRAMS_NEAR;
        return may_be_ours(self, dir) ? PROGRAMS_ASK : PROGRAMS_FAR;
}

int programs_protect(LaunchPlan *plan, const Reach *reach, ProgramsNear near, Error *reterr) {
        _cleanup_(strlist_clear) StrList programs = { 0 };
        _cleanup_free_ char *dir = NULL;
        char self[PATH_MAX];
        int r;

        find_self(self);
        dir = path_join(self, "..");
        if (!dir)
                return error_oom(reterr);
        if (near == PROGRAMS_FAR || (near == PROGRAMS_ASK && !is_reached(reach, dir)))
                return 0;
        r = list_programs(self, &programs);
        if (r < 0)
                return error_oom(reterr);
        for (size_t i = 0; r == 0 && i < programs.count; i++)
                r = programs_protect_one(plan, reach, programs.items[i], reterr);
        return r;
}
