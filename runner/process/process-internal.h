/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of process.h share: process.c has the table and what init says, start.c
 * starts one, outbox.c is what init is told, streams.c has its stdin, stdout and
 * stderr. */
#pragma once

#include "process/process.h"
#include "sandbox/oom.h"

struct Processes {
        Loop *loop;
        const Launch *launch;
        Sandbox *sandbox;
        ProcessEvents events;
        Process *first; /* the newest */
        uint32_t last_number;
        LoopWatch *room; /* in init's socket; NULL once nobody reads it */
        int room_fd;
        bool waits;         /* something does, for room there */
        uint32_t last_told; /* the process whose start was the last message to init, or 0 */
        uint64_t gone_at;   /* usec, monotonic: init last said that nothing of one is left, or 0 */
        OomWatch oom;
        uint64_t oom_until; /* usec, monotonic: ends by SIGKILL are the OOM killer's until then */
};

/* --- what init is told --- */

/* What a start takes: size bytes of a block, or, where it is NULL, its memory file (else FD_NONE),
 * and then the fds of stdin, stdout and stderr as far as there are. It takes all of them over, in
 * any case. 0 or -ENOMEM. */
int process_start_new(char *block, size_t size, int block_fd, ProcessStart **ret);
void process_start_add(ProcessStart *start, int fd);

/* Takes start over in any case. -EBUSY with an ERROR_LIMIT where too many wait. */
int process_tell_start(Process *process, ProcessStart *start, Error *reterr);
/* To the process group of the command, or to all processes; what waits already goes once. signal is
 * 1 to 64. */
void process_tell_signal(Process *process, int signal);
void process_tell_kill(Process *process, int signal);
void process_tell_resume(Process *process);
/* init has gone and has not read all that it was told (ECONNRESET, which the socket says once): the
 * last it has certainly not. */
void outbox_not_read(Processes *all);
/* Whether init has read all that it was told. */
bool outbox_was_read(const Processes *all);
/* What waits is not sent. */
void process_forget_due(Process *process);
int outbox_init(Processes *all, Error *reterr);
void outbox_clear(Processes *all);

/* Sets the timer: to the time in which a command has to start, and once it has to its timeout. */
void process_set_deadline(Process *process);
/* Frees one that is in no list. */
void process_drop(Process *process);
/* The timer's: TERM at the first time, KILL at the next. */
void process_on_time(void *data);

/* Watches those streams that are open and not watched yet. */
int process_watch_streams(Process *process, Error *reterr);
/* It has waited for init, which could not be told: process->error says why. */
void process_not_started(Process *process);
/* Closes all fds, and the timer. */
void process_release(Process *process);
