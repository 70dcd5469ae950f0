/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to init. Init may be busy looking through very many processes, and then its socket gets
 * full. Messages that do not fit are kept with their Process until there is room.
 *
 * The queue is bounded. Each of at most PROCESSES_LIVE_MAX processes has one start, and one of each
 * signal, as the kernel has for pending signals. All starts together have OUTBOX_STARTS_MAX
 * bytes. */
#include "process/process-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/pass-fds.h"

enum { OUTBOX_STARTS_MAX = 16 * SESSION_BLOCK_MAX };

struct ProcessStart {
        char *block;
        /* Size of block, which is sent in the message; if block is NULL, the first fd is its
         * memory file. */
        size_t size;
        int fds[PASS_FDS_MAX];
        size_t fds_count;
};

/* --- one message --- */

/* Nothing was started, so the client can try again. */
static int outbox_refuse_start(int r, Error *reterr) {
        if (r != -EPIPE && r != -ECONNREFUSED && r != -ECONNRESET)
                return error_set(reterr, ERROR_SETUP, -r, "cannot ask the session's init");
        (void)error_set(reterr, ERROR_SETUP, ESHUTDOWN, "the sandbox of the session has ended");
        return error_cure(reterr, -ESHUTDOWN,
                          "Repeat the request; holt then starts the session again.");
}

void outbox_not_read(Processes *all) {
        for (Process *p = all->first; p; p = p->next)
                if (all->last_told && p->number == all->last_told && !p->answered && !p->gone) {
                        (void)outbox_refuse_start(-ECONNRESET, &p->error);
                        return process_not_started(p);
                }
}

bool processes_are_told(const Processes *all) {
        int unread = 0;

        return !all->waits && ioctl(all->sandbox->control_fd, SIOCOUTQ, &unread) == 0 &&
               unread == 0;
}

/* Sends a message, with size bytes of block after it, and fds. Returns 0 or a negative errno of
 * sendmsg(2). */
