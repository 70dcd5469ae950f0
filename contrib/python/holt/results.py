# SPDX-License-Identifier: Apache-2.0
"""What comes of commands and code."""

from __future__ import annotations

import base64
import binascii
import contextlib
from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Mapping, Optional, Tuple, TypeVar

from .errors import CommandFailed


@dataclass(frozen=True)
class Usage:
    """Times in microseconds; None where it is not known."""

    wall_us: Optional[int] = None
    user_us: Optional[int] = None
    system_us: Optional[int] = None
    max_rss_bytes: Optional[int] = None


@dataclass(frozen=True)
class Denial:
    """Something that the policy has refused, and the option that would allow it, or why none does."""

    layer: str
    what: str
    count: int
    answer: str
    grant: Optional[str] = None
    why_not: Optional[str] = None


R = TypeVar("R", bound="Outcome")

_PREVIEW = 60  # characters of a text in a repr


def _preview(value: Any) -> str:
    if isinstance(value, PythonError):
        value = f"{value.name}: {value.message}"
    if not isinstance(value, str) or len(value) <= _PREVIEW:
        return repr(value)
    return f"{value[:_PREVIEW]!r}... ({len(value)} characters)"


@dataclass(frozen=True, repr=False)
class Outcome:
    """How something ended.

    cause       "exited", "signaled", "timeout", "killed", "oom", "output_limit" or "lost"
    exit_code   its own; 128 + n after signal n, 124 after a timeout
    *_dropped   bytes that were more than the limit for output
    unrecorded  why it is not in the session's history yet, as on a full disk; "" where it is
    set_aside   what was at protected paths of the workspace when it ended, relative to that, or of another
                mount, as an absolute path of the host
    unguarded   why something there could not be set aside; "" where nothing was left
    replaced    the protected or hidden path that the host replaced, so that holt stopped the session; "" otherwise
    """

    id: str
    cause: str
    exit_code: int
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""
    stdout_dropped: int = 0
    stderr_dropped: int = 0
    usage: Usage = Usage()
    denials: Tuple[Denial, ...] = ()
    unrecorded: str = ""
    set_aside: Tuple[str, ...] = ()
    unguarded: str = ""
    replaced: str = ""

    @property
    def stdout(self) -> str:
        """As UTF-8; what is none becomes U+FFFD."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        return self.cause == "exited" and self.exit_code == 0

    def check(self: R) -> R:
        """Itself, where all went well. Raises CommandFailed."""
        if not self.ok:
            raise CommandFailed(self)
        return self

    def __repr__(self) -> str:
        """The first of what there is of texts; what is as it is without a word (nothing dropped, no denials) is left
        out."""
        shown = []
        for each in fields(self):
            name = each.name.replace("_bytes", "")
            value = getattr(self, name)
            if name == "usage":  # too long for a line, and not what is looked for there
                continue
            if name == "displays":
                value = tuple(next(iter(bundle), "") for bundle in value)  # what kind each is
            if name in ("cause", "exit_code", "stdout") or value != ("" if name == "stderr" else each.default):
                shown.append(f"{name}={_preview(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __str__(self) -> str:
        how = f"exit code {self.exit_code}"
        if self.cause != "exited":
            after = f" after {self.usage.wall_us / 1e6:.3g} s" if self.cause == "timeout" and self.usage.wall_us else ""
            how = f"{self.cause}{after}, {how}"
        return f"{how}: {self.stderr.strip()[-1000:]}" if self.stderr.strip() else how


@dataclass(frozen=True, repr=False)
class Result(Outcome):
    """Of a command. signal is the one that has ended it."""

    signal: Optional[int] = None


@dataclass(frozen=True)
class PythonError:
    """name is the class of the exception, "ValueError"."""

    name: str
    message: str
    traceback: str


@dataclass(frozen=True, repr=False)
class PythonResult(Outcome):
    """Of code in the interpreter.

    result      repr of the last expression, or None
    displays    what it has shown, each a dict of mime type to text, or to base64 for images and the like
    error       the exception that has ended it, or None
    state_kept  False where the interpreter has ended, so that the next run starts with nothing
    lost        how the interpreter had ended by itself since the run before ("signaled", "oom", …), so that this run
                has started with nothing; "" as a rule
    """

    result: Optional[str] = None
    displays: Tuple[Mapping[str, str], ...] = ()
    error: Optional[PythonError] = None
    state_kept: bool = True
    lost: str = ""

    def images(self, mime: str = "image/png") -> List[bytes]:
        """The bytes of what was displayed as that type, plots for instance; what is no base64 is left out."""
        found = []
        for each in self.displays:
            with contextlib.suppress(ValueError):
                if mime in each:
                    found.append(base64.b64decode(each[mime]))
        return found

    def __str__(self) -> str:
        if self.error and self.cause != "timeout":
            return f"{self.error.name}: {self.error.message}"
        return super().__str__()


def _common(answer: Mapping[str, Any]) -> Dict[str, Any]:
    usage = answer.get("usage") or {}
    return {
        "id": answer["id"], "cause": answer["cause"], "exit_code": answer["exit_code"],
        "stdout_bytes": binascii.a2b_base64(answer.get("stdout") or ""),
        "stderr_bytes": binascii.a2b_base64(answer.get("stderr") or ""),
        "stdout_dropped": answer.get("stdout_dropped") or 0, "stderr_dropped": answer.get("stderr_dropped") or 0,
        "usage": Usage(*(usage.get(name) for name in ("wall_us", "user_us", "system_us", "max_rss_bytes"))),
        "denials": tuple(
            Denial(d["layer"], d["what"], d["count"], d["answer"], d.get("grant"), d.get("why_not"))
            for d in answer.get("denials") or ()
        ),
        "unrecorded": answer.get("unrecorded") or "",
        "set_aside": tuple(answer.get("set_aside") or ()), "unguarded": answer.get("unguarded") or "",
        "replaced": answer.get("replaced") or "",
    }


def result_of(answer: Mapping[str, Any]) -> Result:
    """From an answer with its output in base64."""
    return Result(**_common(answer), signal=answer.get("signal"))


def python_result_of(answer: Mapping[str, Any]) -> PythonResult:
    error = answer.get("error")
    return PythonResult(
        **_common(answer), result=answer.get("result"), displays=tuple(answer.get("displays") or ()),
        error=PythonError(error["name"], error["message"], error["traceback"]) if error else None,
        state_kept=bool(answer.get("state_kept", True)), lost=answer.get("lost") or "",
    )
