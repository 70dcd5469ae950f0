# SPDX-License-Identifier: Apache-2.0
"""--output: how much a command may print. The output up to the limit arrives, to the byte, and nothing is cut
silently."""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib import leaks
from lib.sandbox import HANGS, Holt, Result, Running
from lib.terminal import Terminal

Start = Callable[..., Terminal]

ALL_BYTES = bytes(range(256))

MEBIBYTE = 1 << 20


def ending(result: Result) -> tuple[int, str, Any]:
    assert result.report, result
    # A SIGINT that ended the command ends holt, too.
    assert result.code in (result.report["exit_code"], -signal.SIGINT)
    return result.report["exit_code"], result.cause, result.report["signal"]


def output(result: Result) -> tuple[int, int]:
    """Returns the report's numbers of bytes that arrived and that were dropped."""
    assert result.report, result
    return result.report["output"]["bytes"], result.report["output"]["dropped_bytes"]


def until_alone(running: Running) -> None:
    """Waits until holt's child, the sandbox, is gone. The command must print "ready" on stderr."""
    deadline = time.monotonic() + HANGS
    assert running.process.stderr and running.process.stderr.readline() == b"ready\n"
    while leaks.descendants(running.pid):
        assert time.monotonic() < deadline, "the command runs on"
        time.sleep(0.005)


def through_shell(holt: Holt, script: str, *args: str) -> Result:
    """Runs holt ARGS by a shell of the caller's: script has it as "$0" "$@"."""
    return holt(args, prefix=["bash", "-c", script], report=False)


# --- the limit ---


def test_exactly_the_limit_is_allowed(holt: Holt) -> None:
    result = holt.sh("printf 0123456789", "--output", "10").ok()

    assert (result.out, result.err) == ("0123456789", "")
    assert ending(result) == (0, "exited", None)
    assert output(result) == (10, 0)


def test_a_byte_beyond_the_limit_is_dropped(holt: Holt) -> None:
    result = holt.sh("printf 0123456789x", "--output", "10")

    assert (result.code, result.cause) == (143, "output_limit")
    assert result.out == "0123456789"
    assert output(result) == (10, 1)
    assert result.err == "holt: ended the command, and dropped 1 byte of output beyond the limit of 10 (--output)\n"


def test_the_limit_counts_stdout_and_stderr_together(holt: Holt) -> None:
    result = holt.sh("printf 12345; printf 67890x >&2", "--output", "10")
    printed = result.err.removesuffix("\n").partition("holt:")[0]

    assert result.cause == "output_limit"
    assert len(result.out) + len(printed) == 10
    assert output(result) == (10, 1)


def test_exceeding_the_limit_is_the_cause_even_after_a_normal_end(holt: Holt) -> None:
    """Output is never cut silently, whether the limit or the command's end comes first."""
    result = holt(["run", "--output", "1MiB", "--", "head", "-c", str(2 * MEBIBYTE), "/dev/zero"])

    assert (result.code, result.cause) == (143, "output_limit")
    assert result.out_bytes == bytes(MEBIBYTE)


@pytest.mark.parametrize("trap, code, name", (
    ("", 143, "SIGTERM"), ("trap 'exit 3' TERM;", 143, None), ("trap '' TERM;", 137, "SIGKILL"),
    ("trap 'kill -SEGV $$' TERM;", 139, "SIGSEGV"),
), ids=("none", "exits", "ignores", "crashes"))
def test_a_flood_is_ended(trap: str, code: int, name: str | None, holt: Holt) -> None:
    script = f"ulimit -c 0; {trap} while :; do printf %9999s; done"
    result = holt.sh(script, "--output", "1MiB", "--kill-after", "300ms")

    assert ending(result) == (code, "output_limit", name)
    assert result.out_bytes == b" " * MEBIBYTE
    assert output(result)[0] == MEBIBYTE and output(result)[1] > 0


def test_all_that_prints_is_ended(holt: Holt) -> None:
    """The fixture nothing_left checks for other processes."""
    result = holt.sh("trap '' TERM; for i in 1 2 3; do setsid yes & done; wait", "--output", "64KiB",
                     "--kill-after", "300ms")

    assert ending(result) == (137, "output_limit", "SIGKILL")
    assert len(result.out_bytes) == 64 << 10


