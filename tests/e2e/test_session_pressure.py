# SPDX-License-Identifier: Apache-2.0
"""Clients that request much and do not read. They cost the keeper little, other clients are still served, and they get
everything when they read again."""

from __future__ import annotations

import pytest

from lib.sessions import Connect, Json, Rpc, RpcError, Session, memory, until

MIB = 1 << 20


@pytest.fixture
def rpc(session: Session) -> Rpc:
    return session.rpc()


@pytest.fixture
def other(session: Session) -> Rpc:
    return session.rpc()


@pytest.mark.alike
@pytest.mark.not_sanitized  # the sanitizer keeps freed memory
def test_replies_are_not_made_before_the_client_reads(session: Session, connect: Connect, other: Rpc) -> None:
    """There are 32 replies of 4 MB each. The keeper makes them as they are read."""
    rpc = connect()
    script = "read; head -c 2000000 /dev/zero | tr '\\0' x; head -c 2000000 /dev/zero | tr '\\0' y >&2"
    process = rpc.spawn(script, input=True, output_max=2 * MIB)
    numbers = [rpc.send("process.wait", id=process, output=True) for _ in range(32)]
    before = memory(session.keeper())
    other("process.write", id=process, data="\n")

    assert other("process.wait", id=process)["stdout_bytes"] == 2000000
    other("kv.keys")
    assert memory(session.keeper()) < before + 24 * MIB
    for number in numbers:
        answer = rpc.result(number)
        assert (answer["stdout"], answer["stderr"]) == ("x" * 2000000, "y" * 2000000)


def test_output_that_nobody_reads_makes_room_and_says_so(session: Session, other: Rpc) -> None:
    """After 12 commands with 8 MB of output each, only the last few are kept, as for all ended commands."""
    script = "read; head -c 8000000 /dev/zero | tr '\\0' x"
    ids = [other("process.spawn", shell=script, input=True, output_max=8 * MIB)["id"] for _ in range(12)]
    with session.rpc() as slow:
        numbers = [slow.send("process.wait", id=i, output=True) for i in ids]
        for i in ids:
            other("process.write", id=i, data="\n")
            other("process.wait", id=i)
        until(lambda: len(other("process.list")["processes"]) < 12, "the oldest make room")
        kept, refused = 0, []
        for number in numbers:
            try:
                kept += slow.result(number)["stdout"] == "x" * 8000000
            except RpcError as error:
                refused.append(error)
    assert kept >= 3 and refused
    for error in refused:
        assert error.kind == "limit" and "exited, exit code 0" in error.message and "history" in error.hint


@pytest.mark.alike
@pytest.mark.not_sanitized  # the sanitizer keeps freed memory
def test_listings_are_not_made_before_the_client_reads(session: Session, rpc: Rpc, other: Rpc) -> None:
    session.out("mkdir -p tree/{1..10}; for d in tree/*; do (cd $d && seq -f '%0240g' 150 | xargs touch); done")
    params: Json = {"path": "tree", "recursive": True, "limit": 10000}
    count = len(rpc("files.list", **params)["entries"])
    before = memory(session.keeper())
    numbers = [rpc.send("files.list", **params) for _ in range(60)]
    other("files.list", **params)

    assert memory(session.keeper()) < before + 10 * MIB
    assert {len(rpc.result(number)["entries"]) for number in numbers} == {count}


def test_a_client_that_does_not_read_does_not_delay_code_of_others(rpc: Rpc, other: Rpc) -> None:
    """All clients share the interpreter. Code of a client that does not read runs later."""
    first = rpc.send("python.run", code="print('x' * 3000000)", output_max=4 * MIB)
    second = rpc.send("python.run", code="open('marker', 'w').close()")
    third = rpc.send("python.run", code="import os; os.path.exists('marker')")
    until(lambda: other("python.run", code="1")["result"] == "1", "somebody else's is run")

    assert not other("files.exists", path="marker")["exists"]
    assert len(rpc.result(first)["stdout"]) == 3000001
    assert rpc.result(second)["error"] is None
    assert rpc.result(third)["result"] == "True"


def test_code_that_waits_goes_with_its_client(session: Session, other: Rpc) -> None:
    with session.rpc() as gone:
        gone.send("python.run", code="print('x' * 3000000)", output_max=4 * MIB)
        gone.send("python.run", code="open('marker', 'w').close()")
        assert other("python.run", code="1")["result"] == "1"
    until(lambda: other("python.run", code="2")["result"] == "2", "the next is run")
    assert not other("files.exists", path="marker")["exists"]


def test_chunks_are_read_by_parts_that_fit(rpc: Rpc) -> None:
    """Each byte takes six bytes in a reply."""
    process = rpc("process.spawn", shell="head -c 8000000 /dev/zero | tr '\\0' '\\1'", output_max=8 * MIB)["id"]
    rpc("process.wait", id=process)
    text, start, more = 0, 1, True
    while more:
        answer = rpc("process.read", id=process, limit=1000, **{"from": start})
        assert answer["next"] > start
        text += sum(len(c["text"]) for c in answer["chunks"])
        start, more = answer["next"], answer["more"]
    assert text == 8000000
