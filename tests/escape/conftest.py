# SPDX-License-Identifier: Apache-2.0
"""What the tests of this suite have in common beyond lib/plugin.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.identity import Identity
from lib.repository import FORGE, Repository


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
