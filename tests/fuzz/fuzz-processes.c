/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the keeper's end of the init protocol. libFuzzer plays init: it chooses messages, with or
 * without fds, and reads when it likes, so that the socket is sometimes full. Meanwhile clients
 * start processes, signal, kill, write, watch and leave.
 *
 * Each process must be answered once and settled once. init gets only well-formed requests, and one
 * for each start. No kill is lost, and in the end no fd is left. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "process/process-internal.h"
#include "tests/fuzz/harness.h"

enum {
        NUMBERS = 512, /* processes that one input starts at most */
        CLIENTS = 2,
        FDS_LOOKED_AT = 128,
        SMALL_ROOM = 4608, /* bytes of the socket's buffer: a few messages */
};

/* --- the keeper, its clients and its init --- */

typedef struct Seen {
        unsigned answered, settled, gone, starts;
        bool asked, killed, kill_told; /* process_kill() was called while it lived; init was told */
} Seen;

typedef struct World {
        Input in;
        Loop *loop;
        LoopTimer *timer;
        RpcServer *server;
        RpcConnection *clients[CLIENTS];
        int client_fds[CLIENTS];
        Processes *all;
        Sandbox sandbox;
        int init_fd;
        int out_fd;  /* the last stdout that init was given, or FD_NONE */
        int full[2]; /* a pipe that nobody reads */
        Seen seen[NUMBERS + 1];
} World;

static World world;

static Seen *seen_of(uint32_t number) {
        REQUIRE(number > 0 && number <= NUMBERS);
        return &world.seen[number];
}

static void on_answered(void *data, Process *process, int master_fd) {
        Seen *seen = seen_of(process->number);

        REQUIRE(data == &world && process->answered);
        /* If an end comes before its start, the answer to the start reports both. */
        REQUIRE(++seen->answered == 1 && (seen->settled == 0 || process->gone));
        REQUIRE(master_fd < 0 || process->gives_master);
        (void)fd_close(master_fd);
}

static void on_settled(void *data, Process *process) {
        REQUIRE(data == &world && process->settled && !process->running);
        REQUIRE(process->answered && (seen_of(process->number)->answered == 1 || process->gone));
        REQUIRE(++seen_of(process->number)->settled == 1);
        REQUIRE(process->outcome.cause < CAUSE_MAX);
}

static void on_stopped(void *data, Process *process, int signal) {
        (void)signal; /* init's claim, which clients receive */
        REQUIRE(data == &world && process->running);
}

static void on_gone(void *data, Process *process) {
        REQUIRE(data == &world && process->gone);
        REQUIRE(++seen_of(process->number)->gone == 1);
}

static void on_dropped(void *data, Process *process) {
        REQUIRE(data == &world && process->gone && process->settled);
}

static void on_stuck(void *data) {
        REQUIRE(data == &world);
}

static void stop(void *loop) {
        loop_stop(loop);
}

static void turn(void) {
        loop_timer_set(world.timer, 1);
        REQUIRE(loop_run(world.loop) == 0);
}

static void on_end(RpcConnection *connection, void *data) {
        (void)data;
        if (world.all)
                processes_forget(world.all, connection);
        for (int i = 0; i < CLIENTS; i++)
                if (world.clients[i] == connection)
                        world.clients[i] = NULL;
}

/* --- init reads --- */

static void check_block(const char *block, size_t size) {
        ExecBlock head;
        size_t strings = 0;

        REQUIRE(size > sizeof(head) && size <= SESSION_BLOCK_MAX && block[size - 1] == '\0');
        memcpy(&head, block, sizeof(head));
        for (size_t i = sizeof(head); i < size; i++)
                strings += block[i] == '\0';
        REQUIRE(head.argc > 0 && strings == 1 + (size_t)head.argc + head.envc);
        REQUIRE(head.terminal < 8);
}

static void check_start(const SessionMessage *message, const char *block, size_t size,
                        const int *fds, size_t count) {
        const size_t wanted = (size_t)message->value;
        ExecBlock head;
        struct stat st;
        char *all = NULL;
        size_t plain = count;

        REQUIRE(seen_of(message->exec)->starts++ == 0);
        if (wanted > SESSION_INLINE_MAX) {
                REQUIRE(size == 0 && count > 0 && fstat(fds[0], &st) == 0);
                REQUIRE((size_t)st.st_size == wanted && (all = malloc(wanted)));
                REQUIRE(pread(fds[0], all, wanted, 0) == (ssize_t)wanted);
                plain--;
        } else {
                REQUIRE(size == wanted);
        }
        check_block(all ? all : block, wanted);
        memcpy(&head, all ? all : block, sizeof(head));
        REQUIRE(plain == 3U - (size_t)__builtin_popcount(head.terminal));
        free(all);
        if (plain == 3) {
                (void)fd_close(world.out_fd);
                world.out_fd = fcntl(fds[count - 2], F_DUPFD_CLOEXEC, 3);
        }
}

