/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/failure.h"

#include <errno.h>
#include <inttypes.h>
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
        SHEBANG_MAX = 256, /* BINPRM_BUF_SIZE: the kernel reads no further. */
        LINE_SHOWN_MAX = 200,
};

/* The verb to run another command in the same way. */
static const char *failure_run_verb(const LaunchPlan *plan) {
        return plan->root.source ? "holt exec NAME" : "holt run";
}

static const char mount_it[] = "Mount the directory in which it lies: --ro DIR";

/* --- files on the host --- */

/* The program's path inside; owned by the caller, NULL if memory is out. */
static char *place_inside(const LaunchPlan *plan, const char *program) {
        return path_join(plan->cwd, program);
}

/* Reads the start of a regular file. Returns its length or a negative errno. */
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

/* Cuts path to its directory, or to the top of the virtual environment in which it lies. */
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

/* Sets the cure for a program that may be a symlink to a program of the system, as in a virtual
 * environment. Then its own directory is missing inside. The directory of the symlink's target is
 * needed too, unless it belongs to the system. */
static int cure_linked(const char *path, const char *real, int r, Error *reterr) {
        _cleanup_free_ char *word = str_word(path), *real_word = str_word(real);

        if (tree_has(real) || path_below(real, path))
                return error_cure(reterr, r, "Mount the directory in which it lies: --ro %s",
                                  word ? word : "DIR");
        return error_cure(reterr, r,
                          "It is reached through a symlink. Mount its directory and the directory "
                          "of the target: --ro %s --ro %s",
                          word ? word : "DIR", real_word ? real_word : "DIR");
}

/* Sets the cure for a file that exists on the host but not in the sandbox: names its directory. */
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
                /* A script must not make the user mount a whole home directory: the command may
                 * have written it. */
                if (home_lies_below(own) || home_lies_below(real))
                        return error_cure(reterr, r,
                                          "Its directory contains your home: move it to a "
                                          "directory of its own, and mount that: --ro DIR");
                return cure_linked(own, real, r, reterr);
        }
        return error_cure(reterr, r, "%s", errno == ENOENT ? otherwise : mount_it);
}

/* --- no such program --- */

/* Replaces the text of the symlink at path by that of the last symlink that it leads to. A virtual
 * environment has such a chain: python -> python3 -> /opt/python/bin/python3. */
static void failure_follow(const LaunchPlan *plan, const char *path, char link[PATH_MAX]) {
        enum { LINKS_MAX = 40 }; /* the kernel's own limit */
        _cleanup_free_ char *at = strdup(path);

        for (int i = 0; at && i < LINKS_MAX; i++) {
                _cleanup_close_ int fd = FD_NONE;
                char *next, *slash = strrchr(at, '/');
                ssize_t n;

                slash[slash == at] = '\0';
                next = path_join(at, link);
                free(at);
                at = next;
                fd = at ? prepare_open_inside(plan, at, O_NOFOLLOW) : FD_NONE;
                n = fd < 0 ? -1 : readlinkat(fd, "", link, PATH_MAX - 1);
                if (n <= 0)
                        return;
                link[n] = '\0';
        }
}

/* Sets the cure for a program whose path is in a mount of the plan. fd is the file at that path, or
 * a negative errno. */
static int cure_mounted(const LaunchPlan *plan, const char *path, int fd, int r, Error *reterr) {
        const PlanMount *mount = plan_mount_above(plan, path);
        char link[PATH_MAX], quoted[512];
        ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", link, sizeof(link) - 1);

        if (fd == -ENOENT || fd == -ENOTDIR) {
                _cleanup_free_ char *host = str_format("%s%s", mount->source,
                                                       path + strlen(mount->target));

                return error_cure(reterr, r, "%s does not exist: create it, or correct the path.",
                                  host ? str_quote(host, quoted, sizeof(quoted)) : "It");
        }
        if (n > 0) {
                link[n] = '\0';
                failure_follow(plan, path, link);
                return error_cure(
                        reterr, r,
                        "It is a symlink to %s, which is missing inside: mount that too, --ro PATH",
                        str_quote(link, quoted, sizeof(quoted)));
        }
        if (fd == -EXDEV)
                return error_cure(reterr, r,
                                  "A symlink on its path leads to a place that is missing inside: "
                                  "mount that too, --ro PATH");
        return error_cure(reterr, r, "%s", mount_it);
}

/* Words that a shell handles itself, without a program file. */
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

/* Images of docker that are often named before the command. */
static const char *const images[] = { "alpine", "archlinux",  "centos", "debian",
                                      "fedora", "rockylinux", "ubuntu" };

