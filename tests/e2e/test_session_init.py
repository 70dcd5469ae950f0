# SPDX-License-Identifier: Apache-2.0
"""A session's init that does not read its messages for a while: they wait, up to a limit, and none is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from lib import leaks
from lib.sessions import Rpc, RpcError, Session, until


@contextmanager
def busy(session: Session) -> Iterator[None]:
    """Stops init during the block."""
    init = session.init()
    os.kill(init, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(init, signal.SIGCONT)


def fill(rpc: Rpc, process: str) -> None:
    """Sends more signals than init's socket holds, to a sleeping process that ignores them."""
    for number in [rpc.send("process.signal", id=process, signal="WINCH") for _ in range(2000)]:
        rpc.result(number)


def state(pid: int) -> str:
    return next((p.state for p in leaks.all_processes() if p.pid == pid), "gone")


def test_a_kill_is_not_lost(session: Session) -> None:
    with session.rpc() as rpc:
        process = rpc.call("process.spawn", argv=["sleep", "1000"])["id"]
        with busy(session):
            fill(rpc, process)
            assert rpc.call("process.kill", id=process)["killed"]
        assert rpc.call("process.wait", id=process)["cause"] == "killed"
    until(lambda: session.processes("sleep") == [], "it is gone")


def busy_ns(pid: int) -> int:
    """Nanoseconds for which a process has run (proc_pid_schedstat)."""
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0])


def test_commands_that_are_killed_together_need_one_search(session: Session) -> None:
    """init looks at all processes to find those of a command. For each of many commands, that could take longer than the keeper
    waits for init."""
    with session.rpc() as rpc:
        first, *others = [rpc.call("process.spawn", argv=["sleep", "1000"])["id"] for _ in range(100)]
        until(lambda: len(session.processes("sleep")) == 100, "the exec of each command")
        init = session.init()
        began = busy_ns(init)
        rpc.call("process.kill", id=first)
        assert rpc.call("process.wait", id=first)["cause"] == "killed"
        one = busy_ns(init) - began
        with busy(session):
            for process in others:
                rpc.call("process.kill", id=process)
        for process in others:
            assert rpc.call("process.wait", id=process)["cause"] == "killed"
        assert busy_ns(init) - began - one < 20 * one


def argument(pid: int) -> str:
    """Returns the last argument of a process, or "" before its execve(2)."""
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read().rstrip("\0").split("\0")[-1]


@pytest.mark.parametrize(("signals", "stopped"), [(["STOP", "CONT"], False), (["CONT", "STOP"], True)])
def test_stop_and_continue_signals_keep_their_order(signals: list[str], stopped: bool, session: Session) -> None:
    with session.rpc() as rpc:
        process = rpc.call("process.spawn", argv=["sleep", "1000"])["id"]
        last = rpc.call("process.spawn", argv=["sleep", "2000"])["id"]
        (pid,) = until(lambda: [p.pid for p in session.processes("sleep") if argument(p.pid) == "1000"], "it sleeps")
        with busy(session):
            fill(rpc, process)
            for name in signals:
                rpc.call("process.signal", id=process, signal=name)
            rpc.call("process.kill", id=last)
        assert rpc.call("process.wait", id=last)["cause"] == "killed"
        until(lambda: (state(pid) == "T") == stopped, "it has what came last")
        rpc.call("process.kill", id=process)
        assert rpc.call("process.wait", id=process)["cause"] == "killed"


def test_up_to_256_commands_may_wait_for_init(session: Session) -> None:
    """The descriptors of these commands wait, too, whatever limit of open files the caller's shell has."""
    session.exec("true", prefix=("prlimit", "--nofile=256:")).ok()
    with session.rpc() as rpc:
        with busy(session):
            numbers = [rpc.send("process.spawn", argv=["sleep", "1000"], input=True) for _ in range(255)]
            listed = rpc.call("process.list")["processes"]
            waiting = [p for p in listed if p["state"] == "starting"]
            assert len(waiting) == 255 and session.processes("sleep") == []
        started = {rpc.result(number)["id"] for number in numbers}
        assert len(started) == 255
        until(lambda: len(session.processes("sleep")) == 255, "the exec of each command")
        for process in started:
            rpc.call("process.kill", id=process)
        for process in started:
            assert rpc.call("process.wait", id=process)["cause"] == "killed"
        assert rpc.call("exec", argv=["echo", "next"])["stdout"] == "next\n"


