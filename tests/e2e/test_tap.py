# SPDX-License-Identifier: Apache-2.0
"""lib/tap.py, which compares the messages between holt's verbs and keepers with the OpenRPC document after each test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lib.sessions import Json, Session
from lib.tap import HEAD, Tap

# A build with a sanitizer has no library to preload.
pytestmark = pytest.mark.not_sanitized

ASK = {"jsonrpc": "2.0", "id": 1, "method": "kv.get", "params": {"key": "k"}}
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"value": "v"}}
CALL = {"jsonrpc": "2.0", "id": "c1", "method": "tool.call", "params": {
    "name": "t", "payload": {}, "call": "c1", "exec": "p1", "timeout_ms": 5}}


@pytest.fixture
def tapped(tap: Tap | None) -> Tap:
    assert tap, "the build has no tests/lib/libholt-tap.so: meson configure build -Dtests=true"
    tap.look()
    return tap


def test_the_messages_of_verbs_are_seen(tapped: Tap, session: Session, put) -> None:
    session("kv", "set", "k", "v").ok()
    session("kv", "get", "k").ok()
    put("a", "text")
    session.cp("a", "w:a").ok()
    session("files", "ls").ok()
    session("python", "-c", "1 + 1").ok()
    process = session.detach("sleep 100")
    session("ps").ok()
    session("kill", process).ok()
    session("wait", process)
    session("exec", "--tool", "t=/bin/cat", "--", "holt-tool", "t", "{}")
    session("stop").ok()

    assert tapped.look() == []
    assert {
        "files.list", "files.receive", "history.begin", "history.end", "kv.get", "kv.set", "process.kill", "process.list",
        "process.spawn", "process.wait", "python.run", "session.stop", "tool.call", "tools.register",
    } <= tapped.seen


def note(kind: str, data: bytes) -> bytes:
    return HEAD.pack(kind.encode(), len(data)) + data


def notes(*messages: tuple[str, Json]) -> bytes:
    return note("C", b"") + b"".join(note(kind, json.dumps(message).encode() + b"\n") for kind, message in messages)


@pytest.mark.parametrize("data", (
    notes(("S", ASK), ("R", {**RESULT, "result": {"value": 3}})),
    notes(("S", ASK), ("R", {**RESULT, "id": 2})),
    notes(("S", ASK), ("R", RESULT), ("R", RESULT)),
    notes(("S", {**ASK, "params": {"key": 3}}), ("R", RESULT)),
    notes(("S", {"jsonrpc": "2.0", "method": "kv.set", "params": {"key": 3}})),
    notes(("S", {"jsonrpc": "2.0", "method": "kv.none", "params": {}})),
    notes(("S", {"id": 1, "method": "kv.get", "params": {"key": "k"}})),
    notes(("S", {"jsonrpc": "2.0", "id": "c1", "result": {"value": 1}})),
    notes(("R", CALL), ("S", {"jsonrpc": "2.0", "id": "c1", "result": {}})),
    note("C", b"") + note("S", b"\nnone\n"),
    note("C", b"") + note("R", b"none\n"),
))
def test_each_mistake_is_found(data: bytes, tapped: Tap) -> None:
    (tapped.directory / "1").write_bytes(data)
    assert len(tapped.look()) == 1
    assert not list(tapped.directory.iterdir()) and tapped.look() == []


@pytest.mark.parametrize("data", (
    notes(("S", ASK), ("R", RESULT)),
    notes(("S", ASK), ("R", RESULT)) * 2,
    notes(("R", CALL), ("S", {"jsonrpc": "2.0", "id": "c1", "result": {"value": 1}})),
    notes(("S", ASK)) + note("R", b'{"jsonrpc": "2.0", "id": 1, "res') + note("R", b'ult": {"value": "v"}}\n'),
    notes(("S", ASK), ("R", RESULT)) + note("S", b'{"jsonrpc": "2.0", "id": 2, "met'),
    notes(("S", ASK), ("R", RESULT)) + note("R", b"x" * 100)[:-50],
    notes(("S", ASK)) + note("L", b"") + note("R", b"x\n"),
))
def test_lost_tails_are_no_mistakes(data: bytes, tapped: Tap) -> None:
    (tapped.directory / "1").write_bytes(data)
    assert tapped.look() == []
    assert tapped.seen <= {"kv.get", "tool.call"}


def test_the_tap_is_not_inside(tapped: Tap, session: Session, workspace: Path) -> None:
    """Neither the sandbox nor the keeper has the variables of the tap."""
    assert "holt-tap" not in session.out("cat /proc/self/environ /proc/self/maps | tr '\\0' '\\n'")
    assert b"LD_PRELOAD" not in Path(f"/proc/{session.keeper()}/environ").read_bytes()
