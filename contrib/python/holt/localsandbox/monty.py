# SPDX-License-Identifier: Apache-2.0
"""Makes the tools functions of the code in holt's interpreter, for the runtime Monty. names.py imports it there."""

from __future__ import annotations

import importlib.util
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would slow down the interpreter's start
    from typing import Any, Callable, List


def _function(name: str, said: str, call: "Callable[[str, Any], Any]") -> "Callable[..., Any]":
    def tool(*args: "Any", **arguments: "Any") -> "Any":
        if args:
            raise TypeError(f"{name}() takes keyword arguments only: {name}(argument=value)")
        return call(name, arguments)

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = said
    return tool


class _NoHostTools:
    """Explains why host_tools, the interface of the other runtime, is missing."""

    @staticmethod
    def find_spec(name: str, path: "Any" = None, target: "Any" = None) -> None:
        if name == "host_tools":
            raise ModuleNotFoundError("No module named 'host_tools': tools are functions, found by tool_search()", name=name)


def install(file: str) -> None:
    """Adds the functions that the file lists to the code's names."""
    with open(file) as listed:
        tools = json.load(listed)
    holts = os.path.dirname(os.path.abspath(str(sys.modules["holt_displays"].__file__)))
    spec = importlib.util.spec_from_file_location("_host_tools", f"{holts}/host_tools.py")
    assert spec and spec.loader
    host_tools = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(host_tools)

    def tool_search(query: str, detail: str = "brief", limit: int = 10) -> "List[Any]":
        """Finds tools by words about the task. With detail="full", the result has their schemas."""
        found: List[Any] = host_tools.search(query, detail, limit)
        return found

    namespace = vars(sys.modules["__main__"])
    namespace.update({name: _function(name, said, host_tools.call) for name, said in tools.items()})
    namespace["tool_search"] = tool_search
    sys.meta_path.insert(0, _NoHostTools)
