/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/layers.h"

#include <stdio.h>
#include <string.h>

#include "base/strings.h"

const LayerInfo layer_table[LAYER_MAX] = {
        [LAYER_NONE] = { "none", false, "no layer" },
        [LAYER_USER] = { "user", false, "user namespace: an identity without privilege" },
        [LAYER_MOUNT] = { "mount", false, "mount namespace: a file tree of its own" },
        [LAYER_PID] = { "pid", false, "pid namespace: sees and signals only its own processes" },
        [LAYER_NET] = { "net", true, "network namespace: no address, no host loopback" },
        [LAYER_IPC] = { "ipc", true, "IPC namespace: no System V objects or queues of the host" },
        [LAYER_UTS] = { "uts", true, "UTS namespace: a host name of its own" },
        [LAYER_CGROUP] = { "cgroup", true, "cgroup namespace: the host's cgroup paths are hidden" },
        [LAYER_PROC] = { "proc", true, "a /proc of its own, with its dangerous parts covered" },
        [LAYER_DEV] = { "dev", false, "a private /dev with terminals of its own" },
        [LAYER_IDMAP] = { "idmap", true,
                          "an unprivileged uid and id-mapped mounts, if root runs holt" },
        [LAYER_LANDLOCK] = { "landlock", true,
                             "Landlock: checks again which paths can be written, and keeps signals "
                             "inside" },
        [LAYER_CAPABILITIES] = { "capabilities", false, "empty capability sets and no_new_privs" },
        [LAYER_SECCOMP] = { "seccomp", true, "an allowlist of system calls" },
        [LAYER_NOTIFY] = { "notify", true, "denied system calls are reported by name" },
        [LAYER_LIMITS] = { "limits", true, "resource limits" },
};

Layer layer_from_name(const char *name) {
        for (Layer layer = LAYER_USER; layer < LAYER_MAX; layer++)
                if (streq(layer_table[layer].name, name))
                        return layer;
        return LAYER_NONE;
}

int layers_degraded(const StrList *layers, unsigned *ret, Error *reterr) {
        for (size_t i = 0; i < layers->count; i++) {
                const char *name = layers->items[i];
                Layer layer = layer_from_name(name);
                char quoted[80], names[256] = "";

                if (layer != LAYER_NONE && layer_table[layer].degradable) {
                        *ret |= LAYER_BIT(layer);
                        continue;
                }
                for (Layer l = LAYER_USER; l < LAYER_MAX; l++)
                        if (layer_table[l].degradable)
                                (void)snprintf(names + strlen(names), sizeof(names) - strlen(names),
                                               " %s", layer_table[l].name);
                (void)str_quote(name, quoted, sizeof(quoted));
                return error_set(reterr, ERROR_USAGE, 0,
                                 "allow_degraded: \"%s\" is not a layer that may be missing; "
                                 "choose from:%s",
                                 quoted, names);
        }
        return 0;
}
