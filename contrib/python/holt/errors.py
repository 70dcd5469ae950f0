# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the SDK. A command that fails raises none of them, unless Result.check() is called.

Each kind of error in holt-serve(1) has its own class, so that a program can catch the errors that it can handle.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ._hints import hint_for_python


class HoltError(Exception):
    """An operation failed. This is the base class of all errors that holt reports.

    message  the operation, its object, and the reason of the failure
    kind     the kind of error as in holt-serve(1), such as "missing", "busy" or "limit"
    errno    the name of the system's error, such as "ENOENT"; or None
    hint     a way to solve the problem, in methods and arguments of this package; or None
    code     the error code of JSON-RPC
    data     a dict of the other fields in the error's data
    """

    kind = "setup"

    def __init__(
        self,
        message: str,
        *,
        kind: Optional[str] = None,
        errno: Optional[str] = None,
        hint: Optional[str] = None,
        code: int = -32000,
        data: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.message, self.errno, self.hint, self.code = message, errno, hint, code
        self.kind = kind or type(self).kind
        self.data = dict(data or {})

    def reword(self, message: str) -> None:
        """Replaces the message, also in args, from which Python makes repr()."""
        self.message, self.args = message, (message,)

    def __str__(self) -> str:
        reason = f" ({self.errno})" if self.errno and self.errno not in self.message else ""
        return f"{self.message}{reason}" + (f"\n  {self.hint}" if self.hint else "")


class SetupError(HoltError):
    """The host, or holt itself, failed."""


class UsageError(HoltError):
    """A parameter is wrong, or parameters contradict each other."""

    kind = "usage"


class PolicyError(HoltError):
    """A field or file of a policy is wrong."""

    kind = "policy"


class LayerError(HoltError):
    """The host refuses a layer of the sandbox; data["layer"] names it."""

    kind = "layer"


class NotExecutableError(HoltError):
    """The command exists and cannot be executed."""

    kind = "not-executable"


class CommandNotFoundError(HoltError):
    """The command does not exist."""

    kind = "not-found"


class MissingError(HoltError):
    """The session, process, key, tool or file does not exist."""

    kind = "missing"


class NoKeyError(MissingError):
    """The session has no such key."""

    kind = "no-key"


class NoProcessError(MissingError):
    """The session has no such process."""

    kind = "no-process"


class ExistsError(HoltError):
    """The file, key or session exists already, or a session exists with other settings."""

    kind = "exists"


class BusyError(HoltError):
    """The session or file is in use, or still running."""

    kind = "busy"


class LimitError(HoltError):
    """A limit of holt, of its protocol or of the disk is reached."""

    kind = "limit"


class DataError(HoltError):
    """One of holt's own files is damaged, or was made by a newer holt."""

    kind = "data"


class ProtocolError(HoltError):
    """A message was invalid, or came at the wrong time."""

    kind = "protocol"


class HoltNotFoundError(SetupError):
    """The program holt was not found."""

    kind = "no-holt"


class ClosedError(HoltError):
    """The sandbox is closed, or its `holt serve` has ended during the call. In the second case, the next call starts
    another one."""

    kind = "closed"


_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if chr(n) not in "\t\n"}
_BREAKS = {**_CONTROLS, ord("\n"): "\\x0a"}


def printable(text: str, *, lines: bool = True) -> str:
    """Returns a text without control characters, as holt writes them: "\\x1b". The text comes from code inside, and
    Python prints the message of an exception on a terminal, which would obey them. Tabs stay, and newlines if `lines`."""
    return text.translate(_CONTROLS if lines else _BREAKS)


class CommandFailed(Exception):
    """A command or code has failed. Only check() of its result raises this.

    result  the Result or PythonResult
    hint    a text with the refusals and reached limits, and the arguments of Sandbox that help; or None
    """

    def __init__(self, result: Any) -> None:
        self.result = result
        self.hint: Optional[str] = result.hint
        super().__init__(str(result) + "".join(f"\n  {line}" for line in (self.hint or "").splitlines()))

    def __reduce__(self) -> Any:
        return type(self), (self.result,)


class ToolError(Exception):
    """An error that a tool raises for its caller. The code inside gets a RuntimeError "[type] message".

    type  "validation_error", "permission_error" or "internal_error"; other exceptions arrive as "internal_error"
    """

    TYPES = ("validation_error", "permission_error", "internal_error")

    def __init__(self, message: str, type: str = "internal_error") -> None:
        if type not in self.TYPES:
            raise ValueError(f"type must be one of {', '.join(self.TYPES)}, not {type!r}")
        super().__init__(message)
        self.type = type


_CLASSES = {
    each.kind: each
    for each in (
        SetupError, UsageError, PolicyError, LayerError, NotExecutableError, CommandNotFoundError, MissingError,
        NoKeyError, NoProcessError,
        ExistsError, BusyError, LimitError, DataError, ProtocolError,
    )
}


def error_of(answer: Mapping[str, Any]) -> HoltError:
    """Returns the exception for the error object of a reply."""
    data = dict(answer.get("data") or {})
    kind, errno, hint = data.pop("kind", None), data.pop("errno", None), data.pop("hint", None)
    return _CLASSES.get(kind, HoltError)(
        str(answer.get("message")), kind=kind, errno=errno, hint=hint_for_python(hint), code=int(answer.get("code", -32000)), data=data
    )
