/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/refused-program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/home.h"
#include "base/paths.h"
#include "base/sys.h"
#include "outcome/refused-host.h"

/* A program of the host. */
typedef struct Program {
        const char *name;
        /* Without symlinks: its directory, which is in PATH, and the file. */
        char directory[PATH_MAX], file[PATH_MAX];
} Program;

/* --- in the host's PATH --- */

/* Opens the path and sets its path without symlinks. Returns whether it is of that type, and may be
 * entered or executed. */
static bool program_open(const Search *search, const char *path, mode_t type, char ret[PATH_MAX]) {
        _cleanup_close_ int fd = beneath_open_local(path, &search->writable);
        struct stat st;

        return fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type &&
               st.st_mode & 0111 && path_of_fd(fd, ret) == 0;
}

/* Returns false if PATH does not have the program. */
static bool program_search(const Search *search, Program *program) {
        const char *entry = search->launch->caller_path;

        for (size_t length; *entry; entry += length + (entry[length] == ':')) {
                _cleanup_free_ char *text = NULL, *directory = NULL, *path = NULL;

                length = strcspn(entry, ":");
                text = entry[0] == '/' ? strndup(entry, length) : NULL;
                directory = text ? path_join("/", text) : NULL;
                path = directory ? path_join(directory, program->name) : NULL;
                if (path && program_open(search, path, S_IFREG, program->file) &&
                    program_open(search, directory, S_IFDIR, program->directory))
                        return true;
        }
        return false;
}

/* --- what must be mounted --- */

/* Programs of a snap run only outside. */
static bool program_may_show(const char *directory) {
        return !home_lies_below(directory) && !path_below(directory, "/snap");
}

static bool program_has(const char *directory, const char *name) {
        _cleanup_free_ char *path = path_child(directory, name);

        return path && access(path, F_OK) == 0;
}

/* Returns the directory to mount for a directory of programs: a virtual environment is needed as a
 * whole, and so is a tree whose bin has a symlink to another part of it, such as that of node. */
static char *program_tree(const char *directory, const char *real) {
        _cleanup_free_ char *tree = refused_directory_of(directory);
        const char *bin = path_rest(directory, tree ? tree : ""), *name = tree ? tree : "";

        for (const char *slash = name; (slash = strchr(slash, '/')) != NULL; slash++)
                name = slash + 1;
        if (tree && bin && streq(bin, "bin") && name[0] && program_may_show(tree) &&
            (program_has(tree, "pyvenv.cfg") ||
             (path_below(real, tree) && !path_below(real, directory) && name[0] != '.' &&
              strchr(tree + 1, '/'))))
                return TAKE_PTR(tree);
        return strdup(directory);
}

/* Returns the path at which the sandbox shows the directory of the host, or NULL. */
static char *program_inside(const Search *search, const char *directory) {
        if (refused_shows(search, directory))
                return strdup(directory);
        for (size_t i = 0; i < search->plan->mounts_count; i++) {
                const PlanMount *mount = &search->plan->mounts[i];

                if (plan_mount_shows_host(mount) && path_below(directory, mount->source))
                        return path_join(mount->target,
                                         directory + strlen(mount->source) +
                                                 (directory[strlen(mount->source)] == '/'));
        }
        return NULL;
}

/* Sets the directories to mount. Returns false if no grant of one may be suggested, or if neither
 * PATH nor --ro can name one, because of a colon. */
static bool program_mounts(const Search *search, const Program *program, bool is_inside,
                           char *ret[2]) {
        _cleanup_free_ char *target = refused_directory_of(program->file);
        _cleanup_close_ int fd = FD_NONE;

        if (strchr(program->directory, ':') || strchr(program->file, ':') ||
            (!is_inside && !program_may_show(program->directory)))
                return false;
        ret[0] = is_inside ? NULL : program_tree(program->directory, program->file);
        if (!target || refused_shows(search, program->file) ||
            path_below(program->file, ret[0] ? ret[0] : program->directory))
                return true;
        ret[1] = program_tree(target, program->file);
        fd = ret[1] ? refused_open_host(ret[1], &search->writable, false) : FD_NONE;
        return fd >= 0;
}

/* --- the result --- */

/* Whether the directory is one of the entries of PATH. */
static bool program_path_has(const char *path, const char *directory) {
        const size_t length = strlen(directory);

        for (; path[0]; path += strcspn(path, ":"), path += path[0] == ':')
                if (strcspn(path, ":") == length && memcmp(path, directory, length) == 0)
                        return true;
        return false;
}

/* Returns the PATH of the sandbox with the directory in front, or NULL if it has the directory. */
static char *program_path(const LaunchPlan *plan, const char *directory) {
        const char *path = "/usr/local/bin:/usr/bin:/bin";

        for (size_t i = 0; i < plan->env.count; i++)
                if (str_starts(plan->env.items[i], "PATH="))
                        path = plan->env.items[i] + strlen("PATH=");
        if (program_path_has(path, directory))
                return NULL;
        return path[0] ? str_format("%s:%s", directory, path) : strdup(directory);
}

/* Takes ownership of the texts if they are new. */
static void program_note(const Search *search, const Program *program, char *mounts[2],
                         char **path) {
        Refusal *refusal = refusals_entry(search->found, REFUSAL_PROGRAM, program->directory);

        if (!refusal || refusal->count++ > 0)
                return;
        refusal->errnum = ENOENT;
        refusal->path = strdup(program->name);
        refusal->subject = strdup(program->directory);
        refusal->mounts[0] = TAKE_PTR(mounts[0]);
        refusal->mounts[1] = TAKE_PTR(mounts[1]);
        refusal->search = TAKE_PTR(*path);
}

bool refused_program(const Search *search, const Complaint *complaint) {
        Program program = { .name = complaint->path };
        _cleanup_free_ char *inside = NULL, *path = NULL;
        char *mounts[2] = { NULL };
        bool may;

        if (search->plan->rootfs.source || !program_search(search, &program))
                return false;
        inside = program_inside(search, program.directory);
        path = program_path(search->plan, inside ? inside : program.directory);
        may = program_mounts(search, &program, inside, mounts) && (path || mounts[0] || mounts[1]);
        if (may)
                program_note(search, &program, mounts, &path);
        free(mounts[0]);
        free(mounts[1]);
        return may;
}
