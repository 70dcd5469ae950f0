# SPDX-License-Identifier: Apache-2.0
"""holt logs prints the kept output, and reports the output that was not kept."""

from __future__ import annotations

import base64
import json
import re

import pytest

from lib.sandbox import Result
from lib.sessions import Session, until

pytestmark = pytest.mark.alike

# More output than is kept of a stream, 1 MiB. Its last line differs from all others.
FLOOD = "seq 400000; echo LATE"
FLOOD_BYTES = sum(len(f"{n}\n") for n in range(1, 400001)) + len("LATE\n")


def flood(session: Session, *flags: str, script: str = FLOOD) -> str:
    process = session.detach(script, *flags)
    until(lambda: session.ps()[process]["state"] == "ended", "it has ended")
    return process


def dropped(result: Result, stream: str = "stdout") -> int:
    """Returns the number of dropped bytes that stderr reports."""
    return sum(int(n) for n in re.findall(rf"^holt: dropped (?:the first )?(\d+) bytes of {stream}", result.err, re.M))


def test_the_last_output_of_a_detached_command_is_kept(session: Session) -> None:
    process = flood(session)
    result = session("logs", process).ok()

    assert result.out.endswith("400000\nLATE\n") and len(result.out) == 1 << 20
    assert result.err == f"holt: dropped the first {FLOOD_BYTES - (1 << 20)} bytes of stdout\n"
    assert session("logs", process, "--tail", "1").ok().out == "LATE\n"
    assert session("logs", process, "--tail", "1").err == ""


def test_keep_head_keeps_the_first_bytes_and_counts_the_others(session: Session) -> None:
    process = flood(session, "--keep", "head", "--output", "100")
    told = f"holt: dropped {FLOOD_BYTES - 100} bytes of stdout after its first 100\n"

    for flags in ((), ("-f",), ("--tail", "1"), ("--tail", "1000000")):
        assert session("logs", process, *flags).ok().err == told, flags
    assert session("logs", process).out.startswith("1\n2\n")


def test_each_stream_has_its_own_limit(session: Session) -> None:
    process = flood(session, "--output", "10", script=f"echo out; ({FLOOD}) >&2")
    result = session("logs", process).ok()

    assert result.out == "out\n"
    assert dropped(result) == 0 and dropped(result, "stderr") == FLOOD_BYTES - 10
    assert result.err.endswith("400000\nLATE\n"[-10:])


@pytest.mark.parametrize("closed, printed", (("<&- >&-", ">&1"), (">&- 2>&-", ">&2")))
def test_output_is_never_sent_to_the_keeper_as_a_request(closed: str, printed: str, session: Session) -> None:
    """The keeper's socket must not get the number of stdout or stderr."""
    request = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "kv.set", "params": {"key": "k", "value": "inside"}})
    process = flood(session, script=f"echo '{request}' {printed}")

    session("logs", process, prefix=["bash", "-c", f'"$0" "$@" {closed}'])

    assert session("kv", "keys").ok().out == ""


@pytest.mark.parametrize("keep", ("head", "tail"))
def test_a_follower_is_told_where_something_lacks(keep: str, session: Session) -> None:
    """The follower starts when most of the output was dropped already, and gets the later output."""
    process = session.detach(f"{FLOOD}; touch flooded; until [ -e go ]; do echo tick; sleep 0.01; done; echo more", "--keep", keep)
    until(lambda: session.exec("test", "-e", "flooded").code == 0, "it has printed that")
    with session.sessions.start(["logs", session.name, process, "-f"]) as running:
        assert any("tick" in running.readline() for _ in range(400000)), "it follows"
        session.sh("touch go").ok()
        result = running.wait()

    assert result.code == 0 and result.out.endswith("more\n")
    assert dropped(result) >= FLOOD_BYTES - (1 << 20)
    assert ("the first" in result.err) == (keep == "tail")


def test_printed_and_dropped_bytes_add_up(session: Session) -> None:
    """The sum is right for readers of any speed."""
    process = session.detach(f"{FLOOD}; {FLOOD}")
    result = session("logs", process, "-f").ok()

    assert result.out.endswith("LATE\n")
    assert len(result.out) + dropped(result) == 2 * FLOOD_BYTES


def test_chunks_in_json_say_where_they_are(session: Session) -> None:
    process = flood(session, script=f"{FLOOD}; echo err >&2")
    result = session("logs", process, "--json").ok()
    chunks = [json.loads(line) for line in result.out.splitlines()]
    end = FLOOD_BYTES - (1 << 20)

    for chunk in (c for c in chunks if c["stream"] == "stdout"):
        assert chunk["offset"] == end
        end += len(base64.b64decode(chunk["base64"]))
    assert end == FLOOD_BYTES and dropped(result) == FLOOD_BYTES - (1 << 20)
    assert [c["offset"] for c in chunks if c["stream"] == "stderr"] == [0]


def test_logs_from_a_chunk_do_not_report_earlier_bytes_as_dropped(session: Session) -> None:
    process = flood(session)
    first = json.loads(session("logs", process, "--json").ok().out.splitlines()[0])["seq"]

    assert session("logs", process, "--from", str(first + 1)).ok().err == ""


def test_the_protocol_says_how_much_there_was(session: Session) -> None:
    process = flood(session, "--output", "100")
    answer = session.rpc()("process.read", id=process)

    assert (answer["stdout_bytes"], answer["stderr_bytes"], answer["elsewhere"]) == (FLOOD_BYTES, 0, [])
    assert sum(len(c["text"]) for c in answer["chunks"]) == 100


@pytest.mark.parametrize("flags", ((), ("-f",), ("--json",), ("--tail", "1")))
def test_output_that_went_to_its_caller_is_not_silence(flags: tuple[str, ...], session: Session) -> None:
    session.exec("echo", "told").ok()
    result = session("logs", "p1", *flags).ok()

    assert result.out == ""
    assert result.err.startswith("holt: the output of p1 went to the command's caller, and was not kept\n")
    assert session.rpc()("process.read", id="p1")["elsewhere"] == ["stdout", "stderr"]


def test_a_command_that_has_printed_nothing_is_silence(session: Session) -> None:
    process = flood(session, script="true")
    result = session("logs", process).ok()

    assert (result.out, result.err) == ("", "")
