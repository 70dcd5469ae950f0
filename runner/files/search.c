/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/glob.h"
#include "base/sys.h"
#include "files/files.h"
#include "files/walk.h"

static size_t page_limit(uint64_t limit) {
        return limit == 0 || limit > FILES_LIST_MAX ? FILES_LIST_MAX : (size_t)limit;
}

/* Whether to skip an entry that cannot be examined. It may be gone by now, or its directory may
 * allow listing names but not access. */
static bool is_passed_over(int r, const char *name, FilesMissed *missed) {
        _cleanup_free_ char *above = strdup(name);
        char *slash = above ? strrchr(above, '/') : NULL;

        if (slash)
                *slash = '\0';
        if (r == -EACCES)
                walk_miss(missed, r, slash ? above : "");
        return r == -EACCES || r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

/* Entries are examined only now, so that even in a directory of a million names, stat(2) is called
 * for one page only. A name that readdir(3) returned twice is skipped. */
static int page_hand_out(int dir_fd, NamePage *page, FilesEntryFn fn, void *data,
                         FilesMissed *missed, size_t *ret_count) {
        size_t count = 0;
        int r = 0;

        name_page_sort(page);
        for (size_t i = 0; r >= 0 && i < page->count; i++) {
                _cleanup_(file_stat_clear) FileStat stat = { 0 };
                _cleanup_close_ int fd = FD_NONE;

                if (i > 0 && streq(page->names[i], page->names[i - 1]))
                        continue;
                fd = files_child_across(dir_fd, page->names[i]);
                if (fd < 0 && is_passed_over(fd, page->names[i], missed))
                        continue;
                r = fd < 0 ? fd : files_stat_fd(fd, &stat);
                if (r == 0)
                        r = fn(data, page->names[i], &stat);
                count++;
        }
        *ret_count = count;
        return r < 0 ? r : 0;
}

/* --- list --- */

typedef struct Listing {
        bool recursive;
        const char *prefix; /* Only regular files that start with it; NULL for all. */
        NamePage page;
} Listing;

/* Whether names below path can be behind `after`. */
static bool is_ahead(const char *path, const char *after) {
        size_t length = strlen(path);
        int order = strncmp(after, path, length);

        return order < 0 || (order == 0 && (unsigned char)after[length] <= '/');
}

/* Whether names below path can start with `prefix`. */
static bool leads_to(const char *path, const char *prefix) {
        size_t length = strlen(path), other = strlen(prefix);

        return length < other ? str_starts(prefix, path) && prefix[length] == '/'
                              : str_starts(path, prefix);
}

static bool search_is_wanted(const Listing *listing, const WalkEntry *entry) {
        return !listing->prefix ||
               (entry->type == DT_REG && str_starts(entry->path, listing->prefix));
}

static int list_entry(void *data, const WalkEntry *entry) {
        Listing *listing = data;
        int r = search_is_wanted(listing, entry) ? name_page_offer(&listing->page, entry->path) : 0;

        if (r < 0 || !listing->recursive || entry->type != DT_DIR)
                return r;
        if (listing->prefix && !leads_to(entry->path, listing->prefix))
                return WALK_ON;
        return is_ahead(entry->path, listing->page.after) ? WALK_DOWN : WALK_ON;
}

/* If all entries of a page have gone, the next page is listed, because the caller needs a last name
 * to continue from. */
static int list_fd(int dir_fd, bool recursive, const char *prefix, const char *after,
                   uint64_t limit, FilesEntryFn fn, void *data, bool *ret_more,
                   FilesMissed *ret_missed) {
        _cleanup_free_ char *behind = strdup(after);
        size_t count = 0;
        bool more = true;
        int r = behind ? 0 : -ENOMEM;

        *ret_missed = (FilesMissed){ 0 };
        while (r == 0 && more && count == 0) {
                Listing listing = { .recursive = recursive,
                                    .prefix = prefix,
                                    .page = { .after = behind, .limit = page_limit(limit) } };
                NamePage *page = &listing.page;

                r = walk_tree(dir_fd, list_entry, &listing, ret_missed);
                if (r == 0)
                        r = page_hand_out(dir_fd, page, fn, data, ret_missed, &count);
                more = page->more;
                if (r == 0 && page->count > 0) {
                        free(behind);
                        page->count--;
                        behind = TAKE_PTR(page->names[page->count]);
                }
                name_page_clear(page);
        }
        *ret_more = more;
        return r;
}

int files_list(Files *files, const char *path, bool recursive, const char *after, uint64_t limit,
               FilesEntryFn fn, void *data, bool *ret_more, FilesMissed *ret_missed,
               Error *reterr) {
        _cleanup_close_ int dir_fd = files_open(files, path, O_PATH | O_DIRECTORY);
        int r = dir_fd < 0 ? dir_fd
                           : list_fd(dir_fd, recursive, NULL, after, limit, fn, data, ret_more,
                                     ret_missed);

        return r < 0 ? files_fail(files, r, "list", path, reterr) : 0;
}

int files_list_below(Files *files, const char *path, const char *prefix, const char *after,
                     uint64_t limit, FilesEntryFn fn, void *data, bool *ret_more,
                     FilesMissed *ret_missed, Error *reterr) {
        _cleanup_close_ int dir_fd = files_open(files, path, O_PATH | O_DIRECTORY);
        int r = dir_fd < 0 ? dir_fd
                           : list_fd(dir_fd, true, prefix, after, limit, fn, data, ret_more,
                                     ret_missed);

        return r < 0 ? files_fail(files, r, "list", path, reterr) : 0;
}

/* --- glob --- */

typedef struct Globbing {
        const Glob *glob;
        uint64_t states[FILES_DEPTH_MAX + 1]; /* State of the directory at each depth. */
        NamePage page;
} Globbing;

static int glob_entry(void *data, const WalkEntry *entry) {
        Globbing *globbing = data;
        uint64_t state = glob_step(globbing->glob, globbing->states[entry->depth], entry->name);
        bool found = glob_matches(globbing->glob, state, entry->type == DT_DIR);
        int r = found ? name_page_offer(&globbing->page, entry->path) : 0;

        globbing->states[entry->depth + 1] = state;
        return r < 0 ? r : state && entry->type == DT_DIR ? WALK_DOWN : WALK_ON;
}

static int glob_fd(int dir_fd, const Glob *glob, uint64_t limit, FilesEntryFn fn, void *data,
                   bool *ret_more) {
        Globbing globbing = { .glob = glob, .page = { .after = "", .limit = page_limit(limit) } };
        FilesMissed missed = { 0 };
        size_t count;
        int r;

        globbing.states[0] = glob_start(glob);
        r = walk_tree(dir_fd, glob_entry, &globbing, &missed);
        if (r == 0)
                r = page_hand_out(dir_fd, &globbing.page, fn, data, &missed, &count);
        *ret_more = walk_was_cut(&missed) || globbing.page.more;
        name_page_clear(&globbing.page);
        return r;
}

int files_glob(Files *files, const char *path, const char *pattern, uint64_t limit, FilesEntryFn fn,
               void *data, bool *ret_more, Error *reterr) {
        _cleanup_close_ int dir_fd = files_open(files, path, O_PATH | O_DIRECTORY);
        _cleanup_(glob_freep) Glob *glob = NULL;
        int r = dir_fd < 0 ? dir_fd : glob_new(pattern, 0, &glob);

        if (dir_fd >= 0 && r < 0)
                return files_glob_fail(r, pattern, reterr);
        if (r == 0)
                r = glob_fd(dir_fd, glob, limit, fn, data, ret_more);
        return r < 0 ? files_fail(files, r, "search", path, reterr) : 0;
}
