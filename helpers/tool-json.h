/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for holt-tool, read and written like Python's json module. json_rewrite() checks a text and
 * writes the result of json.dumps(json.loads(text), ensure_ascii=False), in one pass. Errors have
 * Python's words and count characters. The functions in the last part of this file read only its
 * output, and so check nothing.
 *
 * There are two differences from Python. Duplicate keys stay, and the bridge refuses them. Lone
 * surrogates are refused here. */
#pragma once

enum { DEPTH_MAX = 960 }; /* about Python's limit; the bridge's limit is 64 */

typedef struct Json {
        Text text;
        size_t at;
        Buffer *out;
        int depth;
        uint64_t objects[DEPTH_MAX / 64]; /* one bit for each open level: set for an object */
        int not_finite; /* it contains a NaN or an infinity, which Python accepts */
        const char *error;
        size_t error_at;
} Json;

static const char json_too_deep[] = "objects and arrays are nested too deeply";

static int json_fail(Json *j, const char *error, size_t at) {
        j->error = error;
        j->error_at = at;
        return -1;
}

/* Returns a byte, or -1 after the end. */
static int json_peek_at(const Json *j, size_t at) {
        return at < j->text.length ? (unsigned char)j->text.at[at] : -1;
}

static int json_peek(const Json *j) {
        return json_peek_at(j, j->at);
}

static void skip_space(Json *j) {
        int c = json_peek(j);

        while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
                j->at++;
                c = json_peek(j);
        }
}

/* --- characters --- */

