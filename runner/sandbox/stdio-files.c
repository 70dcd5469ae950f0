/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the command gets as its stdin, stdout or stderr, but must not write or read again.
 *
 * Theory of operation. A process that has a file open for reading can open it again by
 * /proc/self/fd. The kernel then checks the file's mode, and the mount by which it was opened
 * first. That is the host's mount, which is writable. A mount over the file's path inside, such as
 * a guard, does not matter. Landlock refuses this only outside of the places that the command may
 * write. It refuses truncate(2) only since ABI 3, and never a change of the mode or the times.
 *
 * So a file that the command may not write anyway is copied into a sealed memory file, and the
 * command gets the copy. A file that is too large for that is passed unchanged if Landlock protects
 * its content, and refused otherwise.
 *
 * If the caller has opened a file for writing, the command may write it. It could also read what
 * others have written there.
 *
 * The commands of a session share one Landlock domain, which leaves reading and truncating to the
 * mounts (child/landlock.c). So they never get a file that needs this protection: the keeper copies
 * the bytes between the file and a pipe (process/detour.c). */
#include "sandbox/stdio-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/sys.h"
#include "reach/reach.h"
#include "streams/stdio.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define PIPEFS_MAGIC 0x50495045

enum {
        COPY_MAX = 16 << 20,    /* Bytes. */
        LANDLOCK_TRUNCATES = 3, /* The ABI since which Landlock restricts truncate(2). */
};

/* Whether the file is regular and open for reading only. */
static bool is_read_only_file(const FdFacts *facts) {
        return fd_facts_access(facts) == O_RDONLY && S_ISREG(facts->st.st_mode);
}

/* Whether it is a memory file that nobody can change. With F_SEAL_WRITE alone, it could still be
 * cut. */
static bool shield_is_sealed(int fd) {
        const int all = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW, seals = fcntl(fd, F_GET_SEALS);

        return seals >= 0 && (seals & all) == all;
}

/* Whether the command could change the file. The command has no capabilities. The owner of a file
 * may change its mode. An entry of an ACL gives no more rights than the group's bits. */
