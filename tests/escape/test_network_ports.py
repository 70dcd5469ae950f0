# SPDX-License-Identifier: Apache-2.0
"""A published or imported port opens that port and no other."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest

from lib.sandbox import Arg, Holt, Result
from lib.tools import needs

pytestmark = needs("python3")

CONNECT = """
import socket, sys
for word in sys.argv[1:]:
    host, port = word.rsplit(":", 1)
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        sock.connect((host, int(port)))
        sock.settimeout(60)
        print(word, sock.recv(10))
    except OSError as error:
        print(word, "refused")
"""


@pytest.fixture
def ports() -> Iterator[list[int]]:
    """Servers on the host's loopback, which greet first."""
    servers = [socket.create_server(("127.0.0.1", 0), backlog=50) for _ in range(3)]
    yield [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()


def run(holt: Holt, *args: Arg) -> Result:
    return holt(["run", *args])


def test_an_imported_port_opens_no_other(holt: Holt, ports: list[int]) -> None:
    """Tries the neighbours on the host's loopback, and the port's own number at other addresses."""
    own, *others = ports
    words = [f"{host}:{port}" for host in ("127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::ffff:127.0.0.1") for port in others]
    words += [f"{host}:{own}" for host in ("127.0.0.2", "10.0.0.1", "169.254.169.254", "198.18.0.1", "fd00:686f:6c74::1")]
    result = run(holt, "--import", str(own), "python3", "-c", CONNECT, *words).ok()

    assert result.out.splitlines() == [f"{word} refused" for word in words]


def test_an_imported_port_with_a_wildcard_opens_no_other(holt: Holt, ports: list[int]) -> None:
    """The wildcard's listener accepts at every address of the port."""
    own, other, _ = ports
    words = [f"{host}:{port}" for host in ("127.0.0.2", "198.18.0.1", "::ffff:127.0.0.2") for port in (own, other)]
    words += [f"127.0.0.1:{other}", f"[::1]:{other}".replace("[", "").replace("]", "")]
    result = run(holt, 
        "--import", str(own), "--net", f"*.example.org:{own},*.example.org:{other}", "python3", "-c", CONNECT, *words).ok()

    assert result.out.splitlines() == [f"{word} refused" for word in words]


def test_a_published_port_is_on_the_loopback_alone(holt: Holt) -> None:
    with holt.start(["run", "-p", "0:3000", "sleep", "1000"], report=False) as running:
        assert running.process.stderr
        line = running.process.stderr.readline().decode()
        match = re.search(r"127\.0\.0\.1:(\d+) ", line)
        assert match, line
        listeners = [row.split()[1] for row in open("/proc/net/tcp").readlines() + open("/proc/net/tcp6").readlines()
                     if row.split()[3] == "0A" and row.split()[1].endswith(f":{int(match[1]):04X}")]

    assert listeners == [f"0100007F:{int(match[1]):04X}"]


def test_the_command_cannot_reach_its_own_published_port(holt: Holt) -> None:
    """The listener is the host's: the sandbox has no way to it."""
    probe = "import socket, sys; print(socket.socket().connect_ex(('127.0.0.1', int(sys.argv[1]))))"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    assert run(holt, "-p", f"{port}:3000", "python3", "-c", probe, str(port)).ok().out == "111\n"
