# SPDX-License-Identifier: Apache-2.0
""""holt serve": sessions by JSON-RPC, over stdio or a socket."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lib.sessions import Json, Rpc, RpcError, Session, Sessions, until


def test_a_session_from_create_to_remove(sessions: Sessions, workspace: Path) -> None:
    with sessions.serve() as rpc:
        assert rpc.call("session.create", name="a", policy={"holt": 1, "limits": {"timeout": "60s"}}, cwd=str(workspace))["name"] == "a"
        assert rpc.refused("session.create", name="a").kind == "exists"
        assert rpc.call("session.list")["sessions"] == [{"name": "a", "state": "at rest"}]
        assert rpc.call("exec", session="a", argv=["echo", "hello"])["stdout"] == "hello\n"
        assert rpc.call("session.show", session="a")["state"] == "live"
        assert rpc.refused("session.remove", session="a").kind == "busy"
        rpc.call("session.stop", session="a")
        until(lambda: rpc.call("session.list")["sessions"][0]["state"] == "at rest", "it rests")
        rpc.call("session.remove", session="a")
        assert rpc.call("session.list")["sessions"] == []


def test_create_with_find_compares_the_settings(sessions: Sessions, workspace: Path) -> None:
    def find(cwd: Path = workspace, **asked: Json) -> bool:
        return bool(rpc.call("session.create", name="a", find=True, cwd=str(cwd), **asked)["made"])

    def differs(what: str, **asked: Json) -> None:
        error = rpc.refused("session.create", name="a", find=True, cwd=str(workspace), **asked)
        assert (error.kind, what in error.message) == ("exists", True), error.message

    def policy(**groups: Json) -> Json:
        return {"holt": 1, **groups}

    (workspace / "d").mkdir()
    files = {"read_only": ["/usr/bin"], "hide": ["x", "y"]}
    made = {
        "policy": policy(extends="strict", limits={"timeout": "60s"}, filesystem=files), "workspace": ".",
        "env": {"A": "1", "B": "2"}, "idle": "5m", "tier": "medium",
    }
    with sessions.serve() as rpc:
        assert find(**made)
        assert not find(**made) and not find() and not find(workspace / "d" / "..", **made)
        for name, value in made.items():
            assert not find(**{name: value}), name
        for group in (*({"filesystem": {name: value}} for name, value in files.items()), {"limits": {"timeout": "60s"}}):
            assert not find(policy=policy(**group)), group
        assert not find(policy_name="strict")
        differs("policy (strict, not standard)", policy_name="standard")
        differs("policy (strict, not standard)", policy=policy(extends="standard"))
        differs("limits.timeout (1m, not 2m)", policy=policy(limits={"timeout": "2m"}))
        differs("filesystem.workspace.source", workspace="d")
        for more in ("/usr/lib", "/usr/bin:/mnt/b"):
            differs(f"filesystem.read_only ({more} is missing from the session's list)", policy=policy(filesystem={"read_only": ["/usr/bin", more]}))
        differs("filesystem.hide (z is missing from the session's list)", policy=policy(filesystem={"hide": ["z"]}))
        differs("value of the environment variable B", env={"B": "3"})
        differs("idle (5m, not none)", idle="none")
        differs("tier (medium, not large)", tier="large")
        differs("syscalls.allow (mount is missing from the session's list)", policy=policy(syscalls={"allow": ["mount"]}))
        assert rpc.refused("session.create", name="a", find=True, owned=True).kind == "usage"
        assert rpc.refused("session.create", name="a", cwd=str(workspace), **made).kind == "exists"
        rpc.call("session.create", name="b", policy=policy(filesystem={"read_only": ["/usr/bin", "/usr/lib"]}))
        more = rpc.refused("session.create", name="b", find=True, policy=policy(filesystem={"read_only": ["/usr/bin"]}))
        assert "filesystem.read_only (the session's list has more entries)" in more.message
        hosts = {"mode": "none", "allow": ["a.example", "b.example"]}
        rpc.call("session.create", name="c", policy=policy(network=hosts))
        more = rpc.refused("session.create", name="c", find=True, policy=policy(network={**hosts, "allow": ["a.example"]}))
        assert "network.allow (the session's list has more entries)" in more.message


def test_a_policy_by_name_and_a_document(sessions: Sessions, workspace: Path) -> None:
    """The document adds to the preset or the file, whose path starts from cwd."""
    file = workspace / "policy.json"
    file.write_text('{"holt": 1, "extends": "strict", "limits": {"pids": 50}}')
    with sessions.serve() as rpc:
        rpc.call("session.create", name="a", policy_name=str(file), policy={"holt": 1, "limits": {"timeout": "9s"}})
        shown = rpc.call("session.show", session="a")
        assert (shown["preset"], shown["limits"]["pids"], shown["limits"]["timeout_us"]) == ("strict", 50, 9000000)
        rpc.call("session.create", name="b", policy_name="./policy.json", cwd=str(workspace))
        assert rpc.call("session.show", session="b")["preset"] == "strict"


def test_a_bad_policy_file_leaves_nothing_for_the_next_session(sessions: Sessions, workspace: Path) -> None:
    """A policy file that is remembered would be guarded in the next session."""
    file = workspace / "policy.json"
    file.write_text('{"holt": 1, "limits": {"pids": "many"}}')
    with sessions.serve() as rpc:
        for _ in range(3):
            assert rpc.refused("session.create", name="a", policy_name=str(file)).kind == "policy"
        rpc.call("session.create", name="a", workspace=str(workspace), policy_name="standard")
        assert rpc.call("exec", session="a", shell="rm policy.json")["exit_code"] == 0


@pytest.mark.parametrize(
    ("params", "message"),
    (
        ({"policy": {"holt": 1, "limits": {"pids": "many"}}}, "policy: $.limits.pids"),
        ({"policy": {"holt": 1, "no": 1}}, "policy: $.no: unknown field"),
        ({"policy": {"holt": 2}}, "policy: $.holt"),
        ({"policy_name": "no-such-preset"}, "no-such-preset"),
        ({"policy_name": "strict", "policy": {"holt": 1, "extends": "ci"}}, "extends"),
        ({"policy_name": "/no/such.json"}, "/no/such.json"),
        ({"policy_name": "-"}, '"-" names no policy file'),
        ({"policy_name": "/dev/stdin"}, "policy file /dev/stdin"),
        ({"tier": "huge"}, 'tier cannot be "huge"'),
        ({"idle": "soon"}, '"soon" is not a valid time'),
        ({"allow_degraded": ["nothing"]}, '"nothing"'),
        ({"workspace": "/no/such"}, "/no/such"),
        ({"env": {"A=B": "1"}}, "each name in env must have"),
        ({"cwd": "relative"}, "relative"),
    ),
)
def test_a_refused_create_makes_no_session(sessions: Sessions, params: Json, message: str) -> None:
    with sessions.serve() as rpc:
        error = rpc.refused("session.create", name="a", **params)
        assert message in error.message, error.message
        assert rpc.call("session.list")["sessions"] == []


def test_an_owned_session_is_not_found_by_another_client(sessions: Sessions) -> None:
    with sessions.serve() as maker, sessions.serve() as other:
        maker.call("session.create", name="a", owned=True)
        error = other.refused("session.create", name="a", find=True)
        assert error.kind == "exists" and "is removed when the client that created it disconnects" in error.message


def test_errors_are_clear_while_another_client_removes_the_session(sessions: Sessions) -> None:
    """Runs a client that finds, uses and removes the session, while others do the same."""
    def work() -> None:
        with sessions.serve() as rpc:
            for _ in range(ROUNDS):
                assert rpc.call("session.create", name="a", find=True)["name"] == "a"
                for method, params in ("exec", {"argv": ["true"]}), ("session.stop", {}), ("session.remove", {}):
                    try:
                        rpc.call(method, session="a", **params)
                    except RpcError as error:
                        errors.append(error)

    ROUNDS = 20
    errors: list[RpcError] = []
    with ThreadPoolExecutor() as pool:
        for worker in [pool.submit(work) for _ in range(3)]:
            worker.result()
    known = {
        'session "a" does not exist', 'session "a" was replaced meanwhile', 'the keeper of session "a" has ended',
        "the session is running",
    }
    assert {error.message for error in errors} <= known


def test_a_change_of_tier(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        rpc.call("session.create", name="a")
        rpc.call("mount.upload", session="a", path="f", content="kept")
        assert rpc.refused("session.set_tier", session="a", tier="large").kind == "busy"
        rpc.call("session.stop", session="a")
        until(lambda: rpc.call("session.list")["sessions"][0]["state"] == "at rest", "it rests")
        assert rpc.refused("session.set_tier", session="a", tier="none").kind == "usage"
        rpc.call("session.set_tier", session="a", tier="large")
        assert rpc.call("session.show", session="a")["tier"] == "large"
        assert rpc.call("mount.download", session="a", path="f")["content"] == "kept"


def test_stop_does_not_start_a_session_at_rest(sessions: Sessions, mkdir: Callable[[str], Path]) -> None:
    """Even a session that cannot start can be stopped."""
    workspace = mkdir("gone")
    sessions.create("a", "--workspace", workspace)
    workspace.rmdir()
    with sessions.serve() as rpc:
        assert rpc.call("session.stop", session="a") == {"set_aside": [], "set_aside_omitted": 0}
        assert rpc.refused("session.stop", session="b").kind == "missing"
        assert rpc.call("session.show", session="a")["state"] == "at rest"
        assert rpc.refused("exec", session="a", argv=["true"]).errno == "ENOENT"


def test_reading_the_database_does_not_start_a_session_at_rest(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        rpc.call("session.create", name="a")
        rpc.call("kv.set", session="a", key="k", value="v")
        rpc.call("exec", session="a", argv=["true"])
        live = rpc.call("session.show", session="a")
        rpc.call("session.stop", session="a")
        until(lambda: rpc.call("session.list")["sessions"][0]["state"] == "at rest", "it rests")

        assert rpc.call("kv.get", session="a", key="k") == {"value": "v"}
        assert rpc.refused("kv.get", session="a", key="other").kind == "no-key"
        assert rpc.call("kv.keys", session="a")["keys"] == ["k"]
        assert [r["name"] for r in rpc.call("history.list", session="a")["rows"]] == ["exec"]
        assert rpc.call("history.list", session="a", name="none")["rows"] == []
        assert rpc.call("audit.list", session="a", kind="tool")["rows"] == []
        assert "kind" in rpc.refused("audit.list", session="a", kind="none").message
        shown = rpc.call("session.show", session="a")
        assert rpc.call("session.list")["sessions"] == [{"name": "a", "state": "at rest"}]
        assert live.keys() - shown.keys() == {"keeper_pid", "started_ms", "processes", "layers"}
        assert {name for name in shown if shown[name] != live[name]} == {"state"}


def test_a_read_after_a_request_that_starts_the_session_sees_its_effect(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        rpc.call("session.create", name="a")
        for number in range(20):
            first = rpc.send("kv.set", session="a", key="k", value=str(number))
            second = rpc.send("kv.get", session="a", key="k")
            rpc.result(first)
            assert rpc.result(second) == {"value": str(number)}
            rpc.call("session.stop", session="a")


def test_more_sessions_than_a_shell_gives_descriptors(sessions: Sessions) -> None:
    """The server raises its soft limit, which exists for programs with select(2); commands keep theirs. At the hard
    limit, a request is refused, and the existing sessions continue."""
    with sessions.serve(prefix=("prlimit", "--nofile=64:")) as rpc:
        for number in range(40):
            rpc.call("session.create", name=f"s{number}", policy_name="permissive", owned=True)
            assert rpc.call("exec", session=f"s{number}", shell="ulimit -Sn")["stdout"] == "64\n"
    with sessions.serve(prefix=("prlimit", "--nofile=64:64")) as rpc:
        refused = None
        for number in range(40):
            try:
                rpc.call("session.create", name=f"h{number}", owned=True)
                rpc.call("exec", session=f"h{number}", argv=["true"])
            except RpcError as error:
                refused = error
                break
        assert refused and refused.errno == "EMFILE"
        assert rpc.call("exec", session="h0", argv=["true"])["exit_code"] == 0


def test_a_request_right_after_a_stop_goes_to_the_next_keeper(sessions: Sessions) -> None:
    """The stopped keeper has replied, but has not gone yet."""
    sessions.create("a")
    with sessions.serve() as rpc:
        for number in range(20):
            rpc.call("kv.set", session="a", key="n", value=str(number))
            rpc.call("session.stop", session="a")
            assert rpc.call("kv.get", session="a", key="n")["value"] == str(number)


def test_a_socket_serves_many_clients(sessions: Sessions, session: Session, place: Path) -> None:
    path = sessions.data / "s"
    with sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        assert path.stat().st_mode & 0o777 == 0o600
        clients = [Rpc.of_server(path, sessions.holt.identity) for _ in range(5)]
        numbers = [c.send("exec", session="w", argv=["echo", str(i)]) for i, c in enumerate(clients)]
        assert [c.result(n)["stdout"] for c, n in zip(clients, numbers)] == [f"{i}\n" for i in range(5)]
        busy = sessions(["serve", "--socket", path])
        assert str(path) in busy.refusal() and "Another server listens on this socket" in busy.err
        for client in clients:
            client.close()
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0
    assert not path.exists()


def test_a_client_may_talk_to_the_keeper_itself(sessions: Sessions, session: Session) -> None:
    """session.connect passes the connection. A tool that is registered there goes with it."""
    path = sessions.data / "s"
    with sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        with Rpc.of_server(path, sessions.holt.identity) as rpc:
            assert rpc.refused("session.connect", session="none").kind == "missing"
            assert rpc.call("session.connect", session="w") == {"live": True}
            end = socket.socket(fileno=rpc.fds.pop())
            with Rpc(end.fileno(), end.fileno(), end.close, end, alone=True) as direct:
                assert direct.call("session.show")["name"] == "w"
                assert direct.call("exec", shell="echo in")["stdout"] == "in\n"
                assert "session" in direct.refused("kv.keys", session="w").message
                direct.call("tools.register", name="t", description="t", input_schema={"type": "object"})
                assert len(rpc.call("tools.list", session="w")["tools"]) == 1
            until(lambda: not rpc.call("tools.list", session="w")["tools"], "the tool is gone")
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0


def test_a_socket_that_a_killed_server_has_left_is_replaced(sessions: Sessions) -> None:
    path = sessions.data / "s"
    for end in (signal.SIGKILL, signal.SIGTERM):
        with sessions.start(["serve", "--socket", path]) as server:
            def answers() -> bool:
                try:
                    with Rpc.of_server(path, sessions.holt.identity) as rpc:
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


def busy(pid: int) -> float:
    """Seconds of CPU that a process takes within a fifth of one."""
    def used() -> int:
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))

    before = used()
    time.sleep(0.2)
    return (used() - before) / os.sysconf("SC_CLK_TCK")


def test_a_keeper_that_dies_while_its_client_does_not_read(sessions: Sessions, session: Session) -> None:
    """The keeper's last messages wait for the client, and the server sleeps meanwhile."""
    path = sessions.data / "s"
    with sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        with Rpc.of_server(path, sessions.holt.identity) as slow, Rpc.of_server(path, sessions.holt.identity) as other:
            flood = slow.call("process.spawn", session="w", shell="exec yes", output_max=1000)["id"]
            slow.send("process.watch", session="w", id=flood)
            until(lambda: other.call("process.list", session="w")["processes"][0]["state"] == "running", "it runs")
            until(lambda: select.select([slow.reader], [], [], 0)[0], "some of it has come")
            until(lambda: busy(server.pid) == 0, "nothing more is taken for who does not read")
            session.kill_keeper()
            until(lambda: busy(server.pid) == 0, "the server sleeps", 30)
            assert other.call("exec", session="w", argv=["echo", "next"])["stdout"] == "next\n"
            number = slow.send("exec", session="w", argv=["echo", "too"])
            assert slow.result(number)["stdout"] == "too\n"
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0


