/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/output.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/sys.h"

enum { PACKET_MAX = 16 * 1024 }; /* Bytes that any kind of socket can send at once. */

/* A page of memory that is written for the first time costs as much as ten system calls. So the
 * structs begin with their small members, and calloc(3) is their only initialisation: the pages of
 * their buffers stay untouched until there is output. */

/* One stream of the command: stdout, stderr, or both if they are one file. */
typedef struct Stream {
        int fd;        /* The caller's fd that the pipe replaces: 1 or 2. */
        int sink_fd;   /* The fd to write to: fd itself, or the same pipe opened again. */
        bool socket;   /* sink_fd is a socket; write with send(2). */
        bool pipe;     /* sink_fd is a pipe, which may have other writers. */
        bool blocks;   /* Writes to sink_fd may block; use patience_write(). */
        bool watched;  /* poll(2) on sink_fd reports that its last reader has gone. */
        int source_fd; /* The launcher's end of the pipe; FD_NONE after the last byte. */
        int inner_fd;  /* The command's end of the pipe, until the child has it. */
        size_t left;   /* Bytes still to read after all processes inside have ended. */
        int errnum;    /* The errno of a failed write, or 0. */
        Relay relay;
} Stream;

struct Output {
        Budget budget; /* Used only if its limit is not 0. */
        off_t began;   /* If stderr is a file: its length or offset at the start. Otherwise -1. */
        size_t count;  /* Number of streams. */
        bool both;     /* One stream stands for both fds 1 and 2. */
        bool ending;   /* All processes inside have ended. */
        Tail tail;     /* The last bytes of stderr. */
        Stream streams[2];
};

/* --- the caller's fds --- */

static bool at_same_place(int fd, int other_fd) {
        return lseek(fd, 0, SEEK_CUR) == lseek(other_fd, 0, SEEK_CUR);
}

/* Whether stdout and stderr write to one place, so that writes to one follow writes to the other
 * (2>&1). The two ends of a pipe share one inode. A file that was opened twice has two offsets,
 * unless both append. */
static bool is_one(const FdFacts stdio[3]) {
        const FdFacts *out = &stdio[1], *errors = &stdio[2];
        int r;

        if (fd_facts_access(out) < 0 || fd_facts_access(out) != fd_facts_access(errors) ||
            !fd_facts_same_inode(out, errors))
                return false;
        if (!S_ISREG(out->st.st_mode) || out->flags & errors->flags & O_APPEND)
                return true;
        r = sys_same_file(1, 2);
        return r == 0 || (r < 0 && at_same_place(1, 2));
}

/* Refuses a stdin that is the same socket or file as the output (socat EXEC, inetd). Otherwise the
 * command could write to stdin, and the bytes would come out of stdout uncounted. Devices such as
 * /dev/null are allowed: every program may open them anyway. */
static int check_stdin(const Stream *s, const FdFacts stdio[3], Error *reterr) {
        const mode_t type = stdio[0].st.st_mode;
        int r;

        if (stdio[0].flags < 0 || S_ISCHR(type) || !fd_facts_same_inode(&stdio[0], &stdio[s->fd]) ||
            fd_facts_access(&stdio[0]) == O_RDONLY)
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0,
                      "the output is limited, but stdin is the same %s as %s: output that the "
                      "command writes to stdin cannot be counted",
                      S_ISSOCK(type) ? "socket" : "file", s->fd == 1 ? "stdout" : "stderr");
        return error_cure(reterr, r, "Put a pipe before holt: cat | holt run ...");
}

/* Whether the pipe is a fifo. A new reader may open a fifo after the last one has gone. */
static bool has_name(int pipe_fd) {
        struct statfs fs;

        return fstatfs(pipe_fd, &fs) < 0 || fs.f_type != PIPEFS_MAGIC;
}

/* Opens a pipe again, because O_NONBLOCK on the caller's own fd would affect everybody who shares
 * it. A device is not opened again, since opening may have an effect. Neither is a file, since its
 * offset belongs to the fd. */
static void open_sink(Stream *s, mode_t type) {
        const char *path = s->fd == 1 ? "/proc/self/fd/1" : "/proc/self/fd/2";
        int fd = FD_NONE;

        s->socket = S_ISSOCK(type);
        s->pipe = S_ISFIFO(type);
        s->watched = s->socket || (s->pipe && !has_name(s->fd));
        if (s->pipe)
                fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
                s->sink_fd = fd;
        s->blocks = fd < 0 && (s->pipe || S_ISCHR(type));
}

static int add_stream(Output *o, int fd, const FdFacts stdio[3], Error *reterr) {
        Stream *s = &o->streams[o->count++];
        int r;

        s->fd = s->sink_fd = fd;
        s->source_fd = s->inner_fd = FD_NONE;
        if (fd == 2 || o->both)
                s->relay.tail = &o->tail;
        r = check_stdin(s, stdio, reterr);
        if (r < 0)
                return r;
        open_sink(s, stdio[fd].st.st_mode);
        return 0;
}