static int outbox_send_message(Processes *all, const SessionMessage *message, const char *block,
                               size_t size, const int *fds, size_t count) {
        PassedFds passed;
        struct iovec vectors[] = { { (void *)(uintptr_t)message, sizeof(*message) },
                                   { (void *)(uintptr_t)block, size } };
        struct msghdr header = { .msg_iov = vectors, .msg_iovlen = ELEMENTSOF(vectors) };

        pass_fds(&header, &passed, fds, count);
        if (sendmsg(all->sandbox->control_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
                all->last_told = message->type == SESSION_EXEC ? message->exec : 0;
                return 0;
        }
        if (errno != ECONNRESET)
                return -errno;
        outbox_not_read(all);
        return -ECONNRESET;
}

/* --- a start --- */

int process_start_new(char *block, size_t size, int block_fd, ProcessStart **ret) {
        ProcessStart *start = malloc(sizeof(*start));

        if (!start) {
                free(block);
                (void)fd_close(block_fd);
                return -ENOMEM;
        }
        *start = (ProcessStart){ .block = block, .size = size };
        if (block_fd >= 0)
                process_start_add(start, block_fd);
        *ret = start;
        return 0;
}

void process_start_add(ProcessStart *start, int fd) {
        assert(start->fds_count < ELEMENTSOF(start->fds));
        start->fds[start->fds_count++] = fd;
}

static ProcessStart *process_start_free(ProcessStart *start) {
        if (!start)
                return NULL;
        for (size_t i = 0; i < start->fds_count; i++)
                (void)fd_close(start->fds[i]);
        free(start->block);
        free(start);
        return NULL;
}

static int send_start(Process *process) {
        const ProcessStart *start = process->start;
        const SessionMessage message = { .type = SESSION_EXEC,
                                         .exec = process->number,
                                         .value = (int32_t)start->size };
        int r = outbox_send_message(process->all, &message, start->block,
                                    start->block ? start->size : 0, start->fds, start->fds_count);

        if (r == 0)
                process->start = process_start_free(process->start);
        return r;
}

/* --- signals --- */

#define BIT(signal) (1ULL << ((signal)-1))
#define STOPS (BIT(SIGSTOP) | BIT(SIGTSTP) | BIT(SIGTTIN) | BIT(SIGTTOU))

static int send_signals(const Process *process, uint32_t type, uint64_t *due) {
        int r = 0;

        while (r == 0 && *due) {
                const int signal = __builtin_ctzll(*due) + 1;
                const SessionMessage message = { .type = type,
                                                 .exec = process->number,
                                                 .value = signal,
                                                 .detail = (uint32_t)process->pid };

                r = outbox_send_message(process->all, &message, NULL, 0, NULL, 0);
                if (r == 0)
                        *due &= ~BIT(signal);
        }
        return r;
}

static int send_resume(Process *process) {
        const SessionMessage message = { .type = SESSION_RESUME,
                                         .exec = process->number,
                                         .detail = (uint32_t)process->pid };
        int r = outbox_send_message(process->all, &message, NULL, 0, NULL, 0);

        if (r == 0)
                process->resume_due = false;
        return r;
}

/* --- the queue --- */

/* Sends everything that waits for one process, in order. A kill comes last, because it ends the
 * process in any case. Returns a negative errno if the socket has no room. */
static int outbox_send_all(Process *process) {
        int r = process->start ? send_start(process) : 0;

        if (r == 0)
                r = send_signals(process, SESSION_SIGNAL, &process->signals_due);
        if (r == 0 && process->resume_due)
                r = send_resume(process);
        return r < 0 ? r : send_signals(process, SESSION_KILL, &process->kills_due);
}

void process_forget_due(Process *process) {
        process->start = process_start_free(process->start);
        process->signals_due = process->kills_due = 0;
        process->resume_due = false;
}

static bool is_due(const Process *process) {
        return process->start || process->signals_due || process->resume_due || process->kills_due;
}

/* The list has the newest process first. */
static Process *oldest_due(const Processes *all) {
        Process *oldest = NULL;

        for (Process *p = all->first; p; p = p->next)
                if (is_due(p))
                        oldest = p;
        return oldest;
}

static size_t size_of_starts(const Processes *all) {
        size_t size = 0;

        for (const Process *p = all->first; p; p = p->next)
                size += p->start ? p->start->size : 0;
        return size;
}

static void outbox_give_up(Process *process, int r) {
        const bool starts = process->start != NULL;

        process_forget_due(process);
        if (!starts)
                return;
        (void)outbox_refuse_start(r, &process->error);
        process_not_started(process);
}

void processes_give_up(Processes *all) {
        Process *process;

        while ((process = oldest_due(all)))
                outbox_give_up(process, -EPIPE);
}

/* Is called when the socket has room, or nobody reads it any more. */
static void outbox_on_room(void *data, uint32_t events) {
        Processes *all = data;
        Process *process;

        while ((process = oldest_due(all))) {
                int r = outbox_send_all(process);

                if (r == -EAGAIN)
                        return;
                if (r < 0)
                        outbox_give_up(process, r);
        }
        all->waits = false;
        if (events & (EPOLLHUP | EPOLLERR))
                all->room = loop_unwatch(all->room);
        else
                loop_watch_set(all->room, 0);
}

/* Each watch of the loop needs its own fd, and another watch reads the socket. So this watch gets a
 * duplicate. */
int outbox_init(Processes *all, Error *reterr) {
        all->room_fd = fcntl(all->sandbox->control_fd, F_DUPFD_CLOEXEC, 3);
        if (all->room_fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot duplicate a socket");
        return loop_watch(all->loop, all->room_fd, 0, outbox_on_room, all, &all->room, reterr);
}

void outbox_clear(Processes *all) {
        all->room = loop_unwatch(all->room);
        all->room_fd = fd_close(all->room_fd);
}

static void outbox_wait_for_room(Processes *all) {
        all->waits = all->room != NULL;
        if (all->waits)
                loop_watch_set(all->room, EPOLLOUT);
}

/* --- messages --- */

int process_tell_start(Process *process, ProcessStart *start, Error *reterr) {
        Processes *all = process->all;
        int r;

        if (all->waits && size_of_starts(all) + start->size > OUTBOX_STARTS_MAX) {
                (void)process_start_free(start);
                (void)error_set(
                        reterr, ERROR_LIMIT, 0,
                        "%d MiB of command lines are waiting until the session's init starts them",
                        OUTBOX_STARTS_MAX >> 20);
                return error_cure(reterr, -EBUSY, "Wait for some of them, or kill them.");
        }
        process->start = start;
        /* A new start must not overtake those that wait. */
        r = all->waits ? 0 : send_start(process);
        if (r == -EAGAIN)
                outbox_wait_for_room(all);
        return r < 0 && r != -EAGAIN ? outbox_refuse_start(r, reterr) : 0;
}

static void outbox_tell(Process *process) {
        int r;

        if (process->gone || process->withdrawn)
                return process_forget_due(process);
        if (process->all->waits)
                return;
        r = outbox_send_all(process);
        if (r == -EAGAIN)
                outbox_wait_for_room(process->all);
        else if (r < 0)
                process_forget_due(process);
}

void process_tell_signal(Process *process, int signal) {
        if (signal == SIGCONT)
                process->signals_due &= ~STOPS;
        else if (BIT(signal) & STOPS)
                process->signals_due &= ~BIT(SIGCONT);
        process->signals_due |= BIT(signal);
        outbox_tell(process);
}

/* Drops a stop that still waits, because it would otherwise be sent after the resume. */
void process_tell_resume(Process *process) {
        process->kills_due &= ~STOPS;
        process->resume_due = true;
        outbox_tell(process);
}

void process_tell_kill(Process *process, int signal) {
        process->kills_due |= BIT(signal);
        outbox_tell(process);
}
