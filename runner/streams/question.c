/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/question.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/time.h"
#include "base/util.h"
#include "streams/replies.h"

enum {
        QUESTION_PAUSE = 700000, /* usec without any answer: time to see the question. */
        QUESTION_TRIES = 3,      /* Lines that are no answer; the last one counts as no. */
        QUESTION_TEXT = 768,     /* Bytes of one message. */
        QUESTION_HOST = 304,     /* Bytes of a name and its port. */
        KEY_CTRL_C = 3,
        KEY_CTRL_D = 4,
        KEY_BACKSPACE = 8,
        KEY_DELETE = 127,
};

/* CAN and ST end a sequence that the command has begun. DECSTR and the rest reset the terminal. */
#define QUESTION_RESET "\030\033\\\033[!p\033(B\017\033[0m"

typedef struct Question {
        int fd;
        bool shown;
        bool covered; /* Another program may draw over it. */
        char host[QUESTION_HOST];
        struct termios mode; /* The terminal's mode before the question. */
        uint64_t ready;      /* usec of time_now_usec() from which on an answer counts. */
        char line[QUESTION_HOST];
        size_t length;
        bool bad; /* The line is no answer, whatever follows. */
        int tries;
} Question;

/* Whether another program gets these bytes. It may draw them on the terminal, also over a question.
 */
static bool output_goes_on(int fd) {
        struct stat st;

        return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

Question *question_open(void) {
        Question *question;
        int fd = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        question = fd >= 0 ? calloc(1, sizeof(*question)) : NULL;
        if (!question) {
                fd_close(fd);
                return NULL;
        }
        question->fd = fd;
        question->covered = output_goes_on(STDOUT_FILENO) || output_goes_on(STDERR_FILENO);
        return question;
}

static bool question_write(const Question *question, const char *text) {
        const size_t length = strlen(text);

        return write(question->fd, text, length) == (ssize_t)length;
}

/* Sets the terminal's mode, and throws unread keys away. SIGTTOU is blocked meanwhile, because it
 * would stop a process that is no longer in the foreground. */
static bool question_set_mode(const Question *question, const struct termios *mode) {
        sigset_t set, saved;
        int r;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTTOU);
        (void)sigprocmask(SIG_BLOCK, &set, &saved);
        r = replies_in_foreground(question->fd) ? tcsetattr(question->fd, TCSAFLUSH, mode) : -1;
        (void)sigprocmask(SIG_SETMASK, &saved, NULL);
        return r == 0;
}

static void question_end(Question *question) {
        if (question->shown)
                (void)question_set_mode(question, &question->mode);
        question->shown = false;
}

Question *question_close(Question *question) {
        if (!question)
                return NULL;
        question_end(question);
        fd_close(question->fd);
        free(question);
        return NULL;
}

/* An international name can look like a different name, so it is shown in ASCII. */
static const char *question_note(const char *host) {
        return strncmp(host, "xn--", 4) == 0 || strstr(host, ".xn--")
                       ? "holt: the next name is an international one, in its ASCII form\r\n"
                       : "";
}

QuestionAnswer question_show(Question *question, const char *host, const char *lasting) {
        char text[QUESTION_TEXT];
        struct termios mode;

        if (tcgetattr(question->fd, &question->mode) < 0)
                return QUESTION_NOBODY;
        mode = question->mode;
        mode.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR);
        mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | ISIG | IEXTEN);
        mode.c_cc[VMIN] = 1;
        mode.c_cc[VTIME] = 0;
        if (!question_set_mode(question, &mode))
                return QUESTION_NOBODY;
        question->shown = true;
        question->length = 0;
        question->bad = false;
        question->tries = 0;
        (void)snprintf(question->host, sizeof(question->host), "%s", host);
        if (question->covered)
                (void)snprintf(text, sizeof(text),
                               QUESTION_RESET "\r\n%sholt: the output's reader can draw over this "
                                              "question, so type %.300s to allow it once, or "
                                              "[n]o: ",
                               question_note(host), host);
        else
                (void)snprintf(text, sizeof(text),
                               QUESTION_RESET "\r\n%sholt: allow %.300s? [y]es once, [a]lways in "
                                              "this %s, [n]o: ",
                               question_note(host), host, lasting);
        if (!question_write(question, text)) {
                question_end(question);
                return QUESTION_NOBODY;
        }
        question->ready = time_now_usec() + QUESTION_PAUSE;
        return QUESTION_WAITS;
}