static bool is_image(const char *name) {
        const char *tag = strchr(name, ':');

        for (size_t i = 0; i < ELEMENTSOF(images); i++)
                if (streq(images[i], name))
                        return true;
        return tag && tag != name && tag[1] && !strpbrk(name, " \t/");
}

/* Sets the cure for a command line in one word. If a shell would do more than split it, the words
 * are shown only in quotes: behind a "|" or ";", they would run outside. */
static void cure_line(const LaunchPlan *plan, const char *line, Error *reterr) {
        const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            " _-+,./:=@%";
        _cleanup_free_ char *word = strlen(line) <= LINE_SHOWN_MAX ? str_word(line) : NULL;
        const char *verb = failure_run_verb(plan), *shown = word ? word : "'...'";

        if (word && line[strspn(line, plain)] == '\0')
                (void)error_cure(reterr, 0,
                                 "It is one word that contains a blank. To pass its words "
                                 "separately: %s -- %s\nFor a shell: %s -- bash -c %s",
                                 verb, line, verb, shown);
        else
                (void)error_cure(
                        reterr, 0,
                        "It is one word that contains a blank. For a shell: %s -- bash -c %s", verb,
                        shown);
}

/* Whether the command was written for a shell or for docker. If so, sets the cure. */
static bool cure_shell(const LaunchPlan *plan, Error *reterr) {
        const char *program = plan->argv.items[0];

        if (is_builtin(program))
                (void)error_cure(
                        reterr, 0,
                        "It is a word of the shell and not a program: %s -- bash -c '%s ...'",
                        failure_run_verb(plan), program);
        else if (is_image(program))
                (void)error_cure(reterr, 0,
                                 "If it is an image: holt has none, and runs the programs of the "
                                 "host. Write only the command: %s -- COMMAND",
                                 failure_run_verb(plan));
        else if (plan->argv.count == 1 && strpbrk(program, " \t"))
                cure_line(plan, program, reterr);
        else
                return false;
        return true;
}

/* Whether PATH contains a directory that does not depend on the working directory. */
static bool has_search_path(const LaunchPlan *plan) {
        for (size_t i = 0; i < plan->env.count; i++)
                if (str_starts(plan->env.items[i], "PATH="))
                        return strchr(plan->env.items[i], '/') != NULL;
        return true;
}

/* Whether the host has a program at path. path may come from the first line of a script that the
 * command has written. Such a line must not make the user mount any other directory, such as one
 * with keys. */
static bool host_has_program(const char *path) {
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* A shell takes FOO=1 before a command as a variable. */
static bool failure_is_variable(const char *word) {
        const size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                           "0123456789");

        return length > 0 && word[length] == '=' && !strchr("0123456789", word[0]);
}

/* Whether the shell has probably replaced a pattern by file names, as in --hide *.pem -- ls. If so,
 * a file's name comes before a "--". */
static bool failure_is_expanded(const LaunchPlan *plan) {
        for (size_t i = 1; i < plan->argv.count; i++)
                if (streq(plan->argv.items[i], "--"))
                        return access(plan->argv.items[0], F_OK) == 0;
        return false;
}

/* Finds the program in the caller's PATH. Owned by the caller, or NULL. */
static char *failure_search(const char *program) {
        const char *dir = getenv("PATH");

        for (size_t length; dir && *dir; dir += length + (dir[length] == ':')) {
                _cleanup_free_ char *path = NULL;

                length = strcspn(dir, ":");
                path = dir[0] == '/' ? str_format("%.*s/%s", (int)length, dir, program) : NULL;
                if (path && host_has_program(path))
                        return TAKE_PTR(path);
        }
        return NULL;
}

/* Sets the cure for a program in a directory of the caller's PATH. Returns false if there is none,
 * or if mounting it would show the whole home. */
static bool cure_by_search(const LaunchPlan *plan, const char *program, Error *reterr) {
        _cleanup_free_ char *path = plan->root.source || plan->rootfs.source
                                            ? NULL
                                            : failure_search(program);
        _cleanup_free_ char *directory = path ? strdup(path) : NULL, *word = NULL, *top = NULL;
        _cleanup_close_ int fd = FD_NONE;

        if (!directory)
                return false;
        *strrchr(directory, '/') = '\0';
        cut_to_directory(path);
        word = str_word(directory);
        top = str_word(path);
        if (!word || !top || tree_has(directory) || home_lies_below(path))
                return false;
        fd = prepare_open_inside(plan, directory, O_DIRECTORY);
        (void)error_cure(reterr, 0,
                         "Your PATH has it in %s, but the sandbox has a PATH of its own: %s%s%s"
                         "--env PATH=%s:/usr/local/bin:/usr/bin:/bin",
                         word, fd < 0 ? "--ro " : "", fd < 0 ? top : "", fd < 0 ? " " : "", word);
        return true;
}

