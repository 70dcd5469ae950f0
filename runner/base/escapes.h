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

/* At the start, all members except utf8 are zero. */
typedef struct Escapes {
        bool utf8;      /* the terminal decodes UTF-8, so C1 controls are two bytes */
        uint8_t state;  /* the position in a sequence; 0 is outside */
        uint8_t more;   /* bytes that the current UTF-8 character still needs */
        uint8_t length; /* number of bytes in held */
        char held[32];  /* the current sequence so far */
} Escapes;

/* Whether the terminal fd decodes UTF-8, according to its mode (IUTF8) or the locale. The result is
 * the value for Escapes.utf8. */
bool escapes_utf8(int fd);
/* Follows the output. Returns whether data completes a sequence that the terminal may answer. */
bool escapes_ask(Escapes *escapes, const char *data, size_t size);
/* Whether the last sequence is incomplete: further output could turn it into a question. */
bool escapes_open(const Escapes *escapes);

enum { ESCAPES_GROWTH = 4, ESCAPES_HELD = sizeof(((Escapes *)NULL)->held) };

/* Copies data to out and makes every harmful control sequence and character visible: ESC becomes
 * "\x1b". An incomplete sequence is held back until the rest comes. out has room for ESCAPES_GROWTH
 * * (size + ESCAPES_HELD) bytes. Returns how many bytes it wrote. */
size_t escapes_disarm(Escapes *escapes, const char *data, size_t size, char *out);
