# SPDX-License-Identifier: Apache-2.0
"""The lasting shell of a session."""

from __future__ import annotations

import os  # get_type_hints() looks it up for Path
import secrets
from typing import Mapping, Optional

from ._face import Part, Path
from ._operations import AsyncFace, Steps, SyncFace, operation
from ._times import Time, milliseconds_of
from .results import ShellResult, shell_result_of


class ShellApi(Part):
    """A bash that lasts: each call finds the directory, variables and functions of earlier ones."""

    @operation
    def run(
        self, commands: str, *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None, output_max: Optional[int] = None, keep: Optional[str] = None,
    ) -> "Steps[ShellResult]":
        """Runs commands in the session's shell. Calls run one after the other.

        cwd      changes to this directory first, relative to the workspace
        env      exports these variables first, also for later calls
        timeout  interrupts the commands after this time, and then kills the shell

        output_max and keep are as for Sandbox.bash(). If this call is cancelled, the commands are interrupted.
        """
        name = secrets.token_hex(8)
        asked = self._ask("shell.run", {
            "code": commands, "cwd": cwd, "env": env, "timeout_ms": milliseconds_of(timeout), "output_max": output_max,
            "keep": keep, "base64": True, "run": name,
        })
        try:
            return shell_result_of((yield asked))
        except BaseException:
            if not asked.done():
                self._ask_and_forget("shell.interrupt", run=name)
            raise

    @operation
    def interrupt(self) -> "Steps[bool]":
        """Interrupts the running commands, as Ctrl-C does. Returns whether any ran."""
        return bool((yield self._ask("shell.interrupt", {}, urgent=True))["interrupted"])

    @operation
    def restart(self) -> "Steps[bool]":
        """Kills the shell with everything that it started. The next call starts a new one. Returns whether it existed."""
        return bool((yield self._ask("shell.restart", {}))["killed"])


class Shell(ShellApi, SyncFace):
    """Sandbox.shell"""


class AsyncShell(ShellApi, AsyncFace):
    """AsyncSandbox.shell"""
