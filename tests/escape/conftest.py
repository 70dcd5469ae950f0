# SPDX-License-Identifier: Apache-2.0
"""Fixtures of this suite, in addition to lib/plugin.py."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.repository import FORGE, Repository

# Not every kernel has btrfs, and not every machine has its programs.
BTRFS = os.geteuid() == 0 and Path("/dev/loop-control").exists() and "\tbtrfs\n" in Path("/proc/filesystems").read_text()
collect_ignore = [] if BTRFS and shutil.which("mkfs.btrfs", path="/sbin:/usr/sbin") else ["test_snapshots.py"]


@pytest.fixture
def repository(workspace: Path, identity: Identity) -> Repository:
    """The workspace, a git repository with a commit."""
    return Repository(workspace, identity).init()


@pytest.fixture
def empty(workspace: Path, identity: Identity) -> Repository:
    """The workspace, without a repository yet."""
    return Repository(workspace, identity)


@pytest.fixture
def forge(repository: Repository) -> None:
    """Writes forge-index.py into the repository as forge.py."""
    (repository.path / "forge.py").write_text(FORGE.read_text())
    repository.identity.own(repository.path / "forge.py")
