/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

enum {
        DRAIN_STALL_MS = 1000,
        FLUSH_CHUNKS = 16,
        PATIENCE_NS = 20000000, /* that a write may block */
};

/* Bytes on their way in one direction. */
typedef struct Pipe {
        char data[16 * 1024];
        size_t start, end;
        bool held;   /* a carriage return comes first, which waits for what is behind it */
        bool closed; /* the source has ended, or the sink is gone */
} Pipe;

struct Terminal {
        TerminalPlan plan;
        int master_fd;
        int input_fd;       /* the caller's terminal to read keys from, or FD_NONE */
        int output_fd;      /* the caller's terminal to print to */
        bool output_blocks; /* it is the inherited fd itself ... */
        timer_t patience;   /* ... and this interrupts a write to it */
        bool entered, raw;
        struct termios saved;
        Pipe in, out;
};

/* --- the caller's terminal --- */

/* A terminal that does not control us, as of a harness that has made a pty and a session and no
 * more (ENOTTY), has no background. */
static bool in_foreground(int fd) {
        pid_t group = tcgetpgrp(fd);

        return group < 0 ? errno == ENOTTY : group == getpgrp();
}

/* Printing must not block, or a stopped terminal (Ctrl-S) would stop the timeout with it;
 * O_NONBLOCK on the caller's own fd would be on the shell's, too. */
static int open_output(unsigned fds) {
        int inherited = fds & 2 ? 1 : fds & 4 ? 2 : 0, fd;
        unsigned device = 0, own = 0;
        char path[] = "/proc/self/fd/0";

        path[sizeof(path) - 2] = (char)('0' + inherited);
        fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0)
                return fd;
        /* Under su the terminal is another user's; as the controlling one it can be had all the
         * same. */
        fd = open("/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0 && ioctl(inherited, TIOCGDEV, &device) == 0 && ioctl(fd, TIOCGDEV, &own) == 0 &&
            device == own)
                return fd;
        return fd_close(fd);
}

static void make_cooked(struct termios *mode) {
        mode->c_iflag |= ICRNL | IXON;
        mode->c_oflag |= OPOST | ONLCR;
        mode->c_lflag |= ISIG | ICANON | ECHO | ECHOE | ECHOK | IEXTEN;
}

void terminal_plan(TerminalPlan *ret) {
        *ret = (TerminalPlan){ .output_fd = FD_NONE };
        for (int fd = 0; fd <= 2; fd++) {
                if (tcgetattr(fd, &ret->mode) < 0)
                        continue;
                ret->fds |= 1U << fd;
                (void)ioctl(fd, TIOCGWINSZ, &ret->size);
        }
        if (!ret->fds)
                return;
        /* Who reads from a terminal in its background would be stopped, too; and its mode is
         * somebody else's just now, a shell's that reads a line, say. */
        ret->background = ret->fds & 1 && !in_foreground(0);
        if (ret->background)
                make_cooked(&ret->mode);
        ret->background |= (ret->fds & 3) == 1;
        ret->output_fd = open_output(ret->fds);
}

/* Every other signal is blocked (launch.c), and this one does no more than end a system call. */
static void on_patience(int signal) {
        (void)signal;
}

static int make_patience(timer_t *ret) {
        const struct sigaction action = { .sa_handler = on_patience };
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };

        if (sigaction(SIGRTMIN, &action, NULL) < 0 ||
            timer_create(CLOCK_MONOTONIC, &event, ret) < 0)
                return -errno;
        return 0;
}

Terminal *terminal_new(const TerminalPlan *plan, int master_fd) {
        Terminal *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->plan = *plan;
        t->master_fd = master_fd;
        t->input_fd = plan->fds & 1 ? 0 : FD_NONE;
        t->output_fd = plan->output_fd;
        t->output_blocks = t->output_fd < 0;
        if (t->output_blocks) {
                t->output_fd = plan->fds & 2 ? 1 : plan->fds & 4 ? 2 : 0;
                if (make_patience(&t->patience) < 0) {
                        free(t);
                        return NULL;
                }
        }
        (void)fcntl(master_fd, F_SETFL, O_RDWR | O_NONBLOCK);
        return t;
}

Terminal *terminal_free(Terminal *t) {
        if (t && t->raw)
                (void)tcsetattr(t->input_fd, TCSAFLUSH, &t->saved);
        if (t && t->output_blocks)
                (void)timer_delete(t->patience);
        free(t);
        return NULL;
}

/* In the background of the caller's terminal a read stops us (SIGTTIN) and so does a change of
 * mode. */
bool terminal_in_foreground(const Terminal *t) {
        return t->input_fd >= 0 && in_foreground(t->input_fd);
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
        /* Output that others print to this terminal meanwhile still gets its carriage returns. */
        if (!(t->plan.fds & 2))
                mode.c_oflag = t->saved.c_oflag;
        t->raw = tcsetattr(t->input_fd, TCSADRAIN, &mode) == 0;
        terminal_resize(t);
}

