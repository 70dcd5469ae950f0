# SPDX-License-Identifier: Apache-2.0
"""Mistakes in routes, and what holt says about them."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.routes import WITH_KEY, MakePolicy, acme, policy_maker
from lib.sandbox import Holt, Result
from lib.sessions import RpcError, Sessions, until
from lib.tools import needs
from lib.upstream import KEY, Upstream, upstream

pytestmark = needs("curl", "python3")

GET = 'curl -sS -m 20 -H "authorization: Bearer $ACME_TOKEN"'
SERVICE = "https://api.acme.example"

Run = Callable[..., Result]


@pytest.fixture
def service() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


@pytest.fixture
def policy(service: Upstream, place: Path, identity: Identity) -> MakePolicy:
    return policy_maker(place, identity, service.url)


@pytest.fixture
def run(holt: Holt, policy: MakePolicy) -> Run:
    return lambda script, *options, **route: holt.sh(script, "--policy", policy(**route), *options, env=WITH_KEY)


# --- policies that no sandbox can have ---

FIRST = acme(SERVICE, name="first", header={}, files={"/etc/first.conf": "x"}, terminate_tls=["api.acme.example"])


@pytest.mark.parametrize("members,where,why", (
    ({"header": {"authorization": {"command": ["bin/key"]}}}, ".header.authorization.command", "the program has a relative path"),
    ({"header": {}, "query": {"key": {"command": ["~/bin/key", "x"]}}}, ".query.key.command", "the program has a relative path"),
    ({"files": {"/etc/passwd": "x"}}, '.files["/etc/passwd"]', "holt writes this file itself"),
    ({"files": {"/etc/first.conf/x": "x"}}, '.files["/etc/first.conf/x"]', "another file of holt has this path"),
    ({"terminate_tls": ["api.acme.example"]}, ".terminate_tls", "another route has the host api.acme.example"),
), ids=("relative", "home", "own-file", "files", "tls"))
def test_check_and_run_refuse_the_same(members: "dict[str, Any]", where: str, why: str, holt: Holt, place: Path,
                                       identity: Identity, sessions: Sessions) -> None:
    path = place / "ci.json"
    path.write_text(json.dumps({"holt": 1, "bridge": {"routes": [FIRST, acme(SERVICE, **members)]}}))
    identity.own(path)

    check = holt(["policy", "check", path]).refusal()
    assert check.startswith(f"{path}: $.bridge.routes[1]{where}: {why}")
    assert holt(["run", "--policy", path, "--", "true"], env=WITH_KEY).refusal() == check
    assert sessions(["create", "w", "--policy", path], env=WITH_KEY).refusal() == check


def test_check_and_run_refuse_routes_in_the_hosts_network(holt: Holt, place: Path, identity: Identity) -> None:
    path = place / "ci.json"
    path.write_text(json.dumps({"holt": 1, "bridge": {"routes": [acme(SERVICE)]}, "network": {"mode": "host"}}))
    identity.own(path)

    check = holt(["policy", "check", path]).refusal()
    assert check == f'{path}: $.bridge.routes[0]: a route needs a network of its own, and network.mode is "host"'
    assert holt(["run", "--policy", path, "--", "true"], env=WITH_KEY).refusal() == check
    assert holt(["run", "--policy", path, "--network", "none", "--", "true"], env=WITH_KEY).ok()


def test_an_option_is_named_as_it_was_given(run: Run, holt: Holt, policy: MakePolicy) -> None:
    """The route npm has this file, too."""
    refusal = holt.sh("true", "--policy", policy(files={"/etc/npmrc": "x"}), "--route", "npm", env={**WITH_KEY, "NPM_TOKEN": "x"}).refusal()
    assert refusal.startswith("--route: files: /etc/npmrc: another file of holt has this path")


# --- a credential in plain text ---

LITERAL = "Bearer sk-plain-text-0123"


def test_a_credential_in_plain_text_is_refused_everywhere(holt: Holt, sessions: Sessions, policy: MakePolicy, service: Upstream) -> None:
    why = "is a credential in plain text, which holt would store and not mask in responses"
    path = policy(header={"authorization": LITERAL})
    refused = holt(["run", "--policy", path, "--", "true"])
    assert refused.refusal() == f"{path}: $.bridge.routes[0].header.authorization: {why}"
    assert refused.cure == "Write {env:NAME} in its place, and set the variable NAME where you start holt; or {file:PATH}."
    assert holt(["policy", "check", path]).refusal() == refused.refusal()
    assert sessions(["create", "w", "--policy", path]).refusal() == refused.refusal()

    session = sessions.create("w")
    for state in ("at rest", "live"):
        added = sessions(["route", "add", "w", "acme", "--upstream", service.url, "--header", f"authorization: {LITERAL}"])
        assert added.refusal() == f"route: $.header.authorization: {why}", state
        with session.rpc() as rpc, pytest.raises(RpcError, match="is a credential in plain text"):
            rpc.call("route.add", route=acme(service.url, header={"x-api-key": "sk-plain-text-0123"}))
    for written in (path.parent, session.directory):
        assert not any(b"sk-plain" in file.read_bytes() for file in written.rglob("*") if file.is_file() and file != path)


def test_a_credential_in_a_header_of_an_unusual_name_is_refused(holt: Holt, policy: MakePolicy) -> None:
    path = policy(header={"x-acme": "sk-plain-text-0123"})
    refused = holt(["run", "--policy", path, "--", "true"])
    assert refused.refusal() == (f"{path}: $.bridge.routes[0].header.x-acme: looks like a credential in plain text, which holt would "
                                 "store and not mask in responses")
    assert "{env:NAME}" in refused.cure


# --- a credential whose command fails ---


def command(script: str) -> "dict[str, Any]":
    return {"authorization": {"command": ["sh", "-c", script], "prefix": "Bearer "}}


@pytest.mark.identities("user", "root", "nested")
def test_only_the_caller_learns_what_the_command_of_a_credential_said(run: Run, service: Upstream) -> None:
    result = run(f"{GET} $ACME_URL/v1/x; exit 1", header=command("echo the store is locked >&2; exit 3"))
    assert "there is no credential for this route: the command sh: it ended with exit code 3" in result.out
    assert result.err.splitlines()[-1] == "  It said: the store is locked"
    assert "locked" not in result.out + json.dumps(result.report) and not service.seen
    [denial] = result.report["denials"] if result.report else []
    assert "have its stderr" in denial["why_not"]


@pytest.mark.parametrize("script,said", (
    (f"echo {KEY}; echo + curl {KEY} >&2; exit 1", f"+ curl {'*' * len(KEY)}"),  # as "set -x" does
    (f"printf '%s\\n' a sk-other-0123; echo sk-other-0123 >&2", "*" * 13),  # more than one line
    (f"echo $OTHER_KEY >&2; exit 1", "*" * 14),
    ("printf 'one\\033[31m\\000\\377two\\302\\233\\n\\n' >&2; exit 1", "one [31m  two"),
    ("head -c 300 /dev/zero | tr '\\0' a >&2; echo >&2; echo the reason >&2; exit 1", "the reason"),
    ("head -c 100000 /dev/zero | tr '\\0' a >&2; exit 1", "a" * 239),
), ids=("traced", "lines", "other-route", "control", "last-line", "much"))
def test_what_a_command_said_gives_no_credential_away(script: str, said: str, holt: Holt, place: Path, identity: Identity, service: Upstream) -> None:
    path = place / "policy.json"
    other = acme(service.url, name="other", header={"x-key": "{env:OTHER_KEY}"}, env={})
    path.write_text(json.dumps({"holt": 1, "bridge": {"routes": [acme(service.url, header=command(script)), other]}}))
    result = holt.sh(f"{GET} $ACME_URL/v1/x; exit 1", "--policy", identity.own(path), env={"OTHER_KEY": "sk-other-route"})
    assert result.err.splitlines()[-1].rstrip() == f"  It said: {said}"
    assert not any(key in result.err for key in (KEY, "sk-other")) and result.err.isascii()


def test_the_audit_has_what_a_command_said(sessions: Sessions, policy: MakePolicy) -> None:
    session = sessions.create("w", "--policy", policy(header=command("echo the store is locked >&2; exit 3")))
    result = sessions(["exec", "w", "--", "sh", "-c", f"{GET} $ACME_URL/v1/x; exit 1"], env=WITH_KEY)
    assert "locked" not in result.out and "exit code 3" in result.err
    [row] = json.loads(sessions(["audit", "w", "--kind", "route", "--json"]).ok().out)["rows"]
    assert row["detail"]["stderr"] == "the store is locked" and row["detail"]["status"] == 502
    with session.rpc() as rpc:
        ended = rpc.call("exec", argv=["sh", "-c", f"{GET} $ACME_URL/v1/x; exit 1"])
        assert "locked" not in json.dumps(ended)


def test_the_command_of_a_credential_ignores_no_signal(run: Run) -> None:
    result = run(f"{GET} $ACME_URL/v1/x; exit 1", header=command("sed -n 's/^SigIgn://p' /proc/self/status >&2; exit 1"))
    [ignored] = result.err.splitlines()[-1].split()[2:]
    assert int(ignored, 16) & 0x7FFFFFFF == 0  # signals 1 to 31; glibc's posix_spawn() ignores two of its own


def test_the_command_of_a_credential_ends_with_holt(holt: Holt, policy: MakePolicy, place: Path) -> None:
    path = policy(header=command(f"echo $$ > {place}/new; mv {place}/new {place}/pid; exec sleep 60"))
    with holt.start(["run", "--policy", path, "--", "sh", "-c", f"{GET} $ACME_URL/v1/x"], env=WITH_KEY) as running:
        until((place / "pid").exists, "the command has started")
        pid = int((place / "pid").read_text())
        running.kill(signal.SIGKILL)
        running.wait()
    until(lambda: not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text(), "it has ended")


# --- a credential that the service refuses ---


@pytest.mark.identities("user", "root", "nested")
def test_the_result_says_that_the_service_refused_the_credential(run: Run) -> None:
    result = run(f"{GET} $ACME_URL/v1/unauthorized; {GET} $ACME_URL/v1/forbidden; exit 1")
    assert "holt: answered GET /v1/unauthorized of the route acme with 401 (1x): the service refused the credential of this route\n" in result.err
    assert "with 403 (1x): the service refused the request; perhaps the credential of this route does not allow it\n" in result.err
    denials = result.report["denials"] if result.report else []
    assert [(d["layer"], d["answer"], d["why_not"]) for d in denials] == [
        ("route", status, "the route allows it, so check the credential on the host") for status in ("401", "403")]


def test_a_route_without_a_credential_has_none_to_refuse(run: Run) -> None:
    result = run(f"{GET} $ACME_URL/v1/unauthorized; exit 1", header={"x-version": "1"})
    assert result.err == "" and result.report and result.report["denials"] == []


def test_a_credential_that_works_later_is_no_news(run: Run) -> None:
    result = run(f"{GET} $ACME_URL/v1/unauthorized; {GET} $ACME_URL/v1/go_on; {GET} -f $ACME_URL/v1/unauthorized; exit 1")
    assert result.err == "" and result.report and result.report["denials"] == []


def test_a_session_says_that_the_service_refused_the_credential(sessions: Sessions, policy: MakePolicy) -> None:
    sessions.create("w", "--policy", policy())
    result = sessions(["exec", "w", "--", "sh", "-c", f"{GET} $ACME_URL/v1/unauthorized; exit 1"], env=WITH_KEY)
    assert "with 401 (1x): the service refused the credential of this route" in result.err
    [row] = json.loads(sessions(["audit", "w", "--kind", "route", "--json"]).ok().out)["rows"]
    assert (row["detail"]["status"], row["detail"]["error"]) == (401, "the service refused the credential of this route")


# --- a client that does not use the route ---


@pytest.mark.parametrize("host,upstream,told", (
    ("api.acme.example", "https://api.acme.example/v2", True), ("api.acme.example", "https://api.acme.example", True),
    ("api.acme.example", "https://api.acme.example.org", False), ("acme.example", "https://api.acme.example", False),
))
def test_a_client_that_goes_to_the_service_itself(host: str, upstream: str, told: bool, holt: Holt, policy: MakePolicy, sessions: Sessions) -> None:
    path = policy(upstream=upstream)
    sessions.create("w", "--policy", path)
    for result in (holt.sh(f"curl -sS https://{host}/", "--policy", path, env=WITH_KEY),
                   sessions(["exec", "w", "--", "curl", "-sS", f"https://{host}/"], env=WITH_KEY)):
        assert (f"holt: the command looked up {host}, but only the route acme leads to it\n  Let it use the URL http://127.0.0.1:8474/acme, "
                f"or add {host} to terminate_tls of the route\n" in result.err) == told
        assert ("the sandbox has no network" in result.err) != told
