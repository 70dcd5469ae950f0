# SPDX-License-Identifier: Apache-2.0
"""Uploads and downloads below /mnt/files. The session owns these files, even if its workspace is a host directory."""

from __future__ import annotations

import io
import mimetypes
import os
import posixpath
import secrets
import stat
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union, overload

from ._face import PIECE, Part, Path as Inside, check_whole, encoded, in_memory, in_thread, path_of
from ._contents import READ_MAX, copy_contents, take_all
from ._host import open_file, save_file
from ._operations import AsyncFace, Steps, SyncFace, drive, host_only, operation
from .errors import UsageError
from .results import result_of

MOUNT_ID = "files"

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, BinaryIO]

FETCHED_INSIDE = ("http", "https")
URL_SCHEMES = (*FETCHED_INSIDE, "file", "data")

# Fetches the URL sys.argv[1] into the file sys.argv[2].
FETCH = """
import shutil, sys, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=60) as page, open(sys.argv[2], "wb") as file:
        shutil.copyfileobj(page, file, 1 << 20)
except OSError as error:
    sys.exit(f"cannot fetch {sys.argv[1]}: {error}")
"""


@dataclass(frozen=True)
class RemoteItem:
    """An entry of a listing. size is in bytes; last_modified is a time as in RFC 3339."""

    mount_relative_path: str
    sandbox_mount_prefix: str
    size: int
    last_modified: Any
    mime_type: Optional[str] = None

    @property
    def path(self) -> str:
        """The absolute path inside."""
        return posixpath.join(self.sandbox_mount_prefix, self.mount_relative_path)


@dataclass(frozen=True)
class Listing(Sequence[RemoteItem]):
    """One page of a listing, which is a sequence of its items. Pass next_cursor to get the next page; on the last
    page, it is None."""

    items: List[RemoteItem]
    next_cursor: Optional[str] = None

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> RemoteItem: ...
    @overload
    def __getitem__(self, index: slice) -> List[RemoteItem]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __iter__(self) -> Iterator[RemoteItem]:
        return iter(self.items)


@dataclass(frozen=True)
class RemoteFile:
    """A file below /mnt/files.

    A file from download() has its bytes. A file from Sandbox.mount.upload() fetches its bytes on request. A file from
    AsyncSandbox.mount.upload() has only its path, because its methods cannot wait for bytes.
    """

    mount_relative_path: str
    sandbox_mount_prefix: str
    content: Optional[bytes] = None
    fetch: Optional[Callable[[], io.FileIO]] = field(default=None, repr=False, compare=False)  # opens the file
    writable: Tuple[str, ...] = field(default=(), repr=False, compare=False)  # host directories that the session can write

    def __reduce__(self) -> Any:
        return type(self), (self.mount_relative_path, self.sandbox_mount_prefix, self.content, None, self.writable)

    @property
    def path(self) -> str:
        """The absolute path inside."""
        return posixpath.join(self.sandbox_mount_prefix, self.mount_relative_path)

    def buffer(self, max_bytes: Optional[int] = READ_MAX) -> bytes:
        """Returns the bytes. Raises LimitError if this needs to fetch more than max_bytes (default 64 MiB; None: no
        limit)."""
        if self.content is not None:
            return self.content
        return take_all(self.mount_relative_path, self._fetched(), max_bytes)

    def text(self, encoding: str = "utf-8", max_bytes: Optional[int] = READ_MAX) -> str:
        return self.buffer(max_bytes).decode(encoding)

    def save(self, path: "Union[str, os.PathLike[str], None]" = None) -> Path:
        """Writes the bytes to a file of the host, and returns the path of that file. The default is the same name in
        the working directory. The file may have any size. If this call fetches the bytes, a sparse file stays sparse.

        Raises UsageError for a symlink in a directory that the session can write, such as its workspace.
        """
        name = posixpath.basename(self.mount_relative_path)
        target, content = Path(path) if path is not None else Path(name), self.content
        if content is not None:
            data = content
            return save_file(target, name, lambda out: out.write(data), self.writable)
        with self._fetched() as file:
            return save_file(target, name, lambda out: copy_contents(file, out), self.writable)

    def _fetched(self) -> io.FileIO:
        if self.fetch:
            return self.fetch()
        raise UsageError(f"{self.mount_relative_path} was not downloaded", hint="mount.download(path) returns its bytes.")


def _is_url(source: Any) -> bool:
    return isinstance(source, str) and urllib.parse.urlsplit(source).scheme in URL_SCHEMES


