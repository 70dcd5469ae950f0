/* SPDX-License-Identifier: Apache-2.0 */
#include "session/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "session/files-walk.h"

enum {
        MOMENT = 2000000,     /* nsec that the loop waits for one that has been started */
        STACK_SIZE = 8 << 20, /* as a main thread has; what is not touched costs nothing */
};

typedef struct Job {
        struct Job *next;
        Works *works;
        RpcCall *call; /* NULL when its client has gone */
        const FilesWorkKind *kind;
        FilesWork *work;
        pthread_t thread;
        atomic_bool stop;
        bool done; /* the thread has nothing more to say; under the lock */
        int result;
        Error error;
} Job;

struct Works {
        Loop *loop;
        LoopWatch *watch;
        int event_fd; /* owned; a thread has done its work */
        pthread_mutex_t lock;
        pthread_cond_t ended;
        Job *running, *waiting; /* the waiting in their order */
        unsigned count;         /* of the running */
};

/* --- one call --- */

static FilesWork *work_free(FilesWork *work) {
        if (!work)
                return NULL;
        free(work->path);
        free(work->to);
        free(work->pattern);
        free(work->after);
        free(work->content);
        strlist_clear(&work->names);
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
        if (copy_string(&work->path, path) < 0 || copy_string(&work->to, to) < 0 ||
            copy_string(&work->pattern, pattern) < 0) {
                (void)work_free(work);
                return error_oom(reterr);
        }
        *ret = work;
        return 0;
}

/* Whether it was in there. */
static bool job_unlink(Job **list, const Job *job) {
        for (; *list; list = &(*list)->next)
                if (*list == job) {
                        *list = job->next;
                        return true;
                }
        return false;
}

static void job_free(Job *job) {
        (void)work_free(job->work);
        free(job);
}

/* --- the thread --- */

static void do_work(Job *job) {
        (void)walk_until(&job->stop);
        job->result = job->kind->run(job->work, &job->error);
        (void)walk_until(NULL);
}

static void *run_thread(void *data) {
        const uint64_t one = 1;
        Job *job = data;
        Works *works = job->works;

        do_work(job);
        (void)pthread_mutex_lock(&works->lock);
        job->done = true;
        (void)pthread_cond_broadcast(&works->ended);
        (void)pthread_mutex_unlock(&works->lock);
        (void)!write(works->event_fd, &one, sizeof(one));
        return NULL;
}

static int start_thread(Job *job) {
        pthread_attr_t attributes;
        int r = pthread_attr_init(&attributes);

        if (r == 0)
                r = pthread_attr_setstacksize(&attributes, STACK_SIZE);
        if (r == 0)
                r = pthread_create(&job->thread, &attributes, run_thread, job);
        (void)pthread_attr_destroy(&attributes);
        return -r;
}

/* --- the loop's side --- */

static void answer(const Job *job) {
        if (!job->call)
                return;
        if (job->result < 0) {
                rpc_fail(job->call, &job->error);
                return;
        }
        job->kind->answer(job->call, job->work, rpc_result(job->call));
        rpc_reply(job->call);
}

static void finish(Job *job) {
        (void)pthread_join(job->thread, NULL);
        (void)job_unlink(&job->works->running, job);
        job->works->count--;
        answer(job);
        job_free(job);
}

/* Where there can be no thread it is done at once: late for others, but done. Returns whether one
 * runs. */
static bool launch(Job *job) {
        Works *works = job->works;

        if (start_thread(job) < 0) {
                do_work(job);
                answer(job);
                job_free(job);
                return false;
        }
        job->next = works->running;
        works->running = job;
        works->count++;
        return true;
}

static bool has_ordered(const Job *list) {
        while (list && !list->kind->ordered)
                list = list->next;
        return list;
}

/* What changes nothing is only done for who takes the answer. */
static bool has_room(const RpcCall *call, const FilesWorkKind *kind) {
        return !call || !kind->looks || rpc_call_has_room(call);
}

static void launch_waiting(Works *works) {
        Job **at = &works->waiting;

        while (*at && works->count < WORKERS_MAX) {
                Job *job = *at;

                if ((job->kind->ordered && has_ordered(works->running)) ||
                    !has_room(job->call, job->kind)) {
                        at = &job->next;
                        continue;
                }
                *at = job->next;
                (void)launch(job);
        }
}

/* Whether its turn is now, before it is in a list. */
static bool may_run(const Works *works, const RpcCall *call, const FilesWorkKind *kind) {
        if (works->count >= WORKERS_MAX || !has_room(call, kind))
                return false;
        return !kind->ordered || (!has_ordered(works->running) && !has_ordered(works->waiting));
}

static bool is_done(Job *job) {
        bool done;

        (void)pthread_mutex_lock(&job->works->lock);
        done = job->done;
        (void)pthread_mutex_unlock(&job->works->lock);
        return done;
}

static Job *find_done(Works *works) {
        for (Job *job = works->running; job; job = job->next)
                if (is_done(job))
                        return job;
        return NULL;
}

static void on_event(void *data, uint32_t events) {
        Works *works = data;
        uint64_t count;
        Job *job;

        (void)events;
        (void)!read(works->event_fd, &count, sizeof(count));
        while ((job = find_done(works)))
                finish(job);
        launch_waiting(works);
}

/* Whether it has been done in that time. */
static bool wait_a_moment(Job *job) {
        Works *works = job->works;
        struct timespec end;
        int r = 0;

        (void)clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_nsec += MOMENT;
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        (void)pthread_mutex_lock(&works->lock);
        while (!job->done && r == 0)
                r = pthread_cond_timedwait(&works->ended, &works->lock, &end);
        r = job->done;
        (void)pthread_mutex_unlock(&works->lock);
        return r;
}

/* The call is freed after this. */
static void on_call_end(RpcCall *call, void *data) {
        Job *job = data;

        (void)call;
        job->call = NULL;
        if (!job->kind->looks)
                return;
        atomic_store(&job->stop, true);
        if (job_unlink(&job->works->waiting, job))
                job_free(job);
}

int work_start(Works *works, RpcCall *call, const FilesWorkKind *kind, FilesWork *work,
               Error *reterr) {
        Job *job = calloc(1, sizeof(*job)), **last = &works->waiting;

        if (!job) {
                (void)work_free(work);
                return error_oom(reterr);
        }
        job->works = works;
        job->call = call;
        job->kind = kind;
        job->work = work;
        if (call)
                rpc_call_on_end(call, on_call_end, job);
        if (may_run(works, call, kind)) {
                if (launch(job) && wait_a_moment(job))
                        finish(job);
                return 0;
        }
        while (*last)
                last = &(*last)->next;
        *last = job;
        return 0;
}

/* --- all of them --- */

int works_new(Loop *loop, Works **ret, Error *reterr) {
        Works *works = calloc(1, sizeof(*works));
        pthread_condattr_t attributes;
        int r;

        if (!works)
                return error_oom(reterr);
        *works = (Works){ .loop = loop };
        (void)pthread_mutex_init(&works->lock, NULL);
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&works->ended, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        works->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = works->event_fd < 0 ? error_set(reterr, ERROR_SETUP, errno, "cannot make an eventfd")
                                : loop_watch(loop, works->event_fd, EPOLLIN, on_event, works,
                                             &works->watch, reterr);
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
                finish(works->running);
        (void)loop_unwatch(works->watch);
        fd_close(works->event_fd);
        (void)pthread_cond_destroy(&works->ended);
        (void)pthread_mutex_destroy(&works->lock);
        free(works);
        return NULL;
}
