# SPDX-License-Identifier: Apache-2.0
"""The interpreter of a sandbox."""

from __future__ import annotations

import os  # get_type_hints() looks it up for Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ._code import run_code
from ._commands import CommandsApi
from ._face import Path
from ._operations import Steps, operation
from ._times import Time, milliseconds_of
from .process import OnOutput, check_on_output
from .results import PythonResult, python_result_of


class InterpreterApi(CommandsApi):
    """The part of a sandbox that runs Python code. Sandbox documents it."""

    @operation
    def python(
        self, code: str, *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None, fresh: bool = False,
        timeout: Optional[Time] = None, output_max: Optional[int] = None, keep: Optional[str] = None,
        tools: Optional[Sequence[str]] = None, on_output: Optional[OnOutput] = None,
    ) -> "Steps[PythonResult]":
        """Runs code in the session's interpreter, which keeps variables and imports.

        fresh      runs the code in a new interpreter, which ends when the code ends
        on_output  is called with each Chunk of output, in this thread or in the event loop. If it raises an exception,
                   the code is interrupted. Only one run with on_output, fresh or not, executes at a time.
        timeout    limits the time from the start of the code; waiting for another run does not count

        Other parameters are as for bash().
        """
        check_on_output(self, on_output)
        params = {
            "code": code, "cwd": cwd, "env": env, "fresh": fresh or None, "timeout_ms": milliseconds_of(timeout),
            "output_max": output_max, "keep": keep, "tools": (yield from self._names(tools)),
        }
        interrupt = "python.restart" if fresh else "python.interrupt"
        return (yield from run_code(self, "python.run", params, interrupt, python_result_of, on_output))

    @operation
    def restart_python(self) -> "Steps[bool]":
        """Kills the interpreter, so that the next run starts a new one. Returns whether an interpreter existed."""
        return bool((yield self._ask("python.restart", {}))["killed"])

    @operation
    def interrupt_python(self) -> "Steps[bool]":
        """Raises KeyboardInterrupt in the running code. Returns whether any code ran."""
        return bool((yield self._ask("python.interrupt", {}, urgent=True))["interrupted"])

    @operation
    def variables(self) -> "Steps[List[Dict[str, Any]]]":
        """Lists the interpreter's variables, each as a dict of name, type, size and repr."""
        return list((yield self._ask("python.variables", {}))["variables"])

    @operation
    def save_variables(self, path: Optional[Path] = None) -> "Steps[Dict[str, Any]]":
        """Saves all variables that can be pickled in a file inside. Returns saved, left_out {name: reason} and path."""
        return dict((yield self._ask("python.save", {"path": path})))

    @operation
    def load_variables(self, path: Optional[Path] = None) -> "Steps[Dict[str, Any]]":
        """Restores saved variables. Returns loaded, failed {name: reason} and path."""
        return dict((yield self._ask("python.load", {"path": path})))
