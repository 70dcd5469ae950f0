/* SPDX-License-Identifier: Apache-2.0 */
/* holt-tool NAME [JSON] | --list: calls a tool of the host from inside a session, for shells.
 *
 * Theory of operation. inside/bridge.h describes the protocol on the socket: holt-tool sends one
 * line and reads the line with the same id. holt-tool does and prints the same as
 * helpers/python/host_tools.py, but needs no python3. Like init it links nothing, so it runs below
 * any root, and it is small enough to be written into every session. Unlike init it allocates
 * memory, for the payload, the answer, and the rewritten form of each (tool-json.h).
 *
 * A process that sets HOLT_BRIDGE may impersonate the bridge. So everything from the socket is
 * checked before use, and an answer is limited to INPUT_MAX bytes. */
#include <asm/unistd.h>
#include <errno.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/un.h>
#include <stddef.h>
#include <stdint.h>

#include "init-sys.h"

#include "tool-sys.h"

#include "tool-number.h"

#include "tool-json.h"

enum {
        INPUT_MAX = 32 << 20, /* BRIDGE_OUTPUT_MAX: the bridge never sends a longer line */
        READ_SIZE = 64 << 10,
        STREAM_SOCKET = 1,        /* SOCK_STREAM */
        CLOSE_ON_EXEC = 02000000, /* SOCK_CLOEXEC */
        NO_SIGNAL = 0x4000,       /* MSG_NOSIGNAL */
};

#define BRIDGE_GONE "[internal_error] the bridge is gone"
#define BAD_ANSWER "[internal_error] the bridge's answer "

static const char usage[] =
        "usage: holt-tool NAME [JSON]   (JSON is an object; if missing, it is read from stdin)\n"
        "       holt-tool --list\n";

/* --- the payload --- */

/* Reads up to size more bytes. Returns their number, 0 at the end, or a negative errno. */
static long read_more(int fd, Buffer *buffer, size_t size) {
        long n;

        buffer_reserve(buffer, size);
        do
                n = sys3(__NR_read, fd, (long)(buffer->data + buffer->length), (long)size);
        while (n == -EINTR);
        if (n > 0)
                buffer->length += (size_t)n;
        return n;
}

/* Turns every line end into "\n", like Python does when it reads a text. */
static void unify_lines(Buffer *text) {
        size_t to = 0;

        for (size_t i = 0; i < text->length; i++) {
                const char c = text->data[i];

                if (c == '\r' && i + 1 < text->length && text->data[i + 1] == '\n')
                        continue;
                text->data[to++] = c == '\r' ? '\n' : c;
        }
        text->length = to;
}

/* Reads all of stdin; nothing if stdin is a terminal. */
static Text read_stdin(void) {
        char attributes[256]; /* larger than struct termios */
        Buffer input = { 0 };
        long n = 1;

        if (sys3(__NR_ioctl, 0, TERMINAL_ATTRIBUTES, (long)attributes) == 0)
                return text_of("");
        while (n > 0) {
                n = read_more(0, &input, READ_SIZE);
                if (n < 0)
                        fail_errno("cannot read the payload from ", "stdin", n);
                if (input.length > INPUT_MAX)
                        fail("the payload is larger than 32 MiB");
        }
        unify_lines(&input);
        return (Text){ input.data, input.length };
}

static int is_blank(Text text) {
        for (size_t i = 0; i < text.length; i++) {
                const char c = text.at[i];

                if (c != ' ' && (c < '\t' || c > '\r') && (c < 0x1c || c > 0x1f))
                        return 0;
        }
        return 1;
}

/* The Python type of a JSON text's value, for errors. */
static const char *python_type(Text json) {
        if (json.at[0] == '"')
                return "str";
        if (json.at[0] == '[')
                return "list";
        if (json.at[0] == 't' || json.at[0] == 'f')
                return "bool";
        for (size_t i = 0; i < json.length; i++)
                if (json.at[i] == '.' || json.at[i] == 'e' || json.at[i] == 'N' ||
                    json.at[i] == 'I')
                        return "float";
        return "int";
}

