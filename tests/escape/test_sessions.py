# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside a session: out of the command's own exec, on the keeper, and on the next start."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lib.hostile import Attack, Hostile, Outcome
from lib.sessions import Session, Sessions, until
from lib.terminal import Terminal

HOPPER = """
import os
os.setsid()
while True:
    if os.fork():
        os._exit(0)
"""

# The command's parent is its monitor; the daemon is orphaned with it.
KILLS_MONITOR = """
import os, signal, time
monitor = os.getppid()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(1000)
    time.sleep(1000)
os.kill(monitor, signal.SIGKILL)
time.sleep(1000)
"""

BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""


def workers(session: Session) -> list[object]:
    return [p for p in session.processes() if p.name.startswith("python3")]


@pytest.mark.parametrize("script", (HOPPER, BOMB), ids=("hops", "fork bomb"))
def test_kill_ends_those_who_fork_without_end(script: str, sessions: Sessions) -> None:
    session = sessions.create("w", "--pids", "60")
    session.exec("true").ok()
    with session.rpc() as rpc:
        for _ in range(3):
            process = rpc.call("process.spawn", argv=["python3", "-c", script])["id"]
            time.sleep(0.2)  # Time for it to have many processes, or to get far: any moment will do.
            rpc.call("process.kill", id=process)
            until(lambda: all(p["state"] == "ended" for p in rpc.call("process.list")["processes"]), "killed", 20)
            assert workers(session) == []
    assert session.exec("echo", "next").ok().out == "next\n"


def test_killing_the_monitor_kills_the_command(session: Session) -> None:
    other = session.detach("exec sleep 2000")
    assert session.exec("python3", "-c", KILLS_MONITOR).code == 137
    until(lambda: workers(session) == [], "the daemon is dead")

    assert session.ps()[other]["state"] == "running"
    assert session.exec("echo", "next").ok().out == "next\n"


def test_init_can_not_be_killed(session: Session) -> None:
    """From inside, PID 1 gets only signals that it handles (pid_namespaces(7)). See test_session_monitors.py for its
    memory and its descriptors."""
    assert session.out("kill -STOP 1; kill -KILL 1; kill -TERM 1; echo tried") == "tried\n"
    assert session.exec("echo", "next").ok().out == "next\n"


def test_a_monitor_that_is_stopped_goes_on(session: Session) -> None:
    assert session.sh("kill -STOP $PPID; exit 3", "--timeout", "5s").code == 3


PLANTS = {
    "links for directories": "cd /; for d in mnt home opt var tmp; do mv $d $d.old; ln -s {target} $d; done 2>/dev/null",
    "links for system": "cd /; for d in bin sbin lib32 lib64; do rm -rf $d; ln -s {target} $d; done 2>/dev/null",
    "a link up": "cd /; mv mnt m; ln -s ../../../.. mnt; mv home h; ln -s ../../../../../../../.. home; true",
    "a file": "cd /; mv mnt m; touch mnt",
}


@pytest.mark.parametrize("plant", PLANTS)
def test_the_next_start_follows_no_link_of_the_last(plant: str, session: Session, place: Path) -> None:
    target = place / "target"
    target.mkdir()
    target.chmod(0o777)
    before = sorted(os.listdir(place))
    session.sh(PLANTS[plant].format(target=target))
    session.stop()
    result = session.exec("/usr/bin/true")

    assert result.code == 0 or result.refusal()
    assert list(target.iterdir()) == []
    assert sorted(os.listdir(place)) == before
    assert sorted(p.name for p in session.directory.iterdir() if "session.db" not in p.name and p.name != "keeper.sock") == [
        "files", "lock", "process.last", "root", "workspace",
    ]


def test_neither_the_keeper_nor_other_sessions_are_inside(sessions: Sessions, session: Session) -> None:
    other = sessions.create("other")
    other.sh("echo secret >/workspace/secret").ok()
    # /usr is excluded: it is the host's own, and takes minutes on an emulated processor.
    names = "-name 'keeper.sock' -o -name 'session.db*' -o -name secret"
    found = session.sh(f"touch ~/session.db.own; find / -path /usr -prune -o \\( {names} \\) -print 2>/dev/null").out
    outside = session.sh(f"ls {sessions.data}; ls /proc/*/exe >/dev/null; cat /proc/*/cmdline | tr '\\0' ' '").out

    assert found == "/home/agent/session.db.own\n"
    assert "keeper" not in outside.replace("keeper.sock", "")


def test_hooks_that_a_session_plants_are_set_aside(sessions: Sessions, workspace: Path) -> None:
    session = sessions.create("w", "--workspace", workspace)
    session.sh("git init -q . 2>/dev/null; mkdir -p .git/hooks; echo 'touch /tmp/owned' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout")
    session.stop()

    assert not (workspace / ".git" / "hooks" / "post-checkout").exists()


def test_hooks_that_a_session_plants_are_set_aside_after_a_crash(sessions: Sessions, workspace: Path) -> None:
    session = sessions.create("w", "--workspace", workspace)
    session.sh("git init -q . 2>/dev/null; mkdir -p .git/hooks; echo 'touch /tmp/owned' >.git/hooks/post-checkout")
    session.exec("true").ok()
    session.kill_keeper()
    session.exec("true").ok()
    session.stop()

    assert not (workspace / ".git" / "hooks" / "post-checkout").exists()


# The control is in test_terminal.py: test_the_attacks_work_on_a_terminal_of_one_s_own.
@pytest.mark.parametrize("name", ("tiocsti", "tiocsti-high-bit", "tiocsti-reopened", "tioclinux", "tioclinux-high-bit"))
@pytest.mark.parametrize("by", ("rpc", "command line"))
def test_nothing_is_typed_into_a_session_s_terminal(by: str, name: str, sessions: Sessions, hostile: Hostile) -> None:
    """An attack can type neither into the caller's terminal, nor into that of the exec, which the next exec might read."""
    session = sessions.create("w", "--ro", str(hostile.directory))
    argv = [str(hostile.path("terminal")), name]
    if by == "rpc":
        with session.rpc() as rpc:
            process = rpc.call("process.spawn", argv=argv, terminal=7)["id"]
            text = rpc.call("process.wait", id=process, output=True)["stdout"]
    else:
        holt = sessions.holt
        with Terminal(holt.identity, holt.argv(["exec", "w", "--", *argv]), cwd=holt.cwd, env=sessions.env) as caller:
            caller.wait()
            text = caller.output
            assert caller.pushed() == 0
    assert Outcome.of(Attack("terminal", name), text, text).verdict == "HOLDS"
