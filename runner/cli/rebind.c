/* SPDX-License-Identifier: Apache-2.0 */
/* holt rebind: makes a session at rest accept replaced sources, which are the files and directories
 * that are now at their paths. */
#include <limits.h>
#include <stdio.h>

#include "cli/ask.h"
#include "cli/verbs.h"
#include "session/sources.h"

static int rebind_print_text(const JsonValue *list) {
        char visible[PATH_MAX];

        if (!json_first(list))
                (void)puts("no source was replaced");
        for (const JsonValue *item = json_first(list); item; item = json_next(item)) {
                (void)printf("%s now mounts ", str_visible(json_member_text(item, "target"),
                                                           visible, sizeof(visible)));
                (void)printf("the new %s\n", str_visible(json_member_text(item, "source"), visible,
                                                         sizeof(visible)));
        }
        return 0;
}

static const Option rebind_options[] = {
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, 0, NULL },
};

static int do_rebind(const OptionResult *words, const void *options, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        JsonDocument *document = NULL;
        int r;

        json_write_object(&w, NULL);
        json_write_array(&w, "rebound");
        r = sources_rebind(words->operands[0], &w, reterr);
        if (r < 0)
                return r;
        json_write_end(&w);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        r = json_parse(w.data, w.length, "the answer", &document, reterr);
        if (r < 0)
                return r;
        r = *(const bool *)options ? ask_print_json(json_root(document), reterr)
                                   : rebind_print_text(json_member(json_root(document), "rebound"));
        json_free(document);
        return r;
}

int cmd_rebind(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "rebind",
                            .usage = "NAME [--json]",
                            .summary =
                                    "Lets a session at rest use a mounted file or directory that "
                                    "was replaced. The new one must\nbe at the same path: a "
                                    "renamed directory is not found.",
                            .options = rebind_options,
                            .options_count = ELEMENTSOF(rebind_options),
                            .operands = true },
                .least = 1,
                .most = 1,
                .run = do_rebind,
        };
        bool json = false;

        return ask_main(&verb, &json, argc, argv);
}
