/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of methods: what the CLI, `holt serve`, the SDKs and adapters all go through. */
#include "keeper/methods.h"

#include "inside/tools.h"
#include "store/rows.h"
#include "store/store.h"

#define PARAMS(params) params, ELEMENTSOF(params)
#define NONE NULL, 0

static const RpcParam exec_params[] = {
        { "argv", RPC_STRINGS, false, 65536, "the command and its arguments" },
        { "shell", RPC_STRING, false, 0, "or a line for bash -c" },
        { "cwd", RPC_STRING, false, 4096, "where to start; relative to the workspace" },
        { "env", RPC_MAP, false, 1024, "variables beyond the session's own" },
        { "stdin", RPC_STRING, false, 0, "what it reads; nothing without it" },
        { "timeout_ms", RPC_UINT, false, 86400000000,
          "wall time; at most the policy's, which it is without it" },
        { "output_max", RPC_UINT, false, CAPTURE_KEPT_MAX,
          "bytes kept of each stream; 1 MiB, or the policy's output" },
        { "keep", RPC_STRING, false, 8, "\"head\" or \"tail\": which bytes are kept" },
        { "base64", RPC_BOOL, false, 0, "stdout and stderr in base64" },
        { "tools", RPC_STRINGS, false, 1024,
          "tools that it may call, any client's; this connection's without it" },
};

static const RpcParam spawn_params[] = {
        { "argv", RPC_STRINGS, false, 65536, "the command and its arguments" },
        { "shell", RPC_STRING, false, 0, "or a line for bash -c" },
        { "cwd", RPC_STRING, false, 4096, "where to start; relative to the workspace" },
        { "env", RPC_MAP, false, 1024, "variables beyond the session's own" },
        { "input", RPC_BOOL, false, 0,
          "stdin is a pipe for process.write; otherwise it is at its end" },
        { "timeout_ms", RPC_UINT, false, 86400000000,
          "wall time; at most the policy's, which it is without it" },
        { "output_max", RPC_UINT, false, CAPTURE_KEPT_MAX,
          "bytes kept of each stream; 1 MiB, or the policy's output" },
        { "keep", RPC_STRING, false, 8, "\"head\" or \"tail\": which bytes are kept" },
        { "owned", RPC_BOOL, false, 0,
          "it is killed, with all it has started, when this connection ends before it" },
        { "tools", RPC_STRINGS, false, 1024,
          "tools that it may call, any client's; this connection's without it" },
        { "terminal", RPC_UINT, false, 7, "a bit for each of fds 0 to 2 that is a terminal" },
        { "background", RPC_BOOL, false, 0,
          "it gets the terminal's keys only when it reads (process.stopped), by process.resume" },
        { "rows", RPC_UINT, false, 65535, "of the terminal" },
        { "columns", RPC_UINT, false, 65535, "of the terminal" },
        { "mode", RPC_STRING, false, 200,
          "of the terminal: struct termios as TCSETS has it, in hex" },
        { "master", RPC_BOOL, false, 0,
          "the terminal's master comes with the answer (SCM_RIGHTS)" },
        { "fds", RPC_UINT, false, 7,
          "a bit for each of fds 0 to 2 that comes with the request (SCM_RIGHTS)" },
};

static const RpcParam id_params[] = {
        { "id", RPC_STRING, true, 32, "of the process: \"p1\"" },
};

static const RpcParam wait_params[] = {
        { "id", RPC_STRING, true, 32, "of the process: \"p1\"" },
        { "output", RPC_BOOL, false, 0, "with what it has printed" },
        { "base64", RPC_BOOL, false, 0, "stdout and stderr in base64" },
};

static const RpcParam read_params[] = {
        { "id", RPC_STRING, true, 32, "of the process: \"p1\"" },
        { "from", RPC_UINT, false, 0, "the first chunk's number; 1 for all that is kept" },
        { "limit", RPC_UINT, false, 1000,
          "chunks at most; 100; fewer where they have more than 900 KiB" },
        { "base64", RPC_BOOL, false, 0, "in base64, not as text" },
};

