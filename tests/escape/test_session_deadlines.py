# SPDX-License-Identifier: Apache-2.0
"""No deadline is in the hands of what it bounds: a command of a session that stops all that starts after it holds
others up before they execute, and they end in time all the same."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from lib.hostile import Hostile
from lib.sandbox import Running
from lib.sessions import Session, Sessions, alive, until

pytestmark = pytest.mark.identities("user", "root")


@contextlib.contextmanager
def held_up(sessions: Sessions, hostile: Hostile, *flags: str) -> Iterator[Session]:
    """A session in which nothing starts any more."""
    session = sessions.create("w", "--ro", str(hostile.directory), "--kill-after", "200ms", *flags)
    with session.start(hostile.path("holdup")) as running:
        assert running.readline() == "ready"
        yield session
        session("kill", "p1")
        running.wait()


def start_held(session: Session, *flags: str) -> tuple[Running, str]:
    """A command that is held before it executes, and its id."""
    for _ in range(20):
        known = session.ps()
        running = session.start("sleep", "3000", flags=flags)
        [new] = until(lambda known=known: session.ps().keys() - known.keys(), "it is asked for")
        time.sleep(0.3)
        if session.ps()[new]["state"] == "starting":
            return running, new
        session("kill", new)
        running.wait()
    raise AssertionError("nothing is held up")


@pytest.mark.slow
@pytest.mark.parametrize("flags", (("--timeout", "500ms"), ()), ids=("of the call", "of the policy"))
def test_a_timeout_counts_before_the_command_executes(
    flags: tuple[str, ...], sessions: Sessions, hostile: Hostile
) -> None:
    with held_up(sessions, hostile, *(() if flags else ("--timeout", "2s"))) as session:
        running, held = start_held(session, *flags)
        with running:
            assert running.wait(timeout=10).code == 124
        until(lambda: session.ps()[held]["state"] == "ended", "it ends", 10)
        assert session.ps()[held]["cause"] == "timeout"
        assert session.processes("sleep") == []


@pytest.mark.slow
@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT))
def test_a_signal_ends_who_waits_for_a_start(number: signal.Signals, sessions: Sessions, hostile: Hostile) -> None:
    with held_up(sessions, hostile) as session:
        running, held = start_held(session)
        with running:
            running.process.send_signal(number)
            assert running.wait(timeout=10).code == -number
        until(lambda: session.ps()[held]["state"] == "ended", "it ends", 10)
        assert session.ps()[held]["cause"] == "killed"


@pytest.mark.slow
def test_what_is_held_up_ends_with_who_asked_for_it(sessions: Sessions, hostile: Hostile) -> None:
    """Also where it is detached: nobody has learnt its id."""
    with held_up(sessions, hostile) as session:
        running, held = start_held(session, "--detach")
        running.process.kill()
        running.wait()
        until(lambda: session.ps()[held]["state"] == "ended", "it ends", 10)


@pytest.mark.slow
def test_kill_and_sigterm_to_the_keeper_end_what_is_held_up(sessions: Sessions, hostile: Hostile) -> None:
    with held_up(sessions, hostile) as session:
        killed, held = start_held(session)
        session("kill", held).ok()
        assert killed.wait(timeout=10).code == 137
        running, _ = start_held(session)
        keeper = session.keeper()
        os.kill(keeper, signal.SIGTERM)
        until(lambda: not alive([keeper]), "the keeper ends", 5)
        running.wait(timeout=5)


@pytest.mark.slow
def test_an_init_that_does_not_answer_ends_with_its_sandbox(sessions: Sessions) -> None:
    session = sessions.create("w")
    init = session.init()
    os.kill(init, signal.SIGSTOP)
    before = time.monotonic()
    result = session.exec("sleep", "3000", flags=["--timeout", "500ms"], timeout=20)

    assert result.code == 124, str(result)
    assert time.monotonic() - before < 10
    until(lambda: not alive([init]), "the sandbox is stopped", 5)
    assert session.exec("echo", "next").ok().out == "next\n"
