/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tool-paths.h"

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
#include "reach/words.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define NO_PATH "/dev/null" /* a file, so that no path exists below it */
#define PATTERNS                                                                                   \
        "*?[{$%" /* in code, these start a part of a path that is known only when the code runs */

/* --- one path --- */

static int paths_refuse(const ToolPaths *p, const char *what, const Reached *reached) {
        char word[300], inside[300];

        if (reached->how == REACH_LINKED) {
                (void)error_set(p->reterr, ERROR_POLICY, 0,
                                "--tool %.100s: %s has several names (hard links), and session "
                                "\"%s\" may have one that it can write",
                                p->tool, str_quote(what, word, sizeof(word)), p->session);
                return error_cure(p->reterr, -EPERM, "Use a copy of the file.");
        }
        (void)error_set(p->reterr, ERROR_POLICY, 0,
                        "--tool %.100s: session \"%s\" can write %s (%s inside), which the host "
                        "would use at each call",
                        p->tool, p->session, str_quote(what, word, sizeof(word)),
                        str_quote(reached->inside, inside, sizeof(inside)));
        return error_cure(p->reterr, -EPERM,
                          "Move it out of the workspace (or the --rw directory), or make that "
                          "read-only: holt create --workspace-mode ro");
}

static int paths_refuse_opaque(const ToolPaths *p, const char *what) {
        char quoted[300];

        (void)error_set(p->reterr, ERROR_POLICY, 0,
                        "--tool %.100s: %s lies on FUSE or an overlay, and may be a file that "
                        "session \"%s\" can write",
                        p->tool, str_quote(what, quoted, sizeof(quoted)), p->session);
        return error_cure(p->reterr, -EPERM, "Copy it to another file system.");
}

static bool is_nowhere(int r) {
        return r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ENAMETOOLONG || r == -ELOOP;
}

/* Returns whether path depends on the process: the tool has other open files and another
 * directory. */
static bool is_of_process(const char *path) {
        _cleanup_free_ char *normal = path_join("/", path);

        return normal &&
               (path_below(normal, "/proc/self") || path_below(normal, "/proc/thread-self"));
}

static int paths_refuse_process(const ToolPaths *p, const char *what) {
        char quoted[300];

        (void)error_set(p->reterr, ERROR_POLICY, 0,
                        "--tool %.100s: %s would lead to another place in the tool's process",
                        p->tool, str_quote(what, quoted, sizeof(quoted)));
        return error_cure(p->reterr, -EPERM,
                          "Give the path itself. Or put the command into a script outside the "
                          "workspace, and give its path.");
}

/* Refuses an absolute path that leads to a file that the session can change. ret_fd may be NULL. */
static int paths_judge(const ToolPaths *p, const char *path, const char *what, int *ret_fd) {
        _cleanup_close_ int fd = FD_NONE;
        Reached reached;
        int r;

        if (is_of_process(path))
                return paths_refuse_process(p, what);
        r = reach_path(p->reach, path, &fd, &reached);
        if (reached.how && (r == 0 || is_nowhere(r)))
                return paths_refuse(p, what, &reached);
        if (r < 0 && !is_nowhere(r))
                return error_set(p->reterr, ERROR_SETUP, -r,
                                 "--tool %.100s: cannot find out where %s leads", p->tool, what);
        if (r == 0 && reach_opaque(p->reach, fd))
                return paths_refuse_opaque(p, what);
        if (r == 0 && ret_fd)
                *ret_fd = TAKE_FD(fd);
        return 0;
}

bool tool_paths_reached(const ToolPaths *paths, const char *path) {
        _cleanup_close_ int fd = FD_NONE;
        Reached reached;
        int r = reach_path(paths->reach, path, &fd, &reached);

        return reached.how != 0 || (r < 0 && !is_nowhere(r));
}

static int paths_script(const ToolPaths *p, const char *path, const char *what, int depth,
                        int *ret_fd);
static int paths_search(const ToolPaths *p, const char *name, char **ret_path);

typedef struct PathsScript {
        const ToolPaths *paths;
        int depth;
} PathsScript;

/* Judges a word of a script's first line. */
static int paths_interpreter_word(void *data, const char *word) {
        const PathsScript *script = data;
        const ToolPaths *p = script->paths;
        _cleanup_free_ char *found = NULL;
        int r;

        if (word[0] == '/')
                return paths_script(p, word, word, script->depth + 1, NULL);
        r = paths_search(p, word, &found);
        return r == 0 && found ? paths_script(p, found, found, script->depth + 1, NULL) : r;
}

/* Judges the program and its words in a script's first line. The program may be a script itself;
 * the kernel follows a few (binfmt_script). */
