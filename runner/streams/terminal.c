/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/escapes.h"
#include "base/util.h"
#include "streams/replies.h"

enum {
        DRAIN_STALL_MS = 1000,
        FLUSH_CHUNKS = 16,
        DRAIN_CHUNKS = 1024, /* More chunks than a terminal buffers. */
};

struct Terminal {
        TerminalPlan plan;
        int master_fd;
        int input_fd;       /* The caller's terminal to read keys from, or FD_NONE. */
        int output_fd;      /* The caller's terminal to print to. */
        bool output_blocks; /* output_fd is the inherited fd itself and may block. */
        bool entered, raw;
        bool interrupted; /* The caller has typed the key that interrupts. */
        Escapes printed;  /* The control sequences in the printed output. */
        bool asked;       /* The terminal may still answer a printed query. */
        struct termios saved;
        Relay in, out;
        Budget *budget; /* The budget of the output, or NULL. Borrowed. */
};

/* --- the caller's terminal --- */

static void make_cooked(struct termios *mode) {
        mode->c_iflag |= ICRNL | IXON;
        mode->c_oflag |= OPOST | ONLCR;
        mode->c_lflag |= ISIG | ICANON | ECHO | ECHOE | ECHOK | IEXTEN;
}

/* The inherited fd of the terminal that the output goes to. */
static int printed_fd(const TerminalPlan *plan) {
        return plan->fds & 2 ? 1 : plan->fds & 4 ? 2 : 0;
}

void terminal_plan(const FdFacts stdio[3], TerminalPlan *ret) {
        *ret = (TerminalPlan){ .output_fd = FD_NONE };
        for (int fd = 0; fd <= 2; fd++) {
                if (!S_ISCHR(stdio[fd].st.st_mode) || tcgetattr(fd, &ret->mode) < 0)
                        continue;
                ret->fds |= 1U << fd;
                (void)ioctl(fd, TIOCGWINSZ, &ret->size);
        }
        if (!ret->fds)
                return;
        /* Reading from a terminal in the background would stop holt. And the terminal's mode may
         * belong to another process now, such as a shell that reads a line. */
        ret->background = ret->fds & 1 && !replies_in_foreground(0);
        if (ret->background)
                make_cooked(&ret->mode);
        ret->background |= (ret->fds & 3) == 1;
        /* Printing must not block: a stopped terminal (Ctrl-S) would stop the timeout as well. */
        ret->output_fd = replies_open(printed_fd(ret));
        ret->utf8 = escapes_utf8(printed_fd(ret));
}

Terminal *terminal_new(const TerminalPlan *plan, int master_fd, Budget *budget) {
        Terminal *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->plan = *plan;
        t->master_fd = master_fd;
        t->budget = budget;
        t->input_fd = plan->fds & 1 ? 0 : FD_NONE;
        t->output_fd = plan->output_fd;
        t->output_blocks = t->output_fd < 0;
        if (t->output_blocks)
                t->output_fd = printed_fd(plan);
        t->printed.utf8 = plan->utf8;
        (void)fcntl(master_fd, F_SETFL, O_RDWR | O_NONBLOCK);
        return t;
}

void terminal_keep(Terminal *t, Tail *tail) {
        t->out.tail = tail;
}

/* Keeps the terminal's answers from reaching the caller's shell. */
static void discard_replies(Terminal *t) {
        if (!t->asked && !escapes_open(&t->printed))
                return;
        replies_discard(t->output_fd, !t->output_blocks);
        t->printed = (Escapes){ .utf8 = t->plan.utf8 };
        t->asked = false;
}

Terminal *terminal_free(Terminal *t) {
        if (t)
                discard_replies(t);
        if (t && t->raw)
                (void)tcsetattr(t->input_fd, TCSAFLUSH, &t->saved);
        free(t);
        return NULL;
}

/* In the background of the caller's terminal, reading (SIGTTIN) or changing the mode stops holt. */
bool terminal_in_foreground(const Terminal *t) {
        return t->input_fd >= 0 && replies_in_foreground(t->input_fd);
}

void terminal_enter(Terminal *t) {
        struct termios mode;

        if (t->entered || !terminal_in_foreground(t))
                return;
        t->entered = true;
        if (tcgetattr(t->input_fd, &t->saved) < 0)
                return;
        mode = t->saved;
        cfmakeraw(&mode);
        /* Other programs that print to this terminal still need their carriage returns. */
        if (!(t->plan.fds & 2))
                mode.c_oflag = t->saved.c_oflag;
        t->raw = tcsetattr(t->input_fd, TCSADRAIN, &mode) == 0;
        terminal_resize(t);
}

/* Restores the caller's terminal before holt stops. Throws away answers to the command's output. */
static void terminal_leave(Terminal *t) {
        discard_replies(t);
        if (t->raw)
                (void)tcsetattr(t->input_fd, TCSADRAIN, &t->saved);
        t->raw = t->entered = false;
}

