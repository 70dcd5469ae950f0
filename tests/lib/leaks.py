# SPDX-License-Identifier: Apache-2.0
"""Finds everything that a run leaves behind on the host.

The suite's process is the subreaper (prctl(2)) of all processes that it starts. A process that outlives its parent becomes its
child and cannot hide, even in a session and pid namespace of its own. Mounts, the suite's own fds, files in the caller's
directories, and cgroups are compared before and after.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from lib.identity import Identity, holders

PR_SET_CHILD_SUBREAPER = 36

# Directories in which a careless program leaves files; other programs of the machine use them too.
SHARED = ("/tmp", "/var/tmp", "/run", "/dev/shm")

SCRATCH_PREFIX = "holt-tests-"

# Name prefixes of directories of suites, workers and benchmarks: another run on this machine may create one during a test.
RUNS_PREFIXES = (SCRATCH_PREFIX, "holt-worker-", "holt-sdk-", "holt-bench-")

# Longer than any teardown takes: the check waits for the end of a run and does not time it.
SETTLE = 20.0

# The number of looks at a tree of processes that changes all the time, such as that of a fork bomb.
TREES_MAX = 20


def become_subreaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        raise OSError("the suites cannot see what a test leaves behind: the kernel has no CONFIG_PROC_CHILDREN")


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    name: str
    state: str  # "Z" means that the process, or only its first thread, has ended
    threads: int

    @property
    def ended(self) -> bool:
        return self.state in "ZX" and self.threads <= 1

    def __str__(self) -> str:
        return f"{self.pid} {self.name} ({self.state})"


def _process(stat: str) -> Process:
    # The format is "PID (NAME) STATE PPID ...", and NAME may contain blanks and brackets (proc(5)). Field 20 is the number of
    # threads.
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2 :].split()
    return Process(int(stat.split(" ", 1)[0]), int(fields[1]), name, fields[0], int(fields[17]))


def _processes(pids: Iterable[int | str]) -> Iterator[Process]:
    """Yields those of the processes that still exist."""
    for pid in pids:
        try:
            # A Path and its decoder would take longer than the system calls.
            with open(f"/proc/{pid}/stat", "rb", buffering=0) as stat:
                yield _process(os.fsdecode(stat.read()))
        except (FileNotFoundError, ProcessLookupError):
            continue


def all_processes() -> Iterator[Process]:
    yield from _processes(entry for entry in os.listdir("/proc") if entry.isdigit())


def _children(pid: int) -> list[int]:
    """Returns the PIDs of a process's children, by proc_pid_task_tid_children(5)."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as children:
                found += [int(child) for child in children.read().split()]
    return found


def _tree(root: int) -> list[int]:
    """Returns the PIDs of all direct and indirect children of root. Leaves out the suite's own holders and their children."""
    found, left_out = [root], holders()
    for pid in found:
        found += [child for child in _children(pid) if child not in left_out]
    return found[1:]


def _settled_tree(root: int) -> list[int]:
    """Returns the tree once it is the same twice, or changes all the time.

    While a process ends, the kernel may leave out a sibling, or a child that is moving to another parent."""
    tree = _tree(root)
    for _ in range(TREES_MAX):
        before, tree = tree, _tree(root)
        if tree == before:
            break
    return tree


def descendants(root: int | None = None) -> list[Process]:
    """All direct and indirect children of root (default: this process), without root itself. Leaves out the suite's own holders,
    and the servers that a test network has started."""
    # Reading the tree takes some 20 us. Looking at all processes of the machine takes milliseconds, and each test looks several
    # times.
    return list(_processes(_settled_tree(os.getpid() if root is None else root)))


def _files(root: Path) -> Iterator[str]:
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            yield os.path.join(directory, name)


def _shared_files() -> Iterator[str]:
    for directory in SHARED:
        if os.path.isdir(directory):
            for name in os.listdir(directory):
                if "holt" in name and not name.startswith(RUNS_PREFIXES):
                    yield os.path.join(directory, name)


def _cgroups() -> Iterator[str]:
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            if "holt" in name:
                yield os.path.join(directory, name)


def _mounts() -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split(" ")
        yield f"{words[0]} {words[4]}"


def _fds() -> Iterator[str]:
    for entry in os.listdir("/proc/self/fd"):
        try:
            yield f"{entry} {os.readlink(f'/proc/self/fd/{entry}')}"
        except FileNotFoundError:
            continue


@dataclass(frozen=True)
class Snapshot:
    processes: frozenset[str]
    mounts: frozenset[str]
    fds: frozenset[str]
    files: frozenset[str]
    cgroups: frozenset[str]

    @classmethod
    def take(cls, identity: Identity) -> Snapshot:
        def own(paths: Iterable[Path]) -> Iterator[str]:
            for path in paths:
                yield from _files(path)

        return cls(
            processes=frozenset(str(p) for p in _reaped()),
            mounts=frozenset(_mounts()),
            fds=frozenset(_fds()),
            files=frozenset((*own((identity.home, identity.tmp, identity.runtime)), *_shared_files())),
            cgroups=frozenset(_cgroups()),
        )

    def left_since(self, before: Snapshot) -> list[str]:
        """Returns one line for each item that did not exist in the earlier snapshot."""
        left = []
        for kind in fields(self):
            new = getattr(self, kind.name) - getattr(before, kind.name)
            left += [f"{kind.name}: {what}" for what in sorted(new)]
        return left


def _reaped() -> list[Process]:
    """Returns all descendants, after reaping those that have ended and came to this process."""
    processes = descendants()
    ended = [p for p in processes if p.ended and p.parent == os.getpid()]
    for process in ended:
        try:
            os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            continue
    return [p for p in processes if p not in ended]


def settle(before: Snapshot, identity: Identity, timeout: float = SETTLE) -> list[str]:
    """Returns the leftovers of a test after giving it time to end. An empty list is correct."""
    deadline = time.monotonic() + timeout
    while (left := Snapshot.take(identity).left_since(before)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def until_no_descendants(timeout: float = SETTLE) -> list[Process]:
    """Waits until no started process runs, and returns those that still run."""
    deadline = time.monotonic() + timeout
    while (left := _reaped()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left
