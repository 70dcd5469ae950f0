# SPDX-License-Identifier: Apache-2.0
"""Processes that trace each other's exits in a ring (PTRACE_O_TRACEEXIT) could not be killed by anybody. So holt lets only one
process at a time trace exits (runner/outcome/exit-tracer.h). In each test, processes inside try to close a ring, and the
sandbox ends in time.

If a ring is closed, the process that has closed it opens it again at once. Otherwise a failing test would leave processes that
stay until the host restarts. For the same reason, no attack runs on the host as a control."""

from __future__ import annotations

import pytest

from lib.sandbox import HANGS, Holt
from lib.sessions import Session, until

# Each function returns whether the kernel has obeyed.
TRACE = """
import ctypes, mmap, os, signal, threading, time
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long] * 4
TRACEME, CONT, ATTACH, DETACH, SETOPTIONS, SEIZE, INTERRUPT = 0, 7, 16, 17, 0x4200, 0x4206, 0x4207
FORK, EXIT, WALL = 2, 0x40, 0x40000000
signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())

def ptrace(request, pid, data=0):
    return libc.ptrace(request, pid, 0, data) == 0

def seize(pid, options=EXIT):
    return ptrace(SEIZE, pid, options)

def attach(pid):
    assert ptrace(ATTACH, pid)
    os.waitpid(pid, WALL)
    done = ptrace(SETOPTIONS, pid, EXIT)
    assert ptrace(CONT, pid)
    return done

def undo(pid):
    ptrace(INTERRUPT, pid) or libc.syscall(200 if os.uname().machine == "x86_64" else 130, pid, signal.SIGSTOP)
    os.waitpid(pid, WALL)
    ptrace(DETACH, pid)

def tell(name, done):
    os.write(1, f"{name}={'granted' if done else 'refused'} ".encode())
    return done

def close_ring(name, trace, pid):
    tell(name, trace(pid)) and undo(pid)

def other(act):
    # Runs act in a child that never ends, and waits for that.
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        act()
        os.write(w, b"x")
        time.sleep(1000)
    os.read(r, 1)
    return pid
"""

RINGS = {
    # Each attaches to the other and sets the option at once.
    "seize": """
me = os.getpid()
child = other(lambda: tell("first", seize(me)))
close_ring("second", seize, child)
""",
    # Each attaches to the other, and sets the option later.
    "attach": """
me = os.getpid()
child = other(lambda: tell("first", attach(me)))
close_ring("second", attach, child)
""",
    # The child asks to be traced, and then traces its parent.
    "traceme": """
me, (r, w) = os.getpid(), os.pipe()
child = os.fork()
if child == 0:
    ptrace(TRACEME, 0)
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
    os.read(r, 1)
    close_ring("second", seize, me)
    time.sleep(1000)
os.waitpid(child, WALL)
tell("first", ptrace(SETOPTIONS, child, EXIT))
ptrace(CONT, child)
os.write(w, b"x")
""",
    # Each traces the next one. The last of them closes the ring.
    "three": """
a = os.getpid()
b = other(lambda: tell("first", seize(a)))
c = other(lambda: tell("second", seize(b)))
close_ring("third", seize, c)
""",
    # A child of the traced process is traced without any call of its tracer, and traces that one.
    "fork": """
me, (r, w) = os.getpid(), os.pipe()
def fork():
    os.read(r, 1)
    if os.fork() == 0:
        close_ring("second", seize, me)
        time.sleep(1000)
    time.sleep(1000)
child = os.fork()
if child == 0:
    fork()
tell("first", seize(child, EXIT | FORK))
os.write(w, b"x")
for i in range(2):
    ptrace(CONT, os.waitpid(-1, WALL)[0])
""",
    # A thread of the traced process traces the tracer.
    "thread": """
me = os.getpid()
def thread():
    t = threading.Thread(target=close_ring, args=("second", seize, me))
    t.start()
    t.join()
r, w = os.pipe()
child = os.fork()
if child == 0:
    os.read(r, 1)
    thread()
    time.sleep(1000)
tell("first", seize(child))
os.write(w, b"x")
""",
    # The first tracer has executed another program meanwhile. It has the same PID.
    "exec": """
me = os.getpid()
r, w = os.pipe()
child = os.fork()
if child == 0:
    tell("first", seize(me))
    os.set_inheritable(w, True)
    os.execlp("sh", "sh", "-c", f"echo >&{w}; exec sleep 1000")
os.read(r, 1)
close_ring("second", seize, child)
""",
    # The first thread of the tracer has ended, so its tracees are free; another thread lives.
    "leader": """
me = os.getpid()
def lead():
    tell("first", seize(me))
    threading.Thread(target=time.sleep, args=(1000,)).start()
    libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)
child = os.fork()
if child == 0:
    lead()
while open(f"/proc/{child}/stat").read().split(") ")[1][0] != "Z":
    time.sleep(0.001)
close_ring("second", seize, other(lambda: None))
""",
}


