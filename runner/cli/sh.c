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

static int sh_parse(Exec *exec, int argc, char **argv, Error *reterr) {
        static const char *const shell[] = { "bash", NULL };
        OptionResult *words = &exec->line.words;
        int r = options_parse(&sh_syntax, argc, (const char *const *)argv, NULL, words, reterr);

        if (r == 0 && words->operands_count > 0)
                exec->line.name = words->operands[0];
        if (r == 0)
                r = operands_check("sh", sh_syntax.usage, words->operands, words->operands_count, 1,
                                   1, reterr);
        if (r < 0)
                return r;
        exec->line.command = shell;
        return strlist_add(&exec->line.env, "PS1=holt:\\w\\$ ") < 0 ? error_oom(reterr) : 0;
}

int cmd_sh(int argc, char **argv) {
        static Exec exec = EXEC_NONE;
        Error error;
        int r = stdio_open(NULL, &error);

        if (r == 0 && argc == 2 && (streq(argv[1], "--help") || streq(argv[1], "-h"))) {
                options_help(&sh_syntax, stdout);
                return 0;
        }
        if (r == 0)
                r = sh_parse(&exec, argc, argv, &error);
        if (r < 0) {
                exec.line.options.json = fail_wants_json(argc, argv);
                return exec_tell(&exec, &error);
        }
        return exec_main(&exec, &error);
}
