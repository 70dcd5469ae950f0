# SPDX-License-Identifier: Apache-2.0
"""Introspection of the SDK's methods: hints, signatures, help(), and their use as tools."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import typing
from typing import Any, List

import pytest

from holt import AsyncProcess, AsyncSandbox, FileInfo, Process, PythonResult, Result, Sandbox, Tool
from holt.files import AsyncFiles, Files
from holt.kv import AsyncKv, Kv
from holt.mount import AsyncMount, Mount

FACES = [Sandbox, AsyncSandbox, Files, AsyncFiles, Kv, AsyncKv, Mount, AsyncMount, Process, AsyncProcess]


@pytest.mark.parametrize("face", FACES)
def test_every_method_has_hints_and_a_signature(face: Any) -> None:
    methods = [
        getattr(face, name) for name in dir(face) if not name.startswith("_") and not isinstance(
            inspect.getattr_static(face, name), property
        )
    ]
    methods = [each for each in methods if callable(each)]
    assert len(methods) > 3
    for method in methods:
        hints = typing.get_type_hints(method)
        signature = inspect.signature(method)
        if not inspect.ismethod(method):
            assert set(signature.parameters) - {"self"} == set(hints) - {"self", "return"}, method
        assert "return" in hints and "Steps" not in str(hints["return"]), method


def test_methods_look_as_they_are_called(box: Sandbox) -> None:
    faces: List[Any] = [box.bash, Sandbox.bash, AsyncSandbox.bash]
    for bash in faces:
        assert typing.get_type_hints(bash)["return"] is Result and typing.get_type_hints(bash)["command"] is str
        assert inspect.signature(bash).parameters["command"].annotation == "str"
    assert list(inspect.signature(box.bash).parameters) == list(inspect.signature(Sandbox.bash).parameters)[1:]
    assert typing.get_type_hints(box.python)["return"] is PythonResult
    assert typing.get_type_hints(box.files.list)["return"] == List[FileInfo]
    assert inspect.iscoroutinefunction(AsyncSandbox.bash) and not inspect.iscoroutinefunction(Sandbox.bash)
    assert Sandbox.bash(box, "echo hello").stdout == "hello\n"
    text = pydoc.plain(pydoc.render_doc(Sandbox.bash))
    assert "bash(self, command: 'str', *, cwd:" in text and "-> 'Result'" in text and "Runs a line of bash" in text
    assert "keep        the part of the output to keep" in pydoc.plain(pydoc.render_doc(Sandbox))


@pytest.mark.usefixtures("bridge")
def test_methods_are_tools(box: Sandbox) -> None:
    box.files.write("f", "text")
    tool = Tool.of(box.files.read, name="read_file")
    assert tool.input_schema["required"] == ["path"] and tool.output_schema == {"type": "string"}
    assert tool.input_schema["properties"]["path"] == {"type": "string"}
    box.add_tool(tool)
    box.add_tool(box.files.list)
    code = "from host_tools import call; (call('read_file', {'path': 'f'}), call('list', {})[0]['name'])"
    assert box.python(code).check().result == "('text', 'f')"


async def _async_methods_are_tools() -> None:
    async with AsyncSandbox() as box:
        await box.files.write("f", "text")
        await box.add_tool(Tool.of(box.files.read))
        code = "from host_tools import call; call('read', {'path': 'f'})"
        assert (await box.python(code)).check().result == "'text'"


@pytest.mark.usefixtures("bridge")
def test_async_methods_are_tools() -> None:
    asyncio.run(_async_methods_are_tools())
