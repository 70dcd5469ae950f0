/* SPDX-License-Identifier: Apache-2.0 */
/* A question to the person at the caller's terminal.
 *
 * Theory of operation. The question goes to the controlling terminal, /dev/tty, and the answer
 * comes from there: never from the command's own streams. While a question is shown, the caller of
 * these functions passes no byte between the command and the terminal. So the command can neither
 * change the question nor see the answer.
 *
 * Before that, the command may have printed whatever it liked. The question first cancels a
 * sequence that has begun, and resets colours, character sets and the scrolling region. The command
 * may also have made the terminal type something (replies.h), or the person may be typing. So all
 * keys until QUESTION_PAUSE after the question are thrown away, and an answer is a whole line with
 * one of the offered words.
 *
 * If the command's output goes to a pipe, its reader may be less(1), which draws on the same
 * terminal. The person may then see another host than the question's, and so must type the host
 * itself with its port to allow it. */
#pragma once

#include <stdbool.h>

typedef enum QuestionAnswer {
        QUESTION_WAITS,
        QUESTION_ONCE,
        QUESTION_ALWAYS,
        QUESTION_NO,
        QUESTION_INTERRUPT, /* Ctrl-C: a no, and the caller interrupts the command. */
        QUESTION_NOBODY,    /* The terminal has gone, or belongs to another job. */
} QuestionAnswer;

typedef struct Question Question;

/* Opens the terminal. Returns NULL if there is none, or if memory is out. */
Question *question_open(void);
/* Hides a question that is shown, and closes the terminal. Accepts NULL. Returns NULL. */
Question *question_close(Question *question);

/* Asks whether the sandbox may connect to host, a plain name with its port. lasting: the scope of a
 * lasting answer, such as "run". Returns QUESTION_WAITS or QUESTION_NOBODY. */
QuestionAnswer question_show(Question *question, const char *host, const char *lasting);
/* Ends a question without an answer, and says why. */
void question_hide(Question *question, const char *why);
/* Whether a question is shown. Accepts NULL. */
bool question_shown(const Question *question);
/* Returns the descriptor to poll for input while a question is shown, otherwise FD_NONE. Accepts
 * NULL. */
int question_fd(const Question *question);
/* Reads the keys that have come. After any answer except QUESTION_WAITS, no question is shown. */
QuestionAnswer question_read(Question *question);
/* Prints a line, such as an error after an answer. text has no control characters. */
void question_say(const Question *question, const char *text);
