/* SPDX-License-Identifier: Apache-2.0 */
#include "base/glob.h"

#include <errno.h>
#include <string.h>

#include "base/strings.h"
#include "base/utf8.h"

struct Glob {
        StrList parts;
        bool directories, dots;
};

Glob *glob_free(Glob *glob) {
        if (glob)
                strlist_clear(&glob->parts);
        free(glob);
        return NULL;
}

static int glob_split(Glob *glob, const char *pattern) {
        while (*pattern) {
                size_t length = strcspn(pattern, "/");
                _cleanup_free_ char *part = strndup(pattern, length);

                if (!part)
                        return -ENOMEM;
                if (streq(part, ".."))
                        return -EINVAL;
                if (part[0] && !streq(part, ".") && strlist_take(&glob->parts, TAKE_PTR(part)) < 0)
                        return -ENOMEM;
                pattern += length;
                pattern += *pattern == '/';
        }
        return 0;
}

int glob_new(const char *pattern, unsigned flags, Glob **ret) {
        _cleanup_(glob_freep) Glob *glob = calloc(1, sizeof(*glob));
        StrList *parts;
        int r;

        if (!glob)
                return -ENOMEM;
        if (pattern[0] == '/')
                return -EINVAL;
        if (strlen(pattern) > GLOB_PATTERN_MAX)
                return -ENAMETOOLONG;
        parts = &glob->parts;
        glob->directories = pattern[0] && pattern[strlen(pattern) - 1] == '/';
        glob->dots = flags & GLOB_DOTS;
        if (flags & GLOB_ANYWHERE && !strchr(pattern, '/') && strlist_add(parts, "**") < 0)
                return -ENOMEM;
        r = glob_split(glob, pattern);
        if (r < 0)
                return r;
        if (parts->count == 0)
                return -EINVAL;
        /* "**" at the end matches everything in the directory, but not the directory itself. */
        if (streq(parts->items[parts->count - 1], "**") && strlist_add(parts, "*") < 0)
                return -ENOMEM;
        if (parts->count > GLOB_PARTS_MAX)
                return -ENAMETOOLONG;
        *ret = TAKE_PTR(glob);
        return 0;
}

/* "**" may match no directory at all, so the part behind it may match at the same place. */
static uint64_t glob_close(const Glob *glob, uint64_t state) {
        for (size_t i = 0; i < glob->parts.count; i++)
                if (state & UINT64_C(1) << i && streq(glob->parts.items[i], "**"))
                        state |= UINT64_C(1) << (i + 1);
        return state;
}

uint64_t glob_start(const Glob *glob) {
        return glob_close(glob, 1);
}

uint64_t glob_step(const Glob *glob, uint64_t state, const char *name) {
        uint64_t next = 0;

        for (size_t i = 0; i < glob->parts.count; i++) {
                const char *part = glob->parts.items[i];

                if (!(state & UINT64_C(1) << i))
                        continue;
                if (streq(part, "**"))
                        next |= name[0] == '.' && !glob->dots ? 0 : UINT64_C(1) << i;
                else if (glob_name(part, name, glob->dots))
                        next |= UINT64_C(1) << (i + 1);
        }
        return glob_close(glob, next);
}

bool glob_matches(const Glob *glob, uint64_t state, bool directory) {
        return (state >> glob->parts.count & 1) && (directory || !glob->directories);
}

/* --- one name --- */

/* Returns the character at *s, and moves *s behind it. A byte that is not valid UTF-8 counts as a
 * character of its own, which sorts after all others. */
static uint32_t next_char(const char **s) {
        static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
        size_t length = utf8_sequence(*s, strnlen(*s, 4));
        const unsigned char *byte = (const unsigned char *)*s;
        uint32_t c = 0x110000U + byte[0];

        if (length > 0)
                c = byte[0] & masks[length];
        for (size_t i = 1; i < length; i++)
                c = c << 6 | (byte[i] & 0x3f);
        *s += length ? length : 1;
        return c;
}

static uint32_t next_literal(const char **s) {
        if (**s == '\\' && (*s)[1])
                (*s)++;
        return next_char(s);
}

/* Returns the place behind the "]" of the set that starts at s, or NULL if the set has no end. */
static const char *set_end(const char *s) {
        s += *s == '!' || *s == '^';
        s += *s == ']';
        for (; *s && *s != ']'; s++)
                if (*s == '\\' && s[1])
                        s++;
        return *s ? s + 1 : NULL;
}

