/* SPDX-License-Identifier: Apache-2.0 */
#include "session/unwritten.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"

enum { RETRY_TIME = 1000000 }; /* usec */

typedef struct Row {
        struct Row *next;
        StoreHistory row; /* whose texts are its own */
} Row;

struct Unwritten {
        Keeper *keeper;
        LoopTimer *again;
        Row *first;
        size_t count;
        uint64_t lost; /* that were too many */
        Error error;   /* of the last that could not be written */
};

static Row *row_free(Row *row) {
        free((char *)row->row.name);
        free((char *)row->row.params);
        free((char *)row->row.result);
        free(row);
        return NULL;
}

static void keep(Unwritten *all, const StoreHistory *row) {
        Row **last = &all->first, *copy = all->count < UNWRITTEN_MAX ? malloc(sizeof(*copy)) : NULL;

        loop_timer_set(all->again, time_now_usec() + RETRY_TIME);
        if (!copy) {
                all->lost++;
                return;
        }
        *copy = (Row){ .row = *row };
        copy->row.name = strdup(row->name);
        copy->row.params = strdup(row->params);
        copy->row.result = strdup(row->result);
        if (!copy->row.name || !copy->row.params || !copy->row.result) {
                (void)row_free(copy);
                all->lost++;
                return;
        }
        while (*last)
                last = &(*last)->next;
        *last = copy;
        all->count++;
}

static int write_row(Unwritten *all, const StoreHistory *row) {
        Store *store = all->keeper->store;
        int r = row->id ? store_history_end(store, row->id, row->result, row->ended_ms, &all->error)
                        : store_history_put(store, row, &all->error);

        /* There never will be room for that. */
        return r == -E2BIG ? 0 : r;
}

static int write_lost(Unwritten *all) {
        char detail[80];
        int r;

        if (all->lost == 0)
                return 0;
        (void)snprintf(detail, sizeof(detail), "{\"cause\":\"disk\",\"unrecorded\":%llu}",
                       (unsigned long long)all->lost);
        r = store_audit_add(all->keeper->store, "limit", detail, &all->error);
        if (r == 0)
                all->lost = 0;
        return r;
}

/* Those that wait, in their order. */
static int write_all(Unwritten *all) {
        int r = 0;

        while (all->first && (r = write_row(all, &all->first->row)) == 0) {
                Row *row = all->first;

                all->first = row->next;
                all->count--;
                (void)row_free(row);
        }
        return r < 0 ? r : write_lost(all);
}

static void on_again(void *data) {
        Unwritten *all = data;

        if (write_all(all) < 0)
                loop_timer_set(all->again, time_now_usec() + RETRY_TIME);
}

const char *unwritten_record(Unwritten *all, const StoreHistory *row) {
        int r = write_all(all);

        if (r == 0)
                r = write_row(all, row);
        if (r == 0)
                return NULL;
        keep(all, row);
        return all->error.text;
}

int unwritten_new(Keeper *keeper, Unwritten **ret, Error *reterr) {
        Unwritten *all = calloc(1, sizeof(*all));

        if (!all)
                return error_oom(reterr);
        all->keeper = keeper;
        *ret = all;
        return loop_timer_new(keeper->loop, on_again, all, &all->again, reterr);
}

Unwritten *unwritten_free(Unwritten *all) {
        if (!all)
                return NULL;
        (void)write_all(all);
        while (all->first) {
                Row *row = all->first;

                all->first = row->next;
                (void)row_free(row);
        }
        (void)loop_timer_free(all->again);
        free(all);
        return NULL;
}
