/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of the session itself and of its database. */
#include <string.h>

#include "keeper/acts.h"
#include "methods/area.h"
#include "methods/stored.h"
#include "outcome/result.h"
#include "policy/network-fields.h"
#include "session/live.h"
#include "session/tier.h"
#include "store/rows.h"

static int method_session_show(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        JsonWriter *w = rpc_result(call);

        (void)error;
        json_write_string(w, "name", keeper->name);
        json_write_string(w, "state", "live");
        json_write_int(w, "keeper_pid", getpid());
        json_write_uint(w, "started_ms", keeper->started_ms);
        json_write_uint(w, "processes", processes_live(keeper->processes));
        settings_write_facts(&keeper->settings, &keeper->plan, true, w);
        result_write_layers(w, &keeper->launch.layers, keeper->launch.identity.from_root);
        if (keeper->sandbox.network.level)
                json_write_uint(w, "network_level", keeper->sandbox.network.level);
        rpc_reply(call);
        return 0;
}

static int data_reply_empty(RpcCall *call) {
        rpc_reply_empty(call);
        return 0;
}

/* `holt serve` has started this keeper for the call. */
static int method_session_start(RpcCall *call, void *data, Error *error) {
        (void)data;
        (void)error;
        return data_reply_empty(call);
}

static int method_session_stop(RpcCall *call, void *data, Error *error) {
        int r = keeper_wait_for_rest(data, call, error);

        if (r == 0)
                keeper_stop(data);
        return r;
}

/* --- kv, history, audit --- */

/* The method only reads the database. */
static int method_stored(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        return stored_reply(call, keeper->store, error);
}

static int method_kv_set(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        _cleanup_free_ char *value = NULL;
        size_t length = 0;
        int r = method_take_content(call, "value", &value, &length, error);

        if (r == 0)
                r = store_kv_set(keeper->store, rpc_string(call, "key"), value, length, error);

        return r < 0 ? r : data_reply_empty(call);
}

static int method_kv_delete(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        bool deleted = false;
        int r = store_kv_delete(keeper->store, rpc_string(call, "key"), &deleted, error);

        if (r < 0)
                return r;
        json_write_bool(rpc_result(call), "deleted", deleted);
        rpc_reply(call);
        return 0;
}

/* An act must not have the name of a method, or its row would look like a call. */
static int act_check_name(const char *name, Error *reterr) {
        bool taken = name[0] == '\0' || streq(name, "tool.call");
        size_t count;
        const RpcMethod *methods = session_methods(&count);
        char quoted[160];
        int r;

        for (size_t i = 0; i < count; i++)
                taken |= streq(name, methods[i].name);
        if (!taken)
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "\"%s\" is not a valid name for a row of the history",
                      str_quote(name, quoted, sizeof(quoted)));
        return error_cure(reterr, r,
                          "Choose a name that is neither empty nor the name of a method.");
}

static int method_history_begin(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *params = rpc_params_text(call);
        const char *name = rpc_string(call, "name");
        const Keeper *keeper = data;
        int r = params ? act_check_name(name, error) : error_oom(error);

        if (r == 0)
                r = act_begin(keeper->acts, rpc_call_connection(call), name, params, error);
        return r < 0 ? r : data_reply_empty(call);
}

static int method_history_end(RpcCall *call, void *data, Error *error) {
        static const char *const texts[] = { "kind", "errno", "error" };
        const Keeper *keeper = data;
        const bool success = rpc_bool(call, "success", false);
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const char *unrecorded = NULL;
        int r;

        json_write_object(&w, NULL);
        json_write_bool(&w, "success", success);
        for (size_t i = 0; !success && i < ELEMENTSOF(texts); i++)
                json_write_string(&w, texts[i], rpc_string(call, texts[i]));
        json_write_end(&w);
        r = json_write_finish(&w) < 0
                    ? error_oom(error)
                    : act_end(keeper->acts, rpc_call_connection(call), w.data, &unrecorded, error);
        if (r < 0)
                return r;
        if (unrecorded)
                json_write_string(rpc_result(call), "unrecorded", unrecorded);
        return data_reply_empty(call);
}

/* --- the table --- */

