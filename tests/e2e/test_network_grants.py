# SPDX-License-Identifier: Apache-2.0
"""Live grants: rules that a caller adds to a session that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sessions import RpcError, Session, Sessions, until
from lib.tools import needs

pytestmark = needs("curl", "python3")

LISTEN = "import socket, sys, time; s = socket.create_server(('0.0.0.0', int(sys.argv[1]))); open('on', 'w'); time.sleep(600)"


def curl(session: Session, url: str) -> str:
    return session.sh(f"curl -sS -m 20 -o /dev/null -w '%{{http_code}}' {url}").out


def grants(session: Session) -> list[dict[str, Any]]:
    return [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "grant"]


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.create("w", "--net", "web.example.org:80")


def test_a_live_session_has_a_grant_at_once(session: Session) -> None:
    assert curl(session, "http://other.example.org/") == "000"

    session("allow", "net:other.example.org:80").ok()

    assert curl(session, "http://other.example.org/") == "200" == curl(session, "http://web.example.org/")
    assert curl(session, "http://four.example.org/") == "000"
    assert grants(session) == [{"grant": "net:other.example.org:80"}]
    assert session.show()["network"]["allow"] == ["web.example.org:80", "other.example.org:80"]


def test_a_grant_lasts_until_the_next_keeper(session: Session) -> None:
    session.out("true")
    session("allow", "net:other.example.org:80").ok()
    session("stop").ok()

    assert curl(session, "http://other.example.org/") == "200"


def test_a_session_at_rest_gets_a_grant_without_a_start(session: Session) -> None:
    session("allow", "net:other.example.org:80", "net:four.example.org").ok()

    assert grants(session) == [{"grant": "net:four.example.org"}, {"grant": "net:other.example.org:80"}]
    assert curl(session, "http://other.example.org/") == "200" == curl(session, "http://four.example.org/")


def test_many_grants_of_names_follow_each_other(session: Session) -> None:
    for name in ("other", "four", "six", "many", "mixed"):
        session("allow", f"net:{name}.example.org:443", f"net:{name}.example.org:80").ok()

    assert curl(session, "http://other.example.org/") == "200" == curl(session, "http://four.example.org/")


def test_a_wildcard_takes_a_port_over_from_names(session: Session) -> None:
    assert curl(session, "http://web.example.org/") == "200"

    session("allow", "net:*.example.org:80").ok()

    assert curl(session, "http://other.example.org/") == "200" == curl(session, "http://web.example.org/")
    session("allow", "net:*.example.org:80").ok()
    session("allow", "net:example.com:80").ok()
    assert curl(session, "http://example.com/") == "200"


def test_a_block_of_addresses_gets_a_route(session: Session) -> None:
    assert curl(session, "http://203.0.113.10:8080/") == "000"

    session("allow", "net:203.0.113.0/24:8080").ok()

    assert curl(session, "http://203.0.113.10:8080/") == "200"


def test_a_port_that_a_program_has_is_named_and_nothing_is_lost(session: Session) -> None:
    session.sh(f'python3 -c "{LISTEN}" 8080 > /dev/null 2>&1 &')
    until(lambda: session.sh("test -e on").code == 0, "it listens")

    refused = session("allow", "net:*.example.org:80", "net:*.example.org:8080")

    assert refused.code == 125 and "listens on port 8080 itself" in refused.err
    assert curl(session, "http://web.example.org/") == "200" and curl(session, "http://other.example.org/") == "000"
    assert grants(session) == []


def test_a_grant_that_cannot_be_stored_is_not_in_force(sessions: Sessions, workspace: Path) -> None:
    """The list of rules is full, which the keeper notices once holt-egress has made the listeners."""
    rules = ["web.example.org:80", "web.example.org:8080", *(f"*.n{i}.example.org:443" for i in range(1022))]
    (workspace / "full.json").write_text(json.dumps({"holt": 1, "network": {"allow": rules}}))
    session = sessions.create("w", "--policy", "./full.json", cwd=workspace)
    session.out("true")

    for rule in ("other.example.org:80", "*.example.org:8080"):
        refused = session("allow", f"net:{rule}")
        assert refused.code == 125 and "1024" in refused.err

    assert curl(session, "http://other.example.org/") == "000" == curl(session, "http://other.example.org:8080/")
    assert curl(session, "http://web.example.org/") == "200" == curl(session, "http://web.example.org:8080/")
    assert grants(session) == [] and session.show()["network"]["allow"] == rules


def test_a_live_session_without_a_network_is_told_the_cure(sessions: Sessions) -> None:
    session = sessions.create("n")
    session.out("true")

    refused = session("allow", "net:web.example.org:80")
    assert refused.code == 125 and "holt stop n" in refused.err
    session("stop").ok()
    session("allow", "net:web.example.org:80").ok()
    assert curl(session, "http://web.example.org/") == "200"


@pytest.mark.parametrize("word, reason", [("web.example.org:80", "not a grant"), ("net:*:80", "allows every name"), ("net:@none", "known set")])
def test_a_word_that_is_no_grant_is_refused(session: Session, word: str, reason: str) -> None:
    refused = session("allow", word)

    assert refused.code == 125 and reason in refused.err


def test_the_refusal_of_a_command_names_the_grant(session: Session) -> None:
    refused = session.sh("curl -sS http://other.example.org/")

    assert "holt allow w net:other.example.org allows it" in refused.err
    assert "holt create" not in refused.err and "are fixed" not in refused.err


# --- over RPC ---


def test_a_session_at_rest_gets_a_grant_over_rpc_without_a_start(session: Session) -> None:
    with session.sessions.serve() as rpc:
        assert rpc.call("session.allow", session="w", grants=["net:other.example.org:80"]) == {"live": False}
        assert rpc.call("session.show", session="w")["state"] == "at rest"
        for words, reason in (([], "the list is empty"), (["other.example.org:80"], "is not a grant")):
            with pytest.raises(RpcError, match=reason):
                rpc.call("session.allow", session="w", grants=words)

        assert curl(session, "http://other.example.org/") == "200"
        assert rpc.call("session.allow", session="w", grants=["net:four.example.org:80"]) == {"live": True}
    assert grants(session) == [{"grant": "net:four.example.org:80"}, {"grant": "net:other.example.org:80"}]


def test_a_denial_over_rpc_has_the_request_that_allows_it(session: Session) -> None:
    with session.sessions.serve() as rpc:
        (denial,) = rpc.call("exec", session="w", shell="curl -sS http://web.example.org:81/")["denials"]
        assert denial["call"] == {"method": "session.allow", "params": {"grants": ["net:web.example.org:81"]}}

        rpc.call(denial["call"]["method"], session="w", **denial["call"]["params"])
        assert session.show()["network"]["allow"] == ["web.example.org:80", "web.example.org:81"]

    audited = [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "denial"]
    assert [row["call"] for row in audited] == [denial["call"]]
