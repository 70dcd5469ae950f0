# SPDX-License-Identifier: Apache-2.0
"""What the parts of a sandbox have in common: its server, its name, and the bytes of files."""

from __future__ import annotations

import base64
import contextlib
import math
import os
from concurrent.futures import Future
from io import FileIO
from threading import Thread
from typing import Any, BinaryIO, Callable, List, Mapping, Optional, Union

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


def _take_all(file: FileIO) -> bytes:
    with file:  # closed by who reads: that may go on when nobody waits any more
        return file.readall()


class Part:
    """Of the sandbox `session`."""

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} can't be copied or pickled: it is this process's. Send its name.")

    def __init__(self, server: Server, session: str) -> None:
        self._server, self._session = server, session

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._session!r}>"

    def _ask(self, method: str, params: Mapping[str, Any], urgent: bool = False) -> "Future[Any]":
        """params without those that are None."""
        given = {name: value for name, value in params.items() if value is not None}
        return self._server.submit(method, {"session": self._session, **given}, urgent)

    def _ask_and_forget(self, method: str, **params: Any) -> None:
        """While another exception is under way, which is the one to be seen."""
        try:
            self._ask(method, params, urgent=True)
        except Exception:
            pass

    def _get(self, method: str, whole: str, path: Path) -> "Steps[bytes]":
        """A whole file: what is small by method, what is large by an fd, as whole answers."""
        asked = {"path": path, "length": PIECE, "base64": True}
        part = yield self._ask(method, asked)
        if part["eof"]:
            return base64.b64decode(part["content"])
        turn = self._server.transfers.begin()
        try:
            yield turn
            answer = yield self._ask(whole, {"path": path, "fd": True if whole == method else None})
            if not answer.get("files"):
                raise LimitError("the file's fd has not come", errno="EMFILE", hint="This program has too many open.")
            return bytes((yield in_thread(lambda: _take_all(answer["files"][0]))))
        finally:
            self._server.transfers.end(turn)

    def _give(self, method: str, params: Mapping[str, Any], fd: int) -> "Steps[Any]":
        """Asks with an fd."""
        given = {name: value for name, value in params.items() if value is not None}
        turn = self._server.transfers.begin()
        try:
            yield turn
            return (yield self._server.submit(method, {"session": self._session, **given}, fds=[fd]))
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
