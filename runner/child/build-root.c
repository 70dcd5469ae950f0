/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the scratch, and all directories, files and mount points of the new root. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "child/build.h"

/* --- the scratch --- */

/* Keeps the mount namespace for the launcher. */
static int note_namespace(const Launch *launch, Error *error) {
        if (!launch_gives_root(launch))
                return 0;
        child_state.mounts_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        if (child_state.mounts_fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot open", "/proc/self/ns/mnt");
        return 0;
}

static int mount_scratch(const Launch *launch, Error *error) {
        char size[24], number[24];
        /* An inode takes kernel memory that the size does not count. So there is one for each 4
         * KiB, and at least 16,384. */
        const uint64_t inodes = launch->plan->tmp_size / 4096;
        const char *const options[] = {
                "mode",      "0755",
                "nr_inodes", build_decimal(inodes > 16384 ? inodes : 16384, number),
                "size",      build_decimal(launch->plan->tmp_size, size),
                NULL
        };
        const char *const unlimited[] = { "mode", "0755", NULL };
        int r = build_filesystem("tmpfs", launch->plan->tmp_size ? options : unlimited,
                                 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &child_state.scratch_fd,
                                 LAYER_MOUNT, error);

        return r < 0 ? r : build_attach(child_state.scratch_fd, AT_FDCWD, "/proc", error);
}

/* Makes the entries of the scratch, and clones the new root from one of them. */
static int fill_scratch(ChildState *state, Error *error) {
        int r = build_directory(state->scratch_fd, "root", 0755, error);

        if (r == 0)
                r = build_directory(state->scratch_fd, "hidden.d", 0, error);
        if (r == 0)
                r = build_stub(state->scratch_fd, "hidden", 0, error);
        if (r < 0)
                return r;
        state->root_fd = sys_open_tree(state->scratch_fd, "root",
                                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (state->root_fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot clone", "the new root");
        return build_attach(state->root_fd, state->scratch_fd, "root", error);
}

int build_scratch(Launch *launch, Error *error) {
        int r = note_namespace(launch, error);

        if (r == 0)
                r = mount_scratch(launch, error);
        return r < 0 ? r : fill_scratch(&child_state, error);
}

/* --- entries of the root --- */

static int make_nodes(const Launch *launch, int root_fd, Error *error) {
        (void)launch;
        for (size_t i = 0; i < tree_nodes_count; i++) {
                const TreeNode *node = &tree_nodes[i];
                int r = node->link ? build_link(root_fd, node->path, node->link, error)
                                   : build_directory(root_fd, node->path, 0755, error);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Copies a small file of the host's /etc, such as resolv.conf. It may be missing. */
static int copy_etc(int root_fd, const char *path, Error *error) {
        static char text[16 * 1024];
        char host[80] = "/";
        ssize_t n = -1;
        int fd;

        (void)strncat(host, path, sizeof(host) - 2);
        fd = open(host, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0)
                n = read(fd, text, sizeof(text));
        fd_close(fd);
        return build_write_text(root_fd, path, text, n > 0 ? (size_t)n : 0, error);
}

/* The lines that the plan appends to a file of /etc, or NULL. */
static const char *etc_more(const LaunchPlan *plan, const char *name) {
        return streq(name, "gitconfig") ? plan->gitconfig
               : streq(name, "hosts")   ? plan->hosts
                                        : NULL;
}

/* Adds a text, which may be NULL. */
static void etc_part(struct iovec *parts, int *count, const char *text) {
        if (text)
                parts[(*count)++] = (struct iovec){ (void *)(uintptr_t)text, strlen(text) };
}

/* Writes a file of /etc. Some texts are only for a host that has a certain program. The root of a
 * container image has its own programs, so these texts are left out there. The parts are not copied
 * together, because each new page of the stack takes time. */
static int make_etc_file(const LaunchPlan *plan, int root_fd, const TreeFile *file, Error *error) {
        const bool networked = file->networked && plan->network == NETWORK_ALLOW;
        struct iovec parts[3];
        char path[64] = "etc/";
        int count = 0;

        (void)strncat(path, file->name, sizeof(path) - 5);
        if (file->of_network && plan->network == NETWORK_HOST)
                return copy_etc(root_fd, path, error);
        etc_part(parts, &count, networked ? file->networked : file->text);
        if (file->program && !plan->rootfs.source && access(file->program, X_OK) == 0)
                etc_part(parts, &count, file->more);
        etc_part(parts, &count, etc_more(plan, file->name));
        return build_write_parts(root_fd, path, parts, count, error);
}

static int make_etc(const Launch *launch, int root_fd, Error *error) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < tree_etc_files_count; i++)
                r = make_etc_file(launch->plan, root_fd, &tree_etc_files[i], error);
        return r;
}

static int make_file(const PlanFile *file, int root_fd, Error *error) {
        const size_t length = (size_t)(strrchr(file->path, '/') - file->path);
        char directory[NAME_MAX + 1];
        int r;

        if (length >= sizeof(directory))
                return step_fail(error, LAYER_NONE, ENAMETOOLONG, "cannot write", file->path);
        memcpy(directory, file->path, length);
        directory[length] = '\0';
        r = build_target(root_fd, directory, true, error);
        return r < 0 ? r : build_write_text(root_fd, file->path, file->text, file->size, error);
}

static int make_files(const Launch *launch, int root_fd, Error *error) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < launch->plan->files_count; i++)
                r = make_file(&launch->plan->files[i], root_fd, error);
        return r;
}

static int make_devices(const Launch *launch, int root_fd, Error *error) {
        (void)launch;
        for (size_t i = 0; i < tree_devices_count; i++) {
                char path[32] = "dev/";
                int r;

                (void)strncat(path, tree_devices[i], sizeof(path) - 5);
                r = build_stub(root_fd, path, 0666, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int make_system(const Launch *launch, int root_fd, Error *error) {
        for (size_t i = 0; i < launch->system.count; i++) {
                const SystemEntry *entry = &launch->system.entries[i];
                int r;

                if (entry->masked)
                        continue;
                if (entry->link)
                        r = build_link(root_fd, entry->path, entry->link, error);
                else if (entry->directory)
                        r = build_directory(root_fd, entry->path, 0755, error);
                else
                        r = build_stub(root_fd, entry->path, 0644, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int make_mount_points(const Launch *launch, int root_fd, Error *error) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < launch->plan->mounts_count; i++) {
                const PlanMount *mount = &launch->plan->mounts[i];

                if (mount->flags & PLAN_IN_ROOT && !build_lasts(launch->plan, mount))
                        r = build_target(root_fd, mount->target + 1,
                                         plan_mount_is_private(mount) || mount->directory, error);
        }
        return r;
}

/* Everything that must exist before the root becomes read-only. */
static int (*const skeleton_steps[])(const Launch *launch, int root_fd, Error *error) = {
        make_nodes, make_etc, make_files, make_devices, make_system, make_mount_points,
};

int build_skeleton(Launch *launch, Error *error) {
        return RUN_STEPS(skeleton_steps, launch, child_state.root_fd, error);
}