static const RpcParam key_params[] = {
        { "key", RPC_STRING, true, STORE_KEY_MAX, "the key, of 1 to 1024 bytes" },
};

static const RpcParam get_params[] = {
        { "key", RPC_STRING, true, STORE_KEY_MAX, "the key, of 1 to 1024 bytes" },
        { "base64", RPC_BOOL, false, 0, "return the value in base64, not as text" },
};

static const RpcParam set_params[] = {
        { "key", RPC_STRING, true, STORE_KEY_MAX, "the key, of 1 to 1024 bytes" },
        { "value", RPC_STRING, false, STORE_VALUE_MAX, "text" },
        { "base64", RPC_STRING, false, 0, "the value in base64, instead of value" },
};

static const RpcParam keys_params[] = {
        { "prefix", RPC_STRING, false, STORE_KEY_MAX, "only keys that start with this" },
        { "after", RPC_STRING, false, STORE_KEY_MAX, "only keys after this one" },
        { "limit", RPC_UINT, false, ANSWER_LIMIT_MAX, "maximum number of keys; default 100" },
};

static const RpcParam history_params[] = {
        { "name", RPC_STRING, false, 64, "only rows of this method, such as \"exec\"" },
        { "before", RPC_UINT, false, 0, "only rows with a lower id" },
        { "limit", RPC_UINT, false, ANSWER_LIMIT_MAX, "maximum number of rows; default 100" },
};

static const RpcParam begin_params[] = {
        { "name", RPC_STRING, true, 64, "name of the row; not the name of a method" },
        { "operands", RPC_STRINGS, false, 64, "operands that the row shows, such as paths" },
};

static const RpcParam end_params[] = {
        { "success", RPC_BOOL, true, 0, "whether all calls succeeded" },
        { "kind", RPC_STRING, false, 32, "kind of the error, such as \"missing\"" },
        { "errno", RPC_STRING, false, 32, "errno of the error, such as \"ENOENT\"" },
        { "error", RPC_STRING, false, 4096, "text of the error" },
};

static const RpcParam audit_params[] = {
        { "kind", RPC_STRING, false, 0, "only rows of this kind", .values = audit_kinds },
        { "before", RPC_UINT, false, 0, "only rows with a lower id" },
        { "limit", RPC_UINT, false, ANSWER_LIMIT_MAX, "maximum number of rows; default 100" },
};

static const RpcField mount_fields[] = {
        { "target", RPC_STRING, RPC_ALWAYS, "path inside" },
        { "source", RPC_STRING, RPC_ALWAYS, "path on the host" },
        { "read_only", RPC_BOOL, RPC_ALWAYS, "whether commands can only read it" },
        { "moved_to", RPC_STRING, RPC_SOMETIMES, "where the source is now, if it was renamed" },
};
static const RpcShape mount_shape = { .name = "Mount",
                                      .help = "a path of the host that is mounted in the session",
                                      RPC_FIELDS(mount_fields) };

/* data_prepare() fills them in. */
enum { LIMITS_MAX = 16 };
static RpcField limit_fields[LIMITS_MAX];
static RpcShape limits_shape = {
        .name = "Limits",
        .help = "the limits of the session; each description names the field of the policy that "
                "sets the limit; null means no limit",
        .fields = limit_fields
};

static const RpcField network_fields[] = {
        { "mode", RPC_STRING, RPC_ALWAYS,
          "hosts that commands can reach: none, those of the rules, or all",
          .values = network_modes },
        { "allow", RPC_STRINGS, RPC_ALWAYS, "the rules of the mode \"allow\", as they were given" },
        { "once", RPC_STRINGS, RPC_ALWAYS, "grants for one connection that are not used yet" },
        { "publish", RPC_STRINGS, RPC_ALWAYS,
          "ports of the host that lead inside, as the policy has them" },
        { "import", RPC_STRINGS, RPC_ALWAYS,
          "ports of the host's loopback that commands can reach, as the policy has them" },
};
static const RpcShape network_shape = { .name = "SessionNetwork",
                                        .help = "the network of a session",
                                        RPC_FIELDS(network_fields) };

