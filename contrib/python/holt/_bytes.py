# SPDX-License-Identifier: Apache-2.0
"""The descriptors of a connection, and the lines in the bytes that it receives.

Theory of operation. A method such as socket.send() reads the number of its descriptor, then releases Python's lock, then
makes the system call. If another thread calls close() in between, the system call reaches the next file with this number,
such as the socket of the next `holt serve`. So nothing here is closed while another thread may use it. A thread drops its
reference instead, and the object closes itself with the last one, which a running method holds.
"""

from __future__ import annotations

import array
import contextlib
import io
import os
import socket
from typing import Any, List, Tuple


class _End(io.FileIO):
    """A descriptor that is closed with the last reference to it, without a ResourceWarning."""

    __del__ = io.FileIO.close  # in C, because Python would drop a KeyboardInterrupt that is raised in here


class Socket(socket.socket):
    """A blocking socket that is closed with the last reference to it, without a ResourceWarning."""

    def __init__(self, given: socket.socket) -> None:
        """Takes over the descriptor of another socket object."""
        super().__init__(given.family, given.type, given.proto, given.detach())
        self.setblocking(True)  # whatever socket.setdefaulttimeout() says

    __del__ = socket.SocketType.close


NO_SOCKET = socket.socket(socket.AF_UNIX)
NO_SOCKET.close()

_NO_END = _End(os.devnull)
_NO_END.close()


class Bell:
    """An eventfd(2) or pipe(2), which wakes a poll(2) in another thread."""

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):  # since Python 3.10
            self._in = self._out = _End(os.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK), "r+")
        else:
            ends = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            self._in, self._out = _End(ends[0], "r"), _End(ends[1], "w")

    def fileno(self) -> int:
        """Returns the descriptor to poll. Raises ValueError if it is closed."""
        return self._in.fileno()

    def ring(self) -> None:
        """Wakes the thread that polls, now or as soon as it polls. Does nothing if the bell is closed."""
        with contextlib.suppress(OSError, ValueError):
            self._out.write(b"\1" + bytes(7))

    def hush(self) -> None:
        """Makes the next poll wait again."""
        with contextlib.suppress(OSError, ValueError):
            self._in.read(8)

    def close(self) -> None:
        """Closes the bell as soon as no other thread rings it."""
        self._in = self._out = _NO_END

    def close_now(self) -> None:
        """Closes the bell in a forked child, where the threads that rang it do not exist."""
        self._in.close()
        self._out.close()


def files_of(ancillary: Any) -> List[io.FileIO]:
    """Returns received descriptors as files, which close themselves when they are dropped."""
    files = []
    for fd in (fd for _, _, part in ancillary for fd in array.array("i", part[: len(part) & ~3])):
        try:
            files.append(io.FileIO(fd, "r"))
        except OSError:  # FileIO refuses a directory; this error must not end the reader
            os.close(fd)
    return files


class Lines:
    """Splits received bytes into lines.

    begun  the received parts of a line that is not complete yet
    """

    def __init__(self) -> None:
        self.begun: List[bytes] = []
        self._held: List[io.FileIO] = []

    def split(self, data: bytes, files: List[io.FileIO]) -> List[Tuple[bytes, List[io.FileIO]]]:
        """Returns each whole line with its files. The kernel ends a read at the message that has descriptors, so they
        belong to the last line that has begun."""
        first, *more = data.split(b"\n")
        self.begun.append(first)
        if not more:
            self._held += files
            return []
        whole, self.begun = [b"".join(self.begun), *more[:-1]], ([more[-1]] if more[-1] else [])
        each: List[List[io.FileIO]] = [[] for _ in whole]
        each[0] += self._held
        self._held = []
        if self.begun:
            self._held = files
        else:
            each[-1] += files
        return list(zip(whole, each))