static const RpcParam watch_params[] = {
        { "id", RPC_STRING, true, 32, "of the process: \"p1\"" },
        { "from", RPC_UINT, false, 0, "the first chunk's number; 1 for all that is kept" },
        { "base64", RPC_BOOL, false, 0, "in base64, not as text" },
};

static const RpcParam write_params[] = {
        { "id", RPC_STRING, true, 32, "of the process: \"p1\"" },
        { "data", RPC_STRING, false, 0, "text for its stdin" },
        { "base64", RPC_STRING, false, 0, "or bytes, in base64" },
};

static const RpcParam resize_params[] = {
        { "id", RPC_STRING, true, 32, "of the process: \"p1\"" },
        { "rows", RPC_UINT, true, 65535, "of its terminal" },
        { "columns", RPC_UINT, true, 65535, "of its terminal" },
};

static const RpcParam signal_params[] = {
        { "id", RPC_STRING, true, 32, "of the process: \"p1\"" },
        { "signal", RPC_STRING, true, 16, "\"TERM\", \"SIGTERM\" or \"15\"" },
        { "all", RPC_BOOL, false, 0,
          "to all that it has started, which goes on then if it was stopped" },
};

static const RpcParam python_params[] = {
        { "code", RPC_STRING, true, 0,
          "what to run; the value of a last expression is the result" },
        { "file", RPC_STRING, false, 4096, "its name, for tracebacks and as __file__" },
        { "cwd", RPC_STRING, false, 4096,
          "where, for this run; relative to the workspace; where the last one was without it" },
        { "env", RPC_MAP, false, 1024, "variables for this run" },
        { "tools", RPC_STRINGS, false, 1024,
          "tools that it may call, any client's; this connection's without it" },
        { "fresh", RPC_BOOL, false, 0, "in an interpreter of its own, which ends with it" },
        { "timeout_ms", RPC_UINT, false, 86400000000,
          "wall time from when the code starts, not while it waits for another run; at most the "
          "policy's, which it is without it" },
        { "output_max", RPC_UINT, false, CAPTURE_KEPT_MAX,
          "bytes kept of each stream; 1 MiB, or the policy's output" },
        { "keep", RPC_STRING, false, 8, "\"head\" or \"tail\": which bytes are kept" },
        { "watch", RPC_BOOL, false, 0, "notify of process.output as it comes" },
        { "base64", RPC_BOOL, false, 0, "output in base64" },
        { "run", RPC_STRING, false, 64,
          "a name of the client's own, for python.interrupt and python.restart" },
};

static const RpcParam python_end_params[] = {
        { "run", RPC_STRING, false, 64,
          "of this connection's runs the one with that name, fresh ones too; one that waits is "
          "taken back; what the lasting interpreter runs without it" },
};

static const RpcParam python_state_params[] = {
        { "path", RPC_STRING, false, 4096,
          "a file inside; one in the home of the session without it" },
};

static const RpcParam tools_register_params[] = {
        { "name", RPC_STRING, true, TOOL_NAME_MAX, "of A-Z, a-z, 0-9, \"_\", \"-\" and \".\"" },
        { "description", RPC_STRING, true, TOOL_DESCRIPTION_MAX, "what it does, for a model" },
        { "input_schema", RPC_OBJECT, true, 0, "the JSON schema of its payload, an object" },
        { "output_schema", RPC_OBJECT, false, 0, "the JSON schema of what it returns" },
        { "timeout_ms", RPC_UINT, false, TOOL_TIMEOUT_MAX,
          "of a call, waiting for its turn included; 30000" },
};

static const RpcParam tools_unregister_params[] = {
        { "name", RPC_STRING, true, TOOL_NAME_MAX, "of a tool of this connection" },
};

static const RpcParam key_params[] = {
        { "key", RPC_STRING, true, STORE_KEY_MAX, "1 to 1024 bytes" },
};

static const RpcParam kv_get_params[] = {
        { "key", RPC_STRING, true, STORE_KEY_MAX, "1 to 1024 bytes" },
        { "base64", RPC_BOOL, false, 0, "value in base64, not as text" },
};

