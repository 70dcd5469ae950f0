# SPDX-License-Identifier: Apache-2.0
"""A file of the host that no mount shows is opened again, through /proc/self/fd, and changed or read."""

from __future__ import annotations

import array
import os
import socket
from pathlib import Path

import pytest

from lib.hosts import landlock_abi
from lib.sandbox import Holt
from lib.sessions import until

# Mounts cannot prevent this attack. It succeeds without Landlock, which shows that it is real. ABI 3 is the first
# that restricts truncate(2).
LANDLOCK = pytest.mark.parametrize("landlock", ("require", "off") if landlock_abi() >= 3 else ("off",))

CUT = """
import array, os, socket
stdin = socket.socket(fileno=0)
_, control, _, _ = stdin.recvmsg(1, socket.CMSG_SPACE(4))
file = array.array("i", control[0][2])[0]
os.truncate(f"/proc/self/fd/{file}", 0)
"""


@pytest.fixture
def file(holt: Holt, place: Path) -> Path:
    path = place / "log"
    path.write_text("the caller's\n")
    holt.identity.own(path)
    return path


@LANDLOCK
@pytest.mark.identities("user")
def test_a_file_that_a_peer_sends_for_reading_can_not_be_cut(
    landlock: str, holt: Holt, file: Path, workspace: Path
) -> None:
    peer, stdin = socket.socketpair()
    with peer, stdin, file.open() as opened:
        peer.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [opened.fileno()]))])
        result = holt(["run", "--landlock", landlock, "--", "python3", "-c", CUT], stdin=stdin)

    assert (file.stat().st_size == 0) is (landlock == "off"), result.err


READ = """
import os
os.write(2, os.read(os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK), 100))
"""
RESTRICTED = pytest.mark.parametrize("landlock", ("require", "off") if landlock_abi() >= 2 else ("off",))


@RESTRICTED
@pytest.mark.identities("user")
def test_a_log_that_is_open_for_appending_can_not_be_read(landlock: str, holt: Holt, file: Path, workspace: Path) -> None:
    with file.open("a") as log:
        result = holt(["run", "--landlock", landlock, "--", "python3", "-c", READ], stdout=log)

    assert ("the caller's" in result.err) is (landlock == "off"), result.err


@RESTRICTED
@pytest.mark.parametrize("redirection", ("2>>{file}", ">>{file} 2>&1"))
@pytest.mark.identities("user")
def test_a_log_of_errors_can_not_be_read_even_without_landlock(
    redirection: str, landlock: str, holt: Holt, file: Path, workspace: Path
) -> None:
    """The command gets a pipe."""
    script = f"import os\nprint('mode %o' % os.fstat(2).st_mode, flush=True)\n{READ.replace('fd/1', 'fd/2').replace('write(2', 'write(1')}"
    shell = f'"$0" "$@" {redirection.format(file=file)}'
    result = holt(["run", "--landlock", landlock, "--", "python3", "-c", script], prefix=["bash", "-c", shell], report=False)

    said = file.read_text() + result.out
    assert said.startswith("the caller's\n") and said.count("the caller's") == 1 and "mode 10600\n" in said, said


@pytest.mark.identities("user")
@pytest.mark.parametrize("mode", ("w", "a"))
def test_a_log_in_the_workspace_is_not_checked(mode: str, holt: Holt, workspace: Path) -> None:
    """The command can read it by its path. The second check would slow down each open(2), and would show when the host moves
    the log away."""
    log, moved = workspace / "log", workspace.with_name("moved")
    log.touch()
    holt.identity.own(log)
    wait = "import os, time\nprint(flush=True)\nwhile os.path.exists('log'): time.sleep(0.01)\n"
    with log.open(mode) as stdout, holt.start(["run", "--", "python3", "-c", wait + READ], stdout=stdout) as running:
        until(lambda: log.read_text(), "it has started")
        log.rename(moved)
        result = running.wait()

    assert result.code == 0 and moved.stat().st_size == 1, result.err


@RESTRICTED
@pytest.mark.identities("user")
def test_a_named_pipe_that_is_open_for_writing_can_not_be_read(
    landlock: str, holt: Holt, place: Path, workspace: Path
) -> None:
    path = place / "fifo"
    os.mkfifo(path, 0o600)
    holt.identity.own(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(path, "wb", buffering=0) as pipe:
        pipe.write(b"another's\n")
        result = holt(["run", "--landlock", landlock, "--", "python3", "-c", READ], stdout=pipe)
    os.close(reader)

    assert ("another's" in result.err) is (landlock == "off"), result.err
