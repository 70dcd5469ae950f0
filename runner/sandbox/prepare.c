/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files that a plan names, once, and decides everything that depends on the host. After
 * this, only files of root are looked up by name, and the child checks that it finds the same files
 * again. reach/system-tree.c handles the system, and prepare-mounts.c the caller's mounts. */
#include "sandbox/prepare.h"

#include <errno.h>
#include <sys/sysinfo.h>

#include "child/identity.h"
#include "child/landlock.h"
#include "child/limits.h"
#include "guards/guards.h"
#include "guards/hidden.h"
#include "guards/inputs.h"
#include "guards/watch.h"
#include "reach/own-store.h"
#include "sandbox/shown-limits.h"
#include "sandbox/stdio-files.h"

static int check_landlock(Launch *launch, Error *reterr) {
        LandlockMode mode = launch->plan->landlock;
        int abi = mode == LANDLOCK_OFF ? 0 : landlock_abi();

        if (mode == LANDLOCK_OFF)
                launch->layers.switched_off |= LAYER_BIT(LAYER_LANDLOCK);
        if (launch->layers.missing & LAYER_BIT(LAYER_LANDLOCK))
                return 0;
        if (abi >= LANDLOCK_ABI_NEEDED) {
                launch->layers.landlock_abi = abi;
                return 0;
        }
        if (mode != LANDLOCK_REQUIRE)
                return 0;
        return error_layer(reterr, LAYER_LANDLOCK, abi ? 0 : ENOSYS,
                           abi ? "this kernel's Landlock has ABI 1, which refuses every rename "
                                 "between directories"
                               : "this kernel has no Landlock in force");
}

/* The layer is also missing if the host refuses it, and the caller allowed that. */
static int check_network(Launch *launch, Error *reterr) {
        (void)reterr;
        if (launch->plan->network == NETWORK_HOST)
                launch->layers.switched_off |= LAYER_BIT(LAYER_NET);
        return 0;
}

/* Bounds the private memory to half of the machine's, like the kernel's own default for a tmpfs. */
static void bound_memory(LaunchPlan *plan) {
        struct sysinfo info;
        uint64_t half;

        if (sysinfo(&info) < 0)
                return;
        half = (uint64_t)info.totalram * info.mem_unit / 2;
        if (plan->tmp_size > half)
                plan->tmp_size = half;
}

static int prepare_limits(Launch *launch, Error *reterr) {
        (void)reterr;
        bound_memory(launch->plan);
        if (!(launch->layers.missing & LAYER_BIT(LAYER_LIMITS)))
                limits_bound(launch->plan);
        shown_limits_read("", launch->plan->memory, &launch->limits);
        return 0;
}

static int prepare_tree(Launch *launch, Error *reterr) {
        int r = prepare_rootfs(launch->plan, reterr);

        return r < 0 ? r
                     : system_tree_find(launch->plan, launch->identity.from_root, &launch->system,
                                        reterr);
}

static int prepare_hiding(Launch *launch, Error *reterr) {
        int r = hidden_globs_prepare(launch->plan, reterr);

        if (r == 0)
                r = hidden_prepare(launch->plan, reterr);
        if (r == 0)
                r = prepare_report(launch, reterr);
        return r == 0 ? own_store_hide(launch->plan, &launch->system, launch->identity.from_root,
                                       reterr)
                      : r;
}

static int prepare_guards(Launch *launch, Error *reterr) {
        const PlanMount *workspace = plan_workspace(launch->plan);
        int r;

        if (workspace)
                launch->workspace_fd = workspace->fd;
        r = guards_prepare(launch->plan, reterr);
        if (r == 0)
                r = inputs_protect(launch->plan, reterr);
        return r == 0 ? watch_new(launch->plan, &launch->system, &launch->watch, reterr) : r;
}

/* The order matters: each step uses files that earlier ones have opened. */
static int (*const prepare_steps[])(Launch *launch, Error *reterr) = {
        identity_choose, prepare_limits, prepare_tree,  prepare_mounts,     prepare_hiding,
        prepare_guards,  check_landlock, check_network, stdio_files_shield,
};

int prepare_all(Launch *launch, Error *reterr) {
        return RUN_STEPS(prepare_steps, launch, reterr);
}
