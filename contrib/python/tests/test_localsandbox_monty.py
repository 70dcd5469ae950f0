# SPDX-License-Identifier: Apache-2.0
"""The runtime Monty: tools are functions of the code."""

from __future__ import annotations

import asyncio
from typing import Any, Iterator, List

import pytest

from holt.localsandbox import LocalSandbox, PythonRuntime, PythonToolset, ToolDefinition


def lookup(name: str, limit: int = 3) -> List[str]:
    """Looks a name up."""
    return [name] * limit


def fails(why: str) -> None:
    """Fails."""
    raise OSError(why)


TOOLS = [lookup, fails]


@pytest.fixture
def monty(bridge: None) -> Iterator[LocalSandbox]:
    with LocalSandbox(python_runtime="monty") as local:
        yield local


def test_the_runtime_can_t_be_changed() -> None:
    for runtime in (PythonRuntime.MONTY, "monty"):
        local = LocalSandbox(python_runtime=runtime)
        assert local.python_runtime is PythonRuntime.MONTY
        with pytest.raises(AttributeError):
            local.python_runtime = PythonRuntime.PYODIDE  # type: ignore[misc]
    with pytest.raises(ValueError):
        LocalSandbox(python_runtime="perl")


def test_tools_are_functions(monty: LocalSandbox) -> None:
    done = monty.execute_python("print(lookup(name='a', limit=2), lookup(name='b'))", toolset=TOOLS)
    assert (done.stdout, done.error, done.exit_code) == ("['a', 'a'] ['b', 'b', 'b']\n", None, 0)
    done = monty.execute_python("print(lookup.__name__, lookup.__doc__)", toolset=TOOLS)
    assert done.stdout == "lookup Looks a name up.\n"
    entries = [e for e in monty.history() if e.name == "python_tool_call"]
    assert [e.parameters["toolName"] for e in entries] == ["lookup", "lookup"]


@pytest.mark.parametrize("code, error", [
    ("lookup('a')", "TypeError: lookup() takes keyword arguments only: lookup(name=value)"),
    ("fails(why='so')", "RuntimeError: [internal_error] OSError: so"),
    ("lookup(nome='a')", "RuntimeError: [validation_error] "),
    ("1/0", "ZeroDivisionError: division by zero"),
    ("none", "NameError: name 'none' is not defined"),
    ("import host_tools", "ModuleNotFoundError: No module named 'host_tools'"),
    ("from host_tools import call", "ModuleNotFoundError: No module named 'host_tools'"),
    ("call('lookup', {'name': 'a'})", "NameError: name 'call' is not defined"),
])
def test_errors(code: str, error: str, monty: LocalSandbox) -> None:
    done = monty.execute_python(f"print('before')\n{code}", toolset=TOOLS)
    assert (done.stdout, done.exit_code) == ("before\n", 1)
    assert done.error and done.error.startswith(error.partition("(name=")[0]) and done.error in done.stderr


def test_the_code_can_catch_errors(monty: LocalSandbox) -> None:
    code = "try:\n    fails(why='so')\nexcept RuntimeError as error:\n    print(error)"
    assert monty.execute_python(code, toolset=TOOLS).stdout == "[internal_error] OSError: so\n"


def test_searching(monty: LocalSandbox) -> None:
    code = "a, = tool_search('look up a name'); print(sorted(a), a['name'], len(tool_search('up', limit=1)), tool_search(''))"
    assert monty.execute_python(code, toolset=TOOLS).stdout == "['description', 'name', 'score'] lookup 1 []\n"
    code = "print(tool_search('look', detail='full')[0]['input_schema']['required'])"
    assert monty.execute_python(code, toolset=TOOLS).stdout == "['name']\n"
    assert monty.execute_python("print(tool_search('look'))").stdout == "[]\n"
    error = monty.execute_python("tool_search('x', detail='long')", toolset=TOOLS).error
    assert error and error.startswith("ValueError: ")


def test_variables_stay(monty: LocalSandbox) -> None:
    monty.execute_python("x = 1\ndef f(): return x + 1", toolset=TOOLS)
    assert monty.execute_python("print(f())", toolset=TOOLS).stdout == "2\n"
    assert monty.execute_python("from pathlib import Path; Path('/data/f').write_text('t')").error is None
    assert monty.read_file("f") == "t" and monty.bash("cat f").stdout == "t"


def test_functions_are_back_after_a_crash(monty: LocalSandbox) -> None:
    monty.execute_python(
        "import os, threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), os._exit(1))).start()", toolset=[lookup],
    )
    monty.bash("sleep 0.5")
    assert monty.execute_python("print(lookup(name='a', limit=1))", toolset=[lookup]).stdout == "['a']\n"


def test_other_tools_have_other_functions(monty: LocalSandbox) -> None:
    assert monty.execute_python("print(lookup(name='a', limit=1))", toolset=[lookup]).stdout == "['a']\n"
    assert str(monty.execute_python("lookup", toolset=[fails]).error).startswith("NameError")
    assert str(monty.execute_python("lookup").error).startswith("NameError")


def test_programs_inside_have_their_own_modules(monty: LocalSandbox) -> None:
    """The functions belong to the code, and not to other programs."""
    assert monty.bash("python3 -c 'print(\"tool_search\" in globals())'").stdout == "False\n"


def test_monty_refuses_arguments_that_it_does_not_have(monty: LocalSandbox) -> None:
    with pytest.raises(ValueError, match="preload_packages is not supported by the runtime 'monty'"):
        monty.execute_python("1", preload_packages=["numpy"])
    for cwd in ("/data/sub", "/tmp", "sub"):
        with pytest.raises(ValueError, match="cwd must be /data"):
            monty.execute_python("1", cwd=cwd)
    for name in ("my-tool", "a.b", "class", "tool_search"):
        tools = PythonToolset([ToolDefinition(name, "", {"type": "object"})], {name: lambda payload: 1})
        with pytest.raises(ValueError, match="rename the tool"):
            monty.execute_python("1", toolset=tools)
    for fine in ({"cwd": "/data"}, {"cwd": "/data/"}, {"preload_packages": []}):
        assert monty.execute_python("import os; print(os.getcwd())", **fine).stdout == "/data\n"  # type: ignore[arg-type]


def test_coroutines(bridge: None) -> None:
    async def twice(x: int) -> int:
        await asyncio.sleep(0)
        return 2 * x

    async def main() -> None:
        async with LocalSandbox(python_runtime="monty") as monty:
            done: Any = await monty.aexecute_python("print(twice(x=4))", toolset=[twice])
            assert done.stdout == "8\n"

    asyncio.run(main())


def test_the_other_runtime_has_no_functions(local: LocalSandbox, bridge: None) -> None:
    assert str(local.execute_python("lookup", toolset=[lookup]).error).startswith("NameError")
    assert local.execute_python("from host_tools import call, search\nprint(search(''))", toolset=[lookup]).stdout == "[]\n"