/* Whether the command must get a pipe instead of stderr, so that no file is left that makes every
 * open(2) slower. The same file may be stdout. */
static bool output_spares_check(unsigned checked, const FdFacts stdio[3]) {
        return S_ISREG(stdio[2].st.st_mode) && checked & 4 &&
               (checked == 4 || (checked == 6 && is_one(stdio)));
}

/* Whether holt needs stderr's last bytes although there is no limit. If it can read them from
 * stderr's file, *ret_began is the place at which they begin. Otherwise stderr gets a pipe. */
static bool wants_errors(unsigned terminal_fds, unsigned checked, const FdFacts stdio[3],
                         off_t *ret_began) {
        if (terminal_fds & 4 || stdio[2].flags < 0)
                return false;
        if (stdio[0].flags >= 0 && fd_facts_same_inode(&stdio[0], &stdio[2]))
                checked = 0;
        if (output_spares_check(checked, stdio))
                return true;
        *ret_began = tail_file_begin(2);
        if (*ret_began >= 0)
                return true;
        return tail_can_pass(2, 0);
}

/* Without a limit: prepares a pipe for stderr, or the reading of its file after the end. */
static int output_prepare_errors(unsigned terminal_fds, unsigned checked, const FdFacts stdio[3],
                                 Output **ret, Error *reterr) {
        off_t began = -1;
        Output *o;
        int r;

        if (!wants_errors(terminal_fds, checked, stdio, &began))
                return 0;
        o = calloc(1, sizeof(*o));
        if (!o)
                return error_oom(reterr);
        o->began = began;
        o->both = began < 0 && is_one(stdio);
        r = began < 0 ? add_stream(o, o->both ? 1 : 2, stdio, reterr) : 0;
        *ret = r < 0 ? output_free(o) : o;
        return r;
}

int output_prepare(uint64_t limit, unsigned terminal_fds, unsigned checked, const FdFacts stdio[3],
                   Output **ret, Error *reterr) {
        Output *o;
        int r = 0;

        if (!limit)
                return output_prepare_errors(terminal_fds, checked, stdio, ret, reterr);
        o = calloc(1, sizeof(*o));
        if (!o)
                return error_oom(reterr);
        o->began = -1;
        o->budget.limit = limit;
        o->both = !(terminal_fds & 6) && is_one(stdio);
        for (int fd = 1; r == 0 && fd <= (o->both ? 1 : 2); fd++)
                if (!(terminal_fds & (1U << fd)))
                        r = add_stream(o, fd, stdio, reterr);
        if (r < 0) {
                (void)output_free(o);
                return r;
        }
        *ret = o;
        return 0;
}

Output *output_free(Output *o) {
        for (size_t i = 0; o && i < o->count; i++) {
                Stream *s = &o->streams[i];

                if (s->sink_fd != s->fd)
                        fd_close(s->sink_fd);
                fd_close(s->source_fd);
                fd_close(s->inner_fd);
        }
        free(o);
        return NULL;
}

/* --- the pipes --- */

/* Only the launcher's end is non-blocking. The command cannot change that: the flag belongs to one
 * end (pipe(2)). */
