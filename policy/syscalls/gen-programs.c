/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time tool: prints syscalls-programs.c, the built-in programs and syscalls_builtin(). It
 * runs on the build machine, with the target's syscalls-numbers.c: nothing else depends on the
 * architecture. */
#include <stdio.h>

#include "policy/syscalls/table.h"

static int print_program(unsigned preset, bool notify) {
        static struct sock_filter filter[SYSCALLS_PROGRAM_MAX];
        unsigned short length;
        Error error;

        if (syscalls_compile(preset, notify, NULL, NULL, filter, SYSCALLS_PROGRAM_MAX, &length,
                             &error) < 0) {
                (void)fprintf(stderr, "gen-programs: %s\n", error.text);
                return -1;
        }
        printf("\nstatic const struct sock_filter program_%u_%d[] = {\n", preset, notify);
        for (unsigned i = 0; i < length; i++)
                printf("        { 0x%02x, %u, %u, 0x%08x },\n", filter[i].code, filter[i].jt,
                       filter[i].jf, filter[i].k);
        printf("};\n");
        return 0;
}

int main(void) {
        printf("/* Made by policy/syscalls/gen-programs.c. */\n"
               "#include \"policy/syscalls/table.h\"\n");
        for (unsigned preset = 0; preset < SYSCALLS_PRESET_MAX; preset++)
                if (print_program(preset, false) < 0 || print_program(preset, true) < 0)
                        return 1;
        printf("\nstatic const SyscallProgram programs[SYSCALLS_PRESET_MAX][2] = {\n");
        for (unsigned preset = 0; preset < SYSCALLS_PRESET_MAX; preset++)
                printf("        { { program_%u_0, ELEMENTSOF(program_%u_0) },\n"
                       "          { program_%u_1, ELEMENTSOF(program_%u_1) } },\n",
                       preset, preset, preset, preset);
        printf("};\n\n"
               "SyscallProgram syscalls_builtin(unsigned preset, bool notify) {\n"
               "        assert(preset < SYSCALLS_PRESET_MAX);\n"
               "        return programs[preset][notify];\n"
               "}\n");
        return fflush(stdout) == 0 ? 0 : 1;
}
