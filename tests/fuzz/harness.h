/* SPDX-License-Identifier: Apache-2.0 */
/* Shared code of the harnesses: their requirements, and reading libFuzzer's input. It works with
 * the kernel's headers and with libc's, so it uses a compiler builtin. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#define REQUIRE(condition)                                                                         \
        do {                                                                                       \
                if (!(condition)) {                                                                \
                        (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);      \
                        __builtin_abort();                                                         \
                }                                                                                  \
        } while (0)

#define FAIL(what)                                                                                 \
        do {                                                                                       \
                (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, what);                    \
                __builtin_abort();                                                                 \
        } while (0)

/* Called by libFuzzer or by replay.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Input {
        const uint8_t *at, *end;
} Input;

/* Returns the next byte, or 0 after the end. */
static inline unsigned take_byte(Input *in) {
        return in->at < in->end ? *in->at++ : 0;
}

static inline uint32_t take_u32(Input *in) {
        uint32_t word = take_byte(in);

        for (int i = 0; i < 3; i++)
                word = word << 8 | take_byte(in);
        return word;
}
