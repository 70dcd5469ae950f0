/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tool-programs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        PROGRAM_SHELL = 1 << 0,  /* takes a script, and no code among its words */
        PROGRAM_CODE = 1 << 1,   /* takes a script, or code among its words; each word is judged */
        PROGRAM_STARTS = 1 << 2, /* starts the program that its words name */
        PROGRAM_SETS = 1 << 3,   /* takes NAME=VALUE words before that program */
        PROGRAM_LINE = 1 << 4,   /* gives a word to a shell, whatever its options */
        PROGRAM_BELOW = 1 << 5,  /* may run files below a directory that a word names */
        PROGRAM_INPUT = 1 << 6,  /* makes words of a program from its input, which is the payload */
};

/* A program by its name, without a version.
 *
 * options and arguments are the letters of the allowed options, without and with an argument of
 * their own; "*" as options allows all. skip is the number of words between the options and the
 * program that it starts. */
typedef struct Program {
        const char *name;
        unsigned flags;
        const char *options, *arguments;
        unsigned skip;
} Program;

#define SHELL_OPTIONS "aefhkmnpuvxBCEHPl"
#define CODE (PROGRAM_CODE | PROGRAM_BELOW)

static const Program programs[] = {
        { "sh", PROGRAM_SHELL, SHELL_OPTIONS, "oO", 0 },
        { "ash", PROGRAM_SHELL, SHELL_OPTIONS, "o", 0 },
        { "bash", PROGRAM_SHELL, SHELL_OPTIONS, "oO", 0 },
        { "rbash", PROGRAM_SHELL, SHELL_OPTIONS, "oO", 0 },
        { "bash-static", PROGRAM_SHELL, SHELL_OPTIONS, "oO", 0 },
        { "dash", PROGRAM_SHELL, SHELL_OPTIONS, "o", 0 },
        { "zsh", PROGRAM_SHELL, "efhkmnpuvxl", "o", 0 },
        { "ksh", PROGRAM_SHELL, "aefhkmnpuvxl", "o", 0 },
        { "ksh93", PROGRAM_SHELL, "aefhkmnpuvxl", "o", 0 },
        { "mksh", PROGRAM_SHELL, "aefhkmnpuvxl", "o", 0 },
        { "lksh", PROGRAM_SHELL, "aefhkmnpuvxl", "o", 0 },
        { "posh", PROGRAM_SHELL, "aefhkmnpuvxl", "o", 0 },
        { "yash", PROGRAM_SHELL, "aefhmnuvx", "o", 0 },
        { "fish", PROGRAM_SHELL, "lNPn", "", 0 },
        { "csh", PROGRAM_SHELL, "efnvx", "", 0 },
        { "tcsh", PROGRAM_SHELL, "efnvx", "", 0 },
        { "nu", PROGRAM_SHELL, "", "", 0 },
        { "elvish", PROGRAM_SHELL, "", "", 0 },
        { "xonsh", PROGRAM_SHELL, "", "", 0 },
        { "pwsh", PROGRAM_SHELL, "", "", 0 },

        { "python", CODE, "*", "", 0 },
        { "pypy", CODE, "*", "", 0 },
        { "perl", CODE, "*", "", 0 },
        { "ruby", CODE, "*", "", 0 },
        { "node", CODE, "*", "", 0 },
        { "nodejs", CODE, "*", "", 0 },
        { "deno", CODE, "*", "", 0 },
        { "bun", CODE, "*", "", 0 },
        { "php", CODE, "*", "", 0 },
        { "lua", CODE, "*", "", 0 },
        { "luajit", CODE, "*", "", 0 },
        { "tclsh", CODE, "*", "", 0 },
        { "expect", CODE, "*", "", 0 },
        { "guile", CODE, "*", "", 0 },
        { "Rscript", CODE, "*", "", 0 },
        { "R", CODE, "*", "", 0 },
        { "julia", CODE, "*", "", 0 },

        { "env", PROGRAM_STARTS | PROGRAM_SETS, "iv", "u", 0 },
        { "nice", PROGRAM_STARTS, "", "n", 0 },
        { "ionice", PROGRAM_STARTS, "t", "cn", 0 },
        { "chrt", PROGRAM_STARTS, "bfiorR", "TPD", 1 },
        { "taskset", PROGRAM_STARTS, "c", "", 1 },
        { "nohup", PROGRAM_STARTS, "", "", 0 },
        { "time", PROGRAM_STARTS, "pvq", "", 0 },
        { "timeout", PROGRAM_STARTS, "v", "ks", 1 },
        { "setsid", PROGRAM_STARTS, "cfw", "", 0 },
        { "stdbuf", PROGRAM_STARTS, "", "ioe", 0 },
        { "unbuffer", PROGRAM_STARTS, "p", "", 0 },
        { "setarch", PROGRAM_STARTS, "RvF", "", 0 },
        { "linux", PROGRAM_STARTS, "RvF", "", 0 }, /* linux32, linux64 */
        { "prlimit", PROGRAM_STARTS, "", "", 0 },
        { "setpriv", PROGRAM_STARTS, "", "", 0 },
        { "choom", PROGRAM_STARTS, "", "n", 0 },
        { "catchsegv", PROGRAM_STARTS, "", "", 0 },
        { "sudo", PROGRAM_STARTS | PROGRAM_SETS, "nHkES", "ugC", 0 },
        { "doas", PROGRAM_STARTS, "n", "u", 0 },
        { "flock", PROGRAM_STARTS, "esxnoF", "wE", 1 },
        { "busybox", PROGRAM_STARTS, "", "", 0 },
        { "toybox", PROGRAM_STARTS, "", "", 0 },
        { "strace", PROGRAM_STARTS, "fqCcrtTvxyk", "aeosSPu", 0 },
        { "ltrace", PROGRAM_STARTS, "fCcrtS", "aeosu", 0 },

        { "su", PROGRAM_LINE, "", "", 0 },
        { "runuser", PROGRAM_LINE, "", "", 0 },
        { "sg", PROGRAM_LINE, "", "", 0 },
        { "newgrp", PROGRAM_LINE, "", "", 0 },
        { "script", PROGRAM_LINE, "", "", 0 },
        { "watch", PROGRAM_LINE, "", "", 0 },
        { "parallel", PROGRAM_LINE, "", "", 0 },
        { "xargs", PROGRAM_INPUT, "", "", 0 },
        { "at", PROGRAM_LINE, "", "", 0 },
        { "batch", PROGRAM_LINE, "", "", 0 },
        { "entr", PROGRAM_LINE, "", "", 0 },
        { "screen", PROGRAM_LINE, "", "", 0 },
        { "tmux", PROGRAM_LINE, "", "", 0 },
        { "hyperfine", PROGRAM_LINE, "", "", 0 },
        { "eatmydata", PROGRAM_STARTS, "", "", 0 },
        { "fakeroot", PROGRAM_STARTS, "u", "ils", 0 },
        { "proot", PROGRAM_LINE, "", "", 0 },
        { "nix-shell", PROGRAM_LINE, "", "", 0 },
        { "systemd-run", PROGRAM_LINE, "", "", 0 },

        { "make", PROGRAM_BELOW, "*", "", 0 },
        { "gmake", PROGRAM_BELOW, "*", "", 0 },
        { "bmake", PROGRAM_BELOW, "*", "", 0 },
        { "ninja", PROGRAM_BELOW, "*", "", 0 },
        { "meson", PROGRAM_BELOW, "*", "", 0 },
        { "cmake", PROGRAM_BELOW, "*", "", 0 },
        { "just", PROGRAM_BELOW, "*", "", 0 },
        { "task", PROGRAM_BELOW, "*", "", 0 },
        { "rake", PROGRAM_BELOW, "*", "", 0 },
        { "ant", PROGRAM_BELOW, "*", "", 0 },
        { "mvn", PROGRAM_BELOW, "*", "", 0 },
        { "gradle", PROGRAM_BELOW, "*", "", 0 },
        { "cargo", PROGRAM_BELOW, "*", "", 0 },
        { "go", PROGRAM_BELOW, "*", "", 0 },
        { "git", PROGRAM_BELOW, "*", "", 0 },
        { "npm", PROGRAM_BELOW, "*", "", 0 },
        { "npx", PROGRAM_BELOW, "*", "", 0 },
        { "pnpm", PROGRAM_BELOW, "*", "", 0 },
        { "yarn", PROGRAM_BELOW, "*", "", 0 },
        { "uv", PROGRAM_BELOW, "*", "", 0 },
        { "pytest", PROGRAM_BELOW, "*", "", 0 },
        { "tox", PROGRAM_BELOW, "*", "", 0 },
        { "nox", PROGRAM_BELOW, "*", "", 0 },
        { "run-parts", PROGRAM_BELOW, "*", "", 0 },
        { "find", 0, "*", "", 0 },
        { "fd", 0, "*", "", 0 },
};

