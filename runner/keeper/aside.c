/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers files that the host wrote and holt set aside, until the user has dealt with them.
 *
 * Theory of operation. If the host replaces a protected file while something runs inside, holt ends
 * the sandbox and sets the new file aside (watch.c). Often no client hears of this: only a detached
 * command ran, or an interpreter. The names are therefore kept in the session's directory, and
 * every reply about a command repeats them. A name is dropped when nothing has it any more, because
 * the user has moved the file back or removed it. A command can remove the file as well, so a
 * keeper tells each name once before it drops it. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "guards/restore.h"
#include "keeper/keeper.h"

#define ASIDE_FILE "set-aside"

/* More names are in the audit only. */
enum { ASIDE_NAMES_MAX = 16, ASIDE_BYTES_MAX = 32 << 10 };

/* Writes the names, each with its NUL. A failure loses a reminder and nothing else. */
static void aside_save(const Keeper *keeper) {
        _cleanup_close_ int fd = FD_NONE;

        if (keeper->aside.count == 0) {
                (void)unlinkat(keeper->plan.state.fd, ASIDE_FILE, 0);
                return;
        }
        fd = openat(keeper->plan.state.fd, ASIDE_FILE,
                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        for (size_t i = 0; fd >= 0 && i < keeper->aside.count; i++)
                (void)!write(fd, keeper->aside.items[i], strlen(keeper->aside.items[i]) + 1);
}

/* Drops the names that nothing has any more. */
static void aside_refresh(Keeper *keeper) {
        StrList still = { 0 };

        for (size_t i = 0; i < keeper->aside.count; i++)
                if (!guard_is_gone(&keeper->plan, keeper->launch.workspace_fd,
                                   keeper->aside.items[i]))
                        (void)strlist_add(&still, keeper->aside.items[i]);
        if (still.count == keeper->aside.count)
                return strlist_clear(&still);
        strlist_clear(&keeper->aside);
        keeper->aside = still;
        aside_save(keeper);
}

int keeper_aside_load(Keeper *keeper, Error *reterr) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = FD_NONE;
        ssize_t n;

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
                if (strlist_add(&keeper->aside, text + at) < 0)
                        return error_oom(reterr);
        /* Nothing runs inside yet, so this is the user's work. */
        aside_refresh(keeper);
        return 0;
}

void keeper_aside_add(Keeper *keeper, const char *moved) {
        size_t bytes = strlen(moved) + 1;

        for (size_t i = 0; i < keeper->aside.count; i++)
                bytes += strlen(keeper->aside.items[i]) + 1;
        if (!guard_replaced(&keeper->plan, moved) || strlist_has(&keeper->aside, moved) ||
            keeper->aside.count >= ASIDE_NAMES_MAX || bytes > ASIDE_BYTES_MAX)
                return;
        (void)strlist_add(&keeper->aside, moved);
        aside_save(keeper);
}

void keeper_aside_tell(Keeper *keeper, Process *process) {
        strlist_clear(&process->still_aside);
        if (keeper->aside.count == 0)
                return;
        if (keeper->aside_told)
                aside_refresh(keeper);
        keeper->aside_told = true;
        for (size_t i = 0; i < keeper->aside.count; i++)
                if (!strlist_has(&process->set_aside, keeper->aside.items[i]))
                        (void)strlist_add(&process->still_aside, keeper->aside.items[i]);
}
