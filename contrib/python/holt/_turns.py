# SPDX-License-Identifier: Apache-2.0
"""Runs that must not overlap in a session."""

from __future__ import annotations

import collections
import contextlib
import threading
from concurrent.futures import Future, InvalidStateError
from typing import Callable, Deque, Dict, Optional

from ._request import Request


class Turns:
    """Lets the runs with on_output of each session take turns. Their output names only the interpreter, whose id is unknown
    until the reply.

    on_end  is called with the session when a run that had its turn has ended, before the next one starts
    """

    def __init__(self, on_end: Callable[[str], None]) -> None:
        self._on_end, self._lock = on_end, threading.Lock()
        self._runs: Dict[str, Deque["Future[None]"]] = {}

    def begin(self, session: str) -> "Future[None]":
        """Returns a future that is done when the run may start. Every begin() needs an end()."""
        turn: Future[None] = Future()
        with self._lock:
            runs = self._runs.setdefault(session, collections.deque())
            runs.append(turn)
            first = runs[0] is turn
        if first:
            turn.set_result(None)
        return turn

    def end(self, session: str, turn: "Future[None]", asked: Optional[Request] = None) -> None:
        """Ends a run, even one that the caller has given up before it started.

        asked  the request of the run. If the caller has given it up and it is not done, the next run waits for its end.
        """
        if asked and not asked.done():
            asked.add_done_callback(lambda _: self.end(session, turn))
            return
        with self._lock:
            runs = self._runs[session]
            mine = runs[0] is turn
            if mine:
                self._on_end(session)
            runs.remove(turn)
            following = runs[0] if mine and runs else None
            if not runs:
                del self._runs[session]
        if following:
            with contextlib.suppress(InvalidStateError):
                following.set_result(None)
