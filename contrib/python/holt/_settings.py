# SPDX-License-Identifier: Apache-2.0
"""What a session is made with, as holt create has it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Union

from .errors import HoltError, UsageError

Policy = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Time = Union[str, int, float]
"""Seconds, or text as holt has it: "10m"."""
Size = Union[str, int]
"""Bytes, or text as holt has it: "2GiB"."""


def _text_of(value: Union[str, int, float], unit: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, (int, float)) or math.isnan(value):
        raise UsageError(f"a time or a size is a number or text, not {value!r}", hint='Write it as 90, or "2GiB".')
    if math.isinf(value):
        return "none"
    return f"{round(value * 1000)}ms" if unit == "ms" else str(int(value))


@contextlib.contextmanager
def _named(name: str, file: str) -> Iterator[None]:
    """Errors of a file that nobody has seen are of what it was made from."""
    try:
        yield
    except HoltError as error:
        error.reword(error.message.replace(file, name))
        raise


@dataclass(frozen=True)
class Settings:
    """What a session is made with; see Sandbox."""

    policy: Optional[Policy] = None
    workspace: "Union[str, os.PathLike[str], None]" = None
    timeout: Optional[Time] = None
    memory: Optional[Size] = None
    idle: Optional[Time] = None
    tier: Optional[str] = None
    env: Optional[Mapping[str, str]] = None
    read_only: Sequence[str] = ()
    read_write: Sequence[str] = ()
    options: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.policy, (str, os.PathLike, Mapping, type(None))):
            raise UsageError(
                f"policy is a preset's name, a file's path or a dict, not {self.policy!r}",
                hint='Write policy="strict", or policy={"limits": {"pids": 64}}.',
            )
        if not isinstance(self.workspace, (str, os.PathLike, type(None))) or self.workspace == "":  # not where we are
            raise UsageError(f"workspace is a directory's path, not {self.workspace!r}")
        if not isinstance(self.env, (Mapping, type(None))):
            raise UsageError(f"env is a dict, not {self.env!r}", hint='Write env={"NAME": "value"}.')
        for name, value in (self.env or {}).items():
            if not isinstance(name, str) or "=" in name:
                raise UsageError(f'a name in env is text without "=", not {name!r}')
            if value is None:
                raise UsageError(f"env[{name!r}] is None", hint='Leave the variable out, or write "".')

    @contextlib.contextmanager
    def arguments(self) -> "Iterator[List[str]]":
        """As holt create has them. A policy that is a dict is in a file meanwhile."""
        argv: List[str] = []
        with contextlib.ExitStack() as stack:
            if isinstance(self.policy, Mapping):
                file = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".json"))
                stack.enter_context(_named("policy", file.name))
                json.dump({"holt": 1, **self.policy}, file)
                file.flush()
                argv += ["--policy", file.name]
            elif self.policy is not None:
                argv += ["--policy", os.fspath(self.policy)]
            if self.workspace is not None:
                argv += ["--workspace", os.path.abspath(os.fspath(self.workspace))]
            for name, value, unit in (
                ("--timeout", self.timeout, "ms"), ("--memory", self.memory, ""), ("--idle", self.idle, "ms"),
                ("--tier", self.tier, ""),
            ):
                if value is not None:
                    argv += [name, _text_of(value, unit)]
            for name, text in (self.env or {}).items():
                argv += ["--env", f"{name}={text}"]
            for flag, paths in (("--ro", self.read_only), ("--rw", self.read_write)):
                for path in paths:
                    argv += [flag, os.fspath(path)]
            yield [*argv, *self.options]
