# SPDX-License-Identifier: Apache-2.0
"""`holt python NAME FILE` passes the text of FILE to the session. So entries that the session has planted in its
workspace can neither choose another file of the host, nor keep holt waiting."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.plugin import Make
from lib.sandbox import Result
from lib.sessions import Session, Sessions, until

USER_AND_ROOT = pytest.mark.identities("user", "root")
SECRET = "KEY-s3cr3t"

# Code that Python makes of the file passes the interpreter's compile().
SPY = """
import builtins
seen, real = [], builtins.compile
def spy(source, *args, **options):
    seen.append(str(source))
    return real(source, *args, **options)
builtins.compile = spy
"""


@pytest.fixture
def secret(place: Path, put: Make) -> Path:
    return put(place / "home" / "id", SECRET + "\n", 0o600)


@pytest.fixture
def work(sessions: Sessions, workspace: Path) -> Session:
    session = sessions.create("w", "--workspace", str(workspace))
    session("python", "-c", SPY).ok()
    return session


def refused(result: Result, session: Session) -> None:
    """Asserts that nothing of the file has reached the session."""
    assert result.code == 125 and "cannot read" in result.err and result.cure, str(result)
    assert SECRET not in session("python", "-c", "print(seen)").ok().out


@USER_AND_ROOT
@pytest.mark.parametrize("planted", ("relative", "absolute", "directory", "chain"))
def test_a_link_that_the_session_planted_is_not_followed(
    planted: str, work: Session, secret: Path, workspace: Path
) -> None:
    name = "train.py"
    if planted == "directory":
        work.sh(f"ln -s {secret.parent} sub").ok()
        name = f"sub/{secret.name}"
    elif planted == "chain":
        work.sh(f"ln -s {secret} one; ln -s one {name}").ok()
    else:
        work.sh(f"ln -s {secret if planted == 'absolute' else f'../home/{secret.name}'} {name}").ok()
    for path, options in ((name, {"cwd": workspace}), (workspace / name, {})):
        refused(work("python", path, **options), work)


# A symlink of the caller's leads into the workspace, to a symlink of the session's.
OWN_LINKS = {
    "to the file": ("link.py", "workspace/train.py"),
    "to a directory": ("link/train.py", "workspace"),
    "to a directory below": ("link/train.py", "workspace/deep"),
    "by another link": ("first/link.py", "../workspace/train.py"),
}


@USER_AND_ROOT
@pytest.mark.parametrize("name, target", OWN_LINKS.values(), ids=OWN_LINKS)
def test_links_behind_the_caller_s_own_links_are_not_followed(
    name: str, target: str, work: Session, secret: Path, workspace: Path, place: Path, identity: Identity
) -> None:
    work.sh(f"mkdir real; ln -s {secret} real/train.py; ln -s real deep; ln -s {secret} train.py").ok()
    if name.startswith("first/"):
        (place / "second").mkdir()
        (place / "first").symlink_to("second")
        (place / "second/link.py").symlink_to(target)
    else:
        (place / name.split("/")[0]).symlink_to(target)
    for path in (place / name, place / ".." / place.name / name):
        refused(work("python", path, cwd=place), work)


@USER_AND_ROOT
def test_a_link_of_the_caller_s_into_the_workspace_is_followed(work: Session, place: Path) -> None:
    work.sh("mkdir deep; echo 'print(6 * 7)' >deep/train.py").ok()
    (place / "directory").symlink_to("workspace/deep/")
    (place / "link.py").symlink_to(place / "directory/train.py")
    for name in ("link.py", "directory/train.py"):
        assert work("python", name, cwd=place).ok().out == "42\n", name


@USER_AND_ROOT
def test_a_fifo_that_the_session_planted_keeps_nobody_waiting(work: Session, workspace: Path) -> None:
    work.sh("mkfifo train.py").ok()
    refused(work("python", "--timeout", "1s", "train.py", cwd=workspace, timeout=20), work)


def test_a_lease_that_the_session_took_keeps_nobody_waiting(work: Session, workspace: Path) -> None:
    take = (
        "import fcntl, signal, time\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nf = open('train.py', 'w+')\n"
        "fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nopen('ready', 'w')\ntime.sleep(1000)"
    )
    with work.rpc() as rpc:
        rpc.call("process.spawn", argv=["python3", "-c", take])
        until((workspace / "ready").exists, "it has a lease")
        refused(work("python", "train.py", cwd=workspace, timeout=20), work)
        put = work("files", "put", "train.py", "there", cwd=workspace, timeout=20)
        assert put.code == 125 and "lease" in put.cure


def test_the_timeout_counts_while_code_is_read_from_a_pipe(work: Session) -> None:
    """The session may hold the other end of the pipe."""
    with work.sessions.start(["python", "w", "--timeout", "500ms", "-"], stdin=subprocess.PIPE) as running:
        assert running.process.wait(20) == 124
        result = running.wait()
    assert "--timeout" in result.err


@pytest.mark.parametrize("path", ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
def test_a_pipe_that_the_caller_gives_is_read(path: str, work: Session) -> None:
    assert work("python", path, stdin=b"print(6 * 7)").ok().out == "42\n"


def test_process_substitution_is_accepted_as_a_file(work: Session, identity: Identity) -> None:
    shell = ["bash", "-c", '"$@" <(echo "print(6 * 7)")', "bash", *work.sessions.holt.argv(["python", "w"])]
    result = identity.run(shell, env=identity.environment(work.sessions.env))
    assert result.stdout == "42\n", result.stderr


def test_a_link_of_the_caller_s_own_is_followed(work: Session, place: Path, put: Make) -> None:
    put(place / "script.py", "print(6 * 7)\n")
    (place / "link.py").symlink_to("script.py")
    assert work("python", place / "link.py").ok().out == "42\n"
