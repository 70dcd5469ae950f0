/* SPDX-License-Identifier: Apache-2.0 */
#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"

/* The functions below must not expand the macros of the same names. */
#undef error_set
#undef error_layer
#undef error_oom
#undef error_cure

static const struct {
        const char *name;
        int exit_code;
} kinds[] = {
        [ERROR_SETUP] = { "setup", 125 },
        [ERROR_USAGE] = { "usage", 125 },
        [ERROR_POLICY] = { "policy", 125 },
        [ERROR_LAYER] = { "layer", 125 },
        [ERROR_NOT_EXECUTABLE] = { "not-executable", 126 },
        [ERROR_NOT_FOUND] = { "not-found", 127 },
        [ERROR_MISSING] = { "missing", 125 },
        [ERROR_NO_KEY] = { "no-key", 125 },
        [ERROR_NO_PROCESS] = { "no-process", 125 },
        [ERROR_EXISTS] = { "exists", 125 },
        [ERROR_BUSY] = { "busy", 125 },
        [ERROR_LIMIT] = { "limit", 125 },
        [ERROR_DATA] = { "data", 125 },
        [ERROR_PROTOCOL] = { "protocol", 125 },
};
static_assert(ELEMENTSOF(kinds) == ERROR_KIND_MAX, "every kind has an exit code");

/* Versions of clang-format disagree about a body in braces. */
/* clang-format off */
#define N(e) { e, #e }
/* clang-format on */

/* glibc has strerrorname_np() since 2.32; musl has no such function. */
static const struct {
        int errnum;
        const char *name;
} errno_names[] = {
        N(EPERM),        N(ENOENT),     N(ESRCH),        N(EINTR),        N(EIO),
        N(ENXIO),        N(E2BIG),      N(ENOEXEC),      N(EBADF),        N(ECHILD),
        N(EAGAIN),       N(ENOMEM),     N(EACCES),       N(EFAULT),       N(ENOTBLK),
        N(EBUSY),        N(EEXIST),     N(EXDEV),        N(ENODEV),       N(ENOTDIR),
        N(EISDIR),       N(EINVAL),     N(ENFILE),       N(EMFILE),       N(ENOTTY),
        N(ETXTBSY),      N(EFBIG),      N(ENOSPC),       N(ESPIPE),       N(EROFS),
        N(EMLINK),       N(EPIPE),      N(EDOM),         N(ERANGE),       N(EDEADLK),
        N(ENAMETOOLONG), N(ENOSYS),     N(ENOTEMPTY),    N(ELOOP),        N(EOVERFLOW),
        N(EILSEQ),       N(EUSERS),     N(EOPNOTSUPP),   N(ESTALE),       N(EDQUOT),
        N(ECANCELED),    N(EPROTO),     N(EBADMSG),      N(EAFNOSUPPORT), N(EADDRINUSE),
        N(ECONNREFUSED), N(ECONNRESET), N(ETIMEDOUT),    N(EMSGSIZE),     N(ENOBUFS),
        N(ENOTCONN),     N(ESHUTDOWN),  N(ETOOMANYREFS), N(ENETUNREACH),  N(EHOSTUNREACH),
};
#undef N

const char *error_errno_name(int errnum) {
        static _Thread_local char other[24];

        for (size_t i = 0; i < ELEMENTSOF(errno_names); i++)
                if (errno_names[i].errnum == errnum)
                        return errno_names[i].name;
        (void)snprintf(other, sizeof(other), "errno %d", errnum);
        return other;
}

static int _printf_(5, 0) error_vset(Error *reterr, ErrorKind kind, int layer, int errnum,
                                     const char *fmt, va_list args) {
        if (reterr) {
                reterr->errnum = errnum;
                reterr->kind = kind;
                reterr->layer = layer;
                (void)snprintf(reterr->cure, sizeof(reterr->cure), "%s", error_usual_cure(errnum));
                (void)vsnprintf(reterr->text, sizeof(reterr->text), fmt, args);
        }
        return errnum > 0 ? -errnum : -EINVAL;
}

int error_set(Error *reterr, ErrorKind kind, int errnum, const char *fmt, ...) {
        va_list args;
        int r;

        va_start(args, fmt);
        r = error_vset(reterr, kind, 0, errnum, fmt, args);
        va_end(args);
        return r;
}

int error_layer(Error *reterr, int layer, int errnum, const char *fmt, ...) {
        va_list args;
        int r;

        va_start(args, fmt);
        r = error_vset(reterr, ERROR_LAYER, layer, errnum, fmt, args);
        va_end(args);
        return r;
}

/* unix(7): descriptors that were sent but not yet received count against the user's limit. */
const char *error_usual_cure(int errnum) {
        return errnum == ETOOMANYREFS
                       ? "This user's processes, including those in sandboxes, have more "
                         "descriptors in unread messages (SCM_RIGHTS) than \"ulimit -n\" allows. "
                         "End these processes, or raise the limit."
                       : "";
}

int error_oom(Error *reterr) {
        return error_set(reterr, ERROR_SETUP, ENOMEM, "out of memory");
}

int error_cure(Error *reterr, int ret, const char *fmt, ...) {
        va_list args;

        if (!reterr)
                return ret;
        va_start(args, fmt);
        (void)vsnprintf(reterr->cure, sizeof(reterr->cure), fmt, args);
        va_end(args);
        return ret;
}

int error_exit_code(const Error *error) {
        return kinds[error->kind].exit_code;
}

const char *error_kind_name(ErrorKind kind) {
        return kinds[kind].name;
}

/* musl has no text for ETOOMANYREFS. holt gets ELOOP where it follows no symlink, and seldom for a
 * loop. */
static const char *error_text(int errnum) {
        static const struct {
                int errnum;
                const char *text;
        } texts[] = {
                { ETOOMANYREFS, "Too many descriptors in flight" },
                { ELOOP, "Symlink on the way, or loop" },
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (texts[i].errnum == errnum)
                        return texts[i].text;
        return strerror(errnum);
}

const char *error_sentence(const Error *error, char buf[ERROR_SENTENCE_MAX]) {
        size_t used;

        /* Paths in the text may come from an attacker, and a terminal must not act on them. */
        (void)str_visible(error->text, buf, 4 * sizeof(error->text));
        used = strlen(buf);
        if (error->errnum > 0)
                (void)snprintf(buf + used, ERROR_SENTENCE_MAX - used, ": %s (%s).",
                               error_text(error->errnum), error_errno_name(error->errnum));
        return buf;
}

const char *error_line(const char *line, size_t length, char buf[ERROR_SENTENCE_MAX]) {
        char one[sizeof(((Error *)NULL)->cure)];

        (void)snprintf(one, sizeof(one), "%.*s", (int)length, line);
        return str_visible(one, buf, ERROR_SENTENCE_MAX);
}

static const char *error_verb; /* static storage; NULL outside a verb */

void error_name_verb(const char *verb) {
        error_verb = verb;
}

void error_print(const Error *error, FILE *out) {
        const char *verb = error->kind == ERROR_USAGE ? error_verb : NULL;
        const char *line = error->cure;
        char sentence[ERROR_SENTENCE_MAX];

        (void)fprintf(out, "holt%s%s: %s\n", verb ? " " : "", verb ? verb : "",
                      error_sentence(error, sentence));
        while (*line) {
                size_t length = strcspn(line, "\n");

                (void)fprintf(out, "  %s\n", error_line(line, length, sentence));
                line += length;
                line += *line == '\n';
        }
}
