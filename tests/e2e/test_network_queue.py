# SPDX-License-Identifier: Apache-2.0
"""The true errors of connections: a program gets the error that it would get outside, and fails over to another address."""

from __future__ import annotations

import json

import pytest

from lib import netlab
from lib.hostile import Hostile
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import Answers, probe
from lib.sandbox import Holt
from lib.sessions import Sessions, until
from lib.tools import needs

pytestmark = needs("python3")


def level(answers: Answers) -> object:
    return answers.result.report["network"]["level"]


@pytest.fixture(autouse=True)
def _queue_works(holt: Holt) -> None:
    """Skips a host whose kernel cannot queue packets."""
    if holt(["run", "--net", "web.example.org", "--", "true"]).report["network"]["level"] != 2:
        pytest.skip("the kernel cannot queue packets of a network namespace, or a container forbids it")


# --- errors ---


@pytest.mark.identities("user", "root", "nested")
def test_programs_get_the_errors_of_the_real_connections(holt: Holt, lab: Lab) -> None:
    answers = probe(
        holt, ["connect", "web.example.org", 80], ["connect", "refused.example.org", 80], ["connect", "unreachable.example.org", 80],
        ["dial_nonblocking", "web.example.org", 80], ["dial_nonblocking", "refused.example.org", 80],
        ["dial_nonblocking", "unreachable.example.org", 80], net="*.example.org:80")

    assert answers == ["ok", "ECONNREFUSED", "EHOSTUNREACH", ["EINPROGRESS", "ok"], ["EINPROGRESS", "ECONNREFUSED"],
                       ["EINPROGRESS", "EHOSTUNREACH"]]
    assert all(answer.at_once for answer in answers) and level(answers) == 2


def test_addresses_of_both_families(holt: Holt) -> None:
    answers = probe(
        holt, ["connect", netlab.WEB4, 80], ["connect", netlab.WEB6, 80], ["connect", netlab.REFUSING4, 80],
        ["connect", netlab.REFUSING6, 80], ["connect", netlab.UNREACHABLE4, 80],
        net="203.0.113.0/24:80,198.51.100.0/24:80,[2001:db8::]/32:80")

    assert answers == ["ok", "ok", "ECONNREFUSED", "ECONNREFUSED", "EHOSTUNREACH"]


def test_a_peer_that_does_not_answer_keeps_the_program_waiting(holt: Holt) -> None:
    """Packets that the program's kernel sends again meanwhile change nothing."""
    dropped, web = probe(
        holt, ["dial_within", "dropped.example.org", 80, 2.5], ["connect", "web.example.org", 80], net="*.example.org:80")

    assert dropped == "TIMEOUT" and dropped.seconds > 2 and web == "ok"


def test_a_slow_resolver_keeps_the_program_waiting(holt: Holt, lab: Lab) -> None:
    name = lab.name("late.example.org", turns=[[netlab.WEB4], [netlab.WEB4]], ttl=0, delay=1.2)
    answers = probe(holt, ["get", name], ["get", name], net="late.example.org:80")

    assert [answer["address"] for answer in answers] == [netlab.WEB4] * 2 and len(lab.log("tcp")) == 2


def test_asyncio(holt: Holt) -> None:
    reached, refused, second = probe(
        holt, ["dial_asyncio", "web.example.org", 80], ["dial_asyncio", "refused.example.org", 80],
        ["dial_asyncio", "dead-six.example.org", 80], net="*.example.org:80")

    assert reached.value.startswith(("198.18.", "fd00:")) and second.value.startswith(("198.18.", "fd00:"))
    assert "ECONNREFUSED" in str(refused.value) or "Multiple exceptions" in str(refused.value)


@needs("curl")
@pytest.mark.identities("user", "root")
def test_curl_tries_the_next_address(holt: Holt) -> None:
    """Without the true error, curl would be connected to the first address, and fail."""
    addresses = f"x.example.org:80:{netlab.REFUSING4},{netlab.UNREACHABLE4},{netlab.WEB4}"
    result = holt(["run", "--net", "203.0.113.0/24:80,198.51.100.0/24:80", "--", "curl", "-sS", "--resolve", addresses,
                   "http://x.example.org/"])

    assert netlab.WEB4 in result.ok().out


@needs("curl")
def test_curl_is_refused(holt: Holt) -> None:
    result = holt(["run", "--net", "refused.example.org:80", "--", "curl", "-sS", "http://refused.example.org/"])

    assert result.code == 7, str(result)


# --- refusals ---


