# SPDX-License-Identifier: Apache-2.0
"""A network by name is a door: nothing comes through it except connections to what the rules name.

The test network (lib/netlab.py) is the host's network here. Its log shows what has left the sandbox. Its servers also listen on its
loopback, its private addresses and its metadata address, so that each attack would succeed without the rules.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib import netlab
from lib.hostile import Attack, Run
from lib.identity import is_root
from lib.leaks import Process, descendants
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import Answers, probe
from lib.sandbox import Holt, Running
from lib.sessions import until
from lib.tools import needs

pytestmark = needs("python3")

NET = "web.example.org:80,web.example.org:8443,*.wild.example.com:8080"
REFUSED = ("ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH", "EPIPE", "EINVAL", "EADDRNOTAVAIL", "ENOTCONN")


def refused(answers: Answers, lab: Lab) -> None:
    assert all(str(answer.value) in REFUSED for answer in answers), answers
    assert not lab.log("tcp")


# --- the capture ---


@pytest.mark.parametrize("host", (
    "127.0.0.1", "127.0.0.2", "::1", "198.18.0.1", "198.18.0.2", "198.18.200.7", "198.19.255.255", "198.18.255.255",
    "fd00:686f:6c74::1", "fd00:686f:6c74::ffff:1", "fd00:686f:6c74:0:1::100", "::ffff:127.0.0.1", "::ffff:198.18.77.1", "0.0.0.0", "::",
))
def test_a_listener_for_all_addresses_does_not_open_others(host: str, holt: Holt, lab: Lab) -> None:
    """The listener of a wildcard's port accepts at each local address, and the host has a server at the loopback."""
    refused(probe(holt, ["say", host, 8080, "GET / HTTP/1.0\r\nHost: x.wild.example.com\r\n\r\n"], net=NET), lab)


def test_an_address_without_a_name_yet_is_refused(holt: Holt, lab: Lab) -> None:
    """Addresses are given out in order, so a program can guess the address of a name that nobody has asked for."""
    refused(probe(holt, *(["say", f"198.18.1.{n}", 8080, "x"] for n in range(1, 30)), net=NET), lab)


BINDS = """
import errno, socket, sys
def attempt(host, port, *options):
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    for level, option in options:
        try: sock.setsockopt(level, option, 1)
        except OSError as error: return errno.errorcode[error.errno]
    try:
        sock.bind((host, port)); sock.listen(); taken.append(sock)
        return "bound"
    except OSError as error: return errno.errorcode[error.errno]
taken = []
address = socket.gethostbyname("web.example.org")
reuse = (socket.SOL_SOCKET, socket.SO_REUSEADDR), (socket.SOL_SOCKET, socket.SO_REUSEPORT)
free, transparent = (socket.IPPROTO_IP, 15), (socket.IPPROTO_IP, 19)
print(attempt(address, 8443), attempt(address, 8443, *reuse), attempt("0.0.0.0", 8443, *reuse), attempt("198.18.0.1", 53, *reuse))
print(attempt("198.18.9.9", 8080, *reuse), attempt("127.0.0.1", 8080, *reuse), attempt("203.0.113.10", 80, transparent))
attempt("203.0.113.10", 8443, free); attempt("198.18.1.7", 8443)
end = socket.create_connection(("web.example.org", 80), timeout=20)
end.sendall(b"GET / HTTP/1.0\\r\\nHost: web.example.org\\r\\n\\r\\n")
print(end.recv(15))
"""


def test_a_program_can_not_take_the_door_s_listeners(holt: Holt) -> None:
    out = holt(["run", "--net", NET, "--", "python3", "-c", BINDS]).ok().out.splitlines()

    assert out[0].split() == ["EADDRINUSE"] * 4
    assert out[1].split()[:2] == ["EADDRINUSE"] * 2 and out[1].split()[2] == "EPERM"
    assert out[2] == "b'HTTP/1.1 200 OK'"


