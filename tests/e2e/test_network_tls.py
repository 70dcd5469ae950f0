# SPDX-License-Identifier: Apache-2.0
"""The name in a TLS hello and the Host of plain HTTP must be the name that the program asked the resolver for."""

from __future__ import annotations

import pytest

from lib import netlab
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Holt
from lib.tools import needs

pytestmark = [needs("python3"), pytest.mark.alike]

ENDED = ("ECONNRESET", "EPIPE", "EOF", "TLS", "ECONNREFUSED")


def reached(lab: Lab, what: str) -> list[object]:
    return [row.get("sni" if what == "tls" else "host") for row in lab.log(what)]


# --- TLS ---


@pytest.mark.identities("user", "root", "nested")
def test_the_same_name_passes(holt: Holt) -> None:
    (reply,) = probe(holt, ["tls", "web.example.org"], net="web.example.org")

    assert (reply["sni"], reply["host"]) == ("web.example.org", "web.example.org")


@pytest.mark.parametrize("sni", ("other.example.org", "a.web.example.org", "example.org", "web.example.orgx"))
def test_another_name_is_refused_at_once(sni: str, holt: Holt, lab: Lab) -> None:
    (answer,) = probe(holt, ["tls", "web.example.org", 443, sni], net="web.example.org")

    assert answer in ENDED and answer.at_once and reached(lab, "tls") == []


def test_another_allowed_name_is_another_name(holt: Holt, lab: Lab) -> None:
    """Without this check, the rule for one name would open the address of another."""
    (answer,) = probe(holt, ["tls", "web.example.org", 443, "other.example.org"], net="web.example.org,other.example.org")

    assert answer in ENDED and reached(lab, "tls") == []


def test_the_refused_name_is_listed(holt: Holt) -> None:
    result = probe(holt, ["tls", "web.example.org", 443, "other.example.org"], net="web.example.org").result

    (denial,) = result.report["denials"]
    assert denial["what"] == "web.example.org:443" and "other.example.org" in str(denial)


def test_case_makes_no_difference(holt: Holt) -> None:
    (reply,) = probe(holt, ["tls", "web.example.org", 443, "WEB.Example.ORG"], net="web.example.org")

    assert reply["sni"].lower() == "web.example.org"


def test_every_port_is_judged(holt: Holt, lab: Lab) -> None:
    answers = probe(
        holt, ["tls", "web.example.org", 8443], ["tls", "web.example.org", 8443, "other.example.org"],
        ["tls", "web.example.org", 80, "other.example.org"], net="web.example.org:8443,web.example.org:80")

    assert answers[0]["port"] == 8443 and all(answer in ENDED for answer in answers[1:])
    assert reached(lab, "tls") == ["web.example.org"]


def test_a_hello_without_a_name_passes_unless_it_is_required(holt: Holt) -> None:
    (optional,) = probe(holt, ["tls", "web.example.org", 443, None], net="web.example.org")
    (required,) = probe(holt, ["tls", "web.example.org", 443, None], net="web.example.org", flags=("--sni", "required"))
    (named,) = probe(holt, ["tls", "web.example.org"], net="web.example.org", flags=("--sni", "required"))

    assert optional["sni"] is None and required in ENDED and named["sni"] == "web.example.org"


def test_a_block_has_no_name_to_compare(holt: Holt) -> None:
    with_name, without = probe(
        holt, ["tls", netlab.WEB4, 443, "other.example.org"], ["tls", netlab.WEB4, 443, None], net=f"{netlab.WEB4}:443")

    assert with_name["sni"] == "other.example.org" and without["sni"] is None


@pytest.mark.parametrize("size, pause", (pytest.param(1, 0.002, marks=pytest.mark.slow), (5, 0.002), (100, 0.05)))
def test_a_hello_may_arrive_in_pieces(size: int, pause: float, holt: Holt, lab: Lab) -> None:
    same, other = probe(
        holt, ["tls_in_pieces", "web.example.org", size, pause],
        ["tls_in_pieces", "web.example.org", size, pause, "other.example.org"], net="web.example.org")

    assert same.value == "HTTP/1.1 200 OK" and other in ENDED and reached(lab, "tls") == ["web.example.org"]


