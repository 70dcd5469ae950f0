/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tool-command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/sys.h"
#include "cli/tool-paths.h"
#include "cli/tool-programs.h"
#include "cli/tool-words.h"
#include "reach/reach.h"
#include "sandbox/prepare.h"
#include "session/directory.h"
#include "session/sources.h"

/* The caller's variables that a tool gets, besides PATH. */
static const char *const tool_variables[] = { "HOME",   "USER",     "LOGNAME", "SHELL",  "LANG",
                                              "LC_ALL", "LC_CTYPE", "TERM",    "TMPDIR", "TZ" };

struct ToolCommands {
        const char *session; /* borrowed, like specs */
        const StrList *specs;
        char cwd[PATH_MAX];
};

/* --- the environment --- */

/* Leaves out HOME if the session can write that directory, because programs obey the files in
 * it. */
static int command_env(ToolPaths *paths, const ToolWords *words, ToolCommand *command) {
        StrList *ret = &command->env;
        int r = strlist_take(ret, str_format("PATH=%s", paths->path));

        (void)words;
        /* Without this variable, every tool in Python would load modules from ~/.local, which the
         * session may be able to write (--rw). */
        if (r == 0)
                r = strlist_add(ret, "PYTHONNOUSERSITE=1");
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(tool_variables); i++) {
                const char *value = getenv(tool_variables[i]);
                const char *path = value && value[0] == ':' ? value + 1
                                                            : value; /* TZ may be ":FILE" */

                if (value && !(path[0] == '/' && tool_paths_reached(paths, path)))
                        r = strlist_take(ret, str_format("%s=%s", tool_variables[i], value));
        }
        return r < 0 ? error_oom(paths->reterr) : 0;
}

/* --- one command --- */

void tool_command_clear(ToolCommand *command) {
        (void)fd_close(command->fd);
        free(command->path);
        strlist_clear(&command->words);
        strlist_clear(&command->env);
        *command = TOOL_COMMAND_NONE;
}

/* Scripts and other files may need their path. Only a readable file can be a script. */
static bool is_binary(int path_fd) {
        char magic[4] = { 0 }, self[40];
        _cleanup_close_ int fd = FD_NONE;

        (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
        fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        return fd < 0 || (read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
                          memcmp(magic, "\177ELF", sizeof(magic)) == 0);
}

static int command_program(ToolPaths *paths, const ToolWords *words, ToolCommand *command) {
        return tool_paths_program(paths, words->items[0].text, &command->path, &command->fd);
}

/* Checks the program, and the paths that the words name. */
static int command_paths(ToolPaths *paths, const ToolWords *words, ToolCommand *command) {
        char real[PATH_MAX];
        bool directories = false;
        int r = tool_programs_check(paths->tool, words,
                                    path_of_fd(command->fd, real) == 0 ? real : "", &directories,
                                    paths->reterr);

        return r < 0 ? r : tool_paths_words(paths, words, directories);
}

static int command_words(ToolPaths *paths, const ToolWords *words, ToolCommand *command) {
        const char *program = words->items[0].text;
        int r = strlist_add(&command->words, strchr(program, '/') ? command->path : program);

        for (size_t i = 1; r == 0 && i < words->count; i++)
                r = strlist_take(&command->words, tool_paths_absolute(paths, &words->items[i]));
        return r < 0 ? error_oom(paths->reterr) : 0;
}

static int (*const command_steps[])(ToolPaths *paths, const ToolWords *words,
                                    ToolCommand *command) = {
        command_program,
        command_paths,
        command_words,
        command_env,
};

static int command_make(ToolPaths *paths, const ToolWords *words, ToolCommand *command) {
        int r = RUN_STEPS(command_steps, paths, words, command);

        command->by_fd = r == 0 && is_binary(command->fd);
        return r;
}

static int command_check(const ToolCommands *commands, const Reach *reach, const char *tool,
                         const char *text, ToolCommand *ret, Error *reterr) {
        ToolPaths paths = { .tool = tool,
                            .session = commands->session,
                            .cwd = commands->cwd,
                            .home = getenv("HOME"),
                            .reach = reach,
                            .reterr = reterr };
        ToolCommand command = TOOL_COMMAND_NONE;
        ToolWords words = { 0 };
        int r = tool_words_split(tool, text, paths.home, &words, reterr);

        if (r == 0)
                r = tool_paths_init(&paths);
        if (r == 0)
                r = command_make(&paths, &words, &command);
        tool_paths_clear(&paths);
        tool_words_clear(&words);
        if (r < 0)
                tool_command_clear(&command);
        else
                *ret = command;
        return r;
}

/* --- directories that programs obey --- */

static int tool_command_is_shown(void *data, const PlanMount *mount, const char *inside,
                                 const char *rest) {
        (void)mount, (void)rest;
        (void)snprintf(data, PATH_MAX, "%s", inside);
        return 1;
}

/* Warns if the session can write directories below HOME: a tool may load modules or settings from
 * there, whatever its command says. If the session can write HOME itself, tools get no HOME. */
static void commands_warn(const ToolCommands *commands, const Reach *reach) {
        static const char *const obeyed[] = { ".local/lib", ".local/bin", ".config" };
        const char *home = getenv("HOME");

        for (size_t i = 0; home && home[0] == '/' && i < ELEMENTSOF(obeyed); i++) {
                _cleanup_free_ char *path = path_join(home, obeyed[i]);
                _cleanup_close_ int fd = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
                char inside[PATH_MAX], quoted[512];

                if (fd >= 0 && reach_each(reach, fd, tool_command_is_shown, inside) == 1)
                        (void)fprintf(stderr,
                                      "holt: --tool: session \"%s\" can write %s (%s inside): a "
                                      "tool may load modules or settings from this directory\n",
                                      commands->session, path,
                                      str_quote(inside, quoted, sizeof(quoted)));
        }
}

/* --- all commands --- */

static int commands_check_all(const ToolCommands *commands, const Reach *reach, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < commands->specs->count; i++) {
                const char *spec = commands->specs->items[i], *equals = strchr(spec, '=');
                _cleanup_free_ char *tool = strndup(spec, strcspn(spec, "="));
                ToolCommand command = TOOL_COMMAND_NONE;

                if (!tool)
                        return error_oom(reterr);
                /* cli/tools.c reports an empty name or command. */
                if (equals && equals != spec && equals[1])
                        r = command_check(commands, reach, tool, equals + 1, &command, reterr);
                tool_command_clear(&command);
        }
        return r;
}

