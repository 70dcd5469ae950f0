/* SPDX-License-Identifier: Apache-2.0 */
#include "files/work.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/list.h"
#include "base/threads.h"
#include "base/time.h"
#include "files/walk.h"

enum {
        MOMENT = 2000,        /* usec that the loop waits for a work that it has started. */
        STACK_SIZE = 8 << 20, /* Bytes, as for a main thread. */
};

typedef struct Job {
        struct Job *next;
        Works *works;
        RpcCall *call; /* NULL once its client has gone. */
        const FilesWorkKind *kind;
        FilesWork *work;
        Thread thread;
        atomic_bool stop;
        int result;
        Error error;
} Job;

struct Works {
        Threads *threads;
        Job *running, *waiting; /* waiting is in the order of arrival. */
        unsigned count;         /* Number of running jobs. */
};

/* --- one call --- */

static FilesWork *work_free(FilesWork *work) {
        if (!work)
                return NULL;
        free(work->path);
        free(work->to);
        free(work->pattern);
        free(work->content);
        strlist_clear(&work->names);
        unfinished_leave(&work->unfinished);
        json_write_clear(&work->list);
        free(work);
        return NULL;
}

static int copy_string(char **ret, const char *string) {
        *ret = string ? strdup(string) : NULL;
        return string && !*ret ? -ENOMEM : 0;
}

int work_new(Files *files, const char *path, const char *to, const char *pattern, FilesWork **ret,
             Error *reterr) {
        FilesWork *work = calloc(1, sizeof(*work));

        if (!work)
                return error_oom(reterr);
        work->files = files;
        work->unfinished = UNFINISHED_NONE;
        if (copy_string(&work->path, path) < 0 || copy_string(&work->to, to) < 0 ||
            copy_string(&work->pattern, pattern) < 0) {
                (void)work_free(work);
                return error_oom(reterr);
        }
        *ret = work;
        return 0;
}

static void job_free(Job *job) {
        (void)work_free(job->work);
        free(job);
}

/* Runs on the thread. */
static void do_work(void *data) {
        Job *job = data;

        (void)walk_until(&job->stop);
        job->result = job->kind->run(job->work, &job->error);
        (void)walk_until(NULL);
}

/* --- the loop's side --- */

static void work_answer(const Job *job) {
        if (!job->call)
                return;
        if (job->result < 0) {
                rpc_fail(job->call, &job->error);
                return;
        }
        job->kind->answer(job->call, job->work, rpc_result(job->call));
        rpc_reply(job->call);
}

static void work_finish(void *data);

/* Without a thread the work runs here at once, and other clients wait meanwhile. Returns whether a
 * thread runs. */
static bool work_launch(Job *job) {
        Works *works = job->works;

        job->thread = (Thread){
                .run = do_work, .finish = work_finish, .data = job, .stack_size = STACK_SIZE
        };
        if (thread_start(works->threads, &job->thread) < 0) {
                do_work(job);
                work_answer(job);
                job_free(job);
                return false;
        }
        list_push(&works->running, job);
        works->count++;
        return true;
}

static bool has_ordered(const Job *list) {
        while (list && !list->kind->ordered)
                list = list->next;
        return list;
}

/* A work that changes nothing runs only while its client can take the reply. */
static bool work_has_room(const RpcCall *call, const FilesWorkKind *kind) {
        return !call || !kind->looks || rpc_call_has_room(call);
}

static void launch_waiting(Works *works) {
        list_each_safe(job, works->waiting) {
                if (works->count >= WORKERS_MAX)
                        return;
                if ((job->kind->ordered && has_ordered(works->running)) ||
                    !work_has_room(job->call, job->kind))
                        continue;
                (void)list_remove(&works->waiting, job);
                (void)work_launch(job);
        }
}

/* Whether the work may run now, before it is in a list. */
static bool may_run(const Works *works, const RpcCall *call, const FilesWorkKind *kind) {
        if (works->count >= WORKERS_MAX || !work_has_room(call, kind))
                return false;
        return !kind->ordered || (!has_ordered(works->running) && !has_ordered(works->waiting));
}

static void work_finish(void *data) {
        Job *job = data;
        Works *works = job->works;

        (void)list_remove(&works->running, job);
        works->count--;
        work_answer(job);
        job_free(job);
        launch_waiting(works);
}

/* The call is freed after this. */
static void work_on_call_end(RpcCall *call, void *data) {
        Job *job = data;

        (void)call;
        job->call = NULL;
        if (!job->kind->looks)
                return;
        atomic_store(&job->stop, true);
        if (list_remove(&job->works->waiting, job))
                job_free(job);
}

int work_start(Works *works, RpcCall *call, const FilesWorkKind *kind, FilesWork *work,
               Error *reterr) {
        Job *job = calloc(1, sizeof(*job));

        if (!job) {
                (void)work_free(work);
                return error_oom(reterr);
        }
        job->works = works;
        job->call = call;
        job->kind = kind;
        job->work = work;
        if (call)
                rpc_call_on_end(call, work_on_call_end, job);
        if (may_run(works, call, kind)) {
                if (work_launch(job))
                        (void)thread_wait(&job->thread, time_now_usec() + MOMENT);
                return 0;
        }
        list_append(&works->waiting, job);
        return 0;
}

/* --- all of them --- */

int works_new(Loop *loop, Works **ret, Error *reterr) {
        Works *works = calloc(1, sizeof(*works));
        int r;

        if (!works)
                return error_oom(reterr);
        r = threads_new(loop, &works->threads, reterr);
        if (r < 0)
                (void)works_free(works);
        else
                *ret = works;
        return r;
}

void works_pump(Works *works) {
        launch_waiting(works);
}

bool works_busy(const Works *works) {
        return works->running || works->waiting;
}

Works *works_free(Works *works) {
        if (!works)
                return NULL;
        while (works->waiting) {
                Job *job = works->waiting;

                works->waiting = job->next;
                job_free(job);
        }
        for (Job *job = works->running; job; job = job->next)
                atomic_store(&job->stop, true);
        while (works->running)
                (void)thread_wait(&works->running->thread, THREAD_FOREVER);
        (void)threads_free(works->threads);
        free(works);
        return NULL;
}
