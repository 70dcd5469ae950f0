# SPDX-License-Identifier: Apache-2.0
"""The session store is never visible inside, whichever mount contains its directory."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.sandbox import Arg, Holt, Result
from lib.sessions import Session, Sessions
from lib.tools import needs

EVERYBODY = pytest.mark.identities("user", "root", "nested")
USER_AND_ROOT = pytest.mark.identities("user", "root")

# Every way to read the store, to change it, or to replace it. $1 is the directory "holt", and $2 the top of the mount
# that shows it.
ATTACK = """
S=$1 TOP=$2
cd / || exit
try() { (eval "$1") >/dev/null 2>&1 && echo "DONE $1"; }
try 'ls $S'
try 'cat $S/sessions/*/session.db'
try 'ls $S/sessions'
try 'test -e $S/sessions/victim'
try 'echo x > $S/x'
try 'mkdir $S/sessions'
try 'mkdir -p $S/sessions/evil'
try 'ln -s /etc $S/link'
try 'rm -rf $S; test ! -e $S'
try 'mv $S $S.old'
try 'rmdir $S'
try 'ln -sfn /tmp $S; test -L $S'
try 'chmod 777 $S'
up=$S
while up=$(dirname "$up"); test "$up" != / && test "$up" != "$TOP"; do
    try "mv $up $up.old"
done
test -d "$S" && echo THERE
true
"""

Make = Callable[..., Sessions]
Attack = Callable[..., Result]


@pytest.fixture
def store(holt: Holt) -> Iterator[Make]:
    """Makes a store in a data directory, with a session "victim" in it."""
    made: list[Sessions] = []

    def make(data: Path, *, session: bool = True) -> Sessions:
        for path in reversed([p for p in (data, *data.parents) if not p.exists()]):
            path.mkdir(mode=0o755)
            holt.identity.own(path)
        made.append(Sessions(holt, data))
        if session:
            made[-1].create("victim")
        return made[-1]

    yield make
    for each in made:
        left = each.clean_up()
        assert not left, left


@pytest.fixture(params=["run", "session"])
def start(request: pytest.FixtureRequest) -> Attack:
    """start(SESSIONS, FLAGS, ARGV): runs ARGV in a run, or in a session whose workspace is the working directory. Both
    show the workspace at its own path."""

    def run(sessions: Sessions, flags: list[Arg], *argv: Arg) -> Result:
        if request.param == "run":
            return sessions(["run", *flags, "--", *argv])
        here = [] if "--workspace" in flags else ["--workspace", f"{sessions.holt.cwd}:{sessions.holt.cwd}"]
        made = sessions(["create", "attacker", *here, *flags])
        return Session(sessions, "attacker").exec(*argv) if made.code == 0 else made

    return run


def attack(start: Attack, sessions: Sessions, flags: list[Arg], store: Path, top: Path) -> None:
    """Asserts that the store exists, and that nothing can be done to it."""
    result = start(sessions, flags, "bash", "-c", ATTACK, "sh", store, top).ok()
    assert result.out == "THERE\n", str(result)
    assert (sessions.data / "holt").stat().st_mode & 0o7777 == 0o700
    assert not (sessions.directory / "evil").exists()


def forget(sessions: Sessions) -> None:
    """Removes the attacker's session if it exists."""
    if "attacker" in sessions.names():
        sessions(["rm", "attacker"]).ok()


@contextlib.contextmanager
def mounted(option: str, source: Path, target: Path) -> Iterator[None]:
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", option, source, target], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", target], check=True)


# --- places of the store ---


@EVERYBODY
@pytest.mark.parametrize("name", [".data", "a/b/data"])
def test_a_store_in_the_workspace(name: str, start: Attack, store: Make, workspace: Path) -> None:
    sessions = store(workspace / name)
    attack(start, sessions, [], workspace / name / "holt", workspace)
    Session(sessions, "victim").exec("true").ok()


@USER_AND_ROOT
def test_the_workspace_is_the_data_directory(start: Attack, store: Make, workspace: Path) -> None:
    attack(start, store(workspace), [], workspace / "holt", workspace)


