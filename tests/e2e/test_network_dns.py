# SPDX-License-Identifier: Apache-2.0
"""Names inside a sandbox with a network: allowed ones have addresses, all others do not exist, and nothing waits."""

from __future__ import annotations

import ipaddress

import pytest

from lib import netlab
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Holt
from lib.sessions import Sessions
from lib.tools import needs

pytestmark = [needs("python3"), pytest.mark.alike]

POOLS = (ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("fd00:686f:6c74::/64"))
INET, INET6 = 2, 10
A, SOA, PTR, MX, TXT, AAAA, SRV, SVCB, HTTPS, ANY = 1, 6, 12, 15, 16, 28, 33, 64, 65, 255
NOERROR, NXDOMAIN = 0, 3


def in_pools(addresses: list[str]) -> bool:
    return all(any(ipaddress.ip_address(a) in pool for pool in POOLS) for a in addresses)


# --- which names exist ---


@pytest.mark.identities("user", "root", "nested")
def test_an_allowed_name_has_addresses_of_the_sandbox_s_own(holt: Holt) -> None:
    both, four, six = probe(
        holt, ["lookup", "web.example.org"], ["lookup", "four.example.org"], ["lookup", "six.example.org"],
        net="web.example.org,four.example.org,six.example.org")

    assert in_pools([*both.value, *four.value, *six.value])
    assert [":" in address for address in both.value] == [False, True]
    assert [":" in address for address in four.value + six.value] == [False, True]


def test_names_have_different_addresses_that_stay(holt: Holt) -> None:
    one, two, again = probe(
        holt, ["lookup", "web.example.org"], ["lookup", "other.example.org"], ["lookup", "web.example.org"],
        net="web.example.org,other.example.org")

    assert not set(one.value) & set(two.value) and one.value == again.value


def test_each_name_below_a_wildcard_has_its_own_address(holt: Holt) -> None:
    names = [f"n{i}.wild.example.com" for i in range(50)]
    answers = probe(holt, *(["lookup", name] for name in names * 2), net="*.wild.example.com:80")

    assert len({tuple(answer.value) for answer in answers}) == 50
    assert [answer.value for answer in answers[:50]] == [answer.value for answer in answers[50:]]


def test_any_other_name_does_not_exist_and_is_asked_nowhere(holt: Holt, lab: Lab) -> None:
    names = ("other.example.org", "example.org", "org", "x.web.example.org", "webXexample.org", "secret-data.attacker.example")
    answers = probe(holt, *(["lookup", name] for name in names), net="web.example.org,*.wild.example.com:80")

    assert answers == ["EAI_NONAME"] * len(names) and all(answer.at_once for answer in answers)
    assert not {row["name"] for row in lab.log("dns")} & set(names)


def test_an_allowed_name_that_does_not_exist_outside(holt: Holt) -> None:
    answers = probe(
        holt, ["lookup", "missing.example.org"], ["dns", "missing.example.org", A], ["dns", "missing.example.org", AAAA],
        net="missing.example.org")

    assert answers[0] == "EAI_NONAME" and [answer["code"] for answer in answers[1:]] == [NXDOMAIN] * 2


def test_a_family_without_addresses_has_no_data(holt: Holt) -> None:
    four, six, empty = probe(
        holt, ["dns", "six.example.org", A], ["dns", "four.example.org", AAAA], ["dns", "empty.example.org", A],
        net="four.example.org,six.example.org,empty.example.org")

    assert [(a["code"], a["answers"]) for a in (four, six, empty)] == [(NOERROR, 0)] * 3


@pytest.mark.parametrize("name", ("www.example.org", "chain.example.org", "alias-to-other.example.org"))
def test_an_alias_outside_needs_no_rule_for_its_target(name: str, holt: Holt) -> None:
    reply, target = probe(holt, ["get", name], ["lookup", "web.example.org"], net=f"{name}:80")

    assert reply["host"] == name and target == "EAI_NONAME"


def test_names_of_underscores_and_idn(holt: Holt) -> None:
    answers = probe(
        holt, ["get", "xn--bcher-kva.example.org"], ["get", "under_score.example.org"],
        net="xn--bcher-kva.example.org,under_score.example.org")

    assert [answer["host"] for answer in answers] == ["xn--bcher-kva.example.org", "under_score.example.org"]


@pytest.mark.parametrize("name", ("WEB.EXAMPLE.ORG", "wEb.ExAmPlE.oRg", "web.example.org."))
def test_case_and_a_trailing_dot_make_no_difference(name: str, holt: Holt) -> None:
    (reply,) = probe(holt, ["get", name], net="web.example.org")

    assert reply["port"] == 80


def test_localhost_and_the_sandbox_s_own_name_still_resolve(holt: Holt) -> None:
    assert holt.sh("getent hosts localhost && getent hosts $(hostname)", "--net", "web.example.org").code == 0


