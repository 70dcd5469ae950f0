# SPDX-License-Identifier: Apache-2.0
"""Hostile commands in the lasting shell: programs cannot end their call or decide its exit code, and the bash itself cannot
harm the keeper or other calls' results beyond its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lib.sessions import Bound, Json, Session, Sessions, memory

pytestmark = [pytest.mark.alike, pytest.mark.not_sanitized]  # The sanitizer keeps freed memory.


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.create("w", "--kill-after", "100ms")


@pytest.fixture
def rpc(session: Session) -> Iterator[Bound]:
    with session.rpc() as rpc:
        yield Bound(rpc, {})


LINES = r"""
import ctypes, os
lines = b"".join(b"%d\n%d %s 0\n" % (n, n, b"0" * 32) for n in range(40))
"""
REACH = LINES + r"""
above, reached = os.getppid(), []
libc = ctypes.CDLL(None)
for fd in range(3, 1024):
    try:
        reached.append(("inherited", fd, os.readlink(f"/proc/self/fd/{fd}"), os.write(fd, lines)))
    except OSError:
        pass
for fd in os.listdir(f"/proc/{above}/fd"):
    if not os.readlink(f"/proc/{above}/fd/{fd}").startswith("socket:"):
        continue
    try:
        reached.append(("opened", fd, os.open(f"/proc/{above}/fd/{fd}", os.O_RDWR | os.O_NONBLOCK)))
    except OSError:
        pass
    taken = libc.syscall(438, libc.syscall(434, above, 0), int(fd), 0)
    if taken >= 0:
        reached.append(("taken", fd, os.write(taken, lines)))
print("reached", reached, flush=True)
"""


def run(rpc: Bound, code: str, **params: object) -> Json:
    return rpc.call("shell.run", code=code, **{"timeout_ms": 20000, **params})


def program(code: str) -> str:
    return f"python3 - <<'PROGRAM'\n{code}\nPROGRAM\n"


def test_a_program_does_not_reach_the_channel(rpc: Bound) -> None:
    ended = run(rpc, program(REACH) + "echo late; (exit 7)")
    assert ended["stdout"] == "reached []\nlate\n", ended
    assert (ended["exit_code"], ended["state_kept"]) == (7, True)


@pytest.mark.parametrize("where", ["1", "2", "/proc/$PPID/fd/1", "/proc/$$/fd/2", "/dev/stdout"])
def test_a_printed_marker_ends_nothing(rpc: Bound, where: str) -> None:
    target = f"&{where}" if where.isdigit() else where
    ended = run(rpc, program(LINES + "os.write(1, lines)") + f"for n in 1 2 3; do echo $n {'0' * 32} 0 >{target}; done; sleep 0.2; echo late; (exit 7)")
    assert ended["stdout"].endswith("late\n") and ended["exit_code"] == 7, ended
    assert run(rpc, "echo on")["stdout"] == "on\n"


OWN = {
    "garbage": "head -c 100000 /dev/urandom >&10",
    "lines of all numbers": "for n in {0..500}; do echo $n >&10; done",
    "results of all numbers": f"for n in {{0..500}}; do echo $n {'0' * 32} 0 >&10; done",
    "a line without an end": "head -c 40000000 /dev/zero | tr '\\0' 1 >&10",
    "no numbers": "echo -n ' ' >&10; echo 99999999999999999999999 >&10; echo 1 2 3 4 >&10",
    "nothing": "printf '\\n\\n\\n\\0\\n' >&10",
    "the channel is closed": "exec 10>&-",
    "all is closed": "for fd in {0..300}; do eval \"exec $fd>&-\"; done",
    "another reader": "cat <&10 & sleep 0.1",
    "builtins are functions": "builtin() { :; }; echo() { :; }; eval() { :; }",
    "traps": "trap 'kill -STOP $$' DEBUG",
    "a trap for each signal": "for n in {1..64}; do trap 'echo no' $n; done 2>/dev/null; trap '' TERM INT HUP",
    "read only": "readonly PS1=x PROMPT_COMMAND='sleep 1000' IFS=0123456789",
    "posix": "set -o posix; set -eu -o pipefail; exec 2>&-",
    "a stopped shell": "kill -STOP $$",
    "a stopped group": "kill -STOP 0",
    "another program": "exec sleep 1000",
    "endless output": "yes & sleep 0.1",
    "aliases": "alias builtin=exit '{=exit' eval=exit; shopt -s expand_aliases",
}


@pytest.mark.parametrize("code", OWN.values(), ids=OWN)
def test_a_hostile_shell_hurts_only_itself(session: Session, rpc: Bound, code: str) -> None:
    run(rpc, "true")
    keeper, before = session.keeper(), memory(session.keeper())
    run(rpc, code, timeout_ms=1000)
    run(rpc, "echo next", timeout_ms=1000)
    rpc.call("shell.restart")

    fresh = run(rpc, "echo served; (exit 3)")
    assert (fresh["stdout"], fresh["exit_code"], fresh["new_shell"]) == ("served\n", 3, True)
    assert session.keeper() == keeper and memory(session.keeper()) - before < 8 << 20
    assert session.exec("echo", "exec").ok().out == "exec\n"