@EVERYBODY
@pytest.mark.parametrize("option", ["--rw", "--ro"])
def test_a_mount_above_the_store(option: str, start: Attack, store: Make, place: Path) -> None:
    sessions = store(place / "above" / "data")
    for top in (place / "above", place / "above" / "data"):
        attack(start, sessions, [option, f"{top}:/x"], Path("/x") / (place / "above/data/holt").relative_to(top), Path("/x"))
        forget(sessions)


@USER_AND_ROOT
def test_a_workspace_that_is_read_only(start: Attack, store: Make, workspace: Path) -> None:
    attack(start, store(workspace / "data"), ["--workspace-mode", "ro"], workspace / "data/holt", workspace)


@USER_AND_ROOT
def test_a_mount_in_a_mount(start: Attack, store: Make, workspace: Path, place: Path) -> None:
    """Both mounts show the store."""
    sessions = store(workspace / "sub/data")
    flags = ["--rw", str(workspace / "sub"), "--rw", f"{workspace}:/again"]
    attack(start, sessions, flags, workspace / "sub/data/holt", workspace / "sub")
    forget(sessions)
    attack(start, sessions, flags, Path("/again/sub/data/holt"), Path("/again"))


@USER_AND_ROOT
def test_a_mount_over_the_store_is_what_it_is(start: Attack, store: Make, workspace: Path, place: Path) -> None:
    """Another directory mounted at the store's path is not the store."""
    other = place / "other"
    (other / "holt").mkdir(parents=True)
    (other / "holt" / "file").write_text("mine")
    sessions = store(workspace / "data")
    result = start(sessions, ["--ro", f"{other}:{workspace}/data"], "cat", workspace / "data/holt/file")
    assert result.ok().out == "mine"


@USER_AND_ROOT
def test_the_store_of_the_home_beside_that_of_the_environment(store: Make, place: Path, workspace: Path) -> None:
    """The next holt may have no XDG_DATA_HOME."""
    sessions = store(place / "data")
    home = place / "home"
    share = home / ".local/share"
    share.mkdir(parents=True)
    for path in (home, home / ".local", share):
        sessions.holt.identity.own(path)
    own = Sessions(sessions.holt, share)
    own.create("victim")
    command = ["run", "--rw", f"{home}/.local:/x", "--", "bash", "-c", ATTACK, "sh", "/x/share/holt", "/x"]
    result = sessions(command, env={"HOME": str(home)}).ok()
    assert result.out == "THERE\n", str(result)
    # ... and without the variable.
    result = sessions.holt(command, env={"HOME": str(home)}).ok()
    assert result.out == "THERE\n", str(result)
    assert not own.clean_up()


@pytest.mark.root_host
@pytest.mark.identities("root")
def test_root_hides_the_store_of_the_user_whose_directory_it_mounts(holt: Holt, place: Path) -> None:
    """The store of the user's account: root's own variables name another."""
    home, uid = place / "home", 54321
    (place / "passwd").write_text(f"root:x:0:0::/root:/bin/sh\nme:x:{uid}:{uid}::{home}:/bin/sh\n")
    share = home / ".local/share"
    share.mkdir(parents=True)
    for path in (home, home / ".local", share):
        os.chown(path, uid, uid)

    def run() -> subprocess.CompletedProcess[str]:
        command = [holt.binary, "run", "--rw", f"{home}/.local:/x", "--", "bash", "-c", ATTACK, "sh", "/x/share/holt", "/x"]
        script = f'mount --bind {place}/passwd /etc/passwd && exec "$@"'
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", *command], capture_output=True, text=True, cwd=holt.cwd
        )

    refused = run()
    assert "could create holt's session store" in refused.stderr and refused.returncode == 125, refused
    (share / "holt").mkdir(mode=0o700)
    os.chown(share / "holt", uid, uid)
    result = run()
    assert result.stdout == "THERE\n", result


# --- symlinks and other names ---


@USER_AND_ROOT
def test_a_link_to_the_store_from_outside(start: Attack, store: Make, workspace: Path, place: Path) -> None:
    """Nobody can replace the symlink, and its target is hidden."""
    (workspace / "real").mkdir()
    store(workspace / "real", session=False).holt.identity.own(workspace / "real")
    (place / "link").symlink_to(workspace / "real")
    sessions = store(place / "link")
    attack(start, sessions, [], workspace / "real/holt", workspace)


