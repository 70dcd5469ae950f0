# SPDX-License-Identifier: Apache-2.0
"""Sandbox.spawn: live handles."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import until

from holt import AsyncSandbox, MissingError, NoProcessError, Sandbox, Server, SessionInfo, UsageError
from holt import process as processes


def read_all(process: object) -> str:
    return b"".join(chunk.data for chunk in process).decode()  # type: ignore[attr-defined]


def test_a_dialogue(box: Sandbox) -> None:
    with box.spawn("while read line; do echo got $line; done; echo bye >&2", input=True) as process:
        for word in ("one", "two"):
            process.write(word + "\n")
            chunk = process.read()
            assert chunk and (chunk.stream, chunk.text) == ("stdout", f"got {word}\n")
        assert process.poll() is None
        process.close_stdin()
        assert [(c.stream, c.text) for c in process] == [("stderr", "bye\n")]
        assert process.poll() == 0 and process.read() is None
        done = process.wait()
        assert done.stdout == "got one\ngot two\n" and done.stderr == "bye\n"


def test_output_from_before_the_handle_was_there(box: Sandbox) -> None:
    for _ in range(20):
        assert read_all(box.spawn(["echo", "at once"])) == "at once\n"


def test_signals_and_ends(box: Sandbox) -> None:
    process = box.spawn("trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    assert process.read().text == "ready\n"
    with pytest.raises(TimeoutError):
        process.wait(0.05)
    with pytest.raises(TimeoutError):
        process.read(0.05)
    process.signal(signal.SIGTERM)
    assert process.wait(60).exit_code == 7
    killed = box.spawn("sleep 1000 & sleep 1000")
    assert killed.kill() is True
    assert killed.wait().cause == "killed"
    with box.spawn("sleep 1234"):
        pass
    assert "sleep 1234" not in box.bash("ps -eo args").stdout
    for _ in range(20):
        with box.spawn("sleep 1234"):
            pass
        assert box.processes()[0].state == "ended"


def test_a_terminal(box: Sandbox) -> None:
    with box.spawn("stty size; read x; stty size", terminal=True, input=True, rows=30, columns=100) as process:
        text = process.read().text
        assert "30 100" in text
        process.resize(40, 120)
        process.write("go\n")
        assert "40 120" in read_all(process)


def test_unread_output_is_limited_and_drops_the_oldest(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "BUFFER_MAX", 100_000)
    process = box.spawn("seq 100000; echo last")
    until(lambda: process.poll() is not None, "it ends")
    text = read_all(process)
    assert len(text) <= 100_000 and text.endswith("last\n") and process.dropped > 0


def test_owned_ones_end_with_the_connection() -> None:
    server = Server()
    with Sandbox("w", server=server) as box:
        box.spawn("sleep 1111", owned=True)
        box.spawn("sleep 2222")
    server.close()
    with Sandbox("w") as box:
        until(lambda: "sleep 1111" not in box.bash("ps -eo args").stdout, "the owned one is killed")
        assert "sleep 2222" in box.bash("ps -eo args").stdout
        box.remove()


def test_processes_of_an_earlier_program_can_be_used() -> None:
    with Sandbox("work", timeout=600) as box:
        first = box.spawn("echo begun; read line; echo got $line; read line", input=True)
        assert box.spawn("exit 3").wait().exit_code == 3
    assert Sandbox.sessions() == [SessionInfo("work", "live")]
    with Sandbox("work") as box:
        ended, running = box.processes()
        assert (ended.state, ended.cause, ended.exit_code) == ("ended", "exited", 3)
        assert (running.id, running.state, running.cause, running.pid) == (first.id, "running", None, first.pid)
        assert running.started_ms <= ended.started_ms and "echo begun" in running.command
        process = box.process(running.id)
        assert process.read().text == "begun\n" and process.poll() is None
        process.write("this\n")
        assert process.read().text == "got this\n"
        assert box.process(ended.id).wait().exit_code == 3 and read_all(box.process(ended.id)) == ""
        assert process.kill() and process.wait().cause == "killed"
        with pytest.raises(MissingError, match="process 'p99' does not exist"):
            box.process("p99")
        box.remove()
    assert Sandbox.sessions() == []


def test_handles_of_one_process_have_all_that_it_prints(box: Sandbox) -> None:
    one = box.spawn("for i in 1 2 3; do echo $i; read line; done", input=True)
    assert one.read().text == "1\n"
    two = box.process(one.id)
    assert two.read().text == "1\n"
    one.write("\n")
    assert one.read().text == two.read().text == "2\n"
    one._forget()
    two.write("\n\n")
    assert read_all(two) == "3\n" and two.poll() == 0 and read_all(box.process(one.id)) == "1\n2\n3\n"


def test_a_throwaway_lists_what_was_started_in_it(box: Sandbox) -> None:
    assert box.processes() == []
    box.python("1")
    interpreter, = box.processes()
    with pytest.raises(UsageError, match="is the interpreter"):
        box.process(interpreter.id)


def test_processes_and_sessions_awaited() -> None:
    async def main() -> None:
        async with AsyncSandbox() as box:
            await box.spawn("echo here; read line; exit 4", input=True)
            listed, = await box.processes()
            process = await box.process(listed.id)
            assert (await process.read()).text == "here\n"
            await process.write("\n")
            assert (await process.wait()).exit_code == 4
            assert [each.name for each in await AsyncSandbox.sessions()] == [box.name]
            with pytest.raises(MissingError):
                await box.process("p99")

    asyncio.run(main())


def test_a_command_that_never_started_has_ended_with_its_start(
    holt: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper ends with a stuck sandbox, so no further request is needed."""
    with Sandbox("work") as box:
        box.bash("true").check()
        shown = subprocess.run([holt, "show", "work", "--json"], stdout=subprocess.PIPE, check=True).stdout
        keeper = json.loads(shown)["keeper_pid"]
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        [init] = (pid for pid in children if Path(f"/proc/{pid}/comm").read_text() != "holt-egress\n")
        os.kill(int(init), signal.SIGSTOP)
        asked = []
        ask = type(box)._ask

        def note(self: Sandbox, method: str, *more: object, **others: object) -> object:
            asked.append(method)
            return ask(self, method, *more, **others)  # type: ignore[arg-type]

        monkeypatch.setattr(type(box), "_ask", note)
        late = box.bash("true", timeout=0.3)

        assert (late.cause, late.exit_code, late.stdout) == ("timeout", 124, "")
        assert asked == ["process.spawn"]
    subprocess.run([holt, "rm", "work"], check=True)


