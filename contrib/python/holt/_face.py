# SPDX-License-Identifier: Apache-2.0
"""The common base of a sandbox and its parts: its server, its name, and transfers of files."""

from __future__ import annotations

import base64
import os
import posixpath
from concurrent.futures import Future
from io import FileIO
from pathlib import Path as HostPath
from threading import Thread
from typing import Any, BinaryIO, Callable, Iterator, List, Mapping, Optional, Tuple, Union

from ._request import Request
from ._contents import READ_MAX, check_max, check_size, copy_contents, size_of, take_all
from ._host import save_file
from ._operations import Steps
from ._server import Server
from .errors import LimitError, UsageError

PIECE = 384 * 1024
"""Maximum bytes of a file in one message. In base64, these are half of the maximum of a request."""

Content = Union[str, bytes, bytearray, memoryview]

Path = Union[str, "os.PathLike[str]"]
"""A path inside: text, or a pathlib.PurePosixPath."""


def as_bytes(content: Content) -> bytes:
    if isinstance(content, str):
        try:
            return content.encode()
        except UnicodeEncodeError as error:
            raise UsageError("the text has half of a surrogate pair, which is not a character") from error
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise UsageError(
        f"content must be text or bytes, not {type(content).__name__}", hint="json.dumps() turns other values into text."
    )


def argv_of(command: Any) -> List[str]:
    """Returns a command's arguments as text. Raises UsageError for a line of a shell, or for an argument that is neither
    text nor a path."""
    if isinstance(command, (str, bytes)):
        line = command if isinstance(command, str) else command.decode(errors="replace")
        raise UsageError(
            f"a command must be a list of arguments, not the text {line!r}",
            hint=f"Run a line of bash by bash({line!r}), or a command without a shell by exec({line.split()!r}).",
        )
    argv = [os.fspath(each) if isinstance(each, os.PathLike) else each for each in command]
    for each in argv:
        if not isinstance(each, str):
            raise UsageError(f"an argument must be text, not {each!r}", hint=f"Write str({each!r}).")
    return argv


def line_of(command: Any) -> str:
    """Returns a line of bash. Raises UsageError for a list of arguments."""
    if not isinstance(command, str):
        raise UsageError(f"a line of bash must be text, not {command!r}", hint="Pass a list of arguments to exec().")
    return command


WORD_MAX = 128 * 1024 - 1
"""Maximum bytes of one argument, or of one environment variable with its name (the kernel's MAX_ARG_STRLEN)."""


def check_words(command: Mapping[str, Any], env: Any) -> None:
    """Raises LimitError if an argument or environment variable is too long for the kernel."""
    line = command.get("shell")
    words = [("an argument", each) for each in command.get("argv") or ()]
    words += [("the line of bash", line)] if line is not None else []
    words += [(f"the variable {n}", f"{n}={v}") for n, v in env.items()] if isinstance(env, Mapping) else []
    for what, word in words:
        size = len(word.encode(errors="replace"))
        if size > WORD_MAX:
            raise LimitError(
                f"{what} has {size} bytes, and the kernel accepts at most {WORD_MAX}",
                hint='Pass it by stdin=, or write it by files.write("name", ...) and run the file: bash("bash name").',
            )


def list_of(values: Any, what: str) -> List[Any]:
    """Returns values as a list. Raises UsageError for text, since Python would iterate over its characters."""
    if isinstance(values, (str, bytes)):
        raise UsageError(f"{what} must be a list, not the text {values!r}", hint=f"Write {what}=[{values!r}].")
    try:
        iterator = iter(values)
    except TypeError:
        raise UsageError(f"{what} must be a list, not {values!r}") from None
    return list(iterator)  # errors of a generator are not caught


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def in_memory(data: bytes) -> BinaryIO:
    """Returns a file in memory, without a name, whose descriptor can be sent."""
    file = os.fdopen(os.memfd_create("holt", os.MFD_CLOEXEC), "w+b")
    file.write(data)
    file.seek(0)
    return file


def in_thread(function: Callable[[], Any]) -> "Future[Any]":
    """Runs a blocking function in a new thread, so that an event loop is not blocked."""
    future: Future[Any] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return  # its coroutine was cancelled before the thread ran
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


_PATHS = ("path", "from", "to", "prefix", "target")  # parameters of files.* and mount.*

_MARK = "\1"
"""The first character of a path in base64, which is used if the path is not UTF-8."""


