# SPDX-License-Identifier: Apache-2.0
"""All names of the package in one module."""

from __future__ import annotations

from . import exceptions
from ._kv import KVStore
from ._types import (
    BashResult,
    ExecutionPreset,
    HistoryEntry,
    JsonScalar,
    JsonValue,
    PythonResult,
    PythonRuntime,
)
from .exceptions import (
    CommandError,
    ExecutionLimitError,
    FileNotFoundError,
    LocalSandboxError,
    PermissionError,
    SubprocessCrashed,
    TimeoutError,
)
from .sandbox import LocalSandbox
from .tools import (
    PythonToolset,
    ToolCallable,
    ToolDefinition,
    ToolHandler,
    ToolsetInput,
    function_to_tool_definition,
    functions_to_toolset,
)

__all__ = [
    "BashResult", "CommandError", "ExecutionLimitError", "ExecutionPreset", "FileNotFoundError", "HistoryEntry",
    "JsonScalar", "JsonValue", "KVStore", "LocalSandbox", "LocalSandboxError", "PermissionError", "PythonResult",
    "PythonRuntime", "PythonToolset", "SubprocessCrashed", "TimeoutError", "ToolCallable", "ToolDefinition",
    "ToolHandler", "ToolsetInput", "exceptions", "function_to_tool_definition", "functions_to_toolset",
]
