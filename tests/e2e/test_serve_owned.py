# SPDX-License-Identifier: Apache-2.0
"""Sessions that are a client's own, and go with it."""

from __future__ import annotations

import signal
import subprocess

import pytest

from lib import leaks
from lib.sessions import Rpc, RpcError, Session, Sessions, keepers, until


def test_an_owned_session_goes_with_its_client(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        rpc.call("session.create", name="own", owned=True)
        rpc.call("session.create", name="other")
        for name in ("own", "other"):
            rpc.call("process.spawn", session=name, shell="setsid sleep 1000 & exec sleep 1000")
        assert rpc.call("session.show", session="own")["owned"] is True
        assert rpc.call("session.show", session="other")["owned"] is False
        assert "until the client" in sessions(["show", "own"]).ok().out

    assert sessions.names() == ["other"]
    assert len(keepers()) == 1


def test_an_owned_session_that_was_never_used_goes_too(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        rpc.call("session.create", name="own", owned=True)
        assert sessions.names() == ["own"]

    assert sessions.names() == []


def test_an_owned_session_goes_only_with_its_own_client(sessions: Sessions) -> None:
    path = sessions.data / "s"
    with sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        one, two = (Rpc.of_server(path, sessions.holt.identity) for _ in range(2))
        one.call("session.create", name="a", owned=True)
        two.call("session.create", name="b", owned=True)
        for client, name in ((one, "b"), (two, "a")):
            assert client.call("exec", session=name, argv=["echo", name])["stdout"] == f"{name}\n"
        one.close()
        until(lambda: sessions.names() == ["b"], "it goes")
        assert two.call("exec", session="b", argv=["echo", "on"])["stdout"] == "on\n"
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0
        two.close()

    assert sessions.names() == []


def test_an_owned_session_can_be_stopped_used_and_removed(sessions: Sessions) -> None:
    """A session of the same name that is made after that lasts."""
    with sessions.serve() as rpc:
        rpc.call("session.create", name="own", owned=True)
        rpc.call("kv.set", session="own", key="k", value="v")
        sessions(["stop", "own"]).ok()
        assert rpc.call("kv.get", session="own", key="k")["value"] == "v"
        sessions(["rm", "own"]).ok()
        sessions.create("own")

    assert sessions.names() == ["own"]


def test_an_owned_session_that_can_not_be_made_takes_nothing_with_it(sessions: Sessions, session: Session) -> None:
    with sessions.serve() as rpc:
        assert rpc.refused("session.create", name="w", owned=True).kind == "exists"

    assert sessions.names() == ["w"]
    assert session.sh("echo there").ok().out == "there\n"


def orphan(sessions: Sessions) -> None:
    """An owned session whose server was killed; its processes are gone."""
    with sessions.start(["serve"], stdin=subprocess.PIPE) as server:
        rpc = Rpc.of_process(server.process)
        rpc.call("session.create", name="own", policy={"holt": 1, "limits": {"kill_after": "100ms"}}, owned=True)
        rpc.call("process.spawn", session="own", shell="trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done")
        (keeper,) = keepers()
        server.kill()
        server.process.wait()
        until(lambda: not keepers(), "the keeper ends, and all that runs with it")
        assert not [p for p in leaks.descendants() if p.name == "sleep"]


def test_a_killed_server_s_sessions_end_and_can_not_be_started(sessions: Sessions) -> None:
    orphan(sessions)
    result = sessions(["exec", "own", "--", "true"])

    assert "has gone" in result.refusal()
    until(lambda: not keepers(), "the one that was to be its next ends")
    sessions(["rm", "own"]).ok()


def test_the_next_server_takes_away_what_a_killed_one_has_left(sessions: Sessions, session: Session) -> None:
    orphan(sessions)
    with sessions.serve() as rpc:
        until(lambda: [s["name"] for s in rpc.call("session.list")["sessions"]] == ["w"], "it is taken away")


@pytest.mark.parametrize("again", ("create", "serve"))
def test_a_left_session_is_not_in_the_way_of_the_next(again: str, sessions: Sessions) -> None:
    orphan(sessions)
    if again == "create":
        sessions.create("own")
        assert sessions.names() == ["own"]
        return
    with sessions.serve() as rpc:
        def made() -> bool:
            try:
                rpc.call("session.create", name="own", owned=True)
            except RpcError as error:
                assert error.kind == "busy", error
                return False
            return True
        until(made, "it is made anew")
        assert rpc.call("exec", session="own", argv=["echo", "new"])["stdout"] == "new\n"
    assert sessions.names() == []


@pytest.mark.identities("user")
def test_the_number_of_owned_sessions_is_limited(sessions: Sessions) -> None:
    """The limit, OWNED_MAX, applies to all clients together. Only sessions with an owner count."""
    path = sessions.data / "s"
    with sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        one, two = (Rpc.of_server(path, sessions.holt.identity) for _ in range(2))
        for i in range(256):
            one.call("session.create", name=f"s{i}", owned=True)
        refused = two.refused("session.create", name="more", owned=True)
        assert (refused.kind, refused.message) == ("limit", "clients of this server already own 256 sessions")
        two.call("session.create", name="other")
        one.close()
        until(lambda: sessions.names() == ["other"], "they go")
        two.call("session.create", name="more", owned=True)
        two.close()
        until(lambda: sessions.names() == ["other"], "it goes")
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0
