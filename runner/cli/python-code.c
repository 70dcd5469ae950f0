/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/python-code.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/time.h"
#include "cli/report.h"
#include "cli/transfer.h"

enum { CODE_MAX = 512 * 1024 }; /* bytes, so that the code fits into one request */

/* Waits until fd can be read: a command of the session may hold the other end of a pipe. deadline:
 * usec of time_now_usec(), or 0 for none. */
static int wait_for_bytes(int fd, uint64_t deadline) {
        struct pollfd waits = { .fd = fd, .events = POLLIN };
        int n;

        do {
                const uint64_t now = time_now_usec();
                const uint64_t left = deadline > now ? (deadline - now + 999) / 1000 : 0;

                n = poll(&waits, 1, !deadline ? -1 : left > INT_MAX ? INT_MAX : (int)left);
                if (n == 0 && time_now_usec() >= deadline)
                        return -ETIMEDOUT;
        } while (n == 0 || (n < 0 && errno == EINTR));
        return n < 0 ? -errno : 0;
}

/* Reads one byte more than allowed, so that the caller can detect code that is too long. */
static int read_bytes(int fd, uint64_t deadline, char *bytes, size_t *ret_length) {
        size_t length = 0;

        while (length < CODE_MAX + 1) {
                int r = wait_for_bytes(fd, deadline);
                ssize_t n = r < 0 ? r : read(fd, bytes + length, CODE_MAX + 1 - length);

                if (r < 0)
                        return r;
                if (n < 0 && errno != EINTR && errno != EAGAIN)
                        return -errno;
                if (n == 0)
                        break;
                length += n > 0 ? (size_t)n : 0;
        }
        *ret_length = length;
        return 0;
}

static int code_open_file(const char *session, const char *path, int *ret, Error *reterr) {
        RpcClient *client = NULL;
        struct stat st;
        int r = transfer_open(session, &client, reterr);

        if (r == 0)
                r = transfer_open_input(client, path, ret, &st, reterr);
        rpc_client_free(client);
        if (r == -ENOENT && reterr->kind == ERROR_MISSING)
                r = error_cure(reterr, r,
                               "FILE is a file on the host, relative to your working directory. To "
                               "run code directly, use -c CODE.");
        return r;
}

int python_code_read(const char *session, const char *path, uint64_t timeout, char **ret,
                     Error *reterr) {
        const uint64_t deadline = timeout ? time_now_usec() + timeout : 0;
        _cleanup_close_ int opened_fd = FD_NONE;
        _cleanup_free_ char *code = malloc(CODE_MAX + 2);
        size_t length = 0;
        int r = code ? 0 : error_oom(reterr);

        if (r == 0 && !streq(path, "-"))
                r = code_open_file(session, path, &opened_fd, reterr);
        if (r < 0)
                return r;
        r = read_bytes(opened_fd < 0 ? STDIN_FILENO : opened_fd, deadline, code, &length);
        if (r == -ETIMEDOUT) {
                report_timeout(timeout, "--timeout", stderr);
                return r;
        }
        if (r < 0)
                return error_set(reterr, ERROR_USAGE, -r, "cannot read %s", path);
        if (length > CODE_MAX || memchr(code, '\0', length))
                return error_set(reterr, ERROR_USAGE, 0, "%s: %s", path,
                                 length > CODE_MAX ? "the code is longer than 512 KiB"
                                                   : "the code contains a NUL byte");
        code[length] = '\0';
        *ret = TAKE_PTR(code);
        return 0;
}
