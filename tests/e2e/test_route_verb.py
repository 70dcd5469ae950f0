# SPDX-License-Identifier: Apache-2.0
"""holt route: routes that come and go while a session lives."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.leaks import descendants
from lib.routes import WITH_KEY, memory
from lib.sessions import RpcError, Session, Sessions, until
from lib.tools import needs
from lib.upstream import KEY, Upstream, upstream
from lib.websocket import CLIENT, websocket

pytestmark = needs("curl", "python3")

HEADER = ("--header", "authorization: Bearer {env:ACME_KEY}")
GET = 'curl -sS -m 20 -H "authorization: Bearer $ACME_TOKEN"'


@pytest.fixture
def service() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


@pytest.fixture
def session(sessions: Sessions, service: Upstream, place: Path, identity: Identity) -> Session:
    """A session whose first route needs no credential."""
    policy = place / "policy.json"
    policy.write_text(json.dumps({"holt": 1, "bridge": {"routes": [{"name": "first", "upstream": service.url, "env": {"T": "{token}"}}]}}))
    return sessions.create("w", "--policy", identity.own(policy))


def add(sessions: Sessions, service: Upstream, *options: str, name: str = "acme", env: Any = WITH_KEY) -> Any:
    return sessions(["route", "add", "w", name, "--upstream", service.url, *HEADER, *options], env=env)


def listed(session: Session) -> "list[dict[str, Any]]":
    """The routes, which holt show lists in the same form."""
    routes: "list[dict[str, Any]]" = json.loads(session.sessions(["route", "list", "w", "--json"]).ok().out)["routes"]
    assert json.loads(session.sessions(["show", "w", "--json"]).ok().out)["routes"] == routes
    return routes


def gateways() -> "list[int]":
    return [process.pid for process in descendants() if process.name == "holt-gateway" and not process.ended]


@pytest.mark.identities("user", "root", "nested")
def test_the_next_command_of_a_live_session_uses_a_new_route(sessions: Sessions, session: Session, service: Upstream) -> None:
    session.out("true")
    assert add(sessions, service).ok().out == "ACME_URL\nACME_TOKEN\n"
    assert json.loads(session.out(f"{GET} $ACME_URL/v1/x"))["path"] == "/v1/x"
    assert service.seen[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert session.out("echo $ACME_TOKEN") == session.out("echo $T")

    sessions(["route", "remove", "w", "acme"]).ok()
    assert session.out("env | grep ACME; true") == ""
    refused = session.sh("curl -sS -m 20 -H \"authorization: Bearer $T\" http://127.0.0.1:8474/acme/v1/x; exit 1")
    assert "no route has this name; the routes are /first" in refused.out and len(service.seen) == 1


def test_the_credential_is_only_in_the_gateway(sessions: Sessions, session: Session, service: Upstream) -> None:
    session.out("true")
    add(sessions, service).ok()
    session.out(f"{GET} $ACME_URL/v1/x")
    assert KEY not in session.out("env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; true")
    for path in session.directory.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    if os.geteuid() == 0:
        assert KEY.encode() not in memory(session.keeper()), "in the keeper"
        assert any(KEY.encode() in memory(pid) for pid in gateways()), "the search finds it elsewhere"


def test_removing_a_route_ends_its_requests(sessions: Sessions, session: Session, service: Upstream) -> None:
    session.out("true")
    add(sessions, service).ok()
    with session.rpc() as rpc:
        started = rpc.call("process.spawn", argv=["sh", "-c", f"{GET} $ACME_URL/v1/slow"])
        until(lambda: service.seen, "the request is open")
        sessions(["route", "remove", "w", "acme"]).ok()
        rpc.call("process.wait", id=started["id"])
        chunks = rpc.call("process.read", id=started["id"])["chunks"]
        assert "the route was removed" in "".join(chunk["text"] for chunk in chunks)


def test_a_route_lasts_with_the_session(sessions: Sessions, session: Session, service: Upstream) -> None:
    session.out("true")
    add(sessions, service, "--allow", "GET /v1/*", "--requests", "9/1h", "--timeout", "9s", "--concurrent", "3").ok()
    session.stop()
    assert [(route["name"], route["live"]) for route in listed(session)] == [("first", False), ("acme", False)]
    assert json.loads(sessions(["exec", "w", "--", "sh", "-c", f"{GET} $ACME_URL/v1/x"], env=WITH_KEY).ok().out)["path"] == "/v1/x"
    assert "does not allow" in session.out(f"{GET} -X POST $ACME_URL/v1/x")
    session.stop()
    sessions(["route", "remove", "w", "acme"]).ok()
    assert session.out("env | grep ACME; true") == ""
    details = [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "grant"]
    assert {"grant": "route:acme"} in details and {"grant": "route:acme", "removed": True} in details


@pytest.mark.parametrize("text", ("-", "file"))
def test_a_route_from_a_file(text: str, sessions: Sessions, session: Session, service: Upstream, place: Path, identity: Identity) -> None:
    session.out("true")
    document = json.dumps({"name": "acme", "upstream": service.url, "env": {"ACME_URL": "{url}", "ACME_TOKEN": "{token}"}})
    path = place / "route.json"
    path.write_text(document)
    if text == "-":
        sessions(["route", "add", "w", "-"], stdin=document).ok()
    else:
        sessions(["route", "add", "w", str(identity.own(path))]).ok()
    assert json.loads(session.out(f"{GET} $ACME_URL/v1/x"))["path"] == "/v1/x"


def test_a_running_interpreter_has_the_variables(sessions: Sessions, session: Session, service: Upstream) -> None:
    code = "import os; print(os.environ.get('ACME_URL'))"
    assert session("python", "-c", code).ok().out == "None\n"
    add(sessions, service).ok()
    assert session("python", "-c", code).ok().out == "http://127.0.0.1:8474/acme\n"
    sessions(["route", "remove", "w", "acme"]).ok()
    assert session("python", "-c", code).ok().out == "None\n"


def test_routes_that_wait_for_the_next_start(sessions: Sessions, session: Session, service: Upstream, place: Path) -> None:
    session.out("true")
    route = {"name": "acme", "upstream": service.url, "env": {"ACME_URL": "{url}"}}
    for more, why in (
        ({"files": {"/etc/acme": "x"}}, "it writes files inside"),
        ({"terminate_tls": ["a.example"]}, "it terminates TLS"),
        ({"header": {"a": {"file": "/etc/hostname"}}}, "its credential comes from a file or a command"),
        ({"pass": ["LANG"]}, "it passes variables of the caller"),
    ):
        result = sessions(["route", "add", "w", "-"], stdin=json.dumps({**route, **more})).ok()
        assert f"from the next start of the session on: {why}\n  Stop the session: holt stop w." in result.err
        assert listed(session)[-1]["live"] is False and session.out("echo $ACME_URL") == "\n"
        sessions(["route", "remove", "w", "acme"]).ok()


def test_a_session_without_routes(sessions: Sessions, service: Upstream) -> None:
    session = sessions.create("w")
    session.out("true")
    assert "the session was started without routes" in add(sessions, service).ok().err
    session.stop()
    assert json.loads(sessions(["exec", "w", "--", "sh", "-c", f"{GET} $ACME_URL/v1/x"], env=WITH_KEY).ok().out)["path"] == "/v1/x"


def test_a_lost_gateway(sessions: Sessions, session: Session, service: Upstream) -> None:
    session.out("true")
    for pid in gateways():
        os.kill(pid, signal.SIGKILL)
    until(lambda: not gateways(), "it has ended")
    session.sh("true")
    assert "holt-gateway has ended" in add(sessions, service).ok().err
    sessions(["route", "remove", "w", "acme"]).ok()


@pytest.mark.parametrize("kind", ("pipe", "unsealed"))
def test_only_a_sealed_file_brings_a_credential(kind: str, session: Session, service: Upstream) -> None:
    """Another descriptor could block holt-gateway, or change while it is read."""
    session.out("true")
    ends = os.pipe() if kind == "pipe" else (os.memfd_create("x", os.MFD_ALLOW_SEALING),)
    with session.rpc() as rpc:
        error = rpc.refused("route.add", [ends[0]], route={"name": "acme", "upstream": service.url})
    for fd in ends:
        os.close(fd)
    assert "is not a sealed memory file" in error.message and len(listed(session)) == 1


WEBSOCKET = CLIENT + """
s, f, head = connect("/v1/echo", "Authorization: Bearer " + os.environ["ACME_TOKEN"])
print(head[0], flush=True)
print(read(f), flush=True)
"""


def test_removing_a_route_ends_its_websockets(sessions: Sessions, session: Session) -> None:
    session.out("true")
    with websocket() as service:
        options = ("-e", "ACME_TOKEN={token}", "-e", "ACME_AT={address}")
        sessions(["route", "add", "w", "acme", "--upstream", service.url, *HEADER, *options], env=WITH_KEY).ok()
        with session.start("python3", "-c", WEBSOCKET) as running:
            assert "101" in running.readline()
            sessions(["route", "remove", "w", "acme"]).ok()
            assert running.readline() == "(None, b'')"
            running.wait()


def test_a_file_is_named_in_its_mistakes(sessions: Sessions, place: Path, identity: Identity) -> None:
    sessions.create("w")
    file = place / "route.json"
    for text, why, cure in (
        ('{"holt": 1, "bridge": {"routes": []}}', "this is a policy, and not a route", "Write one item of its bridge.routes into a file of its own."),
        ('{"name": "acme", "upstream": "https://a.example", "headers": {}}', "$.headers: unknown member", "Allowed in a route: name, "),
        ('{"name": "acme",}', '1:17: remove the "," before this "}"', ""),
    ):
        file.write_text(text)
        result = sessions(["route", "add", "w", identity.own(file)])
        assert result.refusal().replace(f"{file}:", "FILE:").replace("FILE: ", "FILE:").startswith(f"FILE:{why}"), result
        assert result.cure.startswith(cure)


def test_refusals(sessions: Sessions, session: Session, service: Upstream) -> None:
    session.out("true")
    assert "needs the environment variable ACME_KEY, which is not set" in add(sessions, service, env={}).refusal()
    assert listed(session)[-1]["name"] == "first"
    for arguments, why in (
        (["add", "w", "nope"], '"nope" is not a known route; the known routes are openai, '),
        (["add", "w", "opnai"], '"opnai" is not a known route; did you mean openai?'),
        (["add", "w", "first", "--upstream", service.url], 'has a route "first" already\n  Remove it first: holt route remove w first'),
        (["add", "w", "acme", "--header", "a: b"], "options of a route need --upstream"),
        (["add", "w", "acme", "--upstream", service.url, "--header", "a"], '--header takes a name and a value with ":" between'),
        (["add", "w", "Acme", "--upstream", service.url], "lower-case letters"),
        (["add", "w", "acme", "--upstream", "ftp://x"], "upstream"),
        (["remove", "w", "acme"], 'has no route "acme"\n  To list the routes: holt route list w'),
        (["list", "w", "--upstream", "http://a"], 'only "add" takes options of a route'),
        (["ad", "w", "x"], 'unknown verb "route ad"'),
        (["add"], "missing NAME"),
        (["add", "none", "acme", "--upstream", service.url], '"none"'),
    ):
        result = sessions(["route", *arguments])
        assert result.code == 125 and why in result.err, (arguments, result)


@pytest.mark.slow
@pytest.mark.identities("user", "root")
def test_a_gateway_that_hangs_lets_nobody_wait_forever(sessions: Sessions, session: Session, service: Upstream) -> None:
    """When it goes on, it carries out the changes after all."""
    session.out("true")
    [gateway] = gateways()
    os.kill(gateway, signal.SIGSTOP)
    try:
        added = add(sessions, service).ok()
        assert added.err.startswith("holt: the route applies from the next start of the session on: holt-gateway does not answer\n")
        with session.rpc() as rpc:
            assert rpc.call("route.remove", name="first") == {"live": False, "reason": "holt-gateway does not answer"}
        assert [(route["name"], route["live"]) for route in listed(session)] == [("acme", False)]
    finally:
        os.kill(gateway, signal.SIGCONT)
    until(lambda: listed(session)[0]["live"], "it has gone on")
    assert json.loads(session.out(f"{GET} $ACME_URL/v1/x"))["path"] == "/v1/x"


def test_the_methods(sessions: Sessions, session: Session, service: Upstream) -> None:
    route = {"name": "acme", "upstream": service.url, "header": {"authorization": "Bearer {env:ACME_KEY}"},
             "env": {"ACME_URL": "{url}", "ACME_TOKEN": "{token}"}}
    session.out("true")
    with sessions.serve(env=WITH_KEY) as rpc:
        assert rpc.call("route.add", session="w", route=route) == {"live": True, "reason": None}
        assert json.loads(session.out(f"{GET} $ACME_URL/v1/x"))["path"] == "/v1/x"
        assert [(each["name"], each["live"]) for each in rpc.call("route.list", session="w")["routes"]] == [("first", True), ("acme", True)]
        assert rpc.call("route.remove", session="w", name="acme") == {"live": True, "reason": None}
        with pytest.raises(RpcError, match="NOPE, which is not set"):
            rpc.call("route.add", session="w", route={**route, "header": {"a": "{env:NOPE}"}})
        session.stop()
        assert rpc.call("route.add", session="w", route=route) == {"live": False, "reason": None}
        assert [each["live"] for each in rpc.call("route.list", session="w")["routes"]] == [False, False]
        assert rpc.call("route.remove", session="w", name="acme") == {"live": False, "reason": None}
        assert json.loads(sessions(["ls", "--json"]).ok().out)[0]["state"] == "at rest"
