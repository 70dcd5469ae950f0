# SPDX-License-Identifier: Apache-2.0
"""Basic types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Dict, List, Optional, Union

JsonValue = Union[None, bool, int, float, str, List[Any], Dict[str, Any]]


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
    """Accepted and ignored: the interpreter is always the host's python3."""

    PYODIDE = "pyodide"
    MONTY = "monty"


@dataclass(frozen=True)
class BashResult:
    stdout: str
    stderr: str
    exit_code: int
    duration_ms: float


@dataclass(frozen=True)
class PythonResult:
    """error is the exception that ended the code, such as "NameError: name 'x' is not defined". stderr includes the
    traceback."""

    stdout: str
    stderr: str
    exit_code: int
    error: Optional[str] = None


@dataclass(frozen=True)
class HistoryEntry:
    """A call in the history. Times are in milliseconds since 1970; completed_at is None if the call did not complete."""

    id: int
    name: str
    started_at: int
    completed_at: Optional[int]
    parameters: Dict[str, Any]
    result: Optional[Dict[str, Any]]