def _open(source: Source, writable: Sequence[str]) -> "IO[bytes]":
    """Opens a source for reading. The caller closes it."""
    if _is_url(source):
        url = urllib.parse.urlsplit(str(source))
        if url.scheme == "data":
            return urllib.request.urlopen(str(source))  # type: ignore[no-any-return]
        source = urllib.request.url2pathname(url.path)
    return open_file(source, writable)  # type: ignore[arg-type]


def _is_large(stream: Any) -> bool:
    """Whether stream is a large regular file. Pipes, URLs and files in /proc are not, because their size is unknown."""
    if not isinstance(stream, io.BufferedReader):
        return False
    status = os.fstat(stream.fileno())
    return stat.S_ISREG(status.st_mode) and status.st_size > PIECE


def _name_of(source: Source) -> str:
    """Returns the default name inside for a source."""
    if _is_url(source):
        name = posixpath.basename(urllib.parse.unquote(urllib.parse.urlsplit(str(source)).path))
    elif isinstance(source, (str, os.PathLike)):
        name = os.path.basename(os.fspath(source))
    else:
        name = os.path.basename(str(getattr(source, "name", "")))
    if not name:
        raise UsageError("the upload has no name", hint='Pass one: remote_path="name.txt".')
    return name


def _check_mount(mount_id: str) -> None:
    if mount_id != MOUNT_ID:
        raise UsageError(f"mount {mount_id!r} does not exist", hint=f'A sandbox has one mount, "{MOUNT_ID}".')