def test_last_words_past_the_limit_are_counted(holt: Holt) -> None:
    """A command that cleans up at SIGTERM can do so, and print: nobody holds it up."""
    script = (
        "import os, signal, sys, time\n"
        "def clean(*_): os.write(1, bytes(99_999)); open('cleaned', 'w'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, clean)\n"
        "os.write(1, b'0123456789x')\n"
        "while True: time.sleep(0.02)"
    )
    result = holt(["run", "--output", "10", "--kill-after", "60s", "--", "python3", "-c", script])

    assert ending(result) == (143, "output_limit", None)
    assert output(result) == (10, 100_000)
    assert (holt.cwd / "cleaned").exists()


def test_without_kill_after_the_limit_is_the_end(holt: Holt) -> None:
    result = holt.sh("trap '' TERM; while :; do printf %9999s; done", "--output", "1MiB", "--kill-after", "0")

    assert ending(result) == (137, "output_limit", "SIGKILL")


def test_no_size_is_none_at_all(holt: Holt) -> None:
    assert "write 1 to" in holt(["run", "--output", "0", "--", "true"]).refusal()
    result = holt(["run", "--output", "none", "--", "head", "-c", "100000", "/dev/zero"]).ok()

    assert len(result.out_bytes) == 100_000
    assert result.report and result.report["output"] is None and result.report["limits"]["output_bytes"] is None


def test_a_project_may_narrow_it(holt: Holt) -> None:
    (holt.cwd / ".holt.json").write_text('{"holt": 1, "limits": {"output": "5"}}')
    result = holt.sh("printf 0123456789", "--output", "7")

    assert (result.out, result.cause) == ("01234", "output_limit")
    assert ".holt.json" in result.err


def test_json_comes_after_the_output(holt: Holt) -> None:
    result = holt(["run", "--json", "--output", "1KiB", "--", "sh", "-c", "printf 'x\\n' >&2; exit 3"], report=False)
    first, last = result.err.splitlines()

    assert first == "x"
    assert json.loads(last)["output"] == {"bytes": 2, "dropped_bytes": 0}
    assert json.loads(last)["limits"]["output_bytes"] == 1024


def test_an_error_before_the_start_has_no_output(holt: Holt) -> None:
    result = holt(["run", "--output", "1KiB", "--ro", "/no/such", "--", "true"])

    assert result.report and result.report["output"] is None


# --- the output that arrives ---


def test_every_byte_goes_through(holt: Holt) -> None:
    assert holt(["run", "--output", "1MiB", "--", "cat"], stdin=ALL_BYTES).ok().out_bytes == ALL_BYTES


@pytest.mark.parametrize("target", ("| sha256sum", "> copy; sha256sum copy"), ids=("pipe", "file"))
def test_20_megabytes_go_through_unchanged(target: str, holt: Holt, place: Path) -> None:
    large = place / "large"
    large.write_bytes(hashlib.shake_128(b"seed").digest(20_000_000))
    result = through_shell(holt, f'"$0" "$@" < {large} {target}', "run", "--output", "20000000", "--", "cat").ok()

    assert result.out.split()[0] == hashlib.sha256(large.read_bytes()).hexdigest()


ALTERNATE = "for i in {1..300}; do echo $i; echo $i >&2; done"
IN_ORDER = "".join(f"{i}\n{i}\n" for i in range(1, 301))


@pytest.mark.parametrize("target", ("> both 2>&1", ">> both 2>> both", "2>&1 | cat > both", "> >(cat > both) 2>&1"))
def test_stdout_and_stderr_of_one_file_stay_in_order(target: str, holt: Holt) -> None:
    script = f'"$0" "$@" {target}; wait $!'
    through_shell(holt, script, "run", "--output", "1MiB", "--", "bash", "-c", ALTERNATE).ok()

    assert (holt.cwd / "both").read_text() == IN_ORDER


def test_stdout_and_stderr_of_one_socket_stay_in_order(holt: Holt) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, holt.start(["run", "--output", "1MiB", "--", "bash", "-c", ALTERNATE],
                                  stdout=theirs, stderr=theirs) as running:
        theirs.close()
        with ours.makefile() as file:
            assert file.read() == IN_ORDER
        running.wait().ok()


def test_stdout_and_stderr_stay_apart(holt: Holt) -> None:
    result = holt.sh("echo out; echo err >&2", "--output", "1KiB").ok()

    assert (result.out, result.err) == ("out\n", "err\n")