def test_the_size_of_commands_that_wait_for_init_is_limited(session: Session) -> None:
    """A connection may ask for 4 MiB before it is answered."""
    line = ["true", *["x" * 100_000] * 5]
    refusals = 0
    with ExitStack() as stack:
        clients = [stack.enter_context(session.rpc()) for _ in range(20)]
        other = clients[0].call("process.spawn", argv=["sleep", "1000"])["id"]
        with busy(session):
            fill(clients[0], other)
            numbers = [(rpc, rpc.send("exec", argv=line)) for rpc in clients for _ in range(7)]
            for rpc in clients:
                rpc.call("kv.keys")  # The keeper has read what this client sent before. A list would be much larger.
            listed = clients[0].call("process.list")["processes"]
        for rpc, number in numbers:
            try:
                assert rpc.result(number)["exit_code"] == 0
            except RpcError as error:
                assert error.kind == "limit" and "64 MiB" in str(error)
                refusals += 1
    taken = sum(p["state"] == "starting" for p in listed)
    assert taken == len(numbers) - refusals == 64 * 2**20 // (5 * 100_001)


def test_commands_that_wait_and_are_killed_end(session: Session) -> None:
    with session.rpc() as rpc:
        with busy(session):
            numbers = [rpc.send("exec", argv=["sleep", "1000"]) for _ in range(60)]
            for process in rpc.call("process.list")["processes"]:
                rpc.call("process.kill", id=process["id"])
        for number in numbers:
            assert rpc.result(number)["cause"] == "killed"
    until(lambda: session.processes("sleep") == [], "they are gone")


def test_a_client_that_goes_takes_its_commands_that_init_has_not_read(session: Session) -> None:
    keeper = session.keeper()
    with busy(session):
        with session.rpc() as rpc:
            for _ in range(60):
                rpc.send("process.spawn", argv=["sleep", "1000"], owned=True)
            assert len(rpc.call("process.list")["processes"]) == 60
    until(lambda: {p["state"] for p in session.ps().values()} == {"ended"}, "they are gone")
    assert session.keeper() == keeper and session.processes("sleep") == []


def test_init_that_dies_with_commands_waiting_ends_them(session: Session) -> None:
    with session.rpc() as rpc:
        with busy(session):
            numbers = [rpc.send("exec", argv=["sleep", "1000"]) for _ in range(60)]
            assert len(rpc.call("process.list")["processes"]) == 60
            os.kill(session.init(), signal.SIGKILL)
        for number in numbers:
            with pytest.raises(RpcError):
                rpc.result(number)
    assert session.sh("echo next").ok().out == "next\n"


@pytest.mark.parametrize("waiting", [0, 60])
def test_a_command_that_init_has_not_read_is_for_the_next(waiting: int, session: Session) -> None:
    """Tests the last command that was sent, and one that still waits."""
    with session.rpc() as rpc:
        with busy(session):
            for _ in range(waiting):
                rpc.send("process.spawn", argv=["sleep", "1000"])
            until(lambda: len(rpc.call("process.list")["processes"]) == waiting, "they were asked for")
            with session.start("sh", "-c", "echo again >>told; echo again") as client:
                until(lambda: len(rpc.call("process.list")["processes"]) == waiting + 1, "it was asked for, last")
                os.kill(session.init(), signal.SIGKILL)
                assert client.wait().ok().out == "again\n"
    assert session.sh("cat told").ok().out == "again\n"
    assert session.processes("sleep") == []


def test_a_file_that_is_written_when_the_sandbox_has_just_ended_is_at_its_place(session: Session) -> None:
    """The sandbox's mounts exist as long as the keeper serves a client."""
    keeper, init = session.keeper(), session.init()
    with session.rpc() as rpc:
        rpc.call("files.write", path="/mnt/files/before", content="before")
        os.kill(keeper, signal.SIGSTOP)
        number = rpc.send("files.write", path="/mnt/files/after", content="after")
        os.kill(init, signal.SIGKILL)
        until(lambda: state(init) in ("Z", "gone"), "the sandbox has ended")
        os.kill(keeper, signal.SIGCONT)
        assert rpc.result(number)["size"] == 5
    assert (session.directory / "files" / "after").read_text() == "after"
    assert session.sh("cat /mnt/files/before /mnt/files/after").ok().out == "beforeafter"
