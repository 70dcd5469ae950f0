# SPDX-License-Identifier: Apache-2.0
"""JSON-RPC as adapters speak it: over "holt serve", and at a keeper's own socket."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.sessions import Closed, Json, Rpc, RpcError, Session, Sessions, until


class Bound:
    """An Rpc whose calls name the session, where they go by holt serve."""

    def __init__(self, rpc: Rpc, more: Json) -> None:
        self.rpc, self.more = rpc, more
        self.note, self.result, self.raw, self.read = rpc.note, rpc.result, rpc.raw, rpc.read

    def call(self, method: str, **params: object) -> Json:
        return self.rpc.call(method, **self.more, **params)

    def send(self, method: str, **params: object) -> int:
        return self.rpc.send(method, **self.more, **params)

    def refused(self, method: str, **params: object) -> RpcError:
        return self.rpc.refused(method, **self.more, **params)

    def sh(self, script: str, **params: object) -> Json:
        return self.call("exec", shell=script, **params)

    def spawn(self, script: str, **params: object) -> str:
        return self.call("process.spawn", shell=script, **params)["id"]

    def text(self, process: str, stream: str = "stdout", start: int = 1) -> str:
        """All that is kept of a stream."""
        text = ""
        while chunks := (answer := self.call("process.read", id=process, **{"from": start}))["chunks"]:
            text += "".join(c["text"] for c in chunks if c["stream"] == stream)
            start = answer["next"]
        return text


Connect = Callable[[], Bound]


@pytest.fixture(params=("serve", "keeper"))
def connect(request: pytest.FixtureRequest, sessions: Sessions, session: Session) -> Iterator[Connect]:
    """Makes clients of the session: of one holt serve each, or of its keeper."""
    opened: list[Rpc] = []

    def connect() -> Bound:
        serve = request.param == "serve"
        opened.append(sessions.serve() if serve else session.rpc())
        return Bound(opened[-1], {"session": "w"} if serve else {})

    yield connect
    for rpc in opened:
        rpc.close()


@pytest.fixture
def rpc(connect: Connect) -> Bound:
    return connect()


@pytest.fixture
def keeper(session: Session) -> Iterator[Bound]:
    """A client of the keeper alone, where the way there makes no difference."""
    with session.rpc() as rpc:
        yield Bound(rpc, {})


def memory(pid: int) -> int:
    """Bytes of a process's own memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{pid} has ended")


# --- sessions ---


def test_a_session_from_create_to_remove(sessions: Sessions, workspace: Path) -> None:
    with sessions.serve() as rpc:
        assert rpc.call("session.create", name="a", options=["--timeout", "60s"], cwd=str(workspace))["name"] == "a"
        assert rpc.refused("session.create", name="a").kind == "exists"
        assert rpc.call("session.list")["sessions"] == [{"name": "a", "state": "at rest"}]
        assert rpc.call("exec", session="a", argv=["echo", "hello"])["stdout"] == "hello\n"
        assert rpc.call("session.show", session="a")["state"] == "live"
        assert rpc.refused("session.remove", session="a").kind == "busy"
        rpc.call("session.stop", session="a")
        until(lambda: rpc.call("session.list")["sessions"][0]["state"] == "at rest", "it rests")
        rpc.call("session.remove", session="a")
        assert rpc.call("session.list")["sessions"] == []


def test_a_socket_serves_many_clients(sessions: Sessions, session: Session, place: Path) -> None:
    path = sessions.data / "s"
    with sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        assert path.stat().st_mode & 0o777 == 0o600
        clients = [Rpc.of_socket(path, sessions.holt.identity.uid) for _ in range(5)]
        numbers = [c.send("exec", session="w", argv=["echo", str(i)]) for i, c in enumerate(clients)]
        assert [c.result(n)["stdout"] for c, n in zip(clients, numbers)] == [f"{i}\n" for i in range(5)]
        busy = sessions(["serve", "--socket", path])
        assert str(path) in busy.refusal()
        for client in clients:
            client.close()
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0
    assert not path.exists()


