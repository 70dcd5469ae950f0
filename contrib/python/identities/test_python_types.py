# SPDX-License-Identifier: Apache-2.0
"""Checks the types of the Python SDK with mypy, which contrib/packages installs for the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lib.paths import PROJECT


@pytest.mark.slow
def test_mypy_finds_no_wrong_type(scratch: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", scratch / "mypy", "-p", "holt"]
    environment = {**os.environ, "MYPYPATH": str(PROJECT / "contrib" / "python")}
    done = subprocess.run(command, env=environment, cwd=scratch, text=True, capture_output=True, timeout=300)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found" in done.stdout
