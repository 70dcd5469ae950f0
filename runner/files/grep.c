/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <regex.h>
#include <string.h>
#include <time.h>

#include "base/glob.h"
#include "base/sys.h"
#include "files/files.h"
#include "files/grep-pattern.h"
#include "files/walk.h"

enum {
        BINARY_SIZE = 8 * 1024,  /* Bytes that are searched for a NUL. */
        BUFFER_SIZE = 64 * 1024, /* Bytes of one read. */
        FRESH_AFTER = 16 * 1024, /* Bytes after which the pattern is compiled again. */
        BYTES_MAX = 256 << 20,   /* Bytes that one call reads. */
        SECONDS_MAX = 10,
};

typedef struct Grep {
        const char *pattern;
        const Glob *glob; /* NULL selects all files. */
        bool ignore_case;
        FilesGrepFn fn;
        void *data;
        uint64_t limit, bytes; /* Lines and bytes that remain. */
        struct timespec end;
        bool more;

        regex_t regex;
        size_t matched; /* Bytes matched since the pattern was compiled. */
        uint64_t states[FILES_DEPTH_MAX + 1];
        uint64_t number;
        size_t length; /* Length of line; further bytes are dropped. */
        char line[FILES_GREP_LINE_MAX + 1];
        char buffer[BUFFER_SIZE];
} Grep;

/* In the worst case regexec(3) adds a state of some KiB to its machine for each byte, and keeps
 * them all. Only freeing the pattern releases that memory. */
static int grep_refresh(Grep *grep) {
        regex_t fresh;
        int r;

        if (grep->matched < FRESH_AFTER)
                return 0;
        r = grep_pattern_compile(grep->pattern, grep->ignore_case, &fresh, NULL);
        if (r < 0)
                return r;
        regfree(&grep->regex);
        grep->regex = fresh;
        grep->matched = 0;
        return 0;
}

static bool grep_is_late(const Grep *grep) {
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec > grep->end.tv_sec ||
               (now.tv_sec == grep->end.tv_sec && now.tv_nsec >= grep->end.tv_nsec);
}

/* The line is complete, or cut at its limit. */
static int grep_line(Grep *grep, const char *name) {
        int r = grep_refresh(grep);

        if (r < 0)
                return r;
        grep->line[grep->length] = '\0';
        grep->number++;
        grep->matched += grep->length + 1;
        grep->length = 0;
        r = regexec(&grep->regex, grep->line, 0, NULL, 0);
        if (r == REG_ESPACE)
                return -ENOMEM;
        if ((r == 0 && grep->limit == 0) || grep_is_late(grep)) {
                grep->more = true;
                return WALK_END;
        }
        if (r != 0)
                return 0;
        grep->limit--;
        return grep->fn(grep->data, name, grep->number, grep->line);
}

static void line_add(Grep *grep, const char *text, size_t length) {
        size_t room = FILES_GREP_LINE_MAX - grep->length;

        if (length > room)
                length = room;
        memcpy(grep->line + grep->length, text, length);
        grep->length += length;
}

/* *open: the last line of the data has no end yet. */
static int grep_bytes(Grep *grep, const char *name, size_t length, bool *open) {
        const char *s = grep->buffer, *end = s + length;
        int r = 0;

        while (r == 0 && s < end) {
                const char *newline = memchr(s, '\n', (size_t)(end - s));

                line_add(grep, s, (size_t)((newline ? newline : end) - s));
                *open = !newline;
                if (!newline)
                        break;
                r = grep_line(grep, name);
                s = newline + 1;
        }
        return r;
}

static int grep_fd(Grep *grep, int fd, const char *name) {
        bool first = true, open = false;
        int r = 0;

        grep->number = grep->length = 0;
        while (r == 0) {
                ssize_t n = read(fd, grep->buffer, sizeof(grep->buffer));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return open ? grep_line(grep, name) : 0;
                if (first && memchr(grep->buffer, 0, n < BINARY_SIZE ? (size_t)n : BINARY_SIZE))
                        return 0;
                first = false;
                if ((uint64_t)n > grep->bytes) {
                        grep->more = true;
                        return WALK_END;
                }
                grep->bytes -= (uint64_t)n;
                r = grep_bytes(grep, name, (size_t)n, &open);
        }
        return r;
}

