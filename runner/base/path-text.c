/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path-text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "base/util.h"

#define MARK '\1'

bool path_text_is_plain(const char *path) {
        return path[0] != MARK && utf8_valid(path);
}

char *path_text(const char *path) {
        _cleanup_free_ char *base64 = NULL;

        if (path_text_is_plain(path))
                return strdup(path);
        base64 = base64_encode(path, strlen(path));
        return base64 ? str_format("%c%s", MARK, base64) : NULL;
}

static int path_from_base64(const char *text, char **ret) {
        _cleanup_free_ char *path = NULL;
        size_t length;
        int r = base64_decode(text, &path, &length);

        if (r < 0)
                return r;
        if (strlen(path) != length)
                return -EINVAL;
        *ret = TAKE_PTR(path);
        return 0;
}

int path_from_text(const char *text, char **ret) {
        if (text[0] == MARK)
                return path_from_base64(text + 1, ret);
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

void json_write_path(JsonWriter *w, const char *key, const char *path) {
        _cleanup_free_ char *text = path_text(path);

        if (!text)
                w->error = -ENOMEM;
        json_write_string(w, key, text);
}

void json_write_name(JsonWriter *w, const char *key, const char *name) {
        json_write_string(w, key, name);
        if (!path_text_is_plain(name))
                json_write_path(w, "raw", name);
}
