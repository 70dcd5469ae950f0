# SPDX-License-Identifier: Apache-2.0
"""LocalSandbox.execute_python().

Theory of operation. The interpreter is the session's. A change of tools or packages restarts it. With the runtime
Monty, a file inside tells each new interpreter which functions to make (monty.py); names.py reads it.
"""

from __future__ import annotations

import asyncio
import json
import keyword
import posixpath
import uuid
from concurrent.futures import Future
from typing import Any, Dict, List, Optional, Sequence, Union

from .._face import list_of
from .._operations import Steps, drive, drive_async
from ..errors import HoltError, UsageError
from ..files import FilesApi
from ..results import PythonResult as Ran
from ..sandbox import SandboxApi
from ..tools import Tools
from ._bash import OUTPUT_MAX, stderr_of
from ._files import CODE, MONTY
from ._kv import check_text
from ._life import Life, failure, now, ours, pending
from ._types import PythonResult, PythonRuntime
from .exceptions import SubprocessCrashed, TimeoutError
from .hint import HINTS
from .tools import PythonToolset, ToolsetInput, preview, toolset_of

PYTHON_TIMEOUT_MS = 60000
CODE_MAX = 900_000
"""Maximum bytes of code in a message; holt's limit of 1 MiB is for the whole message."""


def _check_monty(cwd: Optional[str], packages: Sequence[str], tools: PythonToolset) -> None:
    """Raises ValueError for arguments that Monty does not have."""
    if packages:
        raise ValueError("preload_packages is not supported by the runtime 'monty', which has no packages")
    if cwd is not None and posixpath.normpath(posixpath.join("/data", cwd)) != "/data":
        raise ValueError(f"cwd must be /data with the runtime 'monty', not {cwd!r}")
    for each in tools.definitions:
        if not each.name.isidentifier() or keyword.iskeyword(each.name) or each.name == "tool_search":
            raise ValueError(f"the runtime 'monty' cannot have a function of the name {each.name!r}; rename the tool")


