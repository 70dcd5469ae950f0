/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes rpc/ with a client's input from libFuzzer. Its first bytes are the sizes of the pieces.
 * Each line must be answered at most once, by strict JSON, and in the end nothing is left. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json.h"
#include "rpc/framing.h"
#include "rpc/server.h"
#include "tests/fuzz/harness.h"

enum { PIECES = 4 }; /* bytes at the start that tell how the rest is cut */

/* --- a table with a parameter of each type --- */

static RpcCall *kept;

static void forget(RpcCall *call, void *data) {
        (void)data;
        REQUIRE(call == kept);
        kept = NULL;
}

static int fuzz_all(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *text = rpc_params_text(call);
        StrList items = { 0 }, env = { 0 };
        JsonWriter *w = rpc_result(call);

        (void)data;
        REQUIRE(text && rpc_string(call, "text"));
        REQUIRE(strlen(rpc_string(call, "text")) <= 20);
        REQUIRE(rpc_uint(call, "count", 0) <= 1000);
        REQUIRE(rpc_strings(call, "items", &items, error) == 0 && items.count <= 3);
        REQUIRE(rpc_strings(call, "env", &env, error) == 0 && env.count <= 3);
        for (size_t i = 0; i < env.count; i++)
                REQUIRE(strchr(env.items[i], '=') > env.items[i]);
        json_write_string(w, "text", text);
        json_write_bool(w, "on", rpc_bool(call, "on", false));
        if (rpc_object(call, "object"))
                json_copy(w, "object", rpc_object(call, "object"));
        strlist_clear(&items);
        strlist_clear(&env);
        rpc_reply(call);
        return 0;
}

static int fuzz_keep(RpcCall *call, void *data, Error *error) {
        (void)data;
        if (kept)
                return error_set(error, ERROR_BUSY, EBUSY, "one is kept");
        kept = call;
        rpc_call_on_end(call, forget, NULL);
        return 0;
}

static int fuzz_free(RpcCall *call, void *data, Error *error) {
        (void)data;
        (void)error;
        if (kept)
                rpc_reply(TAKE_PTR(kept));
        rpc_reply(call);
        return 0;
}

/* Counts the server's own requests; each must be told once. */
static size_t asked, told;

static void take_told(void *data, const RpcAnswer *answer) {
        REQUIRE(data == &told);
        REQUIRE(!answer->result != !answer->why);
        told++;
}

static int fuzz_ask(RpcCall *call, void *data, Error *error) {
        JsonWriter params = { 0 };
        RpcRequest *request;

        (void)data;
        (void)error;
        json_write_object(&params, NULL);
        json_write_end(&params);
        REQUIRE(json_write_finish(&params) == 0);
        if (rpc_request(rpc_call_connection(call), "do", &params, take_told, &told, &request) ==
            0) {
                asked += !rpc_bool(call, "on", false);
                if (rpc_bool(call, "on", false))
                        (void)rpc_request_cancel(request);
        }
        json_write_clear(&params);
        (void)rpc_result(call);
        rpc_reply(call);
        return 0;
}

static const RpcParam ask_params[] = {
        { "on", RPC_BOOL, false, 0, "it is cancelled" },
};

static const RpcParam all_params[] = {
        { "text", RPC_STRING, true, 20, "a text" },
        { "on", RPC_BOOL, false, 0, "a switch" },
        { "count", RPC_UINT, false, 1000, "a number" },
        { "items", RPC_STRINGS, false, 3, "a list" },
        { "env", RPC_MAP, false, 3, "variables" },
        { "object", RPC_OBJECT, false, 0, "anything" },
};

static const RpcMethod methods[] = {
        { .name = "all", .help = "takes all", RPC_PARAMS(all_params), .function = fuzz_all },
        { .name = "keep", .help = "waits", .function = fuzz_keep },
        { .name = "free", .help = "ends the wait", .function = fuzz_free },
        { .name = "ask", .help = "asks back", RPC_PARAMS(ask_params), .function = fuzz_ask },
};

/* --- one client --- */

static void stop(void *loop) {
        loop_stop(loop);
}

static void turn(Loop *loop, LoopTimer *timer) {
        loop_timer_set(timer, 1);
        REQUIRE(loop_run(loop) == 0);
}

static bool take_bytes(int fd, Framing *f) {
        size_t size;
        ssize_t n;
        char *room;

        REQUIRE(framing_room(f, &room, &size) == 0);
        n = recv(fd, room, size, MSG_DONTWAIT);
        if (n > 0)
                framing_add(f, (size_t)n);
        return n > 0;
}

/* Takes all complete lines; each must be a reply. Returns their number. */
static size_t take_lines(Framing *f) {
        FramingLine line;
        size_t count = 0;

        while (framing_next(f, &line)) {
                JsonDocument *document = NULL;
                Error error;

                REQUIRE(line.bytes);
                REQUIRE(json_parse(line.bytes, line.length, "answer", &document, &error) == 0);
                if (!json_member(json_root(document), "method")) {
                        REQUIRE(!json_member(json_root(document), "result") !=
                                !json_member(json_root(document), "error"));
                        count++;
                }
                json_free(document);
        }
        return count;
}

static size_t take_answers(int fd, Framing *f) {
        size_t count = 0;

        while (take_bytes(fd, f))
                count += take_lines(f);
        return count;
}

static size_t count_lines(const uint8_t *data, size_t size) {
        size_t count = 1;

        for (size_t i = 0; i < size; i++)
                count += data[i] == '\n';
        return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t lines, answers = 0;
        Framing f = { .max = 1 << 20 };
        RpcServer *server = NULL;
        LoopTimer *timer = NULL;
        RpcConnection *connection;
        Loop *loop = NULL;
        int ends[2];

        asked = told = 0;
        if (size < PIECES)
                return 0;
        lines = count_lines(data + PIECES, size - PIECES);
        REQUIRE(loop_new(&loop, NULL) == 0);
        REQUIRE(loop_timer_new(loop, stop, loop, &timer, NULL) == 0);
        REQUIRE(rpc_server_new(loop, methods, ELEMENTSOF(methods), NULL, &server, NULL) == 0);
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        REQUIRE(rpc_server_add(server, ends[0], ends[0], &connection, NULL) == 0);
        for (size_t at = PIECES, i = 0; at < size; i++) {
                size_t piece = 1 + size / 64 + 16 * (size_t)data[i % PIECES];

                piece = piece < size - at ? piece : size - at;
                REQUIRE(send(ends[1], data + at, piece, MSG_NOSIGNAL) == (ssize_t)piece);
                at += piece;
                turn(loop, timer);
                answers += take_answers(ends[1], &f);
        }
        REQUIRE(shutdown(ends[1], SHUT_WR) == 0);
        /* If this process had to wait for its processor, a turn may handle only one line. */
        for (size_t i = 0; i < lines + 3 && rpc_server_connections(server) > 0; i++) {
                turn(loop, timer);
                answers += take_answers(ends[1], &f);
        }
        REQUIRE(answers <= lines);
        REQUIRE(rpc_server_connections(server) == (kept ? 1 : 0));
        (void)close(ends[1]);
        rpc_server_free(server);
        REQUIRE(!kept && asked == told);
        loop_free(loop);
        framing_clear(&f);
        return 0;
}
