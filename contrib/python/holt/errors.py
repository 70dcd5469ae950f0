# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as exceptions. A command that ends with another code than 0 is none of these: see Result.check().

Each kind of holt-serve(1) is a class, so that a program catches what it can do something about.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional


class HoltError(Exception):
    """holt could not do what was asked.

    message  what was tried, on what, and why it failed
    kind     as in holt-serve(1): "missing", "busy", "limit", ...
    errno    the name of the system's error, as "ENOENT", or None
    hint     what to do, or None
    code     of JSON-RPC
    data     all that the answer had beside these
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
        """repr() is made of args."""
        self.message, self.args = message, (message,)

    def __str__(self) -> str:
        reason = f" ({self.errno})" if self.errno and self.errno not in self.message else ""
        return f"{self.message}{reason}" + (f"\n  {self.hint}" if self.hint else "")


class SetupError(HoltError):
    """The host, or holt itself, could not do it."""


class UsageError(HoltError):
    """What was asked for makes no sense: a parameter, or several together."""

    kind = "usage"


class PolicyError(HoltError):
    """A field or file of a policy."""

    kind = "policy"


class LayerError(HoltError):
    """The host refuses a layer of the sandbox, which data["layer"] names."""

    kind = "layer"


class NotExecutableError(HoltError):
    """The command is there and can't be executed."""

    kind = "not-executable"


class CommandNotFoundError(HoltError):
    """The command is not there."""

    kind = "not-found"


class MissingError(HoltError):
    """No such session, process, key or file."""

    kind = "missing"


class ExistsError(HoltError):
    """What was to be made is there."""

    kind = "exists"


class BusyError(HoltError):
    """Somebody else has it, or it goes on."""

    kind = "busy"


class LimitError(HoltError):
    """A cap of holt's, of its protocol or of the disk is reached."""

    kind = "limit"


class DataError(HoltError):
    """A file of holt's own is damaged, or of a newer holt."""

    kind = "data"


class ProtocolError(HoltError):
    """A message that makes no sense to the other side."""

    kind = "protocol"


class HoltNotFoundError(SetupError):
    """There is no program holt."""

    kind = "no-holt"


class ClosedError(HoltError):
    """The sandbox is closed, or its `holt serve` has ended."""

    kind = "closed"


class CommandFailed(Exception):
    """Raised by Result.check(): a command or code did not end well. result has all of it."""

    def __init__(self, result: Any) -> None:
        self.result = result
        super().__init__(str(result))


class ToolError(Exception):
    """Raised by a tool: the code inside gets a RuntimeError "[type] message".

    type  "validation_error", "permission_error" or "internal_error", as which any other exception arrives
    """

    TYPES = ("validation_error", "permission_error", "internal_error")

    def __init__(self, message: str, type: str = "internal_error") -> None:
        if type not in self.TYPES:
            raise ValueError(f"type is one of {', '.join(self.TYPES)}, not {type!r}")
        super().__init__(message)
        self.type = type


_CLASSES = {
    each.kind: each
    for each in (
        SetupError, UsageError, PolicyError, LayerError, NotExecutableError, CommandNotFoundError, MissingError,
        ExistsError, BusyError, LimitError, DataError, ProtocolError,
    )
}


def error_of(answer: Mapping[str, Any]) -> HoltError:
    """The exception for the error of an answer."""
    data = dict(answer.get("data") or {})
    kind, errno, hint = data.pop("kind", None), data.pop("errno", None), data.pop("hint", None)
    return _CLASSES.get(kind, HoltError)(
        str(answer.get("message")), kind=kind, errno=errno, hint=hint, code=int(answer.get("code", -32000)), data=data
    )