def test_addresses_need_no_resolver(holt: Holt, lab: Lab) -> None:
    assert probe(holt, ["lookup", "127.0.0.1"], ["lookup", netlab.WEB4], net="web.example.org") == [["127.0.0.1"], [netlab.WEB4]]
    assert not lab.log("dns")


# --- replies ---


def test_flags_of_getaddrinfo(holt: Holt) -> None:
    """With AI_ADDRCONFIG, a host whose only addresses are loopback addresses would find nothing."""
    addrconfig, mapped, four, six = probe(
        holt, ["lookup", "web.example.org", 0, 0x20], ["lookup", "web.example.org", INET6, 0x18],
        ["lookup", "web.example.org", INET, 0x20], ["lookup", "web.example.org", INET6, 0x20], net="web.example.org")

    assert len(addrconfig.value) == 2 and len(four.value) == 1 and len(six.value) == 1 and len(mapped.value) == 2


@pytest.mark.parametrize("family", (INET, INET6))
def test_an_address_has_its_name(family: int, holt: Holt) -> None:
    program = f"""
import socket
for name in ("web.example.org", "other.example.org"):
    address = socket.getaddrinfo(name, 80, {family})[0][4][0]
    print(socket.getnameinfo((address, 80), socket.NI_NAMEREQD)[0])
try:
    socket.getnameinfo(("203.0.113.10", 80), socket.NI_NAMEREQD)
except OSError:
    print("none")
"""
    result = holt(["run", "--net", "web.example.org,other.example.org", "--", "python3", "-c", program])

    assert result.ok().out == "web.example.org\nother.example.org\nnone\n"


def test_a_service_s_records_belong_to_its_host(holt: Holt) -> None:
    """Chromium asks for _8443._https.HOST. Nobody could grant such a name."""
    allowed, other, address = answers = probe(
        holt, ["dns", "_8443._https.web.example.org", HTTPS], ["dns", "_ldap._tcp.other.example.org", SRV],
        ["dns", "_8443._https.web.example.org", A], net="web.example.org")

    assert (allowed["code"], other["code"], address["code"]) == (NOERROR, NXDOMAIN, NXDOMAIN) and allowed["answers"] == 0
    assert [d["grant"] for d in answers.result.report["denials"]] == [
        "--net other.example.org", "--net _8443._https.web.example.org"]


@pytest.mark.parametrize("name", ("missing", "failing"))
def test_an_allowed_name_that_the_host_cannot_resolve_is_told(name: str, holt: Holt) -> None:
    """The user would otherwise look for the mistake in the rules. Below a wildcard, programs try names that do not exist."""
    script = f"getent hosts {name}.example.org"
    exact, below, unused = (holt.sh(script, "--net", rule) for rule in (f"{name}.example.org", "*.example.org", "web.example.org"))

    told = f"holt: could not resolve {name}.example.org: a rule allows it, but the host found no address for it\n"
    assert exact.err == told and below.err == (told if name == "failing" else "") and "no rule" in unused.err


def test_a_session_tells_allowed_hosts_that_were_not_found_or_reached(sessions: Sessions) -> None:
    session = sessions.create("w", "--net", "missing.example.org,web.example.org:81")

    missing, refusing = session.sh("getent hosts missing.example.org"), session.sh("curl -sS http://web.example.org:81/")
    result = session.sh("getent hosts missing.example.org; true")

    assert missing.err == "holt: could not resolve missing.example.org: a rule allows it, but the host found no address for it\n"
    assert "holt: could not connect to web.example.org:81 (ECONNREFUSED)\n" in refusing.err and "has only" not in refusing.err
    assert result.code == 0 and result.err == ""


@pytest.mark.parametrize("kind", (SOA, MX, TXT, SRV, SVCB, HTTPS, ANY, 10, 257, 65535))
def test_other_types_have_no_data(kind: int, holt: Holt, lab: Lab) -> None:
    """Programs would learn addresses from HTTPS and SVCB, and TXT carries data out and in."""
    allowed, other = probe(holt, ["dns", "web.example.org", kind], ["dns", "other.example.org", kind], net="web.example.org")

    assert (allowed["code"], other["code"]) == (NOERROR, NXDOMAIN)
    if kind != ANY:
        assert allowed["answers"] == 0
    assert {row["type"] for row in lab.log("dns")} <= {"A", "AAAA"}


@pytest.mark.parametrize("over", ("udp", "tcp"))
def test_the_resolver_speaks_udp_and_tcp(over: str, holt: Holt) -> None:
    plain, edns, other = probe(
        holt, ["dns", "web.example.org", A, over], ["dns", "web.example.org", AAAA, over, "198.18.0.1", True],
        ["dns", "other.example.org", A, over], net="web.example.org")

    assert [a["code"] for a in (plain, edns, other)] == [NOERROR, NOERROR, NXDOMAIN]
    assert all(a["id"] for a in (plain, edns, other)) and plain["answers"] == edns["answers"] == 1


