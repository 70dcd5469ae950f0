# SPDX-License-Identifier: Apache-2.0
"""LocalSandbox, on top of a session of holt."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
import uuid
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from .._face import WORD_MAX
from .._operations import Steps, drive, drive_async
from ..errors import ClosedError, HoltError, LimitError, MissingError, UsageError
from ..files import FilesApi
from ..results import Outcome, Result
from ..sandbox import SandboxApi
from ..tools import Tools
from ._errors import command_error, file_error
from ._files import HERE, PYTHON, Names, pack_snapshot, seed_bytes, unpack_snapshot
from .core import BashResult, ExecutionPreset, HistoryEntry, JsonValue, PythonResult, PythonRuntime
from .exceptions import ExecutionLimitError, LocalSandboxError, SubprocessCrashed, TimeoutError
from .hint import PYTHON_HINT
from .tools import PythonToolset, Toolset, preview, toolset_of

BASH_TIMEOUT_MS = 30000
PYTHON_TIMEOUT_MS = 60000
OUTPUT_MAX = 8 << 20

Seeds = Mapping[str, Union[str, bytes, Path]]

T = TypeVar("T")


def _now() -> int:
    return int(time.time() * 1000)


class KeyValueStore:
    """LocalSandbox.kv: a store of text values. It is in this object's memory, so only snapshots limit its size."""

    def __init__(self, sandbox: "LocalSandbox") -> None:
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self._values: Dict[str, str] = {}

    def get(self, key: str) -> Optional[str]:
        """Returns a value, or None."""
        return drive(self._run(lambda: self._values.get(key)))

    def _set(self, key: str, value: str) -> "Steps[None]":
        _check_text("a key", key)
        _check_text("a value", value)
        yield from self._run(lambda: self._values.__setitem__(key, value))

    def set(self, key: str, value: str) -> None:
        """Sets a key. An existing value is replaced."""
        drive(self._set(key, value))

    def delete(self, key: str) -> None:
        """Removes a key, if it exists."""
        drive(self._run(lambda: self._values.pop(key, None)))

    def keys(self, prefix: str = "") -> List[str]:
        """Returns the keys that start with prefix, sorted."""
        return drive(self._run(lambda: sorted(k for k in self._values if k.startswith(prefix))))

    async def aget(self, key: str) -> Optional[str]:
        return await drive_async(self._run(lambda: self._values.get(key)))

    async def aset(self, key: str, value: str) -> None:
        await drive_async(self._set(key, value))

    async def adelete(self, key: str) -> None:
        await drive_async(self._run(lambda: self._values.pop(key, None)))

    async def akeys(self, prefix: str = "") -> List[str]:
        return await drive_async(self._run(lambda: sorted(k for k in self._values if k.startswith(prefix))))

    def _run(self, what: Callable[[], T]) -> "Steps[T]":
        yield from self._sandbox._ready()
        with self._lock:
            return what()


