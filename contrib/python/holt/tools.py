# SPDX-License-Identifier: Apache-2.0
"""Functions of this program that code inside may call.

Theory of operation. tools.register registers a tool with a session's keeper; the tool belongs to our connection. A call
is a request of the server (tool.call), whose payload the keeper has checked by the schema. The reader's thread passes
it to a thread of a small pool. A coroutine runs in its event loop, if one is known.

tool.cancel cancels a call whose caller has gone. A call that waits for a thread is removed, so that code inside cannot
pile up calls. A coroutine is cancelled. A running thread cannot be cancelled, so its late reply is dropped. Calls are
identified by session and id, because each session counts its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import threading
import typing
from dataclasses import dataclass, field
from typing import Annotated, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _pydantic
from ._docstring import DESCRIPTION_MAX, documentation_of, fitting
from ._face import list_of
from ._operations import Steps
from ._connection import Connection
from ._pool import Pool
from ._server import Server
from .errors import HoltError, ToolError, UsageError
from .schema import Definitions, JsonSchema, from_json, object_schema, said_default, said_of, schema_of, to_json

TIMEOUT_MS = 30000

SCHEMA_MAX = 64 * 1024
"""Maximum bytes of a schema that holt accepts."""

Handler = Callable[[Any], Any]
"""A function that takes the payload and returns a JSON value. It may be a coroutine function."""


@dataclass(frozen=True)
class Tool:
    """A registered tool. Tool.of(function) makes one from a typed callable."""

    name: str
    description: str
    input_schema: JsonSchema
    handler: Handler = field(compare=False)
    output_schema: Optional[JsonSchema] = None
    timeout_ms: int = TIMEOUT_MS
    checked_by_client: bool = False
    """Whether the handler checks its payload and its result, so that holt does not check them by the schemas."""

    @classmethod
    def of(
        cls, function: Callable[..., Any], *, name: Optional[str] = None, description: Optional[str] = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> "Tool":
        """Makes a tool from a callable's hints, name and docstring. Raises ValueError for a parameter without a type, for
        *args and **kwargs, and for types without a JSON equivalent. Code inside cannot set arguments that
        functools.partial() has fixed.

        The docstring becomes the description. Its sections about parameters (in the style of Google, NumPy or Sphinx)
        go into the schema instead. Annotated[T, "text"] and pydantic's Field take precedence. Texts that
        are too long are cut.
        """
        hints = hints_of(function)
        parameters = parameters_of(function, hints)
        definitions = Definitions()
        properties = {
            p.name: said_default(_schema_of(function, p.name, p.hint, definitions), *p.default()) for p in parameters
        }
        required = [p.name for p in parameters if not p.default()]
        doc = documentation_of(function, inspect.signature(_bare(function)).parameters)
        said = {p.name: said_of(p.hint) or doc.parameters.get(p.name) for p in parameters}
        returns = hints.get("return", inspect.Signature.empty)
        return cls(
            name or name_of(function),
            fitting(doc.description) if description is None else description,
            _described(definitions.added_to(object_schema(properties, required)), said),
            _handler_of(function, parameters),
            None if returns is inspect.Signature.empty else _returned(function, returns) or None,
            timeout_ms,
        )


ToolLike = Union[Tool, Callable[..., Any]]


def name_of(function: Any) -> str:
    name = getattr(function, "__name__", None) or getattr(getattr(function, "func", None), "__name__", None)
    if not name or name == "<lambda>":
        raise ValueError(f"{function!r} has no name; pass one: Tool.of(function, name=...)")
    return str(name)


def _bare(function: Any) -> Any:
    """Returns the function behind any functools.partial()."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def hints_of(function: Any) -> Dict[str, Any]:
    bare = _bare(function)
    if not (inspect.isfunction(bare) or inspect.ismethod(bare) or inspect.isbuiltin(bare)):
        bare = inspect.unwrap(bare) if hasattr(bare, "__wrapped__") else type(bare).__call__  # functools.cache()
    try:
        return typing.get_type_hints(bare, include_extras=True)
    except NameError as error:
        raise ValueError(f"{name_of(function)}: a hint can't be resolved: {error}") from error


def _schema_of(function: Any, parameter: str, hint: Any, definitions: Optional[Definitions] = None) -> JsonSchema:
    try:
        return schema_of(hint, definitions)
    except ValueError as error:
        where = "the result" if parameter == "return" else f"parameter {parameter}"
        raise ValueError(f"{name_of(function)}: {where}: {error}") from error


def _returned(function: Any, hint: Any) -> JsonSchema:
    definitions = Definitions(given=True)
    return definitions.added_to(_schema_of(function, "return", hint, definitions))


def _described(schema: JsonSchema, texts: Mapping[str, Optional[str]]) -> JsonSchema:
    """Adds the descriptions of properties to a schema, cut so that all of them fit."""
    for room in (DESCRIPTION_MAX, 4096, 1024, 256, 64):
        properties = dict(schema["properties"])
        for name, text in texts.items():
            if text:
                properties[name] = {**properties[name], "description": fitting(text, room)}
        described = {**schema, "properties": properties}
        if len(json.dumps(described, ensure_ascii=False, default=str).encode(errors="replace")) <= SCHEMA_MAX:
            return described
    return schema


