# SPDX-License-Identifier: Apache-2.0
"""Exceptions of a LocalSandbox."""

from __future__ import annotations

from typing import Any, Optional

__all__ = [
    "CommandError", "ExecutionLimitError", "FileNotFoundError", "LocalSandboxError", "PermissionError",
    "SubprocessCrashed", "TimeoutError",
]


class LocalSandboxError(Exception):
    """The base class of all exceptions here."""


class CommandError(LocalSandboxError):
    """A command failed: its exit code is not 0."""

    def __init__(self, message: str, exit_code: int = 1, stdout: str = "", stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code, self.stdout, self.stderr = exit_code, stdout, stderr


class FileNotFoundError(CommandError):
    """The file path does not exist."""

    def __init__(
        self, message: str, exit_code: int = 1, stdout: str = "", stderr: str = "", path: Optional[str] = None
    ) -> None:
        super().__init__(message, exit_code, stdout, stderr)
        self.path = path


class PermissionError(CommandError):
    """The access to the file path is not permitted."""

    def __init__(
        self, message: str, exit_code: int = 1, stdout: str = "", stderr: str = "", path: Optional[str] = None
    ) -> None:
        super().__init__(message, exit_code, stdout, stderr)
        self.path = path


class TimeoutError(LocalSandboxError):
    """A call took longer than timeout_ms milliseconds."""

    def __init__(self, message: str, timeout_ms: int = 0) -> None:
        super().__init__(message)
        self.timeout_ms = timeout_ms


class SubprocessCrashed(LocalSandboxError):
    """The sandbox or its interpreter has ended. signal is the signal that ended it, if known."""

    def __init__(self, message: str, signal: Optional[int] = None) -> None:
        super().__init__(message)
        self.signal = signal


class ExecutionLimitError(LocalSandboxError):
    """A limit of the preset was exceeded.

    limit_type      "loop_iterations" or "command_count"
    limit_value     the value of the limit
    stdout, stderr  the output before the end
    """

    def __init__(
        self, message: str, limit_type: str, limit_value: int, stdout: str = "", stderr: str = ""
    ) -> None:
        super().__init__(message)
        self.limit_type, self.limit_value = limit_type, limit_value
        self.stdout, self.stderr = stdout, stderr

    def __reduce__(self) -> "tuple[Any, ...]":
        return type(self), (str(self), self.limit_type, self.limit_value, self.stdout, self.stderr)
