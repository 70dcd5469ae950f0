/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tool-command.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/sys.h"
#include "sandbox/prepare.h"
#include "sandbox/reach.h"
#include "session/directory.h"
#include "session/settings.h"
#include "session/sources.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define BLANKS " \t\n"
#define OPERATORS ";|&()<>`"
#define SEPARATORS "=:,@"

/* Those of the caller's that a tool gets, besides PATH. */
static const char *const tool_variables[] = { "HOME",   "USER",     "LOGNAME", "SHELL",  "LANG",
                                              "LC_ALL", "LC_CTYPE", "TERM",    "TMPDIR", "TZ" };

/* Words of sh after which a command begins, as it does at the start of a line. */
static const char *const command_words[] = { "!",     "{",    "if",    "then",   "else",
                                             "elif",  "do",   "while", "until",  "exec",
                                             "nohup", "time", "env",   "command" };

typedef struct Check {
        const char *session, *tool;
        const Reach *reach;
        char cwd[PATH_MAX];
        const char *home;
        char *path;    /* the directories of PATH that the session can't write; owned */
        char *dropped; /* the others; owned */
        Error *reterr;
} Check;

/* One word of a command, without its quotes. */
typedef struct Word {
        char text[PATH_MAX];
        size_t length;
        bool plain;   /* no quotes and nothing to expand: its text is its source */
        bool expands; /* the shell puts something in place of what follows text */
        bool program; /* it stands where a command begins */
} Word;

/* --- places --- */

static int refuse(const Check *c, const char *what, const Reached *reached) {
        char word[300], inside[300];

        if (reached->how == REACH_LINKED) {
                (void)error_set(c->reterr, ERROR_POLICY, EPERM,
                                "--tool %.100s: %s has several names (hard links), and session "
                                "\"%s\" may have one that it can write",
                                c->tool, str_quote(what, word, sizeof(word)), c->session);
                return error_cure(c->reterr, -EPERM, "Use a copy of the file.");
        }
        (void)error_set(c->reterr, ERROR_POLICY, EPERM,
                        "--tool %.100s: session \"%s\" can write %s (%s inside), which the host "
                        "would use at each call",
                        c->tool, c->session, str_quote(what, word, sizeof(word)),
                        str_quote(reached->inside, inside, sizeof(inside)));
        return error_cure(c->reterr, -EPERM,
                          "Move it out of the workspace (or the --rw directory), or give that "
                          "read-only: holt create --workspace-mode ro");
}

static bool is_nowhere(int r) {
        return r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ENAMETOOLONG || r == -ELOOP;
}

/* Whether an absolute path leads to what the session can change. *ret_fd may be NULL. */
static int judge_path(const Check *c, const char *path, const char *what, int *ret_fd) {
        _cleanup_close_ int fd = FD_NONE;
        Reached reached;
        int r = reach_path(c->reach, path, &fd, &reached);

        if (reached.how && (r == 0 || is_nowhere(r)))
                return refuse(c, what, &reached);
        if (r < 0 && !is_nowhere(r))
                return error_set(c->reterr, ERROR_SETUP, -r,
                                 "--tool %.100s: cannot tell where %s leads", c->tool, what);
        if (r == 0 && ret_fd)
                *ret_fd = TAKE_FD(fd);
        return 0;
}

