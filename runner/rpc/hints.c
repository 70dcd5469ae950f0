/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/hints.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/strings.h"
#include "policy/layers.h"
#include "policy/policy.h"

/* Verbs with a method. The others are for people: run, sh, serve, policy and doctor. */
static const struct {
        const char *verb, *method;
        unsigned operands;
} verbs[] = {
        { "allow", "session.allow", 2 },
        { "audit", "audit.list", 1 },
        { "cp", "files.read or files.write", 2 },
        { "create", "session.create", 1 },
        { "exec", "exec", 1 },
        { "files", "files.list", 1 },
        { "forward", "ports.forward", 2 },
        { "history", "history.list", 1 },
        { "kill", "process.kill", 2 },
        { "kv", "kv.keys", 1 },
        { "link", "links.make", 2 },
        { "logs", "process.read", 2 },
        { "ls", "session.list", 0 },
        { "ps", "process.list", 1 },
        { "python", "python.run", 1 },
        { "shell", "shell.run", 1 },
        { "rebind", "session.rebind", 1 },
        { "rm", "session.remove", 1 },
        { "route", "route.add", 3 },
        { "show", "session.show", 1 },
        { "stop", "session.stop", 1 },
        { "tier", "session.set_tier", 2 },
        { "wait", "process.wait", 2 },
};

/* Verbs whose first operand chooses another method. */
static const struct {
        const char *verb, *operand, *method;
} operand_methods[] = {
        { "route", "list", "route.list" },
        { "route", "remove", "route.remove" },
};

/* Options that set no field of a policy. */
static const struct {
        const char *option, *name;
        FieldKind kind;
} others[] = {
        { "--allow-degraded", "allow_degraded", FIELD_LIST },
        { "--cwd", "cwd", FIELD_PATH },
        { "--policy", "policy_name", FIELD_PATH },
        { "--tier", "tier", FIELD_PATH },
};

enum { CURE_SIZE = sizeof(((Error *)NULL)->cure) };

/* A piece of the text. */
typedef struct Word {
        const char *start;
        size_t length;
} Word;

/* --- reading --- */

static bool hints_is(Word word, const char *text) {
        return word.length == strlen(text) && strncmp(word.start, text, word.length) == 0;
}

/* Returns the length of the word at text, whose quoted parts may contain blanks (str_word() quotes
 * like that). An apostrophe without a second one is a plain character. */
static size_t hints_length(const char *text) {
        size_t length = 0;

        while (text[length] && !strchr(" \n", text[length])) {
                const char *end = text[length] == '\'' ? strchr(text + length + 1, '\'') : NULL;

                length = end ? (size_t)(end + 1 - text) : length + 1;
        }
        return length;
}

/* The word that starts at text, without punctuation behind it. "..." is part of the word. */
static Word word_at(const char *text) {
        Word word = { text, hints_length(text) };

        while (word.length > 0 && strchr("),;:\"", text[word.length - 1]))
                word.length--;
        if (word.length > 1 && text[word.length - 1] == '.' && text[word.length - 2] != '.')
                word.length--;
        return word;
}

static Word word_behind(Word word) {
        const char *end = word.start + word.length;

        return *end == ' ' ? word_at(end + 1) : (Word){ end, 0 };
}

/* Whether the word behind a verb is an operand. If not, it continues the sentence. */
static bool is_operand(Word word) {
        static const char *const prose[] = { "and", "lets",    "lists", "makes", "or",
                                             "or,", "removes", "says",  "takes", "then" };

        for (size_t i = 0; i < ELEMENTSOF(prose); i++)
                if (hints_is(word, prose[i]))
                        return false;
        return word.length > 0 && word.start[0] != '-';
}

/* The same for a word behind an option. Lower-case words are prose, except values of fields. */
static bool is_value(Word word) {
        static const char *const values[] = { "auto", "host", "none", "off", "ro", "rw" };

        for (size_t i = 0; i < word.length; i++)
                if (isupper((unsigned char)word.start[i]) ||
                    isdigit((unsigned char)word.start[i]) || strchr("/=*'", word.start[i]))
                        return true;
        if (word.length > 1 && word.start[0] == '.')
                return true;
        for (size_t i = 0; i < ELEMENTSOF(values); i++)
                if (hints_is(word, values[i]))
                        return true;
        for (size_t i = 0; i < LAYER_MAX; i++)
                if (hints_is(word, layer_table[i].name))
                        return true;
        return false;
}

/* --- writing --- */

typedef struct Text {
        char data[CURE_SIZE];
        size_t length;
} Text;

static void put_bytes(Text *text, const char *bytes, size_t length) {
        const size_t room = sizeof(text->data) - 1 - text->length;

        if (length > room)
                length = room;
        memcpy(text->data + text->length, bytes, length);
        text->length += length;
        text->data[text->length] = '\0';
}

static void hints_put(Text *text, const char *words) {
        put_bytes(text, words, strlen(words));
}

/* Writes a string of JSON. Escapes quotes, backslashes and line feeds; hints contain no other
 * control characters. */
static void put_quoted(Text *text, const char *value, size_t length) {
        hints_put(text, "\"");
        for (size_t i = 0; i < length; i++) {
                if (strchr("\"\\", value[i]))
                        hints_put(text, "\\");
                put_bytes(text, value + i, 1);
        }
        hints_put(text, "\"");
}

