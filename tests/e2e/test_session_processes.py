# SPDX-License-Identifier: Apache-2.0
"""The processes that commands leave behind in a session, and kill and timeouts, which end them."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lib import leaks
from lib.sessions import Session, Sessions, until

pytestmark = pytest.mark.alike

DAEMON = (
    "import os, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "os.chdir('/'); os.closerange(0, 3)\n"
    "time.sleep(1000)\n"
)

LEAVES = {
    "background": "sleep 1000 &",
    "setsid": "setsid sleep 1000 &",
    "double fork": "( ( sleep 1000 & ) & )",
    "daemon": f"python3 -c \"{DAEMON}\"",
    "nohup": "nohup sleep 1000 >/dev/null 2>&1 & disown",
    "ignores TERM": "bash -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' &",
}


def sleepers(session: Session) -> list[leaks.Process]:
    return [p for p in session.processes() if p.name in ("sleep", "python3", "bash")]


@pytest.mark.parametrize("way", LEAVES)
def test_background_processes_outlive_their_command(way: str, session: Session) -> None:
    session.sh(f"{LEAVES[way]}\n exit 0", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).ok()
    until(lambda: sleepers(session), "it runs")

    assert session.ps()["p1"]["state"] == "background"
    session.exec("true").ok()
    assert sleepers(session)


@pytest.mark.parametrize("way", LEAVES)
def test_kill_takes_all_that_a_command_has_started(way: str, session: Session) -> None:
    other = session.detach("exec sleep 2000")
    killed = session.detach(f"{LEAVES[way]}\n sleep 1000")
    until(lambda: len(sleepers(session)) >= 3, "both run")
    session("kill", killed).ok()
    until(lambda: session.ps()[killed]["state"] == "ended", "it is killed")

    assert session.ps()[killed]["cause"] == "killed"
    assert session.ps()[other]["state"] == "running"
    assert len(sleepers(session)) == 1


@pytest.mark.parametrize("way", LEAVES)
def test_kill_takes_what_an_ended_command_has_left(way: str, session: Session) -> None:
    session.sh(f"{LEAVES[way]}\n exit 0", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).ok()
    until(lambda: sleepers(session), "it runs")
    session("kill", "p1").ok()

    until(lambda: session.ps()["p1"]["state"] == "ended", "it is killed")
    assert sleepers(session) == []
    assert session.ps()["p1"]["cause"] == "exited"


@pytest.mark.parametrize("way", LEAVES)
def test_a_timeout_takes_all_that_a_command_has_started(way: str, sessions: Sessions) -> None:
    session = sessions.create("w", "--kill-after", "100ms")
    result = session.sh(f"{LEAVES[way]}\n sleep 1000", "--timeout", "200ms")

    assert result.code == 124, result
    until(lambda: session.ps()["p1"]["state"] == "ended", "all of it is killed")
    assert sleepers(session) == []
    assert session.ps()["p1"]["cause"] == "timeout"
    assert [row["kind"] for row in session.audit()] == ["limit"]


def test_kill_returns_when_the_process_has_ended(session: Session) -> None:
    for _ in range(5):
        process = session.exec("sh", "-c", "for i in $(seq 40); do sleep 1000 & done; wait", flags=("--detach",)).ok().out.strip()
        until(lambda: len(sleepers(session)) == 40, "all run")
        session("kill", process).ok()
        assert session.ps()[process]["state"] == "ended"


def test_kill_of_a_client_s_command_is_told_to_the_client(session: Session) -> None:
    with session.start("sh", "-c", "echo ready; sleep 1000") as running:
        assert running.readline() == "ready"
        session("kill", "p1").ok()
        assert running.wait().code == 137


def test_ps_has_states_and_ends(session: Session) -> None:
    session.sh("exit 3")
    session.detach("exec sleep 1000")
    text = session("ps").ok().out.splitlines()

    assert text[0].split() == ["ID", "STATE", "EXIT", "STARTED", "COMMAND"]
    assert text[1].split()[:2] == ["p2", "running"]
    assert text[2].split()[:3] == ["p1", "ended", "3"]


def test_ps_quotes_arguments(session: Session) -> None:
    """The line can be pasted into bash, and control characters are escaped."""
    for argv in (["true", "a b", "c'd", "", "$HOME", "x=1"], ["true", "\x1b[2J\n", "a\\b", "\u202e"]):
        session.exec(*argv)
    lines = [line.split(None, 5)[5] for line in session("ps").ok().out.splitlines()[1:]]

    assert lines[1] == r"true 'a b' 'c'\''d' '' '$HOME' 'x=1'"
    assert lines[0] == r"true $'\x1b[2J\x0a' $'a\x5cb' $'\xe2\x80\xae'"
    shown = subprocess.run(["bash", "-c", f"printf '%s|' {lines[0]}"], capture_output=True, check=True).stdout
    assert shown.decode() == "true|\x1b[2J\n|a\\b|\u202e|"


def test_ps_prints_no_control_characters_of_commands(session: Session) -> None:
    session.exec("true", "\x1b[2J\x07")

    assert not set(session("ps").ok().out) & set("\x1b\x07")


def test_a_detached_command_has_no_client(session: Session) -> None:
    session.detach("echo told; read; echo $? >/workspace/ended")
    until(lambda: session.ps()["p1"]["state"] == "ended", "it has ended")

    assert session.sh("cat /workspace/ended").ok().out == "1\n"


def test_killing_a_missing_process_is_an_error(session: Session) -> None:
    assert "at rest" in session("kill", "p9").cure
    session.wake()
    assert '"p9"' in session("kill", "p9").refusal()


def test_ps_says_what_was_stopped_by_hand(session: Session) -> None:
    process = session.detach("sleep 1000")

    def state_after(name: str) -> str:
        session("kill", process, "--signal", name).ok()
        return session.ps()[process]["state"]

    assert [state_after(name) for name in ("STOP", "WINCH", "CONT")] == ["stopped", "stopped", "running"]
    assert state_after("STOP") == "stopped"
    session("kill", process).ok()
    until(lambda: session.ps()[process]["state"] == "ended", "it is killed")


@pytest.mark.parametrize("follow", ((), ("-f",)))
def test_logs_in_json(follow: tuple[str, ...], session: Session) -> None:
    process = session.detach("printf 'out\\377'; printf err >&2")
    until(lambda: session.ps()[process]["state"] == "ended", "it has ended")
    chunks = [json.loads(line) for line in session("logs", process, "--json", *follow).ok().out.splitlines()]

    assert [c["seq"] for c in chunks] == list(range(1, len(chunks) + 1))
    for stream, expected in (("stdout", b"out\xff"), ("stderr", b"err")):
        assert b"".join(base64.b64decode(c["base64"]) for c in chunks if c["stream"] == stream) == expected
    assert "--tail" in json.loads(session("logs", process, "--json", "--tail", "1").err)["error"]["message"]


@pytest.fixture
def past(session: Session) -> str:
    """A process with output that has ended with 3, in a session that was stopped meanwhile."""
    process = session.detach("echo out; exit 3")
    assert session("wait", process).code == 3
    session.stop()
    return process


def test_numbers_of_processes_go_on_after_a_rest(session: Session, past: str) -> None:
    later = session.detach("exit 4")

    assert later != past
    assert [session("wait", process).code for process in (past, later)] == [3, 4]


@pytest.mark.parametrize("live", (False, True))
def test_a_process_of_the_past_is_answered_from_the_history(live: bool, session: Session, past: str) -> None:
    if live:
        session.exec("true").ok()
    waited = session("wait", past, "--json")
    logs, killed, signaled = session("logs", past), session("kill", past), session("kill", past, "--signal", "HUP")

    assert waited.code == 3 and json.loads(waited.out)["cause"] == "exited"
    assert logs.refusal() == f'process "{past}" has ended: exited, exit code 3; its output is not kept any more'
    assert killed.ok().err == f"holt: {past} had ended already\n"
    assert signaled.refusal() == f'process "{past}" has ended: exited, exit code 3'
    for verb in ("wait", "logs", "kill"):
        assert session(verb, "p99").refusal() == 'process "p99" does not exist'
        assert session(verb, "p0").refusal() == 'process "p0" does not exist'
    assert (session.show()["state"] == "live") == live


def test_a_client_learns_of_a_process_of_the_past(session: Session, past: str) -> None:
    rpc = session.rpc()

    assert rpc("process.wait", id=past)["exit_code"] == 3
    assert "its output is not kept" in str(rpc.refused("process.wait", id=past, output=True))
    assert "its output is not kept" in str(rpc.refused("process.read", id=past))
    assert rpc("process.kill", id=past) == {"killed": False}


def test_a_killed_keeper_uses_no_number_twice(session: Session) -> None:
    process = session.detach("exec sleep 1000")
    keeper = session.keeper()
    os.kill(keeper, signal.SIGKILL)
    until(lambda: session.show()["state"] == "at rest", "it is gone")

    assert session.detach("exit 4") != process
    assert "does not say how it ended" in session("wait", process).refusal()


def test_a_tool_cannot_invent_the_end_of_a_process(session: Session, past: str, program: Callable[..., Path]) -> None:
    """The value that a tool returns is in the history, too."""
    end = {"id": past, "cause": "exited", "exit_code": 0}
    tool = program("tool", f"#!/bin/sh\necho '{json.dumps(end)}'\n")
    session.exec("holt-tool", "t", "{}", flags=("--tool", f"t={tool}")).ok()

    assert json.loads(session("history", "--json").out)["rows"][0]["result"]
    assert session("wait", past).code == 3