static int paths_interpreter(const ToolPaths *p, int path_fd, int depth) {
        PathsScript script = { .paths = p, .depth = depth };

        return depth > SCRIPT_DEPTH_MAX ? 0
                                        : script_words(path_fd, paths_interpreter_word, &script);
}

/* Judges a script and its interpreter. ret_fd may be NULL. */
static int paths_script(const ToolPaths *p, const char *path, const char *what, int depth,
                        int *ret_fd) {
        _cleanup_close_ int fd = FD_NONE;
        struct stat st;
        int r = paths_judge(p, path, what, &fd);

        if (r == 0 && fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                r = paths_interpreter(p, fd, depth);
        if (r == 0 && ret_fd)
                *ret_fd = TAKE_FD(fd);
        return r;
}

static int paths_file(const ToolPaths *p, const char *path, const char *what, int *ret_fd) {
        return paths_script(p, path, what, 0, ret_fd);
}

/* --- PATH --- */

static int tool_path_append(char **list, const char *item, size_t length) {
        char *longer = str_format("%s%s%.*s", *list ? *list : "", *list ? ":" : "", (int)length,
                                  item);

        free(*list);
        *list = longer;
        return longer ? 0 : -ENOMEM;
}

/* A relative directory of PATH is dropped as well, because it depends on the tool's working
 * directory. */
static int paths_sort(ToolPaths *p, const char *list) {
        int r = 0;

        while (r == 0) {
                const size_t length = strcspn(list, ":");
                _cleanup_free_ char *directory = strndup(list, length);

                if (!directory)
                        r = -ENOMEM;
                else if (directory[0] == '/' && !tool_paths_reached(p, directory))
                        r = tool_path_append(&p->path, directory, length);
                else
                        r = tool_path_append(&p->dropped, length ? directory : ".",
                                             length ? length : 1);
                list += length;
                if (!*list++)
                        break;
        }
        return r;
}

int tool_paths_init(ToolPaths *paths) {
        const char *path = getenv("PATH");
        int r = paths_sort(paths, path ? path : DEFAULT_PATH);

        if (r == 0 && !paths->path)
                r = paths_sort(paths, DEFAULT_PATH);
        if (r == 0 && !paths->path)
                r = tool_path_append(&paths->path, NO_PATH, strlen(NO_PATH));
        return r < 0 ? error_oom(paths->reterr) : 0;
}

void tool_paths_clear(ToolPaths *paths) {
        free(paths->path);
        free(paths->dropped);
        strlist_clear(&paths->directories);
}

/* Finds name in the directories of list. The caller owns the path; NULL if it is not found. */
static char *find_in_list(const ToolPaths *p, const char *list, const char *name) {
        struct stat st;

        while (list && *list) {
                const size_t length = strcspn(list, ":");
                _cleanup_free_ char *directory = strndup(list, length);
                char *path = directory ? str_format("%s%s%s/%s", directory[0] == '/' ? "" : p->cwd,
                                                    directory[0] == '/' ? "" : "/", directory, name)
                                       : NULL;

                if (path && access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
                        return path;
                free(path);
                list += length + (list[length] == ':');
        }
        return NULL;
}

/* Finds a program in PATH. Refuses it if a directory that the session can write has a program of
 * that name, too. */
static int paths_search(const ToolPaths *p, const char *name, char **ret_path) {
        _cleanup_free_ char *dropped = find_in_list(p, p->dropped, name);
        int r = dropped ? paths_file(p, dropped, dropped, NULL) : 0;

        if (r == 0)
                *ret_path = find_in_list(p, p->path, name);
        return r;
}

/* --- a part of a word --- */

/* Joins two paths without normalising them: ".." after a symlink leads elsewhere. */
static char *relative_path(const char *base, const char *text) {
        return str_format("%s/%s", streq(base, "/") ? "" : base,
                          str_starts(text, "./") ? text + 2 : text);
}

static bool exists_below(const char *base, const char *text) {
        _cleanup_free_ char *path = relative_path(base, text);
        struct stat st;

        return path && lstat(path, &st) == 0;
}

/* Replaces "~" by the caller's home, and "~name" by another user's. The caller owns the path; NULL
 * if that home does not exist. */
static char *expand_tilde(const ToolPaths *p, const char *text) {
        const size_t length = strcspn(text, "/");
        _cleanup_free_ char *name = strndup(text + 1, length - 1);
        const struct passwd *user = name && name[0] ? getpwnam(name) : NULL;
        const char *home = name && !name[0] ? p->home : user ? user->pw_dir : NULL;

        return home ? str_format("%s%s", home, text + length) : NULL;
}

/* Is called with each path that a part of a word may mean. */
typedef int (*PathFn)(ToolPaths *p, const char *path, const char *what);

static int part_below(ToolPaths *p, const char *base, const char *text, const char *what,
                      PathFn fn) {
        _cleanup_free_ char *path = relative_path(base, text);

        return path ? fn(p, path, what) : error_oom(p->reterr);
}

/* A module such as "package.module" is a file below a directory. */
static int part_module(ToolPaths *p, const char *base, const char *text, PathFn fn) {
        _cleanup_free_ char *path = strdup(text);

        if (!path)
                return error_oom(p->reterr);
        for (char *dot = strchr(path, '.'); dot; dot = strchr(dot, '.'))
                *dot = '/';
        return part_below(p, base, path, text, fn);
}

/* Almost any text without a slash could be a path, so it counts as one only if it exists. */
static int part_relative(ToolPaths *p, const char *text, PathFn fn) {
        const bool slash = strchr(text, '/') != NULL;
        int r = exists_below(p->cwd, text) ? part_below(p, p->cwd, text, text, fn) : 0;

        if (r == 0 && (slash || exists_below("/", text)))
                r = part_below(p, "/", text, text, fn);
        if (r == 0 && slash && p->home && !tool_paths_reached(p, p->home))
                r = part_below(p, p->home, text, text, fn);
        for (size_t i = 0; r == 0 && i < p->directories.count; i++) {
                const char *base = p->directories.items[i];

                if (slash || exists_below(base, text))
                        r = part_below(p, base, text, text, fn);
                else if (text[0] != '.' && strchr(text, '.'))
                        r = part_module(p, base, text, fn);
        }
        return r;
}

static int part_judge(ToolPaths *p, const char *text, PathFn fn) {
        _cleanup_free_ char *home = NULL;

        if (text[0] == '/')
                return fn(p, text, text);
        home = text[0] == '~' ? expand_tilde(p, text) : NULL;
        if (home)
                return fn(p, home, text);
        return text[0] && !streq(text, ".") ? part_relative(p, text, fn) : 0;
}

/* --- the parts of a word --- */

typedef struct WordParts {
        ToolPaths *paths;
        PathFn fn;
} WordParts;

static int word_part_judge(void *data, const char *part) {
        const WordParts *parts = data;

        return part_judge(parts->paths, part, parts->fn);
}

/* Code often puts HOME before a path: "${HOME}/x", environ["HOME"] + "/x". */
static int parts_of_home(ToolPaths *p, const char *text, PathFn fn) {
        _cleanup_free_ char *path = NULL;
        size_t length = 0;

        if (!p->home || tool_paths_reached(p, p->home))
                return 0;
        while (word_is_of_path(text[length]))
                length++;
        path = str_format("%s/%.*s", p->home, (int)length, text);
        return path ? fn(p, path, path) : error_oom(p->reterr);
}

static int parts_of_word(ToolPaths *p, const char *text, PathFn fn) {
        WordParts parts = { .paths = p, .fn = fn };
        int r = 0;

        for (size_t i = 0; r == 0 && text[i]; i++) {
                if (!word_starts_part(text, i))
                        continue;
                r = word_parts_from(text + i, word_part_judge, &parts);
                if (r == 0 && (text[i] == '-' || text[i] == '+'))
                        r = word_parts_of_option(text + i, word_part_judge, &parts);
                if (r == 0 && str_starts(text + i, "HOME/"))
                        r = parts_of_home(p, text + i + 4, fn);
                if (r == 0 && i > 0 && text[i] == '/' && strchr("})\"'", text[i - 1]))
                        r = parts_of_home(p, text + i, fn);
        }
        return r == -ENOMEM ? error_oom(p->reterr) : r;
}

/* --- all words --- */

static int judge_part(ToolPaths *p, const char *path, const char *what) {
        return paths_file(p, path, what, NULL);
}

static int add_directory(ToolPaths *p, const char *path, const char *what) {
        struct stat st;

        (void)what;
        if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode) || strlist_has(&p->directories, path))
                return 0;
        return strlist_add(&p->directories, path) < 0 ? error_oom(p->reterr) : 0;
}

