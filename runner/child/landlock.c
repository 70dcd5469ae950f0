/* SPDX-License-Identifier: Apache-2.0 */
#include "child/landlock.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "child/step.h"

/* Landlock's rights by ABI, from landlock(7) and the header of Linux 6.18. They are repeated here
 * because linux/landlock.h of the build host may be older than the running kernel. */
enum {
        FS_EXECUTE = 1 << 0,
        FS_WRITE_FILE = 1 << 1,
        FS_READ_FILE = 1 << 2,
        FS_READ_DIR = 1 << 3,
        FS_ABI_1 = (1 << 13) - 1,
        FS_MAKE_CHAR = 1 << 6,
        FS_MAKE_BLOCK = 1 << 11,
        FS_REFER = 1 << 13,     /* ABI 2, Linux 5.19. */
        FS_TRUNCATE = 1 << 14,  /* ABI 3, Linux 6.2. */
        FS_IOCTL_DEV = 1 << 15, /* ABI 5, Linux 6.10. */

        SCOPE_ABSTRACT_UNIX = 1 << 0, /* ABI 6, Linux 6.12. */
        SCOPE_SIGNAL = 1 << 1,

        RULE_PATH_BENEATH = 1,
        CREATE_RULESET_VERSION = 1,
};

typedef struct Ruleset {
        uint64_t handled_fs, handled_net, scoped;
} Ruleset;

typedef struct __attribute__((packed)) PathRule {
        uint64_t allowed;
        int32_t parent_fd;
} PathRule;

/* Rights that a kernel of each ABI supports. The sizes are those of struct landlock_ruleset_attr as
 * it grew. A kernel refuses a longer struct if bytes that it does not know are set. */
static const struct {
        uint64_t fs, scoped;
        size_t size;
} by_abi[] = {
        [1] = { FS_ABI_1, 0, 8 },
        [2] = { FS_ABI_1 | FS_REFER, 0, 8 },
        [3] = { FS_ABI_1 | FS_REFER | FS_TRUNCATE, 0, 8 },
        [4] = { FS_ABI_1 | FS_REFER | FS_TRUNCATE, 0, 16 },
        [5] = { FS_ABI_1 | FS_REFER | FS_TRUNCATE | FS_IOCTL_DEV, 0, 16 },
        [6] = { FS_ABI_1 | FS_REFER | FS_TRUNCATE | FS_IOCTL_DEV,
                SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL, 24 },
};

int landlock_abi(void) {
        long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

        return abi < 0 ? 0 : (int)abi;
}

static int landlock_allow(int ruleset_fd, int fd, uint64_t rights, const char *what, Error *error) {
        const PathRule rule = { .allowed = rights, .parent_fd = fd };

        if (rights && syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &rule, 0) < 0)
                return step_fail(error, LAYER_LANDLOCK, errno, "cannot allow", what);
        return 0;
}

static int allow_path(int ruleset_fd, const char *path, uint64_t rights, Error *error) {
        int fd = open(path, O_PATH | O_CLOEXEC), r;

        if (fd < 0)
                return step_fail(error, LAYER_LANDLOCK, errno, "cannot open", path);
        r = landlock_allow(ruleset_fd, fd, rights, path, error);
        fd_close(fd);
        return r;
}

/* Allows files that the caller passes as stdin, stdout or stderr. They lie outside the tree, but
 * programs open them again through /dev/stdout. The rule allows no more than the fd itself. */
static int allow_stdio(int ruleset_fd, uint64_t handled, Error *error) {
        for (int fd = 0; fd <= 2; fd++) {
                struct stat st;
                int mode = fcntl(fd, F_GETFL), r;
                uint64_t rights = 0;

                if (mode < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                        continue;
                if ((mode & O_ACCMODE) != O_WRONLY)
                        rights |= FS_READ_FILE;
                if ((mode & O_ACCMODE) != O_RDONLY)
                        rights |= FS_WRITE_FILE | (handled & FS_TRUNCATE);
                r = landlock_allow(ruleset_fd, fd, rights, "stdio", error);
                /* Some internal file systems (a memfd) refuse rules on their files, and need
                 * none. */
                if (r == -EBADFD)
                        error->text[0] = '\0';
                else if (r < 0)
                        return r;
        }
        return 0;
}

static int add_rules(int ruleset_fd, uint64_t handled, Error *error) {
        const uint64_t writable = handled &
                                  ~(uint64_t)(FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_IOCTL_DEV);
        int r = allow_path(ruleset_fd, "/", FS_EXECUTE | FS_READ_FILE | FS_READ_DIR, error);

        if (r == 0)
                r = allow_path(ruleset_fd, "/proc", FS_WRITE_FILE | (handled & FS_TRUNCATE), error);
        if (r == 0)
                r = allow_path(ruleset_fd, "/dev",
                               FS_WRITE_FILE | (handled & (FS_TRUNCATE | FS_IOCTL_DEV)), error);
        for (size_t i = 0; r == 0 && i < child_state.writable_count; i++) {
                struct stat st;
                uint64_t rights = writable;

                if (fstat(child_state.writable_fds[i], &st) == 0 && !S_ISDIR(st.st_mode))
                        rights &= FS_EXECUTE | FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE;
                r = landlock_allow(ruleset_fd, child_state.writable_fds[i], rights,
                                   "a writable mount", error);
        }
        return r < 0 ? r : allow_stdio(ruleset_fd, handled, error);
}

/* Makes a ruleset of all rights in the ABI. The caller owns *ret_fd. */
static int make_ruleset(int abi, bool scoped, uint64_t *ret_handled, int *ret_fd, Error *error) {
        Ruleset ruleset;
        int fd;

        if ((size_t)abi >= ELEMENTSOF(by_abi))
                abi = (int)ELEMENTSOF(by_abi) - 1;
        ruleset = (Ruleset){ .handled_fs = by_abi[abi].fs,
                             .scoped = scoped ? by_abi[abi].scoped : 0 };
        fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, by_abi[abi].size, 0);
        if (fd < 0)
                return step_fail(error, LAYER_LANDLOCK, errno, "cannot make", "a Landlock ruleset");
        *ret_handled = ruleset.handled_fs;
        *ret_fd = fd;
        return 0;
}

int landlock_confine_to(const int *fds, size_t count, Error *error) {
        uint64_t handled;
        int abi = landlock_abi(), fd, r;

        if (abi < LANDLOCK_ABI_NEEDED)
                return 0;
        r = make_ruleset(abi, false, &handled, &fd, error);
        if (r < 0)
                return r;
        for (size_t i = 0; r == 0 && i < count; i++)
                r = landlock_allow(fd, fds[i],
                                   handled & ~(uint64_t)(FS_EXECUTE | FS_MAKE_CHAR | FS_MAKE_BLOCK |
                                                         FS_IOCTL_DEV),
                                   "a directory", error);
        if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
                r = step_fail(error, LAYER_LANDLOCK, errno, "cannot enforce",
                              "the Landlock ruleset");
        fd_close(fd);
        return r;
}

int landlock_confine(Launch *launch, Error *error) {
        int abi = launch->layers.landlock_abi, fd, r;
        uint64_t handled;

        if (abi == 0)
                return 0;
        r = make_ruleset(abi, true, &handled, &fd, error);
        if (r < 0)
                return r;
        r = add_rules(fd, handled, error);
        if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
                r = step_fail(error, LAYER_LANDLOCK, errno, "cannot enforce",
                              "the Landlock ruleset");
        fd_close(fd);
        return r;
}
