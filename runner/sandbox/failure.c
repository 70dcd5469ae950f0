/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/failure.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/home.h"
#include "base/paths.h"
#include "base/sys.h"
#include "sandbox/prepare.h"

enum {
        SHEBANG_MAX = 256, /* BINPRM_BUF_SIZE: the kernel reads no further */
        LINE_SHOWN_MAX = 200,
};

/* The verb that runs another command like it. */
static const char *failure_run_verb(const LaunchPlan *plan) {
        return plan->root.source ? "holt exec NAME" : "holt run";
}

static const char mount_it[] = "Mount the directory that it lies in: --ro DIR";

/* --- files as the host has them --- */

/* The program's place inside; owned by the caller, NULL when memory is out. */
static char *place_inside(const LaunchPlan *plan, const char *program) {
        return path_join(plan->cwd, program);
}

/* The start of a regular file; the length, or a negative errno. */
static ssize_t read_head(int path_fd, char *buf, size_t size) {
        _cleanup_close_ int fd = FD_NONE;
        struct stat st;
        char name[32];
        ssize_t n;

        if (fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -EINVAL;
        (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        n = fd < 0 ? -1 : read(fd, buf, size);
        return n < 0 ? -errno : n;
}

/* Cuts path to its directory, or to the top of the virtual environment that it is in. */
static void cut_to_directory(char *path) {
        char *slash = strrchr(path, '/'), *above, config[PATH_MAX + 16];

        slash[slash == path] = '\0';
        above = strrchr(path, '/');
        if (above == path || !streq(above, "/bin"))
                return;
        (void)snprintf(config, sizeof(config), "%.*s/pyvenv.cfg", (int)(above - path), path);
        if (access(config, F_OK) == 0)
                *above = '\0';
}

static bool is_in_system(const char *path) {
        for (size_t i = 0; i < tree_system_count; i++)
                if (path_below(path + 1, tree_system[i]))
                        return true;
        return false;
}

/* The program may be a symlink to one of the system, as in a virtual environment: its own directory
 * is missing inside then. What it leads to is needed, too, unless it is the system's. */
static int cure_linked(const char *path, const char *real, int r, Error *reterr) {
        _cleanup_free_ char *word = str_word(path), *real_word = str_word(real);

        if (is_in_system(real) || path_below(real, path))
                return error_cure(reterr, r, "Mount the directory that it lies in: --ro %s",
                                  word ? word : "DIR");
        return error_cure(reterr, r,
                          "It is reached through a symlink. Mount the directory that it lies in, "
                          "and the one that it leads to: --ro %s --ro %s",
                          word ? word : "DIR", real_word ? real_word : "DIR");
}

/* Names the directory of a file that the host has and the sandbox has not. */
static int cure_by_host(const LaunchPlan *plan, const char *path, const char *otherwise, int r,
                        Error *reterr) {
        _cleanup_free_ char *own = strdup(path);
        char real[PATH_MAX];

        if (!own)
                return error_oom(reterr);
        if (plan->rootfs.source)
                return error_cure(reterr, r, "%s", mount_it);
        if (realpath(path, real)) {
                cut_to_directory(own);
                cut_to_directory(real);
                /* A script, which may be the command's work, is no reason to show all of a home. */
                if (home_lies_below(own) || home_lies_below(real))
                        return error_cure(
                                reterr, r,
                                "Its directory holds your home: put it in one of its own, "
                                "and mount that: --ro DIR");
                return cure_linked(own, real, r, reterr);
        }
        return error_cure(reterr, r, "%s", errno == ENOENT ? otherwise : mount_it);
}

/* --- no such program --- */

/* The program is a path into a mount of the plan; fd is what is there, or a negative errno. */
static int cure_mounted(const LaunchPlan *plan, const char *path, int fd, int r, Error *reterr) {
        const PlanMount *mount = plan_mount_above(plan, path);
        char link[PATH_MAX], quoted[512];
        ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", link, sizeof(link) - 1);

        if (fd == -ENOENT || fd == -ENOTDIR) {
                _cleanup_free_ char *host = str_format("%s%s", mount->source,
                                                       path + strlen(mount->target));

                return error_cure(reterr, r, "%s is not there: make it, or correct the path.",
                                  host ? str_quote(host, quoted, sizeof(quoted)) : "It");
        }
        if (n > 0) {
                link[n] = '\0';
                return error_cure(reterr, r,
                                  "It is a link to %s, which is not inside: mount that too, --ro "
                                  "PATH",
                                  str_quote(link, quoted, sizeof(quoted)));
        }
        if (fd == -EXDEV)
                return error_cure(reterr, r,
                                  "A link on its path leads to what is not inside: mount that too, "
                                  "--ro PATH");
        return error_cure(reterr, r, "%s", mount_it);
}

/* What a shell does itself, and no file is there for. */
static const char *const builtins[] = {
        ".",       "alias", "bg",    "bind",   "builtin", "cd",   "command", "declare",  "dirs",
        "eval",    "exec",  "exit",  "export", "fc",      "fg",   "for",     "function", "hash",
        "history", "if",    "jobs",  "let",    "local",   "popd", "pushd",   "read",     "return",
        "set",     "shift", "shopt", "source", "times",   "trap", "type",    "ulimit",   "umask",
        "unalias", "unset", "wait",  "while",  "[[",
};

static bool is_builtin(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(builtins); i++)
                if (streq(builtins[i], name))
                        return true;
        return false;
}

/* A command line in one word. What a shell would do more with than take it apart is not offered to
 * be pasted without the quotes: behind a "|" or ";" it would run outside. */
static void cure_line(const LaunchPlan *plan, const char *line, Error *reterr) {
        const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            " _-+,./:=@%";
        _cleanup_free_ char *word = strlen(line) <= LINE_SHOWN_MAX ? str_word(line) : NULL;
        const char *verb = failure_run_verb(plan), *shown = word ? word : "'...'";

        if (word && line[strspn(line, plain)] == '\0')
                (void)error_cure(reterr, 0,
                                 "It is one word, with a blank in it. Its words apart: %s -- "
                                 "%s\nFor a shell: %s -- bash -c %s",
                                 verb, line, verb, shown);
        else
                (void)error_cure(reterr, 0,
                                 "It is one word, with a blank in it. For a shell: %s -- "
                                 "bash -c %s",
                                 verb, shown);
}

/* Whether the command is one for a shell, as it was written; what to do then. */
static bool cure_shell(const LaunchPlan *plan, Error *reterr) {
        const char *program = plan->argv.items[0];

        if (is_builtin(program))
                (void)error_cure(reterr, 0,
                                 "The shell does that itself; there is no program for it: %s -- "
                                 "bash -c '%s ...'",
                                 failure_run_verb(plan), program);
        else if (plan->argv.count == 1 && strpbrk(program, " \t"))
                cure_line(plan, program, reterr);
        else
                return false;
        return true;
}

/* Whether its PATH has a directory in it that does not depend on where the command starts. */
static bool has_search_path(const LaunchPlan *plan) {
        for (size_t i = 0; i < plan->env.count; i++)
                if (str_starts(plan->env.items[i], "PATH="))
                        return strchr(plan->env.items[i], '/') != NULL;
        return true;
}

static int explain_lookup(const LaunchPlan *plan, const char *program, const char *name,
                          Error *reterr) {
        _cleanup_free_ char *path = place_inside(plan, program), *wanted = NULL;
        _cleanup_close_ int fd = FD_NONE;
        int r = error_set(reterr, ERROR_NOT_FOUND, 0,
                          "\"%s\": there is no such program in the sandbox", name);

        if (!path)
                return error_oom(reterr);
        if (cure_shell(plan, reterr))
                return r;
        if (!strchr(program, '/') && !has_search_path(plan))
                return error_cure(reterr, r,
                                  "PATH names no directory inside, so it is looked for nowhere: "
                                  "--env PATH=/usr/bin:/bin");
        if (!strchr(program, '/'))
                return error_cure(reterr, r,
                                  "Install it on the host below /usr, or mount where it lies (--ro "
                                  "DIR) and set PATH (--env PATH=...)");
        fd = prepare_open_inside(plan, path, O_NOFOLLOW);
        if (fd != -ENXIO)
                return cure_mounted(plan, path, fd, r, reterr);
        if (program[0] == '/')
                return cure_by_host(plan, path, "The host has none either: correct the path.", r,
                                    reterr);
        wanted = str_format("It is looked for in %s, where the command starts; --cwd names another "
                            "directory.",
                            plan->cwd);
        return wanted ? cure_by_host(plan, path, wanted, r, reterr) : error_oom(reterr);
}

/* --- no such interpreter --- */

/* Takes the interpreter out of a script's first line, as the kernel reads it (execve(2)): up to a
 * blank, a carriage return being none. false where it is no script. */
static bool parse_shebang(char *head, char **ret) {
        char *name = head + 2;

        if (head[0] != '#' || head[1] != '!')
                return false;
        name += strspn(name, " \t");
        name[strcspn(name, " \t\n")] = '\0';
        *ret = name;
        return name[0] != '\0';
}

static bool read_shebang(const LaunchPlan *plan, const char *program, char head[SHEBANG_MAX],
                         char **ret) {
        _cleanup_free_ char *path = strchr(program, '/') ? place_inside(plan, program) : NULL;
        _cleanup_close_ int fd = path ? prepare_open_inside(plan, path, 0) : FD_NONE;
        ssize_t n = fd < 0 ? -1 : read_head(fd, head, SHEBANG_MAX - 1);

        head[n < 0 ? 0 : n] = '\0';
        return parse_shebang(head, ret);
}

/* The script may be the command's own work: its first line is no reason to mount any directory, as
 * that of somebody's keys, but one where a program is. */
static bool host_has_program(const char *path) {
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int cure_returns(const char *program, int r, Error *reterr) {
        _cleanup_free_ char *word = str_word(program);

        return error_cure(reterr, r,
                          "Its lines end in CR LF, and the CR counts as part of the name: sed -i "
                          "'s/\\r$//' %s takes them away.",
                          word ? word : "FILE");
}

/* Where it is inside, under another path: what a virtual environment's scripts name, in a workspace
 * that has moved. NULL where no mount has it. */
static const PlanMount *mount_with(const LaunchPlan *plan, const char *host) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan->mounts[i].source && path_below(host, plan->mounts[i].source) &&
                    !streq(plan->mounts[i].source, plan->mounts[i].target) &&
                    !streq(plan->mounts[i].source, "/"))
                        return &plan->mounts[i];
        return NULL;
}

