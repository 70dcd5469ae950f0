# SPDX-License-Identifier: Apache-2.0
"""The host replaces a protected file while a command runs. A file that the command then makes under that name must not
stay."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from lib.repository import Repository, config
from lib.sandbox import Holt
from lib.sessions import Session, Sessions, until

pytestmark = pytest.mark.identities("user", "root")

# Makes files until one has the inode number of the old .git/config, and renames it there.
RECYCLE = """
import os, time
wanted = os.stat('.git/config').st_ino
print('ready', flush=True)
open('ready', 'w').close()
while os.stat('.git/config').st_ino == wanted: time.sleep(0.01)
for i in range(5000):
    name = f'.git/new-{i}'
    with open(name, 'w') as f: f.write(open('evil').read())
    if os.stat(name).st_ino == wanted: break
os.rename(name, '.git/config')
open('done', 'w').close()
"""


@pytest.fixture
def prepared(repository: Repository) -> Repository:
    repository.identity.run(["bash", "-c", config(repository, "evil")], cwd=repository.path).check_returncode()
    (repository.path / "recycle.py").write_text(RECYCLE)
    repository.identity.own(repository.path / "recycle.py")
    return repository


def replace_meanwhile(repository: Repository, holt_pid: int) -> None:
    """git renames a new file over .git/config. The command goes on while holt itself is stopped."""
    until(lambda: (repository.path / "ready").exists(), "the command runs")
    os.kill(holt_pid, signal.SIGSTOP)
    try:
        repository.git("config", "user.nickname", "x")
        until(lambda: (repository.path / "done").exists(), "the command has a file there")
    finally:
        os.kill(holt_pid, signal.SIGCONT)


def test_a_recycled_inode_is_not_the_protected_file(holt: Holt, prepared: Repository) -> None:
    with holt.start(["run", "--", "/usr/bin/python3", "recycle.py"]) as running:
        replace_meanwhile(prepared, running.pid)
        result = running.wait()

    assert not prepared.use(), str(result)
    assert result.set_aside == [".git/config.holt-untrusted"], str(result)
    assert result.report and result.report["replaced"].endswith("/.git/config"), str(result)
    assert "a command could have changed it" in result.err, str(result)


def test_a_recycled_inode_in_a_session(sessions: Sessions, prepared: Repository, workspace: Path) -> None:
    session = sessions.create("w", "--workspace", workspace)
    process = session.detach("exec /usr/bin/python3 recycle.py")
    replace_meanwhile(prepared, session.keeper())
    result = session("wait", process)

    assert not prepared.use(), str(result)
    assert (workspace / ".git/config.holt-untrusted").exists(), str(result)


def test_a_command_that_has_ended_before_the_keeper_looked(sessions: Sessions, prepared: Repository) -> None:
    """The result names the path, although no process was left to be killed."""
    session = sessions.create("w", "--workspace", prepared.path)
    with session.start("/usr/bin/python3", "recycle.py", flags=("--json",)) as running:
        until(lambda: (prepared.path / "ready").exists(), "the command runs")
        (process,) = [p.pid for p in session.processes("python3")]
        os.kill(keeper := session.keeper(), signal.SIGSTOP)
        try:
            prepared.git("config", "user.nickname", "x")
            until(lambda: not Path(f"/proc/{process}").exists(), "the command has ended")
        finally:
            os.kill(keeper, signal.SIGCONT)
        report = json.loads(running.wait().err)

    assert not prepared.use()
    assert report["replaced"].endswith("/.git/config"), report
    assert report["set_aside"] == [".git/config.holt-untrusted"]


def test_a_call_of_a_client_is_not_the_host(sessions: Sessions, prepared: Repository, workspace: Path) -> None:
    """No command runs. A model's call is served right after the host has replaced the file."""
    session = sessions.create("w", "--workspace", workspace)
    keeper, client = session.keeper(), session.rpc()
    client.call("files.list", path="/workspace")
    os.kill(keeper, signal.SIGSTOP)
    try:
        client.send("files.write", path=".git/config", content=(workspace / "evil").read_text())
        client.send("files.move", **{"from": "evil", "to": ".git/config", "replace": True})
        prepared.git("config", "user.nickname", "x")
    finally:
        os.kill(keeper, signal.SIGCONT)
    session("stop").ok()

    assert not prepared.use()


