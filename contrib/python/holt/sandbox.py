# SPDX-License-Identifier: Apache-2.0
"""A sandbox, which is a new or an existing session of holt."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import os
import secrets
import threading
from typing import Any, Dict, List, Mapping, NoReturn, Optional, Sequence, TypeVar, Union

from ._face import Path, list_of
from ._hints import hint_beside, hint_for_python
from ._interpreter import InterpreterApi
from ._lease import Lease, remove_steps
from ._operations import AsyncFace, Steps, SyncFace, drive, drive_async, operation
from ._request import Request
from ._server import Server
from ._settings import Policy, Settings, Size
from ._times import Time
from ._venv import Venv
from ._warnings import warn
from .errors import HoltError, UsageError
from .files import AsyncFiles, Files
from .kv import AsyncKv, Kv
from .mount import AsyncMount, Mount
from .process import AsyncProcess, Process
from .questions import OnAsk, Questions, check_on_ask
from .routes import AsyncRoutes, Routes
from .rows import AuditRow, HistoryRow, SessionInfo
from .shell import AsyncShell, Shell
from .tools import Tool, ToolLike, Tools, tool_of, tools_of

S = TypeVar("S", bound="SandboxApi")


def _sessions(holt: Optional[str], server: Optional[Server]) -> "Steps[List[SessionInfo]]":
    asked = server or Server(holt)
    try:
        answer = yield asked.submit("session.list", {})
        return [SessionInfo(each["name"], each["state"]) for each in answer["sessions"]]
    finally:
        if asked is not server:
            asked.close()


_BY_POLICY = {
    **dict.fromkeys(("hide", "protect", "etc", "tmpfs", "tmp_size", "rootfs", "allow_wide"), "filesystem"),
    **dict.fromkeys(("pids", "open_files", "file_size", "kill_after", "output"), "limits"),
    **dict.fromkeys(("publish", "proxy", "upstream", "sni", "ask_timeout"), "network"),
}
"""Fields of a policy that have no parameter of their own, and the groups of these fields."""

_OTHER_NAMES = {"ro": "read_only", "rw": "read_write", "network": "net", "allow": "net", "cwd": "workspace"}


def _unknown(face: str, name: str) -> str:
    if name in _BY_POLICY:
        return f"{face}() has no parameter {name!r}; write policy={{{_BY_POLICY[name]!r}: {{{name!r}: ...}}}}"
    if name in _OTHER_NAMES:
        return f"{face}() has no parameter {name!r}; did you mean {_OTHER_NAMES[name]!r}?"
    near = difflib.get_close_matches(name, list(inspect.signature(SandboxApi.__init__).parameters)[1:-1], n=1)
    return f"{face}() has no parameter {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


class SandboxApi(InterpreterApi):
    """The common base of Sandbox and AsyncSandbox. Sandbox documents the parameters."""

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
        net: Sequence[str] = (),
        routes: Sequence[Union[str, Mapping[str, Any]]] = (),
        helpers: "Sequence[Union[str, os.PathLike[str]]]" = (),
        allow_degraded: Sequence[str] = (),
        venv: Venv = None,
        holt: Optional[str] = None,
        server: Optional[Server] = None,
        on_ask: Optional[OnAsk] = None,
        create: bool = True,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            raise TypeError(_unknown(type(self).__name__, next(iter(unknown))))
        check_on_ask(on_ask)
        if name is None and not create:
            raise UsageError("create=False needs the name of a session", hint='Write Sandbox("NAME", create=False).')
        self.name = f"py-{os.getpid()}-{secrets.token_hex(6)}" if name is None else name
        self._settings = Settings(
            policy, workspace, timeout, memory, idle, tier, env, tuple(list_of(read_only, "read_only")),
            tuple(list_of(read_write, "read_write")), tuple(list_of(allow_degraded, "allow_degraded")), venv,
            tuple(list_of(net, "net")), on_ask is not None, tuple(list_of(routes, "routes")),
            tuple(list_of(helpers, "helpers")),
        )
        super().__init__(server or Server(holt, writable=self._settings.writable()), self.name)
        self.throwaway = name is None
        self.warnings: List[str] = []
        self._own_server = server is None
        self._on_ask, self._must_exist = on_ask, not create
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
            if self._must_exist:
                yield self._ask("session.show", {})
            yield from self._create(params)
            if self.throwaway:
                # The open connection keeps the started session in use. A running process would do so, too. But while a
                # process runs, holt cannot tell whether it or the host has changed a protected path.
                yield self._ask("session.start", {})
                self._lease.hold((yield self._ask("session.show", {})).get("directory"))
            for tool in self._tools:
                yield from Tools.of(self._server).register(self.name, tool, loop)
            if self._on_ask:
                yield from Questions.of(self._server).attend(self.name, self._on_ask, loop)
        except BaseException:
            self._lease.end()
            raise

    def _create(self, params: Mapping[str, Any]) -> "Steps[None]":
        try:
            answer = yield self._server.submit("session.create", params)
        except HoltError as error:
            if error.message.startswith("policy_name: "):
                error.reword(error.message.replace("policy_name", "policy", 1))  # the argument of this package
            if self._on_ask:
                error.reword(error.message.replace(" network.ask (", " network.ask, which on_ask sets (", 1))
            error.hint = hint_beside(error.hint, self._settings.policy)
            raise
        self.warnings = [hint_for_python(each) or "" for each in answer.get("warnings", ())]
        for each in self.warnings:
            warn(f"{self.name}: {each}")

    def _close(self) -> "Steps[None]":
        with self._lock:
            if self._closed:
                return
            self._closed = True
        Tools.of(self._server).drop(self.name)
        if self._on_ask:
            Questions.of(self._server).drop(self.name, self._on_ask)
        if self._lease:
            yield from self._lease.end_steps()

    # --- tools ---

    def _add_tool(self, tool: ToolLike, loop: Optional[asyncio.AbstractEventLoop]) -> "Steps[Tool]":
        made = tool_of(tool)
        yield from Tools.of(self._server).register(self.name, made, loop)
        return made

    @operation
    def remove_tool(self, name: str) -> "Steps[None]":
        """Removes a tool of this sandbox."""
        yield self._ask("tools.unregister", {"name": name})
        Tools.of(self._server).drop(self.name, name)

    # --- history and audit ---

    @operation
    def history(self, limit: int = 100, *, name: Optional[str] = None) -> "Steps[List[HistoryRow]]":
        """Returns commands, runs of code, file calls and calls of tools, the newest first.

        name  returns only calls of this method, such as "python.run"; default: all
        """
        rows = yield from self._rows("history.list", limit, {"name": name})
        return [
            HistoryRow(r["id"], r["name"], r["started_ms"], r["ended_ms"], r["params"], r["result"])
            for r in rows
        ]

    @operation
    def audit(self, limit: int = 100, *, kind: Optional[str] = None) -> "Steps[List[AuditRow]]":
        """Returns events such as denials, kills, grants, connections and requests of routes, the newest first.

        kind  returns only events of this kind, such as "denial"; default: all
        """
        rows = yield from self._rows("audit.list", limit, {"kind": kind})
        return [AuditRow(r["id"], r["at_ms"], r["kind"], r["detail"]) for r in rows]

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
        """Ends all processes of the session. The session keeps its files, keys and history, and its next use
        starts it again."""
        yield self._ask("session.stop", {})

    @operation
    def remove(self) -> "Steps[None]":
        """Removes the session with all its files, even if the session has a name."""
        yield from remove_steps(self._server, self.name)


class Sandbox(SandboxApi, SyncFace):
    """A throwaway sandbox, or a lasting one with a name.

        with Sandbox() as box:
            print(box.bash("echo $((6 * 7))").check().stdout)

    Without a name, the session is removed by close(), at the end of the `with`, or at the latest when this program
    ends.

    With a name, the sandbox opens the session of this name or creates it, and the session stays. An existing session
    keeps the settings that it was created with. If you pass a setting with another value, the sandbox raises
    ExistsError. Settings that you do not pass may have any value.

    policy      a preset's name, a file's path (with a "/" or the suffix ".json"), or a policy as a dict
    workspace   a host directory that becomes /workspace; default: a directory of the session
    tools       typed callables that code inside may call
    timeout     seconds that a command may take, or text such as "10m"
    memory      bytes of memory, or text such as "2GiB"
    idle, tier  see holt-create(1)
    env         environment variables of every command
    read_only, read_write   lists of host paths, or of PATH:TARGET
    net         hosts that commands can reach: rules such as "example.org:443", or sets such as "@python". They are added
                to network.allow of the policy; see "NETWORK RULES" in holt-policy(5).
    routes      services that commands can use with a credential of the host: names such as "openai", or dicts with the members
                of "ROUTES" in holt-policy(5). Commands do not get the credential. The variables with credentials are read
                from the environment of this program.
    helpers     Python files of the host that code inside can import: paths, or "FILE:MODULE". The sandbox gets copies.
    on_ask      a function that is asked about each host that no rule allows, while the connection waits. It takes a
                Question, and returns "once", "session" or "no". It runs in a thread of this program. If it raises an
                exception or returns another value, the answer is "no", and the error goes to the logger "holt".
    venv        makes the packages of a virtual environment importable inside: True for the one of this program, or its
                directory. Only its site-packages is shown, read-only. Warns if its version of Python is not the one
                inside.
    allow_degraded   layers of the sandbox that may be missing if this host refuses them
    holt        path of the program; default: $HOLT, or holt in the PATH
    server      a Server to share with other sandboxes
    create      False: open only a session that exists; without one, raise MissingError

    Settings without a parameter are fields of the policy: policy={"filesystem": {"hide": [".env"]}}.

    The attribute `warnings` lists likely mistakes, such as a missing path to hide. Each is also issued as a
    RuntimeWarning. If the session existed before, the list is empty.

    A Sandbox can be used from any thread.
    """

    _process = Process
    files: Files
    mount: Mount
    kv: Kv
    shell: Shell
    routes: Routes

    def _made(self) -> None:
        drive(self._open())
        self.files = Files(self._server, self.name)
        self.mount = Mount(self._server, self.name)
        self.kv = Kv(self._server, self.name)
        self.shell = Shell(self._server, self.name)
        self.routes = Routes(self._server, self.name)

    def spawn(
        self, command: "Union[str, Sequence[Path]]", *, cwd: Optional[Path] = None,
        env: Optional[Mapping[str, str]] = None, input: bool = False, terminal: bool = False, rows: int = 24,
        columns: int = 80, timeout: Optional[Time] = None, output_max: Optional[int] = None, owned: bool = False,
        tools: Optional[Sequence[str]] = None,
    ) -> Process:
        """Starts a command, and does not wait for its end. Text is a line of bash; a list is a program and its arguments.

        input     makes stdin a pipe, for write() and close_stdin(); otherwise stdin is empty
        terminal  makes the command's stdin, stdout and stderr a terminal of rows and columns; all output is then stdout
        owned     kills the command when this program ends; otherwise the command keeps running in a lasting session

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

    Cancelling a task kills the command that it waits for. Tools and an on_ask that are coroutines run in this event
    loop.
    """

    _process = AsyncProcess
    _is_open = False

    async def open(self: S) -> S:
        """Creates the session, or opens an existing one by its name."""
        if not self._is_open:  # type: ignore[attr-defined]
            await drive_async(self._open(asyncio.get_running_loop()))
            self._is_open = True  # type: ignore[attr-defined]
        return self

    def _ask(self, *args: Any, **kwargs: Any) -> Request:
        self._check_open()
        return super()._ask(*args, **kwargs)

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

    @property
    def shell(self) -> AsyncShell:
        return self._part(AsyncShell)  # type: ignore[no-any-return]

    @property
    def routes(self) -> AsyncRoutes:
        return self._part(AsyncRoutes)  # type: ignore[no-any-return]

    async def spawn(
        self, command: "Union[str, Sequence[Path]]", *, cwd: Optional[Path] = None,
        env: Optional[Mapping[str, str]] = None, input: bool = False, terminal: bool = False, rows: int = 24,
        columns: int = 80, timeout: Optional[Time] = None, output_max: Optional[int] = None, owned: bool = False,
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