/* Takes the quotes of the shell off a word, as hints_length() finds them. */
static const char *hints_unquote(Word word, char buf[CURE_SIZE]) {
        size_t length = 0;
        bool quoted = false;

        for (size_t i = 0; i < word.length && length < CURE_SIZE - 1; i++) {
                const char c = word.start[i];

                if (c == '\'' && (quoted || memchr(word.start + i + 1, c, word.length - i - 1)))
                        quoted = !quoted;
                else if (c != '\\' || quoted || i + 1 == word.length)
                        buf[length++] = c;
                else if (++i < word.length) /* str_word() writes a quote as '\'' */
                        buf[length++] = word.start[i];
        }
        buf[length] = '\0';
        return buf;
}

static void put_list(Text *text, const char *value) {
        hints_put(text, "[");
        put_quoted(text, value, strlen(value));
        hints_put(text, "]");
}

static void put_map(Text *text, const char *value) {
        const size_t name = strcspn(value, "="), rest = name + (value[name] == '=');

        hints_put(text, "{");
        put_quoted(text, value, name);
        hints_put(text, ": ");
        put_quoted(text, value + rest, strlen(value + rest));
        hints_put(text, "}");
}

/* Writes a value in the form that it has in a policy document. */
static void put_value(Text *text, FieldKind kind, Word word) {
        char buf[CURE_SIZE];
        const char *value = hints_unquote(word, buf);

        hints_put(text, ": ");
        if (kind == FIELD_LIST)
                put_list(text, value);
        else if (kind == FIELD_MAP)
                put_map(text, value);
        else if (kind == FIELD_UINT)
                hints_put(text, value);
        else
                put_quoted(text, value, strlen(value));
}

/* --- replacing --- */

/* Writes the command behind "--", which reaches to the end of its line. Returns its length. */
static size_t replace_command(Text *text, const char *from) {
        static const char dashes[] = " -- ";
        const char *end = from + strcspn(from, "\n"), *at = from + strlen(dashes);
        char buf[CURE_SIZE];

        if (!str_starts(from, dashes))
                return 0;
        hints_put(text, " with argv: [");
        while (at < end) {
                const size_t length = hints_length(at);
                const char *word = hints_unquote((Word){ at, length }, buf);

                hints_put(text, at == from + strlen(dashes) ? "" : ", ");
                put_quoted(text, word, strlen(word));
                at += length + strspn(at + length, " ");
        }
        hints_put(text, "]");
        return (size_t)(at - from);
}

static const char *hints_method(size_t verb, Word operand) {
        for (size_t i = 0; i < ELEMENTSOF(operand_methods); i++)
                if (streq(operand_methods[i].verb, verbs[verb].verb) &&
                    hints_is(operand, operand_methods[i].operand))
                        return operand_methods[i].method;
        return verbs[verb].method;
}

/* Each returns how many bytes of the text it has replaced, or 0. */
static size_t replace_verb(Text *text, const char *from) {
        Word word;

        if (!str_starts(from, "holt "))
                return 0;
        /* No method runs a command without a session, so the line and its options stay
         * unchanged. */
        if (str_starts(from, "holt run ")) {
                put_bytes(text, from, strcspn(from, "\n"));
                return strcspn(from, "\n");
        }
        word = word_at(from + strlen("holt "));
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                const char *end;

                if (!hints_is(word, verbs[i].verb))
                        continue;
                hints_put(text, hints_method(i, word_behind(word)));
                for (unsigned n = 0; n < verbs[i].operands && is_operand(word_behind(word)); n++)
                        word = word_behind(word);
                end = word.start + word.length;
                return (size_t)(end - from) + replace_command(text, end);
        }
        return 0;
}

static const PolicyField *field_of(Word option) {
        for (size_t i = 0; i < policy_fields_count; i++)
                if (policy_fields[i].option && hints_is(option, policy_fields[i].option))
                        return &policy_fields[i];
        return NULL;
}

static size_t replace_field(Text *text, Word option, const PolicyField *field) {
        const Word value = word_behind(option);

        /* In a document, a source "none" would be a directory of that name. */
        if (field->set_option && field->kind == FIELD_PATH && hints_is(value, "none")) {
                hints_put(text, "filesystem.workspace.mode: \"none\"");
                return option.length + 1 + value.length;
        }
        hints_put(text, field->path);
        if (!field->option_arg) {
                hints_put(text, ": true");
                return option.length;
        }
        if (!is_value(value))
                return option.length;
        put_value(text, field->kind, value);
        return option.length + 1 + value.length;
}

static size_t replace_option(Text *text, const char *from) {
        const Word option = word_at(from), value = word_behind(option);
        const PolicyField *field = field_of(option);

        if (field)
                return replace_field(text, option, field);
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                if (!hints_is(option, others[i].option))
                        continue;
                hints_put(text, others[i].name);
                if (!is_value(value))
                        return option.length;
                put_value(text, others[i].kind, value);
                return option.length + 1 + value.length;
        }
        return 0;
}

static bool starts_word(const char *text, const char *at) {
        return at == text || strchr(" (\n\"", at[-1]);
}

static void hints_rewrite(const char *hint, Text *ret) {
        *ret = (Text){ .length = 0 };
        for (const char *at = hint; *at;) {
                size_t replaced = 0;

                if (starts_word(hint, at))
                        replaced = *at == '-' ? replace_option(ret, at) : replace_verb(ret, at);
                if (replaced == 0)
                        put_bytes(ret, at, 1);
                at += replaced > 0 ? replaced : 1;
        }
}

void hint_for_methods(Error *error) {
        Text text;

        hints_rewrite(error->cure, &text);
        memcpy(error->cure, text.data, text.length + 1);
}

void hint_write(JsonWriter *w, const char *key, const char *hint) {
        Text text;

        hints_rewrite(hint, &text);
        json_write_string(w, key, text.data);
}