static void check_asked(const SessionMessage *message, const char *block, size_t size,
                        const int *fds, size_t count) {
        Seen *seen = seen_of(message->exec);

        if (message->type == SESSION_EXEC)
                return check_start(message, block, size, fds, count);
        REQUIRE(message->type == SESSION_SIGNAL || message->type == SESSION_KILL);
        REQUIRE(seen->starts == 1 && size == 0 && count == 0);
        REQUIRE(message->value > 0 && message->value <= 64);
        seen->kill_told |= message->type == SESSION_KILL && message->value == SIGKILL;
}

/* Reads one message, if there is one. */
static bool read_asked(void) {
        static struct {
                SessionMessage message;
                char block[SESSION_INLINE_MAX + 1];
        } packet;
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec vector = { &packet, sizeof(packet) };
        struct msghdr header = { .msg_iov = &vector,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(world.init_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        size_t count = 0;
        int fds[4];

        if (n <= 0)
                return false;
        REQUIRE(n >= (ssize_t)sizeof(packet.message) && !(header.msg_flags & MSG_CTRUNC));
        if (header.msg_controllen >= CMSG_LEN(sizeof(int))) {
                count = (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(fds, CMSG_DATA(&control.header), count * sizeof(int));
        }
        check_asked(&packet.message, packet.block, (size_t)n - sizeof(packet.message), fds, count);
        while (count > 0)
                (void)close(fds[--count]);
        return true;
}

/* --- init's messages --- */

/* Makes an end of a pipe or socket that no other process has. */
static int make_fd(unsigned kind) {
        int pair[2];

        switch (kind % 7) {
        case 0:
                REQUIRE(pipe2(pair, O_CLOEXEC) == 0);
                (void)!write(pair[1], "text\xc3", 5);
                (void)close(pair[1]);
                return pair[0];
        case 1:
                REQUIRE(pipe2(pair, O_CLOEXEC) == 0);
                (void)close(pair[0]);
                return pair[1];
        case 2:
                return open("/dev/null", O_RDWR | O_CLOEXEC);
        case 3:
                return memfd_create("fuzz", MFD_CLOEXEC);
        case 4:
                return open("/", O_PATH | O_CLOEXEC);
        case 5:
                return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        default:
                REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
                (void)close(pair[1]);
                return pair[0];
        }
}

static void send_bytes(const void *bytes, size_t size, const int *fds, size_t count) {
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(2 * sizeof(int))];
        } control = { 0 };
        struct iovec vector = { (void *)(uintptr_t)bytes, size };
        struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };

        if (count > 0) {
                header.msg_control = &control;
                header.msg_controllen = CMSG_SPACE(count * sizeof(int));
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
                memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
        }
        (void)sendmsg(world.init_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (count > 0)
                (void)close(fds[--count]);
}

static void say(Input *in) {
        const unsigned kind = take_byte(in), shape = take_byte(in);
        SessionMessage message = { .type = kind % 8,
                                   .exec = shape & 64 ? take_u32(in) : 1 + take_byte(in) % 8 };
        size_t count = shape & 3;
        int fds[2];

        message.value = (int32_t)(shape & 128 ? take_u32(in) : take_byte(in));
        message.detail = shape & 32 ? take_u32(in) : take_byte(in) % 8;
        if (shape & 16) {
                message.type = take_u32(in);
                message.user_us = (uint64_t)take_u32(in) << 32 | take_u32(in);
                message.max_rss = message.user_us << 7;
        }
        count = count == 3 ? 0 : count;
        for (size_t i = 0; i < count; i++)
                fds[i] = make_fd(take_byte(in));
        send_bytes(&message, shape & 8 ? take_byte(in) % (sizeof(message) + 1) : sizeof(message),
                   fds, count);
}

static void say_bytes(Input *in) {
        uint8_t bytes[256];
        size_t n = take_byte(in);

        for (size_t i = 0; i < n; i++)
                bytes[i] = (uint8_t)take_byte(in);
        send_bytes(bytes, n, NULL, 0);
}

/* --- the clients --- */

static RpcConnection *client(unsigned which) {
        return world.clients[which % CLIENTS];
}

/* Gives the process files of the caller that it must not get itself (process/detour.c). Stdin and
 * stdout are memory files, and stdout or stderr may be a full pipe. */
static void give_files(ProcessSpec *spec, unsigned which) {
        static const char *const names[] = { "in", "out" };

        for (unsigned i = 0; i < 2; i++)
                if (which & (1U << i)) {
                        spec->fds[i] = sys_memfd_create(names[i], MFD_CLOEXEC);
                        REQUIRE(spec->fds[i] >= 0 && ftruncate(spec->fds[i], 200000) == 0);
                }
        for (unsigned i = 1; which & 4 && i <= 2; i++)
                if (spec->fds[i] < 0)
                        spec->fds[i] = fcntl(world.full[1], F_DUPFD_CLOEXEC, 3);
        spec->detours = (which & 4) ? which | 6 : which;
}

static void start(Input *in) {
        static char large[8192];
        const unsigned flags = take_byte(in), more = take_byte(in);
        ProcessSpec spec = { .cwd = "/workspace",
                             .fds = { FD_NONE, FD_NONE, FD_NONE },
                             .input = flags & 1 ? INPUT_PIPE : INPUT_NONE,
                             .terminal = flags & 2 ? more & 7 : 0,
                             .give_master = flags & 4,
                             .kept = flags & 8 ? 4 : CAPTURE_KEPT,
                             .keep_tail = flags & 16,
                             .timeout = flags & 32 ? 3600000000 : 0,
                             .owner = flags & 64 ? client(more >> 3) : NULL };
        Process *process = NULL;
        Error error;

        if (world.all->last_number == NUMBERS)
                return;
        if (!spec.terminal)
                give_files(&spec, more >> 5);
        REQUIRE(strlist_add(&spec.argv, more & 16 ? "./program" : "sh") == 0);
        memset(large, 'x', sizeof(large) - 1);
        if (flags & 128)
                REQUIRE(strlist_add(&spec.argv, large) == 0);
        REQUIRE(strlist_add(&spec.env, "PATH=/usr/bin") == 0);
        if (process_start(world.all, &spec, &process, &error) == 0)
                seen_of(process->number)->asked = true;
        else
                REQUIRE(error.text[0]);
        strlist_clear(&spec.argv);
        strlist_clear(&spec.env);
}

/* Returns one of the existing processes, or NULL. */
static Process *choose(Input *in) {
        Process *process = processes_first(world.all);

        for (unsigned n = take_byte(in) % 8; process && process->next && n > 0; n--)
                process = process->next;
        return process;
}

static void kill_one(Process *process) {
        seen_of(process->number)->killed |= !process->gone;
        process_kill(process);
}

static void act(Input *in, Process *process) {
        const unsigned what = take_byte(in) % 10, more = take_byte(in);
        char room[4096];
        Error error;

        if (what == 0)
                kill_one(process);
        else if (what == 1)
                process_signal(process, 1 + (int)(more % 64));
        else if (what == 2)
                process_terminate(process);
        else if (what == 3)
                (void)process_write(process, "some bytes", more % 11, &error);
        else if (what == 4)
                process_close_input(process);
        else if (what == 5)
                (void)process_resize(process, (uint16_t)more, 80, &error);
        else if (what == 6 && client(more))
                (void)capture_watch(&process->output, client(more), more >> 4, more & 8);
        else if (what == 7 && client(more))
                capture_unwatch(&process->output, client(more));
        else if (what == 8)
                process_on_time(process);
        else if (what == 9 && world.out_fd >= 0)
                (void)!write(world.out_fd, "a line\n\xe2\x82", more % 10);
        if (what == 9 && more & 128)
                (void)!read(world.full[0], room, sizeof(room));
}

/* Init dies: it neither reads nor writes any more. */
static void hang_up(void) {
        world.init_fd = fd_close(world.init_fd);
        turn();
        (void)processes_listen(world.all);
        processes_give_up(world.all);
}

static void leave(unsigned which) {
        int *fd = &world.client_fds[which % CLIENTS];

        *fd = fd_close(*fd);
        turn();
}

static void end_one(Input *in) {
        const unsigned what = take_byte(in);

        if (what == 0)
                leave(take_byte(in));
        else if (what == 1)
                processes_pump(world.all);
        else if (what == 2 && take_byte(in) == 0)
                hang_up();
}

static void step(Input *in) {
        static char dropped[65536];
        const unsigned what = take_byte(in) % 8;
        Process *process;

        if (what == 0)
                start(in);
        else if (what == 1)
                say(in);
        else if (what == 2)
                say_bytes(in);
        else if (what == 3 && (process = choose(in)))
                act(in, process);
        else if (what == 4)
                turn();
        else if (what == 5)
                while (read_asked())
                        ;
        else if (what == 6)
                (void)processes_listen(world.all);
        else if (what == 7)
                end_one(in);
        for (int i = 0; i < CLIENTS; i++)
                if (world.client_fds[i] >= 0)
                        (void)recv(world.client_fds[i], dropped, sizeof(dropped), MSG_DONTWAIT);
}

/* --- one input --- */

static void begin(const Launch *launch) {
        static const char filling[4096];
        const ProcessEvents events = { .answered = on_answered,
                                       .stopped = on_stopped,
                                       .settled = on_settled,
                                       .gone = on_gone,
                                       .stuck = on_stuck,
                                       .dropped = on_dropped,
                                       .data = &world };
        const int small = SMALL_ROOM;
        int ends[2];

        REQUIRE(loop_new(&world.loop, NULL) == 0);
        REQUIRE(loop_timer_new(world.loop, stop, world.loop, &world.timer, NULL) == 0);
        REQUIRE(rpc_server_new(world.loop, NULL, 0, NULL, &world.server, NULL) == 0);
        rpc_server_on_end(world.server, on_end);
        for (int i = 0; i < CLIENTS; i++) {
                REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
                REQUIRE(rpc_server_add(world.server, ends[0], ends[0], &world.clients[i], NULL) ==
                        0);
                world.client_fds[i] = ends[1];
        }
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        REQUIRE(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0);
        world.sandbox.control_fd = ends[0];
        world.init_fd = ends[1];
        world.out_fd = FD_NONE;
        REQUIRE(pipe2(world.full, O_CLOEXEC) == 0 &&
                fcntl(world.full[0], F_SETFL, O_NONBLOCK) == 0);
        REQUIRE(fcntl(world.full[1], F_SETPIPE_SZ, 4096) >= 0);
        REQUIRE(write(world.full[1], filling, sizeof(filling)) == sizeof(filling));
        REQUIRE(processes_new(world.loop, launch, &world.sandbox, &events, &world.all, NULL) == 0);
}

/* When init reads again, it gets all requests, and each process's start before its kill. */
static void check_all_told(void) {
        const bool hung_up = world.init_fd < 0;

        /* One turn delivers a limited number of events: if many streams end, room may come in a
         * later turn. */
        turn();
        while (read_asked() || world.all->waits)
                turn();
        for (Process *p = processes_first(world.all); p; p = p->next) {
                const Seen *seen = seen_of(p->number);

                REQUIRE(!p->start && !p->kills_due && !p->signals_due);
                REQUIRE(p->gone || hung_up || seen->starts == 1);
                REQUIRE(p->gone || hung_up || !seen->killed || seen->kill_told);
        }
}

static void end(void) {
        turn();
        check_all_told();
        world.all = processes_free(world.all);
        world.server = rpc_server_free(world.server);
        world.loop = loop_free(world.loop);
        for (int i = 0; i < CLIENTS; i++)
                (void)fd_close(world.client_fds[i]);
        (void)fd_close(world.out_fd);
        (void)fd_close(world.full[0]);
        (void)fd_close(world.full[1]);
        (void)fd_close(world.init_fd);
        (void)close(world.sandbox.control_fd);
}

static unsigned count_fds(void) {
        unsigned count = 0;

        for (int fd = 0; fd < FDS_LOOKED_AT; fd++)
                count += fcntl(fd, F_GETFD) >= 0;
        return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static char cwd[] = "/workspace";
        static LaunchPlan plan = { .kill_after = 1000000, .cwd = cwd };
        static const Launch launch = { .plan = &plan };
        const unsigned before = count_fds();

        (void)signal(SIGPIPE, SIG_IGN);
        memset(&world, 0, sizeof(world));
        world.in = (Input){ data, data + size };
        begin(&launch);
        while (world.in.at < world.in.end)
                step(&world.in);
        end();
        REQUIRE(count_fds() == before);
        return 0;
}
