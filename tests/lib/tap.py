# SPDX-License-Identifier: Apache-2.0
"""Checks the messages between holt's verbs and keepers against the OpenRPC document.

tap.c notes them: each program of a test preloads it, and it watches holt-full only. After each test, all noted connections are
checked. A keeper has an environment of its own and so notes nothing, but its clients see the same messages.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from lib.openrpc import Checker, Mismatch, document_of

HEAD = struct.Struct("=c3xI")


def library(holt: Path) -> Path:
    """Returns the library's path in the build. A build with a sanitizer has none, because the sanitizer must be loaded first."""
    return holt.parent.parent / "tests" / "lib" / "libholt-tap.so"


def _notes(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the kind and the bytes of each whole note."""
    start = 0
    while start + HEAD.size <= len(data):
        kind, length = HEAD.unpack_from(data, start)
        start += HEAD.size + length
        if start <= len(data):
            yield kind.decode(), data[start - length : start]


class Wire:
    """One connection of a verb."""

    def __init__(self, holt: Path) -> None:
        self.checker = Checker(document_of(str(holt)), alone=True, strict=True)
        self._pending = {"S": b"", "R": b""}

    def take(self, kind: str, data: bytes) -> None:
        """Checks the lines that data completes. Raises Mismatch."""
        *lines, self._pending[kind] = (self._pending[kind] + data).split(b"\n")
        for line in lines:
            if kind == "S":
                self.checker.sent(line)
                continue
            try:
                message = json.loads(line)
            except ValueError as error:
                raise Mismatch(f"a verb got no JSON: {line[:300]!r}") from error
            self.checker.came(message)


class Tap:
    """The notes of one worker.

    directory  every user can write notes there
    seen       methods with a result, and notifications, since the last look
    """

    def __init__(self, holt: Path, scratch: Path) -> None:
        self.holt, self.directory, self.seen = holt, scratch / "tap", set[str]()
        self.directory.mkdir()
        self.directory.chmod(0o1777)
        self.preload = shutil.copy(library(holt), scratch / "libholt-tap.so")
        Path(self.preload).chmod(0o755)

    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.preload), "HOLT_TAP": str(self.directory)}

    def look(self) -> list[str]:
        """Takes all notes, and returns the mistakes in them."""
        self.seen.clear()
        wrong = []
        for path in sorted(self.directory.iterdir()):
            data = path.read_bytes()
            path.unlink()
            try:
                self._check(data)
            except Mismatch as mismatch:
                wrong.append(str(mismatch))
        return wrong

    def _check(self, data: bytes) -> None:
        wire = Wire(self.holt)
        for kind, more in _notes(data):
            if kind == "C":
                wire = Wire(self.holt)
            elif kind == "L":
                return
            else:
                wire.take(kind, more)
            self.seen |= wire.checker.seen
