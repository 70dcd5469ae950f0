# SPDX-License-Identifier: Apache-2.0
"""Nothing inside can forge the address of a redirected connection, or use the listener that takes all of them.

The test network (lib/netlab.py) is the host's network here, and its log shows what has left the sandbox.
"""

from __future__ import annotations

import json

import pytest

from lib import netlab
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sandbox import Holt, Result
from lib.tools import needs

pytestmark = needs("python3")

REFUSED = {"ECONNREFUSED", "ECONNRESET", "EPIPE", "ENETUNREACH", "EHOSTUNREACH", "ECONNABORTED"}


@pytest.fixture(autouse=True)
def _redirect_works(holt: Holt) -> None:
    if holt(["run", "--net", "web.example.org:*", "--", "true"]).code != 0:
        pytest.skip("the kernel cannot redirect ports, or a container forbids it")


# attempt() returns "passed" if bytes come back from a server, and otherwise the error.
PRELUDE = """
import errno, json, socket, threading
PORT4, PORT6 = ("198.18.0.2", 1), ("fd00:686f:6c74::2", 1)

def attempt(target, source=None, options=()):
    sock = socket.socket(socket.AF_INET6 if ":" in target[0] else socket.AF_INET)
    sock.settimeout(20)
    try:
        for option in options:
            sock.setsockopt(*option)
        if source:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(source)
        sock.connect(target)
        sock.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        return "passed" if sock.recv(100) else "ECONNRESET"
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))
    finally:
        sock.close()

def address(name, family=socket.AF_INET):
    return socket.getaddrinfo(name, 80, family, socket.SOCK_STREAM)[0][4][0]
"""


def inside(holt: Holt, program: str, net: str) -> tuple[list[str], Result]:
    """Runs a program, which prints a JSON list."""
    result = holt(["run", "--net", net, "--", "python3", "-c", PRELUDE + program]).ok()
    return list(json.loads(result.out)), result


@pytest.mark.identities("user", "root", "nested")
def test_the_listener_itself_leads_nowhere(holt: Holt, lab: Lab) -> None:
    """No connection to the listener's own address or to a neighbouring one leads to a host, whatever source the program binds."""
    program = """
web = address("web.example.org")
print(json.dumps([
    attempt(PORT4), attempt(PORT6), attempt(("198.18.0.2", 80)), attempt(("198.18.0.3", 80)), attempt(("198.18.0.0", 1)),
    attempt(("198.18.0.255", 80)), attempt(("198.19.255.255", 80)), attempt(("fd00:686f:6c74::ffff:ffff", 80)),
    attempt(PORT4, (web, 80)), attempt(PORT4, ("198.18.0.2", 80)), attempt(PORT4, ("127.0.0.1", 8080)),
    attempt(("198.18.0.1", 1)), attempt(("127.0.0.1", 1)), attempt(("127.0.0.1", 80)), attempt(("::1", 1)),
]))
"""
    results, result = inside(holt, program, "*.example.org:*")

    assert set(results) <= REFUSED | {"EADDRNOTAVAIL", "EINVAL"} and not lab.log("tcp"), results
    assert "198.18.0.2:80" in result.denials


def test_a_direct_connection_is_reported_as_what_it_is(holt: Holt) -> None:
    _, result = inside(holt, 'print(json.dumps([attempt(PORT4)]))', "web.example.org:*")

    assert "198.18.0.2:1" in result.denials and "web.example.org" not in str(result.denials)


