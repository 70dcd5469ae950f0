# SPDX-License-Identifier: Apache-2.0
"""Hosts that lack a layer, made without root: commands that run another on such a host. See also Hostile.refusing()."""

from __future__ import annotations

import os
import sys
from pathlib import Path

Command = list[str | os.PathLike[str]]

# Layers that are namespaces: the name of their limit in /proc/sys/user, and their flag in clone(2).
NAMESPACES = {
    "user": ("user", 0x10000000), "mount": ("mnt", 0x00020000), "pid": ("pid", 0x20000000),
    "net": ("net", 0x40000000), "ipc": ("ipc", 0x08000000), "uts": ("uts", 0x04000000),
    "cgroup": ("cgroup", 0x02000000),
}

# The host's id that is 0 in rootless().
ROOTLESS_FIRST = 100000

# The calls that Landlock has.
LANDLOCK = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")


def maps_tmpfs() -> bool:
    """Whether this kernel can id-map a tmpfs, as workspaces and sessions of root's need it: from Linux 6.3 on."""
    return tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 3)


def limited(layer: str) -> Command:
    """Limits of 0 count in the user namespace that makes and all above it: with one in between, the host's own are not
    touched. Not for the host's root, who would be refused for that namespace."""
    limit = f"/proc/sys/user/max_{NAMESPACES[layer][0]}_namespaces"
    return ["unshare", "--map-root-user", "--", "sh", "-c", f'echo 0 > {limit} && exec "$0" "$@"']


def covered_proc() -> Command:
    """As in a container: a part of /proc is covered, so the kernel gives no fresh one (mount_too_revealing()): of every
    /proc, since a chroot of the host's may have one more."""
    cover = """
        while read -r _ _ _ _ target rest; do
            case $rest in *" - proc "*) mount --bind /dev/null "$target/version" || exit ;; esac
        done < /proc/self/mountinfo
        exec "$0" "$@"
    """
    return ["unshare", "--map-root-user", "--mount", "--", "sh", "-c", cover]


def rootless(own_mounts: bool = True) -> Command:
    """Root of a user namespace that has a range of ids, from ROOTLESS_FIRST on, as in a rootless container. Only the
    host's root can make one by itself."""
    flags = NAMESPACES["user"][1] | (NAMESPACES["mount"][1] if own_mounts else 0)
    return [sys.executable, Path(__file__).with_name("rootless.py"), str(ROOTLESS_FIRST), str(flags)]
