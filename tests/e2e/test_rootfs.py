# SPDX-License-Identifier: Apache-2.0
"""Another system tree than the host's: here busybox alone, with /bin, /sbin and /usr apart, as before the merge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.rootfs import APPLETS, make_rootfs
from lib.sandbox import Holt
from lib.sessions import Sessions
from lib.tools import needs

pytestmark = needs("busybox")

Make = Callable[..., Path]

@pytest.fixture
def rootfs(place: Path, identity: Identity) -> Path:
    return make_rootfs(place / "rootfs", identity)


def test_the_programs_are_the_tree_s(holt: Holt, rootfs: Path) -> None:
    script = "readlink /proc/$$/exe; ls /bin /lib; echo a:b | cut -d: -f2; ls /usr/bin; echo made > made"
    result = holt(["run", "--rootfs", rootfs, "--", "sh", "-c", script]).ok()

    assert result.out.split() == [
        "/bin/busybox", "/bin:", *sorted((*APPLETS, "busybox")), "/lib:", "only-here", "b", "cut",
    ]
    assert (holt.cwd / "made").read_text() == "made\n"


def test_etc_is_curated_from_the_tree(holt: Holt, rootfs: Path) -> None:
    script = "cat /etc/os-release; id -un; cat /etc/shadow /private"
    result = holt(["run", "--rootfs", rootfs, "--", "sh", "-c", script])

    assert result.out == "NAME=Tiny\nagent\n"


@pytest.mark.parametrize("directory", ("/", "/bin", "/usr/bin", "/sbin", "/lib/only-here"))
def test_the_tree_is_read_only(directory: str, holt: Holt, rootfs: Path) -> None:
    """A command cannot write the tree even if the caller can."""
    result = holt(["run", "--rootfs", rootfs, "--", "sh", "-c", f"touch {directory}/new"])

    assert result.code == 1
    assert "Read-only file system" in result.err
    assert not list(rootfs.rglob("new"))


def test_nothing_is_made_in_the_tree(holt: Holt, rootfs: Path, place: Path, put: Make) -> None:
    before = sorted(rootfs.rglob("*"))
    put(place / "other" / "file", "found\n")

    flags = ["--rootfs", rootfs, "--ro", f"{place}/other:/srv/x", "--tmpfs", "/data"]
    result = holt(["run", *flags, "--", "cat", "/srv/x/file"])

    assert result.ok().out == "found\n"
    assert sorted(rootfs.rglob("*")) == before


def test_a_program_of_the_host_is_not_there(holt: Holt, rootfs: Path) -> None:
    holt(["run", "--rootfs", rootfs, "--", "bash"]).refusal(127)
    assert "interpreter" in holt(["run", "--rootfs", rootfs, "--ro", "/usr/bin/env:/x", "--", "/x"]).refusal(126)


def test_tools_are_called_where_there_is_no_python_and_no_libc(sessions: Sessions, rootfs: Path) -> None:
    session = sessions.create("w", "--rootfs", rootfs)
    script = """echo '{"a" : [1.50, "ä"]}' | holt-tool given; holt-tool --list; holt-tool none; echo $?"""
    result = session.exec("sh", "-c", script, flags=["--tool", "given=cat"]).ok()
    assert result.out == '{"a": [1.5, "ä"]}\ngiven\tRuns a command of the host: JSON in, JSON out.\n1\n'
    assert result.err == "holt-tool: [permission_error] tool 'none' does not exist, or may not be called from here\n"


def test_a_relative_path_is_the_caller_s(holt: Holt, rootfs: Path) -> None:
    holt(["run", "--rootfs", "../rootfs", "--", "sh", "-c", "test -d /lib/only-here"]).ok()


def test_the_host_itself_may_be_named(holt: Holt) -> None:
    assert holt(["run", "--rootfs", "/", "--", "bash", "-c", "echo $BASH"]).ok().out == "/usr/bin/bash\n"


@pytest.mark.parametrize("path", ("/no/such", "EMPTY", "/etc/os-release"))
def test_directories_without_a_system_tree_are_refused(path: str, holt: Holt, mkdir: Make) -> None:
    value = str(mkdir("empty")) if path == "EMPTY" else path

    assert value in holt(["run", "--rootfs", value, "--", "true"]).refusal()
