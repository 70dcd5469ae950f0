# SPDX-License-Identifier: Apache-2.0
"""A sandbox, which is a new or an existing session of holt."""

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
from .errors import HoltError, NoProcessError, SetupError, UsageError
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
    """Returns a timeout in milliseconds. 0 or less becomes 1 ms, so that the command ends at once."""
    seconds = seconds_of(seconds)
    return None if seconds is None else max(1, round(seconds * 1000))



def _unknown(face: str, name: str) -> str:
    near = difflib.get_close_matches(name, list(inspect.signature(SandboxApi.__init__).parameters)[1:-1], n=1)
    return f"{face}() has no parameter {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


class SandboxApi(Part):
    """The common base of Sandbox and AsyncSandbox. Sandbox documents the parameters."""

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
        """Called at the end of the constructor. A subclass overrides it, so that it needs no constructor of its own."""

    def _open(self, loop: Optional[asyncio.AbstractEventLoop] = None) -> "Steps[None]":
        self._lease = Lease(self, self._server, self.name if self.throwaway else None, self._own_server)
        try:
            # A throwaway session ends with this program in any case. An existing session keeps its settings, and the
            # settings given here must agree with them.
            params = {**self._settings.params(), "name": self.name, "owned" if self.throwaway else "find": True}
            yield self._server.submit("session.create", params)
            if self.throwaway:
                # This starts the session, and the open connection keeps it in use. A running process would do so, too.
                # But while a process runs, holt cannot tell whether it or the host has changed a protected path.
                yield self._ask("process.list", {})
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
        """Starts a command. If the caller gives up meanwhile, the command is killed as soon as its id is known."""
        deadline = time.monotonic() + _START_WITHIN
        while True:
            try:
                return (yield from self._spawned_once(method, params))
            except HoltError as error:
                # Very many commands start at once, and init has not read all earlier requests.
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
            # The reader's thread must not write, so another thread sends the kill.
            future.add_done_callback(lambda f: threading.Thread(target=kill, args=(f,), daemon=True).start())
            raise

    def _exec(
        self, command: Mapping[str, Any], cwd: Optional[Path], env: Optional[Mapping[str, str]],
        stdin: Optional[Content], timeout: Optional[float], output_max: Optional[int], keep: Optional[str],
        tools: Optional[Sequence[str]],
    ) -> "Steps[Result]":
        """Runs a command by process.spawn and process.wait instead of exec. So it can be killed when the caller gives up,
        and its input may be longer than one message."""
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
        given = as_bytes(stdin) if stdin is not None else b""  # raises an error before the command starts
        started = yield from self._spawned("process.spawn", {
            **command, "cwd": cwd, "env": env, "input": True if given else None, "timeout_ms": _milliseconds(timeout),
            "output_max": output_max, "keep": keep, "tools": names,
        })
        if "ended" in started:  # it never ran, and the keeper may have ended
            return result_of(started["ended"])
        process = ProcessApi(self._server, self._session, started["id"], started["pid"])
        try:
            if given:
                yield from self._feed(process, given)
            asked = self._ask("process.wait", {"id": process.id, "output": True, "base64": True}, urgent=True)
            answer = yield asked
        except BaseException as error:
            if isinstance(error, HoltError) and (error.data.get("gone") or isinstance(error, NoProcessError)):
                raise SetupError(
                    f"the session was stopped, and with it {process.id}", hint="history() shows how it ended."
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
            # The command has closed its stdin or ended before it read everything, which is legal for any pipe.

    @operation
    def bash(
        self, command: str, *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Content] = None, timeout: Optional[float] = None, output_max: Optional[int] = None,
        keep: Optional[str] = None, tools: Optional[Sequence[str]] = None,
    ) -> "Steps[Result]":
        """Runs a line of bash to its end, and returns a Result even if it fails. Result.check() raises for a failure.

        cwd         working directory; relative to the workspace
        env         environment variables in addition to the session's
        stdin       input as text or bytes; default empty
        timeout     seconds, limited by the policy; 0 or less ends the command at once
        output_max  bytes to keep of each stream; default 1 MiB, at most 8 MiB
        keep        the end of the output to keep: "head" or "tail"
        tools       names of tools that the command may call, also of other clients; default: the tools of this sandbox
        """
        return (yield from self._exec({"shell": line_of(command)}, cwd, env, stdin, timeout, output_max, keep, tools))

    @operation
    def exec(
        self, argv: Sequence[Path], *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Content] = None, timeout: Optional[float] = None, output_max: Optional[int] = None,
        keep: Optional[str] = None, tools: Optional[Sequence[str]] = None,
    ) -> "Steps[Result]":
        """Runs a command to its end without a shell. Other parameters are as for bash(). Raises CommandNotFoundError.
        Raises UsageError if argv is text instead of a list."""
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
        """Lists the processes of all clients, the newest first: running ones, and the last that ended."""
        listed = yield self._ask("process.list", {})
        return [process_info_of(each) for each in listed["processes"]]

    def _found(self, id: str) -> "Steps[Any]":
        for each in (yield from SandboxApi.processes.steps(self)):
            if each.id == id:
                if each.command.endswith(_INTERPRETER):
                    raise UsageError(
                        f"{id} is the interpreter", hint="Use python(), interrupt_python() and restart_python()."
                    )
                process = self._process(self._server, self._session, each.id, each.pid)
                yield from process._watch()
                return process
        raise NoProcessError(f"process {id!r} does not exist", hint="processes() lists those that do.")

    # --- the interpreter ---

    @operation
    def python(
        self, code: str, *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None, fresh: bool = False,
        timeout: Optional[float] = None, output_max: Optional[int] = None, keep: Optional[str] = None,
        tools: Optional[Sequence[str]] = None, on_output: Optional[Callable[[Chunk], Any]] = None,
    ) -> "Steps[PythonResult]":
        """Runs code in the session's interpreter, which keeps variables and imports.

        fresh      runs the code in a new interpreter, which ends with it
        on_output  is called with each Chunk of output, in this thread or in the event loop. If it raises an exception,
                   the code is interrupted. Only one run with on_output, fresh or not, executes at a time.
        timeout    seconds from the start of the code, without the time that it waits for another run

        Other parameters are as for bash().
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
            asked.add_done_callback(lambda _: note({"exit_code": 0}))  # the reply follows all output
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
            if not asked.done():  # either method also cancels a run that has not started
                self._ask_and_forget("python.restart" if params["fresh"] else "python.interrupt", run=params["run"])
            raise

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

    # --- tools ---

    def _names(self, tools: Optional[Sequence[str]]) -> "Steps[Optional[List[str]]]":
        """Checks that the tools exist now, rather than when one is called. Raises UsageError."""
        if tools is None:
            return None
        names = list_of(tools, "tools")
        there = {each["name"] for each in (yield self._ask("tools.list", {}))["tools"]} if names else ()
        for name in names:
            if name not in there:
                raise UsageError(
                    f"no client of the session offers a tool {name!r}",
                    hint="tools must be a list of names; add_tool() offers a function.",
                )
        return names

    def _add_tool(self, tool: ToolLike, loop: Optional[asyncio.AbstractEventLoop]) -> "Steps[Tool]":
        made = tool_of(tool)
        yield from Tools.of(self._server).register(self.name, made, loop)
        return made

    @operation
    def remove_tool(self, name: str) -> "Steps[None]":
        """Removes a tool, so that it can no longer be called."""
        yield self._ask("tools.unregister", {"name": name})
        Tools.of(self._server).drop(self.name, name)

    # --- history and audit ---

    @operation
    def history(self, limit: int = 100, *, name: Optional[str] = None) -> "Steps[List[HistoryRow]]":
        """Returns commands, runs of code and file calls, the newest first.

        name  a method, such as "python.run", whose calls to return; default: all
        """
        rows = yield from self._rows("history.list", limit, {"name": name})
        return [
            HistoryRow(r["id"], r["name"], r["started_ms"], r["ended_ms"], parsed(r["params"]), parsed(r["result"]))
            for r in rows
        ]

    @operation
    def audit(self, limit: int = 100, *, kind: Optional[str] = None) -> "Steps[List[AuditRow]]":
        """Returns denials, kills, limits and grants, the newest first.

        kind  a kind of event, such as "denial", to return; default: all
        """
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
        """Describes the session: its state, mounts, limits and layers."""
        return dict((yield self._ask("session.show", {})))

    @operation
    def stop(self) -> "Steps[None]":
        """Ends all processes of the session. Files, keys and history are kept, and the next use starts it again."""
        yield self._ask("session.stop", {})

    @operation
    def remove(self) -> "Steps[None]":
        """Removes the session with all its files, even if it has a name."""
        yield from remove_steps(self._server, self.name)


class Sandbox(SandboxApi, SyncFace):
    """A throwaway sandbox, or a lasting one with a name.

        with Sandbox() as box:
            print(box.bash("echo $((6 * 7))").check().stdout)

    Without a name, its session is removed by close(), at the end of the `with`, or at the latest with this program.

    With a name, the session is found or made, and stays. An existing session keeps the settings that it was made with.
    If you pass a setting with another value, ExistsError is raised. Settings that you do not pass may have any value.

    policy      a preset's name, a file's path (with a "/"), or a policy as a dict
    workspace   a host directory that becomes /workspace; default: a directory of the session
    tools       typed callables that code inside may call
    timeout     seconds that a command may take, or text such as "10m"
    memory      bytes of memory, or text such as "2GiB"
    idle, tier  see holt-create(1)
    env         environment variables of every command
    read_only, read_write   lists of host paths, or of PATH:TARGET
    holt        path of the program; default: $HOLT, or holt in the PATH
    server      a Server to share with other sandboxes

    A Sandbox can be used from any thread.
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
        """Starts a command, and does not wait for its end. Text is a line of bash; a list is a command's arguments.

        input     makes stdin a pipe, for write() and close_stdin(); otherwise stdin is empty
        terminal  makes its stdin, stdout and stderr a terminal of rows and columns; all output is then stdout
        owned     kills it when this program ends; otherwise it keeps running in a lasting session

        Other parameters are as for bash().
        """
        return drive(self._spawn(  # type: ignore[no-any-return]
            command, cwd, env, input, terminal, rows, columns, timeout, output_max, owned, tools
        ))

    def process(self, id: str) -> Process:
        """Returns an existing process, even of another client, for example of `holt exec --detach`. Its output starts
        with the oldest kept bytes. Raises MissingError."""
        return drive(self._found(id))  # type: ignore[no-any-return]

    @staticmethod
    def sessions(*, holt: Optional[str] = None, server: Optional[Server] = None) -> List[SessionInfo]:
        """Lists all sessions, including throwaway ones. Sandbox(name) opens one of them."""
        return drive(_sessions(holt, server))

    def add_tool(self, tool: ToolLike) -> Tool:
        """Offers a function to code inside."""
        return drive(self._add_tool(tool, None))

    def close(self) -> None:
        """Removes a throwaway session. A lasting session keeps running."""
        drive(self._close())

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class AsyncSandbox(SandboxApi, AsyncFace):
    """A Sandbox for asyncio. Open it by `async with`, or by `await AsyncSandbox(...).open()`.

        async with AsyncSandbox() as box:
            print((await box.bash("uname")).check().stdout)

    Cancelling a task kills the command that it waits for. Tools that are coroutines run in this event loop.
    """

    _process = AsyncProcess
    _is_open = False

    async def open(self: S) -> S:
        """Makes the session, or finds an existing one by its name."""
        if not self._is_open:  # type: ignore[attr-defined]
            await drive_async(self._open(asyncio.get_running_loop()))
            self._is_open = True  # type: ignore[attr-defined]
        return self

    def _ask(self, method: str, params: Mapping[str, Any], urgent: bool = False) -> Request:
        self._check_open()
        return super()._ask(method, params, urgent)

    def _check_open(self) -> None:
        if self._lease is None:
            raise UsageError("the sandbox is not open yet", hint="Write async with AsyncSandbox() as box: ...")

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
        """Starts a command; see Sandbox.spawn()."""
        return await drive_async(self._spawn(
            command, cwd, env, input, terminal, rows, columns, timeout, output_max, owned, tools
        ))

    async def process(self, id: str) -> AsyncProcess:
        """Returns an existing process; see Sandbox.process()."""
        return await drive_async(self._found(id))

    @staticmethod
    async def sessions(*, holt: Optional[str] = None, server: Optional[Server] = None) -> List[SessionInfo]:
        """Lists all sessions; see Sandbox.sessions()."""
        return await drive_async(_sessions(holt, server))

    async def add_tool(self, tool: ToolLike) -> Tool:
        """Offers a function to code inside."""
        return await drive_async(self._add_tool(tool, asyncio.get_running_loop()))

    async def close(self) -> None:
        """Closes the sandbox; see Sandbox.close()."""
        await drive_async(self._close())

    async def __aenter__(self: S) -> S:
        return await self.open()  # type: ignore[attr-defined,no-any-return]

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
