/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/told.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/util.h"

/* From linux/keyctl.h, which a build host may not have. */
enum {
        USER_KEYRING = -4, /* KEY_SPEC_USER_KEYRING */
        DO_SEARCH = 10,    /* KEYCTL_SEARCH */
        DO_READ = 11,      /* KEYCTL_READ */
        DO_TIMEOUT = 15,   /* KEYCTL_SET_TIMEOUT */
};

enum {
        TOLD_BYTES_MAX = 4096, /* The kernel allows a user 20,000 bytes of keys. */
        TOLD_SECONDS = 3600,
        STAT_AFTER_NAME = 20, /* Fields of /proc/PID/stat from the name to the start time. */
};

/* Writes a name of this terminal session: the PID of its first process and when that started. */
static int told_name(char *ret, size_t size) {
        char path[64], stat[1024], *at;
        const pid_t session = getsid(0);
        _cleanup_close_ int fd = FD_NONE;
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/%d/stat", session);
        fd = session > 0 ? open(path, O_RDONLY | O_CLOEXEC) : FD_NONE;
        n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
        stat[n < 0 ? 0 : n] = '\0';
        at = strrchr(stat, ')'); /* The name may contain blanks. */
        for (int i = 0; at && i < STAT_AFTER_NAME; i++)
                at = strchr(at + 1, ' ');
        if (!at)
                return -ESRCH;
        at[1 + strcspn(at + 1, " ")] = '\0';
        (void)snprintf(ret, size, "holt: told %d.%s", session, at + 1);
        return 0;
}

bool told_before(const char *text) {
        const size_t size = strlen(text);
        char name[128], seen[TOLD_BYTES_MAX];
        long key;

        if (size > sizeof(seen) || told_name(name, sizeof(name)) < 0)
                return false;
        key = syscall(SYS_keyctl, DO_SEARCH, USER_KEYRING, "user", name, 0);
        if (key >= 0 && syscall(SYS_keyctl, DO_READ, key, seen, sizeof(seen)) == (long)size &&
            memcmp(seen, text, size) == 0)
                return true;
        key = syscall(SYS_add_key, "user", name, text, size, USER_KEYRING);
        if (key >= 0)
                (void)syscall(SYS_keyctl, DO_TIMEOUT, key, TOLD_SECONDS);
        return false;
}