static int is_continuation(char byte) {
        return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Length in bytes of the first character, or 0 if it is not valid UTF-8. */
static size_t utf8_length(Text text) {
        const unsigned first = (unsigned char)text.at[0];
        const size_t length = first < 0x80                    ? 1
                              : first >= 0xc2 && first < 0xe0 ? 2
                              : first >= 0xe0 && first < 0xf0 ? 3
                              : first >= 0xf0 && first < 0xf5 ? 4
                                                              : 0;
        unsigned second;

        if (length > text.length)
                return 0;
        for (size_t i = 1; i < length; i++)
                if (!is_continuation(text.at[i]))
                        return 0;
        if (length < 3)
                return length;
        second = (unsigned char)text.at[1];
        if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
            (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
                return 0;
        return length;
}

static void add_utf8(Buffer *out, unsigned c) {
        if (c < 0x80)
                return add_byte(out, (char)c);
        if (c < 0x800) {
                add_byte(out, (char)(0xc0 | c >> 6));
        } else {
                if (c < 0x10000) {
                        add_byte(out, (char)(0xe0 | c >> 12));
                } else {
                        add_byte(out, (char)(0xf0 | c >> 18));
                        add_byte(out, (char)(0x80 | (c >> 12 & 0x3f)));
                }
                add_byte(out, (char)(0x80 | (c >> 6 & 0x3f)));
        }
        add_byte(out, (char)(0x80 | (c & 0x3f)));
}

/* The letter of each short escape, and its character. */
static const char escapes[][2] = { { '"', '"' },  { '\\', '\\' }, { 'b', '\b' }, { 'f', '\f' },
                                   { 'n', '\n' }, { 'r', '\r' },  { 't', '\t' }, { '/', '/' } };

enum { ESCAPES = sizeof(escapes) / sizeof(escapes[0]), ESCAPES_WRITTEN = ESCAPES - 1 };

/* Appends a character as JSON strings write it. */
static void add_escaped(Buffer *out, unsigned c) {
        for (size_t i = 0; i < ESCAPES_WRITTEN; i++)
                if ((unsigned char)escapes[i][1] == c) {
                        add_byte(out, '\\');
                        return add_byte(out, escapes[i][0]);
                }
        if (c >= 0x20)
                return add_utf8(out, c);
        add_string(out, c < 0x10 ? "\\u000" : "\\u001");
        add_byte(out, "0123456789abcdef"[c % 16]);
}

/* --- strings --- */

/* Reads the four digits after \u. Returns -1 if they are invalid. */
static int read_hex(const Json *j, size_t at) {
        int value = 0;

        if (at + 4 >= j->text.length) /* at least a quote must follow */
                return -1;
        for (size_t i = at; i < at + 4; i++) {
                const char c = j->text.at[i], small = (char)(c | 0x20);

                if (!is_digit(c) && (small < 'a' || small > 'f'))
                        return -1;
                value = value * 16 + (is_digit(c) ? c - '0' : small - 'a' + 10);
        }
        return value;
}

/* `at` is after "\u". */
static int read_unicode(Json *j) {
        int c = read_hex(j, j->at), low;

        if (c < 0)
                return json_fail(j, "Invalid \\uXXXX escape", j->at - 1);
        j->at += 4;
        if (c < 0xd800 || c > 0xdfff) {
                add_escaped(j->out, (unsigned)c);
                return 0;
        }
        if (c >= 0xdc00 || json_peek(j) != '\\' || json_peek_at(j, j->at + 1) != 'u')
                return json_fail(j, "a lone surrogate", j->at - 6);
        low = read_hex(j, j->at + 2);
        if (low < 0)
                return json_fail(j, "Invalid \\uXXXX escape", j->at + 1);
        if (low < 0xdc00 || low > 0xdfff)
                return json_fail(j, "a lone surrogate", j->at - 6);
        j->at += 6;
        add_escaped(j->out, 0x10000 + (((unsigned)c & 0x3ff) << 10 | ((unsigned)low & 0x3ff)));
        return 0;
}

/* `at` is on the backslash; `begin` is the start of the string. */
static int json_read_escape(Json *j, size_t begin) {
        j->at++;
        if (json_peek(j) < 0)
                return json_fail(j, "Unterminated string starting at", begin);
        if (json_peek(j) == 'u') {
                j->at++;
                return read_unicode(j);
        }
        for (size_t i = 0; i < ESCAPES; i++)
                if (escapes[i][0] == json_peek(j)) {
                        j->at++;
                        add_escaped(j->out, (unsigned char)escapes[i][1]);
                        return 0;
                }
        return json_fail(j, "Invalid \\escape", j->at - 1);
}

/* `at` is on the opening quote. */
static int read_string(Json *j) {
        const size_t begin = j->at++;

        add_byte(j->out, '"');
        for (int c = json_peek(j); c != '"'; c = json_peek(j)) {
                const Text rest = { j->text.at + j->at, j->text.length - j->at };
                size_t length;

                if (c < 0)
                        return json_fail(j, "Unterminated string starting at", begin);
                if (c < 0x20)
                        return json_fail(j, "Invalid control character at", j->at);
                if (c == '\\') {
                        if (json_read_escape(j, begin) < 0)
                                return -1;
                        continue;
                }
                length = utf8_length(rest);
                if (length == 0)
                        return json_fail(j, "this is not UTF-8", j->at);
                buffer_add(j->out, (Text){ rest.at, length });
                j->at += length;
        }
        j->at++;
        add_byte(j->out, '"');
        return 0;
}

/* --- values --- */

static int take_word(Json *j, const char *word) {
        const size_t length = text_of(word).length;

        if (j->text.length - j->at < length || !text_is((Text){ j->text.at + j->at, length }, word))
                return 0;
        j->at += length;
        return 1;
}

static int read_word(Json *j) {
        static const char *const words[] = {
                "null", "true", "false", "NaN", "Infinity", "-Infinity"
        };

        for (int i = 0; i < 6; i++)
                if (take_word(j, words[i])) {
                        add_string(j->out, words[i]);
                        j->not_finite |= i >= 3;
                        return 0;
                }
        return json_fail(j, "Expecting value", j->at);
}

static size_t skip_digits(const Json *j, size_t at) {
        while (json_peek_at(j, at) >= '0' && json_peek_at(j, at) <= '9')
                at++;
        return at;
}

/* Returns the end of the fraction and exponent of a number whose whole part ends at `at`. An
 * incomplete part, such as in "1." and "1e", does not count. */
static size_t skip_fraction(const Json *j, size_t at) {
        size_t digits;

        if (json_peek_at(j, at) == '.' && skip_digits(j, at + 1) > at + 1)
                at = skip_digits(j, at + 1);
        if (json_peek_at(j, at) != 'e' && json_peek_at(j, at) != 'E')
                return at;
        digits = at + 1;
        digits += json_peek_at(j, digits) == '+' || json_peek_at(j, digits) == '-';
        return skip_digits(j, digits) > digits ? skip_digits(j, digits) : at;
}

/* `at` is on the sign or first digit. */
static int json_read_number(Json *j) {
        const size_t begin = j->at, first = begin + (json_peek(j) == '-');
        size_t whole, end;
        Text number;

        if (skip_digits(j, first) == first)
                return read_word(j);
        whole = json_peek_at(j, first) == '0' ? first + 1 : skip_digits(j, first);
        end = skip_fraction(j, whole);
        number = (Text){ j->text.at + begin, end - begin };
        j->at = end;
        if (end == whole)
                buffer_add(j->out, text_is(number, "-0") ? text_of("0") : number);
        else if (add_float(j->out, number) < 0)
                j->not_finite = 1;
        return 0;
}

/* --- objects and arrays --- */

static int json_in_object(const Json *j) {
        return j->objects[(j->depth - 1) / 64] >> (j->depth - 1) % 64 & 1;
}

static int json_open_level(Json *j, int object) {
        const uint64_t bit = (uint64_t)1 << j->depth % 64;
        uint64_t *word = &j->objects[j->depth / 64];

        if (j->depth == DEPTH_MAX)
                return json_fail(j, json_too_deep, j->at);
        *word = object ? *word | bit : *word & ~bit;
        j->depth++;
        add_byte(j->out, object ? '{' : '[');
        j->at++;
        skip_space(j);
        return 0;
}

static int json_close_level(Json *j) {
        const char closing = json_in_object(j) ? '}' : ']';

        if (json_peek(j) != closing)
                return 0;
        add_byte(j->out, closing);
        j->at++;
        j->depth--;
        return 1;
}

/* Reads the part in front of a value: in an object, the key. */
static int read_key(Json *j) {
        if (!json_in_object(j))
                return 0;
        if (json_peek(j) != '"')
                return json_fail(j, "Expecting property name enclosed in double quotes", j->at);
        if (read_string(j) < 0)
                return -1;
        skip_space(j);
        if (json_peek(j) != ':')
                return json_fail(j, "Expecting ':' delimiter", j->at);
        add_string(j->out, ": ");
        j->at++;
        skip_space(j);
        return 0;
}

/* Returns 0, or 1 if a level was opened; its first value follows. */
static int read_value(Json *j) {
        const int c = json_peek(j);

        if (c == '"')
                return read_string(j);
        if (c == '{' || c == '[') {
                if (json_open_level(j, c == '{') < 0)
                        return -1;
                if (json_close_level(j))
                        return 0;
                return read_key(j) < 0 ? -1 : 1;
        }
        return c == '-' || (c >= 0 && is_digit((char)c)) ? json_read_number(j) : read_word(j);
}

/* Reads the part after a value. Returns 1 if another value follows, 0 if all levels are closed. */
static int read_next(Json *j) {
        while (j->depth > 0) {
                skip_space(j);
                if (json_close_level(j))
                        continue;
                if (json_peek(j) != ',')
                        return json_fail(j, "Expecting ',' delimiter", j->at);
                add_string(j->out, ", ");
                j->at++;
                skip_space(j);
                return read_key(j) < 0 ? -1 : 1;
        }
        return 0;
}

/* Appends to out. Returns 0, or -1 with error and error_at set. */
static int json_rewrite(Json *j) {
        int r = 1;

        if (take_word(j, "\xef\xbb\xbf"))
                return json_fail(j, "Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
        skip_space(j);
        while (r > 0) {
                r = read_value(j);
                if (r == 0)
                        r = read_next(j);
        }
        skip_space(j);
        if (r == 0 && j->at < j->text.length)
                r = json_fail(j, "Extra data", j->at);
        return r;
}

/* Appends "Expecting value: line 1 column 1 (char 0)". */
static void add_json_error(Buffer *out, const Json *j) {
        size_t line = 1, column = 1, character = 0;

        add_string(out, j->error);
        for (size_t i = 0; i < j->error_at; i++) {
                if (is_continuation(j->text.at[i]))
                        continue;
                character++;
                column = j->text.at[i] == '\n' ? 1 : column + 1;
                line += j->text.at[i] == '\n';
        }
        add_string(out, ": line ");
        add_number(out, line);
        add_string(out, " column ");
        add_number(out, column);
        add_string(out, " (char ");
        add_number(out, character);
        add_string(out, ")");
}

/* Appends any text as a JSON string. Returns 0, or -1 if it is not UTF-8. */
static int add_json_string(Buffer *out, Text text) {
        add_byte(out, '"');
        while (text.length > 0) {
                const size_t length = utf8_length(text);

                if (length == 0)
                        return -1;
                if (length == 1)
                        add_escaped(out, (unsigned char)text.at[0]);
                else
                        buffer_add(out, (Text){ text.at, length });
                text.at += length;
                text.length -= length;
        }
        add_byte(out, '"');
        return 0;
}

/* --- reading the output --- */

/* Returns the end of the value that begins at `at`. */
static size_t value_end(Text text, size_t at) {
        int depth = 0, quoted = 0;

        for (; at < text.length; at++) {
                const char c = text.at[at];

                if (quoted) {
                        at += c == '\\';
                        quoted = c != '"';
                } else if (c == '"') {
                        quoted = 1;
                } else if (c == '{' || c == '[') {
                        depth++;
                } else if (depth == 0 && (c == ',' || c == ':' || c == '}' || c == ']')) {
                        return at;
                } else if (c == '}' || c == ']') {
                        depth--;
                }
        }
        return at;
}

/* Returns the next value in an object or array, that is a key, member or item. *at is 1 before the
 * first call. Returns 0 after the last value. */
static int next_value(Text text, size_t *at, Text *ret) {
        const size_t end = value_end(text, *at);

        *ret = (Text){ text.at + *at, end - *at };
        *at = end + 2; /* ", " or ": " */
        return ret->length > 0;
}

/* Finds the last member with the key, which has no escapes. Returns 0 if it does not exist or the
 * text is not an object. */
static int find_member(Text object, const char *key, Text *ret) {
        size_t at = 1;
        Text name, value;
        int found = 0;

        if (object.at[0] != '{')
                return 0;
        while (next_value(object, &at, &name) && next_value(object, &at, &value))
                if (text_is((Text){ name.at + 1, name.length - 2 }, key)) {
                        *ret = value;
                        found = 1;
                }
        return found;
}

/* Appends the contents of a string; any other value is appended unchanged. */
static void add_plain_text(Buffer *out, Text value) {
        if (value.at[0] != '"')
                return buffer_add(out, value);
        for (size_t i = 1; i < value.length - 1; i++) {
                size_t escape = 0;

                if (value.at[i] != '\\') {
                        add_byte(out, value.at[i]);
                        continue;
                }
                i++;
                while (escape < ESCAPES && escapes[escape][0] != value.at[i])
                        escape++;
                if (escape < ESCAPES) {
                        add_byte(out, escapes[escape][1]);
                } else { /* such as \u001f */
                        const char last = value.at[i + 4];

                        add_byte(out, (char)((value.at[i + 3] - '0') * 16 +
                                             (is_digit(last) ? last - '0' : last - 'a' + 10)));
                        i += 4;
                }
        }
}
