# SPDX-License-Identifier: Apache-2.0
"""Threads that run functions of this program for the server."""

from __future__ import annotations

import collections
import os
import sys
import threading
from typing import Callable, Deque, Dict, Hashable, Optional, Tuple

THREADS = 64
"""Maximum number of functions that a pool runs at once for one sandbox; more of them wait."""

ALL_THREADS = 256
"""Maximum number of functions that a pool runs at once. Each sandbox may run one more than that, so that no sandbox waits
only because the functions of others are slow."""

Work = Callable[[], None]


class Pool:
    """Daemon threads, which are made on demand. The program can end even while a function hangs.

    The code in a sandbox decides how many functions it calls. So each function has an owner, its sandbox. A free thread
    runs a function of the owner that has the fewest running.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._waiting: "Dict[Hashable, collections.OrderedDict[object, Work]]" = {}
        self._ready: Deque[Tuple[Hashable, Work]] = collections.deque()
        self._running: Dict[Hashable, int] = {}
        self._changed = threading.Condition()
        self._threads = self._idle = self._busy = 0

    def _check_process(self) -> None:
        if self._pid != os.getpid():  # threads do not survive a fork
            self._begin()

    def submit(self, work: Work, owner: Hashable = None, name: Optional[object] = None) -> None:
        """Queues work of an owner. withdraw(owner, name) can remove it."""
        self._check_process()
        with self._changed:
            self._waiting.setdefault(owner, collections.OrderedDict())[name if name is not None else object()] = work
            self._admit()

    def withdraw(self, owner: Hashable, name: object) -> bool:
        """Removes work that has not started. Returns whether it existed."""
        self._check_process()
        with self._changed:
            queue = self._waiting.get(owner, collections.OrderedDict())
            found = queue.pop(name, None) is not None
            if not queue:
                self._waiting.pop(owner, None)
            return found

    def _admit(self) -> None:
        """Passes work to threads as far as the limits allow it."""
        while self._waiting:
            owner = min(self._waiting, key=lambda each: self._running.get(each, 0))
            running = self._running.get(owner, 0)
            if running >= THREADS or (running and self._busy >= ALL_THREADS):
                return
            queue = self._waiting[owner]
            self._ready.append((owner, queue.popitem(last=False)[1]))
            if not queue:
                del self._waiting[owner]
            self._running[owner] = running + 1
            self._busy += 1
            if len(self._ready) <= self._idle:
                self._changed.notify()
            else:
                threading.Thread(target=self._run, name=self.name, daemon=True).start()
                self._threads += 1

    def _run(self) -> None:
        ready = self._next()
        while ready:
            owner, work = ready
            try:
                work()
            except BaseException:  # it must not end the thread, whose place nobody else would take
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
            del ready, work  # they may keep large objects alive
            ready = self._next(owner)

    def _next(self, *ended: Hashable) -> "Optional[Tuple[Hashable, Work]]":
        """Returns work for this thread and its owner, or None if the thread is to end. ended: the owner of its last work."""
        with self._changed:
            self._idle += 1
            for owner in ended:
                self._busy -= 1
                self._running[owner] -= 1
                if not self._running[owner]:
                    del self._running[owner]
                self._admit()
            while not self._ready and self._threads <= THREADS:
                self._changed.wait()
            self._idle -= 1
            if self._ready:
                return self._ready.popleft()
            self._threads -= 1
            return None