ROUNDABOUT = """
import ctypes, errno, socket, struct, sys
def end(kind=socket.SOCK_STREAM):
    sock = socket.socket(socket.AF_INET, kind); sock.settimeout(0.5); return sock
def report(what, act):
    try: act(); print(what, "done")
    except OSError as error: print(what, errno.errorcode.get(error.errno, type(error).__name__))
target = (sys.argv[1], 80)
def device():
    sock = end(); sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo"); sock.connect(target)
def source(address):
    sock = end(); sock.bind((address, 0)); sock.connect(target)
def freebind():
    sock = end(); sock.setsockopt(socket.IPPROTO_IP, 15, 1); sock.bind(("203.0.113.1", 0)); sock.connect(target)
def mark():
    sock = end(); sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 1); sock.connect(target)
def dontroute():
    sock = end(); sock.setsockopt(socket.SOL_SOCKET, socket.SO_DONTROUTE, 1); sock.connect(target)
def fastopen(): end().sendto(b"GET / HTTP/1.0\\r\\n\\r\\n", 0x20000000, target)
def source_route():
    options = struct.pack("!BBB4s4sx", 131, 11, 4, socket.inet_aton("198.18.1.0"), socket.inet_aton(target[0]))
    sock = end(); sock.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, options); sock.connect(target)
def again():
    sock = end(); sock.connect((socket.gethostbyname("web.example.org"), 80)); sock.connect_ex(target)
    if sock.getpeername()[0] != target[0]: raise OSError(errno.EISCONN, "")
def other_again():
    sock = end(); sock.connect((socket.gethostbyname("web.example.org"), 80)); sock.setblocking(True)
    if ctypes.CDLL(None).connect(sock.fileno(), bytes(16), 16) != 0: raise OSError(errno.EINVAL, "")
    sock.connect(target)
def datagram(): end(socket.SOCK_DGRAM).sendto(b"x", (target[0], 443))
def pktinfo():
    end(socket.SOCK_DGRAM).sendmsg([b"x"], [(0, 8, struct.pack("i4s4s", 1, socket.inet_aton("127.0.0.1"), bytes(4)))], 0, (target[0], 443))
def ping(): end_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1); end_.sendto(bytes([8, 0, 0, 0, 0, 1, 0, 1]), (target[0], 0))
for name in ("device", "freebind", "mark", "dontroute", "fastopen", "source_route", "again", "other_again", "datagram", "pktinfo", "ping"): report(name, globals()[name])
for address in ("127.0.0.1", "198.18.0.1", "198.18.1.0"): report("source", lambda: source(address))
"""


@pytest.mark.parametrize("address", (netlab.WEB4, "10.1.0.5", "169.254.169.254"))
def test_no_option_of_a_socket_leads_around_the_rules(address: str, holt: Holt, lab: Lab) -> None:
    out = holt(["run", "--net", NET, "--", "python3", "-c", ROUNDABOUT, address]).ok().out

    # A datagram to the loopback device is sent, and arrives nowhere.
    done = [line for line in out.splitlines() if line.endswith(" done") and line.split()[0] not in ("pktinfo",)]
    assert not done, out
    log = [row for row in lab.log() if row["what"] in ("tcp", "udp") and row["address"] == address and row["port"] != 80]
    assert not log


