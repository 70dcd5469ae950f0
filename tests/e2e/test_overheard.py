# SPDX-License-Identifier: Apache-2.0
"""The keeper reads stderr on its way to a pipe of the caller. For the caller and for the command, all is as without it: the
order, the room in the pipe, the end of the reader, and how long the output is waited for."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import HANGS, Holt, Running
from lib.sessions import ENDS, Session, Sessions, keepers, until

Make = Callable[..., Path]

# The room in a pipe, in bytes.
PIPE = 65536

# Fills the caller's pipe, and then a part of the command's.
FULL = f"head -c {PIPE + 9} /dev/zero"

# A process in the background does that when the command's own process has ended. What comes before is waited for.
BEHIND = f"(while [ -e /proc/$$ ]; do sleep 0.1; done; sleep 0.3; {FULL}; touch done) &"


@pytest.fixture
def extra(holt: Holt, put: Make) -> Path:
    """A directory of the host beside the workspace, with a file "d"."""
    return put(holt.cwd.parent / "extra" / "d", "data\n").parent


def pipes(kind: str) -> "tuple[int, int, int]":
    """Returns the descriptors for stdout and stderr, and the one to read from."""
    if kind == "a socket":
        ours, theirs = socket.socketpair()
        return theirs.fileno(), theirs.detach(), ours.detach()
    reader, writer = os.pipe()
    return writer if kind == "2>&1" else subprocess.DEVNULL, writer, reader


@pytest.mark.parametrize("kind", ("a pipe", "2>&1", "a socket"))
def test_the_keeper_reads_stderr_on_its_way_to_the_caller(sessions: Sessions, holt: Holt, extra: Path, kind: str) -> None:
    sessions.create("w")
    stdout, stderr, reader = pipes(kind)
    script = f"for i in 1 2 3 4; do echo out; echo err >&2; done; head -c 300000 /dev/zero >&2; cat {extra}/d; curl http://a.test"
    command = sessions.start(["exec", "w", "--shell", script], stdout=stdout, stderr=stderr)
    os.close(stderr)
    with open(reader, "rb") as file:
        said = file.read()
    command.wait()
    expected = b"err\n" * 4 if kind == "a pipe" else b"out\nerr\n" * 4
    assert said.startswith(expected) and said.count(b"\0") == 300000
    assert said.count(f"holt: refused {extra}/d (ENOENT)".encode()) == 1, said[-2000:]
    assert b"holt: the sandbox has no network" in said


@pytest.mark.parametrize("kind", ("2>&1", "a socket"))
def test_packets_on_stderr_arrive_as_they_were_written(sessions: Sessions, extra: Path, kind: str) -> None:
    """A command can switch its pipe to packets, of which a read returns only one."""
    session = sessions.create("w")
    code = (
        "import fcntl, os; fcntl.fcntl(2, fcntl.F_SETFL, os.O_DIRECT | os.O_WRONLY); "
        "[os.write(2, b'%03d,' % i) for i in range(999)]"
    )
    stdout, stderr, reader = pipes(kind)
    command = session.start("python3", "-c", f"{code}; exit(1)", stdout=stdout, stderr=stderr)
    os.close(stderr)
    with open(reader, "rb") as file:
        assert file.read() == b"".join(b"%03d," % i for i in range(999))
    command.wait()
    # Nothing of it is left for the next command.
    assert "holt: refused" in session.sh(f"cat {extra}/d", stderr=subprocess.PIPE).err
    text = session.rpc().call("process.explain", id="p2")["stderr"]
    assert base64.b64decode(text).decode() == f"cat: {extra}/d: No such file or directory\n"


def test_a_command_ends_with_the_reader_of_its_stderr(session: Session) -> None:
    """The keeper passes on that nobody reads any more, and does not wait for a reader that is slow."""
    reader, writer = os.pipe()
    command = session.start("yes", stdout=writer, stderr=writer)
    os.close(writer)
    assert os.read(reader, 2) == b"y\n"
    assert session.out("echo answered") == "answered\n"  # although the pipe is full
    os.close(reader)
    assert command.wait().code == 128 + signal.SIGPIPE


def test_what_a_command_has_left_goes_on_writing_to_the_pipe(session: Session) -> None:
    reader, writer = os.pipe()
    session.sh("mkfifo go")
    command = session.start("sh", "-c", "(read x < go; echo late >&2) &", stdout=writer, stderr=writer)
    os.close(writer)
    assert command.wait().code == 0
    session.sh("echo > go")
    with open(reader, "rb") as file:
        assert file.read() == b"late\n"


# --- readers that are late ---


def start(session: Session, script: str, *flags: str) -> "tuple[Running, int]":
    """Starts a script whose output goes to one pipe, and returns the end to read from."""
    reader, writer = os.pipe()
    command = session.start("sh", "-c", script, stdout=writer, stderr=writer, flags=flags)
    os.close(writer)
    return command, reader


def read(reader: int) -> bytes:
    with open(reader, "rb") as file:
        return file.read()


def ended_inside(session: Session) -> None:
    """Waits until the script has ended, and a moment longer."""
    until(lambda: session.show()["state"] == "live" and session.ps(), "the command")
    until(lambda: not session.processes("sh") and not session.processes("head"), "the end of the command")
    time.sleep(0.1)


def test_a_reader_that_is_late_gets_everything_in_order(sessions: Sessions, extra: Path) -> None:
    """The last message waits in the command's pipe, because the caller's is full. What holt prints comes after it."""
    session = sessions.create("w")
    command, reader = start(session, f"{FULL}; cat {extra}/d", "--json")
    ended_inside(session)
    assert session.ps()["p1"]["state"] == "running"
    message, document = read(reader).lstrip(b"\0").splitlines()
    assert command.wait().code == 1
    assert message == f"cat: {extra}/d: No such file or directory".encode()
    assert [denial["path"] for denial in json.loads(document)["denials"]] == [f"{extra}/d"]


def test_a_successful_command_waits_for_its_reader_too(session: Session) -> None:
    command, reader = start(session, FULL)
    ended_inside(session)
    assert command.process.poll() is None
    assert read(reader) == bytes(PIPE + 9)
    assert command.wait().code == 0


def test_small_writes_share_the_room_of_the_pipe(session: Session) -> None:
    """Moved one by one, 16 of them would fill it."""
    command, reader = start(session, "for i in $(seq 40); do echo $i; sleep 0.001; done")
    assert command.wait().code == 0  # although nobody reads
    assert read(reader).split() == [b"%d" % i for i in range(1, 41)]


@pytest.mark.parametrize("left", ("", "sleep 1000 &"), ids=("nothing left", "a process left"))
def test_the_timeout_limits_the_wait_for_a_reader(session: Session, left: str) -> None:
    command, reader = start(session, f"{left} {FULL}", "--timeout", "500ms")
    until(lambda: "exit_code" in session.ps().get("p1", {}), "the end of the wait")
    session("kill", "p1")
    said = read(reader)
    assert command.wait().code == 125
    assert said.count(b"\0") == PIPE + 9  # It is not lost.
    assert b"holt: cannot write all output within the timeout: its reader is too slow\n" in said


@pytest.mark.parametrize("left", ("", "sleep 1000 &"), ids=("nothing left", "a process left"))
def test_a_kill_ends_the_wait_for_a_reader(session: Session, left: str) -> None:
    command, reader = start(session, f"{left} {FULL}")
    ended_inside(session)
    session("kill", "p1").ok()
    assert command.wait(ENDS).code == 0  # The command had ended before.
    assert read(reader) == bytes(PIPE + 9)


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT))
def test_a_signal_ends_the_wait_for_a_reader(session: Session, number: signal.Signals) -> None:
    """A pager, for example, reads no further, and the key interrupts holt exec."""
    command, reader = start(session, FULL)
    ended_inside(session)
    command.process.send_signal(number)
    command.process.wait(ENDS)
    assert read(reader) == bytes(PIPE + 9)


def test_a_stop_ends_the_wait_for_a_reader(session: Session) -> None:
    command, reader = start(session, FULL)
    ended_inside(session)
    began = time.monotonic()
    session.stop()
    assert command.wait().code == 0 and time.monotonic() - began < ENDS
    os.close(reader)


def test_a_client_that_leaves_ends_the_wait_for_a_reader(session: Session) -> None:
    command, reader = start(session, FULL)
    ended_inside(session)
    command.process.kill()
    command.process.wait()
    until(lambda: session.ps()["p1"]["state"] == "ended", "the end of the process", ENDS)
    os.close(reader)


@pytest.mark.slow
def test_output_that_waits_keeps_the_session_awake(sessions: Sessions) -> None:
    """A process in the background has ended, and its reader is late."""
    session = sessions.create("w", "--idle", "1s")
    command, reader = start(session, BEHIND)
    assert command.wait().code == 0
    time.sleep(4)  # A stop would wait for the reader for 2 s only.
    assert read(reader) == bytes(PIPE + 9)
    until(lambda: not keepers(), "the end of the idle session")


@pytest.mark.slow
def test_output_that_waits_outlives_the_next_256_commands(session: Session) -> None:
    command, reader = start(session, BEHIND)
    assert command.wait().code == 0
    client = session.rpc()
    until(lambda: client.call("exec", argv=["test", "-e", "done"])["exit_code"] == 0, "the output waits")
    for _ in range(300):
        client.call("exec", argv=["true"])
    assert read(reader) == bytes(PIPE + 9)


def test_a_command_that_a_signal_has_ended_is_not_waited_for(session: Session) -> None:
    """With the caller's pipe as its own, it would have died while it waited for room."""
    command, reader = start(session, "exec yes")
    until(lambda: session.processes("yes"), "the command")
    time.sleep(0.2)
    command.process.terminate()
    assert command.process.wait(ENDS) == 128 + signal.SIGTERM
    os.close(reader)


