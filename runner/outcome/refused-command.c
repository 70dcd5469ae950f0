/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/refused-command.h"

#include <string.h>

#include "base/strings.h"

CommandWords argv_words(const char *const *argv) {
        return (CommandWords){ .argv = argv && argv[0] ? argv + 1 : NULL };
}

bool argv_next_word(CommandWords *words, char ret[COMMAND_WORD_MAX + 1]) {
        static const char ends[] = " \t\n'\"`;|&<>()=$";

        while (words->argv && *words->argv) {
                const char *start = words->at ? words->at : *words->argv;
                size_t length;

                start += strspn(start, ends);
                length = strcspn(start, ends);
                words->at = start + length;
                if (length == 0) {
                        words->argv++;
                        words->at = NULL;
                } else if (length <= COMMAND_WORD_MAX) {
                        memcpy(ret, start, length);
                        ret[length] = '\0';
                        return true;
                }
        }
        return false;
}

bool argv_is_changer(const char *word) {
        static const char *const changers[] = { "cd", "chdir", "pushd", "-C" };

        for (size_t i = 0; i < ELEMENTSOF(changers); i++)
                if (streq(word, changers[i]))
                        return true;
        return false;
}

bool argv_next_directory(CommandWords *words, char ret[COMMAND_WORD_MAX + 1]) {
        while (argv_next_word(words, ret))
                if (argv_is_changer(ret))
                        return argv_next_word(words, ret);
        return false;
}

bool argv_is_writer(const char *program) {
        static const char *const writers[] = { "mkdir", "tee", "touch", "truncate" };
        const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;

        for (size_t i = 0; i < ELEMENTSOF(writers); i++)
                if (streq(name, writers[i]))
                        return true;
        return false;
}
