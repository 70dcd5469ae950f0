# SPDX-License-Identifier: Apache-2.0
"""The socket of holt serve is in a directory that a sandbox can write, but no command can answer its clients."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.sandbox import Holt, Result, Running
from lib.sessions import Rpc, Session, Sessions, until

EVERYBODY = pytest.mark.identities("user", "root", "nested")
USER_AND_ROOT = pytest.mark.identities("user", "root")

# Every way to replace the socket $1, or to talk to it; $2 is a directory above $1.
ATTACK = """
S=$1 UP=$2
try() { (eval "$1") >/dev/null 2>&1 && echo "DONE $1"; }
try 'rm -f $S; test ! -e $S'
try 'mv $S $S.old'
try 'ln -sf /tmp/x $S'
try 'mv $UP $UP.old'
try 'touch $S.new; mv -f $S.new $S'
try 'echo x > $S'
try 'test -S $S'
try 'python3 -c "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])" $S'
try 'rm -f $S; python3 -c "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])" $S'
rm -f $S.new
test -e $S && echo THERE
"""

Serve = Callable[..., "contextlib.AbstractContextManager[Running]"]


@pytest.fixture
def serve(sessions: Sessions, workspace: Path) -> Serve:
    """A holt serve at run/s.sock of the workspace, or at another path."""

    @contextlib.contextmanager
    def start(path: Path | None = None) -> Iterator[Running]:
        path = path or workspace / "run/s.sock"
        if not path.parent.exists():
            path.parent.mkdir()
            sessions.holt.identity.own(path.parent)
        with sessions.start(["serve", "--socket", path.name], cwd=path.parent, stderr=None) as running:
            until(lambda: any(leads_to(note, path.resolve()) for note in notes(sessions)), "the server listens")
            yield running
            running.kill(15)
            running.process.wait(60)

    return start


def notes(sessions: Sessions) -> list[Path]:
    """The servers that the store knows."""
    directory = sessions.data / "holt/sockets"
    return sorted(directory.iterdir()) if directory.is_dir() else []


def leads_to(note: Path, socket: Path) -> bool:
    """A server that starts may be removing the note of a killed one."""
    with contextlib.suppress(FileNotFoundError):
        return note.readlink() == socket
    return False


def answers(path: Path, sessions: Sessions) -> bool:
    with Rpc.of_server(path, sessions.holt.identity) as rpc:
        return "sessions" in rpc.call("session.list")


def held(result: Result) -> None:
    assert result.ok().out == "THERE\n", str(result)


@EVERYBODY
def test_a_run_where_a_server_listens(serve: Serve, sessions: Sessions, workspace: Path, place: Path) -> None:
    with serve():
        socket = workspace / "run/s.sock"
        held(sessions(["run", "--", "bash", "-c", ATTACK, "sh", "run/s.sock", "run"]))
        flags = ["--workspace", "none", "--rw", f"{workspace}:/x", "--ro", f"{workspace}/run:/y"]
        held(sessions(["run", *flags, "--", "bash", "-c", ATTACK, "sh", "/x/run/s.sock", "/x/run"]))
        held(sessions(["run", *flags, "--", "bash", "-c", ATTACK, "sh", "/y/s.sock", "/y"]))
        assert answers(socket, sessions)
    assert not notes(sessions)


@USER_AND_ROOT
@pytest.mark.parametrize("when", ["before", "after", "by the server"])
def test_a_session_where_a_server_listens(when: str, serve: Serve, sessions: Sessions, workspace: Path) -> None:
    options = ["--workspace", str(workspace)]
    if when == "before":
        sessions.create("w", *options)
    with serve():
        socket = workspace / "run/s.sock"
        if when == "after":
            sessions.create("w", *options)
        with Rpc.of_server(socket, sessions.holt.identity) as rpc:
            if when == "by the server":
                rpc.call("session.create", name="w", workspace=str(workspace))
            argv = ["bash", "-c", ATTACK, "sh", "/workspace/run/s.sock", "/workspace/run"]
            answer = rpc.call("exec", session="w", argv=argv)
        assert answer["stdout"] == "THERE\n", answer
        assert answers(socket, sessions)
        Session(sessions, "w").stop()


@USER_AND_ROOT
@pytest.mark.parametrize("option", ["--workspace", "--rw", "--files"])
def test_a_server_where_a_live_session_writes(option: str, serve: Serve, sessions: Sessions, workspace: Path) -> None:
    session = sessions.create("dev", option, str(workspace))
    session.exec("true").ok()
    refused = sessions(["serve", "--socket", "s.sock"], cwd=workspace)
    assert '--socket s.sock: session "dev" is live, and its commands could replace the socket' in refused.refusal()
    assert "holt stop dev" in refused.cure and "XDG_RUNTIME_DIR" in refused.cure
    assert not (workspace / "s.sock").exists() and not notes(sessions)
    session.stop()
    with serve():
        pass


@USER_AND_ROOT
def test_a_server_where_a_symlink_of_a_live_session_led(sessions: Sessions, workspace: Path, place: Path) -> None:
    """The session keeps the directory that it has recorded, wherever the symlink leads now."""
    link = place / "link"
    link.symlink_to(workspace)
    session = sessions.create("dev", "--workspace", "none", "--rw", f"{link}:/x")
    session.exec("true").ok()
    (place / "other").mkdir()
    link.unlink()
    link.symlink_to(place / "other")
    refused = sessions(["serve", "--socket", "s.sock"], cwd=workspace)
    assert '--socket s.sock: session "dev" is live, and its commands could replace the socket' in refused.refusal()


@USER_AND_ROOT
def test_a_server_where_a_live_session_only_reads(serve: Serve, sessions: Sessions, workspace: Path) -> None:
    session = sessions.create("dev", "--workspace", str(workspace), "--workspace-mode", "ro")
    session.exec("true").ok()
    with serve():
        assert answers(workspace / "run/s.sock", sessions)


@USER_AND_ROOT
def test_a_session_outlives_the_server(serve: Serve, sessions: Sessions, workspace: Path) -> None:
    """Only its socket may disappear; other protected files may not."""
    (workspace / "secret").write_text("")
    session = sessions.create("w", "--workspace", str(workspace), "--hide", "secret")
    with serve():
        process = session.detach("sleep 100")
    assert session.ps()[process]["state"] == "running"
    session.stop()


@USER_AND_ROOT
def test_the_note_of_a_killed_server(serve: Serve, sessions: Sessions, workspace: Path, place: Path) -> None:
    with serve() as running:
        running.kill()
        running.process.wait(60)
    (left,) = notes(sessions)
    # The note still names a socket, which is hidden.
    held(sessions(["run", "--", "bash", "-c", ATTACK, "sh", "run/s.sock", "run"]))
    (workspace / "run/s.sock").unlink()
    sessions(["run", "--", "true"]).ok()
    with serve(place / "other.sock"):
        assert left not in notes(sessions) and len(notes(sessions)) == 1


@pytest.mark.root_host
@pytest.mark.identities("root")
def test_the_host_shows_the_socket_twice(serve: Serve, sessions: Sessions, workspace: Path, place: Path) -> None:
    (place / "alias").mkdir()
    with serve():
        subprocess.run(["mount", "--bind", workspace, place / "alias"], check=True)
        try:
            flags = ["--workspace", "none", "--rw", f"{place}/alias:/x"]
            held(sessions(["run", *flags, "--", "bash", "-c", ATTACK, "sh", "/x/run/s.sock", "/x/run"]))
        finally:
            subprocess.run(["umount", place / "alias"], check=True)


@USER_AND_ROOT
def test_a_note_can_not_hide_what_is_no_socket(holt: Holt, sessions: Sessions, workspace: Path) -> None:
    """The user may have put a file there since."""
    (workspace / "file").write_text("x")
    directory = sessions.data / "holt/sockets"
    directory.mkdir(parents=True, mode=0o700)
    holt.identity.own(directory.parent)
    holt.identity.own(directory)
    for name, target in {"a": workspace / "file", "b": "relative", "c": workspace / "nothing", "d": "/"}.items():
        (directory / name).symlink_to(target)
    assert sessions(["run", "--", "cat", "file"]).ok().out == "x"
