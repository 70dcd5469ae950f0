# SPDX-License-Identifier: Apache-2.0
"""The tier of a session: its processors and memory, and what lasts over a change of it."""

from __future__ import annotations

import os

import pytest

from lib.sessions import Session, Sessions

TIERS = {"standard": 1, "medium": 2, "large": 4, "xlarge": 8}


def size(session: Session) -> tuple[int, int]:
    """Returns the processors that programs see, and the KiB of memory for each process."""
    cpus, memory = session.sh("nproc; ulimit -d").ok().out.split()
    return int(cpus), int(memory)


def own_cpus() -> int:
    return len(os.sched_getaffinity(0))


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_is_a_size(tier: str, sessions: Sessions) -> None:
    session = sessions.create("v", "--tier", tier)

    assert size(session) == (min(TIERS[tier], own_cpus()), TIERS[tier] << 20)
    for state in ("live", "at rest"):
        shown = session.show()
        assert (shown["state"], shown["tier"], shown["cpus"]) == (state, tier, TIERS[tier])
        assert f"{tier}: " in session("show").ok().out
        session.stop()


def test_without_a_tier_all_processors_are_there(session: Session) -> None:
    assert int(session.sh("nproc").ok().out) == own_cpus()
    assert session.show()["cpus"] is None


def test_files_and_keys_last_over_a_change_of_tier(sessions: Sessions) -> None:
    session = sessions.create("v", "--tier", "standard", "--pids", "77")
    session.sh("echo kept | tee /mnt/files/f ~/f /workspace/f").ok()
    session("kv", "set", "k", "v").ok()
    made = session.show()["created_ms"]
    busy = sessions(["tier", "v", "large"])
    assert "running" in busy.refusal() and "holt stop" in busy.cure
    session.stop()
    for tier in ("large", "medium"):
        sessions(["tier", "v", tier]).ok()
        assert session.show()["state"] == "at rest"
        assert size(session) == (min(TIERS[tier], own_cpus()), TIERS[tier] << 20)
        assert session.sh("cat /mnt/files/f ~/f /workspace/f; ulimit -u").ok().out == "kept\nkept\nkept\n77\n"
        assert session("kv", "get", "k").ok().out == "v\n"
        assert session.show()["created_ms"] == made
        session.stop()
    unknown = sessions(["tier", "v", "huge"])
    assert "huge" in unknown.refusal() and "xlarge" in unknown.cure


def test_memory_says_it_more_exactly_than_a_tier(sessions: Sessions) -> None:
    session = sessions.create("v", "--tier", "standard", "--memory", "3GiB")
    assert size(session) == (1, 3 << 20)
