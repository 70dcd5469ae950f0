/* SPDX-License-Identifier: Apache-2.0 */
#include "files/walk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"

enum {
        BATCH = 1024,
        BATCH_BELOW =
                32, /* Entries below BATCH_DEPTH, so that memory stays bounded for deep trees. */
        BATCH_DEPTH = 64,
        PAGE_BYTES_MAX = 8 << 20,
};

/* --- cancelling --- */

static _Thread_local const atomic_bool *thread_stop;

const atomic_bool *walk_until(const atomic_bool *stop) {
        const atomic_bool *before = thread_stop;

        thread_stop = stop;
        return before;
}

bool walk_stopped(void) {
        return thread_stop && atomic_load_explicit(thread_stop, memory_order_relaxed);
}

/* --- one directory --- */

typedef struct Name {
        char *name;
        unsigned char type;
} Name;

typedef struct Batch {
        Name *names;
        size_t count, size;
} Batch;

static void batch_empty(Batch *batch) {
        for (size_t i = 0; i < batch->count; i++)
                free(batch->names[i].name);
        batch->count = 0;
}

static void batch_clear(Batch *batch) {
        batch_empty(batch);
        free(batch->names);
}

static void dir_closep(DIR **dir) {
        if (*dir)
                (void)closedir(*dir);
}

static int by_name(const void *a, const void *b) {
        return strcmp(((const Name *)a)->name, ((const Name *)b)->name);
}

static unsigned char walk_type_of(int dir_fd, const char *name) {
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return DT_REG;
        return (unsigned char)IFTODT(st.st_mode);
}

/* Fills the batch; a batch that is not full is the directory's last. */
static int batch_fill(DIR *dir, Batch *batch) {
        while (batch->count < batch->size) {
                const struct dirent *entry;
                Name *name = &batch->names[batch->count];

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return -errno;
                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                name->name = strdup(entry->d_name);
                if (!name->name)
                        return -ENOMEM;
                name->type = entry->d_type;
                batch->count++;
        }
        return 0;
}

static int batch_run(Batch *batch, int dir_fd, uint64_t *left, WalkNameFn fn, void *data) {
        int r = 0;

        qsort(batch->names, batch->count, sizeof(*batch->names), by_name);
        for (size_t i = 0; r == 0 && i < batch->count; i++) {
                Name *name = &batch->names[i];

                if (*left == 0)
                        return -E2BIG;
                if (walk_stopped())
                        return -ECANCELED;
                *left -= 1;
                if (name->type == DT_UNKNOWN)
                        name->type = walk_type_of(dir_fd, name->name);
                r = fn(data, dir_fd, name->name, name->type);
        }
        return r;
}

static int open_dir(int path_fd, DIR **ret) {
        _cleanup_close_ int fd = sys_open_beneath(path_fd, ".", O_RDONLY | O_DIRECTORY);

        if (fd < 0)
                return -errno;
        *ret = fdopendir(fd);
        if (!*ret)
                return -errno;
        (void)TAKE_FD(fd);
        return 0;
}

int walk_names(int path_fd, unsigned depth, uint64_t *left, WalkNameFn fn, void *data) {
        _cleanup_(batch_clear) Batch batch = { .size = depth < BATCH_DEPTH ? BATCH : BATCH_BELOW };
        _cleanup_(dir_closep) DIR *dir = NULL;
        int r = open_dir(path_fd, &dir);

        if (r < 0)
                return r;
        assert(dir);
        batch.names = calloc(batch.size, sizeof(*batch.names));
        if (!batch.names)
                return -ENOMEM;
        do {
                batch_empty(&batch);
                r = batch_fill(dir, &batch);
                if (r == 0)
                        r = batch_run(&batch, dirfd(dir), left, fn, data);
        } while (r == 0 && batch.count == batch.size);
        return r;
}

/* --- trees --- */

typedef struct Walk {
        WalkFn fn;
        void *data;
        uint64_t left;
        FilesMissed *missed;
        bool made_up; /* The walk begins in /proc. */
        unsigned depth;
        size_t length; /* Length of path. */
        char path[PATH_MAX];
} Walk;

bool walk_was_cut(const FilesMissed *missed) {
        return missed->error == -E2BIG || missed->error == -ENAMETOOLONG;
}

void walk_miss(FilesMissed *missed, int error, const char *path) {
        if (missed->error == 0 || (missed->error == -EACCES && error != -EACCES)) {
                missed->error = error;
                (void)snprintf(missed->path, sizeof(missed->path), "%s", path);
        }
}

