# SPDX-License-Identifier: Apache-2.0
"""process.* by JSON-RPC: watching, writing, signals, terminals and owners."""

from __future__ import annotations

import base64
import signal
import subprocess
import time

import pytest

from lib.sessions import Bound, Connect, Json, Rpc, RpcError, Session, Sessions, memory, until

pytestmark = pytest.mark.alike


def both_watch(connect: Connect, script: str) -> tuple[Bound, Bound, str]:
    """Starts the script with an input. Returns two clients that watch it, and its id."""
    one, two = connect(), connect()
    process = one.spawn(script, input=True)
    for client in (one, two):
        client.call("process.watch", id=process)
    return one, two, process


def test_several_clients_watch_one_process(connect: Connect) -> None:
    one, two, process = both_watch(connect, "while read line; do echo got $line; done; echo end")
    two.call("process.write", id=process, data="first\n")
    for client in (one, two):
        assert client.note("process.output", id=process)["text"] == "got first\n"
    one.call("process.close_stdin", id=process)
    for client in (one, two):
        assert client.note("process.output", id=process)["text"] == "end\n"
        assert client.note("process.exited", id=process)["exit_code"] == 0
    assert [c.call("process.wait", id=process)["exit_code"] for c in (one, two)] == [0, 0]


def test_process_unwatch_ends_the_notifications(connect: Connect) -> None:
    one, two, process = both_watch(connect, "while read line; do echo got $line; done")
    one.call("process.write", id=process, data="first\n")
    for client in (one, two):
        client.note("process.output", id=process)
    one.call("process.unwatch", id=process)
    one.call("process.write", id=process, data="second\n")
    one.call("process.close_stdin", id=process)
    assert two.note("process.output", id=process)["text"] == "got second\n"
    two.note("process.exited", id=process)
    # A notification about it would come before this reply.
    assert one.call("process.wait", id=process)["exit_code"] == 0
    assert one.rpc.notes == []

    one.call("process.watch", id=process, base64=True)
    bytes_of_it = b"".join(base64.b64decode(n["params"]["base64"]) for n in until_exited(one, process))
    assert bytes_of_it == b"got first\ngot second\n"


def until_exited(client: Bound, process: str) -> list[Json]:
    """Returns the notifications of its output, up to its end."""
    client.note("process.exited", id=process)
    return [n for n in client.rpc.notes if n["method"] == "process.output"]


def test_process_spawn_takes_a_timeout_and_an_output_limit(rpc: Bound) -> None:
    late = rpc.spawn("sleep 1000 & sleep 1000", timeout_ms=100)
    ended = rpc.call("process.wait", id=late)
    assert (ended["cause"], ended["exit_code"], ended["timeout_us"]) == ("timeout", 124, 100_000)

    for keep, kept in ("head", "0123"), ("tail", "789\n"):
        much = rpc.spawn("echo 0123456789", output_max=4, keep=keep)
        ended = rpc.call("process.wait", id=much, output=True)
        assert (ended["stdout"], ended["stdout_bytes"], ended["stdout_dropped"]) == (kept, 11, 7)