static const RpcParam kv_set_params[] = {
        { "key", RPC_STRING, true, STORE_KEY_MAX, "1 to 1024 bytes" },
        { "value", RPC_STRING, false, STORE_VALUE_MAX, "text" },
        { "base64", RPC_STRING, false, 0, "or bytes, in base64" },
};

static const RpcParam kv_keys_params[] = {
        { "prefix", RPC_STRING, false, STORE_KEY_MAX, "what they start with; all without it" },
        { "after", RPC_STRING, false, STORE_KEY_MAX, "only keys behind this one" },
        { "limit", RPC_UINT, false, ANSWER_LIMIT_MAX, "keys at most; 100" },
};

static const RpcParam history_params[] = {
        { "name", RPC_STRING, false, 64, "only rows of this method, as \"exec\"" },
        { "before", RPC_UINT, false, 0, "only rows with a lower id" },
        { "limit", RPC_UINT, false, ANSWER_LIMIT_MAX, "rows at most; 100" },
};

static const RpcParam history_begin_params[] = {
        { "name", RPC_STRING, true, 64, "what it is called there; no method's name" },
        { "operands", RPC_STRINGS, false, 64, "what it is about" },
};

static const RpcParam history_end_params[] = {
        { "success", RPC_BOOL, true, 0, "whether all went well" },
        { "kind", RPC_STRING, false, 32, "of the error, as \"missing\"" },
        { "errno", RPC_STRING, false, 32, "of the error, as \"ENOENT\"" },
        { "error", RPC_STRING, false, 4096, "its text" },
};

static const RpcParam audit_params[] = {
        { "kind", RPC_STRING, false, 64, "only rows of this kind, as \"denial\"" },
        { "before", RPC_UINT, false, 0, "only rows with a lower id" },
        { "limit", RPC_UINT, false, ANSWER_LIMIT_MAX, "rows at most; 100" },
};

