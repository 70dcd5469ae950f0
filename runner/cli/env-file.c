/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/env-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "policy/policy.h"

enum { ENV_FILE_BYTES_MAX = 256 << 10 };

/* The state of a file that is read. */
typedef struct EnvFile {
        char name[160]; /* quoted */
        StrList *ret;
        Error *reterr;
} EnvFile;

static int env_file_fail(const EnvFile *file, int errnum) {
        int r = error_set(file->reterr, ERROR_USAGE, errnum, "--env-file %s", file->name);

        if (errnum == ELOOP)
                return error_cure(file->reterr, r,
                                  "The path contains a symlink, which a command may have made. "
                                  "Write the path of the file itself.");
        if (errnum == EFBIG)
                return error_cure(file->reterr, r, "The limit is %d KiB.",
                                  ENV_FILE_BYTES_MAX >> 10);
        if (errnum == ENOENT)
                return error_cure(file->reterr, r, "It does not exist: correct the path.");
        if (errnum == EACCES)
                return error_cure(file->reterr, r, "You may not read it: change its mode.");
        return r;
}

/* /dev/stdin and /dev/fd/N are descriptors that the caller has passed, such as bash's <(...). They
 * are not opened as paths. */
static int env_file_open(const char *path) {
        const uint64_t flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
        uint64_t fd;

        if (streq(path, "/dev/stdin"))
                return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (str_starts(path, "/dev/fd/") && str_to_uint(path + 8, INT_MAX, &fd) == 0)
                return fcntl((int)fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        return sys_openat2(AT_FDCWD, path, flags, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

static int env_file_check(const EnvFile *file, int fd) {
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return env_file_fail(file, errno);
        if (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode))
                return 0;
        r = error_set(file->reterr, ERROR_USAGE, 0, "--env-file %s is not a regular file",
                      file->name);
        return error_cure(file->reterr, r, "Name a file with NAME=VALUE on each line.");
}

/* Reads at most ret_size - 1 bytes. */
static int env_file_bytes(const EnvFile *file, int fd, char *ret, size_t ret_size,
                          size_t *ret_length) {
        size_t length = 0;

        for (;;) {
                ssize_t n = read(fd, ret + length, ret_size - length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return env_file_fail(file, errno);
                if (n == 0)
                        break;
                length += (size_t)n;
                if (length == ret_size)
                        return env_file_fail(file, EFBIG);
        }
        ret[length] = '\0';
        *ret_length = length;
        return 0;
}

/* The message does not quote the line, because it may hold a secret. */
static int env_file_refuse(const EnvFile *file, size_t number, const char *why, const char *cure) {
        int r = error_set(file->reterr, ERROR_USAGE, 0, "--env-file %s, line %zu: %s", file->name,
                          number, why);

        return error_cure(file->reterr, r, "%s", cure);
}

static int env_file_take_line(const EnvFile *file, size_t number, const char *line) {
        const char *why = NULL;

        line += strspn(line, " \t");
        if (line[0] == '\0' || line[0] == '#')
                return 0;
        if (!strchr(line, '='))
                return env_file_refuse(
                        file, number, "a name without a value",
                        "Write NAME=VALUE. A file cannot pass your variables, because a command "
                        "may have written it. To pass one, use --env NAME.");
        if (policy_field("env.set")->check(line, &why) < 0)
                return env_file_refuse(file, number, "not a valid variable name before \"=\"",
                                       "Write NAME=VALUE: letters, digits and _, not starting with "
                                       "a digit, without blanks around \"=\".");
        if (file->ret->count >= POLICY_LIST_MAX)
                return env_file_refuse(file, number, "too many variables",
                                       "A sandbox can have 1024 of them.");
        return strlist_add(file->ret, line) < 0 ? error_oom(file->reterr) : 0;
}

static int env_file_take(const EnvFile *file, char *text, size_t length) {
        static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark, which some editors write */
        char *line = str_starts(text, mark) ? text + strlen(mark) : text;
        char *const end = text + length;

        for (size_t number = 1; line < end; number++) {
                const size_t left = (size_t)(end - line);
                char *newline = memchr(line, '\n', left);
                char *next = newline ? newline + 1 : end;
                int r;

                if (memchr(line, '\0', (size_t)(next - line)))
                        return env_file_refuse(file, number, "a zero byte",
                                               "Write the file as text, in UTF-8.");
                if (newline)
                        *newline = '\0';
                if (newline > line && newline[-1] == '\r')
                        newline[-1] = '\0';
                r = env_file_take_line(file, number, line);
                if (r < 0)
                        return r;
                line = next;
        }
        return 0;
}

/* Adds the file's variables to ret, as NAME=VALUE. Values are taken literally: quotes are part of
 * them. Blank lines and lines that start with "#" are ignored. A line may end in CRLF.
 *
 * A command may have written the file, so it cannot pass the caller's variables: a NAME without a
 * value is an error. For the same reason, no symlink is followed on the way to the file.
 *
 * Returns 0, -EINVAL (the error names the line), -ELOOP, -EFBIG, or another errno of openat2(2). */
static int env_file_read(const char *path, StrList *ret, Error *reterr) {
        EnvFile file = { .ret = ret, .reterr = reterr };
        _cleanup_free_ char *text = malloc(ENV_FILE_BYTES_MAX + 1);
        _cleanup_close_ int fd = env_file_open(path);
        const int errnum = errno;
        size_t length = 0;
        int r;

        (void)str_quote(path, file.name, sizeof(file.name));
        if (!text)
                return error_oom(reterr);
        if (fd < 0)
                return env_file_fail(&file, errnum);
        r = env_file_check(&file, fd);
        if (r == 0)
                r = env_file_bytes(&file, fd, text, ENV_FILE_BYTES_MAX + 1, &length);
        return r < 0 ? r : env_file_take(&file, text, length);
}

int env_files_read(const StrList *files, const StrList *env, StrList *ret, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < files->count; i++)
                r = env_file_read(files->items[i], ret, reterr);
        for (size_t i = 0; r == 0 && env && i < env->count; i++)
                r = strlist_add(ret, env->items[i]) < 0 ? error_oom(reterr) : 0;
        return r;
}
