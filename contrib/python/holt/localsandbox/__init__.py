# SPDX-License-Identifier: Apache-2.0
"""Runs programs that were written for the package localsandbox. Change only the import line:

    from holt.localsandbox import LocalSandbox
"""

from . import core, exceptions
from .core import BashResult, ExecutionPreset, HistoryEntry, JsonValue, PythonResult, PythonRuntime
from .exceptions import (
    CommandError,
    ExecutionLimitError,
    FileNotFoundError,
    LocalSandboxError,
    PermissionError,
    SubprocessCrashed,
    TimeoutError,
)
from .sandbox import KeyValueStore, LocalSandbox
from .tools import PythonToolset, ToolDefinition, function_to_tool_definition, functions_to_toolset

__all__ = [
    "BashResult", "CommandError", "ExecutionLimitError", "ExecutionPreset", "FileNotFoundError", "HistoryEntry",
    "JsonValue", "KeyValueStore", "LocalSandbox", "LocalSandboxError", "PermissionError", "PythonResult",
    "PythonRuntime", "PythonToolset", "SubprocessCrashed", "TimeoutError", "ToolDefinition", "core", "exceptions",
    "function_to_tool_definition", "functions_to_toolset",
]
