/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations for the files of methods: their tables, and the shapes and functions that several of
 * them share. */
#pragma once

#include "inside/interpreter.h"
#include "keeper/keeper.h"
#include "methods/methods.h"

typedef struct MethodArea {
        const RpcMethod *methods;
        size_t count;
        /* Fills in the parts of the table that come from other tables. NULL if there are none. */
        void (*prepare)(void);
} MethodArea;

/* One area for each file of methods. List a new one in methods.c too. */
extern const MethodArea method_allow_area, method_attend_area, method_data_area, method_exec_area,
        method_process_area, method_process_act_area, method_python_area, method_tools_area,
        method_files_area, method_files_write_area, method_mount_area, method_ports_area,
        method_links_area, method_routes_area, method_shell_area;

/* --- shapes that several areas use --- */

extern const char *const method_causes[]; /* Names of causes, up to NULL. */
extern const char *const method_keeps[];

/* Paths that were refused to a command, and limits that it reached. */
extern const RpcShape method_refused;
/* The end of a command or of a run of code. Outcome is common to both; Ended adds members for a
 * command, and Result its output. Usage is a member of Outcome. keeper_write_result() writes them.
 */
extern const RpcShape method_usage, method_outcome, method_ended, method_result;

/* Part of a file, written by method_answer_content(), and an fd of it, by method_answer_fd(). */
extern const RpcShape method_content, method_opened;
/* Directory that could not be listed, written by method_write_next(). */
extern const RpcShape method_missed;
extern const RpcShape method_size, method_stat;
/* Route of a session, written by route_store_write(). */
extern const RpcShape method_route;

/* Port of the host that leads inside, written by net_published_write_port(). */
extern const RpcShape method_port;

/* Notifications of a process. */
extern const RpcOutgoing method_process_output, method_process_stopped, method_process_exited;

/* Fields of every notification. */
#define METHOD_NOTE_FIELDS                                                                         \
        {                                                                                          \
                "session", RPC_STRING, RPC_ALWAYS,                                                 \
                        "name of the session; missing on the session's own socket"                 \
        }

/* Written by json_write_name(). */
#define METHOD_NAME_FIELDS                                                                         \
        { "name", RPC_STRING, RPC_ALWAYS, "the name, with U+FFFD for bytes that are not UTF-8" },  \
        {                                                                                          \
                "raw", RPC_PATH, RPC_SOMETIMES, "the bytes of the name, if they are not UTF-8"     \
        }

/* Written by method_write_next(). */
#define METHOD_MISSED_FIELD                                                                        \
        {                                                                                          \
                "missed", RPC_SHAPE, RPC_SOMETIMES,                                                \
                        "the first directory that could not be listed", .shape = &method_missed    \
        }

/* The parameter of method_find_process(). */
#define METHOD_PROCESS_ID                                                                          \
        { "id", RPC_STRING, true, 32, "id of the process, such as \"p1\"" }

/* Parameters of the methods of files. */
#define METHOD_PATH(name)                                                                          \
        { name, RPC_PATH, true, 4096, "a path inside, relative to the workspace" }
/* For method_take_content(). */
#define METHOD_CONTENT                                                                             \
        { "content", RPC_STRING, false, 0, "text" }, {                                             \
                "base64", RPC_STRING, false, 0, "the content in base64, instead of content"        \
        }
/* For method_answer_content(). */
#define METHOD_PART                                                                                \
        { "offset", RPC_UINT, false, 0, "the first byte; default 0" },                             \
                { "length", RPC_UINT, false, FILES_READ_MAX, "bytes at most; default 512 KiB" }, { \
                "base64", RPC_BOOL, false, 0, "return the content in base64, not as text"          \
        }
#define METHOD_MODE                                                                                \
        {                                                                                          \
                "mode", RPC_UINT, false, 0777,                                                     \
                        "permission bits; default: those of the existing file, or 0644 for a new " \
                        "file"                                                                     \
        }
#define METHOD_MAKE_PARENTS                                                                        \
        { "make_parents", RPC_BOOL, false, 0, "create missing parent directories" }

/* For method_take_limits(). */
#define METHOD_OUTPUT_PARAMS                                                                       \
        { "output_max", RPC_UINT, false, CAPTURE_KEPT_MAX,                                         \
          "number of bytes that are kept of each stream; default: 1 MiB, or the policy's "         \
          "limits.output" },                                                                       \
        {                                                                                          \
                "keep", RPC_STRING, false, 8,                                                      \
                        "whether the first or the last bytes are kept if there are more",          \
                        .values = method_keeps                                                     \
        }
/* For method_run_code(). what: "code" or "commands". */
#define METHOD_CODE_PARAMS(what)                                                                   \
        { "timeout_ms", RPC_UINT, false, 86400000000,                                              \
          "limit of wall time from the start of the " what                                         \
          "; the policy's limit is the default and the maximum" },                                 \
                METHOD_OUTPUT_PARAMS,                                                              \
                { "watch", RPC_BOOL, false, 0, "send output as it comes (process.output)" }, {     \
                "base64", RPC_BOOL, false, 0, "return the output in base64"                        \
        }
