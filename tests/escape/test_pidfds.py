# SPDX-License-Identifier: Apache-2.0
"""A pidfd does not lead to the namespaces of a process. Since Linux 6.11 an ioctl makes a descriptor of each.
SO_PEERPIDFD (6.5) makes a pidfd of the host's process that serves a socket inside."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.hostile import and_without_landlock
from lib.identity import Identity
from lib.sandbox import Arg, Holt
from lib.sessions import Sessions

pytestmark = pytest.mark.identities("user", "root", "nested")

# PIDFD_GET_CGROUP_NAMESPACE to PIDFD_GET_UTS_NAMESPACE. Bits above the low 32 are tried too; the kernel cuts them off.
# Prints a line for each: the descriptor's type, or the errno's name. "peer" uses the owner of a socket.
ASK = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
if sys.argv[1] == "self":
    pidfd = os.pidfd_open(os.getpid())
else:
    end = socket.socket(socket.AF_UNIX)
    end.connect(sys.argv[1])
    pidfd = int.from_bytes(end.getsockopt(socket.SOL_SOCKET, 77, 4), sys.byteorder)
for request in range(0xff01, 0xff0b):
    for high in (0, 1 << 32, 0xffffffff << 32):
        fd = libc.syscall(ctypes.c_long(IOCTL), ctypes.c_long(pidfd), ctypes.c_ulong(request | high), ctypes.c_long(0))
        print(os.readlink(f"/proc/self/fd/{fd}") if fd >= 0 else errno.errorcode[ctypes.get_errno()])
""".replace("IOCTL", "16 if os.uname().machine == 'x86_64' else 29")

SERVE = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("ready", flush=True)
while True:
    server.accept()[0].recv(1)
"""


@pytest.fixture
def server(identity: Identity, workspace: Path) -> Iterator[Path]:
    """A socket in the workspace that a process of the caller's serves on the host."""
    path = workspace / "s"
    argv = identity.as_user(["/usr/bin/python3", "-c", SERVE, path])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=workspace) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        path.chmod(0o777)
        yield path
        process.kill()


def answers(out: str) -> set[str]:
    assert len(out.splitlines()) == 30
    return set(out.split())


def control(identity: Identity, whom: Arg) -> set[str]:
    """The answers that the caller gets on the host."""
    result = subprocess.run(
        identity.as_user(["/usr/bin/python3", "-c", ASK, whom]), capture_output=True, text=True, cwd="/", check=False
    )
    if result.returncode or "ENOTTY" in result.stdout:
        pytest.skip("no such pidfds before Linux 6.11")
    return answers(result.stdout)


@and_without_landlock
def test_the_caller_s_processes_keep_their_namespaces(
    flags: tuple[str, ...], holt: Holt, server: Path, identity: Identity
) -> None:
    assert any(answer.startswith("user:") for answer in control(identity, server))

    asked = holt(["run", *flags, "--", "python3", "-c", ASK, server]).ok()

    assert answers(asked.out) == {"EPERM"}


@and_without_landlock
def test_pidfds_of_processes_inside_open_no_namespaces(flags: tuple[str, ...], holt: Holt, identity: Identity) -> None:
    """The command's own namespaces are no secret, but no pidfd has these ioctls."""
    assert any(answer.startswith("user:") for answer in control(identity, "self"))

    assert answers(holt(["run", *flags, "--", "python3", "-c", ASK, "self"]).ok().out) == {"EPERM"}


def test_pidfds_from_sockets_open_no_namespaces_in_a_session(sessions: Sessions, server: Path, workspace: Path, identity: Identity) -> None:
    control(identity, server)
    session = sessions.create("w", "--landlock", "off", "--workspace", str(workspace))

    asked = session.exec("python3", "-c", ASK, f"/workspace/{server.name}").ok()

    assert answers(asked.out) == {"EPERM"}
