# SPDX-License-Identifier: Apache-2.0
"""Presets, runtimes and results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Dict, List, Optional, Union

JsonScalar = Union[None, bool, int, float, str]
JsonValue = Union[JsonScalar, List[Any], Dict[str, Any]]


class ExecutionPreset(str, Enum):
    """The limits of one bash()."""

    STRICT = "strict"
    NORMAL = "normal"
    PERMISSIVE = "permissive"

    @property
    def loop_iterations(self) -> int:
        """Maximum iterations of one loop."""
        return {"strict": 100, "normal": 1000, "permissive": 10000}[self.value]

    @property
    def command_count(self) -> int:
        return 5 * self.loop_iterations


class PythonRuntime(str, Enum):
    """The way in which code calls tools. With both values, the interpreter is the host's python3.

    PYODIDE  tools are called by host_tools.call()
    MONTY    tools are functions of the code
    """

    PYODIDE = "pyodide"
    MONTY = "monty"


@dataclass
class BashResult:
    stdout: str
    stderr: str
    exit_code: int
    duration_ms: float


@dataclass
class PythonResult:
    """error is the exception that ended the code, such as "NameError: name 'x' is not defined". stderr includes the
    traceback."""

    stdout: str
    stderr: str
    exit_code: int
    error: Optional[str] = None


@dataclass
class HistoryEntry:
    """A call in the history. Times are in milliseconds since 1970; completed_at is None if the call did not complete."""

    id: int
    name: str
    started_at: int
    completed_at: Optional[int]
    parameters: Dict[str, Any]
    result: Optional[Dict[str, Any]]
