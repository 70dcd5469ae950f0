# SPDX-License-Identifier: Apache-2.0
"""Descriptions of execute_python() for a model."""

from ._types import PythonRuntime

PYTHON_HINT = """\
Python code runs in a sandbox, in the system's CPython with its standard library and the installed packages. You \
cannot install other packages, and there is no network.
- Variables, functions and imports stay between calls.
- Only printed output is returned: use print().
- Files are in /data, the working directory. They stay between calls, and bash sees the same files.
- input() does not work. Threads and subprocesses do. A call may take 60 seconds.
- If tools are offered: from host_tools import call, search. search("words about the task") finds them. \
call("name", {"argument": value}) calls one and returns its result, or raises RuntimeError.
"""

MONTY_HINT = """\
Python code runs in a sandbox. Use the standard library only: third-party packages are not available, and there is no \
network.
- Variables and functions stay between calls.
- Only printed output is returned: use print().
- Files are in /data, the working directory. Read and write them with pathlib, for example \
Path("/data/x").read_text(). They stay between calls, and bash sees the same files.
- input() does not work. A call may take 60 seconds.
- If tools are offered, they are functions. Call them with keyword arguments: name(argument=value). A call returns the \
tool's result, or raises RuntimeError.
- tool_search("words about the task") finds tools. With detail="full" it includes the schemas of their arguments.
"""

HINTS = {PythonRuntime.PYODIDE: PYTHON_HINT, PythonRuntime.MONTY: MONTY_HINT}
