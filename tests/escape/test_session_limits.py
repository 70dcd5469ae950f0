# SPDX-License-Identifier: Apache-2.0
"""Everything that a client or a command can multiply has a limit. Beyond it, an error says so, and the same keeper goes
on serving with no more memory. See test_rpc_mistakes.py for connections and large requests, and
test_rpc_processes.py for stdin that nobody reads."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.sessions import Bound, Rpc, RpcError, Session, Sessions, memory, until

MIB = 1 << 20


@pytest.fixture
def served(session: Session) -> Iterator[Session]:
    """A session. Afterwards its keeper must be the same, answer, and have about the usual size."""
    yield from is_served(session)


@pytest.fixture
def guarded(sessions: Sessions, workspace: Path) -> Iterator[Session]:
    """The same, with a workspace of the host's."""
    yield from is_served(sessions.create("guarded", "--workspace", workspace))


def is_served(session: Session) -> Iterator[Session]:
    keeper = session.keeper()
    yield session
    with session.rpc() as rpc:
        for process in rpc.call("process.list")["processes"]:
            rpc.call("process.kill", id=process["id"])
        until(lambda: all(p["state"] == "ended" for p in rpc.call("process.list")["processes"]), "all end")
        assert rpc.call("exec", argv=["echo", "next"])["stdout"] == "next\n"
    assert session.keeper() == keeper
    assert memory(keeper) < 64 * MIB


def until_refused(rpc: Rpc, most: int, method: str, **params: object) -> tuple[int, RpcError]:
    """Calls a method until it is refused for a limit. Returns the number of answers, and the error."""
    for count in range(most):
        try:
            rpc.call(method, **params)
        except RpcError as error:
            assert error.kind == "limit", error
            return count, error
    raise AssertionError(f"{method} {most} times, and no limit")


def test_processes_of_a_session(served: Session) -> None:
    with served.rpc() as rpc:
        count, error = until_refused(rpc, 300, "process.spawn", argv=["sleep", "1000"])
        assert 200 <= count <= 256 and error.hint
        rpc.call("process.kill", id="p1")
        until(lambda: rpc.call("process.list")["processes"][-1]["state"] == "ended", "there is room")
        rpc.call("process.spawn", argv=["sleep", "1000"])


def test_ended_processes_that_are_kept(served: Session) -> None:
    with served.rpc() as rpc:
        for _ in range(300):
            rpc.call("exec", argv=["true"])

        def is_short() -> bool:
            """The keeper checks at each start; it may not know yet that the last ones have ended."""
            rpc.call("exec", argv=["true"])
            return len(rpc.call("process.list")["processes"]) <= 257

        until(is_short, "the oldest have gone")
        assert rpc.refused("process.wait", id="p1", output=True).kind == "no-process"


@pytest.mark.not_sanitized
def test_output_of_one_and_of_many(served: Session) -> None:
    with served.rpc() as rpc:
        bound = Bound(rpc, {})
        result = bound.sh("head -c 200M /dev/zero | tr '\\0' x", output_max=1000)
        assert result["stdout_bytes"] == 200 * MIB and result["stdout_dropped"] == 200 * MIB - 1000
        for _ in range(20):
            process = bound.spawn("head -c 20M /dev/zero | tr '\\0' x", output_max=8 * MIB)
            rpc.call("process.wait", id=process)
        rpc.refused("process.spawn", argv=["true"], output_max=1 << 40)


def test_watchers_of_one_process(served: Session) -> None:
    with contextlib.ExitStack() as stack, served.rpc() as rpc:
        process = rpc.call("process.spawn", argv=["cat"], input=True)["id"]
        clients = [stack.enter_context(served.rpc()) for _ in range(33)]
        for client in clients[:32]:
            client.call("process.watch", id=process)
        error = clients[32].refused("process.watch", id=process)
        assert error.kind == "limit" and "32" in error.message
        clients[0].close()
        until(lambda: not _refused(clients[32], "process.watch", id=process), "there is room")
        rpc.call("process.write", id=process, data="x\n")
        for client in clients[1:]:
            assert client.note("process.output", id=process)["text"] == "x\n"


def _refused(rpc: Rpc, method: str, **params: object) -> bool:
    try:
        rpc.call(method, **params)
    except RpcError as error:
        assert error.kind == "limit"
        return True
    return False


def test_calls_of_one_client_that_wait(served: Session) -> None:
    with served.rpc() as rpc, served.rpc() as other:
        process = rpc.call("process.spawn", argv=["sleep", "1000"])["id"]
        numbers = [rpc.send("process.wait", id=process) for _ in range(1000)]
        for number in numbers[256:]:
            with pytest.raises(RpcError, match="256 requests of this connection"):
                rpc.result(number)
        assert other.call("exec", argv=["echo", "x"])["stdout"] == "x\n"
        other.call("process.kill", id=process)
        assert {rpc.result(number)["cause"] for number in numbers[:256]} == {"killed"}


def test_files_that_are_received_at_once(served: Session) -> None:
    with served.rpc() as rpc:
        reading, writing = os.pipe()
        try:
            for i in range(32):
                rpc.send("files.receive", [reading], path=f"f{i}")
            error = rpc.refused("files.receive", [reading], path="f32")
            assert error.kind == "limit" and "32" in error.message
        finally:
            os.close(writing)
            os.close(reading)


def test_descriptors_that_nobody_takes(served: Session) -> None:
    served.out("echo x >f")
    with served.rpc() as rpc:
        numbers = [rpc.send("files.open", path="f") for _ in range(500)]
        answered = 0
        for number in numbers:
            with contextlib.suppress(RpcError):
                answered += rpc.result(number)["size"] == 2
        assert answered >= 32
    keeper = served.keeper()
    if os.geteuid() == 0:
        until(lambda: len(os.listdir(f"/proc/{keeper}/fd")) < 64, "they are closed")