CHANGES = """
import ctypes, errno, os, socket, struct
def ask(kind, payload, what):
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    sock.send(struct.pack("=IHHII", 16 + len(payload), kind, 0x405, 1, 0) + payload)
    print(what, errno.errorcode.get(-struct.unpack("=i", sock.recv(4096)[16:20])[0], "done"))
def attribute(kind, data): return struct.pack("=HH", 4 + len(data), kind) + data
address = socket.inet_aton("203.0.113.10")
ask(20, struct.pack("=BBBBI", 2, 32, 0, 0, 1) + attribute(2, address), "address")
ask(24, struct.pack("=8BI", 2, 32, 0, 0, 255, 3, 254, 2, 0) + attribute(1, address) + attribute(4, struct.pack("=I", 1)), "route")
ask(25, struct.pack("=8BI", 2, 15, 0, 0, 255, 3, 254, 2, 0) + attribute(1, socket.inet_aton("198.18.0.0")), "route away")
ask(17, struct.pack("=BxHiII", 0, 0, 1, 0, 0), "link away")
for name in ("ipv4/ip_unprivileged_port_start", "ipv4/ip_nonlocal_bind", "ipv4/conf/all/route_localnet", "ipv4/ip_forward"):
    try: open("/proc/sys/net/" + name, "w").write("0"); print(name, "done")
    except OSError as error: print(name, errno.errorcode[error.errno])
libc = ctypes.CDLL(None, use_errno=True)
for what, flags in (("user", 0x10000000), ("net", 0x40000000)):
    print("unshare", what, "done" if libc.unshare(flags) == 0 else errno.errorcode[ctypes.get_errno()])
fd = os.open("/proc/self/ns/net", os.O_RDONLY)
print("setns", "done" if libc.setns(fd, 0) == 0 else errno.errorcode[ctypes.get_errno()])
"""


def test_nothing_inside_changes_addresses_or_routes(holt: Holt) -> None:
    out = holt(["run", "--net", NET, "--", "python3", "-c", CHANGES]).ok().out

    assert "done" not in out and len(out.splitlines()) == 11, out


RAW = {"packet": (17, 3, 768), "raw": (2, 3, 6), "raw-icmp": (2, 3, 1), "raw-ipv6": (10, 3, 58), "netfilter": (16, 3, 12),
       "xfrm": (16, 3, 6), "xdp": (44, 3, 0)}


@pytest.mark.parametrize("family", RAW)
def test_a_network_brings_no_other_socket_family(family: str, holds: Run) -> None:
    control = "user" if family in ("netfilter", "xfrm") else "caps"

    holds(Attack("network", "family", tuple(map(str, RAW[family])), control), "--net", NET)


# --- the host ---


@pytest.mark.parametrize("address", ("127.0.0.1", "127.0.0.53", "::1", "10.1.0.5", "100.64.0.1", "169.254.169.254", "fd00:ec2::254"))
def test_addresses_of_the_host_stay_out_of_reach(address: str, holt: Holt, lab: Lab) -> None:
    ports = (53, 80, 443, 22, 8443)
    refused(probe(holt, *(["connect", address, port] for port in ports), net=NET), lab)
    assert not lab.log("dns")


@pytest.mark.parametrize("rule", ("localhost:80", "*.localhost:80", "a.localhost:80", "0.0.0.0:80", "[::]:80", "198.18.0.0/24:80",
                                  "198.18.0.1:53", "[fd00:686f:6c74::1]:80"))
def test_a_rule_must_not_name_the_loopback_or_the_sandbox_s_own_block(rule: str, holt: Holt) -> None:
    assert holt(["run", "--net", rule, "--", "true"]).code == 125


DESCRIPTORS = """
import os, pathlib
for process in sorted(p for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()):
    try: fds = sorted(os.readlink(f) for f in (process / "fd").iterdir() if f.name != "3")
    except OSError as error: fds = type(error).__name__
    print((process / "comm").read_text().strip(), len(fds) if process.name == str(os.getpid()) else fds)
print(len(open("/proc/net/unix").readlines()))
"""


def test_no_descriptor_of_the_door_is_inside(holt: Holt) -> None:
    plain, net = (holt(["run", *flags, "--", "python3", "-c", DESCRIPTORS]).ok().out for flags in ((), ("--net", NET)))

    assert plain == net and "egress" not in net


def test_the_resolver_s_answers_name_no_address_of_outside(holt: Holt) -> None:
    out = holt.sh("getent ahosts web.example.org; cat /etc/resolv.conf /etc/hosts", "--net", NET).ok().out

    assert not any(address in out for address in (netlab.WEB4, netlab.WEB6, netlab.RESOLVER))


# --- the processes of the door ---


def doors() -> list[Process]:
    return [process for process in descendants() if process.name.startswith("holt-egress")]