def test_a_port_without_a_rule_is_refused_and_reported(holt: Holt) -> None:
    answers = probe(
        holt, ["connect", "web.example.org", 8080], ["connect", netlab.WEB4, 8080], net="web.example.org:80,203.0.113.0/28:80")

    denials = answers.result.denials
    assert answers == ["ECONNREFUSED", "ECONNREFUSED"]
    assert denials["web.example.org:8080"]["answer"] == "ECONNREFUSED"
    assert denials["web.example.org:8080"]["grant"] == "--net web.example.org:8080"
    assert denials[f"{netlab.WEB4}:8080"]["grant"] == f"--net {netlab.WEB4}:8080"


def test_a_name_that_leads_to_a_private_address_is_refused(holt: Holt, lab: Lab) -> None:
    answers = probe(holt, ["connect", "mixed.example.org", 80], ["connect", "private-10.bad.example.org", 80], net="*.example.org:80")

    assert answers[0] == "ok" and answers[1].value in ("EAI_NONAME", "EAI_NODATA", "ECONNREFUSED")


@pytest.mark.identities("user", "root", "nested")
def test_an_address_without_a_rule_is_unreachable_and_reported(holt: Holt, lab: Lab) -> None:
    addresses = ("8.8.8.8", "10.1.0.5", "169.254.169.254", "2001:4860::8888", netlab.WEB4)
    answers = probe(
        holt, *(["connect", address, 443] for address in addresses), ["dial_nonblocking", "8.8.8.8", 443],
        net="web.example.org:80,[2001:db8::]/32:80")

    denials = answers.result.denials
    assert answers == ["ENETUNREACH"] * 5 + [["EINPROGRESS", "ENETUNREACH"]] and all(answer.at_once for answer in answers)
    assert denials["8.8.8.8:443"] | {"policy": 0} == {
        "layer": "network", "what": "8.8.8.8:443", "count": 2, "answer": "ENETUNREACH", "path": None, "grant": "--net 8.8.8.8:443",
        "reason": "no rule of the network allows this address", "policy": 0, "why_not": None}
    assert "[2001:4860::8888]:443" in denials and "169.254.169.254:443" in denials and not lab.log("tcp")


def test_other_protocols_still_have_no_route(holt: Holt) -> None:
    by_udp, six = probe(holt, ["datagram", "8.8.8.8", 53], ["datagram", "2001:4860::8888", 53], net="web.example.org:80")

    assert (by_udp.value, six.value) == ("ENETUNREACH", "ENETUNREACH")


@needs("curl")
def test_a_session_tells_its_level_and_audits_the_error(sessions: Sessions) -> None:
    session = sessions.create("w", "--net", "*.example.org:80")
    assert session.sh("curl -sS http://refused.example.org/").code == 7

    rows = until(
        lambda: [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "network"], "the connection is noted")
    shown = sessions(["show", "--json", "w"]).ok().out
    assert {row["error"] for row in rows} == {"ECONNREFUSED"} and json.loads(shown)["network_level"] == 2
    assert "2: programs get the errors" in sessions(["show", "w"]).ok().out


# --- many at once ---


def test_a_thousand_connections_at_once(holt: Holt, lab: Lab) -> None:
    reached, refused, no_port = probe(
        holt, ["dial_many", 1000, "web.example.org", 80], ["dial_many", 1000, "refused.example.org", 80],
        ["dial_many", 1000, "web.example.org", 81], net="*.example.org:80", flags=("--open-files", "4096"))

    assert (reached, refused, no_port) == ({"ok": 1000}, {"ECONNREFUSED": 1000}, {"ECONNREFUSED": 1000})


# --- without a queue ---


@pytest.mark.identities("user")
def test_a_container_that_forbids_the_packet_filter(holt: Holt, hostile: Hostile) -> None:
    """The network works, and a connection that fails is reset after it was accepted."""
    answers = probe(
        holt, ["get", "web.example.org"], ["say", "refused.example.org", 80, "x"], ["connect", "web.example.org", 81],
        ["connect", "203.0.113.99", 80], net="web.example.org:80,refused.example.org:80",
        prefix=hostile.refusing_packet_filter())

    assert level(answers) == 1 and answers[0]["host"] == "web.example.org"
    assert answers[1].value in ("ECONNRESET", "EPIPE") and answers[2:] == ["ECONNREFUSED", "ENETUNREACH"]


def test_no_network_has_no_level(holt: Holt) -> None:
    assert holt(["run", "--", "true"]).report["network"] == {"mode": "none", "level": None, "lost": False, "missed": False, "denials_omitted": 0}
