# SPDX-License-Identifier: Apache-2.0
"""Clients that send wrong requests or disconnect: the others are still served."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.sessions import Bound, Closed, Rpc, RpcError, Session, Sessions, memory, until

pytestmark = pytest.mark.alike


@pytest.fixture(params=("serve", "keeper"))
def line(request: pytest.FixtureRequest, sessions: Sessions, session: Session) -> Iterator[Rpc]:
    with sessions.serve() if request.param == "serve" else session.rpc() as rpc:
        yield rpc


def still_serves(rpc: Rpc) -> None:
    rpc.raw(b'{"jsonrpc": "2.0", "id": "still", "method": "no.such"}\n')
    with pytest.raises(RpcError) as error:
        rpc.result("still")
    assert error.value.code == -32601


@pytest.mark.parametrize(
    "bytes_", (b"{", b"nonsense", b"[]", b"null", b"[" * 5000, b'"x"', b"{\"a\":1}x", b"\xff\xfe", b"{}", b"\0", b'{"jsonrpc":"1.0","id":1,"method":"exec"}',
               b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","id":1,"method":7}', b'{"jsonrpc":"2.0","id":{},"method":"exec"}'),
)
def test_malformed_lines_are_answered(bytes_: bytes, line: Rpc) -> None:
    line.raw(bytes_ + b"\n")
    def answered() -> bool:
        line.read()
        return bool(line._answers)
    until(answered, "an answer")
    (answer,) = line._answers.values()
    line._answers.clear()
    assert answer["error"]["code"] in (-32700, -32600)
    still_serves(line)


@pytest.mark.parametrize("head, id_", (
    ('{"jsonrpc": "2.0", "id": 5, "method": "files.write", "params": {"text": "', 5),
    ('{"id":"a-\\"1\\"","params":{"text": "', 'a-"1"'),
    (' { "method":"x" , "id" : -7,"jsonrpc":"', -7),
    ('{"jsonrpc": "2.0", "params": {"id": 5, "text": "', None),
    ('{"method": "files.write, \\"id\\": 5, "', None),
    ('{"id": true, "text": "', None), ('{"id": 5', None), ('{"id": [5, "', None), ('["id", 5, "', None), ('"id": 5, "', None),
))
def test_the_reply_to_a_long_line_has_its_id(head: str, id_: int | str | None, line: Rpc) -> None:
    """The reply has the id from the start of the line, where programs write it."""
    line.raw(head.encode() + b"1" * (1 << 20) + b'"}\n')
    until(lambda: line.read() or bool(line._answers), "an answer")
    (answer,) = line._answers.values()
    line._answers.clear()

    assert (answer["id"], answer["error"]["data"]["errno"]) == (id_, "EMSGSIZE")
    still_serves(line)


@pytest.mark.parametrize("id_", (9, "t1"))
def test_the_reply_to_an_invalid_line_has_its_id(id_: int | str, line: Rpc) -> None:
    """The server's own requests have ids like "t1"; it has made none here."""
    line.raw(b'{"jsonrpc": "2.0", "id": %s, "params": {"value": "a\\u0000b"}, "method": "kv.set"}\n' % json.dumps(id_).encode())
    with pytest.raises(RpcError) as error:
        line.result(id_)

    assert error.value.code == -32700
    still_serves(line)


def test_a_line_of_a_hundred_megabytes(line: Rpc, session: Session) -> None:
    session.exec("true").ok()
    before = memory(session.keeper())
    line.raw(b'{"jsonrpc": "2.0", "id": 1, "method": "')
    for _ in range(100):
        line.raw(b"x" * 1_000_000)
    line.raw(b'"}\n')
    while not line._answers:
        line.read()
    (answer,) = line._answers.values()
    line._answers.clear()

    assert answer["error"]["code"] in (-32700, -32600)
    still_serves(line)
    assert memory(session.keeper()) < before + (8 << 20)


def test_unknown_methods_and_parameters_are_named(rpc: Bound) -> None:
    error = rpc.refused("exce", argv=["true"])
    assert error.code == -32601 and "exec" in error.message + error.hint
    error = rpc.refused("exec", argv=["true"], retries=5)
    assert error.code == -32602 and "retries" in error.message
    error = rpc.refused("exec", argv="true")
    assert error.code == -32602
    error = rpc.refused("process.wait")
    assert error.code == -32602 and "id" in error.message
    assert rpc.refused("process.wait", id="p77").kind == "no-process"
    assert rpc.refused("exec", argv=["true"], output_max=1 << 40).code == -32602


def test_served_names_that_can_not_be(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        for name in ("..", "a/b", "", "x" * 65):
            assert rpc.refused("exec", session=name, argv=["true"]).kind in ("usage", "None")
        assert rpc.refused("exec", session="v", argv=["true"]).kind == "missing"
        assert rpc.refused("exec", argv=["true"]).code == -32602
        assert rpc.refused("session.create", name="a", options=["--timeout", "1s"]).kind == "usage"
        assert rpc.refused("session.create", name="a", cwd="relative").kind == "usage"
        assert rpc.call("session.list")["sessions"] == []


def test_a_keeper_that_dies_is_told_and_the_next_call_starts_it(sessions: Sessions, session: Session) -> None:
    with sessions.serve() as rpc:
        waiting = rpc.send("exec", session="w", argv=["sleep", "1000"])
        until(lambda: session.processes("sleep"), "it runs")
        session.kill_keeper()
        with pytest.raises(RpcError) as error:
            rpc.result(waiting)
        assert '"w"' in error.value.message
        assert rpc.call("exec", session="w", argv=["echo", "again"])["stdout"] == "again\n"


def test_a_client_that_disconnects_early_leaves_nothing(session: Session) -> None:
    for _ in range(100):
        with session.rpc() as rpc:
            rpc.send("exec", shell="echo x")
    with session.rpc() as rpc:
        until(lambda: all(p["state"] == "ended" for p in rpc.call("process.list")["processes"]), "all ends")


def test_too_many_clients_get_an_error_and_others_go_on(session: Session) -> None:
    with session.rpc() as first:
        opened, refused = [], 0
        for _ in range(260):
            try:
                opened.append(session.rpc())
            except (BrokenPipeError, ConnectionResetError):
                refused += 1
        for rpc in opened:
            try:
                rpc.call("kv.keys")
            except (RpcError, Closed, BrokenPipeError, ConnectionResetError):
                refused += 1
        assert 0 < refused < 20
        assert first.call("kv.keys")["keys"] == []
        for rpc in opened:
            rpc.close()
        until(lambda: session("kv", "keys").code == 0, "there is room again")


def test_the_idle_keeper_has_no_fd_of_those_that_went(session: Session) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may look into a keeper")
    fds = Path(f"/proc/{session.keeper()}/fd")

    def make_mistakes() -> None:
        session.sh("echo x; exit 1")
        session.exec("no-such-command")
        with session.rpc() as rpc:
            rpc.call("exec", shell="echo x", stdin="y")
            rpc.call("process.spawn", argv=["true"], terminal=7)

    make_mistakes()  # the keeper now has everything that it opens only once
    session("files", "ls").ok()
    before = len(os.listdir(fds))
    for _ in range(20):
        make_mistakes()
    until(lambda: len(os.listdir(fds)) <= before, f"no fd is left but {before}")