static const RpcParam files_read_params[] = {
        { "path", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
        { "offset", RPC_UINT, false, 0, "the first byte; 0" },
        { "length", RPC_UINT, false, FILES_READ_MAX, "bytes at most; 512 KiB" },
        { "base64", RPC_BOOL, false, 0, "content in base64, not as text" },
};

static const RpcParam files_write_params[] = {
        { "path", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
        { "content", RPC_STRING, false, 0, "text" },
        { "base64", RPC_STRING, false, 0, "or bytes, in base64" },
        { "mode", RPC_UINT, false, 0777, "permission bits; of what is there, or 0644" },
        { "make_parents", RPC_BOOL, false, 0, "make the directories above it" },
};

static const RpcParam files_append_params[] = {
        { "path", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
        { "content", RPC_STRING, false, 0, "text" },
        { "base64", RPC_STRING, false, 0, "or bytes, in base64" },
};

static const RpcParam files_receive_params[] = {
        { "path", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
        { "mode", RPC_UINT, false, 0777, "permission bits; of what is there, or 0644" },
        { "make_parents", RPC_BOOL, false, 0, "make the directories above it" },
};

static const RpcParam files_path_params[] = {
        { "path", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
};

static const RpcParam files_list_params[] = {
        { "path", RPC_PATH, false, 4096, "a directory; the workspace without it" },
        { "recursive", RPC_BOOL, false, 0, "and all below it; no link is followed" },
        { "after", RPC_PATH, false, 4096, "only names behind this one: next of the page before" },
        { "limit", RPC_UINT, false, FILES_LIST_MAX, "entries at most; 1000" },
};

static const RpcParam files_glob_params[] = {
        { "pattern", RPC_STRING, true, 1024, "as \"src/**/*.py\", relative to path" },
        { "path", RPC_PATH, false, 4096, "a directory; the workspace without it" },
        { "limit", RPC_UINT, false, FILES_LIST_MAX, "entries at most; 1000" },
};

static const RpcParam files_grep_params[] = {
        { "pattern", RPC_STRING, true, 1024, "a POSIX extended regular expression" },
        { "path", RPC_PATH, false, 4096, "a directory or file; the workspace without it" },
        { "ignore_case", RPC_BOOL, false, 0, "letters match in either case" },
        { "glob", RPC_STRING, false, 1024, "only files whose names match, as \"*.py\"" },
        { "limit", RPC_UINT, false, FILES_LIST_MAX, "lines at most; 1000" },
};

static const RpcParam files_stat_params[] = {
        { "path", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
        { "follow", RPC_BOOL, false, 0, "a link at the end is followed; true" },
};

static const RpcParam files_mkdir_params[] = {
        { "path", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
        { "mode", RPC_UINT, false, 0777, "permission bits; 0755" },
        { "make_parents", RPC_BOOL, false, 0, "make the directories above it" },
        { "owned", RPC_BOOL, false, 0,
          "it goes when this connection ends, unless files.move has given it another name; its own "
          "is \".holt-\" and 16 hexadecimal digits" },
};

static const RpcParam files_remove_params[] = {
        { "path", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
        { "recursive", RPC_BOOL, false, 0, "a directory with all that is in it" },
};

static const RpcParam files_move_params[] = {
        { "from", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
        { "to", RPC_PATH, true, 4096, "its new path" },
        { "replace", RPC_BOOL, false, 0, "what is there may be replaced" },
};

static const RpcParam files_copy_params[] = {
        { "from", RPC_PATH, true, 4096, "as inside; relative to the workspace" },
        { "to", RPC_PATH, true, 4096, "the copy's path" },
        { "recursive", RPC_BOOL, false, 0, "a directory with all that is in it" },
        { "replace", RPC_BOOL, false, 0, "what is there may be replaced" },
};

static const RpcParam mount_list_params[] = {
        { "prefix", RPC_PATH, false, 4000,
          "what paths start with, below /mnt/files or with that before it; all without it" },
        { "cursor", RPC_PATH, false, 4096, "next_cursor of the page before" },
        { "limit", RPC_UINT, false, 500, "items at most; 100", .min = 1 },
};

static const RpcParam mount_upload_params[] = {
        { "path", RPC_PATH, true, 4000, "below /mnt/files, or with that before it, as inside" },
        { "content", RPC_STRING, false, 0, "text" },
        { "base64", RPC_STRING, false, 0, "or bytes, in base64" },
        { "fd", RPC_BOOL, false, 0, "or all that an fd gives, which comes along (SCM_RIGHTS)" },
        { "mode", RPC_UINT, false, 0777, "permission bits; of what is there, or 0644" },
};

static const RpcParam mount_download_params[] = {
        { "path", RPC_PATH, true, 4000, "below /mnt/files, or with that before it, as inside" },
        { "offset", RPC_UINT, false, 0, "the first byte; 0" },
        { "length", RPC_UINT, false, FILES_READ_MAX, "bytes at most; 512 KiB" },
        { "base64", RPC_BOOL, false, 0, "content in base64, not as text" },
        { "fd", RPC_BOOL, false, 0, "no content but an fd, which comes along (SCM_RIGHTS)" },
};

static const RpcParam mount_delete_params[] = {
        { "path", RPC_PATH, true, 4000, "below /mnt/files, or with that before it, as inside" },
};

static const char content_result[] = "content, next: where the next part begins, eof, size";

static const char process_result[] =
        "id, cause, exit_code, signal, usage {wall_us, user_us, system_us, max_rss_bytes}, "
        "timeout_us, stdout_bytes, stderr_bytes, stdout_dropped, stderr_dropped, "
        "denials [{layer, what, count, answer, grant, why_not}], set_aside [paths in the "
        "workspace], stdout, stderr; unguarded: why something there could not be set aside; "
        "replaced: the path for which the sandbox was stopped, or null; "
        "unrecorded, on a full disk: why it is not in the history yet";

const RpcMethod session_methods[] = {
        { "session.show", "says what the session is and has",
          "name, state, keeper_pid, started_ms, processes, created_ms, idle_us, preset, tier, "
          "cpus, owned, "
          "directory, "
          "cwd, "
          "workspace, "
          "mounts, limits, allow_degraded, layers",
          NONE, method_session_show },
        { "session.stop",
          "ends all that runs, and the keeper; files stay; answered when it is at rest",
          "set_aside, unguarded: as of exec, since it was told to; set_aside_omitted: how many "
          "names "
          "set_aside has no room for",
          NONE, method_session_stop },

        { "exec", "runs a command to its end", process_result, PARAMS(exec_params), method_exec },
        { "process.spawn", "starts a command that is not waited for",
          "id, pid, timeout_us; ended: as process.wait has it, of a command that has ended already",
          PARAMS(spawn_params), method_process_spawn },
        { "process.list", "all processes, the newest first",
          "processes: [{id, command, state, ...}]", NONE, method_process_list },
        { "process.read", "what a process has printed, by chunks",
          "chunks [{seq, stream, offset, text or base64}], next, more, stdout_bytes, stderr_bytes: "
          "up to now; elsewhere: the streams that went to its caller, state",
          PARAMS(read_params), method_process_read },
        { "process.watch",
          "notifies of process.output, process.stopped and process.exited from now on", "nothing",
          PARAMS(watch_params), method_process_watch },
        { "process.unwatch", "ends process.watch", "nothing", PARAMS(id_params),
          method_process_unwatch },
        { "process.write", "writes to the stdin of a process", "nothing", PARAMS(write_params),
          method_process_write },
        { "process.close_stdin", "ends the stdin of a process", "nothing", PARAMS(id_params),
          method_process_close_stdin },
        { "process.resize", "sets the size of a process's terminal", "nothing",
          PARAMS(resize_params), method_process_resize },
        { "process.signal", "sends a signal to a command and its process group", "nothing",
          PARAMS(signal_params), method_process_signal },
        { "process.resume",
          "puts a command into the foreground of its terminal; all that it has started goes on",
          "nothing", PARAMS(id_params), method_process_resume },
        { "process.kill", "kills all that a process has started", "killed", PARAMS(id_params),
          method_process_kill },
        { "process.wait", "waits for the end of a command", process_result, PARAMS(wait_params),
          method_process_wait },

        { "python.run", "runs code in the session's lasting interpreter",
          "id, cause, exit_code, timeout_us, state_kept, lost: "
          "how the interpreter ended by itself since the run before, or null, stdout, stderr, "
          "stdout_dropped, "
          "stderr_dropped, "
          "denials, set_aside, unguarded and replaced as of exec, "
          "result: the repr or null, displays: [{mime type: text or base64}], error: "
          "{name, message, traceback} or null, usage; unrecorded, on a full disk: why it is not in "
          "the history yet",
          PARAMS(python_params), method_python_run },
        { "python.variables", "what the interpreter has", "variables: [{name, type, size, repr}]",
          NONE, method_python_variables },
        { "python.save", "keeps its variables in a file", "saved, left_out: {name: why}, path",
          PARAMS(python_state_params), method_python_save },
        { "python.load", "takes them back out of it", "loaded, failed: {name: why}, path",
          PARAMS(python_state_params), method_python_load },
        { "python.interrupt", "interrupts the code that runs, as Ctrl-C does", "interrupted",
          PARAMS(python_end_params), method_python_interrupt },
        { "python.restart", "kills the interpreter; the next run has a new one", "killed",
          PARAMS(python_end_params), method_python_restart },

        { "tools.register",
          "offers a tool to code inside while this connection lasts: each call is a request "
          "tool.call {name, payload, call, exec, timeout_ms}, to be answered by {value} or an "
          "error; tool.cancel {call} notifies that nobody waits any more",
          "nothing", PARAMS(tools_register_params), method_tools_register },
        { "tools.unregister", "takes a tool of this connection back", "nothing",
          PARAMS(tools_unregister_params), method_tools_unregister },
        { "tools.list", "all tools that are registered",
          "tools: [{name, description, input_schema, output_schema, timeout_ms}]", NONE,
          method_tools_list },

        { "files.read", "a part of a file; text ends with a whole character", content_result,
          PARAMS(files_read_params), method_files_read },
        { "files.write", "replaces a file at once, or makes it", "size", PARAMS(files_write_params),
          method_files_write },
        { "files.append", "adds to the end of a file, or makes it", "size, which it has then",
          PARAMS(files_append_params), method_files_append },
        { "files.open", "a file as an fd, which comes with the answer (SCM_RIGHTS)",
          "size, modified_ms, mode", PARAMS(files_path_params), method_files_open },
        { "files.receive", "as files.write, all that an fd gives, which comes along (SCM_RIGHTS)",
          "size", PARAMS(files_receive_params), method_files_receive },
        { "files.list", "what is in a directory, in byte order of names",
          "entries: [{name, raw, type, size, modified_ms, mode, target}], next, missed {name, raw, "
          "errno}",
          PARAMS(files_list_params), method_files_list },
        { "files.glob", "paths that match a pattern",
          "entries: [{name, raw, type, size, modified_ms, mode, target}], more",
          PARAMS(files_glob_params), method_files_glob },
        { "files.grep", "lines that match a regular expression; no binary files",
          "matches: [{name, raw, line, text}], more", PARAMS(files_grep_params),
          method_files_grep },
        { "files.stat", "what is at a path",
          "type: \"file\", \"directory\", \"link\" or \"other\"; size, modified_ms, mode, target",
          PARAMS(files_stat_params), method_files_stat },
        { "files.exists", "whether there is something at a path", "exists",
          PARAMS(files_path_params), method_files_exists },
        { "files.mkdir", "makes a directory", "nothing", PARAMS(files_mkdir_params),
          method_files_mkdir },
        { "files.remove", "takes a file or directory away; follows no link", "nothing",
          PARAMS(files_remove_params), method_files_remove },
        { "files.move", "renames a file or directory", "nothing", PARAMS(files_move_params),
          method_files_move },
        { "files.copy", "copies a file, link or directory", "left_out: fifos, sockets and devices",
          PARAMS(files_copy_params), method_files_copy },

        { "mount.list", "files below /mnt/files, in byte order of paths",
          "items: [{mount_relative_path, raw, sandbox_mount_prefix, size, last_modified, "
          "mime_type}], next_cursor, missed {name, raw, errno}",
          PARAMS(mount_list_params), method_mount_list },
        { "mount.upload", "puts a file below /mnt/files, with the directories above it",
          "mount_relative_path, sandbox_mount_prefix, size", PARAMS(mount_upload_params),
          method_mount_upload },
        { "mount.download", "a file below /mnt/files, or a part of it", content_result,
          PARAMS(mount_download_params), method_mount_download },
        { "mount.delete", "takes a file or directory below /mnt/files away",
          "mount_relative_path, sandbox_mount_prefix", PARAMS(mount_delete_params),
          method_mount_delete },

        { "kv.get", "the value of a key", "value", PARAMS(kv_get_params), method_kv_get },
        { "kv.set", "sets a key to a value", "nothing", PARAMS(kv_set_params), method_kv_set },
        { "kv.delete", "takes a key away", "deleted", PARAMS(key_params), method_kv_delete },
        { "kv.keys", "keys in byte order", "keys, next", PARAMS(kv_keys_params), method_kv_keys },
        { "history.list", "execs and file calls, the newest first", "rows, next",
          PARAMS(history_params), method_history_list },
        { "history.begin",
          "what this connection does with files from now on is one row of the history, until "
          "history.end or its own end",
          "nothing", PARAMS(history_begin_params), method_history_begin },
        { "history.end", "how that went",
          "unrecorded, on a full disk: why it is not in the history yet",
          PARAMS(history_end_params), method_history_end },
        { "audit.list", "denials, kills, limits, grants, calls of tools, the newest first",
          "rows, next", PARAMS(audit_params), method_audit_list },
};
const size_t session_methods_count = ELEMENTSOF(session_methods);