_Noreturn static void fail_json(const char *before, const Json *j) {
        Buffer message = { 0 };

        add_string(&message, "holt-tool: ");
        add_string(&message, before);
        add_json_error(&message, j);
        add_byte(&message, '\n');
        fail_by(&message);
}

static void add_payload(Buffer *line, Text text) {
        const size_t begin = line->length;
        Json j = { .text = text, .out = line };
        Text payload;

        if (is_blank(text))
                return add_string(line, "{}");
        if (json_rewrite(&j) < 0) {
                if (j.error == json_too_deep)
                        fail("the payload nests objects and arrays too deeply");
                fail_json("the payload must be JSON, such as '{\"of\": \"tea\"}': ", &j);
        }
        payload = (Text){ line->data + begin, line->length - begin };
        if (text_is(payload, "null")) {
                line->length = begin;
                return add_string(line, "{}");
        }
        if (payload.at[0] != '{')
                fail("the payload must be a dict, not ", python_type(payload));
        if (j.not_finite)
                fail("Out of range float values are not JSON compliant");
}

/* --- the request --- */

static const char *find_env(char **env, const char *name) {
        const size_t length = text_of(name).length;

        for (; *env; env++)
                if (text_of(*env).length > length && (*env)[length] == '=' &&
                    text_is((Text){ *env, length }, name))
                        return *env + length + 1;
        return "";
}

static Buffer begin_request(char **env) {
        Buffer line = { 0 };

        add_string(&line, "{\"id\": 1, \"token\": ");
        if (add_json_string(&line, text_of(find_env(env, "HOLT_BRIDGE_TOKEN"))) < 0)
                fail("HOLT_BRIDGE_TOKEN is not UTF-8");
        return line;
}

static Buffer make_call(char **env, const char *name, const char *payload) {
        Buffer line = begin_request(env);

        add_string(&line, ", \"call\": ");
        if (add_json_string(&line, text_of(name)) < 0)
                fail("the tool's name must be UTF-8");
        add_string(&line, ", \"payload\": ");
        add_payload(&line, payload ? text_of(payload) : read_stdin());
        if (!name[0])
                fail("the tool's name must not be empty");
        add_string(&line, "}\n");
        return line;
}

static Buffer make_list(char **env) {
        Buffer line = begin_request(env);

        add_string(&line, ", \"list\": true}\n");
        return line;
}

/* --- the connection --- */

typedef struct Bridge {
        int fd;
        long sent; /* the errno of sending; a peer that refuses a request may still have sent the
                      reason */
        Buffer input;
        size_t begin; /* start of the next line in the buffer */
} Bridge;

static int connect_bridge(const char *path) {
        struct sockaddr_un address = { .sun_family = 1 }; /* AF_UNIX */
        const Text text = text_of(path);
        long fd, r;

        if (text.length == 0)
                fail("[internal_error] HOLT_BRIDGE is not set: tools can be called only inside a "
                     "session");
        if (text.length >= sizeof(address.sun_path))
                fail("[internal_error] cannot reach the bridge at ", path,
                     ": AF_UNIX path too long");
        for (size_t i = 0; i < text.length; i++)
                address.sun_path[i] = path[i];
        fd = sys3(__NR_socket, address.sun_family, STREAM_SOCKET | CLOSE_ON_EXEC, 0);
        r = fd < 0 ? fd
                   : sys3(__NR_connect, fd, (long)&address,
                          (long)(offsetof(struct sockaddr_un, sun_path) + text.length + 1));
        if (r < 0)
                fail_errno("[internal_error] cannot reach the bridge at ", path, r);
        return (int)fd;
}

/* Returns 0 or a negative errno. */
static long tool_send_line(int fd, const Buffer *line) {
        size_t sent = 0;

        while (sent < line->length) {
                const long n = sys6(__NR_sendto, fd, (long)(line->data + sent),
                                    (long)(line->length - sent), NO_SIGNAL, 0, 0);

                if (n < 0 && n != -EINTR)
                        return n;
                sent += n > 0 ? (size_t)n : 0;
        }
        return 0;
}

