/* SPDX-License-Identifier: Apache-2.0 */
#include "git/repository.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"
#include "git/modules.h"
#include "git/unchanged.h"

/* --- files --- */

/* Opens the file of path_fd, an O_PATH fd, for reading, and closes path_fd. The type is checked
 * first, because opening a device or a FIFO may already have an effect. Returns an fd, -ENXIO for a
 * device, -EBADMSG if it is not a regular file, or another negative errno. */
static int open_regular(int path_fd) {
        _cleanup_close_ int owned = path_fd;
        char path[32];
        struct stat st;
        int fd;

        if (path_fd < 0 || fstat(path_fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISCHR(st.st_mode) ? -ENXIO : -EBADMSG;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", owned);
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int repository_open_file(int dir_fd, const char *path) {
        return open_regular(sys_open_beneath(dir_fd, path, O_PATH | O_NOFOLLOW));
}

/* --- .git --- */

/* Reads a .git file: "gitdir: " and a path, absolute or relative to the file's directory
 * (gitrepository-layout(5)). */
static int repository_read_link(int tree_fd, const char *tree, const char *path, char **ret) {
        static const char prefix[] = "gitdir: ";
        _cleanup_close_ int fd = repository_open_file(tree_fd, path);
        _cleanup_free_ char *file = path_join(tree, path), *directory = NULL;
        char text[PATH_MAX + sizeof(prefix)] = "";

        if (fd == -EAGAIN || !file)
                return file ? fd : -ENOMEM;
        if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || !str_starts(text, prefix))
                return -ENOENT;
        text[strcspn(text, "\r\n")] = '\0';
        directory = path_join(file, "..");
        *ret = directory ? path_join(directory, text + strlen(prefix)) : NULL;
        return *ret ? 0 : -ENOMEM;
}

static int open_linked(int tree_fd, const char *tree, const char *path, char **ret_leads) {
        _cleanup_free_ char *leads = NULL;
        int fd, r = repository_read_link(tree_fd, tree, path, &leads);

        if (r < 0)
                return r;
        fd = open(leads, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                fd = -errno;
        if (ret_leads)
                *ret_leads = TAKE_PTR(leads);
        return fd;
}

int repository_open(int tree_fd, const char *tree, const char *path, char **ret_leads) {
        _cleanup_close_ int fd = sys_open_beneath(tree_fd, path, O_PATH | O_NOFOLLOW);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return TAKE_FD(fd);
        return open_linked(tree_fd, tree, path, ret_leads);
}

/* Opens the .git of `directory`, whose name ends in a slash. Most directories have none, so one
 * quick call checks that first. */
static int repository_open_parent(const char *directory) {
        _cleanup_close_ int tree_fd = FD_NONE;
        char path[PATH_MAX + 8];

        (void)snprintf(path, sizeof(path), "%s.git", directory);
        if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        tree_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return tree_fd < 0 ? -errno : repository_open(tree_fd, directory, ".git", NULL);
}

int repository_open_above(char *tree) {
        for (char *slash = strrchr(tree, '/'); slash; slash = strrchr(tree, '/')) {
                int fd;

                slash[1] = '\0';
                fd = repository_open_parent(tree);
                *slash = '\0';
                if (fd >= 0 || fd == -EAGAIN)
                        return fd;
        }
        return -ENOENT;
}

/* --- its index --- */

/* Reads a file. It is not mapped, because another process could truncate it meanwhile. */
static int repository_read_open(int fd, size_t max, char **ret, size_t *ret_size) {
        _cleanup_free_ char *bytes = NULL;
        size_t size, done = 0;
        struct stat st;
        ssize_t n = 1;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size > (off_t)max)
                return -E2BIG;
        size = (size_t)st.st_size;
        bytes = malloc(size + 1);
        if (!bytes)
                return -ENOMEM;
        while (n > 0 && done < size) {
                n = read(fd, bytes + done, size - done);
                done += n > 0 ? (size_t)n : 0;
        }
        if (done < size)
                return n < 0 ? -errno : -EBADMSG;
        bytes[size] = '\0';
        *ret = TAKE_PTR(bytes);
        *ret_size = size;
        return 0;
}

static const PlanGuard *repository_guard(const LaunchPlan *plan, int path_fd) {
        struct stat st;

        if (!plan || path_fd < 0 || fstat(path_fd, &st) < 0)
                return NULL;
        return plan_guard_read(plan, st.st_dev, st.st_ino);
}

static int repository_copy(const PlanGuard *guard, size_t max, char **ret, size_t *ret_size) {
        char *copy = guard->text_size <= max ? malloc(guard->text_size + 1) : NULL;

        if (!copy)
                return guard->text_size <= max ? -ENOMEM : -E2BIG;
        *ret = memcpy(copy, guard->text, guard->text_size + 1);
        *ret_size = guard->text_size;
        return 0;
}

int repository_read_fd(const LaunchPlan *plan, int path_fd, size_t max, char **ret,
                       size_t *ret_size) {
        const PlanGuard *guard = repository_guard(plan, path_fd);
        _cleanup_close_ int fd = guard ? path_fd : open_regular(path_fd);

        if (guard)
                return repository_copy(guard, max, ret, ret_size);
        return fd < 0 ? fd : repository_read_open(fd, max, ret, ret_size);
}

int repository_read(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size) {
        return repository_read_fd(NULL, openat(dir_fd, path, O_PATH | O_CLOEXEC), max, ret,
                                  ret_size);
}

/* Finds the repository's hash in its config, by extensions.objectFormat. For this variable git does
 * not follow includes. The config of a worktree lies elsewhere. The command cannot write any of
 * these. */
static GitHash find_hash(const LaunchPlan *plan, int git_fd) {
        const int config_fd = sys_open_beneath(git_fd, "config", O_PATH | O_NOFOLLOW);
        _cleanup_free_ char *bytes = NULL;
        size_t size = 0;
        int r = repository_read_fd(plan, config_fd, GIT_INDEX_SIZE_MAX, &bytes, &size);
        const char *text;

        if (r < 0 || !bytes)
                return r == -ENOENT && faccessat(git_fd, "commondir", F_OK, 0) < 0 ? GIT_SHA1
                                                                                   : GIT_EITHER;
        text = bytes;
        while ((text = strcasestr(text, "objectformat"))) {
                text += strlen("objectformat");
                text += strspn(text, " \t=\"");
                if (strncasecmp(text, "sha256", 6) == 0)
                        return GIT_SHA256;
        }
        return GIT_SHA1;
}

bool repository_works(RepositoryLinks *links, size_t work) {
        links->work += work;
        return !links->work_max || links->work <= links->work_max;
}

size_t repository_path_work(const char *path) {
        return REPOSITORY_WORK_PATH + strlen(path) / REPOSITORY_WORK_LENGTH;
}

/* Whether nothing in the index leads to another repository. */
static bool git_index_is_plain(const GitIndex *index) {
        return index->links.count == 0 && index->trees.count == 0 && !index->shared[0] &&
               !index->nameless;
}

/* Reads an index that is open, unless it is one of the plain ones from before the command. */
static int read_open_index(int fd, const struct stat *st, GitHash hash, RepositoryLinks *links,
                           GitIndex *ret) {
        const bool notes = links->ret_plain && st->st_size >= REPOSITORY_INDEX_LARGE &&
                           unchanged_is_certain(fd, st);
        _cleanup_free_ char *identity = unchanged_identity(st, hash);
        int r;

        if (!identity)
                return -ENOMEM;
        if (links->plan && strlist_has(&links->plan->plain_indexes, identity))
                return 0;
        r = git_index_read_file(fd, (size_t)st->st_size, hash, false, ret);
        if (r == 0 && notes && git_index_is_plain(ret))
                r = strlist_take(links->ret_plain, TAKE_PTR(identity));
        return r;
}

/* Reads an index. The size is checked first, because reading a large file takes time. */
static int read_index(int git_fd, const char *name, bool every, RepositoryLinks *links,
                      GitIndex *ret) {
        _cleanup_close_ int fd = repository_open_file(git_fd, name);
        struct stat st;
        GitHash hash;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size > GIT_INDEX_SIZE_MAX ||
            !repository_works(links, (size_t)st.st_size / REPOSITORY_WORK_BYTES))
                return -E2BIG;
        hash = find_hash(links->plan, git_fd);
        return every ? git_index_read_file(fd, (size_t)st.st_size, hash, true, ret)
                     : read_open_index(fd, &st, hash, links, ret);
}

/* Adds the shared part of a split index (git-update-index(1), --split-index). */
static int add_shared(int git_fd, RepositoryLinks *links, GitIndex *index) {
        _cleanup_(git_index_clear) GitIndex shared = { 0 };
        _cleanup_free_ char *name = str_format("sharedindex.%s", index->shared);
        int r = name ? read_index(git_fd, name, index->nameless, links, &shared) : -ENOMEM;

        for (size_t i = 0; r == 0 && i < shared.links.count; i++)
                r = strlist_add(&index->links, shared.links.items[i]);
        for (size_t i = 0; r == 0 && i < shared.trees.count; i++)
                r = strlist_add(&index->trees, shared.trees.items[i]);
        /* Without its shared part, git cannot read the index either. */
        return r == -ENOENT ? -EBADMSG : r;
}

/* --- repositories that git enters --- */

/* Adds those of `paths` that begin with `skip`, with `outer` in its place. outer is the path from
 * our work tree to the other one: "" or with a slash at the end. */
static int add_below(const StrList *paths, const char *skip, const char *outer, StrList *ret) {
        const size_t length = strlen(skip);
        int r = 0;

        for (size_t i = 0; r == 0 && i < paths->count; i++)
                if (str_starts(paths->items[i], skip) && paths->items[i][length] != '\0')
                        r = strlist_take(ret, str_format("%s%s", outer, paths->items[i] + length));
        return r;
}

static bool has_above(const StrList *paths, const char *path) {
        for (size_t i = 0; i < paths->count; i++)
                if (path_below(path, paths->items[i]))
                        return true;
        return false;
}

static int add_index(int git_fd, const char *skip, const char *outer, RepositoryLinks *ret) {
        _cleanup_(git_index_clear) GitIndex index = { 0 };
        int r = read_index(git_fd, "index", false, ret, &index);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        r = index.shared[0] ? add_shared(git_fd, ret, &index) : 0;
        if (r < 0)
                return r;
        r = add_below(&index.links, skip, outer, &ret->links);
        if (r < 0)
                return r;
        r = add_below(&index.trees, skip, outer, &ret->trees);
        return r == 0 && has_above(&index.trees, skip) ? strlist_add(&ret->trees, ".") : r;
}

/* Adds the gitlinks of the index, and the submodules that git keeps beside it. git is the path of
 * git_fd. A damaged index does not hide the submodules. */
static int add_links(int git_fd, const char *git, const RepositoryTree *tree, const char *skip,
                     const char *outer, RepositoryLinks *ret) {
        int r = add_index(git_fd, skip, outer, ret);
        int found = repository_is_closed(r)
                            ? 0
                            : git_modules_find(git_fd, git, tree->real, &ret->links);

        return found < 0 ? found : r;
}

/* Stores the path of git_fd, the repository whose .git is at path. A .git in the workspace may be
 * on a mount to which no path leads, so its path is put together. The directory that a .git file
 * names has a path of its own. */
static int name_git(const RepositoryTree *tree, const char *path, int git_fd, bool leads,
                    char ret[PATH_MAX]) {
        if (leads)
                return path_of_fd(git_fd, ret);
        return snprintf(ret, PATH_MAX, "%s/%s", tree->real, path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int repository_links(const RepositoryTree *tree, const char *path, RepositoryLinks *ret) {
        _cleanup_free_ char *leads = NULL, *outer = strndup(path, strlen(path) - strlen(".git"));
        _cleanup_close_ int git_fd = repository_open(tree->fd, tree->real, path, &leads);
        char git[PATH_MAX];

        if (!outer)
                return -ENOMEM;
        if (git_fd == -EAGAIN)
                return git_fd;
        if (git_fd < 0 || name_git(tree, path, git_fd, leads, git) < 0)
                return 0;
        return add_links(git_fd, git, tree, "", outer, ret);
}

/* Adds the links of a repository above the tree. git_fd is its .git, and `above` its work tree. */
static int add_above(int git_fd, const char *above, const RepositoryTree *tree,
                     RepositoryLinks *ret) {
        _cleanup_free_ char *skip = str_format("%s/", tree->real + strlen(above) + 1);
        char git[PATH_MAX];

        if (!skip)
                return -ENOMEM;
        return path_of_fd(git_fd, git) < 0 ? 0 : add_links(git_fd, git, tree, skip, "", ret);
}

int repository_links_above(const RepositoryTree *tree, RepositoryLinks *ret) {
        _cleanup_free_ char *above = strdup(tree->real);
        int r = above ? 0 : -ENOMEM;

        while (!repository_is_closed(r)) {
                _cleanup_close_ int git_fd = repository_open_above(above);

                if (git_fd < 0)
                        return git_fd == -EAGAIN ? git_fd : 0;
                r = add_above(git_fd, above, tree, ret);
        }
        return r;
}

bool repository_tree_there(const RepositoryTree *tree, const char *path) {
        _cleanup_close_ int fd = sys_open_beneath(tree->fd, path, O_PATH | O_NOFOLLOW);

        return fd >= 0 || (errno != ENOENT && errno != ENOTDIR);
}

void repository_links_clear(RepositoryLinks *links) {
        strlist_clear(&links->links);
        strlist_clear(&links->trees);
}
