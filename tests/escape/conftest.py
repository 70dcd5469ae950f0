# SPDX-License-Identifier: Apache-2.0
"""What the tests of this suite have in common beyond lib/plugin.py."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.repository import FORGE, Repository

# btrfs is not of each kernel, nor its programs of each machine.
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
    """forge-index.py as forge.py in the repository."""
    (repository.path / "forge.py").write_text(FORGE.read_text())
    repository.identity.own(repository.path / "forge.py")
