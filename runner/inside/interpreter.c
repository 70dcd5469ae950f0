/* SPDX-License-Identifier: Apache-2.0 */
#include "inside/interpreter-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "base/time.h"
#include "base/wait.h"
#include "policy/policy.h"
#include "process/report.h"

enum {
        READY_TIME = HOLT_WAIT(10000000), /* Longest time to become ready, in usec. */
        READY_TIME_MIN = HOLT_WAIT(
                3000000), /* Shortest such time, in usec, even if the run's timeout is shorter. */
};

static void on_wake(void *data);
static void on_deadline(void *data);

/* --- requests --- */

Request *request_free(Request *request) {
        request->grant = grant_end(request->grant);
        json_write_clear(&request->line);
        free(request->params);
        free(request->name);
        free(request);
        return NULL;
}

static void interpreter_drop_first(Interpreter *i) {
        Request *request = i->first;

        i->first = request->next;
        i->waiting--;
        i->asked = false;
        loop_timer_set(i->deadline, 0);
        (void)request_free(request);
}

/* Ends an interpreter that nobody needs any more. */
static void interpreter_let_go(Interpreter *i) {
        if (i->process)
                process_kill(i->process);
}

bool request_has_begun(const Request *request) {
        return request->interpreter->first == request && request->interpreter->asked;
}

/* The request has not begun. */
void request_take_back(Request *request) {
        Interpreter *i = request->interpreter;

        if (list_remove(&i->first, request)) {
                i->waiting--;
                (void)request_free(request);
                loop_timer_set(i->wake, time_now_usec());
        }
        if (i->once)
                interpreter_let_go(i);
}

/* The client has gone. */
static void interpreter_on_call_end(RpcCall *call, void *data) {
        Request *request = data;
        Interpreter *i = request->interpreter;

        (void)call;
        request->call = NULL;
        request->watcher = NULL;
        if (!request_has_begun(request))
                request_take_back(request);
        else if (i->once)
                interpreter_let_go(i);
}

static void fail_first(Interpreter *i, const Error *error) {
        if (i->first->call)
                rpc_fail(i->first->call, error);
        interpreter_drop_first(i);
}

/* Fails the request behind the first. */
static void fail_behind(Interpreter *i, const Error *error) {
        Request *request = i->first->next;

        i->first->next = request->next;
        i->waiting--;
        if (request->call)
                rpc_fail(request->call, error);
        (void)request_free(request);
}

static void fail_all(Interpreter *i, const Error *error) {
        while (i->first)
                fail_first(i, error);
}

/* --- the interpreter --- */

static void close_channel(Interpreter *i) {
        i->watch = loop_unwatch(i->watch);
        i->paused = false;
        i->channel = fd_close(i->channel);
        framing_clear(&i->in);
}

static Interpreter *interpreter_free(Interpreter *i) {
        if (!i)
                return NULL;
        i->said = json_free(i->said);
        while (i->first)
                interpreter_drop_first(i);
        close_channel(i);
        i->wake = loop_timer_free(i->wake);
        i->deadline = loop_timer_free(i->deadline);
        free(i);
        return NULL;
}

int interpreter_new(Interpreters *all, bool once, Interpreter **ret, Error *reterr) {
        Interpreter *i = calloc(1, sizeof(*i));
        int r;

        if (!i)
                return error_oom(reterr);
        *i = (Interpreter){ .all = all,
                            .once = once,
                            .channel = FD_NONE,
                            .in = { .max = INTERPRETER_ANSWER_MAX } };
        r = loop_timer_new(all->session.loop, on_wake, i, &i->wake, reterr);
        if (r == 0)
                r = loop_timer_new(all->session.loop, on_deadline, i, &i->deadline, reterr);
        if (r < 0) {
                (void)interpreter_free(i);
                return r;
        }
        *ret = i;
        return 0;
}

static void ask_next(Interpreter *i);

/* The interpreter violated the protocol. Its code must have written that, and may do it again, so
 * the interpreter ends. */
static void interpreter_give_up(Interpreter *i) {
        i->broken = true;
        close_channel(i);
        interpreter_let_go(i);
}

/* Keeps the CPU times for when the interpreter can no longer report them. */
static void note_spent(Interpreter *i, const JsonValue *root) {
        const JsonValue *spent = json_member(root, "spent");

        (void)json_uint(json_member(spent, "user_us"), JSON_INTEGER_MAX, &i->spent.user_us);
        (void)json_uint(json_member(spent, "system_us"), JSON_INTEGER_MAX, &i->spent.system_us);
}

static void end_watch(Interpreter *i) {
        if (!i->first->watcher)
                return;
        capture_unwatch(&i->process->output, i->first->watcher);
        process_follow_output(i->process);
}

