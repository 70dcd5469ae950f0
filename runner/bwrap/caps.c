/* SPDX-License-Identifier: Apache-2.0 */
#include "bwrap/caps.h"

#include <strings.h>

/* In the order of linux/capability.h; the index is the number. */
static const char *const names[] = {
        "chown",
        "dac_override",
        "dac_read_search",
        "fowner",
        "fsetid",
        "kill",
        "setgid",
        "setuid",
        "setpcap",
        "linux_immutable",
        "net_bind_service",
        "net_broadcast",
        "net_admin",
        "net_raw",
        "ipc_lock",
        "ipc_owner",
        "sys_module",
        "sys_rawio",
        "sys_chroot",
        "sys_ptrace",
        "sys_pacct",
        "sys_admin",
        "sys_boot",
        "sys_nice",
        "sys_resource",
        "sys_time",
        "sys_tty_config",
        "mknod",
        "lease",
        "audit_write",
        "audit_control",
        "setfcap",
        "mac_override",
        "mac_admin",
        "syslog",
        "wake_alarm",
        "block_suspend",
        "audit_read",
        "perfmon",
        "bpf",
        "checkpoint_restore",
};

int bwrap_capability(const char *name, uint64_t *ret, Error *reterr) {
        if (strcasecmp(name, "ALL") == 0) {
                *ret = UINT64_MAX;
                return 0;
        }
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strncasecmp(name, "cap_", 4) == 0 && strcasecmp(name + 4, names[i]) == 0) {
                        *ret = 1ULL << i;
                        return 0;
                }
        return error_set(reterr, ERROR_USAGE, 0, "unknown cap: %s", name);
}
