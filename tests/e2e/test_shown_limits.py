# SPDX-License-Identifier: Apache-2.0
"""The sandbox shows its own limits and the host's processors in /sys, read-only."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import Sessions

pytestmark = pytest.mark.identities("user", "root", "nested")

LIMIT = "/sys/fs/cgroup/memory.max"
PROCESSORS = Path("/sys/devices/system/cpu")


def test_a_limit_of_the_policy_is_shown_as_a_cgroup_s(holt: Holt) -> None:
    """Files that Java, node and others read, in the form of cgroup v2. This limit is lower than any of the host's."""
    script = f"cat {LIMIT} /sys/fs/cgroup/cgroup.controllers; grep -c . /sys/fs/cgroup/cpu.max; ls -A /sys"

    assert holt.sh(script, "--memory", "96MiB").ok().out.splitlines() == [
        str(96 << 20), "cpu memory", "1", "devices", "fs"]


def test_java_finds_the_files(holt: Holt) -> None:
    """Java looks for a mount of cgroup2 and for hierarchies of v2, and opens the files by their path."""
    script = "grep ' /sys/fs/cgroup .* - cgroup2 ' /proc/self/mountinfo; cat /proc/cgroups; tail -n1 /proc/self/cgroup"
    first, *rest = holt.sh(script, "--memory", "96MiB").ok().out.splitlines()

    assert " ro," in first
    controllers = [line.split() for line in rest[:-1] if not line.startswith("#")]
    assert {row[1] for row in controllers if row[0] in ("cpu", "memory")} <= {"0"}
    assert rest[-1] == "0::/"


def test_only_the_limits_of_the_cgroup_are_there(holt: Holt) -> None:
    """The real cgroup is below the files, so its processes and counters are out of reach."""
    script = f"find /sys/fs/cgroup -type f | sort; echo 1 >{LIMIT} || touch /sys/x || chmod 777 {LIMIT} || rm -rf /sys"
    result = holt.sh(f"{script}; cat {LIMIT}", "--memory", "96MiB")

    *files, limit = result.out.split()
    assert {Path(f).name for f in files} <= {"cgroup.controllers", "cpu.max", "memory.max", "memory.limit_in_bytes",
                                             "memory.soft_limit_in_bytes"}
    assert limit == str(96 << 20)
    assert result.err.count("Read-only file system") >= 3


def test_processors_are_those_of_the_host(holt: Holt) -> None:
    for name in ("possible", "present", "online"):
        assert holt.sh(f"cat {PROCESSORS}/{name}").ok().out == (PROCESSORS / name).read_text()
    assert holt.sh("find /sys/devices -type f | wc -l").ok().out.strip() == "3"


@pytest.mark.identities("user")
def test_little_memory_has_room_for_threads(holt: Holt) -> None:
    """The stack of each thread counts as data. Node hangs if it cannot start one of its own."""
    threads = "import threading as t; b = t.Barrier(9); [t.Thread(target=b.wait).start() for _ in range(8)]; b.wait()"

    holt(["run", "--memory", "40MiB", "--", "/usr/bin/python3", "-Sc", threads]).ok()
    assert holt.sh("ulimit -s; ulimit -s 8192; ulimit -s", "--memory", "40MiB").ok().out.split() == ["2560", "8192"]
    assert holt.sh("ulimit -s", "--memory", "1MiB").ok().out.split() == ["1024"]
    assert holt.sh("ulimit -s", "--memory", "512MiB").ok().out == holt.sh("ulimit -s").ok().out


@pytest.mark.identities("user")
@pytest.mark.skipif(not shutil.which("node", path="/usr/bin"), reason="node is not installed")
def test_node_runs_with_little_memory(holt: Holt) -> None:
    assert holt(["run", "--memory", "40MiB", "--", "/usr/bin/node", "-p", "6 * 7"]).ok().out == "42\n"


def test_a_session_shows_its_limits_too(sessions: Sessions) -> None:
    session = sessions.create("w", "--memory", "96MiB")
    assert session.sh(f"cat {LIMIT}").ok().out == f"{96 << 20}\n"

    # A command may have made other files at these paths in the lasting root. They do not matter.
    assert session.sh("mkdir -p /sys/x").code != 0
    session.stop()
    assert session.sh(f"cat {LIMIT}").ok().out == f"{96 << 20}\n"
