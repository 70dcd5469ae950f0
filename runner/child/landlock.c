/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. Mounts decide which files exist inside and which of them can be written.
 * Landlock repeats the second decision by path: only writable mounts have rules for writing,
 * creating, renaming and removing. Execution, listing directories and ioctls of devices are checked
 * again as well.
 *
 * Every open(2) asks for two rights: READ_FILE, and TRUNCATE for a later ftruncate(2). If a ruleset
 * handles one of them, the kernel walks from the file up to a rule that grants it. An open then
 * takes 1.3 to 1.5 times as long. In most runs both rights only repeat what the mounts say. The
 * exception is a file of the host that no mount shows. The command can open it again through
 * /proc/self/fd. It could then cut a file that was opened for reading (truncate(2)), or read a log
 * that was opened for appending. The command gets such a file as its stdin, stdout or stderr, or
 * from the peer of a socket that is one of these three. So in a single run, both rights are handled
 * if there is such a file or socket. In a session they never are, because a command of a session
 * gets a copy of such a file, or a pipe (sandbox/stdio-files.c). In a single run, the file of
 * stderr is replaced by a pipe, too, if no other file or socket needs the check (streams/output.h).
 *
 * One case is left: a process of the host sends a file that it has opened for reading. The socket
 * that carries the file is in a mounted directory, or is the stdin of a session's command. The
 * command can cut that file. */
#include "child/landlock.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#define PIPEFS_MAGIC 0x50495045

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_WRITE 0x0008
#endif

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

        FS_EVERY_OPEN = FS_READ_FILE | FS_TRUNCATE,

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

/* Adds a rule. The rights must be handled ones. Without any right, no rule is needed. */
static int landlock_allow(int ruleset_fd, int fd, uint64_t rights, const char *what, Error *error) {
        const PathRule rule = { .allowed = rights, .parent_fd = fd };

        if (rights && syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &rule, 0) < 0)
                return step_fail(error, LAYER_LANDLOCK, errno, "cannot allow", what);
        return 0;
}

static int allow_path(int ruleset_fd, const char *path, uint64_t rights, Error *error) {
        int fd = open(path, O_PATH | O_CLOEXEC), r;

        if (fd < 0 && errno == ENOENT) /* nothing to allow */
                return 0;
        if (fd < 0)
                return step_fail(error, LAYER_LANDLOCK, errno, "cannot open", path);
        r = landlock_allow(ruleset_fd, fd, rights, path, error);
        fd_close(fd);
        return r;
}

/* Whether it is a memory device such as /dev/null, which stores nothing. */
static bool landlock_is_null(const struct stat *st) {
        return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1;
}

/* Whether fd is a file, a named pipe or a device that was opened for writing only. Others may have
 * written there what the command must not read. A plain pipe does not count, because no path leads
 * to it and Landlock does not check it. */
static bool landlock_is_for_writing(int fd, const FdFacts *facts) {
        const struct stat *st = &facts->st;
        struct statfs fs;

        if (fd_facts_access(facts) != O_WRONLY)
                return false;
        if (S_ISFIFO(st->st_mode))
                return fstatfs(fd, &fs) < 0 || fs.f_type != PIPEFS_MAGIC;
        return S_ISREG(st->st_mode) || (S_ISCHR(st->st_mode) && !landlock_is_null(st));
}

/* Whether fd is a file that was opened for reading only. A copy that holt has sealed
 * (stdio-files.c) cannot be changed. */
static bool landlock_is_for_reading(int fd, const FdFacts *facts) {
        int seals;

        if (!S_ISREG(facts->st.st_mode) || fd_facts_access(facts) != O_RDONLY)
                return false;
        seals = fcntl(fd, F_GET_SEALS);
        return seals < 0 || !(seals & F_SEAL_WRITE);
}

unsigned landlock_stdio(const Launch *launch, const FdFacts facts[3]) {
        unsigned found = 0;

        for (int fd = 0; fd <= 2; fd++)
                if (!(launch->stdio_shown & (1U << fd)) &&
                    (S_ISSOCK(facts[fd].st.st_mode) || landlock_is_for_reading(fd, &facts[fd]) ||
                     landlock_is_for_writing(fd, &facts[fd])))
                        found |= 1U << fd;
        return found;
}

/* Allows files, and /dev/null, that the caller passes as stdin, stdout or stderr. They lie outside
 * the tree, but programs open them again through /dev/stdout. The rule allows no more than the fd
 * itself. */