def test_a_socket_that_a_killed_server_has_left_is_replaced(sessions: Sessions) -> None:
    path = sessions.data / "s"
    for end in (signal.SIGKILL, signal.SIGTERM):
        with sessions.start(["serve", "--socket", path]) as server:
            def answers() -> bool:
                try:
                    with Rpc.of_socket(path, sessions.holt.identity.uid) as rpc:
                        return rpc.call("session.list")["sessions"] == []
                except OSError:
                    return False
            until(answers, "it answers")
            server.kill(end)
            server.wait()


def test_a_socket_s_path_that_is_too_long(sessions: Sessions) -> None:
    assert "ENAMETOOLONG" in sessions(["serve", "--socket", sessions.data / ("s" * 120)]).refusal()


def test_the_reference_has_every_method(sessions: Sessions) -> None:
    reference = json.loads(sessions(["serve", "--methods", "--json"]).ok().out)
    text = sessions(["serve", "--methods"]).ok().out

    assert {"session.create", "exec", "process.spawn", "kv.set", "audit.list"} <= set(reference)
    for name in reference:
        assert name in text


# --- exec ---


def test_exec_has_output_cause_and_usage(rpc: Bound) -> None:
    result = rpc.sh("echo out; echo err >&2; exit 3")

    assert (result["stdout"], result["stderr"], result["exit_code"]) == ("out\n", "err\n", 3)
    assert result["cause"] == "exited" and result["signal"] is None
    assert result["usage"]["wall_us"] > 0 and result["usage"]["max_rss_bytes"] > 100_000
    assert result["stdout_bytes"] == 4 and result["stdout_dropped"] == 0


def test_exec_by_a_signal(rpc: Bound) -> None:
    result = rpc.sh("kill -SEGV $$")

    assert (result["cause"], result["signal"], result["exit_code"]) == ("signaled", 11, 139)


def test_exec_takes_stdin_cwd_and_env(rpc: Bound) -> None:
    result = rpc.call("exec", argv=["sh", "-c", "cat; pwd; echo $A"], stdin="in\n", cwd="/tmp", env={"A": "ä"})

    assert result["stdout"] == "in\n/tmp\nä\n"


def test_exec_without_stdin_is_at_its_end(rpc: Bound) -> None:
    assert rpc.call("exec", argv=["cat"])["stdout"] == ""


def test_exec_takes_much_stdin(rpc: Bound) -> None:
    assert rpc.call("exec", argv=["wc", "-c"], stdin="x" * 900_000)["stdout"] == "900000\n"


@pytest.mark.parametrize("keep", ("head", "tail"))
@pytest.mark.parametrize("most", (0, 1, 1000, 65536))
def test_what_is_not_kept_is_counted(keep: str, most: int, rpc: Bound) -> None:
    result = rpc.sh("seq 100000; seq 50000 >&2", output_max=most, keep=keep)
    for stream, last in (("stdout", 100000), ("stderr", 50000)):
        whole = "".join(f"{i}\n" for i in range(1, last + 1))
        text = result[stream]
        assert result[f"{stream}_bytes"] == len(whole)
        assert result[f"{stream}_dropped"] == len(whole) - len(text)
        assert len(text) <= most
        if keep == "head":
            assert text == whole[:most]
        else:
            assert text == whole[len(whole) - most :]


def test_the_tail_is_as_long_as_was_asked_for(keeper: Bound) -> None:
    assert len(keeper.sh("seq 100000", output_max=1000, keep="tail")["stdout"]) == 1000


def test_five_thousand_lines_arrive_whole(rpc: Bound) -> None:
    expected = "".join(f"line {i} äöü日本🦦\n" for i in range(5000))
    result = rpc.sh("for i in {0..4999}; do echo \"line $i äöü日本🦦\"; done")

    assert result["stdout"] == expected
    process = rpc.spawn("for i in {0..4999}; do echo \"line $i äöü日本🦦\"; done")
    rpc.call("process.watch", id=process)
    rpc.note("process.exited", id=process)
    assert rpc.text(process) == expected
    notes = [n["params"] for n in rpc.rpc.notes if n["method"] == "process.output"]
    assert "".join(n["text"] for n in notes) == expected


