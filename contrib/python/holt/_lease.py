# SPDX-License-Identifier: Apache-2.0
"""What a sandbox leaves when nobody closes it: its throwaway session, its `holt serve`.

Theory of operation. An object that is forgotten is finalized by whatever thread the garbage collector runs in: the
reader's, or one that holds a lock of the server's. So nothing is done there but to start a thread. At the end of the
program, which waits for no thread, all that is left is done at once, in the main thread.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import subprocess
import time
import weakref
from concurrent.futures import Future
from typing import Any, Optional, Set

from ._operations import Steps, drive
from ._server import Server, find_holt
from .errors import BusyError, HoltError, MissingError
from .process import within

REMOVE_WITHIN = 30.0  # seconds

_held: "Set[Lease]" = set()


def pause() -> "Steps[None]":
    """A moment, before something is tried again."""
    with contextlib.suppress(TimeoutError):
        yield within(Future(), 0.01)


def remove_steps(server: Server, name: str) -> "Steps[None]":
    """Ends a session and takes it away."""
    deadline = time.monotonic() + REMOVE_WITHIN
    yield server.submit("session.stop", {"session": name}, urgent=True)
    while True:
        try:
            yield server.submit("session.remove", {"session": name}, urgent=True)
            return
        except BusyError:  # its keeper is on its way out
            if time.monotonic() > deadline:
                raise
        yield from pause()


class Lease:
    """Of a session, where `name` is one that is thrown away, and of a server, where it is nobody else's."""

    def __init__(self, owner: Any, server: Server, name: Optional[str], own_server: bool) -> None:
        self.server, self.name, self.own_server, self.pid = server, name, own_server, os.getpid()
        _held.add(self)
        finalizer = weakref.finalize(owner, self._forgotten)
        finalizer.atexit = False

    def _forgotten(self) -> None:
        if self in _held:
            _thread.start_new_thread(self.end, ())

    def end(self) -> None:
        """Come what may: raises nothing."""
        if self.pid != os.getpid():  # a fork has inherited what is not its own
            return
        if self.name:
            try:
                drive(remove_steps(self.server, self.name))
            except MissingError:
                pass
            except HoltError:
                self._remove_without_server(self.name)
        if self.own_server:
            self.server.close()
        _held.discard(self)

    def end_steps(self) -> "Steps[None]":
        """The same for who can wait."""
        try:
            if self.name and self in _held:
                yield from remove_steps(self.server, self.name)
        except HoltError:
            pass  # what can still be done is done below
        else:
            self.name = None
        self.end()

    def _remove_without_server(self, name: str) -> None:
        """Where it has been killed, or closed."""
        with contextlib.suppress(Exception):
            program = find_holt(self.server.holt)
            for verb in ("stop", "rm"):
                subprocess.run(
                    [program, verb, name], env={**os.environ, **self.server.env}, stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=REMOVE_WITHIN, check=False,
                )


@atexit.register
def _end_all() -> None:
    for lease in list(_held):
        lease.end()
