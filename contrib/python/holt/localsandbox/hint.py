# SPDX-License-Identifier: Apache-2.0
"""What a model is told of execute_python()."""

PYTHON_HINT = """\
Python code runs in a sandbox, in the system's CPython with its standard library and the packages that are installed \
there; nothing else can be installed, and there is no network.
- Variables, functions and imports stay between calls.
- Only what is printed comes back: use print().
- Files are in /data, the working directory; what is written there stays, and bash sees it as well.
- input() does not work. Threads and subprocesses do. A call may take 60 seconds.
- Where there are tools: from host_tools import call, search. search("what is needed") finds them; \
call("name", {"argument": value}) calls one and returns its result, or raises RuntimeError.
"""
