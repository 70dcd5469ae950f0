/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that leave a session at rest. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "keeper/connect.h"
#include "methods/stored.h"
#include "serve/proxy-internal.h"
#include "session/allow.h"
#include "session/live.h"
#include "session/route-store.h"

/* Methods whose result is always the same for a session at rest: empty arrays. */
static const struct {
        const char *method, *arrays[2], *zero;
} empty_at_rest[] = {
        { "process.list", { "processes", "ports" }, NULL },
        { "session.stop", { "set_aside" }, "set_aside_omitted" },
        { "tools.list", { "tools" }, NULL },
};

static int proxy_reply_empty(RpcCall *call) {
        const char *method = rpc_call_method(call)->name;
        JsonWriter *w = rpc_result(call);

        for (size_t i = 0; i < ELEMENTSOF(empty_at_rest); i++) {
                if (!streq(empty_at_rest[i].method, method))
                        continue;
                for (size_t j = 0; j < 2 && empty_at_rest[i].arrays[j]; j++) {
                        json_write_array(w, empty_at_rest[i].arrays[j]);
                        json_write_end(w);
                }
                if (empty_at_rest[i].zero)
                        json_write_uint(w, empty_at_rest[i].zero, 0);
        }
        rpc_reply(call);
        return 0;
}

/* Stores the grants for the next start. Returns -EWOULDBLOCK if a keeper has started meanwhile. */
static int proxy_allow_at_rest(RpcCall *call, const char *name, Error *error) {
        _cleanup_(strlist_clear) StrList grants = { 0 };
        int r = rpc_strings(call, "grants", &grants, error);

        if (r == 0 && rpc_bool(call, "once", false))
                r = allow_refuse_once(name, &grants, error);
        if (r == 0)
                r = allow_at_rest(name, &grants, error);
        if (r < 0)
                return r;
        json_write_bool(rpc_result(call), "live", false);
        rpc_reply(call);
        return 0;
}

static int proxy_add_route_at_rest(RpcCall *call, const char *name, Error *error) {
        _cleanup_free_ char *item = NULL;
        int r = route_item_make(rpc_string(call, "known"), rpc_object(call, "route"), &item, error);

        return r < 0 ? r : route_add_at_rest(name, item, error);
}

static int proxy_remove_route_at_rest(RpcCall *call, const char *name, Error *error) {
        return route_remove_at_rest(name, rpc_string(call, "name"), error);
}

static int proxy_change_routes_at_rest(RpcCall *call, const char *name, Error *error) {
        int r = streq(rpc_call_method(call)->name, "route.add")
                        ? proxy_add_route_at_rest(call, name, error)
                        : proxy_remove_route_at_rest(call, name, error);

        if (r < 0)
                return r;
        json_write_bool(rpc_result(call), "live", false);
        json_write_null(rpc_result(call), "reason");
        rpc_reply(call);
        return 0;
}

/* Changes of the policy, which are stored for the next start. Each function replies, or returns
 * -EWOULDBLOCK if a keeper has started meanwhile. */
static const struct {
        const char *method;
        int (*change)(RpcCall *call, const char *name, Error *error);
} changed_at_rest[] = {
        { "session.allow", proxy_allow_at_rest },
        { "route.add", proxy_change_routes_at_rest },
        { "route.remove", proxy_change_routes_at_rest },
};

/* Returns one of ASK_..., or a negative errno. */
static int proxy_change_at_rest(RpcCall *call, const char *name, int dir_fd, Error *error) {
        const RpcMethod *method = rpc_call_method(call);
        int r;

        for (size_t i = 0; i < ELEMENTSOF(changed_at_rest); i++) {
                if (!streq(changed_at_rest[i].method, method->name))
                        continue;
                r = changed_at_rest[i].change(call, name, error);
                return r == -EWOULDBLOCK ? ASK_KEEPER : r < 0 ? r : ASK_NOBODY;
        }
        r = stored_has(method->name) ? stored_reply_at_rest(call, name, dir_fd, error)
                                     : proxy_reply_empty(call);
        return r < 0 ? r : ASK_NOBODY;
}

/* --- credentials --- */

int proxy_add_secrets(RpcCall *call, int *fds, size_t *count, Error *error) {
        _cleanup_free_ char *item = NULL;
        int r;

        if (*count > 0 || !streq(rpc_call_method(call)->name, "route.add"))
                return 0;
        r = route_item_make(rpc_string(call, "known"), rpc_object(call, "route"), &item, error);
        if (r == 0)
                r = route_secrets_pack(item, &fds[0], error);
        if (r == 0 && fds[0] >= 0)
                (*count)++;
        return r;
}

/* --- readers --- */

static SessionVersion session_version(int dir_fd) {
        SessionVersion version = { 0 };
        struct stat st;

        if (fstat(dir_fd, &st) == 0) {
                version.device = st.st_dev;
                version.inode = st.st_ino;
        }
        if (fstatat(dir_fd, SESSION_DATABASE, &st, AT_SYMLINK_NOFOLLOW) == 0)
                version.changed = st.st_mtim;
        return version;
}

/* Lets the client's reader take no more requests if the session has changed. The session may have
 * another policy or other sources, or be a new session of the same name. */
static void retire_reader(const Proxy *proxy, const RpcConnection *client, const char *name,
                          const SessionVersion *now) {
        Upstream *reader = proxy_find_upstream(proxy, client, name, true);

        if (reader &&
            (reader->version.device != now->device || reader->version.inode != now->inode ||
             reader->version.changed.tv_sec != now->changed.tv_sec ||
             reader->version.changed.tv_nsec != now->changed.tv_nsec))
                reader->takes_until = 0;
}

/* Connects to the keeper of a live session. Returns -ENOENT if the session is at rest. */
static int find_keeper(Proxy *proxy, RpcConnection *client, const char *session, int dir_fd,
                       Error *error) {
        Upstream *ignored;
        int fd, r = session_is_live(dir_fd)
                            ? session_find_keeper(session, dir_fd, FIND_TIME_SERVER, &fd, error)
                            : -ENOENT;

        return r < 0 ? r : upstream_new(proxy, client, session, FD_NONE, fd, &ignored, error);
}

int proxy_answer_at_rest(Proxy *proxy, RpcCall *call, SessionVersion *ret_version, Error *error) {
        const RpcMethod *method = rpc_call_method(call);
        RpcConnection *client = rpc_call_connection(call);
        const char *name = rpc_string(call, "session");
        _cleanup_close_ int dir_fd = FD_NONE;
        int r;

        if (!method->at_rest || proxy_find_upstream(proxy, client, name, false))
                return ASK_KEEPER;
        /* The next keeper gets these tools. */
        if (streq(method->name, "tools.list") && proxy_tools_has(proxy->tools, client, name))
                return ASK_KEEPER;
        r = session_open(name, &dir_fd, NULL, error);
        if (r < 0)
                return r;
        r = find_keeper(proxy, client, name, dir_fd, error);
        if (r != -ENOENT)
                return r < 0 ? r : ASK_KEEPER;
        if (stored_reads_files(method)) {
                *ret_version = session_version(dir_fd);
                retire_reader(proxy, client, name, ret_version);
                return ASK_READER;
        }
        return proxy_change_at_rest(call, name, dir_fd, error);
}