/* Reads more of an incomplete line, after moving it to the front. */
static void read_rest(Bridge *bridge) {
        Buffer *input = &bridge->input;
        long n;

        input->length -= bridge->begin;
        for (size_t i = 0; bridge->begin > 0 && i < input->length; i++)
                input->data[i] = input->data[bridge->begin + i];
        bridge->begin = 0;
        n = read_more(bridge->fd, input, READ_SIZE);
        if (n == 0 && bridge->sent == 0)
                fail(BRIDGE_GONE ": connection closed");
        if (n <= 0)
                fail_errno(BRIDGE_GONE, "", bridge->sent ? bridge->sent : n);
}

/* Returns the next line without its end. It is valid until the next call. */
static Text tool_read_line(Bridge *bridge) {
        size_t length = 0;
        Text line;

        for (;; length++) {
                if (length == INPUT_MAX)
                        fail(BAD_ANSWER "is larger than 32 MiB");
                if (bridge->begin + length == bridge->input.length)
                        read_rest(bridge);
                if (bridge->input.data[bridge->begin + length] == '\n')
                        break;
        }
        line = (Text){ bridge->input.data + bridge->begin, length };
        bridge->begin += length + 1;
        return line;
}

/* --- the answer --- */

/* Ends with the contents of the answer's "error", after the text `before`. */
_Noreturn static void fail_answer(const char *before, Text error, int with_type) {
        Buffer message = { 0 };
        Text part;

        add_string(&message, "holt-tool: ");
        add_string(&message, before);
        if (with_type) {
                add_byte(&message, '[');
                add_plain_text(&message,
                               find_member(error, "type", &part) ? part : text_of("None"));
                add_string(&message, "] ");
        }
        if (!find_member(error, "message", &part))
                part = text_of(with_type ? "None" : "no answer");
        add_plain_text(&message, part);
        add_byte(&message, '\n');
        fail_by(&message);
}

/* Rewrites the line, and returns whether it answers this request. */
static int answer_is_ours(Text line, Buffer *answer) {
        Json j = { .text = line, .out = answer };
        Text whole, id, error = { "", 0 };

        answer->length = 0;
        if (json_rewrite(&j) < 0)
                fail_json(BAD_ANSWER "is not valid: ", &j);
        whole = (Text){ answer->data, answer->length };
        if (whole.at[0] != '{')
                fail(BAD_ANSWER "is not an object");
        if (find_member(whole, "id", &id) && !text_is(id, "null"))
                return text_is(id, "1");
        (void)find_member(whole, "error", &error); /* an error about the connection itself */
        fail_answer(BRIDGE_GONE ": ", error, 0);
}

/* Sends a request and returns one member of its answer. Ends if the answer is an error. */
static Text tool_ask(char **env, const Buffer *request, const char *key) {
        Bridge bridge = { .fd = connect_bridge(find_env(env, "HOLT_BRIDGE")) };
        Buffer answer = { 0 };
        Text whole, error, value;

        bridge.sent = tool_send_line(bridge.fd, request);
        while (!answer_is_ours(tool_read_line(&bridge), &answer))
                ;
        whole = (Text){ answer.data, answer.length };
        if (find_member(whole, "error", &error) && !text_is(error, "null"))
                fail_answer("", error, 1);
        if (!find_member(whole, key, &value))
                fail(BAD_ANSWER "has no ", key);
        return value;
}

/* --- the list --- */

/* Length in bytes of a space character, or 0; *ret says whether it ends a line. The rules are
 * Python's. */