def test_names_of_one_listing(served: Session) -> None:
    served.out("mkdir d; cd d; seq 20000 | xargs touch")
    with served.rpc() as rpc:
        assert rpc.refused("files.list", path="d", limit=10001).code == -32602
        names: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = rpc.call("files.list", path="d", limit=10000, **after)
            assert len(page["entries"]) <= 10000
            names += [e["name"] for e in page["entries"]]
            if not page["next"]:
                break
            after = {"after": page["next"]}
        assert sorted(names) == sorted(map(str, range(1, 20001)))
        found = rpc.call("files.glob", pattern="**/*", limit=10000)
        assert len(found["entries"]) <= 10000 and found["more"]


def fill(session: Session, table: str, sql: str) -> None:
    """Fills the database almost completely, as on a host that has used it for years."""
    session.stop()
    with contextlib.closing(sqlite3.connect(session.directory / "session.db")) as db, db:
        db.execute(f"WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 99999) {sql}")
        assert db.execute("SELECT count FROM totals WHERE name = ?", (table,)).fetchone()[0] >= 99999


def test_keys(session: Session) -> None:
    fill(session, "kv", "INSERT INTO kv(key, value) SELECT CAST('k' || i AS BLOB), CAST('v' AS BLOB) FROM n")
    with session.rpc() as rpc:
        rpc.call("kv.set", key="last", value="v")
        error = rpc.refused("kv.set", key="more", value="v")
        assert error.kind == "limit" and "100000" in error.message + error.hint
        rpc.call("kv.set", key="last", value="changed")
        rpc.call("kv.delete", key="k1")
        rpc.call("kv.set", key="more", value="v")
        assert rpc.call("kv.get", key="last")["value"] == "changed"


def test_values(session: Session) -> None:
    fill(session, "kv", "INSERT INTO kv(key, value) SELECT CAST('k' || i AS BLOB), zeroblob(2670) FROM n")
    with session.rpc() as rpc:
        with pytest.raises(RpcError) as refused:
            for i in range(1, 20):
                rpc.call("kv.set", key=f"k{i}", value="x" * 500_000)
        assert refused.value.kind == "limit" and refused.value.hint, refused.value
        assert i > 1
        rpc.call("kv.delete", key="k1")
        rpc.call("kv.set", key="small", value="x")
        assert rpc.call("kv.get", key="small")["value"] == "x"


@pytest.mark.parametrize("table", ("history", "audit"))
def test_rows_of_history_and_audit(table: str, session: Session) -> None:
    """The oldest rows make room: a command cannot keep later ones out of the record."""
    session.exec("true").ok()
    rows = {
        "history": "INSERT INTO history(name, params, started_ms, ended_ms) SELECT 'exec', '{}', 1, 1 FROM n",
        "audit": "INSERT INTO audit(kind, detail, at_ms) SELECT 'denial', '{}', 1 FROM n",
    }
    fill(session, table, rows[table])
    for _ in range(3):
        session.sh("unshare -U true")
    session.stop()
    with contextlib.closing(sqlite3.connect(session.directory / "session.db")) as db:
        count = db.execute("SELECT count FROM totals WHERE name = ?", (table,)).fetchone()[0]
    assert 90000 < count <= 100000
    assert "unshare" in str((session.history() if table == "history" else session.audit())[:3])


# So many that checking them takes a while.
REFS = """
import os
os.makedirs(".git/refs/heads/many")
for i in range(30000):
    with open(f".git/refs/heads/many/{i}", "w") as ref:
        ref.write("0" * 40)
"""
CALLS = {"exec": {"argv": ["true"]}, "python.run": {"code": "1"}, "a dying interpreter": {"code": "import os; os._exit(0)"}}


@pytest.mark.slow
@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("call", CALLS)
def test_checking_git_delays_no_other_request(call: str, guarded: Session) -> None:
    """The check of .git after a command takes longer, the more files commands have made there. Other requests to the
    keeper are answered meanwhile."""
    gaps: list[float] = []
    method = call if "." in call or call == "exec" else "python.run"
    with guarded.rpc() as rpc, guarded.rpc() as other:
        assert rpc.call("exec", argv=["/usr/bin/python3", "-c", REFS])["exit_code"] == 0
        rpc.call(method, **CALLS[call])
        started = time.monotonic()
        looked = threading.Thread(target=lambda: [rpc.call(method, **CALLS[call]) for _ in range(3)])
        looked.start()
        while looked.is_alive():
            asked = time.monotonic()
            other.call("process.list")
            gaps.append(time.monotonic() - asked)
        mean = (time.monotonic() - started) / 3

    gaps.sort()
    # One reply may be late for other reasons. Each of three checks would delay one.
    assert gaps[-3] < mean / 2, (mean, gaps[-4:])


def test_a_command_that_ends_during_a_check_waits_for_the_next(guarded: Session) -> None:
    """A check that is already running may have passed a file that a command makes now. So the command's end waits for
    the next check."""
    with guarded.rpc() as rpc, guarded.rpc() as other:
        assert rpc.call("exec", argv=["/usr/bin/python3", "-c", REFS])["exit_code"] == 0
        told: set[str] = set()
        for number in range(12):
            first = rpc.send("exec", argv=["true"])
            second = other.send("exec", shell=f"sleep 0.0{number}; ln -s x .git/link{number}")
            told |= {*other.result(second)["set_aside"], *rpc.result(first)["set_aside"]}

    assert told == {f".git/link{number}.holt-untrusted" for number in range(12)}