def test_bytes_that_are_no_text(rpc: Bound) -> None:
    """As text they are replaced, one by one; in base64 they are what they were."""
    process = rpc.spawn(r"printf '\x00\xff\xfea\xc3'")
    rpc.call("process.wait", id=process)
    chunks = until(lambda: rpc.call("process.read", id=process, base64=True)["chunks"], "output")
    until(lambda: rpc.call("process.list")["processes"][0]["state"] == "ended", "its end")
    chunks = rpc.call("process.read", id=process, base64=True)["chunks"]

    assert b"".join(base64.b64decode(c["base64"]) for c in chunks) == b"\0\xff\xfea\xc3"
    assert rpc.sh(r"printf '\xffa\xc3'")["stdout"] == "\ufffda\ufffd"


def test_exec_in_base64(keeper: Bound) -> None:
    result = keeper.sh(r"printf '\xff\x00'", base64=True)

    assert base64.b64decode(result["stdout"]) == b"\xff\0"


@pytest.mark.parametrize("params", ({}, {"argv": ["true"], "shell": "true"}, {"argv": []}, {"argv": [""]}, {"shell": "true", "keep": "middle"}))
def test_exec_that_says_nothing_or_too_much(params: Json, keeper: Bound) -> None:
    assert keeper.refused("exec", **params).kind == "usage"


def test_a_command_that_is_not_there(rpc: Bound) -> None:
    error = rpc.refused("exec", argv=["no-such-command"])

    assert "no-such-command" in error.message
    assert rpc.sh("no-such-command")["exit_code"] == 127


def test_timeouts(rpc: Bound) -> None:
    result = rpc.sh("echo before; sleep 1000", timeout_ms=150)

    assert (result["cause"], result["exit_code"], result["stdout"]) == ("timeout", 124, "before\n")


def test_a_call_can_not_have_more_time_than_the_policy(sessions: Sessions) -> None:
    session = sessions.create("v", "--timeout", "200ms", "--kill-after", "100ms")
    with session.rpc() as rpc:
        for asked in (0, 60000):
            assert rpc.call("exec", argv=["sleep", "1000"], timeout_ms=asked)["cause"] == "timeout"


def test_wait_settles_although_a_grandchild_holds_stdout(rpc: Bound) -> None:
    result = rpc.sh("sleep 1000 & echo done")
    assert (result["exit_code"], result["stdout"]) == (0, "done\n")
    process = rpc.spawn("sleep 1000 & echo done; exit 4")

    assert rpc.call("process.wait", id=process, output=True)["exit_code"] == 4
    assert rpc.call("process.list")["processes"][0]["state"] == "background"
    rpc.call("process.kill", id=process)
    until(lambda: rpc.call("process.list")["processes"][0]["state"] == "ended", "it is killed")


def test_all_that_was_printed_before_the_end_is_there(rpc: Bound) -> None:
    for _ in range(20):
        assert rpc.sh("head -c 60000 /dev/zero | tr '\\0' x; exit 1")["stdout"] == "x" * 60000


def test_many_calls_of_one_client_at_once(rpc: Bound) -> None:
    numbers = [rpc.send("exec", argv=["echo", str(i)]) for i in range(50)]

    assert [rpc.result(n)["stdout"] for n in numbers] == [f"{i}\n" for i in range(50)]


def test_past_the_limit_of_processes_comes_an_error(keeper: Bound) -> None:
    """Of the policy's pids or of the table: never a hang."""
    error = None
    for _ in range(300):
        try:
            keeper.spawn("exec sleep 1000")
        except RpcError as refused:
            error = refused
            break
    assert error and error.kind in ("limit", "setup"), error
    for process in keeper.call("process.list")["processes"]:
        keeper.call("process.kill", id=process["id"])
    until(lambda: all(p["state"] == "ended" for p in keeper.call("process.list")["processes"]), "all end")
    assert keeper.sh("echo again")["stdout"] == "again\n"


