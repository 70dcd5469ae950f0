/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the bridge and tool calls, between hostile code inside and a hostile client. libFuzzer
 * chooses their messages and how these are cut. It also decides when they read, leave and return,
 * and when a grant ends.
 *
 * Each request inside must be answered at most once, by strict JSON, and only to its sender. A tool
 * is asked for only if the token allows it, and each call is noted once. In the end no call is
 * left. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/json.h"
#include "inside/bridge.h"
#include "inside/tools-internal.h"
#include "rpc/framing.h"
#include "store/unwritten.h"
#include "tests/fuzz/harness.h"

enum {
        INSIDERS = 3,
        CLIENTS = 2,
        GRANTS = 2,
        ASKED_MAX = 64, /* requests of the keeper that a client remembers, to answer them again */
        IDS = 16,       /* ids of an insider's well-formed requests */
};

/* --- the input --- */

/* Takes text up to a 0xff or the end. */
static size_t take_text(Input *in, const char **ret) {
        const uint8_t *begin = in->at, *end = memchr(begin, 0xff, (size_t)(in->end - begin));

        *ret = (const char *)begin;
        in->at = end ? end + 1 : in->end;
        return (size_t)((end ? end : in->end) - begin);
}

/* --- the world --- */

typedef struct Insider {
        int fd; /* FD_NONE: not connected */
        Framing in;
        unsigned open[IDS]; /* unanswered well-formed requests of each id */
        bool wild;          /* it has sent arbitrary text, which may contain any id */
} Insider;

typedef struct Client {
        int fd;
        RpcConnection *connection;
        Framing in;
        char asked[ASKED_MAX][24];
        unsigned asked_count;
} Client;

typedef struct World {
        Input in;
        Loop *loop;
        LoopTimer *timer;
        RpcServer *server;
        Tools *tools;
        Bridge *bridge;
        int root_fd;
        Insider insiders[INSIDERS];
        Client clients[CLIENTS];
        Grant *grants[GRANTS]; /* the first is for both, or the first client's; the others are for
                                  "b" */
        uint64_t noted, refusals;
} World;

static World world;

static JsonDocument *parse(const char *text) {
        JsonDocument *document = NULL;

        REQUIRE(json_parse(text, strlen(text), "row", &document, NULL) == 0);
        return document;
}

void unwritten_audited(Unwritten *all, const StoreHistory *row, const char *kind,
                       const char *detail) {
        JsonDocument *document = parse(detail);
        const JsonValue *tool = json_member(json_root(document), "tool");

        (void)all;
        REQUIRE(streq(row->name, "tool.call") && row->started_ms > 0 && streq(kind, "tool"));
        REQUIRE(tool && json_string(tool) && strlen(json_string(tool)) <= TOOL_NAME_MAX);
        json_free(document);
        json_free(parse(row->params));
        json_free(parse(row->result));
        world.noted++;
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
        for (int i = 0; i < CLIENTS; i++)
                if (world.clients[i].connection == connection)
                        world.clients[i].connection = NULL;
        if (world.tools)
                tools_forget(world.tools, connection);
}

static void on_room(RpcConnection *connection, void *data) {
        (void)data;
        tools_pump(world.tools, connection);
}

/* --- insiders --- */

static void insider_leave(Insider *insider) {
        insider->fd = fd_close(insider->fd);
        framing_clear(&insider->in);
        *insider = (Insider){ .fd = FD_NONE, .in = { .max = 1 << 20 } };
}

