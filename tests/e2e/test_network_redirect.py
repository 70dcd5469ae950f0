# SPDX-License-Identifier: Apache-2.0
"""Rules with more ports than there can be listeners: the packet filter leads all of them to one listener."""

from __future__ import annotations

import json

import pytest

from lib import netlab
from lib.hostile import Hostile
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Holt
from lib.sessions import Session, Sessions, until
from lib.tools import needs

pytestmark = needs("python3")

REFUSED = ("ECONNREFUSED", "ECONNRESET", "EPIPE")
LIMIT = "this kernel cannot redirect ports"


@pytest.fixture
def redirects(holt: Holt) -> None:
    """Skips a host whose kernel cannot redirect ports."""
    if holt(["run", "--net", "web.example.org:*", "--", "true"]).code != 0:
        pytest.skip("the kernel cannot redirect ports, or a container forbids it")


def curl(session: Session, url: str) -> str:
    return session.sh(f"curl -sS -m 20 -o /dev/null -w '%{{http_code}}' {url}").out


works = pytest.mark.usefixtures("redirects")


# --- reached ---


@works
@pytest.mark.identities("user", "root", "nested")
def test_all_ports_of_a_name(holt: Holt) -> None:
    web, alternative, echo, closed, other = probe(
        holt, ["get", "web.example.org"], ["get", "web.example.org", 8080], ["exchange", "web.example.org", 7, "x"],
        ["say", "web.example.org", 65535, "x"], ["lookup", "other.example.org"], net="web.example.org:*")

    assert (web["port"], alternative["port"], echo.value, other.value) == (80, 8080, "x", "EAI_NONAME")
    assert closed in REFUSED and closed.at_once


@works
def test_a_range_has_a_first_and_a_last_port(holt: Holt) -> None:
    first, last, before, after = probe(
        holt, ["get", "web.example.org", 80], ["get", "web.example.org", 8080], ["say", "web.example.org", 79, "x"],
        ["say", "web.example.org", 8081, "x"], net="web.example.org:80-8080")

    assert (first["port"], last["port"]) == (80, 8080) and before == after == "ECONNREFUSED"


@works
def test_both_families_are_redirected(holt: Holt) -> None:
    four, six = probe(
        holt, ["get", "four.example.org", 8080], ["get", "six.example.org", 8080],
        net="*.example.org:*")

    assert (four["address"], six["address"]) == (netlab.WEB4, netlab.WEB6)


@works
def test_only_the_address_of_the_name_is_redirected(holt: Holt) -> None:
    """The addresses of other names are not redirected. An address that stands for no name leads nowhere."""
    web, other, free = probe(
        holt, ["get", "web.example.org", 8080], ["connect", "other.example.org", 8080], ["connect", "198.18.1.77", 8080],
        net="web.example.org:*,other.example.org:80")

    assert web["port"] == 8080 and other == "ECONNREFUSED" and free in ("ECONNREFUSED", "ENETUNREACH")


@works
def test_a_wildcard_s_ports_are_not_another_name_s(holt: Holt) -> None:
    wild, other, allowed = probe(
        holt, ["get", "a.wild.example.com", 8080], ["say", "web.example.org", 8080, "x"], ["get", "web.example.org"],
        net="*.wild.example.com:1-65535,web.example.org:80")

    assert (wild["port"], allowed["port"]) == (8080, 80) and other in REFUSED


@works
def test_all_ports_of_blocks_of_addresses(holt: Holt) -> None:
    four, six, outside, private = probe(
        holt, ["get", netlab.WEB4, 8080], ["get", netlab.WEB6, 8080, f"[{netlab.WEB6}]"], ["connect", netlab.UNREACHABLE4, 80],
        ["connect", "10.1.0.5", 80], net="203.0.113.0/24:*,[2001:db8::]/32:*")

    assert (four["address"], six["address"]) == (netlab.WEB4, netlab.WEB6)
    assert outside == private == "ENETUNREACH"


@works
def test_the_whole_internet(holt: Holt) -> None:
    web, private, own = probe(
        holt, ["get", netlab.WEB4, 8080], ["say", "10.1.0.5", 80, "x"], ["listen", "127.0.0.1", 8080], net="0.0.0.0/0:*")

    assert web["address"] == netlab.WEB4 and private in (*REFUSED, "ENETUNREACH") and own == "mine"


@works
def test_many_ranges_keep_what_listeners_they_can_have(holt: Holt) -> None:
    """The smaller rules have listeners, which a name of another rule proves by its error."""
    answers = probe(
        holt, ["get", "web.example.org", 8080], ["get", "other.example.org", 8080], ["get", "a.wild.example.com", 80],
        ["connect", "other.example.org", 8081],
        net="web.example.org:8000-8400,other.example.org:8000-8080,*.wild.example.com:80")

    assert [answer["port"] for answer in answers[:3]] == [8080, 8080, 80] and answers[3] == "ECONNREFUSED"


@works
def test_the_greeting_is_still_judged(holt: Holt) -> None:
    answers = probe(
        holt, ["get", "web.example.org", 8080, "other.example.org"], ["tls", "web.example.org", 8443, "other.example.org"],
        net="web.example.org:*")

    assert answers[0].value in (*REFUSED, "EOF") and answers[1].value in (*REFUSED, "EOF")


@works
def test_errors_of_the_real_connection(holt: Holt) -> None:
    answers = probe(
        holt, ["connect", "refused.example.org", 5000], ["connect", "unreachable.example.org", 5000],
        ["dial_many", 300, "web.example.org", 8080], net="*.example.org:*")

    if answers.result.report["network"]["level"] == 2:
        assert answers == ["ECONNREFUSED", "EHOSTUNREACH", {"ok": 300}]