/* The program that a script names in its first line, and that program's own words. */
static int judge_interpreter(const Check *c, int path_fd) {
        char line[256], self[40], *word, *next = NULL;
        _cleanup_close_ int fd = FD_NONE;
        ssize_t n;
        int r = 0;

        (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
        fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
        if (n < 2 || line[0] != '#' || line[1] != '!')
                return 0;
        line[n] = '\0';
        line[strcspn(line, "\n")] = '\0';
        for (word = strtok_r(line + 2, " \t", &next); r == 0 && word;
             word = strtok_r(NULL, " \t", &next))
                if (word[0] == '/')
                        r = judge_path(c, word, word, NULL);
        return r;
}

static int judge_file(const Check *c, const char *path, const char *what) {
        _cleanup_close_ int fd = FD_NONE;
        struct stat st;
        int r = judge_path(c, path, what, &fd);

        return r == 0 && fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                       ? judge_interpreter(c, fd)
                       : r;
}

/* --- PATH --- */

static int append(char **list, const char *item, size_t length) {
        char *longer = str_format("%s%s%.*s", *list ? *list : "", *list ? ":" : "", (int)length,
                                  item);

        free(*list);
        *list = longer;
        return longer ? 0 : -ENOMEM;
}

/* A relative directory depends on where the tool is, and so is dropped as well. */
static int split_path(Check *c) {
        const char *path = getenv("PATH");
        int r = 0;

        for (path = path ? path : DEFAULT_PATH; r == 0; path++) {
                const size_t length = strcspn(path, ":");
                _cleanup_free_ char *directory = strndup(path, length);
                _cleanup_close_ int fd = FD_NONE;
                Reached reached = { 0 };

                if (!directory)
                        return -ENOMEM;
                r = directory[0] == '/' ? reach_path(c->reach, directory, &fd, &reached) : 0;
                if (directory[0] == '/' && !reached.how && (r == 0 || is_nowhere(r)))
                        r = append(&c->path, directory, length);
                else
                        r = append(&c->dropped, length ? directory : ".", length ? length : 1);
                path += length;
                if (!*path)
                        break;
        }
        return r;
}

/* The path of name in a directory of list, which is owned by the caller, or NULL. */
static char *find_program(const Check *c, const char *list, const char *name) {
        while (list && *list) {
                const size_t length = strcspn(list, ":");
                _cleanup_free_ char *directory = strndup(list, length);
                char *path = directory ? str_format("%s%s%s/%s", directory[0] == '/' ? "" : c->cwd,
                                                    directory[0] == '/' ? "" : "/", directory, name)
                                       : NULL;

                if (path && access(path, X_OK) == 0)
                        return path;
                free(path);
                list += length + (list[length] == ':');
        }
        return NULL;
}

/* A program that only PATH's writable directories have, or that they have beside others. */
static int judge_program(const Check *c, const char *name) {
        _cleanup_free_ char *dropped = find_program(c, c->dropped, name);
        _cleanup_free_ char *path = find_program(c, c->path, name);
        int r = dropped ? judge_file(c, dropped, dropped) : 0;

        return r == 0 && path ? judge_file(c, path, path) : r;
}

/* --- a word --- */

/* Not normalised: ".." behind a symlink leads elsewhere. */
static char *relative_path(const Check *c, const char *text) {
        return str_format("%s/%s", c->cwd, str_starts(text, "./") ? text + 2 : text);
}

/* Whether text names an existing file, relative to the caller's directory. */
static bool is_relative_file(const Check *c, const char *text) {
        _cleanup_free_ char *path = NULL;

        if (!text[0] || text[0] == '/')
                return false;
        path = relative_path(c, text);
        return path && access(path, F_OK) == 0;
}

/* A "~" that the shell may expand: of the caller or, as "~name", of another user. Owned by the
 * caller; NULL if there is none. */
static char *expand_tilde(const Check *c, const char *text) {
        const size_t length = strcspn(text, "/");
        _cleanup_free_ char *name = strndup(text + 1, length - 1);
        const struct passwd *user = name && name[0] ? getpwnam(name) : NULL;
        const char *home = name && !name[0] ? c->home : user ? user->pw_dir : NULL;

        return home ? str_format("%s%s", home, text + length) : NULL;
}

/* A relative path that leads nowhere stays as it is, and so is looked up in "/" later. */
static int judge_text(const Check *c, const char *text) {
        _cleanup_free_ char *path = NULL;

        if (text[0] == '/')
                return judge_file(c, text, text);
        path = text[0] == '~' ? expand_tilde(c, text) : NULL;
        if (path)
                return judge_file(c, path, text);
        if (!is_relative_file(c, text))
                return 0;
        path = relative_path(c, text);
        return path ? judge_file(c, path, text) : error_oom(c->reterr);
}

/* Absolute paths in quoted code, such as that of python3 -c. */
static int judge_pieces(const Check *c, const Word *word) {
        static const char ends[] = BLANKS OPERATORS SEPARATORS "\"'[]{}!";
        _cleanup_free_ char *copy = strdup(word->text);
        char *piece, *next = NULL;
        int r = copy ? 0 : error_oom(c->reterr);

        if (r < 0)
                return r;
        for (piece = strtok_r(copy, ends, &next); r == 0 && piece;
             piece = strtok_r(NULL, ends, &next))
                if (piece[0] == '/')
                        r = judge_file(c, piece, piece);
        return r;
}

static int judge_word(const Check *c, Word *word) {
        char *slash = strrchr(word->text, '/');
        int r;

        /* The shell may expand this to any name below the directory. */
        if (word->expands)
                word->text[slash ? (size_t)(slash - word->text) + 1 : 0] = '\0';
        if (!word->text[0])
                return 0;
        if (word->program && !strpbrk(word->text, "/="))
                return judge_program(c, word->text);
        r = judge_text(c, word->text);
        if (r == 0 && word->text[0] == '-' && word->text[1] && word->text[2])
                r = judge_text(c, word->text + 2); /* as -Iinclude */
        for (const char *at = strpbrk(word->text, SEPARATORS); r == 0 && at;
             at = strpbrk(at + 1, SEPARATORS))
                r = judge_text(c, at + 1);
        if (r == 0 && !strchr(word->text, '/'))
                r = judge_program(c, word->text); /* as env and xargs start it */
        return r < 0 ? r : judge_pieces(c, word);
}

/* The word as the shell shall have it: absolute, if it names a file in the caller's directory. */
static char *absolute_word(const Check *c, const Word *word, const char *source, size_t length) {
        const char *equals = strchr(word->text, '=');
        const char *text = equals ? equals + 1 : word->text;
        _cleanup_free_ char *path = NULL, *quoted = NULL;

        if (!word->plain || (word->program && !equals && !strchr(text, '/')) ||
            !is_relative_file(c, text))
                return strndup(source, length);
        path = relative_path(c, text);
        quoted = path ? str_word(path) : NULL;
        return quoted ? str_format("%.*s%s", (int)(text - word->text), word->text, quoted) : NULL;
}

/* --- a command --- */

static void word_add(Word *word, char ch) {
        if (!word->expands && word->length + 1 < sizeof(word->text))
                word->text[word->length++] = ch;
}

static void word_add_text(Word *word, const char *text) {
        while (*text)
                word_add(word, *text++);
}

/* "$" and what follows it. Only HOME is known here. */
static size_t word_expand(const Check *c, Word *word, const char *at) {
        static const char *const homes[] = { "${HOME}", "$HOME" };

        word->plain = false;
        for (size_t i = 0; c->home && i < ELEMENTSOF(homes); i++)
                if (str_starts(at, homes[i]) && !isalnum((unsigned char)at[strlen(homes[i])]) &&
                    at[strlen(homes[i])] != '_') {
                        word_add_text(word, c->home);
                        return strlen(homes[i]);
                }
        word->expands = true;
        return 1;
}

/* Finds the quoted text: from after the first quote to after the last. */
static size_t word_quoted(const Check *c, Word *word, const char *at) {
        const char quote = *at;
        size_t i = 1;

        word->plain = false;
        while (at[i] && at[i] != quote) {
                if (quote == '"' && at[i] == '$') {
                        i += word_expand(c, word, at + i);
                        continue;
                }
                if (quote == '"' && at[i] == '\\' && at[i + 1])
                        i++;
                word_add(word, at[i++]);
        }
        return at[i] ? i + 1 : i;
}

/* Reads a word at source. Returns its length there. */
static size_t word_read(const Check *c, Word *word, const char *source) {
        size_t i = 0;

        word->text[0] = '\0';
        word->length = 0;
        word->plain = true;
        word->expands = false;
        if (c->home && path_is_tilde((char[]){ source[0], source[0] ? source[1] : '\0', '\0' })) {
                word->plain = false;
                word_add_text(word, c->home);
                i = 1;
        }
        while (source[i] && !strchr(BLANKS OPERATORS, source[i])) {
                if (source[i] == '\'' || source[i] == '"') {
                        i += word_quoted(c, word, source + i);
                } else if (source[i] == '$') {
                        i += word_expand(c, word, source + i);
                } else if (source[i] == '\\' && source[i + 1]) {
                        word->plain = false;
                        word_add(word, source[i + 1]);
                        i += 2;
                } else {
                        word->expands |= strchr("*?[{", source[i]) != NULL;
                        word->plain &= !word->expands;
                        word_add(word, source[i++]);
                }
        }
        word->text[word->length] = '\0';
        return i;
}

/* Whether a command begins behind the word. */
static bool word_leads(const Word *word) {
        if (!word->program)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(command_words); i++)
                if (streq(word->text, command_words[i]))
                        return true;
        return strchr(word->text, '=') != NULL;
}

