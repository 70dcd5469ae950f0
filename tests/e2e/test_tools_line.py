# SPDX-License-Identifier: Apache-2.0
"""Tools that the command line gives: --tool NAME=COMMAND of exec and python."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.bridge import Host
from lib.sandbox import Holt
from lib.sessions import Session, until


@pytest.fixture
def keeper(session: Session) -> Iterator[Host]:
    """A client of the keeper, beside the command line."""
    with session.rpc() as rpc:
        yield Host(rpc, {})


def test_tools_of_the_command_line(session: Session) -> None:
    upper = "upper=tr a-z A-Z"
    count = """count=python3 -c 'import json, sys; print(len(json.load(sys.stdin)["of"]))'"""
    flags = ["--tool", upper, "--tool", count]
    result = session.sh("""holt-tool upper '{"a": "b"}'; echo '{"of": [1, 2]}' | holt-tool count""", *flags).ok()
    assert result.out == '{"A": "B"}\n2\n'
    code = "from host_tools import call\ncall('count', {'of': 'abc'}) + call('count', {'of': ''})"
    assert session("python", "-c", code, *flags).ok().out == "3\n"
    assert json.loads(session("python", "-c", code, *flags, "--json").ok().out)["result"] == "3"
    kept = session.sh("""holt-tool upper '{"a": "b"}'""", "--tool", upper, "--output", "1KiB").ok()
    assert kept.out == '{"A": "B"}\n'
    # They went with their connection.
    assert "permission_error" in session.sh("holt-tool count '{}'").err


def test_a_tool_of_another_client_on_the_command_line(session: Session, keeper: Host) -> None:
    """By its name, beside those of one's own."""
    keeper.tool("theirs", lambda p: "theirs")
    script = "holt-tool theirs '{}'; holt-tool own '{}'"
    own = ["--tool", "own=echo 5"]

    def both(flags: list[str]) -> list[str]:
        with session.start("sh", "-c", script, flags=flags, stdin=None) as running:
            keeper.until(lambda: len(keeper.calls) == calls or running.process.poll() is not None, "it is asked")
            return running.wait().out.splitlines()

    calls = 1
    assert both([*own, "--tool", "theirs"]) == ['"theirs"', "5"]
    assert session.sh(script, *own).out == "5\n"
    detached = session.sh("holt-tool theirs '{}'", "--detach", "--tool", "theirs").ok().out.strip()
    assert keeper.run("process.wait", id=detached, output=True)["stdout"] == '"theirs"\n'
    assert len(keeper.calls) == 2


def test_a_command_that_fails(session: Session) -> None:
    commands = {
        "exit": ("echo first >&2; echo 'last words' >&2; exit 3", "ended with 3: last words"),
        "quiet": ("exit 4", "ended with 4"),
        "killed": ("kill -9 $$", "ended with 137"),
        "text": ("echo hello", "has to print JSON: its output:1:1: not a JSON value"),
        "none": ("true", "has to print JSON: its output:1:1: it is empty"),
        "much": ("yes", "printed too much"),
        "missing": ("no-such-command-here", "not found"),
    }
    flags = [f for name, (command, _) in commands.items() for f in ("--tool", f"{name}={command}")]
    lines = session.sh(f"for t in {' '.join(commands)}; do holt-tool $t '{{}}' && echo WORKED; done; true", *flags).ok().err.splitlines()
    for line, (name, (_, message)) in zip(lines, commands.items(), strict=True):
        assert line.startswith(f"holt-tool: [internal_error] the command of '{name}' ") and message in line, line


def test_commands_run_at_the_same_time(session: Session, holt: Holt, place: Path) -> None:
    """Ten that each wait for the others."""
    meet = place / "meet"
    meet.mkdir()
    holt.identity.own(meet)
    command = f"meet=cd {meet}; touch $$; until [ $(ls | wc -l) -ge 10 ]; do sleep 0.01; done; echo true"
    code = (
        "from concurrent.futures import ThreadPoolExecutor\nfrom host_tools import call\n"
        "with ThreadPoolExecutor(10) as pool: got = list(pool.map(lambda _: call('meet'), range(10)))\nall(got)"
    )
    assert session("python", "-c", code, "--tool", command).ok().out == "True\n"


def test_a_command_ends_with_who_waits_for_it(session: Session, place: Path, holt: Holt) -> None:
    mark = holt.identity.own(place)
    command = f"slow=echo $$ > {mark}/pid; exec sleep 1000"

    def alive() -> bool:
        try:
            pid = (mark / "pid").read_text().strip()  # nothing, before it is written
            return bool(pid) and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
        except FileNotFoundError:
            return False

    script = "holt-tool slow '{}' & read line; kill $!; read line"
    with session.start("bash", "-c", script, flags=["--tool", command], stdin=subprocess.PIPE) as running:
        until(alive, "it runs")
        assert running.process.stdin
        running.process.stdin.write(b"\n")
        running.process.stdin.flush()
        until(lambda: not alive(), "the cancelled command has ended")
        running.wait()
    (mark / "pid").unlink()
    with session.start("sh", "-c", "holt-tool slow '{}'", flags=["--tool", command]) as running:
        until(alive, "it runs")
        running.process.send_signal(signal.SIGKILL)
        running.wait()
    until(lambda: not alive(), "it has ended with holt")


def test_tools_that_are_none(session: Session) -> None:
    assert "not NAME=COMMAND, and no client of the session offers" in session.sh("true", "--tool", "name").refusal()
    assert "not NAME=COMMAND" in session("python", "-c", "1", "--tool", "name").refusal()
    assert "can't be called" in session.sh("true", "--tool", "a b=true").refusal()
    assert "--detach" in session.sh("true", "--tool", "a=true", "--detach").refusal()
