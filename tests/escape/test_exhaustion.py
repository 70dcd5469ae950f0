# SPDX-License-Identifier: Apache-2.0
"""A command cannot use up resources that the kernel counts for the whole host, or for all processes of the caller. This
holds for resources of which a sandbox's share can be bounded. See "Exhaustion" in SECURITY.md for the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import Sessions

pytestmark = pytest.mark.identities("user", "root", "nested")

# Each script prints how many objects it could make, up to a number that an ordinary process reaches.
PTYS = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
count = 0
try:
    while count < 400:
        os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
        count += 1
except OSError:
    pass
print(count)
"""

# struct mq_attr: flags, maxmsg, msgsize, curmsgs. O_CREAT | O_RDWR is 66.
QUEUES = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
attributes = (ctypes.c_long * 8)(0, 10, 8192)
names = [b"/holt-%d-%d" % (os.getpid(), i) for i in range(9)]
print(sum(libc.mq_open(name, 66, 0o600, attributes) >= 0 for name in names))
for name in names:
    libc.mq_unlink(name)
"""

TIMERS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
timer = ctypes.c_void_p()
count = 0
while count < 2000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
    count += 1
print(count)
"""

# Landlock refuses message queues altogether.
WITHOUT_LANDLOCK = ("--landlock", "off")

SHARES = {"ptys": (PTYS, 256), "message queues": (QUEUES, 4), "timers": (TIMERS, 1024)}


@pytest.mark.parametrize("name", SHARES)
def test_the_attack_works_without_holt(name: str, holt: Holt) -> None:
    script, share = SHARES[name]
    argv = holt.identity.as_user(["/usr/bin/python3", "-c", script])

    assert int(subprocess.run(argv, cwd="/", capture_output=True, text=True, check=True).stdout) > share


@pytest.mark.parametrize("name", SHARES)
def test_a_command_has_a_share(name: str, holt: Holt) -> None:
    script, share = SHARES[name]

    assert 0 < int(holt(["run", *WITHOUT_LANDLOCK, "--", "python3", "-c", script]).ok().out) <= share


@pytest.mark.parametrize("name", SHARES)
def test_all_commands_of_a_session_have_a_share(name: str, sessions: Sessions) -> None:
    script, share = SHARES[name]
    session = sessions.create("w", *WITHOUT_LANDLOCK)

    assert 0 < int(session.exec("python3", "-c", script).ok().out) <= share


IN_FLIGHT = """
import array, os, socket, sys
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for _ in range(4):
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.identities("user", "nested")
def test_descriptors_in_flight_are_an_error_that_names_them(holt: Holt, workspace: Path) -> None:
    """Descriptors in flight count for all processes of a user, in any sandbox. Root is exempt."""
    argv = holt.identity.as_user(["/usr/bin/python3", "-c", IN_FLIGHT])
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=workspace) as holder:
        assert holder.stdout and holder.stdout.readline() == b"ready\n"
        result = holt(["run", "--", "true"], prefix=("prlimit", "--nofile=500:500"))
        assert holder.stdin
        holder.stdin.close()

    assert result.code == 125
    assert "ETOOMANYREFS" in result.err and "ulimit -n" in result.err
