/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/moved.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/escapes.h"
#include "guards/guard.h"

/* A file that was set aside, with its old and its new name. */
typedef struct Version {
        char *now, *before; /* owned; host paths. now is NULL if no command may name them. */
        bool again;         /* Its new name has a number, so an earlier version was set aside. */
} Version;

typedef struct Versions {
        Version *items; /* owned */
        size_t count;
} Versions;

static void versions_clear(Versions *versions) {
        for (size_t i = 0; versions->items && i < versions->count; i++) {
                free(versions->items[i].now);
                free(versions->items[i].before);
        }
        free(versions->items);
}

/* Whether people may paste the path as a word of a command. */
static bool may_paste(const char *path) {
        _cleanup_free_ char *word = path ? str_word(path) : NULL;

        return word;
}

/* Finds the old name: the name before the suffix. A project's policy file may have chosen a name
 * that is unsafe to paste; ret->now stays NULL then. */
static void version_find(const char *workspace, const char *moved, Version *ret) {
        _cleanup_free_ char *now = moved[0] == '/' ? strdup(moved)
                                   : workspace     ? str_format("%s/%s", workspace, moved)
                                                   : NULL;
        size_t length = strlen(moved);

        while (length > 0 && !str_starts(moved + length, GUARD_SUFFIX))
                length--;
        if (!now || length == 0 || moved[length - 1] == '/')
                return;
        ret->before = strndup(now, strlen(now) - strlen(moved) + length);
        ret->again = str_starts(moved + length, GUARD_SUFFIX ".") &&
                     !str_starts(moved + length, GUARD_SUFFIX ".lock");
        if (may_paste(ret->before) && may_paste(now))
                ret->now = TAKE_PTR(now);
}

static bool version_has_command(const Versions *versions, size_t i) {
        return versions->items[i].now;
}

static bool version_is_of(const Versions *versions, size_t i, const char *before) {
        return version_has_command(versions, i) && streq(versions->items[i].before, before);
}

static void print_command(const char *program, const char *first, const char *second, FILE *out) {
        _cleanup_free_ char *one = str_word(first), *other = str_word(second);

        if (one && other)
                (void)fprintf(out, "  %s %s %s\n", program, one, other);
}

/* Prints the commands for the versions of one path, the first of which is versions->items[first].
 */
static void print_way_back(const Versions *versions, size_t first, FILE *out) {
        const Version *version = &versions->items[first];
        const bool exists = access(version->before, F_OK) == 0;
        bool several = version->again;

        for (size_t i = first; i < versions->count; i++) {
                if (!version_is_of(versions, i, version->before))
                        continue;
                several |= i > first;
                if (exists || i > first)
                        print_command("diff", exists ? version->before : version->now,
                                      versions->items[i].now, out);
        }
        if (several)
                (void)fputs("  holt set aside several versions of this file. Merge them into this "
                            "one before you move it:\n",
                            out);
        print_command("mv -T", version->now, version->before, out);
}

/* Whether an earlier item is a version of the same path. */
static bool version_is_later(const Versions *versions, size_t at) {
        for (size_t i = 0; i < at; i++)
                if (version_is_of(versions, i, versions->items[at].before))
                        return true;
        return false;
}

static void print_ways_back(const Versions *versions, FILE *out) {
        size_t ways = 0;

        for (size_t i = 0; i < versions->count; i++) {
                if (!version_has_command(versions, i) || version_is_later(versions, i))
                        continue;
                if (ways++ == 0)
                        (void)fputs(", then move it back if you trust it:\n", out);
                print_way_back(versions, i, out);
        }
        if (ways == 0)
                (void)fputs(" before you use it.\n", out);
}

/* Returns whether one of the paths is a .git or lies in one. */
static bool concerns_git(const StrList *moved) {
        for (size_t i = 0; i < moved->count; i++)
                for (const char *part = moved->items[i]; part; part = strchr(part, '/')) {
                        part += *part == '/';
                        if (str_starts(part, ".git/") || str_starts(part, ".git" GUARD_SUFFIX))
                                return true;
                }
        return false;
}

/* Texts in front of the new name of each path. */
static const char *const moved_texts[] = {
        [MOVED_MADE] = "set aside a new entry at a protected path; it is now",
        [MOVED_REPLACED] = "set aside the new file at a protected path; it is now",
        [MOVED_STILL] =
                ("the host replaced a protected file while the session ran; the new file is still"),
};
static_assert(ELEMENTSOF(moved_texts) == MOVED_WHY_MAX, "each reason has a text");

/* Returns why these files may be dangerous. */
static const char *moved_danger(const StrList *moved, MovedWhy why) {
        if (why != MOVED_MADE)
                return "It may be yours, but a command could have changed it";
        return concerns_git(moved) ? "Git on the host would use it"
                                   : "Programs on the host would treat it as yours";
}

static void print_title(const StrList *moved, MovedWhy why, FILE *out) {
        for (size_t i = 0; i < moved->count; i++) {
                char name[256];

                (void)fprintf(out, "holt: %s %s\n", moved_texts[why],
                              str_quote(moved->items[i], name, sizeof(name)));
        }
}

void moved_report(const StrList *moved, const MovedFrom *from, FILE *out) {
        _cleanup_(versions_clear) Versions versions = { 0 };

        if (moved->count == 0)
                return;
        print_title(moved, from->why, out);
        versions.items = calloc(moved->count, sizeof(*versions.items));
        versions.count = versions.items ? moved->count : 0;
        for (size_t i = 0; i < versions.count; i++)
                version_find(from->workspace, moved->items[i], &versions.items[i]);
        if (from->why == MOVED_STILL)
                (void)fprintf(out,
                              "  So holt killed everything that ran in the session; see holt "
                              "history %s.\n",
                              from->session ? from->session : "NAME");
        (void)fprintf(out, "  %s.", moved_danger(moved, from->why));
        if (from->why == MOVED_STILL)
                (void)fprintf(out, " Stop the session first: holt stop %s.\n ",
                              from->session ? from->session : "NAME");
        (void)fputs(" Look at it", out);
        print_ways_back(&versions, out);
        if (from->why == MOVED_STILL)
                (void)fputs("  If you do not need the new file, remove it. Until then, holt "
                            "repeats this message.\n",
                            out);
}
