# SPDX-License-Identifier: Apache-2.0
"""Reading the files of a session at rest: "holt serve" gives the answers that the live session gives, and starts nothing."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sessions import Json, Rpc, RpcError, Session, Sessions, readers, until

# Made by a command, so that the session's root has files of its own.
FILL = r"""
mkdir -p /workspace/d/e /opt/tool /mnt/files/f && cd /workspace
echo 'first line' > notes.txt; printf 'a\377b' > bytes; printf 'x%.0s' {1..3000} > d/long; truncate -s 1T d/sparse
echo secret > d/e/made.pem; echo 'in the root' > /opt/tool/file; echo 'in the mount' > /mnt/files/f/a.txt
touch $'d/not\377utf8'; mkfifo d/fifo; chmod 0 d/e/../../bytes; chmod 600 bytes; mkdir -m 0 /opt/closed; ln -s /opt/closed closed
ln -s notes.txt near; ln -s /workspace/notes.txt far; ln -s /opt/tool/file root; ln -s ../../../../../../etc/passwd up
ln -s /mnt/files mount; ln -s loop loop; ln -s missing dangling; ln -s /proc/self/fd fds; ln -s /ro/x shown; ln -s ../.env hidden
"""

PATHS = (
    "notes.txt", "near", "far", "root", "up", "loop", "dangling", "mount/f/a.txt", "d", "d/fifo", "d/long", "bytes", "closed",
    "closed/x", "shown", "hidden", ".env", "d/e/made.pem", "key.pem", "d/../notes.txt", "notes.txt/x", "d/e/../../../opt/tool/file",
    "/", "/opt/tool/file", "/mnt/files/f/a.txt", "/mnt/files/../../opt/tool/file", "/ro/x", "/ro/d/y", "/ro/key.pem", "/etc/passwd",
    "/etc/shadow", "/etc/hostname", "/usr/bin/env", "/dev/null", "/proc/version", "fds/3", "/workspace/..",
    "/tmp/left", "", "x" * 300, "x/" * 2040,
)
CALLS = [
    *(("files.read", {"path": path}) for path in PATHS),
    *(("files.stat", {"path": path, "follow": follow}) for path in PATHS for follow in (True, False)),
    *(("files.exists", {"path": path}) for path in PATHS),
    *(("files.list", {"path": path}) for path in PATHS),
    ("files.read", {"path": "notes.txt", "offset": 2, "length": 3}),
    ("files.read", {"path": "bytes", "base64": True}),
    ("files.read", {"path": "d/sparse", "offset": 1 << 39, "length": 16, "base64": True}),
    ("files.list", {"recursive": True}),
    ("files.list", {"path": "/mnt", "recursive": True}),
    ("files.list", {"path": "/ro", "recursive": True}),
    ("files.list", {"recursive": True, "limit": 2, "after": "bytes"}),
    ("files.glob", {"pattern": "**/*"}),
    ("files.glob", {"pattern": "../*"}),
    ("files.glob", {"pattern": "**/*.txt", "path": "/mnt/files"}),
    ("files.grep", {"pattern": "line|secret|the"}),
    ("files.grep", {"pattern": "IN THE", "path": "/opt", "ignore_case": True, "glob": "f*"}),
    ("files.grep", {"pattern": "("}),
    ("mount.list", {}),
    ("mount.list", {"prefix": "f/", "limit": 1}),
    ("mount.download", {"path": "f/a.txt"}),
    ("mount.download", {"path": "f/missing"}),
    ("mount.download", {"path": "../opt/tool/file"}),
]
STORED = {"session.show", "kv.get", "kv.keys", "history.list", "audit.list"}
EMPTY = {"process.list": {"processes": [], "ports": []}, "session.stop": {"set_aside": [], "set_aside_omitted": 0},
         "tools.list": {"tools": []}}


def answers(rpc: Rpc) -> list[Json]:
    found = []
    for number in rpc.send_together(*((method, {"session": "w", **params}) for method, params in CALLS)):
        try:
            found.append(rpc.result(number))
        except RpcError as error:
            found.append({"code": error.code, "message": error.message, "data": error.data})
    return found


def without_new_times(value: object, since: int) -> object:
    """A start makes the mount points, and the empty files that cover hidden ones. A live session has files of its own in /run."""
    if isinstance(value, dict):
        return {
            key: "new" if key == "modified_ms" and isinstance(member, int) and member >= since else without_new_times(member, since)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [without_new_times(each, since) for each in value if each.get("name") != "run"]
    return value


def at_rest(rpc: Rpc) -> bool:
    return [s["state"] for s in rpc.call("session.list")["sessions"]] == ["at rest"]


@pytest.fixture
def filled(sessions: Sessions, workspace: Path, mkdir: Callable[[str], Path]) -> Session:
    shown = mkdir("shown")
    (shown / "d").mkdir()
    for path in (shown / "x", shown / "d" / "y", shown / "key.pem", workspace / ".env", workspace / "key.pem"):
        path.write_text(f"{path.name}\n")
    session = sessions.create(
        "w", "--workspace", f"{workspace}:/workspace", "--ro", f"{shown}:/ro", "--hide", ".env", "--hide", "/ro/key.pem",
        "--hide", "*.pem",
    )
    session.out(FILL)
    session.stop()
    return session


@pytest.mark.identities("user", "root", "nested")
def test_each_reading_method_answers_as_in_a_live_session(filled: Session) -> None:
    since = int(time.time() * 1000)
    with filled.sessions.serve() as rpc:
        rested = answers(rpc)
        assert at_rest(rpc)
        rpc.call("exec", session="w", argv=["true"])
        for call, rest, live in zip(CALLS, rested, answers(rpc)):
            assert without_new_times(rest, since) == without_new_times(live, since), call
        assert not at_rest(rpc)


def test_the_calls_are_of_every_method_that_reads_files(sessions: Sessions) -> None:
    """files.open has a test of its own, because it replies with a descriptor. So have the methods of routes (test_route_verb.py)."""
    listed = json.loads(sessions(["serve", "--methods", "--json"]).ok().out)
    resting = {name for name, method in listed.items() if method["at_rest"]}
    printed = re.findall(r"^(\S+)\n  .*\n  Does not start a session at rest$", sessions(["serve", "--methods"]).ok().out, re.M)

    assert {*printed} == resting
    assert resting == {method for method, _ in CALLS} | {"files.open", *EMPTY, "session.allow", *STORED, "route.add", "route.list", "route.remove"}


def test_methods_without_a_subject_in_a_session_at_rest(filled: Session) -> None:
    with filled.sessions.serve() as rpc:
        for method, empty in EMPTY.items():
            assert rpc.call(method, session="w") == empty and at_rest(rpc)
        assert rpc.call("session.start", session="w") == {} and not at_rest(rpc)
        for method, empty in EMPTY.items():
            assert rpc.call(method, session="w") == empty
        assert rpc.refused("process.list", session="nobody").kind == "missing"


def test_opening_a_file(filled: Session) -> None:
    path = filled.sessions.data / "s"
    with filled.sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        with Rpc.of_server(path, filled.sessions.holt.identity) as rpc:
            for method, params in (("files.open", {"path": "far"}), ("mount.download", {"path": "f/a.txt", "fd": True})):
                opened = rpc.call(method, session="w", **params)
                assert opened["size"] == os.fstat(rpc.fds[-1]).st_size
                assert os.read(rpc.fds[-1], 100) in (b"first line\n", b"in the mount\n")
                assert fcntl.fcntl(rpc.fds[-1], fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
            assert rpc.refused("files.open", session="w", path="d/fifo").errno == "EOPNOTSUPP"
            assert at_rest(rpc)
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0


def test_nothing_is_written(filled: Session) -> None:
    """The history gets no row, and no file of the session changes."""
    history = filled("history", "--json").ok().out
    with filled.sessions.serve() as rpc:
        rpc.call("files.list", session="w", path="/")
        before = {path: path.stat().st_mtime_ns for path in filled.directory.iterdir()}
        assert rpc.call("files.read", session="w", path="notes.txt")["content"] == "first line\n"
        assert rpc.call("files.grep", session="w", pattern="first")["matches"]
        changed = {p.name for p in filled.directory.iterdir() if p.stat().st_mtime_ns != before.get(p)}
        assert changed <= {"session.db-wal", "session.db-shm"}, "SQLite may make these to read"
    assert filled("history", "--json").ok().out == history


def test_a_read_sees_what_was_written_before(filled: Session) -> None:
    with filled.sessions.serve() as rpc:
        for number in range(5):
            rpc.call("files.write", session="w", path="new", content=str(number))
            assert rpc.call("files.read", session="w", path="new")["content"] == str(number)
            rpc.call("session.stop", session="w")
            assert rpc.call("files.read", session="w", path="new")["content"] == str(number)
            assert at_rest(rpc)


def test_why_a_session_cannot_show_its_files(sessions: Sessions, mkdir: Callable[[str], Path]) -> None:
    workspace = mkdir("gone")
    sessions.create("a", "--workspace", workspace)
    workspace.rmdir()
    with sessions.serve() as rpc:
        error = rpc.refused("files.list", session="a")
        assert (error.errno, str(workspace) in error.message) == ("ENOENT", True)
        assert rpc.refused("files.list", session="none").kind == "missing"


def test_taking_the_lock_waits_for_a_reader(filled: Session) -> None:
    with open(filled.directory / "lock") as lock, filled.sessions.serve() as rpc:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert rpc.call("files.exists", session="w", path="near")["exists"], "readers share it"
        assert at_rest(rpc)
        timer = threading.Timer(0.3, fcntl.flock, (lock, fcntl.LOCK_UN))
        timer.start()
        rpc.call("session.set_tier", session="w", tier="large")
        assert not timer.is_alive()
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert rpc.refused("session.set_tier", session="w", tier="medium").kind == "busy"
        fcntl.flock(lock, fcntl.LOCK_UN)


def test_commands_that_read_leave_a_session_at_rest(filled: Session, workspace: Path) -> None:
    lines = (
        ["files", "w", "ls"], ["files", "w", "ls", "/opt", "--recursive", "--json"], ["files", "w", "cat", "far", "/mnt/files/f/a.txt"],
        ["files", "w", "stat", "up"], ["files", "w", "cat", ".env"], ["files", "w", "cat", "d/fifo"], ["files", "w", "ls", "gone"],
        ["cp", "w:root", "-"], ["cp", "w:d", "-"], ["cp", "w:notes.txt", "/none/x"],
    )
    history = filled("history", "--json").ok().out
    rested = [filled.sessions(line) for line in lines]
    assert [r.code for r in rested] == [0, 0, 0, 0, 125, 125, 125, 0, 125, 125]
    filled.sessions(["files", "w", "get", "bytes", "copy"]).ok()
    filled.cp("-r", "w:/mnt/files", "tree").ok()
    assert (workspace / "copy").read_bytes() == b"a\377b" and (workspace / "tree" / "f" / "a.txt").read_text() == "in the mount\n"
    assert filled.show()["state"] == "at rest"
    assert filled("history", "--json").ok().out == history

    filled.exec("true").ok()
    for line, rest in zip(lines, rested):
        live = filled.sessions(line)
        assert (live.code, live.err) == (rest.code, rest.err), line
        if line != ["files", "w", "ls"]:  # the workspace has new files meanwhile
            assert live.out == rest.out, line


def test_commands_that_change_files_start_the_session(filled: Session) -> None:
    filled.sessions(["files", "w", "mkdir", "other"]).ok()
    assert filled.show()["state"] == "live"


def test_a_reader_serves_requests_that_follow_soon(filled: Session) -> None:
    with filled.sessions.serve() as rpc:
        for _ in range(3):
            assert rpc.call("files.exists", session="w", path="near")["exists"]
        first = readers()
        assert len(first) == 1, "one for all three"
        until(lambda: not readers(), "an idle reader ends", 10)
        rpc.call("files.exists", session="w", path="near")
        assert readers() != first
        rpc.call("exec", session="w", argv=["touch", "made"])
        assert rpc.call("files.exists", session="w", path="made")["exists"], "the keeper is asked"


def test_a_client_can_connect_without_starting_the_session(filled: Session) -> None:
    """For a live session, the client is still connected to its keeper."""
    path = filled.sessions.data / "s"
    with filled.sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        with Rpc.of_server(path, filled.sessions.holt.identity) as rpc:
            assert rpc.call("session.connect", session="w", start=False) == {"live": False}
            assert not rpc.fds and at_rest(rpc)
            assert rpc.refused("session.connect", session="none", start=False).kind == "missing"
            filled.exec("true").ok()
            assert rpc.call("session.connect", session="w", start=False) == {"live": True}
            end = socket.socket(fileno=rpc.fds.pop())
            with Rpc(end.fileno(), end.fileno(), end.close, end, alone=True) as direct:
                assert direct.call("files.exists", path="near") == {"exists": True}
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0
