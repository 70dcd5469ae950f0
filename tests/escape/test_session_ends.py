# SPDX-License-Identifier: Apache-2.0
"""All processes of a killed or timed-out command of a session are gone, however they tried to escape. Other commands of
the session go on. test_timeouts.py shows that each way works without holt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lib.hostile import Hostile
from lib.sessions import Session, Sessions, alive, until

KINDS = ("plain", "setsid", "double-fork", "adopted", "stopped", "stubborn", "headless", "sibling")

Make = Callable[..., Session]


@pytest.fixture
def make(sessions: Sessions, hostile: Hostile) -> Make:
    """A session with the hostile programs, and a command of its own that must not be affected."""

    def create(*flags: str) -> Session:
        session = sessions.create("w", "--ro", str(hostile.directory), "--kill-after", "200ms", *flags)
        session.detach("exec sleep 2000")
        return session

    return create


def daemons(session: Session) -> list[str]:
    return [str(p) for p in session.processes() if p.name.startswith("daemon")]


def assert_all_gone(session: Session, process: str, cause: str) -> None:
    until(lambda: session.ps()[process]["state"] == "ended", "all of it ends", 30)
    assert daemons(session) == []
    assert session.ps()[process]["cause"] == cause
    assert session.ps()["p1"]["state"] == "running" and len(session.processes("sleep")) == 1
    assert session.exec("echo", "next").ok().out == "next\n"


@pytest.mark.parametrize("kind", KINDS)
def test_kill_takes_daemons_with_it(kind: str, make: Make, hostile: Hostile) -> None:
    session = make()
    with session.start(hostile.path("daemon"), kind, "alive") as running:
        assert running.readline() == "ready"
        assert len(daemons(session)) >= 2
        session("kill", "p2").ok()
        assert running.wait().code == 137

    assert_all_gone(session, "p2", "killed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_timeout_takes_daemons_with_it(kind: str, make: Make, hostile: Hostile) -> None:
    session = make()
    with session.start(hostile.path("daemon"), kind, "alive", flags=["--timeout", "500ms"]) as running:
        assert running.wait(timeout=30).code == 124

    assert_all_gone(session, "p2", "timeout")


@pytest.mark.parametrize("kind", KINDS)
def test_kill_takes_the_daemons_of_one_that_has_ended(kind: str, make: Make, hostile: Hostile) -> None:
    session = make()
    script = f"exec 3< <(exec {hostile.path('daemon')} {kind} alive 2>/dev/null); read -u 3 line; echo $line"
    assert session.sh(script).ok().out == "ready\n"
    assert daemons(session) and session.ps()["p2"]["state"] == "background"
    session("kill", "p2").ok()

    assert_all_gone(session, "p2", "exited")


@pytest.mark.parametrize("kind", KINDS)
def test_stop_takes_daemons_with_it(kind: str, make: Make, hostile: Hostile) -> None:
    session = make()
    with session.start(hostile.path("daemon"), kind, "alive") as running:
        assert running.readline() == "ready"
        inside = [p.pid for p in session.processes()]
        session.stop()
        running.wait()

    assert inside and not alive(inside)
