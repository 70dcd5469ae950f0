# SPDX-License-Identifier: Apache-2.0
"""The tree of --rootfs holds the programs of every later run: no command can change it by any path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.rootfs import make_rootfs
from lib.sandbox import Holt, Result
from lib.sessions import Sessions
from lib.tools import needs

pytestmark = [needs("busybox"), pytest.mark.identities("user", "root")]

WAYS = ("run", "session")
Start = Callable[..., Result]


@pytest.fixture(params=WAYS)
def start(request: pytest.FixtureRequest, holt: Holt, sessions: Sessions, workspace: Path) -> Start:
    """Runs a script with these options, in a run or in a session."""

    def run(script: str, *flags: object) -> Result:
        if request.param == "run":
            return holt(["run", *flags, "--", "sh", "-c", f"cd {workspace}; {script}"])
        made = sessions(["create", "w", "--workspace", f"{workspace}", *flags])
        return sessions(["exec", "w", "--", "sh", "-c", script]) if made.code == 0 else made

    return run


WRITES = {
    "new program": "echo x >sub/tree/usr/bin/new",
    "program": "echo x >sub/tree/bin/busybox",
    "removed": "busybox rm sub/tree/bin/busybox",
    "renamed": "busybox mv sub/tree sub/old",
    "above renamed": "busybox mv sub old",
    "a directory of it": "busybox mv sub/tree/usr sub/old",
    "mode": "busybox chmod 777 sub/tree/bin",
}


@pytest.mark.parametrize("write", WRITES)
def test_a_tree_in_the_workspace(write: str, start: Start, workspace: Path, identity: Identity) -> None:
    tree = make_rootfs(workspace / "sub" / "tree", identity)
    identity.own(workspace / "sub")
    before = sorted((path, path.lstat().st_mtime_ns, path.lstat().st_mode) for path in tree.rglob("*"))
    result = start(f"{WRITES[write]} && echo written; echo ran >sub/beside", "--rootfs", tree)

    assert "written" not in result.out and result.code == 0, str(result)
    assert (workspace / "sub" / "beside").read_text() == "ran\n"
    assert sorted((path, path.lstat().st_mtime_ns, path.lstat().st_mode) for path in tree.rglob("*")) == before


def test_a_tree_that_is_the_workspace(start: Start, workspace: Path, identity: Identity) -> None:
    workspace.rmdir()
    tree = make_rootfs(workspace, identity)
    result = start("echo written", "--rootfs", tree)
    assert "the command could change it" in result.refusal() and "--workspace-mode ro" in result.cure
    start("true", "--rootfs", tree, "--workspace-mode", "ro").ok() if "run" in result.argv else None


def test_a_tree_in_another_writable_directory(start: Start, place: Path, identity: Identity) -> None:
    tree = make_rootfs(place / "more" / "tree", identity)
    identity.own(place / "more")
    result = start("echo written", "--rootfs", tree, "--rw", f"{place}/more:/more")
    assert "the command could change it (/more/tree inside)" in result.refusal()
    assert "exec" not in result.argv, "holt create says so"


def test_a_symlink_of_a_command(start: Start, workspace: Path, place: Path, identity: Identity) -> None:
    """An earlier command may have made it."""
    make_rootfs(place / "tree", identity)
    (workspace / "link").symlink_to(place / "tree")
    result = start("echo written", "--rootfs", workspace / "link")
    assert result.code == 125 and "written" not in result.out, str(result)


def test_a_tree_elsewhere_above_the_workspace(holt: Holt, place: Path, identity: Identity) -> None:
    tree = make_rootfs(place / "tree", identity)
    work = tree / "home" / "work"
    work.mkdir(parents=True)
    identity.own(identity.own(tree / "home") / "work")
    holt(["run", "--workspace", work, "--rootfs", tree, "--", "sh", "-c", "echo made >made"]).ok()
    assert (work / "made").read_text() == "made\n"


def test_a_session_s_tree_is_recorded(sessions: Sessions, place: Path, identity: Identity) -> None:
    tree = make_rootfs(place / "tree", identity)
    session = sessions.create("w", "--rootfs", tree)
    session.exec("sh", "-c", "true").ok()
    session.stop()
    tree.rename(place / "old")
    make_rootfs(tree, identity)
    assert "it is another directory" in session.exec("sh", "-c", "true").refusal()
    told = session("rebind").ok().out
    assert told == f"rootfs now mounts the new {tree}\n"
    session.exec("sh", "-c", "true").ok()
    session.stop()
    tree.rename(place / "older")
    tree.symlink_to(place / "older")
    assert "This path now goes through a symlink" in session.exec("sh", "-c", "true").cure
