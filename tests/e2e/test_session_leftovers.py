# SPDX-License-Identifier: Apache-2.0
"""Incomplete files that a kill -9 of a keeper leaves are removed by the next keeper."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sessions import Closed, Session, keepers, until

NAME = ".holt-0123456789abcdef"


def hidden(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if name.startswith(".holt-")]


def kill(session: Session) -> None:
    keeper = session.keeper()
    os.kill(keeper, signal.SIGKILL)
    until(lambda: keeper not in [p.pid for p in keepers()], "it is gone")


def notes(session: Session, prefix: str = ".inside-") -> list[str]:
    """Notes of a keeper, or, with .outside-, of holt cp (files/unfinished.h)."""
    return [name for name in os.listdir(session.directory) if name.startswith(prefix)]


def note(session: Session, name: str, directory: str) -> None:
    """Does what a keeper does before it makes directory/name."""
    path = session.directory / name.replace(".holt-", ".inside-")
    path.write_bytes(directory.encode() + b"\0")
    session.sessions.holt.identity.own(path)


@pytest.mark.parametrize(("to", "where"), [("/mnt/files/copy", "files"), ("/opt/deep/copy", "root/opt/deep")])
def test_a_copy_that_its_keeper_did_not_live_to_end(to: str, where: str, session: Session) -> None:
    session.sh("mkdir -p /opt/deep tree && cd tree && for i in {1..4000}; do echo $i >$i; done").ok()
    place = session.directory / where
    keeper = session.keeper()
    with session.rpc() as rpc:
        rpc.send("files.copy", **{"from": "tree", "to": to, "recursive": True})
        until(lambda: hidden(place), "it has begun")
        os.kill(keeper, signal.SIGKILL)
        until(lambda: keeper not in [p.pid for p in keepers()], "it is gone")
    assert hidden(place), "it had not ended"

    session.keeper()
    until(lambda: hidden(place) == notes(session) == [], "it has been taken away")
    assert session.sh("ls -A tree | wc -l").ok().out == "4000\n"


def test_finished_calls_leave_no_note(session: Session) -> None:
    with session.rpc() as rpc:
        rpc.call("files.write", path="file", content="old")
        rpc.call("files.write", path="file", content="new")
        rpc.call("files.copy", **{"from": "file", "to": "copy"})
        rpc.call("files.move", **{"from": "copy", "to": "/mnt/files/moved"})
        rpc.refused("files.copy", **{"from": "file", "to": "file"})
        rpc.refused("files.write", path="file/x", content="")
        assert notes(session) == []
    assert session.sh("ls -A . /mnt/files").ok().out == ".:\nfile\n\n/mnt/files:\nmoved\n"


def test_only_what_was_noted_goes_and_nothing_beyond_the_sandbox(session: Session, place: Path) -> None:
    """The sandbox has put all kinds of files at the noted names. These notes have no identity, so only empty directories are
    removed."""
    outside = place / "outside" / NAME
    outside.mkdir(parents=True)
    other, full = NAME.replace("0", "f"), NAME[:-1] + "0"
    session.sh(f"mkdir {NAME} {other} {full} link; touch {full}/x; ln -s {outside.parent} out; ln -s / link/{NAME[:-1]}e").ok()
    kill(session)
    note(session, NAME, "/workspace")
    note(session, full, "/workspace")
    note(session, NAME[:-1] + "e", "/workspace/link")
    note(session, NAME[:-1] + "d", str(outside.parent))
    note(session, NAME[:-1] + "c", "/workspace/out")
    (session.directory / (".inside-" + NAME[6:-1] + "b")).mkdir()
    session.keeper()

    until(lambda: notes(session) == [".inside-" + NAME[6:-1] + "b"], "all notes are done with")
    assert session.sh("ls -A . link").ok().out == f".:\n{full}\n{other}\nlink\nout\n\nlink:\n"
    assert outside.is_dir()


def test_clearing_up_leaves_replacements_alone(session: Session) -> None:
    """The session has renamed and replaced the owned directory of a killed keeper."""
    with session.rpc() as rpc:
        rpc.call("files.mkdir", path=NAME, owned=True)
        session.sh(f"mv {NAME} old; mkdir {NAME}; touch {NAME}/x old/x").ok()
        kill(session)
    session.keeper()
    until(lambda: notes(session) == [], "its note is done with")
    assert session.out(f"ls {NAME} old") == f"{NAME}:\nx\n\nold:\nx\n"


def test_a_copy_whose_client_was_killed(session: Session, put: Callable[..., Path]) -> None:
    """The client is killed while it copies a large tree into the session."""
    for i in range(500):
        put(f"tree/{i}", "x")
    inside = session.directory / "files"
    session.wake()
    with session.sessions.start(["cp", "-r", "tree", "w:/mnt/files/copy"], report=False) as cp:
        until(lambda: hidden(inside), "it has begun")
        cp.kill()
        cp.wait()

    until(lambda: os.listdir(inside) == [] == notes(session), "it has been taken away")
    put("small/f", "x")
    session.cp("-r", "small", "w:/mnt/files/copy").ok()
    assert session.out("cat /mnt/files/copy/f") == "x" and os.listdir(inside) == ["copy"]
    until(lambda: notes(session) == [], "its note goes")


def test_an_owned_directory(session: Session) -> None:
    """Unless it was renamed to its final place, its connection's end or the next keeper removes it."""
    other = NAME.replace("0", "f")
    with session.rpc() as rpc:
        for name in (NAME, other):
            rpc.call("files.mkdir", path=name, owned=True)
            rpc.call("files.write", path=f"{name}/file", content="x")
        rpc.call("files.move", **{"from": other, "to": "placed"})
        assert rpc.refused("files.mkdir", path="mine", owned=True).kind == "usage"
    workspace = session.directory / "workspace"
    until(lambda: os.listdir(workspace) == ["placed"] and notes(session) == [], "it goes")

    with session.rpc() as rpc:
        rpc.call("files.mkdir", path=NAME, owned=True)
        assert rpc.refused("files.mkdir", path=NAME, owned=True).kind == "exists"
        kill(session)
    assert hidden(workspace) == [NAME]
    session.keeper()
    until(lambda: os.listdir(workspace) == ["placed"] and notes(session) == [], "it goes")


