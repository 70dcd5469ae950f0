/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the whole of holt-tool (helpers/tool.c) on a fake kernel. libFuzzer's input is the
 * payload, from the command line or stdin, and the bridge's bytes in pieces.
 *
 * Every access to memory must stay within the memory that is mapped for it, and only known calls
 * are made. The request is one line that rewrites to itself. The output is complete lines, and the
 * exit code is one of holt-tool's.
 *
 * Input format: the actions, the sizes of pieces, two bytes with the payload's length, the payload,
 * and the bridge's bytes. */
#include <asm/unistd.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* fuzz-init.c explains this, and the builtins. */
#define __asm__(...)
#include "helpers/init-sys.h"
#undef __asm__

static long fake_call(long nr, long a, long b, long c, long d);

#define sys6(nr, a, b, c, d, e, f) fake_call(nr, a, b, c, d)
#include "helpers/tool.c"

#include "tests/fuzz/harness.h"

enum {
        DO_STDIN = 1, /* take the payload from stdin, not from the command line */
        DO_LIST = 2,
        DO_FAIL_SEND = 4,
        DO_HELP = 8,
        DO_FAIL_CONNECT = 16,
        SOCKET_FD = 7,
        MAPS = 64,
};

typedef struct Bytes {
        char *data;
        size_t length;
} Bytes;

static struct {
        Text in, answer;
        size_t piece;
        unsigned what;
        Bytes sent, out, err;
        void *maps[MAPS];
        unsigned map_count;
        jmp_buf end;
        int code;
} kernel;

static void take(Bytes *to, const char *data, size_t length) {
        to->data = __builtin_realloc(to->data, to->length + length + 1);
        REQUIRE(to->data);
        memcpy(to->data + to->length, data, length);
        to->length += length;
}

/* Copies up to one piece of `from`, and returns its length. */
static long give(Text *from, char *to, size_t size) {
        size_t n = from->length < size ? from->length : size;

        n = n < kernel.piece ? n : kernel.piece;
        memcpy(to, from->at, n);
        from->at += n;
        from->length -= n;
        return (long)n;
}

/* Maps exactly `size` bytes, so that ASan finds accesses beside them. */
static long map(void *old, size_t size) {
        char *memory = __builtin_realloc(old, size);
        unsigned i = 0;

        REQUIRE(memory);
        while (i < kernel.map_count && kernel.maps[i] != old)
                i++;
        REQUIRE(i < MAPS && (i < kernel.map_count) == (old != NULL));
        kernel.map_count += i == kernel.map_count;
        kernel.maps[i] = memory;
        return (long)memory;
}

static long send_some(const char *data, size_t size) {
        if (kernel.what & DO_FAIL_SEND && kernel.sent.length > 0)
                return -EPIPE;
        size = size < kernel.piece ? size : kernel.piece;
        take(&kernel.sent, data, size);
        return (long)size;
}

static long write_some(long fd, const char *data, size_t size) {
        REQUIRE(fd == 1 || fd == 2);
        take(fd == 1 ? &kernel.out : &kernel.err, data, size);
        return (long)size;
}

static long fake_call(long nr, long a, long b, long c, long d) {
        (void)d;
        switch (nr) {
        case __NR_mmap:
                return map(NULL, (size_t)b);
        case __NR_mremap:
                return map((void *)a, (size_t)c);
        case __NR_read:
                REQUIRE(a == 0 || a == SOCKET_FD);
                return give(a == 0 ? &kernel.in : &kernel.answer, (char *)b, (size_t)c);
        case __NR_write:
                return write_some(a, (const char *)b, (size_t)c);
        case __NR_socket:
                return SOCKET_FD;
        case __NR_connect:
                return kernel.what & DO_FAIL_CONNECT ? -ECONNREFUSED : 0;
        case __NR_sendto:
                return send_some((const char *)b, (size_t)c);
        case __NR_ioctl:
                return -ENOTTY;
        case __NR_exit_group:
                kernel.code = (int)a;
                longjmp(kernel.end, 1);
        default:
                FAIL("a call that it does not make");
        }
}

static void run(char *payload) {
        const char *words[8] = { 0 };
        long stack[16] = { 1 };
        const char *env[] = { "HOLT_BRIDGE=/bridge", "HOLT_BRIDGE_TOKEN=0123", NULL };
        int count = 1;

        words[0] = "holt-tool";
        if (kernel.what & DO_HELP)
                words[count++] = "--help";
        else
                words[count++] = kernel.what & DO_LIST ? "--list" : "t";
        if (!(kernel.what & (DO_STDIN | DO_LIST | DO_HELP)))
                words[count++] = payload;
        stack[0] = count;
        for (int i = 0; i < count; i++)
                stack[1 + i] = (long)words[i];
        for (int i = 0; i < 3; i++)
                stack[2 + count + i] = (long)env[i];
        if (setjmp(kernel.end) == 0)
                init_main(stack);
}

/* The request must be one line, and the expected one. */
static void check_sent(void) {
        static const char head[] = "{\"id\": 1, \"token\": \"0123\", ";
        Buffer again = { 0 };
        Json j = { .text = { kernel.sent.data, kernel.sent.length - 1 }, .out = &again };

        REQUIRE(kernel.sent.data[kernel.sent.length - 1] == '\n');
        REQUIRE(memchr(kernel.sent.data, '\n', kernel.sent.length) ==
                kernel.sent.data + kernel.sent.length - 1);
        REQUIRE(kernel.sent.length > sizeof(head) &&
                memcmp(kernel.sent.data, head, sizeof(head) - 1) == 0);
        REQUIRE(json_rewrite(&j) == 0 && again.length == kernel.sent.length - 1);
        REQUIRE(memcmp(again.data, kernel.sent.data, again.length) == 0);
}

static void check(void) {
        REQUIRE(kernel.code >= 0 && kernel.code <= EXIT_USAGE);
        REQUIRE((kernel.code == 0) == (kernel.err.length == 0));
        REQUIRE(kernel.code == 0 || kernel.out.length == 0);
        REQUIRE(kernel.out.length == 0 || kernel.out.data[kernel.out.length - 1] == '\n');
        REQUIRE(kernel.err.length == 0 || kernel.err.data[kernel.err.length - 1] == '\n');
        if (kernel.sent.length > 0 && !(kernel.what & DO_FAIL_SEND))
                check_sent();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t length;
        char *payload;

        if (size < 4)
                return 0;
        memset(&kernel, 0, sizeof(kernel));
        kernel.what = data[0];
        kernel.piece = 1 + (size_t)data[1] * data[1];
        length = (size_t)data[2] << 8 | data[3];
        data += 4;
        size -= 4;
        length = length < size ? length : size;
        payload = __builtin_malloc(length + 1);
        REQUIRE(payload);
        memcpy(payload, data, length);
        payload[length] = '\0';
        kernel.in = (Text){ payload, length };
        kernel.answer = (Text){ (const char *)data + length, size - length };
        run(payload);
        check();
        for (unsigned i = 0; i < kernel.map_count; i++)
                __builtin_free(kernel.maps[i]);
        __builtin_free(kernel.sent.data);
        __builtin_free(kernel.out.data);
        __builtin_free(kernel.err.data);
        __builtin_free(payload);
        return 0;
}
