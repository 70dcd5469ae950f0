/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/replies.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <termios.h>
#include <unistd.h>

#include "base/time.h"
#include "base/util.h"

#define CANCEL "\x18"        /* CAN: ends a sequence that the command left incomplete. */
#define ASK_STATUS "\x1b[5n" /* The terminal answers ESC [ 0 n. */
#define ASK_TYPE "\x1b[c"    /* The terminal answers ESC [ ? ... c. */

enum {
        QUESTIONS = 32,    /* One for each bit of a uint32_t. */
        PATIENCE = 500000, /* Microseconds to wait for all answers. */
};

/* ENOTTY means that fd is another terminal than the controlling one, for example a pty that a test
 * harness has made. Jobs in the background exist only on the controlling terminal. */
bool replies_in_foreground(int fd) {
        pid_t group = tcgetpgrp(fd);

        return group < 0 ? errno == ENOTTY : group == getpgrp();
}

static int open_terminal(int inherited_fd, int flags) {
        unsigned device = 0, own = 0;
        char path[] = "/proc/self/fd/0";
        int fd;

        flags |= O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
        path[sizeof(path) - 2] = (char)('0' + inherited_fd);
        fd = open(path, flags);
        if (fd >= 0)
                return fd;
        /* Under su, the terminal belongs to another user. The controlling terminal can be opened
         * nevertheless. */
        fd = open("/dev/tty", flags);
        if (fd >= 0 && ioctl(inherited_fd, TIOCGDEV, &device) == 0 &&
            ioctl(fd, TIOCGDEV, &own) == 0 && device == own)
                return fd;
        return fd_close(fd);
}

int replies_open(int inherited_fd) {
        int fd = open_terminal(inherited_fd, O_RDWR);

        return fd >= 0 ? fd : open_terminal(inherited_fd, O_WRONLY);
}

/* --- the answers --- */

typedef struct Answers {
        uint32_t expected, seen; /* One bit for each question; 1 stands for ASK_TYPE. */
        bool any;                /* There was an answer, to holt or to the command. */
        enum { OUTSIDE, AFTER_ESCAPE, AFTER_BRACKET, INSIDE, INSIDE_PRIVATE } state;
} Answers;

static void answers_take(Answers *a, unsigned char c) {
        const bool introduced = a->state >= AFTER_BRACKET;

        if (c == 0x1b) {
                a->state = AFTER_ESCAPE;
        } else if (a->state == AFTER_ESCAPE) {
                a->state = c == '[' ? AFTER_BRACKET : OUTSIDE;
        } else if (introduced && c >= ' ' && c < '@') {
                if (a->state == AFTER_BRACKET)
                        a->state = c == '?' ? INSIDE_PRIVATE : INSIDE;
        } else {
                const bool status = c == 'n' && a->state == INSIDE;
                const bool type = c == 'c' && a->state == INSIDE_PRIVATE;

                if (status || type)
                        a->seen = a->seen << 1 | type;
                a->any |= status || type;
                a->state = OUTSIDE;
        }
}

/* Waits for room, since the terminal may still be busy with the command's output. */
static bool replies_write_all(int fd, const char *text, size_t size) {
        const uint64_t end = time_now_usec() + PATIENCE;
        uint64_t now;

        while (size > 0 && (now = time_now_usec()) < end) {
                struct pollfd output = { .fd = fd, .events = POLLOUT };
                ssize_t n = write(fd, text, size);

                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return false;
                if (n > 0) {
                        text += n;
                        size -= (size_t)n;
                } else if (poll(&output, 1, (int)((end - now + 999) / 1000)) < 0 &&
                           errno != EINTR) {
                        return false;
                }
        }
        return size == 0;
}

static bool replies_ask(int fd, uint32_t order) {
        char text[QUESTIONS * sizeof(ASK_STATUS)];
        char *end = text;

        for (int i = QUESTIONS - 1; i >= 0; i--)
                end = stpcpy(end, order >> i & 1 ? ASK_TYPE : ASK_STATUS);
        return replies_write_all(fd, text, (size_t)(end - text));
}

/* first: returns at the first answer. */
static void wait_for_answers(int fd, Answers *a, bool first) {
        const uint64_t end = time_now_usec() + PATIENCE;
        uint64_t now;
        char data[512];

        while (!(first ? a->any : a->seen == a->expected) && (now = time_now_usec()) < end) {
                struct pollfd input = { .fd = fd, .events = POLLIN };
                ssize_t n;

                if (poll(&input, 1, (int)((end - now + 999) / 1000)) < 0 && errno != EINTR)
                        return;
                if (!input.revents)
                        continue;
                n = read(fd, data, sizeof(data));
                if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                        return;
                for (ssize_t i = 0; i < n; i++)
                        answers_take(a, (unsigned char)data[i]);
        }
}

/* Asks in a mode that passes answers on byte by byte and does not echo them. */
static void ask_and_wait(int fd) {
        static const char greeting[] = CANCEL ASK_STATUS ASK_TYPE;
        Answers answers = { 0 };
        struct termios saved, mode;

        if (getrandom(&answers.expected, sizeof(answers.expected), GRND_NONBLOCK) !=
                    (ssize_t)sizeof(answers.expected) ||
            tcgetattr(fd, &saved) < 0)
                return;
        mode = saved;
        mode.c_iflag &= ~(tcflag_t)(ISTRIP | INLCR | IGNCR | ICRNL | IXON);
        mode.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG | IEXTEN);
        if (tcsetattr(fd, TCSANOW, &mode) < 0)
                return;
        if (replies_write_all(fd, greeting, strlen(greeting)))
                wait_for_answers(fd, &answers, true);
        /* The answers so far may have come in any order. From now on, 32 must come in the expected
         * order. */
        answers.seen = ~answers.expected;
        if (answers.any && replies_ask(fd, answers.expected))
                wait_for_answers(fd, &answers, false);
        (void)tcflush(fd, TCIFLUSH);
        (void)tcsetattr(fd, TCSANOW, &saved);
}

void replies_discard(int fd, bool may_ask) {
        sigset_t set, saved;

        if (!replies_in_foreground(fd))
                return;
        /* If the caller's shell takes the terminal now, these signals would stop holt. */
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTTOU);
        (void)sigaddset(&set, SIGTTIN);
        (void)sigprocmask(SIG_BLOCK, &set, &saved);
        if (may_ask)
                ask_and_wait(fd);
        (void)tcflush(fd, TCIFLUSH);
        (void)sigprocmask(SIG_SETMASK, &saved, NULL);
}
