/* SPDX-License-Identifier: Apache-2.0 */
/* Follows git's own parser (config.c there) rule by rule. It reads sections and keys in any case,
 * subsections unchanged, quotes, escapes, comments, continued lines, and a key on the line of its
 * section. */
#include "git/config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

enum { END = -1 };

typedef struct Scanner {
        const char *at, *end;
        /* SECTION. or SECTION.SUBSECTION. followed by the key. SECTION and the key are in lower
         * case. */
        char name[PATH_MAX + 64];
        size_t section; /* Length of the section's part of the name. */
        size_t length;
        char value[PATH_MAX];
        size_t value_length;
} Scanner;

/* The end of the bytes also ends the line. */
static int git_config_peek(const Scanner *scanner) {
        return scanner->at < scanner->end ? (unsigned char)*scanner->at : END;
}

static int git_config_next(Scanner *scanner) {
        if (scanner->end - scanner->at >= 2 && memcmp(scanner->at, "\r\n", 2) == 0)
                scanner->at++;
        return scanner->at < scanner->end ? (unsigned char)*scanner->at++ : '\n';
}

static bool is_space(int c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_key(int c) {
        return c < 0x80 && (isalnum(c) || c == '-');
}

static int git_config_add_name(Scanner *scanner, int c) {
        if (scanner->length + 1 >= sizeof(scanner->name))
                return -E2BIG;
        scanner->name[scanner->length++] = (char)c;
        scanner->name[scanner->length] = '\0';
        return 0;
}

/* Appends to the value. A value that is too long matters only if it is a path, so take() checks
 * that. */
static void add_value(Scanner *scanner, int c) {
        if (scanner->value_length + 1 < sizeof(scanner->value))
                scanner->value[scanner->value_length] = (char)c;
        scanner->value_length++;
}

/* --- [section "subsection"] --- */

static int read_subsection(Scanner *scanner, int c) {
        int r;

        while (c != '\n' && is_space(c))
                c = git_config_next(scanner);
        r = c == '"' ? git_config_add_name(scanner, '.') : -EBADMSG;
        while (r == 0) {
                c = git_config_next(scanner);
                if (c == '"')
                        return git_config_next(scanner) == ']' ? 0 : -EBADMSG;
                if (c == '\\')
                        c = git_config_next(scanner);
                r = c == '\n' ? -EBADMSG : git_config_add_name(scanner, c);
        }
        return r;
}

static int read_section(Scanner *scanner) {
        int r = 0;

        scanner->length = 0;
        while (r == 0) {
                const int c = git_config_next(scanner);

                if (c == ']')
                        break;
                if (is_space(c)) {
                        r = read_subsection(scanner, c);
                        break;
                }
                r = is_key(c) || c == '.' ? git_config_add_name(scanner, tolower(c)) : -EBADMSG;
        }
        if (r == 0)
                r = scanner->length ? git_config_add_name(scanner, '.') : -EBADMSG;
        scanner->section = scanner->length;
        return r;
}

/* --- key = value --- */

/* Returns the character that an escape stands for. Returns 0 at the end of a line, which continues
 * on the next line. */
static int read_escape(Scanner *scanner) {
        static const char written[] = "tbn\\\"", meant[] = "\t\b\n\\\"";
        const int c = git_config_next(scanner);
        const char *found = c ? strchr(written, c) : NULL;

        return c == '\n' ? 0 : found ? meant[found - written] : -EBADMSG;
}

static int read_character(Scanner *scanner, int c, bool *quoted) {
        if (c == '"') {
                *quoted = !*quoted;
                return 0;
        }
        if (c == '\\')
                c = read_escape(scanner);
        if (c > 0)
                add_value(scanner, c);
        return c < 0 ? c : 0;
}

/* Blanks between words belong to the value. A comment lasts to the end of its line. */
static int git_config_read_value(Scanner *scanner) {
        bool quoted = false;
        size_t blanks = 0;
        int r = 0;

        scanner->value_length = 0;
        while (r == 0) {
                const int c = git_config_next(scanner);

                if (c == '\n')
                        break;
                if (is_space(c) && !quoted) {
                        blanks += scanner->value_length > 0;
                        continue;
                }
                if ((c == '#' || c == ';') && !quoted) {
                        while (git_config_next(scanner) != '\n')
                                ;
                        break;
                }
                for (; blanks > 0; blanks--)
                        add_value(scanner, ' ');
                r = read_character(scanner, c, &quoted);
        }
        return r == 0 && quoted ? -EBADMSG : r;
}

/* The list for the variable's values, or NULL if the variable holds no path. */
static StrList *git_config_list_of(const Scanner *scanner, GitConfig *ret) {
        if (streq(scanner->name, "core.hookspath"))
                return &ret->hooks;
        if (streq(scanner->name, "core.worktree"))
                return &ret->worktrees;
        if (streq(scanner->name, "include.path") ||
            (str_starts(scanner->name, "includeif.") &&
             streq(scanner->name + scanner->section, "path")))
                return &ret->includes;
        return NULL;
}

/* A value that is too long for a path is too long for an identity, too. */
static int git_config_take_identity(Scanner *scanner, GitConfig *ret) {
        char **value = streq(scanner->name, "user.name")    ? &ret->user_name
                       : streq(scanner->name, "user.email") ? &ret->user_email
                                                            : NULL;

        if (!value || scanner->value_length >= sizeof(scanner->value))
                return 0;
        scanner->value[scanner->value_length] = '\0';
        free(*value);
        *value = strdup(scanner->value);
        return *value ? 0 : -ENOMEM;
}

/* Names past the bound are left out. */
static int git_config_take_filter(const Scanner *scanner, GitConfig *ret) {
        static const char filter[] = "filter.";
        const char *key = scanner->name + scanner->section;
        const size_t before = strlen(filter);
        _cleanup_free_ char *name = NULL;

        if (!str_starts(scanner->name, filter) || scanner->section <= before + 1 ||
            !(streq(key, "clean") || streq(key, "smudge") || streq(key, "process")) ||
            ret->filters.count >= GIT_CONFIG_PATHS_MAX)
                return 0;
        name = strndup(scanner->name + before, scanner->section - before - 1);
        if (!name)
                return -ENOMEM;
        return strlist_has(&ret->filters, name) ? 0 : strlist_add(&ret->filters, name);
}

static int git_config_take(Scanner *scanner, GitConfig *ret) {
        StrList *list = git_config_list_of(scanner, ret);

        if (!list) {
                int r = git_config_take_filter(scanner, ret);

                return r < 0 ? r : git_config_take_identity(scanner, ret);
        }
        if (ret->hooks.count + ret->includes.count + ret->worktrees.count == GIT_CONFIG_PATHS_MAX ||
            scanner->value_length >= sizeof(scanner->value))
                return -E2BIG;
        scanner->value[scanner->value_length] = '\0';
        if (list == &ret->includes && !str_starts(scanner->name, "includeif.") &&
            strlist_add(&ret->always, scanner->value) < 0)
                return -ENOMEM;
        return strlist_add(list, scanner->value);
}

/* A key without a value means "true", which git does not take for a path. */
static int read_variable(Scanner *scanner, int c, GitConfig *ret) {
        int r;

        scanner->length = scanner->section;
        r = git_config_add_name(scanner, tolower(c));
        while (r == 0 && git_config_peek(scanner) != END && is_key(git_config_peek(scanner)))
                r = git_config_add_name(scanner, tolower(git_config_next(scanner)));
        if (r < 0)
                return r;
        do
                c = git_config_next(scanner);
        while (c == ' ' || c == '\t');
        if (c == '\n')
                return 0;
        r = c == '=' ? git_config_read_value(scanner) : -EBADMSG;
        return r < 0 ? r : git_config_take(scanner, ret);
}

/* --- together --- */

int git_config_read(const char *bytes, size_t size, GitConfig *ret) {
        static const char mark[] = "\xef\xbb\xbf"; /* The byte order mark of UTF-8. */
        Scanner scanner = { .at = bytes, .end = bytes + size };
        int r = 0;

        /* git takes a zero byte for the end of a value and goes on after it. */
        if (size > GIT_CONFIG_SIZE_MAX || memchr(bytes, '\0', size))
                return size > GIT_CONFIG_SIZE_MAX ? -E2BIG : -EBADMSG;
        if (size >= 3 && memcmp(bytes, mark, 3) == 0)
                scanner.at += 3;
        while (r == 0 && scanner.at < scanner.end) {
                const int c = git_config_next(&scanner);

                if (is_space(c))
                        continue;
                if (c == '#' || c == ';')
                        while (git_config_next(&scanner) != '\n')
                                ;
                else if (c == '[')
                        r = read_section(&scanner);
                else
                        r = c < 0x80 && isalpha(c) ? read_variable(&scanner, c, ret) : -EBADMSG;
        }
        return r;
}

void git_config_clear(GitConfig *config) {
        strlist_clear(&config->hooks);
        strlist_clear(&config->includes);
        strlist_clear(&config->always);
        free(config->user_name);
        free(config->user_email);
        strlist_clear(&config->worktrees);
        strlist_clear(&config->filters);
}