@USER_AND_ROOT
@pytest.mark.parametrize("link", ["link", "a/link"])
def test_a_link_that_the_command_could_replace(link: str, start: Attack, store: Make, workspace: Path, place: Path) -> None:
    sessions = store(place / "elsewhere")
    path = workspace / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(place / "elsewhere")
    linked = store(path, session=False)
    refused = start(linked, [], "true")
    # A session's own directories are not opened through such a symlink in the first place.
    if "ELOOP" not in refused.refusal():
        assert f"could replace the symlink {path}, which leads to holt's session store" in refused.refusal(), str(refused)
        assert "If XDG_DATA_HOME names the symlink" in refused.cure
    # If the command cannot write, the symlink may stay.
    start(linked, ["--workspace-mode", "ro"], "true").ok()
    assert sessions.names()


@pytest.mark.root_host
@pytest.mark.identities("root")
@pytest.mark.parametrize("shown", ["home", "home/data"])
def test_the_host_shows_the_store_twice(shown: str, start: Attack, store: Make, place: Path) -> None:
    """A bind mount shows the store a second time, as in a container. The path of the store does not reveal that."""
    sessions = store(place / "home/data")
    inside = Path("/x") / (Path("home/data/holt").relative_to(shown))
    with mounted("--bind", place / shown, place / "alias"):
        attack(start, sessions, ["--rw", f"{place}/alias:/x"], inside, Path("/x"))
        refused = start(sessions, ["--ro", f"{place}/alias/{inside.relative_to('/x')}:/x"], "true")
        assert "is part of holt's session store" in refused.err or "already" in refused.err, str(refused)
        forget(sessions)


@pytest.mark.root_host
@pytest.mark.identities("root")
def test_the_host_shows_the_store_below_a_mount_of_a_session(store: Make, place: Path) -> None:
    """A single run does not look for mounts below its sources."""
    sessions = store(place / "home/data")
    with mounted("--bind", place / "home", place / "above/alias"):
        session = sessions.create("attacker", "--rw", f"{place}/above:/x")
        result = session.exec("bash", "-c", ATTACK, "sh", "/x/alias/data/holt", "/x").ok()
        assert result.out == "THERE\n", str(result)
        # A mount of only a part of the store is refused, too.
    with mounted("--bind", sessions.directory / "victim", place / "above/alias"):
        session.stop()
        refused = session.exec("true")
        assert "is part of holt's session store" in refused.err, str(refused)


@pytest.mark.root_host
@pytest.mark.identities("root")
def test_the_store_is_on_a_file_system_of_its_own(start: Attack, store: Make, workspace: Path) -> None:
    (workspace / "data").mkdir()
    with mounted("--bind", workspace / "data", workspace / "data"):
        sessions = store(workspace / "data")
        attack(start, sessions, [], workspace / "data/holt", workspace)
        forget(sessions)