def _host_only(function: Any) -> Sequence[str]:
    """Returns the parameters that no model may set, because they limit this program's memory; see host_only()."""
    while isinstance(function, functools.partial):
        function = function.func
    return tuple(getattr(function, "host_only", ()))


class Parameter(NamedTuple):
    """A parameter of a tool: its name, its type hint, and its default value in the function, which may be a Field."""

    name: str
    hint: Any
    said: Any

    def default(self) -> "Tuple[Any, ...]":
        """Returns the default value in a tuple, which is empty if there is none."""
        if self.said is not inspect.Parameter.empty and not _pydantic.is_field(self.said):
            return (self.said,)
        fields = [each for each in getattr(self.hint, "__metadata__", ()) if _pydantic.is_field(each)]
        return next((found for found in map(_pydantic.default_of, reversed(fields)) if found), ())


def parameters_of(function: Any, hints: Mapping[str, Any]) -> List[Parameter]:
    """Returns the parameters that code inside can set. Raises ValueError."""
    given = {*(function.keywords if isinstance(function, functools.partial) else ()), *_host_only(function)}
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name not in given]
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise ValueError(f"{name_of(function)}: a tool can't have *{each.name}: name each parameter")
        if each.kind is each.POSITIONAL_ONLY:
            raise ValueError(f"{name_of(function)}: parameter {each.name} can't be given by name")
        if each.name not in hints:
            raise ValueError(f"{name_of(function)}: parameter {each.name} has no type hint")
    return [
        Parameter(p.name, Annotated[hints[p.name], p.default] if _pydantic.is_field(p.default) else hints[p.name], p.default)
        for p in parameters
    ]


