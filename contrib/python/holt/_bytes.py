# SPDX-License-Identifier: Apache-2.0
"""Splits the bytes that a socket receives into lines with their files, and wakes the thread that waits for bytes."""

from __future__ import annotations

import array
import contextlib
import io
import os
from typing import Any, List, Tuple


class Bell:
    """An eventfd(2) or pipe(2), which wakes a poll(2) in another thread."""

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):  # since Python 3.10
            self._in = self._out = io.FileIO(os.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK), "r+")
        else:
            ends = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            self._in, self._out = io.FileIO(ends[0], "r"), io.FileIO(ends[1], "w")

    def fileno(self) -> int:
        """Returns the descriptor to poll. Raises ValueError if it is closed."""
        return self._in.fileno()

    def ring(self) -> None:
        """Wakes the thread that polls, now or as soon as it polls. Does nothing if the bell is closed."""
        with contextlib.suppress(OSError, ValueError):
            self._out.write(b"\1" + bytes(7))

    def hush(self) -> None:
        """Makes the next poll wait again."""
        with contextlib.suppress(OSError):
            self._in.read(8)

    def close(self) -> None:
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
