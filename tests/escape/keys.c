/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's keys, if the policy allows the calls for keys. A process that possesses a key can
 * read its payload, and it possesses all keys that it finds from its session keyring
 * (keyrings(7)). */
#include "hostile.h"

#include <linux/keyctl.h>

static void read_key(long key) {
        char payload[64];
        long n;

        if (key < 0)
                held("%s", errno_name(errno));
        n = syscall(SYS_keyctl, KEYCTL_READ, key, payload, sizeof(payload));
        if (n < 0)
                held("key %ld: %s", key, errno_name(errno));
        broken("read %.*s", (int)n, payload);
}

/* args[0] is the key's name, here and below. */
static void search(char **args) {
        read_key(syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", args[0], 0));
}

static void request(char **args) {
        read_key(syscall(SYS_request_key, "user", args[0], NULL, 0));
}

/* args[0] is the serial number. */
static void by_number(char **args) {
        read_key(strtol(args[0], NULL, 10));
}

/* Links the key into the keyring of the process, which is empty at first. A linked key is
 * possessed. */
static void link_number(char **args) {
        long key = strtol(args[0], NULL, 10);

        if (syscall(SYS_keyctl, KEYCTL_LINK, key, KEY_SPEC_PROCESS_KEYRING) < 0)
                held("%s", errno_name(errno));
        read_key(key);
}

static const Attack attacks[] = {
        { "search", search, 1 },
        { "request", request, 1 },
        { "by-number", by_number, 1 },
        { "link-number", link_number, 1 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