static int tool_command_read_plan(const char *session, LaunchPlan *ret, Error *reterr) {
        _cleanup_(settings_clear) Settings settings = { 0 };
        _cleanup_close_ int dir_fd = FD_NONE;
        char path[PATH_MAX];
        int r = session_open(session, &dir_fd, path, reterr);

        if (r == 0)
                r = sources_open(dir_fd, path, STORE_READ, &settings, ret, reterr);
        /* A live session has the files that were at these paths when it started. */
        return r < 0 ? r : prepare_try_mounts(ret, reterr);
}

static int tool_commands_fill(ToolCommands *commands, Error *reterr) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        _cleanup_(reach_freep) Reach *reach = NULL;
        int r = tool_command_read_plan(commands->session, &plan, reterr);

        if (r < 0)
                return r;
        r = reach_new(&plan, &reach, reterr);
        if (r < 0)
                return r;
        r = commands_check_all(commands, reach, reterr);
        if (r < 0)
                return r;
        commands_warn(commands, reach);
        return 0;
}

int tool_commands_new(const char *session, const StrList *specs, ToolCommands **ret,
                      Error *reterr) {
        ToolCommands *commands = calloc(1, sizeof(*commands));
        int r;

        if (!commands)
                return error_oom(reterr);
        commands->session = session;
        commands->specs = specs;
        if (getcwd(commands->cwd, sizeof(commands->cwd)))
                r = tool_commands_fill(commands, reterr);
        else
                r = error_set(reterr, ERROR_SETUP, errno, "cannot find the working directory");
        if (r < 0)
                tool_commands_free(commands);
        else
                *ret = commands;
        return r;
}

ToolCommands *tool_commands_free(ToolCommands *commands) {
        free(commands);
        return NULL;
}

static const char *commands_find(const ToolCommands *commands, const char *tool) {
        const size_t length = strlen(tool);

        for (size_t i = 0; i < commands->specs->count; i++) {
                const char *spec = commands->specs->items[i];

                if (strncmp(spec, tool, length) == 0 && spec[length] == '=')
                        return spec + length + 1;
        }
        return NULL;
}

int tool_commands_prepare(const ToolCommands *commands, const char *tool, ToolCommand *ret,
                          Error *reterr) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        const char *text = commands_find(commands, tool);
        _cleanup_(reach_freep) Reach *reach = NULL;
        int r;

        if (!text)
                return error_set(reterr, ERROR_MISSING, ENOENT, "the tool does not exist");
        r = tool_command_read_plan(commands->session, &plan, reterr);
        if (r < 0)
                return r;
        r = reach_new(&plan, &reach, reterr);
        return r < 0 ? r : command_check(commands, reach, tool, text, ret, reterr);
}

int tool_command_execute(const ToolCommand *command) {
        const char *const *argv = (const char *const *)command->words.items;
        const char *const *env = (const char *const *)command->env.items;

        if (command->by_fd) {
                (void)sys_execveat(command->fd, "", argv, env, AT_EMPTY_PATH);
                /* A binary of another architecture may have an emulator, which needs the path. */
                if (errno != ENOENT && errno != ENOEXEC && errno != ENOSYS)
                        return -errno;
        }
        (void)execve(command->path, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
        return -errno;
}
