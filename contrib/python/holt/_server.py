# SPDX-License-Identifier: Apache-2.0
"""A `holt serve` of our own, and JSON-RPC with it.

Theory of operation. Requests are written by whatever thread makes them, under a lock, and are told apart by their
ids; one daemon thread reads all that comes. An answer becomes the result of the request's future. A notification goes
to whom it concerns by (method, session, id). A request of the server's is a call of a tool, which threads of
_tools.py work off, so that the reader never waits for anybody's code.

Its stdin and stdout are one socket, so that files go as fds: see submit().

The server has a session of its own on the terminal's side (setsid), so that Ctrl-C is this process's to handle: it ends
when its stdin does, at the latest with this process.
"""

from __future__ import annotations

import array
import collections
import contextlib
import io
import itertools
import json
import math
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import weakref
from concurrent.futures import Future, InvalidStateError
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .errors import ClosedError, HoltNotFoundError, LimitError, UsageError, error_of

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # as JSON has it
LINE_MAX = 1 << 20
"""Bytes of a request, as holt serve takes them."""

_IN_FLIGHT = 230  # of 256; the rest is for what must not wait behind these

COMMANDS_MAX = 160
"""Commands that are waited for at once; further ones begin as these end. A session keeps the last 256 that have ended,
so none of these is forgotten before its wait arrives."""

TRANSFERS_MAX = 12
"""Files that come or go by an fd at once; a session takes 32 from all its clients."""

AT_ONCE = 32 << 10
"""Bytes of which a socket that has little room takes all or none."""

ANY = ""
"""The id that listen() takes for notes of all ids that have no listener of their own."""

Note = Callable[[Mapping[str, Any]], None]


INTEGER_MAX = 2**53 - 1
"""The largest integer that holt serve accepts in a request; the smallest is its negative."""

DEPTH_MAX = 64
"""Maximum nesting depth of objects and lists in a message."""


def _path(value: Any) -> str:
    """Converts a parameter that JSON has no type for: a path becomes its text."""
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise UsageError(f"{value!r} can't be sent to a sandbox: it is a {type(value).__name__}")


