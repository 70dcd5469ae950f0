# SPDX-License-Identifier: Apache-2.0
"""A start makes few system calls. Time cannot be tested on a busy machine, but calls can be counted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lib import counted
from lib.identity import Identity
from lib.repository import Repository
from lib.rootfs import make_rootfs
from lib.sandbox import Holt
from lib.tools import needs

pytestmark = [needs("busybox"), pytest.mark.identities("user"), pytest.mark.not_sanitized]

# About 5 % more than on Linux 6.18: the kernel, the cgroup and the depth of directories change a few calls. 60 of them look
# up names of /etc that are missing here, at less than 1 us each.
EMPTY, REPOSITORY = 745, 1000


@pytest.fixture
def rootfs(place: Path, identity: Identity) -> Path:
    """A system that is the same on every host."""
    return make_rootfs(place / "rootfs", identity)


def calls(holt: Holt, rootfs: Path) -> int:
    """Returns the number of calls of one start. stderr is a file, so that holt relays nothing."""
    number, log = rootfs.parent / "calls", rootfs.parent / "log"
    args = ["run", "--rootfs", rootfs, "--", "busybox", "true"]
    with log.open("wb") as out:
        running = holt.start(
            args, prefix=[sys.executable, counted.__file__, number], stdout=out, stderr=out, report=False
        )
        with running:
            result = running.wait(timeout=60)
    assert result.code == 0, log.read_text()
    return int(number.read_text())


def test_a_start_makes_few_system_calls(holt: Holt, rootfs: Path) -> None:
    assert calls(holt, rootfs) <= EMPTY


def test_a_start_in_a_repository_makes_few_system_calls(
    holt: Holt, rootfs: Path, workspace: Path, identity: Identity
) -> None:
    Repository(workspace, identity).init()
    assert calls(holt, rootfs) <= REPOSITORY