static int cure_moved(const LaunchPlan *plan, const PlanMount *mount, const char *host, int r,
                      Error *reterr) {
        char quoted[SHEBANG_MAX * 4], target[512];
        _cleanup_free_ char *word = str_word(mount->source);

        return error_cure(reterr, r,
                          "Inside it is %s%s. Where paths are part of what is there, as in a "
                          "virtual environment, give it the same path inside: "
                          "%s%s:%s",
                          str_quote(mount->target, target, sizeof(target)),
                          str_quote(host + strlen(mount->source), quoted, sizeof(quoted)),
                          plan->root.source ? "holt create --workspace " : "--workspace ",
                          word ? word : "DIR", word ? word : "DIR");
}

static int explain_interpreter(const LaunchPlan *plan, const char *program, const char *name,
                               int errnum, Error *reterr) {
        char head[SHEBANG_MAX], quoted[SHEBANG_MAX * 4], *interpreter;
        const PlanMount *moved;
        size_t length;
        int r;

        if (!read_shebang(plan, program, head, &interpreter)) {
                r = error_set(reterr, ERROR_NOT_EXECUTABLE, errnum,
                              "\"%s\" is there, but its interpreter is not (its #! line, or the "
                              "dynamic loader of its libc)",
                              name);
                return error_cure(reterr, r, "%s", mount_it);
        }
        r = error_set(reterr, ERROR_NOT_EXECUTABLE, errnum,
                      "\"%s\" is there, but its interpreter \"%s\" is not", name,
                      str_quote(interpreter, quoted, sizeof(quoted)));
        length = strlen(interpreter);
        if (interpreter[length - 1] == '\r')
                return cure_returns(program, r, reterr);
        if (!plan->rootfs.source && !host_has_program(interpreter))
                return error_cure(reterr, r,
                                  "The host has no such program either: correct the first "
                                  "line of the script.");
        moved = mount_with(plan, interpreter);
        if (moved)
                return cure_moved(plan, moved, interpreter, r, reterr);
        return cure_by_host(plan, interpreter, mount_it, r, reterr);
}

