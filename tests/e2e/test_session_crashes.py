# SPDX-License-Identifier: Apache-2.0
"""Sessions and what befalls them: a kill -9 of any host process at any moment.

CRASH_ROUNDS=200 in the environment plays more rounds than the suite does.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from lib import leaks
from lib.identity import Identity
from lib.sessions import Closed, Json, Rpc, RpcError, Session, Sessions, keepers, until

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "30"))


def fill(key: str) -> str:
    return f"{key}\n" * 200


class Load:
    """A client that works until its keeper has gone. Acknowledged work must be done."""

    def __init__(self, rpc: Rpc, name: str, kills: bool = True) -> None:
        self.rpc, self.name, self.kills = rpc, name, kills
        self.values: dict[str, str] = {}
        self.commands: list[str] = []
        self.files: dict[str, str] = {}
        self.unexpected: list[str] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            for i in range(100_000):
                self._work(i, f"{self.name}-{i}")
        except (Closed, OSError):
            pass
        except RpcError as error:
            # The sandbox may end before its keeper reports that. A fork in a pid namespace whose init is dying fails with ENOMEM
            # (alloc_pid()).
            if not any(word in str(error) for word in ("init", "has ended", "lost", "limit", "ENOMEM")):
                self.unexpected.append(str(error))
        except AssertionError as error:
            self.unexpected.append(str(error))

    def _work(self, i: int, key: str) -> None:
        self.rpc.call("kv.set", key=key, value=key * 20)
        self.values[key] = key * 20
        if i % 3 == 0:
            done = self.rpc.call("exec", argv=["sh", "-c", f"echo {key} >/workspace/{key}"])
            if done["cause"] == "exited":  # the other client kills some
                self.commands.append(key)
        if i % 7 == 0 and self.kills:
            self.rpc.call("process.spawn", shell="setsid sleep 1000 & sleep 1000", owned=i % 2 == 0)
        if i % 11 == 0 and self.kills:
            for process in self.rpc.call("process.list")["processes"]:
                self.rpc.call("process.kill", id=process["id"])

    def join(self) -> None:
        self.thread.join(60)
        assert not self.thread.is_alive()
        assert not self.unexpected, self.unexpected


class FileLoad(Load):
    """A load that writes and copies files on both mounts and elsewhere. It writes the file "state" again and again."""

    def _work(self, i: int, key: str) -> None:
        for path in (f"/mnt/files/{key}", f"/workspace/{key}", f"/home/agent/{key}"):
            self.rpc.call("files.write", path=path, content=fill(key))
            self.files[path] = fill(key)
        self.rpc.call("files.write", path="/mnt/files/state", content=fill(key) * 20)
        self.files["/mnt/files/state"] = fill(key) * 20
        if i % 3 == 0:
            self.rpc.call("files.mkdir", path=f"/workspace/{key}.new")
            self.rpc.call("files.write", path=f"/workspace/{key}.new/{key}", content=fill(key))
            self.rpc.call("files.move", **{"from": f"/workspace/{key}.new", "to": f"/workspace/{key}.d"})
            self.files[f"/workspace/{key}.d/{key}"] = fill(key)
            self.rpc.call("files.copy", **{"from": f"/workspace/{key}.d", "to": f"/mnt/files/{key}.d", "recursive": True})
            self.files[f"/mnt/files/{key}.d/{key}"] = fill(key)


def kill_keeper(session: Session, keeper: int, init: int) -> int:
    os.kill(keeper, signal.SIGKILL)
    return keeper


def kill_init(session: Session, keeper: int, init: int) -> int:
    os.kill(init, signal.SIGKILL)
    return init


VICTIMS = {"keeper": kill_keeper, "init": kill_init}


def tree(keeper: int) -> list[int]:
    return [keeper, *(p.pid for p in leaks.descendants(keeper))]


def alive(pids: list[int]) -> list[int]:
    return [p.pid for p in leaks.all_processes() if p.pid in pids and not p.ended]


def mounts() -> list[str]:
    return Path("/proc/self/mountinfo").read_text().splitlines()


def on_host(session: Session, path: str) -> Path:
    """Returns the host path of a path inside."""
    for inside, outside in (("/workspace/", "workspace"), ("/mnt/files/", "files"), ("/", "root")):
        if path.startswith(inside):
            return session.directory / outside / path[len(inside) :]
    raise AssertionError(path)


def assert_state_is_whole(session: Session, told: str | None) -> None:
    """The file is complete, and has the last acknowledged content or a later one."""
    state = on_host(session, "/mnt/files/state")
    if told is None and not state.exists():
        return
    text = state.read_text()
    first = text.split("\n", 1)[0]
    assert text == fill(first) * 20
    if told is not None:
        last = told.split("\n", 1)[0]
        number = int(last.rsplit("-", 1)[1])
        assert first in (last, f"{last.rsplit('-', 1)[0]}-{number + 1}"), (first, last)


def half_made(directory: Path) -> list[str]:
    """Returns incomplete sessions and their notes (files/unfinished.h). A killed keeper may leave a file of such a name
    in its sandbox."""
    return [
        os.path.join(path, name)
        for path, names, files in os.walk(directory)
        for name in (*names, *files)
        if name.startswith(".session-") or (Path(path) == directory and name.startswith(".holt-"))
    ]


def all_history(rpc: Rpc, name: str) -> list[Json]:
    rows, before = [], {}
    while True:
        page = rpc.call("history.list", name=name, limit=1000, **before)
        rows += page["rows"]
        if page["next"] is None:
            return rows
        before = {"before": page["next"]}


def assert_kept(session: Session, values: dict[str, str], commands: set[str], files: dict[str, str]) -> None:
    with session.rpc() as rpc:
        for key, value in values.items():
            assert rpc.call("kv.get", key=key)["value"] == value
        ended = {r["params"]["argv"][2].split("/")[-1] for r in all_history(rpc, "exec") if r["result"]}
        assert commands <= ended
        written = {r["params"]["path"] for r in all_history(rpc, "files.write") if r["result"]}
        assert {path for path in files if ".d/" not in path} <= written
    for key in commands:
        assert on_host(session, f"/workspace/{key}").read_text() == f"{key}\n"
    lost = [path for path, text in files.items() if path != "/mnt/files/state" and not is_file(session, path, text)]
    assert lost == []


def is_file(session: Session, path: str, text: str) -> bool:
    file = on_host(session, path)
    return file.is_file() and file.read_text() == text


@pytest.mark.slow
@pytest.mark.parametrize("victim", VICTIMS)
def test_nothing_acknowledged_is_lost(victim: str, session: Session) -> None:
    seed = f"{victim}-{os.getpid()}-{time.time()}"
    print("seed:", seed)
    chance = random.Random(seed)
    values: dict[str, str] = {}
    commands: set[str] = set()
    files: dict[str, str] = {}
    before = mounts()
    for round_ in range(ROUNDS):
        keeper = session.keeper()
        init = session.init()
        loads = [Load(session.rpc(), f"r{round_}-{i}") for i in range(2)]
        loads.append(FileLoad(session.rpc(), f"f{round_}"))
        clients = [session.start("sh", "-c", "echo $$; exec sleep 1000") for _ in range(chance.randrange(3))]
        time.sleep(chance.uniform(0, 0.12))
        inside = tree(keeper)
        killed = VICTIMS[victim](session, keeper, init)
        until(lambda: not alive([killed]), "it is dead")
        assert session.sh("echo next").ok().out == "next\n"
        for load in loads:
            load.join()
            load.rpc.close()
            values |= load.values
            commands |= set(load.commands)
            files |= load.files
        # A client whose request the killed keeper had not read has asked the next keeper, so its command may still run.
        for client in clients:
            client.kill(signal.SIGKILL)
            client.__exit__()
        until(lambda: not alive([keeper, *inside]), "nothing is left of the sandbox")
        until(lambda: len(keepers()) == 1, "only the next keeper is there")
        until(lambda: session.processes("sleep") == [], "what the clients had started went with them")
        assert_state_is_whole(session, loads[-1].files.get("/mnt/files/state"))
        assert half_made(session.sessions.directory) == []
        assert mounts() == before

    assert_kept(session, values, commands, files)
    session.stop()
    assert set(os.listdir(session.directory)) - {"session.db-wal", "session.db-shm"} == {
        "files", "lock", "process.last", "root", "session.db", "workspace"
    }
    assert len(values) > ROUNDS and commands and len(files) > ROUNDS


def test_a_keeper_that_is_killed_while_it_starts(session: Session) -> None:
    chance = random.Random(os.getpid())
    before = mounts()
    told = 0
    for _ in range(ROUNDS):
        with session.start("echo", "first") as client:
            time.sleep(chance.uniform(0, 0.02))
            victims = [p.pid for k in keepers() for p in (k, *leaks.descendants(k.pid))][: chance.randrange(1, 3)]
            for pid in victims[-1:]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            result = client.wait()
        told += result.code == 0
        assert result.code in (0, 125, 137), result
        assert session.sh("echo next").ok().out == "next\n"
        session.stop()
        until(lambda: keepers() == [], "no keeper is left")
        assert mounts() == before
    assert os.listdir(session.directory / "workspace") == []


def test_killed_clients_take_their_own_and_nothing_else(session: Session) -> None:
    chance = random.Random(os.getpid())
    keeper = session.keeper()
    other = session.detach("exec sleep 2000")
    for _ in range(ROUNDS):
        client = session.start("bash", "-c", "setsid sleep 1000 & exec sleep 1000")
        time.sleep(chance.uniform(0, 0.03))
        client.kill(signal.SIGKILL)
        client.__exit__()
    until(lambda: len(session.processes("sleep")) == 1, "what they owned is gone")

    assert session.keeper() == keeper
    assert session.ps()[other]["state"] == "running"
    session("kill", other).ok()


def test_killed_verbs_leave_nothing_half_made(session: Session, sessions: Sessions, place: Path, identity: Identity) -> None:
    """Clients of every kind are killed under load, at any moment. The keeper and all acknowledged work survive."""
    chance = random.Random(os.getpid())
    tree_in, back = place / "in", place / "back"
    for directory in (tree_in, back):
        directory.mkdir()
        identity.own(directory)
    for i in range(50):
        (tree_in / str(i)).write_text(fill(str(i)))
        identity.own(tree_in / str(i))
    session.sessions(["cp", "-r", tree_in, "w:tree"]).ok()
    keeper, load = session.keeper(), Load(session.rpc(), "load", kills=False)
    for i in range(ROUNDS):
        verbs = [
            ["cp", "-r", tree_in, f"w:in{i}"], ["cp", "-r", "w:tree", back / str(i)], ["create", f"s{i}"],
            ["rm", f"s{i - 2}"], ["kv", "w", "set", f"k{i}", "v"], ["exec", "w", "--", "sleep", "1000"],
            ["files", "w", "put", tree_in / "1", f"put{i}"], ["ls"], ["history", "w"],
        ]
        sessions(["create", f"s{i - 2}"]) if i % 3 == 0 else None
        for verb in chance.sample(verbs, 3):
            with sessions.start(verb) as client:
                time.sleep(chance.uniform(0, 0.02))
                client.kill(signal.SIGKILL)
        assert session.sh("echo next").ok().out == "next\n"
    load.rpc.call("process.list")
    assert session.keeper() == keeper
    sessions.names()
    assert [name for name in os.listdir(sessions.directory) if name.startswith(".")] == []
    sessions(["cp", "-r", "w:tree", back / "last"]).ok()
    whole = [directory for directory in back.iterdir() if not directory.name.startswith(".holt-")]
    for directory in (*whole, *(session.directory / "workspace").glob("in*")):
        assert sorted(os.listdir(directory)) == sorted(os.listdir(tree_in)), directory
        assert all((directory / name).read_text() == fill(name) for name in os.listdir(directory))
    for file in (session.directory / "workspace").glob("put*"):
        assert file.read_text() == fill("1")
    session.stop()
    load.join()
    load.rpc.close()
    assert_kept(session, load.values, set(load.commands), {})
    for name in sessions.names():
        sessions(["exec", name, "--", "true"]).ok()


def test_a_client_that_is_killed_while_it_starts_the_keeper(session: Session) -> None:
    chance = random.Random(os.getpid())
    for _ in range(ROUNDS):
        client = session.start("true")
        time.sleep(chance.uniform(0, 0.02))
        client.kill(signal.SIGKILL)
        client.__exit__()
        assert session.sh("echo next").ok().out == "next\n"
        session.kill_keeper() if chance.random() < 0.5 else session.stop()


def test_a_killed_create_leaves_no_half_a_session(sessions: Sessions) -> None:
    chance = random.Random(os.getpid())
    started = time.monotonic()
    sessions.create("whole")
    # Each kill comes at a random time within this window, which is longer than a whole create, on a slow machine, too.
    window = 1.5 * (time.monotonic() - started)
    sessions(["rm", "whole"]).ok()
    for i in range(ROUNDS):
        with sessions.start(["create", f"s{i}"]) as running:
            time.sleep(chance.uniform(0, window))
            running.kill(signal.SIGKILL)
        if f"s{i}" in sessions.names():
            sessions(["exec", f"s{i}", "--", "true"]).ok()
            sessions(["rm", f"s{i}"]).ok()
    assert sessions.names() == [] and os.listdir(sessions.directory) == []


def test_init_that_is_killed_ends_the_clients(session: Session) -> None:
    with session.start("sh", "-c", "echo ready; exec sleep 1000") as running:
        assert running.readline() == "ready"
        os.kill(session.init(), signal.SIGKILL)
        result = running.wait()
    assert result.code in (125, 137), result
    until(lambda: not keepers(), "the keeper ends with its sandbox")


def test_a_keeper_that_is_killed_ends_the_clients(session: Session) -> None:
    with session.start("sh", "-c", "echo ready; exec sleep 1000") as running:
        assert running.readline() == "ready"
        session.kill_keeper()
        result = running.wait()
    assert result.code == 137 and "killed from outside" in result.err, result


def test_commands_of_a_killed_keeper_have_no_end_in_the_history(session: Session) -> None:
    with session.rpc() as rpc:
        rpc.send("exec", argv=["sleep", "1000"])
        until(lambda: len(session.history()) == 1, "a command that goes on is noted")
    session.kill_keeper()
    (row,) = session.history()

    assert row["result"] is None and row["ended_ms"] is None


@pytest.mark.parametrize("method", ["detach", "process.spawn", "exec"])
def test_answered_calls_are_in_the_history_after_a_crash(method: str, session: Session) -> None:
    """The row is there at once, for both a start and an end."""
    for i in range(5):
        keeper = session.keeper()
        if method == "detach":
            session.detach(f"exec sleep 1000.{i}")
        else:
            with session.rpc() as rpc:
                rpc.call(method, argv=["sleep", "1000" if method == "process.spawn" else "0", f"0.{i}"])
        os.kill(keeper, signal.SIGKILL)
        until(lambda: keeper not in [p.pid for p in keepers()], "it is gone")
        assert sum(f"0.{i}" in json.dumps(row["params"]) for row in session.history()) == 1


def test_a_stopped_keeper_is_not_waited_for_for_ever(session: Session) -> None:
    """A keeper hangs, as on a host that swaps. Its clients wait, and continue with it."""
    keeper = session.keeper()
    os.kill(keeper, signal.SIGSTOP)
    with session.start("echo", "late") as running:
        time.sleep(0.1)
        assert running.process.poll() is None
        os.kill(keeper, signal.SIGCONT)
        assert running.wait().ok().out == "late\n"
