# SPDX-License-Identifier: Apache-2.0
"""--upstream: holt-egress connects through a proxy outside, which resolves the names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lib import netlab
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Holt
from lib.sessions import Sessions, until
from lib.tools import needs

pytestmark = [needs("python3", "curl"), pytest.mark.alike]

NET = "web.example.org:80,web.example.org:443,web.example.org:7"
PROXY, LOGIN = "http://10.1.0.5:3128", "http://agent:p%40ss:word@ten.corp.example.org:3129"
SECRETS = ("p@ss", "p%40ss", "YWdlbnQ6")


def asked(lab: Lab) -> list[tuple[str, str | None]]:
    return [(row["target"], row["login"]) for row in lab.log("proxy")]


@pytest.mark.identities("user", "root", "nested")
def test_connections_go_through_the_proxy(holt: Holt, lab: Lab) -> None:
    page, secure, echo = probe(
        holt, ["get", "web.example.org"], ["tls", "web.example.org"], ["say", "web.example.org", 7, "mine"], net=NET,
        flags=("--upstream", PROXY))

    assert (page["host"], secure["sni"], echo) == ("web.example.org", "web.example.org", "mine")
    assert asked(lab) == [(f"web.example.org:{port}", None) for port in (80, 443, 7)]


def test_the_server_may_speak_first_and_much(holt: Holt) -> None:
    greeting, much, sums = probe(
        holt, ["first", "web.example.org", 22], ["download", "web.example.org", 9001, 3 << 20],
        ["digest", "web.example.org", 9000, 3 << 20], net="web.example.org:22,web.example.org:9001,web.example.org:9000",
        flags=("--upstream", PROXY))

    assert greeting == "SSH-2.0-netlab\r\n" and much == list(netlab.bytes_and_digest(3 << 20)) and sums[0] == sums[1]


def test_only_the_proxy_resolves_names(holt: Holt, lab: Lab) -> None:
    found, reached, unlisted = probe(
        holt, ["lookup", "nowhere.example.org"], ["say", "nowhere.example.org", 80, "x"], ["lookup", "other.example.org"],
        net="nowhere.example.org", flags=("--upstream", PROXY))

    assert "198.18.1.0" in found.value and isinstance(reached.value, str) and reached.at_once and unlisted == "EAI_NONAME"
    assert ("nowhere.example.org:80", None) in asked(lab)


def test_an_address_goes_through_the_proxy_too(holt: Holt, lab: Lab) -> None:
    four, six, other = probe(
        holt, ["say", netlab.WEB4, 7, "a"], ["say", netlab.WEB6, 7, "b"], ["connect", netlab.OTHER4, 7],
        net=f"{netlab.WEB4}:7,[{netlab.WEB6}]:7", flags=("--upstream", PROXY))

    assert (four, six) == ("a", "b") and other == "ENETUNREACH"
    assert asked(lab) == [(f"{netlab.WEB4}:7", None), (f"[{netlab.WEB6}]:7", None)]


def test_the_login_is_sent_and_shown_nowhere(holt: Holt, lab: Lab) -> None:
    result = holt.sh("curl -sS http://web.example.org/; env; cat /proc/self/mountinfo; false", "--net", NET, "--proxy", "--upstream", LOGIN)

    assert '"host": "web.example.org"' in result.out
    assert asked(lab) == [("web.example.org:80", "Basic YWdlbnQ6cEBzczp3b3Jk")]
    assert not any(secret in result.out + result.err + json.dumps(result.report) for secret in SECRETS)


def test_a_policy_is_shown_without_the_login(holt: Holt) -> None:
    text = holt(["policy", "show", "--net", NET, "--upstream", LOGIN]).ok().out
    document = holt(["policy", "show", "--json", "--net", NET, "--upstream", LOGIN]).ok().out

    assert "http://***@ten.corp.example.org:3129" in text and "http://***@ten.corp.example.org:3129" in document
    assert not any(secret in text + document for secret in SECRETS)


@pytest.mark.parametrize("url,message", (
    ("http://agent:wrong@10.1.0.5:3129", "EACCES"), ("http://203.0.113.77:3128", "ECONNREFUSED"),
    ("http://nowhere.corp.example.org:3128", "EHOSTUNREACH"), ("http://10.1.0.5:22", "EPROTO"), ("http://10.1.0.5:9002", "ECONNRESET"),
))
def test_a_proxy_that_does_not_work(url: str, message: str, holt: Holt, lab: Lab) -> None:
    (direct,) = probe(holt, ["get", "web.example.org"], net=NET, flags=("--upstream", url))
    line, code = probe(holt, ["tunnel", "web.example.org", 80], ["socks", "web.example.org", 80], net=NET, flags=("--proxy", "--upstream", url))
    result = holt.sh("curl -sS http://web.example.org/", "--net", NET, "--upstream", url)

    assert isinstance(direct.value, str) and direct.at_once
    assert line.value.startswith("HTTP/1.1 502 Cannot reach web.example.org:80: the proxy of network.upstream ") and code[0] != 2 or message == "EACCES"
    assert f"could not connect to web.example.org:80 ({message})" in result.err and "wrong" not in result.err
    assert not any(row["port"] == 80 for row in lab.log("tcp"))


def test_greetings_are_judged_all_the_same(holt: Holt, lab: Lab) -> None:
    other, host, relayed = probe(
        holt, ["tls", "web.example.org", 443, "other.example.org"], ["get", "web.example.org", 80, "other.example.org"],
        ["say", "web.example.org", 80, "CONNECT other.example.org:80 HTTP/1.1\r\n\r\n"], net=NET, flags=("--upstream", PROXY))

    assert not isinstance(other.value, dict) and not isinstance(host.value, dict) and " 200 " not in str(relayed.value)
    assert not lab.log("http") and not any(row["target"].startswith("other") for row in lab.log("proxy"))


def test_nothing_inside_reaches_the_proxy_itself(holt: Holt, lab: Lab) -> None:
    answers = probe(
        holt, ["connect", "10.1.0.5", 3128], ["lookup", "ten.corp.example.org"], ["get", "web.example.org"],
        *(["reverse", f"198.18.1.{n}"] for n in range(4)), net=NET, flags=("--upstream", "http://ten.corp.example.org:3128"))

    assert answers[0] == "ENETUNREACH" and answers[1] == "EAI_NONAME" and answers[2]["host"] == "web.example.org"
    assert [a.value for a in answers[3:]] == ["web.example.org", *["EAI_NONAME"] * 3]


def test_a_session_keeps_the_login_for_itself(sessions: Sessions, holt: Holt, lab: Lab) -> None:
    session = sessions.create("w", "--net", NET, "--upstream", LOGIN)
    assert session.out("curl -sS http://web.example.org/bytes/5000 | wc -c") == "5000\n"

    def rows() -> list[Any]:
        return [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "network"]

    (row,) = until(rows, "the connection is noted")
    assert row["peer"] == "web.example.org:80" and row["address"] is None
    session("stop").ok()
    assert session.out("curl -sS http://web.example.org/bytes/10 | wc -c") == "10\n"
    assert [login for _, login in asked(lab)] == ["Basic YWdlbnQ6cEBzczp3b3Jk"] * 2
    shown = session("show").ok().out + session("show", "--json").ok().out + json.dumps(session.audit())
    again = sessions(["create", "w", "--net", NET, "--upstream", "http://agent:other@ten.corp.example.org:3129"])
    assert again.code != 0
    assert not any(secret in shown + again.err for secret in (*SECRETS, "other@"))


@pytest.mark.parametrize("url,message", (
    ("proxy.example.org:3128", "is not the URL"), ("https://p.example.org:3128", "is not the URL"), ("socks5://p.example.org:1080", "is not the URL"),
    ("http://p.example.org", "port"), ("http://p.example.org:0", "port"), ("http://p.example.org:3128/path", "port"),
    ("http://user:se%cret@p.example.org:3128", "user and password"), ("http://a:secret%0d@p.example.org:1", "user and password"),
    ("http://:secret@p.example.org:3128", "user and password"), ("http://secret@p example.org:3128", "host"),
))
def test_a_bad_url_is_refused_without_its_login(url: str, message: str, holt: Holt) -> None:
    result = holt(["run", "--net", NET, "--upstream", url, "--", "true"])

    assert result.code == 125 and "--upstream" in result.err and message in result.err
    assert "cret" not in result.err
