# SPDX-License-Identifier: Apache-2.0
"""Chooses an exception from the stderr of a failed command."""

from __future__ import annotations

import re
from typing import Optional

from ..errors import ClosedError, HoltError, LimitError
from .exceptions import CommandError, FileNotFoundError, LocalSandboxError, PermissionError, SubprocessCrashed

_MISSING = "No such file or directory|No such file$"
_REFUSED = "Permission denied|Operation not permitted|Read-only file system"

_NAMED = r"""(?:(?P<quote>['"])(?P<quoted>(?:(?!(?P=quote)).)+)(?P=quote)|[`‘“](?P<curly>[^'’”\n]+)['’”])"""


def _forms(reason: str) -> "tuple[re.Pattern[str], ...]":
    """Returns patterns of messages in which programs name a file with the reason."""
    why = rf"(?:\[Errno \d+\] )?(?:{reason})"
    return tuple(re.compile(each, re.M) for each in (
        # A traceback of Python's
        rf"^[A-Za-z]+Error: \[Errno \d+\] (?:{reason}): {_NAMED}",
        # rm: cannot remove 'X': why     tail: cannot open 'X' for reading: why     python3: can't open file 'X': [Errno 2] why
        rf"{_NAMED}(?: for [a-z]+)?: {why}",
        # awk: cannot open X (why)
        rf"cannot open {_NAMED} \((?:{reason})\)", rf"cannot open (?P<path>[^:\n]+) \((?:{reason})\)",
        # tar: X: Cannot open: why     sed: can't read X: why     sh: 0: cannot open X: why     cat: X: why
        rf"(?:^|: )(?:[Cc]annot|[Cc]an't|[Cc]ould not|[Ff]ailed to) (?:open|read)(?: file)? (?P<path>[^:\n]+): {why}",
        rf"(?:^|: )(?P<path>[^:\n]+): Cannot open: {why}",
        rf"(?:^|: )(?P<path>[^:\n]+): {why}",
    ))


_MISSING_FORMS = (
    re.compile(rf"cannot access {_NAMED}", re.M), re.compile(r"(?:^|: )(?P<path>[^:\n]+): not found$", re.M),
    *_forms(_MISSING),
)
_REFUSED_FORMS = _forms(_REFUSED)


def _path_in(forms: "tuple[re.Pattern[str], ...]", text: str) -> Optional[str]:
    """Returns the path in the first message that matches. If several forms match it, the first form is more precise."""
    found = [match for match in (each.search(text) for each in forms) if match]
    if not found:
        return None
    first = min(found, key=lambda match: text.count("\n", 0, match.end())).groupdict()
    return str(first.get("quoted") or first.get("curly") or first["path"]).strip()


def command_error(exit_code: int, stdout: str, stderr: str) -> CommandError:
    """Returns the exception for a failed command."""
    path = _path_in(_MISSING_FORMS, stderr)
    if path is not None:
        return FileNotFoundError(f"File not found: {path}", exit_code, stdout, stderr, path)
    path = _path_in(_REFUSED_FORMS, stderr)
    if path is not None or "permission denied" in stderr.lower():
        return PermissionError(f"Permission denied: {path}" if path else "Permission denied", exit_code, stdout, stderr, path)
    lines = stderr.strip().splitlines()
    reason = f": {lines[-1]}" if lines else ""
    return CommandError(f"Command failed with exit code {exit_code}{reason}", exit_code, stdout, stderr)


def file_error(error: HoltError, path: str, missing: bool) -> LocalSandboxError:
    """Returns the exception for a failed call about a file.

    missing  other errors become FileNotFoundError, too
    """
    if isinstance(error, ClosedError):
        return SubprocessCrashed(str(error))
    text = f"{error.message}: {error.errno}" if error.errno else error.message
    if error.errno in ("EACCES", "EPERM", "EROFS"):
        return PermissionError(f"Permission denied: {path}", 1, "", text, path)
    if isinstance(error, LimitError):
        return CommandError(f"{path}: {error.message}", 1, "", text)
    if missing or error.errno == "ENOENT":
        return FileNotFoundError(f"File not found: {path}", 1, "", text, path)
    return CommandError(f"{path}: {text}", 1, "", text)