/* Audits a timeout, unless the timeout has ended the process, because that end is audited
 * anyway. */
static void audit_time(const Interpreter *i) {
        if (i->first->timed_out && i->process->outcome.cause != CAUSE_TIMEOUT)
                i->all->session.on_timeout(i->all->session.data, i->process->id);
}

static void answer_first(Interpreter *i) {
        _cleanup_(json_freep) JsonDocument *said = TAKE_PTR(i->said);

        request_answer(i->first, json_root(said));
        i->has_run |= i->first->is_run || streq(i->first->what, "load");
        end_watch(i);
        interpreter_drop_first(i);
        if (i->once) {
                i->process->done = true;
                return interpreter_let_go(i);
        }
        ask_next(i);
}

/* A run has begun, so that it can be interrupted. */
static void interpreter_note_begin(Interpreter *i) {
        i->begun = true;
        if (i->signal_due)
                interpreter_signal(i);
}

static void on_line(Interpreter *i, const FramingLine *line) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const JsonValue *root, *id;
        uint64_t number;

        if (!line->bytes || interpreter_parse(i, line, &document) < 0)
                return interpreter_give_up(i);
        root = json_root(document);
        id = json_member(root, "id");
        if (json_uint(id, JSON_INTEGER_MAX, &number) < 0)
                return interpreter_give_up(i);
        if (number == 0 && !i->ready) {
                i->ready = true;
                loop_timer_set(i->deadline, 0);
                note_spent(i, root);
                return ask_next(i);
        }
        /* Ignores a second answer to an earlier run: its code had written the first one itself. */
        if (number > 0 && number <= i->all->last_number &&
            (!i->asked || number < i->first->number) && ++i->stale <= INTERPRETER_STALE_MAX)
                return;
        if (number == 0 && i->ready && i->all->session.kind == &interpreter_shell &&
            shell_take_fence(i, root))
                return;
        if (i->asked && number == i->first->number && !i->begun)
                return interpreter_note_begin(i);
        if (!i->asked || number != i->first->number ||
            (i->first->word[0] && !streq(json_member_text(root, "word"), i->first->word)))
                return interpreter_give_up(i);
        i->stale = 0;
        note_spent(i, root);
        process_drain(i->process);
        audit_time(i);
        loop_timer_set(i->deadline, 0);
        i->said = TAKE_PTR(document);
        if (i->first->is_run && !i->process->settled)
                i->all->session.on_run_end(i->all->session.data, i->process);
        if (process_is_swept(i->process))
                answer_first(i);
}

static void take_lines(Interpreter *i) {
        FramingLine line;

        while (i->channel >= 0 && !i->said && framing_next(&i->in, &line))
                on_line(i, &line);
}

static void read_channel(Interpreter *i) {
        size_t size;
        char *room;
        ssize_t n;

        if (framing_room(&i->in, &room, &size) < 0)
                return interpreter_give_up(i);
        n = read(i->channel, room, size);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) { /* The end of the process says why. */
                i->watch = loop_unwatch(i->watch);
                return;
        }
        framing_add(&i->in, (size_t)n);
        take_lines(i);
}

/* Data that arrives while an answer is held is read afterwards. */
static void on_channel(void *data, uint32_t events) {
        Interpreter *i = data;

        (void)events;
        if (!i->said)
                return read_channel(i);
        i->watch = loop_unwatch(i->watch);
        i->paused = true;
}

static void interpreter_resume(Interpreter *i) {
        Error ignored;

        take_lines(i);
        if (!i->paused || i->said || i->channel < 0)
                return;
        i->paused = false;
        if (loop_watch(i->all->session.loop, i->channel, EPOLLIN, on_channel, i, &i->watch,
                       &ignored) < 0)
                interpreter_give_up(i);
}

/* The time allowed for becoming ready. Code in the session's root may run before the interpreter is
 * ready, so the time is limited. */
static uint64_t ready_time(const Interpreter *i) {
        const uint64_t timeout = i->first ? i->first->timeout : 0;

        if (timeout == 0 || timeout > READY_TIME)
                return READY_TIME;
        return timeout < READY_TIME_MIN ? READY_TIME_MIN : timeout;
}

