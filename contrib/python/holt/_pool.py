# SPDX-License-Identifier: Apache-2.0
"""Threads that run functions of this program for the server."""

from __future__ import annotations

import collections
import os
import sys
import threading
from typing import Callable, Optional

THREADS = 64
"""Maximum number of functions that a pool runs at once; more of them wait."""


class Pool:
    """Daemon threads, which are made on demand. The program can end even while a function hangs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._waiting: "collections.OrderedDict[object, Callable[[], None]]" = collections.OrderedDict()
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def _check_process(self) -> None:
        if self._pid != os.getpid():  # threads do not survive a fork
            self._begin()

    def submit(self, work: Callable[[], None], name: Optional[object] = None) -> None:
        """Queues work. withdraw(name) can remove it."""
        self._check_process()
        with self._changed:
            self._waiting[name if name is not None else object()] = work
            if self._idle < len(self._waiting) and self._threads < THREADS:
                self._threads += 1
                threading.Thread(target=self._run, name=self.name, daemon=True).start()
            self._changed.notify()

    def withdraw(self, name: object) -> bool:
        """Removes work that has not started. Returns whether it existed."""
        self._check_process()
        with self._changed:
            return self._waiting.pop(name, None) is not None

    def _run(self) -> None:
        while True:
            work = self._next()
            try:
                work()
            except BaseException:  # it must not end the thread, whose place nobody else would take
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _next(self) -> Callable[[], None]:
        with self._changed:
            self._idle += 1
            while not self._waiting:
                self._changed.wait()
            self._idle -= 1
            return self._waiting.popitem(last=False)[1]