void question_hide(Question *question, const char *why) {
        if (!question->shown)
                return;
        (void)question_write(question, "\r\n");
        question_say(question, why);
        question_end(question);
}

bool question_shown(const Question *question) {
        return question && question->shown;
}

int question_fd(const Question *question) {
        return question_shown(question) ? question->fd : FD_NONE;
}

void question_say(const Question *question, const char *text) {
        char line[QUESTION_TEXT];

        (void)snprintf(line, sizeof(line), "holt: %.600s\r\n", text);
        (void)question_write(question, line);
}

/* --- the answer --- */

static const struct {
        const char *word;
        QuestionAnswer answer;
} question_words[] = {
        { "y", QUESTION_ONCE },        { "yes", QUESTION_ONCE }, { "a", QUESTION_ALWAYS },
        { "always", QUESTION_ALWAYS }, { "n", QUESTION_NO },     { "no", QUESTION_NO },
};

/* Returns QUESTION_WAITS if the line is no answer. If the person may see another host than the
 * question's, only typing the host itself allows the connection. */
static QuestionAnswer question_find_answer(const Question *question) {
        if (question->bad)
                return QUESTION_WAITS;
        if (question->covered && strcasecmp(question->line, question->host) == 0)
                return QUESTION_ONCE;
        for (size_t i = 0; i < ELEMENTSOF(question_words); i++)
                if (strcasecmp(question->line, question_words[i].word) == 0 &&
                    (!question->covered || question_words[i].answer == QUESTION_NO))
                        return question_words[i].answer;
        return QUESTION_WAITS;
}

static QuestionAnswer question_take_line(Question *question) {
        QuestionAnswer answer;

        question->line[question->length] = '\0';
        answer = question_find_answer(question);
        question->length = 0;
        question->bad = false;
        (void)question_write(question, "\r\n");
        if (answer != QUESTION_WAITS)
                return answer;
        if (++question->tries == QUESTION_TRIES)
                return QUESTION_NO;
        (void)question_write(question, question->covered
                                               ? "holt: type the name with its port, or n, and "
                                                 "Enter: "
                                               : "holt: type y, a or n, and Enter: ");
        return QUESTION_WAITS;
}

/* Whether the key can be a part of an answer. */
static bool question_takes(const Question *question, unsigned char key) {
        return isalpha(key) ||
               (question->covered && key != '\0' && (isdigit(key) || strchr("-_.:", key)));
}

static QuestionAnswer question_take_key(Question *question, unsigned char key) {
        const char echo[] = { (char)key, '\0' };

        if (key == '\r' || key == '\n')
                return question_take_line(question);
        if (key == KEY_CTRL_D) {
                (void)question_write(question, "\r\n");
                return QUESTION_NO;
        }
        if (key == KEY_BACKSPACE || key == KEY_DELETE) {
                if (question->length > 0 && question->length-- > 0)
                        (void)question_write(question, "\b \b");
        } else if (question_takes(question, key) && question->length < sizeof(question->line) - 1) {
                question->line[question->length++] = (char)key;
                (void)question_write(question, echo);
        } else {
                question->bad = true;
        }
        return QUESTION_WAITS;
}

QuestionAnswer question_read(Question *question) {
        QuestionAnswer answer = QUESTION_WAITS;
        unsigned char keys[256];
        ssize_t n = read(question->fd, keys, sizeof(keys));

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                answer = QUESTION_NOBODY;
        if (answer == QUESTION_WAITS && n > 0 && memchr(keys, KEY_CTRL_C, (size_t)n)) {
                (void)question_write(question, "^C\r\n");
                answer = QUESTION_INTERRUPT;
        }
        if (time_now_usec() < question->ready)
                n = 0;
        for (ssize_t i = 0; answer == QUESTION_WAITS && i < n; i++)
                answer = question_take_key(question, keys[i]);
        if (answer != QUESTION_WAITS)
                question_end(question);
        return answer;
}