static bool shield_may_be_changed(int fd, const struct stat *st, const Identity *identity) {
        struct statvfs fs;

        if (fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_RDONLY)
                return false;
        if (identity && identity->taken && identity->uid != geteuid())
                return st->st_uid == identity->uid || st->st_mode & (S_IWGRP | S_IWOTH);
        return st->st_uid == geteuid() || faccessat(fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

static int copy_bytes(int from, int to, off_t size) {
        off_t done = 0;

        while (done < size) {
                ssize_t n = sendfile(to, from, &done, (size_t)(size - done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
        }
        return 0;
}

/* Copies the file. *ret has the same file offset as fd. */
static int shield_copy_file(int fd, off_t size, int *ret) {
        _cleanup_close_ int copy_fd = FD_NONE, again_fd = FD_NONE;
        const off_t at = lseek(fd, 0, SEEK_CUR);
        char path[32];
        int r;

        copy_fd = sys_memfd_create("holt-stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
        if (copy_fd < 0 && errno == EINVAL) /* Before Linux 6.3. */
                copy_fd = sys_memfd_create("holt-stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (copy_fd < 0)
                return -errno;
        r = copy_bytes(fd, copy_fd, size);
        if (r < 0)
                return r;
        /* The seals make it read-only; the mode shows that. */
        if (fchmod(copy_fd, S_IRUSR | S_IRGRP | S_IROTH) < 0)
                return -errno;
        if (fcntl(copy_fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) <
            0)
                return -errno;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", copy_fd);
        again_fd = open(path, O_RDONLY | O_CLOEXEC);
        if (again_fd < 0 || lseek(again_fd, at, SEEK_SET) < 0)
                return -errno;
        *ret = TAKE_FD(again_fd);
        return 0;
}

static int shield_refuse_file(int number, int errnum, Error *reterr) {
        static const char *const names[] = { "stdin", "stdout", "stderr" };
        int r = error_set(reterr, ERROR_POLICY, errnum,
                          "%s is a file that the command must not write, but it could open the "
                          "file again for writing",
                          names[number]);

        return error_cure(reterr, r, "Put a pipe before holt: cat FILE | holt ...");
}

/* *reach may be NULL, and is then made: the mount table is read only if a file needs it. */
static int shield_find_place(const LaunchPlan *plan, Reach **reach, int fd, ReachPlace *ret,
                             Error *reterr) {
        int r = *reach ? 0 : reach_new(plan, reach, reterr);

        if (r < 0)
                return r;
        *ret = reach_place(*reach, fd);
        return 0;
}

/* Notes a file that the command can open by its path. Landlock need not protect it (landlock.c). */
static int shield_note_place(Launch *launch, Reach **reach, int number, int fd, ReachPlace *ret,
                             Error *reterr) {
        int r = shield_find_place(launch->plan, reach, fd, ret, reterr);

        if (r == 0 && *ret == REACH_OPEN)
                launch->stdio_shown |= 1U << number;
        return r;
}

/* Replaces *fd by a sealed copy. */
static int shield_copy(int number, int *fd, off_t size, Error *reterr) {
        int copy_fd = FD_NONE, r = size > COPY_MAX ? -EFBIG : shield_copy_file(*fd, size, &copy_fd);

        if (r < 0)
                return shield_refuse_file(number, -r, reterr);
        (void)close(*fd);
        *fd = copy_fd;
        return 0;
}

/* Does for one file of a single run what stdio_files_shield() says. */
static int shield_file(Launch *launch, Reach **reach, int number, int *fd, Error *reterr) {
        struct stat st;
        ReachPlace place;
        int r;

        /* Nobody else has a file without a name, and Landlock keeps it from being cut. */
        if (fstat(*fd, &st) < 0 || st.st_nlink == 0 ||
            !shield_may_be_changed(*fd, &st, &launch->identity))
                return 0;
        r = shield_note_place(launch, reach, number, *fd, &place, reterr);
        if (r < 0 || place == REACH_OPEN)
                return r;
        if (st.st_size > COPY_MAX && place == REACH_OUTSIDE &&
            launch->layers.landlock_abi >= LANDLOCK_TRUNCATES)
                return 0;
        return shield_copy(number, fd, st.st_size, reterr);
}

/* Whether the command could read what others write, by opening the file again. That is possible
 * with a file, a named pipe or a device that is open for writing only. No path leads to a plain
 * pipe. */
static bool shield_may_be_read(int fd, const FdFacts *facts) {
        enum { MEMORY = 1 }; /* /dev/null and similar devices store nothing. */
        const struct stat *st = &facts->st;
        struct statfs fs;

        if (fd_facts_access(facts) != O_WRONLY)
                return false;
        if (S_ISFIFO(st->st_mode))
                return fstatfs(fd, &fs) < 0 || fs.f_type != PIPEFS_MAGIC;
        return S_ISREG(st->st_mode) || (S_ISCHR(st->st_mode) && major(st->st_rdev) != MEMORY);
}

int stdio_shield(const LaunchPlan *plan, int number, int *fd, bool *ret_detour, Error *reterr) {
        _cleanup_(reach_freep) Reach *reach = NULL;
        FdFacts facts;
        ReachPlace place;
        bool reads;
        int r;

        *ret_detour = false;
        fd_facts(*fd, &facts);
        reads = is_read_only_file(&facts) && !shield_is_sealed(*fd) &&
                shield_may_be_changed(*fd, &facts.st, NULL);
        if (!reads && !shield_may_be_read(*fd, &facts))
                return 0;
        r = shield_find_place(plan, &reach, *fd, &place, reterr);
        if (r < 0 || place == REACH_OPEN)
                return r;
        *ret_detour = !reads || facts.st.st_size > COPY_MAX;
        return *ret_detour ? 0 : shield_copy(number, fd, facts.st.st_size, reterr);
}

static int shield_one(Launch *launch, Reach **reach, int number, Error *reterr) {
        FdFacts *facts = &launch->stdio[number];
        ReachPlace ignored;
        int fd, r;

        if (shield_may_be_read(number, facts))
                return shield_note_place(launch, reach, number, number, &ignored, reterr);
        if (!is_read_only_file(facts))
                return 0;
        fd = fcntl(number, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return shield_refuse_file(number, errno, reterr);
        r = shield_file(launch, reach, number, &fd, reterr);
        if (r == 0 && dup2(fd, number) < 0)
                r = shield_refuse_file(number, errno, reterr);
        fd_close(fd);
        fd_facts(number, facts);
        return r;
}

int stdio_files_shield(Launch *launch, Error *reterr) {
        _cleanup_(reach_freep) Reach *reach = NULL;
        int r = 0;

        for (int number = 0; r == 0 && number <= 2; number++)
                r = shield_one(launch, &reach, number, reterr);
        return r;
}
