# SPDX-License-Identifier: Apache-2.0
"""Sessions by the command line: their names, their beginning and their end."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sessions import Session, Sessions, keepers, until


def listed(sessions: Sessions) -> dict[str, str]:
    return {s["name"]: s["state"] for s in json.loads(sessions(["ls", "--json"]).ok().out)}


def test_a_session_from_create_to_rm(sessions: Sessions) -> None:
    assert sessions(["create", "work"]).ok().out == "work\n"
    assert listed(sessions) == {"work": "at rest"}
    assert sessions(["exec", "work", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]).code == 3
    assert listed(sessions) == {"work": "live"}
    assert sessions(["stop", "work"]).ok().out == ""
    assert listed(sessions) == {"work": "at rest"}
    assert sessions(["rm", "work"]).ok().out == ""
    assert listed(sessions) == {}
    assert list(sessions.directory.iterdir()) == []


def test_machines_are_told_in_json(sessions: Sessions, session: Session) -> None:
    assert json.loads(sessions(["create", "other", "--json"]).ok().out)["name"] == "other"
    assert listed(sessions) == {"other": "at rest", "w": "at rest"}
    session.sh("true").ok()
    shown = session.show()
    assert shown["name"] == "w" and shown["state"] == "live" and shown["cwd"] == "/workspace"


def test_show_names_the_preset(sessions: Sessions) -> None:
    """Tests a session at rest and live. If the policy was a file, the preset is the one that the file extends."""
    for preset in ("standard", "strict"):
        session = sessions.create(preset, "--policy", preset)
        for _ in range(2):
            assert session.show()["preset"] == preset
            assert f"preset      {preset}\n" in session("show").ok().out
            session.wake()


@pytest.mark.alike
def test_there_are_not_any_number_of_sessions(sessions: Sessions, session: Session) -> None:
    others = [sessions.directory / f"other{i}" for i in range(4095)]
    for other in others:
        other.mkdir()
    refused = sessions(["create", "more"])
    session.sh("true").ok()
    for other in others[1:]:
        other.rmdir()
    sessions.create("more")
    others[0].rmdir()

    assert refused.code == 125 and "4096 sessions" in refused.err and "holt rm" in refused.err, refused


def test_stop_ends_what_runs(session: Session) -> None:
    with session.start("sh", "-c", "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.01; done") as running:
        assert running.readline() == "ready"
        session.stop()
        result = running.wait()
    assert (result.code, result.out) == (5, "told\n")


def test_stop_kills_commands_that_ignore_sigterm(sessions: Sessions) -> None:
    session = sessions.create("w", "--kill-after", "100ms")
    session.detach("trap '' TERM; while :; do sleep 1000; done")
    session.stop()

    until(lambda: keepers() == [], "no keeper is left")


@pytest.mark.parametrize("script", ["true", "trap '' TERM; while :; do sleep 1000; done"])
def test_session_stop_is_answered_at_rest(script: str, sessions: Sessions) -> None:
    """Another process may hold the session's lock by then."""
    session = sessions.create("w", "--kill-after", "50ms")
    for _ in range(5):
        session.detach(script)
        with session.rpc() as rpc:
            rpc.call("session.stop")
            with (session.directory / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_stop_is_at_rest_already(session: Session) -> None:
    session.stop()
    session.stop()


def test_rm_of_a_live_session(session: Session) -> None:
    session.detach("mkdir -p /tmp/a/b; chmod 0 /tmp/a; ln -s / /tmp/link; exec sleep 1000")
    session("rm").ok()

    until(lambda: keepers() == [], "no keeper is left")
    assert not session.directory.exists()


def test_an_idle_session_ends(sessions: Sessions) -> None:
    session = sessions.create("w", "--idle", "1s")
    session.exec("true").ok()
    until(lambda: not keepers(), "the keeper leaves")

    session.exec("true").ok()


@pytest.mark.alike
@pytest.mark.slow
def test_a_session_that_works_is_not_idle(sessions: Sessions) -> None:
    session = sessions.create("w", "--idle", "1s")
    session.detach("sleep 2.5; echo survived >/workspace/file")
    until(lambda: not keepers(), "the keeper leaves")

    assert session.sh("cat /workspace/file").ok().out == "survived\n"


@pytest.mark.parametrize("name", ("a/b", "..", ".", "../../x", "", "-x", ".hidden", "x" * 65, "a b", "a\nb", "ä", "a\0b"[:1] + "!"))
def test_a_name_that_can_not_be(name: str, sessions: Sessions) -> None:
    for verb in ("create", "exec", "stop", "rm", "show"):
        result = sessions([verb, name, *(["--", "true"] if verb == "exec" else [])])
        assert result.code == 125 and result.err.startswith(("holt: ", f"holt {verb}: ")) and result.out == "", result
    assert not sessions.directory.is_dir() or list(sessions.directory.iterdir()) == []


@pytest.mark.parametrize("name", ("x" * 64, "a.b_c-d", "0", "A"))
def test_a_name_that_can_be(name: str, sessions: Sessions) -> None:
    assert sessions.create(name).exec("true").ok()


def test_an_unknown_session(sessions: Sessions, session: Session) -> None:
    for args in (["exec", "v", "--", "true"], ["show", "v"], ["stop", "v"], ["rm", "v"], ["ps", "v"], ["kv", "v", "keys"]):
        result = sessions(args)
        assert '"v"' in result.refusal() and '"w"' in result.cure
    assert sessions.names() == ["w"]


def test_creating_an_existing_session_is_refused(sessions: Sessions, session: Session) -> None:
    session.sh("echo kept >/workspace/file").ok()

    assert '"w"' in sessions(["create", "w"]).refusal()
    assert session.sh("cat /workspace/file").ok().out == "kept\n"


def test_a_session_s_directory_that_is_a_link(sessions: Sessions, session: Session, place: Path) -> None:
    (sessions.directory / "link").symlink_to(session.directory)

    assert sessions(["exec", "link", "--", "true"]).code == 125
    (sessions.directory / "link").unlink()


def test_a_very_long_path_of_sessions(sessions: Sessions, identity: Identity) -> None:
    """The path is longer than the limit of a socket's name."""
    deep = sessions.data
    for _ in range(6):
        deep = deep / ("d" * 40)
        deep.mkdir(mode=0o700)
        identity.own(deep)
    long = Sessions(sessions.holt, deep)
    long.create("w").exec("true").ok()

    assert long.clean_up() == []


def test_the_keeper_has_nothing_of_its_starter(sessions: Sessions, session: Session) -> None:
    session.exec("true", env={"SECRET_TOKEN": "s3cret"}).ok()
    keeper = session.keeper()

    assert Path(f"/proc/{keeper}/cmdline").read_bytes() == b"holt\0keeper\0w\0"
    if os.geteuid() == 0:
        # The keeper needs this variable to hide the settings. When holt gives up root, it removes all variables.
        config = f"XDG_CONFIG_HOME={sessions.holt.identity.home}/.config"
        kept = "" if sessions.holt.identity.name == "root" else config
        assert Path(f"/proc/{keeper}/environ").read_bytes().strip(b"\0") == kept.encode()
        assert os.readlink(f"/proc/{keeper}/cwd") == "/"
        for fd in range(3):
            assert os.readlink(f"/proc/{keeper}/fd/{fd}") == "/dev/null"
    assert os.getsid(keeper) == keeper


def test_sessions_see_nothing_of_each_other(sessions: Sessions) -> None:
    one, two = sessions.create("one"), sessions.create("two")
    one.sh("echo secret >/workspace/f; echo secret >/tmp/f; echo secret >/mnt/files/f").ok()
    one.detach("exec sleep 1000")

    assert two.sh("ls /workspace /tmp /mnt/files | grep -c '^f$'; ps ax | grep -c '[s]leep'").out == "0\n0\n"
