/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter that is a bash.
 *
 * Theory of operation. The bash is interactive, so that SIGINT ends a whole call and not the bash.
 * It has no terminal, reads no startup file and keeps no history. It reads its script from the
 * socket that is its stdin. A call is two commands of that script:
 *
 *         { echo 7 >&0; { eval 'CODE'; } </dev/null >/dev/stdout 2>/dev/stderr; }
 *         { echo 7 WORD $? >&0; } 2>/dev/null
 *
 * While CODE runs, bash has its copy of the socket at a descriptor that is closed on exec,
 * and the script may be in its memory. The programs that CODE starts therefore have neither the
 * socket nor the random word, and cannot forge the end of the call, unless the kernel lets them
 * read or write the memory of bash; a socket cannot be opened through /proc either. CODE itself
 * can, because it is executed by the bash that reports its end. It gains no more than a wrong exit
 * code, or a wrong output, of this and of later calls.
 *
 * The redirections give each call its own stdin, stdout and stderr: `exec >file` ends with its
 * call.
 *
 * SIGINT makes bash drop the line that it is reading, but not the rest of a command of many lines.
 * So no interrupt is sent before the bash has read all of CODE, which the first echo reports. If
 * the second command is dropped, the report that follows each interrupt takes its place. These
 * commands have no quotes, so that the rest of a dropped line cannot begin one.
 *
 * An interrupt must not arrive after the end of its call, and so end the next one. Before that,
 * init must have sent all signals, and the bash must have answered to a fence, a line that prints
 * another random word. If a late interrupt ends the fence, another one is sent.
 *
 * If SIGINT arrives just before bash starts a program, the call can report its end while that
 * program runs and bash waits for it. Then the fence has no answer, and SIGINT is sent again. */
#include "inside/interpreter-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>

#include "base/time.h"
#include "base/wait.h"
#include "inside/bridge.h"

enum {
        /* A loop goes on if SIGINT comes just after its program has ended by itself. In usec. */
        SHELL_REPEAT = HOLT_WAIT(1000000),
        FENCE_POLL = 2000,              /* usec between looks whether init has sent the signals */
        FENCE_TIME = HOLT_WAIT(200000), /* usec until another fence is sent */
};

/* An interactive bash ignores SIGTERM; the trap lets it end like other commands. */
#define PRELUDE                                                                                    \
        "set +o history +H; export -n PS1 PS2; unset HISTFILE; trap 'exit 143' TERM\n"             \
        "builtin echo 0 >&0\n"

/* After a syntax error, bash's parser is in a state from which the empty line frees it.
 * `set -e` ends with its call, because a failure in a later one would end the bash. */
#define REPORT "\n{ builtin echo %" PRIu64 " %s $? >&0; builtin set +e; } 2>/dev/null\n"

static int shell_fill_command(const InterpreterSession *session, ProcessSpec *spec) {
        static const char *const argv[] = { "bash", "--norc", "--noprofile", "--noediting", "-i" };
        static const char *const env[] = { "PS1=", "PS2=", "HISTFILE=/dev/null" };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(argv); i++)
                r = strlist_add(&spec->argv, argv[i]);
        for (size_t i = 0; r == 0 && i < session->plan->env.count; i++)
                r = strlist_add(&spec->env, session->plan->env.items[i]);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(env); i++)
                r = strlist_add(&spec->env, env[i]);
        return r == 0 ? bridge_fill_env(NULL, &spec->env) : r;
}

static int shell_begin(Interpreter *i, Error *reterr) {
        return process_write(i->process, PRELUDE, strlen(PRELUDE), reterr);
}

static int shell_make_word(char word[INTERPRETER_WORD_SIZE]) {
        uint64_t random[2];

        if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return -EIO;
        (void)snprintf(word, INTERPRETER_WORD_SIZE, "%016" PRIx64 "%016" PRIx64, random[0],
                       random[1]);
        return 0;
}

/* --- a call --- */

/* Writes text in single quotes to *at, and moves *at behind it. */
static void shell_quote(const char *text, char **at) {
        char *p = *at;

        *p++ = '\'';
        for (; *text; text++)
                if (*text == '\'') {
                        memcpy(p, "'\\''", 4);
                        p += 4;
                } else
                        *p++ = *text;
        *p++ = '\'';
        *at = p;
}

/* Returns "WORD 'text'", with before and after around it. The caller owns it; NULL if memory is
 * out. */
static char *shell_quoted(const char *before, const char *text, const char *after) {
        char *line = malloc(strlen(before) + 4 * strlen(text) + 2 + strlen(after) + 1), *at = line;

        if (!line)
                return NULL;
        at = stpcpy(at, before);
        shell_quote(text, &at);
        (void)strcpy(at, after);
        return line;
}

/* Adds to the line of the request, which owns it. Takes over text. Returns 0 or -ENOMEM. */
static int shell_append(Request *request, char *text) {
        _cleanup_free_ char *owned = text;
        const size_t length = text ? strlen(text) : 0;
        JsonWriter *w = &request->line;
        char *grown = text ? realloc(w->data, w->length + length + 1) : NULL;

        if (!grown)
                return -ENOMEM;
        memcpy(grown + w->length, owned, length + 1);
        w->data = grown;
        w->length += length;
        return 0;
}