def _path_text(path: Any) -> Any:
    """Encodes a path for holt serve. Bytes that are not UTF-8 are lone surrogates in Python (os.fsencode())."""
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not isinstance(path, str):
        return path
    odd = path.startswith(_MARK)
    try:
        path.encode()
    except UnicodeEncodeError:
        odd = True
    if not odd:
        return path
    try:
        return _MARK + encoded(path.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError as error:
        raise UsageError(f"{path!r} has half of a surrogate pair, which does not stand for a byte") from error


def path_of(answer: Mapping[str, Any], name: str = "name") -> str:
    """Returns a path of a reply. Bytes that are not UTF-8 are decoded as by os.fsdecode()."""
    raw = answer.get("raw")
    if not raw:
        return str(answer[name])
    return base64.b64decode(raw[1:]).decode("utf-8", "surrogateescape")


def check_whole(page: Mapping[str, Any], path: Any) -> None:
    """Raises LimitError if a listing is incomplete because entries are nested too deeply. Leaves out directories that
    commands inside cannot read, and reports no error."""
    missed = page.get("missed")
    if missed and missed["errno"] != "EACCES":
        raise LimitError(
            f"cannot list the directory {path_of(missed)!r} below {os.fspath(path)!r}",
            errno=missed["errno"],
            hint="A listing is limited to paths of 4095 bytes, directories nested 1024 deep, and 10000000 entries.",
        )


def chunks(file: FileIO, chunk_size: int) -> Iterator[bytes]:
    """Reads the content that the file has at the start, so that a writer that keeps appending cannot delay the end."""
    with file:
        left = size_of(file)
        while left > 0 and (piece := file.read(min(chunk_size, left))):
            left -= len(piece)
            yield piece


class Part:
    """A part of the sandbox `session`."""

    def __reduce__(self) -> Any:
        raise TypeError(
            f"a {type(self).__name__} can't be copied or pickled, because it belongs to this process. Send its name."
        )

    def __init__(self, server: Server, session: str) -> None:
        self._server, self._session = server, session

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._session!r}>"

    def _ask(
        self, method: str, params: Mapping[str, Any], urgent: bool = False, then: "Optional[Callable[[Any], Any]]" = None
    ) -> Request:
        """Sends a request. Parameters that are None are left out. then: see Request."""
        return self._server.ask(self._session, method, self._given(method, params), urgent, then=then)

    def _ask_and_forget(self, method: str, **params: Any) -> None:
        """Sends a request and ignores its outcome, so that another exception can be raised."""
        try:
            self._ask(method, params, urgent=True)
        except Exception:
            pass

    @staticmethod
    def _given(method: str, params: Mapping[str, Any]) -> "dict[str, Any]":
        """Returns the parameters that are not None, with paths encoded for holt serve."""
        given = {name: v for name, v in params.items() if v is not None}
        if method.startswith(("files.", "mount.")):
            for name in _PATHS:
                if name in given:
                    given[name] = _path_text(given[name])
        return given

    def _get(self, method: str, whole: str, path: Path, max_bytes: Optional[int] = READ_MAX) -> "Steps[bytes]":
        """Reads a whole file. A small file comes in the reply to `method`, and a large one as a descriptor in the reply to
        `whole`. Raises LimitError."""
        check_max(max_bytes)
        part = yield self._ask(method, {"path": path, "length": PIECE, "base64": True})
        check_size(path, part["size"], max_bytes)
        if part["eof"]:
            data = base64.b64decode(part["content"])
            check_size(path, len(data), max_bytes)
            return data
        turn = self._server.transfers.begin()
        try:
            yield turn
            file = yield from self._opened(whole, path)
            return bytes((yield in_thread(lambda: take_all(path, file, max_bytes))))
        finally:
            self._server.transfers.end(turn)

    def _opened(self, method: str, path: Path) -> "Steps[FileIO]":
        """Opens a file by a descriptor, which closes itself when it is dropped."""
        answer = yield self._ask(method, {"path": path, "fd": True if method == "mount.download" else None})
        if not answer.get("files"):
            raise LimitError(
                "the file's descriptor was not received", errno="EMFILE", hint="This program has too many files open."
            )
        return answer["files"][0]  # type: ignore[no-any-return]

    def _writable(self) -> "Steps[Tuple[str, ...]]":
        """Returns the host directories that the session can write."""
        shown = yield self._ask("session.show", {})
        keys = ("source", "moved_to")
        return tuple(m[key] for m in shown["mounts"] if not m["read_only"] for key in keys if m.get(key))

    def _save(self, method: str, path: Path, target: "Union[str, os.PathLike[str], None]") -> "Steps[HostPath]":
        """Writes to a file of the host, and returns its path. The default is the same name in the working directory."""
        name = posixpath.basename(os.fspath(path).rstrip("/"))
        if target is None and not name:
            raise UsageError(f"{os.fspath(path)!r} does not end with a file name", hint='Pass target="name".')
        writable = yield from self._writable()
        file = yield from self._opened(method, path)

        def save() -> HostPath:
            with file:
                there = HostPath(target if target is not None else name)
                return save_file(there, name, lambda out: copy_contents(file, out), writable)

        return (yield in_thread(save))  # type: ignore[no-any-return]

    def _give(self, method: str, params: Mapping[str, Any], fd: int) -> "Steps[Any]":
        """Sends a request with a descriptor."""
        turn = self._server.transfers.begin()
        try:
            yield turn
            return (yield self._server.ask(self._session, method, self._given(method, params), fds=[fd]))
        finally:
            self._server.transfers.end(turn)

    def _put(self, path: Path, data: bytes, mode: "int | None", make_parents: bool) -> "Steps[int]":
        """Replaces a file atomically. Returns its size."""
        params = {"path": path, "mode": mode, "make_parents": make_parents}
        if len(data) <= PIECE:
            answer = yield self._ask("files.write", {**params, "base64": encoded(data)})
        else:
            with in_memory(data) as file:
                answer = yield from self._give("files.receive", params, file.fileno())
        return int(answer["size"])