HELLO = """
import os, socket, struct, sys

def extension(kind, data):
    return struct.pack("!HH", kind, len(data)) + data

def name(*names, kind=0):
    entries = b"".join(struct.pack("!BH", kind, len(n)) + n for n in names)
    return extension(0, struct.pack("!H", len(entries)) + entries)

def hello(extensions, version=0x0303):
    body = struct.pack("!H", 0x0303) + bytes(32) + b"\\0" + struct.pack("!H", 2) + b"\\x13\\x01" + b"\\1\\0"
    body += struct.pack("!H", len(extensions)) + extensions
    return b"\\1" + len(body).to_bytes(3, "big") + body

def record(data, version=0x0301):
    return struct.pack("!BHH", 22, version, len(data)) + data

WEB, OTHER = b"web.example.org", b"other.example.org"
CASES = {
    "good": record(hello(name(WEB))),
    "records": b"".join(record(hello(name(WEB))[i:i + 10]) for i in range(0, len(hello(name(WEB))), 10)),
    "other in records": b"".join(record(hello(name(OTHER))[i:i + 10]) for i in range(0, len(hello(name(OTHER))), 10)),
    "two names": record(hello(name(WEB, OTHER))),
    "two extensions": record(hello(name(WEB) + name(OTHER))),
    "nul": record(hello(name(WEB + b"\\0.attacker.example"))),
    "nul first": record(hello(name(b"\\0" + WEB))),
    "empty name": record(hello(name(b""))),
    "address": record(hello(name(b"203.0.113.11"))),
    "space": record(hello(name(WEB + b" "))),
    "long": record(hello(name(b"a" * 300))),
    "cut list": record(hello(extension(0, b"\\0\\x30\\0\\0\\x0fweb.example.org"))),
    "length beyond": record(b"\\1\\0\\0\\x40" + hello(name(WEB))[4:]),
    "other after padding": record(hello(extension(21, bytes(3000)) + name(OTHER))),
    "huge": b"".join(record(hello(extension(21, bytes(65000)) + name(OTHER))[i:i + 16000]) for i in range(0, 66000, 16000)),
    "alert first": struct.pack("!BHH", 21, 0x0301, 2) + b"\\1\\0" + record(hello(name(OTHER))),
    "empty record first": record(b"") + record(hello(name(OTHER))),
}
for case in sys.argv[1:]:
    end = socket.create_connection(("web.example.org", 9443), timeout=30)
    try:
        end.sendall(CASES[case])
        data = end.recv(100)
        print(case, "|", "reply" if data[:1] in (b"\\x16", b"\\x15") else repr(data))
    except OSError as error:
        print(case, "|", "refused" if isinstance(error, (ConnectionResetError, BrokenPipeError)) else repr(error))
    end.close()
"""

GOOD = ("good", "records")
BAD = (
    "other in records", "two names", "two extensions", "nul", "nul first", "address", "space", "long", "cut list",
    "other after padding", "huge", "empty record first",
)


def test_forged_hellos(holt: Holt, lab: Lab) -> None:
    result = holt(["run", "--net", "web.example.org:9443", "--", "python3", "-c", HELLO, *GOOD, *BAD])
    ends = dict(line.split(" | ") for line in result.ok().out.splitlines())

    assert {case: ends[case] for case in GOOD} == dict.fromkeys(GOOD, "reply")
    wrong = {case: end for case, end in ends.items() if case in BAD and end not in ("refused", "b''")}
    assert not wrong
    assert not {row["sni"] for row in lab.log("tls")} & {"other.example.org", "203.0.113.11"}


def test_a_hello_that_never_ends_is_given_up_or_waits_alone(holt: Holt) -> None:
    """A client that stops in the middle of its hello holds up no other connection."""
    program = """
import socket
ends = [socket.create_connection(("web.example.org", 443)) for _ in range(50)]
for end in ends: end.sendall(b"\\x16\\x03\\x01\\x02\\x00\\x01")
plain = socket.create_connection(("web.example.org", 80), timeout=20)
plain.sendall(b"GET / HTTP/1.0\\r\\nHost: web.example.org\\r\\n\\r\\n")
print(plain.recv(15))
"""
    result = holt(["run", "--net", "web.example.org", "--", "python3", "-c", program])

    assert result.ok().out == "b'HTTP/1.1 200 OK'\n"


# --- plain HTTP ---