static int grep_file(Grep *grep, const WalkEntry *entry) {
        _cleanup_close_ int path_fd = files_child_across(entry->dir_fd, entry->name);
        _cleanup_close_ int fd = path_fd < 0 ? FD_NONE : files_reopen(path_fd, O_RDONLY);

        return fd < 0 ? WALK_ON : grep_fd(grep, fd, entry->path);
}

static int grep_entry(void *data, const WalkEntry *entry) {
        Grep *grep = data;
        uint64_t state = 0;

        if (grep_is_late(grep)) {
                grep->more = true;
                return WALK_END;
        }
        if (grep->glob)
                state = glob_step(grep->glob, grep->states[entry->depth], entry->name);
        grep->states[entry->depth + 1] = state;
        if (entry->type == DT_DIR)
                return !grep->glob || state ? WALK_DOWN : WALK_ON;
        if (entry->type != DT_REG || (grep->glob && !glob_matches(grep->glob, state, false)))
                return WALK_ON;
        return grep_file(grep, entry);
}

/* path is a directory or a file. The glob does not apply to a file that is path itself. */
static int grep_path(Grep *grep, int path_fd, const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_close_ int fd = files_reopen(path_fd, O_RDONLY);
        FilesMissed missed = { 0 };
        int r;

        if (fd >= 0) {
                r = grep_fd(grep, fd, slash ? slash + 1 : path);
                return r < 0 ? r : 0;
        }
        if (fd != -EISDIR)
                return fd;
        grep->states[0] = grep->glob ? glob_start(grep->glob) : 0;
        r = walk_tree(path_fd, grep_entry, grep, &missed);
        grep->more = grep->more || walk_was_cut(&missed);
        return r;
}

static Grep *grep_free(Grep *grep) {
        if (grep)
                regfree(&grep->regex);
        free(grep);
        return NULL;
}

static void grep_freep(Grep **grep) {
        *grep = grep_free(*grep);
}

static int grep_new(const char *pattern, bool ignore_case, uint64_t limit, Grep **ret,
                    Error *reterr) {
        Grep *grep = calloc(1, sizeof(*grep));
        int r = grep ? grep_pattern_compile(pattern, ignore_case, &grep->regex, reterr)
                     : error_oom(reterr);

        if (r < 0) {
                free(grep);
                return r;
        }
        grep->pattern = pattern;
        grep->ignore_case = ignore_case;
        grep->limit = limit == 0 || limit > FILES_LIST_MAX ? FILES_LIST_MAX : limit;
        grep->bytes = BYTES_MAX;
        (void)clock_gettime(CLOCK_MONOTONIC, &grep->end);
        grep->end.tv_sec += SECONDS_MAX;
        *ret = grep;
        return 0;
}

int files_grep(Files *files, const char *path, const char *pattern, bool ignore_case,
               const char *glob, uint64_t limit, FilesGrepFn fn, void *data, bool *ret_more,
               Error *reterr) {
        _cleanup_close_ int path_fd = files_open(files, path, O_PATH);
        _cleanup_(glob_freep) Glob *names = NULL;
        _cleanup_(grep_freep) Grep *grep = NULL;
        int r;

        if (path_fd < 0)
                return files_fail(files, path_fd, "search", path, reterr);
        r = glob ? glob_new(glob, GLOB_ANYWHERE, &names) : 0;
        if (r < 0)
                return files_glob_fail(r, glob, reterr);
        r = grep_new(pattern, ignore_case, limit, &grep, reterr);
        if (r < 0)
                return r;
        grep->glob = names;
        grep->fn = fn;
        grep->data = data;
        r = grep_path(grep, path_fd, path);
        if (r < 0)
                return files_fail(files, r, "search", path, reterr);
        *ret_more = grep->more;
        return 0;
}
