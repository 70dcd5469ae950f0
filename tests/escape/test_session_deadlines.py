# SPDX-License-Identifier: Apache-2.0
"""A deadline does not depend on the process that it bounds. A command of a session stops all later processes before
they execute, and they still end in time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import time
from collections.abc import Iterator

import pytest

from lib.hostile import Hostile
from lib.sandbox import Running
from lib.sessions import Closed, Rpc, Session, Sessions, alive, until

pytestmark = pytest.mark.identities("user", "root")


@contextlib.contextmanager
def held_up(sessions: Sessions, hostile: Hostile, *flags: str) -> Iterator[Session]:
    """A session in which every new process is stopped."""
    session = sessions.create("w", "--ro", str(hostile.directory), "--kill-after", "200ms", *flags)
    with session.start(hostile.path("holdup")) as running:
        assert running.readline() == "ready"
        yield session
        session("kill", "p1")
        running.wait()


def start_held(session: Session, *flags: str) -> tuple[Running, str]:
    """A command that is stopped before it executes, and its id."""
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
    # The policy's timeout also applies to the stopping command: a busy machine takes some time until a command is
    # stopped.
    with held_up(sessions, hostile, *(() if flags else ("--timeout", "8s"))) as session:
        running, held = start_held(session, *flags)
        with running:
            assert running.wait(timeout=20).code == 124
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
def test_a_command_that_init_delays_ends_with_its_client(sessions: Sessions, hostile: Hostile) -> None:
    """A detached command ends, too, because nobody has learnt its id."""
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
def test_a_command_without_a_timeout_has_to_start_in_time(sessions: Sessions, hostile: Hostile) -> None:
    with held_up(sessions, hostile) as session:
        running, held = start_held(session)
        with running:
            assert re.search(r"the command did not start within \d+ s", running.wait(timeout=40).refusal())
        until(lambda: session.ps()[held]["state"] == "ended", "it ends", 10)
        assert session.processes("sleep") == []
        assert session.ps()["p1"]["state"] == "running", "others are not touched"


@pytest.mark.slow
def test_a_timeout_longer_than_a_start_may_take_does_not_delay_that(sessions: Sessions, hostile: Hostile) -> None:
    with held_up(sessions, hostile) as session:
        running, _ = start_held(session, "--timeout", "1h")
        with running:
            assert re.search(r"the command did not start within \d+ s", running.wait(timeout=40).refusal())


def fill_outbox(rpc: Rpc) -> list[int]:
    """Asks for commands until the stopped init has no room for more."""
    size = 3500  # A start that fits into one message.
    return [rpc.send("process.spawn", argv=["true", "x" * size]) for _ in range(100)]


def test_a_command_that_waits_for_init_ends_in_its_time(sessions: Sessions) -> None:
    """The sandbox stays, because it is only busy. The command does not start later."""
    session = sessions.create("w")
    init, rpc = session.init(), session.rpc()
    os.kill(init, signal.SIGSTOP)
    before = time.monotonic()
    waiting = fill_outbox(rpc)
    late = [
        rpc.send("exec", argv=["touch", "/workspace/late"], timeout_ms=300),
        rpc.send("process.spawn", argv=["touch", "/workspace/late"], timeout_ms=300),
    ]
    answers = [rpc.result(number) for number in late]
    assert time.monotonic() - before < 4
    os.kill(init, signal.SIGCONT)

    assert [(a["cause"], a["exit_code"]) for a in (answers[0], answers[1]["ended"])] == [("timeout", 124)] * 2
    for number in waiting:
        rpc.result(number)
    assert session.out("ls /workspace") == ""
    assert session.init() == init


def test_a_command_that_waits_for_init_can_be_killed(sessions: Sessions) -> None:
    session = sessions.create("w")
    init, rpc = session.init(), session.rpc()
    os.kill(init, signal.SIGSTOP)
    waiting = fill_outbox(rpc)
    killed = rpc.send("exec", argv=["touch", "/workspace/late"])
    [last, *_] = rpc.call("process.list")["processes"]
    rpc.call("process.kill", id=last["id"])
    assert rpc.result(killed, timeout=4)["cause"] == "killed"
    other = session.rpc()
    other.send("process.spawn", argv=["touch", "/workspace/late"], owned=True)
    until(lambda: rpc.call("process.list")["processes"][0]["id"] != last["id"], "it is asked for")
    other.close()
    os.kill(init, signal.SIGCONT)
    for number in waiting:
        rpc.result(number)
    assert session.out("ls /workspace") == ""
    assert session.init() == init


@pytest.mark.slow
def test_the_end_of_a_command_that_did_not_start_comes_with_its_start(sessions: Sessions) -> None:
    """A client that asks for it later, on a busy machine, may find that the keeper has ended with its sandbox."""
    session = sessions.create("w")
    init, rpc = session.init(), session.rpc()
    os.kill(init, signal.SIGSTOP)
    started = rpc.call("process.spawn", argv=["sleep", "3000"], timeout_ms=500, timeout=15)

    assert started["ended"]["cause"] == "timeout"
    assert started["ended"]["exit_code"] == 124
    with pytest.raises((Closed, BrokenPipeError)):
        time.sleep(1)
        rpc.call("process.wait", id=started["id"])


PTRACE_SEIZE = 0x4206
WALL = 0x40000000


@pytest.mark.slow
@pytest.mark.identities("root")
def test_a_slow_init_is_no_stuck_one(sessions: Sessions) -> None:
    """init has read its order to kill, and carries it out in the end. Then other commands of the session stay."""
    session = sessions.create("w", "--kill-after", "100ms")
    init = session.init()
    with session.start("sleep", "3000", flags=["--timeout", "500ms"]) as running:
        [traced] = until(lambda: session.processes("sleep"), "it runs")
        # A process that is traced from outside stays after its end. init retries that for a second or more.
        assert ctypes.CDLL(None, use_errno=True).ptrace(PTRACE_SEIZE, traced.pid, 0, 0) == 0
        until(lambda: not session.processes("sleep"), "it is killed")
        os.kill(init, signal.SIGSTOP)
        time.sleep(5.5)  # More than KILL_TIME, but less than KILL_TIME and SLOW_TIME together, in every build.
        os.kill(init, signal.SIGCONT)
        assert running.wait(timeout=15).code == 124
    os.waitpid(traced.pid, WALL)
    assert session.init() == init


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


# Files that python3 runs at its start, by their names in the user site.
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
    """Packages that were installed there are found."""
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
        assert "the interpreter did not become ready in time" in result.refusal()
        assert time.monotonic() - before < 8
        until(lambda: not [p for p in session.ps().values() if p["state"] == "starting"], "it is killed", 10)
