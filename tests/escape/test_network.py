# SPDX-License-Identifier: Apache-2.0
"""With an empty allow list, a command reaches nothing: no address, resolver or metadata service. It reaches neither the
loopback of the host, nor a socket of the host under any name. No packet leaves this machine: connecting a datagram socket only asks for
a route."""

from __future__ import annotations

import re
import secrets
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.hostile import Attack, Run
from lib.identity import Identity
from lib.sandbox import Holt


def nameservers() -> list[str]:
    try:
        text = Path("/etc/resolv.conf").read_text()
    except OSError:
        return []
    return [a for a in re.findall(r"^nameserver\s+(\S+)", text, re.M) if not a.startswith("127.")]


def own_addresses() -> list[str]:
    """The address that this host would use to go out, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return []
        return [probe.getsockname()[0]]


ADDRESSES = {
    "198.51.100.1": "9",  # In TEST-NET-2; stands for any address.
    "169.254.169.254": "80",  # The metadata service of most clouds.
    "fd00:ec2::254": "80",
    "1.1.1.1": "53",
    "10.0.0.1": "22",
    "192.168.0.1": "80",
    "172.17.0.1": "2375",  # Docker's bridge.
    "2001:db8::1": "9",
    **{address: "53" for address in nameservers()},
    **{address: "22" for address in own_addresses()},
}


# A network by name adds no way to any of these. test_network_door.py attacks that network itself.
or_with_a_network = pytest.mark.parametrize(
    "flags", ((), ("--net", "web.example.org:443,*.example.com:8080")), ids=("no network", "a network by name")
)


@or_with_a_network
@pytest.mark.parametrize("address", ADDRESSES)
def test_no_address_has_a_route(address: str, flags: tuple[str, ...], holds: Run) -> None:
    holds(Attack("network", "route", (address, ADDRESSES[address])), *flags)


@or_with_a_network
def test_the_loopback_is_the_only_interface(flags: tuple[str, ...], holds: Run) -> None:
    holds(Attack("network", "interfaces"), *flags)


@or_with_a_network
def test_there_is_no_route(flags: tuple[str, ...], holds: Run) -> None:
    holds(Attack("network", "routes"), *flags)


MULTICAST = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[2]))
s.sendto(b"hello", ("224.0.0.251", int(sys.argv[1])))
print("sent")
"""


def test_multicast_stays_inside(holt: Holt) -> None:
    """Inside, the loopback carries multicast. A member of the same group on the host's loopback hears nothing of it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as member:
        member.bind(("", 0))
        port = str(member.getsockname()[1])
        group = socket.inet_aton("224.0.0.251") + socket.inet_aton("127.0.0.1")
        member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        for interface in ("0.0.0.0", "127.0.0.1"):
            assert holt(["run", "--", "python3", "-c", MULTICAST, port, interface]).ok().out == "sent\n"
        # The control comes last: it would have arrived after the others.
        subprocess.run(["/usr/bin/python3", "-c", MULTICAST, port, "127.0.0.1"], check=True, stdout=subprocess.DEVNULL)
        member.settimeout(20)
        assert member.recv(9) == b"hello"
        member.settimeout(0)
        with pytest.raises(BlockingIOError):
            member.recv(9)


# --- the host's own listeners ---


class Listener:
    """A server of the host that answers everyone, and counts."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.met = sock, 0
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                if self.sock.type == socket.SOCK_DGRAM:
                    asked, peer = self.sock.recvfrom(512)
                    if not asked:
                        return
                    self.sock.sendto(b"!", peer)
                else:
                    self.sock.accept()[0].close()
            except OSError:
                return
            with self.changed:
                self.met += 1
                self.changed.notify_all()

    def met_by_the_control_alone(self) -> bool:
        """Waits for the control's connection. An earlier connection from inside would have arrived before it."""
        with self.changed:
            self.changed.wait_for(lambda: self.met > 0, timeout=10)
            return self.met == 1

    def close(self) -> None:
        # Wakes the thread up from its accept or recv.
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


Listen = Callable[[int, int, Any], Listener]


@pytest.fixture
def listen(nothing_left: None) -> Iterator[Listen]:
    """Starts a server of the host's at an address: listen(FAMILY, TYPE, ADDRESS)."""
    opened: list[Listener] = []

    def start(family: int, kind: int, address: Any) -> Listener:
        sock = socket.socket(family, kind)
        sock.bind(address)
        if kind == socket.SOCK_STREAM:
            sock.listen(8)
        opened.append(Listener(sock))
        return opened[-1]

    yield start
    for each in opened:
        each.close()
        each.thread.join(1)


