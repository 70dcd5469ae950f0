# SPDX-License-Identifier: Apache-2.0
"""Debuggers and sanitizers work inside."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import Session, until
from lib.tools import needs, needs_peer

# holt refuses on an older kernel (runner/outcome/exit-tracer.c).
since_5_16 = pytest.mark.skipif(
    tuple(map(int, platform.release().split("-")[0].split(".")[:2])) < (5, 16), reason="needs Linux 5.16"
)

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


@needs_peer("gdb")
def test_gdb_runs_a_program(holt: Holt) -> None:
    result = holt(["run", "--", "gdb", "--batch", "-ex", "run", "true"], timeout=60).ok()
    assert "exited normally" in result.out
    assert result.denials == {}


# strace traces the exits of processes. Two processes that trace each other's exits could not be killed, so holt lets one process
# at a time do that. tests/escape/test_trace_exits.py has the attacks.


@needs("strace")
@since_5_16
def test_strace_follows_a_command(holt: Holt) -> None:
    result = holt(["run", "--", "strace", "true"]).ok()
    assert "+++ exited with 0 +++" in result.err
    assert result.denials == {}

    result = holt(["run", "--", "strace", "-f", "-e", "trace=execve", "sh", "-c", "/bin/true; /bin/true"]).ok()
    assert result.err.count("+++ exited with 0 +++") == 3
    assert result.denials == {}


@needs("strace")
@since_5_16
def test_strace_works_again_and_again_in_a_session(session: Session) -> None:
    with session.rpc() as rpc:
        for _ in range(3):
            result = rpc.call("exec", argv=["strace", "-f", "sh", "-c", "/bin/true; /bin/true"])
            assert result["exit_code"] == 0 and result["stderr"].count("+++ exited with 0 +++") == 3
            assert not result.get("denials")


@needs("strace")
@since_5_16
def test_strace_attaches_to_another_command_of_a_session(session: Session) -> None:
    session.detach("exec sleep 2000")
    until(lambda: session.sh("pgrep -x sleep").code == 0, "the first command")
    tracer = session.detach("exec strace -o /tmp/trace -p $(pgrep -x sleep)")
    until(lambda: session.sh("grep -q 'TracerPid:.*[1-9]' /proc/$(pgrep -x sleep)/status").code == 0, "its tracer")
    session.sh("pkill -x sleep").ok()
    until(lambda: session.ps().get(tracer, {}).get("state") != "running", "the end of strace")
    assert "+++ killed by SIGTERM +++" in session.sh("cat /tmp/trace").ok().out


# Traces the exit of a new process, and executes the next arguments meanwhile.
TRACE_EXIT = "import ctypes, os, sys; pid = os.fork() or __import__('time').sleep(99); " \
             "r = ctypes.CDLL(None).ptrace(0x4206, pid, 0, 0x40); " \
             "r = r or os.spawnvp(os.P_WAIT, sys.argv[1], sys.argv[1:]); os.kill(pid, 9); exit(r != 0)"
TRUE = ("true",)
TRACE_AGAIN = ("python3", "-c", TRACE_EXIT, "true")


@pytest.mark.parametrize("flags, command", (((), TRACE_AGAIN), (("--syscalls", "strict"), TRUE)), ids=("two at a time", "strict"))
def test_a_refused_tracer_is_told_what_it_needs(holt: Holt, flags: tuple[str, ...], command: tuple[str, ...]) -> None:
    result = holt(["run", *flags, "--", "python3", "-c", TRACE_EXIT, *command])
    assert result.code == 1
    assert result.denials["ptrace"]["grant"] == "--allow-syscall ptrace"
    assert "--allow-syscall ptrace" in result.err


@pytest.mark.parametrize("denied", ("ptrace", "@ptrace"))
def test_no_process_traces_exits_if_the_policy_denies_ptrace(holt: Holt, denied: str) -> None:
    result = holt(["run", "--deny-syscall", denied, "--", "python3", "-c", TRACE_EXIT, *TRUE])
    assert result.code == 1 and result.denials["ptrace"]["count"] == 1


@since_5_16
def test_the_group_of_ptrace_is_granted_in_the_same_way(holt: Holt) -> None:
    command = ["run", "--syscalls", "strict", "--allow-syscall", "@ptrace", "--", "python3", "-c", TRACE_EXIT]
    assert holt([*command, *TRUE]).ok().denials == {}
    assert holt([*command, *TRACE_AGAIN]).denials["ptrace"]["count"] == 1
