/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escapes.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>

#include "base/util.h"

enum { STATE_TEXT, STATE_ESCAPE, STATE_CHARSET, STATE_CSI };

typedef enum Verdict {
        VERDICT_TEXT, /* a byte outside a sequence */
        VERDICT_OPEN, /* an incomplete sequence */
        VERDICT_HARMLESS,
        VERDICT_ASKS,
} Verdict;

enum { ENQ = 0x05, ESC = 0x1b, DEL = 0x7f };

/* Only terminal emulators set IUTF8 on a pty, so for other ptys the locale decides. The environment
 * is read directly, because holt never calls setlocale(3). */
static bool locale_is_utf8(void) {
        static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const char *value = getenv(names[i]);

                if (value && *value)
                        return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        }
        return false;
}

bool escapes_utf8(int fd) {
        struct termios mode;

        return (tcgetattr(fd, &mode) == 0 && mode.c_iflag & IUTF8) || locale_is_utf8();
}

static Verdict escape_hold(Escapes *e, unsigned char c) {
        if (e->length == sizeof(e->held))
                return VERDICT_ASKS;
        e->held[e->length++] = (char)c;
        return VERDICT_OPEN;
}

/* U+0080 to U+009F are C1 controls in UTF-8 and begin with 0xc2. So 0xc2 does not count as a lead
 * byte here; otherwise these controls would be missed. */
static uint8_t bytes_to_come(const Escapes *e, unsigned char c) {
        if (c >= 0xf0)
                return 3;
        if (c >= 0xe0)
                return 2;
        if (c >= 0xc3)
                return 1;
        return c >= 0x80 && c < 0xc0 && e->more ? (uint8_t)(e->more - 1) : 0;
}

static Verdict next_text(Escapes *e, unsigned char c) {
        const bool inside_character = e->utf8 && e->more > 0;

        if (c == ESC) {
                e->more = 0;
                e->state = STATE_ESCAPE;
                return escape_hold(e, c);
        }
        if (c == ENQ || (c >= 0x80 && c < 0xa0 && !inside_character)) {
                e->more = 0;
                return VERDICT_ASKS;
        }
        e->more = bytes_to_come(e, c);
        return VERDICT_TEXT;
}

static Verdict next_escape(Escapes *e, unsigned char c) {
        if (c == '[')
                e->state = STATE_CSI;
        else if (c == '(' || c == ')')
                e->state = STATE_CHARSET;
        else
                return c == '7' || c == '8' || c == 'M' ? VERDICT_HARMLESS : VERDICT_ASKS;
        return escape_hold(e, c);
}

static bool is_harmless_end(const Escapes *e, unsigned char c) {
        const char *parameters = e->held + 2;
        const size_t length = e->length - 2U;

        if (length == 3 && memcmp(parameters, "?25", 3) == 0)
                return c == 'h' || c == 'l'; /* shows or hides the cursor */
        return (length == 0 || parameters[0] != '?') && c && strchr("@ABCDEFGHJKLMPXdfm", c);
}

static Verdict next_csi(Escapes *e, unsigned char c) {
        if ((c >= '0' && c <= ';') || (c == '?' && e->length == 2))
                return escape_hold(e, c);
        return is_harmless_end(e, c) ? VERDICT_HARMLESS : VERDICT_ASKS;
}

static Verdict escape_next_byte(Escapes *e, unsigned char c) {
        switch (e->state) {
        case STATE_ESCAPE:
                return next_escape(e, c);
        case STATE_CHARSET:
                return c == 'B' || c == '0' || c == 'A' ? VERDICT_HARMLESS : VERDICT_ASKS;
        case STATE_CSI:
                return next_csi(e, c);
        default:
                return next_text(e, c);
        }
}

static void end_sequence(Escapes *e) {
        e->state = STATE_TEXT;
        e->length = 0;
}

bool escapes_ask(Escapes *e, const char *data, size_t size) {
        bool asks = false;

        for (size_t i = 0; i < size; i++) {
                const Verdict verdict = escape_next_byte(e, (unsigned char)data[i]);

                asks |= verdict == VERDICT_ASKS;
                if (verdict >= VERDICT_HARMLESS)
                        end_sequence(e);
        }
        return asks;
}

bool escapes_open(const Escapes *e) {
        return e->state != STATE_TEXT;
}

/* --- visible form --- */

static size_t put_visible(char *out, unsigned char c) {
        char hex[5];

        if (c == DEL || (c < ' ' && (!c || !strchr("\a\b\t\n\v\f\r", c)))) {
                (void)snprintf(hex, sizeof(hex), "\\x%02x", c);
                memcpy(out, hex, 4);
                return 4;
        }
        *out = (char)c;
        return 1;
}

static size_t put_question(const Escapes *e, unsigned char c, char *out) {
        char hex[5];
        size_t n = 0;

        for (size_t i = 0; i < e->length; i++)
                n += put_visible(out + n, (unsigned char)e->held[i]);
        if (c < 0x80)
                return n + put_visible(out + n, c);
        (void)snprintf(hex, sizeof(hex), "\\x%02x", c);
        memcpy(out + n, hex, 4);
        return n + 4;
}

size_t escapes_disarm(Escapes *e, const char *data, size_t size, char *out) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++) {
                const unsigned char c = (unsigned char)data[i];
                const Verdict verdict = escape_next_byte(e, c);

                if (verdict == VERDICT_TEXT) {
                        n += put_visible(out + n, c);
                } else if (verdict == VERDICT_ASKS) {
                        n += put_question(e, c, out + n);
                } else if (verdict == VERDICT_HARMLESS) {
                        memcpy(out + n, e->held, e->length);
                        n += e->length;
                        out[n++] = (char)c;
                }
                if (verdict >= VERDICT_HARMLESS)
                        end_sequence(e);
        }
        return n;
}
