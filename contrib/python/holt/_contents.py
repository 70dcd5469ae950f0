# SPDX-License-Identifier: Apache-2.0
"""Reads the contents of files inside.

A command inside can make a file of a terabyte of holes at no cost. So reads into memory are limited, streams are read
in chunks, and saved files keep their holes.
"""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from typing import Any, BinaryIO, Optional

from .errors import LimitError, UsageError

READ_MAX = 64 << 20
"""Maximum bytes of a file that are read into memory, unless max_bytes sets another limit."""

CHUNK = 1 << 20
"""Bytes in one chunk of a stream, unless chunk_size sets another size."""


def check_count(value: Any, what: str, least: int) -> None:
    """Raises UsageError if value is not an integer, or is less than least."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{what} must be an integer of {least} or more, not {value!r}")


def check_max(max_bytes: Optional[int]) -> None:
    if max_bytes is not None:
        check_count(max_bytes, "max_bytes", 0)


def check_size(path: Any, size: int, max_bytes: Optional[int]) -> None:
    """Raises LimitError for a file that is too large for memory."""
    if max_bytes is not None and size > max_bytes:
        raise LimitError(
            f"{os.fspath(path)!r} has {size} bytes; at most {max_bytes} are read into memory",
            errno="EFBIG",
            hint="Set another limit by max_bytes= (None: no limit), read the file in chunks by files.stream(path), or write "
            "it to a file of the host by files.save(path, target).",
            data={"size": size, "limit": max_bytes},
        )


def size_of(file: FileIO) -> int:
    return os.fstat(file.fileno()).st_size


def take_all(path: Any, file: FileIO, max_bytes: Optional[int]) -> bytes:
    """Returns all bytes of an open file, and closes it. The caller must not close the file, because it may stop waiting while
    this function still reads in another thread."""
    with file:
        size = size_of(file)
        check_size(path, size, max_bytes)
        if max_bytes is None:
            return file.readall()
        data = bytearray()
        while piece := file.read(min(CHUNK, max_bytes + 1 - len(data))):  # the file may grow meanwhile
            data += piece
            check_size(path, max(len(data), size_of(file)) if len(data) > max_bytes else 0, max_bytes)
        return bytes(data)


def _copy_range(source: int, target: int, at: int, end: int) -> bool:
    """Returns False if the source has become shorter."""
    while at < end:
        piece = memoryview(os.pread(source, min(CHUNK, end - at), at))
        if not piece:
            return False
        while piece:
            written = os.pwrite(target, piece, at)
            piece, at = piece[written:], at + written
    return True


def _next_data(source: int, at: int) -> Optional[int]:
    try:
        return os.lseek(source, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole is left
            return None
        return at  # the file system does not support holes


def _copy_sparse(source: int, target: int, size: int) -> None:
    at: Optional[int] = 0
    while at is not None and (at := _next_data(source, at or 0)) is not None and at < size:
        end = min(os.lseek(source, at, os.SEEK_HOLE), size)
        if not _copy_range(source, target, at, end):
            break
        at = end
    os.ftruncate(target, size)


def copy_contents(file: FileIO, target: BinaryIO) -> None:
    """Copies the content that the file has at the start into an empty host file. A regular file keeps its holes."""
    size = size_of(file)
    if stat.S_ISREG(os.fstat(target.fileno()).st_mode):
        _copy_sparse(file.fileno(), target.fileno(), size)
        return
    while size > 0 and (piece := file.read(min(CHUNK, size))):
        target.write(piece)
        size -= len(piece)
