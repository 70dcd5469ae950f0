/* SPDX-License-Identifier: Apache-2.0 */
#include "process/process-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/list.h"
#include "base/sys.h"
#include "base/time.h"

static size_t sum_lengths(const StrList *list) {
        size_t sum = 0;

        for (size_t i = 0; i < list->count; i++)
                sum += strlen(list->items[i]) + 1;
        return sum;
}

static char *start_append(char *at, const char *string) {
        return stpcpy(at, string) + 1;
}

static void write_block(const ProcessSpec *spec, const StrList *argv, char *at) {
        ExecBlock head = { .argc = (uint32_t)argv->count,
                           .envc = (uint32_t)spec->env.count,
                           .terminal = spec->terminal,
                           .background = spec->background,
                           .rows = spec->rows,
                           .columns = spec->columns,
                           .has_mode = spec->mode != NULL };

        if (spec->mode)
                memcpy(head.mode, spec->mode, sizeof(head.mode));
        memcpy(at, &head, sizeof(head));
        at = start_append(at + sizeof(head), spec->cwd);
        for (size_t i = 0; i < argv->count; i++)
                at = start_append(at, argv->items[i]);
        for (size_t i = 0; i < spec->env.count; i++)
                at = start_append(at, spec->env.items[i]);
}

/* Makes the block to execute. The caller owns *ret. If the block is too large for a message, *ret
 * is NULL and the memory file *ret_fd has the block. */
