/* SPDX-License-Identifier: Apache-2.0 */
/* Binds and overlays of a tree that is being assembled. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "child/assemble.h"

/* sys/mount.h and linux/mount.h cannot be included together. */
#define MS_RDONLY_FLAG 1UL
#define MS_NOSUID_FLAG 2UL
#define MS_NODEV_FLAG 4UL

/* --- writable mounts --- */

void assemble_note_writable(int fd) {
        if (child_state.writable_count == ELEMENTSOF(child_state.writable_fds)) {
                assemble_state.everything = true;
                fd_close(fd);
                return;
        }
        child_state.writable_fds[child_state.writable_count++] = fd;
}

/* --- sources --- */

/* The path of the descriptor's directory or file. The mount of a descriptor that comes from outside
 * cannot be cloned here, so the path is opened again, and must lead to the same file. */
static int source_of_fd(const AssemblyStep *step, char path[PATH_MAX], Error *error) {
        char link[40] = "self/fd/", number[24];
        ssize_t n;

        (void)strncat(link, build_decimal((uint64_t)step->fd, number), 24);
        n = readlinkat(assemble_state.proc_fd, link, path, PATH_MAX - 1);
        if (n <= 0 || path[0] != '/')
                return assemble_fail(step, n < 0 ? errno : ENOENT,
                                     "cannot find the path of descriptor",
                                     build_decimal((uint64_t)step->fd, number), error);
        path[n] = '\0';
        return 0;
}

static int source_is_same(const AssemblyStep *step, int fd, const char *path, Error *error) {
        struct stat a, b;

        if (step->fd < 0)
                return 0;
        if (fstat(fd, &a) < 0 || fstat(step->fd, &b) < 0 || a.st_dev != b.st_dev ||
            a.st_ino != b.st_ino)
                return assemble_fail(step, ESTALE, "the descriptor no longer refers to", path,
                                     error);
        return 0;
}

