/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of the server itself: they make, list, change and remove sessions. */
#include "serve/methods.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/paths.h"
#include "keeper/connect.h"
#include "policy/load.h"
#include "rpc/hints.h"
#include "session/live.h"
#include "session/make.h"
#include "session/policy-files.h"
#include "session/sources.h"
#include "session/tier.h"

/* --- session.create --- */

/* Applies policy_name. Like all paths of the call, a policy file is relative to cwd. */
static int create_apply_named(const char *name, SessionSpec *spec, Error *error) {
        _cleanup_free_ char *path = NULL;
        const char *named;
        int r;

        if (streq(name, "-")) {
                r = error_set(error, ERROR_USAGE, 0, "policy_name: \"-\" names no policy file");
                return error_cure(error, r, "Give the document itself as policy.");
        }
        path = policy_name_is_file(name) ? path_join(spec->settings.cwd, name) : strdup(name);
        if (!path)
                return error_oom(error);
        named = path;
        r = policy_files_apply(&spec->settings.policy, &named, 1, "policy_name", error);
        if (r == 0)
                return policy_files_inputs(NULL, &spec->settings.inputs, error);
        policy_files_forget();
        return r;
}

/* If both are given, policy_name comes first and the document adds to it. */
static int create_take_document(const RpcCall *call, SessionSpec *spec, Error *error) {
        const char *name = rpc_string(call, "policy_name");
        const JsonValue *document = rpc_object(call, "policy");
        Policy *policy = &spec->settings.policy;
        int r = 0;

        spec->preset = name || (document && json_member(document, "extends"));
        if (name)
                r = create_apply_named(name, spec, error);
        else if (!document)
                r = policy_preset(policy, POLICY_PRESET_DEFAULT, "holt", error);
        return r == 0 && document
                       ? policy_load_value(policy, document, POLICY_OF_CALL, ORIGIN_CALLER, error)
                       : r;
}

static int create_take_workspace(const RpcCall *call, SessionSpec *spec, Error *error) {
        const char *workspace = rpc_string(call, "workspace");

        return workspace ? policy_set(&spec->settings.policy, "filesystem.workspace.source",
                                      workspace, ORIGIN_CALLER, "workspace", error)
                         : 0;
}

static int create_take_env(const RpcCall *call, SessionSpec *spec, Error *error) {
        _cleanup_(strlist_clear) StrList env = { 0 };
        int r = rpc_strings(call, "env", &env, error);

        for (size_t i = 0; r == 0 && i < env.count; i++)
                r = policy_set(&spec->settings.policy, "env.set", env.items[i], ORIGIN_CALLER,
                               "env", error);
        return r;
}

/* All parameters that set fields of the policy. */
static int create_take_policy(const void *data, SessionSpec *spec, Error *error) {
        static int (*const takers[])(const RpcCall *, SessionSpec *, Error *) = {
                create_take_document,
                create_take_workspace,
                create_take_env,
        };
        int r = RUN_STEPS(takers, data, spec, error);

        spec->memory = policy_note(&spec->settings.policy, "limits.memory", NULL);
        return r;
}

static int create_by(const RpcCall *call, const SessionMake *how, Error *error) {
        _cleanup_(strlist_clear) StrList layers = { 0 };
        _cleanup_(session_spec_clear) SessionSpec spec = { 0 };
        const SessionRequest request = {
                .cwd = rpc_string(call, "cwd"),
                .tier = rpc_string(call, "tier"),
                .idle = rpc_string(call, "idle"),
                .degraded = &layers,
                .take_policy = create_take_policy,
                .words = call,
        };
        int r = rpc_strings(call, "allow_degraded", &layers, error);

        if (r == 0)
                r = session_spec_fill(&spec, &request, error);
        return r == 0 ? session_make(rpc_string(call, "name"), &spec, how, error) : r;
}

static int create_owned(const RpcCall *call, Owned *owned, StrList *warnings, Error *error) {
        OwnedSession *session;
        int r = owned_prepare(owned, rpc_string(call, "name"), &session, error);

        if (r < 0)
                return r;
        r = create_by(
                call,
                &(const SessionMake){ .ret_owner = owned_owner(session), .warnings = warnings },
                error);
        if (r < 0)
                owned_discard(session);
        else
                owned_add(session, rpc_call_connection(call));
        return r;
}

