# SPDX-License-Identifier: Apache-2.0
"""holt rebind: a session takes the directory or file that its caller has put in the place of a source."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Session, Sessions

pytestmark = pytest.mark.identities("user", "root", "nested")


@pytest.fixture
def project(place: Path, identity: Identity) -> Path:
    for path in (place / "project", place / "project" / "file"):
        path.write_text("old\n") if path.name == "file" else path.mkdir()
        identity.own(path)
    return place / "project"


@pytest.fixture
def work(sessions: Sessions, project: Path) -> Session:
    return sessions.create("work", "--workspace", project)


def clone(project: Path, identity: Identity) -> None:
    """Replaces the directory by a new one with the same contents."""
    shutil.rmtree(project)
    project.mkdir()
    (project / "file").write_text("new\n")
    for path in (project, project / "file"):
        identity.own(path)


def grants(session: Session) -> list[dict[str, str]]:
    return [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "grant"]


def test_a_directory_that_was_made_again(work: Session, project: Path, identity: Identity) -> None:
    assert work.out("cat file") == "old\n"
    work.stop()
    clone(project, identity)
    refused = work.sh("cat file")
    assert "it is another directory" in refused.refusal() and "holt rebind work" in refused.cure
    assert work.show()["state"] == "at rest"

    told = work("rebind").ok().out
    assert told == f"/workspace now mounts the new {project}\n"
    assert work.out("cat file") == "new\n"
    assert grants(work) == [{"grant": "holt rebind", "target": "/workspace", "source": str(project)}]


def test_a_live_session_names_the_cure(work: Session, project: Path, place: Path, identity: Identity) -> None:
    """An output that is a file is compared with the sources, because a command must not write holt's inputs."""
    work("exec", "--", "true").ok()
    project.rename(f"{project}.old")
    project.mkdir()
    identity.own(project)
    with open(place / "out", "wb") as out:
        result = work.exec("true", stdout=out)
    assert "replaced while the session was running" in result.refusal()
    assert f"holt stop {work.name}, then holt rebind {work.name}" in result.cure


def test_a_workspace_that_was_removed(work: Session, project: Path, identity: Identity) -> None:
    work.exec("true").ok()
    shutil.rmtree(project)
    refused = work.exec("true")
    assert f"the workspace {project} was removed while the session was running" in refused.refusal()
    assert f"holt stop {work.name}, then holt rebind {work.name}" in refused.cure
    project.mkdir()
    identity.own(project)
    work.stop()
    work("rebind").ok()
    assert work.out("touch new; ls") == "new\n"


def test_a_live_session_is_refused(work: Session) -> None:
    work.exec("true").ok()
    refused = work("rebind")
    assert "running" in refused.refusal() and "holt stop" in refused.cure


def test_rebind_without_a_replaced_source_changes_nothing(work: Session) -> None:
    assert work("rebind").ok().out == "no source was replaced\n"
    assert json.loads(work("rebind", "--json").ok().out) == {"rebound": []}
    assert grants(work) == []


def test_a_missing_directory(work: Session, project: Path, identity: Identity) -> None:
    project.rename(project.with_name("other"))
    for refused in (work.exec("true"), work("rebind")):
        assert "ENOENT" in refused.refusal() and "holt rebind work" in refused.cure
    project.mkdir()
    identity.own(project)
    work("rebind").ok()
    assert work.out("ls") == ""


def test_a_failed_start_leaves_the_session_at_rest(work: Session, project: Path) -> None:
    """When the error arrives, nothing uses the session any more."""
    project.rename(project.with_name("other"))
    for _ in range(20):
        assert "ENOENT" in work.exec("true").refusal()
        work("tier", "medium").ok()


@pytest.mark.parametrize("record", ("", "x", "1:2 - /", "{id} -", "{id} - relative", "{id} x /", "{id}0 - /"))
def test_a_damaged_record(record: str, work: Session) -> None:
    database = work.directory / "session.db"
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        (text,) = db.execute("SELECT value FROM meta WHERE name = 'source:/workspace'").fetchone()
        db.execute("UPDATE meta SET value = ? WHERE name = 'source:/workspace'", [record.format(id=text.split()[0])])
    for path in work.directory.glob("session.db*"):
        work.sessions.holt.identity.own(path)
    for refused in (work.exec("true"), work("show"), work("rebind")):
        assert "damaged record of the source of /workspace" in refused.refusal()
    assert "damaged record" in work.sessions(["ls"]).ok().out


def test_rebind_over_rpc(work: Session, project: Path, identity: Identity) -> None:
    clone(project, identity)
    with work.sessions.serve() as rpc:
        error = rpc.refused("exec", session="work", shell="cat file")
        assert error.kind == "policy" and "it is another directory" in error.message and "session.rebind" in error.hint
        assert rpc.call("session.rebind", session="work") == {
            "rebound": [{"target": "/workspace", "source": str(project)}]
        }
        assert rpc.call("exec", session="work", shell="cat file")["stdout"] == "new\n"


def test_a_directory_that_is_too_wide(sessions: Sessions, place: Path, identity: Identity) -> None:
    """rebind refuses everything that create refuses."""
    home = place / "home"
    identity.own(home) if home.exists() else identity.own(home.mkdir() or home)
    session = sessions.create("work", "--workspace", home)
    identity.own(home.rename(place / "gone").with_name("home").mkdir() or home)
    refused = sessions(["rebind", "work"], env={"HOME": str(home)})
    assert "too wide" in refused.refusal()
    assert "it is another directory" in session.exec("true").refusal()


@pytest.mark.parametrize("option", ("--workspace", "--rw"))
def test_a_link_that_leads_elsewhere_now(option: str, sessions: Sessions, place: Path, identity: Identity) -> None:
    """A client that asks for the session by the same words is told that it has another directory."""
    for name in ("one", "two"):
        identity.own((place / name).mkdir() or place / name)
    (place / "link").symlink_to("one")
    options = [option, str(place / "link") + (":/x" if option == "--rw" else "")]
    sessions.create("work", *options)
    with sessions.serve() as rpc:
        asked = {"workspace": options[1]} if option == "--workspace" else {
            "policy": {"holt": 1, "filesystem": {"read_write": [options[1]]}}
        }
        found = {"name": "work", "find": True, "cwd": "/", **asked}
        assert rpc.call("session.create", **found)["made"] is False
        (place / "link").unlink()
        (place / "link").symlink_to("two")
        error = rpc.refused("session.create", **found)
        assert error.kind == "exists"
        if option == "--workspace":
            assert f"{place}/one, not {place}/two" in error.message
        (place / "link").unlink()
        (place / "link").symlink_to("one")
        assert rpc.call("session.create", **found)["made"] is False


def test_a_renamed_workspace_is_told_by_its_path(sessions: Sessions, place: Path, holt: Holt) -> None:
    """The session was made with ".", which would not help the reader."""
    session = sessions.create("w", "--workspace", ".")
    holt.cwd.rename(place / "renamed")
    for result in (session.sh("true", cwd=place), session("rebind", cwd=place)):
        assert f"cannot open {holt.cwd}, a source of the session (" in result.err, str(result)
        assert "does not follow a source that was renamed" in result.cure, str(result)
    (place / "renamed").rename(holt.cwd)
    session.sh("true").ok()
