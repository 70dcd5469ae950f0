# SPDX-License-Identifier: Apache-2.0
"""A command of a session opens its stdin, stdout or stderr again, through /proc/self/fd, to change or read a file of the host.

Landlock leaves this to the keeper, which gives the command a pipe. So nothing else in the session can open the file either.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import select
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.hosts import landlock_abi
from lib.sandbox import HANGS, Holt
from lib.sessions import Sessions, until

ALL = pytest.mark.identities("user", "root", "nested")
LANDLOCK = pytest.mark.parametrize("landlock", ("auto", "off"))
SECRET = "the caller's\n"

# No attack waits forever, even if the descriptor is a pipe. A reader of the pipe finds only bytes that the command itself has
# written.
ATTACKS = {
    "read": "os.write(2, os.read(os.open(f'/proc/{pid}/fd/1', os.O_RDONLY | os.O_NONBLOCK), 100))",
    "read and written": "os.write(2, os.pread(os.open(f'/proc/{pid}/fd/1', os.O_RDWR | os.O_NONBLOCK), 100, 0))",
    "mapped": "os.write(2, mmap.mmap(1, 10, prot=mmap.PROT_READ)[:])",
    "cut": "os.ftruncate(1, 0)",
    "cut by its path": "os.truncate(f'/proc/{pid}/fd/1', 0)",
    "cut by opening": "os.open(f'/proc/{pid}/fd/1', os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK)",
    "written elsewhere": "fcntl.fcntl(1, fcntl.F_SETFL, 0); os.pwrite(1, b'evil', 0)",
    "given another mode": "os.fchmod(1, 0o666)",
    "given a time": "os.utime(1, (1, 1))",
}
START = "import fcntl, mmap, os, sys; pid = sys.argv[1] if sys.argv[1:] else 'self'\n"


def state(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), path.stat().st_mode


@pytest.fixture
def log(holt: Holt, place: Path) -> Path:
    path = place / "log"
    path.write_text(SECRET)
    path.chmod(0o644)
    holt.identity.own(path)
    return path


def attack(name: str) -> list[str]:
    return ["/usr/bin/python3", "-c", START + ATTACKS[name]]


@ALL
@LANDLOCK
@pytest.mark.parametrize("mode", ("a", "r+"))
def test_a_file_that_is_open_for_writing_only(mode: str, landlock: str, sessions: Sessions, log: Path) -> None:
    session = sessions.create("w", "--landlock", landlock)
    before = state(log)
    for name in ATTACKS:
        fd = os.open(log, os.O_WRONLY | (os.O_APPEND if mode == "a" else 0))
        with open(fd, "w") as stdout:
            assert SECRET not in session.exec(*attack(name), stdout=stdout).err, name
        assert state(log) == before, name
    with session.rpc() as rpc:
        for name in ATTACKS:
            with open(os.open(log, os.O_WRONLY), "w") as stdout:
                process = rpc.call("process.spawn", [stdout.fileno()], argv=attack(name), fds=2)["id"]
                rpc.call("process.wait", id=process, timeout=HANGS)
            text = "".join(c["text"] for c in rpc.call("process.read", id=process)["chunks"])
            assert SECRET not in text and state(log) == before, name


@pytest.mark.identities("user")
@pytest.mark.parametrize("name", ("read", "cut", "cut by its path", "given another mode"))
def test_the_attacks_succeed_on_the_host(name: str, holt: Holt, log: Path) -> None:
    before = state(log)
    result = holt.identity.run(["sh", "-c", 'exec "$@" >>"$0"', log, *attack(name)])

    assert SECRET in result.stderr if name == "read" else state(log) != before


@pytest.mark.identities("user")
@pytest.mark.parametrize("name", ATTACKS)
def test_another_process_of_the_session_can_not_either(name: str, sessions: Sessions, log: Path) -> None:
    """The attacker looks at the descriptors of the victim, another process of the session."""
    session = sessions.create("w")
    before = state(log)
    with log.open("a") as stdout:
        victim = session.start("sleep", "60", stdout=stdout)
        ps = until(lambda: [p for p in session.ps().values() if p["state"] == "running"], "it runs")
        err = session.exec(*attack(name), str(ps[0]["pid"])).err
        victim.process.terminate()
        victim.wait()

    assert SECRET not in err and state(log) == before


CHANGES = {
    "by its path": "os.truncate('/proc/self/fd/0', 0)",
    "by opening for reading": "os.open('/proc/self/fd/0', os.O_RDONLY | os.O_TRUNC)",
    "by opening for writing": "os.open('/proc/self/fd/0', os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK)",
    "after opening": "os.ftruncate(os.open('/proc/self/fd/0', os.O_RDWR), 0)",
    "by writing": "os.write(os.open('/proc/self/fd/0', os.O_RDWR | os.O_NONBLOCK), b'evil')",
    "a mode": "os.fchmod(0, 0o666)",
}


@ALL
@LANDLOCK
def test_a_large_file_that_is_open_for_reading(landlock: str, sessions: Sessions, holt: Holt, log: Path) -> None:
    """The file is too large to be copied."""
    os.truncate(log, 17 << 20)
    before = log.stat()
    session = sessions.create("w", "--landlock", landlock)
    for change in CHANGES.values():
        with log.open() as stdin:
            session.exec("/usr/bin/python3", "-c", START + change, stdin=stdin)
        after = log.stat()
        assert (after.st_size, after.st_mode, after.st_mtime_ns) == (before.st_size, before.st_mode, before.st_mtime_ns)


@pytest.mark.identities("user")
def test_a_file_without_a_name(sessions: Sessions, log: Path) -> None:
    """The caller still reads from it."""
    session = sessions.create("w")
    with log.open() as stdin:
        log.unlink()
        for change in CHANGES.values():
            session.exec("/usr/bin/python3", "-c", START + change, stdin=stdin)
        assert stdin.read() == SECRET
        stdin.seek(0)
        assert session.exec("cat", stdin=stdin).out == SECRET


RECEIVE = """
import array, os, socket
_, control, _, _ = socket.socket(fileno=0).recvmsg(1, socket.CMSG_SPACE(4))
path = "/proc/self/fd/%d" % array.array("i", control[0][2])[0]
for flags in os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC:
    try:
        os.write(os.open(path, flags), b"evil")
    except OSError as error:
        print(error.errno)
