# SPDX-License-Identifier: Apache-2.0
"""From inside a session: out of the exec that one is part of, to the keeper, and to the next start."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lib.sessions import Session, Sessions, until

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
            time.sleep(0.2)  # for it to have many, or to be far: any moment will do
            rpc.call("process.kill", id=process)
            until(lambda: all(p["state"] == "ended" for p in rpc.call("process.list")["processes"]), "killed", 20)
            assert workers(session) == []
    assert session.exec("echo", "next").ok().out == "next\n"


def test_who_kills_the_monitor_dies_with_it(session: Session) -> None:
    other = session.detach("exec sleep 2000")
    assert session.exec("python3", "-c", KILLS_MONITOR).code == 137
    until(lambda: workers(session) == [], "the daemon is dead")

    assert session.ps()[other]["state"] == "running"
    assert session.exec("echo", "next").ok().out == "next\n"


def test_init_and_monitor_can_not_be_entered(session: Session) -> None:
    script = (
        "for pid in 1 $PPID; do for file in mem environ root/etc/shadow cwd/ fd/3 maps exe; do"
        " (head -c1 /proc/$pid/$file) 2>/dev/null | grep -q . && echo open $pid $file; ls /proc/$pid/fd /proc/$pid/cwd/ /proc/$pid/root/ 2>/dev/null; done; done;"
        " kill -STOP 1; kill -KILL 1; echo tried"
    )
    assert session.sh(script).out == "tried\n"
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
        "files", "lock", "root", "workspace",
    ]


def test_neither_the_keeper_nor_other_sessions_are_inside(sessions: Sessions, session: Session) -> None:
    other = sessions.create("other")
    other.sh("echo secret >/workspace/secret").ok()
    found = session.sh("find / \\( -name 'keeper.sock' -o -name 'session.db*' -o -name secret \\) 2>/dev/null").out
    outside = session.sh(f"ls {sessions.data}; ls /proc/*/exe >/dev/null; cat /proc/*/cmdline | tr '\\0' ' '").out

    assert found == ""
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


def test_keys_can_not_be_pushed_into_a_session_s_terminal(session: Session) -> None:
    script = "import fcntl, termios, os\nfd = os.open('/dev/tty', os.O_RDWR)\nfor r in (0x5412, 0x5412 | 1 << 32, 0x541c):\n    try:\n        fcntl.ioctl(fd, r if r < 1 << 32 else 0x5412, b'x'); print('pushed')\n    except OSError as e:\n        print('refused', e.errno)\n"
    with session.rpc() as rpc:
        process = rpc.call("process.spawn", argv=["python3", "-c", script], terminal=7)["id"]
        rpc.call("process.wait", id=process)
        text = rpc.call("process.wait", id=process, output=True)["stdout"]
    assert "pushed" not in text and "refused" in text
