/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/time.h"
#include "base/util.h"

enum {
        FIRST_AFTER = 1000, /* ms */
        EVERY = 200,        /* ms */
};

static struct {
        pthread_mutex_t lock; /* protects all of the following */
        pthread_cond_t wake;
        pthread_t thread;
        bool runs, ended, shown;
        uint64_t began; /* usec */
        ProgressCounts counts;
        int fd;
        /* The offset in fd at the start, and the number of bytes from there to the end. */
        off_t start, size;
} progress = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = FD_NONE };

/* --- the progress line --- */

static const char *size_text(uint64_t bytes, char buf[32]) {
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
        double size = (double)bytes;
        size_t unit = 0;

        while (size >= 1000 && unit + 1 < ELEMENTSOF(units)) {
                size /= 1024;
                unit++;
        }
        (void)snprintf(buf, 32, "%.*f %s", unit > 0 && size < 10 ? 1 : 0, size, units[unit]);
        return buf;
}

/* Returns whether stderr takes the line now. Progress never waits for a stopped terminal, and never
 * writes from the background. */
static bool takes_it(void) {
        struct pollfd terminal = { .fd = STDERR_FILENO, .events = POLLOUT };

        return tcgetpgrp(STDERR_FILENO) == getpgrp() && poll(&terminal, 1, 0) > 0 &&
               terminal.revents & POLLOUT;
}

/* Prints the progress. If a single file is copied, its size is printed, too. */
static void progress_show(void) {
        const uint64_t took = time_now_usec() - progress.began;
        const off_t at = progress.fd >= 0 ? lseek(progress.fd, 0, SEEK_CUR) : -1;
        const uint64_t bytes = progress.counts.bytes +
                               (uint64_t)(at > progress.start ? at - progress.start : 0);
        const bool alone = progress.counts.files == 0 && at >= 0 && progress.size > 0;
        char line[160], done[32], all[32], rate[32];
        int n;

        if (bytes == 0 || !takes_it())
                return;
        (void)size_text(bytes, done);
        (void)size_text((uint64_t)progress.size, all);
        (void)size_text(bytes * 1000 / (took / 1000 + 1), rate);
        n = alone ? snprintf(line, sizeof(line), "\r\033[Kholt: %s of %s, %s/s", done, all, rate)
                  : snprintf(line, sizeof(line), "\r\033[Kholt: %" PRIu64 " files, %s, %s/s",
                             progress.counts.files, done, rate);
        progress.shown = write(STDERR_FILENO, line, (size_t)n) == n;
}

/* Waits until this time, or until progress_end(). */
static void wait_until(uint64_t usec) {
        const struct timespec then = { .tv_sec = (time_t)(usec / 1000000),
                                       .tv_nsec = (long)(usec % 1000000 * 1000) };

        while (!progress.ended &&
               pthread_cond_timedwait(&progress.wake, &progress.lock, &then) != ETIMEDOUT)
                ;
}

static void *progress_run(void *unused) {
        uint64_t next = progress.began + FIRST_AFTER * UINT64_C(1000);

        (void)pthread_mutex_lock(&progress.lock);
        for (; !progress.ended; next = time_now_usec() + EVERY * UINT64_C(1000)) {
                wait_until(next);
                if (!progress.ended)
                        progress_show();
        }
        (void)pthread_mutex_unlock(&progress.lock);
        return unused;
}

/* --- start and end --- */

/* Starts the thread with all signals blocked, because the main thread handles them. */
static bool start_thread(void) {
        pthread_condattr_t attributes;
        sigset_t all, before;
        bool runs;

        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&progress.wake, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        runs = pthread_create(&progress.thread, NULL, progress_run, NULL) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return runs;
}

static bool has_terminal(void) {
        const char *kind = getenv("TERM");

        return kind && !streq(kind, "dumb") && isatty(STDERR_FILENO);
}

void progress_begin(void) {
        progress.counts = (ProgressCounts){ 0 };
        progress.began = time_now_usec();
        progress.ended = progress.shown = false;
        progress.runs = has_terminal() && start_thread();
}

void progress_end(void) {
        if (!progress.runs)
                return;
        (void)pthread_mutex_lock(&progress.lock);
        progress.ended = true;
        (void)pthread_cond_signal(&progress.wake);
        (void)pthread_mutex_unlock(&progress.lock);
        (void)pthread_join(progress.thread, NULL);
        progress.runs = false;
        if (progress.shown && takes_it())
                (void)!write(STDERR_FILENO, "\r\033[K", 4);
}

/* --- a file --- */

void progress_file(int fd) {
        const off_t start = lseek(fd, 0, SEEK_CUR);
        struct stat st;

        (void)pthread_mutex_lock(&progress.lock);
        progress.fd = fd;
        progress.start = start;
        progress.size = start >= 0 && fstat(fd, &st) == 0 && st.st_size > start ? st.st_size - start
                                                                                : 0;
        (void)pthread_mutex_unlock(&progress.lock);
}

void progress_done(bool whole, uint64_t length) {
        (void)pthread_mutex_lock(&progress.lock);
        progress.fd = FD_NONE;
        progress.counts.files += whole;
        progress.counts.bytes += whole ? length : 0;
        (void)pthread_mutex_unlock(&progress.lock);
}

ProgressCounts progress_counts(void) {
        ProgressCounts counts;

        (void)pthread_mutex_lock(&progress.lock);
        counts = progress.counts;
        (void)pthread_mutex_unlock(&progress.lock);
        return counts;
}