class LocalSandbox:
    """A sandbox with files below /data, bash and Python. It starts with its first use.

    files           initial files: a dict from path to text, bytes, or a pathlib.Path of the host, which is read now
    snapshot        the result of export_snapshot(); not together with files
    cwd             the working directory of bash and Python
    preset          limits of one bash()
    python_runtime  accepted and ignored
    holt            path of the program; default: $HOLT, or holt in the PATH
    """

    def __init__(
        self,
        files: Optional[Seeds] = None,
        snapshot: Optional[bytes] = None,
        cwd: str = "/data",
        preset: Union[ExecutionPreset, str] = ExecutionPreset.NORMAL,
        python_runtime: Union[PythonRuntime, str] = "pyodide",
        *,
        holt: Optional[str] = None,
    ) -> None:
        if files and snapshot:
            raise ValueError("Cannot provide both files and snapshot")
        self.cwd, self.preset = cwd, ExecutionPreset(preset)
        self.python_runtime = PythonRuntime(python_runtime)
        self._seeds = {str(path): seed_bytes(content) for path, content in (files or {}).items()}
        self._snapshot, self._holt = snapshot, holt
        self._lock = threading.Lock()
        self._opening: Optional["Future[None]"] = None
        self._box: Any = None
        self._names: Any = None
        self._destroyed = False
        self._history: List[HistoryEntry] = []
        self._next_id = 1
        self._interpreter: Optional[str] = None  # tools and packages of the current interpreter
        self._interpreter_id = ""
        self._turn: Optional["Future[None]"] = None  # the end of the last queued run of code
        self._registered: List[str] = []
        self.kv = KeyValueStore(self)

    def __reduce__(self) -> Any:
        raise TypeError("a LocalSandbox can't be copied or pickled: export_snapshot() returns its state")

    # --- its life ---

    def _check(self) -> None:
        if self._destroyed:
            raise RuntimeError("LocalSandbox instance has been destroyed")

    def _ready(self) -> "Steps[None]":
        """Makes the session at the first call. Later callers wait for it."""
        while True:
            with self._lock:
                self._check()
                opening, mine = self._opening, self._opening is None
                if opening is None:
                    opening = self._opening = _pending()
            if mine:
                break
            yield opening
            if self._opening is opening:
                return
            # The first caller has given up, so this one tries.
        try:
            yield from _ours(self._start())
        except BaseException as error:
            with self._lock:
                self._opening = None
            if isinstance(error, Exception):
                opening.set_exception(error)
            else:
                opening.set_result(None)
            raise
        opening.set_result(None)

    def _start(self) -> "Steps[None]":
        # Check the caller's snapshot before a session is made.
        restored = unpack_snapshot(self._snapshot) if self._snapshot else None
        box = SandboxApi(holt=self._holt, env={"PYTHONPATH": PYTHON})
        yield from box._open()
        names = Names(box)
        try:
            yield from names.prepare()
            if restored:
                yield from names.unpack(restored[0])
                self._take_state(restored[1])
            started = _now()
            yield from self._seed(names)
            yield from FilesApi.mkdir.steps(names.files, (yield from names.place(self.cwd)))
        except BaseException:
            if box._lease:
                box._lease.end()
            raise
        if self._seeds:
            self._note("seed", started, {"paths": list(self._seeds), "count": len(self._seeds)}, {"success": True})
        self._box, self._names = box, names

    def _seed(self, names: Names) -> "Steps[None]":
        for path, data in self._seeds.items():
            try:
                yield from names.write(path, data)
            except HoltError as error:
                raise file_error(error, path, missing=False) from error

    def _take_state(self, state: Dict[str, Any]) -> None:
        self.kv._values.update(state["kv"])
        with self._lock:
            self._history = [HistoryEntry(**each) for each in state["history"]]
            self._next_id = max((each.id for each in self._history), default=0) + 1

    def _end(self) -> "Steps[None]":
        with self._lock:
            if self._destroyed:
                return
            self._destroyed = True
            box, self._box = self._box, None
        if box:
            yield from box._close()

    def destroy(self) -> None:
        """Ends the sandbox. A second call does nothing. Any other use raises RuntimeError afterwards."""
        drive(self._end())

    async def adestroy(self) -> None:
        await drive_async(self._end())

    def __enter__(self) -> "LocalSandbox":
        self._check()
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    async def __aenter__(self) -> "LocalSandbox":
        self._check()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.adestroy()

    # --- history ---

    def _note(
        self, name: str, started: int, parameters: Dict[str, Any], result: Optional[Dict[str, Any]],
        completed: Optional[int] = None,
    ) -> None:
        with self._lock:
            ended = _now() if completed is None else completed
            self._history.append(HistoryEntry(self._next_id, name, started, ended, parameters, result))
            self._next_id += 1

    def _entries(self, limit: int) -> "Steps[List[HistoryEntry]]":
        yield from self._ready()
        with self._lock:
            newest = sorted(self._history, key=lambda each: (each.started_at, each.id), reverse=True)
        return newest[:limit]

    def history(self, limit: int = 100) -> List[HistoryEntry]:
        """Returns past calls, the newest first."""
        return drive(self._entries(limit))

    async def ahistory(self, limit: int = 100) -> List[HistoryEntry]:
        return await drive_async(self._entries(limit))

    # --- bash ---

    def _bash(self, command: str) -> "Steps[BashResult]":
        _check_text("a command", command)
        yield from self._ready()
        started = _now()
        mark = f"{HERE}/limit-{secrets.token_hex(8)}"
        argv = ["bash", f"{HERE}/call.bash", str(self.preset.loop_iterations), str(self.preset.command_count), mark]
        try:
            result = yield from self._exec_line(argv, command)
        except HoltError as error:
            self._note("bash", started, {"command": command, "cwd": self.cwd}, {"exitCode": -1})
            raise _failure(error) from error
        self._note("bash", started, {"command": command, "cwd": self.cwd}, {"exitCode": result.exit_code})
        yield from self._check_end(result, mark)
        if result.exit_code != 0:
            raise command_error(result.exit_code, result.stdout, _stderr(result))
        return BashResult(result.stdout, _stderr(result), 0, (result.usage.wall_us or 0) / 1000)

    def _exec_line(self, argv: List[str], line: str) -> "Steps[Result]":
        if len(line) * 4 <= WORD_MAX or len(line.encode(errors="replace")) <= WORD_MAX:
            return (yield from self._exec([*argv, line]))
        # The line is longer than an argument may be, for example with a large here-document
        path = f"{HERE}/line-{secrets.token_hex(8)}"
        try:
            yield from FilesApi.write.steps(self._names.files, path, line)
            return (yield from self._exec([*argv, f'eval "$(<{path})"']))
        finally:
            self._box._ask_and_forget("files.remove", path=path)

    def _exec(self, argv: List[str]) -> "Steps[Result]":
        place = yield from self._names.place(self.cwd)
        for again in (False, True):
            try:
                return (yield from SandboxApi._exec(
                    self._box, {"argv": argv}, place, self._names.environment(), None, BASH_TIMEOUT_MS / 1000, OUTPUT_MAX, None,
                    [] if self._registered else None,  # tools are for Python
                ))
            except HoltError:
                # An earlier command has removed the working directory. Every command gets one, so make it again.
                if again or (yield from FilesApi.exists.steps(self._names.files, place)):
                    raise
                yield from FilesApi.mkdir.steps(self._names.files, place)
        raise AssertionError("unreachable")

    def _check_end(self, result: Result, mark: str) -> "Steps[None]":
        """Raises if the command was ended by a limit or by a failure of the sandbox."""
        if result.cause == "exited":
            return
        self._names.links_stale = True  # names.bash has not run at the end of the call
        if result.cause == "timeout":
            raise TimeoutError(f"the command took longer than {BASH_TIMEOUT_MS} ms", BASH_TIMEOUT_MS)
        if result.signal == 9:
            try:
                data = yield from FilesApi.read_bytes.steps(self._names.files, mark, max_bytes=4096)
                text = data.decode().split()
            except (MissingError, LimitError, UnicodeDecodeError):  # the command may have made this file
                text = []
            if len(text) >= 2:
                self._box._ask_and_forget("process.kill", id=result.id)
                self._box._ask_and_forget("files.remove", path=mark)
                kind, value = text[0], int(text[1])
                raise ExecutionLimitError(
                    f"{kind.replace('_', ' ')} limit of {value} exceeded", kind, value, result.stdout, result.stderr
                )
        if result.cause in ("oom", "lost"):
            raise SubprocessCrashed(f"the command was ended: {result.cause}", result.signal)

    def bash(self, command: str) -> BashResult:
        """Runs a line in a new bash. Raises CommandError, or a subclass of it, for an exit code other than 0."""
        return drive(self._bash(command))

    async def abash(self, command: str) -> BashResult:
        return await drive_async(self._bash(command))

    # --- Python ---

    def _python(
        self, code: str, cwd: Optional[str], preload_packages: Optional[Sequence[str]], toolset: Optional[Toolset],
        loop: Optional[asyncio.AbstractEventLoop],
    ) -> "Steps[PythonResult]":
        """Runs code. Only one run executes at a time, because each may change the tools or replace the interpreter."""
        _check_text("code", code)
        tools = toolset_of(toolset)
        yield from self._ready()
        mine = _pending()
        with self._lock:
            before, self._turn = self._turn, mine
        try:
            if before:
                yield before
            return (yield from _ours(self._python_alone(code, cwd, preload_packages, tools, loop)))
        finally:
            if before and not before.done():  # this caller has given up, and the run before it still executes
                before.add_done_callback(lambda _: mine.set_result(None))
            else:
                mine.set_result(None)

    def _python_alone(
        self, code: str, cwd: Optional[str], preload_packages: Optional[Sequence[str]], tools: PythonToolset,
        loop: Optional[asyncio.AbstractEventLoop],
    ) -> "Steps[PythonResult]":
        packages = sorted(preload_packages or ())
        yield from self._reuse_or_restart(json.dumps([tools.manifest, packages]))
        yield from self._register(tools, loop)
        started, before = _now(), (yield from self._last_row())
        parameters = {
            "codeLength": len(code), "cwd": cwd or self.cwd, "preloadPackages": packages,
            "sessionId": self._interpreter_id, "toolCallCount": 0,
        }
        try:
            place = yield from self._names.place(cwd or self.cwd)
            yield from self._names.settle(names=True)
            result = yield from SandboxApi.python.steps(
                self._box, code, cwd=place, env=self._names.environment(), timeout=PYTHON_TIMEOUT_MS / 1000,
                output_max=OUTPUT_MAX, tools=[each.name for each in tools.definitions] or None,
            )
        except HoltError as error:
            self._note("python", started, parameters, {"exitCode": -1})
            raise _failure(error) from error
        self._names.links_stale = True
        if tools.definitions:
            parameters["toolCallCount"] = yield from self._note_tool_calls(before)
        self._note("python", started, parameters, {"exitCode": result.exit_code})
        if not result.state_kept:
            self._interpreter = None
        if result.cause == "timeout":
            raise TimeoutError(f"the code took longer than {PYTHON_TIMEOUT_MS} ms", PYTHON_TIMEOUT_MS)
        if result.cause != "exited":
            number = result.exit_code - 128 if result.exit_code > 128 else None
            raise SubprocessCrashed(f"the interpreter was ended: {result.cause}", number)
        if not result.state_kept:  # os._exit()
            raise SubprocessCrashed(f"the interpreter has ended, with exit code {result.exit_code}")
        if not result.error:
            error_text = None if result.exit_code == 0 else f"SystemExit: {result.exit_code}"
            return PythonResult(result.stdout, _stderr(result), result.exit_code, error_text)
        text = f"{result.error.name}: {result.error.message}" if result.error.message else result.error.name
        return PythonResult(result.stdout, _stderr(result) + result.error.traceback, result.exit_code or 1, text)

    def _reuse_or_restart(self, wanted: str) -> "Steps[None]":
        if self._interpreter == wanted:
            return
        if self._interpreter is not None:
            yield from SandboxApi.restart_python.steps(self._box)
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
        toolset: Optional[Toolset] = None,
    ) -> PythonResult:
        """Runs code in the interpreter, which lasts while toolset and preload_packages stay the same.

        An exception of the code is not raised here. It sets exit_code to 1, and error to its text.
        """
        return drive(self._python(code, cwd, preload_packages, toolset, None))

    async def aexecute_python(
        self, code: str, cwd: Optional[str] = None, preload_packages: Optional[Sequence[str]] = None,
        toolset: Optional[Toolset] = None,
    ) -> PythonResult:
        """Runs code; see execute_python(). Handlers that are coroutines run in this event loop."""
        return await drive_async(self._python(code, cwd, preload_packages, toolset, asyncio.get_running_loop()))

    @staticmethod
    def get_python_hint(runtime: Union[PythonRuntime, str, None] = None) -> str:
        """Returns a description of the Python in the sandbox, for a model's prompt."""
        if runtime is not None:
            PythonRuntime(runtime)
        return PYTHON_HINT

    # --- files ---

    def _file_call(
        self, name: str, path: str, what: "Callable[[Names], Steps[T]]", missing: bool = True, result: str = "success",
        **more: JsonValue,
    ) -> "Steps[T]":
        """Runs a call about a file, records it in the history, and converts its errors."""
        yield from self._ready()
        started = _now()
        parameters: Dict[str, Any] = {"path": path, **more}
        try:
            value = yield from what(self._names)
        except HoltError as error:
            self._note(name, started, parameters, {"success": False})
            raise file_error(error, path, missing) from error
        self._note(name, started, parameters, {result: value if result == "exists" else True})
        return value

    def _read(self, path: str) -> "Steps[str]":
        data = yield from self._file_call("read_file", path, lambda names: names.read(path))
        return data.decode()

    def _write_text(self, path: str, content: str) -> "Steps[None]":
        _check_text("the content for write_file()", content)
        yield from self._write("write_file", path, content.encode())

    def _write_bytes(self, path: str, data: bytes) -> "Steps[None]":
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"the content for write_file_bytes() must be bytes, not {type(data).__name__}")
        yield from self._write("write_file_bytes", path, bytes(data))

    def _write(self, name: str, path: str, data: bytes) -> "Steps[None]":
        yield from self._file_call(name, path, lambda names: names.write(path, data), missing=False, size=len(data))

    def read_file(self, path: str) -> str:
        return drive(self._read(path))

    async def aread_file(self, path: str) -> str:
        return await drive_async(self._read(path))

    def read_file_bytes(self, path: str) -> bytes:
        return drive(self._file_call("read_file_bytes", path, lambda names: names.read(path)))

    async def aread_file_bytes(self, path: str) -> bytes:
        return await drive_async(self._file_call("read_file_bytes", path, lambda names: names.read(path)))

    def write_file(self, path: str, content: str) -> None:
        """Writes a text file, and makes its parent directories."""
        drive(self._write_text(path, content))

    async def awrite_file(self, path: str, content: str) -> None:
        await drive_async(self._write_text(path, content))

    def write_file_bytes(self, path: str, data: bytes) -> None:
        drive(self._write_bytes(path, data))

    async def awrite_file_bytes(self, path: str, data: bytes) -> None:
        await drive_async(self._write_bytes(path, data))

    def list_files(self, path: str = "/data") -> List[str]:
        """Returns the sorted names in a directory."""
        return drive(self._file_call("list_files", path, lambda names: names.list(path)))

    async def alist_files(self, path: str = "/data") -> List[str]:
        return await drive_async(self._file_call("list_files", path, lambda names: names.list(path)))

    def exists(self, path: str) -> bool:
        return drive(self._file_call("exists", path, lambda names: names.exists(path), result="exists"))

    async def aexists(self, path: str) -> bool:
        return await drive_async(self._file_call("exists", path, lambda names: names.exists(path), result="exists"))

    def delete_file(self, path: str) -> None:
        drive(self._file_call("delete_file", path, lambda names: names.delete(path)))

    async def adelete_file(self, path: str) -> None:
        await drive_async(self._file_call("delete_file", path, lambda names: names.delete(path)))

    # --- snapshots ---

    def _export(self) -> "Steps[bytes]":
        with self._lock:
            self._check()
            if self._opening is None:
                return b""
        yield from self._ready()
        files = yield from _ours(self._names.pack())
        with self._lock:
            history = [dict(vars(each)) for each in self._history]
        return pack_snapshot(files, {"holt_localsandbox": 1, "kv": dict(self.kv._values), "history": history})

    def export_snapshot(self) -> bytes:
        """Returns files, kv and history, for LocalSandbox(snapshot=...). Before the first use, returns b""."""
        return drive(self._export())

    async def aexport_snapshot(self) -> bytes:
        return await drive_async(self._export())


def _pending() -> "Future[None]":
    """Returns a future that several callers can await. If one gives up, the others still wait for it."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future


def _stderr(result: Outcome) -> str:
    """Returns stderr, after a line about dropped output if there is any."""
    dropped = {"stdout": result.stdout_dropped, "stderr": result.stderr_dropped}
    told = [f"holt: {count} more bytes of {stream} were left out\n" for stream, count in dropped.items() if count]
    return "".join(told) + result.stderr


def _check_text(what: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be str, not {type(value).__name__}")


def _ours(steps: "Steps[T]") -> "Steps[T]":
    """Converts holt's errors to exceptions of a LocalSandbox."""
    try:
        return (yield from steps)
    except HoltError as error:
        raise _failure(error) from error


def _failure(error: HoltError) -> LocalSandboxError:
    """Returns the exception for a call that failed to start."""
    return SubprocessCrashed(str(error)) if isinstance(error, ClosedError) else LocalSandboxError(str(error))
