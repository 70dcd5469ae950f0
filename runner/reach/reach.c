/* SPDX-License-Identifier: Apache-2.0 */
#include "reach/reach.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/paths.h"
#include "base/sys.h"
#include "reach/mount-layers.h"
#include "reach/mount-table.h"

enum {
        LINKS_MAX = 40, /* The kernel's own limit. */
        LAYERS_MAX = 4, /* Overlays on top of each other; the kernel allows 2. */
};

/* A directory of a file system below which the sandbox can write. */
typedef struct Tree {
        const PlanMount *mount;
        dev_t device;
        char *path;   /* Path in the file system. */
        char *inside; /* Path inside. */
} Tree;

struct Reach {
        const LaunchPlan *plan;
        bool all; /* Read-only mounts are included. */
        MountTable *mounts;
        MountStacks *stacks;
        Tree *trees;
        size_t count;
        bool incomplete; /* The source of a mount cannot be reached any more. */
};

/* --- writable places --- */

Reach *reach_free(Reach *reach) {
        if (!reach)
                return NULL;
        for (size_t i = 0; i < reach->count; i++) {
                free(reach->trees[i].path);
                free(reach->trees[i].inside);
        }
        free(reach->trees);
        mount_stacks_free(reach->stacks);
        mount_table_free(reach->mounts);
        free(reach);
        return NULL;
}

static int add_uppers(Reach *reach, const PlanMount *mount, dev_t device, const char *path,
                      const char *inside, unsigned depth);

/* Adds a tree. If it is on an overlay, adds the writable layer as well. Takes ownership of inside
 * in every case. */
static int reach_add_tree(Reach *reach, const PlanMount *mount, dev_t device, const char *path,
                          char *inside, unsigned depth) {
        Tree *trees = reallocarray(reach->trees, reach->count + 1, sizeof(*trees));
        char *copy = strdup(path);

        if (trees)
                reach->trees = trees;
        if (!trees || !copy || !inside) {
                free(copy);
                free(inside);
                return -ENOMEM;
        }
        trees[reach->count++] = (Tree){ mount, device, copy, inside };
        return depth < LAYERS_MAX ? add_uppers(reach, mount, device, path, inside, depth + 1) : 0;
}

/* Adds the writable layers of a tree. A layer that cannot be found from here is skipped, because
 * the caller cannot name a tool or a file in it either. */
static int add_uppers(Reach *reach, const PlanMount *mount, dev_t device, const char *path,
                      const char *inside, unsigned depth) {
        const MountStack *stack = NULL;
        int r = mount_stacks_find(reach->stacks, device, &stack);

        for (size_t i = 0; r == 0 && stack && i < stack->count; i++) {
                const MountLayer *layer = &stack->layers[i];
                _cleanup_free_ char *below = path_join(layer->path, path + 1);

                if (!below)
                        r = -ENOMEM;
                else if (layer->upper)
                        r = reach_add_tree(reach, mount, layer->device, below, strdup(inside),
                                           depth);
        }
        return r;
}

/* Adds the mounts of the host below a mount of the plan, which come along with it. */
static int add_submounts(Reach *reach, const PlanMount *mount, const char *real) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < mount_table_count(reach->mounts); i++) {
                const MountEntry *entry = mount_table_entry(reach->mounts, i);
                const char *rest = path_rest(entry->point, real);

                if (rest && rest[0] && (reach->all || !entry->read_only))
                        r = reach_add_tree(reach, mount, entry->device, entry->root,
                                           path_join(mount->target, rest), 0);
        }
        return r;
}

/* Opens the source of a mount again, and checks that it is the same. The fd of an id-mapped mount
 * will not do, because that mount is in no table. */