def status(process: Process) -> dict[str, str]:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.fixture
def running(holt: Holt) -> Iterator[Running]:
    """A run that reads commands, and has a door."""
    with holt.start(["run", "--net", NET, "--", "bash"], stdin=subprocess.PIPE) as started:
        started.send("echo ready\n")
        assert started.readline() == "ready"
        yield started


def test_the_processes_have_no_rights(running: Running) -> None:
    found = {status(process)["CapEff"]: status(process) for process in doors()}

    # CAP_NET_BIND_SERVICE and CAP_NET_ADMIN, which count in the sandbox's network alone.
    assert set(found) == {"0" * 16, f"{1 << 10 | 1 << 12:016x}"}
    for each in found.values():
        assert each["NoNewPrivs"] == "1" and each["Seccomp"] == "2" and each["CapPrm"] == each["CapEff"]
        assert each["CapInh"] == each["CapAmb"] == "0" * 16


@pytest.mark.skipif(not is_root(), reason="only root can look at the descriptors of these processes")
def test_the_processes_hold_no_file(running: Running) -> None:
    for process in doors():
        links = [os.readlink(entry) for entry in Path(f"/proc/{process.pid}/fd").iterdir()]
        odd = [link for link in links if not link.startswith(("socket:", "pipe:", "anon_inode:", "/dev/null"))]
        assert not odd, f"{process}: {odd}"


@pytest.mark.skipif(not is_root(), reason="only root can compare the namespaces of these processes")
def test_only_the_maker_is_in_the_sandbox_s_namespaces(running: Running, lab: Lab) -> None:
    def namespaces(pid: int) -> tuple[str, str]:
        return tuple(os.readlink(f"/proc/{pid}/ns/{name}") for name in ("user", "net"))  # type: ignore[return-value]

    by_right = {status(process)["CapEff"]: namespaces(process.pid) for process in doors()}
    outside, maker = by_right["0" * 16], by_right[f"{1 << 10 | 1 << 12:016x}"]
    assert outside[1] == namespaces(lab.process.pid)[1] and maker[1] != outside[1] and maker[0] != outside[0]
    for process in doors():
        assert os.readlink(f"/proc/{process.pid}/ns/pid") == os.readlink("/proc/self/ns/pid")


def test_no_process_inside_can_name_them(running: Running) -> None:
    for process in doors():
        running.send(f"kill -0 {process.pid} 2>/dev/null && echo alive || echo none; test -e /proc/{process.pid}/comm && "
                     f"cat /proc/{process.pid}/comm || echo none\n")
        assert running.readline() == "none"
        assert "egress" not in running.readline()


def test_without_its_process_the_network_is_gone(holt: Holt, lab: Lab) -> None:
    with holt.start(["run", "--net", NET, "--", "bash"], stdin=subprocess.PIPE) as started:
        started.send("echo ready\n")
        assert started.readline() == "ready"
        (serving,) = [process for process in doors() if status(process)["CapEff"] == "0" * 16]
        os.kill(serving.pid, signal.SIGKILL)
        until(lambda: not [p for p in doors() if not p.ended], "the maker ends with holt-egress")
        started.send("exec 3<>/dev/tcp/198.18.1.0/80; echo $?; getent hosts web.example.org; echo $?; echo inside\n")
        assert started.readline() != "0" and started.readline() == "2" and started.readline() == "inside"
        result = started.wait(b"exit 1\n")
    assert "the sandbox lost its network" in result.err and not lab.log("tcp"), str(result)


def test_the_processes_end_with_a_killed_holt(holt: Holt) -> None:
    with holt.start(["run", "--net", NET, "--", "bash"], stdin=subprocess.PIPE) as started:
        started.send("echo ready\n")
        assert started.readline() == "ready" and len(doors()) == 2
        started.kill()
    until(lambda: not [p for p in doors() if not p.ended], "they end")


def test_a_run_without_a_network_has_no_such_process(holt: Holt) -> None:
    with holt.start(["run", "--", "bash"], stdin=subprocess.PIPE) as started:
        started.send("echo ready\n")
        assert started.readline() == "ready" and not doors()


# --- greetings ---


