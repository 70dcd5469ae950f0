# SPDX-License-Identifier: Apache-2.0
"""Cleans up after sandboxes that were not closed: removes throwaway sessions, and ends `holt serve`.

Theory of operation. The garbage collector can finalize an object in any thread, such as the reader's, or one that holds
a lock of the server. So the finalizer only starts a daemon thread. Python does not wait for such threads at its
end, so the main thread then does the remaining work.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import io
import os
import subprocess
import time
import weakref
from concurrent.futures import Future
from typing import Any, Optional, Set

from ._operations import Steps, drive
from ._program import find_holt
from ._server import Server
from .errors import BusyError, HoltError, MissingError
from .process import within

REMOVE_WITHIN = 30.0  # seconds

_held: "Set[Lease]" = set()


def pause() -> "Steps[None]":
    """Waits a moment before a retry."""
    with contextlib.suppress(TimeoutError):
        yield within(Future(), 0.01)


def remove_steps(server: Server, name: str) -> "Steps[None]":
    """Stops and removes a session."""
    deadline = time.monotonic() + REMOVE_WITHIN
    while True:
        yield server.submit("session.stop", {"session": name}, urgent=True)
        try:
            yield server.submit("session.remove", {"session": name}, urgent=True)
            return
        except BusyError:  # its keeper is still ending, or a request of another thread has started the next one
            if time.monotonic() > deadline:
                raise
        yield from pause()


class Lease:
    """The duty to clean up after a sandbox.

    name        the throwaway session to remove; None for a lasting one
    own_server  whether to close the server, because no other sandbox uses it
    """

    def __init__(self, owner: Any, server: Server, name: Optional[str], own_server: bool) -> None:
        self.server, self.name, self.own_server, self.pid = server, name, own_server, os.getpid()
        self._held: Optional[io.FileIO] = None
        _held.add(self)
        finalizer = weakref.finalize(owner, self._forgotten)
        finalizer.atexit = False

    def hold(self, directory: Optional[str]) -> None:
        """Keeps the throwaway session while this process lives, even if its holt serve dies.

        Like holt serve, it holds the FIFO "owner" in the session's directory (runner/session/owner.h)."""
        if directory:
            with contextlib.suppress(OSError):
                how = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                self._held = io.FileIO(os.open(os.path.join(directory, "owner"), how), "r+")

    def let_go(self) -> None:
        """Closes the FIFO. A forked child does this, too, so that the session ends with its parent."""
        if self._held:
            self._held.close()

    def _forgotten(self) -> None:
        if self in _held:
            _thread.start_new_thread(self.end, ())

    def end(self) -> None:
        """Cleans up in this thread. Never raises."""
        if self.pid != os.getpid():  # a forked child must not clean up for its parent
            return
        if self.name:
            try:
                drive(remove_steps(self.server, self.name))
            except MissingError:
                pass
            except HoltError:
                self._remove_without_server(self.name)
        self.let_go()
        if self.own_server:
            self.server.close()
        _held.discard(self)

    def end_steps(self) -> "Steps[None]":
        """Cleans up like end(), as steps."""
        try:
            if self.name and self in _held:
                yield from remove_steps(self.server, self.name)
        except HoltError:
            pass  # end() does the rest
        else:
            self.name = None
        self.end()

    def _remove_without_server(self, name: str) -> None:
        """Removes a session through the command line, if the server was closed or killed."""
        with contextlib.suppress(Exception):
            program = find_holt(self.server.holt, self.server.writable)
            for verb in ("stop", "rm"):
                subprocess.run(
                    [program, verb, name], env={**os.environ, **self.server.env}, stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=REMOVE_WITHIN, check=False,
                )


def _let_go_in_child() -> None:
    for lease in list(_held):
        lease.let_go()


os.register_at_fork(after_in_child=_let_go_in_child)


@atexit.register
def _end_all() -> None:
    for lease in list(_held):
        lease.end()
