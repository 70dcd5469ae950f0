# SPDX-License-Identifier: Apache-2.0
"""Reading the files of a session at rest: "holt serve" gives the answers that the live session gives, and starts nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lib import leaks
from lib.identity import Identity
from lib.sessions import Json, Rpc, RpcError, Session, Sessions, until

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

def answer(rpc: Rpc, method: str, params: Json) -> Json:
    try:
        return rpc.call(method, session="w", **params)
    except RpcError as error:
        return {"code": error.code, "message": error.message, "data": error.data}


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
        rested = [answer(rpc, *call) for call in CALLS]
        assert at_rest(rpc)
    with filled.sessions.serve() as rpc:
        rpc.call("exec", session="w", argv=["true"])
        for (method, params), rest in zip(CALLS, rested):
            live = answer(rpc, method, params)
            assert without_new_times(rest, since) == without_new_times(live, since), (method, params)
        assert not at_rest(rpc)