def test_reading_does_not_start_a_session_at_rest(holt: str) -> None:
    with Sandbox("rests") as box:
        box.kv.set("k", "v")
        box.stop()
        until(lambda: SessionInfo("rests", "at rest") in Sandbox.sessions(), "it rests")
    with Sandbox("rests") as box:
        assert box.kv.get("k") == "v" and box.kv.get("other") is None and box.kv.keys() == ["k"]
        assert box.history() == []
        assert SessionInfo("rests", "at rest") in Sandbox.sessions()
        assert box.exec(["true"]).ok and box.kv.get("k") == "v"
        box.remove()


def test_a_stopped_session_still_has_the_result_of_a_process() -> None:
    with Sandbox("again") as box:
        ended, killed = box.spawn("echo text; exit 3"), box.spawn("exec sleep 1000")
        assert ended.wait().stdout == "text\n"
        box.stop()
        assert killed.poll() is not None
        for started in (False, True):
            for process in (ended, killed):
                result = process.wait()
                assert (result.id, result.exit_code, result.stdout) == (process.id, process.poll(), "")
                assert result.cause == ("exited" if process is ended else "killed") and (result.usage.wall_us or 0) > 0
            assert box.show()["state"] == ("live" if started else "at rest")
            assert started or box.bash("true").ok
        box.remove()


def test_what_is_about_a_process_does_not_start_a_session_at_rest() -> None:
    with Sandbox("again") as box:
        with box.spawn("cat", input=True) as process:
            box.stop()
            assert process.kill() is False and not box.interrupt_python() and not box.shell.interrupt()
            for wrong in (lambda: process.write("x"), process.close_stdin, lambda: process.signal("TERM")):
                with pytest.raises(NoProcessError, match="is at rest"):
                    wrong()
        assert box.show()["state"] == "at rest"
        assert box.bash("echo end").stdout == "end\n"
        box.remove()
