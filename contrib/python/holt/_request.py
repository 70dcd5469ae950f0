# SPDX-License-Identifier: Apache-2.0
"""A request and its reply."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Set

from ._message import Params

SOON = 1
"""Milliseconds within which a reply is quick. A coroutine blocks at most for this time before it yields to the loop."""

if TYPE_CHECKING:
    from ._connection import Connection

AWAITED: "Set[Request]" = set()
"""The requests of all connections that coroutines await in an event loop."""


class Request:
    """A request, and its reply once it has come. It works like a concurrent.futures.Future, and is faster."""

    __slots__ = (
        "method", "params", "fds", "urgent", "number", "tries", "sent", "connection", "_done", "_value", "_error",
        "_callbacks", "_wake", "_wanted", "_waits",
    )

    def __init__(
        self, method: str, params: Params, urgent: bool = False, fds: Sequence[int] = (),
        then: "Optional[Callable[[Any], Any]]" = None,
    ) -> None:
        """then is a callback like that of add_done_callback(). It runs before the messages after the reply are processed."""
        self.method, self.params, self.urgent, self.fds = method, params, urgent, fds
        self.number = self.tries = 0
        self.connection: Optional[Connection] = None
        self.sent = self._done = self._waits = False
        self._value: Any = None
        self._error: Optional[BaseException] = None
        self._callbacks: List[Callable[[Any], Any]] = [then] if then else []
        self._wanted = then is not None
        self._wake: Any = None

    def done(self) -> bool:
        return self._done

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """Waits like result(), and returns the error that the server has replied, or None."""
        self._wait(timeout)
        return self._error

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits for the reply, and returns its result. Raises its error, or TimeoutError after timeout seconds."""
        if not self._done:
            self._wait(timeout)
        if self._error is not None:
            raise self._error
        return self._value

    def _wait(self, timeout: Optional[float]) -> None:
        if timeout is not None or self._waits:
            self.future().exception(timeout)
            return
        self._waits = True  # wake() wakes only one thread, and only one can read in the name of this request
        try:
            while not self._done:
                connection = self.connection
                if connection:
                    connection.wait(self)
                else:
                    self.sleep(lambda: self.connection is None)
        finally:
            self._waits = False

    def sleep(self, condition: Callable[[], bool]) -> None:
        """Sleeps until wake(), if the condition still holds."""
        if self._wake is None:
            wake = threading.Lock()
            wake.acquire()
            self._wake = wake
        if not self._done and condition():
            self._wake.acquire()

    def wake(self) -> None:
        """Wakes the waiting thread, so that it checks its condition again."""
        wake = self._wake
        if wake is not None:
            with contextlib.suppress(RuntimeError):  # the thread is awake already
                wake.release()

    def add_done_callback(self, function: Callable[[Any], Any]) -> None:
        """Calls function with this request when the reply has come. The thread that reads the reply makes the call."""
        self._callbacks.append(function)
        self.want()
        if self._done:
            self._call_back()

    def want(self) -> None:
        """Makes sure that the reply is read even if no caller waits for it."""
        self._wanted = True
        connection = self.connection
        if connection:
            connection.want_reply(self)

    def future(self) -> "Future[Any]":
        """Returns a Future of the standard library for the same reply."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.add_done_callback(lambda _: self.copy_to(future))
        return future

    def copy_to(self, future: Any) -> None:
        """Gives a future the outcome of this request, unless the future has one."""
        try:
            if self._error is not None:
                future.set_exception(self._error)
            else:
                future.set_result(self._value)
        except (InvalidStateError, asyncio.InvalidStateError):
            pass

    def in_loop(self, loop: asyncio.AbstractEventLoop) -> "asyncio.Future[Any]":
        """Returns a future of the running event loop for the same reply. The loop itself reads the reply."""
        future, thread, began = loop.create_future(), threading.get_ident(), time.monotonic()

        def settle() -> None:
            if not future.done():
                self.copy_to(future)

        def tell(_: Any) -> None:
            AWAITED.discard(self)
            if connection and time.monotonic() - began < SOON / 1000:
                connection.quick.add(self.method)
            if threading.get_ident() == thread:
                settle()
            else:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(settle)

        connection = self.connection
        AWAITED.add(self)
        self._callbacks.append(tell)
        if connection is None or not connection.watch(loop):
            self.want()
        if self._done:
            self._call_back()
        return future

    def settle(self, value: Any, error: Optional[BaseException] = None) -> None:
        """Sets the outcome of the request. A second call does not change it."""
        if not self._done:
            self._value, self._error = value, error
            self._done = True
        self.wake()
        self._call_back()

    def _call_back(self) -> None:
        while self._callbacks:
            try:
                callback = self._callbacks.pop()
            except IndexError:  # another thread has taken it
                return
            callback(self)