static void stop_job(pid_t pid, const Waker *waker) {
        sigset_t stop;

        (void)sigemptyset(&stop);
        (void)sigaddset(&stop, SIGTSTP);
        (void)kill(pid, SIGTSTP);
        waker_repeat(waker);
        (void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
        (void)sigprocmask(SIG_BLOCK, &stop, NULL);
}

void terminal_resize(Terminal *t) {
        struct winsize size;

        if (ioctl(t->output_fd, TIOCGWINSZ, &size) == 0)
                (void)ioctl(t->master_fd, TIOCSWINSZ, &size);
}

/* --- bytes on their way --- */

size_t terminal_poll(const Terminal *t, struct pollfd *fds) {
        short master = 0;

        if (relay_empty(&t->out) && !t->out.closed)
                master |= POLLIN;
        if (!relay_empty(&t->in))
                master |= POLLOUT;
        fds[0] = (struct pollfd){ .fd = t->out.closed ? -1 : t->master_fd, .events = master };
        fds[1] = (struct pollfd){ .fd = relay_empty(&t->out) ? -1 : t->output_fd,
                                  .events = POLLOUT };
        fds[2] = (struct pollfd){
                .fd = t->entered && !t->in.closed && relay_empty(&t->in) ? t->input_fd : -1,
                .events = POLLIN,
        };
        return 3;
}

/* Removes carriage returns before newlines: a caller's terminal that is not raw adds them
 * itself. */
static void drop_returns(Relay *p, const Budget *budget) {
        size_t kept = 0;

        if (!p->closed && !budget_spent(budget) && p->end > 0 && p->data[p->end - 1] == '\r') {
                p->held = true;
                p->end--;
        }
        for (size_t i = 0; i < p->end; i++)
                if (p->data[i] != '\r' || i + 1 == p->end || p->data[i + 1] != '\n')
                        p->data[kept++] = p->data[i];
        p->end = kept;
}

/* Returns whether anything was read, even if it was dropped. */
static bool terminal_fill_output(Terminal *t) {
        bool more = relay_fill(&t->out, t->master_fd, t->budget) > 0;

        if (!t->raw)
                drop_returns(&t->out, t->budget);
        return more;
}

/* The key is the one in the caller's own settings, because a program inside can choose any key. */
static void fill_input(Terminal *t) {
        Relay *r = &t->in;
        const cc_t key = t->saved.c_cc[VINTR];

        if (relay_fill(r, t->input_fd, NULL) > 0 && t->raw && t->saved.c_lflag & ISIG &&
            key != _POSIX_VDISABLE)
                t->interrupted |= memchr(r->data + r->start, key, r->end - r->start) != NULL;
}

bool terminal_interrupted(const Terminal *t) {
        return t->interrupted;
}

void terminal_interrupt(Terminal *t) {
        static const char key = 'C' & 0x1f;
        struct termios mode;

        t->interrupted = true;
        /* The kernel would handle the key a moment after write(2). */
        if (tcgetattr(t->master_fd, &mode) == 0 && mode.c_lflag & ISIG &&
            ioctl(t->master_fd, TIOCSIG, SIGINT) == 0)
                return;
        (void)!write(t->master_fd, &key, sizeof(key));
}

static void empty_input(Terminal *t) {
        Relay *r = &t->in;

        if (!relay_advance(r, write(t->master_fd, r->data + r->start, r->end - r->start)))
                relay_discard(r, NULL);
}

/* Writes the output. If the terminal has no reader any more, the output is lost, as with a closed
 * window. */
static void empty_output(Terminal *t) {
        Relay *r = &t->out;
        const char *data = r->data + r->start;
        size_t size = r->end - r->start;
        ssize_t n = t->output_blocks ? patience_write(t->output_fd, data, size)
                                     : write(t->output_fd, data, size);

        if (!relay_advance(r, n))
                relay_discard(r, t->budget);
        if (n > 0)
                t->asked |= escapes_ask(&t->printed, data, (size_t)n);
}

void terminal_pump(Terminal *t, const struct pollfd *fds, size_t count) {
        if (count < 3)
                return;
        if (fds[0].revents & POLLOUT)
                empty_input(t);
        if (fds[0].revents & (POLLIN | POLLHUP | POLLERR) && relay_empty(&t->out))
                (void)terminal_fill_output(t);
        if (fds[1].revents)
                empty_output(t);
        if (fds[2].revents)
                fill_input(t);
}

/* Moves one chunk out. Returns false if no chunk is left, or if the terminal takes none. */
static bool move_output(Terminal *t) {
        struct pollfd fd = { .fd = t->output_fd, .events = POLLOUT };

        if (relay_empty(&t->out) && !terminal_fill_output(t) && relay_empty(&t->out))
                return false;
        if (relay_empty(&t->out))
                return true; /* The chunk was dropped. */
        if (poll(&fd, 1, DRAIN_STALL_MS) <= 0)
                return false;
        empty_output(t);
        return true;
}

void terminal_drain(Terminal *t) {
        for (int i = 0; i < DRAIN_CHUNKS && (!t->out.closed || !relay_empty(&t->out)); i++)
                if (!move_output(t))
                        break;
        relay_discard(&t->out, t->budget);
}

/* Writes the output so far before holt stops. The number of bytes is bounded, because a process
 * inside may still be printing. */
static void terminal_flush(Terminal *t) {
        for (int i = 0; i < FLUSH_CHUNKS && move_output(t); i++)
                ;
}

void terminal_stop(Terminal *t, pid_t pid, bool for_keys, const Waker *waker) {
        terminal_flush(t);
        terminal_leave(t);
        /* The foreground is checked last, because flushing may take a second. */
        if (!for_keys || !terminal_in_foreground(t))
                stop_job(pid, waker);
        if (!t->plan.background)
                terminal_enter(t);
}
