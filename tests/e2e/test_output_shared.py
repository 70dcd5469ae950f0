# SPDX-License-Identifier: Apache-2.0
"""Output that holt passes on, if other programs share its pipe or socket, or if the command changes it."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import time

import pytest

from lib.sandbox import HANGS, Holt


@pytest.mark.parametrize("holder", ("sleep 1000 &", "setsid sleep 1000 &", "nohup sleep 1000 &", "(sleep 1000 &);"))
def test_a_grandchild_that_holds_stdout_does_not_outlive_the_run(holder: str, holt: Holt) -> None:
    assert holt.sh(f"{holder} echo done", "--output", "1KiB").ok().out == "done\n"


def test_output_of_a_grandchild_arrives(holt: Holt) -> None:
    script = "(echo from below; echo > there; exec sleep 1000) & until test -e there; do :; done"

    assert holt.sh(script, "--output", "1KiB").ok().out == "from below\n"


@pytest.mark.parametrize("flags", ((), ("--output", "1GiB")), ids=("stderr", "output"))
def test_lines_of_several_runs_stay_whole(flags: tuple[str, ...], holt: Holt) -> None:
    """The kernel does not mix writes of up to PIPE_BUF bytes, and neither does holt."""
    reader, writer = os.pipe()
    line = "os.write(2, sys.argv[1].encode() * 1498 + b'\\n')"
    code = f"import os, sys, time\nfor i in range(100):\n  for j in range(4): {line}\n  time.sleep(0.002)"
    running = [
        subprocess.Popen(
            holt.identity.as_user([holt.binary, "run", *flags, "--", "python3", "-c", code, c]),
            stdin=subprocess.DEVNULL, stdout=writer if flags else subprocess.DEVNULL, stderr=writer,
            cwd=holt.cwd, env=holt.identity.environment(),
        ) for c in "abc"
    ]
    os.close(writer)
    said = bytearray()
    while data := os.read(reader, 3000):
        said += data
        time.sleep(0.001)
    os.close(reader)
    assert [each.wait(HANGS) for each in running] == [0, 0, 0]
    assert sorted(said.splitlines()) == sorted(c * 1498 for c in (b"a", b"b", b"c") for _ in range(400))


TRICKS = (
    ("packets", "fcntl.fcntl(1, fcntl.F_SETFL, os.O_DIRECT)"),
    ("a small pipe", "fcntl.fcntl(1, 1031, 4096)"),
    ("a large pipe", "fcntl.fcntl(1, 1031, 1 << 20)"),
    ("another end", "fd = os.open('/proc/self/fd/1', os.O_RDWR); os.dup2(fd, 1)"),
    ("its reader", "os.set_blocking(os.open('/proc/self/fd/1', os.O_RDONLY), False)"),
)


@pytest.mark.parametrize("trick", [trick for _, trick in TRICKS], ids=[name for name, _ in TRICKS])
def test_no_trick_with_the_pipe_gets_past_the_limit(trick: str, holt: Holt) -> None:
    script = (
        f"import fcntl, os\n{trick}\n"
        "sent = 0\n"
        "while sent < 100_000: sent += os.write(1, bytes(999))\n"
    )
    allowed = holt(["run", "--output", "1MiB", "--", "python3", "-c", script]).ok()
    refused = holt(["run", "--output", "50000", "--", "python3", "-c", script])

    assert len(allowed.out_bytes) == 100_899
    assert len(refused.out_bytes) == 50000
    assert (refused.code, refused.cause) == (143, "output_limit")


def test_the_command_steals_no_more_than_its_own_output(holt: Holt) -> None:
    script = (
        "import os\n"
        "fd = os.open('/proc/self/fd/1', os.O_RDONLY)\n"
        "os.set_blocking(fd, False)\n"
        "for i in range(1000):\n"
        "    os.write(1, bytes(100))\n"
        "    try: os.read(fd, 100)\n"
        "    except BlockingIOError: pass\n"
    )
    result = holt(["run", "--output", "1MiB", "--", "python3", "-c", script]).ok()

    assert result.report
    assert result.report["output"] == {"bytes": len(result.out_bytes), "dropped_bytes": 0}


def test_the_caller_s_own_pipe_is_out_of_reach(holt: Holt) -> None:
    """The command makes its stdout non-blocking. Without a limit, that is the caller's pipe, and holt restores it at the
    end. With a limit, it is another pipe."""
    flags = []
    for argv in ([], ["--output", "1KiB"]):
        reader, writer = os.pipe()
        script = "import os; os.set_blocking(1, False)"
        holt(["run", *argv, "--", "python3", "-c", script], stdout=writer).ok()
        flags.append(fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK)
        os.close(reader)
        os.close(writer)

    assert flags == [0, 0]


def test_a_socket_that_is_stdin_too_is_refused(holt: Holt) -> None:
    """The command could write to it, and the output would not be counted."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        refused = holt(["run", "--output", "1KiB", "--", "true"], stdin=theirs, stdout=theirs)
        allowed = holt(["run", "--output", "1KiB", "--", "true"], stdin=ours, stdout=theirs)

    assert refused.code == 125
    assert "stdin is the same socket as stdout" in refused.err
    allowed.ok()