/* Checks a command. *ret is what sh is to run, owned by the caller. */
static int check_command(const Check *c, const char *command, char **ret) {
        char *made = strdup("");
        Word word = { .program = true };
        int r = made ? 0 : error_oom(c->reterr);

        while (r == 0 && *command) {
                _cleanup_free_ char *part = NULL, *before = made;
                size_t length = 1;
                bool leads;

                made = NULL;
                if (strchr(BLANKS OPERATORS, *command)) {
                        word.program |= strchr("\n;|&(`", *command) != NULL;
                        part = strndup(command, 1);
                } else {
                        length = word_read(c, &word, command);
                        part = absolute_word(c, &word, command, length);
                        leads = word_leads(&word);
                        r = judge_word(c, &word);
                        word.program = leads;
                }
                made = part ? str_format("%s%s", before, part) : NULL;
                if (r == 0 && !made)
                        r = error_oom(c->reterr);
                command += length;
        }
        if (r < 0)
                free(made);
        else
                *ret = made;
        return r;
}

/* --- all of them --- */

static int check_spec(const Check *c, const char *spec, StrList *ret) {
        const char *equals = strchr(spec, '=');
        _cleanup_free_ char *name = strndup(spec, strcspn(spec, "=")), *command = NULL;
        Check named = *c;
        int r;

        if (!equals)
                return strlist_add(ret, spec) < 0 ? error_oom(c->reterr) : 0;
        named.tool = name ? name : "";
        r = check_command(&named, equals + 1, &command);
        if (r < 0)
                return r;
        return strlist_take(ret, str_format("%s=%s", named.tool, command)) < 0
                       ? error_oom(c->reterr)
                       : 0;
}

