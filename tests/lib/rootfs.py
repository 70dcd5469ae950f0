# SPDX-License-Identifier: Apache-2.0
"""A system tree that contains only busybox, for --rootfs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lib.identity import Identity

APPLETS = ("sh", "ls", "cat", "echo", "touch", "id", "env", "readlink")


def is_static(program: str) -> bool:
    """Whether the program names no dynamic loader."""
    return b"/ld-" not in Path(program).read_bytes()[:4096]


def make_rootfs(root: Path, identity: Identity) -> Path:
    """Makes a tree in which /bin, /sbin and /usr are separate, like before the merge of /usr."""
    busybox = shutil.which("busybox", path="/usr/bin:/bin")
    if not busybox or not is_static(busybox):
        pytest.skip("busybox is not static on this host (busybox-static)")
    for directory in ("bin", "sbin", "usr/bin", "etc", "lib/only-here"):
        (root / directory).mkdir(parents=True)
    shutil.copy(busybox, root / "bin" / "busybox")
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    (root / "usr" / "bin" / "cut").symlink_to("../../bin/busybox")
    (root / "etc" / "os-release").write_text("NAME=Tiny\n")
    (root / "etc" / "shadow").write_text("secret\n")
    (root / "private").write_text("secret\n")
    subprocess.run(["chown", "-Rh", f"{identity.uid}:{identity.gid}", root], check=True)
    return root
