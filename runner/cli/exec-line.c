/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec-line.h"

#include <string.h>

#include "cli/ask.h"
#include "cli/env-file.h"
#include "cli/tools.h"

const char *const exec_keep_names[] = { "head", "tail", NULL };

static const Option exec_options[] = {
        { "--shell", "LINE", "run this line with bash -c instead of COMMAND", OPTION_STRING,
          offsetof(ExecOptions, shell), NULL },
        { "--cwd", "DIR", "start in this directory, relative to the workspace", OPTION_STRING,
          offsetof(ExecOptions, cwd), NULL },
        { "--env", "NAME[=VALUE]", "set an environment variable, or pass one of yours", OPTION_LIST,
          offsetof(ExecOptions, env), NULL },
        { "--env-file", "FILE", "set the environment variables of this file (NAME=VALUE lines)",
          OPTION_LIST, offsetof(ExecOptions, env_files), NULL },
        { "--tool", "NAME[=COMMAND]",
          "tool for code inside: a command on the host, or another client's tool", OPTION_LIST,
          offsetof(ExecOptions, tools), NULL },
        { "--timeout", "TIME", "limit the wall time; at its end, send SIGTERM, then SIGKILL",
          OPTION_STRING, offsetof(ExecOptions, timeout), NULL },
        { "--output", "SIZE", "keep this much of stdout, and as much of stderr, and drop the rest",
          OPTION_STRING, offsetof(ExecOptions, output), NULL },
        { "--keep", "head|tail", "keep the first (head) or the last (tail) bytes of the output",
          OPTION_ENUM, offsetof(ExecOptions, keep), exec_keep_names },
        { "--detach", NULL, "print the id of the process and leave it running", OPTION_BOOL,
          offsetof(ExecOptions, detach), NULL },
        { "--ask", NULL, "ask on your terminal about each host that no rule allows", OPTION_BOOL,
          offsetof(ExecOptions, ask), NULL },
        { "--report", "FILE", "write the result to this file as JSON", OPTION_STRING,
          offsetof(ExecOptions, report), NULL },
        { "--json", NULL, "print the result to stderr as one line of JSON", OPTION_BOOL,
          offsetof(ExecOptions, json), NULL },
};

const OptionSyntax exec_line_syntax = {
        .verb = "exec",
        .usage = "NAME [OPTIONS] [--] COMMAND [ARG...]\n       holt exec NAME [OPTIONS] --shell "
                 "LINE",
        .summary = "Runs COMMAND in session NAME. Starts the session if it is at rest.",
        .options = exec_options,
        .options_count = ELEMENTSOF(exec_options),
        .operand_ends = true,
        .help_epilog = "Exit codes are those of holt run.",
};

static int parse_values(ExecLine *line, Error *reterr) {
        const ExecOptions *options = &line->options;
        int r = ask_timeout(options->timeout, &line->timeout, reterr);

        if (r == 0)
                r = ask_output(options->output, &line->output, reterr);
        if (r < 0)
                return r;
        if (options->detach && options->report) {
                r = error_set(reterr, ERROR_USAGE, 0,
                              "--detach does not wait until the command has ended, so --report has "
                              "no result");
                return error_cure(reterr, r, "Use holt wait NAME ID --json to get the result.");
        }
        if (options->detach && tool_specs_have_command(&options->tools)) {
                r = error_set(reterr, ERROR_USAGE, 0,
                              "--detach does not wait, so holt cannot run the command of --tool");
                return error_cure(reterr, r, "Leave out one of them.");
        }
        line->captured = !options->detach && (options->output || options->keep != KEEP_UNSAID);
        return 0;
}

static int parse_options(ExecLine *line, int argc, char **argv, Error *reterr) {
        options_clear(&line->words);
        return options_parse(&exec_line_syntax, argc, (const char *const *)argv, &line->options,
                             &line->words, reterr);
}

/* Parses the options before the session's name and after it, then the command. If a "--" is in
 * front of the first operand, this operand belongs to the command, and the name is missing. */
static int parse_words(ExecLine *line, int argc, char **argv, Error *reterr) {
        const OptionResult *words = &line->words;
        int r = parse_options(line, argc, argv, reterr);

        if (r < 0 || words->help || words->operands_count == 0)
                return r;
        line->name = words->operands[0];
        while (argv[1] != line->name) {
                argc--;
                argv++;
        }
        if (streq(argv[0], "--"))
                line->name = NULL;
        return line->name ? parse_options(line, argc - 1, argv + 1, reterr) : 0;
}

/* Makes the command of --shell. Reports and results show it as the command. */
static int take_shell(ExecLine *line, Error *reterr) {
        const char *const words[] = { "bash", "-c", line->options.shell, NULL };
        int r;

        static_assert(sizeof(words) == sizeof(line->shell_words),
                      "shell_words has room for these words");
        if (!line->options.shell)
                return 0;
        if (line->command[0]) {
                r = error_set(reterr, ERROR_USAGE, 0, "COMMAND and --shell exclude each other");
                return error_cure(reterr, r,
                                  "Put the whole line into --shell: --shell 'make && ./a'");
        }
        (void)memcpy(line->shell_words, words, sizeof(words));
        line->command = line->shell_words;
        return 0;
}

int exec_line_parse(ExecLine *line, int argc, char **argv, Error *reterr) {
        const char *lacking = NULL;
        int r = parse_words(line, argc, argv, reterr);

        if (r < 0 || line->words.help)
                return r;
        line->command = line->words.operands;
        r = take_shell(line, reterr);
        if (r < 0)
                return r;
        if (!line->name)
                lacking = "NAME";
        else if (!line->command[0])
                lacking = "COMMAND";
        if (lacking) {
                r = error_set(reterr, ERROR_USAGE, 0, "missing %s", lacking);
                return error_cure(reterr, r, "holt exec NAME [OPTIONS] -- COMMAND [ARG...]");
        }
        r = env_files_read(&line->options.env_files, &line->options.env, &line->env, reterr);
        return r < 0 ? r : parse_values(line, reterr);
}