def _handler_of(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Handler:
    hints = {p.name: p.hint for p in parameters}

    def arguments(payload: Any) -> Dict[str, Any]:
        try:
            given = {name: from_json(value, hints[name]) for name, value in (payload or {}).items()}
        except KeyError as error:
            raise ToolError(f"parameter {error} does not exist", "validation_error") from error
        except (TypeError, ValueError) as error:
            raise ToolError(str(error), "validation_error") from error
        return with_defaults(given, parameters)

    async def awaited(value: Any) -> Any:
        return to_json(await value)

    def handle(payload: Any) -> Any:
        value = function(**arguments(payload))
        return awaited(value) if inspect.isawaitable(value) else to_json(value)

    return handle


def with_defaults(given: Dict[str, Any], parameters: Sequence[Parameter]) -> Dict[str, Any]:
    """Adds the default values that are in a Field. Python adds the others itself."""
    for each in parameters:
        if each.name not in given and (each.said is inspect.Parameter.empty or _pydantic.is_field(each.said)):
            given.update({each.name: value for value in each.default()})
    return given


def tool_of(tool: ToolLike) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if not callable(tool):
        raise UsageError(f"a tool must be a callable or a Tool, not {tool!r}")
    return Tool.of(tool)


# --- running calls ---

_pool = Pool("holt tool")


class _Call:
    """An unanswered call."""

    def __init__(self, key: Tuple[str, str]) -> None:
        self.key, self.cancelled = key, threading.Event()
        self.cancel: Callable[[], Any] = self.cancelled.set


class _Put(NamedTuple):
    """A registered tool, the event loop for its coroutines, and whether to cancel these."""

    tool: Tool
    loop: Optional[asyncio.AbstractEventLoop]
    interrupt: bool


class Tools:
    """The tools that one server has registered, for all its sessions."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._tools: Dict[Tuple[str, str], _Put] = {}
        self._running: Dict[Tuple[str, str], _Call] = {}  # by session and id

    @staticmethod
    def of(server: Server) -> "Tools":
        """Returns the Tools of a server, and makes them at the first call."""
        with _tools_lock:
            tools = getattr(server, "_tools", None)
            if tools is None:
                tools = Tools(server)
                server._tools = tools  # type: ignore[attr-defined]
                server.on_requests["tool.call"], server.on_cancel = tools._on_request, tools._on_cancel
        return tools

    def put(
        self, session: str, tool: Tool, loop: Optional[asyncio.AbstractEventLoop] = None, *, interrupt: bool = True
    ) -> Dict[str, Any]:
        """Handles calls of a tool from now on. Returns the parameters for tools.register.

        interrupt  cancels a coroutine when its caller has gone
        """
        with self._lock:
            self._tools[session, tool.name] = _Put(tool, loop, interrupt)
        params: Dict[str, Any] = {
            "session": session, "name": tool.name, "description": tool.description,
            "input_schema": tool.input_schema, "timeout_ms": tool.timeout_ms,
        }
        if tool.checked_by_client:
            params["checked_by_client"] = True
        return params if tool.output_schema is None else {**params, "output_schema": tool.output_schema}

    def register(
        self, session: str, tool: Tool, loop: Optional[asyncio.AbstractEventLoop] = None, *, interrupt: bool = True
    ) -> "Steps[None]":
        """Registers a tool. If the server refuses it, an earlier tool of the same name stays."""
        key = session, tool.name
        with self._lock:
            before = self._tools.get(key)
        params = self.put(session, tool, loop, interrupt=interrupt)
        try:
            yield self._server.submit("tools.register", params)
            self._server.repeat("tools.register", session, tool.name, params)
        except HoltError as error:
            with self._lock:
                if before:
                    self._tools[key] = before
                else:
                    self._tools.pop(key, None)
            if isinstance(error, UsageError):
                error.reword(f"the tool {tool.name!r}: {error.message}")
            raise

    def drop(self, session: str, name: Optional[str] = None) -> None:
        with self._lock:
            dropped = [k for k in self._tools if k[0] == session and name in (None, k[1])]
            for key in dropped:
                del self._tools[key]
        for _, each in dropped:
            self._server.repeat("tools.register", session, each, None)

    def _on_request(self, connection: Connection, message: Mapping[str, Any]) -> None:
        """Handles a call in the reader's thread."""
        params, number = message.get("params") or {}, message["id"]
        with self._lock:
            found = self._tools.get((params.get("session", ""), params.get("name", "")))
        call = _Call(self._key_of(params))
        with self._lock:
            self._running[call.key] = call
        _pool.submit(lambda: self._work(connection, number, params, found, call), (self, call.key[0]), call)

    @staticmethod
    def _key_of(params: Mapping[str, Any]) -> Tuple[str, str]:
        return str(params.get("session")), str(params.get("call"))

    def _on_cancel(self, params: Mapping[str, Any]) -> None:
        with self._lock:
            call = self._running.pop(self._key_of(params), None)
        if call and not _pool.withdraw((self, call.key[0]), call):
            call.cancel()

    def _work(
        self, connection: Connection, number: Any, params: Mapping[str, Any], found: Any, call: _Call
    ) -> None:
        if call.cancelled.is_set():
            return
        answer = self._answer(params, found, call)
        with self._lock:
            if self._running.get(call.key) is call:  # a new keeper counts from 1 again
                del self._running[call.key]
        if not call.cancelled.is_set():
            self._server.answer(connection, number, answer)

    def _answer(self, params: Mapping[str, Any], found: Any, call: _Call) -> Dict[str, Any]:
        if not found:
            return _error(ToolError(f"tool {params.get('name')!r} does not exist", "permission_error"))
        try:
            return {"result": {"value": to_json(self._call(found, params.get("payload"), call))}}
        except BaseException as error:
            return _error(error)

    def _call(self, put: _Put, payload: Any, call: _Call) -> Any:
        value, loop = put.tool.handler(payload), put.loop
        if not inspect.isawaitable(value):
            return value
        if loop is None or loop.is_closed() or not loop.is_running():
            return asyncio.run(self._await_here(value, call, put.interrupt))
        future = asyncio.run_coroutine_threadsafe(_awaited(value), loop)
        if put.interrupt:
            self._cancel_by(future.cancel, call)
        return future.result()

    async def _await_here(self, value: Any, call: _Call, interrupt: bool) -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(value)
        if interrupt:
            self._cancel_by(lambda: loop.call_soon_threadsafe(task.cancel), call)
        return await task

    def _cancel_by(self, how: Callable[[], Any], call: _Call) -> None:
        def cancel() -> None:
            call.cancelled.set()
            with contextlib.suppress(RuntimeError):  # the loop has just ended
                how()

        with self._lock:
            if not call.cancelled.is_set() and self._running.get(call.key) is call:
                call.cancel = cancel
                return
        how()  # the call was cancelled before


_tools_lock = threading.Lock()


async def _awaited(value: Any) -> Any:
    return await value


def _error(error: BaseException) -> Dict[str, Any]:
    """Returns the error reply for an exception. Except for a ToolError, the text starts with the class, because
    "KeyError: 'x'" is clearer than "'x'"."""
    kind = error.type if isinstance(error, ToolError) else "internal_error"
    try:
        text = str(error)
    except BaseException:  # the payload may be in the exception, and str() runs code of the exception
        text = "the exception has no text"
    if not isinstance(error, ToolError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    text = text[:4000].encode(errors="replace").decode().replace("\0", "\ufffd")  # messages must not contain a NUL
    return {"error": {"code": -32000, "message": text, "data": {"type": kind}}}


def tools_of(tools: Optional[Sequence[ToolLike]]) -> List[Tool]:
    """Returns tools as a list of Tool. Raises UsageError if two have the same name."""
    if callable(tools) or isinstance(tools, Tool):
        raise UsageError(f"tools must be a list, not {tools!r}", hint="Write tools=[...].")
    made = [tool_of(each) for each in list_of(tools or (), "tools")]
    names = [each.name for each in made]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two tools are called {name!r}")
    return made
