/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files that a plan names, once, and decides everything that depends on the host. After
 * this, only files of root are looked up by name, and the child checks that it finds the same files
 * again. This file handles the system; prepare-mounts.c handles the caller's mounts. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "base/sys.h"
#include "child/identity.h"
#include "child/landlock.h"
#include "child/limits.h"
#include "guards/guards.h"
#include "guards/hidden.h"
#include "guards/inputs.h"
#include "guards/watch.h"
#include "reach/own-store.h"
#include "sandbox/prepare.h"
#include "sandbox/stdio-files.h"

enum { TEXT_MAX = 16 * 1024 }; /* Bytes. A longer file of /etc is mounted instead of copied. */

/* --- the system tree --- */

static SystemEntry *prepare_add_entry(Launch *launch, const char *prefix, const char *name) {
        SystemEntry *entry = &launch->system.entries[launch->system.count];

        *entry = (SystemEntry){ .path = str_format("%s%s", prefix, name) };
        if (!entry->path)
                return NULL;
        launch->system.count++;
        return entry;
}

static char *prepare_read_link(int dir_fd, const char *name) {
        char buf[PATH_MAX];
        ssize_t n = readlinkat(dir_fd, name, buf, sizeof(buf) - 1);

        return n < 0 ? NULL : strndup(buf, (size_t)n);
}

/* Returns the text of a small file that everybody may read. Returns NULL if the file must be
 * mounted. */
static char *read_small(int dir_fd, const char *name, const struct stat *st, size_t *ret_size) {
        _cleanup_close_ int fd = FD_NONE;
        _cleanup_free_ char *text = NULL;
        ssize_t n;

        if (!S_ISREG(st->st_mode) || st->st_size > TEXT_MAX || !(st->st_mode & S_IROTH))
                return NULL;
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        text = malloc((size_t)st->st_size + 1);
        if (fd < 0 || !text)
                return NULL;
        n = read(fd, text, (size_t)st->st_size);
        if (n < 0)
                return NULL;
        *ret_size = (size_t)n;
        return TAKE_PTR(text);
}

/* Notes the entry of the host called name, if it exists. */
static int prepare_look_at(Launch *launch, int dir_fd, const char *prefix, const char *name,
                           Error *reterr) {
        SystemEntry *entry;
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        entry = prepare_add_entry(launch, prefix, name);
        if (!entry)
                return error_oom(reterr);
        entry->directory = S_ISDIR(st.st_mode);
        if (S_ISLNK(st.st_mode)) {
                entry->link = prepare_read_link(dir_fd, name);
                return entry->link ? 0 : error_oom(reterr);
        }
        if (prefix[0])
                entry->text = read_small(dir_fd, name, &st, &entry->size);
        return 0;
}

static int look_at_etc(Launch *launch, int tree_fd, Error *reterr) {
        /* If the caller passes the tree, its /etc may be a symlink, which must not be followed to
         * the host's. */
        _cleanup_close_ int fd = openat(tree_fd, "etc",
                                        O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = 0;

        for (size_t i = 0; fd >= 0 && r == 0 && i < tree_etc_count; i++)
                r = prepare_look_at(launch, fd, "etc/", tree_etc[i], reterr);
        return r;
}

static int prepare_system(Launch *launch, Error *reterr) {
        const PlanMount *rootfs = &launch->plan->rootfs;
        _cleanup_close_ int tree_fd = rootfs->source ? fcntl(rootfs->fd, F_DUPFD_CLOEXEC, 0)
                                                     : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r = 0;

        if (tree_fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot open the system tree");
        launch->system.entries = calloc(tree_system_count + tree_etc_count,
                                        sizeof(*launch->system.entries));
        if (!launch->system.entries)
                return error_oom(reterr);
        for (size_t i = 0; r == 0 && i < tree_system_count; i++)
                r = prepare_look_at(launch, tree_fd, "", tree_system[i], reterr);
        if (r == 0 && launch->system.count == 0)
                r = error_set(reterr, ERROR_POLICY, 0,
                              "%s: it contains neither usr nor bin; name the top of a system tree",
                              rootfs->origin);
        return r < 0 ? r : look_at_etc(launch, tree_fd, reterr);
}

/* --- together --- */

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

static int prepare_identity(Launch *launch, Error *reterr) {
        int r = identity_choose(launch, reterr);

        launch->identity.id_mapped = launch->identity.from_root;
        return r;
}

static int prepare_limits(Launch *launch, Error *reterr) {
        (void)reterr;
        bound_memory(launch->plan);
        if (!(launch->layers.missing & LAYER_BIT(LAYER_LIMITS)))
                limits_bound(launch->plan);
        return 0;
}

static int prepare_tree(Launch *launch, Error *reterr) {
        int r = prepare_rootfs(launch->plan, reterr);

        return r == 0 ? prepare_system(launch, reterr) : r;
}

static int prepare_hiding(Launch *launch, Error *reterr) {
        int r = hidden_prepare(launch->plan, reterr);

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
        prepare_identity, prepare_limits, prepare_tree,   prepare_mounts,
        prepare_hiding,   prepare_guards, check_landlock, stdio_files_shield,
};

int prepare_all(Launch *launch, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(prepare_steps); i++)
                r = prepare_steps[i](launch, reterr);
        return r;
}
