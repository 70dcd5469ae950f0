# SPDX-License-Identifier: Apache-2.0
"""The caller's files as stdin, stdout and stderr of a session's command, which gets a pipe (runner/process/detour.c)."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import Session, Sessions, keepers, until

BIG = 17 << 20  # more than holt copies


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.create("w")


@pytest.fixture
def log(holt: Holt, place: Path) -> Path:
    path = place / "log"
    path.write_text("before\n")
    holt.identity.own(path)
    return path


@pytest.mark.identities("user", "root", "nested")
def test_both_streams_keep_their_order(session: Session, log: Path) -> None:
    """The file has everything when holt exec ends."""
    with log.open("a") as file:
        session.sh("for i in 1 2 3; do echo out $i; echo err $i >&2; done; seq 200000; echo end >&2",
                   stdout=file, stderr=file).ok()
        file.write("after\n")

    lines = "".join(f"out {i}\nerr {i}\n" for i in (1, 2, 3)) + "".join(f"{i}\n" for i in range(1, 200001))
    assert log.read_text() == f"before\n{lines}end\nafter\n"


def test_two_files_stay_apart(session: Session, place: Path) -> None:
    with (place / "out").open("w") as out, (place / "err").open("w") as err:
        session.sh("echo out; echo err >&2", stdout=out, stderr=err).ok()

    assert (place / "out").read_text() == "out\n" and (place / "err").read_text() == "err\n"


def test_the_caller_s_offset_moves(session: Session, place: Path) -> None:
    with (place / "out").open("wb", buffering=0) as out:
        for word in ("one", "two"):
            out.write(b"> ")
            session.exec("echo", word, stdout=out).ok()

    assert (place / "out").read_text() == "> one\n> two\n"


def test_the_command_can_open_it_again(session: Session, log: Path) -> None:
    """Scripts open their output again as /dev/stdout and /dev/stderr."""
    with log.open("a") as file:
        session.sh("echo out >/dev/stdout; echo err >/dev/stderr", stdout=file, stderr=file).ok()

    assert log.read_text() == "before\nout\nerr\n"


@pytest.mark.identities("user", "nested")  # the user of root's keepers cannot reach the session's directory
def test_a_file_that_the_command_can_write_anyway_is_given_as_it_is(session: Session, holt: Holt) -> None:
    path = session.directory / "workspace" / "out"
    with path.open("wb") as file:
        holt.identity.own(path)
        session.exec("python3", "-c", "import os; os.pwrite(1, b'end', 10)", stdout=file).ok()

    assert path.read_bytes() == bytes(10) + b"end"


@pytest.mark.identities("root")
def test_root_s_file_in_the_workspace_is_written_through_a_pipe(session: Session, holt: Holt) -> None:
    """The keeper has a user of its own, which cannot reach the file by its path. The command cannot seek in a pipe."""
    path = session.directory / "workspace" / "out"
    with path.open("wb") as file:
        holt.identity.own(path)
        session.sh("test -p /dev/stdout && echo whole", stdout=file).ok()
        assert "Illegal seek" in session.exec("python3", "-c", "import os; os.pwrite(1, b'end', 10)", stdout=file).err

    assert path.read_bytes() == b"whole\n"


def test_a_background_process_goes_on_writing(session: Session, log: Path) -> None:
    with log.open("a") as file:
        session.sh("(until test -e go; do sleep 0.01; done; echo late) </dev/null & echo early", stdout=file, stderr=file).ok()
    assert log.read_text() == "before\nearly\n"
    session.out("touch go")

    until(lambda: log.read_text() == "before\nearly\nlate\n", "it has written")


@pytest.fixture
def fifo_path(holt: Holt, place: Path) -> Path:
    path = place / "fifo"
    os.mkfifo(path)
    holt.identity.own(path)
    return path


@pytest.fixture
def fifo_reader(fifo_path: Path) -> Iterator[int]:
    """The reading end of the named pipe. Opening does not wait for a writer, but reading does."""
    reader = os.open(fifo_path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    yield reader
    os.close(reader)


def test_a_named_pipe_with_a_slow_reader_gets_everything(session: Session, fifo_path: Path, fifo_reader: int) -> None:
    """The command ends before the pipe has room, and the session serves others meanwhile."""
    got = bytearray()
    with fifo_path.open("wb", buffering=0) as fifo:
        fifo.write(bytes(60000))
        session.exec("head", "-c", "60000", "/dev/zero", stdout=fifo).ok()
        assert session.out("echo another") == "another\n"

    while data := os.read(fifo_reader, 1 << 16):
        got += data
    assert len(got) == 120000


def test_a_stop_waits_for_a_slow_reader(session: Session, fifo_path: Path, fifo_reader: int) -> None:
    """The command has ended well, so its output must not be lost."""
    got = bytearray()
    with fifo_path.open("wb", buffering=0) as fifo:
        fifo.write(bytes(60000))
        session.exec("head", "-c", "60000", "/dev/zero", stdout=fifo).ok()
        stop = session.sessions.start(["stop", session.name])
    while data := os.read(fifo_reader, 1 << 12):
        got += data
        time.sleep(0.02)
    stop.wait().ok()
    assert len(got) == 120000


def test_a_named_pipe_without_a_reader_ends_the_command(session: Session, fifo_path: Path) -> None:
    reader = os.open(fifo_path, os.O_RDONLY | os.O_NONBLOCK)
    with fifo_path.open("wb", buffering=0) as fifo:
        os.close(reader)
        result = session.exec("yes", stdout=fifo)

    assert result.code == 141 and "cannot write" not in result.err


@pytest.mark.identities("user", "root", "nested")
def test_a_large_stdin(session: Session, holt: Holt, place: Path) -> None:
    """The command reads from the caller's offset on."""
    path = place / "big"
    path.write_bytes(os.urandom(1 << 20) * (BIG >> 20))
    holt.identity.own(path)
    with path.open("rb", buffering=0) as stdin:
        stdin.seek(5)
        out = session.exec("sha256sum", stdin=stdin).ok().out
        assert out.split()[0] == hashlib.sha256(path.read_bytes()[5:]).hexdigest()
        stdin.seek(9)
        assert session.exec("head", "-c", "3", stdin=stdin).ok().out_bytes == path.read_bytes()[9:12]
    with session.rpc() as rpc, path.open("rb") as stdin:
        process = rpc("process.spawn", [stdin.fileno()], argv=["sleep", "60"], fds=1)["id"]
        assert rpc.refused("process.write", id=process, text="x").kind == "usage"
        rpc("process.kill", id=process)


def test_a_file_that_can_not_be_written_is_reported(session: Session, log: Path) -> None:
    """The keeper has the limit of file sizes of the process that started it."""
    session.exec("true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))).ok()
    os.truncate(log, 1 << 20)
    with log.open("a") as file:
        small = session.exec("echo", "word", stdout=file)
        large = session.exec("yes", flags=["--json"], stdout=file)

    assert small.code == 125 and "holt: cannot write stdout: File too large" in small.err
    assert large.code == 141 and json.loads(large.err)["stream_error"] == "cannot write stdout: File too large"


def test_many_files_do_not_stay_open(session: Session, log: Path) -> None:
    session.wake()
    (keeper,) = keepers()

    def opened() -> int:
        return sum(os.path.realpath(f"/proc/{keeper.pid}/fd/{fd}") == str(log) for fd in os.listdir(f"/proc/{keeper.pid}/fd"))

    for _ in range(3):
        with log.open("a") as file:
            session.sh("echo; echo >&2", stdout=file, stderr=file).ok()
            session.sh("echo; echo >&2", stderr=file).ok()
    until(lambda: opened() == 0, "the keeper has closed it")
