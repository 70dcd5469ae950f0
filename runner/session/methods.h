/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of methods (methods.c), and the functions in it by their area. data is the Keeper.
 */
#pragma once

#include "session/keeper.h"

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
METHOD(method_process_kill);
METHOD(method_process_wait);
METHOD(method_process_watch);
METHOD(method_process_unwatch);

METHOD(method_kv_get);
METHOD(method_kv_set);
METHOD(method_kv_delete);
METHOD(method_kv_keys);
METHOD(method_history_list);
METHOD(method_audit_list);

/* The answer's members of a process that has settled. */
void method_write_result(Keeper *keeper, const Process *process, bool output, JsonWriter *w);
