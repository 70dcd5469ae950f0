/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the command of an assembly without a reaper. Like execvp(3), but with the command's own
 * environment, and without memory of the heap. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "child/assemble.h"

/* A file without "#!" is run by the shell. The slot in front of argv takes the shell's name. */
static int execute_one(const char *path, const char **argv, const char *const *env) {
        const char *name = argv[0];

        (void)execve(path, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
        if (errno != ENOEXEC)
                return -errno;
        argv[-1] = "/bin/sh";
        argv[0] = path;
        (void)execve(argv[-1], (char *const *)(uintptr_t)(argv - 1), (char *const *)(uintptr_t)env);
        argv[0] = name;
        return -errno;
}

static const char *search_path(const char *const *env) {
        for (; *env; env++)
                if (strncmp(*env, "PATH=", 5) == 0)
                        return *env + 5;
        return "/bin:/usr/bin";
}

/* Writes DIR/program to buf. Returns false if it does not fit. */
static bool execute_candidate(char buf[PATH_MAX], const char *path, size_t length,
                              const char *program) {
        const size_t name = strlen(program);

        if (length + name + 2 > PATH_MAX)
                return false;
        memcpy(buf, path, length);
        if (length > 0)
                buf[length++] = '/';
        memcpy(buf + length, program, name + 1);
        return true;
}

int assemble_execute(const char *program, const char **argv, const char *const *env, Error *error) {
        static char buf[PATH_MAX];
        const char *path = search_path(env);
        int best = -ENOENT;

        if (strchr(program, '/')) {
                best = execute_one(program, argv, env);
                path = NULL;
        }
        while (path && *program) {
                const size_t length = strcspn(path, ":");
                int r = execute_candidate(buf, path, length, program) ? execute_one(buf, argv, env)
                                                                      : -ENAMETOOLONG;

                if (r != -ENOENT && r != -ENOTDIR)
                        best = r;
                path = path[length] ? path + length + 1 : NULL;
        }
        return step_fail(error, LAYER_NONE, -best, "execvp", program);
}