@needs("busybox")
@USER_AND_ROOT
def test_a_store_in_the_system(store: Make, place: Path) -> None:
    """The system is read-only, but shows a user's files to the user."""
    root = place / "rootfs"
    (root / "usr/bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "", root / "usr/bin/busybox")
    (root / "bin").symlink_to("usr/bin")
    sessions = store(root / "usr/data")
    script = "busybox ls /usr/data/holt && echo DONE; busybox test -d /usr/data/holt && echo THERE"
    result = sessions(["run", "--rootfs", root, "--", "busybox", "sh", "-c", script])
    assert result.out == "THERE\n", str(result)


# --- a store that is made later ---


@EVERYBODY
@pytest.mark.parametrize("data", ["data", ".new/deep/data"])
def test_a_store_that_does_not_exist_yet(data: str, start: Attack, store: Make, workspace: Path, holt: Holt) -> None:
    sessions = Sessions(holt, workspace / data)
    result = holt(["run", "--", "bash", "-c", ATTACK, "sh", workspace / data / "holt", workspace], env=sessions.env).ok()
    assert result.out == "THERE\n", str(result)
    assert (workspace / data / "holt").stat().st_mode & 0o7777 == 0o700
    assert list((workspace / data / "holt").iterdir()) == []
    store(workspace / data)


@EVERYBODY
def test_nothing_is_made_where_the_command_could_not_make_it(holt: Holt, workspace: Path, place: Path) -> None:
    elsewhere, shown = place / "elsewhere", place / "shown"
    shown.mkdir()
    for data, flags in ((elsewhere, []), (shown, ["--ro", str(shown)])):
        holt(["run", *flags, "--", "true"], env={"XDG_DATA_HOME": str(data), "HOME": str(place)}).ok()
    assert not elsewhere.exists() and not list(shown.iterdir()) and not (place / ".local").exists()


@USER_AND_ROOT
def test_a_link_that_leads_to_nothing(holt: Holt, workspace: Path, place: Path) -> None:
    """A symlink in a place that the command cannot write leads to one that it can."""
    (place / "link").symlink_to(workspace / "later")
    result = holt(
        ["run", "--", "bash", "-c", ATTACK, "sh", workspace / "later/holt", workspace],
        env={"XDG_DATA_HOME": str(place / "link")},
    ).ok()
    assert result.out == "THERE\n", str(result)
    (workspace / "dangling").symlink_to(place / "nowhere")
    refused = holt(["run", "--", "true"], env={"XDG_DATA_HOME": str(workspace / "dangling")})
    assert "could replace the symlink" in refused.refusal()


@pytest.mark.root_host
@pytest.mark.identities("root")
def test_root_makes_no_store_for_a_user(holt: Holt, workspace: Path) -> None:
    os.chown(workspace, 54321, 54321)
    refused = holt(["run", "--", "true"], env={"XDG_DATA_HOME": str(workspace / "data")})
    assert "could create holt's session store" in refused.refusal() and f"mkdir -p -m 700 {workspace}/data/holt" in refused.cure
    assert not (workspace / "data").exists()


@USER_AND_ROOT
def test_a_file_in_the_way(holt: Holt, workspace: Path) -> None:
    (workspace / "data").write_text("")
    holt.identity.own(workspace / "data")
    refused = holt(["run", "--", "true"], env={"XDG_DATA_HOME": str(workspace / "data")})
    assert "could create holt's session store" in refused.refusal()


# --- a mount of a part of the store ---


PARTS = [("--rw", "workspace"), ("--ro", "files"), ("--workspace", "workspace"), ("--files", ""), ("--ro", ".."), ("--rw", "../..")]


@USER_AND_ROOT
@pytest.mark.parametrize(("option", "part"), PARTS)
def test_no_mount_begins_in_the_store(option: str, part: str, start: Attack, store: Make, place: Path) -> None:
    sessions = store(place / "data")
    source = os.path.normpath(sessions.directory / "victim" / part)
    refused = start(sessions, [option, source], "true")
    assert f"{option} {source}: {source} is part of holt's session store" in refused.refusal(), str(refused)
    assert "holt cp" in refused.cure


@needs("busybox")
@USER_AND_ROOT
def test_no_system_tree_is_in_the_store(start: Attack, store: Make, place: Path) -> None:
    """For example in another session's root, where the commands of that session could change it."""
    sessions = store(place / "data")
    root = sessions.directory / "victim/root/opt/tree"
    Session(sessions, "victim").sh(f"mkdir -p /opt/tree/usr/bin; cp {shutil.which('busybox')} /opt/tree/usr/bin").ok()
    refused = start(sessions, ["--rootfs", str(root)], "/usr/bin/busybox", "true")
    assert f"--rootfs {root}: {root} is part of holt's session store" in refused.refusal()


@USER_AND_ROOT
def test_no_mount_begins_in_the_store_by_a_link(start: Attack, store: Make, place: Path) -> None:
    sessions = store(place / "data")
    (place / "link").symlink_to(sessions.directory / "victim")
    refused = start(sessions, ["--ro", f"{place}/link/files:/x"], "true")
    assert "is part of holt's session store" in refused.refusal()


@USER_AND_ROOT
def test_a_session_mounts_its_own(store: Make, workspace: Path) -> None:
    sessions = store(workspace / "data")
    session = sessions.create("own", "--rw", str(workspace))
    session.exec("sh", "-c", "echo 1 > /workspace/a; echo 2 > /mnt/files/b; echo 3 > /home/agent/c").ok()
    assert (session.directory / "workspace/a").read_text() == "1\n"
    assert (session.directory / "files/b").read_text() == "2\n"