static int allow_stdio(int ruleset_fd, const FdFacts facts[3], uint64_t handled, Error *error) {
        for (int fd = 0; fd <= 2; fd++) {
                const struct stat *st = &facts[fd].st;
                const int access_mode = fd_facts_access(&facts[fd]);
                uint64_t rights = 0;
                int r;

                if (access_mode < 0 || (!S_ISREG(st->st_mode) && !landlock_is_null(st)))
                        continue;
                if (access_mode != O_WRONLY)
                        rights |= FS_READ_FILE;
                if (access_mode != O_RDONLY)
                        rights |= FS_WRITE_FILE | FS_TRUNCATE;
                r = landlock_allow(ruleset_fd, fd, rights & handled, "stdio", error);
                /* Some internal file systems (a memfd) refuse rules on their files, and need
                 * none. */
                if (r == -EBADFD)
                        error->text[0] = '\0';
                else if (r < 0)
                        return r;
        }
        return 0;
}

/* Most writable mounts are directories. For a file, the kernel refuses the rights of a directory.
 */
static int allow_writable(int ruleset_fd, int fd, uint64_t rights, Error *error) {
        const uint64_t of_file = FS_EXECUTE | FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE;
        int r = landlock_allow(ruleset_fd, fd, rights, "a writable mount", error);

        if (r != -EINVAL)
                return r;
        error->text[0] = '\0';
        return landlock_allow(ruleset_fd, fd, rights & of_file, "a writable mount", error);
}

static int add_rules(int ruleset_fd, const FdFacts stdio[3], uint64_t handled, Error *error) {
        const uint64_t writable = handled &
                                  ~(uint64_t)(FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_IOCTL_DEV);
        int r = allow_path(ruleset_fd, "/", handled & (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR),
                           error);

        if (r == 0)
                r = allow_path(ruleset_fd, "/proc", handled & (FS_WRITE_FILE | FS_TRUNCATE), error);
        if (r == 0)
                r = allow_path(ruleset_fd, "/dev",
                               handled & (FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV), error);
        for (size_t i = 0; r == 0 && i < child_state.writable_count; i++)
                r = allow_writable(ruleset_fd, child_state.writable_fds[i], writable, error);
        return r < 0 ? r : allow_stdio(ruleset_fd, stdio, handled, error);
}

/* Makes a ruleset of the rights in the ABI, except for those in `unhandled`. The caller owns
 * *ret_fd. */
static int make_ruleset(int abi, bool scoped, uint64_t unhandled, uint64_t *ret_handled,
                        int *ret_fd, Error *error) {
        Ruleset ruleset;
        int fd;

        if ((size_t)abi >= ELEMENTSOF(by_abi))
                abi = (int)ELEMENTSOF(by_abi) - 1;
        ruleset = (Ruleset){ .handled_fs = by_abi[abi].fs & ~unhandled,
                             .scoped = scoped ? by_abi[abi].scoped : 0 };
        fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, by_abi[abi].size, 0);
        if (fd < 0)
                return step_fail(error, LAYER_LANDLOCK, errno, "cannot make", "a Landlock ruleset");
        *ret_handled = ruleset.handled_fs;
        *ret_fd = fd;
        return 0;
}

/* Enforces a ruleset for this process, unless r, the result of filling it, is negative. Closes it.
 */
static int ruleset_enforce(int fd, int r, Error *error) {
        if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
                r = step_fail(error, LAYER_LANDLOCK, errno, "cannot enforce",
                              "the Landlock ruleset");
        fd_close(fd);
        return r;
}

int landlock_confine_to(const int *fds, size_t count, Error *error) {
        uint64_t handled;
        int abi = landlock_abi(), fd, r;

        if (abi < LANDLOCK_ABI_NEEDED)
                return 0;
        r = make_ruleset(abi, false, 0, &handled, &fd, error);
        if (r < 0)
                return r;
        for (size_t i = 0; r == 0 && i < count; i++)
                r = landlock_allow(fd, fds[i],
                                   handled & ~(uint64_t)(FS_EXECUTE | FS_MAKE_CHAR | FS_MAKE_BLOCK |
                                                         FS_IOCTL_DEV),
                                   "a directory", error);
        return ruleset_enforce(fd, r, error);
}

int landlock_confine(Launch *launch, Error *error) {
        int abi = launch->layers.landlock_abi, fd, r;
        FdFacts stdio[3];
        uint64_t handled;

        if (abi == 0)
                return 0;
        /* The launcher's facts would not do: the terminal and the pipes have replaced some fds. */
        fd_facts_stdio(stdio);
        r = make_ruleset(abi, true, landlock_stdio(launch, stdio) ? 0 : FS_EVERY_OPEN, &handled,
                         &fd, error);
        if (r < 0)
                return r;
        r = add_rules(fd, stdio, handled, error);
        return ruleset_enforce(fd, r, error);
}
