/* SPDX-License-Identifier: Apache-2.0 */
/* Control sequences in bytes that go to a terminal.
 *
 * A terminal answers some sequences by typing: it sends its title, its size or its name as if they
 * were keys. Nobody can list all of these, because each terminal has its own. So this module knows
 * the sequences that are harmless (colours, moving the cursor, erasing) and takes every other
 * control sequence for a question. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero but utf8 at the start. */
typedef struct Escapes {
        bool utf8;      /* the terminal decodes UTF-8: C1 controls are two bytes there */
        uint8_t state;  /* where in a sequence it is; 0 is outside of one */
        uint8_t more;   /* bytes that the current UTF-8 character still needs */
        uint8_t length; /* of held */
        char held[32];  /* the sequence so far */
} Escapes;

/* Whether the terminal fd decodes UTF-8, by its mode (IUTF8) or the locale: the value for
 * Escapes.utf8. */
bool escapes_utf8(int fd);
/* Follows what is printed. Returns whether a sequence that may be a question ended in data. */
bool escapes_ask(Escapes *escapes, const char *data, size_t size);
/* Whether the last sequence is not complete: what is printed next could make a question of it. */
bool escapes_open(const Escapes *escapes);

enum { ESCAPES_GROWTH = 4, ESCAPES_HELD = sizeof(((Escapes *)NULL)->held) };

/* Copies data to out with every control sequence and character that is not harmless made visible:
 * ESC is "\x1b". Keeps an incomplete sequence back until the rest comes. out has room for
 * ESCAPES_GROWTH * (size + ESCAPES_HELD) bytes. Returns how many it wrote. */
size_t escapes_disarm(Escapes *escapes, const char *data, size_t size, char *out);