def test_background_processes_are_not_taken_for_the_host(
    sessions: Sessions, prepared: Repository, workspace: Path
) -> None:
    """The command has ended. A process that it left exchanges the file as soon as it can."""
    session = sessions.create("w", "--workspace", workspace)
    loop = "while :; do cp evil .git/n; mv .git/n .git/config && touch moved; done 2>/dev/null"
    session.out(f"({loop}) </dev/null >/dev/null 2>&1 & touch ready")
    keeper = session.keeper()
    os.kill(keeper, signal.SIGSTOP)
    try:
        prepared.git("config", "user.nickname", "x")
        until(lambda: (workspace / "moved").exists(), "the process has a file there")
    finally:
        os.kill(keeper, signal.SIGCONT)
    until(lambda: (workspace / ".git/config.holt-untrusted").exists(), "it was set aside", timeout=20)

    assert not prepared.use()


def test_the_control_runs_the_payload(prepared: Repository) -> None:
    script = "/usr/bin/python3 recycle.py & while [ ! -e ready ]; do sleep 0.05; done; git config user.nickname x; wait"
    prepared.identity.run(["bash", "-c", script], cwd=prepared.path)

    assert prepared.use()


# Writes to the protected name and to whatever gets its old or new name, as soon as it can.
WRITES = (
    "touch ready; while :; do for f in .git/config .git/config.holt-*; do"
    " cat evil > $f && touch written; done; done 2>/dev/null"
)


@pytest.mark.parametrize("lasting", (False, True))
def test_the_restored_file_is_the_one_that_no_command_could_write(
    lasting: bool, holt: Holt, sessions: Sessions, prepared: Repository
) -> None:
    """holt is stopped meanwhile, so that the command gets its chance."""
    config, before = prepared.path / ".git/config", (prepared.path / ".git/config").read_text()
    session = sessions.create("w", "--workspace", prepared.path)
    argv = ("bash", "-c", WRITES)
    with session.start(*argv) if lasting else holt.start(["run", "--", *argv]) as running:
        until(lambda: (prepared.path / "ready").exists(), "the command runs")
        os.kill(pid := session.keeper() if lasting else running.pid, signal.SIGSTOP)
        try:
            prepared.git("config", "user.nickname", "x")
            until(lambda: (prepared.path / "written").exists(), "the command has written the new file")
        finally:
            os.kill(pid, signal.SIGCONT)
        result = running.wait()

    assert config.read_text() == before, str(result)
    assert (prepared.path / ".git/config.holt-untrusted").exists()
    assert not list(config.parent.glob("*.holt-earlier*"))
    assert not prepared.use()


@pytest.fixture
def replaced(sessions: Sessions, prepared: Repository) -> Session:
    """git on the host has changed the config while a session ran, and nobody has waited for its command."""
    session = sessions.create("w", "--workspace", prepared.path)
    session.detach("mkdir .git/config.holt-earlier; touch .git/config.holt-earlier/x ready; exec sleep 1000")
    until(lambda: (prepared.path / "ready").exists(), "the command runs")
    prepared.git("config", "user.nickname", "x")
    until(lambda: (prepared.path / ".git/config.holt-untrusted").exists(), "it is set aside")
    until(lambda: session.show()["state"] == "at rest", "the session is at rest")
    return session


def test_a_command_can_not_take_the_name_of_the_copy(replaced: Session, prepared: Repository) -> None:
    """The command of the fixture tries to take the name."""
    assert "nickname" not in (prepared.path / ".git/config").read_text()


def test_a_command_can_not_hide_the_change_of_the_host(replaced: Session) -> None:
    assert ".git/config.holt-untrusted" in replaced.sh("rm .git/config.holt-untrusted").ok().err
    assert replaced.exec("true").ok().err == ""
