# SPDX-License-Identifier: Apache-2.0
"""Files of a sandbox. Paths are paths inside; relative ones start at the workspace."""

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
"""Maximum entries of a listing, unless limit sets another number."""


@dataclass(frozen=True)
class FileInfo:
    """An entry of a directory.

    name         path relative to the listed directory
    type         "file", "directory", "link" (a symlink) or "other"
    size         bytes
    modified_ms  time of the last change in milliseconds since 1970
    mode         permission bits
    target       target of a symlink
    """

    name: str
    type: str
    size: int
    modified_ms: int
    mode: int
    target: Optional[str] = None


@dataclass(frozen=True)
class Match:
    """A matching line of the file name. Lines are counted from 1."""

    name: str
    line: int
    text: str


def info_of(name: str, entry: Mapping[str, Any]) -> FileInfo:
    return FileInfo(name, entry["type"], entry["size"], entry["modified_ms"], entry["mode"], entry.get("target"))


class FilesApi(Part):
    """File operations. They raise MissingError for a missing entry, ExistsError for an existing one, and LimitError if a
    limit is exceeded."""

    @operation
    @host_only("max_bytes")
    def read(
        self, path: Path, encoding: str = "utf-8", errors: str = "strict", *, max_bytes: Optional[int] = READ_MAX
    ) -> "Steps[str]":
        """Returns the text of a file. Raises UnicodeDecodeError if it cannot be decoded, or LimitError if it is too large.

        max_bytes  maximum size of the file; default 64 MiB; None: no limit
        """
        return (yield from self._get("files.read", "files.open", path, max_bytes)).decode(encoding, errors)

    @operation
    @host_only("max_bytes")
    def read_bytes(self, path: Path, *, max_bytes: Optional[int] = READ_MAX) -> "Steps[bytes]":
        """Returns all bytes of a file. Raises LimitError if it has more than max_bytes (default 64 MiB; None: no limit)."""
        return (yield from self._get("files.read", "files.open", path, max_bytes))

    @operation
    def save(
        self, path: Path, target: "Union[str, os.PathLike[str], None]" = None
    ) -> "Steps[HostPath]":
        """Writes a file of any size to a file of the host, and returns that path. The default is its own name in the
        working directory.

        Holes stay holes. Raises UsageError for a symlink in a directory that the session can write, such as its
        workspace.
        """
        return (yield from self._save("files.open", path, target))

    @operation
    def write(
        self, path: Path, content: Content, *, mode: Optional[int] = None, make_parents: bool = True
    ) -> "Steps[int]":
        """Replaces a file atomically, or makes it. Returns its size in bytes. Text is written as UTF-8.

        mode  permission bits; default: those of the existing file, or 0644
        """
        return (yield from self._put(path, as_bytes(content), mode, make_parents))

    @operation
    def append(self, path: Path, content: Content) -> "Steps[int]":
        """Appends to a file, or makes it. Returns the number of bytes added."""
        data = as_bytes(content)
        for start in range(0, len(data) or 1, PIECE):
            yield self._ask("files.append", {"path": path, "base64": encoded(data[start : start + PIECE])})
        return len(data)

    @operation
    @host_only("limit")
    def list(
        self, path: Path = ".", *, recursive: bool = False, limit: int = LIST_MAX
    ) -> "Steps[List[FileInfo]]":
        """Lists a directory in byte order of names.

        recursive  lists all entries below it, too
        limit      maximum number of entries; default 100000

        Symlinks are not followed, and directories that the sandbox's user cannot enter are left out. Raises LimitError
        for more entries than limit, or if an entry is nested too deeply. A name that is not UTF-8 is decoded as by
        os.fsdecode().
        """
        check_count(limit, "limit", 1)
        found, after, size = [], None, 0  # type: List[FileInfo], Optional[str], int
        while True:
            page = yield self._ask("files.list", {"path": path, "recursive": recursive, "after": after})
            check_whole(page, path)
            found += [info_of(path_of(entry), entry) for entry in page["entries"]]
            size += sum(len(entry["name"]) + len(entry.get("target") or "") for entry in page["entries"])
            if len(found) > limit or size > READ_MAX:
                raise LimitError(
                    f"{os.fspath(path)!r} has more than {limit} entries, or more than {READ_MAX} bytes of names",
                    hint="List its directories one by one, or set another limit.",
                )
            after = page["next"]
            if after is None:
                return found

    @operation
    def glob(self, pattern: str, path: Path = ".", *, limit: int = 10000) -> "Steps[List[FileInfo]]":
        """Returns paths below path that match a pattern such as "src/**/*.py". limit is at most 10000."""
        answer = yield self._ask("files.glob", {"pattern": pattern, "path": path, "limit": limit})
        return [info_of(path_of(entry), entry) for entry in answer["entries"]]

    @operation
    def grep(
        self, pattern: str, path: Path = ".", *, ignore_case: bool = False, glob: Optional[str] = None,
        limit: int = 1000,
    ) -> "Steps[List[Match]]":
        """Returns lines that match a POSIX extended regular expression.

        glob  searches only files whose names match this pattern
        """
        answer = yield self._ask(
            "files.grep",
            {"pattern": pattern, "path": path, "ignore_case": ignore_case, "glob": glob, "limit": limit},
        )
        return [Match(path_of(each), each["line"], each["text"]) for each in answer["matches"]]

    @operation
    def stat(self, path: Path, *, follow: bool = True) -> "Steps[FileInfo]":
        """Describes the entry at a path. With follow, describes the target of a symlink."""
        return info_of(os.fspath(path), (yield self._ask("files.stat", {"path": path, "follow": follow})))

    @operation
    def exists(self, path: Path) -> "Steps[bool]":
        """Returns whether a path exists."""
        return bool((yield self._ask("files.exists", {"path": path}))["exists"])

    @operation
    def mkdir(self, path: Path, *, mode: Optional[int] = None, make_parents: bool = True) -> "Steps[None]":
        """Makes a directory."""
        yield self._ask("files.mkdir", {"path": path, "mode": mode, "make_parents": make_parents})

    @operation
    def remove(self, path: Path, *, recursive: bool = False) -> "Steps[None]":
        """Removes a file or an empty directory. With recursive, removes a directory with all its entries."""
        yield self._ask("files.remove", {"path": path, "recursive": recursive})

    @operation
    def move(self, source: Path, target: Path, *, replace: bool = False) -> "Steps[None]":
        """Renames a file or directory. With replace, an existing target is replaced."""
        yield self._ask("files.move", {"from": source, "to": target, "replace": replace})

    @operation
    def copy(
        self, source: Path, target: Path, *, recursive: bool = False, replace: bool = False
    ) -> "Steps[int]":
        """Copies a file, a symlink or, with recursive, a directory. Returns how many FIFOs, sockets and devices were left
        out."""
        params = {"from": source, "to": target, "recursive": recursive, "replace": replace}
        return int((yield self._ask("files.copy", params))["left_out"] or 0)


class Files(FilesApi, SyncFace):
    """Sandbox.files"""

    def stream(self, path: Path, chunk_size: int = CHUNK) -> Iterator[bytes]:
        """Yields a file of any size in chunks of at most chunk_size bytes, up to the size that it has at the start."""
        check_count(chunk_size, "chunk_size", 1)
        yield from chunks(drive(self._opened("files.open", path)), chunk_size)


class AsyncFiles(FilesApi, AsyncFace):
    """AsyncSandbox.files"""

    async def stream(self, path: Path, chunk_size: int = CHUNK) -> AsyncIterator[bytes]:
        """Yields a file of any size in chunks of at most chunk_size bytes, up to the size that it has at the start."""
        check_count(chunk_size, "chunk_size", 1)
        file = await drive_async(self._opened("files.open", path))
        with file:
            left = size_of(file)
            while left > 0 and (piece := await drive_async(_read_piece(file, min(chunk_size, left)))):
                left -= len(piece)
                yield piece


def _read_piece(file: FileIO, size: int) -> "Steps[bytes]":
    return bytes((yield in_thread(lambda: file.read(size))))
