/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/git-hint.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/home.h"
#include "base/paths.h"
#include "base/strings.h"
#include "git/repository.h"

static bool git_hint_says(const GitHint *hint, const char *words) {
        return hint->text && memmem(hint->text, hint->length, words, strlen(words));
}

/* --- no repository --- */

/* Writes the path of a directory above the working directory, relative to it: "..", "../.." and so
 * on. below is the path from there to the working directory. */
static void git_hint_climb(const char *below, char *ret, size_t size) {
        size_t length = (size_t)snprintf(ret, size, "..");

        for (; (below = strchr(below, '/')) && length + 3 < size; below++)
                length += (size_t)snprintf(ret + length, size - length, "/..");
}

static bool git_hint_tell_above(const GitHint *hint, const char *top, FILE *out) {
        const char *below = path_rest(hint->workspace, top);
        _cleanup_free_ char *word = str_word(top);
        char quoted[400], way[400];

        if (!below || !word)
                return false;
        git_hint_climb(below, way, sizeof(way));
        (void)fprintf(out,
                      "holt: git may have found no repository, because it is %s, above the "
                      "workspace\n  To make "
                      "the repository the workspace: %s--workspace %s\n",
                      str_quote(top, quoted, sizeof(quoted)), hint->before,
                      hint->here ? way : word);
        return true;
}

static bool git_hint_above(const GitHint *hint, FILE *out) {
        _cleanup_close_ int fd = FD_NONE;
        char top[PATH_MAX];

        if (strlen(hint->workspace) >= sizeof(top))
                return false;
        (void)strcpy(top, hint->workspace);
        fd = repository_open_above(top);
        /* A repository as wide as the home directory would be refused as workspace. */
        return fd >= 0 && top[0] && !home_lies_below(top) && git_hint_tell_above(hint, top, out);
}

/* Cuts path before the last `part`. */
static bool git_hint_cut(char *path, const char *part) {
        char *at = NULL;

        for (char *next = path; (next = strstr(next, part)); next++)
                at = next;
        if (at)
                *at = '\0';
        return at != NULL;
}

/* Whether path is a directory of git. A .git file may name any path. */
static bool git_hint_is_git(const char *path) {
        static const char *const parts[] = { "HEAD", "objects", "refs" };
        bool all = !home_lies_below(path);

        for (size_t i = 0; all && i < ELEMENTSOF(parts); i++) {
                _cleanup_free_ char *part = path_join(path, parts[i]);

                all = part && access(part, F_OK) == 0;
        }
        return all;
}

/* The repository of a linked worktree is DIR/.git/worktrees/NAME, and it needs DIR/.git. That of a
 * submodule is DIR/.git/modules/NAME, and its config names the work tree below DIR. */
static bool git_hint_linked(const GitHint *hint, const char *leads, FILE *out) {
        _cleanup_free_ char *outer = strdup(leads), *word = NULL;
        const char *option = "--ro";
        char quoted[400];

        if (!outer || path_below(leads, hint->workspace))
                return false;
        if (git_hint_cut(outer, "/worktrees/")) {
                if (!git_hint_is_git(outer))
                        return false;
        } else {
                if (!git_hint_is_git(leads) || !git_hint_cut(outer, "/.git/modules/") ||
                    !path_below(hint->workspace, outer) || home_lies_below(outer))
                        return false;
                option = "--workspace";
        }
        word = str_word(outer);
        if (word)
                (void)fprintf(out,
                              "holt: git may have found no repository, because it is %s, outside "
                              "the workspace\n"
                              "  To read it (git status, git diff): %s%s %s\n"
                              "  To commit, run git outside the sandbox.\n",
                              str_quote(leads, quoted, sizeof(quoted)), hint->before, option, word);
        return word != NULL;
}

static bool git_hint_repository(const GitHint *hint, FILE *out) {
        _cleanup_close_ int tree_fd = open(hint->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_close_ int fd = FD_NONE;
        _cleanup_free_ char *leads = NULL;

        if (tree_fd < 0 || (hint->text && !git_hint_says(hint, "not a git repository")))
                return false;
        fd = repository_open(tree_fd, hint->workspace, ".git", &leads);
        if (leads)
                return git_hint_linked(hint, leads, out);
        return fd == -ENOENT && git_hint_above(hint, out);
}

/* --- nobody to commit as --- */

/* Whether a command of git that makes commits is among the words: "git", "commit" or a line of a
 * shell. */
static bool git_hint_commits(const char *const *argv) {
        const char *last = argv && argv[0] ? strrchr(argv[0], '/') : NULL;
        const bool git = argv && argv[0] && streq(last ? last + 1 : argv[0], "git");

        for (size_t i = 0; argv && argv[i]; i++)
                if ((git && streq(argv[i], "commit")) || strstr(argv[i], "git commit"))
                        return true;
        return false;
}

static bool git_hint_asks_who(const GitHint *hint) {
        if (hint->identity)
                return false;
        if (!hint->text)
                return hint->exit_code == GIT_FATAL && git_hint_commits(hint->argv);
        return git_hint_says(hint, "Please tell me who you are") ||
               git_hint_says(hint, "empty ident name");
}

bool git_hint_print(const GitHint *hint, FILE *out) {
        bool option = hint->exit_code == GIT_FATAL && hint->workspace &&
                      git_hint_repository(hint, out);

        if (hint->exit_code == 0 || !git_hint_asks_who(hint))
                return option;
        (void)fprintf(out,
                      "holt: git may not know who you are: %s--git-identity passes your "
                      "name and e-mail address\n",
                      hint->before);
        return true;
}
