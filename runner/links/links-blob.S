/* SPDX-License-Identifier: Apache-2.0 */
/* The built holt-links. It is empty if the build could not link it statically. */
        .section .rodata
        .balign 64
        .globl holt_links_start
        .globl holt_links_end
holt_links_start:
#ifdef HOLT_LINKS_PATH
        .incbin HOLT_LINKS_PATH
#endif
holt_links_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
