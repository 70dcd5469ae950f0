# SPDX-License-Identifier: Apache-2.0
"""Types that everything else stands on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Dict, List, Optional, Union

JsonValue = Union[None, bool, int, float, str, List[Any], Dict[str, Any]]


class ExecutionPreset(str, Enum):
    """What one bash() may do."""

    STRICT = "strict"
    NORMAL = "normal"
    PERMISSIVE = "permissive"

    @property
    def loop_iterations(self) -> int:
        """Of one loop."""
        return {"strict": 100, "normal": 1000, "permissive": 10000}[self.value]

    @property
    def command_count(self) -> int:
        return 5 * self.loop_iterations


class PythonRuntime(str, Enum):
    """Taken, and makes no difference: the interpreter is the host's python3."""

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
    """error says what has ended the code, "NameError: name 'x' is not defined"; stderr has the traceback as well."""

    stdout: str
    stderr: str
    exit_code: int
    error: Optional[str] = None


@dataclass(frozen=True)
class HistoryEntry:
    """Times in ms since 1970; completed_at None where it was not completed."""

    id: int
    name: str
    started_at: int
    completed_at: Optional[int]
    parameters: Dict[str, Any]
    result: Optional[Dict[str, Any]]
