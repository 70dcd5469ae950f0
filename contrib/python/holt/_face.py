# SPDX-License-Identifier: Apache-2.0
"""What the parts of a sandbox have in common: its server, its name, and the bytes of files."""

from __future__ import annotations

import base64
import contextlib
import math
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
"""Bytes of a file in one message: in base64 half of what a request may have."""

Content = Union[str, bytes, bytearray, memoryview]

Path = Union[str, "os.PathLike[str]"]
"""Inside. Text, or a pathlib.PurePosixPath."""


def as_bytes(content: Content) -> bytes:
    if isinstance(content, str):
        try:
            return content.encode()
        except UnicodeEncodeError as error:
            raise UsageError("the text has half of a surrogate pair, which is no character") from error
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise UsageError(
        f"content is text or bytes, not {type(content).__name__}", hint="json.dumps() makes text of other things."
    )


def argv_of(command: Any) -> List[str]:
    """A command's arguments: text or paths. Raises UsageError for the line of a shell, and for what is neither."""
    if isinstance(command, (str, bytes)):
        line = command if isinstance(command, str) else command.decode(errors="replace")
        raise UsageError(
            f"a command is a list of arguments, not the text {line!r}",
            hint=f"A line of bash is for bash({line!r}); without a shell it is exec({line.split()!r}).",
        )
    argv = [os.fspath(each) if isinstance(each, os.PathLike) else each for each in command]
    for each in argv:
        if not isinstance(each, str):
            raise UsageError(f"an argument is text, not {each!r}", hint=f"Write str({each!r}).")
    return argv


def line_of(command: Any) -> str:
    """A line of bash. Raises UsageError for a list of arguments."""
    if not isinstance(command, str):
        raise UsageError(f"a line of bash is text, not {command!r}", hint="A list of arguments is for exec().")
    return command


WORD_MAX = 128 * 1024 - 1
"""Bytes of one argument, or of one variable with its name, as the kernel takes them (MAX_ARG_STRLEN)."""


def check_words(command: Mapping[str, Any], env: Any) -> None:
    """Raises LimitError for what no command can be started with."""
    line = command.get("shell")
    words = [("an argument", each) for each in command.get("argv") or ()]
    words += [("the line of bash", line)] if line is not None else []
    words += [(f"the variable {n}", f"{n}={v}") for n, v in env.items()] if isinstance(env, Mapping) else []
    for what, word in words:
        size = len(word.encode(errors="replace"))
        if size > WORD_MAX:
            raise LimitError(
                f"{what} has {size} bytes; {WORD_MAX} are the most that a command can be started with",
                hint='Give it by stdin=, or write it by files.write("name", ...) and name the file: bash("bash name").',
            )


def list_of(values: Any, what: str) -> List[Any]:
    """Raises UsageError for text, which is a list of characters to Python."""
    if isinstance(values, (str, bytes)):
        raise UsageError(f"{what} is a list, not the text {values!r}", hint=f"Write {what}=[{values!r}].")
    try:
        iterator = iter(values)
    except TypeError:
        raise UsageError(f"{what} is a list, not {values!r}") from None
    return list(iterator)  # what fails in a generator is its own


def seconds_of(value: Any) -> Optional[float]:
    """None for no limit. Raises UsageError for what is no number."""
    if value is None or value == math.inf:
        return None
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        seconds = float(value)
        if math.isfinite(seconds) and not isinstance(value, str):
            return seconds
    raise UsageError(f"a timeout is a number of seconds, not {value!r}")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def in_memory(data: bytes) -> BinaryIO:
    """A file without a name, to be handed on."""
    file = os.fdopen(os.memfd_create("holt", os.MFD_CLOEXEC), "w+b")
    file.write(data)
    file.seek(0)
    return file


