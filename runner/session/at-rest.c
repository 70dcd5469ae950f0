/* SPDX-License-Identifier: Apache-2.0 */
#include "session/at-rest.h"

#include "session/live.h"

int at_rest_open(const char *session, AtRest *ret, Error *reterr) {
        int r = session_open(session, &ret->dir_fd, ret->path, reterr);

        if (r < 0)
                return r;
        r = session_lock(ret->dir_fd, &ret->lock_fd, reterr);
        if (r < 0)
                return r;
        return settings_open(ret->dir_fd, STORE_WRITE, &ret->store, &ret->settings, reterr);
}

void at_rest_close(AtRest *rest) {
        rest->store = store_free(rest->store);
        settings_clear(&rest->settings);
        rest->lock_fd = fd_close(rest->lock_fd);
        rest->dir_fd = fd_close(rest->dir_fd);
}
