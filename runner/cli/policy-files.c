/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/paths.h"
#include "base/sys.h"
#include "policy/load.h"
#include "sandbox/prepare.h"

/* O_NONBLOCK: a FIFO must not hold holt up before it is seen to be one. It means nothing for a
 * regular file. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

static int fail_file(const char *name, int errnum, const char *what, Error *reterr) {
        char quoted[400];

        return error_set(reterr, ERROR_POLICY, errnum, "%s policy file %s", what,
                         str_quote(name, quoted, sizeof(quoted)));
}

static int fail_open(const char *name, int errnum, bool project, Error *reterr) {
        int r = fail_file(name, errnum, "cannot open", reterr);

        if (errnum == ELOOP && project)
                return error_cure(reterr, r,
                                  "It is a link, which a program inside may have made; a project's "
                                  "own file must be a file of the workspace itself.");
        if (errnum == ENOENT)
                return error_cure(reterr, r,
                                  "It is not there: correct the path. A preset has neither a \"/\" "
                                  "nor \".json\" in its name; holt policy list names them.");
        if (errnum == EACCES)
                return error_cure(reterr, r, "It is opened with your rights: you may not read it.");
        return r;
}

static int fail_size(const char *name, Error *reterr) {
        int r = fail_file(name, EFBIG, "cannot read", reterr);

        return error_cure(reterr, r, "A policy file has at most %d KiB.", JSON_SIZE_MAX >> 10);
}

/* Reads to the end, whatever a file says that its size is: one byte past the cap tells it from a
 * file of just that size. */
static int read_all(int fd, const char *name, char **ret, size_t *ret_length, Error *reterr) {
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
                return fail_file(name, errno, "cannot look at", reterr);
        if (!S_ISREG(st.st_mode)) {
                r = fail_file(name, 0, "cannot use", reterr);
                return error_cure(reterr, r, "It is %s, not a regular file%s.",
                                  S_ISDIR(st.st_mode)    ? "a directory"
                                  : S_ISFIFO(st.st_mode) ? "a pipe"
                                                         : "something else",
                                  S_ISFIFO(st.st_mode) ? "; \"-\" reads from stdin" : "");
        }
        return read_all(fd, name, ret, ret_length, reterr);
}

int policy_files_read(const char *name, bool project, char **ret, size_t *ret_length,
                      Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;

        if (streq(name, "-"))
                return read_all(STDIN_FILENO, "(stdin)", ret, ret_length, reterr);
        fd = open(name, OPEN_FLAGS | (project ? O_NOFOLLOW : 0));
        if (fd < 0)
                return fail_open(name, errno, project, reterr);
        return read_regular(fd, name, ret, ret_length, reterr);
}

static int apply_one(Policy *policy, const char *name, Error *reterr) {
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;
        int r;

        if (!options_policy_is_file(name))
                return policy_preset(policy, name, "--policy", reterr);
        r = policy_files_read(name, false, &bytes, &length, reterr);
        if (r < 0)
                return r;
        return policy_load(policy, bytes, length, streq(name, "-") ? "(stdin)" : name,
                           ORIGIN_CALLER, reterr);
}

int policy_files_apply(Policy *policy, const OptionResult *result, Error *reterr) {
        int r = 0;

        if (result->policies_count == 0)
                r = policy_preset(policy, POLICY_PRESET_DEFAULT, "holt", reterr);
        for (size_t i = 0; r == 0 && i < result->policies_count; i++)
                r = apply_one(policy, result->policies[i], reterr);
        return r < 0 ? r : options_apply(result, policy, reterr);
}

static bool is_stdin(const char *name) {
        struct stat st, stdin_st;

        return streq(name, "-") || (stat(name, &st) == 0 && fstat(STDIN_FILENO, &stdin_st) == 0 &&
                                    st.st_dev == stdin_st.st_dev && st.st_ino == stdin_st.st_ino);
}

/* The command gets /dev/null in place of a policy file that is stdin: by the open file it could
 * write it, whatever is mounted over its path. */
static int add_stdin(StrList *ret) {
        _cleanup_close_ int null_fd = FD_NONE;
        char path[32];
        struct stat st;
        int fd;

        if (fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        fd = null_fd < 0 ? -1 : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (fd < 0 || dup2(null_fd, STDIN_FILENO) < 0)
                return -errno;
        /* It stays open: the path is looked up later. */
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return strlist_add(ret, path);
}

int policy_files_inputs(const OptionResult *result, StrList *ret, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < result->policies_count; i++) {
                const char *name = result->policies[i];

                if (!options_policy_is_file(name))
                        continue;
                if (is_stdin(name))
                        r = add_stdin(ret);
                if (r == 0 && !streq(name, "-"))
                        r = strlist_add(ret, name);
        }
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot note the policy files") : 0;
}

static int read_project(int workspace_fd, const char *name, char **ret, size_t *ret_length,
                        Error *reterr) {
        _cleanup_close_ int fd = sys_open_beneath(workspace_fd, POLICY_PROJECT_FILE, OPEN_FLAGS);
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : fail_open(name, errno, true, reterr);
        r = read_regular(fd, name, ret, ret_length, reterr);
        return r < 0 ? r : 1;
}

int policy_files_project(Policy *policy, int workspace_fd, Error *reterr) {
        _cleanup_free_ char *bytes = NULL, *name = NULL;
        char workspace[PATH_MAX] = "";
        size_t length = 0;
        int r;

        /* holt may have been started somewhere else. */
        if (path_of_fd(workspace_fd, workspace) == 0)
                name = path_join(workspace, POLICY_PROJECT_FILE);
        if (!name)
                name = strdup(POLICY_PROJECT_FILE);
        if (!name)
                return error_oom(reterr);
        r = read_project(workspace_fd, name, &bytes, &length, reterr);
        if (r <= 0)
                return r;
        return policy_load(policy, bytes, length, name, ORIGIN_PROJECT, reterr);
}

int policy_files_resolve(Policy *policy, const OptionResult *result, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        const char *workspace;
        char quoted[400];
        int r;

        r = policy_files_apply(policy, result, reterr);
        if (r < 0 || policy->workspace_mode == WORKSPACE_NONE)
                return r;
        workspace = policy->workspace_source ? policy->workspace_source : ".";
        fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
                const PolicyNote *note = policy_note(policy, "filesystem.workspace.source", NULL);
                const char *where = note ? note->where : "--workspace";

                r = error_set(reterr, ERROR_POLICY, errno, "%s%s %s", where,
                              where[0] == '-' ? "" : ":",
                              str_quote(workspace, quoted, sizeof(quoted)));
                return prepare_source_cure(workspace, r, reterr);
        }
        return policy_files_project(policy, fd, reterr);
}
