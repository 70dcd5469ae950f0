/* SPDX-License-Identifier: Apache-2.0 */
/* The table of bubblewrap's options, and the functions that take their values.
 *
 * bubblewrap's help and man page are the source of names, defaults and conditions
 * (bwrap(1), 0.11.1). */
#include "bwrap/options.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h> /* CLONE_NEW* */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bwrap/args.h"
#include "bwrap/caps.h"
#include "bwrap/parser.h"

/* --- values --- */

static int parser_fail_fd(const Parser *p, const char *text, Error *reterr) {
        return error_set(reterr, ERROR_USAGE, 0, "%s: \"%s\" is no file descriptor",
                         p->option->name, text);
}

/* Takes a descriptor of the caller, which is not for the command. */
static int parser_fd(const Parser *p, const char *text, int *ret, Error *reterr) {
        uint64_t number;
        int flags;

        if (str_to_uint(text, INT32_MAX, &number) < 0)
                return parser_fail_fd(p, text, reterr);
        flags = fcntl((int)number, F_GETFD);
        if (flags < 0 || fcntl((int)number, F_SETFD, flags | FD_CLOEXEC) < 0)
                return error_set(reterr, ERROR_USAGE, errno, "%s: cannot use fd %s",
                                 p->option->name, text);
        *ret = (int)number;
        return 0;
}

static int parser_octal(const Parser *p, const char *text, mode_t *ret, Error *reterr) {
        mode_t mode = 0;
        const char *c = text;

        for (; *c >= '0' && *c <= '7' && mode <= 07777; c++)
                mode = mode * 8 + (mode_t)(*c - '0');
        if (c == text || *c || mode > 07777)
                return error_set(reterr, ERROR_USAGE, 0, "%s needs an octal number up to 7777",
                                 p->option->name);
        *ret = mode;
        return 0;
}

static int parser_id(const Parser *p, const char *text, int64_t *ret, Error *reterr) {
        uint64_t id;

        if (str_to_uint(text, UINT32_MAX - 1, &id) < 0)
                return error_set(reterr, ERROR_USAGE, 0, "%s: \"%s\" is no id", p->option->name,
                                 text);
        *ret = (int64_t)id;
        return 0;
}

/* --- steps of the tree --- */

/* Takes --perms and --size, if they came before this option. */
static void parser_take_modifiers(Parser *p, AssemblyStep *step) {
        if (p->option->takes & TAKES_MODE && p->has_mode) {
                step->mode = p->mode;
                p->has_mode = false;
        }
        if (p->option->takes & TAKES_SIZE && p->size) {
                step->size = p->size;
                p->size = 0;
        }
}

static int parser_add(Parser *p, AssemblyStep step, Error *reterr) {
        Assembly *assembly = &p->words->assembly;
        AssemblyStep *steps;

        if (assembly->count == ASSEMBLY_STEPS_MAX)
                return error_set(reterr, ERROR_USAGE, 0, "too many options");
        steps = reallocarray(assembly->steps, assembly->count + 1, sizeof(*steps));
        if (!steps)
                return error_oom(reterr);
        step.kind = p->option->kind;
        step.flags = p->option->flags;
        step.option = p->option->name;
        parser_take_modifiers(p, &step);
        assembly->steps = steps;
        steps[assembly->count++] = step;
        return 0;
}

static int option_source(Parser *p, const char *const *values, Error *reterr) {
        return parser_add(p,
                          (AssemblyStep){ .source = values[0], .target = values[1], .fd = FD_NONE },
                          reterr);
}

static int option_target(Parser *p, const char *const *values, Error *reterr) {
        return parser_add(
                p, (AssemblyStep){ .target = values[0], .fd = FD_NONE, .mode = p->option->mode },
                reterr);
}

static int option_data(Parser *p, const char *const *values, Error *reterr) {
        AssemblyStep step = { .target = values[1], .mode = p->option->mode };
        int r = parser_fd(p, values[0], &step.fd, reterr);

        return r < 0 ? r : parser_add(p, step, reterr);
}

static int option_chmod(Parser *p, const char *const *values, Error *reterr) {
        AssemblyStep step = { .target = values[1], .fd = FD_NONE };
        int r = parser_octal(p, values[0], &step.mode, reterr);

        return r < 0 ? r : parser_add(p, step, reterr);
}

static int option_layer(Parser *p, const char *const *values, Error *reterr) {
        p->layers++;
        return parser_add(p, (AssemblyStep){ .source = values[0], .fd = FD_NONE }, reterr);
}