/* A directory that the session can write is no HOME: programs obey what is in it. */
static int write_env(const Check *c, StrList *ret) {
        int r = strlist_take(ret, str_format("PATH=%s", c->path ? c->path : DEFAULT_PATH));

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(tool_variables); i++) {
                const char *value = getenv(tool_variables[i]);
                _cleanup_close_ int fd = FD_NONE;
                Reached reached = { 0 };

                if (!value || (value[0] == '/' &&
                               (reach_path(c->reach, value, &fd, &reached), reached.how != 0)))
                        continue;
                r = strlist_take(ret, str_format("%s=%s", tool_variables[i], value));
        }
        return r < 0 ? error_oom(c->reterr) : 0;
}

static int read_plan(const char *session, LaunchPlan *ret, Error *reterr) {
        _cleanup_(settings_clear) Settings settings = { 0 };
        _cleanup_close_ int dir_fd = FD_NONE;
        char database[64], path[PATH_MAX];
        Store *store = NULL;
        int r = session_open(session, &dir_fd, path, reterr);

        if (r < 0)
                return r;
        (void)snprintf(database, sizeof(database), "/proc/self/fd/%d/" SESSION_DATABASE, dir_fd);
        r = store_open(database, STORE_READ, &store, reterr);
        if (r == 0)
                r = settings_read(store, &settings, reterr);
        if (r == 0)
                r = settings_plan(&settings, path, ret, reterr);
        if (r == 0)
                r = sources_read(store, path, ret, reterr);
        store_free(store);
        /* A live session has what was at these paths when it started. */
        return r < 0 ? r : prepare_try_mounts(ret, reterr);
}

static int check_all(Check *c, const StrList *specs, StrList *ret_specs, StrList *ret_env) {
        int r = split_path(c) < 0 ? error_oom(c->reterr) : 0;

        for (size_t i = 0; r == 0 && i < specs->count; i++)
                r = check_spec(c, specs->items[i], ret_specs);
        return r < 0 ? r : write_env(c, ret_env);
}

int tool_commands_check(const char *session, const StrList *specs, StrList *ret_specs,
                        StrList *ret_env, Error *reterr) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        Check c = { .session = session, .home = getenv("HOME"), .reterr = reterr };
        Reach *reach = NULL;
        int r = read_plan(session, &plan, reterr);

        if (r == 0 && !getcwd(c.cwd, sizeof(c.cwd)))
                r = error_set(reterr, ERROR_SETUP, errno, "cannot tell the working directory");
        if (r == 0)
                r = reach_new(&plan, &reach, reterr);
        c.reach = reach;
        if (r == 0)
                r = check_all(&c, specs, ret_specs, ret_env);
        free(c.path);
        free(c.dropped);
        reach_free(reach);
        return r;
}
