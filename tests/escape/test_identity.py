# SPDX-License-Identifier: Apache-2.0
"""A sandboxed process, seen from the host, has no privilege and is never root."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lib import hosts, leaks
from lib.identity import Identity
from lib.sandbox import Holt, Running
from lib.sessions import Sessions


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def ids(pid: int, field: str) -> set[int]:
    return {int(word) for word in status(pid)[field].split()}


@pytest.fixture
def live(holt: Holt) -> Running:
    """A sandbox that waits for a line."""
    with holt.start(["run", "--", "sh", "-c", "echo ready; read line; sleep 0"], stdin=subprocess.PIPE) as running:
        assert running.readline() == "ready"
        yield running
        running.wait(b"\n")


def inside(live: Running) -> list[int]:
    """Host PIDs of its processes: those in another pid namespace than ours."""
    pids = [p.pid for p in leaks.descendants(live.pid)]
    assert len(pids) >= 2  # init and the command
    return pids


def test_no_process_inside_is_root_on_the_host(live: Running) -> None:
    for pid in inside(live):
        assert 0 not in ids(pid, "Uid")
        assert 0 not in ids(pid, "Gid")


def test_no_process_inside_has_root_s_groups(live: Running, identity: Identity) -> None:
    expected = set() if identity.name == "root" else {*os.getgroups(), identity.gid} - {0}
    for pid in inside(live):
        assert ids(pid, "Groups") <= expected


def test_the_uid_of_a_user_is_the_caller_s_and_of_root_one_of_its_own(live: Running, identity: Identity) -> None:
    for pid in inside(live):
        if identity.name == "root":
            assert min(ids(pid, "Uid")) >= 65536
        else:
            assert ids(pid, "Uid") == {identity.uid}


@pytest.mark.identities("root")
def test_two_sandboxes_of_root_are_two_users(holt: Holt, live: Running) -> None:
    with holt.start(["run", "--", "sh", "-c", "echo ready; read line"], stdin=subprocess.PIPE) as other:
        assert other.readline() == "ready"
        assert ids(inside(live)[0], "Uid").isdisjoint(ids(inside(other)[0], "Uid"))
        other.wait(b"\n")


@pytest.mark.identities("root")
def test_sandboxes_in_two_pid_namespaces_do_not_share_a_uid(holt: Holt) -> None:
    """Root in two containers has the same PIDs and does not see the other container's processes."""
    command, container = ["run", "--", "sh", "-c", "echo ready; read line"], ["unshare", "--pid", "--fork", "--mount-proc"]
    with contextlib.ExitStack() as stack:
        uids: list[set[int]] = []
        for _ in range(4):
            running = stack.enter_context(holt.start(command, stdin=subprocess.PIPE, prefix=container))
            stack.callback(running.wait, b"\n")
            assert running.readline() == "ready"
            launcher = next(p.pid for p in leaks.descendants(running.pid) if p.name == "holt")
            assert status(launcher)["NSpid"].split()[1:] == ["1"]
            uids.append(ids(launcher, "Uid"))

    assert all(len(each) == 1 and 2_000_200_000 < min(each) < 1 << 31 for each in uids)
    assert len(set.union(*uids)) == len(uids)


@pytest.mark.identities("root")
def test_the_launcher_does_not_stay_root(live: Running) -> None:
    assert 0 not in ids(live.pid, "Uid")
    assert 0 not in ids(live.pid, "Gid")
    assert status(live.pid)["Groups"] == ""
    assert int(status(live.pid)["CapEff"], 16) == 0
    assert int(status(live.pid)["CapPrm"], 16) == 0