@works
@pytest.mark.identities("user")
def test_a_kernel_that_cannot_queue(holt: Holt, hostile: Hostile) -> None:
    answers = probe(
        holt, ["get", "web.example.org", 8080], ["say", "refused.example.org", 80, "x"], ["say", "other.example.org", 8080, "x"],
        net="web.example.org:*,refused.example.org:*,other.example.org:80", prefix=hostile.refusing_queue())

    assert answers.result.report["network"]["level"] == 1
    assert answers[0]["port"] == 8080 and answers[1] in REFUSED and answers[2] == "ECONNREFUSED"


# --- the program's own servers, and other ports ---


SERVE = """
import json, socket
results = []
for bound, asked in json.loads(PAIRS):
    for port in (80, 8080):
        family = socket.AF_INET6 if ":" in bound else socket.AF_INET
        with socket.create_server((bound, port), family=family) as server:
            with socket.create_connection((asked, port), timeout=20) as end:
                server.settimeout(20)
                with server.accept()[0] as peer:
                    peer.sendall(b"mine")
                    results.append(end.recv(9).decode())
print(json.dumps(results))
"""


@works
def test_programs_still_serve_on_every_port(holt: Holt) -> None:
    """Programs can also bind all addresses, because no listener takes the port of a redirected rule."""
    pairs = [("127.0.0.1", "127.0.0.1"), ("127.0.0.9", "127.0.0.9"), ("0.0.0.0", "127.0.0.1"), ("0.0.0.0", "198.18.0.1"),
             ("198.18.0.1", "198.18.0.1"), ("::1", "::1"), ("::", "fd00:686f:6c74::1")]
    result = holt(["run", "--net", "*.example.org:*,0.0.0.0/0:*,[::]/0:*,127.0.0.0/8:*", "--", "python3", "-c",
                   SERVE.replace("PAIRS", repr(json.dumps(pairs)))])

    assert json.loads(result.ok().out) == ["mine"] * len(pairs) * 2


@works
def test_imported_ports_and_the_proxy(holt: Holt) -> None:
    mine, through = probe(
        holt, ["get", "127.0.0.1", 3000], ["socks", "web.example.org", 7, "x"], net="*.example.org:*",
        flags=("--import", "80:3000", "--proxy"))

    assert mine["address"] == "127.0.0.1" and through == "x"


@works
@needs("curl")
@pytest.mark.identities("user", "root")
def test_a_published_port(sessions: Sessions, lab: Lab) -> None:
    session = sessions.create("w", "--net", "*.example.org:*", "--publish", "18080:3000")
    session.sh("python3 -m http.server 3000 > /dev/null 2>&1 &").ok()

    until(lambda: lab.run(["curl", "-sS", "http://127.0.0.1:18080/"]).returncode == 0, "the server answers")


# --- live grants ---


@works
@needs("curl")
def test_a_live_session_gets_all_ports(sessions: Sessions) -> None:
    session = sessions.create("w", "--net", "web.example.org:80")
    assert curl(session, "http://web.example.org:8080/") == "000"

    for grant, url in (("web.example.org:*", "http://web.example.org:8080/"), ("*.example.org:1-65535", "http://other.example.org:8080/"),
                       ("203.0.113.0/24:*", f"http://{netlab.OTHER4}:8080/"), ("web.example.org:*", "http://web.example.org/")):
        session("allow", f"net:{grant}").ok()
        assert curl(session, url) == "200", grant
    assert curl(session, "http://a.wild.example.com:8080/") == "000"


@works
@needs("curl")
def test_a_grant_adds_ranges_until_listeners_are_too_many(sessions: Sessions) -> None:
    session = sessions.create("w", "--net", "web.example.org:8000-8100")
    assert curl(session, "http://web.example.org:8080/") == "200"

    session("allow", "net:other.example.org:8000-8200").ok()

    assert curl(session, "http://other.example.org:8080/") == "200" == curl(session, "http://web.example.org:8080/")
    assert curl(session, "http://other.example.org:80/") == "000"


@works
@needs("curl")
def test_a_grant_of_all_ports_for_one_connection(sessions: Sessions) -> None:
    session = sessions.create("w", "--net", "web.example.org:80")
    session.out("true")
    session("allow", "--once", "net:other.example.org:*").ok()

    assert [curl(session, "http://other.example.org:8080/") for _ in range(2)] == ["200", "000"]
    session("allow", "net:other.example.org:*").ok()
    assert curl(session, "http://other.example.org:8080/") == "200" == curl(session, "http://web.example.org/")


# --- a kernel that cannot ---


def test_a_kernel_that_cannot_redirect_names_the_rule_and_the_limit(holt: Holt, hostile: Hostile) -> None:
    for rule in ("web.example.org:*", "*.example.org:1024-9999", "10.0.0.0/8:*"):
        result = holt(["run", "--net", f"web.example.org:80,{rule}", "--", "true"], prefix=hostile.refusing_packet_filter())

        assert f'rule "{rule}" has too many ports' in result.refusal() and LIMIT in result.refusal() and "512" in result.refusal()
        assert result.cure == "Change the rules: --net, or network.allow of the policy."


def test_a_grant_that_a_kernel_cannot_carry_out(sessions: Sessions, hostile: Hostile) -> None:
    session = sessions.create("w", "--net", "web.example.org:80")
    session("exec", "--", "true", prefix=hostile.refusing_packet_filter()).ok()

    refused = session("allow", "net:other.example.org:*")

    assert refused.code == 125 and "more than 512 listeners" in refused.err and LIMIT in refused.err
    assert curl(session, "http://web.example.org/") == "200"