void terminal_leave(Terminal *t) {
        if (t->raw)
                (void)tcsetattr(t->input_fd, TCSADRAIN, &t->saved);
        t->raw = t->entered = false;
}

void terminal_resize(Terminal *t) {
        struct winsize size;

        if (ioctl(t->output_fd, TIOCGWINSZ, &size) == 0)
                (void)ioctl(t->master_fd, TIOCSWINSZ, &size);
}

/* --- bytes on their way --- */

static bool pipe_empty(const Pipe *p) {
        return p->start == p->end;
}

size_t terminal_poll(const Terminal *t, struct pollfd *fds) {
        short master = 0;

        if (pipe_empty(&t->out) && !t->out.closed)
                master |= POLLIN;
        if (!pipe_empty(&t->in))
                master |= POLLOUT;
        fds[0] = (struct pollfd){ .fd = t->out.closed ? -1 : t->master_fd, .events = master };
        fds[1] = (struct pollfd){ .fd = pipe_empty(&t->out) ? -1 : t->output_fd,
                                  .events = POLLOUT };
        fds[2] = (struct pollfd){
                .fd = t->entered && !t->in.closed && pipe_empty(&t->in) ? t->input_fd : -1,
                .events = POLLIN,
        };
        return 3;
}

/* EIO from a master means that no slave is open: the sandbox's programs have ended. */
static void fill(Pipe *p, int fd) {
        ssize_t n = read(fd, p->data + p->held, sizeof(p->data) - p->held);

        p->start = p->end = 0;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        p->closed = n <= 0;
        p->end = p->held + (n > 0 ? (size_t)n : 0);
        p->data[0] = p->held ? '\r' : p->data[0];
        p->held = false;
}

/* Where the caller's terminal is not raw it puts a carriage return before each newline itself. */
static void drop_returns(Pipe *p) {
        size_t kept = 0;

        if (!p->closed && p->end > 0 && p->data[p->end - 1] == '\r') {
                p->held = true;
                p->end--;
        }
        for (size_t i = 0; i < p->end; i++)
                if (p->data[i] != '\r' || i + 1 == p->end || p->data[i + 1] != '\n')
                        p->data[kept++] = p->data[i];
        p->end = kept;
}

static void fill_output(Terminal *t) {
        fill(&t->out, t->master_fd);
        if (!t->raw)
                drop_returns(&t->out);
}

/* On an fd that blocks: the terminal may be stopped (Ctrl-S) after it had room. */
static ssize_t write_patiently(const Terminal *t, const char *data, size_t size) {
        const struct itimerspec tick = { .it_interval.tv_nsec = PATIENCE_NS,
                                         .it_value.tv_nsec = PATIENCE_NS },
                                off = { 0 };
        sigset_t set;
        ssize_t n;
        int errnum;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGRTMIN);
        (void)timer_settime(t->patience, 0, &tick, NULL);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
        n = write(t->output_fd, data, size);
        errnum = errno;
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        (void)timer_settime(t->patience, 0, &off, NULL);
        errno = errnum;
        return n;
}

static void advance(Pipe *p, ssize_t n) {
        if (n > 0)
                p->start += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
                p->start =
                        p->end; /* nobody reads: what is printed is lost, as with a closed window */
}

static void empty_input(Terminal *t) {
        Pipe *p = &t->in;

        advance(p, write(t->master_fd, p->data + p->start, p->end - p->start));
}

static void empty_output(Terminal *t) {
        Pipe *p = &t->out;

        advance(p, t->output_blocks ? write_patiently(t, p->data + p->start, p->end - p->start)
                                    : write(t->output_fd, p->data + p->start, p->end - p->start));
}

void terminal_pump(Terminal *t, const struct pollfd *fds, size_t count) {
        if (count < 3)
                return;
        if (fds[0].revents & POLLOUT)
                empty_input(t);
        if (fds[0].revents & (POLLIN | POLLHUP | POLLERR) && pipe_empty(&t->out))
                fill_output(t);
        if (fds[1].revents)
                empty_output(t);
        if (fds[2].revents)
                fill(&t->in, t->input_fd);
}

/* One chunk on its way out; false when there is none, or nobody takes it. */
static bool move_output(Terminal *t) {
        struct pollfd fd = { .fd = t->output_fd, .events = POLLOUT };

        if (pipe_empty(&t->out))
                fill_output(t);
        if (pipe_empty(&t->out) || poll(&fd, 1, DRAIN_STALL_MS) <= 0)
                return false;
        empty_output(t);
        return true;
}

void terminal_drain(Terminal *t) {
        while ((!t->out.closed || !pipe_empty(&t->out)) && move_output(t))
                ;
}

void terminal_flush(Terminal *t) {
        for (int i = 0; i < FLUSH_CHUNKS && move_output(t); i++)
                ;
}
