# SPDX-License-Identifier: Apache-2.0
"""A running command: its output, its input and its end."""

from __future__ import annotations

import base64
import inspect
import threading
from collections import deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Any, AsyncIterator, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Union

from ._face import PIECE, Content, Part, as_bytes, encoded
from ._operations import NOT_ASYNC, Answer, AsyncFace, Steps, SyncFace, operation
from ._request import Request
from ._server import Server
from ._times import Time, seconds_of
from .errors import NoProcessError
from .results import Result, result_of

_NOTES = ("process.output", "process.exited")

BUFFER_MAX = 16 << 20
"""Maximum bytes of unread output. Beyond it, the oldest output is dropped, and counted in `dropped`."""

CHUNK_COST = 256
"""Bytes that each chunk counts in addition to its data. Otherwise, many small chunks could take too much memory."""


@dataclass(frozen=True)
class ProcessInfo:
    """A process in a listing.

    id          the argument of Sandbox.process()
    state       "running", "ended", or "background": the command has ended, and children of it still run
    pid         the process id inside
    started_ms  the start in milliseconds since 1970
    cause       see Result; None while the command runs
    exit_code   see Result; None while the command runs
    """

    id: str
    command: str
    state: str
    pid: int
    started_ms: int
    cause: Optional[str] = None
    exit_code: Optional[int] = None


def process_info_of(entry: Mapping[str, Any]) -> ProcessInfo:
    return ProcessInfo(
        entry["id"], entry["command"], entry["state"], entry["pid"], entry["started_ms"], entry.get("cause"),
        entry.get("exit_code"),
    )


@dataclass(frozen=True)
class Chunk:
    """A piece of output. stream is "stdout" or "stderr"."""

    stream: str
    data: bytes

    @property
    def text(self) -> str:
        """The data as UTF-8. A character that is split between two chunks becomes U+FFFD; join data to avoid that."""
        return self.data.decode("utf-8", "replace")


OnOutput = Callable[[Chunk], Any]


def check_on_output(face: Any, on_output: Optional[OnOutput]) -> None:
    """Raises TypeError for a coroutine function that nobody could await."""
    if on_output and inspect.iscoroutinefunction(on_output) and not isinstance(face, AsyncFace):
        raise TypeError(NOT_ASYNC)


