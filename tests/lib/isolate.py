# SPDX-License-Identifier: Apache-2.0
"""Gives each pytest-xdist worker a mount namespace with temporary directories of its own.

Workers share the machine. The leak check compares temporary directories and mounts before and after each test. Without this
plugin it would report files that another worker's test has just created.

Only root can do this without a user namespace, and in a user namespace the identity "user" would not be an ordinary user. So a
suite without root must run in one process.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.paths import PROJECT

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000

PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")

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


def _enter(base: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for source, _ in _mounts(base):
        source.mkdir()
        source.chmod(0o1777)
    _checked(libc.unshare(CLONE_NEWNS), "unshare")
    _checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount / private")
    # Directories are opened first, because the new /var/tmp hides the sources, and may hide the checkout itself.
    fds = [(os.open(source, os.O_PATH | os.O_DIRECTORY), target) for source, target in _mounts(base)]
    if any(PROJECT.is_relative_to(target) for _, target in fds):
        fds.append((os.open(PROJECT, os.O_PATH | os.O_DIRECTORY), str(PROJECT)))
    for fd, target in fds:
        os.makedirs(target, exist_ok=True)
        _checked(libc.mount(b"/proc/self/fd/%d" % fd, os.fsencode(target), None, MS_BIND, None), f"mount {target}")
        os.close(fd)
    os.chdir(PROJECT)
