# SPDX-License-Identifier: Apache-2.0
"""Code for a session's interpreter."""

from __future__ import annotations

import importlib.util
import re
import signal
from pathlib import Path

import pytest

from lib.sessions import Bound, Json


def run(rpc: Bound, code: str, **params: object) -> Json:
    return rpc.call("python.run", code=code, **params)


def value(rpc: Bound, code: str, **params: object) -> str:
    result = run(rpc, code, **params)
    assert result["error"] is None, result
    return result["result"]


def needs_module(module: str) -> pytest.MarkDecorator:
    """The tests run with the distribution's python3, which is that of the sessions, too."""
    return pytest.mark.skipif(not importlib.util.find_spec(module), reason=f"the host's python3 has no {module}")


def pending(pid: int, number: signal.Signals) -> bool:
    """Whether the signal is pending for the process."""
    mask = re.search(r"^ShdPnd:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    return bool(mask and int(mask[1], 16) >> (number - 1) & 1)
