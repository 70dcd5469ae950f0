# SPDX-License-Identifier: Apache-2.0
"""Long calls about files do not delay other calls, and end like short ones."""

from __future__ import annotations

import os

import pytest

from lib.sessions import Json, Rpc, Session, until

pytestmark = pytest.mark.alike


@pytest.fixture
def rpc(session: Session) -> Rpc:
    return session.rpc()


# Methods that take long, with the parameters of their calls.
LONG: dict[str, Json] = {
    "files.copy": {"from": "tree", "to": "copy", "recursive": True},
    "files.move": {"from": "tree", "to": "/mnt/files/moved"},
    "files.remove": {"path": "tree", "recursive": True},
    "files.list": {"path": "tree", "recursive": True, "limit": 10000},
    "files.glob": {"pattern": "**/*9*"},
    "files.grep": {"pattern": "no such text"},
    "mount.list": {"limit": 500},
    "mount.delete": {"path": "tree"},
}


def plant(session: Session, method: str) -> str:
    """Makes 3,000 files, or 12,000 for methods that only read, and returns their directory."""
    place = "/mnt/files" if method.startswith("mount.") else "/workspace"
    each = 600 if method.endswith(("list", "glob")) else 150
    session.out(f"cd {place} && mkdir -p tree/{{1..20}} && for d in tree/*; do (cd $d && seq {each} | xargs touch); done")
    return place


@pytest.mark.slow
@pytest.mark.parametrize("method", LONG)
def test_short_requests_are_answered_during_a_long_call(method: str, session: Session, rpc: Rpc) -> None:
    """A short request that came later is answered first. On a busy machine, the long call may end before the keeper reads the
    short one. So the test fails only if that happens in every round."""
    rpc("kv.set", key="k", value="v")
    for _ in range(5):
        plant(session, method)
        long, short = rpc.send_together((method, LONG[method]), ("kv.get", {"key": "k"}))
        assert rpc.result(short) == {"value": "v"}
        first = not rpc.answered(long)
        rpc.result(long)
        if first:
            return
        session.out("rm -rf copy /mnt/files/moved")
    raise AssertionError("the long call was answered first each time")


def test_long_calls_are_answered_as_short_ones(session: Session, rpc: Rpc) -> None:
    plant(session, "files.copy")
    found = rpc("files.list", path="tree", recursive=True, limit=10000)
    assert (len(found["entries"]), found["next"]) == (3020, None)
    assert rpc("files.copy", **LONG["files.copy"]) == {"left_out": 0}
    assert session.out("diff -r tree copy && find copy -type f | wc -l") == "3000\n"
    assert rpc("files.move", **LONG["files.move"]) == {}
    assert session.out("ls; find /mnt/files/moved -type f | wc -l") == "copy\n3000\n"
    assert rpc.refused("files.remove", path="tree", recursive=True).kind == "missing"
    assert rpc("files.remove", path="copy", recursive=True) == {}
    assert session.out("ls") == ""
    rows = session.history()
    assert [r["name"] for r in rows if r["name"] == "files.remove" and r["result"]] == ["files.remove"] * 2


# Methods that write file contents.
WRITES: dict[str, Json] = {
    "files.write": {"path": "/mnt/files/new"},
    "files.append": {"path": "/mnt/files/new"},
    "mount.upload": {"path": "new"},
}


@pytest.mark.slow
@pytest.mark.parametrize("method", WRITES)
def test_a_content_that_waits_for_the_disk_keeps_nobody_waiting(method: str, session: Session, rpc: Rpc) -> None:
    """The content waits behind copies here, which takes as long as a slow disk."""
    plant(session, "files.copy")
    rpc("kv.set", key="k", value="v")
    copying = [("files.copy", {"from": "tree", "to": f"copy{i}", "recursive": True}) for i in range(4)]
    writing = (method, {"content": "text", **WRITES[method]})
    *copies, write, short = rpc.send_together(*copying, writing, ("kv.get", {"key": "k"}))

    assert rpc.result(short) == {"value": "v"}
    assert not rpc.answered(write)
    assert rpc.result(write)["size"] == 4
    assert rpc("files.read", path="/mnt/files/new")["content"] == "text"
    for copy in copies:
        rpc.result(copy)