def test_a_new_watcher_can_continue_at_a_chunk_number(connect: Connect) -> None:
    one = connect()
    process = one.spawn("for i in {1..5}; do echo $i; read; done", input=True)
    one.call("process.watch", id=process)
    first = one.note("process.output", id=process)
    one.call("process.write", id=process, data="\n")
    second = one.note("process.output", id=process)
    one.rpc.close()
    two = connect()
    two.call("process.write", id=process, data="\n\n\n")
    two.call("process.watch", id=process, **{"from": second["seq"] + 1})
    seen = [two.note("process.output", id=process) for _ in range(1)]
    while "".join(n["text"] for n in seen) != "3\n4\n5\n":
        seen.append(two.note("process.output", id=process))

    numbers = [first["seq"], second["seq"], *(n["seq"] for n in seen)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert two.text(process, start=second["seq"]) == "2\n3\n4\n5\n"
    two.call("process.kill", id=process)


def test_chunks_do_not_cut_characters(rpc: Bound) -> None:
    process = rpc.spawn("printf '\\xe6\\x97'; read; printf '\\xa5\\xf0\\x9f'; read; printf '\\xa6\\xa6'", input=True)
    rpc.call("process.watch", id=process)
    time.sleep(0.05)
    rpc.call("process.write", id=process, data="\n")
    assert rpc.note("process.output", id=process)["text"] == "日"
    rpc.call("process.write", id=process, data="\n")
    assert rpc.note("process.output", id=process)["text"] == "🦦"


def test_a_client_that_does_not_read_is_not_waited_for(connect: Connect, session: Session) -> None:
    """While a process prints 50 MB, the keeper keeps the output up to its limit, and serves others."""
    slow, other = connect(), connect()
    process = slow.spawn("read; head -c 50000000 /dev/zero | tr '\\0' x; echo the end", input=True, output_max=1 << 20, keep="tail")
    slow.call("process.watch", id=process)
    before = memory(session.keeper())
    slow.call("process.write", id=process, data="\n")
    while other.call("process.list")["processes"][0]["state"] == "running":
        assert other.sh("echo served")["stdout"] == "served\n"
        assert memory(session.keeper()) < before + (24 << 20)

    ended = other.call("process.wait", id=process, output=True)
    assert ended["stdout_bytes"] == 50000008 and ended["stdout"].endswith("the end\n")
    slow.note("process.exited", id=process)


def test_only_owned_processes_end_with_their_client(connect: Connect) -> None:
    one, two = connect(), connect()
    owned = one.spawn("setsid sleep 1000 & exec sleep 1000", owned=True)
    own = one.spawn("exec sleep 1000")
    one.rpc.close()

    until(lambda: states(two)[owned] == "ended", "the owned process ends")
    assert states(two)[own] == "running"
    two.call("process.kill", id=own)


def test_a_killed_server_takes_its_clients_processes(sessions: Sessions, session: Session) -> None:
    with sessions.start(["serve"], stdin=subprocess.PIPE) as server:
        rpc = Rpc.of_process(server.process)
        process = rpc.call("process.spawn", session="w", argv=["sleep", "1000"], owned=True)["id"]
        server.kill()
        server.process.wait()
        until(lambda: session.ps()[process]["state"] == "ended", "the owned process ends")


def states(client: Bound) -> dict[str, str]:
    return {p["id"]: p["state"] for p in client.call("process.list")["processes"]}


def test_signals(rpc: Bound) -> None:
    process = rpc.spawn("trap 'echo caught' USR1; trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    rpc.call("process.watch", id=process)
    rpc.note("process.output", id=process, text="ready\n")
    for name in ("USR1", "SIGUSR1", "10"):
        rpc.call("process.signal", id=process, signal=name)
        rpc.note("process.output", id=process, text="caught\n")
    assert rpc.refused("process.signal", id=process, signal="NONE").kind == "usage"
    assert rpc.refused("process.signal", id=process, signal="0").kind == "usage"
    rpc.call("process.signal", id=process, signal="TERM")
    assert rpc.call("process.wait", id=process)["exit_code"] == 7


def test_stdin_that_nobody_reads_has_a_limit(keeper: Bound, session: Session) -> None:
    process = keeper.spawn("exec sleep 1000", input=True)
    before = memory(session.keeper())
    written = 0
    while written < 64 << 20:
        try:
            keeper.call("process.write", id=process, data="x" * 500_000)
        except RpcError as error:
            assert error.kind == "limit"
            break
        written += 500_000
    assert 1 << 20 < written < 16 << 20
    assert memory(session.keeper()) < before + (24 << 20)
    keeper.call("process.kill", id=process)


def test_writing_to_a_process_without_stdin_is_refused(rpc: Bound) -> None:
    process = rpc.spawn("exec sleep 1000")
    assert rpc.refused("process.write", id=process, data="x").kind == "usage"
    rpc.call("process.kill", id=process)
    rpc.call("process.wait", id=process)
    assert rpc.refused("process.write", id=process, data="x").kind == "usage"
    assert rpc.refused("process.write", id="p99", data="x").kind == "no-process"


def test_stdin_of_any_bytes(rpc: Bound) -> None:
    process = rpc.spawn("exec od -An -tx1", input=True)
    rpc.call("process.write", id=process, base64="AP/+")
    rpc.call("process.write", id=process, data="a")
    assert rpc.refused("process.write", id=process).kind == "usage"
    assert rpc.refused("process.write", id=process, data="a", base64="AA==").kind == "usage"
    assert rpc.refused("process.write", id=process, base64="?").kind == "usage"
    rpc.call("process.close_stdin", id=process)
    assert rpc.call("process.wait", id=process, output=True)["stdout"] == " 00 ff fe 61\n"


def test_kill(rpc: Bound) -> None:
    process = rpc.spawn("setsid sleep 1000 & ( ( sleep 1000 & ) & ); echo ready; sleep 1000")
    waiting = rpc.send("process.wait", id=process)
    rpc.call("process.watch", id=process)
    rpc.note("process.output", text="ready\n")
    assert rpc.call("process.kill", id=process)["killed"]

    result = rpc.result(waiting)
    assert (result["cause"], result["exit_code"], result["signal"]) == ("killed", 137, 9)
    until(lambda: states(rpc)[process] == "ended", "all of it ends")
    assert not rpc.call("process.kill", id=process)["killed"]
    assert rpc.sh("pgrep sleep")["exit_code"] == 1


def test_a_terminal_by_rpc(rpc: Bound) -> None:
    process = rpc.call("process.spawn", argv=["bash", "--norc", "-i"], terminal=7, rows=33, columns=77, env={"PS1": "> "})["id"]
    rpc.call("process.watch", id=process)
    text = ""

    def shows(what: str) -> bool:
        nonlocal text
        while what not in text:
            text += rpc.note("process.output", id=process)["text"]
        return True

    shows("> ")
    rpc.call("process.write", id=process, data="stty size\n")
    shows("33 77")
    rpc.call("process.resize", id=process, rows=44, columns=88)
    rpc.call("process.write", id=process, data="stty size; exit 6\n")
    shows("44 88")
    assert rpc.call("process.wait", id=process)["exit_code"] == 6
    assert rpc.refused("process.resize", id=rpc.spawn("true"), rows=1, columns=1).kind == "usage"


def test_notifications_of_a_served_session_name_it(sessions: Sessions, session: Session) -> None:
    sessions.create("other")
    with sessions.serve() as rpc:
        for name in ("w", "other"):
            process = rpc.call("process.spawn", session=name, argv=["cat"], input=True)["id"]
            rpc.call("process.watch", session=name, id=process)
            rpc.call("process.write", session=name, id=process, data=name)
            assert rpc.note("process.output", session=name)["text"] == name


def test_a_command_on_a_terminal_is_a_job(connect: Connect) -> None:
    """The owner and the watchers of the command hear that it has stopped. The command continues when a client asks for that."""
    one, two = connect(), connect()
    process = one.spawn("sleep 1000 & echo ready; exec cat", terminal=7, owned=True)
    two.call("process.watch", id=process)
    two.note("process.output", id=process)
    two.call("process.write", id=process, data="\x1a")
    for client in (one, two):
        assert client.note("process.stopped", id=process)["signal"] == signal.SIGTSTP
    two.call("process.resume", id=process)
    two.call("process.write", id=process, data="on\n")
    while "on\r\non" not in two.text(process):
        two.note("process.output", id=process)
    one.call("process.kill", id=process)


def test_a_command_in_the_background_of_its_terminal_asks_for_the_keys(rpc: Bound) -> None:
    process = rpc.spawn("read line; echo got $line", terminal=7, background=True, owned=True)
    assert rpc.note("process.stopped", id=process)["signal"] == signal.SIGTTIN
    rpc.call("process.resume", id=process)
    rpc.call("process.write", id=process, data="it\n")

    assert rpc.call("process.wait", id=process)["exit_code"] == 0
    assert "got it" in rpc.text(process)


def test_a_signal_to_all_that_a_process_has_started(rpc: Bound) -> None:
    process = rpc.spawn("setsid bash -c 'trap \"echo caught; exit\" USR1; echo ready; while :; do sleep 0.01; done' & trap '' USR1; wait; sleep 1000")
    rpc.call("process.watch", id=process)
    rpc.note("process.output", id=process, text="ready\n")
    rpc.call("process.signal", id=process, signal="USR1", all=True)
    rpc.note("process.output", id=process, text="caught\n")
    rpc.call("process.kill", id=process)


@pytest.mark.identities("user")
def test_the_number_of_live_processes_is_limited(keeper: Bound) -> None:
    """The limit is PROCESSES_LIVE_MAX. It also counts processes whose command has left something."""
    ids = [keeper.call("process.spawn", shell="sleep 1000 & exit")["id"] for _ in range(128)]
    ids += [keeper.call("process.spawn", argv=["sleep", "1000"])["id"] for _ in range(128)]
    for method in ("process.spawn", "exec"):
        refused = keeper.refused(method, argv=["true"])
        assert (refused.kind, refused.message) == ("limit", "the session already has 256 running commands")
        assert refused.hint == "Wait for some of them, or kill them."

    for ended in (ids[0], ids[-1]):
        keeper.call("process.kill", id=ended)
        until(lambda: states(keeper)[ended] == "ended", "it is gone")
        assert keeper.call("exec", argv=["true"])["exit_code"] == 0