static int interpreter_start(Interpreter *i, Error *reterr) {
        const InterpreterSession *session = &i->all->session;
        ProcessSpec spec = { .cwd = session->plan->cwd,
                             .fds = { FD_NONE, FD_NONE, FD_NONE },
                             .input = INPUT_SOCKET,
                             .kept = CAPTURE_KEPT };
        int r = session->kind->fill_command(session, &spec) < 0 ? error_oom(reterr) : 0;

        if (r == 0)
                r = process_start(session->processes, &spec, &i->process, reterr);
        strlist_clear(&spec.argv);
        strlist_clear(&spec.env);
        if (r < 0)
                return r;
        i->ready = i->asked = i->stopped = i->broken = false;
        i->replaces = !i->once &&
                      (i->had_run || session->has_run(session->data, session->kind->method));
        i->stale = 0;
        i->interrupts = i->settled = 0;
        i->spent = (Usage){ 0 };
        loop_timer_set(i->deadline, time_now_usec() + ready_time(i));
        i->channel = fcntl(i->process->input, F_DUPFD_CLOEXEC, 3);
        if (i->channel < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot watch the %s",
                                 session->kind->noun);
        r = loop_watch(session->loop, i->channel, EPOLLIN, on_channel, i, &i->watch, reterr);
        return r == 0 && session->kind->begin ? session->kind->begin(i, reterr) : r;
}

/* A client that leaves replies unread must wait, because the answer may be large; other clients
 * need not wait for it. The requests of one client stay in order. */
static Request *take_next(Interpreter *i) {
        for (Request *request = i->first; request; request = request->next)
                if (!request->call || rpc_call_has_room(request->call)) {
                        (void)list_remove(&i->first, request);
                        list_push(&i->first, request);
                        return request;
                }
        return NULL;
}

/* Output reaches the watching client as fast as it reads: nothing is lost, and nothing piles up. */
static void begin_watch(Interpreter *i, const Request *request) {
        Capture *output = &i->process->output;

        if (request->watcher &&
            capture_watch(output, request->watcher, output->next_seq, request->base64) == 0)
                capture_hold(output, request->watcher, true);
}

static void interpreter_repeat_later(Interpreter *i) {
        const uint64_t after = i->all->session.kind->repeat;

        if (!after || !i->asked)
                return;
        i->repeat_at = time_now_usec() + after;
        loop_timer_set(i->wake, i->repeat_at);
}

/* Sends the waiting request first, because an interrupt that arrived before it would have no
 * effect. Code that must end does not wait for a watching client. */
void interpreter_signal(Interpreter *i) {
        if (i->asked && i->first->watcher)
                capture_hold(&i->process->output, i->first->watcher, false);
        i->signal_due = i->asked && !i->begun;
        if (i->signal_due)
                return process_flush_input(i->process);
        process_follow_output(i->process);
        process_flush_input(i->process);
        process_signal(i->process, SIGINT);
        i->interrupts++;
        interpreter_repeat_later(i);
        if (i->all->session.kind->interrupted)
                i->all->session.kind->interrupted(i);
}

/* A request that cannot be sent fails. */
static void fail_next(Interpreter *i, const Error *error) {
        fail_first(i, error);
        loop_timer_set(i->wake, time_now_usec());
}

static void ask_next(Interpreter *i) {
        const InterpreterSession *session = &i->all->session;
        Request *request;
        Error error;
        int r;

        if (i->asked || !i->ready || !i->process || i->process->settled || i->stopped)
                return;
        request = take_next(i);
        r = i->settled == i->interrupts ? 1 : session->kind->settle(i, &error);
        if (r < 0 && request)
                return fail_next(i, &error);
        if (r <= 0 || !request)
                return;
        process_drain(i->process);
        process_mark_denials(i->process, session->denials, session->network->denials,
                             session->gateway->denials);
        strlist_clear(&i->process->set_aside);
        capture_restart(&i->process->output, request->kept, request->keep_tail);
        begin_watch(i, request);
        request->asked_at = time_now_usec();
        interpreter_measure(i);
        if (process_write(i->process, request->line.data, request->line.length, &error) < 0)
                return fail_next(i, &error);
        i->asked = true;
        i->begun = !session->kind->tells_begin;
        i->signal_due = false;
        i->repeat_at = 0;
        if (request->grant)
                grant_set_exec(request->grant, i->process->id);
        session->on_run(session->data);
        if (request->timeout)
                loop_timer_set(i->deadline, request->asked_at + request->timeout);
}

/* Requests that arrive meanwhile wait for the next interpreter. */
static void end_unready(Interpreter *i) {
        Error error;

        (void)error_set(&error, ERROR_SETUP, ETIMEDOUT, "the %s did not become ready in time",
                        i->all->session.kind->noun);
        (void)error_cure(&error, 0,
                         "Other processes of the session may slow it down: holt ps lists them.");
        i->stopped = true;
        fail_all(i, &error);
        interpreter_let_go(i);
}

/* The first time interrupts the run; the second kills the interpreter. */
static void on_deadline(void *data) {
        Interpreter *i = data;

        if (!i->process)
                return;
        if (!i->ready)
                return end_unready(i);
        if (!i->asked)
                return;
        if (i->first->timed_out) {
                i->process->timed_out = true;
                return interpreter_let_go(i);
        }
        i->first->timed_out = true;
        interpreter_signal(i);
        loop_timer_set(i->deadline, time_now_usec() + i->all->session.plan->kill_after);
}