def test_a_file_is_written_where_it_is(holt: Holt) -> None:
    """holt writes from the current offset, and later output of other programs follows."""
    script = 'exec > file; echo before; "$0" "$@"; echo after'
    through_shell(holt, script, "run", "--output", "1KiB", "--", "echo", "inside").ok()

    assert (holt.cwd / "file").read_text() == "before\ninside\nafter\n"


def test_output_comes_as_it_is_written(holt: Holt) -> None:
    with holt.start(["run", "--output", "1KiB", "--", "cat"], stdin=subprocess.PIPE) as running:
        for line in ("first", "second"):
            running.send(line + "\n")
            assert running.readline() == line
        running.wait(b"").ok()


def test_stdout_may_be_closed_or_nowhere(holt: Holt) -> None:
    for redirection in (">&- 2>&-", "> /dev/null 2>&1"):
        script = f'"$0" "$@" {redirection}'
        assert through_shell(holt, script, "run", "--output", "1KiB", "--", "sh", "-c", "echo lost; exit 9").code == 9


NO_SIGNALS = ("prlimit", "--sigpending=0:0")


@pytest.mark.identities("user", "root", "nested")
def test_a_run_works_when_pending_signals_are_used_up(holt: Holt) -> None:
    """Other processes of the user may have used up all that may be pending (RLIMIT_SIGPENDING)."""
    result = holt(
        ["run", "--output", "1MiB", "--", "sh", "-c", "echo said >&2"],
        prefix=[*NO_SIGNALS, "bash", "-c", '"$0" "$@" >/dev/null'], report=False,
    )
    assert (result.code, result.err) == (0, "said\n")

    result = holt(["run", "--output", "1MiB", "--timeout", "200ms", "--", "sleep", "100"], prefix=NO_SIGNALS)
    assert result.code == 124
    assert "--timeout" in result.err


def test_stdout_can_be_opened_by_its_name(holt: Holt) -> None:
    result = holt.sh("echo out > /dev/stdout; echo err > /dev/stderr", "--output", "1KiB").ok()

    assert (result.out, result.err) == ("out\n", "err\n")


def test_no_other_descriptor_comes_in(holt: Holt) -> None:
    assert holt.sh("ls /proc/self/fd | wc -l", "--output", "1KiB").ok().out == "4\n"


# --- readers ---


def test_a_slow_reader_gets_all(holt: Holt) -> None:
    """The reader even gets output that holt still has when the command has ended."""
    script = "echo ready >&2; exec head -c 70000 /dev/zero"
    with holt.start(["run", "--output", "1MiB", "--", "sh", "-c", script]) as running:
        until_alone(running)
        assert running.process.stdout and running.process.poll() is None
        pieces = []
        while piece := os.read(running.process.stdout.fileno(), 1000):
            pieces.append(len(piece))
        running.wait().ok()

    assert sum(pieces) == 70000


def test_a_slow_reader_gets_all_up_to_the_limit(holt: Holt) -> None:
    flags = ("--output", "70006", "--kill-after", "0")
    with holt.start(["run", *flags, "--", "sh", "-c", "echo ready >&2; exec yes"]) as running:
        until_alone(running)
        assert running.process.stdout
        pieces = []
        while piece := os.read(running.process.stdout.fileno(), 1000):
            pieces.append(len(piece))
        assert running.wait().cause == "output_limit"

    assert sum(pieces) == 70000


def test_a_reader_that_leaves_ends_the_command(holt: Holt) -> None:
    """The exit code is SIGPIPE's and holt prints nothing, as without the limit."""
    script = '"$0" "$@" | head -n 1; echo ${PIPESTATUS[0]}'
    result = through_shell(holt, script, "run", "--output", "1GiB", "--", "yes").ok()

    assert (result.out, result.err) == ("y\n141\n", "")


def test_a_reader_that_leaves_is_noticed_before_the_next_write(holt: Holt) -> None:
    """So the first write that nobody reads fails, as with a plain pipe."""
    script = "import select; p = select.poll(); p.register(1, 0); print('ready', flush=True); p.poll(); exit(9)"
    with holt.start(["run", "--output", "1KiB", "--", "python3", "-c", script]) as running:
        assert running.readline() == "ready"
        assert running.process.stdout
        running.process.stdout.close()

        assert running.process.wait(HANGS) == 9


