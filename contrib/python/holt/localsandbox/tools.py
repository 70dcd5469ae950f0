# SPDX-License-Identifier: Apache-2.0
"""Tools that code in execute_python() may call: from host_tools import call, search."""

from __future__ import annotations

import dataclasses
import inspect
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from .._docstring import docstring_of, fitting
from ..errors import ToolError
from ..schema import to_json
from ..tools import Tool, hints_of, parameters_of, with_defaults
from ._convert import Converter, Mismatch, arguments_of
from ._types import JsonValue

ToolHandler = Callable[[Any], Any]
"""A function of the payload, or a coroutine function."""
ToolCallable = Callable[..., Any]


@dataclass
class ToolDefinition:
    name: str
    description: str
    input_schema: Dict[str, Any]
    output_schema: Optional[Dict[str, Any]] = None
    timeout_ms: int = 30000


@dataclass
class PythonToolset:
    """Definitions of tools, and their handlers by name. A handler takes the payload. Raises ValueError if a
    handler is missing.
    """

    definitions: Sequence[ToolDefinition]
    handlers: Mapping[str, ToolHandler]

    def __post_init__(self) -> None:
        names = [each.name for each in self.definitions]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two tools are called {name!r}")
        if set(names) != set(self.handlers):
            raise ValueError(f"definitions are for {sorted(names)}, and handlers for {sorted(self.handlers)}")

    @property
    def manifest(self) -> str:
        """A text that identifies the tools. The interpreter is reused while it stays the same."""
        return json.dumps([vars(each) for each in self.definitions], sort_keys=True)

    def tools(self) -> List[Tool]:
        return [
            Tool(
                d.name, d.description, dict(d.input_schema), self.handlers[d.name], d.output_schema, d.timeout_ms,
                checked_by_client=getattr(self.handlers[d.name], "converts", False),
            )
            for d in self.definitions
        ]


ToolsetInput = Union[PythonToolset, Sequence[ToolCallable]]


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(tool.name, tool.description, tool.input_schema, tool.output_schema, tool.timeout_ms)


def _tool_of(function: Callable[..., Any]) -> Tool:
    doc = docstring_of(function).strip().splitlines()
    tool = Tool.of(function, description=fitting(doc[0]) if doc else "")
    return dataclasses.replace(tool, handler=_handler_of(function), checked_by_client=True)


def _handler_of(function: Callable[..., Any]) -> ToolHandler:
    """Returns a handler that converts the payload and the result by the function's hints."""
    hints = hints_of(function)
    parameters = parameters_of(function, hints)
    converters = {each.name: Converter(each.hint) for each in parameters}
    required = {each.name for each in parameters if not each.default()}
    result = Converter(hints["return"]) if "return" in hints else None

    def returned(value: Any) -> JsonValue:
        try:
            made: JsonValue = result.json_of(value) if result else to_json(value)
            return made
        except ValueError as error:
            raise ToolError(f"result: {error}", "validation_error") from error

    async def awaited(value: Any) -> JsonValue:
        return returned(await value)

    def handle(payload: Any) -> Any:
        try:
            given = arguments_of(payload or {}, converters, required)
        except Mismatch as error:
            raise ToolError(str(error), "validation_error") from error
        value = function(**with_defaults(given, parameters))
        return awaited(value) if inspect.isawaitable(value) else returned(value)

    handle.converts = True  # type: ignore[attr-defined]
    return handle


def function_to_tool_definition(function: Callable[..., Any]) -> ToolDefinition:
    """Makes a definition from a function's name, hints, and the first line of its docstring. Descriptions of parameters
    go to their schemas. Raises ValueError for a parameter without a hint, and for *args and **kwargs."""
    return _definition(_tool_of(function))


def functions_to_toolset(functions: Sequence[ToolCallable]) -> PythonToolset:
    """Makes a toolset of typed callables: functions, methods or coroutines."""
    made = [_tool_of(each) for each in functions]
    return PythonToolset([_definition(each) for each in made], {each.name: each.handler for each in made})


def toolset_of(toolset: Optional[ToolsetInput]) -> PythonToolset:
    if toolset is None:
        return PythonToolset([], {})
    if isinstance(toolset, PythonToolset):
        return toolset
    if isinstance(toolset, Mapping) or not isinstance(toolset, Iterable):
        raise TypeError(f"a toolset must be a list of callables or a PythonToolset, not {toolset!r}")
    return functions_to_toolset(list(toolset))


def preview(value: JsonValue) -> str:
    """Returns a value as JSON, cut to 200 characters."""
    return json.dumps(value, ensure_ascii=False, default=str)[:200]
