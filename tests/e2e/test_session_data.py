# SPDX-License-Identifier: Apache-2.0
"""Keys and values, history and audit of a session, by the command line and by JSON-RPC."""

from __future__ import annotations

import json


from lib.sessions import Bound, Session, until


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


def test_audit_has_denials_and_kills(session: Session) -> None:
    session.sh("unshare -U true; mount -t tmpfs x /mnt")
    session("kill", session.detach("sleep 1000")).ok()
    until(lambda: session.ps()["p2"]["state"] == "ended", "it is killed")
    rows = session.audit()

    assert {row["kind"] for row in rows} == {"denial", "kill"}
    whats = {json.loads(row["detail"]).get("what") for row in rows}
    assert "unshare" in whats


# --- by JSON-RPC ---


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
