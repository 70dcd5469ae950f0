# SPDX-License-Identifier: Apache-2.0
"""Storms of connections: their number is limited, holt-egress stays small, and other connections and grants go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lib.leaks import Process, descendants
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sandbox import Holt
from lib.sessions import Sessions, until
from lib.tools import needs

pytestmark = [needs("python3", "curl"), pytest.mark.alike]

LIMIT = 4096  # CONNECTIONS_MAX

# Accepts, and never speaks.
CROWD = """
import resource, selectors, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
listener, ends = socket.create_server(("203.0.113.20", 7000), backlog=4096), selectors.DefaultSelector()
ends.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in ends.select():
        if key.fileobj is listener: ends.register(listener.accept()[0], selectors.EVENT_READ)
        else: ends.unregister(key.fileobj); key.fileobj.close()
"""

STORM = """
import errno, select, socket, sys
def echo(end, data):
    end.sendall(data)
    return end.recv(100) == data

before = socket.create_connection(("web.example.org", 7), timeout=60)
address, ends, refused = (socket.gethostbyname("peer.example.org"), 7000), [], 0
poll, waiting = select.poll(), {}
for n in range(int(sys.argv[1])):
    end = socket.socket()
    end.setblocking(False)
    end.connect_ex(address)
    waiting[end.fileno()] = end
    poll.register(end, select.POLLOUT)
    while len(waiting) > 200 or (waiting and n + 1 == int(sys.argv[1])):
        for fd, _ in poll.poll(60000):
            poll.unregister(fd)
            end = waiting.pop(fd)
            if end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR): refused += 1
            else: ends.append(end)
# At level 1, a connection is reset after it was accepted.
for end in list(ends):
    try: data = end.recv(1)
    except BlockingIOError: continue
    except OSError: data = b""
    if not data: ends.remove(end); refused += 1
print(len(ends), refused, echo(before, b"here\\n"), flush=True)
sys.stdin.readline()
for end in ends: end.close()
while True:
    try:
        with socket.create_connection(("web.example.org", 7), timeout=60) as end:
            print(echo(end, b"again\\n"), flush=True)
            break
    except OSError: pass
"""

# Connections of which some are allowed and some are not, as fast as possible.
RUSH = """
import socket
addresses = [(socket.gethostbyname("web.example.org"), port) for port in (80, 81)] + [("203.0.113.99", 80)]
print("begin", flush=True)
while True:
    ends = []
    for n in range(300):
        end = socket.socket()
        end.setblocking(False)
        end.connect_ex(addresses[n % 3])
        ends.append(end)
    for end in ends: end.close()
"""


def egress() -> Process:
    doors = [process for process in descendants() if process.name == "holt-egress" and not process.ended]
    return next(process for process in doors if process.parent not in {door.pid for door in doors})


def memory(process: Process, what: str) -> int:
    """In KiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(what)))


def test_a_storm_ends_at_the_limit(holt: Holt, lab: Lab) -> None:
    lab.serve([sys.executable, "-c", CROWD], 7000)
    argv = ["run", "--net", "web.example.org:7,peer.example.org:7000", "--open-files", "8192", "--", "python3", "-c", STORM, str(LIMIT + 200)]
    with holt.start(argv, stdin=subprocess.PIPE) as running:
        opened, refused, still = running.readline().split()
        peak = memory(egress(), "VmHWM")
        running.send("go on\n")
        again = running.readline()
        running.wait()

    assert int(opened) < LIMIT and int(opened) + int(refused) == LIMIT + 200 and still == again == "True"
    assert int(opened) == LIMIT - 1 or int(opened) > 1000  # Fewer if the host allows fewer descriptors.
    assert peak < 64 * 1024


@pytest.mark.slow
def test_grants_go_on_in_a_storm(sessions: Sessions) -> None:
    """In the storm, a connection may be refused because too many are open."""
    session = sessions.create("w", "--net", "web.example.org:80")
    with session.start("python3", "-c", RUSH, stdin=subprocess.PIPE) as running:
        assert running.readline() == "begin"
        for n in range(5):
            session("allow", f"net:g{n}.wild.example.com:80").ok()
        peak = memory(egress(), "VmHWM")
        running.kill()

    assert peak < 64 * 1024
    assert session.show()["network"]["allow"][1:] == [f"g{n}.wild.example.com:80" for n in range(5)]
    codes = " ".join(f"http://g{n}.wild.example.com/" for n in range(5))
    until(lambda: session.sh(f"curl -sS -m 30 -w '%{{http_code}} ' {codes} | grep -o '200 ' | wc -l").out == "5\n", "each is in force")