static int source_open(AssemblyStep *step, Error *error) {
        char own[PATH_MAX];
        const char *path = step->source;
        int r = 0;

        if (step->fd >= 0) {
                r = source_of_fd(step, own, error);
                path = own;
        }
        if (r < 0)
                return r;
        step->mount_fd = sys_open_tree(AT_FDCWD, path,
                                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        if (step->mount_fd < 0 && errno == ENOENT && step->flags & ASSEMBLY_OPTIONAL)
                return 0;
        if (step->mount_fd < 0)
                return assemble_fail(step, errno, "cannot open the source", path, error);
        return source_is_same(step, step->mount_fd, path, error);
}

/* Without PIDs of its own, the sandbox gets the /proc of the caller's. The kernel refuses a new one
 * for these to a user namespace. */
static int source_open_proc(AssemblyStep *step, Error *error) {
        step->mount_fd = sys_open_tree(AT_FDCWD, "/proc",
                                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        return step->mount_fd < 0
                       ? assemble_fail(step, errno, "cannot mount proc at", step->target, error)
                       : 0;
}

/* Each source needs a descriptor, and the usual limit is 1,024. assemble_end() takes the old limit
 * back. */
static void sources_make_room(const Assembly *a) {
        struct rlimit files;

        if (getrlimit(RLIMIT_NOFILE, &files) < 0 || a->count + 64 < files.rlim_cur)
                return;
        assemble_state.files = files.rlim_cur;
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
}

/* Clones all sources. One may lie in the host's /proc, so this comes before the scratch covers
 * /proc. */
int assemble_sources(Launch *launch, Error *error) {
        Assembly *a = launch->plan->assembly;
        int r = 0;

        sources_make_room(a);
        for (size_t i = 0; r == 0 && i < a->count; i++) {
                AssemblyStep *step = &a->steps[i];

                step->mount_fd = FD_NONE;
                if (step->kind == ASSEMBLY_BIND)
                        r = source_open(step, error);
                else if (step->kind == ASSEMBLY_PROC && !assembly_has_own_pids(a))
                        r = source_open_proc(step, error);
        }
        return r;
}

/* --- binds --- */

int assemble_bind(Assembly *a, AssemblyStep *step, Error *error) {
        MountAttr attr = { .attr_set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE_FLAG };
        const int fd = step->mount_fd;
        struct stat st;
        int r;

        (void)a;
        if (fd < 0)
                return 0;
        if (!(step->flags & ASSEMBLY_DEVICES))
                attr.attr_set |= MOUNT_ATTR_NODEV;
        if (step->flags & ASSEMBLY_READ_ONLY)
                attr.attr_set |= MOUNT_ATTR_RDONLY;
        if (fstat(fd, &st) < 0 ||
            sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
                return assemble_fail(step, errno, "cannot bind to", step->target, error);
        r = assemble_attach(step, fd, S_ISDIR(st.st_mode), error);
        if (r == 0 && !(step->flags & ASSEMBLY_READ_ONLY))
                assemble_note_writable(fd);
        else
                fd_close(fd);
        return r;
}

int assemble_remount(Assembly *a, AssemblyStep *step, Error *error) {
        const MountAttr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        _cleanup_close_ int fd = assemble_open(step->target, O_PATH);

        (void)a;
        return fd < 0 || sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0
                       ? assemble_fail(step, errno, "cannot make read-only:", step->target, error)
                       : 0;
}

/* --- overlays --- */

/* The options of an overlay, as mount(2) takes them. */
typedef struct OverlayText {
        char text[4096]; /* the kernel accepts a page */
        size_t length;
        bool full;
} OverlayText;

static void overlay_put(OverlayText *o, char c) {
        if (o->length + 1 < sizeof(o->text))
                o->text[o->length++] = c;
        else
                o->full = true;
        o->text[o->length] = '\0';
}

static void overlay_add(OverlayText *o, const char *text) {
        for (; *text; text++)
                overlay_put(o, *text);
}

/* Adds a path, in which ":" and "," have a meaning for overlayfs. */
static void overlay_add_path(OverlayText *o, const char *path) {
        for (; *path; path++) {
                if (strchr("\\:,", *path))
                        overlay_put(o, '\\');
                overlay_put(o, *path);
        }
}

/* The layers before the step: the last one is on top, and overlayfs wants it first. */
static void overlay_add_layers(OverlayText *o, const Assembly *a, size_t number) {
        overlay_add(o, "lowerdir=");
        for (size_t i = number; i > 0 && a->steps[i - 1].kind == ASSEMBLY_LAYER; i--) {
                if (i < number)
                        overlay_put(o, ':');
                overlay_add_path(o, a->steps[i - 1].source);
        }
}

/* A directory of the scratch, which covers the host's /proc. Returns its path. */
static const char *overlay_scratch(char path[48], const char *name, size_t number, Error *error) {
        char digits[24];

        path[0] = '\0';
        (void)strncat(path, "/proc/", 7);
        (void)strncat(path, name, 16);
        (void)strncat(path, build_decimal(number, digits), 24);
        return build_directory(child_state.scratch_fd, path + 6, 0755, error) < 0 ? NULL : path;
}

static int overlay_fill(OverlayText *o, const Assembly *a, size_t number, Error *error) {
        const AssemblyStep *step = &a->steps[number];
        char upper[48], work[48];
        const char *up = step->source, *dir = step->work;

        overlay_add_layers(o, a, number);
        if (step->flags & ASSEMBLY_PRIVATE) {
                up = overlay_scratch(upper, "upper-", number, error);
                dir = overlay_scratch(work, "work-", number, error);
                if (!up || !dir)
                        return -EIO;
        }
        if (up) {
                overlay_add(o, ",upperdir=");
                overlay_add_path(o, up);
                overlay_add(o, ",workdir=");
                overlay_add_path(o, dir);
        }
        /* Without this, overlayfs needs a capability of the host for its notes (Linux 5.11). */
        overlay_add(o, ",userxattr");
        return o->full ? assemble_fail(step, ENAMETOOLONG, "cannot mount an overlay at",
                                       step->target, error)
                       : 0;
}

int assemble_overlay(Assembly *a, AssemblyStep *step, Error *error) {
        static OverlayText options;
        const size_t number = (size_t)(step - a->steps);
        char place[48];
        unsigned long flags = MS_NOSUID_FLAG | MS_NODEV_FLAG;
        int fd, r;

        options.length = 0;
        options.full = false;
        if (!overlay_scratch(place, "overlay-", number, error))
                return -error->errnum;
        r = overlay_fill(&options, a, number, error);
        if (r < 0)
                return r;
        if (step->flags & ASSEMBLY_READ_ONLY)
                flags |= MS_RDONLY_FLAG;
        if (syscall(SYS_mount, "overlay", place, "overlay", flags, options.text) < 0)
                return assemble_fail(step, errno, "cannot mount an overlay at", step->target,
                                     error);
        fd = sys_open_tree(child_state.scratch_fd, place + 6, OPEN_TREE_CLOEXEC);
        if (fd < 0)
                return assemble_fail(step, errno, "cannot mount an overlay at", step->target,
                                     error);
        r = assemble_attach(step, fd, true, error);
        if (r == 0 && !(step->flags & ASSEMBLY_READ_ONLY))
                assemble_note_writable(fd);
        return r;
}
