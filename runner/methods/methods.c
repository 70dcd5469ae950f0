/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of methods, used by the command line, `holt serve`, the SDKs and adapters. Its rows
 * are beside their functions, one file for each area. */
#include "methods/area.h"
#include "methods/stored.h"

#include <string.h>

static const MethodArea *const areas[] = {
        &method_allow_area,   &method_attend_area,      &method_data_area,   &method_exec_area,
        &method_process_area, &method_process_act_area, &method_python_area, &method_tools_area,
        &method_files_area,   &method_files_write_area, &method_mount_area,  &method_ports_area,
        &method_links_area,   &method_routes_area,      &method_shell_area,
};

enum { METHODS_MAX = 128 };

/* Finds a forgotten table as soon as any program with methods starts. */
static void area_check(const MethodArea *area) {
        for (size_t i = 0; i < area->count; i++) {
                const RpcMethod *method = &area->methods[i];

                assert(method->name && method->help && method->result && method->function);
                assert(method->example.params && method->example.result);
                (void)method;
        }
}

const RpcMethod *session_methods(size_t *ret_count) {
        static RpcMethod all[METHODS_MAX];
        static size_t count;
        const size_t areas_count = count > 0 ? 0 : ELEMENTSOF(areas);

        for (size_t i = 0; i < areas_count; i++) {
                if (areas[i]->prepare)
                        areas[i]->prepare();
                area_check(areas[i]);
                assert(count + areas[i]->count <= METHODS_MAX);
                memcpy(all + count, areas[i]->methods, areas[i]->count * sizeof(*all));
                count += areas[i]->count;
        }
        *ret_count = count;
        return all;
}

/* For a session at rest, only these methods need a reader: the database answers the others. */
const RpcMethod *reader_methods(size_t *ret_count) {
        static RpcMethod rows[METHODS_MAX];
        size_t all_count, count = 0;
        const RpcMethod *all = session_methods(&all_count);

        for (size_t i = 0; i < all_count; i++) {
                const bool shows = streq(all[i].name, "session.show");

                if (!stored_reads_files(&all[i]) && !shows)
                        continue;
                rows[count] = all[i];
                if (shows)
                        rows[count].function = stored_show_plan;
                count++;
        }
        *ret_count = count;
        return rows;
}
