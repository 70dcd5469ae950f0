# SPDX-License-Identifier: Apache-2.0
"""The mount tree inside cannot be changed, and read-only mounts stay read-only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from lib.hostile import Attack, Hostile, Run
from lib.sandbox import Holt

MOUNTS = [
    Attack("mounts", "tmpfs", ("/tmp",), control="caps"),
    Attack("mounts", "bind", ("/tmp",), control="caps"),
    Attack("mounts", "remount-rw", ("/usr",), control="caps", control_args=("/",)),
    Attack("mounts", "umount", ("/proc",), control="caps"),
    Attack("mounts", "pivot-root", control="caps"),
    Attack("mounts", "chroot", ("/tmp",), control="caps"),
]

# Calls of Linux 5.2 and later, which older filters do not know.
NEW_MOUNTS = [
    Attack("mounts", "fsopen", control="caps"),
    Attack("mounts", "fsconfig", control="caps"),
    Attack("mounts", "fsmount", control="caps"),
    Attack("mounts", "fspick", control="caps"),
    Attack("mounts", "open-tree", control="caps"),
    Attack("mounts", "open-tree-attr", control="caps"),
    Attack("mounts", "move-mount", control="caps"),
    Attack("mounts", "mount-setattr", ("/usr",), control="caps", control_args=("/",)),
]


@pytest.mark.parametrize("attack", MOUNTS + NEW_MOUNTS, ids=str)
def test_the_mount_tree_can_not_be_changed(attack: Attack, holds: Run) -> None:
    holds(attack)


# fsconfig itself checks no capability: it needs the fd that fsopen refuses.
@pytest.mark.parametrize("attack", [a for a in MOUNTS + NEW_MOUNTS if a.name != "fsconfig"], ids=str)
def test_without_the_filter_the_capability_is_missing(attack: Attack, holds: Run) -> None:
    """One layer behind another: the caller allows the calls, and still they fail."""
    granted = ("--allow-syscall", "@mount")

    assert holds(attack, *granted).detail in ("EPERM", "EACCES", "ENOSYS")


READ_ONLY = ("/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/bin", "/opt", "/mnt", "/proc", "/dev")


@pytest.mark.parametrize("directory", READ_ONLY)
def test_no_file_can_be_made_in_read_only_directories(directory: str, holds: Run, hostile: Hostile) -> None:
    control = (hostile.unused_path(),)

    holds(Attack("files", "create", (f"{directory}/holt-test",), control_args=control))


@pytest.mark.parametrize("path", ("/usr/lib/os-release", "/etc/passwd", "/etc/hosts"))
def test_no_file_of_the_system_can_be_written(path: str, holds: Run) -> None:
    holds(Attack("files", "write", (path,), control="root"))


def test_read_only_paths_cannot_be_written(
    holds: Run, hostile: Hostile, secret: Path
) -> None:
    secret.chmod(0o666)
    hostile.show_that_it_can_succeed(Attack("files", "write", (str(secret),)))

    holds(Attack("files", "write", (str(secret),)), "--ro", secret)


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo (proc(5)); root is the part of its file system that is shown."""

    root: str
    target: str
    options: frozenset[str]
    kind: str

    @classmethod
    def parse(cls, line: str) -> Mount:
        left, _, right = line.partition(" - ")
        _, _, _, root, target, options, *_ = left.split()
        return cls(root, target, frozenset(options.split(",")), right.split()[0])


@pytest.fixture
def mounts(holt: Holt) -> list[Mount]:
    """All mounts of the sandbox's namespace, even those to which no path leads."""
    lines = holt(["run", "--", "cat", "/proc/self/mountinfo"]).ok().out.splitlines()
    return [Mount.parse(line) for line in lines]


def test_nothing_of_the_host_s_tree_is_left_in_the_namespace(mounts: list[Mount]) -> None:
    """A mount under another mount still exists: "/.." goes up through the mounts stacked on the root."""
    targets = [m.target for m in mounts]

    assert targets.count("/") == 1
    assert [m.kind for m in mounts if m.target == "/"] == ["tmpfs"]
    assert len(targets) == len(set(targets))
    assert [m for m in mounts if m.root == "/" and m.kind not in ("tmpfs", "proc", "devpts")] == []


def test_no_mount_gives_privilege_by_its_files(mounts: list[Mount]) -> None:
    for mount in mounts:
        if mount.kind not in ("devtmpfs", "devpts"):
            assert {"nosuid", "nodev"} <= mount.options, mount


def test_a_device_is_mounted_alone(mounts: list[Mount]) -> None:
    """The mounts are single nodes that every program may open, and not the host's whole /dev."""
    harmless = {"/null", "/zero", "/full", "/random", "/urandom", "/tty"}
    own = {"/pts", "/shm", "/console"}
    nodes = {m.target.removeprefix("/dev"): m.root for m in mounts if m.target.startswith("/dev/")}

    assert {target: root for target, root in nodes.items() if target not in own} == {name: name for name in harmless}
    assert {m.root for m in mounts if m.kind == "devtmpfs"} <= harmless


def test_the_root_and_the_system_are_mounted_read_only(mounts: list[Mount]) -> None:
    writable = {m.target for m in mounts if "ro" not in m.options}
    kernel = {t for t in writable if t == "/proc" or t.startswith("/dev/")}

    assert {"/", "/usr"} <= {m.target for m in mounts}
    assert {t for t in writable - kernel if t.split("/")[1] not in ("tmp", "run", "home", "var")} == set()


def test_no_control_file_system_is_mounted(mounts: list[Mount]) -> None:
    """For example cgroup (release_agent), sysfs (uevent_helper), debugfs and bpf."""
    control = {
        "cgroup", "cgroup2", "sysfs", "debugfs", "tracefs", "securityfs", "bpf", "configfs",
        "efivarfs", "binfmt_misc", "pstore", "fusectl",
    }
    assert {m.kind for m in mounts} & control == set()