static const RpcField show_fields[] = {
        { "name", RPC_STRING, RPC_ALWAYS, "name of the session" },
        { "state", RPC_STRING, RPC_ALWAYS, "\"at rest\" if nothing runs in it",
          .values = session_states },
        { "keeper_pid", RPC_UINT, RPC_SOMETIMES,
          "PID of the session's process on the host, if the session is live" },
        { "started_ms", RPC_UINT, RPC_SOMETIMES,
          "time of the last start, in milliseconds since the epoch, if the session is live" },
        { "processes", RPC_UINT, RPC_SOMETIMES, "number of commands that run in a live session" },
        { "created_ms", RPC_UINT, RPC_ALWAYS, "time of creation, in milliseconds since the epoch" },
        { "idle_us", RPC_UINT, RPC_ALWAYS,
          "time without use after which the session stops, in microseconds; 0 means never" },
        { "preset", RPC_STRING, RPC_OR_NULL, "the preset that the session's policy extends" },
        { "tier", RPC_STRING, RPC_OR_NULL, "size of the session", .values = tier_names },
        { "cpus", RPC_UINT, RPC_OR_NULL, "number of processors; null for all" },
        { "owned", RPC_BOOL, RPC_ALWAYS,
          "whether the session is removed when the client that created it disconnects" },
        { "directory", RPC_STRING, RPC_ALWAYS, "path of the session on the host" },
        { "cwd", RPC_STRING, RPC_ALWAYS, "directory inside in which commands start" },
        { "workspace", RPC_STRING, RPC_OR_NULL, "path of the workspace on the host" },
        { "mounts", RPC_SHAPES, RPC_ALWAYS,
          "paths of the host that are mounted, besides the system", .shape = &mount_shape },
        { "limits", RPC_SHAPE, RPC_ALWAYS, "limits of each command, or of all commands together",
          .shape = &limits_shape },
        { "network", RPC_SHAPE, RPC_ALWAYS, "the hosts that commands can reach",
          .shape = &network_shape },
        { "routes", RPC_SHAPES, RPC_ALWAYS,
          "services that commands reach with a credential of the host", .shape = &method_route },
        { "allow_degraded", RPC_STRINGS, RPC_ALWAYS, "layers that may be missing" },
        { "layers", RPC_MAP, RPC_SOMETIMES,
          "the state of each layer of a live session, such as \"on\"" },
        { "network_level", RPC_UINT, RPC_SOMETIMES,
          "2 if programs get the errors of the real connections, otherwise 1; only for a live "
          "session with rules, or with ports that lead into it or out of it" },
};
static const RpcShape session_shape = { .name = "Session", RPC_FIELDS(show_fields) };

static const RpcField stop_fields[] = {
        { "set_aside", RPC_STRINGS, RPC_ALWAYS,
          "new names of files that holt has set aside at protected paths; relative to the "
          "workspace, or absolute" },
        { "set_aside_omitted", RPC_UINT, RPC_ALWAYS,
          "number of further files that set_aside does not list" },
        { "unguarded", RPC_STRING, RPC_SOMETIMES,
          "why a file at a protected path could not be set aside" },
};
static const RpcShape stopped_shape = { .name = "SessionStopped", RPC_FIELDS(stop_fields) };

static const RpcField value_fields[] = {
        { "value", RPC_STRING, RPC_ALWAYS, "text, or base64" },
};
static const RpcShape value_shape = { .name = "Value", RPC_FIELDS(value_fields) };

static const RpcField deleted_fields[] = {
        { "deleted", RPC_BOOL, RPC_ALWAYS, "false if there was no such key" },
};
static const RpcShape deleted_shape = { .name = "Deleted", RPC_FIELDS(deleted_fields) };

static const RpcField keys_fields[] = {
        { "keys", RPC_STRINGS, RPC_ALWAYS, "the keys, in byte order" },
        { "next", RPC_STRING, RPC_OR_NULL, "the value of \"after\" for the keys that follow" },
};
static const RpcShape keys_shape = { .name = "Keys", RPC_FIELDS(keys_fields) };

