/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients to the interpreters: run code, answer a question, stop. */
#include "inside/interpreter-internal.h"

#include <errno.h>
#include <string.h>

static int ask_busy(Error *reterr, const char *what, int limit) {
        (void)error_set(reterr, ERROR_LIMIT, 0, "%d %s already", limit, what);
        return error_cure(reterr, -EBUSY, "Try again when some have ended.");
}

/* Chooses the interpreter of a request: the lasting one, or a fresh one. */
static int ask_choose(Interpreters *all, bool once, Interpreter **ret, Error *reterr) {
        unsigned count = 0;
        int r;

        if (!once) {
                if (all->lasting && all->lasting->waiting >= INTERPRETER_QUEUE_MAX)
                        return ask_busy(reterr, "requests wait for it", INTERPRETER_QUEUE_MAX);
                r = all->lasting ? 0 : interpreter_new(all, false, &all->lasting, reterr);
                *ret = all->lasting;
                return r;
        }
        for (const Interpreter *i = all->once; i; i = i->next)
                count++;
        if (count >= INTERPRETERS_ONCE_MAX)
                return ask_busy(reterr, "fresh interpreters run", INTERPRETERS_ONCE_MAX);
        r = interpreter_new(all, true, ret, reterr);
        if (r == 0) {
                (*ret)->next = all->once;
                all->once = *ret;
        }
        return r;
}

static Request *request_new(Interpreters *all) {
        Request *request = calloc(1, sizeof(*request));

        if (!request)
                return NULL;
        request->number = ++all->last_number;
        return request;
}

static int ask_finish(Interpreters *all, Request *request, RpcCall *call, bool once,
                      Error *reterr) {
        Interpreter *i;
        int r = ask_choose(all, once, &i, reterr);

        if (r < 0) {
                (void)request_free(request);
                return r;
        }
        request_append(i, request, call);
        return 0;
}

int interpreter_run(Interpreters *all, RpcCall *call, const CodeRun *run, Error *reterr) {
        Request *request = request_new(all);

        if (!request) {
                (void)grant_end(run->grant);
                return error_oom(reterr);
        }
        request->grant = run->grant;
        if (all->session.kind->write_run(request, run) < 0) {
                (void)request_free(request);
                return error_oom(reterr);
        }
        request->is_run = true;
        request->timeout = run->timeout;
        request->kept = run->kept;
        request->keep_tail = run->keep_tail;
        request->base64 = run->base64;
        request->watcher = run->watch ? rpc_call_connection(call) : NULL;
        request->params = rpc_params_text(call);
        request->name = run->name ? strdup(run->name) : NULL;
        return ask_finish(all, request, call, run->once, reterr);
}

int interpreter_ask(Interpreters *all, RpcCall *call, const char *what, const char *path,
                    Error *reterr) {
        Request *request = request_new(all);

        if (!request)
                return error_oom(reterr);
        request->what = what;
        /* Listing values runs their own code, such as __repr__. */
        request->timeout = all->session.plan->timeout;
        json_write_object(&request->line, NULL);
        json_write_uint(&request->line, "id", request->number);
        json_write_string(&request->line, "do", what);
        json_write_string(&request->line, "path", path);
        json_write_end(&request->line);
        if (json_write_finish(&request->line) < 0) {
                (void)request_free(request);
                return error_oom(reterr);
        }
        return ask_finish(all, request, call, false, reterr);
}

static Request *ask_find_in(const Interpreter *i, const RpcConnection *client, const char *name) {
        for (Request *request = i ? i->first : NULL; request; request = request->next)
                if (request->call && rpc_call_connection(request->call) == client &&
                    request->name && streq(request->name, name))
                        return request;
        return NULL;
}

static Request *find_run(const Interpreters *all, const RpcConnection *client, const char *name) {
        Request *found = ask_find_in(all->lasting, client, name);

        for (const Interpreter *i = all->once; i && !found; i = i->next)
                found = ask_find_in(i, client, name);
        return found;
}

/* Returns true if the request had not begun. */
static bool cancel_waiting(Request *request) {
        Error error;

        if (request_has_begun(request))
                return false;
        (void)error_set(&error, ERROR_SETUP, 0, "the run was cancelled before it began");
        rpc_fail(request->call, &error);
        request_take_back(request);
        return true;
}

/* Finds the interpreter of the named run, or the lasting one if it has a process. *ret_done: the
 * run still waited, and is now cancelled. */
static Interpreter *find_running(Interpreters *all, const RpcConnection *client, const char *name,
                                 bool *ret_done) {
        Request *request = name ? find_run(all, client, name) : NULL;
        Interpreter *i = request ? request->interpreter : all->lasting;

        *ret_done = request && cancel_waiting(request);
        if (*ret_done || (name && !request))
                return NULL;
        return i && i->process ? i : NULL;
}

bool interpreter_interrupt(Interpreters *all, const RpcConnection *client, const char *name) {
        bool done;
        Interpreter *i = find_running(all, client, name, &done);

        if (!i || !i->asked)
                return done;
        interpreter_signal(i);
        return true;
}

bool interpreter_kill(Interpreters *all, const RpcConnection *client, const char *name) {
        bool done;
        Interpreter *i = find_running(all, client, name, &done);

        if (!i)
                return done;
        interpreter_end(i);
        return true;
}
