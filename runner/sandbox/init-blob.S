/* SPDX-License-Identifier: Apache-2.0 */
/* The built init (helpers/init.c). */
        .section .rodata
        .balign 64
        .globl holt_init_start
        .globl holt_init_end
holt_init_start:
        .incbin HOLT_INIT_PATH
holt_init_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
