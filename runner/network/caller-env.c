/* SPDX-License-Identifier: Apache-2.0 */
#include "network/caller-env.h"

#include <string.h>

#include "base/strings.h"

static const char mark[] = "HOLT_CALLER_";

static size_t count_env(void) {
        size_t n = 0;

        while (environ && environ[n])
                n++;
        return n;
}

char **caller_env_wrap(const char *first) {
        char **wrapped = calloc(count_env() + 2, sizeof(*wrapped));
        size_t n = 0;

        if (!wrapped)
                return NULL;
        if (first && !(wrapped[n++] = strdup(first)))
                return NULL;
        for (char **item = environ; item && *item; item++)
                if (!(wrapped[n++] = str_format("%s%s", mark, *item)))
                        return NULL;
        return wrapped;
}

char **caller_env_unwrap(void) {
        const size_t count = count_env();
        char **items = calloc(count + 1, sizeof(*items));
        size_t n = 0;

        for (size_t i = 0; items && i < count; i++)
                if (str_starts(environ[i], mark))
                        items[n++] = environ[i] + strlen(mark);
        if (items && n == 0)
                memcpy(items, environ, count * sizeof(*items));
        return items;
}

const char *caller_env_get(const char *name) {
        const size_t length = strlen(name);
        const char *own = NULL;
        bool wrapped = false;

        for (char **item = environ; item && *item; item++) {
                const bool marked = str_starts(*item, mark);
                const char *text = *item + (marked ? strlen(mark) : 0);
                const bool named = strncmp(text, name, length) == 0 && text[length] == '=';

                if (named && marked)
                        return text + length + 1;
                if (named && !own)
                        own = text + length + 1;
                wrapped |= marked;
        }
        return wrapped ? NULL : own;
}

void caller_env_erase(const char *name) {
        const size_t length = strlen(name);

        for (char **item = environ; item && *item; item++)
                if (strncmp(*item, name, length) == 0 && (*item)[length] == '=')
                        explicit_bzero(*item + length + 1, strlen(*item + length + 1));
}

void caller_env_forget(void) {
        for (char **item = environ; item && *item; item++)
                if (str_starts(*item, mark))
                        explicit_bzero(*item, strlen(*item));
}
