# SPDX-License-Identifier: Apache-2.0
"""Other processes are out of reach, and everything that a sandbox can multiply has a limit."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.hostile import Attack, Run
from lib.identity import Identity
from lib.sandbox import Holt

COUNTING = "trap 'echo hit' URG; echo ready; while read -r -t 60 line; do echo $line; done"


@pytest.fixture
def canary(identity: Identity) -> Iterator[subprocess.Popen[str]]:
    """A process of the identity's that prints each signal it gets, and echoes its input."""
    process = subprocess.Popen(
        identity.as_user(["bash", "-c", COUNTING]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        bufsize=1, start_new_session=True,
    )
    assert process.stdout and process.stdin and process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def heard(canary: subprocess.Popen[str]) -> list[str]:
    """The output of the process so far."""
    assert canary.stdin and canary.stdout
    canary.stdin.write("end\n")
    lines = []
    while (line := canary.stdout.readline().strip()) != "end":
        lines.append(line)
    return lines


def test_no_process_of_the_host_can_be_signalled(holds: Run, canary: subprocess.Popen[str]) -> None:
    attack = Attack("processes", "signal", (str(canary.pid),), control="root")

    assert holds(attack).detail == "ESRCH"


def test_a_signal_to_everyone_stays_inside(holt: Holt, canary: subprocess.Popen[str]) -> None:
    """URG is harmless if it gets out: a process that does not handle it ignores it."""
    canary.send_signal(signal.SIGURG)
    assert heard(canary) == ["hit"]

    holt.sh("trap '' URG; kill -URG -1; kill -URG 0; exit 0").ok()
    assert heard(canary) == []


def test_the_launcher_is_not_a_parent_that_can_be_signalled(holt: Holt) -> None:
    """Inside, the parent of init has no PID, and neither has its process group or session."""
    assert holt.sh("awk '/^PPid/ { print $2 }' /proc/1/status").ok().out.strip() == "0"
    assert holt.sh("kill -TERM 1; kill -STOP 1; kill -KILL 1; echo alive").ok().out == "alive\n"


def test_system_v_memory_of_the_host_is_not_there(holds: Run) -> None:
    libc, key = ctypes.CDLL(None, use_errno=True), 0x401D0000 | os.getpid() & 0xFFFF
    segment = libc.shmget(key, 4096, 0o1666)  # IPC_CREAT and everyone
    assert segment >= 0
    try:
        holds(Attack("processes", "shared-memory", (str(key),)))
    finally:
        libc.shmctl(segment, 0, None)  # IPC_RMID


def test_shared_memory_files_of_the_host_are_not_there(holds: Run, nothing_left: None) -> None:
    path = Path(f"/dev/shm/test-{os.getpid()}")
    path.write_text("secret\n")
    path.chmod(0o666)
    try:
        holds(Attack("files", "read", (str(path),)))
    finally:
        path.unlink()


# --- limits ---


@pytest.mark.parametrize("name", ("too-many", "too-many-threads"))
def test_a_fork_bomb_is_bounded(name: str, holds: Run) -> None:
    outcome = holds(Attack("processes", name, ("200",)), "--pids", "64")

    error, _, count = outcome.detail.partition(" after ")
    assert error == "EAGAIN"
    assert 16 <= int(count) < 64


def test_a_fork_bomb_is_bounded_without_a_word_of_the_caller(holt: Holt) -> None:
    assert 0 < int(holt(["run", "--", "true"]).ok().report["limits"]["pids"]) <= 65536


# bash would not do: it retries a failed fork for 15 seconds.
FORK_UNTIL_FULL = """
import os, signal
try:
    while os.fork(): pass
    signal.pause()
except BlockingIOError:
    print("full", flush=True)
    input()
"""


def test_a_sandbox_at_its_limit_does_not_stop_another(holt: Holt) -> None:
    bomb = ["/usr/bin/python3", "-c", FORK_UNTIL_FULL]
    with holt.start(["run", "--pids", "24", "--", *bomb], stdin=subprocess.PIPE) as full:
        assert full.readline() == "full"
        holt(["run", "--pids", "24", "--", "sh", "-c", "true | true | true"]).ok()
        full.kill()


FILL = """
for dir in /tmp /dev/shm /run /var/tmp "$HOME" "$TMPDIR"; do
    head -c 16M /dev/zero >"$dir/fill" 2>/dev/null
done
find / -xdev -name fill -print0 2>/dev/null | xargs -0 -r cat | wc -c
find /tmp /dev/shm /run "$HOME" -name fill -exec cat {} + | wc -c
"""


def test_private_memory_is_bounded_as_a_whole(holt: Holt) -> None:
    counts = [int(n) for n in holt.sh(FILL, "--tmp-size", "8MiB").ok().out.split()]

    assert 0 < max(counts) <= 8 << 20


def test_private_memory_is_bounded_without_a_word_of_the_caller(holt: Holt) -> None:
    total = Path("/proc/meminfo").read_text().split()[1]
    size = int(holt.sh("df --output=size -k /tmp | tail -1").ok().out)

    assert size < int(total)


# Makes files in each private directory in turn, until one is refused or there are enough.
MAKE = """
import errno, os
directories, made = ("/tmp", "/dev/shm", "/run", "/var/tmp", "/home/agent", "/data"), 0
for where in directories:
    os.mkdir(where + "/many")
    os.close(os.open(where + "/first", os.O_CREAT))
try:
    while made < {enough}:
        where = directories[made % len(directories)]
        name = where + "/many/" + str(made)
        {make}
        made += 1
    print("made", made)
except OSError as error:
    print(errno.errorcode[error.errno], made)
"""
KINDS = {
    "files": "os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))",
    "directories": "os.mkdir(name)",
    "symlinks": "os.symlink('x', name)",
    "fifos": "os.mkfifo(name)",
    "links": "os.link(where + '/first', name)",
}


@pytest.mark.parametrize("kind", KINDS)
def test_many_empty_files_are_bounded_too(kind: str, holt: Holt) -> None:
    """Inodes are kernel memory that the size does not count. A larger size allows more inodes, which shows that the
    limit is not the host's."""

    def make(enough: int, size: str) -> list[str]:
        script = MAKE.format(make=KINDS[kind], enough=enough)
        return holt(["run", "--tmpfs", "/data", "--tmp-size", size, "--", "python3", "-c", script]).ok().out.split()

    error, made = make(100_000, "64KiB")
    assert error == "ENOSPC"
    assert 10_000 < int(made) <= 16_384
    assert make(20_000, "128MiB") == ["made", "20000"]


def test_many_small_files_are_bounded_without_a_word_of_the_caller(holt: Holt) -> None:
    inodes = int(holt.sh("df --output=itotal /tmp | tail -1").ok().out)

    assert 0 < inodes <= 4 << 20


def test_a_crash_writes_no_core(holt: Holt, workspace: Path) -> None:
    """No core is written inside, nor by the host's core_pattern handler, which runs as root."""
    result = holt.sh("ulimit -c unlimited; ulimit -Hc; sh -c 'kill -SEGV $$'; exit 0")

    assert result.out.strip().splitlines()[-1] == "0"
    assert list(workspace.iterdir()) == []
