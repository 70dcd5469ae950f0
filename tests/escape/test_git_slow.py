# SPDX-License-Identifier: Apache-2.0
"""However much a command puts into git's index, holt checks it within seconds, and the host's git enters none of it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.repository import Repository, evil, make
from lib.sandbox import Holt
from lib.sessions import Sessions

pytestmark = [pytest.mark.slow, pytest.mark.identities("user")]

# Writes a split index. Each part has this many gitlinks and sparse directories, below a path of this many parts. Nobody
# may enter the last directories of that path. The gitlink at zz comes last.
SLOW = Path(__file__).with_name("slow-index.py")

# Seconds: the check takes about 1, and a busy or slow machine takes longer.
SOON = 18

# Links, trees and depth. holt reads no path of the first, so a few are enough. It gives up on the others in the middle.
KINDS = {"deep": (999, 9900, 2030), "wide": (9990, 80000, 90), "links": (9990, 0, 250), "trees": (1, 99000, 60)}


@pytest.fixture
def slow(repository: Repository) -> Iterator[Repository]:
    (repository.path / "slow.py").write_text(SLOW.read_text())
    repository.identity.own(repository.path / "slow.py")
    yield repository
    # Python's own function fails at a depth of 1,000.
    subprocess.run(["rm", "-rf", repository.path / "a"], check=True)


def script(repository: Repository, kind: str) -> str:
    return f"{make('zz')}; {evil(repository, 'zz')}; /usr/bin/python3 slow.py {' '.join(map(str, KINDS[kind]))}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_look_after_a_run_ends_soon(kind: str, holt: Holt, slow: Repository) -> None:
    with holt.start(["run", "--", "bash", "-c", f"{script(slow, kind)}; echo made"]) as running:
        assert running.readline() == "made"
        began = time.monotonic()
        result = running.wait()
    assert time.monotonic() - began < SOON
    # holt checks as many entries as the time allows.
    assert result.set_aside in ([".git/index.holt-untrusted"], ["zz/.git.holt-untrusted"]), str(result)
    assert not slow.use(), str(result)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_look_of_a_session_ends_before_its_keeper_must(
    kind: str, sessions: Sessions, slow: Repository
) -> None:
    """The command goes on in the background, so only the last look sees all that it has made."""
    session = sessions.create("w", "--workspace", slow.path, "--kill-after", "100ms")
    with session.start("bash", "-c", f"{script(slow, kind)}; echo made; sleep 1000") as running:
        assert running.readline() == "made"
        began = time.monotonic()
        session("stop").ok()
        assert time.monotonic() - began < SOON
    assert not slow.use()