/* The entry may be gone, or be a symlink by now. */
static bool has_changed(int r) {
        return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static int walk_name(void *data, int dir_fd, const char *name, unsigned char type);

/* Visits the entries of the directory; the walk's path is its path. */
static int walk_into(Walk *walk, int fd) {
        const size_t length = walk->length;
        int r;

        walk->path[walk->length++] = '/';
        walk->depth++;
        r = walk_names(fd, walk->depth, &walk->left, walk_name, walk);
        walk->depth--;
        walk->path[length] = '\0';
        if (r == -EACCES || r == -E2BIG)
                walk_miss(walk->missed, r, walk->path);
        return r == -EACCES || has_changed(r) ? 0 : r;
}

static int walk_down(Walk *walk, int dir_fd, const char *name) {
        _cleanup_close_ int fd = FD_NONE;

        if (walk->depth + 1 >= FILES_DEPTH_MAX) {
                walk_miss(walk->missed, -E2BIG, walk->path);
                return 0;
        }
        fd = files_child_across(dir_fd, name);
        if (fd == -EACCES)
                walk_miss(walk->missed, fd, walk->path);
        if (fd < 0)
                return fd == -EACCES || has_changed(fd) ? 0 : fd;
        return !walk->made_up && files_is_made_up(fd) ? 0 : walk_into(walk, fd);
}

/* Records the directory that contains the name. */
static void miss_long(Walk *walk) {
        const size_t length = walk->length;

        walk->path[length > 0 ? length - 1 : 0] = '\0';
        walk_miss(walk->missed, -ENAMETOOLONG, walk->path);
        if (length > 0)
                walk->path[length - 1] = '/';
}

static int walk_name(void *data, int dir_fd, const char *name, unsigned char type) {
        Walk *walk = data;
        size_t before = walk->length, length = strlen(name);
        const WalkEntry entry = { dir_fd, name, walk->path, type, walk->depth };
        int r;

        if (before + length + 2 > sizeof(walk->path)) {
                miss_long(walk);
                return 0;
        }
        (void)strcpy(walk->path + before, name);
        walk->length += length;
        r = walk->fn(walk->data, &entry);
        if (r == WALK_DOWN)
                r = walk_down(walk, dir_fd, name);
        walk->length = before;
        return r;
}

int walk_tree(int path_fd, WalkFn fn, void *data, FilesMissed *ret) {
        _cleanup_free_ Walk *walk = calloc(1, sizeof(*walk));
        int r;

        if (!walk)
                return -ENOMEM;
        walk->fn = fn;
        walk->data = data;
        walk->left = WALK_ENTRIES_MAX;
        walk->missed = ret;
        walk->made_up = files_is_made_up(path_fd);
        r = walk_names(path_fd, 0, &walk->left, walk_name, walk);
        if (r == -E2BIG)
                walk_miss(ret, r, "");
        return r < 0 && r != -E2BIG ? r : 0;
}

/* --- pages --- */

void name_page_clear(NamePage *page) {
        for (size_t i = 0; i < page->count; i++)
                free(page->names[i]);
        free(page->names);
        *page = (NamePage){ 0 };
}

static void heap_swap(char **a, char **b) {
        char *name = *a;

        *a = *b;
        *b = name;
}

static void heap_up(char **names, size_t i) {
        for (; i > 0 && strcmp(names[i], names[(i - 1) / 2]) > 0; i = (i - 1) / 2)
                heap_swap(&names[i], &names[(i - 1) / 2]);
}

static void heap_down(char **names, size_t count, size_t i) {
        for (;;) {
                size_t largest = 2 * i + 1;

                if (largest >= count)
                        return;
                if (largest + 1 < count && strcmp(names[largest + 1], names[largest]) > 0)
                        largest++;
                if (strcmp(names[largest], names[i]) <= 0)
                        return;
                heap_swap(&names[i], &names[largest]);
                i = largest;
        }
}

/* Drops the largest name. */
static void page_shorten(NamePage *page) {
        page->more = true;
        page->bytes -= strlen(page->names[0]) + 1;
        free(page->names[0]);
        page->names[0] = page->names[--page->count];
        heap_down(page->names, page->count, 0);
}

static int page_add(NamePage *page, const char *name) {
        if (page->count == page->size) {
                size_t size = page->size ? page->size * 2 : 64;
                char **names = reallocarray(page->names, size, sizeof(*names));

                if (!names)
                        return -ENOMEM;
                page->names = names;
                page->size = size;
        }
        page->names[page->count] = strdup(name);
        if (!page->names[page->count])
                return -ENOMEM;
        page->bytes += strlen(name) + 1;
        heap_up(page->names, page->count++);
        return 0;
}

int name_page_offer(NamePage *page, const char *name) {
        bool full = page->count == page->limit;
        int r;

        if (strcmp(name, page->after) <= 0)
                return 0;
        /* A name behind one that was left out stays out; otherwise the page would have a gap. */
        if (page->more && strcmp(name, page->names[0]) > 0)
                return 0;
        if (full && strcmp(name, page->names[0]) >= 0) {
                page->more = page->more || !streq(name, page->names[0]);
                return 0;
        }
        r = page_add(page, name);
        if (r < 0)
                return r;
        while (page->count > page->limit || (page->bytes > PAGE_BYTES_MAX && page->count > 1))
                page_shorten(page);
        return 0;
}

static int by_string(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void name_page_sort(NamePage *page) {
        if (page->count > 1)
                qsort(page->names, page->count, sizeof(*page->names), by_string);
}
