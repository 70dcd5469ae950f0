/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copying.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file-id.h"
#include "base/paths.h"
#include "base/sys.h"
#include "cli/transfer.h"
#include "files/temporaries.h"
#include "files/walk.h"
#include "session/directory.h"

#define PREFIX ".copy-"
enum { TRIES = 8, NOTES_MAX = 100000 };

/* --- whoever makes one --- */

/* Between open(2) and flock(2) somebody may have swept it. */
static int make_note(const Copying *copying) {
        for (int i = 0; i < TRIES; i++) {
                struct stat st;
                int fd = openat(copying->dir_fd, copying->note,
                                O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

                if (fd < 0)
                        return FD_NONE;
                if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
                        return fd;
                (void)fd_close(fd);
        }
        return FD_NONE;
}

/* The path, and a NUL behind it. */
void copying_begin(Copying *copying, const char *session, int above_fd, const char *name) {
        char above[PATH_MAX], path[PATH_MAX + 40];
        int n;

        if (path_of_fd(above_fd, above) < 0 ||
            session_open(session, &copying->dir_fd, NULL, NULL) < 0)
                return;
        (void)snprintf(copying->note, sizeof(copying->note), PREFIX "%.16s",
                       name + strcspn(name, "-") + 1);
        copying->fd = make_note(copying);
        n = snprintf(path, sizeof(path), "%s/%.32s", above, name);
        if (copying->fd >= 0)
                (void)sys_write_all(copying->fd, path, (size_t)n + 1);
}

void copying_made(const Copying *copying, int fd) {
        char which[FILE_ID_TEXT_MAX];
        FileId id;

        if (copying->fd < 0 || file_id_get(fd, &id) < 0)
                return;
        file_id_print(&id, which);
        (void)sys_write_all(copying->fd, which, strlen(which) + 1);
}

void copying_end(Copying *copying) {
        if (copying->fd >= 0)
                (void)unlinkat(copying->dir_fd, copying->note, 0);
        copying->fd = fd_close(copying->fd);
        copying->dir_fd = fd_close(copying->dir_fd);
}

void copying_discard(const FilesPlace *place) {
        (void)files_remove_tree(place->dir_fd, place->name);
}

/* --- the sweep --- */

/* Whether the directory at the place is the one that the note names. */
static bool is_noted(const FilesPlace *place, const char *which) {
        _cleanup_close_ int fd = sys_open_beneath(place->dir_fd, place->name, O_PATH | O_DIRECTORY);
        FileId noted, found;

        return fd >= 0 && file_id_parse(which, &noted) == 0 && file_id_get(fd, &found) == 0 &&
               file_id_compare(&noted, &found) == FILE_ID_SAME;
}

/* false: it may be there still. */
static bool copying_take_away(RpcClient *client, const char *path, const char *which) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        int r = path[0] ? transfer_place(client, path, &place) : -ENOENT;

        if (r < 0)
                return r == -ENOENT || r == -ENOTDIR;
        if (!temporary_is_name(place.name))
                return true;
        if (is_noted(&place, which))
                copying_discard(&place);
        else if (!which[0])
                (void)unlinkat(place.dir_fd, place.name, AT_REMOVEDIR);
        return !is_noted(&place, which);
}

static void copying_sweep_one(RpcClient *client, int dir_fd, const char *note) {
        _cleanup_close_ int fd = openat(dir_fd, note,
                                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        char text[PATH_MAX + FILE_ID_TEXT_MAX] = "";
        const char *which;

        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || read(fd, text, sizeof(text) - 2) < 0)
                return;
        which = text + strlen(text) + 1;
        if (copying_take_away(client, text, which))
                (void)unlinkat(dir_fd, note, 0);
}

static int copying_add_name(void *data, int dir_fd, const char *name, unsigned char type) {
        (void)dir_fd;
        return type == DT_REG && str_starts(name, PREFIX) ? strlist_add(data, name) : 0;
}

void copying_sweep(RpcClient *client, const char *session) {
        _cleanup_(strlist_clear) StrList names = { 0 };
        _cleanup_close_ int dir_fd = FD_NONE;
        uint64_t left = NOTES_MAX;

        if (session_open(session, &dir_fd, NULL, NULL) < 0 ||
            walk_names(dir_fd, 0, &left, copying_add_name, &names) < 0)
                return;
        for (size_t i = 0; i < names.count; i++)
                copying_sweep_one(client, dir_fd, names.items[i]);
}