def loopbacks() -> list[str]:
    """The loopback addresses of this host: many containers have no IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return ["127.0.0.1", "127.0.0.2"]
    return ["127.0.0.1", "127.0.0.2", "::1"]


@or_with_a_network
@pytest.mark.parametrize("host", loopbacks())
def test_the_host_s_loopback_can_not_be_reached(host: str, flags: tuple[str, ...], holds: Run, listen: Listen) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = listen(family, socket.SOCK_STREAM, (host, 0))

    holds(Attack("network", "tcp", (host, str(server.sock.getsockname()[1]))), *flags)
    assert server.met_by_the_control_alone()


@or_with_a_network
@pytest.mark.parametrize("host", ("127.0.0.1", "127.0.0.53"))
def test_a_resolver_on_the_host_s_loopback_does_not_answer(host: str, flags: tuple[str, ...], holds: Run, listen: Listen) -> None:
    server = listen(socket.AF_INET, socket.SOCK_DGRAM, (host, 0))

    holds(Attack("network", "ask", (host, str(server.sock.getsockname()[1]))), *flags)
    assert server.met_by_the_control_alone()


def test_no_resolver_is_named(holt: Holt) -> None:
    assert "nameserver" not in holt.sh("cat /etc/resolv.conf").out


def test_a_name_is_not_resolved(holt: Holt) -> None:
    """The name of the host itself: resolving it needs no packet, and without a sandbox it would succeed."""
    script = f"getent hosts {socket.gethostname()}-of-the-host; getent hosts {socket.gethostname()}"

    assert holt.sh(script).code != 0


@or_with_a_network
def test_abstract_sockets_of_the_host_can_not_be_reached(flags: tuple[str, ...], holds: Run, listen: Listen) -> None:
    name = f"holt-test-{secrets.token_hex(8)}"
    server = listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{name}")

    holds(Attack("network", "unix-abstract", (name,)), *flags)
    assert server.met_by_the_control_alone()


def test_a_socket_in_the_runtime_directory_can_not_be_reached(
    holds: Run, listen: Listen, identity: Identity
) -> None:
    """For example in /run/user: the session's bus, agents, Wayland, a user's Docker."""
    path = identity.runtime / "bus"
    identity.runtime.chmod(0o755)
    listen(socket.AF_UNIX, socket.SOCK_STREAM, str(path))
    path.chmod(0o777)
    try:
        holds(Attack("network", "unix-path", (str(path),)))
    finally:
        path.unlink()
        identity.runtime.chmod(0o700)


@pytest.mark.parametrize("path", (
    "/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", "/run/docker.sock",
    "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/systemd/private",
    "/run/systemd/notify", "/run/systemd/journal/socket", "/run/nscd/socket", "/run/snapd.socket",
    "/run/systemd/resolve/io.systemd.Resolve", "/dev/log", "/tmp/.X11-unix/X0",
))
def test_sockets_of_the_system_are_not_there(path: str, holt: Holt) -> None:
    """The sockets do not exist inside. A control is unnecessary, because nobody can connect to a missing file."""
    assert holt.sh(f"test -e {path}").code == 1


# --- socket families ---

FAMILIES = {
    "packet": (17, 3, 768), "packet-datagram": (17, 2, 768), "raw": (2, 3, 1), "raw-ipv6": (10, 3, 58),
    "vsock": (40, 1, 0), "vsock-high-bit": ("+40", 1, 0), "alg": (38, 5, 0), "key": (15, 3, 2),
    "netlink-audit": (16, 3, 9), "netlink-netfilter": (16, 3, 12), "netlink-xfrm": (16, 3, 6),
    "netlink-uevent": (16, 3, 15), "netlink-connector": (16, 3, 11), "netlink-crypto": (16, 3, 21),
    "bluetooth": (31, 5, 0), "can": (29, 3, 1), "tipc": (30, 1, 0), "rds": (21, 5, 0), "xdp": (44, 3, 0),
    "smc": (43, 1, 0), "qrtr": (42, 2, 0), "nfc": (39, 3, 0), "kcm": (41, 2, 0), "x25": (9, 5, 0),
    "ax25": (3, 5, 0), "appletalk": (5, 2, 0), "ipx": (4, 2, 0), "pppox": (24, 1, 0), "llc": (26, 2, 0),
    "phonet": (35, 2, 0), "caif": (37, 5, 0), "infiniband": (27, 3, 0), "mctp": (45, 2, 0),
    "netrom": (6, 5, 0), "rose": (11, 5, 0), "decnet": (12, 1, 0), "econet": (19, 2, 0),
    "rxrpc": (33, 2, 2), "isdn": (34, 3, 0), "ieee802154": (36, 3, 0), "sctp": (2, 1, 132),
    "mptcp": (2, 1, 262), "udplite": (2, 2, 136), "dccp": (2, 6, 33),
}
NEEDS_CAPABILITIES = {"packet", "packet-datagram", "raw", "raw-ipv6", "key", "netlink-audit", "xdp"}
# The capability is checked in the host's own network namespace, or in that of its user namespace: capable(), not
# ns_capable().
NEEDS_ROOT = {"nfc", "llc", "phonet", "caif", "isdn", "ieee802154"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_rare_socket_family_is_refused(family: str, holds: Run) -> None:
    """Each is a part of the kernel that normal programs do not need. vsock also leads out of a network namespace."""
    control = "caps" if family in NEEDS_CAPABILITIES else "root" if family in NEEDS_ROOT else "user"

    holds(Attack("network", "family", tuple(map(str, FAMILIES[family])), control))
