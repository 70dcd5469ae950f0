/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of process.h:
 *
 * - table.c: the table of processes
 * - process.c: signals, and messages from init
 * - start.c: starts a process
 * - outbox.c: messages to init
 * - streams.c: stdin, stdout and stderr
 * - detour.c: files of the caller for which the command gets a pipe
 * - overhear.c: reads stderr on its way to the caller's pipe */
#pragma once

#include "outcome/oom.h"
#include "process/process.h"

struct Processes {
        Loop *loop;
        const Launch *launch;
        Sandbox *sandbox;
        ProcessEvents events;
        Process *first; /* the newest process */
        uint32_t last_number;
        int numbers_fd;  /* the file of last_number, or FD_NONE */
        LoopWatch *room; /* watches for room in init's socket; NULL once nobody reads it */
        int room_fd;
        bool waits; /* a message waits for that room */
        /* Number of the process whose start was the last message to init, or 0. */
        uint32_t last_told;
        /* usec, monotonic: when init last reported that nothing of a process is left, or 0. */
        uint64_t gone_at;
        int copy_fds[2]; /* a pipe of the keeper's own for overhear.c, empty between its calls */
        OomWatch oom;
        uint64_t oom_until; /* usec, monotonic: until then, an end by SIGKILL is the OOM killer's */
};

/* Returns the next number, and writes it to the file. */
uint32_t process_next_number(Processes *all);

/* --- messages to init --- */

/* Makes a start. The block of size bytes is in block, or, if that is NULL, in the memory file
 * block_fd (otherwise FD_NONE). The fds for stdin, stdout and stderr are added later. The start
 * owns all of them, also if this fails. Returns 0 or -ENOMEM. */
int process_start_new(char *block, size_t size, int block_fd, ProcessStart **ret);
void process_start_add(ProcessStart *start, int fd);

/* Sends or queues a start, and always takes ownership of it. Returns -EBUSY with an ERROR_LIMIT if
 * too many wait. */
int process_tell_start(Process *process, ProcessStart *start, Error *reterr);
/* Sends a signal (1 to 64) to the command's process group, or to all processes. A signal that
 * already waits is sent once. */
void process_tell_signal(Process *process, int signal);
void process_tell_kill(Process *process, int signal);
void process_tell_resume(Process *process);
/* init ended before it had read all messages (ECONNRESET, which the socket reports once). The last
 * message was certainly not read. */
void outbox_not_read(Processes *all);
/* Drops the messages that wait. */
void process_forget_due(Process *process);
int outbox_init(Processes *all, Error *reterr);
void outbox_clear(Processes *all);

/* Sets the timer to the end of START_TIME while the command has not started, and then to its
 * timeout. */
void process_set_deadline(Process *process);
/* Frees a process that is in no list. */
void process_drop(Process *process);
/* Is called by the timer: sends TERM the first time, KILL the next time. */
void process_on_time(void *data);

/* Watches the open streams that are not watched yet. */
int process_watch_streams(Process *process, Error *reterr);
/* Answers a process that was waiting for init, and now cannot be started: process->error says
 * why. */
void process_not_started(Process *process);
/* Closes the pipe of stream i, and the caller's file behind it. */
void process_close_stream(Process *process, unsigned i);
/* Closes all fds and the timer. Unless all is set, a stream stays open while bytes of it wait to be
 * written to the caller's file. */
void process_release(Process *process, bool all);

/* --- detours --- */

/* Moves the files that spec->detours names into the process. Call it before the pipes are made. */
void detour_take(Process *process, ProcessSpec *spec);
/* Whether stderr goes to the same file of the caller as stdout, and so into the same pipe. */
bool detour_is_shared(const Process *process);
/* Copies what is in the pipe of stream i to the caller's file. Returns false at the end of the
 * stream, and after an error, which process->stream_error has. */
bool detour_pass(Process *process, unsigned i);
/* Reads the next bytes for stdin from the caller's file into process->pending. At its end, sets
 * process->input_ends. */
void detour_fill(Process *process);
/* Whether bytes of stream i wait to be written to the caller's file. */
bool detour_has_more(const Process *process, unsigned i);
/* Watches the caller's file of stream i for room, if it is full, and for the end of its reader if
 * overhear_minds_reader(). Returns 0 or a negative errno. */
int detour_watch(Process *process, unsigned i, Error *reterr);
/* Closes the file of stream i. */
void detour_close(Process *process, unsigned i);
/* Leaves the bytes of stream i in the command's pipe until the caller's file has room. Returns
 * false if that is not possible. */
bool detour_wait(Process *process, unsigned i);
/* Notes the errno of reading or writing the caller's file, with its number from 0 to 2. */
void detour_note_error(Process *process, int fd, int errnum);

/* --- overhearing --- */

/* Makes the pipe of overhear.c. Returns 0 or a negative errno. */
int overhear_init(Processes *all, Error *reterr);
/* Adds stderr to spec->detours if it is to be overheard, and stdout if both are the same pipe. Call
 * it before detour_take(). Returns 0 or -ENOMEM. */
int overhear_choose(Process *process, ProcessSpec *spec);
/* Does the same as detour_pass() for a stream that process->overhears names. */
bool overhear_pass(Process *process, unsigned i);
/* Whether holt must notice that the reader of stream i leaves, and whether it has left according to
 * the events of epoll(7) on the caller's pipe or socket. */
bool overhear_minds_reader(const Process *process, unsigned i);
bool overhear_is_left(const Process *process, unsigned i, uint32_t events);
/* Notes as owed what the caller's pipe has no room for yet, and returns whether there is any. */
bool overhear_note_owed(Process *process);
/* Whether some of that is still owed. */
bool overhear_owes(const Process *process);
/* Notes that n bytes of stream i are no longer owed. */
void overhear_pay(Process *process, unsigned i, size_t n);
/* Notes that nothing of stream i is owed any more. */
void overhear_pay_all(Process *process, unsigned i);
