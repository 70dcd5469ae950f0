# SPDX-License-Identifier: Apache-2.0
"""A file of the host that no mount shows is opened again, through /proc/self/fd, and changed."""

from __future__ import annotations

import array
import socket
from pathlib import Path

import pytest

from lib.hosts import landlock_abi
from lib.sandbox import Holt

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
