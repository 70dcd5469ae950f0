# SPDX-License-Identifier: Apache-2.0
"""A sandbox: a session of holt's, made here or found."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import os
import secrets
import threading
import time
from concurrent.futures import Future
from typing import Any, Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, TypeVar, Union

from ._request import Request
from ._face import Content, Part, Path, argv_of, as_bytes, check_words, line_of, list_of, seconds_of
from ._lease import Lease, pause, remove_steps
from ._operations import AsyncFace, Steps, SyncFace, drive, drive_async, operation
from ._server import ANY, Server
from ._settings import Policy, Settings, Size, Time
from .errors import HoltError, MissingError, SetupError, UsageError
from .files import AsyncFiles, Files
from .kv import AsyncKv, Kv
from .mount import AsyncMount, Mount
from .process import AsyncProcess, Chunk, Output, Process, ProcessApi, ProcessInfo, process_info_of
from .results import PythonResult, Result, python_result_of, result_of
from .rows import AuditRow, HistoryRow, SessionInfo, parsed
from .tools import Tool, ToolLike, Tools, tool_of, tools_of

TERMINAL = 7  # fds 0 to 2

_START_WITHIN = 30.0  # seconds

_INTERPRETER = "/run/holt/python/holt_interpreter.py"

S = TypeVar("S", bound="SandboxApi")


def _sessions(holt: Optional[str], server: Optional[Server]) -> "Steps[List[SessionInfo]]":
    asked = server or Server(holt)
    try:
        answer = yield asked.submit("session.list", {})
        return [SessionInfo(each["name"], each["state"]) for each in answer["sessions"]]
    finally:
        if asked is not server:
            asked.close()


def _milliseconds(seconds: Optional[float]) -> Optional[int]:
    """What is left of a time may be none: it is over at once then."""
    seconds = seconds_of(seconds)
    return None if seconds is None else max(1, round(seconds * 1000))



def _is_missing(error: HoltError, process: str) -> bool:
    """Whether a keeper that is new does not know the process."""
    return isinstance(error, MissingError) and f'"{process}"' in error.message


def _unknown(face: str, name: str) -> str:
    near = difflib.get_close_matches(name, list(inspect.signature(SandboxApi.__init__).parameters)[1:-1], n=1)
    return f"{face}() has no parameter {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


class SandboxApi(Part):
    """What Sandbox and AsyncSandbox have in common: Sandbox says what the parameters are."""

    _process: Any

    def __init__(
        self,
        name: Optional[str] = None,
        *,
        policy: Optional[Policy] = None,
        workspace: "Union[str, os.PathLike[str], None]" = None,
        tools: Optional[Sequence[ToolLike]] = None,
        timeout: Optional[Time] = None,
        memory: Optional[Size] = None,
        idle: Optional[Time] = None,
        tier: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        read_only: Sequence[str] = (),
        read_write: Sequence[str] = (),
        holt: Optional[str] = None,
        server: Optional[Server] = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            raise TypeError(_unknown(type(self).__name__, next(iter(unknown))))
        self.name = f"py-{os.getpid()}-{secrets.token_hex(6)}" if name is None else name
        super().__init__(server or Server(holt), self.name)
        self.throwaway = name is None
        self._own_server = server is None
        self._settings = Settings(
            policy, workspace, timeout, memory, idle, tier, env, tuple(list_of(read_only, "read_only")),
            tuple(list_of(read_write, "read_write")),
        )
        self._tools = tools_of(tools)
        self._lock = threading.Lock()
        self._closed = False
        self._lease: Optional[Lease] = None
        self._made()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}{' (closed)' if self._closed else ''}>"

    # --- its life ---

    def _made(self) -> None:
        """At the end of the constructor, whose parameters are thus told in one place."""

    def _open(self, loop: Optional[asyncio.AbstractEventLoop] = None) -> "Steps[None]":
        self._lease = Lease(self, self._server, self.name if self.throwaway else None, self._own_server)
        try:
            # A throwaway session goes with this program, however that ends. An existing one keeps its settings, and what
            # was given here must agree with them.
            params = {**self._settings.params(), "name": self.name, "owned" if self.throwaway else "find": True}
            yield self._server.submit("session.create", params)
            if self.throwaway:
                # Starts it. Our connection is a use from then on: the session does not rest while this program lives.
                # A process would be one, too, but what the host changes at protected paths is known to be the host's
                # only while none runs.
                yield self._ask("session.show", {})
            for tool in self._tools:
                yield from Tools.of(self._server).register(self.name, tool, loop)
        except BaseException:
            self._lease.end()
            raise

    def _close(self) -> "Steps[None]":
        with self._lock:
            if self._closed:
                return
            self._closed = True
        Tools.of(self._server).drop(self.name)
        if self._lease:
            yield from self._lease.end_steps()

    # --- commands ---

    def _spawned(self, method: str, params: Mapping[str, Any]) -> "Steps[Any]":
        """Starts a command; where the caller gives up meanwhile, it is killed as soon as it is known."""
        deadline = time.monotonic() + _START_WITHIN
        while True:
            try:
                return (yield from self._spawned_once(method, params))
            except HoltError as error:
                # Very many at once: init has not read yet what it was asked before.
                if error.errno != "EAGAIN" or time.monotonic() > deadline:
                    raise
            yield from pause()

    def _spawned_once(self, method: str, params: Mapping[str, Any]) -> "Steps[Any]":
        future = self._ask(method, params)

        def kill(started: "Future[Any]") -> None:
            if not started.exception():
                self._ask_and_forget("process.kill", id=started.result()["id"])

        try:
            return (yield future)
        except HoltError:
            raise
        except BaseException:
            # Not in the reader's thread, which would have to write.
            future.add_done_callback(lambda f: threading.Thread(target=kill, args=(f,), daemon=True).start())
            raise

    def _exec(
        self, command: Mapping[str, Any], cwd: Optional[Path], env: Optional[Mapping[str, str]],
        stdin: Optional[Content], timeout: Optional[float], output_max: Optional[int], keep: Optional[str],
        tools: Optional[Sequence[str]],
    ) -> "Steps[Result]":
        """Spawned and waited for, not exec: so it can be killed when nobody waits any more, and input has no limit of
        one message."""
        begun = self._server.commands.begin()
        try:
            yield begun
            return (yield from self._exec_begun(command, cwd, env, stdin, timeout, output_max, keep, tools))
        finally:
            self._server.commands.end(begun)

    def _exec_begun(
        self, command: Mapping[str, Any], cwd: Optional[Path], env: Optional[Mapping[str, str]],
        stdin: Optional[Content], timeout: Optional[float], output_max: Optional[int], keep: Optional[str],
        tools: Optional[Sequence[str]],
    ) -> "Steps[Result]":
        check_words(command, env)
        names = yield from self._names(tools)
        given = as_bytes(stdin) if stdin is not None else b""  # a mistake is told before anything starts
        started = yield from self._spawned("process.spawn", {
            **command, "cwd": cwd, "env": env, "input": True if given else None, "timeout_ms": _milliseconds(timeout),
            "output_max": output_max, "keep": keep, "tools": names,
        })
        if "ended" in started:  # before it had started: the keeper may be gone by now
            return result_of(started["ended"])
        process = ProcessApi(self._server, self._session, started["id"], started["pid"])
        try:
            if given:
                yield from self._feed(process, given)
            asked = self._ask("process.wait", {"id": process.id, "output": True, "base64": True}, urgent=True)
            answer = yield asked
        except BaseException as error:
            if isinstance(error, HoltError) and (error.data.get("gone") or _is_missing(error, process.id)):
                raise SetupError(
                    f"the session was stopped, and with it {process.id}", hint="How it ended is in the history."
                ) from None
            self._ask_and_forget("process.kill", id=process.id)
            raise
        return result_of(answer)

    @staticmethod
    def _feed(process: ProcessApi, data: bytes) -> "Steps[None]":
        try:
            yield from process._write(data)
            yield from ProcessApi.close_stdin.steps(process)
        except HoltError as error:
            if error.kind == "limit":
                raise
            # It has closed its input, or ended, without reading all: as with any pipe, that is its affair.

    @operation
    def bash(
        self, command: str, *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Content] = None, timeout: Optional[float] = None, output_max: Optional[int] = None,
        keep: Optional[str] = None, tools: Optional[Sequence[str]] = None,
    ) -> "Steps[Result]":
        """Runs a line of bash to its end. What does not end well is a Result too, unless check() is called.

        cwd         where to start; relative to the workspace
        env         variables beyond the session's own
        stdin       what it reads, text or any bytes; nothing without it
        timeout     seconds; at most what the policy gives; of 0 or less nothing is left, which ends it at once
        output_max  bytes kept of each stream, 1 MiB without it, at most 8 MiB
        keep        "head" or "tail": which bytes are kept
        tools       names of those that it may call, of any client of the session; this sandbox's own without it
        """
        return (yield from self._exec({"shell": line_of(command)}, cwd, env, stdin, timeout, output_max, keep, tools))

    @operation
    def exec(
        self, argv: Sequence[Path], *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Content] = None, timeout: Optional[float] = None, output_max: Optional[int] = None,
        keep: Optional[str] = None, tools: Optional[Sequence[str]] = None,
    ) -> "Steps[Result]":
        """Runs a command to its end, without a shell; otherwise as bash(). Raises CommandNotFoundError, and UsageError
        where argv is the text of a line."""
        return (yield from self._exec({"argv": argv_of(argv)}, cwd, env, stdin, timeout, output_max, keep, tools))

    def _spawn(
        self, command: "Union[str, Sequence[Path]]", cwd: Optional[Path], env: Optional[Mapping[str, str]], input: bool,
        terminal: bool, rows: int, columns: int, timeout: Optional[float], output_max: Optional[int],
        owned: bool, tools: Optional[Sequence[str]],
    ) -> "Steps[Any]":
        what: Dict[str, Any] = {"shell": command} if isinstance(command, str) else {"argv": argv_of(command)}
        check_words(what, env)
        names = yield from self._names(tools)
        started = yield from self._spawned("process.spawn", {
            **what, "cwd": cwd, "env": env, "input": True if input else None, "owned": owned or None,
            **({"terminal": TERMINAL, "rows": rows, "columns": columns} if terminal else {}),
            "timeout_ms": _milliseconds(timeout), "output_max": output_max,
            "tools": names,
        })
        process = self._process(self._server, self._session, started["id"], started["pid"])
        yield from process._watch()
        return process

    @operation
    def processes(self) -> "Steps[List[ProcessInfo]]":
        """What has been started here by whomever, the newest first: what runs, and the last that have ended."""
        listed = yield self._ask("process.list", {})
        return [process_info_of(each) for each in listed["processes"]]

    def _found(self, id: str) -> "Steps[Any]":
        for each in (yield from SandboxApi.processes.steps(self)):
            if each.id == id:
                if each.command.endswith(_INTERPRETER):
                    raise UsageError(f"{id} is the interpreter", hint="python(), interrupt_python() and restart_python()")
                process = self._process(self._server, self._session, each.id, each.pid)
                yield from process._watch()
                return process
        raise MissingError(f"there is no process {id!r}", hint="processes() lists those that there are.")

    # --- the interpreter ---

    @operation
    def python(
        self, code: str, *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None, fresh: bool = False,
        timeout: Optional[float] = None, output_max: Optional[int] = None, keep: Optional[str] = None,
        tools: Optional[Sequence[str]] = None, on_output: Optional[Callable[[Chunk], Any]] = None,
    ) -> "Steps[PythonResult]":
        """Runs code in the lasting interpreter of the session: variables and imports stay.

        fresh      in an interpreter of its own, which ends with it
        on_output  is called with what it prints as it comes, where this was called: in this thread, or in the event
                   loop. Runs that have one take turns, also fresh ones. What it raises interrupts the code.
        timeout    seconds from when the code starts: that it waits for another run is not counted
        Otherwise as bash().
        """
        params = {
            "code": code, "cwd": cwd, "env": env, "fresh": fresh or None, "timeout_ms": _milliseconds(timeout),
            "output_max": output_max, "keep": keep, "base64": True, "tools": (yield from self._names(tools)),
            "run": secrets.token_hex(8),
        }
        if on_output is None:
            return (yield from self._python(params))
        turn, output = self._server.begin_watched_run(self._session), Output()
        try:
            yield turn
            self._server.listen("process.output", self._session, ANY, output.note)
            return (yield from self._python({**params, "watch": True}, output, on_output))
        finally:
            self._server.end_watched_run(self._session, turn)

    def _python(
        self, params: Mapping[str, Any], output: Optional[Output] = None,
        on_output: Optional[Callable[[Chunk], Any]] = None,
    ) -> "Steps[PythonResult]":
        asked = self._ask("python.run", params)
        if output:
            note = output.note
            asked.add_done_callback(lambda _: note({"exit_code": 0}))  # it comes behind all the output
        try:
            while output and on_output:
                taken = output.take()
                if isinstance(taken, Future):
                    yield taken
                elif taken:
                    on_output(taken)
                else:
                    break
            return python_result_of((yield asked))
        except BaseException:
            if not asked.done():  # one that still waits is taken back by either
                self._ask_and_forget("python.restart" if params["fresh"] else "python.interrupt", run=params["run"])
            raise

    @operation
    def restart_python(self) -> "Steps[bool]":
        """Kills the interpreter; the next run has a new one. Whether there was one."""
        return bool((yield self._ask("python.restart", {}))["killed"])

    @operation
    def interrupt_python(self) -> "Steps[bool]":
        """Raises KeyboardInterrupt in the code that runs; whether there was any."""
        return bool((yield self._ask("python.interrupt", {}, urgent=True))["interrupted"])

    @operation
    def variables(self) -> "Steps[List[Dict[str, Any]]]":
        """What the interpreter has: name, type, size, repr."""
        return list((yield self._ask("python.variables", {}))["variables"])

    @operation
    def save_variables(self, path: Optional[Path] = None) -> "Steps[Dict[str, Any]]":
        """Keeps what can be pickled in a file inside: saved, left_out {name: why}, path."""
        return dict((yield self._ask("python.save", {"path": path})))

    @operation
    def load_variables(self, path: Optional[Path] = None) -> "Steps[Dict[str, Any]]":
        """Takes them back: loaded, failed {name: why}, path."""
        return dict((yield self._ask("python.load", {"path": path})))

    # --- tools ---

    def _names(self, tools: Optional[Sequence[str]]) -> "Steps[Optional[List[str]]]":
        """Whether they are there is better known now than when one is called. Raises UsageError."""
        if tools is None:
            return None
        names = list_of(tools, "tools")
        there = {each["name"] for each in (yield self._ask("tools.list", {}))["tools"]} if names else ()
        for name in names:
            if name not in there:
                raise UsageError(
                    f"no client of the session offers a tool {name!r}",
                    hint="tools is a list of names; add_tool() offers a function.",
                )
        return names

    def _add_tool(self, tool: ToolLike, loop: Optional[asyncio.AbstractEventLoop]) -> "Steps[Tool]":
        made = tool_of(tool)
        yield from Tools.of(self._server).register(self.name, made, loop)
        return made

    @operation
    def remove_tool(self, name: str) -> "Steps[None]":
        """It can't be called any more."""
        yield self._ask("tools.unregister", {"name": name})
        Tools.of(self._server).drop(self.name, name)

    # --- what there was ---

    @operation
    def history(self, limit: int = 100, *, name: Optional[str] = None) -> "Steps[List[HistoryRow]]":
        """Commands, runs of code and file calls, the newest first; name: only those of a method, as "python.run"."""
        rows = yield from self._rows("history.list", limit, {"name": name})
        return [
            HistoryRow(r["id"], r["name"], r["started_ms"], r["ended_ms"], parsed(r["params"]), parsed(r["result"]))
            for r in rows
        ]

    @operation
    def audit(self, limit: int = 100, *, kind: Optional[str] = None) -> "Steps[List[AuditRow]]":
        """Denials, kills, limits and grants, the newest first; kind: only those of one, as "denial"."""
        rows = yield from self._rows("audit.list", limit, {"kind": kind})
        return [AuditRow(r["id"], r["at_ms"], r["kind"], parsed(r["detail"])) for r in rows]

    def _rows(self, method: str, limit: int, more: Mapping[str, Any]) -> "Steps[List[Dict[str, Any]]]":
        rows: List[Dict[str, Any]] = []
        before = None
        while len(rows) < limit:
            asked = {**more, "before": before, "limit": min(1000, limit - len(rows))}
            page = yield self._ask(method, asked)
            rows += page["rows"]
            before = page["next"]
            if before is None:
                break
        return rows

    @operation
    def show(self) -> "Steps[Dict[str, Any]]":
        """What the session is and has: state, mounts, limits, layers."""
        return dict((yield self._ask("session.show", {})))

    @operation
    def stop(self) -> "Steps[None]":
        """Ends all that runs; files, keys and history stay, and the next use starts it again."""
        yield self._ask("session.stop", {})

    @operation
    def remove(self) -> "Steps[None]":
        """Takes the session away with all its files, a lasting one too."""
        yield from remove_steps(self._server, self.name)


