/* SPDX-License-Identifier: Apache-2.0 */
#include "session/policy-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/home.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/private.h"
#include "base/sys.h"
#include "policy/load.h"

/* O_NONBLOCK keeps a FIFO from blocking holt before its type is known. It does not affect regular
 * files. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

/* Each entry has the path of the caller's file ("-" for stdin), or "" for the project's file. */
static PlanInputs files_read;

static int fail_file(const char *name, int errnum, const char *what, Error *reterr) {
        char quoted[400];

        return error_set(reterr, ERROR_POLICY, errnum, "%s policy file %s", what,
                         str_quote(name, quoted, sizeof(quoted)));
}

/* by: the file whose "extends" names this one, or NULL. */
static int fail_open(const char *name, const char *by, int errnum, bool project, Error *reterr) {
        _cleanup_free_ char *cwd = by ? getcwd(NULL, 0) : NULL;
        _cleanup_free_ char *path = cwd ? path_join(cwd, name) : NULL;
        char quoted[400], quoted_by[400], names[POLICY_PRESET_NAMES_MAX];
        int r;

        if (path)
                r = error_set(reterr, ERROR_POLICY, errnum,
                              "%s: $.extends: cannot open policy file %s",
                              str_quote(by, quoted_by, sizeof(quoted_by)),
                              str_quote(path, quoted, sizeof(quoted)));
        else
                r = fail_file(name, errnum, "cannot open", reterr);

        if (errnum == ELOOP && project)
                return error_cure(reterr, r,
                                  "It is a symlink, and a program inside may have made it. A "
                                  "project's own policy must be a regular file in the workspace.");
        if (errnum == ENOENT && by)
                return error_cure(reterr, r,
                                  "It does not exist: correct the path, which is relative to the "
                                  "file that contains it.");
        if (errnum == ENOENT)
                return error_cure(
                        reterr, r,
                        "It does not exist: correct the path. The presets are %s; their names "
                        "contain neither \"/\" nor \".json\".",
                        policy_preset_names(names));
        if (errnum == EACCES)
                return error_cure(reterr, r,
                                  "holt opens it with your rights, and you may not read it.");
        return r;
}

static int fail_size(const char *name, Error *reterr) {
        int r = fail_file(name, EFBIG, "cannot read", reterr);

        return error_cure(reterr, r, "The limit for a policy file is %d KiB.", JSON_SIZE_MAX >> 10);
}

/* Reads to the end, whatever size the file claims. One byte beyond the limit shows that a file
 * exceeds it. */
static int policy_file_read_all(int fd, const char *name, char **ret, size_t *ret_length,
                                Error *reterr) {
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0, size = 0;

        for (;;) {
                ssize_t n;

                if (length + 1 >= size) {
                        char *more = realloc(bytes, size ? size * 2 : 8192);

                        if (!more)
                                return error_oom(reterr);
                        bytes = more;
                        size = size ? size * 2 : 8192;
                }
                n = read(fd, bytes + length, size - length - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return fail_file(name, errno, "cannot read", reterr);
                if (n == 0)
                        break;
                length += (size_t)n;
                if (length > JSON_SIZE_MAX)
                        return fail_size(name, reterr);
        }
        bytes[length] = '\0';
        *ret = TAKE_PTR(bytes);
        *ret_length = length;
        return 0;
}

static int read_regular(int fd, const char *name, char **ret, size_t *ret_length, Error *reterr) {
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return fail_file(name, errno, "cannot examine", reterr);
        if (!S_ISREG(st.st_mode)) {
                r = fail_file(name, 0, "cannot use", reterr);
                return error_cure(reterr, r, "It is %s, not a regular file%s.",
                                  S_ISDIR(st.st_mode)    ? "a directory"
                                  : S_ISFIFO(st.st_mode) ? "a pipe"
                                                         : "something else",
                                  S_ISFIFO(st.st_mode) ? "; \"-\" reads stdin" : "");
        }
        return policy_file_read_all(fd, name, ret, ret_length, reterr);
}

/* *ret_fd: the file, which the caller closes; FD_NONE if stdin is not a regular file. */
static int policy_file_read_open(const char *name, const char *by, bool project, int *ret_fd,
                                 char **ret, size_t *ret_length, Error *reterr) {
        struct stat st;

        if (streq(name, "-")) {
                *ret_fd = fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode)
                                  ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                  : FD_NONE;
                return policy_file_read_all(STDIN_FILENO, "(stdin)", ret, ret_length, reterr);
        }
        *ret_fd = open(name, OPEN_FLAGS | (project ? O_NOFOLLOW : 0));
        if (*ret_fd < 0)
                return fail_open(name, by, errno, project, reterr);
        return read_regular(*ret_fd, name, ret, ret_length, reterr);
}

