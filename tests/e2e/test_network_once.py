# SPDX-License-Identifier: Apache-2.0
"""Grants for one connection: holt allow --once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lib.netlab import holt, lab  # noqa: F401
from lib.sessions import RpcError, Session, Sessions, until
from lib.tools import needs

pytestmark = needs("curl", "python3")

OTHER = "net:other.example.org:80"


def curl(session: Session, url: str) -> str:
    return session.sh(f"curl -sS -m 20 -o /dev/null -w '%{{http_code}}' {url}").out


def rows(session: Session, kind: str) -> list[dict[str, Any]]:
    return [json.loads(row["detail"]) for row in session.audit() if row["kind"] == kind]


def once(session: Session) -> list[str]:
    return list(session.show()["network"]["once"])


@pytest.fixture
def session(sessions: Sessions) -> Session:
    session = sessions.create("w", "--net", "web.example.org:80")
    session.out("true")
    return session


def test_a_grant_holds_for_one_connection(session: Session) -> None:
    session("allow", OTHER, "--once").ok()
    assert once(session) == ["other.example.org:80"] and "once        other.example.org:80" in session("show").ok().out

    assert curl(session, "http://other.example.org/") == "200"

    assert once(session) == []
    refused = session.sh("curl -sS http://other.example.org/")
    assert refused.code != 0 and "holt allow w net:other.example.org allows it" in refused.err
    assert rows(session, "grant") == [{"grant": OTHER, "once": True}]
    assert session.show()["network"]["allow"] == ["web.example.org:80"]
    assert curl(session, "http://web.example.org/") == "200"


def test_two_grants_hold_for_two_connections(session: Session) -> None:
    session("allow", OTHER, OTHER, "--once").ok()

    assert [curl(session, "http://other.example.org/") for _ in range(3)] == ["200", "200", "000"]


def test_a_connection_that_is_refused_or_fails_uses_nothing(session: Session) -> None:
    session("allow", OTHER, "net:refusing.example.org:80", "--once").ok()

    assert curl(session, "http://other.example.org:81/") == "000" == curl(session, "http://refusing.example.org/")
    assert once(session) == ["other.example.org:80", "refusing.example.org:80"]

    assert curl(session, "http://other.example.org/") == "200"


def test_a_lasting_rule_comes_before_a_grant(session: Session) -> None:
    session("allow", "net:web.example.org:80", "--once").ok()

    assert curl(session, "http://web.example.org/") == "200"
    assert once(session) == ["web.example.org:80"]


def test_a_name_and_a_set_are_one_grant_each(session: Session) -> None:
    """A name without a port means the ports 80 and 443."""
    session("allow", "net:other.example.org", "--once").ok()

    assert curl(session, "http://other.example.org/") == "200"
    assert curl(session, "-k https://other.example.org/") == "000" and once(session) == []


@pytest.mark.parametrize("rule, url", [
    ("*.example.org:8080", "http://other.example.org:8080/"), ("203.0.113.0/24:8080", "http://203.0.113.10:8080/"),
])
def test_wildcards_and_blocks(rule: str, url: str, session: Session) -> None:
    session("allow", f"net:{rule}", "--once").ok()

    assert [curl(session, url) for _ in range(2)] == ["200", "000"]
    assert curl(session, "http://web.example.org/") == "200"


def test_the_second_connection_is_told_why(session: Session) -> None:
    """The second connection goes to 198.18.1.1, like that of a program that has looked the name up before."""
    session("allow", OTHER, "--once").ok()
    hold = "python3 -c \"import socket, time; s = socket.create_connection(('other.example.org', 80)); open('on', 'w'); time.sleep(600)\""
    session.sh(f"{hold} > /dev/null 2>&1 &")
    until(lambda: session.sh("test -e on").code == 0, "it is connected")

    refused = session.sh("curl -sS -m 20 --resolve other.example.org:80:198.18.1.1 http://other.example.org/")

    assert refused.code != 0 and "a grant for one connection to it is used up" in refused.err


def test_a_grant_ends_with_the_live_session(session: Session) -> None:
    session("allow", OTHER, "--once").ok()
    session("stop").ok()

    assert once(session) == [] and curl(session, "http://other.example.org/") == "000"


def test_a_session_at_rest_refuses_it_with_the_cure(session: Session) -> None:
    session("stop").ok()

    refused = session("allow", OTHER, "--once")

    assert refused.code == 125 and "is at rest" in refused.err and "holt exec w -- true" in refused.err
    assert rows(session, "grant") == []
    with session.sessions.serve() as rpc, pytest.raises(RpcError, match="is at rest"):
        rpc.call("session.allow", session="w", grants=[OTHER], once=True)


def test_a_session_without_a_network_needs_a_lasting_rule(sessions: Sessions) -> None:
    """A start would not help a session at rest, because it still has no network when it lives."""
    session = sessions.create("n")
    message = (
        'holt allow: a grant for one connection needs a session with a network, and session "n" has none\n'
        f"  Add a rule that lasts: holt stop n, then holt allow n {OTHER}\n  Or create a session with --net.\n"
    )

    at_rest = session("allow", OTHER, "--once")
    session.out("true")
    live = session("allow", OTHER, "--once")

    assert at_rest.code == live.code == 125 and at_rest.err == live.err == message
    session("stop").ok()
    session("allow", OTHER).ok()
    assert curl(session, "http://other.example.org/") == "200"


def test_over_rpc(session: Session) -> None:
    with session.sessions.serve() as rpc:
        assert rpc.call("session.allow", session="w", grants=[OTHER], once=True) == {"live": True}
        assert rpc.call("session.show", session="w")["network"]["once"] == ["other.example.org:80"]

    assert [curl(session, "http://other.example.org/") for _ in range(2)] == ["200", "000"]


def test_unused_grants_have_a_limit(session: Session) -> None:
    rules = [f"net:n{i}.example.org:80" for i in range(64)]
    for _ in range(4):
        session("allow", *rules, "--once").ok()

    refused = session("allow", OTHER, "--once")
    assert refused.code == 125 and "too many one-time grants" in refused.err
    assert len(once(session)) == 256


def test_a_listener_goes_with_its_grant(session: Session) -> None:
    """The listener of a wildcard takes the port of all addresses, also of 127.0.0.1."""
    serve = "python3 -c \"import socket; socket.create_server(('0.0.0.0', 8080))\""
    session("allow", "net:*.example.org:8080", "--once").ok()
    assert session.sh(serve).code != 0

    assert curl(session, "http://other.example.org:8080/") == "200"

    until(lambda: session.sh(serve).code == 0, "the port is free")
