/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/repository.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/paths.h"
#include "base/sys.h"

/* --- .git --- */

/* gitrepository-layout(5): "gitdir: " and a path, absolute or relative to where the file is. */
static char *read_link(int tree_fd, const char *tree, const char *path) {
        static const char prefix[] = "gitdir: ";
        _cleanup_close_ int fd = sys_open_beneath(tree_fd, path,
                                                  O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        _cleanup_free_ char *file = path_join(tree, path), *directory = NULL;
        char text[PATH_MAX + sizeof(prefix)] = "";

        if (fd < 0 || !file || read(fd, text, sizeof(text) - 1) <= 0 || !str_starts(text, prefix))
                return NULL;
        text[strcspn(text, "\r\n")] = '\0';
        directory = path_join(file, "..");
        return directory ? path_join(directory, text + strlen(prefix)) : NULL;
}

int repository_open(int tree_fd, const char *tree, const char *path, char **ret_leads) {
        _cleanup_close_ int fd = sys_open_beneath(tree_fd, path, O_PATH | O_NOFOLLOW);
        _cleanup_free_ char *leads = NULL;
        struct stat st;
        int other;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return TAKE_FD(fd);
        leads = read_link(tree_fd, tree, path);
        if (!leads)
                return -ENOENT;
        other = open(leads, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (other < 0)
                other = -errno;
        if (ret_leads)
                *ret_leads = TAKE_PTR(leads);
        return other;
}

/* The .git of directory, whose name ends in a slash. Most have none, which one call tells. */
static int open_above(const char *directory) {
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
                fd = open_above(tree);
                *slash = '\0';
                if (fd >= 0)
                        return fd;
        }
        return -ENOENT;
}

/* --- its index --- */

void index_state_clear(IndexState *state) {
        strlist_clear(&state->trees);
}

bool repository_tree_there(int tree_fd, const char *tree) {
        const char *path = tree + strcspn(tree, " ") + 1;
        _cleanup_close_ int fd = sys_open_beneath(tree_fd, path, O_PATH | O_NOFOLLOW);

        return fd >= 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool repository_unchanged(int git_fd, const IndexState *state) {
        struct stat st;

        return fstatat(git_fd, "index", &st, AT_SYMLINK_NOFOLLOW) == 0 && !state->uncertain &&
               st.st_dev == state->device && st.st_ino == state->inode &&
               st.st_ctim.tv_sec == state->changed.tv_sec &&
               st.st_ctim.tv_nsec == state->changed.tv_nsec;
}

/* Owned by the caller, with a zero behind it. Read and not mapped: somebody could cut the file
 * short meanwhile. */
static int read_whole(int git_fd, const char *name, uint8_t **ret, struct stat *ret_st) {
        _cleanup_close_ int fd = sys_open_beneath(git_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t size, done = 0;
        ssize_t n = 1;

        if (fd < 0 || fstat(fd, ret_st) < 0)
                return -errno;
        if (!S_ISREG(ret_st->st_mode) || ret_st->st_size > GIT_INDEX_SIZE_MAX)
                return -EBADMSG;
        size = (size_t)ret_st->st_size;
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
        return 0;
}

/* By extensions.objectFormat of its config, which git reads without what that includes. That of a
 * worktree lies elsewhere. The command can write none of them. */
static GitHash find_hash(int git_fd) {
        _cleanup_free_ uint8_t *bytes = NULL;
        struct stat st;
        int r = read_whole(git_fd, "config", &bytes, &st);
        const char *text;

        if (r < 0)
                return r == -ENOENT && faccessat(git_fd, "commondir", F_OK, 0) < 0 ? GIT_SHA1
                                                                                   : GIT_EITHER;
        text = (const char *)bytes;
        while ((text = strcasestr(text, "objectformat"))) {
                text += strlen("objectformat");
                text += strspn(text, " \t=\"");
                if (strncasecmp(text, "sha256", 6) == 0)
                        return GIT_SHA256;
        }
        return GIT_SHA1;
}

static int read_index(int git_fd, const char *name, bool every, GitIndex *ret,
                      struct stat *ret_st) {
        _cleanup_free_ uint8_t *bytes = NULL;
        int r = read_whole(git_fd, name, &bytes, ret_st);

        return r < 0 ? r
                     : git_index_read(bytes, (size_t)ret_st->st_size, find_hash(git_fd), every,
                                      ret);
}

/* git-update-index(1), --split-index. */
static int add_shared(int git_fd, GitIndex *index) {
        _cleanup_(git_index_clear) GitIndex shared = { 0 };
        _cleanup_free_ char *name = str_format("sharedindex.%s", index->shared);
        struct stat st;
        int r = name ? read_index(git_fd, name, index->nameless, &shared, &st) : -ENOMEM;

        for (size_t i = 0; r == 0 && i < shared.links.count; i++)
                r = strlist_add(&index->links, shared.links.items[i]);
        for (size_t i = 0; r == 0 && i < shared.trees.count; i++)
                r = strlist_add(&index->trees, shared.trees.items[i]);
        /* git finds nothing to read then, either. */
        return r == -ENOENT ? -EBADMSG : r;
}

/* Whether each change of a file in the file system is a new ctime. On a tmpfs one by a mapping that
 * has been read before is not (vma_needs_dirty_tracking() of the kernel), and so on an overlay of
 * one; FUSE and the network's ask somebody else. */
static bool keeps_changes(int git_fd) {
        static const uint32_t keeping[] = { 0xef53 /* ext */, 0x58465342 /* XFS */,
                                            0x9123683e /* btrfs */ };
        struct statfs fs;

        for (size_t i = 0; fstatfs(git_fd, &fs) == 0 && i < ELEMENTSOF(keeping); i++)
                if ((uint32_t)fs.f_type == keeping[i])
                        return true;
        return false;
}

/* Two changes within one tick of the kernel's clock have one ctime. */
static bool is_recent(const struct timespec *changed) {
        struct timespec now;

        return clock_gettime(CLOCK_REALTIME, &now) < 0 || changed->tv_sec >= now.tv_sec - 1;
}

int repository_links(int git_fd, StrList *ret_links, IndexState *ret_state) {
        _cleanup_(git_index_clear) GitIndex index = { 0 };
        struct stat st = { 0 };
        int r = read_index(git_fd, "index", false, &index, &st);

        *ret_state = (IndexState){ .device = st.st_dev,
                                   .inode = st.st_ino,
                                   .changed = st.st_ctim,
                                   .uncertain = index.shared[0] || index.trees.count > 0 ||
                                                is_recent(&st.st_ctim) || !keeps_changes(git_fd) };
        if (r == 0 && index.shared[0])
                r = add_shared(git_fd, &index);
        if (r < 0)
                return r;
        *ret_links = index.links;
        ret_state->trees = index.trees;
        index.links = index.trees = (StrList){ 0 };
        return 0;
}
