/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a libc for holt-tool: texts, growing memory, files and exit. The including file provides
 * init-sys.h.
 *
 * Memory is never freed, because the process lives for one call. Any fatal error ends the process
 * here. */
#pragma once

enum {
        MEMORY_READ_WRITE = 1 | 2,    /* PROT_READ | PROT_WRITE */
        MEMORY_PRIVATE = 2 | 0x20,    /* MAP_PRIVATE | MAP_ANONYMOUS */
        MEMORY_MAY_MOVE = 1,          /* MREMAP_MAYMOVE */
        BUFFER_FIRST = 64 << 10,      /* unused pages take no memory */
        TERMINAL_ATTRIBUTES = 0x5401, /* TCGETS */
        EXIT_FAILED = 1,              /* the call failed, or its arguments are wrong */
        EXIT_USAGE = 2,
};

/* A text with a length. It has no final NUL and may contain NULs. */
typedef struct Text {
        const char *at;
        size_t length;
} Text;

/* Empty if all members are zero. */
typedef struct Buffer {
        char *data;
        size_t length, size;
} Buffer;

#if !__STDC_HOSTED__
/* Compilers call these functions on their own, regardless of options. */
void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n) {
        for (size_t i = 0; i < n; i++)
                ((char *)to)[i] = ((const char *)from)[i];
        return to;
}

void *memset(void *to, int byte, size_t n);
void *memset(void *to, int byte, size_t n) {
        for (size_t i = 0; i < n; i++)
                ((char *)to)[i] = (char)byte;
        return to;
}
#endif

_Noreturn static void tool_end(int code) {
        for (;;)
                (void)sys1(__NR_exit_group, code);
}

static Text text_of(const char *string) {
        Text text = { string, 0 };

        while (string[text.length])
                text.length++;
        return text;
}

static int text_is(Text text, const char *string) {
        size_t i = 0;

        while (i < text.length && string[i] && text.at[i] == string[i])
                i++;
        return i == text.length && !string[i];
}

/* --- output --- */

/* Returns 0 or a negative errno. */
static long write_all(int fd, Text text) {
        while (text.length > 0) {
                struct pollfd writable = { .fd = fd, .events = POLLOUT };
                long n = sys3(__NR_write, fd, (long)text.at, (long)text.length);

                if (n ==
                    -EAGAIN) /* another process that shares this open file has set O_NONBLOCK */
                        n = sys5(__NR_ppoll, (long)&writable, 1, 0, 0, 0) < 0 ? -EAGAIN : 0;
                if (n < 0 && n != -EINTR)
                        return n;
                text.at += n > 0 ? n : 0;
                text.length -= n > 0 ? (size_t)n : 0;
        }
        return 0;
}

static void buffer_add(Buffer *buffer, Text text);

static void add_string(Buffer *buffer, const char *string) {
        buffer_add(buffer, text_of(string));
}

_Noreturn static void fail_by(const Buffer *message) {
        (void)write_all(2, (Text){ message->data, message->length });
        tool_end(EXIT_FAILED);
}

/* Ends with an error message made of the parts, up to a NULL. */
_Noreturn static void fail_parts(const char *const *parts) {
        Buffer message = { 0 };

        add_string(&message, "holt-tool: ");
        for (; *parts; parts++)
                add_string(&message, *parts);
        add_string(&message, "\n");
        fail_by(&message);
}

#define fail(...) fail_parts((const char *const[]){ __VA_ARGS__, NULL })

/* --- memory --- */

_Noreturn static void fail_memory(void) {
        (void)write_all(2, text_of("holt-tool: out of memory\n"));
        tool_end(EXIT_FAILED);
}

/* Makes room for more bytes. */
static void buffer_reserve(Buffer *buffer, size_t more) {
        size_t size = buffer->size ? buffer->size : BUFFER_FIRST;
        long memory;

        while (size - buffer->length < more)
                size *= 2; /* cannot overflow: INPUT_MAX bounds the input, and so the output */
        if (size == buffer->size)
                return;
        if (buffer->size)
                memory = sys5(__NR_mremap, (long)buffer->data, (long)buffer->size, (long)size,
                              MEMORY_MAY_MOVE, 0);
        else
                memory = sys6(__NR_mmap, 0, (long)size, MEMORY_READ_WRITE, MEMORY_PRIVATE, -1, 0);
        if (memory < 0 && memory > -4096)
                fail_memory();
        buffer->data = (char *)memory;
        buffer->size = size;
}

static void buffer_add(Buffer *buffer, Text text) {
        buffer_reserve(buffer, text.length);
        for (size_t i = 0; i < text.length; i++)
                buffer->data[buffer->length + i] = text.at[i];
        buffer->length += text.length;
}

static void add_byte(Buffer *buffer, char byte) {
        buffer_reserve(buffer, 1);
        buffer->data[buffer->length++] = byte;
}

static void add_number(Buffer *buffer, size_t number) {
        char digits[20];
        size_t at = sizeof(digits);

        do
                digits[--at] = (char)('0' + number % 10);
        while ((number /= 10) > 0);
        buffer_add(buffer, (Text){ digits + at, sizeof(digits) - at });
}

/* --- errnos --- */

/* Ends with the parts and an errno in Python's words, such as "[Errno 2] No such file or
 * directory". */
_Noreturn static void fail_errno(const char *what, const char *path, long error) {
        static const struct {
                int number;
                const char *text;
        } texts[] = {
                { EPERM, "Operation not permitted" },
                { ENOENT, "No such file or directory" },
                { EIO, "Input/output error" },
                { EBADF, "Bad file descriptor" },
                { EAGAIN, "Resource temporarily unavailable" },
                { ENOMEM, "Cannot allocate memory" },
                { EACCES, "Permission denied" },
                { ENOTDIR, "Not a directory" },
                { EISDIR, "Is a directory" },
                { EINVAL, "Invalid argument" },
                { EMFILE, "Too many open files" },
                { ENOSPC, "No space left on device" },
                { EPIPE, "Broken pipe" },
                { ENAMETOOLONG, "File name too long" },
                { ELOOP, "Too many levels of symbolic links" },
                { EPROTOTYPE, "Protocol wrong type for socket" },
                { ECONNRESET, "Connection reset by peer" },
                { ECONNREFUSED, "Connection refused" },
        };
        const char *text = "Unknown error";
        Buffer number = { 0 };

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                if (texts[i].number == -error)
                        text = texts[i].text;
        add_number(&number, (size_t)-error);
        add_byte(&number, '\0');
        fail(what, path, ": [Errno ", number.data, "] ", text);
}