@pytest.mark.parametrize("kind", (socket.SOCK_STREAM, socket.SOCK_SEQPACKET), ids=("stream", "packets"))
def test_a_socket_is_as_good_as_a_pipe(kind: socket.SocketKind, holt: Holt) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with ours, theirs, holt.start(["run", "--output", "300000", "--", "yes"], stdout=theirs) as running:
        theirs.close()
        got = b""
        while piece := ours.recv(65536):
            got += piece
        assert running.wait().cause == "output_limit"

    assert got == b"y\n" * 150_000


def test_a_socket_whose_reader_leaves_ends_the_command(holt: Holt) -> None:
    ours, theirs = socket.socketpair()
    with theirs, holt.start(["run", "--output", "1GiB", "--", "yes"], stdout=theirs) as running:
        theirs.close()
        assert ours.recv(1)
        ours.close()
        assert ending(running.wait()) == (141, "signaled", "SIGPIPE")


def unread(kind: str) -> tuple[list[Any], int]:
    """Returns a stdout that nobody reads: the object to close afterwards, and its fd."""
    if kind == "socket":
        pair = socket.socketpair()
        return list(pair), pair[1].fileno()
    ends = os.pipe()
    return [os.fdopen(fd) for fd in ends], ends[1]


unread_kinds = pytest.mark.parametrize("kind", ("pipe", "socket"))


@pytest.mark.slow
@unread_kinds
@pytest.mark.alike
@pytest.mark.parametrize("script", ("yes", "trap '' TERM; yes"), ids=("ends", "ignores TERM"))
def test_a_timeout_ends_a_command_whose_output_nobody_reads(kind: str, script: str, holt: Holt) -> None:
    held, fd = unread(kind)
    flags = ("--output", "1GiB", "--timeout", "300ms", "--kill-after", "200ms")
    with holt.start(["run", *flags, "--", "bash", "-c", script], stdout=fd) as running:
        result = running.wait()
    for each in held:
        each.close()

    assert (result.code, result.cause) == (124, "timeout")
    assert output(result)[1] > 0
    assert f"dropped {output(result)[1]} bytes of output" in result.err


@unread_kinds
@pytest.mark.alike
def test_a_timeout_ends_the_wait_for_a_reader(kind: str, holt: Holt) -> None:
    """The command has ended in time, but its output has not all arrived."""
    held, fd = unread(kind)
    argv = ["run", "--output", "1GiB", "--timeout", "1s", "--", "head", "-c", "270000", "/dev/zero"]
    with holt.start(argv, stdout=fd) as running:
        result = running.wait()
    for each in held:
        each.close()

    assert (result.code, result.cause) == (124, "timeout")
    assert output(result)[1] > 0


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGINT, signal.SIGHUP), ids=str)
def test_a_signal_ends_the_wait_for_a_reader(sig: signal.Signals, holt: Holt) -> None:
    held, fd = unread("pipe")
    script = "echo ready >&2; exec head -c 70000 /dev/zero"
    with holt.start(["run", "--output", "1GiB", "--", "sh", "-c", script], stdout=fd) as running:
        until_alone(running)
        assert running.process.poll() is None
        running.kill(sig)
        result = running.wait()
    for each in held:
        each.close()

    assert ending(result) == (128 + sig, "killed", None)
    assert sum(output(result)) == 70006 and output(result)[1] > 0


def test_a_signal_ends_a_command_that_nobody_reads(holt: Holt) -> None:
    held, fd = unread("pipe")
    script = "trap 'exit 5' TERM; while :; do printf %9999s; done"
    with holt.start(["run", "--output", "1GiB", "--kill-after", "300ms", "--", "bash", "-c", script],
                    stdout=fd) as running:
        deadline = time.monotonic() + HANGS
        while select.select([], [fd], [], 0)[1]:
            assert time.monotonic() < deadline, "the command prints nothing"
        running.kill(signal.SIGTERM)
        result = running.wait()
    for each in held:
        each.close()

    assert result.cause == "killed"
    assert output(result)[1] > 0


# --- readers of holt's own messages ---


def until_reported(running: Running) -> None:
    """Waits until everything has ended, except for holt's message on stderr."""
    deadline = time.monotonic() + HANGS
    assert running.report_path
    while not running.report_path.exists() or b'"cause": "timeout"' not in running.report_path.read_bytes():
        assert time.monotonic() < deadline, "the time is not over"
        time.sleep(0.005)


OVER_TIME = ("--timeout", "300ms", "--kill-after", "200ms", "--", "yes")


