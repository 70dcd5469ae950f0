# SPDX-License-Identifier: Apache-2.0
"""Results of commands and code."""

from __future__ import annotations

import base64
import binascii
import contextlib
from dataclasses import MISSING, dataclass, fields
from typing import Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, Tuple, Type, TypeVar

from ._hints import argument_for, argument_of, call_of
from .errors import CommandFailed, printable


@dataclass(frozen=True)
class Usage:
    """Used resources: times in microseconds, memory in bytes; None if unknown."""

    wall_us: Optional[int] = None
    user_us: Optional[int] = None
    system_us: Optional[int] = None
    max_rss_bytes: Optional[int] = None


@dataclass(frozen=True)
class Denial:
    """An access that the policy has refused.

    layer    "seccomp", "filesystem", "network" or "route"
    what     the system call, the path as the command named it, or the host and its port
    count    how often it was refused, or the number of paths that this entry stands for
    answer   the errno that the program got, such as "EROFS", or "NXDOMAIN". "" if the path is only a word of the
             command line, which may not be the reason
    path     the path, or None for a system call or a host
    reason   why it was refused
    grant    the option of holt create that would allow the access; None if there is none
    policy   the part of a policy that would allow the access, for Sandbox(policy=…); None if there is none
    why_not  why no option allows the access
    call     the request that allows a host while the session lives: a method of holt serve and its params. The hint
             shows the request as a call of Sandbox. None if there is none
    """

    layer: str
    what: str
    count: int
    answer: str
    path: Optional[str] = None
    reason: str = ""
    grant: Optional[str] = None
    policy: Optional[Mapping[str, Any]] = None
    why_not: Optional[str] = None
    call: Optional[Mapping[str, Any]] = None

    @property
    def hint(self) -> str:
        """Says which call or argument of Sandbox allows the access, or why none does."""
        if self.call:
            return f"{call_of(self.call)} allows it"
        if not self.policy:
            return self.why_not or "no argument allows it"
        return f"{argument_of(self.policy)} {'allows it' if self.answer else 'may help'}"


@dataclass(frozen=True)
class Unreached:
    """A host that is allowed but was not reached.

    what    the host, and the port if it is known
    count   how often
    answer  the errno that the program got, such as "ECONNREFUSED", or "NXDOMAIN"
    reason  more about it, or None
    """

    what: str
    count: int
    answer: str
    reason: Optional[str] = None


@dataclass(frozen=True)
class LimitHit:
    """A limit of the sandbox that a command or code has reached.

    limit    "memory", "processes", "open_files", "disk" or "file_size"
    certain  False if only the command's messages say so
    reason   the event, in words
    value    the limit, in the unit of the field
    option   the option of holt create that raises it; None if none does
    field    the field of a policy that raises it, such as "limits.pids"
    why_not  why no option raises it; None if one does, or if reason already says so
    """

    limit: str
    certain: bool
    reason: str
    value: Optional[int] = None
    option: Optional[str] = None
    field: Optional[str] = None
    why_not: Optional[str] = None

    @property
    def hint(self) -> str:
        """Says which argument of Sandbox raises the limit, or why none does."""
        return f"{argument_for(self.field)} raises it" if self.field else self.why_not or "no argument raises it"


R = TypeVar("R", bound="Outcome")

_HINTS = 5  # denials in a hint
_PREVIEW = 60  # characters of a text in a repr


def _preview(value: Any) -> str:
    if isinstance(value, PythonError):
        value = f"{value.name}: {value.message}"
    if not isinstance(value, str) or len(value) <= _PREVIEW:
        return repr(value)
    return f"{value[:_PREVIEW]!r}... ({len(value)} characters)"


