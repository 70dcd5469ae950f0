/* SPDX-License-Identifier: Apache-2.0 */
/* The built init (helpers/init.c), the reaper of "holt bwrap" (helpers/reaper.c), and for holt-full
 * the init of sessions (helpers/session-init.c). */
        .section .rodata
        .balign 64
        .globl holt_init_start
        .globl holt_init_end
holt_init_start:
        .incbin HOLT_INIT_PATH
holt_init_end:
        .byte 0
        .balign 64
        .globl holt_reaper_start
        .globl holt_reaper_end
holt_reaper_start:
        .incbin HOLT_REAPER_PATH
holt_reaper_end:
        .byte 0
#ifdef HOLT_SESSION_INIT_PATH
        .balign 64
        .globl holt_session_init_start
        .globl holt_session_init_end
holt_session_init_start:
        .incbin HOLT_SESSION_INIT_PATH
holt_session_init_end:
        .byte 0
#endif
        .section .note.GNU-stack, "", %progbits