static int open_again(const LaunchPlan *plan, const PlanMount *mount, Error *reterr) {
        _cleanup_close_ int fd = open(mount->source, O_PATH | O_CLOEXEC);
        struct stat st;
        int r;

        if (fd < 0)
                return -errno;
        if (mount->fd >= 0 &&
            (fstat(fd, &st) < 0 || st.st_dev != mount->device || st.st_ino != mount->inode)) {
                r = error_set(reterr, ERROR_POLICY, ESTALE, "%s: this source was replaced while %s",
                              mount->origin,
                              plan->root.source ? "the session was running" : "holt was starting");
                return plan->root.source
                               ? error_cure(reterr, r,
                                            "If you replaced it yourself: holt stop NAME, then "
                                            "holt rebind NAME lets the session accept the new one.")
                               : r;
        }
        return TAKE_FD(fd);
}

static int reach_add_mount(Reach *reach, const PlanMount *mount, Error *reterr) {
        char real[PATH_MAX], path[PATH_MAX];
        _cleanup_close_ int fd = open_again(reach->plan, mount, reterr);
        dev_t device;
        int r;

        if (fd == -ESTALE)
                return fd;
        if (fd < 0) {
                reach->incomplete |= fd != -ENOENT;
                return 0;
        }
        r = mount_table_locate(reach->mounts, fd, &device, path);
        if (r == 0)
                r = path_of_fd(fd, real);
        if (r == 0)
                r = reach_add_tree(reach, mount, device, path, strdup(mount->target), 0);
        if (r == 0)
                r = add_submounts(reach, mount, real);
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r,
                                 "%s: cannot find its file system and directory", mount->origin)
                     : 0;
}

static int reach_make(const LaunchPlan *plan, bool all, Reach **ret, Error *reterr) {
        Reach *reach = calloc(1, sizeof(*reach));
        int r;

        if (!reach)
                return error_oom(reterr);
        reach->plan = plan;
        reach->all = all;
        r = mount_table_read(&reach->mounts, reterr);
        if (r == 0 && !(reach->stacks = mount_stacks_new(reach->mounts)))
                r = error_oom(reterr);
        if (r == 0 && plan->root.source)
                r = reach_add_mount(reach, &plan->root, reterr);
        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]) &&
                    (all || !(plan->mounts[i].flags & PLAN_READ_ONLY)))
                        r = reach_add_mount(reach, &plan->mounts[i], reterr);
        if (r < 0)
                reach_free(reach);
        else
                *ret = reach;
        return r;
}

int reach_new(const LaunchPlan *plan, Reach **ret, Error *reterr) {
        return reach_make(plan, false, ret, reterr);
}

int reach_new_all(const LaunchPlan *plan, Reach **ret, Error *reterr) {
        return reach_make(plan, true, ret, reterr);
}

/* --- one place --- */

/* Whether a mount that the sandbox cannot write covers `path`, a path inside that lies in tree. The
 * host can end such a mount, so each one is watched (watch.h). */
static bool reach_is_covered(const Reach *reach, const Tree *tree, const char *path) {
        const LaunchPlan *guarding = plan_guarding(reach->plan, tree->mount);
        const PlanMount *above = plan_mount_above(reach->plan, path);

        if (above && above != tree->mount)
                return true;
        for (size_t i = 0; guarding && i < guarding->guards_count; i++) {
                const PlanGuard *guard = &guarding->guards[i];
                const char *rest = path_rest(path, tree->mount->target);

                if (guard->pinned && rest && path_below(rest, guard->path))
                        return true;
        }
        return false;
}

/* Whether `path`, a path inside, is a mount point or contains one. Then it cannot be renamed,
 * because each directory above a mount point is pinned too (build-mounts.c). */