URGENT = """
import socket, sys
end, cut = socket.create_connection(("web.example.org", 80), timeout=20), int(sys.argv[1])
text = b"GET / HTTP/1.1\\r\\nHost: other.example.org\\r\\nConnection: close\\r\\n\\r\\n"
try:
    end.sendall(text[:cut]); end.send(text[cut:cut + 1], socket.MSG_OOB); end.sendall(text[cut + 1:])
    end.shutdown(socket.SHUT_WR)
    print(end.recv(15))
except OSError as error: print(error)
"""


@pytest.mark.parametrize("cut", (1, 3, 8))
def test_an_urgent_byte_hides_no_part_of_a_greeting(cut: int, holt: Holt, lab: Lab) -> None:
    """Reading stops before such a byte, so the greeting seems to end there, but the server gets all of it."""
    out = holt(["run", "--net", "web.example.org:80", "--", "python3", "-c", URGENT, str(cut)]).ok().out

    assert "HTTP" not in out and not lab.log("http"), out


# --- tunnels, and too much of everything ---


def test_an_unlisted_name_carries_nothing_out(holt: Holt, lab: Lab) -> None:
    names = [f"{'a' * 60}.{n}.attacker.example.org" for n in range(50)] + ["x.web.example.org", "web.example.org.attacker.example"]
    probe(holt, *(["lookup", name] for name in names), net=NET)

    assert not lab.log("dns")


def test_labels_below_a_wildcard_carry_little(holt: Holt, lab: Lab) -> None:
    """Long names, and very many new names in a short time, do not leave the sandbox."""
    long = [f"{'a' * 63}.{'b' * 60}.{n}.wild.example.com" for n in range(20)]
    probe(holt, *(["lookup", name] for name in long), net=NET)
    assert not lab.log("dns")

    many = [f"n{n}.wild.example.com" for n in range(400)]
    answers = probe(holt, *(["dns", name, 1] for name in many), net=NET)
    assert {answer["code"] for answer in answers} == {0, 3}
    assert len({row["name"] for row in lab.log("dns")}) < 200


def test_no_other_type_is_asked_outside(holt: Holt, lab: Lab) -> None:
    probe(holt, *(["dns", f"n{n}.wild.example.com", n] for n in (5, 10, 15, 16, 33, 35, 64, 65, 99, 255, 256, 257)), net=NET)

    assert not lab.log("dns")


FLOOD = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
ends = []
for i in range(int(sys.argv[1])):
    try:
        end = socket.create_connection(("web.example.org", 80), timeout=5)
        end.sendall(b"\\x16\\x03\\x01\\x40\\x00\\x01\\x00\\x3f\\xfc" + bytes(8000)); ends.append(end)
    except OSError: break
print(len(ends) > 0, flush=True)
sys.stdin.readline()
for end in ends: end.close()
del ends
end = socket.create_connection(("web.example.org", 80), timeout=60)
end.sendall(b"GET / HTTP/1.0\\r\\nHost: web.example.org\\r\\n\\r\\n")
print(end.recv(15), flush=True)
"""


def memory(process: Process) -> int:
    return int(status(process)["VmRSS"].split()[0])


@pytest.mark.parametrize("count", (300, pytest.param(6000, marks=pytest.mark.slow)))
def test_unfinished_hellos_are_bounded(count: int, holt: Holt) -> None:
    with holt.start(["run", "--net", NET, "--", "python3", "-c", FLOOD, str(count)], stdin=subprocess.PIPE) as started:
        assert started.readline() == "True"
        assert max(memory(process) for process in doors()) < 64 * 1024
        started.send("go on\n")
        assert started.readline() == "b'HTTP/1.1 200 OK'"
        started.wait()


# --- forged answers of the outside ---


def test_the_resolver_outside_can_not_name_the_sandbox_s_own_block(holt: Holt, lab: Lab) -> None:
    """If holt-egress took such an answer, it would connect to an address of the host that is in this block."""
    for name, address in (("own4", "198.18.0.9"), ("own6", "fd00:686f:6c74::1"), ("zero", "0.0.0.0")):
        lab.name(f"{name}.example.org", answers=[address])
    answers = probe(
        holt, *(["say", f"{name}.example.org", 80, "x"] for name in ("own4", "own6", "zero")),
        net="own4.example.org:80,own6.example.org:80,zero.example.org:80")

    assert not lab.log("tcp") and not any(str(answer.value) == "" for answer in answers), answers


def test_denials_quote_hostile_names(holt: Holt) -> None:
    """A name comes from inside, and is printed on the caller's terminal."""
    program = """
import socket, struct
for name in (b"\\x1b[31mred", b"new\\nline", b"\\xff\\xfe", b"a\\0b"):
    query = struct.pack("!6H", 1, 256, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\\3org\\0" + struct.pack("!2H", 1, 1)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); sock.settimeout(20)
    sock.sendto(query, ("198.18.0.1", 53)); print(sock.recv(500)[3] & 15)
"""
    result = holt(["run", "--net", NET, "--", "python3", "-c", program])

    assert set(result.ok().out.split()) <= {"3", "1"}
    assert "\x1b" not in result.err and "\nline" not in result.err
    json.dumps(result.report)