# --- processes ---


def test_several_clients_watch_one_process(connect: Connect) -> None:
    one, two = connect(), connect()
    process = one.spawn("while read line; do echo got $line; done; echo end", input=True)
    for client in (one, two):
        client.call("process.watch", id=process)
    two.call("process.write", id=process, data="first\n")
    for client in (one, two):
        assert client.note("process.output", id=process)["text"] == "got first\n"
    one.call("process.close_stdin", id=process)
    for client in (one, two):
        assert client.note("process.output", id=process)["text"] == "end\n"
        assert client.note("process.exited", id=process)["exit_code"] == 0
    assert [c.call("process.wait", id=process)["exit_code"] for c in (one, two)] == [0, 0]


def test_numbers_of_chunks_go_on_for_who_comes_back(connect: Connect) -> None:
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
    """While a process prints 50 MB: the keeper keeps what is to be kept, and serves others."""
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


def test_what_a_dead_client_owned_dies_and_the_rest_lives(connect: Connect) -> None:
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


def test_stdin_of_what_has_none_or_has_ended(rpc: Bound) -> None:
    process = rpc.spawn("exec sleep 1000")
    assert rpc.refused("process.write", id=process, data="x").kind == "usage"
    rpc.call("process.kill", id=process)
    rpc.call("process.wait", id=process)
    assert rpc.refused("process.write", id=process, data="x").kind == "usage"
    assert rpc.refused("process.write", id="p99", data="x").kind == "missing"


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


# --- what is not as it should be ---


@pytest.fixture(params=("serve", "keeper"))
def line(request: pytest.FixtureRequest, sessions: Sessions, session: Session) -> Iterator[Rpc]:
    with sessions.serve() if request.param == "serve" else session.rpc() as rpc:
        yield rpc


LIST = {"jsonrpc": "2.0", "id": "still", "method": "session.list"}


def still_serves(rpc: Rpc) -> None:
    rpc.raw(b'{"jsonrpc": "2.0", "id": "still", "method": "no.such"}\n')
    with pytest.raises(RpcError) as error:
        rpc.result("still")
    assert error.value.code == -32601