@pytest.mark.identities("user")
def test_owned_directories_have_a_limit(session: Session) -> None:
    """The limit is STAGED_MAX. Directories at their final place are not counted."""
    with session.rpc() as rpc:
        for i in range(256):
            rpc.call("files.mkdir", path=f".holt-{i:016x}", owned=True)
        assert rpc.refused("files.mkdir", path=NAME, owned=True).kind == "limit"
        rpc.call("files.move", **{"from": f".holt-{7:016x}", "to": "placed"})
        rpc.call("files.mkdir", path=NAME, owned=True)
    until(lambda: os.listdir(session.directory / "workspace") == ["placed"], "they go")


def kill_in_the_midst(session: Session, to: Path) -> list[str]:
    """Copies tree out of the session, and returns the notes that exist then."""
    with session.sessions.start(["cp", "-r", "w:tree", to], report=False) as cp:
        until(lambda: any(os.listdir(to.parent / name) for name in hidden(to.parent)), "it has begun")
        cp.kill()
        cp.wait()
    return notes(session, ".outside-")


def test_a_copy_out_whose_client_was_killed(session: Session, workspace: Path) -> None:
    """The next holt cp of the session removes it, but not a copy that is still running."""
    session.sh("mkdir tree; for i in {1..3000}; do echo $i > tree/$i; done").ok()
    assert len(kill_in_the_midst(session, workspace / "copy")) == 1
    left = hidden(workspace)
    assert len(left) == 1 and notes(session, ".outside-")
    with session.sessions.start(["cp", "-r", "w:tree", workspace / "copy"], report=False) as cp:
        until(lambda: hidden(workspace) and hidden(workspace) != left, "it has gone, and another goes on")
        session.cp("w:tree/1", "one").ok()
        assert cp.wait().code == 0

    assert sorted(os.listdir(workspace)) == ["copy", "one"] and len(os.listdir(workspace / "copy")) == 3000
    assert notes(session, ".outside-") == []


def test_a_directory_that_got_the_inode_number_of_a_killed_copy(session: Session, workspace: Path) -> None:
    """The caller has removed the copy, and made another directory of that name."""
    session.sh("mkdir tree; for i in {1..3000}; do echo $i > tree/$i; done").ok()
    kill_in_the_midst(session, workspace / "copy")
    name = workspace / hidden(workspace)[0]
    inode = name.stat().st_ino
    shutil.rmtree(name)
    for i in range(20000):
        name.mkdir()
        if name.stat().st_ino == inode:
            break
        name.rename(workspace / f"other-{i}")
    else:
        pytest.skip("this file system does not use inode numbers again")
    (name / "file").touch()
    session.cp("w:tree/1", "one").ok()
    assert (name / "file").exists() and notes(session, ".outside-") == []


