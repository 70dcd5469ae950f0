# SPDX-License-Identifier: Apache-2.0
"""Runs `holt serve`, and keeps connections to it and to the keepers of sessions.

Theory of operation. `holt serve` creates and removes sessions. Other requests go straight to the keeper of their
session, because the detour through `holt serve` would take longer than many replies. The first request for a session
asks `holt serve` for a connection (session.connect). If that fails, `holt serve` forwards the requests. A request
that only reads does not start a session at rest: `holt serve` itself answers it. A request about a process does not
start it either, because a session at rest has no processes; see RESTING. If a keeper ends, for example because the
session was stopped, the next request starts a new one. The new keeper gets the requests of repeat() again, such as
those for tools. If `holt serve` ends, connections to keepers stay, and the next request that needs it
starts another one; _lease.py keeps throwaway sessions until then. _liveness.py notices servers that hang.

Requests are numbered per connection; _connection.py explains which thread reads the replies. _listeners.py passes
notifications on. A request of the server is a call of a tool, or a question about a host. The threads of _pool.py
execute it, so that a reader never waits for other code.

The stdin and stdout of `holt serve` are one socket, so that it can carry file descriptors; see submit(). `holt serve`
runs in a process session of its own (setsid(2)), so that Ctrl-C reaches only this process. It ends with its stdin, at
the latest when this process ends.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ._connection import Connection, Peer
from ._ends import AGAIN, at_rest, gone, hangs
from ._listeners import ANY, Listeners
from ._liveness import watch_over
from ._message import LINE_MAX, bytes_of, line_of, text_of
from ._places import AT_REST, OF_SERVE, RESTING
from ._program import end_serve, last_words, start_serve
from ._request import Request
from ._slots import Slots
from ._times import Time, seconds_of
from ._turns import Turns
from .errors import ClosedError, HoltError, SetupError, UsageError

COMMANDS_MAX = 160
"""Maximum number of commands that are awaited at once; others start as these end. A session remembers the last 256 ended
commands. With this limit, it still knows a command when the request to wait for it arrives."""

TRANSFERS_MAX = 12
"""Maximum number of files that are transferred by descriptor at once. A session allows 32 for all its clients."""

REPLY_TIMEOUT = 60.0
"""Seconds after which a server that answers nothing counts as hanging, unless reply_timeout sets another time."""

REST = 1.0
"""Seconds for which a session that was found at rest counts as at rest. Meanwhile, holt serve answers its requests that
only read."""

NO_METHOD = -32601
"""The error code for an unknown method."""

ENDING = ("ESHUTDOWN", "ECONNRESET")
"""Errors of a keeper that is about to end. The request is sent again to the next keeper."""

TRIES_MAX, PAUSE = 200, 0.01
"""How often a request is sent again after such an error, and the seconds between the attempts."""


class _Link:
    """The connection to the keeper of one session. connection is None until it is made. ready is False until all requests
    in queued have been sent; until then, further requests are queued, too."""

    def __init__(self, session: str) -> None:
        self.session, self.connection = session, None  # type: str, Optional[Connection]
        self.queued: List[Request] = []
        self.ready = False


class Server(Peer):
    """A `holt serve`, which the first request starts. It can be used from any thread and shared by sandboxes. close(),
    or leaving its `with` block, ends it.

    holt           path of the program; default: $HOLT, or holt in the PATH
    env            environment variables in addition to this process's; {"XDG_DATA_HOME": ...} stores sessions elsewhere
    writable       directories that commands can write: there and below, holt is not searched in the PATH. A sandbox without
                   a server of its own adds its workspace and its read_write.
    reply_timeout  time after which calls raise TimeoutError if the server answers nothing; default 60 s; None: never.
                   A command may take longer: the server still answers other requests.
    """

    def __init__(
        self, holt: Optional[str] = None, env: Optional[Mapping[str, str]] = None, *,
        reply_timeout: Optional[Time] = REPLY_TIMEOUT, writable: Sequence[str] = (),
    ) -> None:
        self.writable = tuple(writable)
        self.holt, self.env, self._reply_timeout = holt, dict(env or {}), seconds_of(reply_timeout)
        self.over = threading.Event()
        self._lock, self._life_lock = threading.Lock(), threading.Lock()
        self.listeners = Listeners(self._want)
        self.turns = Turns(lambda session: self.listeners.remove("process.output", session, ANY))
        self.commands, self.transfers = Slots(COMMANDS_MAX), Slots(TRANSFERS_MAX)
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._serve: Optional[Connection] = None
        self._links: Dict[str, _Link] = {}
        self._rested: Dict[str, float] = {}  # when a session was found at rest, by time.monotonic()
        self._linked: "weakref.WeakSet[Connection]" = weakref.WeakSet()
        self._repeated: Dict[str, Dict[Tuple[str, str], Mapping[str, Any]]] = {}  # by session, then by method and name
        self._stderr: Any = None
        self._pid = 0
        self._watched = False
        self._ended: Optional[ClosedError] = None
        self.on_requests: Dict[str, Callable[[Connection, Mapping[str, Any]], None]] = {}  # by method
        self.on_cancel: Optional[Callable[[Mapping[str, Any]], None]] = None
        _made.add(self)

    # --- its life ---

    def _start(self) -> Connection:
        """Returns the connection to holt serve, which the first call starts. Raises HoltError."""
        with self._life_lock:
            if self._ended:
                raise ClosedError(self._ended.message)  # a new object, because each raise adds to the traceback
            if self._serve:
                self._check_process()
                return self._serve
            self._process, ours, self._stderr = start_serve(self.holt, self.env, self.writable)
            self._pid = os.getpid()
            self._serve = Connection(ours, self)
            self._linked.add(self._serve)
            if not self._watched and self._reply_timeout is not None:
                watch_over(self, self._reply_timeout)
            self._watched = True
            return self._serve

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise UsageError(
                "the sandbox was made before a fork, in another process", hint="Make a Sandbox in each process."
            )

    def close(self) -> None:
        """Ends holt serve. Sessions keep running, except owned ones. Pending requests fail."""
        with self._life_lock:
            process, serve, mine = self._process, self._serve, self._pid == os.getpid()
            self._ended = self._ended or ClosedError("the sandbox is closed")
            self.over.set()
        if not process or not serve or not mine:
            return
        self._take_links()
        serve.want(1)  # the background thread reads until the end
        with contextlib.suppress(OSError):
            serve.socket.shutdown(socket.SHUT_WR)
        linked = [each for each in self._linked if each is not serve]
        for each in linked:
            each.hang_up()
        end_serve(process)
        for each in (serve, *linked):
            each.join(10)  # the thread closes the socket

    def _take_links(self) -> List[_Link]:
        with self._lock:
            links, self._links = list(self._links.values()), {}
        return links

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self._ended is not None

    # --- asking ---

    def submit(self, method: str, params: Mapping[str, Any], urgent: bool = False, fds: Sequence[int] = ()) -> Request:
        """Sends a request and returns it; it works like a future of the result. Raises HoltError if it cannot be sent.

        urgent  sends it even if too many other requests are unanswered
        fds     file descriptors to send; the caller may close its own afterwards

        File descriptors of the reply are in result["files"].
        """
        session = params.get("session")
        if session is None or method in OF_SERVE:
            return self._ask_serve(Request(method, params, urgent, fds))
        return self.ask(session, method, {name: v for name, v in params.items() if name != "session"}, urgent, fds)

    def _ask_serve(self, request: Request) -> Request:
        if request.method == "session.stop":
            self._forget_link(request.params.get("session"))
            self._rested.pop(str(request.params.get("session")), None)
        for _ in range(2):  # the running holt serve may have died since the last request
            serve = self._start()
            if serve.start(request):
                return request
            self._end(serve)
        raise ClosedError("holt serve has ended")

    def ask(
        self, session: str, method: str, params: Mapping[str, Any], urgent: bool = False, fds: Sequence[int] = (),
        then: "Optional[Callable[[Any], Any]]" = None,
    ) -> Request:
        """Like submit(), for a method about a session. params does not have the parameter session. then: see Request."""
        if method in OF_SERVE:
            return self._ask_serve(Request(method, {"session": session, **params}, urgent, fds))
        if self._ended or self._pid != _pid:
            self._start()
        link = self._links.get(session)
        if link is None and method in AT_REST and self._rested.get(session, -REST) + REST > time.monotonic():
            return self._ask_serve(Request(method, {"session": session, **params}, urgent, fds))
        request = Request(method, params, urgent, fds, then)
        if not (link and link.ready and link.connection and link.connection.start(request)):
            if link and link.ready:
                self._forget_link(session, link.connection)
            line_of(0, method, params)  # raises an error now if it cannot be sent
            request.fds = [os.dup(fd) for fd in fds]
            self._queue(session, request)
        return request

    def _queue(self, session: str, request: Request) -> None:
        """Queues a request until the connection is made. A thread makes it, since the caller must not wait here."""
        with self._lock:
            link = self._links.get(session)
            connection = link.connection if link else None
            if not link or (connection and connection.ended):
                connection, link = None, _Link(session)
                # Start the thread first, so that every link has one even after an interrupt.
                threading.Thread(target=self._connect, args=(link,), name="holt connect", daemon=True).start()
                self._links[session] = link
            if not connection or not link.ready:
                connection = None
                link.queued.append(request)
        if connection:
            self._send_queued(session, connection, [request])

    def _connect(self, link: _Link) -> None:
        connection, error = None, None  # type: Optional[Connection], Optional[Exception]
        with self._lock:
            start = not self._may_rest(link)
        try:
            connection = self._connected(link.session, start)
            if not connection:
                if self._left_at_rest(link):
                    return
                connection = self._connected(link.session, start=True)
            if connection:
                self._send_repeated(connection, link.session)
        except (HoltError, TimeoutError) as why:
            connection, error = None, why
        except Exception as why:
            connection, error = None, SetupError(f"cannot connect to session {link.session!r}: {why}")
        with self._lock:
            queued, link.queued = link.queued, []
            link.connection = connection
            if not connection and self._links.get(link.session) is link:
                del self._links[link.session]
            wanted = self.listeners.count(link.session)
        if error:
            for request in queued:
                self._drop(request, error)
        elif connection:
            if connection is not self._serve and wanted:
                connection.want(wanted)
            while not link.ready:
                self._send_queued(link.session, connection, queued)
                with self._lock:
                    queued, link.queued = link.queued, []
                    link.ready = not queued

    @staticmethod
    def _may_rest(link: _Link) -> bool:
        return all(request.method in AT_REST or request.method in RESTING for request in link.queued)

    def _left_at_rest(self, link: _Link) -> bool:
        """If no queued request starts a session at rest, passes those that read to holt serve, settles the others, and drops
        the link. Otherwise returns False."""
        with self._lock:
            if not self._may_rest(link):
                return False
            queued, link.queued = link.queued, []
            self._rested[link.session] = time.monotonic()
            if self._links.get(link.session) is link:
                del self._links[link.session]
        for request in queued:
            if request.method in RESTING:
                result = RESTING[request.method]
                request.settle(dict(result or {}), None if result is not None else at_rest(link.session, request.params))
                continue
            request.params = {"session": link.session, **request.params}
            try:
                self._ask_serve(request)
            except Exception as error:  # otherwise the requests behind it would wait forever
                request.settle(None, error)
            request.wake()
        return True

    def _connected(self, session: str, start: bool) -> Optional[Connection]:
        """Returns a new connection to the session's keeper, or the one to holt serve if that is impossible. Returns
        None if the session is at rest, unless start is true."""
        serve = self._start()
        asked = Request("session.connect", {"session": session, "start": start}, urgent=True)
        if not serve.start(asked):
            self._end(serve)
            serve = self._start()
            if not serve.start(asked):
                raise self._end(serve)
        try:
            reply = asked.result()
        except HoltError as error:
            if error.code == NO_METHOD:
                return serve
            raise
        files = reply.get("files")
        if not files:
            return serve if reply.get("live", True) else None  # this program has too many files open
        with files[0] as file:
            ours = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, os.dup(file.fileno()))
        connection = Connection(ours, self, session)
        self._linked.add(connection)
        if self._ended:  # close() may not have seen the connection
            connection.hang_up()
        return connection

    def _send_repeated(self, connection: Connection, session: str) -> None:
        with self._lock:
            known = list(self._repeated.get(session, {}).items())
        for (method, _), params in known:
            own = {name: v for name, v in params.items() if name != "session" or connection is self._serve}
            connection.start(Request(method, own, urgent=True))
        if known:
            connection.want(len(known))

    def _send_queued(self, session: str, connection: Connection, queued: List[Request]) -> None:
        for request in queued:
            if connection is self._serve:
                request.params = {"session": session, **request.params}
            fds, sent = request.fds, True
            try:
                sent = connection.start(request)
            except Exception as error:  # otherwise the requests behind it would wait forever
                request.settle(None, error)
            if sent:
                for fd in fds:
                    os.close(fd)
                request.wake()
            elif not connection.session:
                self._drop(request, self._end(connection))
            else:
                self._forget_link(session, connection)
                self._again(session, request)

    def _again(self, session: str, request: Request) -> None:
        """Sends a request again, to the next keeper."""
        request.connection = None
        request.tries += 1
        if request.tries > TRIES_MAX:
            self._drop(request, gone(session))
        elif self._ended:
            self._drop(request, ClosedError(self._ended.message))
        else:
            self._queue(session, request)

    @staticmethod
    def _drop(request: Request, error: Exception) -> None:
        for fd in request.fds:
            with contextlib.suppress(OSError):
                os.close(fd)
        request.settle(None, error)

    def _forget_link(self, session: Any, connection: Optional[Connection] = None) -> None:
        """Drops the link to a keeper that ends, so that later requests go to the next one.

        connection  drops the link only if it still has this connection
        """
        with self._lock:
            link = self._links.get(session)
            if not link or not link.connection or connection not in (None, link.connection):
                return
            if link.connection is self._serve:
                return
            del self._links[session]
        link.connection.want(1)  # the background thread reads until the end

    def call(self, method: str, **params: Any) -> Any:
        """Sends a request, and waits for the result."""
        return self.submit(method, params).result()

    def answer(self, connection: Connection, number: Any, message: Mapping[str, Any]) -> None:
        """Replies to a request of the server. message is {"result": ...} or {"error": ...}."""
        what = "the tool's result"
        try:
            line = bytes_of(text_of({"jsonrpc": "2.0", "id": number, **message}, what, 1) + "\n", what)
            if len(line) > LINE_MAX:
                raise UsageError(f"{what} has {len(line)} bytes, and may have at most {LINE_MAX}")
        except UsageError as error:
            wrong = {"code": -32000, "message": error.message, "data": {"type": "internal_error"}}
            self.answer(connection, number, {"error": wrong})
            return
        try:
            connection.answer(line)
        except BrokenPipeError:
            connection.hang_up()

    def repeat(self, method: str, session: str, name: str, params: Optional[Mapping[str, Any]]) -> None:
        """Remembers a request, such as one for a tool of this name, to repeat it to each new keeper of the session. params
        None forgets it."""
        with self._lock:
            known = self._repeated.setdefault(session, {})
            had = known.pop((method, name), None) is not None
            if params is not None:
                known[method, name] = params
            if not known:
                del self._repeated[session]
            link = self._links.get(session)
        if link and link.connection and (params is not None) != had:
            link.connection.want(-1 if had else 1)

    def _want(self, session: str, count: int) -> None:
        link = self._links.get(session)
        if link and link.connection:
            link.connection.want(count)

    # --- events of connections ---

    def on_message(self, connection: Connection, message: Dict[str, Any]) -> None:
        params = message.get("params") or {}
        if connection.session:
            params["session"] = connection.session
        if "id" in message:
            handler = self.on_requests.get(message["method"])
            if handler:
                handler(connection, message)
            else:
                error = {"code": NO_METHOD, "message": f"no method is called {message['method']!r}"}
                threading.Thread(target=self.answer, args=(connection, message["id"], {"error": error}), daemon=True).start()
            return
        if message["method"] == "tool.cancel":
            if self.on_cancel:
                self.on_cancel(params)
            return
        self.listeners.tell(message["method"], params)

    def on_error(self, connection: Connection, request: Request, error: Mapping[str, Any]) -> bool:
        if not connection.session or request.fds or (error.get("data") or {}).get("errno") not in ENDING:
            return False
        self._forget_link(connection.session, connection)
        request.connection = None
        threading.Thread(target=self._again_later, args=(connection.session, request), daemon=True).start()
        return True

    def _again_later(self, session: str, request: Request) -> None:
        time.sleep(PAUSE)
        self._again(session, request)

    def on_end(self, connection: Connection, waiting: List[Request], unread: List[Request]) -> None:
        if not connection.session:
            why = self._end(connection)
            for request in waiting:
                request.settle(None, hangs("holt serve") if connection.hangs else ClosedError(why.message, hint=why.hint))
            return
        session = connection.session
        with self._lock:
            link = self._links.get(session)
            if link and link.connection is connection:
                del self._links[session]
        for request in waiting:
            if connection.hangs:
                request.settle(None, hangs(f'the keeper of session "{session}"'))
            elif (request in unread or request.method in AT_REST) and not request.fds:
                self._again(session, request)
                request.wake()
            else:
                request.settle(None, ClosedError(self._ended.message) if self._ended else gone(session))
        self.listeners.lose(session)

    def _end(self, serve: Connection) -> ClosedError:
        """Forgets a `holt serve` that has ended, and the sessions that were reached through it.

        Connections to keepers remain. Unless close() was called, the next request starts another holt serve. Returns the
        error for unanswered requests, with the last output of holt serve."""
        with self._life_lock:
            if self._ended:
                self._ended_process(serve)
                self.listeners.lose(None)
                return ClosedError(self._ended.message)
            if self._serve is not serve:
                return ClosedError("holt serve has ended", hint=AGAIN)
            said, code = self._ended_process(serve)
            self._serve = None
        with self._lock:
            through = [name for name, link in self._links.items() if link.connection is serve]
            for name in through:
                del self._links[name]
        for name in through:
            self.listeners.lose(name)
        return ClosedError(f"holt serve has ended (code {code})" + (f": {said[-2000:]}" if said else ""), hint=AGAIN)

    def _ended_process(self, serve: Connection) -> "Tuple[str, Optional[int]]":
        """Waits for the process of a holt serve that ends. Returns its last output and its exit code."""
        if self._serve is not serve or not self._process:
            return "", None
        end_serve(self._process)  # it is useless, because it has closed the connection
        return last_words(self._stderr), self._process.poll()

    def give_up(self, connection: Connection) -> None:
        """Ends the connection to a server that hangs. A holt serve is killed, so that the next request starts another."""
        connection.hangs, process = True, self._process
        if connection is self._serve and process:  # in this order, so that it is not the process of the next holt serve
            process.kill()
        connection.want(1)  # the background thread reads the end
        connection.hang_up()


_pid = os.getpid()  # cached, to save a system call per request
_made: "weakref.WeakSet[Server]" = weakref.WeakSet()


def _leave_to_parent() -> None:
    """Drops inherited connections in a forked child, so that a server ends with the program that started it."""
    global _pid
    _pid = os.getpid()
    for server in list(_made):
        server._lock, server._life_lock = threading.Lock(), threading.Lock()  # another thread may have held them
        for connection in list(server._linked):
            connection.forget()


os.register_at_fork(after_in_child=_leave_to_parent)
