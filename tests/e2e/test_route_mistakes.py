# SPDX-License-Identifier: Apache-2.0
"""Mistakes in routes, and what holt says about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.routes import WITH_KEY, MakePolicy, acme, policy_maker
from lib.sandbox import Holt, Result
from lib.sessions import RpcError, Sessions
from lib.tools import needs
from lib.upstream import Upstream, upstream

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
