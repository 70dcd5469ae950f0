/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/complaints.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "outcome/complaints-program.h"

enum { LINES_BACK = 3 }; /* Lines that are searched before a message without a path. */

/* Phrases, in lower case; the text may have any case. Programs write the texts of strerror(3),
 * names of errnos, or names of exceptions. */
static const struct {
        const char *text;
        int errnum;
} phrases[] = {
        { "read-only file system", EROFS },
        { "readonlyfilesystem", EROFS },
        { "device or resource busy", EBUSY },
        { "resource busy", EBUSY },
        { "permission denied", EACCES },
        { "accessdeniedexception", EACCES },
        { "operation not permitted", EPERM },
        { "cross-device link", EXDEV },
        { "value too large for defined data type", EOVERFLOW },
        { "no such file or directory", ENOENT },
        { "nosuchfileexception", ENOENT },
        { "no such file", ENOENT },
        { "can't cd to", ENOENT },
        { "can't open input file", ENOENT },
        { "directory nonexistent", ENOENT },
        { "nonexistent directory", ENOENT },
        { "not a directory", ENOENT }, /* of a missing directory whose path ends with a slash: cp */
        { "does not exist", ENOENT },
        { "doesn't exist", ENOENT },
        { "not found", ENOENT }, /* A shell also means the interpreter of a script. */
        { "cannot find", ENOENT },
        { "unable to open database file", ENOENT }, /* SQLite */
        { "unable to access jarfile", ENOENT },     /* java */
};

/* Words of a line about a file that the program wanted to make or change. */
static const char *const creating[] = { "creat", "touch", "mkdir", "writ", "make dir", "save" };

/* Words of a line about a file that the program tried to open, maybe to make it. "line" comes from
 * shells: "bash: line 1: /x: No such file or directory". */
static const char *const opening[] = { "open",   "line ",      "zsh:",        "tee:",
                                       "errno ", "rb_sysopen", "filenotfound" };
static const char *const reading[] = { "for reading", "for input" };

/* One line of the text, and the phrase in it. */
typedef struct Line {
        char *start, *end;     /* end is a NUL. */
        char *phrase, *behind; /* The start and the end of the phrase. */
        int errnum;
        bool creates, opens;
} Line;

/* --- the text --- */

/* Returns the length of the control sequence at text, which starts with ESC (ECMA-48). */
static size_t sequence_length(const char *text, size_t left) {
        size_t n = 1;

        if (left < 2 || text[1] != '[')
                return left < 2 ? left : 2;
        for (n = 2; n < left && (text[n] < 0x40 || text[n] > 0x7e); n++)
                if (text[n] == '\n')
                        return n;
        return n < left ? n + 1 : n;
}

/* Copies the text without control sequences. Lines end in a NUL; other control characters become
 * blanks. Returns the length of the copy. */
static size_t complaints_clean(const char *text, size_t length, Complaints *ret) {
        size_t used = 0;

        for (size_t i = 0; i < length;) {
                const unsigned char c = (unsigned char)text[i];

                if (c == 0x1b) {
                        i += sequence_length(text + i, length - i);
                        continue;
                }
                ret->text[used++] = (char)(c == '\r' || c == '\n' ? '\0'
                                           : c < ' ' || c == 0x7f ? ' '
                                                                  : c);
                i++;
        }
        ret->text[used] = '\0';
        return used;
}

static char *find_word(char *line, const char *word) {
        const size_t length = strlen(word);

        for (; *line; line++)
                if ((*line | 0x20) == word[0] && strncasecmp(line, word, length) == 0)
                        return line;
        return NULL;
}

/* Whether the line contains `word`, such as "writ". A word with a slash is a path and does not
 * count: "cat: /src/writer/x". */
static bool line_says(char *line, const char *word) {
        for (char *at = line; (at = find_word(at, word)) != NULL; at++) {
                const char *start = at, *end = at + strcspn(at, " ");

                while (start > line && start[-1] != ' ')
                        start--;
                if (!memchr(start, '/', (size_t)(end - start)))
                        return true;
        }
        return false;
}

static bool line_says_one(char *line, const char *const *words, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (line_says(line, words[i]))
                        return true;
        return false;
}

/* Takes the last phrase of the line, because a path in front of it may contain another one. */
static bool line_find_phrase(Line *line) {
        for (size_t i = 0; i < ELEMENTSOF(phrases); i++)
                for (char *at = line->start; (at = find_word(at, phrases[i].text)) != NULL; at++)
                        if (!line->phrase || at >= line->behind) {
                                line->phrase = at;
                                line->behind = at + strlen(phrases[i].text);
                                line->errnum = phrases[i].errnum;
                        }
        if (!line->phrase)
                return false;
        line->creates = line_says_one(line->start, creating, ELEMENTSOF(creating));
        line->opens = line_says_one(line->start, opening, ELEMENTSOF(opening)) &&
                      !line_says_one(line->start, reading, ELEMENTSOF(reading));
        return true;
}