@pytest.mark.alike
@pytest.mark.slow
@pytest.mark.parametrize("kind, flags", (("pipe", ()), ("socket", ("--json",))), ids=("text", "json"))
def test_holt_ends_where_nobody_reads_what_it_says(kind: str, flags: tuple[str, ...], holt: Holt) -> None:
    """holt waits for the reader for only a few seconds."""
    held, fd = unread(kind)
    with holt.start(["run", *flags, *OVER_TIME], stdout=fd, stderr=fd) as running:
        result = running.wait()
    for each in held:
        each.close()

    assert (result.code, result.cause) == (124, "timeout")


@pytest.mark.alike
@pytest.mark.parametrize("flags", ((), ("--output", "1GiB"), ("--json",)), ids=("text", "output", "json"))
def test_a_signal_ends_holt_where_nobody_reads_what_it_says(flags: tuple[str, ...], holt: Holt) -> None:
    held, fd = unread("pipe")
    with holt.start(["run", *flags, *OVER_TIME], stdout=fd, stderr=fd) as running:
        until_reported(running)
        running.kill(signal.SIGTERM)
        result = running.wait()
    for each in held:
        each.close()

    assert (result.code, result.cause) == (-signal.SIGTERM, "timeout")


def test_a_late_reader_gets_what_holt_says(holt: Holt) -> None:
    held, fd = unread("pipe")
    with holt.start(["run", *OVER_TIME], stdout=fd, stderr=fd) as running:
        until_reported(running)
        held.pop().close()
        text = held[0].read()
        result = running.wait()
    held[0].close()

    assert result.code == 124
    assert "holt: timed out after 300ms" in text


@pytest.mark.alike
@pytest.mark.slow
def test_a_report_that_nobody_reads_is_not_waited_for(holt: Holt) -> None:
    held, fd = unread("pipe")
    result = holt(["run", "--report", "/dev/stdout", *OVER_TIME], stdout=fd)
    for each in held:
        each.close()

    assert result.code == 125
    assert "cannot write the report /dev/stdout" in result.err and "(ETIMEDOUT)" in result.err


# --- the disk ---


def test_a_full_disk_is_an_error(holt: Holt) -> None:
    """The command is told, and so is the caller."""
    with open("/dev/full", "wb") as full:
        result = holt.sh("while echo text; do :; done", "--output", "1MiB", stdout=full)

    assert result.code == 125
    assert "cannot write the command's output to stdout: No space left on device (ENOSPC)" in result.err
    assert (result.cause, result.report and result.report["error"]["errno"]) == ("signaled", "ENOSPC")


# --- the terminal ---


def test_output_on_a_terminal_counts(terminal: Start) -> None:
    caller = terminal(["run", "--output", "1000", "--json", "--", "seq", "100000"])

    assert caller.wait() == 143
    shown, brace, report = caller.output.partition("{")
    assert shown == "".join(f"{i}\r\n" for i in range(1, 1000))[:1000]
    result = json.loads(brace + report)
    assert (result["cause"], result["output"]["bytes"]) == ("output_limit", 1000)
    assert result["output"]["dropped_bytes"] > 0


def test_a_flood_of_a_terminal_is_ended(terminal: Start) -> None:
    script = "trap '' TERM; while :; do printf %999s; done"
    caller = terminal(["run", "--output", "10000", "--kill-after", "300ms", "--", "bash", "-c", script])

    assert caller.wait() == 137
    assert caller.output.count(" ") >= 10000
    assert caller.modes() == caller.initial


def test_a_terminal_and_a_file_have_one_limit(holt: Holt) -> None:
    script = "printf 12345; printf 67890x >&2; sleep 1000"
    with Terminal(holt.identity, ["bash", "-c", '"$0" "$@" > out', *holt.argv(
            ["run", "--output", "10", "--", "bash", "-c", script])], cwd=holt.cwd) as caller:
        assert caller.wait() == 143
        shown = caller.output.partition("\x1b[0mholt:")[0]

    assert len(shown) + len((holt.cwd / "out").read_text()) == 10


def test_a_terminal_below_the_limit_shows_all(terminal: Start) -> None:
    caller = terminal(["run", "--output", "1MiB", "--", "seq", "3000"])

    assert caller.wait() == 0
    assert caller.output == "".join(f"{i}\r\n" for i in range(1, 3001))