static void insider_come(Insider *insider) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        insider_leave(insider);
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d" BRIDGE_SOCKET,
                       world.root_fd);
        insider->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        REQUIRE(insider->fd >= 0);
        if (connect(insider->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                insider_leave(insider);
}

/* Bytes that do not fit are lost, which is hostile too. */
static void insider_say(const Insider *insider, const char *bytes, size_t length) {
        if (insider->fd >= 0)
                (void)!send(insider->fd, bytes, length, MSG_NOSIGNAL);
}

static void insider_call(Insider *insider, unsigned what) {
        static const char *const asks[] = { "\"call\":\"a\"", "\"call\":\"b\"", "\"list\":true",
                                            "\"call\":\"none\"" };
        static const char *const payloads[] = { "{}", "{\"n\":1}", "null", "{\"n\":\"x\"}" };
        const unsigned id = 1 + what % (IDS - 1), grant = what >> 4 & 1;
        _cleanup_free_ char *line = NULL;

        if (insider->fd < 0 || !world.grants[grant] || insider->wild || insider->open[id] > 0)
                return;
        line = str_format("{\"id\":%u,\"token\":\"%s\",%s,\"payload\":%s}\n", id,
                          grant_token(world.grants[grant]), asks[what >> 5 & 3],
                          payloads[what >> 7 & 1 ? what & 3 : what & 1]);
        REQUIRE(line);
        if (send(insider->fd, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line))
                insider->open[id]++;
}

static void check_answer(Insider *insider, const JsonValue *root) {
        const JsonValue *id = json_member(root, "id"), *value = json_member(root, "value");
        const JsonValue *error = json_member(root, "error"), *tools = json_member(root, "tools");
        uint64_t number = 0;

        REQUIRE(id && !!value + !!error + !!tools == 1);
        if (error)
                REQUIRE(json_string(json_member(error, "type")) &&
                        json_string(json_member(error, "message")));
        if (insider->wild || json_type(id) == JSON_NULL)
                return;
        REQUIRE(json_uint(id, IDS - 1, &number) == 0 && insider->open[number] == 1);
        insider->open[number] = 0;
}

static void insider_read(Insider *insider) {
        FramingLine line;
        size_t size;
        ssize_t n;
        char *room;

        if (insider->fd < 0)
                return;
        REQUIRE(framing_room(&insider->in, &room, &size) == 0);
        n = recv(insider->fd, room, size, MSG_DONTWAIT);
        if (n > 0)
                framing_add(&insider->in, (size_t)n);
        while (framing_next(&insider->in, &line)) {
                JsonDocument *document = NULL;

                REQUIRE(line.bytes);
                REQUIRE(json_parse(line.bytes, line.length, "answer", &document, NULL) == 0);
                check_answer(insider, json_root(document));
                json_free(document);
        }
        if (n == 0)
                insider_leave(insider);
}

/* --- clients --- */

static void client_leave(Client *client) {
        client->fd = fd_close(client->fd);
        framing_clear(&client->in);
        client->in = (Framing){ .max = 4 << 20 };
        client->asked_count = 0;
}

static void client_come(Client *client) {
        int ends[2];

        client_leave(client);
        while (client->connection)
                turn();
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
        REQUIRE(rpc_server_add(world.server, ends[0], ends[0], &client->connection, NULL) == 0);
        client->fd = ends[1];
}

static void client_register(const Client *client, unsigned what) {
        static const char *const schemas[] = {
                "{\"type\":\"object\"}",
                "{\"properties\":{\"n\":{\"type\":\"integer\"}}}",
                "{\"type\":5,\"properties\":[],\"required\":{},\"enum\":{},\"anyOf\":1}",
                "{\"required\":[\"n\"],\"additionalProperties\":false}",
        };
        const char *text = schemas[what & 3];
        JsonDocument *schema = NULL;
        Error error;

        if (!client->connection)
                return;
        REQUIRE(json_parse(text, strlen(text), "s", &schema, NULL) == 0);
        (void)tools_register(world.tools, client->connection,
                             &(const ToolSpec){ .name = what & 4 ? "a" : "b",
                                                .checked_by_client = (what & 32) != 0,
                                                .description = "",
                                                .input = json_root(schema),
                                                .output = what & 8 ? json_root(schema) : NULL,
                                                .timeout_ms = 1000000 },
                             &error);
        json_free(schema);
        if (what & 16)
                (void)tools_unregister(world.tools, client->connection, "b", &error);
}

static void client_take(Client *client, const JsonValue *root) {
        const JsonValue *method = json_member(root, "method"),
                        *params = json_member(root, "params");
        const JsonValue *id = json_member(root, "id"), *name;

        if (!method) /* a reply to the client's own request, written by the client */
                return;
        if (streq(json_string(method), "tool.cancel")) {
                REQUIRE(!id && json_string(json_member(params, "call")));
                return;
        }
        REQUIRE(streq(json_string(method), "tool.call") && id && json_string(id));
        name = json_member(params, "name");
        REQUIRE(streq(json_string(name), "a") || streq(json_string(name), "b"));
        REQUIRE(json_type(json_member(params, "payload")) == JSON_OBJECT);
        /* The second grant, whose exec is "second", is only for "b". */
        if (streq(json_string(json_member(params, "exec")), "second"))
                REQUIRE(streq(json_string(name), "b"));
        if (streq(json_string(json_member(params, "exec")), "own"))
                REQUIRE(client == &world.clients[0]);
        (void)snprintf(client->asked[client->asked_count++ % ASKED_MAX], sizeof(client->asked[0]),
                       "%s", json_string(id));
}

static void client_read(Client *client) {
        FramingLine line;
        size_t size;
        ssize_t n;
        char *room;

        if (client->fd < 0)
                return;
        REQUIRE(framing_room(&client->in, &room, &size) == 0);
        n = recv(client->fd, room, size, MSG_DONTWAIT);
        if (n > 0)
                framing_add(&client->in, (size_t)n);
        while (framing_next(&client->in, &line)) {
                JsonDocument *document = NULL;

                REQUIRE(line.bytes);
                REQUIRE(json_parse(line.bytes, line.length, "request", &document, NULL) == 0);
                client_take(client, json_root(document));
                json_free(document);
        }
        if (n == 0)
                client_leave(client);
}

/* Answers one of the latest requests, perhaps again, or another client's. */
static void client_answer(const Client *client, unsigned what, const char *text, size_t length) {
        static const char *const bodies[] = {
                "\"result\":{\"value\":{\"n\":1}}",
                "\"error\":{\"message\":\"no\",\"data\":{\"type\":\"permission_error\"}}",
                "\"result\":{}",
                "\"error\":7",
        };
        _cleanup_free_ char *line = NULL;

        if (client->fd < 0 || client->asked_count == 0)
                return;
        if (length > 0)
                line = str_format("{\"id\":\"%s\",\"result\":{\"value\":%.*s}}\n",
                                  client->asked[what % client->asked_count % ASKED_MAX],
                                  (int)length, text);
        else
                line = str_format("{\"id\":\"%s\",%s}\n",
                                  client->asked[what % client->asked_count % ASKED_MAX],
                                  bodies[what & 3]);
        REQUIRE(line);
        (void)!send(client->fd, line, strlen(line), MSG_NOSIGNAL);
}

/* --- one input --- */

static void renew_grant(unsigned i, bool only_end, bool own) {
        StrList names = { 0 };

        world.grants[i] = grant_end(world.grants[i]);
        if (only_end)
                return;
        REQUIRE(strlist_add(&names, "b") == 0);
        REQUIRE(i > 0 || strlist_add(&names, "a") == 0);
        REQUIRE(tools_grant(world.tools, own ? NULL : &names, world.clients[0].connection,
                            &world.grants[i], NULL) == 0);
        grant_set_exec(world.grants[i], own ? "own" : i ? "second" : "first");
        strlist_clear(&names);
}

static void act(void) {
        const unsigned op = take_byte(&world.in), what = take_byte(&world.in);
        Insider *insider = &world.insiders[what % INSIDERS];
        Client *client = &world.clients[what % CLIENTS];
        const char *text;
        size_t length;

        switch (op % 14) {
        case 0:
                return insider_come(insider);
        case 1:
                return insider_leave(insider);
        case 2:
                insider->wild = true;
                length = take_text(&world.in, &text);
                return insider_say(insider, text, length);
        case 3:
        case 4:
                return insider_call(insider, take_byte(&world.in) | (op << 4 & 0x100));
        case 5:
                return insider_read(insider);
        case 6:
                if (insider->fd >= 0)
                        (void)shutdown(insider->fd, SHUT_WR);
                return;
        case 7:
                return client_come(client);
        case 8:
                return client_leave(client);
        case 9:
                return client_register(client, take_byte(&world.in));
        case 10:
                return client_read(client);
        case 11:
                length = take_text(&world.in, &text);
                return client_answer(client, what >> 1, text, length);
        case 12:
                length = take_text(&world.in, &text);
                if (client->fd >= 0)
                        (void)!send(client->fd, text, length, MSG_NOSIGNAL);
                return;
        default:
                return renew_grant(what & 1, what & 2, !(what & 1) && what & 4);
        }
}

/* The directory of the bridge's socket, created once for all inputs. */
static int open_root(void) {
        static int root_fd = FD_NONE;
        static char path[] = "/tmp/fuzz-bridge-XXXXXX";

        if (root_fd < 0) {
                REQUIRE(mkdtemp(path));
                root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
                REQUIRE(root_fd >= 0 && mkdirat(root_fd, "run", 0755) == 0 &&
                        mkdirat(root_fd, &BRIDGE_DIRECTORY[1], 0755) == 0);
        }
        (void)unlinkat(root_fd, &BRIDGE_SOCKET[1], 0);
        return root_fd;
}

static void begin(const uint8_t *data, size_t size) {
        world = (World){ .in = { data, data + size }, .root_fd = open_root() };
        for (int i = 0; i < INSIDERS; i++)
                world.insiders[i] = (Insider){ .fd = FD_NONE, .in = { .max = 1 << 20 } };
        for (int i = 0; i < CLIENTS; i++)
                world.clients[i] = (Client){ .fd = FD_NONE, .in = { .max = 4 << 20 } };
        REQUIRE(loop_new(&world.loop, NULL) == 0);
        REQUIRE(loop_timer_new(world.loop, stop, world.loop, &world.timer, NULL) == 0);
        REQUIRE(rpc_server_new(world.loop, NULL, 0, NULL, &world.server, NULL) == 0);
        rpc_server_on_end(world.server, on_end);
        rpc_server_on_room(world.server, on_room);
        REQUIRE(tools_new(world.loop, NULL, &world.tools, NULL) == 0);
        REQUIRE(bridge_new(world.loop, world.tools, world.root_fd, &world.bridge, NULL) == 0);
        for (unsigned i = 0; i < GRANTS; i++)
                renew_grant(i, false, false);
        client_come(&world.clients[0]);
        client_register(&world.clients[0], 4);
        client_register(&world.clients[0], 1);
        insider_come(&world.insiders[0]);
        turn();
}

/* The insiders leave first, and their calls with them. */
static void end(void) {
        for (int i = 0; i < INSIDERS; i++)
                insider_leave(&world.insiders[i]);
        for (int i = 0; i < 64 && world.tools->calls > 0; i++)
                turn();
        REQUIRE(world.tools->calls == 0 && world.tools->waiting == 0);
        REQUIRE(world.tools->first == NULL && world.tools->last == NULL);
        REQUIRE(world.noted >= world.tools->last_call);
        for (int i = 0; i < CLIENTS; i++)
                client_leave(&world.clients[i]);
        turn();
        world.bridge = bridge_free(world.bridge);
        world.server = rpc_server_free(world.server);
        world.tools = tools_free(world.tools);
        (void)loop_timer_free(world.timer);
        (void)loop_free(world.loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        begin(data, size);
        while (world.in.at < world.in.end) {
                act();
                /* Several events may happen in one turn. */
                if (take_byte(&world.in) & 1)
                        turn();
        }
        end();
        return 0;
}
