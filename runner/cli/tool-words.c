/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tool-words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t"
#define SYNTAX "$*?[]{}();|&<>`!#\n\r" /* special to a shell outside of quotes */
#define SYNTAX_QUOTED "$`"             /* special to a shell in double quotes */
#define ESCAPED "$`\"\\\n"             /* in double quotes, a backslash quotes only these */

typedef struct Splitter {
        const char *tool, *home;
        const char *at; /* rest of the command */
        /* Owned: the word so far; its buffer has the size of the command and HOME together. */
        char *text;
        size_t length;
        bool plain;
        Error *reterr;
} Splitter;

void tool_words_clear(ToolWords *words) {
        for (size_t i = 0; i < words->count; i++)
                free(words->items[i].text);
        free(words->items);
        *words = (ToolWords){ 0 };
}

static int splitter_refuse(const Splitter *s, const char *what) {
        int r = error_set(s->reterr, ERROR_USAGE, 0, "--tool %.100s: the command has %s", s->tool,
                          what);

        return error_cure(
                s->reterr, r,
                "holt runs a tool's command without a shell. Put it into a script outside the "
                "workspace, and give its path. Or quote the character, to use it as it is.");
}

static int splitter_refuse_syntax(const Splitter *s, char ch, const char *where) {
        char what[80];

        if (ch == '\n' || ch == '\r')
                return splitter_refuse(s, "a line break outside of quotes");
        (void)snprintf(what, sizeof(what), "\"%c\" %s", ch, where);
        return splitter_refuse(s, what);
}

/* --- a word --- */

static void splitter_take(Splitter *s) {
        s->text[s->length++] = *s->at++;
}

static int splitter_single(Splitter *s) {
        for (s->at++; *s->at != '\''; splitter_take(s))
                if (!*s->at)
                        return splitter_refuse(s, "a single quote that is not closed");
        s->at++;
        return 0;
}

static int splitter_double(Splitter *s) {
        for (s->at++; *s->at != '"'; splitter_take(s)) {
                if (!*s->at)
                        return splitter_refuse(s, "a double quote that is not closed");
                if (strchr(SYNTAX_QUOTED, *s->at))
                        return splitter_refuse_syntax(s, *s->at, "in double quotes");
                if (*s->at == '\\' && s->at[1] && strchr(ESCAPED, s->at[1]))
                        s->at++;
        }
        s->at++;
        return 0;
}

static int splitter_backslash(Splitter *s) {
        s->at++;
        if (!*s->at || *s->at == '\n')
                return splitter_refuse(s, "a backslash at the end of a line");
        splitter_take(s);
        return 0;
}

static int splitter_tilde(Splitter *s) {
        if (s->at[1] && !strchr("/" BLANKS, s->at[1]))
                return splitter_refuse(s, "\"~\" with the name of a user");
        if (!s->home || s->home[0] != '/')
                return splitter_refuse(s, "\"~\", but HOME is not an absolute path");
        s->at++;
        s->length = strlen(s->home);
        memcpy(s->text, s->home, s->length);
        return 0;
}

static int splitter_word(Splitter *s) {
        int r = *s->at == '~' ? splitter_tilde(s) : 0;

        while (r == 0 && *s->at && !strchr(BLANKS, *s->at)) {
                if (strchr("'\"\\", *s->at))
                        s->plain = false;
                if (*s->at == '\'')
                        r = splitter_single(s);
                else if (*s->at == '"')
                        r = splitter_double(s);
                else if (*s->at == '\\')
                        r = splitter_backslash(s);
                else if (strchr(SYNTAX, *s->at))
                        r = splitter_refuse_syntax(s, *s->at, "outside of quotes");
                else
                        splitter_take(s);
        }
        s->text[s->length] = '\0';
        return r;
}

/* --- all words --- */

/* Returns whether text is NAME=VALUE, which sets a variable in a shell if it comes before a
 * command. */
static bool is_assignment(const char *text) {
        size_t length = 0;

        while (isalnum((unsigned char)text[length]) || text[length] == '_')
                length++;
        return length > 0 && !isdigit((unsigned char)text[0]) &&
               (text[length] == '=' || str_starts(text + length, "+="));
}

static int splitter_add(const Splitter *s, ToolWords *words) {
        ToolWord *items = reallocarray(words->items, words->count + 1, sizeof(*items));
        char *text = items ? strdup(s->text) : NULL;

        if (items)
                words->items = items;
        if (!text)
                return error_oom(s->reterr);
        items[words->count++] = (ToolWord){ text, s->plain };
        return 0;
}

static int splitter_run(Splitter *s, ToolWords *words) {
        int r = 0;

        for (;;) {
                s->at += strspn(s->at, BLANKS);
                if (r < 0 || !*s->at)
                        break;
                s->length = 0;
                s->plain = true;
                r = words->count < TOOL_WORDS_MAX ? splitter_word(s)
                                                  : splitter_refuse(s, "too many words");
                if (r == 0 && words->count == 0 && is_assignment(s->text)) {
                        r = splitter_refuse(s, "a variable before its program");
                        return error_cure(s->reterr, r,
                                          "Set variables with env: 'env NAME=VALUE PROGRAM'.");
                }
                if (r == 0)
                        r = splitter_add(s, words);
        }
        if (r == 0 && (words->count == 0 || !words->items[0].text[0]))
                r = splitter_refuse(s, "no program");
        return r;
}

int tool_words_split(const char *tool, const char *command, const char *home, ToolWords *ret,
                     Error *reterr) {
        Splitter s = { .tool = tool, .home = home, .at = command, .reterr = reterr };
        ToolWords words = { 0 };
        int r;

        s.text = calloc(1, strlen(command) + (home ? strlen(home) : 0) + 1);
        r = s.text ? splitter_run(&s, &words) : error_oom(reterr);
        free(s.text);
        if (r < 0)
                tool_words_clear(&words);
        else
                *ret = words;
        return r;
}
