# SPDX-License-Identifier: Apache-2.0
"""Commands of a sandbox."""

from __future__ import annotations

import os  # get_type_hints() looks it up for Path
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union
from concurrent.futures import Future

from ._face import Content, Part, Path, argv_of, as_bytes, check_words, line_of, list_of
from ._lease import pause
from ._operations import Steps, operation
from ._times import Time, milliseconds_of
from .errors import HoltError, NoProcessError, SetupError, UsageError
from .process import OnOutput, ProcessApi, ProcessInfo, Watched, check_on_output, process_info_of
from .results import Result, result_of

TERMINAL = 7  # fds 0 to 2

_START_WITHIN = 30.0  # seconds

_INTERPRETER = "/run/holt/python/holt_interpreter.py"


class CommandsApi(Part):
    """The part of a sandbox that runs commands. Sandbox documents it."""

    _process: Any

    def _spawned(
        self, method: str, params: Mapping[str, Any], started: Optional[Callable[[Any], None]] = None
    ) -> "Steps[Any]":
        """Starts a command. If the caller gives up meanwhile, the command is killed as soon as its id is known.

        started  is called with the request when its reply has come, and before later messages are processed
        """
        deadline = time.monotonic() + _START_WITHIN
        while True:
            try:
                return (yield from self._spawned_once(method, params, started))
            except HoltError as error:
                # Very many commands start at the same time, so init has not yet read all earlier requests.
                if error.errno != "EAGAIN" or time.monotonic() > deadline:
                    raise
            yield from pause()

    def _spawned_once(
        self, method: str, params: Mapping[str, Any], started: Optional[Callable[[Any], None]]
    ) -> "Steps[Any]":
        future = self._ask(method, params, then=started)

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
        stdin: Optional[Content], timeout: Optional[Time], output_max: Optional[int], keep: Optional[str],
        tools: Optional[Sequence[str]], on_output: Optional[OnOutput] = None,
    ) -> "Steps[Result]":
        """Runs a command by process.spawn and process.wait instead of exec. So it can be killed when the caller gives up,
        and its input may be longer than one message."""
        begun = self._server.commands.begin()
        try:
            yield begun
            return (yield from self._exec_begun(command, cwd, env, stdin, timeout, output_max, keep, tools, on_output))
        finally:
            self._server.commands.end(begun)

    def _exec_begun(
        self, command: Mapping[str, Any], cwd: Optional[Path], env: Optional[Mapping[str, str]],
        stdin: Optional[Content], timeout: Optional[Time], output_max: Optional[int], keep: Optional[str],
        tools: Optional[Sequence[str]], on_output: Optional[OnOutput],
    ) -> "Steps[Result]":
        check_words(command, env)
        check_on_output(self, on_output)
        names = yield from self._names(tools)
        given = as_bytes(stdin) if stdin is not None else b""  # raises an error before the command starts
        params = {
            **command, "cwd": cwd, "env": env, "input": True if given else None, "timeout_ms": milliseconds_of(timeout),
            "output_max": output_max, "keep": keep, "tools": names,
        }
        watched = Watched(self._server, self._session) if on_output else None
        if watched:
            params["watch"] = True
        try:
            started = yield from self._spawned("process.spawn", params, watched.started if watched else None)
            if "ended" in started:  # it never ran, and the keeper may have ended
                return result_of(started["ended"])
            process = ProcessApi(self._server, self._session, started["id"], started["pid"])
            return (yield from self._ended(process, given, watched, on_output))
        finally:
            if watched:
                watched.end()

    def _ended(
        self, process: ProcessApi, given: bytes, watched: Optional[Watched], on_output: Optional[OnOutput]
    ) -> "Steps[Result]":
        """Gives a command its input and waits for its end. If the caller gives up, the command is killed."""
        try:
            if given:
                yield from self._feed(process, given)
            asked = self._ask("process.wait", {"id": process.id, "output": True, "base64": True}, urgent=True)
            if watched and on_output:
                yield from watched.output.tell(on_output)
            answer = yield asked
        except BaseException as error:
            if isinstance(error, HoltError) and (error.data.get("gone") or isinstance(error, NoProcessError)):
                raise SetupError(
                    f"{process.id} has ended, because the session was stopped", hint="history() shows how it ended."
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
        stdin: Optional[Content] = None, timeout: Optional[Time] = None, output_max: Optional[int] = None,
        keep: Optional[str] = None, tools: Optional[Sequence[str]] = None, on_output: Optional[OnOutput] = None,
    ) -> "Steps[Result]":
        """Runs a line of bash to its end, and returns a Result even if it fails. Result.check() raises for a failure.

        cwd         working directory; relative to the workspace
        env         environment variables in addition to the session's
        stdin       input as text or bytes; default empty
        timeout     seconds, or text such as "500ms" or "2m"; limited by the policy; 0 or less ends the command at once
        output_max  bytes to keep of each stream; default 1 MiB, at most 8 MiB
        keep        the part of the output to keep: "head" or "tail"
        tools       names of tools that the command may call, also of other clients; default: the tools of this sandbox
        on_output   is called with each Chunk of output, in this thread or in the event loop. If it raises an exception,
                    the command is killed. AsyncSandbox awaits a coroutine function.
        """
        return (yield from self._exec(
            {"shell": line_of(command)}, cwd, env, stdin, timeout, output_max, keep, tools, on_output
        ))

    @operation
    def exec(
        self, argv: Sequence[Path], *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Content] = None, timeout: Optional[Time] = None, output_max: Optional[int] = None,
        keep: Optional[str] = None, tools: Optional[Sequence[str]] = None, on_output: Optional[OnOutput] = None,
    ) -> "Steps[Result]":
        """Runs a command to its end without a shell. Other parameters are as for bash(). Raises CommandNotFoundError.
        Raises UsageError if argv is text instead of a list."""
        return (yield from self._exec(
            {"argv": argv_of(argv)}, cwd, env, stdin, timeout, output_max, keep, tools, on_output
        ))

    def _spawn(
        self, command: "Union[str, Sequence[Path]]", cwd: Optional[Path], env: Optional[Mapping[str, str]], input: bool,
        terminal: bool, rows: int, columns: int, timeout: Optional[Time], output_max: Optional[int],
        owned: bool, tools: Optional[Sequence[str]],
    ) -> "Steps[Any]":
        what: Dict[str, Any] = {"shell": command} if isinstance(command, str) else {"argv": argv_of(command)}
        check_words(what, env)
        names = yield from self._names(tools)
        started = yield from self._spawned("process.spawn", {
            **what, "cwd": cwd, "env": env, "input": True if input else None, "owned": owned or None,
            **({"terminal": TERMINAL, "rows": rows, "columns": columns} if terminal else {}),
            "timeout_ms": milliseconds_of(timeout), "output_max": output_max,
            "tools": names,
        })
        process = self._process(self._server, self._session, started["id"], started["pid"])
        yield from process._watch()
        return process

    @operation
    def processes(self) -> "Steps[List[ProcessInfo]]":
        """Lists the processes of all clients, the newest first: running ones, and the last that ended. A session at
        rest has none, and is not started."""
        listed = yield self._ask("process.list", {})
        return [process_info_of(each) for each in listed["processes"]]

    @operation
    def allow(self, *grants: str, once: bool = False) -> "Steps[None]":
        """Adds rules to the network of the session, which keeps them: box.allow("net:example.org:443").

        Each grant is "net:" and a rule, or "net:@" and a named set. In a live session, it applies immediately. A
        session at rest is not started: the grant applies from its next start on. Raises UsageError for a live session
        without a network.

        once  each grant allows one connection, and ends when the session stops; a UsageError for a session at rest
        """
        yield self._ask("session.allow", {"grants": list(grants), "once": once or None})

    @operation
    def forward(self, port: int, host_port: int = 0, address: Optional[str] = None) -> "Steps[str]":
        """Lets programs of the host connect to a port inside, and returns the address for them, such as "127.0.0.1:49152".

        host_port is the port of the host; 0 is a free one. address is the host's address, by default 127.0.0.1. The
        port stays open until the session stops. A second call without host_port returns the same address.
        """
        answer = yield self._ask("ports.forward", {"port": port, "host_port": host_port or None, "address": address})
        return str(answer["address"])

    @operation
    def close_port(self, port: int, host_port: Optional[int] = None) -> "Steps[None]":
        """Closes the ports of the host that forward() has opened for the port inside: all of them, or only
        host_port. Raises MissingError if there is nothing to close."""
        yield self._ask("ports.close", {"port": port, "host_port": host_port})

    @operation
    def ports(self) -> "Steps[Dict[str, int]]":
        """Returns the port inside for each address of the host that leads into the session: {"127.0.0.1:49152": 3000}."""
        return {each["address"]: each["port"] for each in (yield self._ask("process.list", {}))["ports"]}

    def _found(self, id: str) -> "Steps[Any]":
        for each in (yield from CommandsApi.processes.steps(self)):
            if each.id == id:
                if each.command.endswith(_INTERPRETER):
                    raise UsageError(
                        f"{id} is the interpreter", hint="Use python(), interrupt_python() and restart_python()."
                    )
                process = self._process(self._server, self._session, each.id, each.pid)
                yield from process._watch()
                return process
        raise NoProcessError(f"process {id!r} does not exist", hint="processes() lists those that do.")

    def _names(self, tools: Optional[Sequence[str]]) -> "Steps[Optional[List[str]]]":
        """Returns the names of the tools. Raises UsageError if one does not exist, before the command starts."""
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