static void remove_once(Interpreter *i) {
        if (list_remove(&i->all->once, i))
                (void)interpreter_free(i);
}

static void interpreter_repeat(Interpreter *i) {
        if (time_now_usec() >= i->repeat_at)
                interpreter_signal(i);
        else
                loop_timer_set(i->wake, i->repeat_at);
}

/* Starts the interpreter for waiting requests, or frees it if it has done its single run. */
static void on_wake(void *data) {
        Interpreter *i = data;
        Error error;

        if (i->process && i->asked && i->repeat_at)
                return interpreter_repeat(i);
        if (i->process)
                return ask_next(i);
        if (!i->first) {
                if (i->once)
                        remove_once(i);
                return;
        }
        if (interpreter_start(i, &error) < 0)
                fail_all(i, &error);
}

static void set_ended(const Request *request, Error *reterr) {
        _cleanup_free_ char *time = policy_number_text(policy_field("limits.timeout"),
                                                       request->timeout);
        const char *noun = request->interpreter->all->session.kind->noun;

        if (!request->timed_out)
                (void)error_set(reterr, ERROR_SETUP, 0, "the %s ended by itself", noun);
        else
                (void)error_set(reterr, ERROR_SETUP, 0,
                                "the %s was stopped after %s, the limit of the session's "
                                "policy",
                                noun, time ? time : "its timeout");
}

/* Handles the end of the process. The current run learns how it ended, and waiting requests get a
 * new interpreter. They fail if this interpreter never started or never became ready. */
static void interpreter_settle(Interpreter *i) {
        Error error;

        if (i->channel >= 0 && (i->watch || i->paused))
                read_channel(i);
        if (i->has_run && !i->stopped)
                i->lost = cause_name(i->broken ? CAUSE_LOST : i->process->outcome.cause);
        if (i->asked)
                audit_time(i);
        if (i->process->outcome.cause == CAUSE_ERROR) {
                fail_all(i, &i->process->error);
        } else if (i->asked && i->first->is_run) {
                request_answer_lost(i->first);
                end_watch(i);
                interpreter_drop_first(i);
        } else if (i->asked || (i->first && !i->ready && !i->stopped)) {
                set_ended(i->first, &error);
                (i->asked ? fail_first : fail_all)(i, &error);
        }
        close_channel(i);
        i->process = NULL;
        i->ready = i->asked = i->stopped = i->has_run = false;
        loop_timer_set(i->wake, time_now_usec());
}

void interpreters_pump(Interpreters *all) {
        if (!all)
                return;
        if (all->lasting)
                ask_next(all->lasting);
        for (Interpreter *i = all->once; i; i = i->next)
                ask_next(i);
}

static void interpreter_go_on(Interpreter *i) {
        if (i->said) {
                answer_first(i);
                interpreter_resume(i);
        }
        if (i->process->settled && process_is_swept(i->process))
                interpreter_settle(i);
}

void interpreter_swept(Interpreters *all, Process *process) {
        if (!all)
                return;
        if (all->lasting && all->lasting->process == process)
                interpreter_go_on(all->lasting);
        list_each_safe(i, all->once)
                if (i->process == process)
                        interpreter_go_on(i);
}

/* --- for interpreter-ask.c --- */

void request_append(Interpreter *i, Request *request, RpcCall *call) {
        list_append(&i->first, request);
        i->waiting++;
        request->interpreter = i;
        request->call = call;
        request->came_ms = rpc_call_started_ms(call);
        rpc_call_on_end(call, interpreter_on_call_end, request);
        loop_timer_set(i->wake, time_now_usec());
        if (i->ready && i->process)
                ask_next(i);
}

void interpreter_end(Interpreter *i) {
        Error error;

        (void)error_set(&error, ERROR_SETUP, 0, "a client killed the %s",
                        i->all->session.kind->noun);
        while (i->first && i->first->next)
                fail_behind(i, &error);
        if (i->first && !i->asked)
                fail_first(i, &error);
        i->stopped = true;
        process_kill(i->process);
}

/* --- all of them --- */

int interpreters_new(const InterpreterSession *session, Interpreters **ret, Error *reterr) {
        Interpreters *all = calloc(1, sizeof(*all));

        if (!all)
                return error_oom(reterr);
        all->session = *session;
        *ret = all;
        return 0;
}

Interpreters *interpreters_free(Interpreters *all) {
        if (!all)
                return NULL;
        list_each_safe(i, all->once)
                (void)interpreter_free(i);
        (void)interpreter_free(all->lasting);
        free(all);
        return NULL;
}
