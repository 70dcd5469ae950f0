# SPDX-License-Identifier: Apache-2.0
"""The life of a LocalSandbox: its session, its history, its snapshots and its end.

Theory of operation. The constructor puts files and snapshots into the session, so that nothing is lost if no call
follows. Without files and snapshots, the first call creates the session. A program can call destroy() at any time, even
while another thread creates the session; that thread then removes the session. Calls that run at that time fail with
different errors, and this module turns each of them into the same RuntimeError.
"""

from __future__ import annotations

import builtins
import concurrent.futures
import copy
import os
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from .._operations import Steps
from ..errors import ClosedError, HoltError
from ..files import FilesApi
from ..sandbox import SandboxApi
from ._errors import file_error
from ._files import OTHER_TIMEOUT_MS, PYTHON, Names, seed_bytes
from ._kv import KVStore
from ._packages import install, packages_of
from ._snapshot import pack_snapshot, unpack_snapshot
from ._types import ExecutionPreset, HistoryEntry, PythonRuntime
from .exceptions import LocalSandboxError, SubprocessCrashed, TimeoutError

Seeds = Mapping[str, Union[str, bytes, Path]]

T = TypeVar("T")

GONE = "LocalSandbox instance has been destroyed"


def now() -> int:
    return int(time.time() * 1000)


def pending() -> "Future[None]":
    """Returns a future that several callers can await. If one gives up, the others still wait for it."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future


def failure(error: HoltError) -> LocalSandboxError:
    """Returns the exception for a call that failed to start."""
    return SubprocessCrashed(str(error)) if isinstance(error, ClosedError) else LocalSandboxError(str(error))


def ours(steps: "Steps[T]") -> "Steps[T]":
    """Converts holt's errors to exceptions of a LocalSandbox."""
    try:
        return (yield from steps)
    except HoltError as error:
        raise failure(error) from error


