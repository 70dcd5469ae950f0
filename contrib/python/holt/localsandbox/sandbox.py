# SPDX-License-Identifier: Apache-2.0
"""LocalSandbox, on top of a session of holt."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, TypeVar, Union

from .._operations import Steps, drive, drive_async
from ..errors import HoltError
from ._bash import BashCalls
from ._errors import file_error
from ._files import Names
from ._kv import check_text
from ._life import Seeds, now
from ._python import PythonCalls
from ._types import ExecutionPreset, HistoryEntry, JsonValue, PythonRuntime

T = TypeVar("T")


def _in_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class LocalSandbox(PythonCalls, BashCalls):
    """A sandbox with files below /data, bash and Python. The first use starts it, or the constructor if it gets files
    or a snapshot.

    files           initial files: a dict from path to text, bytes, or a pathlib.Path of the host, which is read now
    snapshot        the result of export_snapshot(); not together with files
    cwd             the working directory of bash and Python
    preset          limits of one bash()
    python_runtime  how Python code calls tools: "pyodide" (by host_tools) or "monty" (as functions)
    packages        packages that are installed at the start, unless the host's python3 has them
    wheels          directory of the host with wheels, from which packages and missing imports are installed
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
        packages: Sequence[str] = (),
        wheels: "Union[str, os.PathLike[str], None]" = None,
        holt: Optional[str] = None,
    ) -> None:
        super().__init__(files, snapshot, cwd, preset, python_runtime, packages, wheels, holt)
        if files is not None or self._snapshot:
            drive(self._guarded(self._ready()))

    # --- its life ---

    def destroy(self) -> None:
        """Ends the sandbox. A second call does nothing. Afterwards, any other use raises RuntimeError. Calls that
        are running raise it, too."""
        if self._destroyed and _in_loop():
            return  # waiting would block an adestroy() of the same loop
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

    # --- history and snapshots ---

    def history(self, limit: int = 100) -> List[HistoryEntry]:
        """Returns past calls, the newest first."""
        return drive(self._guarded(self._entries(limit)))

    async def ahistory(self, limit: int = 100) -> List[HistoryEntry]:
        return await drive_async(self._guarded(self._entries(limit)))

    def export_snapshot(self) -> bytes:
        """Returns files, kv and history, for LocalSandbox(snapshot=...). Returns b"" if there is nothing: a sandbox without
        files and snapshot, before its first use."""
        return drive(self._guarded(self._export()))

    async def aexport_snapshot(self) -> bytes:
        return await drive_async(self._guarded(self._export()))

    # --- files ---

    def _file_call(
        self, name: str, path: str, what: "Callable[[Names], Steps[T]]", missing: bool = True, result: str = "success",
        **more: JsonValue,
    ) -> "Steps[T]":
        """Runs a call about a file, records it in the history, and converts its errors."""
        parameters: Dict[str, Any] = {"path": os.fspath(path), **more}
        yield from self._ready()
        started = now()
        try:
            value = yield from what(self._names)
        except HoltError as error:
            self._note(name, started, parameters, {"success": False})
            raise file_error(error, path, missing) from error
        self._note(name, started, parameters, {result: value if result == "exists" else True})
        return value

    def _read(self, path: str) -> "Steps[str]":
        data = yield from self._file_call("read_file", path, lambda names: names.read(path))
        return data.decode(errors="replace")

    def _write_text(self, path: str, content: str) -> "Steps[None]":
        check_text("the content for write_file()", content)
        yield from self._write("write_file", path, content.encode())

    def _write_bytes(self, path: str, data: bytes) -> "Steps[None]":
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"the content for write_file_bytes() must be bytes, not {type(data).__name__}")
        yield from self._write("write_file_bytes", path, bytes(data))

    def _write(self, name: str, path: str, data: bytes) -> "Steps[None]":
        yield from self._file_call(name, path, lambda names: names.write(path, data), missing=False, size=len(data))

    def read_file(self, path: str) -> str:
        return drive(self._guarded(self._read(path)))

    async def aread_file(self, path: str) -> str:
        return await drive_async(self._guarded(self._read(path)))

    def read_file_bytes(self, path: str) -> bytes:
        return drive(self._guarded(self._file_call("read_file_bytes", path, lambda names: names.read(path))))

    async def aread_file_bytes(self, path: str) -> bytes:
        return await drive_async(self._guarded(self._file_call("read_file_bytes", path, lambda names: names.read(path))))

    def write_file(self, path: str, content: str) -> None:
        """Writes a text file, and makes its parent directories."""
        drive(self._guarded(self._write_text(path, content)))

    async def awrite_file(self, path: str, content: str) -> None:
        await drive_async(self._guarded(self._write_text(path, content)))

    def write_file_bytes(self, path: str, data: bytes) -> None:
        drive(self._guarded(self._write_bytes(path, data)))

    async def awrite_file_bytes(self, path: str, data: bytes) -> None:
        await drive_async(self._guarded(self._write_bytes(path, data)))

    def list_files(self, path: str = "/data") -> List[str]:
        """Returns the sorted names in a directory."""
        return drive(self._guarded(self._file_call("list_files", path, lambda names: names.list(path))))

    async def alist_files(self, path: str = "/data") -> List[str]:
        return await drive_async(self._guarded(self._file_call("list_files", path, lambda names: names.list(path))))

    def exists(self, path: str) -> bool:
        return drive(self._guarded(self._file_call("exists", path, lambda names: names.exists(path), result="exists")))

    async def aexists(self, path: str) -> bool:
        return await drive_async(self._guarded(self._file_call("exists", path, lambda names: names.exists(path), result="exists")))

    def delete_file(self, path: str) -> None:
        drive(self._guarded(self._file_call("delete_file", path, lambda names: names.delete(path))))

    async def adelete_file(self, path: str) -> None:
        await drive_async(self._guarded(self._file_call("delete_file", path, lambda names: names.delete(path))))
