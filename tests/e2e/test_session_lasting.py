# SPDX-License-Identifier: Apache-2.0
"""The files of a session that survive stop, start and crash, and their owner on the host."""

from __future__ import annotations

import contextlib

from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sessions import Session, Sessions

Put = Callable[..., Path]


PLACES = ("/workspace", "/home/agent", "/tmp", "/var/tmp", "/project", "/opt/tool", "/mnt/files")


def leave_files(session: Session) -> None:
    for place in PLACES:
        session.sh(f"mkdir -p {place} && echo {place} >{place}/file && ln -s file {place}/link && chmod 751 {place}/file").ok()


def assert_files(session: Session) -> None:
    for place in PLACES:
        assert session.sh(f"cat {place}/link; stat -c %a-%U {place}/file").ok().out == f"{place}\n751-agent\n"


@pytest.mark.parametrize("times", (1, 3))
def test_files_last_over_stop_and_start(times: int, session: Session) -> None:
    leave_files(session)
    for _ in range(times):
        session.stop()
        assert_files(session)


def test_files_last_over_a_killed_keeper(session: Session) -> None:
    leave_files(session)
    session.kill_keeper()

    assert_files(session)


def test_run_and_shm_do_not_last(session: Session) -> None:
    session.sh("touch /run/file /dev/shm/file").ok()
    session.stop()

    assert session.sh("ls /run /dev/shm").ok().out.split() == ["/dev/shm:", "/run:", "holt"]


def test_tmp_size_bounds_what_does_not_last(sessions: Sessions) -> None:
    """holt show names the directories that --tmp-size limits. /tmp is not one of them, because it is on the disk."""
    session = sessions.create("w", "--tmp-size", "1MiB", "--tmpfs", "/scratch")

    for place in ("/run", "/dev/shm", "/scratch"):
        assert "No space left" in session.sh(f"head -c 2M /dev/zero >{place}/f; rm {place}/f").err, place
    for place in ("/tmp", "/var/tmp", "/home/agent"):
        session.sh(f"head -c 2M /dev/zero >{place}/f").ok()
    assert "tmp_size 1MiB for /run, /dev/shm and --tmpfs" in session("show").ok().out


def test_the_host_sees_the_files_as_the_caller_s(session: Session, identity: Identity) -> None:
    session.sh("echo inside >/workspace/file; echo inside >/mnt/files/file").ok()

    for name in ("workspace", "files"):
        file = session.directory / name / "file"
        assert file.read_text() == "inside\n"
        assert (file.stat().st_uid, file.stat().st_gid) == (identity.uid, identity.gid)


def test_a_workspace_of_the_caller_s(sessions: Sessions, workspace: Path, put: Put, identity: Identity) -> None:
    put("mine", "mine\n", 0o640)
    session = sessions.create("w", "--workspace", workspace)

    assert session.sh("cat mine; pwd; stat -c %U mine; echo made >made").ok().out == "mine\n/workspace\nagent\n"
    assert (workspace / "made").read_text() == "made\n"
    for name in ("mine", "made"):
        assert (workspace / name).stat().st_uid == identity.uid
    session("rm").ok()
    assert (workspace / "made").exists()


def test_a_relative_workspace_is_that_of_create(sessions: Sessions, put: Put, workspace: Path) -> None:
    put("sub/file", "found\n")
    session = sessions.create("w", "--workspace", "sub", cwd=workspace)

    assert session.exec("cat", "file", cwd="/").ok().out == "found\n"


@pytest.mark.parametrize("cwd, workspace_option", (("sub", ".."), ("sub/deeper", ".."), ("", "."), (".", "sub")))
def test_commands_start_in_the_workspace_wherever_create_ran(
    cwd: str, workspace_option: str, sessions: Sessions, mkdir: Callable[[str], Path], put: Put, workspace: Path,
) -> None:
    mkdir("sub")
    mkdir("sub/deeper")
    top = (workspace / cwd / workspace_option).resolve()
    put(top.relative_to(workspace) / "d" / "here", "found\n")
    session = sessions.create("w", "--workspace", workspace_option, cwd=workspace / cwd)

    assert session.out("pwd") == "/workspace\n"
    assert session.exec("cat", "here", flags=["--cwd", "d"]).ok().out == "found\n"
    assert session("files", "cat", "d/here").ok().out == "found\n"
    put("given", "given\n")
    session.cp(workspace / "given", "w:").ok()
    assert (top / "given").read_text() == "given\n"
    assert session.show()["cwd"] == "/workspace"


def test_after_stop_the_keeper_holds_nothing(session: Session) -> None:
    """A caller can unmount the workspace's file system at once."""
    for _ in range(10):
        session.out("true")
        stat = Path(f"/proc/{session.keeper()}/stat")
        session("stop").ok()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a zombie has closed its files
            assert stat.read_text().rpartition(")")[2].split()[0] in "ZX"
