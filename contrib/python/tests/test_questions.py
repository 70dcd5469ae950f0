# SPDX-License-Identifier: Apache-2.0
"""Questions about hosts that no rule allows: on_ask.

Code inside names a host to the proxy of the session, so that the question comes before the name is resolved. The name
does not exist, so a connection that is allowed fails later.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any, Callable, Dict, List

import pytest

from holt import Allow, AsyncSandbox, ExistsError, Question, Sandbox, Server, UsageError
from holt.questions import Questions, Reply

NAME = "nowhere.invalid"

PROXY: Dict[str, Any] = {"network": {"proxy": True}}
SHORT: Dict[str, Any] = {"network": {"proxy": True, "ask_timeout": "1s"}}


def connect(port: int = 443, name: str = NAME) -> str:
    """A line of bash that prints the proxy's reply to a CONNECT."""
    return (
        f"exec 3<>/dev/tcp/198.18.0.1/3128; printf 'CONNECT {name}:{port} HTTP/1.1\\r\\n\\r\\n' >&3; timeout 60 head -n 1 <&3"
    )


def grants(box: Sandbox) -> "List[Dict[str, Any]]":
    return [json.loads(row.detail) if isinstance(row.detail, str) else row.detail for row in box.audit(kind="grant")]


def test_each_answer(caplog: pytest.LogCaptureFixture) -> None:
    asked: List[Question] = []
    answers: Dict[int, Reply] = {1: "once", 2: True, 3: "session", 4: "no", 5: False}

    def on_ask(question: Question) -> Reply:
        asked.append(question)
        return answers[question.port]

    with Sandbox(policy=PROXY, on_ask=on_ask) as box:
        for port in (1, 2, 3, 3, 4, 4, 5):
            box.bash(connect(port))
        assert asked == [Question(NAME, port, 60.0) for port in (1, 2, 3, 4, 5)]
        assert sorted(grants(box), key=lambda each: str(each["grant"])) == [
            {"grant": f"net:{NAME}:1", "once": True, "asked": True}, {"grant": f"net:{NAME}:2", "once": True, "asked": True},
            {"grant": f"net:{NAME}:3", "asked": True},
        ]
        assert box.show()["network"]["allow"] == [f"{NAME}:3"]
        (denial,) = box.bash(connect(5)).denials
        assert "the answer was no" in str(denial)
    assert not caplog.records


def test_the_sandbox_attends_again_after_a_stop() -> None:
    asked: List[int] = []

    def on_ask(question: Question) -> Allow:
        asked.append(question.port)
        return "no"

    with Sandbox("asking", policy=PROXY, on_ask=on_ask) as box:
        for port in (1, 2):
            box.bash(connect(port))
            box.stop()
        assert asked == [1, 2]
    with Sandbox("asking") as later:
        assert "nobody could be asked" in str(later.bash(connect(3)).denials[0])
        later.remove()
    assert asked == [1, 2]


@pytest.mark.parametrize("wrong", [None, "yes", 1, ["once"], ZeroDivisionError()])
def test_a_wrong_answer_is_no(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    def on_ask(question: Question) -> Any:
        if isinstance(wrong, Exception):
            raise wrong
        return wrong

    with Sandbox(policy=PROXY, on_ask=on_ask) as box:
        (denial,) = box.bash(connect()).denials
        assert "the answer was no" in str(denial) and not grants(box)
    (record,) = caplog.records
    assert record.name == "holt" and record.levelno == logging.ERROR and NAME in record.getMessage()
    assert record.exc_info and isinstance(record.exc_info[1], type(wrong) if isinstance(wrong, Exception) else UsageError)


def test_a_deadline_passes_and_other_calls_go_on() -> None:
    go = threading.Event()

    def on_ask(question: Question) -> Allow:
        assert go.wait(60)
        return "session"

    with Sandbox(policy=SHORT, on_ask=on_ask) as box:
        waiting = box.spawn(connect())
        assert box.bash("echo other").stdout == "other\n"
        assert "no answer came in time" in str(waiting.wait().denials[0])
        go.set()
        assert box.bash("echo later").stdout == "later\n" and not grants(box)


def test_a_coroutine_runs_in_the_caller_s_loop_and_is_cancelled_at_the_deadline() -> None:
    async def main() -> None:
        loops: List[Any] = []
        cancelled = asyncio.Event()

        async def on_ask(question: Question) -> Allow:
            loops.append(asyncio.get_running_loop())
            if question.port == 1:
                return "no"
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return "session"

        async with AsyncSandbox(policy=SHORT, on_ask=on_ask) as box:
            assert "the answer was no" in str((await box.bash(connect(1))).denials[0])
            assert "no answer came in time" in str((await box.bash(connect(2))).denials[0])
            await asyncio.wait_for(cancelled.wait(), 60)
        assert loops == [asyncio.get_running_loop()] * 2

    asyncio.run(main())


def test_a_coroutine_without_a_loop() -> None:
    async def on_ask(question: Question) -> Allow:
        await asyncio.sleep(0)
        return "once"

    with Sandbox(policy=PROXY, on_ask=on_ask) as box:
        box.bash(connect())
        assert [each["grant"] for each in grants(box)] == [f"net:{NAME}:443"]


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="on_ask must be a function, not 'once'"):
        Sandbox(on_ask="once")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="^on_ask: ") as none:
        Sandbox(policy={"network": {"mode": "none"}}, on_ask=lambda question: "no")
    assert none.value.hint and "--" not in none.value.hint
    with Sandbox("w", net=["example.org:80"]) as box:
        with pytest.raises(ExistsError, match="a different network.ask, which on_ask sets"):
            Sandbox("w", on_ask=lambda question: "no")
        box.remove()


def ask(number: str, session: str, port: int, timeout_ms: int = 30000) -> str:
    """A message of a fake server."""
    params = {"session": session, "name": NAME, "port": port, "timeout_ms": timeout_ms}
    return f"say({{'id': {number!r}, 'method': 'network.ask', 'params': {params!r}}})"


def test_each_session_has_its_own_function(fake: Callable[..., Server]) -> None:
    """A session without one is refused, and so is a question of an unknown kind."""
    server = fake("\n".join([
        "for _ in 'ab': answer({})", "asked = hear()", ask("q1", "a", 1), "one = value()", ask("q2", "b", 1), "two = value()",
        ask("q3", "c", 1), "three = value()", "say({'id': 'q4', 'method': 'network.other', 'params': {}})", "four = value()",
        "say({'id': asked['id'], 'result': [one, two, three, four]})",
    ]))

    def attend(session: str, allow: Allow) -> None:
        steps = Questions.of(server).attend(session, lambda question: allow, None)
        next(steps).result()
        with pytest.raises(StopIteration):
            steps.send(None)

    attend("a", "session")
    attend("b", "no")
    one, two, three, four = server.call("x")
    assert (one["result"], two["result"]) == ({"allow": "session"}, {"allow": "no"})
    assert three["error"]["code"] == -32000 and four["error"]["code"] == -32601