/* An overlay takes all layers before it. */
static int option_overlay(Parser *p, const char *const *values, Error *reterr) {
        const unsigned needed = p->option->flags & ASSEMBLY_READ_ONLY ? 2 : 1;
        const bool lasting = p->option->values == 3;
        AssemblyStep step = { .target = values[lasting ? 2 : 0],
                              .source = lasting ? values[0] : NULL,
                              .work = lasting ? values[1] : NULL,
                              .fd = FD_NONE };

        if (p->layers < needed)
                return error_set(reterr, ERROR_USAGE, 0,
                                 "%s needs at least %u --overlay-src before it", p->option->name,
                                 needed);
        p->layers = 0;
        return parser_add(p, step, reterr);
}

/* --- modifiers --- */

static int option_perms(Parser *p, const char *const *values, Error *reterr) {
        if (p->has_mode)
                return error_set(reterr, ERROR_USAGE, 0, "--perms was given twice for one option");
        p->has_mode = true;
        return parser_octal(p, values[0], &p->mode, reterr);
}

static int option_size(Parser *p, const char *const *values, Error *reterr) {
        if (p->size)
                return error_set(reterr, ERROR_USAGE, 0, "--size was given twice for one option");
        if (str_to_uint(values[0], INT64_MAX, &p->size) < 0 || p->size == 0)
                return error_set(reterr, ERROR_USAGE, 0, "--size needs a number of bytes above 0");
        return 0;
}

/* --- environment --- */

static int option_clearenv(Parser *p, const char *const *values, Error *reterr) {
        (void)values;
        (void)reterr;
        strlist_clear(&p->words->env);
        return 0;
}

/* Removes a variable. Order and number of the others stay. */
static void env_unset(StrList *env, const char *name) {
        const size_t length = strlen(name);
        size_t kept = 0;

        for (size_t i = 0; i < env->count; i++) {
                char *item = env->items[i];

                if (strncmp(item, name, length) == 0 && item[length] == '=')
                        free(item);
                else
                        env->items[kept++] = item;
        }
        env->count = kept;
        if (env->items)
                env->items[kept] = NULL;
}

static int option_setenv(Parser *p, const char *const *values, Error *reterr) {
        if (values[0][0] == '\0' || strchr(values[0], '='))
                return error_set(reterr, ERROR_USAGE, EINVAL,
                                 "--setenv: \"%s\" is no name of a variable", values[0]);
        env_unset(&p->words->env, values[0]);
        return strlist_take(&p->words->env, str_format("%s=%s", values[0], values[1])) < 0
                       ? error_oom(reterr)
                       : 0;
}

static int option_unsetenv(Parser *p, const char *const *values, Error *reterr) {
        (void)reterr;
        env_unset(&p->words->env, values[0]);
        return 0;
}

/* --- members of the assembly --- */

/* The member of the words to which the option belongs. */
static void *option_member(const Parser *p) {
        return (char *)p->words + p->option->offset;
}

static int option_flag(Parser *p, const char *const *values, Error *reterr) {
        (void)values;
        (void)reterr;
        *(bool *)option_member(p) = true;
        return 0;
}

static int option_text(Parser *p, const char *const *values, Error *reterr) {
        (void)reterr;
        *(const char **)option_member(p) = values[0];
        return 0;
}

static int option_number_of_fd(Parser *p, const char *const *values, Error *reterr) {
        return parser_fd(p, values[0], option_member(p), reterr);
}

static int option_id(Parser *p, const char *const *values, Error *reterr) {
        return parser_id(p, values[0], option_member(p), reterr);
}

static int option_namespace(Parser *p, const char *const *values, Error *reterr) {
        (void)values;
        (void)reterr;
        p->words->assembly.namespaces |= p->option->namespaces;
        return 0;
}

static int option_all(Parser *p, const char *const *values, Error *reterr) {
        (void)values;
        (void)reterr;
        p->words->user_try_asked = p->words->assembly.cgroup_try = true;
        p->words->assembly.namespaces |= CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS;
        return 0;
}

static int option_share_net(Parser *p, const char *const *values, Error *reterr) {
        (void)values;
        (void)reterr;
        p->words->assembly.namespaces &= ~(uint64_t)CLONE_NEWNET;
        return 0;
}

