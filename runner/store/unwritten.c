/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unwritten.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/time.h"

enum {
        MOVE_TIME = 50000, /* usec until the database takes the pending rows */
        RETRY_TIME = 1000000,
};

typedef enum RowKind {
        ROW_PUT,     /* a row of the history */
        ROW_END,     /* only the end of a row of the history */
        ROW_AUDIT,   /* a row of the audit */
        ROW_AUDITED, /* a row of both */
        ROW_KIND_MAX,
} RowKind;

typedef enum Loss {
        LOSS_MANY,  /* more rows than may wait */
        LOSS_LARGE, /* a row larger than the limit */
        LOSS_MAX,
} Loss;

static const char *const loss_causes[] = { [LOSS_MANY] = "disk", [LOSS_LARGE] = "size" };

typedef struct Row {
        RowKind kind;
        StoreHistory history;
        StoreAudit audit;
} Row;

enum { ROW_TEXTS = 5 };

typedef struct Waiting {
        struct Waiting *next;
        uint64_t number; /* counted from 1 */
        Row row;         /* its texts are owned */
} Waiting;

struct Unwritten {
        Store *store;
        LoopTimer *timer; /* set while anything waits */
        Waiting *first;
        size_t counts[ROW_KIND_MAX];
        uint64_t numbers; /* number of rows that have waited so far */
        uint64_t last;    /* number of the last row to be written; 0 if it did not wait */
        uint64_t lost[LOSS_MAX];
        Error error; /* why the last row could not be written */
};

/* --- one call of the store for each kind --- */

static int write_put(Store *store, const Row *row, Error *reterr) {
        return store_history_put(store, &row->history, reterr);
}

static int write_end(Store *store, const Row *row, Error *reterr) {
        return store_history_end(store, row->history.id, row->history.result, row->history.ended_ms,
                                 reterr);
}

static int write_audit(Store *store, const Row *row, Error *reterr) {
        return store_audit_add(store, row->audit.kind, row->audit.detail, row->audit.at_ms, reterr);
}

static int write_audited(Store *store, const Row *row, Error *reterr) {
        return store_audited_add(store, &row->history, row->audit.kind, row->audit.detail, reterr);
}

static int (*const writers[])(Store *store, const Row *row, Error *reterr) = {
        [ROW_PUT] = write_put,
        [ROW_END] = write_end,
        [ROW_AUDIT] = write_audit,
        [ROW_AUDITED] = write_audited,
};
static_assert(ELEMENTSOF(writers) == ROW_KIND_MAX, "every kind can be written");

static void texts_of(Row *row, const char **ret[ROW_TEXTS]) {
        ret[0] = &row->history.name;
        ret[1] = &row->history.params;
        ret[2] = &row->history.result;
        ret[3] = &row->audit.kind;
        ret[4] = &row->audit.detail;
}

/* --- the queue --- */

static void waiting_free(Waiting *waiting) {
        const char **texts[ROW_TEXTS];

        texts_of(&waiting->row, texts);
        for (size_t i = 0; i < ROW_TEXTS; i++)
                free((char *)*texts[i]);
        free(waiting);
}

static Waiting *waiting_new(const Row *row) {
        Waiting *waiting = malloc(sizeof(*waiting));
        const char **texts[ROW_TEXTS];
        bool whole = true;

        if (!waiting)
                return NULL;
        *waiting = (Waiting){ .row = *row };
        texts_of(&waiting->row, texts);
        for (size_t i = 0; i < ROW_TEXTS; i++)
                if (*texts[i]) {
                        *texts[i] = strdup(*texts[i]);
                        whole &= *texts[i] != NULL;
                }
        if (whole)
                return waiting;
        waiting_free(waiting);
        return NULL;
}

static bool has_lost(const Unwritten *all) {
        return all->lost[LOSS_MANY] > 0 || all->lost[LOSS_LARGE] > 0;
}

/* The timer is already set if anything waits. */
static void try_again(const Unwritten *all) {
        if (!all->first && !has_lost(all))
                loop_timer_set(all->timer, time_now_usec() + RETRY_TIME);
}

static void unwritten_lose(Unwritten *all, Loss loss) {
        try_again(all);
        all->lost[loss]++;
}