static bool reach_is_pinned(const Reach *reach, const Tree *tree, const char *path) {
        const LaunchPlan *guarding = plan_guarding(reach->plan, tree->mount);

        for (size_t i = 0; i < reach->plan->mounts_count; i++) {
                const PlanMount *mount = &reach->plan->mounts[i];

                if (!plan_mount_hides(mount) && streq(mount->target, path))
                        return true;
                /* Directories above it are pinned, up to the mount that contains it. */
                if (!plan_mount_hides(mount) && tree->mount != &reach->plan->root &&
                    path_below(mount->target, path) && strlen(path) > strlen(tree->mount->target))
                        return true;
        }
        for (size_t i = 0; guarding && i < guarding->guards_count; i++) {
                const PlanGuard *guard = &guarding->guards[i];
                const char *rest = path_rest(path, tree->mount->target);

                if (guard->pinned && rest && rest[0] && path_below(guard->path, rest))
                        return true;
        }
        return false;
}

static void reach_blame(Reached *reached, unsigned how, const Tree *tree, const char *inside) {
        if (!reached->how || reached->how == REACH_LINKED) {
                reached->mount = tree->mount;
                (void)snprintf(reached->inside, sizeof(reached->inside), "%s", inside);
        }
        reached->how |= how;
}

/* A place to judge: `name` in the directory at `path` of a file system, or that directory itself if
 * name is "". path is NULL if the kernel has no name for it any more. */
typedef struct Place {
        const Reach *reach;
        dev_t device;
        const char *path, *name;
        unsigned how, depth;
        Reached *ret;
} Place;

static int judge_tree(const Place *p, const Tree *tree) {
        const char *rest = p->path ? path_rest(p->path, tree->path) : "?";
        _cleanup_free_ char *place = NULL, *inside = NULL;

        if (tree->device != p->device || !rest)
                return 0;
        place = path_join(tree->inside, rest);
        inside = place ? path_join(place, p->name) : NULL;
        if (!inside)
                return -ENOMEM;
        if (!p->path) /* The place is unknown, so it may be anywhere in the tree. */
                reach_blame(p->ret, p->how, tree, tree->inside);
        else if (!reach_is_covered(p->reach, tree, place) &&
                 !(p->how == REACH_REPLACE && reach_is_pinned(p->reach, tree, inside)))
                reach_blame(p->ret, p->how, tree, inside);
        return 0;
}

/* Judges the place, and the same place in each layer. For lost layers see reach_opaque(). */
static int judge_place(const Place *p) {
        const MountStack *stack = NULL;
        int r = 0;

        for (size_t i = 0; r == 0 && i < p->reach->count; i++)
                r = judge_tree(p, &p->reach->trees[i]);
        if (r == 0 && p->path && p->depth < LAYERS_MAX)
                r = mount_stacks_find(p->reach->stacks, p->device, &stack);
        for (size_t i = 0; r == 0 && stack && i < stack->count; i++) {
                _cleanup_free_ char *path = path_join(stack->layers[i].path, p->path + 1);
                Place below = *p;

                below.device = stack->layers[i].device;
                below.path = path;
                below.depth++;
                r = path ? judge_place(&below) : -ENOMEM;
        }
        return r;
}

/* Judges `name` in the directory fd, or fd itself if name is "". */
static int reach_judge(const Reach *reach, int fd, const char *name, unsigned how, Reached *ret) {
        Place p = { .reach = reach, .name = name, .how = how, .ret = ret };
        char path[PATH_MAX];
        int r = mount_table_locate(reach->mounts, fd, &p.device, path);

        if (r < 0 && r != -ENOENT)
                return r;
        p.path = r == 0 ? path : NULL;
        return judge_place(&p);
}

static bool reach_is_hidden(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan_mount_hides(&plan->mounts[i]) && path_below(path, plan->mounts[i].target))
                        return true;
        return false;
}

ReachPlace reach_place(const Reach *reach, int fd) {
        ReachPlace place = reach->incomplete ? REACH_UNKNOWN : REACH_OUTSIDE;
        char path[PATH_MAX];
        dev_t device;

        if (mount_table_locate(reach->mounts, fd, &device, path) < 0)
                return REACH_UNKNOWN;
        for (size_t i = 0; i < reach->count; i++) {
                const Tree *tree = &reach->trees[i];
                const char *rest = tree->device == device ? path_rest(path, tree->path) : NULL;
                _cleanup_free_ char *inside = rest ? path_join(tree->inside, rest) : NULL;

                if (!rest)
                        continue;
                if (!inside)
                        return REACH_UNKNOWN;
                if (!reach_is_covered(reach, tree, inside) && !reach_is_hidden(reach->plan, inside))
                        return REACH_OPEN;
                place = REACH_CLOSED;
        }
        return place;
}

