/* SPDX-License-Identifier: Apache-2.0 */
#include "files/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file-id.h"
#include "base/paths.h"
#include "base/sys.h"
#include "files/walk.h"

#define NAME_PREFIX ".holt-"
enum {
        DIGITS = 16,
        TRIES = 8,
        NOTES_MAX = 100000,
        LOCK_TRIES = 1000,
        LOCK_PAUSE = 1000000, /* In nsec. */
};

/* --- names --- */

void unfinished_name(char ret[UNFINISHED_NAME_SIZE]) {
        uint64_t random = 0;

        (void)!syscall(SYS_getrandom, &random, sizeof(random), 0);
        (void)snprintf(ret, UNFINISHED_NAME_SIZE, NAME_PREFIX "%016llx",
                       (unsigned long long)random);
}

static bool unfinished_has_prefix(const char *name, const char *prefix) {
        const size_t length = strlen(prefix);

        return str_starts(name, prefix) && strlen(name) == length + DIGITS &&
               strspn(name + length, "0123456789abcdef") == DIGITS;
}

bool unfinished_is_name(const char *name) {
        return unfinished_has_prefix(name, NAME_PREFIX);
}

/* --- making --- */

/* A sweep may remove the note between openat(2) and flock(2), because it is still empty and
 * unlocked. */
static int note_make(int notes_fd, const char *note) {
        for (int i = 0; i < TRIES; i++) {
                struct stat st;
                int fd = openat(notes_fd, note, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                0600);

                if (fd < 0)
                        return FD_NONE;
                while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
                        ;
                if (fstat(fd, &st) == 0 && st.st_nlink > 0)
                        return fd;
                (void)fd_close(fd);
        }
        return FD_NONE;
}

void unfinished_begin(const UnfinishedNotes *notes, int dir_fd, const char *name, Unfinished *ret) {
        char path[PATH_MAX];

        *ret = UNFINISHED_NONE;
        if (name)
                (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
        else
                unfinished_name(ret->name);
        if (!notes || notes->dir_fd < 0 || (dir_fd >= 0 && path_of_fd(dir_fd, path) < 0))
                return;
        (void)snprintf(ret->note, sizeof(ret->note), "%s%s", notes->prefix,
                       ret->name + strlen(NAME_PREFIX));
        ret->notes_fd = notes->dir_fd;
        ret->fd = note_make(notes->dir_fd, ret->note);
        if (ret->fd >= 0 && dir_fd >= 0)
                (void)sys_write_all(ret->fd, path, strlen(path) + 1);
}

void unfinished_made(const Unfinished *unfinished, int fd) {
        char text[FILE_ID_TEXT_MAX];
        FileId id;

        if (unfinished->fd < 0 || file_id_get(fd, &id) < 0)
                return;
        file_id_print(&id, text);
        (void)sys_write_all(unfinished->fd, text, strlen(text) + 1);
}

void unfinished_end(Unfinished *unfinished) {
        if (unfinished->fd >= 0)
                (void)unlinkat(unfinished->notes_fd, unfinished->note, 0);
        unfinished_leave(unfinished);
}

void unfinished_leave(Unfinished *unfinished) {
        (void)fd_close(unfinished->fd);
        *unfinished = UNFINISHED_NONE;
}

/* --- clearing up --- */

/* Removes a thing whose maker died before filling it. A thing that is not empty stays. */
static int thing_remove_empty(const FilesPlace *place, int fd) {
        struct stat st;
        int r = 0;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                r = unlinkat(place->dir_fd, place->name, AT_REMOVEDIR);
        else if (S_ISLNK(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size == 0))
                r = unlinkat(place->dir_fd, place->name, 0);
        return r < 0 && errno != ENOTEMPTY && errno != EEXIST ? -errno : 0;
}

/* Returns 0 if the thing no longer exists, even if another file has its name. */
static int thing_remove(const FilesPlace *place, const char *identity) {
        _cleanup_close_ int fd = files_child(place->dir_fd, place->name);
        FileId noted, found;
        int r;

        if (fd < 0)
                return fd;
        if (file_id_parse(identity, &noted) < 0)
                return thing_remove_empty(place, fd);
        r = file_id_get(fd, &found);
        if (r < 0 || file_id_compare(&noted, &found) != FILE_ID_SAME)
                return r;
        /* By fd: whoever can write in the directory may give the name to something else now. */
        return files_remove_opened(place->dir_fd, place->name, fd);
}

/* text: the note's content, followed by NULs. */
static int thing_find_and_remove(const UnfinishedNotes *notes, const char *name, const char *text,
                                 UnfinishedPlaceFn place_of, void *data) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        _cleanup_free_ char *path = NULL;
        int r;

        if (!text[0] || !place_of)
                return files_remove_tree(notes->dir_fd, name);
        path = path_join(text, name);
        if (!path)
                return -ENOMEM;
        r = place_of(data, path, &place);
        return r < 0 ? r : thing_remove(&place, text + strlen(text) + 1);
}

/* Locks a note. A killed process drops its locks one after another, usually within microseconds,
 * but a close(2) on a network file system may delay that. */
static bool note_lock(int fd, bool wait) {
        for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
                if (!wait || errno != EWOULDBLOCK || i == LOCK_TRIES || walk_stopped())
                        return false;
                (void)nanosleep(&(struct timespec){ .tv_nsec = LOCK_PAUSE }, NULL);
        }
        return true;
}

static void note_sweep(const UnfinishedNotes *notes, const char *note, bool wait,
                       UnfinishedPlaceFn place, void *data) {
        /* Opened for writing, because NFS refuses an exclusive lock on other files (flock(2)). */
        _cleanup_close_ int fd = openat(notes->dir_fd, note,
                                        O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        char text[PATH_MAX + FILE_ID_TEXT_MAX + 2] = "", name[UNFINISHED_NAME_SIZE];
        int r;

        if (fd < 0 || !note_lock(fd, wait) || read(fd, text, sizeof(text) - 2) < 0)
                return;
        (void)snprintf(name, sizeof(name), NAME_PREFIX "%s", note + strlen(notes->prefix));
        r = thing_find_and_remove(notes, name, text, place, data);
        if (r == 0 || r == -ENOENT || r == -ENOTDIR)
                (void)unlinkat(notes->dir_fd, note, 0);
}

typedef struct Listing {
        const char *prefix;
        StrList *names;
} Listing;

static int listing_add(void *data, int dir_fd, const char *name, unsigned char type) {
        const Listing *listing = data;

        (void)dir_fd;
        return type == DT_REG && unfinished_has_prefix(name, listing->prefix)
                       ? strlist_add(listing->names, name)
                       : 0;
}

int unfinished_list(const UnfinishedNotes *notes, StrList *ret) {
        Listing listing = { notes->prefix, ret };
        uint64_t left = NOTES_MAX;

        return walk_names(notes->dir_fd, 0, &left, listing_add, &listing);
}

void unfinished_sweep(const UnfinishedNotes *notes, const StrList *names, UnfinishedPlaceFn place,
                      void *data) {
        _cleanup_(strlist_clear) StrList found = { 0 };

        if (!names && unfinished_list(notes, &found) < 0)
                return;
        for (size_t i = 0; i < (names ? names : &found)->count; i++)
                note_sweep(notes, (names ? names : &found)->items[i], names != NULL, place, data);
}
