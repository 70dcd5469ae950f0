/* SPDX-License-Identifier: Apache-2.0 */
#include "methods/past.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "methods/area.h"

enum { PAST_ROWS_MAX = 20000 }; /* Rows of the history that are searched for each method. */

typedef struct Past {
        char start[24]; /* How the result of its row begins (keeper/notes.c). */
        bool found;
        char cause[16];
        uint64_t exit_code, wall_us;
} Past;

static bool past_number(const char *id, uint64_t *ret) {
        return id[0] == 'p' && id[1] != '0' && str_to_uint(id + 1, UINT32_MAX, ret) == 0;
}

static bool past_existed(uint32_t last, const char *id) {
        uint64_t number;

        return past_number(id, &number) && number > 0 && number <= last;
}

/* The newest row comes first. Returns 1 to end the search. */
static int past_look_at(void *data, const StoreHistory *row) {
        JsonDocument *document = NULL;
        Past *past = data;
        Error ignored;

        if (!row->result || !str_starts(row->result, past->start))
                return 0;
        if (json_parse(row->result, strlen(row->result), "history", &document, &ignored) < 0)
                return 0;
        (void)snprintf(past->cause, sizeof(past->cause), "%s",
                       json_member_text(json_root(document), "cause"));
        past->exit_code = json_member_uint(json_root(document), "exit_code");
        past->wall_us = row->ended_ms > row->started_ms ? (row->ended_ms - row->started_ms) * 1000
                                                        : 0;
        past->found = true;
        json_free(document);
        return 1;
}

static void past_find(Store *store, const char *id, Past *ret) {
        static const char *const names[] = { "process.spawn", "exec" };
        Error ignored;

        *ret = (Past){ 0 };
        (void)snprintf(ret->start, sizeof(ret->start), "{\"id\":\"%.10s\",", id);
        for (size_t i = 0; !ret->found && i < ELEMENTSOF(names); i++)
                (void)store_history_list(store, 0, names[i], PAST_ROWS_MAX, past_look_at, ret,
                                         &ignored);
}

static int past_refuse_found(const Past *past, const char *id, bool output, Error *error) {
        int r;

        if (past->found)
                r = error_set(error, ERROR_NO_PROCESS, 0,
                              "process \"%.32s\" has ended: %s, exit code %u%s", id, past->cause,
                              (unsigned)past->exit_code,
                              output ? "; its output is not kept any more" : "");
        else
                r = error_set(error, ERROR_NO_PROCESS, 0,
                              "process \"%.32s\" does not exist any more, and the history does not "
                              "say how it ended",
                              id);
        (void)error_cure(error, r,
                         "holt keeps processes and their output until the session stops, and only "
                         "the last %d that have ended. holt history NAME lists all commands.",
                         PROCESSES_ENDED_MAX);
        return -ENOENT;
}

/* --- a result --- */

static void past_write_empty(JsonWriter *w, const char *key) {
        json_write_array(w, key);
        json_write_end(w);
}

static void past_write_usage(const Past *past, JsonWriter *w) {
        json_write_object(w, "usage");
        json_write_uint(w, "wall_us", past->wall_us);
        json_write_null(w, "user_us");
        json_write_null(w, "system_us");
        json_write_null(w, "max_rss_bytes");
        json_write_end(w);
}

/* Writes what keeper_write_result() writes, as far as the history has it. */
static void past_write(const Past *past, const char *id, JsonWriter *w) {
        static const char *const counts[] = { "stdout_bytes", "stderr_bytes", "stdout_dropped",
                                              "stderr_dropped" };
        const bool signaled = streq(past->cause, cause_name(CAUSE_SIGNALED)) &&
                              past->exit_code > 128;

        json_write_string(w, "id", id);
        outcome_write_end(w, past->cause, (int)past->exit_code);
        json_write_uint_or_null(w, "signal", signaled ? past->exit_code - 128 : 0);
        past_write_usage(past, w);
        json_write_null(w, "timeout_us");
        for (size_t i = 0; i < ELEMENTSOF(counts); i++)
                json_write_uint(w, counts[i], 0);
        past_write_empty(w, "denials");
        past_write_empty(w, "limits_hit");
        past_write_empty(w, "set_aside");
        json_write_null(w, "replaced");
}

/* --- for a live session --- */

static uint32_t past_last(const Keeper *keeper) {
        return processes_last_number(keeper->processes);
}

int past_process(Keeper *keeper, const char *id, bool output, Process **ret, Error *error) {
        int r = process_find(keeper->processes, id, ret, error);
        Past past;

        if (r != -ENOENT || !past_existed(past_last(keeper), id))
                return r;
        past_find(keeper->store, id, &past);
        return past_refuse_found(&past, id, output, error);
}

int past_wait(Keeper *keeper, RpcCall *call, const char *id, Error *error) {
        Past past;

        if (!past_existed(past_last(keeper), id))
                return -ENOENT;
        past_find(keeper->store, id, &past);
        /* The output is no longer known, and an empty one would be wrong. */
        if (!past.found || rpc_bool(call, "output", false))
                return past_refuse_found(&past, id, true, error);
        past_write(&past, id, rpc_result(call));
        rpc_reply(call);
        return 0;
}

bool past_has(const Keeper *keeper, const char *id) {
        return past_existed(past_last(keeper), id);
}

/* --- for a session at rest --- */

static int past_refuse_unknown(const char *id, Error *error) {
        int r = error_set(error, ERROR_NO_PROCESS, 0, "process \"%.32s\" does not exist", id);

        (void)error_cure(error, r,
                         "The session is at rest. Its history lists the commands that it ran: "
                         "holt history NAME");
        return -ENOENT;
}

int past_stored(Store *store, const char *path, const void *data, JsonWriter *w, Error *reterr) {
        _cleanup_free_ char *file = str_format("%s/" PROCESS_NUMBER_FILE, path);
        const PastAsk *ask = data;
        _cleanup_close_ int fd = file ? open(file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : FD_NONE;
        Past past;

        if (!past_existed(process_read_number(fd), ask->id))
                return past_refuse_unknown(ask->id, reterr);
        past_find(store, ask->id, &past);
        if (ask->what == PAST_KILL)
                json_write_bool(w, "killed", false);
        else if (ask->what == PAST_WAIT && past.found)
                past_write(&past, ask->id, w);
        else
                return past_refuse_found(&past, ask->id, ask->what == PAST_LOGS, reterr);
        return 0;
}
