/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/refused.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "outcome/refused-command.h"
#include "outcome/refused-host.h"
#include "outcome/refused-links.h"
#include "outcome/refused-program.h"
#include "outcome/refused-rules.h"

static bool search_judge(const Search *search, const Complaint *complaint, const char *base) {
        _cleanup_(suspect_clear) Suspect s = { .complaint = complaint,
                                               .base = base,
                                               .path = path_join(base, complaint->path) };

        if (!s.path || strlen(s.path) >= PATH_MAX || streq(s.path, "/") ||
            (complaint->errnum != ENOENT && refused_is_private(search->plan, s.path)))
                return false;
        s.mount = plan_mount_above(search->plan, s.path);
        s.host = s.mount && plan_mount_shows_host(s.mount)
                         ? str_format("%s%s", s.mount->source, s.path + strlen(s.mount->target))
                         : strdup(s.path);
        return s.host && refused_judge(search, &s);
}

/* Judges a relative path from each directory to which the command changes. */
static bool search_judge_moved(Search *search, const Complaint *complaint, const char *cwd,
                               const char *const *argv) {
        CommandWords words = argv_words(argv);
        _cleanup_free_ char *base = strdup(cwd);
        const bool here = search->here;
        char directory[COMMAND_WORD_MAX + 1];
        bool found = false;

        search->here = false;
        while (!found && base && complaint->path[0] != '/' &&
               argv_next_directory(&words, directory)) {
                char *next = path_join(base, directory);

                free(base);
                base = next;
                found = base && strlen(base) < PATH_MAX && search_judge(search, complaint, base);
        }
        search->here = here;
        return found;
}

/* sed -i reports only its temporary file. The refused file is one of the command's words. */
static void search_victims(Search *search, const char *cwd, const char *const *argv, int errnum) {
        CommandWords words = argv_words(argv);
        char path[COMMAND_WORD_MAX + 1];
        const Complaint complaint = { .path = path, .errnum = errnum };
        bool directory = false;

        for (size_t left = COMPLAINTS_MAX; left > 0 && argv_next_word(&words, path); left--) {
                if (!directory && !search_judge(search, &complaint, cwd))
                        (void)search_judge_moved(search, &complaint, cwd, argv);
                directory = argv_is_changer(path);
        }
}

static void search_text(Search *search, const char *cwd, const char *const *argv, const char *text,
                        size_t length) {
        const LaunchPlan *plan = search->plan;
        Complaints *complaints = malloc(sizeof(*complaints));

        if (!complaints)
                return;
        complaints_find(text, length, complaints);
        for (size_t i = 0; i < complaints->count; i++) {
                Complaint *complaint = &complaints->items[i];

                if (complaint->program) {
                        (void)refused_program(search, complaint);
                        continue;
                }
                complaint->refused = complaints_is_part(complaints, i) ||
                                     search_judge(search, complaint, cwd) ||
                                     search_judge_moved(search, complaint, cwd, argv);
                /* Programs such as git name paths relative to the top of the workspace. */
                if (!complaint->refused && complaint->path[0] != '/' && plan->workspace &&
                    !streq(plan->workspace, cwd) && complaint->errnum != ENOENT)
                        (void)search_judge(search, complaint, plan->workspace);
        }
        for (size_t i = 0; i < complaints->count && search->found->count == 0; i++)
                if (complaint_is_rename(complaints->items[i].errnum))
                        search_victims(search, cwd, argv, complaints->items[i].errnum);
        free(complaints);
}

/* No message says what failed. A word that names a file of the host may be the reason. */
static void search_words(Search *search, const char *cwd, const char *const *argv) {
        CommandWords words = argv_words(argv);
        char path[COMMAND_WORD_MAX + 1];
        const Complaint complaint = { .path = path,
                                      .errnum = ENOENT,
                                      .creates = argv[0] && argv_is_writer(argv[0]) };

        search->guess = true;
        for (size_t left = COMPLAINTS_MAX; left > 0 && argv_next_word(&words, path);)
                if (strchr(path, '/')) {
                        left--;
                        if (!refused_is_own_file(search->plan, path) &&
                            !search_judge(search, &complaint, cwd))
                                (void)search_judge_moved(search, &complaint, cwd, argv);
                }
        for (unsigned i = 0; i < search->found->count; i++)
                search->found->items[i].errnum = 0;
}

/* Without any message, missing settings of a program are the best guess. */
static void search_links(Search *search, const char *const *argv, int inside_fd) {
        DeadLinks links;

        dead_links_find(search->launch, argv, inside_fd, &links);
        for (unsigned i = 0; i < links.count && search->found->count < REFUSALS_MAX; i++)
                search->found->items[search->found->count++] = (Refusal){
                        .kind = REFUSAL_LINK,
                        .errnum = ENOENT,
                        .count = 1,
                        .path = TAKE_PTR(links.items[i].path),
                        .subject = TAKE_PTR(links.items[i].target)
                };
        dead_links_clear(&links);
}

Refusals *refused_find(const Launch *launch, const char *cwd, bool here, const char *text,
                       size_t length, const char *const *argv, const char *const *programs,
                       int inside_fd) {
        Refusals *found = calloc(1, sizeof(*found));
        Search search = { .launch = launch, .plan = launch->plan, .here = here, .found = found };

        if (!found || plan_writable(launch->plan, &search.writable) < 0)
                found = refused_free(found);
        else if (text)
                search_text(&search, cwd, argv ? argv : programs, text, length);
        else if (argv)
                search_words(&search, cwd, argv);
        if (found && found->count == 0 && programs)
                search_links(&search, programs, inside_fd);
        strlist_clear(&search.writable);
        if (found && text)
                refusals_reverse(found);
        return found && found->count > 0 ? found : refused_free(found);
}
