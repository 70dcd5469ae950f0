# SPDX-License-Identifier: Apache-2.0
"""Keys and values, history and audit of a session, by the command line and by JSON-RPC."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Bound, Json, Session, Sessions, until

pytestmark = pytest.mark.alike


def test_keys_and_values(session: Session) -> None:
    session("kv", "set", "user_id", "12345").ok()
    session("kv", "set", "user_name", "ä\n日本").ok()
    session("kv", "set", "other", "").ok()

    assert session("kv", "get", "user_id").ok().out == "12345\n"
    assert session("kv", "get", "user_name").ok().out == "ä\n日本\n"
    assert session("kv", "keys").ok().out.split() == ["other", "user_id", "user_name"]
    assert session("kv", "keys", "user_").ok().out.split() == ["user_id", "user_name"]
    session("kv", "delete", "user_id").ok()
    assert "user_id" in session("kv", "get", "user_id").refusal()


def test_a_key_that_is_too_long(session: Session) -> None:
    assert "key" in session("kv", "set", "k" * 1025, "v").refusal()
    session("kv", "set", "k" * 1024, "v").ok()


def test_values_last(session: Session) -> None:
    session("kv", "set", "k", "v").ok()
    session.stop()
    assert session("kv", "get", "k").ok().out == "v\n"
    session.kill_keeper()
    assert session("kv", "get", "k").ok().out == "v\n"


def test_history_has_every_command(session: Session) -> None:
    session.sh("exit 3")
    session.exec("no-such-command")
    session.stop()
    last, first = session.history()

    assert json.loads(first["params"])["argv"] == ["bash", "-c", "exit 3"]
    assert json.loads(first["result"])["exit_code"] == 3
    assert first["started_ms"] <= first["ended_ms"] <= last["ended_ms"]
    assert json.loads(last["result"])["exit_code"] == 127


def test_a_row_begins_with_its_call(keeper: Bound) -> None:
    """The row of a long exec is written while it runs, later than its start."""
    wall = keeper.call("exec", argv=["sleep", "0.3"])["usage"]["wall_us"]
    (row,) = keeper.call("history.list")["rows"]
    assert row["ended_ms"] - row["started_ms"] >= wall // 1000


def test_audit_has_denials_and_kills(session: Session) -> None:
    session.sh("unshare -U true; mount -t tmpfs x /mnt")
    session("kill", session.detach("sleep 1000")).ok()
    until(lambda: session.ps()["p2"]["state"] == "ended", "it is killed")
    rows = session.audit()

    assert {row["kind"] for row in rows} == {"denial", "kill"}
    whats = {json.loads(row["detail"]).get("what") for row in rows}
    assert "unshare" in whats


def details(session: Session, kind: str) -> list[dict[str, object]]:
    return [json.loads(row["detail"]) for row in session.audit() if row["kind"] == kind]


def test_a_denial_says_whose_it_may_be_and_what_would_allow_it(session: Session) -> None:
    session.exec("true").ok()
    session.sh("unshare -U true; kill -SYS $$")
    denial, foreign = details(session, "denial")

    assert (denial["what"], denial["answer"], denial["execs"]) == ("unshare", "EPERM", ["p2"])
    assert denial["grant"] is None and "--no-sandbox" in denial["why_not"]
    assert (foreign["what"], foreign["answer"], foreign["execs"]) == ("a foreign ABI", "SIGSYS", ["p2"])
    assert foreign["grant"] is None and foreign["why_not"]


def test_the_audit_has_the_grants_of_a_session(sessions: Sessions) -> None:
    session = sessions.create("given", "--allow-syscall", "ptrace", "--allow-degraded", "landlock")

    assert details(session, "grant") == [
        {"layer": "landlock", "what": "landlock", "grant": "--allow-degraded landlock"},
        {"layer": "seccomp", "what": "ptrace", "grant": "--allow-syscall ptrace"},
    ]
    assert details(sessions.create("plain"), "grant") == []


TOOL = "plus=python3 -c 'import json,sys; print(json.load(sys.stdin)[\"a\"] + 1)'"


def test_tables_are_for_people(session: Session) -> None:
    """Each row says what it was about and how it ended, and no column is empty."""
    for payload in ({"a": 1}, {}):
        session("python", "--tool", TOOL, "-c", f"from host_tools import call\ncall('plus', {payload})")
    session.sh("unshare -U true")
    with session.rpc() as rpc:
        rpc.refused("files.read", path="none")
        rpc.call("files.write", path="a", content="x")
        rpc.call("files.move", **{"from": "a", "to": "b c"})
    shown = [line[38:].strip() for line in session("history").ok().out.splitlines()[1:]]

    assert [re.sub(" +", " ", line) for line in shown] == [
        "ok files.move a -> b c", "ok files.write a", "failed files.read none (ENOENT)",
        "exited 1 exec bash -c unshare -U true",
        "exited 1 python.run from host_tools import call ...", "failed tool.call plus {} (internal_error)",
        "exited 0 python.run from host_tools import call ...", 'ok tool.call plus {"a":1}',
    ]
    text = session("audit").ok().out
    denial = next(line for line in text.splitlines() if " denial " in line)
    assert "what=unshare count=1 answer=EPERM reason='the policy does not allow this system call' why_not=" in denial
    assert text.count(" success=true") == text.count(" success=false") == 1
    assert not re.search(r"=( |$)", text, re.MULTILINE)


def calls(session: Session) -> list[tuple[str, list[str], bool | str]]:
    """Returns the name, the operands, and the errno or True of each call, the oldest first."""
    rows = [(r["name"], json.loads(r["params"])["operands"], json.loads(r["result"])) for r in session.history()]
    return [(name, words, result["success"] or result["errno"]) for name, words, result in reversed(rows)]


def test_each_verb_is_one_row_of_the_history(session: Session, holt: Holt) -> None:
    """A verb is one row for any number of calls, and even if one of them fails."""
    (holt.cwd / "tree/below").mkdir(parents=True)
    for name in ("f", "tree/a", "tree/below/b"):
        (holt.cwd / name).write_text(name)
    holt.identity.own(holt.cwd)
    session("files", "mkdir", "d", "e").ok()
    session("files", "put", "f", "d").ok()
    session("files", "mv", "d/f", "e").ok()
    session("files", "cat", "e/f", "e/f").ok()
    session("files", "ls").ok()
    session.cp("-r", "tree", "w:new").ok()
    session.cp("-r", "w:new", "out").ok()
    session("files", "rm", "new").refusal()
    session("files", "put", "f", "no/such/").refusal()
    session("files", "stat", "none").refusal()

    assert calls(session) == [
        ("files mkdir", ["d", "e"], True), ("files put", ["f", "d"], True), ("files mv", ["d/f", "e"], True),
        ("files cat", ["e/f", "e/f"], True), ("files ls", [], True), ("cp", ["tree", "w:new"], True),
        ("cp", ["w:new", "out"], True), ("files rm", ["new"], "ENOTEMPTY"), ("files put", ["f", "no/such/"], "ENOENT"),
        ("files stat", ["none"], "ENOENT"),
    ]
    assert "cp             tree w:new" in session("history").ok().out
    assert "files stat     none (ENOENT)" in session("history").ok().out


def test_the_history_shortens_long_lists_of_operands(session: Session, holt: Holt) -> None:
    names = [f"{i:03}" for i in range(100)]
    for name in names:
        (holt.cwd / name).touch()
    holt.identity.own(holt.cwd)
    session("files", "mkdir", "d").ok()
    session.cp(*names, "w:d").ok()

    assert calls(session)[-1] == ("cp", [*names[:16], "...", "w:d"], True)


def test_a_long_command_is_in_the_history(session: Session) -> None:
    """The history has the first words of the command."""
    names = [f"name-{i:06}" for i in range(5000)]
    session.exec("true", *names).ok()
    row, = session.history()
    argv = json.loads(row["params"])["argv"]

    assert argv[:501] == ["true", *names[:500]] and argv[-1] == "..." and len(argv) < 5000
    assert json.loads(row["result"])["exit_code"] == 0
    told = session("history").ok().out
    assert "true name-000000" in told and "exited 0" in told


def test_an_act_ends_with_its_connection(session: Session) -> None:
    with session.rpc() as rpc:
        rpc.call("history.begin", name="act", operands=["x"])
        rpc.call("files.write", path="f", content="x")
        (row,) = session.history()
        assert (row["name"], row["result"], row["ended_ms"]) == ("act", None, None)
    assert until(lambda: session.history()[0]["result"], "the act has an end")
    assert calls(session) == [("act", ["x"], "ECANCELED")]


def test_acts_are_the_connections_own(session: Session) -> None:
    with session.rpc() as one, session.rpc() as other:
        one.call("history.begin", name="act")
        other.call("files.exists", path="f")
        assert other.refused("history.end", success=True).kind == "missing"
        assert one.refused("history.begin", name="more").kind == "busy"
        one.call("history.end", success=False, kind="missing", errno="ENOENT", error="no")
        one.call("files.list")
    assert [row["name"] for row in session.history()] == ["files.list", "files.exists", "act"]
    assert json.loads(session.history()[-1]["result"]) == {
        "success": False, "kind": "missing", "errno": "ENOENT", "error": "no",
    }


@pytest.mark.parametrize("name", ("", "process.spawn", "files.write", "tool.call"))
def test_an_act_cannot_have_the_name_of_a_method(name: str, session: Session) -> None:
    with session.rpc() as rpc:
        assert rpc.refused("history.begin", name=name).kind == "usage"


# --- by JSON-RPC ---


def test_values_by_rpc(rpc: Bound) -> None:
    for i in range(25):
        rpc.call("kv.set", key=f"k{i:02}", value=f"v{i}")
    page = rpc.call("kv.keys", prefix="k", limit=10)

    assert page["keys"] == [f"k{i:02}" for i in range(10)] and page["next"] == "k09"
    assert rpc.call("kv.keys", after="k19")["keys"] == [f"k{i:02}" for i in range(20, 25)]
    assert rpc.call("kv.get", key="k03")["value"] == "v3"
    assert rpc.call("kv.delete", key="k03")["deleted"] and not rpc.call("kv.delete", key="k03")["deleted"]
    assert rpc.refused("kv.get", key="k03").kind == "no-key"
    big = "ä" * 400_000
    rpc.call("kv.set", key="big", value=big)
    assert rpc.call("kv.get", key="big")["value"] == big


def test_history_by_pages(keeper: Bound) -> None:
    for i in range(7):
        keeper.sh(f"exit {i}")
    first = keeper.call("history.list", limit=4)
    second = keeper.call("history.list", limit=4, before=first["next"])

    codes = [row["result"]["exit_code"] for row in (*first["rows"], *second["rows"])]
    assert codes == [6, 5, 4, 3, 2, 1, 0]
    assert second["next"] is None


def test_people_turn_pages(session: Session) -> None:
    """The previous page names the next one. The session is live, and then at rest."""
    with session.rpc() as rpc:
        for i in range(5):
            rpc.call("kv.set", key=f"k{i}", value="")
            rpc.call("exec", shell=f"exit {i}")
            rpc.refused("files.read", path=f"f{i}")
        for i in range(5):
            rpc.call("process.kill", id=rpc.call("process.spawn", shell="sleep 1000")["id"])

    def pages(verb: str, option: str, *words: str) -> list[list[Json]]:
        found, after = [], []
        for _ in range(3):
            answer = json.loads(session(*verb.split(), *words, "--limit", "2", *after, "--json").ok().out)
            found.append(answer.get("keys") or answer["rows"])
            after = [option, str(answer["next"])]
        assert answer["next"] is None
        return found

    for _ in range(2):
        assert pages("kv keys", "--after", "k") == [["k0", "k1"], ["k2", "k3"], ["k4"]]
        calls = pages("history", "--before", "--name", "files.read")
        assert [[r["params"]["path"] for r in page] for page in calls] == [["f4", "f3"], ["f2", "f1"], ["f0"]]
        runs = [r["result"]["exit_code"] for page in pages("history", "--before", "--name", "exec") for r in page]
        assert runs == [4, 3, 2, 1, 0]
        kills = pages("audit", "--before", "--kind", "kill")
        assert [len(page) for page in kills] == [2, 2, 1]
        assert len({r["id"] for page in kills for r in page}) == 5
        assert session("kv", "keys", "--limit", "2").ok().out == "k0\nk1\n"
        assert len(session("history", "--limit", "3").ok().out.splitlines()) == len(session("audit", "--limit", "3").ok().out.splitlines()) == 4
        session.stop()


def test_values_of_any_bytes(session: Session, place: Path, identity: Identity) -> None:
    """Tests a session live and at rest, by the command line and by JSON-RPC."""
    value = bytes(range(256)) * 100
    source, target = place / "source", place / "target"
    source.write_bytes(value)
    target.touch()
    for each in (source, target):
        identity.own(each)
    with source.open() as stdin:
        session("kv", "set", "k", "-", stdin=stdin).ok()
    with session.rpc() as rpc:
        assert base64.b64decode(rpc.call("kv.get", key="k", base64=True)["value"]) == value
        rpc.call("kv.set", key="r", base64=base64.b64encode(value).decode())
        rpc.call("kv.set", key="empty", base64="")
        assert rpc.refused("kv.set", key="r").kind == "usage"
        assert rpc.refused("kv.set", key="r", value="v", base64="dg==").kind == "usage"
        assert rpc.refused("kv.set", key="r", base64="no base64").kind == "usage"
        rpc.call("kv.set", key="t", value="ä")
        assert base64.b64decode(rpc.call("kv.get", key="t", base64=True)["value"]) == "ä".encode()
    for _ in range(2):
        for key in ("k", "r"):
            with target.open("wb") as stdout:
                session("kv", "get", key, "--raw", stdout=stdout).ok()
            assert target.read_bytes() == value
        assert session("kv", "get", "t").ok().out == "ä\n"
        assert session("kv", "get", "t", "--raw").ok().out == "ä"
        assert session("kv", "get", "empty", "--raw").ok().out == ""
        assert json.loads(session("kv", "get", "t", "--json").ok().out) == {"value": "ä"}
        session.stop()


def test_history_has_the_names_that_people_call(session: Session) -> None:
    """Programs get the names of the methods. Pages are contiguous, and filters use the same names."""
    with session.rpc() as rpc:
        for i in range(3):
            session.exec("echo", f"cli{i}").ok()
            rpc.call("exec", argv=["echo", f"rpc{i}"])
            rpc.call("files.write", path="f", content="x")

    def shown(*flags: str) -> list[tuple[str, str]]:
        lines = session("history", *flags).ok().out.splitlines()[1:]
        return [tuple(line.split()[i] for i in (-3, -1)) if "echo" in line else tuple(line.split()[-2:]) for line in lines]

    execs = [("exec", word) for i in (2, 1, 0) for word in (f"rpc{i}", f"cli{i}")]
    assert [row for row in shown() if row[0] != "files.write"] == execs
    assert shown("--name", "exec") == execs
    assert shown("--name", "exec", "--limit", "3") == execs[:3]
    assert shown("--name", "files.write") == [("files.write", "f")] * 3
    assert [r["name"] for r in session.history()] == ["files.write", "exec", "process.spawn"] * 3
    named = json.loads(session("history", "--name", "exec", "--json").ok().out)["rows"]
    assert {r["name"] for r in named} == {"exec"} and len(named) == 3


def test_json_of_history_and_audit_is_nested(session: Session) -> None:
    """Programs read it in one step: no JSON as text inside JSON."""
    session.exec("unshare", "-r", "true")
    row = json.loads(session("history", "--json").ok().out)["rows"][0]
    audit = json.loads(session("audit", "--json").ok().out)["rows"]

    assert row["params"]["argv"] == ["unshare", "-r", "true"]
    assert (row["result"]["cause"], row["result"]["exit_code"]) == ("exited", 1)
    assert audit[0]["detail"]["what"] == "unshare"