static int open_pipe(Stream *s) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        s->source_fd = ends[0];
        s->inner_fd = ends[1];
        return fcntl(s->source_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int output_open(Output *o, Error *reterr) {
        for (size_t i = 0; o && i < o->count; i++) {
                int r = open_pipe(&o->streams[i]);

                if (r < 0)
                        return error_set(reterr, ERROR_SETUP, -r,
                                         "cannot make a pipe for the output");
        }
        return 0;
}

int output_place(const Output *o) {
        for (size_t i = 0; o && i < o->count; i++) {
                const Stream *s = &o->streams[i];

                if (dup2(s->inner_fd, s->fd) < 0 || (o->both && dup2(s->inner_fd, 2) < 0))
                        return -errno;
        }
        return 0;
}

void output_placed(Output *o) {
        for (size_t i = 0; o && i < o->count; i++)
                o->streams[i].inner_fd = fd_close(o->streams[i].inner_fd);
}

/* --- the bytes --- */

static Budget *limited_budget(Output *o) {
        return o->budget.limit ? &o->budget : NULL;
}

Budget *output_budget(Output *o) {
        return o ? limited_budget(o) : NULL;
}

bool output_passed(const Output *o) {
        return o && o->budget.passed;
}

/* Bytes that will be dropped need no room in the relay. */
static bool wants_more(Output *o, const Stream *s) {
        return s->source_fd >= 0 && (relay_empty(&s->relay) || budget_spent(limited_budget(o)));
}

size_t output_poll(Output *o, struct pollfd *fds) {
        size_t n = 0;

        for (size_t i = 0; o && i < o->count; i++) {
                const Stream *s = &o->streams[i];
                bool full = !relay_empty(&s->relay);

                fds[n++] = (struct pollfd){ .fd = wants_more(o, s) ? s->source_fd : -1,
                                            .events = POLLIN };
                fds[n++] = (struct pollfd){
                        .fd = full || (s->watched && s->source_fd >= 0) ? s->sink_fd : -1,
                        .events = full ? POLLOUT : 0,
                };
        }
        return n;
}

/* Called if the output has no reader any more. From now on the command gets EPIPE and SIGPIPE, just
 * as it would without holt. Bytes that are still in the pipe are counted as dropped. */
static void output_abandon(Output *o, Stream *s) {
        int left = 0;

        relay_discard(&s->relay, limited_budget(o));
        if (o->budget.limit && s->source_fd >= 0 && ioctl(s->source_fd, FIONREAD, &left) == 0 &&
            left > 0)
                o->budget.dropped += (uint64_t)left;
        s->source_fd = fd_close(s->source_fd);
}

static bool take_in(Output *o, Stream *s) {
        size_t n = relay_fill(&s->relay, s->source_fd, limited_budget(o));

        if (s->relay.closed || (o->ending && (n == 0 || n >= s->left)))
                s->source_fd = fd_close(s->source_fd);
        s->left -= n < s->left ? n : s->left;
        return n > 0;
}

static ssize_t write_out(const Stream *s) {
        const char *data = s->relay.data + s->relay.start;
        size_t size = s->relay.end - s->relay.start;

        if (s->socket)
                return send(s->sink_fd, data, size < PACKET_MAX ? size : PACKET_MAX,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (s->pipe)
                size = pipe_part(data, size);
        return s->blocks ? patience_write(s->sink_fd, data, size) : write(s->sink_fd, data, size);
}

static bool put_out(Output *o, Stream *s) {
        bool moved = false;
        ssize_t n;

        if (relay_empty(&s->relay)) {
                output_abandon(o, s);
                return false;
        }
        do {
                n = write_out(s);
                moved |= n > 0;
        } while (relay_advance(&s->relay, n) && n > 0 && !s->blocks && !relay_empty(&s->relay));
        if (n >= 0 || errno == EAGAIN || errno == EINTR)
                return moved;
        if (errno != EPIPE && errno != ECONNRESET)
                s->errnum = errno;
        output_abandon(o, s);
        return false;
}

bool output_pump(Output *o, const struct pollfd *fds) {
        bool moved = false;

        for (size_t i = 0; o && i < o->count; i++) {
                Stream *s = &o->streams[i];
                bool came = fds[2 * i].revents && take_in(o, s);

                /* If a sink never blocks, holt writes to it at once, and does not ask poll(2)
                 * first. */
                if (fds[2 * i + 1].revents || (came && !relay_empty(&s->relay) && !s->blocks))
                        moved |= put_out(o, s);
                moved |= came;
        }
        return moved;
}

/* --- the end --- */

/* The command may have passed its end of the pipe to a process outside, over one of the caller's
 * sockets. That process does not keep the launcher waiting. */
void output_end(Output *o) {
        for (size_t i = 0; o && i < o->count; i++) {
                Stream *s = &o->streams[i];
                int left = 0;

                if (s->source_fd >= 0 && ioctl(s->source_fd, FIONREAD, &left) == 0 && left > 0)
                        s->left = (size_t)left;
                else
                        s->source_fd = fd_close(s->source_fd);
        }
        if (o)
                o->ending = true;
}

bool output_waits(const Output *o) {
        for (size_t i = 0; o && i < o->count; i++)
                if (o->streams[i].source_fd >= 0 || !relay_empty(&o->streams[i].relay))
                        return true;
        return false;
}

void output_give_up(Output *o) {
        for (size_t i = 0; o && i < o->count; i++)
                output_abandon(o, &o->streams[i]);
}

const Tail *output_last(Output *o) {
        if (!o)
                return NULL;
        if (o->began >= 0)
                tail_file_add(&o->tail, 2, o->began);
        return o->tail.length > 0 ? &o->tail : NULL;
}

int output_failure(const Output *o, Error *reterr) {
        for (size_t i = 0; o && i < o->count; i++) {
                const Stream *s = &o->streams[i];

                if (s->errnum)
                        return error_set(reterr, ERROR_SETUP, s->errnum,
                                         "cannot write the command's output to %s",
                                         s->fd == 1 ? "stdout" : "stderr");
        }
        return 0;
}

void output_count(const Output *o, uint64_t *ret_bytes, uint64_t *ret_dropped) {
        *ret_bytes = o ? o->budget.taken - o->budget.lost : 0;
        *ret_dropped = o ? o->budget.dropped + o->budget.lost : 0;
}