def test_a_stop_lets_each_reader_have_its_output(session: Session) -> None:
    """A stalled reader does not use up the time of the others."""
    command, reader = start(session, FULL)
    ended_inside(session)
    stalled, unread = start(session, FULL)
    until(lambda: len(session.ps()) == 2, "both commands")
    ended_inside(session)
    stop = session.sessions.start(["stop", "w"])
    time.sleep(0.8)  # of the 2 seconds
    assert read(reader) == bytes(PIPE + 9)
    assert [command.wait().code, stalled.wait().code, stop.wait().code] == [0, 0, 0]
    os.close(unread)


def test_a_stop_sends_term_to_what_a_command_has_left(session: Session) -> None:
    left = "(trap 'echo yes > told; exit' TERM; echo > ready; while :; do sleep 0.05; done) 2> /dev/null > /dev/null &"
    command, reader = start(session, f"{left} {FULL}")
    until(lambda: session.sh("test -e ready").code == 0, "the process in the background")
    session.stop()
    assert session.out("cat told") == "yes\n"
    command.wait()
    os.close(reader)


def test_a_process_inside_may_take_what_waits(session: Session) -> None:
    """Nothing is left for the reader then, and nothing to wait for."""
    take = "(sleep 0.3; head -c 9 /proc/self/fd/2 > /dev/null; exec sleep 1000) > /dev/null &"
    command, reader = start(session, f"{take} {FULL}")
    until(lambda: session.processes("sleep") and not session.processes("head"), "the processes")
    time.sleep(0.6)
    assert os.read(reader, PIPE) == bytes(PIPE)
    assert command.wait(ENDS).code == 0
    os.close(reader)