static int tool_path_is_shown(void *data, const PlanMount *mount, const char *inside,
                              const char *rest) {
        (void)mount, (void)rest;
        (void)snprintf(data, PATH_MAX, "%s", inside);
        return 1;
}

static int judge_below(const ToolPaths *p, const char *path) {
        _cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        char inside[PATH_MAX], quoted[300];

        if (fd < 0 || reach_each(p->reach, fd, tool_path_is_shown, inside) <= 0)
                return 0;
        (void)error_set(p->reterr, ERROR_POLICY, 0,
                        "--tool %.100s: session \"%s\" can write below %s (%s inside), where the "
                        "program may look for code",
                        p->tool, p->session, str_quote(path, quoted, sizeof(quoted)), inside);
        return error_cure(p->reterr, -EPERM,
                          "Name another directory. Or put the command into a script outside the "
                          "workspace, and give its path.");
}

/* Returns whether text is probably code. In code, text such as "/" may be any directory. */
static bool is_code(const char *text) {
        return strpbrk(text, " \t\n\"'()") != NULL;
}

/* A path in code may continue with a pattern. It may then lead to anything below the directory
 * before the pattern. */
static int judge_patterns(const ToolPaths *p, const char *text) {
        int r = 0;

        for (size_t i = 0; r == 0 && text[i]; i++) {
                _cleanup_free_ char *part = NULL, *home = NULL;
                size_t length = 0;
                char *slash;

                if (!strchr("/~", text[i]) || (i > 0 && word_is_of_path(text[i - 1])))
                        continue;
                while (word_is_of_path(text[i + length]))
                        length++;
                if (!text[i + length] || !strchr(PATTERNS, text[i + length]))
                        continue;
                part = strndup(text + i, length);
                slash = part ? strrchr(part, '/') : NULL;
                if (!slash || slash == part) /* m/.*x/ is not a path */
                        continue;
                slash[0] = '\0';
                home = part[0] == '~' ? expand_tilde(p, part) : NULL;
                r = judge_below(p, home ? home : part);
        }
        return r;
}

