# SPDX-License-Identifier: Apache-2.0
"""A session keeps the sources with which it was made. A sandbox on the directory above them may replace them by a
symlink or another directory. No later start mounts that, whoever starts it."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lib.sandbox import Holt
from lib.sessions import RpcError, Session, Sessions

pytestmark = pytest.mark.identities("user", "root")


class Sources(NamedTuple):
    """projects/ is the workspace of the attacker's sandbox, and contains the sources of the session "victim"."""

    victim: Session
    attack: Callable[[str], None]
    projects: Path
    secret: Path


LIVE = ("live before", "at rest")
WAYS = ("holt", "serve")


@pytest.fixture
def sources(sessions: Sessions, place: Path, holt: Holt) -> Iterator[Sources]:
    projects, secret = place / "projects", place / "secret"
    for path, text in (
        (projects / "app" / "deep" / "own", "own\n"),
        (projects / "notes" / "note", "note\n"),
        (projects / "config", "config\n"),
        (secret / "own", "SECRET\n"),
        (secret / "deep" / "own", "SECRET\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in (projects, secret, *projects.rglob("*"), *secret.rglob("*")):
        holt.identity.own(path)
    victim = sessions.create(
        "victim", "--workspace", projects / "app" / "deep", "--rw", f"{projects}/notes:/notes",
        "--ro", f"{projects}/config:/config",
    )  # fmt: skip

    def attack(script: str) -> None:
        """Runs the script as a command in a sandbox."""
        holt(["run", "--workspace", projects, "--", "bash", "-ec", script]).ok()

    yield Sources(victim, attack, projects, secret)


def use(sources: Sources, way: str, script: str = "cat /workspace/own /notes/* /config") -> str:
    """Files that the victim sees, or the error of its start."""
    if way == "holt":
        result = sources.victim.sh(script)
        return result.out + result.err
    with sources.victim.sessions.serve() as rpc:
        try:
            return str(rpc.call("exec", session="victim", shell=script)["stdout"])
        except RpcError as error:
            return f"{error.message} {error.hint}"


def before(sources: Sources, state: str) -> None:
    """A session that was in use has the sources open until it stops."""
    if state == "live before":
        assert use(sources, "holt") == "own\nnote\nconfig\n"
        sources.victim.stop()


# The attacker's script, and the error.
ATTACKS = {
    "symlink": ("mv app/deep gone; ln -s {secret} app/deep", "This path now goes through a symlink"),
    "relative symlink": ("mv app/deep gone; ln -s ../../secret app/deep", "This path now goes through a symlink"),
    "symlink to the same": ("mv app/deep app/real; ln -s real app/deep", "This path now goes through a symlink"),
    "symlink above": ("mv app gone; ln -s {secret} app", "This path now goes through a symlink"),
    "symlink above, to the same": ("mv app real; ln -s real app", "This path now goes through a symlink"),
    "made again": ("rm -r app/deep; mkdir app/deep; echo SECRET >app/deep/own", "it is another directory"),
    "made again with what is above": ("rm -r app; mkdir -p app/deep; echo SECRET >app/deep/own", "it is another directory"),
    "another renamed to it": ("mv app/deep gone; mv notes app/deep; mkdir notes", "it is another directory"),
    "exchanged": ("mv app/deep x; mv notes app/deep; mv x notes", "it is another directory"),
    "moved away": ("mv app/deep gone", "does not follow a source that was renamed"),
    "a file": ("mv app/deep gone; echo SECRET >app/deep", "it was a directory, but is not any more"),
    "file: symlink": ("rm config; ln -s {secret}/own config", "This path now goes through a symlink"),
    "file: hard link": ("echo SECRET >x; ln x y; mv x config", "several names"),
    "file: directory": ("rm config; mkdir config", "it was not a directory, but is one now"),
    "file: fifo": ("rm config; mkfifo config", "its type is different"),
    "second source": ("mv notes gone; ln -s {secret} notes", "This path now goes through a symlink"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("state", LIVE)
def test_a_replaced_source_is_refused(attack: str, state: str, sources: Sources) -> None:
    script, error = ATTACKS[attack]
    before(sources, state)
    sources.attack(script.format(secret=sources.secret))
    for way in WAYS:
        seen = use(sources, way)
        assert "SECRET" not in seen and "note\n" not in seen, seen
        assert error in seen, seen
    sources.attack("touch done")
    rebound = sources.victim.sessions(["rebind", "victim"])
    if "A symlink" in error:
        assert rebound.code == 125 and error in rebound.err, str(rebound)


@pytest.mark.parametrize("instead", ("mkdir app/deep", "ln -s ../notes app/deep", "true"))
def test_a_tool_in_a_source_that_was_moved(instead: str, sources: Sources, holt: Holt) -> None:
    """The live session still writes to its directory, although another directory has taken that path."""
    tool = sources.projects / "app" / "deep" / "price"
    tool.write_text("#!/bin/sh\necho 1\n")
    tool.chmod(0o755)
    holt.identity.own(tool)
    sources.victim.exec("true").ok()
    sources.attack(f"mv app/deep gone; {instead}")
    sources.victim.sh("echo 'echo SECRET' >>/workspace/price").ok()
    flags = ["--tool", f"price={sources.projects}/gone/price"]
    used = sources.victim.exec("holt-tool", "price", "{}", flags=flags)
    assert used.code == 125 and "SECRET" not in used.out, str(used)
    assert "source of the session" in used.err or "has changed since the session was created" in used.err, str(used)


@pytest.mark.parametrize("instead", ("mkdir app/deep", "ln -s ../notes app/deep", "true"))
def test_a_copy_into_a_source_that_was_moved(instead: str, sources: Sources) -> None:
    """The live session has left a symlink in its workspace. It is not followed there."""
    sources.victim.sh(f"ln -s {sources.secret} /workspace/out").ok()
    sources.attack(f"mv app/deep gone; {instead}")
    copied = sources.victim.cp("victim:/workspace/own", sources.projects / "gone" / "out" / "stolen")
    assert "ELOOP" in copied.refusal(), str(copied)
    assert not (sources.secret / "stolen").exists()
    (mount,) = [m for m in sources.victim.show()["mounts"] if m["target"] == "/workspace"]
    assert mount["moved_to"] == str(sources.projects / "gone")


def test_an_inode_number_that_is_used_again(sources: Sources) -> None:
    """The new directory has the inode number of a removed source, but is another directory."""
    inode = (sources.projects / "app" / "deep").stat().st_ino
    sources.attack("rm -r app/deep; mkdir app/deep; echo SECRET >app/deep/own")
    for _ in range(2000):
        if (sources.projects / "app" / "deep").stat().st_ino == inode:
            break
        (sources.projects / "app" / "deep" / "own").unlink()
        (sources.projects / "app" / "deep").rmdir()
        (sources.projects / "app" / "deep").mkdir()
        (sources.projects / "app" / "deep" / "own").write_text("SECRET")
    assert "it is another directory" in use(sources, "holt")


SWAP = """
echo ready
while :; do
    mv app/deep x; ln -s {secret} app/deep
    rm app/deep; mv x app/deep
    mv app x; ln -s ../secret app; rm app; mv x app
done
"""


@pytest.mark.slow
def test_a_source_that_is_swapped_all_the_time(sources: Sources, holt: Holt) -> None:
    """The source may even be exchanged between the check and the mount."""
    script = SWAP.format(secret=sources.secret)
    seen = []
    with holt.start(["run", "--workspace", sources.projects, "--", "bash", "-c", script]) as swapper:
        assert swapper.readline() == "ready"
        for _ in range(60):
            result = sources.victim.sh("cat /workspace/own; touch /workspace/touched")
            seen.append(result.out + result.err)
            if result.code == 0:
                sources.victim.stop()
        swapper.kill()
        swapper.wait()
    assert not [text for text in seen if "SECRET" in text]
    assert not (sources.secret / "touched").exists()
    assert any(text.startswith("own") for text in seen) and any("holt: " in text for text in seen), str(seen[:5])


def test_a_link_of_the_caller_is_followed_once(sessions: Sessions, place: Path, holt: Holt) -> None:
    """holt create follows the symlink. Afterwards, the symlink may lead anywhere."""
    for name in ("one", "two"):
        (place / name).mkdir()
        (place / name / "file").write_text(name)
        holt.identity.own(place / name)
        holt.identity.own(place / name / "file")
    (place / "link").symlink_to("one")
    session = sessions.create("w", "--workspace", place / "link")
    assert session.show()["workspace"] == str(place / "one")
    (place / "link").unlink()
    (place / "link").symlink_to("two")
    assert session.out("cat file") == "one"
    assert session.show()["workspace"] == str(place / "one")


def replaced(path: Path, text: str) -> None:
    """Replaces the file as an editor does, which keeps the owner."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    os.chown(new, path.stat().st_uid, path.stat().st_gid)
    new.rename(path)


def test_a_file_that_an_editor_replaced(sources: Sources) -> None:
    for text in ("once\n", "twice\n"):
        replaced(sources.projects / "config", text)
        assert use(sources, "holt") == f"own\nnote\n{text}"
        sources.victim.stop()


def test_a_socket_that_a_server_made_again(sessions: Sessions, place: Path, holt: Holt) -> None:
    path = place / "socket"
    session = None
    for _ in range(3):
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            holt.identity.own(path)
            session = session or sessions.create("w", "--ro", f"{path}:/socket")
            session.exec("test", "-S", "/socket").ok()
            session.stop()
    assert session
    path.unlink()
    os.mkfifo(path)
    holt.identity.own(path)
    assert "its type is different" in session.exec("true").refusal()


def tmpfs(path: Path, *files: str, holt: Holt) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", path], check=True)
    (path / "app").mkdir()
    holt.identity.own(path / "app")
    for name in files:
        (path / name).write_text(f"{name}\n")
        holt.identity.own(path / name)


@pytest.mark.identities("user")
@pytest.mark.root_host
def test_a_tmpfs_after_a_boot(sessions: Sessions, place: Path, holt: Holt) -> None:
    """The tmpfs is a new one, with new files. They must still have the same owner, and contain no symlink."""
    run = place / "run"
    run.mkdir()
    tmpfs(run, "config", holt=holt)
    try:
        session = sessions.create("w", "--workspace", run / "app", "--ro", f"{run}/config:/config")
        for _ in range(2):
            session.exec("cat", "/config").ok()
            session.stop()
            subprocess.run(["umount", run], check=True)
            tmpfs(run, "config", holt=holt)
        os.chown(run / "app", 54321, 54321)
        assert "it is on another file system" in session.exec("true").refusal()
        (run / "app").rename(run / "real")
        (run / "app").symlink_to("real")
        assert "This path now goes through a symlink" in session.exec("true").cure
    finally:
        subprocess.run(["umount", run], check=True)


@pytest.mark.identities("root")
def test_a_source_without_a_path(sessions: Sessions) -> None:
    """The next start would not find such a source."""
    made = sessions(["create", "w", "--ro", "/dev/stdin:/x"], stdin=b"pipe")
    assert "does not lead to it" in made.refusal(), str(made)


def test_a_file_that_others_may_not_read(sources: Sources) -> None:
    """If root runs holt, a process that may rename a file in a sandbox may not always read it."""
    new = sources.projects / "new"
    new.write_text("new\n")
    new.chmod(0o600)
    own = sources.victim.sessions.holt.identity.own(new).stat().st_uid
    new.rename(sources.projects / "config")
    seen = use(sources, "holt", "cat /config")
    assert seen == "new\n" if own else "other users may not read" in seen, seen


@pytest.mark.root_host
def test_a_file_of_another_owner(sources: Sources) -> None:
    new = sources.projects / "new"
    new.write_text("SECRET")
    os.chown(new, 54321, 54321)
    new.rename(sources.projects / "config")
    assert "it is another file with another owner" in use(sources, "holt")


@pytest.mark.parametrize("pinned", (False, True))
def test_a_file_that_the_session_itself_replaced(pinned: bool, sessions: Sessions, workspace: Path, holt: Holt) -> None:
    """If the file is mounted at its own path, it cannot be replaced inside, so the host has replaced it."""
    config = workspace / "config"
    config.write_text("old\n")
    holt.identity.own(config)
    target = "/workspace/config" if pinned else "/config"
    session = sessions.create("w", "--workspace", workspace, "--ro", f"{config}:{target}")
    moved = session.sh("cd /workspace; echo new >x; mv x config")
    session.stop()
    if pinned:
        assert moved.code != 0
        replaced(config, "host\n")
        assert session.out(f"cat {target}") == "host\n"
    else:
        moved.ok()
        assert "it is another file, and the session itself could have put it there" in session.sh(f"cat {target}").refusal()


def test_a_session_of_an_older_holt(sources: Sources) -> None:
    """The first start of such a session records the sources that exist then."""
    database = sources.victim.directory / "session.db"
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        assert db.execute("DELETE FROM meta WHERE name LIKE 'source:%'").rowcount == 3
    for path in sources.victim.directory.glob("session.db*"):
        sources.victim.sessions.holt.identity.own(path)
    before(sources, "live before")
    sources.attack(f"mv app/deep gone; ln -s {sources.secret} app/deep")
    assert "This path now goes through a symlink" in use(sources, "holt")


def test_the_store_s_own_directories(session: Session, place: Path, holt: Holt) -> None:
    """A sandbox is assumed to write there: no symlink to the session's own workspace, root and files is followed."""
    for name in ("workspace", "files", "root"):
        path, secret = session.directory / name, place / "secret"
        path.rename(path.with_name("gone"))
        secret.mkdir(exist_ok=True)
        path.symlink_to(holt.identity.own(secret))
        refused = session.sh("touch /workspace/x /mnt/files/x /opt/x")
        assert "This path now goes through a symlink" in refused.cure, str(refused)
        assert not list(secret.iterdir())
        path.unlink()
        path.with_name("gone").rename(path)
    session.exec("true").ok()