class MountApi(Part):
    """Paths are relative to /mnt/files, with or without a leading "/". They may also start with "/mnt/files/"."""

    @operation
    def upload(
        self, source: Source, remote_path: Optional[Inside] = None, mimetype: Optional[str] = None,
        mount_id: str = MOUNT_ID,
    ) -> "Steps[RemoteFile]":
        """Uploads a file. The source is a host path, bytes, a binary file object, or a URL (http, https, file, data).
        Raises UsageError for a symlink in a directory that the session can write, such as its workspace.

        A program inside fetches an http or https URL, so the rules of the session's network apply: text from a model
        cannot make this process fetch from your own network. Raises CommandFailed if it cannot be fetched.

        remote_path  path below /mnt/files; default: the source's own name
        mimetype     adds the suffix of this type to the default name, if that has none
        """
        _check_mount(mount_id)
        if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)) and not hasattr(source, "read"):
            raise UsageError(f"source must be a path, bytes, a file object or a URL, not {source!r}")
        name = os.fspath(remote_path) if remote_path else _name_of(source)
        if mimetype and not posixpath.splitext(name)[1] and remote_path is None:
            name += mimetypes.guess_extension(mimetype) or ""
        if isinstance(source, (bytes, bytearray, memoryview)):
            return (yield from self._upload_bytes(name, bytes(source)))
        if _is_url(source) and urllib.parse.urlsplit(str(source)).scheme in FETCHED_INSIDE:
            return (yield from self._upload_fetched(name, str(source)))
        ours = isinstance(source, (str, os.PathLike))
        writable = (yield from self._writable()) if ours else ()
        stream: Any = (yield in_thread(lambda: _open(source, writable))) if ours else source
        try:
            if ours and _is_large(stream):
                return (yield from self._upload_file(name, stream))
            return (yield from self._upload_stream(name, stream))
        finally:
            if ours:
                stream.close()

    def _upload_fetched(self, name: str, url: str) -> "Steps[RemoteFile]":
        """Lets a program inside fetch a URL. An existing file is replaced only at the end."""
        beside = f".holt-{secrets.token_hex(8)}"
        prefix = (yield self._ask("mount.upload", {"path": beside, "content": ""}))["sandbox_mount_prefix"]
        try:
            argv = ["python3", "-I", "-c", FETCH, url, f"{prefix}/{beside}"]
            result_of((yield self._ask("exec", {"argv": argv, "cwd": "/", "base64": True}))).check()
            placed = yield from self._placed((yield self._ask("mount.upload", {"path": name, "content": ""})))
            yield self._ask("files.move", {"from": f"{prefix}/{beside}", "to": placed.path, "replace": True})
        except BaseException:
            self._ask_and_forget("mount.delete", path=beside)
            raise
        return placed

    def _upload_bytes(self, name: str, data: bytes) -> "Steps[RemoteFile]":
        if len(data) <= PIECE:
            return (yield from self._placed((yield self._ask("mount.upload", {"path": name, "base64": encoded(data)}))))
        with in_memory(data) as file:
            return (yield from self._upload_file(name, file))

    def _upload_file(self, name: str, file: BinaryIO) -> "Steps[RemoteFile]":
        """Uploads an open file by its descriptor."""
        answer = yield from self._give("mount.upload", {"path": name, "fd": True}, file.fileno())
        return (yield from self._placed(answer))

    def _upload_stream(self, name: str, stream: Any) -> "Steps[RemoteFile]":
        """Uploads a stream, with at most two pieces in memory. An existing file is replaced only at the end."""
        piece = yield in_thread(lambda: _read(stream))
        more = yield in_thread(lambda: _read(stream))
        if not more:
            return (yield from self._placed((yield self._ask("mount.upload", {"path": name, "base64": encoded(piece)}))))
        beside = f".holt-{secrets.token_hex(8)}"
        try:
            first = yield self._ask("mount.upload", {"path": beside, "base64": encoded(piece)})
            prefix = first["sandbox_mount_prefix"]
            while more:
                yield self._ask("files.append", {"path": f"{prefix}/{beside}", "base64": encoded(more)})
                more = yield in_thread(lambda: _read(stream))
            # This makes the parent directories, and checks the path like any upload.
            placed = yield from self._placed((yield self._ask("mount.upload", {"path": name, "content": ""})))
            yield self._ask("files.move", {"from": f"{prefix}/{beside}", "to": placed.path, "replace": True})
        except BaseException:
            self._ask_and_forget("mount.delete", path=beside)
            raise
        return placed

    def _placed(self, answer: Any) -> "Steps[RemoteFile]":
        path = path_of(answer, "mount_relative_path")
        if not isinstance(self, SyncFace):
            return _remote(answer)
        writable = yield from self._writable()
        fetch = lambda: drive(self._opened("mount.download", path))  # noqa: E731
        return RemoteFile(path, answer["sandbox_mount_prefix"], None, fetch, writable)

    @operation
    def list(
        self, path: Optional[Inside] = None, cursor: Optional[str] = None, limit: int = 100, mount_id: str = MOUNT_ID
    ) -> "Steps[Listing]":
        """Lists files whose path starts with path, in byte order. A page has at most limit files (1 to 500)."""
        _check_mount(mount_id)
        params: Dict[str, Any] = {"prefix": os.fspath(path or "") or None, "cursor": cursor, "limit": limit}
        page = yield self._ask("mount.list", params)
        check_whole(page, "/mnt/files")
        items = [
            RemoteItem(
                path_of(i, "mount_relative_path"), i["sandbox_mount_prefix"], i["size"], i["last_modified"], i.get("mime_type")
            )
            for i in page["items"]
        ]
        return Listing(items, page.get("next_cursor"))

    @operation
    @host_only("max_bytes")
    def download(
        self, path: Inside, mount_id: str = MOUNT_ID, *, max_bytes: Optional[int] = READ_MAX
    ) -> "Steps[RemoteFile]":
        """Returns a file with its bytes. Raises MissingError. Raises LimitError if the file has more than max_bytes
        (default 64 MiB; None: no limit). save() takes any size."""
        _check_mount(mount_id)
        data = yield from self._get("mount.download", "mount.download", path, max_bytes)
        return RemoteFile(_relative(path), "/mnt/files", data, None, (yield from self._writable()))

    @operation
    def save(
        self, path: Inside, target: "Union[str, os.PathLike[str], None]" = None, mount_id: str = MOUNT_ID
    ) -> "Steps[Path]":
        """Writes a file of any size to a file of the host, and returns the path of that file. The default is the same
        name in the working directory. A sparse file stays sparse. Refuses the same symlinks as RemoteFile.save()."""
        _check_mount(mount_id)
        return (yield from self._save("mount.download", path, target))

    @operation
    def delete(self, path: Inside, mount_id: str = MOUNT_ID) -> "Steps[RemoteFile]":
        """Removes a file, or a directory with all its entries. Raises MissingError."""
        _check_mount(mount_id)
        return _remote((yield self._ask("mount.delete", {"path": path})))


def _read(stream: Any) -> bytes:
    data = stream.read(PIECE)
    if isinstance(data, str):
        raise UsageError("the file object returns text", hint='Open it with mode "rb".')
    return bytes(data or b"")


def _relative(path: Inside) -> str:
    """Returns a path relative to /mnt/files, as the server names it in its replies."""
    name = os.fspath(path)
    below = name == "/mnt/files" or name.startswith("/mnt/files/")
    return (name[len("/mnt/files") :] if below else name).lstrip("/")


def _remote(answer: Any) -> RemoteFile:
    return RemoteFile(path_of(answer, "mount_relative_path"), answer["sandbox_mount_prefix"])


class Mount(MountApi, SyncFace):
    """Sandbox.mount"""


class AsyncMount(MountApi, AsyncFace):
    """AsyncSandbox.mount"""


__all__ = ["AsyncMount", "Listing", "Mount", "RemoteFile", "RemoteItem"]
