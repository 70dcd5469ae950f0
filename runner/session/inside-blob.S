/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers that run inside a session (helpers/python/), as they are. */
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
        embed packages, helpers/python/holt_packages.py
        embed tools, helpers/python/host_tools.py
        embed tool, helpers/bin/holt-tool
        .section .note.GNU-stack, "", %progbits
