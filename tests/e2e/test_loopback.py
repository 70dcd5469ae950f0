# SPDX-License-Identifier: Apache-2.0
"""The sandbox's own loopback answers as that of a host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.tools import needs

pytestmark = pytest.mark.identities("user", "root", "nested")

MULTICAST = """
import socket
group = socket.inet_aton("224.0.0.251")
receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
receiver.settimeout(20)
receiver.bind(("", 0))
receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + bytes(4))
sender.sendto(b"hello", ("224.0.0.251", receiver.getsockname()[1]))
data, source = receiver.recvfrom(9)
print(data, source[0])
"""

MULTICAST_6 = """
import socket
receiver, sender = (socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) for _ in range(2))
receiver.settimeout(20)
receiver.bind(("", 0))
for group in ("ff02::fb", "ff05::1234"):
    receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, group) + bytes(4))
    sender.sendto(b"hello", (group, receiver.getsockname()[1]))
    data, source = receiver.recvfrom(9)
    print(data, source[0])
"""

PING = """
import socket
for family, protocol, address, kind in ((socket.AF_INET, 1, "127.0.0.1", 8), (socket.AF_INET6, 58, "::1", 128)):
    s = socket.socket(family, socket.SOCK_DGRAM, protocol)
    s.settimeout(20)
    s.sendto(bytes([kind, 0, 0, 0, 0, 1, 0, 1]), (address, 0))
    print(s.recvfrom(99)[0][0])
"""

# ping(8) does this first, so that it keeps CAP_NET_RAW when it becomes the caller again.
KEEP = """
import ctypes, os, re
print(ctypes.CDLL(None).prctl(8, 1, 0, 0, 0))
os.setuid(os.getuid())
print(set(re.findall(r"^Cap\\w+:\\s*(\\w+)$", open("/proc/self/status").read(), re.M)))
"""

UDP_LITE = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136)"


@needs("python3")
def test_multicast_reaches_the_group(holt: Holt) -> None:
    assert holt(["run", "--", "python3", "-c", MULTICAST]).ok().out == "b'hello' 127.0.0.1\n"


@needs("python3")
def test_multicast_of_ipv6_does_too(holt: Holt) -> None:
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("the kernel has no IPv6")
    assert holt(["run", "--", "python3", "-c", MULTICAST_6]).ok().out == "b'hello' ::1\n" * 2


@needs("python3")
def test_the_loopback_answers_pings(holt: Holt) -> None:
    if os.statvfs("/proc/sys").f_flag & os.ST_RDONLY:
        pytest.skip("/proc/sys is read-only here, so no network namespace can allow pings")
    before = Path("/proc/sys/net/ipv4/ping_group_range").read_text()

    assert holt(["run", "--", "python3", "-c", PING]).ok().out == "0\n129\n"
    assert Path("/proc/sys/net/ipv4/ping_group_range").read_text() == before


@needs("python3")
def test_ping_may_keep_the_capabilities_that_it_does_not_have(holt: Holt) -> None:
    assert holt(["run", "--", "python3", "-c", KEEP]).ok().out == "0\n{'" + "0" * 16 + "'}\n"


@needs("python3")
def test_udp_lite_is_refused_with_a_reason(holt: Holt) -> None:
    """A grant for it would allow sockets of every family."""
    result = holt(["run", "--", "python3", "-c", UDP_LITE])

    assert result.code == 1
    denial = result.denials["socket"]
    assert (denial["answer"], denial["grant"]) == ("EPERM", None)
    assert "UDP-Lite" in denial["why_not"] and "UDP-Lite" in result.err
