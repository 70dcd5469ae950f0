# SPDX-License-Identifier: Apache-2.0
"""Clients that answer questions of a session (network.attend), while others come, leave, die, and answer what nobody has asked them.

The test network (lib/netlab.py) is the host's network here, and its log shows what has left the sandbox.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sessions import Bound, Rpc, Session, Sessions, until
from lib.tools import needs

pytestmark = [needs("curl"), pytest.mark.alike]

OTHER = "other.example.org"
CURL = f"curl -sS -m 50 -o /dev/null -w '%{{http_code}}' http://{OTHER}/"
NOBODY, NO, LATE = "nobody could be asked", "the answer was no", "no answer came in time"

Client = Callable[[], Bound]


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.create("w", "--ask", "--ask-timeout", "20s")


@pytest.fixture(params=("serve", "keeper"))
def client(request: pytest.FixtureRequest, session: Session) -> Client:
    """Makes a client that attends: of a holt serve of its own, or of the keeper."""

    def make() -> Bound:
        serve = request.param == "serve"
        bound = Bound(session.sessions.serve() if serve else session.rpc(), {"session": "w"} if serve else {})
        bound.call("network.attend")
        return bound

    return make


def asked(client: Bound, timeout: float = 60) -> Any:
    """Waits for a question, and returns its id."""
    while not (notes := [note for note in client.rpc.notes if note["method"] == "network.ask"]):
        client.read(timeout)
    client.rpc.notes.remove(notes[0])
    return notes[0]["id"]


def answer(client: Bound, question: Any, allow: str) -> None:
    client.raw(json.dumps({"jsonrpc": "2.0", "id": question, "result": {"allow": allow}}).encode() + b"\n")


def outcome(runner: Rpc, running: int) -> str:
    """The status of the reply from outside, or why there was none."""
    result = runner.result(running)
    return result["stdout"] if result["stdout"] != "000" else result["denials"][0]["reason"]


def run(runner: Rpc, script: str = CURL) -> int:
    return runner.send("exec", session="w", shell=script)


def granted(session: Session) -> list[Any]:
    return [json.loads(row["detail"])["grant"] for row in session.audit() if row["kind"] == "grant"]


def test_the_question_of_a_client_that_dies_is_refused_and_the_next_goes_to_the_other(client: Client, session: Session, lab: Lab) -> None:
    runner = session.sessions.serve()
    first, last = client(), client()
    running = run(runner)
    asked(last)
    last.rpc.close()
    assert NOBODY in outcome(runner, running)

    running = run(runner)
    question = asked(first)
    assert not lab.log()
    answer(first, question, "once")
    assert outcome(runner, running) == "200"


def test_only_the_client_that_was_asked_answers(client: Client, session: Session, lab: Lab) -> None:
    """The other one has an open question of its own, and guesses the id of the question."""
    runner = session.sessions.serve()
    other = client()
    own = run(runner, CURL.replace(OTHER, "web.example.org"))
    ids = [asked(other)]
    client_asked = client()
    running = run(runner)
    question = asked(client_asked)

    for guess in {question, *(f"t{n}" for n in range(9)), 1, None, "t18446744073709551617"} - set(ids):
        answer(other, guess, "session")
    other.call("network.attend")  # It is the last one now, but the question stays with the client that got it.
    assert not runner.answered(running) and not lab.log() and not granted(session)
    answer(client_asked, question, "no")
    assert NO in outcome(runner, running)
    answer(other, ids[0], "no")
    assert NO in outcome(runner, own)
    assert not granted(session) and not lab.log() and session.show()["network"]["allow"] == []


@pytest.mark.parametrize("words", (("no", "session"), ("once", "session", "session"), ("session", "no", "once")))
def test_only_the_first_answer_counts(words: tuple[str, ...], client: Client, session: Session, lab: Lab) -> None:
    runner, attending = session.sessions.serve(), client()
    running = run(runner)
    question = asked(attending)
    for word in words:
        answer(attending, question, word)

    assert (outcome(runner, running) == "200") == (words[0] != "no")
    attending.call("network.attend")
    lasting = [f"{OTHER}:80"] if words[0] == "session" else []
    assert session.show()["network"] == {"mode": "allow", "allow": lasting, "once": [], "publish": [], "import": []}
    assert granted(session) == [f"net:{OTHER}:80"] * (words[0] != "no") and len(lab.log("tcp")) == (words[0] != "no")


def test_a_late_answer_grants_nothing(sessions: Sessions, lab: Lab) -> None:
    session = sessions.create("v", "--ask", "--ask-timeout", "1s")
    with sessions.serve() as rpc, sessions.serve() as runner:
        attending = Bound(rpc, {"session": "v"})
        attending.call("network.attend")
        running = runner.send("exec", session="v", shell=CURL)
        question = asked(attending)
        assert LATE in outcome(runner, running)
        answer(attending, question, "session")
        attending.call("network.attend")

    assert not granted(session) and not lab.log() and session.show()["network"]["allow"] == []


@pytest.mark.parametrize("rounds", (8, pytest.param(200, marks=pytest.mark.slow)))
def test_clients_that_come_and_go_allow_only_what_they_answer(rounds: int, client: Client, session: Session, lab: Lab) -> None:
    """Each round has a name of its own, so that no earlier answer counts. At most 32 questions may come at once."""
    runner, clients, allowed = session.sessions.serve(), [client()], 0
    for n in range(rounds):
        if n % 25 == 24:  # A session that starts again may ask again.
            session.stop()
            for old in clients:
                old.rpc.close()
            clients = [client()]
        for _ in range(random.randrange(3)):
            clients.append(client())
        running = run(runner, CURL.replace(OTHER, f"n{n}.wild.example.com"))
        question = asked(clients[-1])
        for other in random.sample(clients[:-1], min(2, len(clients) - 1)):
            answer(other, question, "session")
        act = random.choice(("yes", "no", "die", "die and yes", "yes and die"))
        if act == "die and yes":
            clients[-1].raw(json.dumps({"jsonrpc": "2.0", "id": question, "result": {"allow": "once"}})[:-2].encode())  # Half a reply.
        elif act != "die":
            answer(clients[-1], question, "no" if act == "no" else "once")
        if act.endswith("die") or act == "die and yes":
            clients.pop().rpc.close()
        result = outcome(runner, running)
        allowed += result == "200"
        assert result == "200" if act == "yes" else result == "200" or NOBODY in result if act == "yes and die" else \
            NO in result if act == "no" else NOBODY in result, (act, result)
        if not clients:
            clients.append(client())
    assert len(lab.log("tcp")) == allowed and session.show()["network"]["allow"] == []


@pytest.mark.slow
def test_questions_that_nobody_answers_do_not_block_a_client_of_holt_serve(sessions: Sessions, lab: Lab) -> None:
    """A client may have 256 requests that it has not answered. One session asks at most 32 questions, and 8 at once."""
    waiting = 'for i in 1 2 3 4; do for k in 1 2 3 4 5 6 7 8; do {} & done; wait; done'.format(
        CURL.replace(OTHER, "n$i-$k.wild.example.com").replace("-m 50", "-m 3"))
    with sessions.serve() as silent, sessions.serve() as runner:
        names = [f"s{n}" for n in range(9)]
        for name in names:
            sessions.create(name, "--ask", "--ask-timeout", "1s")
            silent.call("network.attend", session=name)
        for number in [runner.send("exec", session=name, shell=waiting) for name in names]:
            runner.result(number)
        silent.call("session.list")  # It reads the questions.
        assert sum(note["method"] == "network.ask" for note in silent.notes) > 256
        sessions.create("last", "--ask", "--ask-timeout", "20s")
        last = Bound(silent, {"session": "last"})
        last.call("network.attend")
        silent.notes.clear()
        running = runner.send("exec", session="last", shell=CURL)
        answer(last, asked(last, 30), "once")
        assert outcome(runner, running) == "200"


def test_a_killed_server_ends_its_questions(session: Session, lab: Lab) -> None:
    process = session.sessions.start(["serve"], stdin=subprocess.PIPE, stderr=None).process
    with Rpc.of_process(process) as rpc, session.sessions.serve() as runner:
        attending = Bound(rpc, {"session": "w"})
        attending.call("network.attend")
        running = run(runner)
        question = asked(attending)
        process.kill()
        assert NOBODY in outcome(runner, running) and question
        until(lambda: process.poll() is not None, "it has ended")
    assert not lab.log() and not granted(session)
