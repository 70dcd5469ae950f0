/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a sandbox by name, for --allow-degraded, reports and holt doctor. */
#pragma once

#include <stdbool.h>

#include "base/strings.h"

typedef enum Layer {
        LAYER_NONE, /* for an error that belongs to no layer */
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
        bool degradable;  /* --allow-degraded may name it; every sandbox needs the others */
        const char *what; /* the protection it gives, for people */
} LayerInfo;

extern const LayerInfo layer_table[LAYER_MAX];

#define LAYER_BIT(layer) (1U << (layer))

/* The layer with that name, or LAYER_NONE. */
Layer layer_from_name(const char *name);

/* Adds the LAYER_BITs of the names in layers to *ret. Returns 0, or -EINVAL if a name is not
 * that of a degradable layer. */
int layers_degraded(const StrList *layers, unsigned *ret, Error *reterr);
