# SPDX-License-Identifier: Apache-2.0
"""Files of a sandbox. Paths are paths inside; relative ones start at the workspace."""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path as HostPath
from typing import Any, AsyncIterator, Iterator, List, Mapping, Optional, Tuple, Union

from ._contents import CHUNK, READ_MAX, check_count, size_of
from ._face import PIECE, Content, Part, Path, as_bytes, check_whole, chunks, encoded, in_thread, path_of
from ._operations import AsyncFace, Steps, SyncFace, drive, drive_async, host_only, operation
from ._host import open_file
from ._times import Time, milliseconds_of
from ._trees import Entry, Tree, link_stays, name_of, open_top, temporary_name, walk
from .errors import ExistsError, LimitError, UsageError

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
    """A line that matches. name is the path of its file, and line its number, counted from 1."""

    name: str
    line: int
    text: str


@dataclass(frozen=True)
class Copied:
    """The result of upload() and download().

    path      the path of the copy
    entries   number of copied files, directories and symlinks below it; 1 for a file
    left_out  entries that were not copied: symlinks that lead out of the tree, FIFOs, sockets and devices
    """

    path: str
    entries: int = 0
    left_out: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Link:
    """A signed URL to a file below /mnt/files, or one that accepts a file.

    id          number of the link in its session
    url         the URL, on the host's loopback
    path        path below /mnt/files
    upload      whether the link accepts an upload
    expires_ms  end of the link in milliseconds since 1970
    max_size    maximum bytes of an upload; None for a download
    used        whether an upload was stored, which uses up the link
    requests    number of its requests that have ended
    """

    id: int
    url: str
    path: str
    upload: bool
    expires_ms: int
    max_size: Optional[int] = None
    used: bool = False
    requests: int = 0

    def __str__(self) -> str:
        return self.url


