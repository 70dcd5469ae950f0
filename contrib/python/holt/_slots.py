# SPDX-License-Identifier: Apache-2.0
"""A limit on concurrent operations."""

from __future__ import annotations

import collections
import contextlib
import threading
from concurrent.futures import Future, InvalidStateError
from typing import Deque


class Slots:
    """A limit on concurrent operations."""

    def __init__(self, most: int) -> None:
        self._lock, self._free = threading.Lock(), most
        self._queued: Deque["Future[None]"] = collections.deque()

    def begin(self) -> "Future[None]":
        """Returns a future that is done when the operation may begin. Every begin() needs an end()."""
        future: Future[None] = Future()
        with self._lock:
            if not self._free:
                self._queued.append(future)
                return future
            self._free -= 1
        future.set_result(None)
        return future

    def end(self, begun: "Future[None]") -> None:
        """Ends an operation, even one that the caller has given up before it began."""
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