static int option_filter(Parser *p, const char *const *values, Error *reterr) {
        Assembly *assembly = &p->words->assembly;
        int fd, r = parser_fd(p, values[0], &fd, reterr);

        if (r < 0)
                return r;
        if (p->option->flags) /* the last --seccomp counts */
                assembly->filters_count = 0;
        p->seccomp |= p->option->flags ? 1 : 2;
        if (p->seccomp == 3)
                return error_set(reterr, ERROR_USAGE, 0,
                                 "--seccomp and --add-seccomp-fd exclude each other");
        if (assembly->filters_count == ASSEMBLY_FILTERS_MAX)
                return error_set(reterr, ERROR_USAGE, 0, "too many --add-seccomp-fd");
        assembly->filter_fds[assembly->filters_count++] = fd;
        return 0;
}

static int option_lock(Parser *p, const char *const *values, Error *reterr) {
        Assembly *assembly = &p->words->assembly;

        if (assembly->locks_count == ASSEMBLY_LOCKS_MAX)
                return error_set(reterr, ERROR_USAGE, 0, "too many --lock-file");
        assembly->locks[assembly->locks_count++] = values[0];
        return 0;
}

static int option_capability(Parser *p, const char *const *values, Error *reterr) {
        Assembly *assembly = &p->words->assembly;
        uint64_t bits;
        int r = bwrap_capability(values[0], &bits, reterr);

        if (r < 0)
                return r;
        assembly->capabilities_named = true;
        if (p->option->flags)
                assembly->capabilities |= bits;
        else
                assembly->capabilities &= ~bits;
        return 0;
}

static int option_args(Parser *p, const char *const *values, Error *reterr) {
        int fd, r = parser_fd(p, values[0], &fd, reterr);

        return r < 0 ? r : bwrap_read_args(p, fd, reterr);
}

static int option_label(Parser *p, const char *const *values, Error *reterr) {
        (void)values;
        return error_set(reterr, ERROR_USAGE, 0, "%s: holt sets no SELinux labels",
                         p->option->name);
}

/* --- the table --- */

#define WORDS(member) offsetof(BwrapWords, member)
#define IN_ASSEMBLY(member) offsetof(BwrapWords, assembly.member)
#define STEP(name, count, words, take, of, flag, help)                                             \
        { name, words, help, count, take, .kind = of, .flags = flag }

