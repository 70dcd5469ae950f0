# SPDX-License-Identifier: Apache-2.0
"""Commands that the kernel kills because memory runs out. holt runs in cgroups with a limit, like in containers and
services."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lib import leaks
from lib.identity import Identity
from lib.sandbox import Arg, Holt, Result, Running
from lib.sessions import Sessions

ROOT = Path("/sys/fs/cgroup")
V1 = Path("/sys/fs/cgroup/memory")

LIMIT = 64 << 20
HOG = ("python3", "-c", f"bytes(b'x' * {4 * LIMIT})")

v2 = pytest.mark.boots("debian")
either = pytest.mark.boots("debian", "cgroup-v2-only", "cgroup-v1")

# Makes /sys/fs/cgroup that of a container. One kind has a cgroup namespace, whose new mount cannot lie directly on the old one;
# the other is Docker's without such a namespace.
MOUNTED = "mount -t tmpfs none /sys/fs; mkdir /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup"
BOUND = 'mount --bind "/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)" /sys/fs/cgroup'
CONTAINERS = {"namespace": (("--cgroup",), MOUNTED), "no namespace": ((), BOUND)}


@dataclass(frozen=True)
class Group:
    """A cgroup. hierarchy is the directory of the tests' own hierarchy."""

    path: Path
    hierarchy: Path

    def limit(self) -> Group:
        names = (self.path / "memory.max", self.path / "memory.limit_in_bytes")
        next(name for name in names if name.exists()).write_text(str(LIMIT))
        return self

    def child(self, memory: bool) -> Group:
        """Creates a child cgroup, with or without the memory controller."""
        if memory:
            (self.path / "cgroup.subtree_control").write_text("+memory")
        (self.path / "child").mkdir()
        return Group(self.path / "child", self.hierarchy)

    def start(self, holt: Holt | Sessions, args: list[Arg], **options: object) -> Running:
        """Starts holt inside the cgroup: memory of processes that move in later would be charged elsewhere."""
        (self.path / "cgroup.procs").write_text("0")
        try:
            return holt.start(args, **options)
        finally:
            (self.hierarchy / "cgroup.procs").write_text("0")

    def run(self, holt: Holt, *command: Arg, **options: object) -> Result:
        with self.start(holt, ["run", "--", *command], **options) as running:
            return running.wait()


def make_group(hierarchy: Path) -> Iterator[Group]:
    if not (hierarchy / "memory.oom_control").exists():
        (hierarchy / "cgroup.subtree_control").write_text("+memory")
    path = hierarchy / f"holt-{secrets.token_hex(4)}"
    path.mkdir()
    yield Group(path, hierarchy)
    for directory in (path / "child", path):
        if directory.exists():
            directory.rmdir()


@pytest.fixture
def group(nothing_left: None) -> Iterator[Group]:
    yield from make_group(V1 if V1.exists() else ROOT)


@pytest.fixture
def other(nothing_left: None) -> Iterator[Group]:
    yield from make_group(V1 if V1.exists() else ROOT)


def oom_kills(result: Result) -> object:
    return (result.report or {}).get("usage", {}).get("oom_kills", "?")


def ending(result: Result) -> tuple[int, str, object]:
    return result.code, result.cause, (result.report or {}).get("signal")


KILLED = (137, "oom", "SIGKILL")


@either
def test_a_command_that_takes_too_much_ends_by_oom(holt: Holt, group: Group) -> None:
    result = group.limit().run(holt, *HOG)

    assert (ending(result), oom_kills(result)) == (KILLED, 1), str(result)
    assert result.err.startswith("holt: the kernel killed the command because memory ran out: ")
    assert result.err.count("\n") == 2
    # v1 does not tell whose limit it was.
    assert ("the limit is 64MiB" in result.err) == (group.hierarchy == ROOT)


@either
def test_a_child_that_takes_too_much_is_told(holt: Holt, group: Group) -> None:
    result = group.limit().run(holt, "sh", "-c", '"$@"; "$@"; exit 3', "sh", *HOG)

    assert (ending(result), oom_kills(result)) == ((3, "exited", None), 2), str(result)
    assert "holt: the kernel killed 2 processes because memory ran out: " in result.err


@either
def test_a_command_that_survives_an_oom_kill_has_succeeded(holt: Holt, group: Group) -> None:
    result = group.limit().run(holt, "sh", "-c", '"$@"; true', "sh", *HOG)

    assert (ending(result), oom_kills(result)) == ((0, "exited", None), 1), str(result)
    assert "holt:" not in result.err