#define METHOD_STREAM_FIELDS                                                                       \
        { "stdout", RPC_STRING, RPC_ALWAYS, "the part of stdout that was kept: text, or base64" }, \
        {                                                                                          \
                "stderr", RPC_STRING, RPC_ALWAYS,                                                  \
                        "the part of stderr that was kept: text, or base64"                        \
        }

enum {
        METHOD_FILE_ERRORS = RPC_ERROR(USAGE) | RPC_ERROR(MISSING) | RPC_ERROR(EXISTS) |
                             RPC_ERROR(BUSY),
};

/* In the row of a method that only reads files. */
#define METHOD_READS_FILES .errors = METHOD_FILE_ERRORS, .at_rest = true

/* In the row of a method that writes a file's content, and of one that changes names. */
#define METHOD_WRITES_FILE .result = &method_size, .errors = METHOD_FILE_ERRORS
#define METHOD_CHANGES_FILES .result = &rpc_nothing, .errors = METHOD_FILE_ERRORS

/* Members of an Outcome for examples, and the text of an Ended with more members. */
#define METHOD_OUTCOME_EXAMPLE                                                                     \
        "\"id\": \"p1\", \"cause\": \"exited\", \"exit_code\": 0, \"timeout_us\": null, "          \
        "\"usage\": "                                                                              \
        "{\"wall_us\": 2100, \"user_us\": 600, \"system_us\": 900, \"max_rss_bytes\": 3145728}, "  \
        "\"stdout_dropped\": 0, \"stderr_dropped\": 0, \"denials\": [], \"limits_hit\": [], "      \
        "\"set_aside\": [], "                                                                      \
        "\"replaced\": null"
#define METHOD_ENDED_EXAMPLE(more)                                                                 \
        "{" METHOD_OUTCOME_EXAMPLE                                                                 \
        ", \"signal\": null, \"stdout_bytes\": 5, \"stderr_bytes\": 0" more "}"

/* --- functions --- */

/* Rules for the function of a method:
 *
 * - It replies now, or returns negative with *error written, or keeps the call. A kept call needs
 *   rpc_call_on_end(), whose function runs if the client is gone before the reply; keeper/wait.c is
 *   an example.
 * - A late reply that may be large is made only if rpc_call_has_room() is true, or when on_room
 *   says so.
 * - It blocks only for the disk, and only briefly. A walk through a tree is a FilesWork
 *   (files/work.h), on a thread that touches nothing else.
 * - Contents of any size travel as a descriptor (files/receive.h), never in a message.
 * - Everything that a client can make many of has a limit, which SECURITY.md lists.
 * - It makes only system calls that a sandbox may make (keeper/confine.c).
 * - A tree that takes time to make or remove has a note (files/unfinished.h), by which a sweep
 *   removes it if the keeper was killed.
 * - A method that starts code has the parameter tools, and calls method_take_grant().
 * - If it only reads the database, it uses store/rows.h, as verbs do for a session at rest. */

/* --- shared by files and mount --- */

/* Bytes that a reply lists at most, so that it fits into one line. */
enum { METHOD_ANSWER_MAX = 900 * 1024 };

/* Reads the content from the parameter called text, or from base64. The caller owns *ret. */
int method_take_content(const RpcCall *call, const char *text, char **ret, size_t *ret_length,
                        Error *error);
/* Passes the content of the parameters content or base64 to kind's function, as the work's
 * content. */
int method_write_content(const Keeper *keeper, RpcCall *call, const FilesWorkKind *kind,
                         const char *path, unsigned mode, bool make_parents, Error *error);
/* Replies with the part of the file that the parameters offset and length select. */
int method_answer_content(const Keeper *keeper, RpcCall *call, const char *path, Error *error);
/* Replies with an fd of the file. */
int method_answer_fd(const Keeper *keeper, RpcCall *call, const char *path, Error *error);

/* Writes the start of the next page, or null, as the member key. Writes "missed" if the walk could
 * not list some directory. */
void method_write_next(JsonWriter *w, const char *key, const FilesWork *work);

/* Finds the process of the parameter id. The error tells how a process of the past has ended. */
int method_find_process(const RpcCall *call, Keeper *keeper, Process **ret, Error *error);
/* Reads the parameters timeout_ms, output_max and keep, limited by the policy. */
void method_take_limits(const Keeper *keeper, const RpcCall *call, uint64_t *ret_timeout,
                        size_t *ret_kept, bool *ret_keep_tail);
/* Returns the form of the reply at the end of a command: with or without output, and in base64 if
 * the parameter base64 says so. */
WaitFor method_wait_for_end(const RpcCall *call, bool output);
/* Sets NAME=VALUE in env, and replaces an earlier value. Returns 0 or -ENOMEM. */
int method_set_variable(StrList *env, const char *item);
/* Makes a grant of the tools that the parameter tools allows. The caller ends it with
 * grant_end(). */
int method_take_grant(const Keeper *keeper, const RpcCall *call, struct Grant **ret, Error *error);

/* --- shared by the interpreter and the shell (code.c) --- */

/* Runs code, and replies to call with the result. asked: has only the members that one of the two
 * has. Returns 0 or a negative errno. */
int method_run_code(const Keeper *keeper, Interpreters *all, RpcCall *call, CodeRun *asked,
                    Error *error);
/* Both reply, and return 0. */
int method_interrupt_code(Interpreters *all, RpcCall *call);
int method_restart_code(Interpreters *all, RpcCall *call);