class Output:
    """A queue of output, which the reading thread fills and the caller empties."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chunks: Deque[Chunk] = deque()
        self._size, self._seen = 0, {}  # type: int, Dict[Any, int]
        self._waiters: List["Future[Optional[Chunk]]"] = []
        self.dropped = 0
        self.ended: Optional[int] = None
        self.lost = False

    def note(self, params: Mapping[str, Any]) -> None:
        with self._lock:
            if "seq" in params:
                self._add(params)
            elif "exit_code" in params:
                self.ended = int(params["exit_code"])
            else:
                self.lost = True
            waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            try:
                waiter.set_result(None)
            except InvalidStateError:  # the caller has stopped waiting
                pass

    def _add(self, params: Mapping[str, Any]) -> None:
        id, seq = params.get("id"), int(params["seq"])
        if seq <= self._seen.get(id, 0):  # the server repeats it for a later watcher
            return
        self._seen[id] = seq
        self._chunks.append(Chunk(params["stream"], base64.b64decode(params["base64"])))
        self._size += len(self._chunks[-1].data) + CHUNK_COST
        while self._size > BUFFER_MAX:
            oldest = self._chunks.popleft()
            self._size -= len(oldest.data) + CHUNK_COST
            self.dropped += len(oldest.data)

    def take(self) -> "Union[Chunk, None, Future[Optional[Chunk]]]":
        """Returns the next chunk, or None at the end. If there is no chunk yet, returns a future that is done when take()
        should be called again."""
        with self._lock:
            if self._chunks:
                chunk = self._chunks.popleft()
                self._size -= len(chunk.data) + CHUNK_COST
                return chunk
            if self.ended is not None or self.lost:
                return None
            self._waiters.append(Future())
            return self._waiters[-1]

    def tell(self, on_output: OnOutput) -> "Steps[None]":
        """Calls on_output with each chunk up to the end, and awaits it if it is a coroutine function."""
        while True:
            taken = self.take()
            if isinstance(taken, Future):
                yield taken
            elif taken:
                answer = on_output(taken)
                if inspect.isawaitable(answer):
                    yield Answer(answer)
            else:
                return


class Watched(Part):
    """The whole output of a command that is started with the parameter watch."""

    def __init__(self, server: Server, session: str) -> None:
        super().__init__(server, session)
        self._id, self._over = "", False
        self.output = Output()

    def started(self, request: Any) -> None:
        """Listens to the output. Called when the reply has come, before any output."""
        if not self._over and not request.exception() and "ended" not in request.result():
            self._id = request.result()["id"]
            for method in _NOTES:
                self._server.listeners.add(method, self._session, self._id, self.output.note)

    def end(self) -> None:
        """Drops all further output, because background processes may still print after the end of the command."""
        self._over = True
        for method in _NOTES if self._id else ():
            self._server.listeners.remove(method, self._session, self._id, self.output.note)
        if self.output.ended is not None:
            self._ask_and_forget("process.unwatch", id=self._id)


def within(future: "Union[Future[Any], Request]", time: Optional[Time]) -> "Union[Future[Any], Request]":
    """Returns a future with the same outcome, or with TimeoutError after that time."""
    seconds = seconds_of(time)
    if seconds is None:
        return future
    timed: Future[Any] = Future()

    def settle(what: Any) -> None:
        try:
            what(timed)
        except InvalidStateError:
            pass

    timer = threading.Timer(seconds, settle, [lambda f: f.set_exception(TimeoutError(f"timed out after {seconds} s"))])
    timer.daemon = True

    def on_done(source: Any) -> None:
        timer.cancel()
        error = source.exception()
        settle(lambda f: f.set_exception(error) if error else f.set_result(source.result()))

    future.add_done_callback(on_done)
    timer.start()
    return timed


class ProcessApi(Part):
    """A command that Sandbox.spawn() has started, or Sandbox.process() has found.

    id   the session's name for the command, such as "p1"
    pid  the process id inside
    """

    def __init__(self, server: Server, session: str, id: str, pid: int) -> None:
        super().__init__(server, session)
        self.id, self.pid = id, pid
        self._output = Output()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r} of {self._session!r}>"

    def _watch(self) -> "Steps[None]":
        self._listen()
        try:
            yield self._ask("process.watch", {"id": self.id, "from": 1, "base64": True})
        except BaseException:
            self._unlisten()
            raise

    def _listen(self) -> None:
        for method in _NOTES:
            self._server.listeners.add(method, self._session, self.id, self._output.note)

    def _unlisten(self) -> None:
        for method in _NOTES:
            self._server.listeners.remove(method, self._session, self.id, self._output.note)

    def poll(self) -> Optional[int]:
        """The exit code, or None while the command runs."""
        return self._output.ended

    @property
    def dropped(self) -> int:
        """Bytes of output that were dropped because they were not read in time."""
        return self._output.dropped

    @operation
    def read(self, timeout: Optional[Time] = None) -> "Steps[Optional[Chunk]]":
        """Returns the next chunk of output, or None at the end. Raises TimeoutError after the timeout: seconds, or text
        such as "500ms"."""
        while isinstance(taken := self._output.take(), Future):
            yield within(taken, timeout)
        return taken

    @operation
    def write(self, data: Content) -> "Steps[None]":
        """Writes text or bytes to the command's stdin; needs spawn(..., input=True). Raises LimitError if more than 8
        MiB would wait for the command to read them."""
        yield from self._write(data)

    def _write(self, data: Content) -> "Steps[None]":
        given = as_bytes(data)
        for start in range(0, len(given), PIECE):
            yield self._ask("process.write", {"id": self.id, "base64": encoded(given[start : start + PIECE])})

    @operation
    def close_stdin(self) -> "Steps[None]":
        """Ends the command's input: after the last byte, the command reads end-of-file."""
        yield self._ask("process.close_stdin", {"id": self.id})

    @operation
    def resize(self, rows: int, columns: int) -> "Steps[None]":
        """Sets the size of the command's terminal; needs spawn(..., terminal=True)."""
        yield self._ask("process.resize", {"id": self.id, "rows": rows, "columns": columns})

    @operation
    def signal(self, signal: "Union[str, int]") -> "Steps[None]":
        """Sends a signal to the command and its process group: "TERM", "SIGTERM", 15 or signal.SIGTERM."""
        name = signal if isinstance(signal, str) else str(int(signal))
        yield self._ask("process.signal", {"id": self.id, "signal": name}, urgent=True)

    @operation
    def kill(self) -> "Steps[bool]":
        """Kills the command and all processes that it has started. Returns whether any existed."""
        return bool((yield self._ask("process.kill", {"id": self.id}, urgent=True))["killed"])

    @operation
    def wait(self, timeout: Optional[Time] = None) -> "Steps[Result]":
        """Waits for the end, and returns the result with the kept output. After the timeout (seconds, or text such as
        "1m"), raises TimeoutError; the command keeps running.

        If the session has stopped since the command ended, the output is gone. The result then comes from the
        session's history, and a session at rest is not started."""
        asked = self._ask("process.wait", {"id": self.id, "output": True, "base64": True})
        try:
            return result_of((yield within(asked, timeout)))
        except NoProcessError:
            pass
        try:
            return result_of((yield within(self._ask("process.wait", {"id": self.id}), timeout)))
        except NoProcessError:
            past = yield from self._past(timeout)
            if past is None:
                raise
            return result_of(past)

    def _past(self, timeout: Optional[Time]) -> "Steps[Optional[Mapping[str, Any]]]":
        """Returns how the command ended, from the history of a session at rest, or None."""
        for method in ("process.spawn", "exec"):
            before = None
            while True:
                asked = self._ask("history.list", {"name": method, "before": before, "limit": 1000})
                page = yield within(asked, timeout)
                for row in page["rows"]:
                    if (row["result"] or {}).get("id") == self.id:
                        wall = None if row["ended_ms"] is None else (row["ended_ms"] - row["started_ms"]) * 1000
                        return {**row["result"], "usage": {"wall_us": wall}}
                before = page["next"]
                if before is None:
                    break
        return None

    @operation
    def _end(self) -> "Steps[None]":
        """Kills the command and all processes that it has started, and waits for their end."""
        try:
            yield self._ask("process.kill", {"id": self.id}, urgent=True)
            yield self._ask("process.wait", {"id": self.id})
        except NoProcessError:  # the session has stopped, and the process with it
            pass

    def _forget(self) -> None:
        """Drops all further output, until the command has ended."""

        def drop(_: Mapping[str, Any]) -> None: ...

        def end(_: Mapping[str, Any]) -> None:
            self._server.listeners.remove("process.output", self._session, self.id, drop)
            self._server.listeners.remove("process.exited", self._session, self.id, end)

        self._server.listeners.add("process.output", self._session, self.id, drop)
        self._server.listeners.add("process.exited", self._session, self.id, end)
        self._unlisten()
        if self._output.ended is not None:
            end({})


class Process(ProcessApi, SyncFace):
    """A context manager that kills the command at its end. Iterating yields the output, up to its end."""

    def __iter__(self) -> Iterator[Chunk]:
        while (chunk := self.read()) is not None:
            yield chunk

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._server.closed:
            self._end()
        self._forget()


class AsyncProcess(ProcessApi, AsyncFace):
    """An async context manager that kills the command at its end. Iterating yields the output, up to its end."""

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        while (chunk := await self.read()) is not None:
            yield chunk

    async def __aenter__(self) -> "AsyncProcess":
        return self

    async def __aexit__(self, *exception: object) -> None:
        if not self._server.closed:
            await self._end()
        self._forget()