int policy_files_read(const char *name, bool project, char **ret, size_t *ret_length,
                      Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;

        return policy_file_read_open(name, NULL, project, &fd, ret, ret_length, reterr);
}

static bool policy_file_is_same_file(const struct stat *st, const struct stat *other) {
        return st->st_dev == other->st_dev && st->st_ino == other->st_ino;
}

/* --- a file that extends another --- */

/* A file, and the file that extends it. All of them stay open, so that each inode number is
 * unique. */
typedef struct Extended {
        const char *name;
        struct stat st;
        const struct Extended *by;
} Extended;

/* The path of "extends" is relative to the file that contains it. Owned by the caller. */
static char *extended_path(const char *name, const char *value) {
        const char *slash = strrchr(name, '/');

        while (str_starts(value, "./") && strchr(value + 2, '/'))
                value += 2;
        if (slash && str_starts(value, "./"))
                value += 2;
        if (value[0] == '/' || !slash)
                return str_format("%s%s", strchr(value, '/') ? "" : "./", value);
        return str_format("%.*s/%s", (int)(slash - name), name, value);
}

/* Returns "A extends B extends A"; first: the same file as last. Owned by the caller, or NULL. */
static char *extended_circle(const Extended *last, const Extended *first) {
        char *text = NULL;

        for (const Extended *file = last; file; file = file == first ? NULL : file->by) {
                char quoted[160], *longer;

                (void)str_quote(file->name, quoted, sizeof(quoted));
                longer = str_format("%s%s%s", quoted, text ? " extends " : "", text ? text : "");
                free(text);
                text = longer;
        }
        return text;
}

static int extended_check(const Extended *file, const char *value, Error *reterr) {
        enum { FILES_MAX = 8 };
        _cleanup_free_ char *circle = NULL;
        char name[160], quoted[160];
        unsigned files = 0;
        int r;

        (void)str_quote(file->name, name, sizeof(name));
        (void)str_quote(value, quoted, sizeof(quoted));
        for (const Extended *by = file->by; by; by = by->by, files++)
                if (policy_file_is_same_file(&by->st, &file->st)) {
                        circle = extended_circle(file, by);
                        return error_set(reterr, ERROR_POLICY, 0,
                                         "%s: $.extends: the files extend each other in a circle: "
                                         "%s",
                                         name, circle ? circle : name);
                }
        if (files >= FILES_MAX)
                return error_set(reterr, ERROR_POLICY, 0,
                                 "%s: $.extends: a chain of more than %d files", name, FILES_MAX);
        if (!streq(value, "-") && !path_is_tilde(value))
                return 0;
        r = error_set(reterr, ERROR_POLICY, 0, "%s: $.extends: \"%s\" is not the path of a file",
                      name, quoted);
        return error_cure(reterr, r, "Write the path in full, or relative to this file.");
}

static int policy_file_load(Policy *policy, const char *name, const Extended *by, Error *reterr);

/* --- the caller's settings --- */

static const char *config_path, *config_used;

void policy_files_start_from(const char *path) {
        config_path = path;
        config_used = NULL;
}

const char *policy_files_config(void) {
        return config_used;
}

/* Whether the settings are in ~/.config, which every sandbox hides. */
static bool policy_files_are_at_home(void) {
        _cleanup_free_ char *own = home_path()
                                           ? str_format("%s/.config/holt/config.json", home_path())
                                           : NULL;

        return own && streq(own, config_used);
}

int policy_files_check_config(const LaunchPlan *plan, Error *reterr) {
        _cleanup_(strlist_clear) StrList writable = { 0 };
        char real[PATH_MAX], directory[PATH_MAX], quoted[400], quoted_directory[400];
        _cleanup_free_ char *parent = NULL;
        int r;

        if (!config_used || getenv("HOLT_CONFIG") || policy_files_are_at_home())
                return 0;
        /* The file itself may be a link to one in the workspace, which is pinned there. */
        parent = strndup(config_used, (size_t)(strrchr(config_used, '/') - config_used));
        if (!parent || plan_writable(plan, &writable) < 0)
                return error_oom(reterr);
        if (!realpath(parent, directory))
                return 0;
        for (size_t i = 0; i < writable.count; i++) {
                if (!realpath(writable.items[i], real) || !path_below(directory, real))
                        continue;
                r = error_set(reterr, ERROR_POLICY, EPERM,
                              "your settings, %s, are in %s, which commands can write: an earlier "
                              "command may have made them",
                              str_quote(config_used, quoted, sizeof(quoted)),
                              str_quote(real, quoted_directory, sizeof(quoted_directory)));
                return error_cure(reterr, r,
                                  "Check them, and move them to ~/.config/holt/config.json. To "
                                  "ignore them: --no-config, or unset XDG_CONFIG_HOME");
        }
        return 0;
}

