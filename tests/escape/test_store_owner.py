# SPDX-License-Identifier: Apache-2.0
"""holt obeys a session only if the effective user wrote it: owner and mode of the store, whenever it is opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lib.sessions import Session

EVERYBODY = pytest.mark.identities("user", "root", "nested")

# From the session's directory.
PARTS = ["..", "../..", ".", "session.db", "session.db-wal", "session.db-shm", "session.db-pending"]

VERBS: dict[str, list[str]] = {
    "exec": ["exec", "w", "--", "touch", "/workspace/ran"],
    "show": ["show", "w"],
    "history": ["history", "w"],
    "rm": ["rm", "w"],
    "tier": ["tier", "w", "medium"],
}


def make(session: Session, part: str) -> Path:
    """The part, which SQLite may have taken away when the session stopped."""
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

    assert f"{path} may be written by other users (mode {mode:04o})" in refused.refusal(), str(refused)
    assert f"chmod go-w {path}" in refused.cure
    assert not (session.directory / "workspace" / "ran").exists()
    session.exec("true").ok()


@pytest.mark.root_host
@EVERYBODY
@pytest.mark.parametrize("part", PARTS)
def test_the_store_belongs_to_who_runs_holt(part: str, session: Session) -> None:
    path = make(session, part)
    os.chown(path, 54321, 54321)
    try:
        # An ordinary user may not even get as far as that.
        refused = session.exec("touch", "/workspace/ran")
        assert refused.code == 125 and str(path) in refused.err, str(refused)
    finally:
        session.sessions.holt.identity.own(path)
    assert not (session.directory / "workspace" / "ran").exists()
    session.exec("true").ok()


@pytest.mark.identities("root")
@pytest.mark.parametrize("verb", VERBS)
def test_root_does_not_obey_the_sessions_of_a_user(verb: str, session: Session) -> None:
    """As under sudo with the user's HOME: all of the store is the user's."""
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
def test_lists_are_refused_as_well(session: Session) -> None:
    session.sessions.directory.chmod(0o777)
    refused = session.sessions(["ls"])
    made = session.sessions(["create", "other"])
    session.sessions.directory.chmod(0o700)

    assert "may be written by other users" in refused.err and refused.code == 125
    assert "may be written by other users" in made.err and made.code == 125


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
