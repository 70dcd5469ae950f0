# SPDX-License-Identifier: Apache-2.0
"""What a kill -9 of a keeper leaves half made goes with the next one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from lib.sessions import Session, keepers, until

NAME = ".holt-0123456789abcdef"


def hidden(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if name.startswith(".holt-")]


def kill(session: Session) -> None:
    keeper = session.keeper()
    os.kill(keeper, signal.SIGKILL)
    until(lambda: keeper not in [p.pid for p in keepers()], "it is gone")


def note(session: Session, name: str, directory: str) -> None:
    """As a keeper does before it makes directory/name."""
    os.symlink(directory, session.directory / name)


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
    until(lambda: hidden(place) == hidden(session.directory) == [], "it has been taken away")
    assert session.sh("ls -A tree | wc -l").ok().out == "4000\n"


def test_what_is_done_leaves_no_note(session: Session) -> None:
    with session.rpc() as rpc:
        rpc.call("files.write", path="file", content="old")
        rpc.call("files.write", path="file", content="new")
        rpc.call("files.copy", **{"from": "file", "to": "copy"})
        rpc.call("files.move", **{"from": "copy", "to": "/mnt/files/moved"})
        rpc.refused("files.copy", **{"from": "file", "to": "file"})
        rpc.refused("files.write", path="file/x", content="")
        assert hidden(session.directory) == []
    assert session.sh("ls -A . /mnt/files").ok().out == ".:\nfile\n\n/mnt/files:\nmoved\n"


def test_only_what_was_noted_goes_and_nothing_beyond_the_sandbox(session: Session, place: Path) -> None:
    """Whatever the sandbox has put there, and whatever the note says."""
    outside = place / "outside" / NAME
    outside.mkdir(parents=True)
    other = NAME.replace("0", "f")
    session.sh(f"mkdir {NAME} {other} link; touch {NAME}/x; ln -s {outside.parent} out; ln -s / link/{NAME[:-1]}e").ok()
    kill(session)
    note(session, NAME, "/workspace")
    note(session, NAME[:-1] + "e", "/workspace/link")
    note(session, NAME[:-1] + "d", str(outside.parent))
    note(session, NAME[:-1] + "c", "/workspace/out")
    (session.directory / (NAME[:-1] + "b")).mkdir()
    session.keeper()

    until(lambda: hidden(session.directory) == [NAME[:-1] + "b"], "all notes are done with")
    assert session.sh("ls -A . link").ok().out == f".:\n{other}\nlink\nout\n\nlink:\n"
    assert outside.is_dir()
