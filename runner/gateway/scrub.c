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
        if (strlen(pattern) < SCRUB_LEAST || scrub->count == SCRUB_PATTERNS)
                free(pattern);
        else
                scrub->patterns[scrub->count++] = pattern;
        return 0;
}

int scrub_add(Scrub *scrub, const char *secret) {
        int r = scrub_take(scrub, strdup(secret));

        return r < 0 ? r : scrub_take(scrub, base64_encode(secret, strlen(secret)));
}

/* Returns the length of the pattern at data, or 0. *ret_partial: the bytes up to the end are the
 * beginning of a pattern. */
static size_t scrub_match(const Scrub *scrub, const char *data, size_t length, bool *ret_partial) {
        for (size_t i = 0; i < scrub->count; i++) {
                const size_t whole = strlen(scrub->patterns[i]);
                const size_t n = whole < length ? whole : length;

                if (memcmp(data, scrub->patterns[i], n) != 0)
                        continue;
                if (n == whole)
                        return whole;
                *ret_partial = true;
        }
        return 0;
}

/* Masks the patterns in data. Returns the number of bytes that can be passed on. */
static size_t scrub_mask(const Scrub *scrub, char *data, size_t length, bool last) {
        size_t i = 0;

        while (i < length) {
                bool partial = false;
                const size_t n = scrub_match(scrub, data + i, length - i, &partial);

                if (n == 0 && partial && !last)
                        return i;
                memset(data + i, '*', n);
                i += n ? n : 1;
        }
        return i;
}

int scrub_feed(Scrub *scrub, const char *data, size_t length, bool last, Buffer *ret) {
        char *held;
        size_t done;
        int r;

        if (scrub->count == 0)
                return pipe_buffer_add(ret, data, length);
        r = pipe_buffer_add(&scrub->held, data, length);
        if (r < 0)
                return r;
        held = scrub->held.data + scrub->held.start;
        done = scrub->held.data ? scrub_mask(scrub, held, scrub->held.length, last) : 0;
        r = done ? pipe_buffer_add(ret, held, done) : 0;
        scrub->held.start += done;
        scrub->held.length -= done;
        return r;
}

void scrub_text(const Scrub *scrub, char *text) {
        (void)scrub_mask(scrub, text, strlen(text), true);
}

void scrub_clear(Scrub *scrub) {
        for (size_t i = 0; i < scrub->count; i++) {
                explicit_bzero(scrub->patterns[i], strlen(scrub->patterns[i]));
                free(scrub->patterns[i]);
        }
        buffer_clear(&scrub->held);
        *scrub = (Scrub){ 0 };
}
