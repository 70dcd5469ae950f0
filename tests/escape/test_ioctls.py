# SPDX-License-Identifier: Apache-2.0
"""Ioctls of file systems: a snapshot of a subvolume would show what is hidden and let what is protected be written."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Sessions

ALL = pytest.mark.identities("user", "root", "nested")

# Tries each request, with and without a bit that the kernel takes no notice of.
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

# What a program gets as an answer, by the name of an errno, or "done".
ASK = """
import errno, fcntl, os, sys
file = open(sys.argv[1] + "/file", "w+")
for request in sys.argv[2:]:
    try:
        fcntl.ioctl(file, int(request, 16), bytearray(256))
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


@pytest.fixture
def subvolume(place: Path, identity: Identity) -> Iterator[Path]:
    """A directory that is the root of a btrfs subvolume, with a hidden file in it."""
    path, image = place / "subvolume", place / "image"
    if not shutil.which("mkfs.btrfs", path="/sbin:/usr/sbin"):
        pytest.skip("no mkfs.btrfs here")
    path.mkdir()
    subprocess.run(["truncate", "-s", "128M", image], check=True)
    subprocess.run(["/sbin/mkfs.btrfs", "-q", image], check=True, capture_output=True)
    if subprocess.run(["mount", "-o", "loop", image, path], capture_output=True).returncode:
        pytest.skip("no loop device, or no btrfs, here")
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
def test_nor_in_a_session(subvolume: Path, sessions: Sessions) -> None:
    session = sessions.create("w", "--workspace", str(subvolume), "--hide", ".env")
    session.exec("python3", "-c", SNAPSHOT).ok()
    session("python", "-c", f"import os; os.chdir('/workspace')\n{SNAPSHOT}").ok()
    assert names(subvolume) == [".env"]
    session.stop()


def test_files_share_their_blocks_all_the_same(subvolume: Path, holt: Holt) -> None:
    script = "head -c 100000 /dev/urandom > a && cp --reflink=always a b && cmp a b && lsattr a >&2"
    holt(["run", "--", "bash", "-c", script], cwd=subvolume).ok()


def test_the_host_makes_snapshots_there(subvolume: Path) -> None:
    """Or the tests above would say nothing."""
    subprocess.run(["python3", "-c", SNAPSHOT], cwd=subvolume, check=True)
    assert {"one", "two"} <= set(names(subvolume))


@ALL
@pytest.mark.parametrize("where", ("/tmp", "."))
def test_a_file_keeps_its_flags_and_its_generation(where: str, holt: Holt) -> None:
    """FS_IOC_SETFLAGS makes a directory whose names ignore case (.GIT), where the file system can; FS_IOC_SETVERSION
    forges a file handle."""
    asked = ("0x40086602", "0x40087602", "0x401c5820")
    answers = holt(["run", "--", "python3", "-c", ASK, where, *asked]).ok().out.split()
    assert answers == ["ENOTTY"] * len(asked)


@ALL
def test_nor_does_the_system_call_change_flags(holt: Holt) -> None:
    script = (
        "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); open('/tmp/f', 'w')\n"
        "r = libc.syscall(469, -100, b'/tmp/f', ctypes.create_string_buffer(24), 24, 0)\n"
        "print(r, os.strerror(ctypes.get_errno()))"
    )
    assert holt(["run", "--", "python3", "-c", script]).ok().out == "-1 Operation not supported\n"
