# SPDX-License-Identifier: Apache-2.0
"""A `holt serve` or a keeper that dies or hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from conftest import session_names, until

from holt import AsyncSandbox, ClosedError, Sandbox, Server, UsageError

PACKAGE = str(Path(__file__).resolve().parents[1])


def pid_of(server: Server) -> int:
    assert server._process
    return server._process.pid


def killed(server: Server) -> None:
    pid = pid_of(server)
    os.kill(pid, signal.SIGKILL)
    until(lambda: ") Z " in Path(f"/proc/{pid}/stat").read_text(), "it is dead")


def test_a_holt_serve_that_died_is_started_again(holt: str) -> None:
    for _ in range(3):
        with Sandbox() as box:
            box.files.write("f", "text")
            box.python("x = 1")
            killed(box._server)
            assert box.files.read("f") == "text" and box.python("x").result == "1"
            assert [each.name for each in Sandbox.sessions(server=box._server)] == [box.name]
            box.stop()
            assert box.files.read("f") == "text" and box.bash("cat f").stdout == "text"
            killed(box._server)
            with Sandbox("w", server=box._server) as other:
                assert other.bash("true").ok
                other.remove()
        assert session_names(holt) == []


def test_a_call_during_the_death_says_what_to_do(holt: str) -> None:
    with Sandbox() as box:
        os.kill(pid_of(box._server), signal.SIGSTOP)
        asked = box._server.submit("session.list", {})
        os.kill(pid_of(box._server), signal.SIGKILL)
        with pytest.raises(ClosedError, match="code -9") as error:
            asked.result(60)
        assert "starts holt serve again" in str(error.value.hint)
        assert Sandbox.sessions(server=box._server)
    assert session_names(holt) == []
    with pytest.raises(ClosedError, match="the sandbox is closed"):
        box.bash("true")


def test_a_throwaway_session_goes_with_its_program_after_its_server(holt: str) -> None:
    """The program is killed after its holt serve, and has a child that lives on."""
    code = (
        "import os, signal, sys\nfrom holt import Sandbox\nbox = Sandbox(); box.bash('true')\n"
        "os.kill(box._server._process.pid, signal.SIGKILL); box._server._process.wait()\n"
        "if os.fork() == 0: os.close(1); os.read(0, 1); os._exit(0)\n"
        "print(box.bash('echo alive').stdout, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": PACKAGE},
    ) as run:
        assert run.stdout and run.stdout.read() == "alive\n\n"
        with Sandbox("w") as other:  # the next server removes what is left
            until(lambda: session_names(holt) == ["w"] or other.stop(), "the session is gone")
            other.remove()


@pytest.fixture
def quick() -> Iterator[Server]:
    server = Server(reply_timeout="400ms")
    yield server
    server.close()


def test_a_holt_serve_that_hangs_times_out(quick: Server) -> None:
    with Sandbox("w", server=quick) as box:
        box.files.write("f", "text")
        os.kill(pid_of(quick), signal.SIGSTOP)
        assert box.files.read("f") == "text"  # a keeper answers this
        with pytest.raises(TimeoutError, match="holt serve does not answer; reply_timeout="):
            Sandbox.sessions(server=quick)
        assert [each.name for each in Sandbox.sessions(server=quick)] == ["w"]
        box.remove()


def test_a_holt_serve_that_hangs_while_a_session_starts_times_out(quick: Server) -> None:
    with Sandbox("w", server=quick) as box:
        box.stop()
        os.kill(pid_of(quick), signal.SIGSTOP)
        with pytest.raises(TimeoutError, match="holt serve does not answer"):
            box.bash("true")
        assert box.bash("echo end").stdout == "end\n"
        box.remove()


def test_an_error_of_one_connection_does_not_hide_the_others(quick: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        ended = False

        @property
        def _waiting(self) -> None:
            raise RuntimeError

    sessions = Sandbox.sessions(server=quick)
    linked, broken = [*quick._linked], Broken()
    monkeypatch.setattr(quick, "_linked", [broken, *linked])
    os.kill(pid_of(quick), signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        Sandbox.sessions(server=quick)
    monkeypatch.undo()
    assert Sandbox.sessions(server=quick) == sessions


def test_a_keeper_that_hangs_times_out(quick: Server) -> None:
    with Sandbox("w", server=quick) as box:
        box.files.write("f", "text")
        keeper = box.show()["keeper_pid"]
        failed = []

        def wait() -> None:
            with pytest.raises(TimeoutError):
                box.bash("sleep 1000")
            failed.append(True)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: any(each.command == "bash -c 'sleep 1000'" or "sleep" in each.command for each in box.processes()), "it runs")
        os.kill(keeper, signal.SIGSTOP)
        try:
            with pytest.raises(TimeoutError, match='keeper of session "w" does not answer'):
                box.files.read("f")
            thread.join(60)
            assert failed
        finally:
            os.kill(keeper, signal.SIGCONT)
        assert box.files.read("f") == "text"
        box.remove()


def test_a_long_command_does_not_time_out(quick: Server) -> None:
    with Sandbox(server=quick) as box:
        assert box.bash("sleep 1.5; echo end").stdout == "end\n"
        assert box.python("import time; time.sleep(1.5); 7").result == "7"


async def _busy_loop() -> None:
    server = Server(reply_timeout="400ms")
    async with AsyncSandbox(server=server) as box:
        task = asyncio.ensure_future(box.bash("echo end"))
        await asyncio.sleep(0)
        time.sleep(1.5)  # the loop reads nothing meanwhile
        assert (await task).stdout == "end\n"
        os.kill((await box.show())["keeper_pid"], signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            await box.files.read("f")
        os.kill((await AsyncSandbox.sessions(server=server) and _keeper(box.name)), signal.SIGCONT)
    server.close()


def _keeper(name: str) -> int:
    return next(
        int(each.parent.name) for each in Path("/proc").glob("[0-9]*/cmdline")
        if f"keeper\0{name}" in _read(each) or ("keeper" in _read(each) and name in _read(each))
    )


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def test_a_busy_event_loop_is_no_hang() -> None:
    asyncio.run(_busy_loop())


def test_a_reply_timeout_is_a_time() -> None:
    with pytest.raises(UsageError, match="seconds"):
        Server(reply_timeout="soon")
    wrong: Any = Server(reply_timeout=None)
    assert wrong._reply_timeout is None
