# SPDX-License-Identifier: Apache-2.0
"""holt obeys a session only if the effective user wrote it: it checks owner and mode of the store each time it opens
it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.sandbox import Holt, Result
from lib.sessions import Session, Sessions

EVERYBODY = pytest.mark.identities("user", "root", "nested")

# Paths from the session's directory.
PARTS = ["..", "../..", ".", "session.db", "session.db-wal", "session.db-shm", "session.db-pending"]

VERBS: dict[str, list[str]] = {
    "exec": ["exec", "w", "--", "touch", "/workspace/ran"],
    "show": ["show", "w"],
    "history": ["history", "w"],
    "rm": ["rm", "w"],
    "tier": ["tier", "w", "medium"],
}


def make(session: Session, part: str) -> Path:
    """The part, which SQLite may have removed when the session stopped."""
    path = session.directory / part
    if not path.exists():
        path.touch(0o600)
        session.sessions.holt.identity.own(path)
    return Path(os.path.normpath(path))


@EVERYBODY
@pytest.mark.parametrize("mode", [0o720, 0o702])
@pytest.mark.parametrize("part", PARTS)
def test_nobody_else_may_write_to_the_store(part: str, mode: int, session: Session) -> None:
    path = make(session, part)
    before = path.stat().st_mode & 0o7777
    path.chmod(mode)
    refused = session.exec("touch", "/workspace/ran")
    path.chmod(before)

    assert f"other users may write to {path} (mode {mode:04o})" in refused.refusal(), str(refused)
    assert f"chmod go-w {path}" in refused.cure
    assert not (session.directory / "workspace" / "ran").exists()
    session.exec("true").ok()


@pytest.mark.root_host
@EVERYBODY
@pytest.mark.parametrize("part", PARTS)
def test_the_store_must_belong_to_the_user(part: str, session: Session) -> None:
    path = make(session, part)
    os.chown(path, 54321, 54321)
    try:
        # An ordinary user may fail even earlier.
        refused = session.exec("touch", "/workspace/ran")
        assert refused.code == 125 and str(path) in refused.err, str(refused)
    finally:
        session.sessions.holt.identity.own(path)
    assert not (session.directory / "workspace" / "ran").exists()
    session.exec("true").ok()


@pytest.mark.identities("root")
@pytest.mark.parametrize("verb", VERBS)
def test_root_does_not_obey_the_sessions_of_a_user(verb: str, session: Session) -> None:
    """For example under sudo with the user's HOME: the whole store belongs to the user."""
    for path in (session.sessions.data / "holt", *(session.sessions.data / "holt").rglob("*")):
        os.chown(path, 54321, 54321, follow_symlinks=False)
    try:
        refused = session.sessions(VERBS[verb])
        assert refused.code == 125 and "belongs to uid 54321, and holt runs as uid 0" in refused.err, str(refused)
        assert "set XDG_DATA_HOME" in refused.err
    finally:
        for path in (session.sessions.data / "holt", *(session.sessions.data / "holt").rglob("*")):
            os.chown(path, 0, 0, follow_symlinks=False)
    assert session.directory.is_dir()


@EVERYBODY
def test_ls_and_create_refuse_a_store_that_others_may_write(session: Session) -> None:
    session.sessions.directory.chmod(0o777)
    refused = session.sessions(["ls"])
    made = session.sessions(["create", "other"])
    session.sessions.directory.chmod(0o700)

    assert "other users may write to" in refused.err and refused.code == 125
    assert "other users may write to" in made.err and made.code == 125


@EVERYBODY
@pytest.mark.parametrize("part", ["..", "../..", ".", "session.db"])
def test_no_link_is_followed_into_the_store(part: str, session: Session, place: Path) -> None:
    path = make(session, part)
    elsewhere = place / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    session.sessions.holt.identity.own(path)
    refused = session.exec("true")
    path.unlink()
    elsewhere.rename(path)

    assert refused.code == 125, str(refused)
    session.exec("true").ok()


# --- the directories above ---


def refused(sessions: Sessions) -> Result:
    """The answer of exec, after asserting that holt makes no session either."""
    made = sessions(["create", "other"])
    assert made.code == 125 and made.out == "", str(made)
    return sessions(["exec", "w", "--", "true"])


