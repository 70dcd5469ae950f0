/* SPDX-License-Identifier: Apache-2.0 */
/* "keyring NAME SECRET COMMAND [ARG...]": a caller with a session keyring and a key in it. A login
 * (pam_keyinit(8)) makes such a keyring, and so do encrypted directories. An ARG "KEY" is replaced
 * by the key's serial number. Exits with 3 if this host has no keys. */
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
        char serial[24];
        long key = -1;

        if (argc < 4)
                return 2;
        if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
                key = syscall(SYS_add_key, "user", argv[1], argv[2], strlen(argv[2]),
                              KEY_SPEC_SESSION_KEYRING);
        if (key < 0) {
                perror("keyring");
                return errno == ENOSYS || errno == EPERM ? 3 : 2;
        }
        (void)snprintf(serial, sizeof(serial), "%ld", key);
        for (int i = 4; i < argc; i++)
                if (strcmp(argv[i], "KEY") == 0)
                        argv[i] = serial;
        execv(argv[3], argv + 3);
        perror(argv[3]);
        return 2;
}
