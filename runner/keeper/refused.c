/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the paths that the sandbox has refused to a command or run, and the limits that it reached.
 */
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "keeper/keeper.h"
#include "outcome/complaints.h"
#include "outcome/network-words.h"

static char *overheard_text(const Process *process, size_t *ret_length) {
        Tail tail;
        char *text;

        process_overheard(process, &tail);
        text = malloc(tail.length + 1);
        if (!text)
                return NULL;
        memcpy(text, tail.data, tail.length);
        text[tail.length] = '\0';
        *ret_length = tail.length;
        return text;
}

char *keeper_last_words(const Process *process) {
        size_t length = 0;
        char *text = process->overheard ? overheard_text(process, &length)
                                        : capture_text(&process->output, 1, &length);
        const size_t from = length > TAIL_MAX ? length - TAIL_MAX : 0;

        if (!text)
                return NULL;
        memmove(text, text + from, length - from + 1);
        for (size_t i = 0; i < length - from; i++)
                if (text[i] == '\0')
                        text[i] = ' ';
        return text;
}

/* Returns the end of what the process wrote to stderr, and more. Owned by the caller. */
static char *last_words_and(const Process *process, const char *more) {
        _cleanup_free_ char *text = keeper_last_words(process);

        return text ? str_format("%s\n%.*s", text, COMPLAINTS_TEXT_MAX / 2, more) : NULL;
}

static void audit_refusal(const Keeper *keeper, const Process *process, const Refusal *refusal) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        refused_write(&w, refusal);
        keeper_audit_denial_of(keeper, process, &w);
}

/* text: the messages of the command. programs: see refused_find(). */
static Refusals *keeper_judge_text(const Keeper *keeper, const Process *process, const char *text,
                                   char *const *words, const char *const *programs, Symptoms *ret) {
        _cleanup_free_ char *cwd = path_join(keeper->plan.cwd, process->cwd);
        const size_t length = strlen(text);
        Refusals *found;

        if (!cwd)
                return NULL;
        ret->limits_hit = limits_hit_find(&keeper->plan, text, length, keeper->sandbox.root_fd,
                                          NULL, process->outcome.signal);
        ret->network_missed = network_words_missed(keeper->plan.network, text, length);
        found = refused_find(&keeper->launch, cwd, false, words && length <= 1 ? NULL : text,
                             length, (const char *const *)words, programs, keeper->sandbox.root_fd);
        for (unsigned i = 0; found && i < found->count; i++)
                audit_refusal(keeper, process, &found->items[i]);
        return found;
}

Refusals *keeper_find_refusals(const Keeper *keeper, const Process *process, const char *more,
                               char *const *words, Symptoms *ret) {
        _cleanup_free_ char *text = last_words_and(process, more), *program = NULL;
        const char *started[3] = { NULL };

        *ret = (Symptoms){ 0 };
        if (!text)
                return NULL;
        program = strndup(process->command, strcspn(process->command, " "));
        started[0] = program;
        started[1] = program ? process->command + strlen(program) : NULL;
        /* Missing settings are searched for only at the first question about a command. The next
         * one brings the client's own text or words. A failed run of code (its message is in more)
         * says nothing about the interpreter's settings. */
        return keeper_judge_text(keeper, process, text, words, !words && !more[0] ? started : NULL,
                                 ret);
}

Refusals *keeper_find_running(const Keeper *keeper, const Process *process, const char *text,
                              Symptoms *ret) {
        *ret = (Symptoms){ 0 };
        return text[0] ? keeper_judge_text(keeper, process, text, NULL, NULL, ret) : NULL;
}