static int find_directories(ToolPaths *p, const ToolWords *words, bool code) {
        int r = 0;

        for (size_t i = 1; r == 0 && i < words->count; i++)
                if (is_code(words->items[i].text) == code)
                        r = parts_of_word(p, words->items[i].text, add_directory);
        return r;
}

/* The program that a word names may be started by env or xargs, for example. */
static int judge_word(ToolPaths *p, const char *text) {
        _cleanup_free_ char *program = NULL;
        int r = parts_of_word(p, text, judge_part);

        if (r == 0 && is_code(text))
                r = judge_patterns(p, text);
        if (r < 0 || !text[0] || strchr(text, '/'))
                return r;
        r = paths_search(p, text, &program);
        return r == 0 && program ? paths_file(p, program, program, NULL) : r;
}

int tool_paths_words(ToolPaths *paths, const ToolWords *words, bool directories) {
        int r;

        strlist_clear(&paths->directories);
        r = find_directories(paths, words, false);
        for (size_t i = 0; r == 0 && directories && i < paths->directories.count; i++)
                r = judge_below(paths, paths->directories.items[i]);
        if (r == 0)
                r = find_directories(paths, words, true);
        for (size_t i = 1; r == 0 && i < words->count; i++)
                r = judge_word(paths, words->items[i].text);
        return r;
}

/* fd: the program, or FD_NONE if it does not exist. */
static int paths_refuse_program(const ToolPaths *paths, const char *word, const char *path, int fd,
                                int errnum) {
        _cleanup_free_ char *shell_word = path ? str_word(path) : NULL;
        char quoted[300];
        struct stat st;
        int r = error_set(paths->reterr, ERROR_USAGE, errnum, "--tool %.100s: cannot execute %s",
                          paths->tool, str_quote(word, quoted, sizeof(quoted)));

        if (fd >= 0 && errnum == EACCES && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
            !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
                return error_cure(paths->reterr, r,
                                  "Its mode allows nobody to execute it: chmod +x %s",
                                  shell_word ? shell_word : "FILE");
        return error_cure(paths->reterr, r,
                          "holt runs a tool's command without a shell. The first word must be the "
                          "path of a program, or a name in PATH.");
}

int tool_paths_program(const ToolPaths *paths, const char *word, char **ret_path, int *ret_fd) {
        _cleanup_close_ int fd = FD_NONE;
        _cleanup_free_ char *path = NULL;
        int r = 0;

        if (strchr(word, '/'))
                path = word[0] == '/' ? strdup(word) : relative_path(paths->cwd, word);
        else
                r = paths_search(paths, word, &path);
        if (r == 0 && path)
                r = paths_file(paths, path, path, &fd);
        if (r == 0 && (fd < 0 || access(path, X_OK) < 0))
                return paths_refuse_program(paths, word, path, fd, fd < 0 ? ENOENT : errno);
        if (r < 0)
                return r;
        *ret_path = TAKE_PTR(path);
        *ret_fd = TAKE_FD(fd);
        return 0;
}

char *tool_paths_absolute(const ToolPaths *paths, const ToolWord *word) {
        const char *equals = strchr(word->text, '=');
        const char *text = equals ? equals + 1 : word->text;

        if (!word->plain || !text[0] || text[0] == '/' || !exists_below(paths->cwd, text))
                return strdup(word->text);
        return str_format("%.*s%s/%s", (int)(text - word->text), word->text, paths->cwd,
                          str_starts(text, "./") ? text + 2 : text);
}