static void create_reply(RpcCall *call, bool made, const StrList *warnings) {
        JsonWriter *w = rpc_result(call);

        json_write_string(w, "name", rpc_string(call, "name"));
        json_write_bool(w, "made", made);
        json_write_array(w, "warnings");
        for (size_t i = 0; i < warnings->count; i++)
                hint_write(w, NULL, warnings->items[i]);
        json_write_end(w);
        rpc_reply(call);
}

/* Fails with the JSON path of the wrong value, if the error is about a parameter. The error's text
 * then begins with the place: "idle: ...", or "policy: $.limits.pids: ...". */
static int create_fail(RpcCall *call, const Error *error) {
        static const char *const params[] = { "allow_degraded", "cwd",         "env",
                                              "idle",           "policy_name", "workspace" };
        static const char document[] = POLICY_OF_CALL ": $";
        _cleanup_free_ char *path = NULL;

        if (str_starts(error->text, document)) {
                const char *rest = error->text + strlen(document), *end = strstr(rest, ": ");

                path = str_format("$.params.policy%.*s",
                                  end ? (int)(end - rest) : (int)strlen(rest), rest);
        }
        /* With find, another parameter differs from the existing session. */
        if (error->kind == ERROR_EXISTS && !rpc_bool(call, "find", false))
                path = strdup("$.params.name");
        for (size_t i = 0; !path && i < ELEMENTSOF(params); i++)
                if (str_starts(error->text, params[i]) && error->text[strlen(params[i])] == ':')
                        path = str_format("$.params.%s", params[i]);
        rpc_fail_at(call, path, error);
        return 0;
}

static int method_create(RpcCall *call, void *data, Error *error) {
        const bool owned = rpc_bool(call, "owned", false), find = rpc_bool(call, "find", false);
        _cleanup_(strlist_clear) StrList warnings = { 0 };
        const Server *server = data;
        bool made = true;
        int r;

        if (owned && find)
                return error_set(error, ERROR_USAGE, 0,
                                 "session.create takes either owned or find");
        r = owned ? create_owned(call, server->owned, &warnings, error)
                  : create_by(call,
                              &(const SessionMake){ .ret_made = find ? &made : NULL,
                                                    .warnings = &warnings },
                              error);
        if (r < 0)
                return create_fail(call, error);
        create_reply(call, made, &warnings);
        return 0;
}

/* --- sessions --- */

static int add_session(void *data, const char *name, int dir_fd) {
        JsonWriter *w = data;

        json_write_object(w, NULL);
        json_write_string(w, "name", name);
        json_write_string(w, "state", session_state(dir_fd));
        json_write_end(w);
        return 0;
}

static int method_list(RpcCall *call, void *data, Error *error) {
        JsonWriter *w = rpc_result(call);

        (void)data;
        json_write_array(w, "sessions");
        if (session_each(add_session, w, error) < 0) {
                rpc_fail(call, error);
                return 0;
        }
        json_write_end(w);
        rpc_reply(call);
        return 0;
}

/* Removes only a session at rest. A client calls session.stop first, which takes as long as the
 * session's commands take to end. */
static int method_remove(RpcCall *call, void *data, Error *error) {
        const char *name = rpc_string(call, "session");
        _cleanup_close_ int dir_fd = FD_NONE;
        int r = session_open(name, &dir_fd, NULL, error);

        (void)data;
        if (r == 0)
                r = session_remove(name, dir_fd, error);
        if (r < 0)
                return r;
        rpc_reply_empty(call);
        return 0;
}

/* Connects the client directly to the keeper, which saves the hop through this process. The
 * connection is the keeper's own, so requests there have no parameter "session". */
static int method_connect(RpcCall *call, void *data, Error *error) {
        const char *name = rpc_string(call, "session");
        const bool start = rpc_bool(call, "start", true);
        _cleanup_close_ int dir_fd = FD_NONE, fd = FD_NONE;
        int r = start ? keeper_connect(name, &fd, error) : session_open(name, &dir_fd, NULL, error);

        (void)data;
        if (r == 0 && !start) {
                r = session_find_keeper(name, dir_fd, FIND_TIME_SERVER, &fd, error);
                r = r == -ENOENT ? 0 : r;
        }
        if (r < 0)
                return r;
        json_write_bool(rpc_result(call), "live", fd >= 0);
        rpc_reply_fds(call, &fd, fd >= 0);
        return 0;
}

