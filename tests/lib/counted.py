# SPDX-License-Identifier: Apache-2.0
"""Runs a holt command, and counts the system calls of holt and its init.

    counted.py FILE HOLT run -- true       writes the number to FILE

The command in the sandbox is the third program that is executed, after holt and init. It is not traced."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

TRACEME, SYSCALL, DETACH, SETOPTIONS = 0, 24, 17, 0x4200
# TRACESYSGOOD, FORK, VFORK, CLONE, EXEC, EXITKILL
OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x100000
EVENT_EXEC, WALL = 4, 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def start(argv: list[str]) -> int:
    pid = os.fork()
    if pid == 0:
        if libc.ptrace(TRACEME, 0, None, None) < 0:
            os._exit(126)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(argv[0], argv)
    return pid


def count(argv: list[str]) -> tuple[int, int]:
    """Returns the number of calls, and the exit status of the command."""
    first, calls, programs, code = start(argv), 0, 0, 0
    inside: dict[int, bool] = {}  # whether the next stop of the process is the end of a call
    _, status = os.waitpid(first, 0)
    if os.WIFEXITED(status):
        sys.exit("this host refuses ptrace(2)")
    libc.ptrace(SETOPTIONS, first, None, OPTIONS)
    libc.ptrace(SYSCALL, first, None, None)
    while True:
        try:
            pid, status = os.waitpid(-1, WALL)
        except ChildProcessError:
            return calls, code
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status) if pid == first else code
            continue
        stopped, event, passed = os.WSTOPSIG(status), status >> 16, 0
        if stopped == signal.SIGTRAP | 0x80:
            inside[pid] = not inside.get(pid, False)
            calls += inside[pid]
        elif event == EVENT_EXEC:
            programs += 1
        elif not event and stopped != signal.SIGSTOP:
            passed = stopped
        libc.ptrace(DETACH if event == EVENT_EXEC and programs == 3 else SYSCALL, pid, None, passed)


if __name__ == "__main__":
    number, result = count(sys.argv[2:])
    Path(sys.argv[1]).write_text(str(number))
    sys.exit(result)
