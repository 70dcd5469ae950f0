# SPDX-License-Identifier: Apache-2.0
"""Questions about hosts that no rule allows, which a function of this program answers.

Theory of operation. network.attend makes the keeper of a session ask our connection. A question is a request of the
server (network.ask), and the connection that it is about waits. The reader's thread passes it to a pool of its own, so
that neither calls of tools nor replies wait for an answer. A coroutine runs in its event loop, if one is known.

The keeper ends a question at its deadline and refuses the connection. A coroutine is cancelled then, and a question
that still waits for a thread is dropped. A running thread cannot be cancelled; the keeper ignores its late reply.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
import threading
import time
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, Literal, Mapping, NamedTuple, Optional, Union

from ._connection import Connection
from ._operations import Steps
from ._pool import Pool
from ._server import Server
from .errors import UsageError

Allow = Literal["once", "session", "no"]
"""The answer "once" allows this connection, "session" adds a rule that the session keeps, and "no" refuses the
connection. After "no", the name and the port are refused without a question while the session is live."""


@dataclass(frozen=True)
class Question:
    """A question about a host that no rule allows. A connection inside waits for the answer.

    name comes from code inside, in its ASCII form: show it as untrusted text. timeout is the time for the answer in
    seconds. After that, the keeper refuses the connection.
    """

    name: str
    port: int
    timeout: float


Reply = Union[Allow, bool]
"""An answer. True stands for "once", and False for "no"."""

OnAsk = Callable[[Question], Union[Reply, Awaitable[Reply]]]
"""A function that answers questions. It may be a coroutine function."""

_ANSWERS: Dict[Any, Allow] = {"once": "once", "session": "session", "no": "no", True: "once", False: "no"}

_NOBODY = {"error": {"code": -32000, "message": "nobody answers questions about hosts"}}
"""Refuses only the connection of the question."""

_log = logging.getLogger("holt")
_pool = Pool("holt question")


class _Late(Exception):
    """The deadline of the question has passed."""


class _Asked(NamedTuple):
    """The function that answers the questions of a session, and the event loop for its coroutines."""

    on_ask: OnAsk
    loop: Optional[asyncio.AbstractEventLoop]


class Questions:
    """The questions of all sessions of one server."""

    def __init__(self, server: Server) -> None:
        self._server, self._lock = server, threading.Lock()
        self._asked: Dict[str, _Asked] = {}

    @staticmethod
    def of(server: Server) -> "Questions":
        """Returns the Questions of a server, and makes them at the first call."""
        with _questions_lock:
            questions = getattr(server, "_questions", None)
            if questions is None:
                questions = Questions(server)
                server._questions = questions  # type: ignore[attr-defined]
                server.on_requests["network.ask"] = questions._on_request
        return questions

    def attend(self, session: str, on_ask: OnAsk, loop: Optional[asyncio.AbstractEventLoop]) -> "Steps[None]":
        """Answers the questions of a session from now on, also after it has stopped and started again.

        Raises UsageError if the session has no network with rules."""
        with self._lock:
            before = self._asked.get(session)
            self._asked[session] = _Asked(on_ask, loop)
        params = {"session": session}
        try:
            yield self._server.submit("network.attend", params)
        except BaseException as error:
            self._put(session, before)
            if isinstance(error, UsageError):
                error.reword(f"on_ask: {error.message}")
                error.hint = "Leave out on_ask, or the mode of the network in policy."
            raise
        self._server.repeat("network.attend", session, "", params)

    def drop(self, session: str, on_ask: OnAsk) -> None:
        """Stops answering questions of a session with this function."""
        with self._lock:
            asked = self._asked.get(session)
            if not asked or asked.on_ask is not on_ask:
                return
            del self._asked[session]
        self._server.repeat("network.attend", session, "", None)

    def _put(self, session: str, asked: Optional[_Asked]) -> None:
        with self._lock:
            if asked:
                self._asked[session] = asked
            else:
                self._asked.pop(session, None)

    def _on_request(self, connection: Connection, message: Mapping[str, Any]) -> None:
        """Handles a question in the reader's thread."""
        params, number = message.get("params") or {}, message["id"]
        question = Question(params["name"], params["port"], params["timeout_ms"] / 1000)
        with self._lock:
            asked = self._asked.get(params.get("session", ""))
        due = time.monotonic() + question.timeout
        _pool.submit(lambda: self._work(connection, number, question, asked, due), (self, params.get("session", "")))

    def _work(
        self, connection: Connection, number: Any, question: Question, asked: Optional[_Asked], due: float
    ) -> None:
        answer: Mapping[str, Any] = _NOBODY
        try:
            if asked:
                answer = {"result": {"allow": _answer(question, asked, due)}}
        except _Late:
            return
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            pass
        except BaseException:
            _log.exception("on_ask failed, so %r, port %d, is refused", question.name, question.port)
            answer = {"result": {"allow": "no"}}
        self._server.answer(connection, number, answer)


_questions_lock = threading.Lock()


def check_on_ask(on_ask: Optional[OnAsk]) -> None:
    """Raises UsageError unless on_ask is callable or None."""
    if on_ask is not None and not callable(on_ask):
        raise UsageError(
            f"on_ask must be a function, not {on_ask!r}", hint='Write on_ask=lambda question: "once", for example.'
        )


def _answer(question: Question, asked: _Asked, due: float) -> Allow:
    """Returns the answer of the program. Raises _Late, or any exception of the program's function."""
    if time.monotonic() >= due:
        raise _Late
    value: Any = asked.on_ask(question)
    if inspect.isawaitable(value):
        value = _waited(value, asked.loop, due)
    allow = _ANSWERS.get(value) if isinstance(value, (str, bool)) else None
    if allow is None:
        raise UsageError(f'on_ask must return "once", "session" or "no", not {value!r}')
    return allow


def _waited(value: "Awaitable[Any]", loop: Optional[asyncio.AbstractEventLoop], due: float) -> Any:
    """Runs a coroutine in its loop, or in a new one. Raises _Late if it does not end in time."""
    if loop is None or loop.is_closed() or not loop.is_running():
        return asyncio.run(_until(value, due))
    future = asyncio.run_coroutine_threadsafe(_until(value, due), loop)
    # The loop may stop before the deadline, or be too busy to notice it.
    done, _ = concurrent.futures.wait([future], due + 1 - time.monotonic())
    if not done:
        future.cancel()
        raise _Late
    return future.result()


async def _until(value: "Awaitable[Any]", due: float) -> Any:
    task = asyncio.ensure_future(value)
    try:
        done, _ = await asyncio.wait([task], timeout=due - time.monotonic())
    finally:
        if not task.done():
            task.cancel()
    if not done:
        raise _Late
    return task.result()