static int make_block(const ProcessSpec *spec, const StrList *argv, char **ret, size_t *ret_size,
                      int *ret_fd, Error *reterr) {
        const size_t size = sizeof(ExecBlock) + strlen(spec->cwd) + 1 + sum_lengths(argv) +
                            sum_lengths(&spec->env);
        _cleanup_close_ int fd = FD_NONE;
        _cleanup_free_ char *block = NULL;

        if (size > SESSION_BLOCK_MAX) {
                (void)error_set(reterr, ERROR_USAGE, E2BIG, "the command and its environment");
                return error_cure(reterr, -E2BIG, "Pass long text on stdin or in a file.");
        }
        block = malloc(size);
        if (!block)
                return error_oom(reterr);
        write_block(spec, argv, block);
        if (size > SESSION_INLINE_MAX) {
                fd = sys_memfd_create("holt-exec", MFD_CLOEXEC);
                if (fd < 0 || write(fd, block, size) != (ssize_t)size)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot make a memory file");
        }
        *ret = fd < 0 ? TAKE_PTR(block) : NULL;
        *ret_size = size;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* Makes an fd that the client has not given, and the keeper's end of it. */
static int make_stream(ProcessSpec *spec, Process *process, int fd, Error *reterr) {
        int pair[2];

        if (fd == 2 && detour_is_shared(process))
                spec->fds[2] = fcntl(spec->fds[1], F_DUPFD_CLOEXEC, 3);
        if (spec->fds[fd] >= 0 || spec->terminal & (1U << fd))
                return 0;
        if (fd == 0 && spec->input == INPUT_NONE) {
                /* The keeper's own stdin is /dev/null, which it cannot open any more. */
                spec->fds[0] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
                return spec->fds[0] < 0
                               ? error_set(reterr, ERROR_SETUP, errno, "cannot duplicate stdin")
                               : 0;
        }
        if (fd == 0 && spec->input == INPUT_SOCKET
                    ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0
                    : pipe2(pair, O_CLOEXEC) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a pipe");
        spec->fds[fd] = pair[fd == 0 ? 0 : 1];
        if (fd == 0)
                process->input = pair[1];
        else
                process->streams[fd - 1] = pair[0];
        (void)fcntl(pair[fd == 0 ? 1 : 0], F_SETFL, O_NONBLOCK);
        return 0;
}

static int send_exec(Process *process, ProcessSpec *spec, Error *reterr) {
        ProcessStart *start = NULL;
        char *block = NULL;
        size_t size = 0;
        int block_fd = FD_NONE,
            r = make_block(spec, &process->argv, &block, &size, &block_fd, reterr);

        if (r < 0)
                return r;
        if (process_start_new(block, size, block_fd, &start) < 0)
                return error_oom(reterr);
        for (int fd = 0; fd <= 2; fd++)
                if (!(spec->terminal & (1U << fd)))
                        process_start_add(start, TAKE_FD(spec->fds[fd]));
        return process_tell_start(process, start, reterr);
}

/* Joins the words, with quotes if a shell would need them. */
static char *start_describe(const StrList *argv) {
        char *text = strdup("");

        for (size_t i = 0; text && i < argv->count && strlen(text) < 4096; i++) {
                _cleanup_free_ char *word = str_shell_word(argv->items[i]);
                char *longer = word ? str_format("%s%s%s", text, i ? " " : "", word) : NULL;

                free(text);
                text = longer;
        }
        return text;
}

static Process *new_process(Processes *all, ProcessSpec *spec) {
        Process *process = calloc(1, sizeof(*process));

        if (!process)
                return NULL;
        *process = (Process){
                .all = all,
                .number = process_next_number(all),
                .streams = { FD_NONE, FD_NONE },
                .input = FD_NONE,
                .master = FD_NONE,
                .sinks = { FD_NONE, FD_NONE },
                .source = FD_NONE,
                .started_at = time_now_usec(),
                .started_at_ms = time_epoch_ms(),
                .timeout = spec->timeout,
                .owner = spec->owner,
                .has_terminal = spec->terminal != 0,
                .gives_master = spec->give_master && spec->terminal,
                .grant = spec->grant,
                .command = start_describe(&spec->argv),
                .cwd = strdup(spec->asked ? spec->asked : spec->cwd),
                .argv = spec->argv,
        };
        for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
                process->elsewhere[i] = spec->fds[i + 1] >= 0 ||
                                        (process->gives_master && spec->terminal & (1U << (i + 1)));
        spec->argv = (StrList){ 0 };
        (void)snprintf(process->id, sizeof(process->id), "p%" PRIu32, process->number);
        capture_init(&process->output, process->id, spec->kept, spec->keep_tail);
        return process;
}

static int start_prepare(Process *process, ProcessSpec *spec, Error *reterr) {
        int r = 0;

        if (overhear_choose(process, spec) < 0)
                return error_oom(reterr);
        detour_take(process, spec);
        if (!process->command || !process->cwd)
                return error_oom(reterr);
        for (int fd = 0; r == 0 && fd <= 2; fd++)
                r = make_stream(spec, process, fd, reterr);
        if (r == 0)
                r = process_watch_streams(process, reterr);
        for (unsigned i = 0; r == 0 && i < CAPTURE_STREAMS; i++)
                r = detour_watch(process, i, reterr);
        if (r == 0)
                r = loop_timer_new(process->all->loop, process_on_time, process, &process->timer,
                                   reterr);
        if (r < 0)
                return r;
        /* The time starts with the request, because processes inside can delay the start. */
        process_set_deadline(process);
        return send_exec(process, spec, reterr);
}

/* Refuses to start a command in a workspace that the host has removed. All that the command could
 * see there is that nothing can be created. */
static int start_check_workspace(const Processes *all, Error *reterr) {
        const PlanMount *workspace = plan_workspace(all->launch->plan);
        struct stat st;

        if (!workspace || workspace->fd < 0 || fstat(workspace->fd, &st) < 0 || st.st_nlink > 0)
                return 0;
        (void)error_set(reterr, ERROR_POLICY, ESTALE,
                        "the workspace %s was removed while the session was running",
                        workspace->source);
        return error_cure(
                reterr, -ESTALE,
                "Make the directory again: holt stop NAME, then holt rebind NAME lets the "
                "session accept the new one.");
}

int process_start(Processes *all, ProcessSpec *spec, Process **ret, Error *reterr) {
        Process *process = NULL;
        int r = 0;

        if (processes_live(all) >= PROCESSES_LIVE_MAX) {
                (void)error_set(reterr, ERROR_LIMIT, 0,
                                "the session already has %d running commands", PROCESSES_LIVE_MAX);
                r = error_cure(reterr, -EBUSY, "Wait for some of them, or kill them.");
        }
        if (r == 0)
                r = start_check_workspace(all, reterr);
        if (r == 0 && !(process = new_process(all, spec)))
                r = error_oom(reterr);
        if (r == 0)
                r = start_prepare(process, spec, reterr);
        for (int fd = 0; fd <= 2; fd++)
                spec->fds[fd] = fd_close(spec->fds[fd]);
        if (r < 0) {
                if (process)
                        process_drop(process);
                return r;
        }
        list_push(&all->first, process);
        processes_make_room(all); /* Meanwhile, the command starts. */
        *ret = process;
        return 0;
}