/* --- the paths --- */

static bool complaints_has(const Complaints *c, const char *path, size_t length,
                           const Complaint *like) {
        for (size_t i = 0; i < c->count; i++)
                if (c->items[i].errnum == like->errnum && c->items[i].program == like->program &&
                    strlen(c->items[i].path) == length &&
                    memcmp(c->items[i].path, path, length) == 0)
                        return true;
        return false;
}

/* like: the members of the new item without its path. */
static void complaints_add_like(Complaints *c, const char *path, size_t length, Complaint like) {
        char *copy = c->paths + c->paths_used;

        if (length == 0 || length > COMPLAINTS_PATH_MAX || c->count == COMPLAINTS_MAX ||
            length + 1 > sizeof(c->paths) - c->paths_used || complaints_has(c, path, length, &like))
                return;
        memcpy(copy, path, length);
        copy[length] = '\0';
        c->paths_used += length + 1;
        like.path = copy;
        c->items[c->count++] = like;
}

static void complaints_add(Complaints *c, const Line *line, const char *path, size_t length) {
        complaints_add_like(c, path, length,
                            (Complaint){ .errnum = line->errnum,
                                         .creates = line->creates,
                                         .opens = line->opens });
}

static void complaints_add_program(Complaints *c, const char *line) {
        size_t length;
        const char *name = complaint_program(line, &length);

        if (name)
                complaints_add_like(c, name, length,
                                    (Complaint){ .errnum = ENOENT, .program = true });
}

/* Adds a word without the punctuation around it. bare: the word may be without a slash. */
static void add_word(Complaints *c, const Line *line, const char *start, const char *end,
                     bool bare) {
        while (start < end && strchr("([{<\"'`=,;", *start))
                start++;
        while (start < end && strchr(")]}>\"'`:,;", end[-1]))
                end--;
        /* A sentence may end after the path, but ".." is a path. */
        if (end - start > 1 && end[-1] == '.' && end[-2] != '.' && end[-2] != '/')
                end--;
        if (bare || memchr(start, '/', (size_t)(end - start)))
                complaints_add(c, line, start, (size_t)(end - start));
}

/* Returns the path in a word: the value of an option (--config=/x), or the argument of a function
 * of PHP: fopen(/x). */
static const char *word_value(const char *word, const char *stop) {
        const char *value = memchr(word, word[0] == '-' ? '=' : '(', (size_t)(stop - word));

        return value && value > word && !memchr(word, '/', (size_t)(value - word)) ? value + 1
                                                                                   : word;
}

/* Adds the words that contain a slash. */
static void add_words(Complaints *c, const Line *line, const char *start, const char *end) {
        while (start < end) {
                const char *word = start + strspn(start, " "), *stop = word + strcspn(word, " ");

                if (stop > end)
                        stop = end;
                if (word >= stop)
                        return;
                add_word(c, line, word_value(word, stop), stop, false);
                start = stop;
        }
}

/* Pairs of quotes. The opening quote follows a character that is not part of a word. */
static const struct {
        const char *open, *close;
} quotes[] = {
        { "'", "'" }, { "\"", "\"" }, { "`", "'" }, { "`", "`" }, { "‘", "’" }, { "“", "”" },
};

static bool is_part_of_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static void add_quoted(Complaints *c, const Line *line, const char *open, const char *close) {
        for (const char *at = line->start; (at = strstr(at, open)) != NULL;) {
                const char *start = at + strlen(open), *end = strstr(start, close);

                if (!end)
                        return;
                if (at > line->start && is_part_of_word(at[-1])) {
                        at = start;
                        continue;
                }
                complaints_add(c, line, start, (size_t)(end - start));
                at = end + strlen(close);
        }
}