/* --- it may not be executed --- */

/* Of what a mount of the plan has; the rest is for others to guess. */
static const char *why_not_executable(int fd) {
        struct statvfs fs;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return NULL;
        if (S_ISDIR(st.st_mode))
                return "It is a directory: name a program in it.";
        if (!S_ISREG(st.st_mode))
                return "It is not a regular file.";
        if (!(st.st_mode & 0111))
                return "Its mode does not let anybody execute it: chmod +x, or give it to its "
                       "interpreter, as in: sh FILE";
        if (fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_NOEXEC)
                return "Its file system is mounted noexec: copy it to another, or give it to its "
                       "interpreter, as in: sh FILE";
        return NULL;
}

static int cure_access(const LaunchPlan *plan, const char *program, int r, Error *reterr) {
        _cleanup_free_ char *path = strchr(program, '/') ? place_inside(plan, program) : NULL;
        _cleanup_close_ int fd = path ? prepare_open_inside(plan, path, 0) : FD_NONE;
        const char *why = why_not_executable(fd);

        return error_cure(reterr, r, "%s",
                          why ? why
                              : "It, or its interpreter, has to be a regular file with a mode that "
                                "lets the sandbox's user execute it, on a file system that is not "
                                "mounted noexec.");
}

/* --- all of them --- */