@dataclass(frozen=True, repr=False)
class Outcome:
    """The end of a command or of code.

    cause       "exited", "signaled", "timeout", "killed", "oom", "output_limit" or "lost"
    exit_code   the command's own exit code; 128 + n after signal n, 124 after a timeout
    timeout_by_project  True if the time limit came from the project's .holt.json; an argument can only lower it
    *_dropped   bytes of output beyond the limit
    unreached   allowed hosts that were not reached while the command ran
    denials_omitted  refused or failed connections that are neither in denials nor in unreached
    network_lost  True if the process that carries the session's connections has ended. stop() starts it again at the
                  next call.
    routes_lost  True if the process that carries requests of routes has ended. stop() starts it again at the next call.
    network_missed  True if the messages of a failed command say that it did not reach a host, and no entry of denials
                  names the host. Always False with the network of the host (mode "host").
    limits_hit  limits of the sandbox that the command reached, if it failed
    unrecorded  why the call is not in the session's history yet, for example because the disk is full; "" if it is
    set_aside   new names of files that holt has set aside at protected paths: relative to the workspace, or absolute
                host paths in another mount
    still_aside  files of the host that were set aside earlier and still have their new names
    unguarded   why a file at a protected path could not be set aside; "" if there is no such file
    replaced    path of the protected or hidden file that the host replaced, if holt stopped the sandbox because of it;
                "" otherwise
    stopped_for  path of such a file, if holt stopped the session between the previous call and this one
    """

    id: str
    cause: str
    exit_code: int
    timeout_by_project: bool = False
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""
    stdout_dropped: int = 0
    stderr_dropped: int = 0
    usage: Usage = Usage()
    denials: Tuple[Denial, ...] = ()
    unreached: Tuple[Unreached, ...] = ()
    denials_omitted: int = 0
    network_lost: bool = False
    routes_lost: bool = False
    network_missed: bool = False
    limits_hit: Tuple[LimitHit, ...] = ()
    unrecorded: str = ""
    set_aside: Tuple[str, ...] = ()
    still_aside: Tuple[str, ...] = ()
    unguarded: str = ""
    replaced: str = ""
    stopped_for: str = ""

    @property
    def stdout(self) -> str:
        """The output as UTF-8. Invalid bytes become U+FFFD."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        return self.cause == "exited" and self.exit_code == 0

    def check(self: R) -> R:
        """Returns this result if ok is true. Otherwise raises CommandFailed."""
        if not self.ok:
            raise CommandFailed(self)
        return self

    @property
    def hint(self) -> Optional[str]:
        """Refusals, limits that were reached, and the arguments of Sandbox that help. None after a success, or if there
        is nothing to say."""
        if self.ok:
            return None
        lines = []
        if self.cause == "timeout" and self.timeout_by_project:
            lines.append("the project's .holt.json limits the time of a command; change limits.timeout there")
        seen = [f"refused {d.path or d.what}: {d.reason}; {d.hint}" for d in self.denials[:_HINTS]]
        seen += [f"could not reach {u.what}: {u.reason or u.answer}" for u in self.unreached[:_HINTS]]
        lines += [printable(each, lines=False) for each in seen]
        if self.network_missed:
            lines.append("the sandbox reaches only hosts that Sandbox(net=[...]) allows, for example net=[\"@python\"]")
        if self.network_lost:
            lines.append("the session has lost its network; stop() starts it again at the next call")
        if self.routes_lost:
            lines.append("the session has lost its routes; stop() starts them again at the next call")
        lines += [f"{'' if hit.certain else 'probably, '}{hit.reason}; {hit.hint}" for hit in self.limits_hit]
        return "\n".join(lines) or None

    def __repr__(self) -> str:
        """Shortens texts, and omits most fields that have their default value."""
        shown = []
        for each in fields(self):
            name = each.name.replace("_bytes", "")
            value = getattr(self, name)
            if name == "usage":  # too long for one line
                continue
            if name == "displays":
                value = tuple(next(iter(bundle), "") for bundle in value)  # only the mime type of each
            if name in ("cause", "exit_code", "stdout") or value != ("" if name == "stderr" else each.default):
                shown.append(f"{name}={_preview(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __str__(self) -> str:
        how = f"exit code {self.exit_code}"
        if self.cause != "exited":
            after = f" after {self.usage.wall_us / 1e6:.3g} s" if self.cause == "timeout" and self.usage.wall_us else ""
            how = f"{self.cause}{after}, {how}"
        said = printable(self.stderr.strip()[-1000:].replace("\r\n", "\n"))
        return f"{how}: {said}" if said else how


@dataclass(frozen=True, repr=False)
class Result(Outcome):
    """The result of a command. signal is the number of the signal that ended it, or None."""

    signal: Optional[int] = None


@dataclass(frozen=True)
class PythonError:
    """An exception in the interpreter. name is its class, such as "ValueError"."""

    name: str
    message: str
    traceback: str


@dataclass(frozen=True, repr=False)
class PythonResult(Outcome):
    """The result of code in the interpreter.

    result           repr() of the last expression, or None
    displays         displayed objects, each a dict from mime type to text; binary types such as images are in base64
    error            the exception that ended the code, or None
    state_kept       False if the interpreter has ended, so that the next run starts without variables
    lost             why the interpreter ended by itself before this run ("signaled", "oom", …); "" if it did not
    new_interpreter  True if the code started without the variables of earlier runs. Their interpreter has ended: by
                     itself, at a timeout, by restart_python(), or because the session stopped.
    """

    result: Optional[str] = None
    displays: Tuple[Mapping[str, str], ...] = ()
    error: Optional[PythonError] = None
    state_kept: bool = True
    lost: str = ""
    new_interpreter: bool = False

    def images(self, mime: str = "image/png") -> List[bytes]:
        """Returns the bytes of displayed objects of a mime type, such as plots. Invalid base64 is left out."""
        found = []
        for each in self.displays:
            with contextlib.suppress(ValueError):
                if mime in each:
                    found.append(base64.b64decode(each[mime]))
        return found

    def __str__(self) -> str:
        if self.error and self.cause != "timeout":
            return printable(f"{self.error.name}: {self.error.message}")
        return super().__str__()


@dataclass(frozen=True, repr=False)
class ShellResult(Outcome):
    """The result of a call of the lasting shell.

    state_kept  False if the shell has ended, so that the next call starts a new one
    lost        why the shell ended by itself before this call ("signaled", "oom", …); "" if it did not
    new_shell   True if the call started without the directory, variables and functions of earlier calls, because their
                shell has ended
    """

    state_kept: bool = True
    lost: str = ""
    new_shell: bool = False


# --- from replies ---


def _same(value: Any) -> Any:
    return value


def _each(kind: Type[Any]) -> Callable[[Iterable[Mapping[str, Any]]], Tuple[Any, ...]]:
    """Returns a function that makes a tuple of `kind` from objects. It leaves out null, and members of later versions."""
    names = tuple(each.name for each in fields(kind))

    def convert(values: Iterable[Mapping[str, Any]]) -> Tuple[Any, ...]:
        return tuple([kind(**{name: each[name] for name in names if each.get(name) is not None}) for each in values])

    return convert


def _usage(usage: Mapping[str, Any]) -> Usage:
    return Usage(usage.get("wall_us"), usage.get("user_us"), usage.get("system_us"), usage.get("max_rss_bytes"))


def _error(error: Mapping[str, Any]) -> PythonError:
    return PythonError(error["name"], error["message"], error["traceback"])


_RENAMED = {"stdout": "stdout_bytes", "stderr": "stderr_bytes"}

# How the members of a reply become fields. The others stay as they are.
_CONVERTERS: Dict[str, Callable[[Any], Any]] = {
    "stdout": binascii.a2b_base64, "stderr": binascii.a2b_base64, "usage": _usage, "error": _error,
    "denials": _each(Denial), "unreached": _each(Unreached), "limits_hit": _each(LimitHit),
    "set_aside": tuple, "still_aside": tuple, "displays": tuple,
}


class _Maker(Generic[R]):
    """Makes results of one kind from replies that have the output in base64.

    Each call of the SDK makes one, so this is fast: the __init__ of a frozen dataclass takes five times as long. A member
    that is missing or null leaves the field's default.
    """

    def __init__(self, kind: Type[R]) -> None:
        self._kind = kind
        self._defaults = {each.name: None if each.default is MISSING else each.default for each in fields(kind)}
        names = [each.name for each in fields(kind)]
        members = {name: name for name in names if name not in _RENAMED.values()}
        members.update({name: to for name, to in _RENAMED.items() if to in names})
        self._members = {name: (to, _CONVERTERS.get(name, _same)) for name, to in members.items()}

    def __call__(self, answer: Mapping[str, Any]) -> R:
        made = object.__new__(self._kind)
        values = made.__dict__
        values.update(self._defaults)
        values["id"], values["cause"], values["exit_code"] = answer["id"], answer["cause"], answer["exit_code"]
        members = self._members
        for name, value in answer.items():
            if value is not None and name in members:
                to, convert = members[name]
                values[to] = convert(value)
        return made


result_of = _Maker(Result)
python_result_of = _Maker(PythonResult)
shell_result_of = _Maker(ShellResult)
