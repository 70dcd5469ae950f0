# SPDX-License-Identifier: Apache-2.0
"""A sandbox's files: paths are those inside, and relative ones are relative to the workspace."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import FileIO
from pathlib import Path as HostPath
from typing import Any, AsyncIterator, Iterator, List, Mapping, Optional, Union

from ._contents import CHUNK, READ_MAX, check_count, size_of
from ._face import PIECE, Content, Part, Path, as_bytes, check_whole, chunks, encoded, in_thread, path_of
from ._operations import AsyncFace, Steps, SyncFace, drive, drive_async, host_only, operation
from .errors import LimitError

LIST_MAX = 100_000
"""Entries of a list unless limit says otherwise."""


@dataclass(frozen=True)
class FileInfo:
    """name is the path below what was listed; type "file", "directory", "link" or "other"; mode the permission bits."""

    name: str
    type: str
    size: int
    modified_ms: int
    mode: int
    target: Optional[str] = None


@dataclass(frozen=True)
class Match:
    """A line, counted from 1, of the file name."""

    name: str
    line: int
    text: str


def info_of(name: str, entry: Mapping[str, Any]) -> FileInfo:
    return FileInfo(name, entry["type"], entry["size"], entry["modified_ms"], entry["mode"], entry.get("target"))


class FilesApi(Part):
    """Raises MissingError where there is nothing, ExistsError where there is something, LimitError at a cap."""

    @operation
    @host_only("max_bytes")
    def read(
        self, path: Path, encoding: str = "utf-8", errors: str = "strict", *, max_bytes: Optional[int] = READ_MAX
    ) -> "Steps[str]":
        """The text of a file. Raises UnicodeDecodeError where it is none, LimitError where it is too large.

        max_bytes  the largest file that is read into memory, 64 MiB without it; None for no limit
        """
        return (yield from self._get("files.read", "files.open", path, max_bytes)).decode(encoding, errors)

    @operation
    @host_only("max_bytes")
    def read_bytes(self, path: Path, *, max_bytes: Optional[int] = READ_MAX) -> "Steps[bytes]":
        """All bytes of a file. Raises LimitError where it has more than max_bytes (64 MiB; None for no limit)."""
        return (yield from self._get("files.read", "files.open", path, max_bytes))

    @operation
    def save(
        self, path: Path, target: "Union[str, os.PathLike[str], None]" = None
    ) -> "Steps[HostPath]":
        """Writes a file of any size to a file of the host, by default to its name in the working directory; where.

        Holes of it stay holes. A link in the session's workspace, or in another directory that it can write, is not
        followed: UsageError.
        """
        return (yield from self._save("files.open", path, target))

    @operation
    def write(
        self, path: Path, content: Content, *, mode: Optional[int] = None, make_parents: bool = True
    ) -> "Steps[int]":
        """Replaces a file at once, or makes it; the number of its bytes. Text is written as UTF-8.

        mode  permission bits; those of the file that was there, or 0644
        """
        return (yield from self._put(path, as_bytes(content), mode, make_parents))

    @operation
    def append(self, path: Path, content: Content) -> "Steps[int]":
        """Adds to the end of a file, or makes it; the number of bytes added."""
        data = as_bytes(content)
        for start in range(0, len(data) or 1, PIECE):
            yield self._ask("files.append", {"path": path, "base64": encoded(data[start : start + PIECE])})
        return len(data)

    @operation
    @host_only("limit")
    def list(
        self, path: Path = ".", *, recursive: bool = False, limit: int = LIST_MAX
    ) -> "Steps[List[FileInfo]]":
        """What is in a directory, in byte order of names; with recursive all below it. No link is followed, and no
        directory entered that the sandbox's user can't enter. Raises LimitError where there is more than limit, 100000
        entries, or where it lies too deep. A name that is not UTF-8 is as os.fsdecode() has it."""
        check_count(limit, "limit", 1)
        found, after, size = [], None, 0  # type: List[FileInfo], Optional[str], int
        while True:
            page = yield self._ask("files.list", {"path": path, "recursive": recursive, "after": after})
            check_whole(page, path)
            found += [info_of(path_of(entry), entry) for entry in page["entries"]]
            size += sum(len(entry["name"]) + len(entry.get("target") or "") for entry in page["entries"])
            if len(found) > limit or size > READ_MAX:
                raise LimitError(
                    f"{os.fspath(path)!r} has more entries than a list takes: {limit}, or {READ_MAX} bytes of names",
                    hint="List the directories in it one by one, or set another limit.",
                )
            after = page["next"]
            if after is None:
                return found

    @operation
    def glob(self, pattern: str, path: Path = ".", *, limit: int = 10000) -> "Steps[List[FileInfo]]":
        """Paths that match a pattern as "src/**/*.py", below path; limit at most, up to 10000."""
        answer = yield self._ask("files.glob", {"pattern": pattern, "path": path, "limit": limit})
        return [info_of(path_of(entry), entry) for entry in answer["entries"]]

    @operation
    def grep(
        self, pattern: str, path: Path = ".", *, ignore_case: bool = False, glob: Optional[str] = None,
        limit: int = 1000,
    ) -> "Steps[List[Match]]":
        """Lines that match a POSIX extended regular expression; glob: only in files whose names match."""
        answer = yield self._ask(
            "files.grep",
            {"pattern": pattern, "path": path, "ignore_case": ignore_case, "glob": glob, "limit": limit},
        )
        return [Match(path_of(each), each["line"], each["text"]) for each in answer["matches"]]

    @operation
    def stat(self, path: Path, *, follow: bool = True) -> "Steps[FileInfo]":
        """What is at a path; with follow, what a link there leads to."""
        return info_of(os.fspath(path), (yield self._ask("files.stat", {"path": path, "follow": follow})))

    @operation
    def exists(self, path: Path) -> "Steps[bool]":
        """Whether there is something."""
        return bool((yield self._ask("files.exists", {"path": path}))["exists"])

    @operation
    def mkdir(self, path: Path, *, mode: Optional[int] = None, make_parents: bool = True) -> "Steps[None]":
        """Makes a directory."""
        yield self._ask("files.mkdir", {"path": path, "mode": mode, "make_parents": make_parents})

    @operation
    def remove(self, path: Path, *, recursive: bool = False) -> "Steps[None]":
        """Takes a file away, or a directory: an empty one, or with recursive all that is in it."""
        yield self._ask("files.remove", {"path": path, "recursive": recursive})

    @operation
    def move(self, source: Path, target: Path, *, replace: bool = False) -> "Steps[None]":
        """Renames a file or directory; with replace what is at target goes away."""
        yield self._ask("files.move", {"from": source, "to": target, "replace": replace})

    @operation
    def copy(
        self, source: Path, target: Path, *, recursive: bool = False, replace: bool = False
    ) -> "Steps[int]":
        """Copies a file, a link or, with recursive, a directory; how many fifos, sockets and devices were left out."""
        params = {"from": source, "to": target, "recursive": recursive, "replace": replace}
        return int((yield self._ask("files.copy", params))["left_out"] or 0)


class Files(FilesApi, SyncFace):
    """Sandbox.files"""

    def stream(self, path: Path, chunk_size: int = CHUNK) -> Iterator[bytes]:
        """A file of any size in chunks of at most chunk_size bytes, up to the size that it has at the start."""
        check_count(chunk_size, "chunk_size", 1)
        yield from chunks(drive(self._opened("files.open", path)), chunk_size)


class AsyncFiles(FilesApi, AsyncFace):
    """AsyncSandbox.files"""

    async def stream(self, path: Path, chunk_size: int = CHUNK) -> AsyncIterator[bytes]:
        """A file of any size in chunks of at most chunk_size bytes, up to the size that it has at the start."""
        check_count(chunk_size, "chunk_size", 1)
        file = await drive_async(self._opened("files.open", path))
        with file:
            left = size_of(file)
            while left > 0 and (piece := await drive_async(_read_piece(file, min(chunk_size, left)))):
                left -= len(piece)
                yield piece


def _read_piece(file: FileIO, size: int) -> "Steps[bytes]":
    return bytes((yield in_thread(lambda: file.read(size))))
