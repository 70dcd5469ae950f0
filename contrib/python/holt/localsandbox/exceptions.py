# SPDX-License-Identifier: Apache-2.0
"""What a LocalSandbox raises."""

from __future__ import annotations

from typing import Any, Optional

__all__ = [
    "CommandError", "ExecutionLimitError", "FileNotFoundError", "LocalSandboxError", "PermissionError",
    "SubprocessCrashed", "TimeoutError",
]


class LocalSandboxError(Exception):
    """All of these."""


class CommandError(LocalSandboxError):
    """A command has ended with another exit code than 0."""

    def __init__(self, message: str, exit_code: int = 1, stdout: str = "", stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code, self.stdout, self.stderr = exit_code, stdout, stderr


class FileNotFoundError(CommandError):
    """There is no file path."""

    def __init__(
        self, message: str, exit_code: int = 1, stdout: str = "", stderr: str = "", path: Optional[str] = None
    ) -> None:
        super().__init__(message, exit_code, stdout, stderr)
        self.path = path


class PermissionError(CommandError):
    """The file path may not be used so."""

    def __init__(
        self, message: str, exit_code: int = 1, stdout: str = "", stderr: str = "", path: Optional[str] = None
    ) -> None:
        super().__init__(message, exit_code, stdout, stderr)
        self.path = path


class TimeoutError(LocalSandboxError):
    """It took longer than timeout_ms."""

    def __init__(self, message: str, timeout_ms: int = 0) -> None:
        super().__init__(message)
        self.timeout_ms = timeout_ms


class SubprocessCrashed(LocalSandboxError):
    """The sandbox, or its interpreter, has ended; signal is the one that did it, where it is known."""

    def __init__(self, message: str, signal: Optional[int] = None) -> None:
        super().__init__(message)
        self.signal = signal


class ExecutionLimitError(LocalSandboxError):
    """A preset's limit is passed: limit_type is "loop_iterations" or "command_count", limit_value its value.

    stdout and stderr are what was printed until then.
    """

    def __init__(
        self, message: str, limit_type: str, limit_value: int, stdout: str = "", stderr: str = ""
    ) -> None:
        super().__init__(message)
        self.limit_type, self.limit_value = limit_type, limit_value
        self.stdout, self.stderr = stdout, stderr

    def __reduce__(self) -> "tuple[Any, ...]":
        return type(self), (str(self), self.limit_type, self.limit_value, self.stdout, self.stderr)