class PythonCalls(Life):
    """The part of a LocalSandbox that runs Python."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._interpreter: Optional[str] = None  # tools and packages of the current interpreter
        self._interpreter_id = ""
        self._turn: Optional["Future[None]"] = None  # the end of the last queued run of code
        self._registered: List[str] = []

    def _python(
        self, code: str, cwd: Optional[str], preload_packages: Optional[Sequence[str]],
        toolset: Optional[ToolsetInput], loop: Optional[asyncio.AbstractEventLoop],
    ) -> "Steps[PythonResult]":
        """Runs code. Only one run executes at a time, because each may change the tools or replace the interpreter."""
        check_text("code", code)
        tools = toolset_of(toolset)
        try:
            packages = sorted(list_of(preload_packages or (), "preload_packages"))
        except UsageError as error:
            raise TypeError(str(error)) from error
        if self.python_runtime is PythonRuntime.MONTY:
            _check_monty(cwd, packages, tools)
            cwd = "/data"
        yield from self._ready()
        mine = pending()
        with self._lock:
            before, self._turn = self._turn, mine
        try:
            if before:
                yield before
            return (yield from ours(self._python_alone(code, cwd or self.cwd, packages, tools, loop)))
        finally:
            if before and not before.done():  # this caller has given up, and the run before it still executes
                before.add_done_callback(lambda _: mine.set_result(None))
            else:
                mine.set_result(None)

    def _python_alone(
        self, code: str, cwd: str, packages: Sequence[str], tools: PythonToolset,
        loop: Optional[asyncio.AbstractEventLoop],
    ) -> "Steps[PythonResult]":
        yield from self._reuse_or_restart(tools, packages)
        yield from self._register(tools, loop)
        started, before = now(), (yield from self._last_row())
        parameters = {
            "codeLength": len(code), "cwd": cwd, "preloadPackages": packages, "sessionId": self._interpreter_id,
            "toolCallCount": 0,
        }
        try:
            place = yield from self._names.directory(cwd)
            yield from self._names.settle(names=True)
            result = yield from SandboxApi.python.steps(
                self._box, (yield from self._fitting(code)), cwd=place, env=self._names.environment(), timeout=PYTHON_TIMEOUT_MS / 1000,
                output_max=OUTPUT_MAX, tools=[each.name for each in tools.definitions] or None,
            )
        except HoltError as error:
            self._note("python", started, parameters, {"exitCode": -1})
            raise failure(error) from error
        self._names.links_stale = True
        if tools.definitions:
            parameters["toolCallCount"] = yield from self._note_tool_calls(before)
        self._note("python", started, parameters, {"exitCode": result.exit_code})
        if not result.state_kept:
            self._interpreter = None
        return self._result_of(result)

    def _fitting(self, code: str) -> "Steps[str]":
        """Returns the code, or a line that runs it from a file if it does not fit into a message."""
        if len(code) * 6 <= CODE_MAX or len(json.dumps(code, ensure_ascii=False).encode(errors="replace")) <= CODE_MAX:
            return code
        yield from FilesApi.write.steps(self._names.files, CODE, code)
        return f"exec(compile(open({CODE!r}).read(), '<python>', 'exec'), globals())"

    @staticmethod
    def _result_of(result: Ran) -> PythonResult:
        """Returns the result of code. Raises an exception if the interpreter has ended."""
        if result.cause == "timeout":
            raise TimeoutError(f"the code took longer than {PYTHON_TIMEOUT_MS} ms", PYTHON_TIMEOUT_MS)
        if result.cause != "exited":
            number = result.exit_code - 128 if result.exit_code > 128 else None
            raise SubprocessCrashed(f"the interpreter was ended: {result.cause}", number)
        if not result.state_kept:  # os._exit()
            raise SubprocessCrashed(f"the interpreter has ended, with exit code {result.exit_code}")
        if not result.error:
            error_text = None if result.exit_code == 0 else f"SystemExit: {result.exit_code}"
            return PythonResult(result.stdout, stderr_of(result), result.exit_code, error_text)
        text = f"{result.error.name}: {result.error.message}" if result.error.message else result.error.name
        return PythonResult(result.stdout, stderr_of(result) + result.error.traceback, result.exit_code or 1, text)

    def _reuse_or_restart(self, tools: PythonToolset, packages: Sequence[str]) -> "Steps[None]":
        wanted = json.dumps([tools.manifest, packages])
        if self._interpreter == wanted:
            return
        if self._interpreter is not None:
            self._interpreter = None
            yield from SandboxApi.restart_python.steps(self._box)
        if self.python_runtime is PythonRuntime.MONTY:
            functions = {each.name: each.description for each in tools.definitions}
            yield from FilesApi.write.steps(self._names.files, MONTY, json.dumps(functions))
        self._interpreter, self._interpreter_id = wanted, str(uuid.uuid4())

    def _register(self, tools: PythonToolset, loop: Optional[asyncio.AbstractEventLoop]) -> "Steps[None]":
        """Registers the tools. This happens for each run, since handlers can differ even if the manifest is the same."""
        registry, names = Tools.of(self._box._server), [each.name for each in tools.definitions]
        for name in [n for n in self._registered if n not in names]:
            yield from SandboxApi.remove_tool.steps(self._box, name)
            self._registered.remove(name)
        for tool in tools.tools():
            try:
                yield from registry.register(self._box.name, tool, loop, interrupt=False)
            except UsageError as error:  # an invalid name or schema
                raise ValueError(str(error)) from error
            if tool.name not in self._registered:
                self._registered.append(tool.name)

    def _last_row(self) -> "Steps[int]":
        rows = yield from SandboxApi.history.steps(self._box, 1)
        return rows[0].id if rows else 0

    def _note_tool_calls(self, after: int) -> "Steps[int]":
        """Copies tool calls from the session's history, which includes those that did not reach a handler."""
        rows = yield from SandboxApi.history.steps(self._box, 10000, name="tool.call")
        calls = sorted((row for row in rows if row.id > after), key=lambda row: row.id)
        for row in calls:
            given = row.params if isinstance(row.params, dict) else {}
            gone = row.result if isinstance(row.result, dict) else {}
            kind = gone.get("errorType")
            result = {"success": False, "errorType": kind} if kind else {
                "success": bool(gone.get("success")), "responsePreview": str(gone.get("responsePreview", ""))[:200],
            }
            request = given.get("requestPreview", "")
            self._note("python_tool_call", row.started_ms, {
                "sessionId": self._interpreter_id, "toolName": given.get("tool"),
                "requestPreview": (request if isinstance(request, str) else preview(request))[:200],
            }, result, row.ended_ms)
        return len(calls)

    def execute_python(
        self, code: str, cwd: Optional[str] = None, preload_packages: Optional[Sequence[str]] = None,
        toolset: Optional[ToolsetInput] = None,
    ) -> PythonResult:
        """Runs code in the interpreter, which lasts while toolset and preload_packages stay the same.

        An exception of the code is not raised here. It sets exit_code to 1, and error to its text.
        """
        return drive(self._guarded(self._python(code, cwd, preload_packages, toolset, None)))

    async def aexecute_python(
        self, code: str, cwd: Optional[str] = None, preload_packages: Optional[Sequence[str]] = None,
        toolset: Optional[ToolsetInput] = None,
    ) -> PythonResult:
        """Runs code; see execute_python(). Handlers that are coroutines run in this event loop."""
        loop = asyncio.get_running_loop()
        return await drive_async(self._guarded(self._python(code, cwd, preload_packages, toolset, loop)))

    @staticmethod
    def get_python_hint(python_runtime: Union[PythonRuntime, str] = PythonRuntime.PYODIDE) -> str:
        """Returns a description of the Python in the sandbox, for a model's prompt."""
        return HINTS[PythonRuntime(python_runtime)]