/* Whether the text is the name of an errno: "EROFS: read-only file system, open '/x'". */
static bool is_errno_name(const char *start, const char *end) {
        const size_t length = (size_t)(end - start);

        return length > 3 && start[0] == 'E' &&
               strspn(start, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") >= length;
}

/* Returns the end of the first of the words at text, or NULL if text starts with none of them. */
static const char *skip_word(const char *text, const char *end, const char *const *words,
                             size_t count) {
        for (size_t i = 0; i < count; i++) {
                const size_t length = strlen(words[i]);

                if ((size_t)(end - text) > length && strncasecmp(text, words[i], length) == 0)
                        return text + length;
        }
        return NULL;
}

/* Skips the words in front of a name: "cannot create x", "couldn't open temporary file x". */
static const char *skip_verb(const char *start, const char *end) {
        static const char *const failed[] = { "cannot ",    "can't ",      "can not ",
                                              "could not ", "couldn't ",   "failed to ",
                                              "unable to ", "can't cd to " };
        static const char *const nouns[] = { "to ",    "regular ", "temporary ", "config ",
                                             "file ",  "output ",  "directory ", "backup ",
                                             "input ", "hard ",    "link " };
        const char *at = skip_word(start, end, failed, ELEMENTSOF(failed)), *next;

        at = at ? memchr(at, ' ', (size_t)(end - at)) : NULL;
        if (!at)
                return start;
        for (at++; (next = skip_word(at, end, nouns, ELEMENTSOF(nouns))) != NULL;)
                at = next;
        return at;
}

/* Skips the name of the program at the start of a line: "/bin/sh: 1: ", "./configure: line 3: ",
 * "/usr/bin/touch: ". The program did not fail on that path. */
static const char *skip_program(const Line *line) {
        const char *colon = memmem(line->start, (size_t)(line->end - line->start), ": ", 2);
        const char *rest = colon ? colon + 2 : line->end, *number = rest;
        const size_t length = colon ? (size_t)(colon - line->start) : 0;

        if (rest >= line->phrase || memchr(line->start, ' ', length))
                return line->start;
        if (str_starts(number, "line "))
                number += strlen("line ");
        if (strspn(number, "0123456789") > 0 && number[strspn(number, "0123456789")] == ':')
                return number + strspn(number, "0123456789") + 1;
        return memmem(line->start, length, "bin/", 4) ? rest - 1 : line->start;
}

/* Adds the part in front of the phrase: "cat: my file: No such file or directory". It may contain
 * blanks, or be a plain name. */
static void add_part_before(Complaints *c, const Line *line) {
        const char *end = line->phrase, *start;

        while (end > line->start && strchr(" (:-[", end[-1]))
                end--;
        for (start = end; start > line->start; start--)
                if (start[-1] == ' ' && start - 1 > line->start && start[-2] == ':')
                        break;
        if (start == line->start || start == end || is_errno_name(start, end))
                return;
        start = skip_verb(start, end);
        /* A part with quotes is a sentence, not a name. */
        if (start + strcspn(start, "'\"`") >= end && !memmem(start, (size_t)(end - start), "‘", 3))
                complaints_add(c, line, start, (size_t)(end - start));
        for (const char *word = end; word > start; word--)
                if (word[-1] == ' ')
                        return add_word(c, line, word, end, true);
}

/* Adds the rest of the line after the phrase: "zsh:1: read-only file system: my file". */
static void add_part_behind(Complaints *c, const Line *line) {
        const char *start = line->behind + (*line->behind == ':');

        if ((start > line->behind || str_starts(line->phrase, "can't cd")) && *start == ' ' &&
            !strpbrk(start, "'\"`") && !strstr(start, "‘"))
                complaints_add(c, line, start + 1, (size_t)(line->end - start - 1));
}

/* Adds the paths of the line. If it has none, an earlier line may name it: "failed to open: /x". */
static void add_line(Complaints *c, const Line *line) {
        const size_t before = c->count;
        const char *start = line->start;

        for (size_t i = 0; i < ELEMENTSOF(quotes); i++)
                add_quoted(c, line, quotes[i].open, quotes[i].close);
        add_part_before(c, line);
        add_part_behind(c, line);
        add_words(c, line, skip_program(line), line->end);
        for (int back = 0; c->count == before && back < LINES_BACK && start > c->text; back++) {
                const char *end = --start;

                while (start > c->text && start[-1] != '\0')
                        start--;
                add_words(c, line, start, end);
        }
}

void complaints_find(const char *text, size_t length, Complaints *ret) {
        ret->count = ret->paths_used = 0;
        if (length > COMPLAINTS_TEXT_MAX) {
                text += length - COMPLAINTS_TEXT_MAX;
                length = COMPLAINTS_TEXT_MAX;
        }
        length = complaints_clean(text, length, ret);
        for (char *end = ret->text + length, *start; end > ret->text;
             end = start - (start > ret->text)) {
                Line line = { .end = end };

                for (start = end; start > ret->text && start[-1] != '\0';)
                        start--;
                line.start = start;
                complaints_add_program(ret, start);
                if (line_find_phrase(&line))
                        add_line(ret, &line);
        }
}

bool complaints_is_part(const Complaints *complaints, size_t i) {
        const Complaint *part = &complaints->items[i];
        const size_t length = strlen(part->path);

        for (size_t j = 0; j < complaints->count; j++) {
                const Complaint *whole = &complaints->items[j];

                if (whole->refused && whole->errnum == part->errnum &&
                    str_starts(whole->path, part->path) && whole->path[length] == ' ')
                        return true;
        }
        return false;
}

bool complaint_is_change(int errnum) {
        return errnum == EROFS || errnum == EBUSY || errnum == EACCES || errnum == EPERM ||
               errnum == EXDEV;
}

bool complaint_is_rename(int errnum) {
        return errnum == EBUSY || errnum == EXDEV || errnum == EOVERFLOW;
}