@EVERYBODY
@pytest.mark.parametrize(("above", "mode"), [("data", 0o775), ("a", 0o757), ("a/b", 0o777)])
def test_nobody_else_may_write_above_the_store(above: str, mode: int, holt: Holt, place: Path) -> None:
    path = place / "a/b/data"
    for each in (place / "a", place / "a/b", path):
        each.mkdir()
        holt.identity.own(each)
    sessions = Sessions(holt, path)
    session = sessions.create()
    path = path if above == "data" else place / above
    if os.geteuid() == 0:
        os.chown(path, -1, 54321)
    path.chmod(mode)
    result = refused(sessions)
    assert f"other users may write to {path}, a parent directory of holt's sessions (mode {mode:04o})" in result.refusal()
    assert f"chmod {'go-w' if mode & 2 else 'g-w'} {path}" in result.cure and "XDG_DATA_HOME" in result.cure
    assert ("counts as private only if /etc/passwd lists it" in result.cure) is not bool(mode & 2)
    assert "other users may write to" in sessions(["ls"]).err
    # In a sticky directory, nobody can rename other users' files.
    path.chmod(mode | 0o1000)
    session.exec("true").ok()
    path.chmod(0o755)
    assert not sessions.clean_up()


@pytest.mark.root_host
@EVERYBODY
@pytest.mark.parametrize("above", ["a", "a/b"])
def test_a_stranger_above_the_store(above: str, holt: Holt, place: Path) -> None:
    path = place / "a/b/data"
    for each in (place / "a", place / "a/b", path):
        each.mkdir()
        holt.identity.own(each)
    sessions = Sessions(holt, path)
    sessions.create()
    # For root of a user namespace, even the host's root is an unmapped id.
    os.chown(place / above, 54321, 54321)
    if holt.identity.name != "nested":
        result = refused(sessions)
        assert f"{place / above}, a parent directory of holt's sessions, belongs to uid 54321" in result.refusal()
        assert "set XDG_DATA_HOME" in result.cure
    os.chown(place / above, 0, 0)
    sessions(["exec", "w", "--", "true"]).ok()
    assert not sessions.clean_up()


@pytest.mark.identities("user", "root")
def test_the_directories_of_a_link_are_looked_at(holt: Holt, place: Path) -> None:
    """holt checks the directories that contain the symlink, and those through which it leads."""
    for name in ("shared", "shared/data", "mine"):
        (place / name).mkdir()
        holt.identity.own(place / name)
    (place / "mine/link").symlink_to("../shared/data")
    (place / "shared/link").symlink_to(place / "mine")
    for data in (place / "mine/link", place / "shared/link"):
        sessions = Sessions(holt, data)
        sessions.create()
        (place / "shared").chmod(0o757)
        assert f"{place}/shared, a parent directory" in refused(sessions).refusal()
        (place / "shared").chmod(0o755)
        assert not sessions.clean_up()


@pytest.mark.identities("root")
def test_a_home_of_another_user(holt: Holt, place: Path) -> None:
    """For example in a container of a CI runner: root with HOME=/github/home."""
    home = place / "home"
    home.mkdir()
    os.chown(home, 54321, 54321)
    result = holt(["create", "w"], env={"HOME": str(home)})
    assert f"{home}, a parent directory of holt's sessions, belongs to uid 54321" in result.refusal()
    assert not list(home.iterdir())
    sessions = Sessions(holt, place)
    sessions.create().exec("true").ok()
    assert not sessions.clean_up()
    # A single run obeys no store.
    holt(["run", "--", "true"], env={"HOME": str(home)}).ok()


@pytest.mark.root_host
@pytest.mark.identities("root")
@pytest.mark.parametrize("members", ["", "me", "other"])
def test_a_home_that_the_user_s_own_group_may_write(members: str, holt: Holt, place: Path) -> None:
    """Debian and Fedora give each user a group of their own. With a umask of 002, that group may write to the user's
    directories."""
    uid = 54321
    (place / "passwd").write_text(f"root:x:0:0::/:/bin/sh\nme:x:{uid}:{uid}::{place}:/bin/sh\nother:x:54322:54322::/:/bin/sh\n")
    (place / "group").write_text(f"root:x:0:\nme:x:{uid}:{members}\n")
    home = place / "home"
    home.mkdir()
    home.chmod(0o775)
    os.chown(home, uid, uid)
    mount = f"mount --bind {place}/passwd /etc/passwd && mount --bind {place}/group /etc/group"
    script = f"{mount} && exec setpriv --reuid={uid} --regid={uid} --clear-groups env HOME={home} {holt.binary} create w"
    made = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, cwd=home)
    assert (made.returncode == 0) == (members != "other"), made.stderr
    if members == "other":
        assert f"chmod g-w {home}" in made.stderr
        return
    # An ACL may name other users, whatever the group is.
    if shutil.which("setfacl"):
        subprocess.run(["setfacl", "-m", "u:54322:rwx", home], check=True)
        made = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, cwd=home)
        assert f"other users may write to {home}, a parent directory of holt's sessions" in made.stderr
