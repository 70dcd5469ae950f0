/* SPDX-License-Identifier: Apache-2.0 */
/* Records that a check of protected paths is due.
 *
 * Theory of operation. The host, the keeper's own deadline or a crash of the machine may kill a
 * keeper. Files that commands made since the last check then stay under their own names, and the
 * next keeper cannot tell them from the host's. So a file in the session's directory says that a
 * check is due. It exists from before the sandbox starts until the last check has ended. `holt
 * stop` fails if it exists and no keeper is live. The next keeper reports the missed check to the
 * client of its first command. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keeper/keeper.h"
#include "session/live.h"

enum { NAMES_MAX = 32 << 10 }; /* In bytes, so that the reply is sent without waiting. */

struct Due {
        bool recorded; /* The file exists. */
        char missed[PROCESS_UNGUARDED_MAX];
};

int keeper_due_begin(Keeper *keeper, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        struct Due *due;

        if (!plan_has_guards(&keeper->plan))
                return 0;
        due = keeper->due = calloc(1, sizeof(*due));
        if (!due)
                return error_oom(reterr);
        (void)session_sweep_due(keeper->plan.state.fd, due->missed, sizeof(due->missed));
        fd = openat(keeper->plan.state.fd, SESSION_SWEEP_DUE,
                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno,
                                 "cannot make " SESSION_SWEEP_DUE " in the session's directory");
        due->recorded = true;
        return 0;
}

const char *keeper_due_missed(const Keeper *keeper) {
        return keeper->due ? keeper->due->missed : "";
}

void keeper_due_told(Keeper *keeper) {
        if (!keeper_due_missed(keeper)[0])
                return;
        keeper_audit_guard(keeper, "failed", keeper->due->missed);
        keeper->due->missed[0] = '\0';
}

void keeper_due_free(Keeper *keeper) {
        free(keeper->due);
        keeper->due = NULL;
}

/* If writing fails, the file stays empty. */
void keeper_due_end(const Keeper *keeper) {
        const char *text = keeper->unguarded[0] ? keeper->unguarded : keeper_due_missed(keeper);
        _cleanup_close_ int fd = FD_NONE;

        if (!keeper->due || !keeper->due->recorded)
                return;
        if (!text[0]) {
                (void)unlinkat(keeper->plan.state.fd, SESSION_SWEEP_DUE, 0);
                return;
        }
        fd = openat(keeper->plan.state.fd, SESSION_SWEEP_DUE,
                    O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                (void)!write(fd, text, strlen(text));
}

void keeper_due_write(const Keeper *keeper, JsonWriter *w) {
        size_t bytes = 0, i = 0;

        json_write_array(w, "set_aside");
        for (; i < keeper->set_aside.count; i++) {
                bytes += strlen(keeper->set_aside.items[i]);
                if (bytes > NAMES_MAX)
                        break;
                json_write_string(w, NULL, keeper->set_aside.items[i]);
        }
        json_write_end(w);
        json_write_uint(w, "set_aside_omitted", keeper->set_aside.count - i);
        if (keeper->unguarded[0])
                json_write_string(w, "unguarded", keeper->unguarded);
}