/* Settings apply without being named in the command, so nobody else may have written them. */
static int policy_files_start(Policy *policy, Error *reterr) {
        int r;

        if (!config_path)
                return policy_preset(policy, POLICY_PRESET_DEFAULT, "holt", reterr);
        config_used = config_path;
        config_path = NULL;
        if (config_used[0] != '/') {
                r = error_set(reterr, ERROR_USAGE, 0, "HOLT_CONFIG: not an absolute path");
                return error_cure(reterr, r, "Write the path in full, or \"none\".");
        }
        r = private_check_file(config_used, reterr);
        if (r == 0)
                r = policy_file_load(policy, config_used, NULL, reterr);
        policy->settings_notes = policy->notes_count;
        return r;
}

static bool policy_file_starts(const Policy *policy, const JsonValue *root) {
        return config_path && !policy->preset && !json_member(root, "extends");
}

/* --- one file --- */

static int policy_file_load_root(Policy *policy, const JsonValue *root, const char *name,
                                 const Extended *file, Error *reterr) {
        const char *value = policy_extended_file(root);
        _cleanup_free_ char *path = NULL;
        int r;

        if (!value) {
                r = policy_file_starts(policy, root) ? policy_files_start(policy, reterr) : 0;
                return r < 0 ? r : policy_load_value(policy, root, name, ORIGIN_CALLER, reterr);
        }
        r = extended_check(file, value, reterr);
        if (r < 0)
                return r;
        path = extended_path(file->name, value);
        if (!path)
                return error_oom(reterr);
        r = policy_file_load(policy, path, file, reterr);
        return r < 0 ? r : policy_load_over(policy, root, name, reterr);
}

/* Returns whether no command can reach the file, because its directory is hidden from every sandbox
 * (reach/own-store.c). A link may lead elsewhere. */
static bool policy_file_is_hidden(const char *name, const struct stat *st) {
        struct stat link;

        return name == config_used && !getenv("HOLT_CONFIG") && st->st_nlink == 1 &&
               lstat(name, &link) == 0 && S_ISREG(link.st_mode);
}

/* by: the file that extends this one, or NULL. */
static int policy_file_load(Policy *policy, const char *name, const Extended *by, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const char *shown = streq(name, "-") ? "(stdin)" : name;
        _cleanup_free_ char *bytes = NULL;
        _cleanup_close_ int fd = FD_NONE;
        Extended file = { .name = name, .by = by };
        size_t length = 0;
        int r = policy_file_read_open(name, by ? by->name : NULL, false, &fd, &bytes, &length,
                                      reterr);

        if (r < 0)
                return r;
        if (fd >= 0 && fstat(fd, &file.st) < 0)
                return fail_file(name, errno, "cannot examine", reterr);
        if (fd >= 0 && !policy_file_is_hidden(name, &file.st) &&
            plan_inputs_add(&files_read, name, TAKE_FD(fd), bytes, length) < 0)
                return error_oom(reterr);
        r = json_parse(bytes, length, shown, &document, reterr);
        return r < 0 ? r : policy_file_load_root(policy, json_root(document), shown, &file, reterr);
}

int policy_files_load(Policy *policy, const char *name, Error *reterr) {
        return policy_file_load(policy, name, NULL, reterr);
}

static int policy_files_apply_one(Policy *policy, const char *name, const char *where,
                                  Error *reterr) {
        return policy_name_is_file(name) ? policy_files_load(policy, name, reterr)
                                         : policy_preset(policy, name, where, reterr);
}

int policy_files_apply(Policy *policy, const char *const *names, size_t count, const char *where,
                       Error *reterr) {
        int r = count == 0 ? policy_files_start(policy, reterr) : 0;

        for (size_t i = 0; r == 0 && i < count; i++)
                r = policy_files_apply_one(policy, names[i], where, reterr);
        return r;
}

/* --- files read so far --- */

/* Gives the command /dev/null for stdin if a policy file is stdin. Otherwise the command could
 * write the file through stdin, whatever is mounted over its path. */