static const RpcField history_row_fields[] = {
        { "id", RPC_UINT, RPC_ALWAYS, "number of the row, higher for later ones" },
        { "name", RPC_STRING, RPC_ALWAYS, "the method, or the name that history.begin gave" },
        { "started_ms", RPC_UINT, RPC_ALWAYS,
          "time of the start, in milliseconds since the epoch" },
        { "ended_ms", RPC_UINT, RPC_OR_NULL, "time of the end, in milliseconds since the epoch" },
        { "params", RPC_OBJECT, RPC_OR_NULL, "parameters of the call; long values are cut" },
        { "result", RPC_OBJECT, RPC_OR_NULL, "how the call ended; null while it runs" },
};
static const RpcShape history_row_shape = { .name = "HistoryRow",
                                            .help = "a call in the session",
                                            RPC_FIELDS(history_row_fields) };

static const RpcField history_fields[] = {
        { "rows", RPC_SHAPES, RPC_ALWAYS, "the newest first", .shape = &history_row_shape },
        { "next", RPC_UINT, RPC_OR_NULL, "the value of \"before\" for the rows that follow" },
};
static const RpcShape history_shape = { .name = "History", RPC_FIELDS(history_fields) };

static const RpcField noted_fields[] = {
        { "unrecorded", RPC_STRING, RPC_SOMETIMES, "why the call is not in the history yet" },
};
static const RpcShape noted_shape = { .name = "Noted", RPC_FIELDS(noted_fields) };

static const RpcField audit_row_fields[] = {
        { "id", RPC_UINT, RPC_ALWAYS, "number of the row, higher for later ones" },
        { "at_ms", RPC_UINT, RPC_ALWAYS, "time of the event, in milliseconds since the epoch" },
        { "kind", RPC_STRING, RPC_ALWAYS, "kind of the row", .values = audit_kinds },
        { "detail", RPC_OBJECT, RPC_ALWAYS, "what happened; the members depend on the kind" },
};
static const RpcShape audit_row_shape = {
        .name = "AuditRow",
        .help = "an event of the session, such as a refusal, a grant or a kill",
        RPC_FIELDS(audit_row_fields)
};

static const RpcField audit_fields[] = {
        { "rows", RPC_SHAPES, RPC_ALWAYS, "the newest first", .shape = &audit_row_shape },
        { "next", RPC_UINT, RPC_OR_NULL, "the value of \"before\" for the rows that follow" },
};
static const RpcShape audit_shape = { .name = "Audit", RPC_FIELDS(audit_fields) };

/* Follows the limits. */
#define SHOW_EXAMPLE                                                                               \
        "\"name\": \"work\", \"state\": \"live\", \"keeper_pid\": 4711,"                           \
        " \"started_ms\": 1700000000000, \"processes\": 0,"                                        \
        " \"created_ms\": 1700000000000, \"idle_us\": 600000000,"                                  \
        " \"preset\": \"standard\", \"tier\": null, \"cpus\": null,"                               \
        " \"owned\": false, \"directory\":"                                                        \
        " \"/home/me/.local/share/holt/sessions/work\", \"cwd\":"                                  \
        " \"/workspace\", \"workspace\": \"/home/me/project\","                                    \
        " \"mounts\": [{\"target\": \"/workspace\", \"source\":"                                   \
        " \"/home/me/project\", \"read_only\": false}], \"network\": {\"mode\": "                  \
        "\"none\", \"allow\": [], \"once\": [], \"publish\": [], \"import\": []}, "                \
        "\"routes\": [], \"allow_degraded\": [], \"layers\": "                                     \
        "{\"user\":"                                                                               \
        " \"on\", \"landlock\": \"on: ABI 4\"}}"

enum { SHOW }; /* index in methods[] */

