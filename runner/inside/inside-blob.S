/* SPDX-License-Identifier: Apache-2.0 */
/* The files of helpers/ that are put into a session: the Python modules, and the built holt-tool. */
        .section .rodata

        .macro embed name, file
        .globl holt_inside_\name
        .globl holt_inside_\name\()_end
holt_inside_\name:
        .incbin "\file"
holt_inside_\name\()_end:
        .byte 0
        .endm

#define HELPER_MODULE(name, path) embed name, path
#include "helpers/modules.h"

        embed tool, HOLT_TOOL_PATH
        .section .note.GNU-stack, "", %progbits
