/* SPDX-License-Identifier: Apache-2.0 */
/* Opens host paths that may lead through directories in which a sandbox can write. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/strings.h"

/* Opens path, which is absolute and in normal form. Links that the caller made are followed, even
 * if they lead into an untrusted directory. From the first untrusted directory on, no link is
 * followed, because an attacker may have made it. A directory is untrusted if its path, as the
 * kernel knows it after following all links, lies in one of `untrusted`. A link of another user in
 * a directory such as /tmp gives -EACCES.
 *
 * untrusted  absolute directories; those that cannot be opened are ignored.
 * flags      open(2) flags; O_CLOEXEC is added.
 *
 * Returns an fd that the caller owns, or a negative errno of openat2(2), which needs Linux 5.6.
 * -ELOOP means a link that may not be followed. */
int beneath_open(const char *path, const StrList *untrusted, int flags, mode_t mode);

/* Does the same with O_PATH, for a path that an attacker may have chosen. It looks up no name in a
 * network file system, in FUSE or by an automounter. Such a look-up can hang, and it can carry the
 * name to another host. The file system of the root directory is allowed, even if it is a network
 * file system. -EREMOTE means that the path leads into another file system of these kinds. */
int beneath_open_local(const char *path, const StrList *untrusted);