static RpcMethod methods[] = {
        [SHOW] =
        {
                .name = "session.show",
                .help = "describes the session",
                .result = &session_shape,
                .example = { "{}", "{}" },
                .at_rest = true,
                .function = method_session_show,
        },
        {
                .name = "session.start",
                .help = "starts a session at rest, and does nothing else; most other methods start it, too",
                .result = &rpc_nothing,
                .example = { "{}", "{}" },
                .function = method_session_start,
        },
        {
                .name = "session.stop",
                .help = "ends every process of the session, and keeps the files; the reply comes when the session is "
                        "at rest",
                .result = &stopped_shape,
                .example = { "{}", "{\"set_aside\": [], \"set_aside_omitted\": 0}" },
                .at_rest = true,
                .function = method_session_stop,
        },
        {
                .name = "kv.get",
                .help = "reads the value of a key",
                RPC_PARAMS(get_params),
                .result = &value_shape,
                .errors = RPC_ERROR(NO_KEY) | RPC_ERROR(USAGE) | RPC_ERROR(DATA),
                .example = { "{\"key\": \"plan\"}", "{\"value\": \"step 2\"}" },
                .at_rest = true,
                .function = method_stored,
        },
        {
                .name = "kv.set",
                .help = "sets a key to a value",
                RPC_PARAMS(set_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(DATA),
                .example = { "{\"key\": \"plan\", \"value\": \"step 2\"}", "{}" },
                .function = method_kv_set,
        },
        {
                .name = "kv.delete",
                .help = "deletes a key",
                RPC_PARAMS(key_params),
                .result = &deleted_shape,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(DATA),
                .example = { "{\"key\": \"plan\"}", "{\"deleted\": true}" },
                .function = method_kv_delete,
        },
        {
                .name = "kv.keys",
                .help = "lists keys in byte order",
                RPC_PARAMS(keys_params),
                .result = &keys_shape,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(DATA),
                .example = { "{\"prefix\": \"pl\"}", "{\"keys\": [\"plan\"], \"next\": null}" },
                .at_rest = true,
                .function = method_stored,
        },
        {
                .name = "history.list",
                .help = "lists commands, runs of code, calls of tools and operations on files",
                RPC_PARAMS(history_params),
                .result = &history_shape,
                .errors = RPC_ERROR(DATA),
                .example = { "{\"limit\": 1}",
                             "{\"rows\": [{\"id\": 3, \"name\": \"exec\", \"started_ms\":"
                             " 1700000000000, \"ended_ms\": 1700000000100, \"params\":"
                             " {\"argv\": [\"id\"]}, \"result\":"
                             " {\"id\": \"p1\", \"cause\": \"exited\", \"exit_code\": 0}}],"
                             " \"next\": 3}" },
                .at_rest = true,
                .function = method_stored,
        },
        {
                .name = "history.begin",
                .help = "combines all file calls of this connection into one row of the history, until "
                        "history.end or the end of the connection",
                RPC_PARAMS(begin_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(BUSY) | RPC_ERROR(DATA),
                .example = { "{\"name\": \"cp\", \"operands\": [\"a.txt\", \"work:a.txt\"]}",
                             "{}" },
                .function = method_history_begin,
        },
        {
                .name = "history.end",
                .help = "completes the row of history.begin with the outcome",
                RPC_PARAMS(end_params),
                .result = &noted_shape,
                .errors = RPC_ERROR(MISSING) | RPC_ERROR(DATA),
                .example = { "{\"success\": true}", "{}" },
                .function = method_history_end,
        },
        {
                .name = "audit.list",
                .help = "lists events such as refusals, grants, kills, connections and calls of tools",
                RPC_PARAMS(audit_params),
                .result = &audit_shape,
                .errors = RPC_ERROR(DATA),
                .example = { "{\"kind\": \"limit\", \"limit\": 1}",
                             "{\"rows\": [{\"id\": 1, \"at_ms\": 1700000000000, \"kind\":"
                             " \"limit\", \"detail\":"
                             " {\"id\": \"p1\", \"cause\": \"timeout\"}}], \"next\": 1}" },
                .at_rest = true,
                .function = method_stored,
        },
};

static char *data_show_example(void) {
        const LaunchPlan plan = { .pids = 256, .open_files = 1024, .tmp_size = 1 << 30 };
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        result_write_limits(&w, &plan);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return NULL;
        *strrchr(w.data, '}') = '\0'; /* The other members follow. */
        return str_format("%s, " SHOW_EXAMPLE, w.data);
}

/* The limits have their names in the table of policy fields. */
static void data_prepare(void) {
        char *example = data_show_example();

        for (size_t i = 0; i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];

                if (!field->result)
                        continue;
                assert(limits_shape.fields_count < LIMITS_MAX);
                limit_fields[limits_shape.fields_count++] = (RpcField){ field->result, RPC_UINT,
                                                                        RPC_OR_NULL, field->path };
        }
        if (example)
                methods[SHOW].example.result = example;
}

const MethodArea method_data_area = { methods, ELEMENTSOF(methods), data_prepare };
