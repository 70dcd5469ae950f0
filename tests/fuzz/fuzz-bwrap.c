/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the parser of bubblewrap's options (runner/bwrap/): a command line, and a file that --args
 * names.
 *
 * An accepted command line must give steps that the child can take without further checks.
 *
 * Input format: the words of the command line, each followed by a newline; an empty line; and the
 * content of the file, in which a newline stands for the NUL after a word. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sys.h"
#include "bwrap/options.h"
#include "tests/fuzz/harness.h"

#define ARGS_NUMBER "100"

enum { ARGS_FD = 100, WORDS_MAX = 512 };

static char path[] = "PATH=/usr/bin", policy[] = "HOLT_BWRAP_POLICY=x", empty[] = "EMPTY=";
static char *const environment[] = { path, policy, empty, NULL };
static char program[] = "bwrap";

/* Splits text, which ends in a NUL, at newlines. Returns the number of words. */
static int split(char *text, char **words) {
        int count = 0;

        for (char *word = strtok(text, "\n"); word && count < WORDS_MAX; word = strtok(NULL, "\n"))
                words[count++] = word;
        words[count] = NULL;
        return count;
}

/* Whether --args names the harness's file only. It closes the descriptor, which must not be one of
 * libFuzzer's. */
static bool args_are_harmless(char *const *words) {
        for (; *words; words++)
                if (streq(*words, "--args") && words[1] && !streq(words[1], ARGS_NUMBER))
                        return false;
        return true;
}

static bool make_args(char *content) {
        const size_t length = strlen(content);
        char *copy = strdup(content), *words[WORDS_MAX + 1];
        bool harmless;
        int fd;

        REQUIRE(copy);
        (void)split(copy, words);
        harmless = args_are_harmless(words);
        free(copy);
        for (char *c = content; *c; c++)
                if (*c == '\n')
                        *c = '\0';
        fd = sys_memfd_create("args", MFD_CLOEXEC);
        REQUIRE(fd >= 0 && sys_write_all(fd, content, length) == 0);
        REQUIRE(lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, ARGS_FD) == ARGS_FD && close(fd) == 0);
        return harmless;
}

static void check_step(const Assembly *a, size_t i) {
        const AssemblyStep *step = &a->steps[i];
        const bool copies = step->kind == ASSEMBLY_FILE || step->kind == ASSEMBLY_DATA;
        const bool needs_source = step->kind == ASSEMBLY_SYMLINK || step->kind == ASSEMBLY_LAYER;

        REQUIRE(step->kind >= 0 && step->kind < ASSEMBLY_KIND_MAX);
        REQUIRE(step->option && strncmp(step->option, "--", 2) == 0);
        REQUIRE(step->target || step->kind == ASSEMBLY_LAYER);
        REQUIRE(step->mode <= 07777 && step->size <= INT64_MAX);
        REQUIRE(!copies || step->fd >= 0);
        REQUIRE(!needs_source || step->source);
        REQUIRE(step->kind != ASSEMBLY_BIND || (step->fd >= 0) != (step->source != NULL));
        REQUIRE(step->kind != ASSEMBLY_OVERLAY ||
                (i > 0 && a->steps[i - 1].kind == ASSEMBLY_LAYER &&
                 (step->source != NULL) == (step->work != NULL)));
        REQUIRE(step->kind != ASSEMBLY_LAYER || i + 1 < a->count);
}

static void check(const BwrapWords *words) {
        const Assembly *a = &words->assembly;

        REQUIRE(a->count <= ASSEMBLY_STEPS_MAX && a->filters_count <= ASSEMBLY_FILTERS_MAX &&
                a->locks_count <= ASSEMBLY_LOCKS_MAX);
        for (size_t i = 0; i < a->count; i++)
                check_step(a, i);
        for (size_t i = 0; i < a->filters_count; i++)
                REQUIRE(a->filter_fds[i] >= 0);
        for (size_t i = 0; i < words->env.count; i++)
                REQUIRE(strchr(words->env.items[i], '=') &&
                        strncmp(words->env.items[i], "HOLT_BWRAP_", 11) != 0);
        REQUIRE(a->uid < UINT32_MAX && a->gid < UINT32_MAX);
        REQUIRE(!a->as_pid_1 || a->namespaces & CLONE_NEWPID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = strndup((const char *)data, size), *content,
             *argv[WORDS_MAX + 2] = { program };
        BwrapWords words;
        Error error;
        int argc, r;

        REQUIRE(text);
        content = strstr(text, "\n\n");
        if (content) {
                *content = '\0';
                content += 2;
        }
        argc = 1 + split(text, argv + 1);
        if ((!content || make_args(content)) && args_are_harmless(argv)) {
                r = bwrap_parse(argc, argv, environment, &words, &error);
                REQUIRE(r == 0 || (r < 0 && error.text[0]));
                if (r == 0 && !words.help && !words.version)
                        check(&words);
                bwrap_words_clear(&words);
        }
        (void)close(ARGS_FD);
        free(text);
        return 0;
}
