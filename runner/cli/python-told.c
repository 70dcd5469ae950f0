/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/python-told.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "cli/ask.h"
#include "cli/exec-result.h"
#include "cli/report.h"

/* Returns the type of a display. *ret_printed: its text was already printed as the result. */
static const char *display_type(const JsonValue *display, const char *result, bool *ret_printed) {
        const char *type = "text/plain";
        bool image = false;

        for (const JsonValue *v = json_first(display); v; v = json_next(v))
                if (!streq(json_key(v), "text/plain") && !image) {
                        type = json_key(v);
                        image = str_starts(type, "image/");
                }
        *ret_printed = !image && result && streq(json_member_text(display, "text/plain"), result);
        return type;
}

void python_tell_displays(const JsonValue *result) {
        const char *text = json_string(json_member(result, "result"));
        const JsonValue *displays = json_member(result, "displays");
        char type[64] = "";
        bool printed, others = false;
        size_t count = 0;

        for (const JsonValue *d = json_first(displays); d; d = json_next(d)) {
                char seen[sizeof(type)];

                (void)str_visible(display_type(d, text, &printed), seen, sizeof(seen));
                if (printed)
                        continue;
                if (count++ == 0)
                        (void)strcpy(type, seen);
                others |= !streq(type, seen);
        }
        if (count > 0)
                (void)fprintf(stderr, "holt: %zu display%s (%s%s) not printed; --json prints %s\n",
                              count, count > 1 ? "s" : "", type, others ? " and others" : "",
                              count > 1 ? "them" : "it");
}

/* Returns how many bytes of output did not arrive. The session waits for this client only while the
 * code runs. Bytes that the session has dropped do not matter, because they were printed as they
 * came. */
static uint64_t count_missed(const JsonValue *result, uint64_t printed) {
        uint64_t all = json_member_uint(result, "stdout_dropped") +
                       json_member_uint(result, "stderr_dropped");
        const char *const kept[] = { json_member_text(result, "stdout"),
                                     json_member_text(result, "stderr") };

        for (size_t i = 0; i < ELEMENTSOF(kept); i++) {
                _cleanup_free_ char *bytes = NULL;
                size_t length = 0;

                if (base64_decode(kept[i], &bytes, &length) == 0)
                        all += length;
        }
        return all > printed ? all - printed : 0;
}

void python_tell_missed(const JsonValue *result, uint64_t printed) {
        const uint64_t missed = count_missed(result, printed);

        if (missed > 0)
                (void)fprintf(stderr,
                              "holt: the last %" PRIu64
                              " bytes of output are missing, because they came faster than the "
                              "reader read them\n  --json prints the first bytes of each stream; "
                              "--output sets how many.\n",
                              missed);
}

/* After a stop, people may not expect that a name of an earlier run is unknown. */
static void told_tell_forgotten(const JsonValue *result) {
        const char *error = json_member_text(json_member(result, "error"), "name");
        bool anew = false;

        (void)json_bool(json_member(result, "new_interpreter"), &anew);
        if (anew && streq(error, "NameError"))
                (void)fputs("holt: the variables of earlier runs are lost, because the session or "
                            "its interpreter has ended since\n",
                            stderr);
}

typedef struct ToldWords {
        const char *noun, *owns, *next; /* "interpreter", "variables", "run" */
} ToldWords;

static void told_tell_lost(const JsonValue *result, const ToldWords *words) {
        (void)fprintf(stderr,
                      "holt: the %s ended after the last %s (%s)\n  Its %s are lost. This %s had a "
                      "new %s.\n",
                      words->noun, words->next, json_member_text(result, "lost"), words->owns,
                      words->next, words->noun);
}

static void told_tell_end(const JsonValue *result, uint64_t asked, bool fresh,
                          const ToldWords *words) {
        const char *cause = json_member_text(result, "cause");
        bool kept = false;

        report_unrecorded(json_member_text(result, "unrecorded"), stderr);
        if (json_member_text(result, "lost")[0])
                told_tell_lost(result, words);
        else
                told_tell_forgotten(result);
        (void)json_bool(json_member(result, "state_kept"), &kept);
        if (streq(cause, "timeout"))
                exec_result_tell_time_over(result, asked);
        else if (!kept)
                (void)fprintf(stderr, "holt: the %s ended (%s, %" PRIu64 ")\n", words->noun, cause,
                              json_member_uint(result, "exit_code"));
        if (!kept && !fresh)
                (void)fprintf(stderr, "  Its %s are lost. The next %s has a new %s.\n", words->owns,
                              words->next, words->noun);
}

void python_tell_end(const JsonValue *result, uint64_t asked, bool fresh) {
        static const ToldWords words = { "interpreter", "variables", "run" };

        told_tell_end(result, asked, fresh, &words);
}

void shell_tell_end(const JsonValue *result, uint64_t asked) {
        static const ToldWords words = { "shell", "directory, variables and functions", "call" };

        told_tell_end(result, asked, false, &words);
}