def test_malformed_queries_do_no_harm(holt: Holt) -> None:
    program = """
import os, socket, struct
name = b"\\3web\\7example\\3org\\0" + struct.pack("!2H", 1, 1)
head = lambda *counts: struct.pack("!6H", 1, 256, *counts)
bad = [b"", b"x", head(1, 0, 0, 0), head(1, 0, 0, 0) + b"\\xc0\\x0c" + bytes(4), head(65535, 0, 0, 0) + name, head(0, 0, 0, 0),
       head(1, 0, 0, 0) + b"\\x3f" + bytes(20), head(2, 0, 0, 0) + name * 2, struct.pack("!6H", 1, 0x8180, 1, 0, 0, 0) + name,
       struct.pack("!6H", 1, 0x2800, 1, 0, 0, 0) + name, head(1, 0, 0, 9) + name, head(1, 0, 0, 0) + b"\\0" + bytes(4), os.urandom(1200),
       head(1, 0, 0, 0) + b"\\3w\\0b\\7example\\3org\\0" + struct.pack("!2H", 1, 1), bytes(65000)]
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.connect(("198.18.0.1", 53))
for data in bad:
    udp.send(data)
    try:
        tcp = socket.create_connection(("198.18.0.1", 53)); tcp.sendall(struct.pack("!H", len(data)) + data); tcp.close()
    except OSError: pass
idle = [socket.create_connection(("198.18.0.1", 53)) for _ in range(30)]
for end in idle: end.send(b"\\0")
print(bool(socket.getaddrinfo("web.example.org", 80)))
"""
    result = holt(["run", "--net", "web.example.org", "--", "python3", "-c", program])

    assert result.ok().out == "True\n"


MANY = """
import concurrent.futures, socket, sys
def find(name):
    try: return socket.getaddrinfo(name, 80, socket.AF_INET)[0][4][0]
    except socket.gaierror: return None
names = [f"n{i}.wild.example.com" for i in range(int(sys.argv[1]))] * 3
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    print(len(set(pool.map(find, names)) - {None}))
"""


def test_many_queries_at_once(holt: Holt) -> None:
    result = holt(["run", "--net", "*.wild.example.com:80", "--", "python3", "-c", MANY, "80"])

    assert result.ok().out == "80\n"


# --- the outside's resolver ---


def test_a_slow_name_holds_up_no_other(holt: Holt) -> None:
    program = """
import socket, threading, time
threads = [threading.Thread(target=lambda n=n: socket.getaddrinfo(n, 80), daemon=True)
           for n in ("slow.example.org", "dead.example.org")]
for thread in threads: thread.start()
time.sleep(0.1)
started = time.monotonic()
socket.getaddrinfo("web.example.org", 80)
print(time.monotonic() - started < 0.8)
threads[0].join(20)
print(not threads[0].is_alive())
"""
    result = holt(
        ["run", "--net", "web.example.org,slow.example.org,dead.example.org", "--", "python3", "-c", program])

    assert result.ok().out == "True\nTrue\n"


@pytest.mark.parametrize("name", ("failing", "refusing-dns", "loop", pytest.param("garbage", marks=pytest.mark.slow)))
def test_a_failing_resolver_is_a_failing_lookup(name: str, holt: Holt) -> None:
    (answer,) = probe(holt, ["lookup", f"{name}.example.org"], net=f"{name}.example.org")

    assert str(answer.value).startswith("EAI_") and answer.seconds < 12


@pytest.mark.slow
def test_a_resolver_that_does_not_answer_is_given_up(holt: Holt) -> None:
    (answer,) = probe(holt, ["lookup", "dead.example.org"], net="dead.example.org")

    assert answer == "EAI_AGAIN" and answer.seconds < 12


def test_a_long_answer_comes_by_tcp(holt: Holt, lab: Lab) -> None:
    (reply,) = probe(holt, ["get", "many.example.org"], net="many.example.org")

    assert reply["address"] in (netlab.WEB4, netlab.OTHER4)


# --- names that lead elsewhere ---


@pytest.mark.parametrize("kind", (*netlab.FORBIDDEN, *netlab.FORBIDDEN_BARE))
def test_a_name_must_not_lead_to_a_special_address(kind: str, holt: Holt, lab: Lab) -> None:
    name = f"{kind}.bad.example.org"
    (answer,) = probe(holt, ["say", name, 80, "GET / HTTP/1.1\r\nHost: " + name + "\r\n\r\n"], net=f"{name}:80")

    assert answer in ("EAI_NONAME", "EAI_NODATA", "ECONNREFUSED", "ECONNRESET", "EPIPE"), answer
    assert answer.at_once and not lab.log("tcp")


