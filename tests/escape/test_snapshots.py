# SPDX-License-Identifier: Apache-2.0
"""A snapshot of a btrfs subvolume would show hidden files, and make protected ones writable. conftest.py leaves this
file out if no btrfs can be made."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Sessions

ALL = pytest.mark.identities("user", "root", "nested")

# Tries each request, with and without a bit that the kernel ignores.
SNAPSHOT = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
here = os.open(".", os.O_RDONLY)
for high in (0, 1 << 32):
    for request, argument in (
        (0x50009401, struct.pack("=q4088s", here, b"one")),
        (0x50009417, struct.pack("=qQQ32s4040s", here, 0, 0, b"", b"two")),
        (0x50009418, struct.pack("=qQQ32s4040s", 0, 0, 0, b"", b"empty")),
        (0x5000940e, struct.pack("=q4088s", 0, b"empty")),
    ):
        libc.syscall(ctypes.c_long(IOCTL), here, ctypes.c_ulong(request | high), ctypes.create_string_buffer(argument))
""".replace("IOCTL", "16 if os.uname().machine == 'x86_64' else 29")


@pytest.fixture
def subvolume(place: Path, identity: Identity) -> Iterator[Path]:
    """A directory that is the root of a btrfs subvolume, with a hidden file in it."""
    path, image = place / "subvolume", place / "image"
    path.mkdir()
    subprocess.run(["truncate", "-s", "128M", image], check=True)
    subprocess.run(["/sbin/mkfs.btrfs", "-q", image], check=True, capture_output=True)
    subprocess.run(["mount", "-o", "loop", image, path], check=True)
    (path / ".env").write_text("s3cr3t\n")
    for file in (path / ".env", path):
        identity.own(file)
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def names(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir())


@ALL
@pytest.mark.parametrize("preset", ("standard", "strict", "permissive"))
def test_no_snapshot_shows_a_hidden_file(preset: str, subvolume: Path, holt: Holt) -> None:
    holt(["run", "--policy", preset, "--hide", ".env", "--", "python3", "-c", SNAPSHOT], cwd=subvolume).ok()
    assert names(subvolume) == [".env"]


@pytest.mark.identities("user", "root")
def test_snapshots_show_no_hidden_file_in_a_session(subvolume: Path, sessions: Sessions) -> None:
    session = sessions.create("w", "--workspace", str(subvolume), "--hide", ".env")
    session.exec("python3", "-c", SNAPSHOT).ok()
    session("python", "-c", f"import os; os.chdir('/workspace')\n{SNAPSHOT}").ok()
    assert names(subvolume) == [".env"]
    session.stop()


def test_files_share_their_blocks_all_the_same(subvolume: Path, holt: Holt) -> None:
    script = "head -c 100000 /dev/urandom > a && cp --reflink=always a b && cmp a b && lsattr a >&2"
    holt(["run", "--", "bash", "-c", script], cwd=subvolume).ok()


def test_the_host_makes_snapshots_there(subvolume: Path) -> None:
    """The control of the tests above."""
    subprocess.run(["python3", "-c", SNAPSHOT], cwd=subvolume, check=True)
    assert {"one", "two"} <= set(names(subvolume))