def test_the_same_host_passes(holt: Holt) -> None:
    plain, port, case = probe(
        holt, ["get", "web.example.org"], ["get", "web.example.org", 8080, "web.example.org:8080"],
        ["get", "web.example.org", 80, "WEB.example.org"], net="web.example.org:80,web.example.org:8080")

    assert (plain["host"], port["host"], case["host"]) == ("web.example.org", "web.example.org:8080", "WEB.example.org")


@pytest.mark.parametrize("field", ("other.example.org", "127.0.0.1", "metadata.google.internal", "web.example.org.attacker.example"))
def test_another_host_is_refused(field: str, holt: Holt, lab: Lab) -> None:
    (answer,) = probe(holt, ["get", "web.example.org", 80, field], net="web.example.org,other.example.org")

    assert answer in ENDED and answer.at_once and reached(lab, "http") == []


REQUESTS = {
    "two hosts": "GET / HTTP/1.1\r\nHost: web.example.org\r\nHost: other.example.org\r\n\r\n",
    "absolute": "GET http://other.example.org/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
    "connect": "CONNECT other.example.org:443 HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
    "folded": "GET / HTTP/1.1\r\nX: a\r\n Host: other.example.org\r\nHost:\r\n other.example.org\r\n\r\n",
    "space before colon": "GET / HTTP/1.1\r\nHost : other.example.org\r\n\r\n",
    "bare line feeds": "GET / HTTP/1.1\nHost: other.example.org\n\n",
    "after many fields": "GET / HTTP/1.1\r\n" + "X: y\r\n" * 500 + "Host: other.example.org\r\n\r\n",
    "nul": "GET / HTTP/1.1\r\nHost: web.example.org\0.attacker.example\r\n\r\n",
    "userinfo": "GET / HTTP/1.1\r\nHost: web.example.org@other.example.org\r\n\r\n",
    "lower case": "GET / HTTP/1.1\r\nhOST:other.example.org\r\n\r\n",
    "post": "POST / HTTP/1.1\r\nHost: other.example.org\r\nContent-Length: 0\r\n\r\n",
    "other method": "PROPFIND / HTTP/1.1\r\nHost: other.example.org\r\n\r\n",
    "old version": "GET / HTTP/1.0\r\nHost: other.example.org\r\n\r\n",
    "blank line first": "\r\nGET / HTTP/1.1\r\nHost: other.example.org\r\n\r\n",
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_for_another_host_in_disguise(case: str, holt: Holt, lab: Lab) -> None:
    (answer,) = probe(holt, ["say", "web.example.org", 80, REQUESTS[case]], net="web.example.org")

    assert answer in (*ENDED, "") and reached(lab, "http") == [], answer


def test_a_request_in_pieces(holt: Holt, lab: Lab) -> None:
    text = "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n"

    def pieces(host: str) -> list[str]:
        whole = text.format(host)
        return [whole[i : i + 3] for i in range(0, len(whole), 3)]

    same, other = probe(
        holt, ["say", "web.example.org", 80, *pieces("web.example.org")],
        ["say", "web.example.org", 80, *pieces("other.example.org")], net="web.example.org")

    assert "200 OK" in same.value and other in (*ENDED, "") and reached(lab, "http") == ["web.example.org"]


def test_a_request_without_a_host_passes(holt: Holt) -> None:
    """HTTP/1.0 has no Host field. The connection still goes to an address of the name."""
    (answer,) = probe(holt, ["say", "web.example.org", 80, "GET / HTTP/1.0\r\n\r\n"], net="web.example.org")

    assert "200 OK" in str(answer.value)


def test_a_body_that_looks_like_a_request_is_a_body(holt: Holt) -> None:
    body = "GET / HTTP/1.1\r\nHost: other.example.org\r\n\r\n"
    request = f"POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    (answer,) = probe(holt, ["say", "web.example.org", 80, request], net="web.example.org")

    assert f'"size": {len(body)}' in str(answer.value)


def test_a_request_to_an_address_of_a_block(holt: Holt) -> None:
    by_address, by_name = probe(
        holt, ["get", netlab.WEB4], ["get", netlab.WEB4, 80, "anything.example"], net=f"{netlab.WEB4}:80")

    assert (by_address["host"], by_name["host"]) == (netlab.WEB4, "anything.example")