@pytest.mark.parametrize("heard", (False, True))
def test_a_request_that_a_killed_keeper_has_not_read_is_sent_again(heard: bool, sessions: Sessions, session: Session) -> None:
    """While it ends, its socket still accepts connections for a moment."""
    keeper = session.keeper()
    with sessions.serve() as rpc:
        if heard:
            rpc.call("kv.set", session="w", key="k", value="v")
        os.kill(keeper, signal.SIGSTOP)
        number = rpc.send("exec", session="w", argv=["echo", "once"])
        rpc.call("session.list")  # the server has passed the request on before it replies to this one
        os.kill(keeper, signal.SIGKILL)
        if heard:
            # If a connection has more than one request, it is unknown which of them were read.
            with pytest.raises(RpcError, match="has ended"):
                rpc.result(number)
            number = rpc.send("exec", session="w", argv=["echo", "once"])
        assert rpc.result(number)["stdout"] == "once\n"
        rows = rpc.call("history.list", session="w")["rows"]
    assert [row["params"]["argv"] for row in rows if row["name"] == "exec"] == [["echo", "once"]]


def test_a_keeper_that_does_not_read_keeps_nobody_else_waiting(sessions: Sessions, session: Session) -> None:
    """The keeper's requests wait in the server, because they exceed the room in a socket."""
    path = sessions.data / "s"
    keeper = session.keeper()
    with sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        with Rpc.of_server(path, sessions.holt.identity) as one, Rpc.of_server(path, sessions.holt.identity) as other:
            one.call("exec", session="w", argv=["true"])
            os.kill(keeper, signal.SIGSTOP)
            try:
                numbers = [one.send("exec", session="w", argv=["wc", "-c"], stdin="x" * 900_000) for _ in range(4)]
                assert other.call("session.list", timeout=30)["sessions"][0]["name"] == "w"
            finally:
                os.kill(keeper, signal.SIGCONT)
            assert [one.result(n)["stdout"] for n in numbers] == ["900000\n"] * 4
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0
