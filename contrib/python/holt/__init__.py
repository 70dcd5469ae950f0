# SPDX-License-Identifier: Apache-2.0
"""Sandboxes for commands and Python code that you do not trust.

    from holt import Sandbox

    with Sandbox() as box:
        box.files.write("data.csv", "a,b\\n1,2\\n")
        print(box.bash("wc -l < data.csv").check().stdout)
        print(box.python("open('data.csv').read()").check().result)

holt.localsandbox runs programs that were written for the package localsandbox.
"""

from ._program import find_holt
from ._server import Server
from .errors import (
    BusyError,
    ClosedError,
    CommandFailed,
    CommandNotFoundError,
    DataError,
    ExistsError,
    HoltError,
    HoltNotFoundError,
    LayerError,
    LimitError,
    MissingError,
    NoKeyError,
    NoProcessError,
    NotExecutableError,
    PolicyError,
    ProtocolError,
    SetupError,
    ToolError,
    UsageError,
)
from .files import Copied, FileInfo, Link, Match
from .mount import Listing, RemoteFile, RemoteItem
from .process import AsyncProcess, Chunk, Process, ProcessInfo
from .questions import Allow, Question
from .results import Denial, LimitHit, PythonError, PythonResult, Result, ShellResult, Unreached, Usage
from .routes import Route
from .rows import AuditRow, HistoryRow, SessionInfo
from .sandbox import AsyncSandbox, Sandbox
from .tools import Tool

__version__ = "0.1.0"

__all__ = [
    "Allow", "AsyncProcess", "AsyncSandbox", "AuditRow", "BusyError", "Chunk", "ClosedError", "CommandFailed",
    "CommandNotFoundError", "Copied", "DataError", "Denial", "ExistsError", "FileInfo", "HistoryRow", "HoltError",
    "HoltNotFoundError", "LayerError", "LimitError", "LimitHit", "Listing", "Match", "MissingError", "NoKeyError",
    "NoProcessError", "NotExecutableError", "PolicyError", "Process", "ProcessInfo", "ProtocolError", "PythonError", "PythonResult", "Question",
    "RemoteFile", "RemoteItem", "Result", "Route", "Sandbox", "Server", "SessionInfo", "SetupError", "Tool", "ToolError", "Unreached",
    "Usage", "UsageError", "find_holt",
]
