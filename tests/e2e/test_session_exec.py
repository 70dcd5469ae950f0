# SPDX-License-Identifier: Apache-2.0
"""A command in a session has its own streams, variables, directory and end."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sessions import Session, Sessions, until


def test_each_command_has_its_own_streams_and_end(session: Session) -> None:
    result = session.sh("echo out; echo err >&2; exit 3")

    assert (result.code, result.out, result.err) == (3, "out\n", "err\n")


@pytest.mark.parametrize("code", (0, 1, 3, 125, 255))
def test_the_exit_code_is_the_command_s(code: int, session: Session) -> None:
    assert session.sh(f"exit {code}").code == code


def test_a_missing_command_is_127(session: Session) -> None:
    assert "no-such-command" in session.exec("no-such-command").refusal(127)


def test_a_command_that_can_not_be_executed(session: Session) -> None:
    session.sh("touch /workspace/plain").ok()

    assert "/workspace/plain" in session.exec("/workspace/plain").refusal(126)


def test_a_command_that_a_signal_ends(session: Session) -> None:
    assert session.sh("kill -TERM $$").code == 143
    assert session.sh("kill -KILL $$").code == 137


def test_a_signal_to_the_client_reaches_the_command(session: Session) -> None:
    with session.start("bash", "-c", "trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.01; done") as running:
        assert running.readline() == "ready"
        running.kill(signal.SIGUSR1)
        result = running.wait()
    assert (result.code, result.out) == (7, "caught\n")


def test_a_client_that_is_told_to_end_ends_its_command(session: Session) -> None:
    with session.start("sh", "-c", "echo ready; exec sleep 1000") as running:
        assert running.readline() == "ready"
        running.kill(signal.SIGTERM)
        # 143 means that the command ended by SIGTERM. holt itself ends by the signal (-15) if it comes before the reply to the
        # start.
        assert running.wait().code in (143, -signal.SIGTERM)
    until(lambda: not session.processes("sleep"), "the command has ended")


def test_commands_start_in_the_workspace_or_cwd(session: Session) -> None:
    session.sh("mkdir -p /workspace/sub")

    assert session.exec("pwd").ok().out == "/workspace\n"
    assert session.exec("pwd", flags=["--cwd", "sub"]).ok().out == "/workspace/sub\n"
    assert session.exec("pwd", flags=["--cwd", "/tmp"]).ok().out == "/tmp\n"
    assert "directory" in session.exec("pwd", flags=["--cwd", "nowhere"]).refusal()


def test_variables_of_one_command(session: Session) -> None:
    assert session.sh("echo $A-$B", "--env", "A=1", "--env", "B=2").ok().out == "1-2\n"
    assert session.sh("echo $A-$B", "--env", "B", env={"A": "caller's", "B": "passed"}).ok().out == "-passed\n"


def test_the_call_s_word_on_a_variable_is_the_last(sessions: Sessions) -> None:
    """Later ones override earlier ones: holt's own variables, the session's, the call's. Other calls get the session's
    again."""
    session = sessions.create("w", "--env", "A=session", "--env", "B=session", "--env", "USER=somebody")
    shown = ["bash", "-c", "echo $A $B $C $USER $HOME"]
    own, both = "session session somebody /home/agent\n", "call session call somebody /tmp\n"
    said = {"A": "call", "C": "call", "HOME": "/tmp"}

    assert session.exec(*shown).ok().out == own
    flags = [word for name, value in said.items() for word in ("--env", f"{name}={value}")]
    assert session.exec(*shown, flags=flags).ok().out == both
    with session.rpc() as rpc:
        assert rpc.call("exec", argv=shown, env=said)["stdout"] == both
        assert rpc.call("exec", argv=shown)["stdout"] == own
        spawned = rpc.call("process.spawn", argv=shown, env=said)["id"]
        assert rpc.call("process.wait", id=spawned, output=True)["stdout"] == both


def test_nothing_of_the_caller_s_environment_is_inside(session: Session) -> None:
    env = {"SECRET_TOKEN": "s3cret"}
    session.exec("true", env=env).ok()

    assert "s3cret" not in session.exec("env", env=env).ok().out
    assert "s3cret" not in session.sh("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'", env=env).out


# --- streams ---


def test_stdin_is_read_to_its_end(session: Session) -> None:
    assert session.exec("wc", "-c", stdin="twelve bytes").ok().out == "12\n"
    assert session.exec("cat").ok().out == ""


def test_a_hundred_megabytes_go_through_pipes_as_they_are(session: Session) -> None:
    block = os.urandom(1 << 20)
    expected = hashlib.sha256(block * 100).hexdigest()
    with session.start("cat", stdin=subprocess.PIPE) as running:
        assert running.process.stdin and running.process.stdout
        if os.fork() == 0:
            for _ in range(100):
                os.write(running.process.stdin.fileno(), block)
            os._exit(0)
        running.process.stdin.close()
        seen = hashlib.sha256()
        while data := running.process.stdout.read(1 << 20):
            seen.update(data)
        assert running.process.wait() == 0
    assert seen.hexdigest() == expected


def test_files_of_the_caller_are_the_command_s_own(session: Session, place: Path, identity: Identity) -> None:
    source, target = place / "in", place / "out"
    source.write_text("from a file\n")
    with source.open() as stdin, target.open("w") as stdout:
        session.start("tr", "a-z", "A-Z", stdin=stdin, stdout=stdout).wait().code

    assert target.read_text() == "FROM A FILE\n"


def test_output_of_a_background_process_does_not_hold_the_client(session: Session) -> None:
    """The client ends with its command, though the pipe is still open at the other end."""
    with session.start("bash", "-c", "sleep 1000 & echo done") as running:
        assert running.readline() == "done"
        assert until(lambda: running.process.poll() is not None, "the client ends") and running.process.returncode == 0
    session("kill", "p1").ok()


def test_a_closed_pipe_is_the_command_s_to_notice(session: Session) -> None:
    with session.start("bash", "-c", "yes; echo ended ${PIPESTATUS[0]} >&2") as running:
        assert running.readline() == "y"
        assert running.process.stdout
        running.process.stdout.close()
        running.process.stdout = None
        assert running.wait().code in (1, 141, 0)


def test_a_variable_that_is_said_twice_has_the_last_value(session: Session) -> None:
    said = ("--env", "A=1", "--env", "AB=3", "--env", "A=2")
    assert session.exec("bash", "-c", "echo $A $AB", flags=said).ok().out == "2 3\n"
    assert session("python", *said, "-c", "import os; os.environ['A']").ok().out == "'2'\n"


def test_a_line_for_the_shell(session: Session) -> None:
    """The line replaces a command, and the history shows that line."""
    result = session("exec", "--json", "--shell", "echo a b | tr a-z A-Z; exit 3")

    assert (result.code, result.out) == (3, "A B\n")
    assert json.loads(result.err)["command"] == ["bash", "-c", "echo a b | tr a-z A-Z; exit 3"]
    assert json.loads(session.history()[0]["params"])["shell"] == "echo a b | tr a-z A-Z; exit 3"
    assert session.sessions(["exec", "--shell", "echo $0", session.name]).ok().out == "bash\n"


def test_a_timeout_of_none_is_the_policy_s(sessions: Sessions) -> None:
    session = sessions.create("w", "--timeout", "1s")
    result = session.sh("sleep 1000", "--timeout", "none", "--json")

    assert (result.code, json.loads(result.err)["cause"]) == (124, "timeout")
