/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers files that the host wrote and holt set aside, until the user has dealt with them. Also
 * remembers for which path holt killed everything inside, until a reply has said so.
 *
 * Theory of operation. If the host replaces a protected file while something runs inside, holt ends
 * the sandbox and sets the new file aside (watch.c). Often no client hears of this: only a detached
 * command ran, or an interpreter. The names are therefore kept in the session's directory, and
 * every reply about a command repeats them. A name is dropped when no file has it any more, because
 * the user has moved the file back or removed it. A command can remove the file as well, so a
 * keeper tells each name once before it drops it.
 *
 * A hidden file is not set aside, because the command cannot have written the new one. So the path
 * itself is kept, and the first reply of any later keeper tells it. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guards/restore.h"
#include "keeper/keeper.h"

#define ASIDE_FILE "set-aside"
#define STOPPED_FILE "stopped-for"

/* More names are in the audit only. */
enum { ASIDE_NAMES_MAX = 16, ASIDE_BYTES_MAX = 32 << 10 };

struct Aside {
        StrList names; /* Files of the host that are still set aside. */
        bool told;     /* A reply has told those that were set aside before this keeper. */
        char stopped_for[PATH_MAX]; /* The path for which an earlier keeper stopped, or "". */
};

/* Writes the names, each with its NUL. A failure loses a reminder and nothing else. */
static void aside_save(const Keeper *keeper) {
        _cleanup_close_ int fd = FD_NONE;

        if (keeper->aside->names.count == 0) {
                (void)unlinkat(keeper->plan.state.fd, ASIDE_FILE, 0);
                return;
        }
        fd = openat(keeper->plan.state.fd, ASIDE_FILE,
                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        for (size_t i = 0; fd >= 0 && i < keeper->aside->names.count; i++)
                (void)!write(fd, keeper->aside->names.items[i],
                             strlen(keeper->aside->names.items[i]) + 1);
}

/* Drops the names that no file has any more. */
static void aside_refresh(Keeper *keeper) {
        StrList still = { 0 };

        for (size_t i = 0; i < keeper->aside->names.count; i++)
                if (!guard_is_gone(&keeper->plan, keeper->launch.workspace_fd,
                                   keeper->aside->names.items[i]))
                        (void)strlist_add(&still, keeper->aside->names.items[i]);
        if (still.count == keeper->aside->names.count)
                return strlist_clear(&still);
        strlist_clear(&keeper->aside->names);
        keeper->aside->names = still;
        aside_save(keeper);
}

/* --- the path for which a keeper stopped --- */

static void aside_load_stopped(const Keeper *keeper) {
        char *path = keeper->aside->stopped_for;
        _cleanup_close_ int fd = openat(keeper->plan.state.fd, STOPPED_FILE,
                                        O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, path, sizeof(keeper->aside->stopped_for) - 1);

        path[n < 0 ? 0 : n] = '\0';
}

void keeper_aside_note_stopped(const Keeper *keeper, const char *path) {
        _cleanup_close_ int fd = openat(keeper->plan.state.fd, STOPPED_FILE,
                                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                                        0600);

        if (fd >= 0)
                (void)!write(fd, path, strlen(path));
}

void keeper_aside_write_stopped(const Keeper *keeper, const Process *process, JsonWriter *w) {
        char *path = keeper->aside ? keeper->aside->stopped_for : NULL;

        if (process->replaced)
                (void)unlinkat(keeper->plan.state.fd, STOPPED_FILE, 0);
        if (!path || !path[0])
                return;
        if (process->still_aside.count == 0) /* still_aside says the same. */
                json_write_string(w, "stopped_for", path);
        path[0] = '\0';
        (void)unlinkat(keeper->plan.state.fd, STOPPED_FILE, 0);
}

/* --- files that are still set aside --- */

int keeper_aside_load(Keeper *keeper, Error *reterr) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = FD_NONE;
        ssize_t n;

        keeper->aside = calloc(1, sizeof(*keeper->aside));
        if (!keeper->aside)
                return error_oom(reterr);
        aside_load_stopped(keeper);
        if (!plan_has_guards(&keeper->plan))
                return 0;
        fd = openat(keeper->plan.state.fd, ASIDE_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return 0;
        text = calloc(1, ASIDE_BYTES_MAX + 1);
        if (!text)
                return error_oom(reterr);
        n = read(fd, text, ASIDE_BYTES_MAX);
        for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1)
                if (strlist_add(&keeper->aside->names, text + at) < 0)
                        return error_oom(reterr);
        /* Nothing runs inside yet, so this is the user's work. */
        aside_refresh(keeper);
        return 0;
}

void keeper_aside_free(Keeper *keeper) {
        if (keeper->aside)
                strlist_clear(&keeper->aside->names);
        free(keeper->aside);
        keeper->aside = NULL;
}

void keeper_aside_add(Keeper *keeper, const char *moved) {
        size_t bytes = strlen(moved) + 1;

        if (!keeper->aside)
                return;
        for (size_t i = 0; i < keeper->aside->names.count; i++)
                bytes += strlen(keeper->aside->names.items[i]) + 1;
        if (!guard_replaced(&keeper->plan, moved) || strlist_has(&keeper->aside->names, moved) ||
            keeper->aside->names.count >= ASIDE_NAMES_MAX || bytes > ASIDE_BYTES_MAX)
                return;
        (void)strlist_add(&keeper->aside->names, moved);
        aside_save(keeper);
}

void keeper_aside_tell(Keeper *keeper, Process *process) {
        strlist_clear(&process->still_aside);
        if (!keeper->aside || keeper->aside->names.count == 0)
                return;
        if (keeper->aside->told)
                aside_refresh(keeper);
        keeper->aside->told = true;
        for (size_t i = 0; i < keeper->aside->names.count; i++)
                if (!strlist_has(&process->set_aside, keeper->aside->names.items[i]))
                        (void)strlist_add(&process->still_aside, keeper->aside->names.items[i]);
}
