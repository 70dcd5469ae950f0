# SPDX-License-Identifier: Apache-2.0
"""Debuggers and sanitizers work inside."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lib.sandbox import Holt

LEAK = """
#include <stdlib.h>
int main(int argc, char **argv) {
        static void *kept;
        kept = malloc(10);
        return argc > 1 && (kept = malloc((size_t)(argv[1][0] - '0'))) == NULL;
}
"""


@pytest.fixture
def sanitized(workspace: Path) -> Path:
    """A program with AddressSanitizer. It leaks if it gets an argument."""
    source, program = workspace / "leak.c", workspace / "leak"
    source.write_text(LEAK)
    command = [*os.environ.get("CC", "cc").split(), "-fsanitize=address", "-O0", source, "-o", program]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"this compiler has no AddressSanitizer: {built.stderr[-200:]}")
    program.chmod(0o755)
    return program


def test_a_program_with_address_sanitizer_runs(holt: Holt, sanitized: Path) -> None:
    """When such a program ends, LeakSanitizer traces it by ptrace(2)."""
    result = holt(["run", "--", sanitized]).ok()
    assert result.denials == {}

    result = holt(["run", "--", sanitized, "9"])
    assert result.code != 0 and "detected memory leaks" in result.err


def test_strace_is_told_what_it_needs(holt: Holt) -> None:
    """strace traces the exits of processes. Two processes that trace each other's exits could not be killed, so holt refuses
    that."""
    trace = "import ctypes, os; pid = os.fork() or __import__('time').sleep(99); " \
            "r = ctypes.CDLL(None).ptrace(0x4206, pid, 0, 0x40); os.kill(pid, 9); exit(r != 0)"
    result = holt(["run", "--", "python3", "-c", trace])
    assert result.code == 1
    assert result.denials["ptrace"]["grant"] == "--allow-syscall ptrace"
    assert "--allow-syscall ptrace" in result.err
