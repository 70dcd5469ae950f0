/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of methods (methods.c), and the functions in it by their area. data is the Keeper.
 */
#pragma once

#include "keeper/keeper.h"

extern const RpcMethod session_methods[];
extern const size_t session_methods_count;

#define METHOD(name) int name(RpcCall *call, void *data, Error *error)

METHOD(method_session_show);
METHOD(method_session_stop);

METHOD(method_exec);
METHOD(method_process_spawn);
METHOD(method_process_list);
METHOD(method_process_read);
METHOD(method_process_write);
METHOD(method_process_close_stdin);
METHOD(method_process_resize);
METHOD(method_process_signal);
METHOD(method_process_resume);
METHOD(method_process_kill);
METHOD(method_process_wait);
METHOD(method_process_watch);
METHOD(method_process_unwatch);

METHOD(method_python_run);
METHOD(method_python_variables);
METHOD(method_python_save);
METHOD(method_python_load);
METHOD(method_python_interrupt);
METHOD(method_python_restart);

METHOD(method_tools_register);
METHOD(method_tools_unregister);
METHOD(method_tools_list);

METHOD(method_kv_get);
METHOD(method_kv_set);
METHOD(method_kv_delete);
METHOD(method_kv_keys);
METHOD(method_history_list);
METHOD(method_history_begin);
METHOD(method_history_end);
METHOD(method_audit_list);

METHOD(method_files_read);
METHOD(method_files_write);
METHOD(method_files_append);
METHOD(method_files_open);
METHOD(method_files_receive);
METHOD(method_files_list);
METHOD(method_files_glob);
METHOD(method_files_grep);
METHOD(method_files_stat);
METHOD(method_files_exists);
METHOD(method_files_mkdir);
METHOD(method_files_remove);
METHOD(method_files_move);
METHOD(method_files_copy);

METHOD(method_mount_list);
METHOD(method_mount_upload);
METHOD(method_mount_download);
METHOD(method_mount_delete);

/* Puts an answered call of the areas files and mount into the history, unless it is part of an act;
 * rpc_server_on_answer(). */
void method_note(RpcCall *call, const Error *error, void *data);

/* --- what files and mount have in common --- */

enum { METHOD_ANSWER_MAX = 900 * 1024 }; /* bytes of what an answer lists: it stays one line */

/* What the parameter called text, or base64, has; *ret is owned by the caller. */
int method_take_content(const RpcCall *call, const char *text, char **ret, size_t *ret_length,
                        Error *error);
/* Hands what the parameters content or base64 have to kind's function, as the work's content. */
int method_write_content(const Keeper *keeper, RpcCall *call, const FilesWorkKind *kind,
                         const char *path, unsigned mode, bool make_parents, Error *error);
/* Answers with the part of the file that offset and length say. */
int method_answer_content(const Keeper *keeper, RpcCall *call, const char *path, Error *error);
/* Answers with an fd of the file. */
int method_answer_fd(const Keeper *keeper, RpcCall *call, const char *path, Error *error);

/* Writes where the next page begins, or null, as the member key; and "missed", if the walk could
 * not look into some directory. */
void method_write_next(JsonWriter *w, const char *key, const FilesWork *work);

/* The names that process.signal takes, without SIG; NULL past the last. */
const char *method_signal_name(size_t i);

/* The parameters timeout_ms, output_max and keep, within what the policy gives. */
int method_take_limits(const Keeper *keeper, const RpcCall *call, uint64_t *ret_timeout,
                       size_t *ret_kept, bool *ret_keep_tail, Error *error);
/* What the parameter tools lets code call; until grant_end(). */
int method_take_grant(const Keeper *keeper, const RpcCall *call, struct Grant **ret, Error *error);
/* What was refused in the session while the process ran, or since denied_before was set. */
void method_write_denials(const Keeper *keeper, const Process *process, JsonWriter *w);
/* The answer's members of a process that has settled. */
void method_write_result(Keeper *keeper, const Process *process, WaitFor what, JsonWriter *w);