static const BwrapOption options[] = {
        { "--help", "", "print these options and exit", 0, option_flag, .offset = WORDS(help) },
        { "--version", "", "print the version of bubblewrap whose options these are", 0,
          option_flag, .offset = WORDS(version) },
        { "--args", "FD", "read more options from FD, each word followed by a zero byte", 1,
          option_args },
        { "--argv0", "VALUE", "tell COMMAND that its name is VALUE", 1, option_text,
          .offset = IN_ASSEMBLY(argv0) },
        { "--level-prefix", "", "begin each message with its syslog level, such as <3>", 0,
          option_flag, .offset = WORDS(level_prefix) },
        { "--unshare-all", "", "new namespaces of every kind; user and cgroup only if possible", 0,
          option_all },
        { "--share-net", "", "after --unshare-all: keep the caller's network", 0,
          option_share_net },
        { "--unshare-user", "", "a new user namespace, which an ordinary user always gets", 0,
          option_flag, .offset = WORDS(user_asked) },
        { "--unshare-user-try", "", "the same, unless the host refuses it", 0, option_flag,
          .offset = WORDS(user_try_asked) },
        { "--unshare-ipc", "", "a new ipc namespace", 0, option_namespace,
          .namespaces = CLONE_NEWIPC },
        { "--unshare-pid", "", "a new pid namespace", 0, option_namespace,
          .namespaces = CLONE_NEWPID },
        { "--unshare-net", "", "a new network namespace, with its loopback up", 0, option_namespace,
          .namespaces = CLONE_NEWNET },
        { "--unshare-uts", "", "a new uts namespace", 0, option_namespace,
          .namespaces = CLONE_NEWUTS },
        { "--unshare-cgroup", "", "a new cgroup namespace", 0, option_namespace,
          .namespaces = CLONE_NEWCGROUP },
        { "--unshare-cgroup-try", "", "the same, unless the host refuses it", 0, option_flag,
          .offset = IN_ASSEMBLY(cgroup_try) },
        { "--userns", "FD", "enter the user namespace FD instead of making one", 1,
          option_number_of_fd, .offset = IN_ASSEMBLY(userns_fd) },
        { "--userns2", "FD", "after --userns: enter FD when the sandbox is complete", 1,
          option_number_of_fd, .offset = IN_ASSEMBLY(userns2_fd) },
        { "--disable-userns", "",
          "let no process inside make user namespaces (with --unshare-user)", 0, option_flag,
          .offset = IN_ASSEMBLY(disable_userns) },
        { "--assert-userns-disabled", "", "fail if a process inside could make user namespaces", 0,
          option_flag, .offset = IN_ASSEMBLY(assert_userns_disabled) },
        { "--pidns", "FD", "enter the pid namespace FD", 1, option_number_of_fd,
          .offset = IN_ASSEMBLY(pidns_fd) },
        { "--uid", "UID", "the command's uid (with a new user namespace, or --userns)", 1,
          option_id, .offset = IN_ASSEMBLY(uid) },
        { "--gid", "GID", "the command's gid (with a new user namespace, or --userns)", 1,
          option_id, .offset = IN_ASSEMBLY(gid) },
        { "--hostname", "NAME", "the host name inside (with --unshare-uts)", 1, option_text,
          .offset = IN_ASSEMBLY(hostname) },
        { "--chdir", "DIR", "start COMMAND in DIR", 1, option_text, .offset = IN_ASSEMBLY(cwd) },
        { "--clearenv", "", "remove every variable from the environment, except PWD", 0,
          option_clearenv },
        { "--setenv", "VAR VALUE", "set a variable", 2, option_setenv },
        { "--unsetenv", "VAR", "remove a variable", 1, option_unsetenv },
        { "--lock-file", "DEST", "hold a read lock on the file DEST while the sandbox exists", 1,
          option_lock },
        { "--sync-fd", "FD", "hold FD open while the sandbox exists", 1, option_number_of_fd,
          .offset = IN_ASSEMBLY(sync_fd) },
        STEP("--bind", 2, "SRC DEST", option_source, ASSEMBLY_BIND, 0,
             "show SRC of the host at DEST, writable"),
        STEP("--bind-try", 2, "SRC DEST", option_source, ASSEMBLY_BIND, ASSEMBLY_OPTIONAL,
             "the same, unless SRC is missing"),
        STEP("--dev-bind", 2, "SRC DEST", option_source, ASSEMBLY_BIND, ASSEMBLY_DEVICES,
             "like --bind, and device nodes work"),
        STEP("--dev-bind-try", 2, "SRC DEST", option_source, ASSEMBLY_BIND,
             ASSEMBLY_DEVICES | ASSEMBLY_OPTIONAL, "the same, unless SRC is missing"),
        STEP("--ro-bind", 2, "SRC DEST", option_source, ASSEMBLY_BIND, ASSEMBLY_READ_ONLY,
             "show SRC of the host at DEST, read-only"),
        STEP("--ro-bind-try", 2, "SRC DEST", option_source, ASSEMBLY_BIND,
             ASSEMBLY_READ_ONLY | ASSEMBLY_OPTIONAL, "the same, unless SRC is missing"),
        STEP("--bind-fd", 2, "FD DEST", option_data, ASSEMBLY_BIND, 0,
             "like --bind, for the open file or directory FD"),
        STEP("--ro-bind-fd", 2, "FD DEST", option_data, ASSEMBLY_BIND, ASSEMBLY_READ_ONLY,
             "like --ro-bind, for the open file or directory FD"),
        STEP("--remount-ro", 1, "DEST", option_target, ASSEMBLY_REMOUNT, 0,
             "make the mount at DEST read-only, but not those below it"),
        STEP("--overlay-src", 1, "SRC", option_layer, ASSEMBLY_LAYER, 0,
             "a read-only layer of the next overlay; the first is the lowest"),
        STEP("--overlay", 3, "RWSRC WORKDIR DEST", option_overlay, ASSEMBLY_OVERLAY, 0,
             "an overlay at DEST that writes to RWSRC; WORKDIR is on the same disk"),
        STEP("--tmp-overlay", 1, "DEST", option_overlay, ASSEMBLY_OVERLAY, ASSEMBLY_PRIVATE,
             "an overlay at DEST that writes to memory"),
        STEP("--ro-overlay", 1, "DEST", option_overlay, ASSEMBLY_OVERLAY, ASSEMBLY_READ_ONLY,
             "a read-only overlay at DEST"),
        { "--exec-label", "LABEL", "refused: holt sets no SELinux labels", 1, option_label },
        { "--file-label", "LABEL", "refused: holt sets no SELinux labels", 1, option_label },
        STEP("--proc", 1, "DEST", option_target, ASSEMBLY_PROC, 0, "a procfs at DEST"),
        STEP("--dev", 1, "DEST", option_target, ASSEMBLY_DEV, 0, "a small /dev at DEST"),
        { "--tmpfs", "DEST", "an empty tmpfs at DEST", 1, option_target, .kind = ASSEMBLY_TMPFS,
          .mode = 0755, .takes = TAKES_MODE | TAKES_SIZE },
        STEP("--mqueue", 1, "DEST", option_target, ASSEMBLY_MQUEUE, 0,
             "a file system of message queues at DEST"),
        { "--dir", "DEST", "a directory at DEST", 1, option_target, .kind = ASSEMBLY_DIRECTORY,
          .mode = 0755, .takes = TAKES_MODE },
        { "--file", "FD DEST", "a file at DEST with what FD contains", 2, option_data,
          .kind = ASSEMBLY_FILE, .mode = 0666, .takes = TAKES_MODE },
        { "--bind-data", "FD DEST", "the same, as a mount", 2, option_data, .kind = ASSEMBLY_DATA,
          .mode = 0600, .takes = TAKES_MODE },
        { "--ro-bind-data", "FD DEST", "the same, as a read-only mount", 2, option_data,
          .kind = ASSEMBLY_DATA, .flags = ASSEMBLY_READ_ONLY, .mode = 0600, .takes = TAKES_MODE },
        STEP("--symlink", 2, "SRC DEST", option_source, ASSEMBLY_SYMLINK, 0,
             "a symlink at DEST that contains SRC"),
        { "--seccomp", "FD", "load the seccomp program of FD before COMMAND; the last one counts",
          1, option_filter, .flags = 1 },
        { "--add-seccomp-fd", "FD", "load one more seccomp program", 1, option_filter },
        { "--block-fd", "FD", "wait for a byte, or the end, of FD before COMMAND starts", 1,
          option_number_of_fd, .offset = IN_ASSEMBLY(block_fd) },
        { "--userns-block-fd", "FD",
          "wait in the same way before the ids are mapped (with --info-fd)", 1, option_number_of_fd,
          .offset = IN_ASSEMBLY(userns_block_fd) },
        { "--info-fd", "FD", "write the process and its namespaces to FD, as JSON", 1,
          option_number_of_fd, .offset = IN_ASSEMBLY(info_fd) },
        { "--json-status-fd", "FD",
          "write the same to FD, and the exit code at the end, a line each", 1, option_number_of_fd,
          .offset = IN_ASSEMBLY(status_fd) },
        { "--new-session", "", "start COMMAND in a terminal session of its own", 0, option_flag,
          .offset = IN_ASSEMBLY(new_session) },
        { "--die-with-parent", "", "kill the sandbox when the caller dies", 0, option_flag,
          .offset = IN_ASSEMBLY(die_with_parent) },
        { "--as-pid-1", "", "make COMMAND itself PID 1 (with --unshare-pid)", 0, option_flag,
          .offset = IN_ASSEMBLY(as_pid_1) },
        { "--cap-add", "CAP", "let COMMAND keep the capability CAP, or ALL", 1, option_capability,
          .flags = 1 },
        { "--cap-drop", "CAP", "take the capability CAP, or ALL, from COMMAND", 1,
          option_capability },
        { "--perms", "OCTAL",
          "permissions for the next option that makes a file, directory or tmpfs", 1, option_perms,
          .takes = TAKES_MODE | TAKES_SIZE },
        { "--size", "BYTES", "size for the next --tmpfs", 1, option_size,
          .takes = TAKES_MODE | TAKES_SIZE },
        STEP("--chmod", 2, "OCTAL PATH", option_chmod, ASSEMBLY_CHMOD, 0,
             "set the permissions of PATH, which exists"),
};

void bwrap_help(FILE *out) {
        (void)fputs("usage: bwrap [OPTIONS] [--] COMMAND [ARG...]\n\n", out);
        for (size_t i = 0; i < ELEMENTSOF(options); i++) {
                char name[64];

                (void)snprintf(name, sizeof(name), "%s%s%s", options[i].name,
                               options[i].words[0] ? " " : "", options[i].words);
                (void)fprintf(out, "  %-28s %s\n", name, options[i].help);
        }
}

const BwrapOption *bwrap_option(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(options); i++)
                if (streq(options[i].name, name))
                        return &options[i];
        return NULL;
}