def test_lines_of_several_writers_stay_whole(session: Session) -> None:
    """The kernel does not mix writes of up to PIPE_BUF bytes, and neither does the keeper."""
    reader, writer = os.pipe()
    line = "os.write(2, sys.argv[1].encode() * 1498 + b'\\n')"
    code = f"import os, sys, time\nfor i in range(100):\n  for j in range(4): {line}\n  time.sleep(0.002)"
    commands = [session.start("python3", "-c", code, c, stdout=subprocess.DEVNULL, stderr=writer) for c in "abc"]
    os.close(writer)
    said = bytearray()
    while data := os.read(reader, 3000):
        said += data
        time.sleep(0.001)
    os.close(reader)
    assert [command.wait().code for command in commands] == [0, 0, 0]
    assert sorted(said.splitlines()) == sorted(c * 1498 for c in (b"a", b"b", b"c") for _ in range(400))


# --- readers that leave ---


@pytest.mark.parametrize("kind", ("a pipe", "2>&1", "a socket"))
def test_a_command_that_only_waits_learns_that_its_reader_has_left(session: Session, kind: str) -> None:
    stdout, stderr, reader = pipes(kind)
    code = "import os, select; os.write(2, b'x'); p = select.poll(); p.register(2, 0); exit(p.poll(9000)[0][1] != select.POLLERR)"
    command = session.start("python3", "-c", code, stdout=stdout, stderr=stderr)
    os.close(stderr)
    assert os.read(reader, 1) == b"x"
    os.close(reader)
    assert command.wait(HANGS).code == 0


def test_a_terminal_inside_is_read_although_the_caller_gives_stderr(session: Session) -> None:
    """The keeper reads the terminal in the place of the stream that has no descriptor."""
    reader, writer = os.pipe()
    client = session.rpc()
    number = client.call(
        "process.spawn", [writer], argv=["sh", "-c", "yes | head -n 100000; echo end >&2"], terminal=3, fds=4
    )["id"]
    os.close(writer)
    assert client.call("process.wait", id=number)["exit_code"] == 0
    assert read(reader) == b"end\n"


def test_the_reading_end_of_a_pipe_is_not_overheard(session: Session) -> None:
    """The command gets it as it is, and its write fails as outside."""
    reader, writer = os.pipe()
    result = session.start("sh", "-c", "echo x >&2 || exit 7", stdout=subprocess.DEVNULL, stderr=reader).wait()
    assert result.code == 7
    os.close(reader)
    os.close(writer)
