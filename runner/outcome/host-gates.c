/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/host-gates.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/strings.h"
#include "policy/syscalls/syscalls.h"

/* If the setting has at least the value `closed`, the host refuses the call to a user without
 * capabilities. */
static const struct {
        const char *call, *setting;
        long closed;
        const char *why;
} gates[] = {
        { "bpf", "/proc/sys/kernel/unprivileged_bpf_disabled", 1,
          "this host allows it to root only (sysctl kernel.unprivileged_bpf_disabled)" },
        { "io_uring_setup", "/proc/sys/kernel/io_uring_disabled", 1,
          "this host has switched it off (sysctl kernel.io_uring_disabled)" },
        { "perf_event_open", "/proc/sys/kernel/perf_event_paranoid", 3,
          "this host allows it to root only (sysctl kernel.perf_event_paranoid)" },
        { "ptrace", "/proc/sys/kernel/yama/ptrace_scope", 3,
          "this host has switched it off (sysctl kernel.yama.ptrace_scope)" },
};

static bool noted, closed[ELEMENTSOF(gates)];

static bool gate_is_closed(const char *setting, long limit) {
        _cleanup_close_ int fd = open(setting, O_RDONLY | O_CLOEXEC);
        char text[24] = "";

        return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strtol(text, NULL, 10) >= limit;
}

void host_gates_note(void) {
        for (size_t i = 0; i < ELEMENTSOF(gates); i++)
                closed[i] = gate_is_closed(gates[i].setting, gates[i].closed);
        noted = true;
}

const char *host_gate_why(unsigned nr) {
        const char *name = syscall_name(nr);

        if (!noted)
                host_gates_note();
        for (size_t i = 0; name && i < ELEMENTSOF(gates); i++)
                if (closed[i] && streq(gates[i].call, name))
                        return gates[i].why;
        return NULL;
}
