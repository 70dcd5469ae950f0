# SPDX-License-Identifier: Apache-2.0
"""Nothing inside can disturb the queue in which connections wait for holt-egress, or get past it.

The test network (lib/netlab.py) is the host's network here, and its log shows what has left the sandbox.
"""

from __future__ import annotations

import json

import pytest

from lib import netlab
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sandbox import Holt
from lib.tools import needs

pytestmark = needs("python3")


def inside(holt: Holt, program: str, net: str = "*.example.org:80", *flags: str) -> list[object]:
    """Runs a program, which prints a JSON list."""
    return list(json.loads(holt(["run", "--net", net, *flags, "--", "python3", "-c", program]).ok().out))


FORGED = r"""
import errno, json, socket, struct, time
NETFILTER, QUEUE, TABLES = 12, 3, 10

def message(kind, flags, resource, attributes=b"", family=0):
    body = struct.pack("=BBH", family, 0, socket.htons(resource)) + attributes
    return struct.pack("=IHHII", 16 + len(body), kind, flags | 1, 7, 0) + body

def attribute(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)

def attempt(data):
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER) as sock:
            sock.settimeout(5)
            sock.sendto(data, (0, 0))
            kind, code = struct.unpack("=xxxxH10xi", sock.recv(4096)[:20])
            return errno.errorcode.get(-code, str(code)) if kind == 2 else f"kind {kind}"
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))

waiting = socket.socket()
waiting.setblocking(False)
waiting.connect_ex((socket.getaddrinfo("dropped.example.org", 80)[0][4][0], 80))
time.sleep(0.1)
results = [attempt(message(QUEUE << 8 | 2, 4, 0, attribute(1, struct.pack(">BxH", command, 0)))) for command in (1, 2)]
for packet in range(64):
    verdict = attribute(2, struct.pack(">II", 1, packet))
    results.append(attempt(message(QUEUE << 8 | 1, 4, 0, verdict)))
batch = message(16, 0, TABLES) + message(TABLES << 8 | 2, 4, 0, attribute(1, b"holt\0"), 1) + message(17, 0, TABLES)
results.append(attempt(batch))
time.sleep(0.3)
state = waiting.connect_ex(waiting.getsockname() if False else (socket.getaddrinfo("dropped.example.org", 80)[0][4][0], 80))
print(json.dumps([*results, errno.errorcode.get(state, state)]))
"""


@pytest.mark.identities("user", "root", "nested")
def test_verdicts_can_not_be_forged(holt: Holt) -> None:
    """The program binds to the queue, sends verdicts for its packets, and removes the filter."""
    *forged, state = inside(holt, FORGED)

    assert len(forged) == 67 and all(
        result in ("EPERM", "EPROTONOSUPPORT", "EAFNOSUPPORT", "EACCES") for result in forged), set(map(str, forged))
    assert state == "EALREADY", "the connection still waits"


MARKS = r"""
import errno, json, socket
SO_MARK, SO_BINDTODEVICE, IP_TRANSPARENT, IP_OPTIONS, IPV6_RTHDR, MSG_FASTOPEN = 36, 25, 19, 4, 57, 0x20000000

def attempt(host, family, *options):
    sock = socket.socket(family)
    sock.settimeout(3)
    try:
        for level, name, value in options:
            sock.setsockopt(level, name, value)
        sock.connect((host, 80))
        return "ok"
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))

def fast(host):
    try:
        return socket.socket().sendto(b"x", MSG_FASTOPEN, (host, 80))
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))

web = "203.0.113.10"
route = bytes((0x83, 11, 4)) + socket.inet_aton("203.0.113.11") * 2 + b"\0"
segments = bytes((0, 2, 4, 0, 0, 0, 0, 0)) + socket.inet_pton(socket.AF_INET6, "2001:db8::10")
print(json.dumps([
    *(attempt(web, socket.AF_INET, (socket.SOL_SOCKET, SO_MARK, mark)) for mark in range(1, 5)),
    attempt(web, socket.AF_INET, (socket.IPPROTO_IP, IP_TRANSPARENT, 1)),
    attempt(web, socket.AF_INET, (socket.SOL_SOCKET, SO_BINDTODEVICE, b"lo")),
    attempt(web, socket.AF_INET, (socket.IPPROTO_IP, IP_OPTIONS, route)),
    attempt("2001:db8::10", socket.AF_INET6, (socket.IPPROTO_IPV6, IPV6_RTHDR, segments)),
    fast(web), fast("127.0.0.1"),
]))
"""


@pytest.mark.identities("user", "root")
def test_no_mark_and_no_option_gets_past_the_queue(holt: Holt, lab: Lab) -> None:
    """None of the attempts goes to an address that a rule allows."""
    results = inside(holt, MARKS, "other.example.org:81")

    assert results[:5] == ["EPERM"] * 5 and "ok" not in results and not lab.log("tcp"), results


GIVEN_UP = r"""
import errno, json, socket, time
def attempt(host, port, count):
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    for _ in range(count):
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            sock.connect_ex(address)

def reached():
    started = time.monotonic()
    with socket.create_connection(("web.example.org", 80), timeout=30) as sock:
        sock.sendall(b"GET / HTTP/1.0\r\nHost: web.example.org\r\n\r\n")
        return [sock.recv(12).decode(), time.monotonic() - started < 10]

reached()
attempt(HOST, PORT, COUNT)
print(json.dumps(reached()))
"""


@pytest.mark.parametrize(("host", "port", "count"), (("dropped.example.org", 80, 6000), ("web.example.org", 81, 6000),
                                                     ("web.example.org", 80, 1500)))
def test_a_flood_of_connections_that_are_given_up(host: str, port: int, count: int, holt: Holt) -> None:
    """These are more connections than holt-egress keeps. They hold up the next connection for no longer than it takes
    to send a packet again."""
    program = f"HOST, PORT, COUNT = {host!r}, {port}, {count}\n" + GIVEN_UP

    assert inside(holt, program) == ["HTTP/1.1 200", True]


TAKEN_OVER = r"""
import json, socket
name = socket.getaddrinfo("web.example.org", 80, socket.AF_INET)[0][4][0]
own = socket.socket()
own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
own.bind((name, 8081))
own.listen()
first = socket.socket()
first.bind(("198.18.0.1", 45678))
first.settimeout(5)
try:
    first.connect((name, 8081))
    print(json.dumps(["ok"]))
except OSError as error:
    print(json.dumps([type(error).__name__]))
"""


def test_a_listener_inside_at_the_address_of_a_name_gets_no_connection_without_a_rule(holt: Holt, lab: Lab) -> None:
    assert inside(holt, TAKEN_OVER, "web.example.org:80") == ["ConnectionRefusedError"] and not lab.log("tcp")


def test_a_denial_flood_does_not_end_the_network(holt: Holt, lab: Lab) -> None:
    """Each attempt at a bare address is an event for holt."""
    program = f"""
import json, socket
for n in range(3000):
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.connect_ex((f"10.{{n >> 8}}.{{n & 255}}.1", 80))
with socket.create_connection(("{netlab.WEB4}", 80), timeout=20) as sock:
    print(json.dumps(["reached"]))
"""

    assert inside(holt, program, f"{netlab.WEB4}:80") == ["reached"]
