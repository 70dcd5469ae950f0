# SPDX-License-Identifier: Apache-2.0
"""Fixtures that the tests of this suite share, in addition to lib/plugin.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lib.sandbox import Holt
from lib.sessions import Bound, Connect, Rpc, Session, Sessions
from lib.terminal import Terminal


@pytest.fixture
def shell(holt: Holt) -> Iterator[Terminal]:
    """The caller's interactive bash, on a terminal, in the workspace; "$HOLT" is a command that runs holt."""
    environment = {"PS1": "outer> ", "TERM": "dumb", "HOLT": " ".join(holt.argv([])), "HISTFILE": ""}
    with Terminal(holt.identity, ["bash", "--norc", "--noprofile", "-i"], cwd=holt.cwd, env=environment) as shell:
        shell.expect("outer> ")
        yield shell


@pytest.fixture(params=("serve", "keeper"))
def connect(request: pytest.FixtureRequest, sessions: Sessions, session: Session) -> Iterator[Connect]:
    """Makes clients of the session: of one holt serve each, or of its keeper."""
    opened: list[Rpc] = []

    def connect() -> Bound:
        serve = request.param == "serve"
        opened.append(sessions.serve() if serve else session.rpc())
        return Bound(opened[-1], {"session": "w"} if serve else {})

    yield connect
    for rpc in opened:
        rpc.close()


@pytest.fixture
def rpc(connect: Connect) -> Bound:
    return connect()


@pytest.fixture
def keeper(session: Session) -> Iterator[Bound]:
    """A client of the keeper, for tests that do not depend on the kind of connection."""
    with session.rpc() as rpc:
        yield Bound(rpc, {})
