# SPDX-License-Identifier: Apache-2.0
"""Hosts with a missing layer, made without root: each command runs another one on such a host. See also Hostile.refusing()."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

Command = list[str | os.PathLike[str]]

# Layers that are namespaces, each with the name of its limit in /proc/sys/user and its flag of clone(2).
NAMESPACES = {
    "user": ("user", 0x10000000), "mount": ("mnt", 0x00020000), "pid": ("pid", 0x20000000),
    "net": ("net", 0x40000000), "ipc": ("ipc", 0x08000000), "uts": ("uts", 0x04000000),
    "cgroup": ("cgroup", 0x02000000),
}

# The host id that becomes 0 in rootless().
ROOTLESS_FIRST = 100000

# The system calls of Landlock.
LANDLOCK = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")


def landlock_abi() -> int:
    """Uses landlock_create_ruleset(2) with LANDLOCK_CREATE_RULESET_VERSION. Returns -1 if the kernel has no Landlock."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1)


def maps_tmpfs() -> bool:
    """Whether this kernel can id-map a tmpfs, which workspaces and sessions of root need: from Linux 6.3 on."""
    return tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 3)


def limited(layer: str) -> Command:
    """Returns a prefix that sets the layer's limit to 0 in a new user namespace. A limit counts in its user namespace and all
    below it, so the host's own limits stay untouched. Not for the host's root, who could not create that namespace."""
    limit = f"/proc/sys/user/max_{NAMESPACES[layer][0]}_namespaces"
    return ["unshare", "--map-root-user", "--", "sh", "-c", f'echo 0 > {limit} && exec "$0" "$@"']


def covered_proc() -> Command:
    """Covers a part of every /proc, like a container, so that the kernel refuses a fresh one (mount_too_revealing()). Every
    /proc counts, since a chroot of the host may have another one."""
    cover = """
        while read -r _ _ _ _ target rest; do
            case $rest in *" - proc "*) mount --bind /dev/null "$target/version" || exit ;; esac
        done < /proc/self/mountinfo
        exec "$0" "$@"
    """
    return ["unshare", "--map-root-user", "--mount", "--", "sh", "-c", cover]


def rootless(own_mounts: bool = True) -> Command:
    """Returns a prefix that makes the command root of a user namespace with a range of ids from ROOTLESS_FIRST on, like a
    rootless container. Only the host's root can create such a namespace by itself."""
    flags = NAMESPACES["user"][1] | (NAMESPACES["mount"][1] if own_mounts else 0)
    return [sys.executable, Path(__file__).with_name("rootless.py"), str(ROOTLESS_FIRST), str(flags)]
