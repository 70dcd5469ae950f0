# SPDX-License-Identifier: Apache-2.0
"""Which exception a command's stderr stands for."""

from __future__ import annotations

import re
from typing import Optional

from ..errors import ClosedError, HoltError
from .exceptions import CommandError, FileNotFoundError, LocalSandboxError, PermissionError, SubprocessCrashed

_QUOTED = r"['\"‘“](?P<path>[^'\"’”]+)['\"’”]"
_PLAIN = r"(?:^|: )(?P<path>[^:\n]+)"

_MISSING = (
    re.compile(rf"{_QUOTED}: No such file or directory", re.M),
    re.compile(rf"cannot access {_QUOTED}", re.M),
    re.compile(rf"{_PLAIN}: No such file or directory", re.M),
    re.compile(r"(?:^|: )(?P<path>[^:\n]+): not found$", re.M),
)

_REFUSED = (
    re.compile(rf"{_QUOTED}: (?:Permission denied|Operation not permitted|Read-only file system)", re.M),
    re.compile(rf"{_PLAIN}: (?:Permission denied|Operation not permitted|Read-only file system)", re.M),
)


def _path_in(patterns: "tuple[re.Pattern[str], ...]", text: str) -> Optional[str]:
    """What the first message names."""
    found = [match for match in (each.search(text) for each in patterns) if match]
    return min(found, key=lambda match: match.end())["path"].strip() if found else None


def command_error(exit_code: int, stdout: str, stderr: str) -> CommandError:
    """For a command that has failed."""
    lines = stderr.strip().splitlines()
    message = lines[-1] if lines else f"the command ended with {exit_code}"
    path = _path_in(_MISSING, stderr)
    if path is not None:
        return FileNotFoundError(message, exit_code, stdout, stderr, path)
    path = _path_in(_REFUSED, stderr)
    if path is not None or "permission denied" in stderr.lower():
        return PermissionError(message, exit_code, stdout, stderr, path)
    return CommandError(message, exit_code, stdout, stderr)


def file_error(error: HoltError, path: str, missing: bool) -> LocalSandboxError:
    """For a call about a file. missing: what fails for whatever reason is a file that is not there as it should."""
    if isinstance(error, ClosedError):
        return SubprocessCrashed(str(error))
    text = f"{error.message}: {error.errno}" if error.errno else error.message
    if error.errno in ("EACCES", "EPERM", "EROFS"):
        return PermissionError(f"{path}: {text}", 1, "", text, path)
    if missing or error.errno == "ENOENT":
        return FileNotFoundError(f"{path}: {text}", 1, "", text, path)
    return CommandError(f"{path}: {text}", 1, "", text)
