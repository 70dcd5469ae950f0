/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a sandbox by name: what --allow-degraded takes, what a report lists, what doctor
 * tries. */
#pragma once

#include <stdbool.h>

#include "base/strings.h"

typedef enum Layer {
        LAYER_NONE, /* an error that belongs to no layer */
        LAYER_USER,
        LAYER_MOUNT,
        LAYER_PID,
        LAYER_NET,
        LAYER_IPC,
        LAYER_UTS,
        LAYER_CGROUP,
        LAYER_PROC,
        LAYER_DEV,
        LAYER_IDMAP,
        LAYER_LANDLOCK,
        LAYER_CAPABILITIES,
        LAYER_SECCOMP,
        LAYER_NOTIFY,
        LAYER_LIMITS,
        LAYER_MAX,
} Layer;

typedef struct LayerInfo {
        const char *name;
        bool degradable;  /* whether --allow-degraded may name it: the others carry the rest */
        const char *what; /* what it gives, for people */
} LayerInfo;

extern const LayerInfo layer_table[LAYER_MAX];

#define LAYER_BIT(layer) (1U << (layer))

/* The layer called name, or LAYER_NONE. */
Layer layer_from_name(const char *name);

/* The LAYER_BITs of what --allow-degraded was given, added to *ret. 0, or -EINVAL for what is no
 * layer that can be left out. */
int layers_degraded(const StrList *layers, unsigned *ret, Error *reterr);
