# SPDX-License-Identifier: Apache-2.0
"""The default preset allows ptrace(2) among the processes of one sandbox. It opens nothing else: the filter holds for a
traced process, a kill reaches it, and neither init nor the keeper is involved. test_proc.py and test_session_monitors.py
have the attacks on init and the monitors."""

from __future__ import annotations

import ctypes
import platform
import struct
import time

import pytest

from lib.hostile import Attack, Run
from lib.sandbox import Holt
from lib.sessions import Session, until

ATTACKS = [
    Attack("trace", "suspend-filter", control="root"),
    Attack("trace", "read-filter", control="root"),
    Attack("trace", "exchange-at-entry"),
    Attack("trace", "exchange-in-filter"),
    Attack("trace", "dump-core", control="none", why_none="before Linux 5.16, the host would have to be restarted"),
]
if platform.machine() == "x86_64":
    ATTACKS.append(Attack("trace", "make-segment"))


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_tracing_opens_nothing(attack: Attack, holds: Run) -> None:
    holds(attack)


@pytest.mark.parametrize("attack", ("attach", "copy-memory"))
def test_no_process_of_the_host_can_be_traced(attack: str, holds: Run, stranger: str) -> None:
    assert holds(Attack("processes", attack, (stranger,), control="root")).detail == "ESRCH"


# The parent is init or a monitor, which then traces the process and never continues it.
TRACED_BY_PARENT = """
import ctypes, os, signal
print(ctypes.CDLL(None).ptrace(0, 0, 0, 0), flush=True)
os.kill(os.getpid(), signal.SIGUSR1)
"""


def test_a_command_that_init_traces_ends_in_time(holt: Holt) -> None:
    result = holt(["run", "--timeout", "1s", "--", "python3", "-c", TRACED_BY_PARENT], timeout=30)

    assert result.out == "0\n" and result.report and result.report["cause"] == "timeout"


def test_a_command_that_its_monitor_traces_ends_in_time(session: Session) -> None:
    with session.rpc() as rpc:
        result = rpc.call("exec", argv=["python3", "-c", TRACED_BY_PARENT], timeout_ms=1000)

    assert (result["stdout"], result["cause"]) == ("0\n", "timeout")
    assert session.exec("echo", "next").ok().out == "next\n"


# Traces the process with the given name and never looks at it again. The kernel then shows its end to nobody else.
TRACE = """
import ctypes, sys, time
print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0), flush=True)
time.sleep(1000)
"""


def test_a_tracer_can_not_hide_the_end_of_another_command(session: Session) -> None:
    victim = session.detach("exec sleep 2000")
    until(lambda: session.sh("pgrep -x sleep").code == 0, "the first command")
    pid = session.sh("pgrep -x sleep").ok().out.strip()
    tracer = session.detach(f"exec python3 -c '{TRACE}' {pid}")
    until(lambda: session.sh(f"grep -q 'TracerPid:.*[1-9]' /proc/{pid}/status").code == 0, "its tracer")

    began = time.monotonic()
    session("kill", victim).ok()
    until(lambda: session.ps().get(victim, {}).get("state") != "running", "its end")
    assert time.monotonic() - began < 15
    assert session.ps()[tracer]["state"] == "running"


# Three processes block all signals, leave the session, and trace each other in a ring with all options of ptrace(2) but
# one. The kernel lets SIGKILL through to a traced process. With PTRACE_O_TRACEEXIT, it would not: test_trace_exits.py.
RING = """
import ctypes, mmap, os, signal, struct, time
libc, shared, count = ctypes.CDLL(None), mmap.mmap(-1, 64), 3
signal.pthread_sigmask(signal.SIG_SETMASK, range(1, 65))
read = lambda i: struct.unpack_from("=i", shared, 4 * i)[0]
for i in range(count):
    if os.fork() == 0:
        os.setsid()
        struct.pack_into("=i", shared, 4 * i, os.getpid())
        while not (other := read((i + 1) % count)):
            time.sleep(0.001)
        traced = libc.ptrace(0x4206, other, 0, 0x10001f)
        libc.ptrace(0x4207, other, 0, 0)
        os.write(1, b"%d " % traced)
        time.sleep(1000)
time.sleep(1000)
"""


def test_processes_that_trace_each_other_die_in_time(holt: Holt) -> None:
    result = holt(["run", "--timeout", "1s", "--", "python3", "-c", RING], timeout=60)

    assert "0 " in result.out and result.report and result.report["cause"] == "timeout"


def test_processes_of_a_session_that_trace_each_other_die_in_time(session: Session) -> None:
    with session.rpc() as rpc:
        result = rpc.call("exec", argv=["python3", "-c", RING], timeout_ms=1000)

    assert "0 " in result["stdout"] and result["cause"] == "timeout"
    assert session.sh("ps -e -o comm= | grep -c python3").out == "0\n"


# --- the keeper, which runs outside ---


def filters_of(pid: int) -> list[list[tuple[int, int, int, int]]]:
    """The system call filters of a process, which only root may read. The newest comes first."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(0x4206, pid, None, None) == 0
    try:
        assert libc.ptrace(0x4207, pid, None, None) == 0  # PTRACE_INTERRUPT
        libc.waitpid(pid, None, 0x40000000)
        found = []
        while (count := libc.ptrace(0x420C, pid, len(found), None)) > 0:
            buffer = ctypes.create_string_buffer(8 * count)
            assert libc.ptrace(0x420C, pid, len(found), buffer) == count
            found.append(list(struct.iter_unpack("=HBBI", buffer.raw)))
        if not found:
            pytest.skip(f"this kernel shows no filter: errno {ctypes.get_errno()}")
        return found
    finally:
        libc.ptrace(17, pid, None, None)


def answer(program: list[tuple[int, int, int, int]], nr: int) -> int:
    """The result of a filter for a call with only zeros as arguments."""
    arch = 0xC000003E if platform.machine() == "x86_64" else 0xC00000B7
    data = struct.pack("=IIQ6Q", nr, arch, 0, *[0] * 6)
    at = value = 0
    while True:
        code, yes, no, k = program[at]
        at += 1
        if code == 0x20:
            value = struct.unpack_from("=I", data, k)[0]
        elif code == 0x54:
            value &= k
        elif code == 0x05:
            at += k
        elif code == 0x06:
            return k
        else:
            test = {0x15: value == k, 0x25: value > k, 0x35: value >= k, 0x45: bool(value & k)}[code]
            at += yes if test else no


@pytest.mark.identities("root")
def test_the_keeper_can_not_trace(session: Session) -> None:
    session.sh("true").ok()
    numbers = {"ptrace": 101, "getpid": 39} if platform.machine() == "x86_64" else {"ptrace": 117, "getpid": 172}
    filters = filters_of(session.show()["keeper_pid"])

    assert 0x50001 in [answer(f, numbers["ptrace"]) for f in filters]
    assert all(answer(f, numbers["getpid"]) == 0x7FFF0000 for f in filters)
