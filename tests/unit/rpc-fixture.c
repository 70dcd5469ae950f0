/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc-fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

/* --- the methods --- */

static int toy_echo(RpcCall *call, void *data, Error *error) {
        JsonWriter *w;

        assert_ptr_equal(data, &toy);
        (void)error;
        toy.executed++;
        toy.last = rpc_call_connection(call);
        w = rpc_result(call);
        json_write_string(w, "text", rpc_string(call, "text"));
        json_write_bool(w, "loud", rpc_bool(call, "loud", true));
        json_write_uint(w, "times", rpc_uint(call, "times", 7));
        json_write_bool(w, "has_times", rpc_has(call, "times"));
        rpc_reply(call);
        return 0;
}

static int toy_list(RpcCall *call, void *data, Error *error) {
        static const char *const names[] = { "items", "env" };
        _cleanup_free_ char *text = rpc_params_text(call);
        JsonWriter *w = rpc_result(call);

        assert_ptr_equal(data, &toy);
        toy.executed++;
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                StrList list = { 0 };

                if (rpc_strings(call, names[i], &list, error) < 0)
                        return -ENOMEM;
                json_write_array(w, names[i]);
                for (size_t j = 0; j < list.count; j++)
                        json_write_string(w, NULL, list.items[j]);
                json_write_end(w);
                strlist_clear(&list);
        }
        json_write_string(w, "text", text);
        rpc_reply(call);
        return 0;
}

static int toy_note(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *text = rpc_params_text(call);

        assert_ptr_equal(data, &toy);
        (void)error;
        toy.executed++;
        json_write_string(rpc_result(call), "text", text);
        rpc_reply(call);
        return 0;
}

static void kept_ended(RpcCall *call, void *data) {
        (void)data;
        toy.calls_ended++;
        for (size_t i = 0; i < toy.kept_count; i++)
                if (toy.kept[i] == call)
                        toy.kept[i] = NULL;
}

static int toy_keep(RpcCall *call, void *data, Error *error) {

        assert_ptr_equal(data, &toy);
        toy.executed++;
        toy.last = rpc_call_connection(call);
        if (toy.kept_count == ELEMENTSOF(toy.kept))
                return error_set(error, ERROR_LIMIT, 0, "too many are kept");
        toy.kept[toy.kept_count++] = call;
        rpc_call_on_end(call, kept_ended, NULL);
        return 0;
}

static int toy_fail(RpcCall *call, void *data, Error *error) {
        const char *name = rpc_string(call, "kind");

        assert_ptr_equal(data, &toy);
        toy.executed++;
        for (ErrorKind kind = 0; kind < ERROR_KIND_MAX; kind++) {
                if (!streq(error_kind_name(kind), name))
                        continue;
                if (kind == ERROR_LAYER)
                        return error_layer(error, 1, EPERM, "refused");
                (void)error_set(error, kind, rpc_bool(call, "errno", false) ? ENOENT : 0,
                                "it failed");
                return error_cure(error, -EINVAL, "Try again.\nOr not.");
        }
        return error_set(error, ERROR_USAGE, 0, "no such kind");
}

/* Counts the open fds, and returns the first two. */
static int toy_fds(RpcCall *call, void *data, Error *error) {
        int fds[RPC_FDS_MAX];
        size_t count = 0;

        assert_ptr_equal(data, &toy);
        (void)error;
        toy.executed++;
        for (size_t i = 0; i < RPC_FDS_MAX; i++) {
                fds[i] = rpc_take_fd(call, i);
                if (fds[i] >= 0 && (fcntl(fds[i], F_GETFD) & FD_CLOEXEC))
                        count++;
        }
        json_write_uint(rpc_result(call), "count", count);
        rpc_reply_fds(call, fds, count > 2 ? 2 : count);
        for (size_t i = 0; i < RPC_FDS_MAX; i++)
                (void)fd_close(fds[i]);
        return 0;
}

static int toy_big(RpcCall *call, void *data, Error *error) {
        size_t size = (size_t)rpc_uint(call, "size", 0);
        _cleanup_free_ char *text = malloc(size + 1);

        assert_ptr_equal(data, &toy);
        toy.executed++;
        if (!text)
                return error_oom(error);
        memset(text, 'x', size);
        text[size] = '\0';
        json_write_string(rpc_result(call), "text", text);
        rpc_reply(call);
        return 0;
}

/* Takes the time that a connection has for its turn. */
static int toy_slow(RpcCall *call, void *data, Error *error) {
        const uint64_t end = time_now_usec() + RPC_TURN_TIME;

        assert_ptr_equal(data, &toy);
        (void)error;
        toy.executed++;
        while (time_now_usec() < end)
                ;
        (void)rpc_result(call);
        rpc_reply(call);
        return 0;
}

static const RpcParam echo_params[] = {
        { "text", RPC_STRING, true, 2000, "what to say" },
        { "loud", RPC_BOOL, false, 0, "whether to shout" },
        { "times", RPC_UINT, false, 100, "how often" },
};

static const RpcParam list_params[] = {
        { "items", RPC_STRINGS, false, 3, "some strings" },
        { "env", RPC_MAP, false, 2, "some variables" },
};

static const RpcParam note_params[] = {
        { "argv", RPC_STRINGS, false, 0, "many strings" },
        { "env", RPC_MAP, false, 0, "many variables" },
        { "more", RPC_STRINGS, false, 0, "more strings" },
        { "text", RPC_STRING, false, 0, "a text" },
        { "schema", RPC_OBJECT, false, 0, "an object" },
};

static const RpcParam fail_params[] = {
        { "kind", RPC_STRING, true, 0, "of the error" },
        { "errno", RPC_BOOL, false, 0, "whether it has one" },
};

