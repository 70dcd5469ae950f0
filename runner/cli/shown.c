/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shown.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "base/escapes.h"
#include "base/sys.h"
#include "base/util.h"

typedef struct Stream {
        bool begun, terminal;
        Escapes escapes;
} Stream;

static Stream *stream_of(int fd) {
        static Stream streams[3]; /* stdout, stderr, and any other file */
        const bool named = fd != STDOUT_FILENO && fd != STDERR_FILENO;
        Stream *s = &streams[named ? 2 : fd - STDOUT_FILENO];

        if (!s->begun || named)
                s->terminal = isatty(fd);
        if (!s->begun)
                s->escapes.utf8 = escapes_utf8(fd);
        s->begun = true;
        return s;
}

int shown_bytes(int fd, const char **data, size_t *length, char **ret_owned) {
        Stream *s = stream_of(fd);
        char *out;

        *ret_owned = NULL;
        if (!s->terminal)
                return 0;
        if (*length > SIZE_MAX / ESCAPES_GROWTH - ESCAPES_HELD)
                return -ENOMEM;
        out = malloc(ESCAPES_GROWTH * (*length + ESCAPES_HELD));
        if (!out)
                return -ENOMEM;
        *length = escapes_disarm(&s->escapes, *data, *length, out);
        *data = *ret_owned = out;
        return 0;
}

int shown_write(int fd, const char *data, size_t length) {
        _cleanup_free_ char *owned = NULL;
        int r = shown_bytes(fd, &data, &length, &owned);

        return r < 0 ? r : sys_write_all(fd, data, length);
}