/* Options of various programs, anywhere in a command, that hand words or the payload to another
 * program. */
static const struct {
        const char *program, *option;
} banned[] = {
        { "find", "-exec" },  { "find", "-execdir" }, { "find", "-ok" },  { "find", "-okdir" },
        { "fd", "-x" },       { "fd", "-X" },         { "fd", "--exec" }, { "fd", "--exec-batch" },
        { "make", "--eval" }, { "gmake", "--eval" },
};

typedef struct Programs {
        const char *tool;
        const ToolWords *words;
        bool below;
        Error *reterr;
} Programs;

static int programs_refuse(const Programs *p, const char *name, const char *what) {
        char quoted[100];

        (void)error_set(p->reterr, ERROR_POLICY, 0, "--tool %.100s: %s %s", p->tool,
                        str_quote(name, quoted, sizeof(quoted)), what);
        return error_cure(
                p->reterr, -EPERM,
                "Put the command into a script outside the workspace, and give its path.");
}

/* Finds the program whose name path ends with. A version may follow the name: python3.11. */
static const Program *programs_find(const char *path) {
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        const size_t length = strlen(name);

        for (size_t i = 0; i < ELEMENTSOF(programs); i++) {
                const size_t prefix = strlen(programs[i].name);
                size_t end = length;

                if (streq(name, programs[i].name))
                        return &programs[i];
                while (end > prefix &&
                       (isdigit((unsigned char)name[end - 1]) || strchr(".-", name[end - 1])))
                        end--;
                if (end == prefix && length > prefix && strncmp(name, programs[i].name, end) == 0)
                        return &programs[i];
        }
        return NULL;
}