/* Whether the word may be a second name behind --etc: the host has it in /etc. */
static bool failure_is_etc(const LaunchPlan *plan, const char *program) {
        _cleanup_free_ char *path = plan->etc.count > 0 ? str_format("/etc/%s", program) : NULL;
        const char *why;

        return path && tree_etc_check(program, &why) == 0 && access(path, F_OK) == 0;
}

/* Whether the program is one that runs another as root. */
static bool failure_is_for_root(const char *program) {
        return streq(program, "sudo") || streq(program, "doas") || streq(program, "pkexec");
}

/* Sets the cure for a word that begins with "-": perhaps an option of holt that came too late. */
static int cure_option(const LaunchPlan *plan, const char *program, int r, Error *reterr) {
        _cleanup_free_ char *name = strndup(program, strcspn(program, "="));
        _cleanup_free_ char *word = name ? str_word(name) : NULL;
        const bool known = name && policy_field_of_option(name);

        return error_cure(reterr, r, "%s write it before the \"--\": %s %s ... -- COMMAND",
                          known ? "It is an option of holt;" : "If it is an option of holt,",
                          known && plan->root.source ? "holt create NAME" : failure_run_verb(plan),
                          word ? word : "OPTION");
}

/* Sets the cure for a name without a slash. */
static int cure_name(const LaunchPlan *plan, const char *program, int r, Error *reterr) {
        _cleanup_free_ char *word = str_word(program);

        if (program[0] == '-')
                return cure_option(plan, program, r, reterr);
        if (failure_is_variable(program))
                return error_cure(reterr, r, "To set a variable: --env %s",
                                  word ? word : "NAME=VALUE");
        if (failure_is_for_root(program))
                return error_cure(reterr, r,
                                  "Leave it out: no command inside becomes root. If it installs "
                                  "packages of the system, install them on the host");
        if (failure_is_expanded(plan))
                return error_cure(reterr, r,
                                  "It is a file here, and a \"--\" follows: the shell has replaced "
                                  "a pattern by names. Quote the pattern: --hide '*.pem'");
        if (failure_is_etc(plan, program))
                return error_cure(reterr, r,
                                  "If it is a name in /etc: each --etc takes one name, so write "
                                  "--etc %s, and a \"--\" in front of the command",
                                  word ? word : "NAME");
        if (!has_search_path(plan))
                return error_cure(reterr, r,
                                  "PATH names no absolute directory, so programs cannot be found: "
                                  "--env PATH=/usr/bin:/bin");
        if (cure_by_search(plan, program, reterr))
                return r;
        return error_cure(reterr, r,
                          "Install it on the host below /usr, or mount its directory (--ro DIR) "
                          "and set PATH (--env PATH=...)");
}

static int explain_lookup(const LaunchPlan *plan, const char *program, const char *name,
                          Error *reterr) {
        _cleanup_free_ char *path = place_inside(plan, program), *wanted = NULL;
        _cleanup_close_ int fd = FD_NONE;
        int r = error_set(reterr, ERROR_NOT_FOUND, 0, "\"%s\": the sandbox has no such program",
                          name);

        if (!path)
                return error_oom(reterr);
        if (!program[0])
                return error_cure(reterr, r,
                                  "The first word of the command is empty. In a script, a variable "
                                  "may be unset: echo \"$VARIABLE\"");
        if (cure_shell(plan, reterr))
                return r;
        if (!strchr(program, '/'))
                return cure_name(plan, program, r, reterr);
        fd = prepare_open_inside(plan, path, O_NOFOLLOW);
        if (fd != -ENXIO)
                return cure_mounted(plan, path, fd, r, reterr);
        if (program[0] == '/')
                return cure_by_host(plan, path,
                                    "The host does not have it either: correct the path.", r,
                                    reterr);
        wanted = str_format(
                "The path starts at %s, the command's working directory; --cwd changes it.",
                plan->cwd);
        return wanted ? cure_by_host(plan, path, wanted, r, reterr) : error_oom(reterr);
}

/* --- no such interpreter --- */

/* Takes the interpreter out of a script's first line, as the kernel reads it (execve(2)): up to a
 * blank. A carriage return is not a blank. Returns false if the file is not a script. */
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

static int cure_returns(const char *program, int r, Error *reterr) {
        _cleanup_free_ char *word = str_word(program);

        return error_cure(reterr, r,
                          "Its lines end in CR LF, and the CR counts as part of the name. To "
                          "remove it: sed -i 's/\\r$//' %s",
                          word ? word : "FILE");
}

