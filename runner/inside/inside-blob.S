/* SPDX-License-Identifier: Apache-2.0 */
/* What of helpers/ is put into a session: python/ as it is, and the built holt-tool (tool.c). */
        .section .rodata

        .macro embed name, file
        .globl holt_inside_\name
        .globl holt_inside_\name\()_end
holt_inside_\name:
        .incbin "\file"
holt_inside_\name\()_end:
        .byte 0
        .endm

        embed interpreter, helpers/python/holt_interpreter.py
        embed displays, helpers/python/holt_displays.py
        embed hints, helpers/python/holt_hints.py
        embed loop, helpers/python/holt_loop.py
        embed packages, helpers/python/holt_packages.py
        embed state, helpers/python/holt_state.py
        embed tools, helpers/python/host_tools.py
        embed tool, HOLT_TOOL_PATH
        .section .note.GNU-stack, "", %progbits
