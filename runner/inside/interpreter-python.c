/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter that is a python3. */
#include "inside/interpreter-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "inside/bridge.h"

/* The interpreter has no token of its own, because each run has one. Startup files in the session's
 * home (-s) and Python's environment variables (-E) must not affect whether it becomes ready. */
static int python_fill_command(const InterpreterSession *session, ProcessSpec *spec) {
        const char *program = session->program;
        int r = strlist_add(&spec->argv, program ? program : "python3");

        if (r == 0)
                r = strlist_add(&spec->argv, "-s") < 0 ? -ENOMEM : strlist_add(&spec->argv, "-E");
        if (r == 0)
                r = strlist_add(&spec->argv, INTERPRETER_MODULE);
        for (size_t n = 0; r == 0 && n < session->plan->env.count; n++)
                r = strlist_add(&spec->env, session->plan->env.items[n]);
        return r == 0 ? bridge_fill_env(NULL, &spec->env) : r;
}

static void python_write_env(const StrList *env, const Grant *grant, JsonWriter *w) {
        json_write_object(w, "env");
        json_write_string(w, "HOLT_BRIDGE_TOKEN", grant_token(grant));
        for (size_t n = 0; env && n < env->count; n++) {
                const size_t length = strcspn(env->items[n], "=");
                _cleanup_free_ char *name = strndup(env->items[n], length);

                if (name)
                        json_write_string(w, name, env->items[n] + length + 1);
        }
        json_write_end(w);
}

static int python_write_run(Request *request, const CodeRun *run) {
        JsonWriter *w = &request->line;

        json_write_object(w, NULL);
        json_write_uint(w, "id", request->number);
        json_write_string(w, "code", run->code);
        if (run->file)
                json_write_string(w, "file", run->file);
        json_write_string(w, "cwd", run->cwd);
        python_write_env(run->env, run->grant, w);
        json_write_end(w);
        return json_write_finish(w);
}

/* Interrupts travel by init and requests by the channel, so a request may arrive first. Before the
 * next request, the interpreter is therefore told how many interrupts to expect. */
static int python_settle(Interpreter *i, Error *reterr) {
        char line[64];
        int length, r;

        length = snprintf(line, sizeof(line), "{\"interrupts\":%" PRIu64 "}\n", i->interrupts);
        r = process_write(i->process, line, (size_t)length, reterr);
        if (r == 0)
                i->settled = i->interrupts;
        return r == 0 ? 1 : r;
}

static void python_copy_displays(const JsonValue *displays, JsonWriter *w) {
        json_write_array(w, "displays");
        for (const JsonValue *v = json_first(displays); v; v = json_next(v))
                if (json_type(v) == JSON_OBJECT)
                        answer_copy_texts(v, NULL, w);
        json_write_end(w);
}

static void python_write_said(const JsonValue *root, JsonWriter *w) {
        static const char *const names[] = { "name", "message", "traceback" };
        const JsonValue *result = json_member(root, "result"), *error = json_member(root, "error");

        json_write_string(w, "result", json_string(result));
        python_copy_displays(json_member(root, "displays"), w);
        if (!error || json_type(error) != JSON_OBJECT)
                return json_write_null(w, "error");
        json_write_object(w, "error");
        answer_copy_named(error, names, ELEMENTSOF(names), "", w);
        json_write_end(w);
}

const InterpreterKind interpreter_python = {
        .noun = "interpreter",
        .method = "python.run",
        .renewed = "new_interpreter",
        .fill_command = python_fill_command,
        .write_run = python_write_run,
        .settle = python_settle,
        .write_said = python_write_said,
};
