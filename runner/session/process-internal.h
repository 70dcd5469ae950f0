/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of process.h share: process.c has the table and what init says, process-start.c
 * starts one, process-streams.c has its stdin, stdout and stderr. */
#pragma once

#include "session/process.h"

struct Processes {
        Loop *loop;
        const Launch *launch;
        Sandbox *sandbox;
        ProcessEvents events;
        Process *first; /* the newest */
        uint32_t last_number;
};

/* A message to init, with size bytes of block behind it, and fds. 0 or a negative errno of
 * sendmsg(2). */
int processes_send(const Processes *all, const SessionMessage *message, const char *block,
                   size_t size, const int *fds, size_t count);
/* Lets the oldest go that have ended, where too many are kept. */
void processes_make_room(Processes *all);
/* Frees one that is in no list. */
void process_drop(Process *process);
/* The timer's: TERM at the first time, KILL at the next. */
void process_on_time(void *data);

/* Watches those streams that are open and not watched yet. */
int process_watch_streams(Process *process, Error *reterr);
/* Reads what is in them now. */
void process_drain(Process *process);
/* Closes all fds, and the timer. */
void process_release(Process *process);
