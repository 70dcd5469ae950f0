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


# What python3 runs at its start, by name in the user site.
HANGS_AT_START = {
    "usercustomize.py": "import time; time.sleep(3000)\n",
    "sitecustomize.py": "import time; time.sleep(3000)\n",
    "hang.pth": "import time; time.sleep(3000)\n",
}


@pytest.mark.parametrize("fresh", ((), ("--fresh",)), ids=("lasting", "fresh"))
@pytest.mark.parametrize("name", HANGS_AT_START)
def test_nothing_in_the_home_keeps_the_interpreter_from_becoming_ready(
    name: str, fresh: tuple[str, ...], sessions: Sessions
) -> None:
    """And what was installed there is found."""
    session = sessions.create("w")
    site = session.out("python3 -c 'import site; print(site.getusersitepackages())'").strip()
    write = f'cat > "$p/{name}"; echo v=7 > "$p/beside_it.py"'
    session.sh(f"for p in {site}; do mkdir -p $p; {write} <<< '{HANGS_AT_START[name]}'; done").ok()

    result = session("python", *fresh, "--timeout", "20s", "-c", "import beside_it; beside_it.v", timeout=60)
    assert result.ok().out == "7\n"


@pytest.mark.slow
def test_the_sitecustomize_of_pythonpath_has_the_time_of_the_run(sessions: Sessions) -> None:
    session = sessions.create("w", "--env", "PYTHONPATH=/workspace/more", "--kill-after", "200ms")
    session.sh("mkdir more; echo 'import time; time.sleep(3000)' > more/sitecustomize.py").ok()

    assert session("python", "--timeout", "1s", "-c", "1", timeout=20).code == 124


@pytest.mark.slow
@pytest.mark.parametrize("fresh", ((), ("--fresh",)), ids=("lasting", "fresh"))
def test_an_interpreter_that_does_not_become_ready_is_killed(
    fresh: tuple[str, ...], sessions: Sessions, hostile: Hostile
) -> None:
    with held_up(sessions, hostile) as session:
        start_held(session)[0].process.kill()
        before = time.monotonic()
        result = session("python", *fresh, "--timeout", "1s", "-c", "1", timeout=60)
        assert "the interpreter did not become ready" in result.refusal()
        assert time.monotonic() - before < 8
        until(lambda: not [p for p in session.ps().values() if p["state"] == "starting"], "it is killed", 10)
