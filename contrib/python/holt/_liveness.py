# SPDX-License-Identifier: Apache-2.0
"""Notices a `holt serve` or a keeper that no longer answers.

Theory of operation. A command may take days, so no request has a deadline of its own. A thread looks at each
connection several times per reply_timeout. If a request waits there and no reply has come since the last look, the
thread sends a short request of its own. A live server answers it within milliseconds, whatever else it does. If the
answer does not come within reply_timeout, the server hangs: all waiting requests fail with TimeoutError.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Optional, Tuple

from ._request import Request

if TYPE_CHECKING:
    from ._connection import Connection
    from ._server import Server

LOOKS = 4  # per reply_timeout


class _Probe:
    """The thread's view of one connection: its state at the last look, and the thread's own unanswered request."""

    def __init__(self) -> None:
        self.seen: Tuple[int, int] = (0, 0)
        self.request: Optional[Request] = None
        self.since = 0.0

    def hangs(self, connection: "Connection", within: float) -> bool:
        """Looks at the connection once. Returns whether it hangs."""
        waiting = [number for number, each in list(connection._waiting.items()) if each is not self.request]
        state = (min(waiting, default=0), len(waiting))
        if not waiting or state != self.seen:
            self.seen, self.request = state, None
            return False
        if self.request is None:
            self.since = time.monotonic()
            self.request = Request("tools.list" if connection.session else "session.list", {}, urgent=True)
            connection.start(self.request)
            return False
        if self.request.done() or _has_unread(connection):
            self.request = None
            return False
        return time.monotonic() - self.since >= within


def _has_unread(connection: "Connection") -> bool:
    """Whether a reply has come that this program has not read yet, for example because its event loop is busy."""
    poll = select.poll()
    try:
        poll.register(connection.socket, select.POLLIN)
        return bool(connection._arrived) or bool(poll.poll(0))
    except (OSError, ValueError):
        return True


def _look(server: "Server", probes: "weakref.WeakKeyDictionary[Any, _Probe]", within: float) -> None:
    for connection in list(server._linked):
        try:
            if not connection.ended and probes.setdefault(connection, _Probe()).hangs(connection, within):
                server.give_up(connection)
        except Exception:  # an error of one connection must neither hide the others nor end the thread
            pass


def watch_over(server: "Server", within: float) -> None:
    """Starts a thread that looks after the connections of a server, until the server is closed or dropped."""
    known, over = weakref.ref(server), server.over

    def run() -> None:
        probes: "weakref.WeakKeyDictionary[Any, _Probe]" = weakref.WeakKeyDictionary()
        while not over.wait(within / LOOKS):
            server = known()
            if server is None:
                return
            with contextlib.suppress(Exception):  # the set of connections may change meanwhile
                _look(server, probes, within)
            del server

    threading.Thread(target=run, name="holt watch", daemon=True).start()