def test_clearing_up_removes_only_the_killed_copy(session: Session, workspace: Path) -> None:
    """Somebody has put another directory of its name there, or a link."""
    session.sh("mkdir tree; for i in {1..3000}; do echo $i > tree/$i; done").ok()
    for kind in ("directory", "link"):
        kill_in_the_midst(session, workspace / "copy")
        name = hidden(workspace)[0]
        (workspace / name).rename(workspace / f"old-{kind}")
        mine = workspace / "mine"
        mine.mkdir()
        (mine / "file").touch()
        if kind == "directory":
            mine.rename(workspace / name)
        else:
            (workspace / name).symlink_to("mine")
        session.cp("w:tree/1", "one").ok()
        assert (workspace / name / "file").exists() and notes(session, ".outside-") == []
        (workspace / name).rename(workspace / f"kept-{kind}")


ROUNDS = int(os.environ.get("CRASH_ROUNDS", "8"))


@pytest.mark.identities("user", "root")
def test_a_keeper_that_is_killed_at_any_moment(session: Session) -> None:
    """The keeper is killed while it replaces files, copies and moves trees, and makes and removes owned directories."""
    chance = random.Random(os.getpid())
    places = [session.directory / name for name in ("workspace", "files", "root/home/agent")]
    session.sh("mkdir tree; for i in {1..300}; do echo $i > tree/$i; done; cp -r tree /home/agent/tree").ok()
    for i in range(ROUNDS):
        session.keeper()
        with contextlib.suppress(Closed), session.rpc() as rpc:
            rpc.send("files.mkdir", path=NAME[:-4] + f"{i:04x}", owned=True)
            rpc.send("files.copy", **{"from": "tree", "to": f"/mnt/files/copy{i}", "recursive": True})
            rpc.send("files.copy", **{"from": "tree", "to": f"/home/agent/moved{i}", "recursive": True})
            rpc.send("files.move", **{"from": f"/home/agent/moved{i}", "to": f"moved{i}"})
            for j in range(30):
                rpc.send("files.write", path="file", content=str(j))
            time.sleep(chance.uniform(0, 0.05))
            if i % 3:
                session.kill_keeper()
        if i % 3 == 0:  # the keeper removes the owned directory, because its client has gone
            time.sleep(chance.uniform(0, 0.01))
            session.kill_keeper()
    session.keeper()
    until(lambda: [notes(session), *map(hidden, places)] == [[]] * 4, "all of it is gone")
    for place in places:
        for tree in place.glob("copy*"):
            assert len(os.listdir(tree)) == 300, tree


@pytest.mark.identities("user", "root")
def test_clients_that_are_killed_at_any_moment(session: Session, workspace: Path, put: Callable[..., Path]) -> None:
    """Kills copies in both directions, create and rm. The next client of each kind clears up."""
    chance = random.Random(os.getpid())
    session.sh("mkdir tree; for i in {1..300}; do echo $i > tree/$i; done").ok()
    for i in range(1, 301):
        put(f"tree/{i}", str(i))
    sessions = session.sessions
    for i in range(ROUNDS):
        sessions(["create", f"old{i}"]).ok()
        for verb in (
            ["cp", "-r", "w:tree", workspace / f"out{i}"], ["cp", "-r", "tree", f"w:/mnt/files/in{i}"],
            ["create", f"new{i}"], ["rm", f"old{i}"],
        ):
            with sessions.start(verb, report=False) as client:
                time.sleep(chance.uniform(0, 0.03))
                client.kill()
                client.wait()
    sessions.names()
    assert [name for name in os.listdir(sessions.directory) if name.startswith(".")] == []
    session.cp("w:tree/1", "one").ok()
    assert notes(session, ".outside-") == []
    until(lambda: [notes(session), hidden(workspace), hidden(session.directory / "files")] == [[]] * 3, "all of it is gone")
    for place in (workspace, session.directory / "files"):
        for tree in (*place.glob("out*"), *place.glob("in*")):
            assert len(os.listdir(tree)) == 300, tree