class Life:
    """The common base of the parts of a LocalSandbox, which documents the parameters."""

    _box: Any
    _names: Any

    def __init__(
        self, files: Optional[Seeds], snapshot: Optional[bytes], cwd: str, preset: Union[ExecutionPreset, str],
        python_runtime: Union[PythonRuntime, str], packages: Sequence[str],
        wheels: "Union[str, os.PathLike[str], None]", holt: Optional[str],
    ) -> None:
        if files is not None and snapshot is not None:
            raise ValueError("Cannot provide both files and snapshot")
        if not isinstance(snapshot, (bytes, bytearray, memoryview, type(None))):
            raise TypeError(f"a snapshot must be bytes, not {type(snapshot).__name__}")
        self.cwd, self.preset, self._runtime = cwd, ExecutionPreset(preset), PythonRuntime(python_runtime)
        self._seeds = {str(path): seed_bytes(content) for path, content in (files or {}).items()}
        self._snapshot = bytes(snapshot or b"")
        self._holt = holt
        self._packages = packages_of(packages)
        self._wheels = None if wheels is None else os.path.abspath(os.fspath(wheels))
        self._lock = threading.Lock()
        self._opening: Optional["Future[None]"] = None
        self._destroyed, self._ended = False, pending()
        self._pid = os.getpid()
        self._history: List[HistoryEntry] = []
        self._next_id = 1
        self.kv = KVStore(lambda: self._guarded(self._ready()))

    def __reduce__(self) -> Any:
        raise TypeError("a LocalSandbox can't be copied or pickled: export_snapshot() returns its state")

    @property
    def python_runtime(self) -> PythonRuntime:
        """The runtime, which cannot be changed later."""
        return self._runtime

    # --- the beginning ---

    def _check(self) -> None:
        if self._destroyed:
            raise RuntimeError(GONE)

    def _guarded(self, steps: "Steps[T]") -> "Steps[T]":
        """Runs the steps of a call. Raises RuntimeError if destroy() is called before they end.

        No step follows then, because its request would start the session again.
        """
        try:
            future = next(steps)
            while True:
                try:
                    value = yield future
                    self._check()
                except BaseException as error:
                    future = steps.throw(error)
                else:
                    future = steps.send(value)
        except StopIteration as end:
            self._check()
            return end.value  # type: ignore[no-any-return]
        except Exception as error:
            if self._destroyed and not isinstance(error, RuntimeError):
                raise RuntimeError(GONE) from error
            if isinstance(error, (builtins.TimeoutError, concurrent.futures.TimeoutError)):  # the server hangs
                raise TimeoutError(str(error) or "the server does not reply", OTHER_TIMEOUT_MS) from error
            raise
        finally:
            steps.close()

    def _ready(self) -> "Steps[None]":
        """Creates the session, unless it exists. Later callers wait for it."""
        while True:
            with self._lock:
                self._check()
                opening, mine = self._opening, self._opening is None
                if opening is None:
                    opening = self._opening = pending()
            if mine:
                break
            yield opening
            if self._opening is opening:
                return
            # The first caller has given up, so this caller tries.
        try:
            yield from ours(self._start())
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
        policy = {"python": {"wheels": self._wheels}} if self._wheels else None
        box = SandboxApi(holt=self._holt, env={"PYTHONPATH": PYTHON}, policy=policy)
        yield from box._open()
        names = Names(box)
        try:
            yield from names.prepare()
            if restored:
                yield from names.unpack(restored[0])
            yield from self._seed(names)
            yield from FilesApi.mkdir.steps(names.files, (yield from names.place(self.cwd)))
            yield from install(names, self._packages)
            with self._lock:
                self._check()  # destroy() leaves an unfinished session to this thread
                self._box, self._names = box, names
        except BaseException:
            if box._lease:
                box._lease.end()
            raise
        if restored:
            self._take_state(restored[1])
        self._seeds, self._snapshot = {}, b""

    def _seed(self, names: Names) -> "Steps[None]":
        started = now()
        for path, data in self._seeds.items():
            try:
                yield from names.write(path, data)
            except HoltError as error:
                raise file_error(error, path, missing=False) from error
        if self._seeds:
            self._note("seed", started, {"paths": list(self._seeds), "count": len(self._seeds)}, {"success": True})

    def _take_state(self, state: Dict[str, Any]) -> None:
        self.kv._update(state["kv"])
        with self._lock:
            self._history = [HistoryEntry(**each) for each in state["history"]]
            self._next_id = max((each.id for each in self._history), default=0) + 1

    # --- the end ---

    def _end(self) -> "Steps[None]":
        with self._lock:
            first, self._destroyed = not self._destroyed, True
            box = getattr(self, "_box", None)
        if self._pid != os.getpid():  # a forked child must not end the sandbox of its parent
            return
        if not first:
            yield self._ended
            return
        try:
            if box:
                yield from box._close()
        finally:
            self._ended.set_result(None)

    # --- history ---

    def _note(
        self, name: str, started: int, parameters: Dict[str, Any], result: Optional[Dict[str, Any]],
        completed: Optional[int] = None,
    ) -> None:
        with self._lock:
            ended = now() if completed is None else completed
            self._history.append(HistoryEntry(self._next_id, name, started, ended, parameters, result))
            self._next_id += 1

    def _entries(self, limit: int) -> "Steps[List[HistoryEntry]]":
        yield from self._ready()
        with self._lock:
            newest = sorted(self._history, key=lambda each: (each.started_at, each.id), reverse=True)
            return copy.deepcopy(newest[: max(0, limit)])  # callers may change their entries

    # --- snapshots ---

    def _export(self) -> "Steps[bytes]":
        with self._lock:
            self._check()
            if self._opening is None:  # there is nothing to lose: the constructor has stored files and snapshots
                return b""
        yield from self._ready()
        files = yield from ours(self._names.pack())
        with self._lock:
            history = [dict(vars(each)) for each in self._history]
        return pack_snapshot(files, {"kv": self.kv._copy(), "history": history})