/* --- options --- */

/* Checks the option letters of one word. Returns how many words they take, or 0 if one letter is
 * not allowed. */
static size_t count_option(const Program *program, const char *letters) {
        for (size_t i = 0; letters[i]; i++) {
                if (strchr(program->arguments, letters[i]))
                        return letters[i + 1] ? 1 : 2;
                if (!strchr(program->options, letters[i]))
                        return 0;
        }
        return 1;
}

static bool is_option(const Program *program, const char *text) {
        return text[0] == '-' || (text[0] == '+' && (program->flags & PROGRAM_SHELL));
}

/* Finds the first word after the options. */
static int programs_options(const Programs *p, const Program *program, size_t at, size_t *ret) {
        char what[400], quoted[200];

        while (at < p->words->count && is_option(program, p->words->items[at].text)) {
                const char *text = p->words->items[at].text;
                size_t taken;

                if (streq(text, "--")) {
                        at++;
                        break;
                }
                taken = text[1] ? count_option(program, text + 1) : 0;
                if (taken == 0) {
                        (void)snprintf(what, sizeof(what), "with %s cannot be a tool's command",
                                       str_quote(text, quoted, sizeof(quoted)));
                        return programs_refuse(p, program->name, what);
                }
                at += taken;
        }
        *ret = at;
        return 0;
}

/* --- one program --- */

/* Returns whether text means stdin, which is the payload, and so comes from the code inside. */
static bool is_stdin(const char *text) {
        return streq(text, "-") || str_starts(text, "/dev/") || str_starts(text, "/proc/");
}

static int programs_shell(const Programs *p, const Program *program, size_t at) {
        int r = programs_options(p, program, at, &at);

        if (r < 0)
                return r;
        if (at >= p->words->count || is_stdin(p->words->items[at].text))
                return programs_refuse(p, program->name,
                                       "without a script would run the tool's input");
        return 0;
}

