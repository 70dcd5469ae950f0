# SPDX-License-Identifier: Apache-2.0
"""The policy that a session was made with is in force whenever it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sessions import Sessions

Put = Callable[..., Path]


FORKS = """
import os, signal, time
made = []
try:
    while True:
        made.append(os.fork())
        if not made[-1]:
            time.sleep(1000)
except BlockingIOError:
    print(len(made))
for pid in made:
    os.kill(pid, signal.SIGKILL)
"""


@pytest.mark.parametrize("again", ("at first", "after stop", "after a crash"))
def test_the_policy_of_create_is_in_force(
    again: str, sessions: Sessions, place: Path, workspace: Path, put: Put, identity: Identity
) -> None:
    data = identity.own(put(place / "ro" / "file", "readable\n").parent)
    put("hidden", "hidden\n")
    session = sessions.create(
        "w", "--workspace", workspace, "--ro", data, "--hide", "hidden", "--env", "SET=it", "--env", "PASSED",
        "--timeout", "60s", "--pids", "40", env={"PASSED": "as it was"},
    )
    if again != "at first":
        session.exec("true").ok()
        session.stop() if again == "after stop" else session.kill_keeper()

    assert session.sh(f"cat {data}/file").ok().out == "readable\n"
    assert session.sh(f"echo x >{data}/file").code == 1
    assert session.sh("cat hidden").code == 1
    assert session.sh("echo $SET $PASSED", env={"PASSED": "another"}).ok().out == "it as it was\n"
    assert 20 < int(session.exec("python3", "-c", FORKS).ok().out) < 40


def test_the_policy_s_timeout_is_each_command_s(sessions: Sessions) -> None:
    session = sessions.create("w", "--timeout", "200ms", "--kill-after", "100ms")

    assert session.exec("sleep", "1000").code == 124
    session.exec("true").ok()
    assert session.exec("sleep", "1000", flags=["--timeout", "100ms"]).code == 124


def test_the_project_s_file_narrows_a_session(sessions: Sessions, workspace: Path, put: Put) -> None:
    """The file of the workspace counts when the session is made, for create and over RPC; a later one does not."""
    put("secret", "SECRET\n")
    put(".holt.json", '{"holt": 1, "filesystem": {"hide": ["secret"]}, "limits": {"memory": "300MiB"}}')
    session = sessions.create("w", "--workspace", workspace, "--tier", "large")

    assert session.exec("cat", "secret").code == 1
    assert session.sh("echo '{}' > .holt.json").code == 1
    assert session.sh("ulimit -d").ok().out == f"{300 << 10}\n"
    with sessions.serve() as rpc:
        asked = {"name": "r", "find": True, "workspace": ".", "cwd": str(workspace)}
        assert rpc.call("session.create", **asked)["made"]
        put(".holt.json", '{"holt": 1, "filesystem": {"hide": ["other"]}, "limits": {"pids": 50}}')
        assert not rpc.call("session.create", **asked)["made"]
        assert rpc.call("exec", session="r", argv=["cat", "secret"])["exit_code"] == 1
        put(".holt.json", '{"holt": 1, "env": {"pass": ["HOME"]}}')
        error = rpc.refused("session.create", name="wide", workspace=str(workspace))
        assert error.kind == "policy" and f"{workspace}/.holt.json: $.env.pass" in error.message
    assert "env.pass must not be set" in sessions(["create", "wide", "--workspace", workspace]).err


def test_create_refuses_a_policy_that_can_not_be(sessions: Sessions) -> None:
    assert sessions(["create", "w", "--pids", "many"]).code == 125
    assert sessions(["create", "w", "--allow-syscall", "teleport"]).code == 125
    assert not sessions.directory.is_dir() or os.listdir(sessions.directory) == []


@pytest.mark.parametrize("options, said", (
    (("--workspace", "nope"), "nope does not exist: create it, or correct the path."),
    (("--workspace", "file"), "A part of the path is a file, not a directory"),
    (("--workspace", "/"), "/ is too wide"),
    (("--ro", "nope"), "nope does not exist: create it, or correct the path."),
    (("--rw", "nope/below"), "nope/below does not exist: create it, or correct the path."),
))
def test_create_refuses_missing_host_paths(options: tuple[str, ...], said: str, sessions: Sessions, put: Put) -> None:
    """holt create itself fails, rather than the first use, and leaves nothing of the session."""
    put("file")

    result = sessions(["create", "w", *options])

    assert result.refusal() and said in result.err
    assert os.listdir(sessions.directory) == []


@pytest.mark.parametrize("options, said", (
    (("--rw", "d:/run"), "covers /run/holt, which holt uses in a session"),
    (("--ro", "d:/run/holt/python"), "lies in /run/holt"),
    (("--workspace", "d:/run/holt"), "covers /run/holt"),
    (("--hide", "/run"), "Name the path below it that you want to hide."),
))
def test_create_refuses_mounts_on_the_keeper_s_directory(
    options: tuple[str, ...], said: str, sessions: Sessions, put: Put
) -> None:
    """The keeper writes to this directory at each start, so it must neither belong to the host nor be hidden."""
    put("d/f")

    result = sessions(["create", "w", *options])

    assert result.refusal() and said in result.err
    assert os.listdir(sessions.directory) == []


def test_mounts_in_run_appear_at_each_start(sessions: Sessions, put: Put) -> None:
    put("d/f", "given")
    session = sessions.create("w", "--ro", "d:/run/d", "--hide", "/run/d/g", "--tmpfs", "/run/holt/more")
    for _ in range(2):
        assert session.out("cat /run/d/f; ls /run") == "given" + "d\nholt\n"
        session.stop()


def test_a_session_whose_memory_is_too_small_for_holt_itself(sessions: Sessions) -> None:
    result = sessions.create("w", "--tmp-size", "64KiB").exec("true")

    assert "No space left on device" in result.refusal() and "Create the session with --tmp-size 1MiB or more" in result.err


def test_a_workspace_that_is_gone_is_named(sessions: Sessions, place: Path, workspace: Path, put: Put) -> None:
    put("sub/file")
    session = sessions.create("w", "--workspace", workspace / "sub")
    (workspace / "sub" / "file").unlink()
    (workspace / "sub").rmdir()

    assert str(workspace / "sub") in session.exec("true").refusal()
    assert sessions.names() == ["w"]
