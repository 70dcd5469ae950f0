/* SPDX-License-Identifier: Apache-2.0 */
/* Signed links: their text, and their signature. Pure.
 *
 * The target of a link's URL is
 *
 *     /v1/get/ID/EXPIRES/SIGNATURE/PATH        or  /v1/put/...
 *
 * ID is the number of the link in its session. EXPIRES is a time in milliseconds since the epoch.
 * SIGNATURE is the HMAC-SHA-256 of everything else and the session's name, in hexadecimal. PATH is
 * the path below /mnt/files, percent-encoded, so that clients find a name for the file. Each link
 * has exactly one text: any other spelling of it is refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "links/sha256.h"

enum {
        LINK_KEY_SIZE = 32,
        LINK_PATH_MAX = 1024,                      /* Bytes of a path, without its NUL. */
        LINK_TARGET_MAX = 3 * LINK_PATH_MAX + 160, /* Characters of a target, without its NUL. */
        LINK_SESSION_MAX = 64,                     /* Bytes of a session's name, with its NUL. */
};

typedef struct Link {
        bool upload;
        uint32_t id;         /* From 1. */
        uint64_t expires_ms; /* Milliseconds since the epoch. */
        char path[LINK_PATH_MAX + 1];
} Link;

/* The secret of a session's links. */
typedef struct LinkKey {
        uint8_t bytes[LINK_KEY_SIZE];
        char session[LINK_SESSION_MAX];
} LinkKey;

/* Whether the path has 1 to LINK_PATH_MAX bytes, and consists of names that are not "." or "..",
 * with one slash between two of them. */
bool link_path_fits(const char *path);

/* Writes the target of a link whose path fits. */
void link_write(const LinkKey *key, const Link *link, char ret[LINK_TARGET_MAX + 1]);

/* Reads a target, which may contain any bytes, and checks its signature in constant time. It says
 * nothing about the expiry. Returns 0; -EBADMSG for a text that is no link; or -EACCES if the
 * signature is not that of the key. On failure, *ret is not written. */
int link_read(const LinkKey *key, const char *target, size_t length, Link *ret);
