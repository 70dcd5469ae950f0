# SPDX-License-Identifier: Apache-2.0
"""JSON-RPC over one socket, without a thread between a caller and its reply.

Theory of operation. A caller that waits for a reply reads the socket itself, and is then called the reader. At most one
reader exists. The other callers are followers: they sleep until their reply has come, or until the reader leaves and
one of them takes its place.

Three kinds of readers exist:

- A caller that waits reads in a blocking recvmsg(2).
- An event loop reads when the socket is readable, as soon as a coroutine has awaited a request in it.
- The background thread reads when a message may arrive that no caller waits for; see want() and want_reply(). It pauses
  while others read, because it would only compete with them.

Python can raise KeyboardInterrupt in the main thread between any two instructions. So bytes move from recvmsg(2) into
_arrived within one C call, and are removed only after they have been processed. If the main thread reads, it processes
only its own reply, and leaves everything else to the background thread.
"""

from __future__ import annotations

import array
import asyncio
import collections
import contextlib
import io
import itertools
import json
import os
import select
import socket
import threading
from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ._bytes import NO_SOCKET, Bell, Lines, Socket, files_of
from ._message import line_of
from ._request import SOON, Request
from .errors import error_of

IN_FLIGHT = 230
"""Maximum number of unanswered requests. A server takes 256; the rest is reserved for urgent requests."""

AT_ONCE = 32 << 10
"""Bytes of a message that a nearly full socket takes either whole or not at all."""

_BUSY = 2
"""Milliseconds for which the background thread lets other readers go first."""

_SIZE, _ANCILLARY = (1 << 16,), (socket.CMSG_SPACE(16),)
_WAIT, _NO_WAIT = (int(socket.MSG_CMSG_CLOEXEC),), (int(socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT),)
_SEND, _SEND_NOW = int(socket.MSG_NOSIGNAL), int(socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)  # enumerations are slow

_decode = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # it returns the value and its end


class Peer:
    """The owner of a connection. The thread that reads calls these methods."""

    def on_message(self, connection: "Connection", message: Dict[str, Any]) -> None:
        """Handles a notification, or a request of the server."""

    def on_end(self, connection: "Connection", waiting: List[Request], unread: List[Request]) -> None:
        """Handles the end of the connection. waiting: requests without a reply. unread: those of them that the server has
        certainly not read."""

    def on_error(self, connection: "Connection", request: Request, error: Mapping[str, Any]) -> bool:
        """Returns True if the owner sends the request again, so that the caller does not get this error."""
        return False


