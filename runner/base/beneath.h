/* SPDX-License-Identifier: Apache-2.0 */
/* Host paths that may lead through directories in which a sandbox can write, and has perhaps
 * written before. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/strings.h"

/* Opens path, which is absolute and in normal form. From the first directory on its way that lies
 * in one of untrusted (by the kernel's own paths, whatever links lead there), no link is followed:
 * it may be an attacker's. Before that links are the caller's and are followed, to an untrusted
 * directory, too. A link of somebody else in a directory like /tmp is -EACCES.
 *
 * untrusted  absolute directories; those that can't be opened are passed over.
 * flags      open(2) flags; O_CLOEXEC is added.
 *
 * An fd that the caller owns, or -ELOOP (a link where none is followed), or another negative errno
 * of openat2(2), which needs Linux 5.6. */
int beneath_open(const char *path, const StrList *untrusted, int flags, mode_t mode);
