/* SPDX-License-Identifier: Apache-2.0 */
/* The list of refused paths. */
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "base/strings.h"
#include "outcome/refused-host.h"
#include "outcome/refused.h"

Refusals *refused_free(Refusals *refusals) {
        for (unsigned i = 0; refusals && i < refusals->count; i++) {
                free(refusals->items[i].path);
                free(refusals->items[i].subject);
                free(refusals->items[i].target);
                free(refusals->items[i].typed);
                free(refusals->items[i].why);
                free(refusals->items[i].mounts[0]);
                free(refusals->items[i].mounts[1]);
                free(refusals->items[i].search);
        }
        free(refusals);
        return NULL;
}

static bool same_text(const char *a, const char *b) {
        return a && b ? streq(a, b) : a == b;
}

Refusal *refusals_entry(Refusals *all, RefusalKind kind, const char *subject) {
        for (unsigned i = 0; i < all->count; i++)
                if (all->items[i].kind == kind && same_text(all->items[i].subject, subject))
                        return &all->items[i];
        if (all->count == REFUSALS_MAX)
                return NULL;
        all->items[all->count] = (Refusal){ .kind = kind };
        return &all->items[all->count++];
}

char *refusals_place(RefusalKind kind, const char *subject, const char *path) {
        if (!subject && (kind == REFUSAL_OUT || kind == REFUSAL_LINKED))
                subject = path;
        if (!subject && (kind == REFUSAL_ROOT || kind == REFUSAL_CLOSED))
                return refused_directory_of(path);
        return subject ? strdup(subject) : NULL;
}

void refusals_reverse(Refusals *found) {
        for (unsigned i = 0; i < found->count / 2; i++) {
                const Refusal first = found->items[i];

                found->items[i] = found->items[found->count - 1 - i];
                found->items[found->count - 1 - i] = first;
        }
}

char *refused_typed(const char *typed, const char *path, const char *subject) {
        const size_t whole = strlen(path), part = strlen(subject);
        char *words;
        char *slash;

        if (typed[0] == '/' || typed[0] == '-' || !path_below(path, subject))
                return NULL;
        words = strdup(typed);
        slash = words ? strrchr(words, '/') : NULL;
        if (!words || part == whole)
                return words;
        /* The subject is the directory that contains the path. */
        if (slash && strchr(path + part + 1, '/') == NULL && slash > words && slash[1]) {
                *slash = '\0';
                return words;
        }
        free(words);
        return NULL;
}