class Connection:
    """A connection over one socket.

    session  name of the session whose keeper is at the other end; "" if it is holt serve
    """

    def __init__(self, ours: socket.socket, peer: Peer, session: str = "") -> None:
        self.socket: socket.socket = Socket(ours)
        self.session, self._peer = session, peer
        self._lock, self._write_lock = threading.Lock(), threading.Lock()
        self._ids = itertools.count(1)
        self._waiting: Dict[int, Request] = {}
        self._delayed: Deque[Tuple[bytes, List[int]]] = collections.deque()
        self._outbox: Deque[Tuple[bytes, List[int]]] = collections.deque()
        self._writer: Optional[threading.Thread] = None
        self._reader: Any = None
        self._followers: List[Request] = []
        self._arrived: List[Tuple[bytes, Any, int, Any]] = []
        self._lines = Lines()
        self._reads = self._wants = self._last = 0
        self._wanted: Set[int] = set()  # the numbers of requests whose replies nobody may wait for
        self.ended = self._thread_over = self.hangs = False
        self._loops: Set[asyncio.AbstractEventLoop] = set()
        self._thread: Optional[threading.Thread] = None
        self._bell = Bell()
        self._soon = select.poll()
        self._soon.register(self.socket, select.POLLIN)
        self._ring_when_left = False
        self.quick: Set[str] = set()  # the methods whose last reply came within SOON

    # --- writing ---

    def start(self, request: Request) -> bool:
        """Sends a request. Returns False if the connection had ended, so that the server has not read the request.
        Raises HoltError if the request cannot be written as a message."""
        number = next(self._ids)
        line = line_of(number, request.method, request.params)
        try:
            with self._lock:
                if self.ended:
                    return False
                # A request behind a delayed one is delayed, too, so that the requests of a thread keep their order.
                late = not request.urgent and (len(self._waiting) >= IN_FLIGHT or bool(self._delayed))
                if late:
                    self._delayed.append((line, [os.dup(fd) for fd in request.fds]))
                request.number, request.sent = number, False
                self._waiting[number] = request
                request.connection = self
            if request._wanted:
                self.want_reply(request)
            if late:
                return True
            self._last = number
            self.post(line, request.fds)
            request.sent = True
        except BrokenPipeError:
            unread = self._forget(number)
            self.hang_up()
            return unread is None
        except BaseException:
            self._forget(number)
            raise
        return True

    def _forget(self, number: int) -> Optional[Request]:
        """Returns the request with this number, if its reply has not come, and does not expect its reply any more."""
        with self._lock:
            self._wanted.discard(number)
            return self._waiting.pop(number, None)

    def answer(self, line: bytes) -> None:
        """Replies to a request of the server. Raises BrokenPipeError."""
        self._last = 0
        self.post(line)

    def post(self, line: bytes, fds: Sequence[int] = ()) -> None:
        """Sends a line. If the server does not read, a thread sends it. The caller itself must not block, because an
        interrupt (Ctrl-C) would leave half a line. Raises BrokenPipeError if the connection has ended."""
        if self._writer is None and len(line) <= AT_ONCE:
            with self._write_lock:
                if self._writer is None and self._send(line, fds, _SEND_NOW):
                    return
        with self._write_lock:
            self._outbox.append((line, [os.dup(fd) for fd in fds]))
            if self._writer is None:
                writer = threading.Thread(target=self._write, name="holt writer", daemon=True)
                writer.start()
                self._writer = writer

    def _send(self, line: bytes, fds: Sequence[int], how: int = _SEND) -> bool:
        """Sends a line. Returns False if the socket was full with _SEND_NOW. Raises BrokenPipeError if the connection has
        ended."""
        try:
            if fds:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
                sent = self.socket.sendmsg([line], rights, how)
            else:
                sent = self.socket.send(line, how)
            while sent < len(line):
                sent += self.socket.send(memoryview(line)[sent:], _SEND)
            return True
        except BlockingIOError:
            return False
        except (OSError, ValueError) as error:
            raise BrokenPipeError from error

    def _write(self) -> None:
        """Runs in the writer's thread: sends the queued lines in order."""
        with self._write_lock:
            if self._writer not in (None, threading.current_thread()):
                return
            self._writer = threading.current_thread()
        while True:
            with self._write_lock:
                if not self._outbox:
                    self._writer = None
                    return
                line, fds = self._outbox[0]
            try:
                self._send(line, fds)
            except BrokenPipeError:
                self.hang_up()
            with self._write_lock:
                self._outbox.popleft()
            for fd in fds:
                os.close(fd)

    def hang_up(self) -> None:
        """Shuts the socket down in both directions, which the reader notices."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.want(1)

    # --- waiting and reading ---

    def wait(self, request: Request) -> None:
        """Returns when the request is done, or has moved to another connection."""
        while not request._done and request.connection is self:
            try:
                try:
                    with self._lock:
                        if self._reader is None:
                            self._reader = request
                        elif self._reader is not request:
                            self._followers.append(request)
                    if self._reader is not request:
                        request.sleep(lambda: request.connection is self and self._reader not in (None, request))
                    if self._reader is request:
                        self._lead(request)
                finally:
                    self._leave(request)
            finally:
                if self._reader is not None or self._followers or self._arrived:
                    self._leave(request)  # again, because an interrupt may have cut the first call short

    def _lead(self, request: Request) -> None:
        if self._arrived and not self._is_part():
            return self._leave_to_background()
        while not request._done and request.connection is self and not self.ended:
            self._receive(_WAIT)
            if not request._callbacks and self._take_own(request):
                return
            if self._is_part():
                continue
            if threading.get_ident() == threading.main_thread().ident:
                return self._leave_to_background()
            self._work_off()

    def _leave_to_background(self) -> None:
        """Makes the background thread the reader, to process the messages in _arrived."""
        self._background()
        with self._lock:
            self._reader = self._thread
        self._bell.ring()

    def _is_part(self) -> bool:
        """Whether _arrived holds only an incomplete first message."""
        data, ancillary, _, _ = self._arrived[-1]
        return bool(data) and not ancillary and not self._lines.begun and b"\n" not in data

    def _receive(self, how: Tuple[int]) -> bool:
        """Moves available bytes from the socket into _arrived, within one C call. Returns False if there are none."""
        try:
            self._arrived.extend(map(self.socket.recvmsg, _SIZE, _ANCILLARY, how))
        except BlockingIOError:
            return False
        except (OSError, ValueError) as error:
            reset = isinstance(error, ConnectionResetError)
            self._arrived.append((b"", (), -1 if reset else 0, None))
        return True

    def _take_own(self, request: Request) -> bool:
        """Processes _arrived if it holds the whole reply to this request and nothing else. Otherwise returns False.

        An interrupt (Ctrl-C) here must harm nobody. So it also returns False for an error, for a reply with files, each of
        which would get two owners, and if a delayed request would be sent."""
        arrived = self._arrived
        data, ancillary, _, _ = arrived[-1]
        if self._lines.begun or ancillary or data.find(b"\n") != len(data) - 1 or not data:
            return False
        if len(arrived) > 1:
            data = b"".join([each[0] for each in arrived])
        try:
            message, _ = _decode(str(data, "utf-8"), 0)
        except (ValueError, StopIteration):
            return False
        if type(message) is not dict or message.get("id") != request.number or "result" not in message or self._delayed:
            return False
        request._value = message["result"]
        request._done = True
        self._waiting.pop(request.number, None)
        self._wanted.discard(request.number)
        arrived.clear()
        if request._callbacks:
            request._call_back()
        return True

    def _leave(self, reader: Any) -> None:
        """Removes a caller that no longer waits. If it was the reader, a follower takes its place. A second call does
        nothing."""
        with self._lock:
            if self._followers and reader in self._followers:
                self._followers.remove(reader)
            if self._reader is reader:
                self._reads += 1
                self._reader = self._followers[-1] if self._followers and not self._arrived else None
            following = self._reader
        if isinstance(following, Request):
            following.wake()
        elif self._arrived:
            self._background()
            self._bell.ring()
        elif self._ring_when_left and following is None:
            self._bell.ring()

    def _work_off(self) -> None:
        """Processes everything in _arrived. Only the reader calls this. If it is interrupted, the next reader continues."""
        while self._arrived:
            data, ancillary, flags, _ = self._arrived[0]
            if not data:
                self._end(flags < 0)
                return
            files = files_of(ancillary)
            del self._arrived[0]
            for line, with_line in self._lines.split(data, files):
                try:
                    self._take(line, with_line)
                except Exception:  # one bad message must not affect the others
                    import traceback

                    traceback.print_exc()

    def _take(self, line: bytes, files: List[io.FileIO]) -> None:
        message = self._read_message(line)
        if "method" in message:
            self._peer.on_message(self, message)
            return
        if files and isinstance(message.get("result"), dict):
            message["result"]["files"] = files
        request = self._forget(message["id"])
        if self._delayed:
            self._send_delayed()
        if not request:
            return
        if "error" not in message:
            request.settle(message.get("result"))
        elif not self._peer.on_error(self, request, message["error"]):
            request.settle(None, error_of(message["error"]))

    def _read_message(self, line: bytes) -> Dict[str, Any]:
        """Parses a line. If it does not say which request it belongs to, the connection ends, because the caller of that
        request would wait forever. Raises ValueError."""
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(line)
            if type(message) is dict and ("method" in message or isinstance(message.get("id"), (int, str))):
                return message
        self.hang_up()
        raise ValueError(f"the server has sent a message without its request: {line[:2000]!r}")

    def _send_delayed(self) -> None:
        """Sends as many delayed requests as there is room for: usually one, more after an interrupt."""
        while True:
            with self._lock:
                if not self._delayed or len(self._waiting) - len(self._delayed) >= IN_FLIGHT:
                    return
                line, fds = self._delayed.popleft()
            with contextlib.suppress(BrokenPipeError):  # the reader notices the end
                self.post(line, fds)
            for fd in fds:
                os.close(fd)

    # --- the background thread ---

    def want(self, count: int) -> None:
        """Adds count to the number of expected messages that no caller waits for: notifications, and requests of the
        server. While the number is positive, the background thread reads."""
        with self._lock:
            self._wants += count
            wanted = self._wants > 0
        if wanted and count > 0:
            self._background()
            self._bell.ring()

    def want_reply(self, request: Request) -> None:
        """Makes the background thread read until the reply to this request has come. A second call does nothing."""
        with self._lock:
            if self._waiting.get(request.number) is not request:
                return
            self._wanted.add(request.number)
        self._background()
        self._bell.ring()

    def _background(self) -> None:
        """Starts the background thread, unless it runs."""
        if self._thread:
            return
        with self._lock:
            if self._thread or self.ended:
                return
            # Start it first: an interrupt between both lines must not leave a noted thread that never runs.
            thread = threading.Thread(target=self._read_behind, name="holt reader", daemon=True)
            thread.start()
            self._thread = thread

    def _read_behind(self) -> None:
        with self._lock:
            if self._thread not in (None, threading.current_thread()):
                return
            self._thread = threading.current_thread()
        try:
            self._read_on()
        finally:
            self._thread_over = True
            self._close()

    def _read_on(self) -> None:
        bell, ours = select.poll(), select.poll()
        try:
            bell.register(self._bell, select.POLLIN)
            ours.register(self._bell, select.POLLIN)
            ours.register(self.socket, select.POLLIN)
        except ValueError:  # it has been closed meanwhile
            return
        seen = -1
        while not self.ended:
            if not self._arrived:
                if self._wants <= 0 and not self._wanted:
                    bell.poll()
                    self._bell.hush()
                    continue
                if not self._rest(bell, seen):
                    seen = self._reads
                    continue
                ours.poll()
                self._bell.hush()
            seen = self._reads
            if not self._read_once():
                bell.poll(_BUSY)

    def _rest(self, bell: Any, seen: int) -> bool:
        """Returns True if nobody else reads. Otherwise returns False after a moment, or, if one reader stays for longer,
        when that reader leaves."""
        if self._reader in (None, self._thread) and self._reads == seen:
            return True
        reads = self._reads
        if bell.poll(_BUSY):
            self._bell.hush()
        elif self._reader is not None and self._reads == reads:
            self._ring_when_left = True
            if self._reader is not None and self._reads == reads:
                bell.poll()
                self._bell.hush()
            self._ring_when_left = False
        return False

    def _read_once(self) -> bool:
        me = self._thread
        with self._lock:
            if self._reader is None:
                self._reader = me
        if self._reader is not me:
            return False
        try:
            if self._arrived or self._receive(_NO_WAIT):
                self._work_off()
        finally:
            with self._lock:
                following = self._reader = self._followers[-1] if self._followers else None
            if following:
                following.wake()
        return True

    # --- event loops ---

    def watch(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Makes the running event loop read from now on. Returns False if the loop does not support it, or if the
        connection has ended."""
        if loop in self._loops:
            return True
        ours = self.socket
        try:
            loop.add_reader(ours, self._on_readable, loop)
        except (NotImplementedError, OSError, ValueError):
            return False
        with self._lock:
            if not self.ended:
                self._loops = {each for each in self._loops if not each.is_closed()} | {loop}
                return True
        loop.remove_reader(ours)
        return False

    def read_soon(self, request: Request) -> None:
        """Reads the reply if it comes within SOON milliseconds and no other reply is awaited. This is faster than a turn of
        the event loop."""
        try:
            with self._lock:
                if self._reader is None and len(self._waiting) == 1 and not self._arrived:
                    self._reader = request
            if self._reader is not request:
                return
            if not self._soon.poll(SOON):
                self.quick.discard(request.method)
            elif self._receive(_NO_WAIT):
                self._take_own(request)
        finally:
            self._leave(request)

    def _on_readable(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if self._reader is None:
                self._reader = loop
        if self._reader is not loop:
            return  # the current reader takes it
        try:
            only = None
            if not self._arrived:
                with self._lock:
                    only = next(iter(self._waiting.values())) if len(self._waiting) == 1 else None
            if self._arrived or self._receive(_NO_WAIT):
                if only and self._take_own(only):
                    only.wake()  # a thread may wait for it
                else:
                    self._work_off()
        finally:
            self._leave(loop)
            if self.ended:
                self._unwatch(loop)

    def _unwatch(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(Exception):
            loop.remove_reader(self.socket)
        with self._lock:
            self._loops.discard(loop)
        self._close()

    # --- the end ---

    def _end(self, reset: bool) -> None:
        """Marks the connection as ended, and passes the unanswered requests to its owner, which settles them."""
        with self._lock:
            self.ended = True
            waiting, self._waiting = list(self._waiting.values()), {}
            self._wanted.clear()
            delayed = list(self._delayed)
            self._delayed.clear()
            self._followers.clear()
            loops = list(self._loops)
        # A reset means that the server did not read all bytes. If one request waits, and was the last sent, it is unread.
        reset = reset and len(waiting) == 1 and waiting[0].number == self._last
        unread = [request for request in waiting if reset or not request.sent]
        for _, fds in delayed:
            for fd in fds:
                os.close(fd)
        self._peer.on_end(self, waiting, unread)
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # a blocked writer fails at once
        self._bell.ring()
        for loop in loops:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._unwatch, loop)
        self._close()

    def _close(self) -> None:
        """Drops the socket once no event loop watches it. It is closed when no other thread uses it; see _bytes.py."""
        with self._lock:
            self._loops = {loop for loop in self._loops if not loop.is_closed()}
            over = self.ended and not self._loops
        if over:
            self.socket = NO_SOCKET
            if self._thread is None or self._thread_over:
                self._bell.close()

    def forget(self) -> None:
        """Closes the copies of the descriptors in a forked child, which must not use the connection."""
        self.socket.close()
        self._bell.close_now()

    def join(self, seconds: float) -> None:
        """Waits for the background thread to end."""
        thread = self._thread
        if thread and thread is not threading.current_thread():
            thread.join(seconds)