def ends_in_time(holt: Holt, script: str) -> str:
    """Returns the output until the timeout."""
    result = holt(["run", "--timeout", "2s", "--kill-after", "10ms", "--", "python3", "-c", TRACE + script + "\ntime.sleep(1000)"], timeout=60)
    assert result.report and result.report["cause"] == "timeout", result
    if "refused" in result.out:
        assert result.denials["ptrace"]["grant"] == "--allow-syscall ptrace"
    return result.out


@pytest.mark.parametrize("ring", RINGS)
def test_a_ring_is_not_closed(holt: Holt, ring: str) -> None:
    # The first process may have been refused by this kernel, too: before Linux 5.16, all are.
    out = ends_in_time(holt, RINGS[ring])

    assert out.split()[0].startswith("first=") and out.count("granted") <= 1, out
    assert out.split()[1:] == [f"{name}=refused" for name in ("second", "third")[: out.count("=") - 1]]


def test_a_ring_of_a_session_is_not_closed(session: Session) -> None:
    with session.rpc() as rpc:
        result = rpc.call("exec", argv=["python3", "-c", TRACE + RINGS["seize"] + "\ntime.sleep(1000)"], timeout_ms=3000)

    assert result["cause"] == "timeout" and result["stdout"].endswith("second=refused ")
    assert session.sh("ps -e -o comm= | grep -c python3").out == "0\n"


# Two processes trace each other at the same moment, again and again. Prints how often both, one and none of them were granted
# the option.
RACE = """
wins = [0, 0, 0]
for i in range(100):
    (r, w), (told_r, told_w), (undo_r, undo_w), names = os.pipe(), os.pipe(), os.pipe(), mmap.mmap(-1, 8)
    for j in range(2):
        if os.fork() == 0:
            names[4 * j:4 * j + 4] = os.getpid().to_bytes(4, "little")
            os.write(told_w, b"x")
            os.read(r, 1)
            pid = int.from_bytes(names[4 - 4 * j:8 - 4 * j], "little")
            done = seize(pid)
            os.write(told_w, b"1" if done else b"0")
            os.read(undo_r, 1)
            done and undo(pid)
            os.write(told_w, b"x")
            time.sleep(1000)
    os.read(told_r, 1), os.read(told_r, 1)
    os.write(w, b"xx")
    wins[int(os.read(told_r, 1)) + int(os.read(told_r, 1))] += 1
    os.write(undo_w, b"x")
    os.read(told_r, 1)
    os.write(undo_w, b"x")
    os.read(told_r, 1)
    for j in range(2):
        pid = int.from_bytes(names[4 * j:4 * j + 4], "little")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for fd in (r, w, told_r, told_w, undo_r, undo_w):
        os.close(fd)
tell(f"{wins[2]}/{wins[1]}/{wins[0]}", False)
"""


@pytest.mark.slow
def test_the_faster_one_wins(holt: Holt) -> None:
    both, one, _ = ends_in_time(holt, RACE).split("=")[0].split("/")

    assert both == "0" and int(one) > 0


def test_no_thread_but_the_first_traces_exits(holt: Holt) -> None:
    assert ends_in_time(holt, """
child = other(lambda: None)
t = threading.Thread(target=lambda: tell("thread", seize(child)))
t.start()
t.join()
""") == "thread=refused "


# Traces the process with the given PID with some options, and never continues it.
HOLD = "import ctypes, sys, time; print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, %d), flush=True); time.sleep(1000)"


@pytest.mark.parametrize("options", (0, 0x40), ids=("at its end", "before its end"))
def test_a_tracer_can_not_keep_another_command(session: Session, options: int) -> None:
    """A tracer keeps the dead process in the list of processes, but the kill of its command ends soon. Even if init has many
    processes to search, the kill does not take so long that the keeper kills the whole sandbox."""
    many = 300 if HANGS < 200 else 60  # a VM is slower (tests/vm)
    session.detach(f"for i in $(seq {many}); do sleep 4000 & done; wait")
    victim = session.detach("sleep 3000 & exec sleep 2000")
    until(lambda: session.sh("pgrep -f 'sleep 2000'").code == 0, "the first command")
    pid = session.sh("pgrep -xf 'sleep 2000'").ok().out.strip()
    tracer = session.detach(f"exec python3 -c '{HOLD % options}' {pid}")
    until(lambda: session.sh(f"grep -q 'TracerPid:.*[1-9]' /proc/{pid}/status").code == 0, "its tracer")

    session("kill", victim).ok()
    until(lambda: session.ps().get(victim, {}).get("state") != "running", "its end")
    assert session.ps()[tracer]["state"] == "running"
    assert session.sh("pgrep -xf 'sleep 3000'").code == 1
    assert session.sh(f"test -e /proc/{pid}").code == 0

    if options:
        session.stop()  # in time, although the tracer holds the process
    else:
        session("kill", tracer).ok()
        until(lambda: session.sh(f"test -e /proc/{pid}").code == 1, "the end of the traced process")