def test_no_option_forges_the_address(holt: Holt, lab: Lab) -> None:
    """Each option would change the target, its judgement or the filter. No attempt goes to a port that a rule
    allows."""
    program = """
SO_MARK, IP_TRANSPARENT, IPV6_TRANSPARENT, IP_OPTIONS, IP_FREEBIND = 36, 19, 75, 4, 15
other = address("other.example.org")
route = bytes((0x83, 11, 4)) + socket.inet_aton(address("web.example.org")) * 2 + b"\\0"
print(json.dumps([
    *(attempt((other, 8080), None, [(socket.SOL_SOCKET, SO_MARK, mark)]) for mark in range(1, 5)),
    attempt((other, 8080), None, [(socket.IPPROTO_IP, IP_TRANSPARENT, 1)]),
    attempt(("fd00:686f:6c74::101", 8080), None, [(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)]),
    attempt((other, 8080), ("203.0.113.10", 80), [(socket.IPPROTO_IP, IP_FREEBIND, 1)]),
    attempt((other, 8080), None, [(socket.IPPROTO_IP, IP_OPTIONS, route)]),
    attempt(PORT4, None, [(socket.IPPROTO_IP, IP_OPTIONS, route)]),
]))
"""
    results, _ = inside(holt, program, "web.example.org:*,other.example.org:80")

    assert results[:6] == ["EPERM"] * 6 and not set(results) & {"passed"} and not lab.log("tcp"), results


def test_the_original_target_is_not_read_from_a_table_that_programs_fill(holt: Holt, lab: Lab) -> None:
    """There is no NAT: a connection that has the ports of another one leads to its own target."""
    program = """
web, other = address("web.example.org"), address("other.example.org")
first = socket.socket()
first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
first.bind(("198.18.0.1", 40001))
first.connect((web, 8080))
print(json.dumps([attempt(PORT4, ("198.18.0.1", 40001)), attempt((other, 8080), ("198.18.0.1", 40001))]))
"""
    results, _ = inside(holt, program, "web.example.org:*,other.example.org:80")

    assert set(results) <= REFUSED | {"EADDRINUSE"} and {row["address"] for row in lab.log("tcp")} <= {netlab.WEB4, netlab.WEB6}


def test_port_0_and_others_without_a_rule(holt: Holt, lab: Lab) -> None:
    program = """
web = address("web.example.org")
print(json.dumps([attempt((web, port)) for port in (0, 1, 999, 9000)]))
"""
    results, _ = inside(holt, program, "web.example.org:1000-8999")

    assert set(results) <= REFUSED and not lab.log("tcp"), results


def test_neighbours_of_a_name_and_of_a_block(holt: Holt, lab: Lab) -> None:
    program = """
print(json.dumps([attempt(target) for target in (
    ("198.18.0.255", 8080), ("198.18.1.1", 8080), ("198.18.1.2", 8080), ("fd00:686f:6c74::101", 8080), ("203.0.113.7", 80),
    ("203.0.113.16", 80), ("203.0.113.255", 80), ("::ffff:203.0.113.16", 80), ("2001:db8::10", 80))]))
"""
    results, _ = inside(holt, program, "web.example.org:*,203.0.113.8/29:*")

    assert set(results) <= REFUSED and not lab.log("tcp"), results


def test_a_program_cannot_take_connections_of_another(holt: Holt) -> None:
    """A program may bind an address of the sandbox. Connections still go to the host that the address stands for."""
    program = """
web, results = address("web.example.org"), []
for bound in ((web, 8080), ("0.0.0.0", 8080), ("198.18.0.2", 1), ("0.0.0.0", 1)):
    server = socket.socket()
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        server.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        server.bind(bound)
        server.listen()
        server.settimeout(0.2)
    except OSError as error:
        results.append(errno.errorcode[error.errno])
        continue
    reply = attempt((web, 8080))
    try:
        server.accept()
        results.append("taken")
    except TimeoutError:
        results.append(reply)
    server.close()
print(json.dumps(results))
"""
    results, _ = inside(holt, program, "web.example.org:*")

    assert results == ["passed", "passed", "EADDRINUSE", "EADDRINUSE"]


def test_a_simultaneous_open_stays_inside(holt: Holt, lab: Lab) -> None:
    """Two programs connect to each other, one from the address of a name. No byte of it gets out."""
    program = """
web = address("web.example.org")
a, b = socket.socket(), socket.socket()
for sock, own in ((a, ("198.18.0.1", 5000)), (b, (web, 9001))):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(own)
    sock.setblocking(False)
b.connect_ex(("198.18.0.1", 5000))
a.connect_ex((web, 9001))
print(json.dumps([attempt((web, 8080))]))
"""
    results, _ = inside(holt, program, "web.example.org:*")

    assert results == ["passed"] and {row["port"] for row in lab.log("tcp")} <= {8080, 9001}
