# SPDX-License-Identifier: Apache-2.0
"""The VMs of this lane: how each is booted, and which tests run in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Boot:
    """One boot. args are added to the kernel's command line. cgroup is v2, v1 or none. Tests of tests/vm/ name their boots
    themselves; network adds some files of tests/e2e, and escape the whole of tests/escape."""

    what: str
    args: str = ""
    cgroup: str = "v2"
    network: bool = False
    escape: bool = False


BOOTS = {
    "debian": Boot("as Debian boots it; settings of sysctl(8) are varied in it", network=True, escape=True),
    "no-landlock": Boot("Landlock is not among the security modules", "lsm=yama,apparmor"),
    "cgroup-v2-only": Boot("no cgroup v1 hierarchy can be made", "cgroup_no_v1=all"),
    "cgroup-v1": Boot("each controller a hierarchy of its own, no unified one", cgroup="v1"),
    "no-cgroup": Boot("nothing is mounted at /sys/fs/cgroup", cgroup="none"),
    "no-ipv6": Boot("no IPv6, as many a hardened host has it", "ipv6.disable=1"),
}
