/* SPDX-License-Identifier: Apache-2.0 */
/* Executes a command like a shell: searches PATH, runs scripts without "#!", and reports the exact
 * cause of a failure. For init.c and session-init.c, which link no libc. The including file
 * provides the kernel's headers and init-sys.h. */
#pragma once

#include "init-protocol.h"

enum { EXECUTE_PATH_MAX = 4096 };

/* argv has a free slot in front of its first item. The child that writes this may share its
 * parent's memory. */
typedef struct Command {
        char *program; /* looked up; argv[0] is only what the command is told */
        char **argv, **env;
        int exec_errno;
        unsigned exec_step; /* INIT_STEP_* */
        char *room;         /* a buffer of EXECUTE_PATH_MAX bytes */
} Command;

/* execve(2) returns ENOENT both for a missing program and for a missing interpreter of its "#!"
 * line or ELF header. */
static int lacks_interpreter(const char *path, long r) {
        return r == -ENOENT && sys3(__NR_faccessat, AT_FDCWD_VALUE, (long)path, 0) == 0;
}

/* Runs a text file without "#!" with the shell, like execvp(3) and POSIX. The free slot in front of
 * argv takes the shell's name; until then it holds init's own flags. */
static long execute_by_shell(Command *command, const char *path) {
        char **argv = command->argv - 1;
        char *program = argv[1];
        long r;

        argv[0] = (char *)"/bin/sh";
        argv[1] = (char *)path;
        r = sys3(__NR_execve, (long)argv[0], (long)argv, (long)command->env);
        argv[1] = program;
        return r;
}

/* Whether a file that execve(2) does not recognise is a script: like in bash and dash, its first
 * line has no NUL. Otherwise it is broken, or made for another machine. */
static int program_is_text(const char *path) {
        char head[80];
        long fd = sys4(__NR_openat, AT_FDCWD_VALUE, (long)path, 0, 0);
        long n = fd < 0 ? 0 : sys3(__NR_read, fd, (long)head, sizeof(head));

        (void)sys1(__NR_close, fd);
        for (long i = 0; i < n && head[i] != '\n'; i++)
                if (head[i] == '\0')
                        return 0;
        return 1;
}

static long execute_path(Command *command, const char *path) {
        long r = sys3(__NR_execve, (long)path, (long)command->argv, (long)command->env);

        return r == -ENOEXEC && program_is_text(path) ? execute_by_shell(command, path) : r;
}

static const char *find_path(char **env) {
        for (; *env; env++) {
                const char *item = *env;

                if (item[0] == 'P' && item[1] == 'A' && item[2] == 'T' && item[3] == 'H' &&
                    item[4] == '=')
                        return item + 5;
        }
        return "/usr/bin:/bin";
}

/* Writes one candidate, DIR/program, to buf. Returns the rest of PATH, or NULL at its end. An empty
 * entry means the working directory and is skipped, because an attacker may have put a program
 * there. */
static const char *next_candidate(const char *path, const char *program,
                                  char buf[EXECUTE_PATH_MAX]) {
        size_t n = 0;

        buf[0] = '\0';
        for (; *path && *path != ':'; path++)
                if (n < EXECUTE_PATH_MAX - 2)
                        buf[n++] = *path;
        if (n > 0 && buf[0] == '/') {
                buf[n++] = '/';
                while (*program && n < EXECUTE_PATH_MAX - 1)
                        buf[n++] = *program++;
                buf[n] = '\0';
                if (*program)
                        buf[0] = '\0';
        } else {
                buf[0] = '\0';
        }
        return *path == ':' ? path + 1 : NULL;
}

static int program_is_path(const char *program) {
        for (; *program; program++)
                if (*program == '/')
                        return 1;
        return 0;
}

/* Chooses the error to report from a search: the error of an existing file wins over a missing one.
 */
static long execute_search(Command *command, char buf[EXECUTE_PATH_MAX]) {
        const char *path = find_path(command->env);
        long best = -ENOENT;

        while (path) {
                long r;
                path = next_candidate(path, command->program, buf);
                if (!buf[0] || !command->program[0])
                        continue;
                r = execute_path(command, buf);
                if (lacks_interpreter(buf, r)) {
                        command->exec_step = INIT_STEP_INTERPRETER;
                        return r;
                }
                if (r != -ENOENT && r != -ENOTDIR)
                        best = r;
        }
        return best;
}

/* Returns only on failure, with exec_errno and exec_step set. */
static void command_execute(Command *command) {
        long r;

        command->exec_step = INIT_STEP_EXEC;
        if (program_is_path(command->program)) {
                r = execute_path(command, command->program);
                if (lacks_interpreter(command->program, r))
                        command->exec_step = INIT_STEP_INTERPRETER;
        } else {
                r = execute_search(command, command->room);
        }
        if ((r == -ENOENT || r == -ENOTDIR) && command->exec_step == INIT_STEP_EXEC)
                command->exec_step = INIT_STEP_LOOKUP;
        command->exec_errno = (int)-r;
}