/* Judges code after an option such as -c, in the same word or in a later one. */
static int programs_code(const Programs *p, const Program *program, size_t at) {
        bool some = false;

        for (; at < p->words->count; at++) {
                const char *text = p->words->items[at].text;

                if (is_stdin(text) && !some)
                        return programs_refuse(p, program->name, "would run the tool's input");
                some |= text[0] != '-' || (text[1] && strchr("ceEmpr", text[1]) && text[2]);
        }
        return some ? 0
                    : programs_refuse(p, program->name,
                                      "without a script would run the tool's input");
}

static int programs_banned(const Programs *p, const char *name, size_t at) {
        for (; at < p->words->count; at++)
                for (size_t i = 0; i < ELEMENTSOF(banned); i++) {
                        const char *text = p->words->items[at].text;
                        const size_t length = strlen(banned[i].option);

                        if (streq(banned[i].program, name) &&
                            strncmp(text, banned[i].option, length) == 0 &&
                            (!text[length] || text[length] == '='))
                                return programs_refuse(
                                        p, name,
                                        "cannot take a program and its arguments from an option");
                }
        return 0;
}

/* Moves *at to the next program of the command, or to its end. */
static int programs_starts(const Programs *p, const Program *program, size_t *at) {
        size_t skip = program->skip;
        int r = programs_options(p, program, *at, at);

        while (r == 0 && *at < p->words->count &&
               (((program->flags & PROGRAM_SETS) && strchr(p->words->items[*at].text, '=')) ||
                skip > 0)) {
                skip -= skip > 0;
                (*at)++;
        }
        return r;
}

/* A program that is not in the table may start a shell as well. */
static int programs_shells(const Programs *p, size_t at) {
        for (; at + 1 < p->words->count; at++) {
                const Program *program = programs_find(p->words->items[at].text);
                const char *next = p->words->items[at + 1].text;

                if (!program || !(program->flags & PROGRAM_SHELL))
                        continue;
                if (next[0] == '-' && next[1] != '-' && strpbrk(next, "cs"))
                        return programs_refuse(p, program->name,
                                               "with -c or -s cannot be in a tool's command");
        }
        return 0;
}

static int programs_at(Programs *p, const char *name, size_t *at, bool *ret_more) {
        const Program *program = programs_find(name);
        int r;

        *ret_more = false;
        if (!program)
                return 0;
        p->below |= (program->flags & PROGRAM_BELOW) != 0;
        if (program->flags & PROGRAM_LINE)
                return programs_refuse(p, program->name,
                                       "cannot be a tool's command, because it starts a shell");
        if (program->flags & PROGRAM_INPUT)
                return programs_refuse(p, program->name,
                                       "cannot be a tool's command, because it turns the tool's "
                                       "input into arguments of a program");
        r = programs_banned(p, program->name, *at);
        if (r == 0 && program->flags & PROGRAM_SHELL)
                r = programs_shell(p, program, *at);
        if (r == 0 && program->flags & PROGRAM_CODE)
                r = programs_code(p, program, *at);
        if (r == 0 && program->flags & PROGRAM_STARTS) {
                r = programs_starts(p, program, at);
                *ret_more = *at < p->words->count;
        }
        return r;
}

/* Judges a program that a word starts, by its own name or by that of a symlink's target. */
static int programs_started(Programs *p, const char *name, size_t *at, bool *ret_more) {
        _cleanup_free_ char *real = NULL;

        if (name[0] == '-')
                return programs_refuse(p, name, "cannot be the name of a program");
        if (!programs_find(name) && strchr(name, '/'))
                real = realpath(name, NULL);
        return programs_at(p, real ? real : name, at, ret_more);
}

int tool_programs_check(const char *tool, const ToolWords *words, const char *program,
                        bool *ret_directories, Error *reterr) {
        Programs p = { .tool = tool, .words = words, .reterr = reterr };
        size_t at = 1;
        bool more;
        int r = programs_at(&p, words->items[0].text, &at, &more);

        while (r == 0 && more) {
                const char *name = words->items[at].text;

                at++;
                r = programs_started(&p, name, &at, &more);
        }
        /* A symlink may give a shell another name. A program such as busybox acts on its own
         * name. */
        if (r == 0 && !programs_find(words->items[0].text)) {
                at = 1;
                r = programs_at(&p, program, &at, &more);
        }
        if (r == 0)
                r = programs_shells(&p, 1);
        *ret_directories = p.below;
        return r;
}