/* Returns the mount that shows the file inside under another path, or NULL. Scripts of a virtual
 * environment in a moved workspace have such an interpreter. */
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
                          "Inside it is %s%s. If files contain their own paths, as in a virtual "
                          "environment, use the same path inside: %s%s:%s",
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
                              "\"%s\" exists, but its interpreter does not (its #! line, or the "
                              "dynamic loader of its libc)",
                              name);
                return error_cure(reterr, r, "%s", mount_it);
        }
        r = error_set(reterr, ERROR_NOT_EXECUTABLE, errnum,
                      "\"%s\" exists, but its interpreter \"%s\" does not", name,
                      str_quote(interpreter, quoted, sizeof(quoted)));
        length = strlen(interpreter);
        if (interpreter[length - 1] == '\r')
                return cure_returns(program, r, reterr);
        if (!plan->rootfs.source && !host_has_program(interpreter))
                return error_cure(reterr, r,
                                  "The host does not have that program either: correct the first "
                                  "line of the script.");
        moved = mount_with(plan, interpreter);
        if (moved)
                return cure_moved(plan, moved, interpreter, r, reterr);
        return cure_by_host(plan, interpreter, mount_it, r, reterr);
}

/* --- the program may not be executed --- */

/* Returns the reason for a file in a mount of the plan, or NULL if it is unknown. */
static const char *why_not_executable(int fd) {
        struct statvfs fs;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return NULL;
        if (S_ISDIR(st.st_mode))
                return "It is a directory: pass a program in it.";
        if (!S_ISREG(st.st_mode))
                return "It is not a regular file.";
        if (!(st.st_mode & 0111))
                return "Its mode allows nobody to execute it: chmod +x, or pass it to its "
                       "interpreter, as in: sh FILE";
        if (fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_NOEXEC)
                return "Its file system is mounted noexec: copy it to another, or pass it to its "
                       "interpreter, as in: sh FILE";
        return NULL;
}

static int cure_access(const LaunchPlan *plan, const char *program, int r, Error *reterr) {
        _cleanup_free_ char *path = strchr(program, '/') ? place_inside(plan, program) : NULL;
        _cleanup_close_ int fd = path ? prepare_open_inside(plan, path, 0) : FD_NONE;
        const char *why = why_not_executable(fd);

        return error_cure(reterr, r, "%s",
                          why ? why
                              : "It, or its interpreter, must be a regular file that the sandbox's "
                                "user may execute, on a file system that is not mounted noexec.");
}

/* --- all file systems --- */

const char failure_too_long[] =
        "Its arguments and variables together exceed the kernel's limit, mostly 2 MiB (a quarter "
        "of the stack's limit), or one is longer than 128 KiB: pass it on stdin or in a file.";

/* Only in a session can other processes have used up the limit. */
static int cure_processes(const LaunchPlan *plan, int r, Error *reterr) {
        if (plan->pids_origin)
                return error_cure(reterr, r,
                                  "One process is not enough: holt's init is one, and the command "
                                  "another. This is the limit of %s.",
                                  plan->pids_origin);
        if (!plan->root.source || plan->pids == 0)
                return r;
        return error_cure(reterr, r,
                          "Probably, the session has as many processes as --pids allows: %" PRIu64
                          ". holt ps NAME lists the commands, also those that have left processes "
                          "in the background. holt kill NAME ID ends one with all its processes, "
                          "and holt stop NAME ends all.",
                          plan->pids);
}

static int explain_rest(const LaunchPlan *plan, const InitMessage *failure, const char *name,
                        int errnum, Error *reterr) {
        int r = error_set(reterr,
                          failure->detail == INIT_STEP_EXEC ? ERROR_NOT_EXECUTABLE : ERROR_SETUP,
                          errnum, "cannot execute \"%s\"", name);

        if (failure->detail == INIT_STEP_FORK && errnum == EAGAIN)
                return cure_processes(plan, r, reterr);
        if (failure->detail == INIT_STEP_EXEC && errnum == EACCES)
                return cure_access(plan, plan->argv.items[0], r, reterr);
        if (failure->detail == INIT_STEP_EXEC && errnum == ENOEXEC)
                return error_cure(reterr, r,
                                  "It is not a program for this machine. A script must start with "
                                  "#! and the path of its interpreter.");
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

        /* Verbs that run a command in a session accept no mounts. */
        if (launch->plan->root.source && strstr(reterr->cure, "--ro "))
                (void)snprintf(
                        reterr->cure + length, sizeof(reterr->cure) - length,
                        "\nThe mounts of a session are fixed when it is created: holt create "
                        "takes them.");
        return r;
}
