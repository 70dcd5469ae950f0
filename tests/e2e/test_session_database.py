# SPDX-License-Identifier: Apache-2.0
"""A session's database that is damaged, or that the disk has no room for."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lib import hosts
from lib.bridge import Host
from lib.identity import Identity
from lib.sessions import Session, Sessions, keepers, until


# --- damaged ---


def rest(session: Session) -> Path:
    session("kv", "set", "k", "v").ok()
    session.stop()
    return session.directory / "session.db"


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut short": lambda db: os.truncate(db, 5000),
    "a page short": lambda db: os.truncate(db, db.stat().st_size - 4096),
    "empty": lambda db: os.truncate(db, 0),
    "no database": lambda db: db.write_bytes(b"this is no database at all\n" * 1000),
    "zeroes": lambda db: db.write_bytes(bytes(db.stat().st_size)),
    "gone": lambda db: db.unlink(),
    "a directory": lambda db: (db.unlink(), db.mkdir()),
    "a link": lambda db: (db.rename(db.with_name("other.db")), db.symlink_to("other.db")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_database_is_a_clear_error(damage: str, session: Session) -> None:
    DAMAGE[damage](rest(session))
    result = session.exec("true")

    assert result.refusal()
    assert session("kv", "get", "k").refusal()
    until(lambda: not keepers(), "the keepers that were refused are gone")
    session("rm").ok()


def test_a_database_of_a_newer_version(session: Session) -> None:
    database = rest(session)
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 1000")
        connection.commit()
    result = session.exec("true")
    assert "version 1000" in result.refusal() and "newer" in result.cure
    session("rm").ok()


def test_an_invalid_stored_policy_is_an_error(session: Session) -> None:
    database = rest(session)
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA trusted_schema = 0")
        connection.execute("UPDATE meta SET value = '{\"holt\": 1, \"no-such\": 1}' WHERE name = 'policy'")
        connection.commit()
    assert "no-such" in session.exec("true").refusal()
    session("rm").ok()


@pytest.mark.parametrize("text, seen", (
    ('{"argv": ["id"], "n": [1, null, {"a": 1.5}]}', None),
    ('{"a": ' + "[" * 58 + "]" * 58 + "}", None),
    *((text, {"text": text}) for text in ("cut {", "[1]", '"s"', "", "{}]]]],[[[[{}", "{} {}", '{"a": ' + "[" * 61 + "]" * 61 + "}")),
))
def test_texts_of_the_history_are_objects_in_replies(text: str, seen: object, session: Session) -> None:
    """A text that cannot be read, or is nested too deeply for a reply, comes as it is. Neither breaks the list."""
    session.exec("true").ok()
    session.stop()
    with contextlib.closing(sqlite3.connect(session.directory / "session.db")) as connection, connection:
        connection.execute("UPDATE history SET params = ?, result = ?", (text, text))
        connection.execute("INSERT INTO audit (at_ms, kind, detail) VALUES (1, 'kill', ?)", (text,))
    expected = seen or json.loads(text)

    assert json.loads(session("history", "--json").ok().out)["rows"][0]["params"] == expected
    assert session("history").ok().out.count("\n") == 2 and session("audit").ok().out.count("\n") == 2
    with session.rpc() as rpc:
        (row,), (event,) = rpc("history.list")["rows"], rpc("audit.list")["rows"]
        assert (row["params"], row["result"], event["detail"]) == (expected, expected, expected)
        assert json.loads(session("history", "--json").ok().out)["rows"][0]["result"] == expected


def test_the_log_of_a_killed_keeper_is_read(session: Session) -> None:
    """The files beside the database have the last writes. A copy of all three has them, too."""
    session("kv", "set", "k", "v").ok()
    session.kill_keeper()
    assert (session.directory / "session.db-wal").exists()

    assert session("kv", "get", "k").ok().out == "v\n"


# --- on a full disk ---


# File systems that use or reserve a part of the disk for themselves or root are left out.
BARE_EXT4 = ("-q", "-b", "4096", "-m", "0", "-N", "64", "-O", "^has_journal,^resize_inode")


@pytest.fixture
def small_disk(place: Path, identity: Identity) -> object:
    """Sessions on a file system with a few hundred kilobytes."""
    path, image = place / "disk", place / "image"
    path.mkdir()
    if identity.name == "root" and not hosts.maps_tmpfs():
        with image.open("wb") as file:
            file.truncate(480 << 10)
        subprocess.run(["/sbin/mkfs.ext4", *BARE_EXT4, image], check=True)
        subprocess.run(["mount", "-o", "loop", image, path], check=True)
    else:
        options = f"size=400k,mode=700,uid={identity.uid},gid={identity.gid}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], check=True)
    yield path
    # When a keeper exits, the kernel drops its command line before it closes its files. So keepers() may miss a keeper that still
    # has files open.
    until(lambda: subprocess.run(["umount", path], stderr=subprocess.DEVNULL).returncode == 0, "nobody has it open")


@pytest.mark.root_host
def test_a_full_disk_is_a_clear_error_and_loses_nothing(small_disk: Path, sessions: Sessions) -> None:
    full = Sessions(sessions.holt, small_disk)
    session = full.create("w")
    values = {}
    refused = None
    for i in range(1000):
        result = session("kv", "set", f"k{i}", "x" * 4000)
        if result.code:
            refused = result
            break
        values[f"k{i}"] = "x" * 4000
    assert refused and refused.refusal(), "the disk was not full"
    for key, value in values.items():
        assert session("kv", "get", key).ok().out == value + "\n"
    session.kill_keeper()
    second = session("kv", "get", "k0")
    assert second.code == 0 or second.refusal()
    session.stop()
    other = full(["create", "other"])
    assert other.code == 0 or other.refusal()
    assert [n for n in os.listdir(full.directory) if n.startswith(".")] == []
    assert full.clean_up() == []


@pytest.mark.root_host
def test_a_disk_that_a_command_fills_still_lets_it_be_cleaned(small_disk: Path, sessions: Sessions) -> None:
    full = Sessions(sessions.holt, small_disk)
    session = full.create("w")
    session.exec("true").ok()
    assert session.sh("head -c 1000000 /dev/zero >/workspace/big").code == 1
    result = session.sh("rm /workspace/big && echo room")
    assert (result.code, result.out) == (0, "room\n"), result
    session("kv", "set", "k", "v").ok()
    assert full.clean_up() == []


@pytest.mark.root_host
def test_a_session_whose_rows_wait_starts_on_a_full_disk(small_disk: Path, sessions: Sessions) -> None:
    """The calls were answered, but the rows were not in the database when the keeper was killed."""
    full = Sessions(sessions.holt, small_disk)
    session = full.create("w")
    waiting, big = session.directory / "session.db-pending", session.directory / "workspace" / "big"

    # This connection stays open until the end. The last connection to close would remove files, and so make room on the full
    # disk.
    with contextlib.closing(sqlite3.connect(session.directory / "session.db")) as database:
        with session.rpc() as rpc:
            # While another writes, the keeper can't.
            database.execute("BEGIN IMMEDIATE")
            rpc("exec", shell=": waits")
            session.kill_keeper()
        database.rollback()
        assert waiting.stat().st_size > 0
        with pytest.raises(OSError, match="No space"), big.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        assert session.sh("rm /workspace/big && echo room").ok().out == "room\n"
        until(lambda: waiting.stat().st_size == 0, "they are in the database")
        assert ": waits" in json.dumps(session.history()[-1])
    assert full.clean_up() == []


@pytest.mark.root_host
def test_commands_on_a_full_disk_run_and_are_recorded_later(small_disk: Path, sessions: Sessions) -> None:
    """A command still runs, for it may be the one that makes room."""
    full = Sessions(sessions.holt, small_disk)
    session = full.create("w")
    session.exec("true").ok()
    with session.rpc() as rpc:
        assert rpc("exec", shell="head -c 1000000 /dev/zero >/workspace/big")["exit_code"] == 1
        answers = [rpc("exec", argv=["sh", "-c", f": {i}"]) for i in range(5)]
        assert [a["exit_code"] for a in answers] == [0] * 5
        assert "the disk is full" in answers[-1]["unrecorded"]
        late = rpc("process.spawn", argv=["true"])["id"]
        assert "the disk is full" in rpc("process.wait", id=late)["unrecorded"]
        assert ": 4" not in json.dumps(session.history())
        told = session.exec("sh", "-c", ": told")
        assert told.code == 0 and "not in the session's history yet" in told.err and "the disk is full" in told.err
        told = session.exec("sh", "-c", ": told", flags=["--json"])
        assert "the disk is full" in json.loads(told.err)["unrecorded"]
        told = session("files", "ls").ok()
        assert "not in the session's history yet" in told.err and "the disk is full" in told.err
        assert rpc.refused("kv.set", key="k", value="x" * 100000).errno == "ENOSPC"
        assert rpc.refused("files.write", path="f", content="x" * 100000).errno == "ENOSPC"

        assert "unrecorded" not in rpc("exec", shell="rm /workspace/big")
        assert "unrecorded" not in rpc("process.wait", id=late)
        rows = session.history()
        commands = "".join(json.dumps(row) for row in rows)
        assert all(f": {i}" in commands for i in range(5)) and ": told" in commands
        assert all(row["result"] for row in rows if row["name"] == "exec")
        rpc("kv.set", key="k", value="v")
    assert full.clean_up() == []


@pytest.mark.root_host
def test_waiting_rows_are_written_once_the_disk_has_room(small_disk: Path, sessions: Sessions) -> None:
    """No further call is needed."""
    full = Sessions(sessions.holt, small_disk)
    session = full.create("w")
    session.exec("true").ok()
    with session.rpc() as rpc:
        rpc("exec", shell="head -c 1000000 /dev/zero >/workspace/big")
        until(lambda: "unrecorded" in rpc("exec", argv=["sh", "-c", ": waits"]), "it is full")
        (session.directory / "workspace" / "big").unlink()
        until(lambda: ": waits" in json.dumps(session.history()), "it is written")
    assert full.clean_up() == []


@pytest.mark.root_host
def test_audit_rows_wait_for_room_on_a_full_disk(small_disk: Path, sessions: Sessions) -> None:
    """Rows about denials, kills and tool calls wait. Operations end when their client ends them or disconnects."""
    full = Sessions(sessions.holt, small_disk)
    session = full.create("w")
    with session.rpc() as rpc, session.rpc() as left, session.rpc() as ended:
        host = Host(rpc, {})
        host.tool("t", lambda p: 5)
        left.call("history.begin", name="left")
        ended.call("history.begin", name="ended")
        sleeps = host.call("process.spawn", shell="exec sleep 1000")["id"]
        host.sh("head -c 1000000 /dev/zero >/workspace/big")
        until(lambda: "unrecorded" in host.sh(": waits"), "it is full")
        assert host.sh("unshare --map-root-user true")["exit_code"] == 1
        assert host.sh("holt-tool t '{}'")["stdout"] == "5\n"
        host.call("process.kill", id=sleeps)
        host.call("process.wait", id=sleeps)
        left.close()
        assert "the disk is full" in ended.call("history.end", success=True)["unrecorded"]
        assert session.audit() == []
        assert not any(row["result"] for row in session.history() if row["name"] in ("left", "ended", "tool.call"))

        (session.directory / "workspace" / "big").unlink()
        until(lambda: {row["kind"] for row in session.audit()} == {"denial", "tool", "kill"}, "the audit is written")
        until(lambda: all(row["result"] for row in session.history()), "all have an end")
        results = {row["name"]: row["result"] for row in session.history()}
        assert "ECANCELED" in results["left"] and json.loads(results["ended"]) == {"success": True}
        assert json.loads(results["tool.call"])["responsePreview"] == "5"
    assert full.clean_up() == []