static bool set_has(const char *s, const char *end, uint32_t c) {
        bool inverted = *s == '!' || *s == '^', found = false;

        s += inverted;
        while (s < end - 1) {
                uint32_t first = next_literal(&s), last = first;

                if (s[0] == '-' && s + 1 < end - 1) {
                        s++;
                        last = next_literal(&s);
                }
                found = found || (first <= c && c <= last);
        }
        return found != inverted;
}

/* Whether the pattern's character at *p matches c. Moves *p behind it. */
static bool matches_one(const char **p, uint32_t c) {
        const char *end = **p == '[' ? set_end(*p + 1) : NULL;
        const char *set = *p + 1;

        if (end) {
                *p = end;
                return set_has(set, end, c);
        }
        if (**p == '?') {
                (*p)++;
                return true;
        }
        return next_literal(p) == c;
}

/* After a mismatch, going back to the last "*" suffices: any characters that an earlier "*" could
 * take, the last one can take too. */
bool glob_name(const char *pattern, const char *name, bool dots) {
        const char *star = NULL, *retry = NULL;

        if (!dots && name[0] == '.' && pattern[0] != '.' &&
            !(pattern[0] == '\\' && pattern[1] == '.'))
                return false;
        while (*name) {
                const char *p = pattern, *n = name;

                if (*p == '*') {
                        star = ++pattern;
                        retry = name;
                } else if (*p && matches_one(&p, next_char(&n))) {
                        pattern = p;
                        name = n;
                } else if (star) {
                        (void)next_char(&retry);
                        pattern = star;
                        name = retry;
                } else {
                        return false;
                }
        }
        pattern += strspn(pattern, "*");
        return *pattern == '\0';
}

/* --- braces --- */

/* Braces in a text, such as "{a,b}". start is at the "{", and end is after the "}". */
typedef struct Braces {
        const char *start, *end;
} Braces;

/* Looks for the end of the braces that open at *start. Returns whether they have a comma. */
static bool braces_close(const char *start, Braces *ret) {
        unsigned depth = 0;
        bool comma = false;

        for (const char *s = start; *s; s++) {
                if (*s == '\\' && s[1])
                        s++;
                else if (*s == '{')
                        depth++;
                else if (*s == ',')
                        comma |= depth == 1;
                else if (*s == '}' && --depth == 0) {
                        *ret = (Braces){ start, s + 1 };
                        return comma;
                }
        }
        return false;
}

static bool braces_find(const char *text, Braces *ret) {
        for (const char *s = text; *s; s++) {
                if (*s == '\\' && s[1])
                        s++;
                else if (*s == '{' && braces_close(s, ret))
                        return true;
        }
        return false;
}

bool glob_is_pattern(const char *text) {
        Braces braces;

        return strpbrk(text, "*?[") || braces_find(text, &braces);
}

/* Returns the end of the alternative that starts at s. */
static const char *braces_alternative(const char *s) {
        for (unsigned depth = 0; depth > 0 || (*s != ',' && *s != '}'); s++) {
                if (*s == '\\' && s[1])
                        s++;
                else if (*s == '{')
                        depth++;
                else if (*s == '}')
                        depth--;
        }
        return s;
}

/* Replaces the first braces by each of their alternatives in turn. */
static int braces_expand(const char *text, size_t max, StrList *ret) {
        Braces braces;
        int r = 0;

        if (!braces_find(text, &braces))
                return strlist_add(ret, text) < 0 ? -ENOMEM : ret->count > max ? -E2BIG : 0;
        for (const char *s = braces.start; r == 0 && s + 1 < braces.end;) {
                const char *end = braces_alternative(s + 1);
                _cleanup_free_ char *one = str_format("%.*s%.*s%s", (int)(braces.start - text),
                                                      text, (int)(end - s - 1), s + 1, braces.end);

                r = one ? braces_expand(one, max, ret) : -ENOMEM;
                s = end;
        }
        return r;
}

int glob_expand(const char *pattern, size_t max, StrList *ret) {
        return strlen(pattern) > GLOB_PATTERN_MAX ? -ENAMETOOLONG
                                                  : braces_expand(pattern, max, ret);
}
