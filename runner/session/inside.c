/* SPDX-License-Identifier: Apache-2.0 */
#include "session/inside.h"

#include "session/bridge.h"
#include "session/interpreter.h"

extern const char holt_inside_interpreter[], holt_inside_interpreter_end[];
extern const char holt_inside_packages[], holt_inside_packages_end[];
extern const char holt_inside_displays[], holt_inside_displays_end[];
extern const char holt_inside_hints[], holt_inside_hints_end[];
extern const char holt_inside_loop[], holt_inside_loop_end[];
extern const char holt_inside_state[], holt_inside_state_end[];
extern const char holt_inside_tools[], holt_inside_tools_end[];
extern const char holt_inside_tool[], holt_inside_tool_end[];

static const struct {
        const char *path, *begin, *end;
        unsigned mode;
} files_inside[] = {
        { INTERPRETER_MODULE, holt_inside_interpreter, holt_inside_interpreter_end, 0644 },
        { INTERPRETER_PACKAGES, holt_inside_packages, holt_inside_packages_end, 0644 },
        { INTERPRETER_DISPLAYS, holt_inside_displays, holt_inside_displays_end, 0644 },
        { INTERPRETER_HINTS, holt_inside_hints, holt_inside_hints_end, 0644 },
        { INTERPRETER_LOOP, holt_inside_loop, holt_inside_loop_end, 0644 },
        { INTERPRETER_STATE, holt_inside_state, holt_inside_state_end, 0644 },
        { BRIDGE_DIRECTORY "/python/host_tools.py", holt_inside_tools, holt_inside_tools_end,
          0644 },
        { BRIDGE_DIRECTORY "/bin/holt-tool", holt_inside_tool, holt_inside_tool_end, 0755 },
};

int inside_write(Files *files, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(files_inside); i++)
                r = files_write(files, files_inside[i].path, files_inside[i].begin,
                                (size_t)(files_inside[i].end - files_inside[i].begin),
                                files_inside[i].mode, true, reterr);
        return r;
}