@pytest.mark.parametrize(
    "bytes_", (b"{", b"nonsense", b"[]", b"null", b"[" * 5000, b'"x"', b"{\"a\":1}x", b"\xff\xfe", b"{}", b"\0", b'{"jsonrpc":"1.0","id":1,"method":"exec"}',
               b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","id":1,"method":7}', b'{"jsonrpc":"2.0","id":{},"method":"exec"}'),
)
def test_malformed_lines_are_answered(bytes_: bytes, line: Rpc) -> None:
    line.raw(bytes_ + b"\n")
    def answered() -> bool:
        line.read()
        return bool(line._answers)
    until(answered, "an answer")
    (answer,) = line._answers.values()
    line._answers.clear()
    assert answer["error"]["code"] in (-32700, -32600)
    still_serves(line)


def test_a_line_of_a_hundred_megabytes(line: Rpc, session: Session) -> None:
    session.exec("true").ok()
    before = memory(session.keeper())
    line.raw(b'{"jsonrpc": "2.0", "id": 1, "method": "')
    for _ in range(100):
        line.raw(b"x" * 1_000_000)
    line.raw(b'"}\n')
    while not line._answers:
        line.read()
    (answer,) = line._answers.values()
    line._answers.clear()

    assert answer["error"]["code"] in (-32700, -32600)
    still_serves(line)
    assert memory(session.keeper()) < before + (8 << 20)


def test_unknown_methods_and_parameters_are_named(rpc: Bound) -> None:
    error = rpc.refused("exce", argv=["true"])
    assert error.code == -32601 and "exec" in error.message + error.hint
    error = rpc.refused("exec", argv=["true"], retries=5)
    assert error.code == -32602 and "retries" in error.message
    error = rpc.refused("exec", argv="true")
    assert error.code == -32602
    error = rpc.refused("process.wait")
    assert error.code == -32602 and "id" in error.message
    assert rpc.refused("process.wait", id="p77").kind == "missing"
    assert rpc.refused("exec", argv=["true"], output_max=1 << 40).code == -32602


def test_served_names_that_can_not_be(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        for name in ("..", "a/b", "", "x" * 65):
            assert rpc.refused("exec", session=name, argv=["true"]).kind in ("usage", "None")
        assert rpc.refused("exec", session="v", argv=["true"]).kind == "missing"
        assert rpc.refused("exec", argv=["true"]).code == -32602
        assert rpc.refused("session.create", name="a", options=["--no-such-option"]).kind == "usage"
        assert rpc.refused("session.create", name="a", cwd="relative").kind == "usage"
        assert rpc.call("session.list")["sessions"] == []


def test_a_keeper_that_dies_is_told_and_the_next_call_starts_it(sessions: Sessions, session: Session) -> None:
    with sessions.serve() as rpc:
        waiting = rpc.send("exec", session="w", argv=["sleep", "1000"])
        until(lambda: session.processes("sleep"), "it runs")
        session.kill_keeper()
        with pytest.raises(RpcError) as error:
            rpc.result(waiting)
        assert '"w"' in error.value.message
        assert rpc.call("exec", session="w", argv=["echo", "again"])["stdout"] == "again\n"


def test_values_by_rpc(rpc: Bound) -> None:
    for i in range(25):
        rpc.call("kv.set", key=f"k{i:02}", value=f"v{i}")
    page = rpc.call("kv.keys", prefix="k", limit=10)

    assert page["keys"] == [f"k{i:02}" for i in range(10)] and page["next"] == "k09"
    assert rpc.call("kv.keys", after="k19")["keys"] == [f"k{i:02}" for i in range(20, 25)]
    assert rpc.call("kv.get", key="k03")["value"] == "v3"
    assert rpc.call("kv.delete", key="k03")["deleted"] and not rpc.call("kv.delete", key="k03")["deleted"]
    assert rpc.refused("kv.get", key="k03").kind == "missing"
    big = "ä" * 400_000
    rpc.call("kv.set", key="big", value=big)
    assert rpc.call("kv.get", key="big")["value"] == big


def test_history_by_pages(keeper: Bound) -> None:
    for i in range(7):
        keeper.sh(f"exit {i}")
    first = keeper.call("history.list", limit=4)
    second = keeper.call("history.list", limit=4, before=first["next"])

    codes = [json.loads(row["result"])["exit_code"] for row in (*first["rows"], *second["rows"])]
    assert codes == [6, 5, 4, 3, 2, 1, 0]
    assert second["next"] is None


def test_who_closes_early_is_forgotten(session: Session) -> None:
    for _ in range(100):
        with session.rpc() as rpc:
            rpc.send("exec", shell="echo x")
    with session.rpc() as rpc:
        until(lambda: all(p["state"] == "ended" for p in rpc.call("process.list")["processes"]), "all ends")


def test_too_many_clients_get_an_error_and_others_go_on(session: Session) -> None:
    with session.rpc() as first:
        opened = [session.rpc() for _ in range(260)]
        refused = 0
        for rpc in opened:
            try:
                rpc.call("kv.keys")
            except (RpcError, Closed, BrokenPipeError, ConnectionResetError):
                refused += 1
        assert 0 < refused < 20
        assert first.call("kv.keys")["keys"] == []
        for rpc in opened:
            rpc.close()
        until(lambda: session("kv", "keys").code == 0, "there is room again")


def test_the_idle_keeper_has_no_fd_of_those_that_went(session: Session) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may look into a keeper")
    fds = Path(f"/proc/{session.keeper()}/fd")
    session.exec("true").ok()
    before = len(os.listdir(fds))
    for _ in range(20):
        session.sh("echo x; exit 1")
        session.exec("no-such-command")
        with session.rpc() as rpc:
            rpc.call("exec", shell="echo x", stdin="y")
            rpc.call("process.spawn", argv=["true"], terminal=7)
    until(lambda: len(os.listdir(fds)) <= before, f"no fd is left but {before}")
