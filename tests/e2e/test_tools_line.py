# SPDX-License-Identifier: Apache-2.0
"""Tools that the command line gives: --tool NAME=COMMAND of exec and python."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
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
    # The tools went with their connection.
    assert "permission_error" in session.sh("holt-tool count '{}'").err


def test_a_tool_of_another_client_on_the_command_line(session: Session, keeper: Host) -> None:
    """The command calls that tool by its name, and its own tools, too."""
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


def test_a_command_that_fails(session: Session, program: Callable[..., Path]) -> None:
    script = "#!/bin/sh\n"
    commands = {
        "exit": (script + "echo first >&2; echo 'last words' >&2; exit 3", "ended with 3: last words"),
        "quiet": (script + "exit 4", "ended with 4"),
        "killed": (script + "kill -9 $$", "ended with 137"),
        "text": (script + "echo hello", "must print JSON: its output:1:1: not a JSON value"),
        "none": (script, "must print JSON: its output:1:1: the document is empty"),
        "much": (script + "exec yes", "printed too much"),
        "odd": ("echo 3", "ended with 127: cannot execute "),
        "missing": ("#!/no/such/interpreter", "ended with 127: cannot execute "),
    }
    flags = [f for name, (text, _) in commands.items() for f in ("--tool", f"{name}={program(f'tools/{name}', text)}")]
    lines = session.sh(f"for t in {' '.join(commands)}; do holt-tool $t '{{}}' && echo WORKED; done; true", *flags).ok().err.splitlines()
    for line, (name, (_, message)) in zip(lines, commands.items(), strict=True):
        assert line.startswith(f"holt-tool: [internal_error] the command of '{name}' ") and message in line, line


def test_commands_run_at_the_same_time(session: Session, holt: Holt, place: Path, program: Callable[..., Path]) -> None:
    """Ten commands each wait for the others."""
    meet = place / "meet"
    meet.mkdir()
    holt.identity.own(meet)
    script = f"#!/bin/sh\ncd {meet}; touch $$; until [ $(ls | wc -l) -ge 10 ]; do sleep 0.01; done; echo true"
    command = f"meet={program('tools/meet', script)}"
    code = (
        "from concurrent.futures import ThreadPoolExecutor\nfrom host_tools import call\n"
        "with ThreadPoolExecutor(10) as pool: got = list(pool.map(lambda _: call('meet'), range(10)))\nall(got)"
    )
    assert session("python", "-c", code, "--tool", command).ok().out == "True\n"


def test_a_tool_s_command_ends_with_its_caller(
    session: Session, place: Path, holt: Holt, program: Callable[..., Path]
) -> None:
    mark = holt.identity.own(place)
    script = program("tools/slow", f"#!/bin/sh\necho $$ > {mark}/pid; exec sleep 1000")
    command = f"slow={script}"

    def alive() -> bool:
        try:
            pid = (mark / "pid").read_text().strip()  # "" until the tool has written it
            return bool(pid) and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
        except (FileNotFoundError, ProcessLookupError):
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


def test_invalid_tools_are_refused(session: Session) -> None:
    assert "not NAME=COMMAND, and no client of the session offers" in session.sh("true", "--tool", "name").refusal()
    assert "not NAME=COMMAND" in session("python", "-c", "1", "--tool", "name").refusal()
    assert "is invalid" in session.sh("true", "--tool", "a b=true").refusal()
    assert "--detach" in session.sh("true", "--tool", "a=true", "--detach").refusal()
    assert "cannot execute no-such-command" in session.sh("true", "--tool", "a=no-such-command").refusal()


def test_a_program_that_nobody_may_execute_is_told_so(session: Session, place: Path) -> None:
    tool = place / "tool.sh"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o644)
    result = session.sh("true", "--tool", f"a={tool}")
    assert "cannot execute" in result.refusal() and f"chmod +x {tool}" in result.cure


def test_a_script_knows_where_it_is(session: Session, place: Path, program: Callable[..., Path]) -> None:
    """A script may need the files beside it. A binary gets its name and its words."""
    program("tools/value", "7")
    program("tools/lib.py", "VALUE = 7")
    shell = program("tools/a tool.sh", '#!/bin/sh\ncat "$(dirname "$0")/value"')
    python = program("tools/tool.py", "#!/usr/bin/python3\nimport lib\nprint(lib.VALUE, end='')")
    (place / "link").symlink_to(python)
    for command in (f"'{shell}'", python, place / "link", "tools/tool.py", "printf '%d' 7", f"cat {place}/tools/value"):
        result = session.sh("holt-tool given '{}'", "--tool", f"given={command}", cwd=place)
        assert result.ok().out == "7\n", command


def test_words_that_name_files_are_made_absolute(session: Session, place: Path, program: Callable[..., Path]) -> None:
    program("tools/prices")
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    command = f"python3 -c '{code}' tools/prices --of=tools/prices 'tools/prices' other"
    result = session.sh("holt-tool given '{}'", "--tool", f"given={command}", cwd=place)
    assert json.loads(result.ok().out) == [f"{place}/tools/prices", f"--of={place}/tools/prices", "tools/prices", "other"]
