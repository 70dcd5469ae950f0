/* SPDX-License-Identifier: Apache-2.0 */
#include "inside/interpreter-internal.h"

#include <errno.h>
#include <string.h>

#include "process/report.h"

int interpreter_parse(const Interpreter *i, const FramingLine *line, JsonDocument **ret) {
        const InterpreterKind *kind = i->all->session.kind;
        FramingLine made = *line;
        char buf[128];
        Error ignored;

        if (kind->read_line) {
                if (!kind->read_line(line, buf, sizeof(buf)))
                        return -EBADMSG;
                made.bytes = buf;
                made.length = strlen(buf);
        }
        return json_parse_large(made.bytes, made.length, INTERPRETER_ANSWER_MAX, "answer", ret,
                                &ignored);
}

/* Returns NULL, or the reason why the run is not in the history yet. */
static const char *answer_note(const Request *request, const char *cause, int exit_code) {
        const InterpreterSession *session = &request->interpreter->all->session;
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        outcome_write_end(&w, cause, exit_code);
        json_write_end(&w);
        if (!request->params || json_write_finish(&w) < 0)
                return NULL;
        return session->note(session->data, session->kind->method, request->params, w.data,
                             request->came_ms);
}

/* Notes the end of a run, and begins its result with the members that every run has. complaint: the
 * message of the error that ended it, or "". Returns NULL if nobody waits for the result. */
static JsonWriter *answer_begin_run(const Request *request, Cause ended, int exit_code,
                                    const char *complaint, bool state_kept) {
        Interpreter *i = request->interpreter;
        const Process *process = i->process;
        const char *cause = cause_name(ended), *unrecorded = answer_note(request, cause, exit_code);
        JsonWriter *w;

        if (!request->call)
                return NULL;
        w = rpc_result(request->call);
        if (unrecorded)
                json_write_string(w, "unrecorded", unrecorded);

        json_write_string(w, "id", process->id);
        outcome_write_end(w, cause, exit_code);
        json_write_uint_or_null(w, "timeout_us", request->timeout);
        json_write_bool(w, "state_kept", state_kept);
        json_write_string(w, "lost", state_kept ? i->lost : NULL);
        i->lost = NULL;
        json_write_bool(w, i->all->session.kind->renewed, i->replaces);
        i->replaces = false;
        i->had_run = true;
        process_write_output(process, 0, "stdout", request->base64, w);
        process_write_output(process, 1, "stderr", request->base64, w);
        json_write_uint(w, "stdout_dropped", process->output.streams[0].dropped);
        json_write_uint(w, "stderr_dropped", process->output.streams[1].dropped);
        i->all->session.write_denials(i->all->session.data, process, request->timeout,
                                      exit_code != 0 ? complaint : NULL, w);
        process_write_set_aside(process, w);
        return w;
}

void answer_copy_texts(const JsonValue *object, const char *key, JsonWriter *w) {
        json_write_object(w, key);
        if (object && json_type(object) == JSON_OBJECT)
                for (const JsonValue *v = json_first(object); v; v = json_next(v))
                        if (json_string(v))
                                json_write_string(w, json_key(v), json_string(v));
        json_write_end(w);
}

void answer_copy_named(const JsonValue *object, const char *const *names, size_t count,
                       const char *missing, JsonWriter *w) {
        for (size_t n = 0; n < count; n++) {
                const char *text = json_member_string(object, names[n]);

                json_write_string(w, names[n], text ? text : missing);
        }
}

static void copy_usage(const Request *request, const JsonValue *said, JsonWriter *w) {
        static const char *const names[] = { "user_us", "system_us", "max_rss_bytes" };

        json_write_object(w, "usage");
        json_write_uint(w, "wall_us", time_now_usec() - request->asked_at);
        for (size_t n = 0; n < ELEMENTSOF(names); n++) {
                const JsonValue *value = json_member(said, names[n]);
                uint64_t number = 0;

                if (json_uint(value, JSON_INTEGER_MAX, &number) == 0)
                        json_write_uint(w, names[n], number);
                else
                        json_write_null(w, names[n]);
        }
        json_write_end(w);
}

/* A new interpreter may be ready before init has reported its number. It has used no time yet. */
void interpreter_measure(Interpreter *i) {
        if (!i->all->session.kind->measured)
                return;
        i->spent = (Usage){ 0 };
        i->spent_known = i->process->pid == 0 || process_spent(i->process, &i->spent);
}

/* A command that nobody has waited for, such as one in the background, does not count yet. The
 * kernel tells the memory of such commands only to their parent, which is the shell. */
static void write_measured_usage(const Request *request, JsonWriter *w) {
        const Interpreter *i = request->interpreter;
        Usage now;

        /* The shell may have ended just now, and another process may have its number. */
        if (!i->spent_known || !process_spent(i->process, &now) || now.user_us < i->spent.user_us ||
            now.system_us < i->spent.system_us)
                return copy_usage(request, NULL, w);
        json_write_object(w, "usage");
        json_write_uint(w, "wall_us", time_now_usec() - request->asked_at);
        json_write_uint(w, "user_us", now.user_us - i->spent.user_us);
        json_write_uint(w, "system_us", now.system_us - i->spent.system_us);
        json_write_null(w, "max_rss_bytes");
        json_write_end(w);
}

