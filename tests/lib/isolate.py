# SPDX-License-Identifier: Apache-2.0
"""Gives each pytest-xdist worker a mount namespace, with temporary directories on a file system of its own.

Workers share the machine. The leak check compares temporary directories and mounts before and after each test. Without this
plugin it would report files that another worker's test has just created.

The file system is an ext4 in memory. On the host's own ext4, files that tests have removed make new ones slow: without a
journal, ext4 does not use an inode again for minutes, and looks through all of those each time. This took 40 % of the whole
run. Where there are no loop devices, the directories are on the host's file system.

Only root can do this without a user namespace, and in a user namespace the identity "user" would not be an ordinary user. So a
suite without root must run in one process.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.paths import PROJECT

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000

PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")

IMAGE_BYTES = 8 << 30  # sparse
ROOM_BYTES = 2 << 30  # /dev/shm is used if it has so much room

_made: list[Path] = []


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Runs in the controller: creates the directories of a starting worker."""
    # /var/tmp is used because many machines mount /tmp nosuid and nodev; see the fixture "scratch".
    base = Path(tempfile.mkdtemp(prefix="holt-worker-", dir="/var/tmp"))
    base.chmod(0o755)
    _made.append(base)
    node.workerinput["private"] = str(base)  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Runs in a worker: enters the namespace before any file is created."""
    given = getattr(config, "workerinput", {}).get("private")
    if given and os.geteuid() != 0:
        raise pytest.UsageError("only root can run the suite with -n: workers need mount namespaces")
    if given:
        _enter(Path(given))


def pytest_unconfigure(config: pytest.Config) -> None:
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _mounts(base: Path) -> Iterator[tuple[Path, str]]:
    for target in PRIVATE:
        if os.path.isdir(target):
            yield base / target.strip("/").replace("/", "-"), target


def _image_place() -> str:
    room = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    return "/dev/shm" if room and room.f_bavail * room.f_frsize >= ROOM_BYTES else "/var/tmp"


def _mount_image(base: Path) -> None:
    """Mounts a new file system at base, if this machine has loop devices. It is gone when the worker's namespace ends."""
    with tempfile.NamedTemporaryFile(prefix="holt-worker-", dir=_image_place()) as image:
        image.truncate(IMAGE_BYTES)
        for words in (["/sbin/mkfs.ext4", "-q", "-F", "-E", "nodiscard", image.name],
                      ["mount", "-o", "loop,discard", image.name, str(base)]):
            if subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode != 0:
                return
    base.chmod(0o755)


def _enter(base: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.unshare(CLONE_NEWNS), "unshare")
    _checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount / private")
    _mount_image(base)
    for source, _ in _mounts(base):
        source.mkdir()
        source.chmod(0o1777)
    # Directories are opened first, because the new /var/tmp hides the sources, and may hide the checkout itself.
    fds = [(os.open(source, os.O_PATH | os.O_DIRECTORY), target) for source, target in _mounts(base)]
    if any(PROJECT.is_relative_to(target) for _, target in fds):
        fds.append((os.open(PROJECT, os.O_PATH | os.O_DIRECTORY), str(PROJECT)))
    for fd, target in fds:
        os.makedirs(target, exist_ok=True)
        _checked(libc.mount(b"/proc/self/fd/%d" % fd, os.fsencode(target), None, MS_BIND, None), f"mount {target}")
        os.close(fd)
    os.chdir(PROJECT)