@either
def test_a_session_tells_who_was_killed_for_lack_of_memory(sessions: Sessions, group: Group) -> None:
    """The keeper reads the counter without opening a file. The keeper is in the cgroup of the caller that came first."""
    session = sessions.create()
    with group.limit().start(sessions, ["exec", "--json", "w", "--", *HOG]) as running:
        killed = json.loads(running.wait().err)
    assert (killed["cause"], killed["exit_code"]) == ("oom", 137), str(killed["error"]["message"])
    answer = session.exec("sh", "-c", "sleep 1; kill -KILL $$", flags=["--json"])
    assert (json.loads(answer.err)["cause"], answer.code) == ("signaled", 137)
    assert [row["kind"] for row in json.loads(sessions(["audit", "w", "--json"]).ok().out)["rows"]] == ["limit"]

    sessions(["python", "w", "-c", "kept = 1"]).ok()
    lost = json.loads(sessions(["python", "w", "--json", "-c", f"bytes(b'x' * {4 * LIMIT})"]).out)
    assert (lost["cause"], lost["exit_code"], lost["state_kept"]) == ("oom", 137, False)
    assert sessions(["python", "w", "-c", "1 + 1"]).ok().out == "2\n"
    session.stop()


@either
def test_another_kill_is_no_oom(holt: Holt, group: Group) -> None:
    result = group.limit().run(holt, "sh", "-c", "kill -KILL $$")

    assert ending(result) == (137, "signaled", "SIGKILL") and not oom_kills(result), str(result)
    assert result.err == ""


@either
def test_holt_s_own_kill_is_no_oom(holt: Holt, group: Group) -> None:
    script = "trap '' TERM; \"$@\"; echo ready; sleep 1000; sleep 1000"
    args = ["run", "--kill-after", "100ms", "--", "sh", "-c", script, "sh", *HOG]
    with group.limit().start(holt, args) as running:
        assert running.readline() == "ready"
        running.kill(signal.SIGTERM)
        result = running.wait()

    assert (ending(result), oom_kills(result)) == ((137, "killed", "SIGKILL"), 1), str(result)


@either
def test_oom_kills_of_another_cgroup_do_not_count(holt: Holt, group: Group, other: Group) -> None:
    with group.start(holt, ["run", "--", "sh", "-c", "echo ready; exec sleep 1000"]) as running:
        assert running.readline() == "ready"
        assert other.limit().run(holt, *HOG).cause == "oom"
        init = next(p for p in leaks.descendants(running.pid) if p.parent == running.pid)
        command = next(p for p in leaks.descendants(running.pid) if p.parent == init.pid)
        os.kill(command.pid, signal.SIGKILL)
        result = running.wait()

    assert (ending(result), oom_kills(result)) == ((137, "signaled", "SIGKILL"), 0), str(result)


@v2
def test_the_limit_of_a_cgroup_above_is_not_taken_for_its_own(holt: Holt, group: Group) -> None:
    result = group.limit().child(memory=True).run(holt, *HOG)

    assert (ending(result), oom_kills(result)) == (KILLED, 1), str(result)
    assert "64MiB" not in result.err and "run less in parallel" in result.err


@v2
def test_a_cgroup_without_the_controller_is_counted_above(holt: Holt, group: Group) -> None:
    result = group.limit().child(memory=False).run(holt, *HOG)

    assert (ending(result), oom_kills(result)) == (KILLED, 1), str(result)
    assert "the limit is 64MiB" in result.err


@v2
@pytest.mark.parametrize("kind", CONTAINERS)
def test_oom_in_a_container_is_reported(kind: str, holt: Holt, identity: Identity, group: Group) -> None:
    namespaces, mount = CONTAINERS[kind]
    user = ("--map-root-user",) if identity.name == "user" else ()
    prefix = ("unshare", *user, "--mount", *namespaces, "--", "sh", "-ec", f'{mount}; exec "$@"', "sh")
    result = group.limit().run(holt, *HOG, prefix=prefix)

    assert (ending(result), oom_kills(result)) == (KILLED, 1), str(result)
    assert "the limit is 64MiB" in result.err


@v2
def test_events_may_be_counted_locally(holt: Holt, group: Group) -> None:
    subprocess.run(["mount", "-n", "-o", "remount,memory_localevents", ROOT], check=True)
    try:
        assert ending(group.limit().run(holt, *HOG)) == KILLED
    finally:
        subprocess.run(["mount", "-n", "-o", "remount", ROOT], check=True)


@pytest.fixture
def unseen(nothing_left: None, tmp_path: Path) -> Iterator[Group]:
    """Yields a cgroup of a hierarchy that is mounted at a path that holt does not search."""
    subprocess.run(["mount", "-n", "-t", "cgroup2", "none", tmp_path], check=True)
    yield from make_group(tmp_path)
    subprocess.run(["umount", "-n", tmp_path], check=True)


@pytest.mark.boots("no-cgroup")
def test_without_a_cgroup_holt_only_guesses(holt: Holt, unseen: Group) -> None:
    result = unseen.limit().run(holt, *HOG)

    assert (ending(result), oom_kills(result)) == ((137, "signaled", "SIGKILL"), None), str(result)
    assert "holt: the command may have been killed because memory ran out" in result.err
    assert holt(["run", "--", "sh", "-c", "kill -KILL $$"]).err == ""