def _check(value: Any, what: str, depth: int = 1) -> None:
    """Raises UsageError for what json.dumps() writes and is no strict JSON: the server could not read it, and thus not
    say to which request that is the answer."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{what}: {value} is no number that JSON has")
    if isinstance(value, int) and abs(value) > INTEGER_MAX:
        raise UsageError(
            f"{what}: an integer is past 2^53 - 1, where numbers of JSON lose digits", hint="Write it as text."
        )
    if not isinstance(value, (dict, list, tuple)):
        return
    if depth > DEPTH_MAX:
        raise UsageError(f"{what}: there are more than {DEPTH_MAX} objects and lists in each other")
    for name in value if isinstance(value, dict) else ():
        if not isinstance(name, str):
            raise UsageError(f"{what}: the name {name!r} is no text", hint=f"Write str({name!r}).")
    for each in value.values() if isinstance(value, dict) else value:
        _check(each, what, depth + 1)


def _line_of(message: Mapping[str, Any], what: str) -> bytes:
    """As it is sent. Raises UsageError; what: of whom it speaks."""
    _check(message, what)
    try:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=_path).encode() + b"\n"
    except UnicodeEncodeError as error:
        raise UsageError(f"{what}: a text has half of a surrogate pair, which is no character") from error
    # The first is a hundred times as fast, and nearly always enough.
    if b"\\u0000" in line and _NUL.search(line):
        raise UsageError(f"{what}: a text has a NUL, which no text of a message may have")
    return line


def find_holt(holt: Optional[str] = None) -> str:
    """The program: the one named, $HOLT, or holt in the PATH. Raises HoltNotFoundError."""
    named = holt or os.environ.get("HOLT")
    found = shutil.which(named or "holt")
    if found:
        return os.path.abspath(found)
    where = "given" if holt else "of $HOLT" if named else "in the PATH"
    raise HoltNotFoundError(
        f"there is no program {named or 'holt'} ({where})",
        hint="Build and install holt (its README.md), or set HOLT to where it is, as HOLT=~/holt/build/runner/holt",
    )


class Slots:
    """For what may be done so many times at once."""

    def __init__(self, most: int) -> None:
        self._lock, self._free = threading.Lock(), most
        self._queued: Deque["Future[None]"] = collections.deque()

    def begin(self) -> "Future[None]":
        """Done when one may begin; end() is due once it is."""
        future: Future[None] = Future()
        with self._lock:
            if not self._free:
                self._queued.append(future)
                return future
            self._free -= 1
        future.set_result(None)
        return future

    def end(self, begun: "Future[None]") -> None:
        """Also of one that nobody waits for any more, and that has not begun."""
        with self._lock:
            if begun in self._queued:
                self._queued.remove(begun)
                return
            following = self._queued.popleft() if self._queued else None
            if not following:
                self._free += 1
        if following:
            with contextlib.suppress(InvalidStateError):
                following.set_result(None)


def _close_all(fds: List[int]) -> None:
    for fd in fds:
        os.close(fd)


def _lines(ours: socket.socket) -> "Iterator[Tuple[bytes, List[io.FileIO]]]":
    """Each line with the fds that have come with it, as files that close themselves where nobody wants them.

    The kernel ends what it gives at once with the message that has fds, so they are of the last line that has begun.
    """
    begun: List[bytes] = []
    held: List[io.FileIO] = []
    while True:
        data, parts, _, _ = ours.recvmsg(1 << 18, socket.CMSG_SPACE(16), socket.MSG_CMSG_CLOEXEC)
        files = [io.FileIO(fd, "r") for _, _, part in parts for fd in array.array("i", part[: len(part) & ~3])]
        if not data:
            return
        first, *more = data.split(b"\n")
        begun.append(first)
        if not more:
            held += files
            continue
        whole, begun = [b"".join(begun), *more[:-1]], more[-1:]
        nothing: List[List[io.FileIO]] = [[] for _ in more]
        of = [held, *nothing]  # of each line that is whole, and of what has begun
        of[-1 if begun[0] else -2].extend(files)
        held = of.pop()
        yield from zip(whole, of)


class Server:
    """A `holt serve`, which is started by the first request. Any thread may use it; sandboxes may share it.

    holt  the program, where it is neither $HOLT nor in the PATH
    env   variables beyond this process's own, as {"XDG_DATA_HOME": ...} for another place for sessions
    """

    def __init__(self, holt: Optional[str] = None, env: Optional[Mapping[str, str]] = None) -> None:
        self.holt, self.env = holt, dict(env or {})
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._ids = itertools.count(1)
        self._waiting: Dict[int, "Future[Any]"] = {}
        self._delayed: Deque[Tuple[bytes, List[int]]] = collections.deque()
        self._notes: Dict[Tuple[str, str, str], Tuple[Note, ...]] = {}
        self.commands, self.transfers = Slots(COMMANDS_MAX), Slots(TRANSFERS_MAX)
        self._runs: Dict[str, Deque["Future[None]"]] = {}
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._socket: Optional[socket.socket] = None
        self._stderr: Any = None
        self._pid = 0
        self._reader: Optional[threading.Thread] = None
        self._ended: Optional[ClosedError] = None
        self.on_request: Optional[Callable[[Mapping[str, Any]], None]] = None
        self.on_cancel: Optional[Callable[[Mapping[str, Any]], None]] = None

    # --- its life ---

    def _start(self) -> "subprocess.Popen[bytes]":
        if self._ended:
            raise ClosedError(self._ended.message)  # a new one: each has a traceback of its own
        if self._process:
            if self._pid != os.getpid():
                raise UsageError(
                    "the sandbox was made before a fork, in another process", hint="Make a Sandbox in each process."
                )
            return self._process
        program = find_holt(self.holt)
        ours, theirs = socket.socketpair()
        self._stderr = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [program, "serve"], stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=self._stderr,
                env={**os.environ, **self.env}, start_new_session=True,
            )
        except OSError as error:
            ours.close()
            self._stderr.close()
            raise HoltNotFoundError(f"{program} can't be started: {error.strerror}") from error
        finally:
            theirs.close()
        self._socket, self._pid = ours, os.getpid()
        _started.add(self)
        self._reader = threading.Thread(target=self._read, args=(self._process, ours), name="holt serve", daemon=True)
        self._reader.start()
        return self._process

    def close(self) -> None:
        """Ends it. Sessions go on, but for what was started as owned. Requests that wait fail."""
        with self._lock:
            process, ours, mine = self._process, self._socket, self._pid == os.getpid()
            self._ended = self._ended or ClosedError("the sandbox is closed")
        if not process or not mine:
            return
        with contextlib.suppress(OSError):
            assert ours
            ours.shutdown(socket.SHUT_WR)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reader and self._reader is not threading.current_thread():
            self._reader.join(10)  # it closes what it reads from

    @property
    def closed(self) -> bool:
        return self._ended is not None

    # --- asking ---

    def submit(
        self, method: str, params: Mapping[str, Any], urgent: bool = False, fds: Sequence[int] = ()
    ) -> "Future[Any]":
        """Asks, and returns a future of the result. Raises HoltError where nothing can be sent.

        urgent  goes out even where so many requests wait for their answer that another would be kept back
        fds     go along; they stay the caller's, who may close them then. Those of the answer are "files" of the result
        """
        with self._lock:
            self._start()
            number, future = next(self._ids), Future()  # type: Tuple[int, Future[Any]]
            line = _line_of({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, method)
            if len(line) > LINE_MAX:
                raise LimitError(
                    f"{method}: the request has {len(line)} bytes; {LINE_MAX} are the most",
                    hint="Put what is that large into a file, by files.write().",
                )
            future.set_running_or_notify_cancel()
            late = len(self._waiting) - len(self._delayed) >= _IN_FLIGHT and not urgent
            if late:
                self._delayed.append((line, [os.dup(fd) for fd in fds]))
            self._waiting[number] = future
        if not late:
            try:
                self._send_soon(line, fds)
            except BaseException:
                with self._lock:
                    self._waiting.pop(number, None)
                raise
        return future

    def begin_watched_run(self, session: str) -> "Future[None]":
        """Done when code whose output is listened to may run; end_watched_run() is due then.

        That output has the id of an interpreter, which only the answer tells: so one of them at a time.
        """
        turn: Future[None] = Future()
        with self._lock:
            runs = self._runs.setdefault(session, collections.deque())
            runs.append(turn)
            first = runs[0] is turn
        if first:
            turn.set_result(None)
        return turn

    def end_watched_run(self, session: str, turn: "Future[None]") -> None:
        """Also of one that nobody waits for any more, and that has not begun."""
        with self._lock:
            runs = self._runs[session]
            mine = runs[0] is turn
            if mine:
                self._notes.pop(("process.output", session, ANY), None)
            runs.remove(turn)
            following = runs[0] if mine and runs else None
            if not runs:
                del self._runs[session]
        if following:
            with contextlib.suppress(InvalidStateError):
                following.set_result(None)

    def call(self, method: str, **params: Any) -> Any:
        """Asks, and waits for the result."""
        return self.submit(method, params).result()

    def answer(self, number: Any, message: Mapping[str, Any]) -> None:
        """Answers a request of the server's: {"result": ...} or {"error": ...}."""
        wrong = None
        try:
            line = _line_of({"jsonrpc": "2.0", "id": number, **message}, "the tool's result")
        except UsageError as error:
            wrong = error.message
        else:
            if len(line) > LINE_MAX:
                wrong = f"the tool's result has {len(line)} bytes; {LINE_MAX} are the most"
        if wrong is not None:
            self.answer(number, {"error": {"code": -32000, "message": wrong, "data": {"type": "internal_error"}}})
            return
        with contextlib.suppress(ClosedError):
            self._send(line)

    def listen(self, method: str, session: str, name: str, note: Note) -> None:
        """Hands notifications of that method about what has that id to note, too, in the reader's thread."""
        key = method, session, name
        with self._lock:
            self._notes[key] = (*self._notes.get(key, ()), note)

    def unlisten(self, method: str, session: str, name: str, note: Note) -> None:
        """Ends it."""
        key = method, session, name
        with self._lock:
            left = tuple(each for each in self._notes.pop(key, ()) if each != note)
            if left:
                self._notes[key] = left

    def _send_soon(self, line: bytes, fds: Sequence[int]) -> None:
        """Does not wait for the server to read: who waits may be interrupted (Ctrl-C), and half a line would spoil all
        that follow. A thread waits."""
        if len(line) > AT_ONCE or not self._send(line, fds, socket.MSG_DONTWAIT):
            threading.Thread(target=self._send_late, args=(line, [os.dup(fd) for fd in fds]), daemon=True).start()

    def _send(self, line: bytes, fds: Sequence[int] = (), how: int = 0) -> bool:
        """False where there is no room for it (MSG_DONTWAIT)."""
        with self._write_lock:
            assert self._socket
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            try:
                view = memoryview(line)[self._socket.sendmsg([line], rights, how | socket.MSG_NOSIGNAL) :]
                while view:
                    view = view[self._socket.send(view, socket.MSG_NOSIGNAL) :]
                return True
            except BlockingIOError:
                return False
            except (OSError, ValueError) as error:
                self._end()
                raise ClosedError(self._ended.message if self._ended else str(error)) from error

    # --- the reader's thread ---

    def _read(self, process: "subprocess.Popen[bytes]", ours: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line, files in _lines(ours):
                try:
                    self._take(json.loads(line), files)
                except Exception:  # one odd message is no end for all the others
                    import traceback

                    traceback.print_exc()
        with contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)  # who writes need not wait any longer
        process.wait()
        self._end()
        with self._write_lock:
            ours.close()

    def _take(self, message: Mapping[str, Any], files: Sequence[io.FileIO]) -> None:
        if "method" not in message:
            if files and "result" in message:
                message["result"]["files"] = files
            self._take_answer(message)
        elif "id" in message:
            if self.on_request:
                self.on_request(message)
        else:
            params = message["params"]
            if message["method"] == "tool.cancel":
                if self.on_cancel:
                    self.on_cancel(params)
                return
            with self._lock:
                method, session = message["method"], params.get("session", "")
                notes = self._notes.get((method, session, params.get("id", ""))) or self._notes.get((method, session, ANY))
            for note in notes or ():
                note(params)

    def _take_answer(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            future = self._waiting.pop(message.get("id"), None)  # type: ignore[arg-type]
            late = self._delayed.popleft() if self._delayed else None
        if late:
            # In a thread: the reader must read while the server waits for us to.
            threading.Thread(target=self._send_late, args=late, daemon=True).start()
        if not future:
            return
        with contextlib.suppress(InvalidStateError):
            if "error" in message:
                future.set_exception(error_of(message["error"]))
            else:
                future.set_result(message["result"])

    def _send_late(self, line: bytes, fds: List[int]) -> None:
        with contextlib.suppress(ClosedError):
            self._send(line, fds)
        _close_all(fds)

    def _end(self) -> None:
        """All that waits fails, with what the server has said last."""
        with self._lock:
            if not self._ended:
                process = self._process
                said = ""
                with contextlib.suppress(OSError, ValueError):
                    self._stderr.seek(0)
                    said = self._stderr.read().decode(errors="replace").strip()
                code = process.poll() if process else None
                self._ended = ClosedError(f"holt serve has ended (code {code})" + (f": {said[-2000:]}" if said else ""))
            self._stderr.close()
            waiting, self._waiting = list(self._waiting.values()), {}
            for _, fds in self._delayed:
                _close_all(fds)
            self._delayed.clear()
            notes, self._notes = [note for each in self._notes.values() for note in each], {}
        for future in waiting:
            with contextlib.suppress(InvalidStateError):
                future.set_exception(ClosedError(self._ended.message))
        for note in notes:
            note({"lost": True})


_started: "weakref.WeakSet[Server]" = weakref.WeakSet()


def _leave_to_parent() -> None:
    """A server ends with the program that has started it, not with the last of its forks."""
    for server in list(_started):
        if server._socket:
            server._socket.close()


os.register_at_fork(after_in_child=_leave_to_parent)