static const RpcParam big_params[] = {
        { "size", RPC_UINT, true, 4 << 20, "of the answer, in bytes", .min = 1 },
};

static const RpcField echo_fields[] = {
        { "text", RPC_STRING, RPC_OR_NULL, "the text" },
        { "loud", RPC_BOOL, RPC_ALWAYS, NULL },
        { "times", RPC_UINT, RPC_SOMETIMES, "how often" },
};
static const RpcShape echo_shape = { .name = "Echo", RPC_FIELDS(echo_fields) };

static const char *const colours[] = { "red", "blue", NULL };

static const RpcParam colour_params[] = {
        { "colour", RPC_STRING, true, 0, "of the line", .values = colours },
};

const RpcMethod toy_methods[] = {
        { .name = "toy.echo",
          .help = "says it again",
          RPC_PARAMS(echo_params),
          .result = &echo_shape,
          .errors = RPC_ERROR(USAGE),
          .example = { "{\"text\": \"a\"}", "{\"text\": \"a\", \"loud\": false}" },
          .function = toy_echo },
        { .name = "toy.list",
          .help = "lists",
          RPC_PARAMS(list_params),
          .result = &rpc_nothing,
          .function = toy_list },
        { .name = "toy.keep", .help = "waits", .result = &rpc_nothing, .function = toy_keep },
        { .name = "toy.fail",
          .help = "fails",
          RPC_PARAMS(fail_params),
          .result = &rpc_nothing,
          .function = toy_fail },
        { .name = "toy.fds", .help = "counts fds", .result = &rpc_nothing, .function = toy_fds },
        { .name = "toy.big",
          .help = "says much",
          RPC_PARAMS(big_params),
          .result = &rpc_nothing,
          .function = toy_big },
        { .name = "toy.slow",
          .help = "takes its time",
          .result = &rpc_nothing,
          .function = toy_slow },
        { .name = "toy.note",
          .help = "has it noted",
          RPC_PARAMS(note_params),
          .result = &rpc_nothing,
          .function = toy_note },
        { .name = "toy.colour",
          .help = "takes one of two words",
          RPC_PARAMS(colour_params),
          .result = &rpc_nothing,
          .function = toy_slow },
};
const size_t toy_methods_count = ELEMENTSOF(toy_methods);

/* --- the server --- */

Toy toy;

static size_t fds_before;

static void stop_loop(void *data) {
        loop_stop(data);
}

static void connection_ended(RpcConnection *connection, void *data) {
        assert_ptr_equal(data, &toy);
        toy.connections_ended++;
        if (toy.last == connection)
                toy.last = NULL;
}

static void has_room(RpcConnection *connection, void *data) {
        assert_ptr_equal(data, &toy);
        assert_non_null(connection);
        toy.rooms++;
}

int toy_setup(void **state) {
        (void)state;
        fds_before = open_fds();
        toy = (Toy){ 0 };
        assert_int_equal(loop_new(&toy.loop, NULL), 0);
        assert_int_equal(loop_timer_new(toy.loop, stop_loop, toy.loop, &toy.stop, NULL), 0);
        assert_int_equal(
                rpc_server_new(toy.loop, toy_methods, toy_methods_count, &toy, &toy.server, NULL),
                0);
        rpc_server_on_end(toy.server, connection_ended);
        rpc_server_on_room(toy.server, has_room);
        return 0;
}

int toy_teardown(void **state) {
        (void)state;
        rpc_server_free(toy.server);
        loop_free(toy.loop);
        return open_fds() == fds_before ? 0 : -1;
}

size_t open_fds(void) {
        DIR *dir = opendir("/proc/self/fd");
        size_t count = 0;

        assert_non_null(dir);
        while (readdir(dir))
                count++;
        (void)closedir(dir);
        return count;
}

void toy_turn_once(void) {
        loop_timer_set(toy.stop, 1);
        assert_int_equal(loop_run(toy.loop), 0);
}

/* The unfinished work of a turn is a timer, or an event of the next turn. */
void toy_turn(void) {
        size_t before;

        do {
                before = toy.executed + toy.connections_ended;
                for (int i = 0; i < 4; i++)
                        toy_turn_once();
        } while (before != toy.executed + toy.connections_ended);
}

int toy_connect(void) {
        RpcConnection *connection;
        int ends[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(rpc_server_add(toy.server, ends[0], ends[0], &connection, NULL), 0);
        assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
        return ends[1];
}

void toy_answer(size_t i) {
        RpcCall *call = TAKE_PTR(toy.kept[i]);

        json_write_uint(rpc_result(call), "i", i);
        rpc_reply(call);
}

/* --- clients --- */

void say(int fd, const char *text) {
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

void say_slowly(int fd, const char *text, size_t length) {
        while (length > 0) {
                ssize_t n = write(fd, text, length);

                text += n > 0 ? n : 0;
                length -= n > 0 ? (size_t)n : 0;
                toy_turn_once();
        }
}

const char *hear(int fd) {
        static char buf[256 << 10];
        size_t used = 0;
        ssize_t n;

        do {
                toy_turn();
                n = read(fd, buf + used, sizeof(buf) - 1 - used);
                used += n > 0 ? (size_t)n : 0;
        } while (n > 0);
        buf[used] = '\0';
        return buf;
}

size_t drain(int fd) {
        static char buf[64 << 10];
        size_t count = 0;
        ssize_t n;

        do {
                toy_turn();
                n = read(fd, buf, sizeof(buf));
                count += n > 0 ? (size_t)n : 0;
        } while (n > 0);
        return count;
}

bool is_closed(int fd) {
        char c;

        toy_turn();
        return recv(fd, &c, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

void disconnect(int fd) {
        (void)close(fd);
        toy_turn();
        assert_int_equal(rpc_server_connections(toy.server), 0);
}