/* --- hard links --- */

/* Whether the file belongs to the system. Some programs of the system, such as perl, have several
 * names. None of these names is in a mount that a sandbox writes, because link(2) does not work
 * across mounts. */
static bool reach_is_of_system(int fd) {
        char path[PATH_MAX];

        return path_of_fd(fd, path) == 0 && !path_below(path, "/usr/local") && tree_has(path);
}

bool reach_opaque(const Reach *reach, int fd) {
        const MountStack *stack = NULL;
        struct stat root, st;
        char path[PATH_MAX];
        dev_t device;

        if (reach->count == 0 || mount_table_locate(reach->mounts, fd, &device, path) < 0 ||
            mount_stacks_find(reach->stacks, device, &stack) < 0 || !stack)
                return false;
        if ((stat("/", &root) == 0 && fstat(fd, &st) == 0 && root.st_dev == st.st_dev) ||
            reach_is_of_system(fd))
                return false;
        for (size_t i = 0; i < reach->count; i++)
                if (reach->trees[i].device == device)
                        return false;
        return stack->opaque || stack->lost;
}

/* Whether the sandbox may have the right to write the file. A sandbox has the caller's rights on
 * files. If root runs holt, it has the rights of the files' owners, except of those whose uid has
 * no number in root's user namespace: root itself is refused there with EACCES. */
static bool may_be_written(int fd, const struct stat *st) {
        if (geteuid() == 0 && st->st_uid == 0)
                return !reach_is_of_system(fd);
        if (st->st_uid == geteuid() || faccessat(fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0)
                return true;
        return geteuid() == 0 && errno != EACCES;
}

static int judge_links(const Reach *reach, int fd, Reached *ret) {
        char path[PATH_MAX];
        struct stat st;
        dev_t device;
        int r;

        if (ret->how & REACH_WRITE)
                return 0;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_nlink < 2 || !may_be_written(fd, &st))
                return 0;
        r = mount_table_locate(reach->mounts, fd, &device, path);
        for (size_t i = 0; (r == 0 || r == -ENOENT) && i < reach->count; i++)
                if (reach->trees[i].device == device) {
                        reach_blame(ret, REACH_LINKED, &reach->trees[i], "");
                        return 0;
                }
        return r == -ENOENT ? 0 : r;
}

int reach_fd(const Reach *reach, int fd, Reached *ret) {
        int r;

        ret->how = 0;
        r = reach_judge(reach, fd, "", REACH_WRITE, ret);
        return r < 0 ? r : judge_links(reach, fd, ret);
}

/* --- a path --- */

typedef struct Walk {
        const Reach *reach;
        int fd;                  /* O_PATH; the place reached so far. */
        char rest[2 * PATH_MAX]; /* The rest of the path. */
        unsigned links;
        Reached *reached;
} Walk;

/* Puts a symlink's target in front of the rest of the path. */
static int walk_splice(Walk *walk, const char *text) {
        char rest[2 * PATH_MAX];

        if (++walk->links > LINKS_MAX)
                return -ELOOP;
        if (snprintf(rest, sizeof(rest), "%s%s", text, walk->rest) >= (int)sizeof(rest))
                return -ENAMETOOLONG;
        (void)strcpy(walk->rest, rest);
        return 0;
}

static int walk_to_root(Walk *walk) {
        int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        fd_close(walk->fd);
        walk->fd = fd;
        return 0;
}

/* Follows the symlink of fd. A symlink of /proc may lead to a file without a name. The kernel made
 * it, so the kernel may follow it. */