def test_the_wildcard_of_special_addresses_does_not_help(holt: Holt, lab: Lab) -> None:
    names = [f"{kind}.bad.example.org" for kind in netlab.FORBIDDEN]
    probe(holt, *(["connect", name, 80] for name in names), net="*.bad.example.org:80,bad.example.org:1-20")

    assert not lab.log("tcp")


def test_a_refused_special_address_is_listed(holt: Holt) -> None:
    result = probe(
        holt, ["say", "private-10.bad.example.org", 80, "x"], net="private-10.bad.example.org:80").result

    (denial,) = result.report["denials"]
    assert denial["what"] == "private-10.bad.example.org" and denial["grant"] is None and denial["why_not"]


@pytest.mark.parametrize("kind", ("private-10", "loopback", "metadata", "unique-local"))
def test_a_block_allows_a_special_address(kind: str, holt: Holt) -> None:
    address = netlab.FORBIDDEN[kind]
    block = f"[{address}]" if ":" in address else address
    (reply,) = probe(holt, ["get", f"{kind}.bad.example.org"], net=f"{kind}.bad.example.org:80,{block}:80")

    assert reply["address"] == address


def test_a_block_allows_its_ports_only(holt: Holt, lab: Lab) -> None:
    (answer,) = probe(
        holt, ["say", "ten.corp.example.org", 8080, "x"], net="ten.corp.example.org:8080,10.1.0.0/16:80")

    assert answer in ("ECONNREFUSED", "ECONNRESET", "EPIPE", "EAI_NONAME", "EAI_NODATA") and not lab.log("tcp")


def test_of_several_addresses_only_the_public_ones_are_used(holt: Holt, lab: Lab) -> None:
    answers = probe(holt, *[["get", "mixed.example.org"]] * 10, net="mixed.example.org:80")

    assert {answer["address"] for answer in answers} == {netlab.WEB4}


def test_an_alias_to_a_special_address_is_refused(holt: Holt, lab: Lab) -> None:
    (answer,) = probe(holt, ["say", "alias-to-private.example.org", 80, "x"], net="alias-to-private.example.org:80")

    assert answer in ("EAI_NONAME", "EAI_NODATA", "ECONNREFUSED", "ECONNRESET", "EPIPE") and not lab.log("tcp")


def test_rebinding_leads_nowhere(holt: Holt, lab: Lab) -> None:
    """The name has a public address first and that of the host's loopback later."""
    lab.name("rebind.example.org", turns=[[netlab.WEB4], ["127.0.0.1"]], ttl=0)
    steps = [["say", "rebind.example.org", 80, "GET / HTTP/1.1\r\nHost: rebind.example.org\r\nConnection: close\r\n\r\n"]] * 6

    probe(holt, *steps, net="rebind.example.org:80")

    assert {row["address"] for row in lab.log("tcp")} <= {netlab.WEB4}


def test_a_name_that_moves_is_followed(holt: Holt, lab: Lab) -> None:
    """The address inside stays, although that outside changes. An answer is kept for a second at least."""
    lab.name("moving.example.org", turns=[[netlab.WEB4], [netlab.OTHER4]], ttl=0)
    step = [["lookup", "moving.example.org"], ["get", "moving.example.org"]]
    steps = [*step, ["sleep", 1.1], *step]

    answers = probe(holt, *steps, net="moving.example.org:80")

    assert answers[0].value == answers[3].value and answers[1]["address"] == netlab.WEB4
    assert answers[-1]["address"] == netlab.OTHER4


# --- programs that resolve names by themselves ---


@needs("dig")
def test_dig(holt: Holt) -> None:
    result = holt.sh("dig +short web.example.org; dig other.example.org | grep status; dig +tcp +short web.example.org",
                     "--net", "web.example.org")

    assert result.ok().out.count("198.18.") == 2 and "NXDOMAIN" in result.out


@needs("node")
def test_node_s_own_resolver(holt: Holt) -> None:
    program = """
const dns = require("dns").promises;
(async () => {
    console.log((await dns.resolve4("web.example.org"))[0].startsWith("198.18."));
    await dns.resolve4("other.example.org").catch(e => console.log(e.code));
    await dns.resolveTxt("web.example.org").catch(e => console.log(e.code));
})()
"""
    result = holt(["run", "--net", "web.example.org", "--", "node", "-e", program])

    assert result.ok().out.split() == ["true", "ENOTFOUND", "ENODATA"]


@needs("getent")
def test_getent(holt: Holt) -> None:
    result = holt.sh("getent ahosts web.example.org | wc -l; getent hosts other.example.org; echo $?", "--net", "web.example.org")

    assert result.ok().out.split()[1:] == ["2"] and int(result.out.split()[0]) >= 2