@pytest.mark.parametrize("name", ("host", "HOST.", "none", "allow"))
def test_a_denial_never_offers_a_mode(name: str, holt: Holt) -> None:
    """A program inside chooses the names that are refused. If it asked for "host", a user who copies "--net host" would give it the
    host's whole network."""
    (denial,) = holt.sh(f"getent hosts {name}", "--net", NET).denials.values()

    assert denial["grant"] is None and denial["policy"] is None and denial["why_not"]


@pytest.mark.skipif(not is_root(), reason="only root can look at the descriptors of these processes")
def test_the_caller_s_descriptors_and_directory_stay_out_of_the_door(holt: Holt) -> None:
    """A caller may have leaked a descriptor of a secret file, and may want to unmount its directory."""
    leak = ["sh", "-c", 'exec 3</etc/hostname 7</etc/hostname 9</etc/passwd; exec "$@"', "sh"]
    with holt.start(["run", "--net", NET, "--", "bash"], stdin=subprocess.PIPE, prefix=leak) as started:
        started.send("echo ready\n")
        assert started.readline() == "ready"
        for process in doors():
            links = [os.readlink(entry) for entry in Path(f"/proc/{process.pid}/fd").iterdir()]
            assert not [link for link in links if link.startswith("/etc")]
            assert os.readlink(f"/proc/{process.pid}/cwd") == "/"


MANY = """
import socket, sys
ends = []
address = socket.gethostbyname("web.example.org")
for i in range(int(sys.argv[1])):
    end = socket.socket(); end.setblocking(False); end.connect_ex((address, 80)); ends.append(end)
print("open", flush=True)
sys.stdin.readline()
for end in ends: end.close()
while True:
    try:
        end = socket.create_connection((address, 80), timeout=60)
        end.sendall(b"GET / HTTP/1.0\\r\\nHost: web.example.org\\r\\n\\r\\n")
        print(end.recv(15), flush=True)
        break
    except ConnectionError: pass
"""


def ticks(process: Process) -> int:
    words = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(words[11]) + int(words[12])


def until_idle(process: Process) -> None:
    """Waits until the process uses no time for a while."""
    def idle() -> bool:
        before = ticks(process)
        time.sleep(0.3)
        return ticks(process) == before

    until(idle, "it rests")


@pytest.mark.identities("root")
def test_connections_beyond_the_descriptors_are_refused_and_cost_nothing(holt: Holt) -> None:
    """holt-egress must not spin if it has no descriptor left to accept a connection."""
    with holt.start(["run", "--net", NET, "--", "python3", "-c", MANY, "50"], stdin=subprocess.PIPE,
                    prefix=["prlimit", "--nofile=64"]) as started:
        assert started.readline() == "open"
        (serving,) = [process for process in doors() if status(process)["CapEff"] == "0" * 16]
        until_idle(serving)
        started.send("go on\n")
        assert started.readline() == "b'HTTP/1.1 200 OK'"
