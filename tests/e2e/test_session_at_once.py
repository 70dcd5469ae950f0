# SPDX-License-Identifier: Apache-2.0
"""Many commands and clients of one session at once."""

from __future__ import annotations


from lib.sessions import Session, Sessions, keepers


def test_fifty_commands_at_once(session: Session) -> None:
    session.exec("true").ok()
    running = [session.start("sh", "-c", f"echo {i}; exit {i}") for i in range(50)]
    results = [each.wait() for each in running]

    assert [(r.code, r.out) for r in results] == [(i, f"{i}\n") for i in range(50)]


def test_a_session_at_rest_is_started_once_for_all(session: Session) -> None:
    results = [each.wait() for each in [session.start("echo", str(i)) for i in range(20)]]

    assert [r.out for r in results] == [f"{i}\n" for i in range(20)]
    assert len(keepers()) == 1


def test_two_clients_share_files_and_processes(session: Session) -> None:
    with session.start("bash", "-c", "mkfifo /tmp/fifo; echo ready; cat /tmp/fifo") as one:
        assert one.readline() == "ready"
        session.sh("echo through >/tmp/fifo").ok()
        assert one.wait().ok().out == "through\n"


def test_one_of_several_creates_of_a_name_wins(sessions: Sessions) -> None:
    results = [each.wait() for each in [sessions.start(["create", "w"]) for _ in range(8)]]

    assert sorted(r.code for r in results) == [0] + [125] * 7
    assert all('"w"' in r.refusal() for r in results if r.code)
    assert sessions.names() == ["w"]
    assert [p.name for p in sessions.directory.iterdir()] == ["w"]


def test_a_command_while_the_session_stops(session: Session) -> None:
    """The command runs to its end or is ended, and is never lost silently. The session stays usable."""
    for _ in range(5):
        session.exec("true").ok()
        stopping = session.sessions.start(["stop", "w"])
        racing = [session.start("sh", "-c", "echo ran") for _ in range(4)]
        for each in racing:
            result = each.wait()
            assert (result.code, result.out) == (0, "ran\n") or result.code in (137, 143, 125), result
            assert result.code != 125 or result.err.startswith("holt: "), result
        stopping.wait().ok()
    session.exec("true").ok()