static void answer_run(Request *request, const JsonValue *root) {
        const JsonValue *said = json_member(root, "exit_code");
        const char *complaint = json_member_string(json_member(root, "error"), "traceback");
        const Cause cause = request->timed_out ? CAUSE_TIMEOUT : CAUSE_EXITED;
        uint64_t code = 1;
        JsonWriter *w;

        (void)json_uint(said, 255, &code);
        if (request->timed_out)
                code = EXIT_CODE_TIMEOUT;
        w = answer_begin_run(request, cause, (int)code, complaint ? complaint : "", true);
        if (!w)
                return;
        request->interpreter->all->session.kind->write_said(root, w);
        if (request->interpreter->all->session.kind->measured)
                write_measured_usage(request, w);
        else
                copy_usage(request, json_member(root, "usage"), w);
        rpc_reply(request->call);
}

/* --- requests that run nothing --- */

static void copy_strings(const JsonValue *list, const char *key, JsonWriter *w) {
        json_write_array(w, key);
        if (list && json_type(list) == JSON_ARRAY)
                for (const JsonValue *v = json_first(list); v; v = json_next(v))
                        if (json_string(v))
                                json_write_string(w, NULL, json_string(v));
        json_write_end(w);
}

static void copy_variables(const JsonValue *list, const char *key, JsonWriter *w) {
        static const char *const names[] = { "name", "type", "repr" }, *const may_lack[] = {
                "size"
        };

        json_write_array(w, key);
        if (list && json_type(list) == JSON_ARRAY)
                for (const JsonValue *v = json_first(list); v; v = json_next(v)) {
                        json_write_object(w, NULL);
                        answer_copy_named(v, names, ELEMENTSOF(names), "", w);
                        answer_copy_named(v, may_lack, ELEMENTSOF(may_lack), NULL, w);
                        json_write_end(w);
                }
        json_write_end(w);
}

static void copy_text(const JsonValue *value, const char *key, JsonWriter *w) {
        const char *text = json_string(value);

        json_write_string(w, key, text ? text : "");
}

/* A reply always has this form, whatever the interpreter answered. */
static const struct {
        const char *what, *member;
        void (*copy)(const JsonValue *value, const char *key, JsonWriter *w);
} answers[] = {
        { "variables", "variables", copy_variables },
        { "save", "saved", copy_strings },
        { "save", "left_out", answer_copy_texts },
        { "save", "path", copy_text },
        { "load", "loaded", copy_strings },
        { "load", "failed", answer_copy_texts },
        { "load", "path", copy_text },
};

/* Kinds of failure that the interpreter may name. */
static ErrorKind kind_of(const JsonValue *error) {
        static const ErrorKind kinds[] = { ERROR_MISSING, ERROR_DATA };
        const char *kind = json_member_string(error, "kind");

        for (size_t i = 0; kind && i < ELEMENTSOF(kinds); i++)
                if (streq(kind, error_kind_name(kinds[i])))
                        return kinds[i];
        return ERROR_SETUP;
}

/* Replies with an object, or with an error. */
static void answer_other(Request *request, const JsonValue *root) {
        const JsonValue *answer = json_member(root, "answer"), *error = json_member(root, "error");
        const char *message = json_member_string(error, "message");
        JsonWriter *w;
        Error failed;

        if (!request->call)
                return;
        if (!answer || json_type(answer) != JSON_OBJECT) {
                (void)error_set(&failed, kind_of(error), 0, "the interpreter: %.500s",
                                message ? message : "it sent no answer");
                rpc_fail(request->call, &failed);
                return;
        }
        w = rpc_result(request->call);
        for (size_t n = 0; n < ELEMENTSOF(answers); n++)
                if (streq(answers[n].what, request->what))
                        answers[n].copy(json_member(answer, answers[n].member), answers[n].member,
                                        w);
        rpc_reply(request->call);
}

/* Writes the process's usage minus its usage before the run. Members are null if init does not know
 * the usage, for example because its monitor was killed together with it. */
static void write_lost_usage(const Request *request, JsonWriter *w) {
        const Usage *all = &request->interpreter->process->outcome.usage;
        const Usage *spent = &request->interpreter->spent;

        if (all->max_rss == 0)
                return copy_usage(request, NULL, w);
        json_write_object(w, "usage");
        json_write_uint(w, "wall_us", time_now_usec() - request->asked_at);
        json_write_uint(w, "user_us",
                        all->user_us > spent->user_us ? all->user_us - spent->user_us : 0);
        json_write_uint(w, "system_us",
                        all->system_us > spent->system_us ? all->system_us - spent->system_us : 0);
        json_write_uint(w, "max_rss_bytes", all->max_rss);
        json_write_end(w);
}

/* The interpreter has ended during the run. */
void request_answer_lost(Request *request) {
        Process *process = request->interpreter->process;
        const Outcome *out = &process->outcome;
        const Cause cause = request->timed_out             ? CAUSE_TIMEOUT
                            : request->interpreter->broken ? CAUSE_LOST
                                                           : out->cause;
        const bool exited = cause == CAUSE_EXITED &&
                            request->interpreter->all->session.kind->may_exit;
        const int code = request->timed_out         ? EXIT_CODE_TIMEOUT
                         : out->exit_code || exited ? out->exit_code
                                                    : 1;
        JsonWriter *w = answer_begin_run(request, cause, code, "", false);

        if (!w)
                return;
        request->interpreter->all->session.kind->write_said(NULL, w);
        write_lost_usage(request, w);
        rpc_reply(request->call);
}

void request_answer(Request *request, const JsonValue *root) {
        if (request->is_run)
                answer_run(request, root);
        else
                answer_other(request, root);
}
