/* SPDX-License-Identifier: Apache-2.0 */
/* Global options, and the table of verbs.
 *
 * The same sources make two programs. "holt" is linked without any library, so that a command
 * starts as fast as it can. Most verbs, and policy files, need libraries: for these, "holt"
 * executes "holt-full". */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/strings.h"
#include "base/sys.h"
#include "cli/bwrap.h"
#include "cli/fail.h"
#include "cli/full.h"
#include "cli/other-tools.h"
#include "cli/verbs.h"
#include "version.h"

typedef struct Verb {
        const char *name;
        int (*run)(int argc, char **argv); /* NULL if only holt-full has the verb */
        const char *help;
} Verb;

#define LIGHT(name, help) { #name, cmd_##name, help },
#ifdef HOLT_FULL
#define FULL LIGHT
#else
#define FULL(name, help) { #name, NULL, help },
#endif

/* cli/verbs.h holds the rows. */
static const Verb verbs[] = { VERBS(LIGHT, FULL) };

/* Verbs that only holt itself calls. The help does not list them. */
#ifdef HOLT_FULL
#include "keeper/connect.h"
#include "methods/methods.h"

static int run_keeper(int argc, char **argv) {
        size_t count;
        const RpcMethod *methods = session_methods(&count);

        return keeper_main(argc, argv, methods, count);
}

static int run_reader(int argc, char **argv) {
        size_t count;
        const RpcMethod *methods = reader_methods(&count);

        return reader_main(argc, argv, methods, count);
}

static const Verb hidden[] = { { "keeper", run_keeper, NULL }, { "reader", run_reader, NULL } };
#else
static const Verb hidden[] = { { "keeper", NULL, NULL }, { "reader", NULL, NULL } };
#endif

static int print_help(FILE *out) {
        (void)fputs("holt runs untrusted commands in a sandbox made of Linux namespaces.\n\n"
                    "  holt VERB [OPTIONS] ...\n\nVerbs:\n",
                    out);
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                (void)fprintf(out, "  %-12s %s\n", verbs[i].name, verbs[i].help);
        (void)fprintf(out, "  %-12s %s\n", "help", "print the options of a verb: holt help VERB");
        (void)fputs("\nOptions:\n  --help       print this help and exit\n  --version    print the "
                    "version and exit\n\n\"man holt-VERB\" describes a verb in full.\nFirst steps: "
                    "holt run --workspace none -- id; holt doctor\n",
                    out);
        return 0;
}

static int main_unknown_verb(const char *name, bool json) {
        Nearest nearest = { .word = name };
        const char *hint = other_verb_hint(name);
        char quoted[80];
        Error error;

        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                nearest_try(&nearest, verbs[i].name);
        nearest_try(&nearest, "help");
        nearest_try(&nearest, "--help");
        nearest_try(&nearest, "--version");
        (void)str_quote(name, quoted, sizeof(quoted));
        (void)error_set(&error, ERROR_USAGE, 0,
                        name[0] == '-' ? "unknown option \"%s\"" : "unknown verb \"%s\"", quoted);
        if (hint)
                (void)error_cure(&error, 0, "%s", hint);
        else if (nearest.best)
                (void)error_cure(&error, 0, "Did you mean \"holt %s\"?", nearest.best);
        else if (name[0] == '-')
                (void)error_cure(&error, 0,
                                 "The options of a verb follow it: holt run [OPTIONS] -- COMMAND\n"
                                 "holt help VERB lists them.");
        else
                (void)error_cure(&error, 0,
                                 "To run a command: holt run -- COMMAND\n\"holt --help\" "
                                 "lists the verbs.");
        return fail_print(&error, json);
}

/* "holt help VERB" means "holt VERB --help". */
static void ask_verb(int argc, char **argv) {
        static char help[] = "--help";

        for (int i = 1; i + 1 < argc; i++)
                argv[i] = argv[i + 1];
        argv[argc - 1] = help;
}

/* Reports output that could not be written. A disk may be full, and the caller must not take a part
 * of the output for all of it. */
static int main_finish(int r, bool json) {
        Error error;

        errno = 0;
        if (fflush(stdout) == 0 && !ferror(stdout))
                return r;
        if (r != 0)
                return r;
        (void)error_set(&error, ERROR_SETUP, errno, "cannot write to stdout");
        return fail_print(&error, json);
}

static int main_start(int argc, char **argv) {
        if (argc < 2) {
                (void)print_help(stderr);
                return 125;
        }
        if (argc > 2 && streq(argv[1], "help"))
                ask_verb(argc, argv);
        if (streq(argv[1], "--help") || streq(argv[1], "-h") || streq(argv[1], "help"))
                return print_help(stdout);
        if (streq(argv[1], "--version")) {
                (void)puts("holt " HOLT_VERSION);
                return 0;
        }
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (streq(verbs[i].name, argv[1])) {
                        error_name_verb(verbs[i].name);
                        return verbs[i].run ? verbs[i].run(argc - 1, argv + 1) : full_execute(argv);
                }
        for (size_t i = 0; i < ELEMENTSOF(hidden); i++)
                if (streq(hidden[i].name, argv[1]) && hidden[i].run)
                        return hidden[i].run(argc - 1, argv + 1);
        return main_unknown_verb(argv[1], fail_wants_json(argc, argv));
}

/* A link called "bwrap" stands for "holt bwrap". */
static bool main_is_bwrap(const char *name) {
        const char *slash = name ? strrchr(name, '/') : NULL;

        return name && streq(slash ? slash + 1 : name, "bwrap");
}

int main(int argc, char **argv) {
        int r;

        sys_keep_places();
        if (main_is_bwrap(argv[0]))
                return main_finish(bwrap_main(argc, argv, argv), false);
        r = main_start(argc, argv);
        return main_finish(r, fail_wants_json(argc, argv));
}