static int method_set_tier(RpcCall *call, void *data, Error *error) {
        int r = tier_change(rpc_string(call, "session"), rpc_string(call, "tier"), error);

        (void)data;
        if (r < 0)
                return r;
        rpc_reply_empty(call);
        return 0;
}

static int method_rebind(RpcCall *call, void *data, Error *error) {
        _cleanup_(json_write_clear) JsonWriter rebound = { 0 };
        int r;

        (void)data;
        json_write_array(&rebound, NULL);
        r = sources_rebind(rpc_string(call, "session"), &rebound, error);
        json_write_end(&rebound);
        if (r < 0)
                return r;
        json_write_value(rpc_result(call), "rebound", &rebound);
        rpc_reply(call);
        return 0;
}

/* --- the table --- */

const RpcForm session_name_form = { "session name", SESSION_NAME_PATTERN, session_name_fits,
                                    SESSION_NAME_CURE };
static const RpcForm idle_form = { "time", SESSION_IDLE_PATTERN, session_idle_fits,
                                   SESSION_IDLE_CURE };

static const RpcParam create_params[] = {
        { "name", RPC_STRING, true, SESSION_NAME_MAX, "name of the new session",
          .form = &session_name_form },
        { "policy", RPC_OBJECT, false, 0, "policy document (holt-policy(5))",
          .component = RPC_POLICY },
        { "policy_name", RPC_PATH, false, 4095,
          "name of a preset, or path of a policy file; the parameter policy adds to it" },
        { "workspace", RPC_PATH, false, 4095,
          "host directory used as the workspace; its .holt.json may narrow the policy. Default: an "
          "empty directory of the session" },
        { "env", RPC_MAP, false, 1024, "environment variables of all commands" },
        { "tier", RPC_STRING, false, 16, "size of the session", .values = tier_names },
        { "idle", RPC_STRING, false, 64,
          "stop the session after this time without use, such as \"10m\"; \"none\" means never",
          .form = &idle_form },
        { "allow_degraded", RPC_STRINGS, false, 64,
          "layers of the sandbox that may be missing if this host refuses them" },
        { "cwd", RPC_PATH, false, 4095,
          "absolute directory that relative paths start from; default: the working directory of "
          "the server" },
        { "owned", RPC_BOOL, false, 0, "stop and remove the session when this connection ends" },
        { "find", RPC_BOOL, false, 0,
          "use an existing session of this name if it has the same settings; settings that the "
          "request leaves out may have any value" },
};

static const RpcParam connect_params[] = {
        { "session", RPC_STRING, true, SESSION_NAME_MAX, "name of the session",
          .form = &session_name_form },
        { "start", RPC_BOOL, false, 0, "start a session at rest; default true" },
};

static const RpcField connected_fields[] = {
        { "live", RPC_BOOL, RPC_ALWAYS,
          "false if the session stays at rest; then no connection is passed" },
};
static const RpcShape connected_shape = { .name = "SessionConnected",
                                          RPC_FIELDS(connected_fields) };

static const RpcParam remove_params[] = {
        { "session", RPC_STRING, true, SESSION_NAME_MAX,
          "name of the session, which must be at rest", .form = &session_name_form },
};

static const RpcParam tier_params[] = {
        { "session", RPC_STRING, true, SESSION_NAME_MAX,
          "name of the session, which must be at rest", .form = &session_name_form },
        { "tier", RPC_STRING, true, 16, "size of the session", .values = tier_names },
};

static const RpcParam rebind_params[] = {
        { "session", RPC_STRING, true, SESSION_NAME_MAX,
          "name of the session, which must be at rest", .form = &session_name_form },
};

static const RpcField created_fields[] = {
        { "name", RPC_STRING, RPC_ALWAYS, "name of the session" },
        { "made", RPC_BOOL, RPC_ALWAYS, "false if \"find\" has found an existing session" },
        { "warnings", RPC_STRINGS, RPC_ALWAYS,
          "likely mistakes: settings without effect, and mounts that undo a protection" },
};
static const RpcShape created_shape = { .name = "SessionCreated", RPC_FIELDS(created_fields) };