def in_thread(function: Callable[[], Any]) -> "Future[Any]":
    """What blocks, so that an event loop need not."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


_PATHS = ("path", "from", "to", "prefix")  # parameters of files.* and mount.*

_MARK = "\1"
"""Begins a path that is written in base64, since it is not UTF-8."""


def _path_text(path: Any) -> Any:
    """Encode a path for holt serve. Bytes that are not UTF-8 are lone surrogates in Python (os.fsencode())."""
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
        raise UsageError(f"{path!r} has half of a surrogate pair that stands for no byte") from error


def path_of(answer: Mapping[str, Any], name: str = "name") -> str:
    """A path of an answer, as os.fsdecode() has it: of its bytes, if they are not UTF-8."""
    raw = answer.get("raw")
    if not raw:
        return str(answer[name])
    return base64.b64decode(raw[1:]).decode("utf-8", "surrogateescape")


def check_whole(page: Mapping[str, Any], path: Any) -> None:
    """Raises LimitError where a listing lacks what lies too deep. What is closed to commands inside is closed here."""
    missed = page.get("missed")
    if missed and missed["errno"] != "EACCES":
        raise LimitError(
            f"what is in the directory {path_of(missed)!r} below {os.fspath(path)!r} can't be listed",
            errno=missed["errno"],
            hint="A listing takes paths of 4095 bytes, directories nested 1024 deep, and 10000000 entries.",
        )


def chunks(file: FileIO, chunk_size: int) -> Iterator[bytes]:
    """Read the content that the file has at the start, so that a writer that keeps appending cannot delay the end."""
    with file:
        left = size_of(file)
        while left > 0 and (piece := file.read(min(chunk_size, left))):
            left -= len(piece)
            yield piece


class Part:
    """Of the sandbox `session`."""

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} can't be copied or pickled: it is this process's. Send its name.")

    def __init__(self, server: Server, session: str) -> None:
        self._server, self._session = server, session

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._session!r}>"

    def _ask(self, method: str, params: Mapping[str, Any], urgent: bool = False) -> Request:
        """params without those that are None."""
        return self._server.ask(self._session, method, self._given(method, params), urgent)

    def _ask_and_forget(self, method: str, **params: Any) -> None:
        """While another exception is under way, which is the one to be seen."""
        try:
            self._ask(method, params, urgent=True)
        except Exception:
            pass

    @staticmethod
    def _given(method: str, params: Mapping[str, Any]) -> "dict[str, Any]":
        """The parameters that are not None, with paths as holt serve takes them."""
        given = {name: v for name, v in params.items() if v is not None}
        if method.startswith(("files.", "mount.")):
            for name in _PATHS:
                if name in given:
                    given[name] = _path_text(given[name])
        return given

    def _get(self, method: str, whole: str, path: Path, max_bytes: Optional[int] = READ_MAX) -> "Steps[bytes]":
        """A whole file: what is small by method, what is large by an fd, as whole answers. Raises LimitError."""
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
        """A file by its fd, which closes itself where nobody wants it."""
        answer = yield self._ask(method, {"path": path, "fd": True if method == "mount.download" else None})
        if not answer.get("files"):
            raise LimitError("the file's fd has not come", errno="EMFILE", hint="This program has too many open.")
        return answer["files"][0]  # type: ignore[no-any-return]

    def _writable(self) -> "Steps[Tuple[str, ...]]":
        """Directories of the host that the session can write."""
        shown = yield self._ask("session.show", {})
        keys = ("source", "moved_to")
        return tuple(m[key] for m in shown["mounts"] if not m["read_only"] for key in keys if m.get(key))

    def _save(self, method: str, path: Path, target: "Union[str, os.PathLike[str], None]") -> "Steps[HostPath]":
        """To a file of the host, by default to its name in the working directory; where."""
        name = posixpath.basename(os.fspath(path).rstrip("/"))
        if target is None and not name:
            raise UsageError(f"{os.fspath(path)!r} has no name for the file", hint='Say target="name".')
        writable = yield from self._writable()
        file = yield from self._opened(method, path)

        def save() -> HostPath:
            with file:
                there = HostPath(target if target is not None else name)
                return save_file(there, name, lambda out: copy_contents(file, out), writable)

        return (yield in_thread(save))  # type: ignore[no-any-return]

    def _give(self, method: str, params: Mapping[str, Any], fd: int) -> "Steps[Any]":
        """Asks with an fd."""
        turn = self._server.transfers.begin()
        try:
            yield turn
            return (yield self._server.ask(self._session, method, self._given(method, params), fds=[fd]))
        finally:
            self._server.transfers.end(turn)

    def _put(self, path: Path, data: bytes, mode: "int | None", make_parents: bool) -> "Steps[int]":
        """Replaces a file at once. Its size."""
        params = {"path": path, "mode": mode, "make_parents": make_parents}
        if len(data) <= PIECE:
            answer = yield self._ask("files.write", {**params, "base64": encoded(data)})
        else:
            with in_memory(data) as file:
                answer = yield from self._give("files.receive", params, file.fileno())
        return int(answer["size"])
