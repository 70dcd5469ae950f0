# SPDX-License-Identifier: Apache-2.0
"""Questions of a session, which a client over RPC answers: network.attend and network.ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sessions import Rpc, RpcError, Session, Sessions, until
from lib.terminal import Terminal
from lib.tools import needs

pytestmark = needs("curl")

CURL = "curl -sS -m 50 -o /dev/null -w '%{http_code}' http://other.example.org/"


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.create("w", "--net", "web.example.org:80")


def taken(rpc: Rpc) -> dict[str, Any]:
    """Waits for a question, and returns the whole request."""
    while not (asked := [note for note in rpc.notes if note["method"] == "network.ask"]):
        rpc.read(60)
    rpc.notes.remove(asked[0])
    return dict(asked[0])


def reply(rpc: Rpc, question: dict[str, Any], **answer: Any) -> None:
    result = {"result": {"allow": answer["allow"]}} if answer else {"error": {"code": -32000, "message": "nobody"}}
    rpc.raw(json.dumps({"jsonrpc": "2.0", "id": question["id"], **result}).encode() + b"\n")


def run(rpc: Rpc, script: str = CURL) -> int:
    return rpc.send("exec", session="w", shell=script)


def test_a_client_answers(session: Session) -> None:
    with session.sessions.serve() as rpc:
        rpc.call("network.attend", session="w")
        for allow, code in (("once", "200"), ("no", "000"), (None, "000")):
            running = run(rpc)
            if allow:
                question = taken(rpc)
                assert question["params"] == {"session": "w", "name": "other.example.org", "port": 80, "timeout_ms": 60000}
                reply(rpc, question, allow=allow)
            result = rpc.result(running)
            assert result["stdout"] == code
        (denial,) = result["denials"]
        assert "the answer was no" in denial["reason"] and denial["grant"] == "--net other.example.org:80"
        assert rpc.call("session.show", session="w")["network"] == {"mode": "allow", "allow": ["web.example.org:80"], "once": [], "publish": [], "import": []}
    assert [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "grant"] == [
        {"grant": "net:other.example.org:80", "once": True, "asked": True}]


def test_the_session_keeps_a_lasting_answer(session: Session) -> None:
    with session.sessions.serve() as rpc:
        rpc.call("network.attend", session="w")
        running = run(rpc)
        reply(rpc, taken(rpc), allow="session")
        assert rpc.result(running)["stdout"] == "200" == rpc.result(run(rpc))["stdout"]
    assert session.show()["network"]["allow"] == ["web.example.org:80", "other.example.org:80"]
    assert [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "grant"] == [
        {"grant": "net:other.example.org:80", "asked": True}]


def test_without_a_client_that_answers_it_is_refused(session: Session, sessions: Sessions) -> None:
    with session.sessions.serve() as rpc:
        rpc.call("network.attend", session="w")
        running = run(rpc)
        reply(rpc, taken(rpc))
        assert "nobody could be asked" in rpc.result(running)["denials"][0]["reason"]
    asking = sessions.create("v", "--ask")
    refused = asking.sh(CURL)
    assert refused.code != 0
    assert "nobody could be asked; only holt exec --ask or a client of holt serve (network.attend) can answer; " in refused.err


def test_a_client_that_leaves_ends_its_questions(session: Session) -> None:
    with session.sessions.serve() as other:
        with session.sessions.serve() as rpc:
            rpc.call("network.attend", session="w")
            running = run(other)
            taken(rpc)
        assert "nobody could be asked" in other.result(running)["denials"][0]["reason"]


def test_a_question_has_a_deadline(sessions: Sessions) -> None:
    created = sessions(["create", "w", "--ask", "--ask-timeout", "1s"]).ok()
    assert "--ask: a plain holt exec cannot ask you" in created.err
    with sessions.serve() as rpc:
        rpc.call("network.attend", session="w")
        running = run(rpc)
        question = taken(rpc)
        assert "no answer came in time" in rpc.result(running)["denials"][0]["reason"]
        reply(rpc, question, allow="session")
        assert rpc.call("session.show", session="w")["network"]["allow"] == []


def test_a_yes_after_the_program_has_given_up_is_for_the_next_connection(session: Session, lab: Lab) -> None:
    with session.sessions.serve() as rpc:
        rpc.call("network.attend", session="w")
        if session.show()["network_level"] != 2:
            pytest.skip("at level 1, holt knows at once that the program has given up, and the question ends")
        assert session.sh("curl -sS -m 0.5 http://other.example.org/").code == 28
        reply(rpc, taken(rpc), allow="once")
        until(lambda: lab.log("tcp"), "holt connects")

        until(lambda: session.sh(CURL.replace("-m 50", "-m 1")).out == "200", "a later connection has the grant")
    assert [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "grant"] == [
        {"grant": "net:other.example.org:80", "once": True, "asked": True}]
    assert session.show()["network"]["once"] == []


def test_a_session_without_a_network_refuses_to_ask(sessions: Sessions) -> None:
    sessions.create("w")
    with sessions.serve() as rpc, pytest.raises(RpcError, match="no network with rules"):
        rpc.call("network.attend", session="w")


def test_exec_asks_on_the_terminal(session: Session) -> None:
    argv = session.sessions.holt.argv(["exec", "w", "--ask", "--", "bash", "-c", CURL])
    with Terminal(session.sessions.holt.identity, argv, cwd=session.sessions.holt.cwd, env=session.sessions.env) as terminal:
        terminal.expect(r"holt: allow other\.example\.org:80\? \[y\]es once, \[a\]lways in this session, \[n\]o: ")
        while "200" not in terminal.output:
            terminal.send("a\r")
            try:
                terminal.expect("a\r+\n", timeout=0.3)
                break
            except AssertionError:
                pass
        assert terminal.wait() == 0 and "200" in terminal.output
    assert session.show()["network"]["allow"] == ["web.example.org:80", "other.example.org:80"]


def test_ctrl_c_at_a_question_interrupts_the_command(session: Session) -> None:
    argv = session.sessions.holt.argv(["exec", "w", "--ask", "--", "bash", "-c", f"{CURL}; echo went on"])
    with Terminal(session.sessions.holt.identity, argv, cwd=session.sessions.holt.cwd, env=session.sessions.env) as terminal:
        terminal.expect(r"holt: allow other\.example\.org:80\?")
        terminal.send("\x03")
        assert terminal.wait() != 0
    assert "went on" not in terminal.output
