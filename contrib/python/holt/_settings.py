# SPDX-License-Identifier: Apache-2.0
"""Settings of a new session: the parameters of session.create."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._times import Time, seconds_of
from ._venv import Venv, shown
from .errors import UsageError

Policy = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Size = Union[str, int]
"""Bytes, or text with a unit, such as "2GiB"."""


def _text_of(value: Union[str, int, float], unit: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, (int, float)) or math.isnan(value):
        raise UsageError(f"a time or size must be a number or text, not {value!r}", hint='Write it as 90, or "2GiB".')
    if math.isinf(value):
        return "none"
    return f"{round(value * 1000)}ms" if unit == "ms" else str(int(value))


@dataclass(frozen=True)
class Settings:
    """Settings of a new session; see Sandbox."""

    policy: Optional[Policy] = None
    workspace: "Union[str, os.PathLike[str], None]" = None
    timeout: Optional[Time] = None
    memory: Optional[Size] = None
    idle: Optional[Time] = None
    tier: Optional[str] = None
    env: Optional[Mapping[str, str]] = None
    read_only: Sequence[str] = ()
    read_write: Sequence[str] = ()
    allow_degraded: Sequence[str] = ()
    venv: Venv = None
    net: Sequence[str] = ()
    ask: bool = False
    routes: Sequence[Union[str, Mapping[str, Any]]] = ()
    helpers: "Sequence[Union[str, os.PathLike[str]]]" = ()

    def __post_init__(self) -> None:
        if not isinstance(self.policy, (str, os.PathLike, Mapping, type(None))):
            raise UsageError(
                f"policy must be a preset's name, a file's path or a dict, not {self.policy!r}",
                hint='Write policy="strict", or policy={"limits": {"pids": 64}}.',
            )
        if not isinstance(self.workspace, (str, os.PathLike, type(None))) or self.workspace == "":  # "" would be the cwd
            raise UsageError(f"workspace must be the path of a directory, not {self.workspace!r}")
        for time in (self.timeout, self.idle):
            if isinstance(time, str):
                seconds_of(time)  # for its error, which names the units
        if not isinstance(self.env, (Mapping, type(None))):
            raise UsageError(f"env must be a dict, not {self.env!r}", hint='Write env={"NAME": "value"}.')
        for name, value in (self.env or {}).items():
            if not isinstance(name, str) or "=" in name:
                raise UsageError(f'a name in env must be text without "=", not {name!r}')
            if value is None:
                raise UsageError(f"env[{name!r}] is None", hint='Leave the variable out, or write "".')

    def params(self) -> Dict[str, Any]:
        """Returns the parameters of session.create that describe the session."""
        document: Dict[str, Any] = {"holt": 1, **self.policy} if isinstance(self.policy, Mapping) else {"holt": 1}
        params: Dict[str, Any] = {"cwd": os.getcwd()}
        if isinstance(self.policy, (str, os.PathLike)):
            params["policy_name"] = _absolute_file(os.fspath(self.policy))
        for name, limit in (
            ("timeout", self.timeout is not None and _text_of(self.timeout, "ms")),
            ("memory", self.memory is not None and _text_of(self.memory, "")),
        ):
            if limit is not False:
                _merge(document, "limits", {name: limit})
        env, read_only, venv = dict(self.env or {}), list(self.read_only), shown(self.venv)
        if venv:
            read_only.append(venv[0])
            env["PYTHONPATH"] = ":".join(filter(None, (env.get("PYTHONPATH"), venv[1])))
        for name, paths in (("read_only", read_only), ("read_write", self.read_write)):
            if paths:
                _merge(document, "filesystem", {name: [os.fspath(path) for path in paths]})
        if self.net:
            _merge(document, "network", {"allow": list(self.net)})
        if self.routes:
            _merge(document, "bridge", {"routes": list(self.routes)})
        if self.helpers:
            _merge(document, "bridge", {"helpers": [os.fspath(path) for path in self.helpers]})
        if self.ask:
            _merge(document, "network", {"ask": True})
        if document != {"holt": 1} or isinstance(self.policy, Mapping):
            params["policy"] = document
        if self.workspace is not None:
            params["workspace"] = os.path.abspath(os.fspath(self.workspace))
        if env:
            params["env"] = env
        if self.tier is not None:
            params["tier"] = self.tier
        if self.allow_degraded:
            params["allow_degraded"] = list(self.allow_degraded)
        if self.idle is not None:
            params["idle"] = _text_of(self.idle, "ms")
        return params

    def writable(self) -> List[str]:
        """Returns the directories of the host that commands can write, except for those that only a preset or a file
        names."""
        given = self.policy.get("filesystem") if isinstance(self.policy, Mapping) else None
        filesystem = given if isinstance(given, Mapping) else {}
        workspace, mounts = filesystem.get("workspace"), filesystem.get("read_write")
        source = workspace.get("source") if isinstance(workspace, Mapping) else None
        paths = [str(path) for path in (*self.read_write, *(mounts if isinstance(mounts, (list, tuple)) else ()))]
        paths += [path.rpartition(":")[0] for path in paths]  # PATH:TARGET
        return [path for path in (*(os.fspath(each) for each in (self.workspace, source) if each), *paths) if path]


def _absolute_file(name: str) -> str:
    """Returns the name of a preset unchanged, and the path of a policy file as an absolute path."""
    return os.path.abspath(name) if "/" in name or name.endswith(".json") else name


def _merge(document: Dict[str, Any], group: str, members: Mapping[str, Any]) -> None:
    """Adds members to a group of the policy. A list is appended to an existing list; other values are replaced."""
    there = document.get(group, {})
    if not isinstance(there, Mapping):
        return  # holt reports the error
    merged = dict(there)
    for name, value in members.items():
        before = merged.get(name)
        merged[name] = [*before, *value] if isinstance(value, list) and isinstance(before, list) else value
    document[group] = merged