def test_the_keeper_has_no_capability(sessions: Sessions) -> None:
    """This also holds in a user namespace of the caller. With CAP_DAC_OVERRIDE, the keeper could read files whose mode forbids
    it."""
    session = sessions.create("work")
    keeper = session.keeper()
    with session.rpc() as rpc:
        rpc.call("files.grep", pattern="x", path="/etc")  # makes the keeper start a thread
    for thread in os.listdir(f"/proc/{keeper}/task"):
        seen = status(int(thread))
        assert {int(seen[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}


def test_every_process_inside_is_confined(live: Running) -> None:
    """The kernel confirms it; the report alone would not prove it."""
    for pid in inside(live):
        seen = status(pid)
        assert seen["NoNewPrivs"] == "1"
        assert seen["Seccomp"] == "2"
        assert {int(seen[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}


@pytest.mark.parametrize("kind", ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"))
def test_every_process_inside_has_namespaces_of_its_own(kind: str, live: Running) -> None:
    ours = os.stat(f"/proc/self/ns/{kind}").st_ino
    holts = os.stat(f"/proc/{live.pid}/ns/{kind}").st_ino if os.geteuid() == 0 else ours
    theirs = []
    for pid in inside(live):
        try:
            theirs.append(os.stat(f"/proc/{pid}/ns/{kind}").st_ino)
        except PermissionError:
            continue  # init is not dumpable, so only root may look.
    assert theirs
    assert {ours, holts}.isdisjoint(theirs)


def test_exactly_one_id_is_mapped(live: Running) -> None:
    for pid in inside(live):
        for kind in ("uid_map", "gid_map"):
            lines = Path(f"/proc/{pid}/{kind}").read_text().splitlines()
            assert len(lines) == 1
            assert lines[0].split()[2] == "1"
            assert lines[0].split()[0] == "1000"


def test_inside_everyone_is_the_agent(holt: Holt) -> None:
    result = holt.sh("id; id -un").ok()

    assert re.match(r"uid=1000\(agent\) gid=1000\(agent\) groups=1000\(agent\)", result.out)


# --- files of the workspace ---


def test_files_made_inside_belong_to_the_workspace_s_owner(holt: Holt, workspace: Path, identity: Identity) -> None:
    holt.sh("echo text >made; mkdir dir").ok()

    for name in ("made", "dir"):
        st = (workspace / name).stat()
        assert (st.st_uid, st.st_gid) == (identity.uid, identity.gid)


@pytest.mark.identities("root")
def test_a_workspace_of_somebody_else_gives_root_s_sandbox_no_root_files(
    holt: Holt, workspace: Path, hostile
) -> None:
    """If root runs holt on a user's directory, new files belong to the user, and root's files there still belong to
    root."""
    owner = hostile.caller.uid
    for path in (workspace, workspace / "theirs", workspace / "roots"):
        path.touch() if path != workspace else None
        os.chown(path, owner, owner)
    os.chown(workspace / "roots", 0, 0)
    (workspace / "roots").chmod(0o644)
    holt.sh("echo text >made; echo evil >theirs; echo evil >roots").out

    assert (workspace / "made").stat().st_uid == owner
    assert (workspace / "theirs").read_text() == "evil\n"
    assert (workspace / "roots").read_text() == ""


@pytest.mark.root_host
def test_a_private_file_of_another_user_stays_private(holt: Holt, workspace: Path, identity: Identity, hostile) -> None:
    """In the workspace too: an id map is for its owner's files, not for everybody's."""
    other = 0 if identity.uid != 0 else hostile.caller.uid
    private = workspace / "private"
    private.write_text("private\n")
    os.chown(private, other, other)
    private.chmod(0o600)

    assert "private" not in holt.sh("cat private").out
    assert "private" not in holt.sh("chmod 644 private; cat private").out


@pytest.mark.root_host
@pytest.mark.identities("user", "nested")
def test_mounted_files_of_root_stay_private(holt: Holt, place: Path) -> None:
    """--ro on a directory gives an ordinary user's sandbox no right to read root's own files in it."""
    given = place / "given"
    given.mkdir()
    (given / "key").write_text("private\n")
    (given / "key").chmod(0o600)

    assert "private" not in holt.sh(f"cat {given}/key", "--ro", given).out


OVERLAY = """
mount -t tmpfs none {top} && cd {top} && mkdir lower upper work merged
mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none merged
cd merged && chown {owner} . && exec "$0" "$@"
"""


@pytest.mark.identities("root")
@pytest.mark.parametrize("flags", ((), ("--allow-degraded", "idmap")))
def test_root_s_directory_without_an_id_map_is_refused(flags: tuple[str, ...], holt: Holt, place: Path) -> None:
    """In a container, for example, since overlayfs has no id maps. The command never gets root's uid, whatever the
    caller allows."""
    top = place / "overlay"
    top.mkdir()
    prefix = ["unshare", "--mount", "sh", "-c", OVERLAY.format(top=top, owner="0:0")]
    result = holt(["run", *flags, "--", "cat", "/proc/self/uid_map"], prefix=prefix)

    assert "idmap" in result.refusal() + result.cure or "root" in result.refusal()
    assert result.cure != ""


@pytest.mark.identities("root")
def test_without_an_id_map_the_command_is_the_owner_of_the_workspace(holt: Holt, place: Path) -> None:
    top = place / "overlay"
    top.mkdir()
    prefix = ["unshare", "--mount", "sh", "-c", OVERLAY.format(top=top, owner="61999:61999")]
    result = holt(["run", "--allow-degraded", "idmap", "--", "cat", "/proc/self/uid_map"], prefix=prefix).ok()

    assert result.out.split() == ["1000", "61999", "1"]


# A process with the id of the workspace's owner takes file 9 from every process that it may trace.
TRACER = """
import ctypes, os, sys
os.setgroups([]); os.setgid({owner}); os.setuid({owner})
libc = ctypes.CDLL(None)
print("ready", flush=True)
while True:
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) > os.getpid()):
        try:
            process = os.pidfd_open(pid)
        except OSError:
            continue
        fd = libc.syscall(438, process, 9, 0)  # pidfd_getfd(2)
        if fd >= 0 and os.readlink(f"/proc/self/fd/{{fd}}").endswith("key"):
            sys.exit(print("taken"))
        os.close(process)
"""
TRACED = """
{python} -c '{tracer}' >{log} &
until grep -q ready {log}; do sleep 0.01; done
exec 9<>{key}
for i in $(seq 30); do "$0" "$@" || exit; done
kill $!
cat {log}
"""


@pytest.mark.root_host
@pytest.mark.identities("root")
@pytest.mark.parametrize("host", ("rootless", "without an id map"))
def test_other_processes_of_the_owner_s_uid_get_nothing_of_holt(host: str, holt: Holt, place: Path, workspace: Path) -> None:
    """While it starts, holt has that id too, and the files that its caller has open."""
    first = hosts.ROOTLESS_FIRST if host == "rootless" else 0
    top, key, log = place / "overlay", place / "key", place / "log"
    for path in (key, log):
        path.touch(mode=0o600)
        os.chown(path, first, first)
    top.mkdir()
    os.chown(workspace, first + 1000, first + 1000)
    prefix = hosts.rootless() if host == "rootless" else [
        "unshare", "--mount", "sh", "-c", OVERLAY.format(top=top, owner="1000:1000")
    ]
    script = TRACED.format(python=sys.executable, tracer=TRACER.format(owner=1000), log=log, key=key)
    result = holt(
        ["run", "--allow-degraded", "idmap", "--", "cat", "/proc/self/uid_map"], prefix=[*prefix, "bash", "-c", script],
        report=False,
    ).ok()

    assert result.out.split() == [*["1000", "1000", "1"] * 30, "ready"]