const char failure_too_long[] = "Its arguments and variables together are more than the kernel "
                                "takes, mostly 2 MiB (a quarter of the stack's limit), or one is "
                                "longer than 128 KiB: pass it on stdin or in a file.";

static int explain_rest(const LaunchPlan *plan, const InitMessage *failure, const char *name,
                        int errnum, Error *reterr) {
        int r = error_set(reterr,
                          failure->detail == INIT_STEP_EXEC ? ERROR_NOT_EXECUTABLE : ERROR_SETUP,
                          errnum, "cannot execute \"%s\"", name);

        /* With more than one the reason may be a limit of the host's. */
        if (failure->detail == INIT_STEP_FORK && errnum == EAGAIN && plan->pids_origin)
                return error_cure(reterr, r,
                                  "One process is too few: holt's init is one, and the command "
                                  "another. It is the limit of %s.",
                                  plan->pids_origin);
        if (failure->detail == INIT_STEP_EXEC && errnum == EACCES)
                return cure_access(plan, plan->argv.items[0], r, reterr);
        if (failure->detail == INIT_STEP_EXEC && errnum == ENOEXEC)
                return error_cure(reterr, r,
                                  "It is no program for this machine; a script starts with #! and "
                                  "the path of its interpreter.");
        if (failure->detail == INIT_STEP_EXEC && errnum == E2BIG)
                return error_cure(reterr, r, "%s", failure_too_long);
        if (failure->detail == INIT_STEP_EXEC && errnum == ENAMETOOLONG)
                (void)cure_shell(plan, reterr);
        return r;
}

static int failure_explain_known(const LaunchPlan *plan, const InitMessage *failure,
                                 Error *reterr) {
        const char *program = plan->argv.items[0];
        int errnum = failure->value > 0 && failure->value < 4096 ? failure->value : EPROTO;
        char name[256];

        (void)str_quote(program, name, sizeof(name));
        if (failure->detail == INIT_STEP_LOOKUP)
                return explain_lookup(plan, program, name, reterr);
        if (failure->detail == INIT_STEP_INTERPRETER)
                return explain_interpreter(plan, program, name, errnum, reterr);
        return explain_rest(plan, failure, name, errnum, reterr);
}

int failure_explain(const Launch *launch, const InitMessage *failure, Error *reterr) {
        int r = failure_explain_known(launch->plan, failure, reterr);
        size_t length = strlen(reterr->cure);

        /* What runs a command in a session takes no mounts. */
        if (launch->plan->root.source && strstr(reterr->cure, "--ro "))
                (void)snprintf(
                        reterr->cure + length, sizeof(reterr->cure) - length,
                        "\n--ro is for holt create: what a session is shown is settled as it "
                        "is made.");
        return r;
}