static int shell_write_env(Request *request, const CodeRun *run) {
        const char *token = grant_token(run->grant);
        int r = 0;

        if (token)
                r = shell_append(request,
                                 shell_quoted("builtin export HOLT_BRIDGE_TOKEN=", token, "; "));
        for (size_t n = 0; r == 0 && run->env && n < run->env->count; n++)
                r = shell_append(request,
                                 shell_quoted("builtin export ", run->env->items[n], "; "));
        return r;
}

static char *shell_report(const Request *request) {
        return str_format(REPORT, request->number, request->word);
}

static int shell_write_run(Request *request, const CodeRun *run) {
        int r = shell_make_word(request->word);

        if (r == 0)
                r = shell_append(request,
                                 str_format("{ builtin echo %" PRIu64 " >&0; { ", request->number));
        if (r == 0)
                r = shell_write_env(request, run);
        if (r == 0 && run->cwd)
                r = shell_append(request, shell_quoted("builtin cd -- ", run->cwd, " && "));
        if (r == 0)
                r = shell_append(request,
                                 shell_quoted("builtin eval ", run->code,
                                              "; } </dev/null >/dev/stdout 2>/dev/stderr; }\n"));
        return r == 0 ? shell_append(request, shell_report(request)) : r;
}

/* --- interrupts --- */

/* Init acts on messages in order, so that it has sent SIGINT once it has read another message.
 * SIGCONT also lets stopped programs take the SIGINT. */
static void shell_interrupted(Interpreter *i) {
        _cleanup_free_ char *report = shell_report(i->first);
        Error ignored;

        i->fence[0] = '\0';
        i->fence_at = 0;
        process_signal(i->process, SIGCONT);
        if (report)
                (void)process_write(i->process, report, strlen(report), &ignored);
}

/* The call has reported its end. */
static void shell_interrupt_again(Interpreter *i) {
        process_signal(i->process, SIGINT);
        process_signal(i->process, SIGCONT);
        i->interrupts++;
        i->repeat_at = time_now_usec() + SHELL_REPEAT;
        i->fence[0] = '\0';
        i->fence_at = 0;
}

static int shell_send_fence(Interpreter *i, Error *reterr) {
        char line[128];
        int length;

        if (i->fence_at && time_now_usec() < i->fence_at + FENCE_TIME)
                return 0;
        i->fence_at = time_now_usec();
        if (!i->fence[0] && shell_make_word(i->fence) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot get random bytes");
        length = snprintf(line, sizeof(line), "builtin echo 0 %s >&0\n", i->fence);
        return process_write(i->process, line, (size_t)length, reterr);
}

/* Is called again by the timer, and after the answer. */
static int shell_settle(Interpreter *i, Error *reterr) {
        bool told;
        int r;

        if (i->fence[0] && time_now_usec() >= i->repeat_at)
                shell_interrupt_again(i);
        told = processes_are_told(i->all->session.processes);
        r = told ? shell_send_fence(i, reterr) : 0;
        if (r == 0)
                loop_timer_set(i->wake, time_now_usec() + (told ? FENCE_TIME : FENCE_POLL));
        return r;
}

bool shell_take_fence(Interpreter *i, const JsonValue *root) {
        if (!i->fence[0] || !streq(json_member_text(root, "word"), i->fence))
                return ++i->stale <= INTERPRETER_STALE_MAX;
        i->settled = i->interrupts;
        loop_timer_set(i->wake, time_now_usec());
        return true;
}

/* --- answers --- */

/* Returns the number of bytes of text, of length bytes, that are in set. */
static size_t shell_span(const char *text, size_t length, const char *set) {
        size_t n = 0;

        while (n < length && text[n] != '\0' && strchr(set, text[n]))
                n++;
        return n;
}

/* Makes JSON of a line "7", "7 WORD" or "7 WORD 130". */
static bool shell_read_line(const FramingLine *line, char *buf, size_t size) {
        const char *text = line->bytes, *word;
        size_t left = line->length, id, words, code = 0;

        id = shell_span(text, left, "0123456789");
        word = text + id;
        left -= id;
        if (id == 0 || id > 15 || (left > 0 && *word != ' '))
                return false;
        if (left == 0)
                return snprintf(buf, size, "{\"id\":%.*s}", (int)id, text) < (int)size;
        words = shell_span(++word, --left, "0123456789abcdef");
        left -= words;
        if (words != INTERPRETER_WORD_SIZE - 1)
                return false;
        if (left > 0)
                code = shell_span(word + words + 1, left - 1, "0123456789");
        return snprintf(buf, size, "{\"id\":%.*s,\"word\":\"%.*s\",\"exit_code\":%.*s}", (int)id,
                        text, (int)words, word, code > 0 && code <= 3 ? (int)code : 1,
                        code > 0 && code <= 3 ? word + words + 1 : "1") < (int)size;
}

/* --- the result --- */

static void shell_write_said(const JsonValue *root, JsonWriter *w) {
        (void)root;
        (void)w;
}

const InterpreterKind interpreter_shell = {
        .noun = "shell",
        .method = "shell.run",
        .renewed = "new_shell",
        .fill_command = shell_fill_command,
        .begin = shell_begin,
        .write_run = shell_write_run,
        .read_line = shell_read_line,
        .tells_begin = true,
        .measured = true,
        .may_exit = true,
        .repeat = SHELL_REPEAT,
        .settle = shell_settle,
        .interrupted = shell_interrupted,
        .write_said = shell_write_said,
};