static size_t space_length(Text text, int *ret) {
        static const struct {
                const char *text;
                int ends;
        } wide[] = { { "\xc2\x85", 1 },     { "\xc2\xa0", 0 },     { "\xe1\x9a\x80", 0 },
                     { "\xe2\x80\xa8", 1 }, { "\xe2\x80\xa9", 1 }, { "\xe2\x80\xaf", 0 },
                     { "\xe2\x81\x9f", 0 }, { "\xe3\x80\x80", 0 } };
        const char c = text.at[0];
        const size_t length = utf8_length(text);

        *ret = (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e);
        if (length == 1)
                return is_blank((Text){ text.at, 1 }) ? 1 : 0;
        for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
                if (text_is((Text){ text.at, length }, wide[i].text)) {
                        *ret = wide[i].ends;
                        return length;
                }
        /* U+2000 to U+200a */
        return length == 3 && text_is((Text){ text.at, 2 }, "\xe2\x80") &&
                               (unsigned char)text.at[2] <= 0x8a
                       ? length
                       : 0;
}

/* description.strip().splitlines()[:1] */
static Text first_line(Text text) {
        size_t begin = text.length, end = text.length, cut = 0, length;

        for (size_t i = 0; i < text.length; i += length) {
                const Text rest = { text.at + i, text.length - i };
                int ends = 0;

                length = space_length(rest, &ends);
                if (length > 0) {
                        cut = ends && begin < i && cut == 0 ? i : cut;
                        continue;
                }
                if (cut > 0) /* text follows the line end */
                        return (Text){ text.at + begin, cut - begin };
                length = utf8_length(rest);
                begin = begin < i ? begin : i;
                end = i + length;
        }
        return (Text){ text.at + begin, end - begin };
}

static void add_tool(Buffer *out, Text tool) {
        Buffer plain = { 0 };
        Text name, description, line;

        if (!find_member(tool, "name", &name) || name.at[0] != '"' ||
            !find_member(tool, "description", &description) || description.at[0] != '"')
                fail(BAD_ANSWER "has a tool without a name and a description");
        add_plain_text(out, name);
        buffer_reserve(&plain, 1);
        add_plain_text(&plain, description);
        line = first_line((Text){ plain.data, plain.length });
        if (line.length > 0) {
                add_byte(out, '\t');
                buffer_add(out, line);
        }
        add_byte(out, '\n');
}

static void add_list(Buffer *out, Text tools) {
        size_t at = 1;
        Text tool;

        if (tools.at[0] != '[')
                fail(BAD_ANSWER "has no list of tools");
        while (next_value(tools, &at, &tool))
                add_tool(out, tool);
}

/* --- the command line --- */

_Noreturn static void tool_print(Text text) {
        const long r = write_all(1, text);

        if (r < 0)
                fail_errno("cannot write to ", "stdout", r);
        tool_end(0);
}

_Noreturn static void tool_call(char **words, int count, char **env) {
        const Buffer request = make_call(env, words[0], count > 1 ? words[1] : NULL);
        Buffer out = { 0 };

        buffer_add(&out, tool_ask(env, &request, "value"));
        add_byte(&out, '\n');
        tool_print((Text){ out.data, out.length });
}

_Noreturn static void tool_list(char **env) {
        const Buffer request = make_list(env);
        Buffer out = { 0 };

        add_list(&out, tool_ask(env, &request, "tools"));
        tool_print((Text){ out.data, out.length });
}

/* Called by _start (init-sys.h) with execve(2)'s initial stack. */
_Noreturn void init_main(long *stack);
_Noreturn void init_main(long *stack) {
        const int count = (int)stack[0] - 1;
        char **words = (char **)(stack + 2), **env = words + count + 1;

        if (stack[0] < 1) /* no argv[0] */
                tool_end(EXIT_USAGE);
        if (count == 1 && text_is(text_of(words[0]), "--help"))
                tool_print(text_of(usage));
        if (count == 1 && text_is(text_of(words[0]), "--list"))
                tool_list(env);
        if (count < 1 || count > 2 || words[0][0] == '-') {
                (void)write_all(2, text_of(usage));
                tool_end(EXIT_USAGE);
        }
        tool_call(words, count, env);
}