"""


@pytest.mark.skipif(landlock_abi() < 2, reason="the kernel has no Landlock that holt uses")
@pytest.mark.identities("user")
def test_a_file_that_a_peer_sends_for_reading_can_not_be_written(sessions: Sessions, log: Path) -> None:
    """The command can cut the file: SECURITY.md names this gap."""
    session = sessions.create("w", "--landlock", "require")
    peer, stdin = socket.socketpair()
    with peer, stdin, log.open() as opened:
        peer.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [opened.fileno()]))])
        result = session.exec("python3", "-c", RECEIVE, stdin=stdin).ok()

    assert result.out.split() == [str(errno.EACCES)] * 3 and log.read_text() == SECRET


@ALL
def test_a_named_pipe(sessions: Sessions, holt: Holt, place: Path) -> None:
    path = place / "fifo"
    os.mkfifo(path, 0o600)
    holt.identity.own(path)
    session = sessions.create("w")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(path, "wb", buffering=0) as pipe:
        pipe.write(SECRET.encode())
        err = session.exec(*attack("read"), stdout=pipe).err
    kept = os.read(reader, 100)
    os.close(reader)

    assert SECRET not in err and kept.startswith(SECRET.encode())


@pytest.mark.identities("user")
def test_a_named_pipe_that_nobody_reads_does_not_keep_the_session_alive(sessions: Sessions, holt: Holt, place: Path) -> None:
    path = place / "fifo"
    os.mkfifo(path)
    holt.identity.own(path)
    session = sessions.create("w")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with path.open("wb", buffering=0) as pipe:
        pipe.write(bytes(60000))
        session.exec("bash", "-c", "head -c 60000 /dev/zero; yes 2>/dev/null &", stdout=pipe).ok()
    session.stop()
    os.close(reader)


@pytest.mark.identities("user")
@pytest.mark.parametrize("open_it", (
    lambda path: os.open(path, os.O_WRONLY | os.O_TRUNC), lambda path: os.open(path, os.O_WRONLY | os.O_APPEND),
), ids=(">", ">>"))
def test_the_command_gets_a_pipe(open_it: Callable[[Path], int], sessions: Sessions, log: Path) -> None:
    """Even an empty file is replaced by a pipe, because others may write to the file later."""
    session = sessions.create("w")
    with open(open_it(log), "w") as stdout:
        out = session.exec("stat", "-Lc", "%f", "/proc/self/fd/1", stderr=stdout, stdout=stdout)

    assert out.code == 0 and stat.S_ISFIFO(int(log.read_text().split()[-1], 16))


@pytest.mark.identities("user")
@pytest.mark.parametrize("seals", (fcntl.F_SEAL_WRITE, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW))
def test_a_memory_file_that_can_be_cut(seals: int, sessions: Sessions) -> None:
    """The seals of the file refuse other changes. Landlock does not restrict memory files."""
    session = sessions.create("w")
    memory = os.memfd_create("x", os.MFD_ALLOW_SEALING)
    os.write(memory, SECRET.encode())
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
    for change in CHANGES.values():
        with open(f"/proc/self/fd/{memory}") as stdin:
            session.exec("/usr/bin/python3", "-c", START + change, stdin=stdin)
        assert os.pread(memory, 100, 0) == SECRET.encode(), change
    os.close(memory)


@pytest.mark.identities("user")
@pytest.mark.parametrize("text", ("", "\t"))
def test_a_terminal_that_nobody_reads_holds_up_no_other_client(text: str, sessions: Sessions) -> None:
    """The terminal reports room, and then has too little for a newline."""
    session = sessions.create("w")
    ours, theirs = os.openpty()
    terminal = os.open(os.ttyname(theirs), os.O_WRONLY | os.O_NOCTTY)
    with session.rpc() as rpc:
        process = rpc.call("process.spawn", [terminal], argv=["yes", text], fds=2)["id"]
        until(lambda: not select.select([], [terminal], [], 0)[1], "it is full")
        try:
            assert rpc.call("exec", argv=["echo", "word"])["stdout"] == "word\n"
        finally:
            for fd in (ours, theirs, terminal):
                os.close(fd)
        rpc.call("process.kill", id=process)