static int reach_walk_link(Walk *walk, int fd, const char *name) {
        char text[PATH_MAX];
        struct statfs fs;
        ssize_t n;

        if (fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC) {
                int to = openat(walk->fd, name, O_PATH | O_CLOEXEC);

                if (to < 0)
                        return -errno;
                fd_close(walk->fd);
                walk->fd = to;
                return 0;
        }
        n = readlinkat(fd, "", text, sizeof(text) - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        n = walk_splice(walk, text);
        return n < 0 ? (int)n : text[0] == '/' ? walk_to_root(walk) : 0;
}

static int reach_walk_name(Walk *walk, const char *name) {
        _cleanup_close_ int fd = FD_NONE;
        const bool up = streq(name, "..");
        struct stat st;
        int r;

        /* ".." depends on the directory itself, since a moved directory has another parent. */
        r = reach_judge(walk->reach, walk->fd, up ? "" : name, REACH_REPLACE, walk->reached);
        if (r < 0)
                return r;
        fd = openat(walk->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (S_ISLNK(st.st_mode))
                return reach_walk_link(walk, fd, name);
        fd_close(walk->fd);
        walk->fd = TAKE_FD(fd);
        return 0;
}

/* Removes the first name from the rest. Returns false at the end. */
static bool walk_next(Walk *walk, char name[NAME_MAX + 1], int *ret_error) {
        size_t slashes, length;

        slashes = strspn(walk->rest, "/");
        length = strcspn(walk->rest + slashes, "/");
        *ret_error = length > NAME_MAX ? -ENAMETOOLONG : 0;
        if (length == 0 || *ret_error < 0)
                return false;
        memcpy(name, walk->rest + slashes, length);
        name[length] = '\0';
        memmove(walk->rest, walk->rest + slashes + length,
                strlen(walk->rest + slashes + length) + 1);
        return true;
}

int reach_path(const Reach *reach, const char *path, int *ret_fd, Reached *ret) {
        Walk walk = { .reach = reach, .fd = FD_NONE, .reached = ret };
        char name[NAME_MAX + 1];
        struct stat st;
        int r = 0;

        ret->how = 0;
        if (!path[0])
                return -ENOENT;
        if (strlen(path) >= PATH_MAX)
                return -ENAMETOOLONG;
        (void)strcpy(walk.rest, path);
        walk.fd = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (walk.fd < 0)
                return -errno;
        while (r == 0 && walk_next(&walk, name, &r))
                if (!streq(name, "."))
                        r = reach_walk_name(&walk, name);
        if (r == 0 && walk.rest[0] == '/' && fstat(walk.fd, &st) == 0 && !S_ISDIR(st.st_mode))
                r = -ENOTDIR;
        if (r == 0)
                r = reach_judge(reach, walk.fd, "", REACH_WRITE, ret);
        if (r == 0)
                r = judge_links(reach, walk.fd, ret);
        if (r < 0)
                fd_close(walk.fd);
        else
                *ret_fd = walk.fd;
        return r;
}

/* --- mounts that show a directory --- */

int reach_each(const Reach *reach, int fd, ReachFn fn, void *data) {
        char path[PATH_MAX];
        dev_t device;
        int r = mount_table_locate(reach->mounts, fd, &device, path);

        for (size_t i = 0; r == 0 && i < reach->count; i++) {
                const Tree *tree = &reach->trees[i];
                const char *rest = path_rest(path, tree->path);
                _cleanup_free_ char *inside = NULL;

                if (tree->device != device || !(rest || path_below(tree->path, path)))
                        continue;
                inside = path_join(tree->inside, rest ? rest : "");
                if (!inside)
                        return -ENOMEM;
                if (plan_mount_above(reach->plan, inside) == tree->mount ||
                    tree->mount == &reach->plan->root)
                        r = fn(data, tree->mount, inside, rest);
        }
        return r;
}