static void unwritten_keep(Unwritten *all, const Row *row) {
        Waiting *waiting = all->counts[row->kind] < UNWRITTEN_MAX ? waiting_new(row) : NULL;

        if (!waiting)
                return unwritten_lose(all, LOSS_MANY);
        try_again(all);
        list_append(&all->first, waiting);
        waiting->number = all->last = ++all->numbers;
        all->counts[row->kind]++;
}

static void unwritten_drop_first(Unwritten *all) {
        Waiting *waiting = all->first;

        all->first = waiting->next;
        all->counts[waiting->row.kind]--;
        waiting_free(waiting);
}

/* --- writing --- */

/* After -E2BIG, the row is lost, because it can never fit. */
static int write_row(Unwritten *all, const Row *row) {
        int r = writers[row->kind](all->store, row, &all->error);

        if (r == -E2BIG)
                unwritten_lose(all, LOSS_LARGE);
        return r;
}

static int write_lost(Unwritten *all) {
        int r = 0;

        for (size_t i = 0; i < LOSS_MAX && r == 0; i++) {
                char detail[80];

                if (all->lost[i] == 0)
                        continue;
                (void)snprintf(detail, sizeof(detail),
                               "{\"cause\":\"%s\",\"unrecorded\":%" PRIu64 "}", loss_causes[i],
                               all->lost[i]);
                r = store_audit_add(all->store, "limit", detail, time_epoch_ms(), &all->error);
                if (r == 0)
                        all->lost[i] = 0;
        }
        return r;
}

/* Writes the waiting rows, in order. */
static int unwritten_write_all(Unwritten *all) {
        while (all->first) {
                int r = write_row(all, &all->first->row);

                if (r < 0 && r != -E2BIG)
                        return r;
                unwritten_drop_first(all);
        }
        return write_lost(all);
}

static const char *write_or_keep(Unwritten *all, const Row *row) {
        int r = unwritten_write_all(all);

        all->last = 0;
        if (r == 0)
                r = write_row(all, row);
        if (r < 0 && r != -E2BIG)
                unwritten_keep(all, row);
        return r < 0 ? all->error.text : NULL;
}

const char *unwritten_record(Unwritten *all, const StoreHistory *row) {
        return write_or_keep(all,
                             &(const Row){ .kind = row->id ? ROW_END : ROW_PUT, .history = *row });
}

uint64_t unwritten_last(const Unwritten *all) {
        return all->last;
}

bool unwritten_waits(const Unwritten *all, uint64_t row) {
        const Waiting *waiting = all->first;

        while (waiting && waiting->number < row)
                waiting = waiting->next;
        return row == 0 || (waiting && waiting->number == row);
}

void unwritten_audit(Unwritten *all, const char *kind, const char *detail) {
        (void)write_or_keep(all, &(const Row){ .kind = ROW_AUDIT,
                                               .audit = { .at_ms = time_epoch_ms(),
                                                          .kind = kind,
                                                          .detail = detail } });
}

void unwritten_audited(Unwritten *all, const StoreHistory *row, const char *kind,
                       const char *detail) {
        (void)write_or_keep(all, &(const Row){ .kind = ROW_AUDITED,
                                               .history = *row,
                                               .audit = { .kind = kind, .detail = detail } });
}

/* --- the timer --- */

static void unwritten_on_time(void *data) {
        Unwritten *all = data;
        Error ignored;
        const int moved = store_history_flush(all->store, &ignored);

        if (moved < 0 || unwritten_write_all(all) < 0)
                loop_timer_set(all->timer, time_now_usec() + RETRY_TIME);
}

static void on_pending(void *data) {
        const Unwritten *all = data;

        loop_timer_set(all->timer, time_now_usec() + MOVE_TIME);
}

int unwritten_new(Loop *loop, Store *store, Unwritten **ret, Error *reterr) {
        Unwritten *all = calloc(1, sizeof(*all));
        int r;

        if (!all)
                return error_oom(reterr);
        all->store = store;
        *ret = all;
        r = loop_timer_new(loop, unwritten_on_time, all, &all->timer, reterr);
        if (r == 0)
                store_on_pending(store, on_pending, all);
        return r;
}

Unwritten *unwritten_free(Unwritten *all) {
        if (!all)
                return NULL;
        (void)unwritten_write_all(all);
        while (all->first)
                unwritten_drop_first(all);
        store_on_pending(all->store, NULL, NULL);
        (void)loop_timer_free(all->timer);
        free(all);
        return NULL;
}