static const RpcField entry_fields[] = {
        { "name", RPC_STRING, RPC_ALWAYS, "name of the session" },
        { "state", RPC_STRING, RPC_ALWAYS, "\"at rest\" if nothing runs in it",
          .values = session_states },
};
static const RpcShape entry_shape = { .name = "SessionEntry",
                                      .help = "a session on disk",
                                      RPC_FIELDS(entry_fields) };

static const RpcField list_fields[] = {
        { "sessions", RPC_SHAPES, RPC_ALWAYS, "all sessions of this user, sorted by name",
          .shape = &entry_shape },
};
static const RpcShape list_shape = { .name = "SessionList", RPC_FIELDS(list_fields) };

static const RpcField source_fields[] = {
        { "target", RPC_STRING, RPC_ALWAYS, "path inside" },
        { "source", RPC_STRING, RPC_ALWAYS, "path on the host" },
};
static const RpcShape source_shape = { .name = "Rebound",
                                       .help = "a mounted file or directory of the host that "
                                               "was replaced",
                                       RPC_FIELDS(source_fields) };

static const RpcField rebound_fields[] = {
        { "rebound", RPC_SHAPES, RPC_ALWAYS, "the files and directories that were accepted",
          .shape = &source_shape },
};
static const RpcShape rebound_shape = { .name = "SessionRebound", RPC_FIELDS(rebound_fields) };

/* The errors of a method that needs a session at rest. */
enum {
        REST_ERRORS = RPC_ERROR(USAGE) | RPC_ERROR(MISSING) | RPC_ERROR(BUSY) | RPC_ERROR(DATA),
};

const RpcMethod serve_methods[] = {
        {
                .name = "session.create",
                .help = "creates a session; the first use of the session starts it",
                RPC_PARAMS(create_params),
                .result = &created_shape,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(POLICY) | RPC_ERROR(LAYER) |
                          RPC_ERROR(EXISTS) | RPC_ERROR(MISSING) | RPC_ERROR(BUSY) |
                          RPC_ERROR(DATA),
                .example = { "{\"name\": \"work\", \"workspace\": \"/home/me/project\","
                             " \"policy\": {\"holt\": 1, \"limits\": {\"timeout\": \"5m\"}}}",
                             "{\"name\": \"work\", \"made\": true, \"warnings\": []}" },
                .function = method_create,
        },
        {
                .name = "session.list",
                .help = "lists all sessions",
                .result = &list_shape,
                .example = { "{}",
                             "{\"sessions\": [{\"name\": \"work\", \"state\": \"at rest\"}]}" },
                .function = method_list,
        },
        {
                .name = "session.connect",
                .help = "opens a connection to the session, and passes it with the reply "
                        "(SCM_RIGHTS); requests on this connection have no parameter session",
                RPC_PARAMS(connect_params),
                .result = &connected_shape,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(MISSING) | RPC_ERROR(POLICY) |
                          RPC_ERROR(LAYER) | RPC_ERROR(BUSY) | RPC_ERROR(DATA),
                .example = { "{\"session\": \"work\"}", "{\"live\": true}" },
                .function = method_connect,
        },
        {
                .name = "session.set_tier",
                .help = "changes the size of a session at rest, from its next start on",
                RPC_PARAMS(tier_params),
                .result = &rpc_nothing,
                .errors = REST_ERRORS,
                .example = { "{\"session\": \"work\", \"tier\": \"large\"}", "{}" },
                .function = method_set_tier,
        },
        {
                .name = "session.rebind",
                .help = "makes a session at rest use the files and directories that have "
                        "replaced its mounted ones, at the same paths",
                RPC_PARAMS(rebind_params),
                .result = &rebound_shape,
                .errors = REST_ERRORS,
                .example = { "{\"session\": \"work\"}",
                             "{\"rebound\": [{\"target\": \"/workspace\","
                             " \"source\": \"/home/me/project\"}]}" },
                .function = method_rebind,
        },
        {
                .name = "session.remove",
                .help = "removes a session with all its files",
                RPC_PARAMS(remove_params),
                .result = &rpc_nothing,
                .errors = REST_ERRORS,
                .example = { "{\"session\": \"work\"}", "{}" },
                .function = method_remove,
        },
};
const size_t serve_methods_count = ELEMENTSOF(serve_methods);
