# SPDX-License-Identifier: Apache-2.0
"""A keeper becomes ready or is killed. It ends within seconds, whatever blocks it or its sandbox."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator

import pytest

from lib.hostile import SYSCALLS, Hostile
from lib.leaks import descendants
from lib.sandbox import Running
from lib.sessions import Session, Sessions, alive, keepers, until


pytestmark = [pytest.mark.slow, pytest.mark.identities("user", "root")]

# Seconds: the time that holt promises, and some more for a busy machine.
ENDS = 30

STUBBORN = "trap '' TERM HUP INT; echo ready; while :; do sleep 1; done"

PTRACE_SEIZE = 0x4206
WALL = 0x40000000


@pytest.fixture
def session(sessions: Sessions) -> Iterator[Session]:
    """A session with a command that ignores TERM."""
    session = sessions.create("w", "--kill-after", "200ms")
    with session.start("bash", "-c", STUBBORN) as running:
        assert running.readline() == "ready"
        yield session


def test_a_keeper_ends_when_its_session_was_removed(session: Session) -> None:
    keeper, init = session.keeper(), session.init()
    shutil.rmtree(session.directory)

    until(lambda: not alive([keeper, init]), "it ends", ENDS)


def test_a_keeper_ends_when_all_sessions_were_removed_below_it(session: Session) -> None:
    keeper, init = session.keeper(), session.init()
    shutil.rmtree(session.sessions.data / "holt")

    until(lambda: not alive([keeper, init]), "it ends", ENDS)


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
def test_a_second_signal_ends_a_keeper_without_patience(number: signal.Signals, sessions: Sessions) -> None:
    session = sessions.create("w", "--kill-after", "1h")
    with session.start("bash", "-c", STUBBORN) as running:
        assert running.readline() == "ready"
        keeper, init = session.keeper(), session.init()
        os.kill(keeper, number)
        time.sleep(0.5)
        assert alive([keeper, init]) == sorted([keeper, init]), "the first waits for kill_after"
        os.kill(keeper, number)
        until(lambda: not alive([keeper, init]), "it ends", 5)


@pytest.mark.identities("root")
def test_a_keeper_does_not_wait_for_a_sandbox_that_can_not_end(session: Session) -> None:
    """A process inside that is traced from outside stays as a zombie, and so does init."""
    keeper, init = session.keeper(), session.init()
    traced = session.processes("bash")[0].pid
    assert ctypes.CDLL(None, use_errno=True).ptrace(PTRACE_SEIZE, traced, 0, 0) == 0
    try:
        os.kill(keeper, signal.SIGTERM)
        until(lambda: not alive([keeper]), "it ends", ENDS)
    finally:
        os.kill(init, signal.SIGKILL)
        os.waitpid(traced, WALL)
    until(lambda: not alive([init]), "the sandbox ends with the tracing", 5)


def test_a_keeper_does_not_wait_for_its_database(session: Session) -> None:
    """The keeper's loop is blocked: another process has locked the database, and many rows are waiting."""
    for _ in range(5):
        session.exec("true").ok()
    keeper, init = session.keeper(), session.init()
    with sqlite3.connect(session.directory / "session.db") as database:
        database.execute("BEGIN EXCLUSIVE")
        os.kill(keeper, signal.SIGTERM)
        until(lambda: not alive([keeper, init]), "it ends", ENDS)
        database.rollback()
    database.close()


def starting(session: Session, hostile: Hostile) -> Running:
    """An exec whose keeper does not become ready, because it makes a call that does not return."""
    number = str(SYSCALLS[platform.machine()]["fsopen"])
    argv = ["exec", session.name, "--", "true"]
    return session.sessions.start(argv, prefix=[hostile.path("hang"), number])


def hung_keeper(running: Running) -> int:
    """The keeper, after its child hangs. The child becomes the sandbox and has the same name."""
    def found() -> list[int]:
        ours = {p.pid: p.parent for p in descendants(running.pid)}
        named = {p.pid for p in keepers()} & ours.keys()
        return [ours[pid] for pid in named if ours[pid] in named]

    [keeper] = until(found, "there is a keeper with a child")
    return keeper


def test_a_keeper_that_is_not_ready_in_time_is_killed(sessions: Sessions, hostile: Hostile) -> None:
    session = sessions.create("w")
    with starting(session, hostile) as running:
        keeper = hung_keeper(running)
        result = running.wait(timeout=40)

    assert re.search(r'keeper of session "w" was not ready within \d+ s', result.refusal())
    assert not alive([keeper])
    assert session.exec("echo", "next").ok().out == "next\n"


def test_a_client_kills_a_stopped_keeper(sessions: Sessions, hostile: Hostile) -> None:
    session = sessions.create("w")
    with starting(session, hostile) as running:
        keeper = hung_keeper(running)
        os.kill(keeper, signal.SIGSTOP)
        result = running.wait(timeout=40)

    assert re.search(r'keeper of session "w" was not ready within \d+ s', result.refusal())
    until(lambda: not alive([keeper]), "it is killed", 5)
    assert session.exec("echo", "next").ok().out == "next\n"


def test_a_keeper_that_dies_while_it_starts_is_told(sessions: Sessions, hostile: Hostile) -> None:
    session = sessions.create("w")
    with starting(session, hostile) as running:
        os.kill(hung_keeper(running), signal.SIGKILL)
        result = running.wait(timeout=15)

    assert 'signal 9 (Killed) ended the keeper of session "w" before it was ready' in result.refusal()
    assert session.exec("echo", "next").ok().out == "next\n"


def test_a_keeper_is_nobody_s_child_once_it_is_ready(sessions: Sessions) -> None:
    session = sessions.create("w")
    with sessions.serve() as rpc:
        rpc.call("session.start", session="w")
        keeper = session.keeper()
        assert [p.parent for p in keepers() if p.pid == keeper] == [os.getpid()]