static int take_stdin(int *ret_fd) {
        _cleanup_close_ int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        *ret_fd = null_fd < 0 ? -1 : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        return *ret_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 ? -errno : 0;
}

static int add_input(const char *path, const struct PlanInput *file, PlanInputs *ret) {
        int other = fcntl(file->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

        return other < 0 ? -errno : plan_inputs_add(ret, path, other, file->text, file->size);
}

/* Hands over the file, and stdin if it is the same file. stdin goes by its fd, because
 * /dev/stdin and similar paths lead elsewhere from now on. */
static int hand_over(const char *path, const struct PlanInput *file, PlanInputs *ret) {
        struct stat st, stdin_st, now;
        char self[32];
        int stdin_fd, r;

        if (fstat(file->fd, &st) < 0)
                return -errno;
        if (fstat(STDIN_FILENO, &stdin_st) == 0 && policy_file_is_same_file(&st, &stdin_st)) {
                r = take_stdin(&stdin_fd);
                if (r < 0)
                        return r;
                (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", stdin_fd);
                r = plan_inputs_add(ret, self, stdin_fd, file->text, file->size);
                if (r < 0 || stat(path, &now) < 0 || !policy_file_is_same_file(&now, &st))
                        return r;
        }
        return add_input(path, file, ret);
}

/* Refuses an output that goes to a policy file: the command could print the policy of the next
 * run. */
static int check_outputs(const char *path, int fd, Error *reterr) {
        struct stat st, output_st;
        char quoted[400];

        if (fstat(fd, &st) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot record the policy files");
        for (int number = STDOUT_FILENO; number <= STDERR_FILENO; number++) {
                const char *name = number == STDOUT_FILENO ? "stdout" : "stderr";
                const int flags = fcntl(number, F_GETFL);
                int r;

                if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat(number, &output_st) < 0 ||
                    !policy_file_is_same_file(&st, &output_st))
                        continue;
                r = error_set(reterr, ERROR_POLICY, 0,
                              "%s goes to the policy file %s, which the command must not write",
                              name, str_quote(path, quoted, sizeof(quoted)));
                return error_cure(reterr, r, "Redirect %s to another file.", name);
        }
        return 0;
}

static int note_file(const char *path, const struct PlanInput *file, PlanInputs *ret,
                     Error *reterr) {
        int r = check_outputs(path, file->fd, reterr);

        if (r < 0)
                return r;
        r = hand_over(path, file, ret);
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot record the policy files") : 0;
}

int policy_files_inputs(const char *workspace, PlanInputs *ret, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < files_read.count; i++) {
                const struct PlanInput *file = &files_read.items[i];
                _cleanup_free_ char *path = file->path[0] ? strdup(file->path)
                                                          : str_format("%s/" POLICY_PROJECT_FILE,
                                                                       workspace ? workspace : ".");

                r = path ? note_file(path, file, ret, reterr) : error_oom(reterr);
        }
        plan_inputs_clear(&files_read);
        return r;
}

/* --- the project's own file --- */

static int read_project(int workspace_fd, const char *name, char **ret, size_t *ret_length,
                        Error *reterr) {
        _cleanup_close_ int fd = sys_open_beneath(workspace_fd, POLICY_PROJECT_FILE, OPEN_FLAGS);
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : fail_open(name, NULL, errno, true, reterr);
        r = read_regular(fd, name, ret, ret_length, reterr);
        if (r == 0 && plan_inputs_add(&files_read, "", TAKE_FD(fd), *ret, *ret_length) < 0)
                r = error_oom(reterr);
        return r < 0 ? r : 1;
}

static int load_project(Policy *policy, int workspace_fd, const char *name, Error *reterr) {
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;
        int r = read_project(workspace_fd, name, &bytes, &length, reterr);

        return r <= 0 ? r : policy_load(policy, bytes, length, name, ORIGIN_PROJECT, reterr);
}

int policy_files_project(Policy *policy, int workspace_fd, Error *reterr) {
        _cleanup_free_ char *name = NULL;
        char workspace[PATH_MAX] = "";

        /* The message has the full path, because holt may have been started in another
         * directory. */
        if (path_of_fd(workspace_fd, workspace) == 0)
                name = path_join(workspace, POLICY_PROJECT_FILE);
        if (!name)
                name = strdup(POLICY_PROJECT_FILE);
        return name ? load_project(policy, workspace_fd, name, reterr) : error_oom(reterr);
}

void policy_files_forget(void) {
        plan_inputs_clear(&files_read);
}
