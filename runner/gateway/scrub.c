/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/scrub.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/strings.h"
#include "base/util.h"

/* Takes ownership of the pattern. */
static int scrub_take(Scrub *scrub, char *pattern) {
        if (!pattern)
                return -ENOMEM;
        if (strlen(pattern) < SCRUB_LEAST || scrub->count == SCRUB_PATTERNS) {
                free(pattern);
                return 0;
        }
        if (strlen(pattern) > scrub->held_size) {
                char *held = realloc(scrub->held, strlen(pattern));

                if (!held) {
                        free(pattern);
                        return -ENOMEM;
                }
                scrub->held = held;
                scrub->held_size = strlen(pattern);
        }
        scrub->patterns[scrub->count++] = pattern;
        return 0;
}

int scrub_add(Scrub *scrub, const char *secret) {
        int r = scrub_take(scrub, strdup(secret));

        return r < 0 ? r : scrub_take(scrub, base64_encode(secret, strlen(secret)));
}

static void scrub_mask(const Scrub *scrub, char *data, size_t length) {
        for (size_t i = 0; i < scrub->count; i++) {
                const size_t size = strlen(scrub->patterns[i]);
                char *found = data;

                while ((found = memmem(found, (size_t)(data + length - found), scrub->patterns[i],
                                       size)))
                        memset(found, '*', size);
        }
}

/* Returns how many bytes at the end are the beginning of a pattern. */
static size_t scrub_partial(const Scrub *scrub, const char *data, size_t length) {
        size_t most = 0;

        for (size_t i = 0; i < scrub->count; i++) {
                size_t n = strlen(scrub->patterns[i]) - 1;

                for (n = n < length ? n : length; n > most; n--)
                        if (memcmp(data + length - n, scrub->patterns[i], n) == 0)
                                most = n;
        }
        return most;
}

int scrub_feed(Scrub *scrub, const char *data, size_t length, bool last, Buffer *ret) {
        const size_t before = ret->length;
        size_t added, partial;
        char *new;
        int r = pipe_buffer_add(ret, scrub->held, scrub->held_length);

        if (r == 0)
                r = pipe_buffer_add(ret, data, length);
        scrub->held_length = 0;
        added = ret->length - before;
        if (r < 0 || scrub->count == 0 || added == 0)
                return r;
        new = ret->data + ret->start + before;
        scrub_mask(scrub, new, added);
        partial = last ? 0 : scrub_partial(scrub, new, added);
        memcpy(scrub->held, new + added - partial, partial);
        scrub->held_length = partial;
        ret->length -= partial;
        return 0;
}

void scrub_text(const Scrub *scrub, char *text) {
        scrub_mask(scrub, text, strlen(text));
}

void scrub_clear(Scrub *scrub) {
        for (size_t i = 0; i < scrub->count; i++) {
                explicit_bzero(scrub->patterns[i], strlen(scrub->patterns[i]));
                free(scrub->patterns[i]);
        }
        free(scrub->held);
        *scrub = (Scrub){ 0 };
}
