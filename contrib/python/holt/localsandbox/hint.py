# SPDX-License-Identifier: Apache-2.0
"""The description of execute_python() for a model."""

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