class Sandbox(SandboxApi, SyncFace):
    """A sandbox of one's own, or a lasting one by its name.

        with Sandbox() as box:
            print(box.bash("echo $((6 * 7))").check().stdout)

    Without a name it is a throwaway session, gone with close(), at the end of the `with`, and in any case with this
    program. With one it is found, or made, and stays; it keeps the settings that it was made with: what is given has to
    be what it has, or it is an ExistsError. What is not given may be anything.

    policy      a preset's name, a file's path (with a "/"), or a policy as a dict
    workspace   a directory of the host, which is /workspace; the session's own without it
    tools       typed callables that code inside may call
    timeout     seconds that a command may take, memory bytes; both also as text: "10m", "2GiB"
    idle, tier  as in holt-create(1)
    env         variables of every command
    read_only, read_write   paths of the host, or PATH:TARGET
    holt        the program, where it is neither $HOLT nor in the PATH
    server      a connection to share with other sandboxes

    Any thread may use it.
    """

    _process = Process
    files: Files
    mount: Mount
    kv: Kv

    def _made(self) -> None:
        drive(self._open())
        self.files = Files(self._server, self.name)
        self.mount = Mount(self._server, self.name)
        self.kv = Kv(self._server, self.name)

    def spawn(
        self, command: "Union[str, Sequence[Path]]", *, cwd: Optional[Path] = None,
        env: Optional[Mapping[str, str]] = None, input: bool = False, terminal: bool = False, rows: int = 24,
        columns: int = 80, timeout: Optional[float] = None, output_max: Optional[int] = None, owned: bool = False,
        tools: Optional[Sequence[str]] = None,
    ) -> Process:
        """Starts a command, or a line of bash where it is text, and does not wait.

        input     its stdin is a pipe, for write() and close_stdin(); without it what reads finds the end at once
        terminal  its fds are a terminal, of so many rows and columns; all its output is stdout then
        owned     it is killed when this program ends; otherwise it goes on, in a lasting session
        """
        return drive(self._spawn(  # type: ignore[no-any-return]
            command, cwd, env, input, terminal, rows, columns, timeout, output_max, owned, tools
        ))

    def process(self, id: str) -> Process:
        """One that is there, whoever has started it: an earlier program, `holt exec --detach`. Its output comes from
        the first of what is kept. Raises MissingError."""
        return drive(self._found(id))  # type: ignore[no-any-return]

    @staticmethod
    def sessions(*, holt: Optional[str] = None, server: Optional[Server] = None) -> List[SessionInfo]:
        """All sessions, throwaway ones too; Sandbox(name) takes one."""
        return drive(_sessions(holt, server))

    def add_tool(self, tool: ToolLike) -> Tool:
        """Code inside may call it from now on."""
        return drive(self._add_tool(tool, None))

    def close(self) -> None:
        """A throwaway session is removed; a lasting one goes on."""
        drive(self._close())

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class AsyncSandbox(SandboxApi, AsyncFace):
    """The same for asyncio; made by `async with`, or `await AsyncSandbox(...).open()`.

        async with AsyncSandbox() as box:
            print((await box.bash("uname")).check().stdout)

    A task that is cancelled kills what it waits for. Tools that are coroutines run in this loop.
    """

    _process = AsyncProcess
    _opened = False

    async def open(self: S) -> S:
        """Makes or finds the session."""
        if not self._opened:  # type: ignore[attr-defined]
            await drive_async(self._open(asyncio.get_running_loop()))
            self._opened = True  # type: ignore[attr-defined]
        return self

    def _ask(self, method: str, params: Mapping[str, Any], urgent: bool = False) -> Request:
        self._check_open()
        return super()._ask(method, params, urgent)

    def _check_open(self) -> None:
        if self._lease is None:
            raise UsageError("the sandbox is not open yet", hint="async with AsyncSandbox() as box: ...")

    def _part(self, part: Any) -> Any:
        self._check_open()
        return part(self._server, self.name)

    @property
    def files(self) -> AsyncFiles:
        return self._part(AsyncFiles)  # type: ignore[no-any-return]

    @property
    def mount(self) -> AsyncMount:
        return self._part(AsyncMount)  # type: ignore[no-any-return]

    @property
    def kv(self) -> AsyncKv:
        return self._part(AsyncKv)  # type: ignore[no-any-return]

    async def spawn(
        self, command: "Union[str, Sequence[Path]]", *, cwd: Optional[Path] = None,
        env: Optional[Mapping[str, str]] = None, input: bool = False, terminal: bool = False, rows: int = 24,
        columns: int = 80, timeout: Optional[float] = None, output_max: Optional[int] = None, owned: bool = False,
        tools: Optional[Sequence[str]] = None,
    ) -> AsyncProcess:
        """As Sandbox.spawn()."""
        return await drive_async(self._spawn(
            command, cwd, env, input, terminal, rows, columns, timeout, output_max, owned, tools
        ))

    async def process(self, id: str) -> AsyncProcess:
        """As Sandbox.process()."""
        return await drive_async(self._found(id))

    @staticmethod
    async def sessions(*, holt: Optional[str] = None, server: Optional[Server] = None) -> List[SessionInfo]:
        """As Sandbox.sessions()."""
        return await drive_async(_sessions(holt, server))

    async def add_tool(self, tool: ToolLike) -> Tool:
        """Code inside may call it from now on."""
        return await drive_async(self._add_tool(tool, asyncio.get_running_loop()))

    async def close(self) -> None:
        """As Sandbox.close()."""
        await drive_async(self._close())

    async def __aenter__(self: S) -> S:
        return await self.open()  # type: ignore[attr-defined,no-any-return]

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