def test_no_more_files_are_received_at_a_time(session: Session, rpc: Rpc) -> None:
    reader, writer = os.pipe()
    try:
        numbers = [rpc.send("files.receive", [reader], path=f"f{i}") for i in range(32)]
        refused = rpc.refused("files.receive", [reader], path="more")
        assert (refused.kind, refused.errno) == ("limit", "EBUSY") and "32" in refused.message
    finally:
        os.close(reader)
        os.close(writer)
    assert [rpc.result(number)["size"] for number in numbers] == [0] * 32
    assert session.out("ls | wc -l") == "32\n"


def threads(session: Session) -> int:
    return len(os.listdir(f"/proc/{session.keeper()}/task"))


def test_a_thread_receives_files(session: Session, rpc: Rpc) -> None:
    """A thread waits for the disk, and exists as long as the transfer."""
    reader, writer = os.pipe()
    try:
        number = rpc.send("files.receive", [reader], path="f")
        assert os.write(writer, b"x" * 50000) == 50000
        until(lambda: threads(session) == 2, "a thread has it")
        rpc("kv.set", key="k", value="v")
        assert not rpc.answered(number) and threads(session) == 2
    finally:
        os.close(reader)
        os.close(writer)
    assert rpc.result(number)["size"] == 50000
    until(lambda: threads(session) == 1, "it has ended")


@pytest.mark.parametrize("end", ("client", "session"))
def test_an_upload_ends_with_its_client_or_session(end: str, session: Session, rpc: Rpc) -> None:
    reader, writer = os.pipe()
    try:
        with session.rpc() as client:
            client.send("files.receive", [reader], path="f")
            assert os.write(writer, b"x" * 50000) == 50000
            until(lambda: threads(session) == 2, "a thread has it")
            if end == "session":
                rpc("session.stop")
                session.stop()
        if end == "client":
            until(lambda: threads(session) == 1, "it has ended")
    finally:
        os.close(reader)
        os.close(writer)
    assert session.out("ls -A") == ""


def test_contents_are_written_in_the_order_in_which_they_came(session: Session, rpc: Rpc) -> None:
    """The client has sent the next request without waiting for the reply."""
    large = "x" * 900_000
    for i in range(10):
        numbers = [rpc.send("files.write", path="f", content=large), rpc.send("files.append", path="f", content=f"{i}")]
        assert [rpc.result(number)["size"] for number in numbers] == [len(large), len(large) + 1]
        assert session.out("stat -c %s f; tail -c 1 f") == f"{len(large) + 1}\n{i}"


def test_many_long_calls_at_once(session: Session, rpc: Rpc) -> None:
    """There are more calls than run at a time. All get a reply."""
    plant(session, "files.copy")
    numbers = [rpc.send("files.copy", **{"from": "tree/1", "to": f"copy{i}", "recursive": True}) for i in range(20)]
    assert [rpc.result(number) for number in numbers] == [{"left_out": 0}] * 20
    assert session.out("find copy* -type f | wc -l") == "3000\n"


def test_a_client_that_has_shut_down_writing_gets_its_replies(session: Session) -> None:
    plant(session, "files.remove")
    client = session.rpc()
    numbers = [client.send("files.remove", path=f"tree/{i}", recursive=True) for i in range(1, 11)]
    client.end()

    assert [client.result(number) for number in numbers] == [{}] * 10
    assert session.out("ls tree | wc -l") == "10\n"


def test_calls_of_a_client_that_disconnects_are_finished(session: Session, rpc: Rpc) -> None:
    plant(session, "files.remove")
    with session.rpc() as gone:
        gone.send("files.remove", path="tree", recursive=True)
        gone.send("files.exists", path="tree/1")
        until(lambda: len(rpc("files.list", path=".", recursive=True, limit=10000)["entries"]) < 3020, "it has begun")

    until(lambda: not rpc("files.exists", path="tree")["exists"], "it is removed")


def test_a_stop_ends_a_long_call_and_leaves_nothing_of_it(session: Session, rpc: Rpc) -> None:
    plant(session, "files.list")  # A copy of fewer files may be complete before the stop.
    rpc.send("files.copy", **LONG["files.copy"])
    rpc.send("session.stop")
    session.stop()

    assert session.out("ls -A; find tree -type f | wc -l") == "tree\n12000\n"