def link_of(answer: Mapping[str, Any]) -> Link:
    return Link(
        answer["id"], answer["url"], path_of(answer, "path"), answer["upload"], answer["expires_ms"], answer["max_size"],
        answer["used"], answer["requests"],
    )


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
        """Writes a file of any size to a file of the host, and returns the path of that file. The default is the same
        name in the working directory.

        A sparse file stays sparse. Raises UsageError for a symlink in a directory that the session can write, such as
        its workspace.
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
        """Renames a file or directory. With replace, replaces an existing target."""
        yield self._ask("files.move", {"from": source, "to": target, "replace": replace})

    @operation
    def copy(
        self, source: Path, target: Path, *, recursive: bool = False, replace: bool = False
    ) -> "Steps[int]":
        """Copies a file, a symlink or, with recursive, a directory. Returns how many FIFOs, sockets and devices were left
        out."""
        params = {"from": source, "to": target, "recursive": recursive, "replace": replace}
        return int((yield self._ask("files.copy", params))["left_out"] or 0)

    # --- links ---

    @operation
    def link(
        self, path: Path, *, for_: Time = "1h", upload: bool = False, max_size: Optional[int] = None
    ) -> "Steps[Link]":
        """Makes a URL by which programs of the host read a file below /mnt/files. str() of the link is the URL.

        path      path below /mnt/files, absolute or relative to it
        for_      time until the link expires, at most 7 days: seconds, or text such as "10m"
        upload    accept one upload of the file, by PUT or POST, instead of serving it
        max_size  maximum bytes of an upload; default 100 MiB

        Everybody on the host who has the URL can use it until it expires, or until the session stops.
        """
        params = {"path": path, "for_ms": milliseconds_of(for_), "upload": upload or None, "max_size": max_size}
        return link_of((yield self._ask("links.make", params)))

    @operation
    def links(self) -> "Steps[List[Link]]":
        """Lists the links that have not expired."""
        return [link_of(each) for each in (yield self._ask("links.list", {}))["links"]]

    @operation
    def revoke_link(self, link: "Union[Link, int, None]" = None) -> "Steps[int]":
        """Revokes a link, or all of them, and ends their requests. Returns how many there were. Raises MissingError for a
        link that has expired."""
        id = link.id if isinstance(link, Link) else link
        return int((yield self._ask("links.revoke", {"id": id}))["revoked"])

    # --- whole directories ---

    @operation
    def upload(self, source: "Union[str, os.PathLike[str]]", path: Optional[Path] = None) -> "Steps[Copied]":
        """Copies a directory or file of the host into the sandbox. A directory appears at its path only when it is
        complete.

        source  the directory or file of the host
        path    its new path inside, which must not exist if source is a directory; default: its own name

        Symlinks that stay inside the tree are kept. Other symlinks, FIFOs, sockets and devices are left out, and
        Copied.left_out names them. No symlink below source is followed. Raises ExistsError, and LimitError for more than
        1024 nested directories, paths of more than 4095 bytes, or more than 10000000 entries.
        """
        name = os.fspath(path) if path is not None else name_of(source)
        if not name:
            raise UsageError(f"{os.fspath(source)!r} has no name", hint='Pass path="name".')
        writable = yield from self._writable()
        if not os.path.isdir(source):
            file = yield in_thread(lambda: open_file(source, writable))
            with file:
                mode = os.fstat(file.fileno()).st_mode & 0o777
                yield from self._give("files.receive", {"path": name, "mode": mode, "make_parents": True}, file.fileno())
            return Copied(name, 1)
        top = yield in_thread(lambda: open_top(source, writable))
        try:
            return (yield from self._upload_tree(top, name.rstrip("/") or name))
        finally:
            os.close(top)

    def _upload_tree(self, top: int, name: str) -> "Steps[Copied]":
        above = posixpath.dirname(name)
        if above:
            yield self._ask("files.mkdir", {"path": above, "make_parents": True})
        if (yield self._ask("files.exists", {"path": name}))["exists"]:
            raise ExistsError(
                f"{name!r} already exists in the sandbox", errno="EEXIST",
                hint="upload() does not merge directories. Remove it by files.remove(path, recursive=True), or pass another "
                "path.",
            )
        temporary, done = temporary_name(), Copied(name)
        beside = posixpath.join(above, temporary)
        yield self._ask("files.mkdir", {"path": beside, "mode": os.fstat(top).st_mode & 0o777 | 0o700, "owned": True})
        entries = walk(top)
        try:
            while entry := (yield in_thread(lambda: next(entries, None))):
                if temporary in entry.path.split("/"):
                    if entry.fd >= 0:
                        os.close(entry.fd)
                    raise UsageError(
                        "cannot copy a directory into itself", hint="Its new path lies in that directory of the host."
                    )
                done = yield from self._upload_entry(entry, f"{beside}/{entry.path}", done)
            yield self._ask("files.move", {"from": beside, "to": name})
        except BaseException:
            self._ask_and_forget("files.remove", path=beside, recursive=True)
            raise
        finally:
            with contextlib.suppress(ValueError):  # a thread still uses it, because the caller has given up
                entries.close()
        return done

    def _upload_entry(self, entry: Entry, path: str, done: Copied) -> "Steps[Copied]":
        mode = entry.mode & 0o777
        if entry.fd >= 0:
            try:
                yield from self._give("files.receive", {"path": path, "mode": mode}, entry.fd)
            finally:
                os.close(entry.fd)
        elif stat.S_ISDIR(entry.mode):
            yield self._ask("files.mkdir", {"path": path, "mode": mode | 0o700})
        elif stat.S_ISLNK(entry.mode) and link_stays(entry.path, entry.target):
            yield self._ask("files.link", {"path": path, "target": entry.target})
        else:
            return replace(done, left_out=(*done.left_out, entry.path))
        return replace(done, entries=done.entries + 1)

    @operation
    def download(
        self, path: Path, target: "Union[str, os.PathLike[str], None]" = None, *, limit: int = LIST_MAX
    ) -> "Steps[Copied]":
        """Copies a directory or file of the sandbox to the host. A directory appears at its path only when it is
        complete.

        target  the new path on the host, which must not exist if path is a directory; default: its own name in the
                working directory
        limit   maximum number of entries; default 100000

        Keeps and leaves out the same entries as upload(). A downloaded directory may have files that programs of the
        host run, such as the hooks of a git repository: look at it first.
        """
        name = posixpath.basename(os.fspath(path).rstrip("/"))
        if target is None and not name:
            raise UsageError(f"{os.fspath(path)!r} does not end with a name", hint='Pass target="name".')
        if (yield self._ask("files.stat", {"path": path, "follow": True}))["type"] != "directory":
            saved = yield from self._save("files.open", path, target)
            return Copied(str(saved), 1)
        there = HostPath(target if target is not None else name)
        entries = yield from FilesApi.list.steps(self, path, recursive=True, limit=limit)
        writable = yield from self._writable()
        tree = yield in_thread(lambda: Tree(there, writable))
        try:
            done = Copied(str(there))
            for entry in entries:
                if tree.temporary not in entry.name.split("/"):
                    done = yield from self._download_entry(tree, path, entry, done)
            tree.finish()
            return done
        finally:
            tree.close()

    def _download_entry(self, tree: Tree, top: Path, entry: FileInfo, done: Copied) -> "Steps[Copied]":
        if entry.type == "file":
            file = yield from self._opened("files.open", posixpath.join(os.fspath(top), entry.name))
            yield in_thread(lambda: tree.write(entry.name, entry.mode, file))
        elif entry.type == "directory":
            tree.mkdir(entry.name, entry.mode)
        elif entry.type == "link" and "\ufffd" not in (entry.target or "") and link_stays(entry.name, entry.target or ""):
            tree.link(entry.name, entry.target or "")
        else:
            return replace(done, left_out=(*done.left_out, entry.name))
        return replace(done, entries=done.entries + 1)


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
