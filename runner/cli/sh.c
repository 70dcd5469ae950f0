/* SPDX-License-Identifier: Apache-2.0 */
/* holt sh: runs an interactive bash in a session, as holt exec would. */
#include <stdio.h>

#include "cli/exec-internal.h"
#include "cli/fail.h"
#include "cli/operands.h"
#include "cli/verbs.h"
#include "streams/stdio.h"

static const OptionSyntax sh_syntax = {
        .verb = "sh",
        .usage = "NAME",
        .summary = "Runs an interactive bash in session NAME. Starts the session if it is at rest.",
        .operands = true,
};

int cmd_sh(int argc, char **argv) {
        static const char *const shell[] = { "bash", NULL };
        static Exec exec = EXEC_NONE;
        Error error;
        int r = stdio_open(&error);

        if (r == 0 && argc == 2 && (streq(argv[1], "--help") || streq(argv[1], "-h"))) {
                options_help(&sh_syntax, stdout);
                return 0;
        }
        if (r == 0)
                r = options_parse(&sh_syntax, argc, (const char *const *)argv, NULL,
                                  &exec.line.words, &error);
        if (r == 0 && exec.line.words.operands_count > 0)
                exec.line.name = exec.line.words.operands[0];
        if (r == 0)
                r = operands_check("sh", sh_syntax.usage, exec.line.words.operands,
                                   exec.line.words.operands_count, 1, 1, &error);
        if (r == 0 && strlist_add(&exec.line.env, "PS1=holt:\\w\\$ ") < 0)
                r = error_oom(&error);
        if (r < 0) {
                exec.line.options.json = fail_wants_json(argc, argv);
                return exec_tell(&exec, &error);
        }
        exec.line.command = shell;
        return exec_main(&exec, &error);
}
