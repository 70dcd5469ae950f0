# SPDX-License-Identifier: Apache-2.0
"""The OpenRPC document that holt serve --openrpc prints. Each client of the suites checks that every message fits the document
(lib/openrpc.py)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lib.openrpc import GENERAL, KEYWORDS, Checker, Document, Mismatch
from lib.paths import PROJECT
from lib.sessions import Json, Rpc, Sessions, until


@pytest.fixture
def document(sessions: Sessions) -> Document:
    return Document(json.loads(sessions(["serve", "--openrpc"]).ok().out))


def below(value: Any) -> Iterator[Json]:
    """Yields every object in a value, except for examples and their contents."""
    if isinstance(value, dict):
        yield value
        for key, member in value.items():
            if key not in ("examples", "enum", "required"):
                yield from below(member)
    elif isinstance(value, list):
        for member in value:
            yield from below(member)


def all_methods(document: Document) -> list[Json]:
    return [m for key in ("methods", "x-notifications", "x-requests") for m in document.root[key]]


def test_the_document_names_holt_and_its_version(document: Document, sessions: Sessions) -> None:
    assert document.root["openrpc"] == "1.3.2"
    assert document.root["info"]["title"] == "holt"
    assert document.root["info"]["version"] == sessions(["--version"]).ok().out.split()[1]


def test_methods_are_complete(document: Document) -> None:
    """A row of the table without a result, an error or an example shows here."""
    assert len(document.methods) == len(document.root["methods"]) > 50, "a name is there twice"
    for method in all_methods(document):
        names = [p["name"] for p in method["params"]]
        assert len(set(names)) == len(names), method["name"]
        assert method["summary"] and method["paramStructure"] == "by-name", method["name"]
        assert method["examples"], method["name"]
    for method in document.root["methods"]:
        assert "$ref" in method["result"]["schema"], method["name"]
        assert {"setup", "limit"} <= {e["$ref"].rpartition("/")[2] for e in method["errors"]}, method["name"]
        assert all(name in {**document.notifications, **document.requests} for name in method["x-sends"])
        assert all(p["description"] for p in method["params"]), method["name"]


def test_every_member_of_a_result_or_notification_is_described(document: Document) -> None:
    members = [(at, name, each) for at, shape in document.root["components"]["schemas"].items()
               for name, each in shape.get("properties", {}).items()]
    members += [(method["name"], p["name"], p["schema"]) for key in ("x-notifications", "x-requests")
                for method in document.root[key] for p in method["params"]]

    assert len(members) > 200
    for at, name, schema in members:
        assert schema.get("description") or "properties" in schema, f"{at}.{name}"


def test_every_reference_resolves(document: Document) -> None:
    count = 0
    for thing in below(document.root):
        if isinstance(thing.get("$ref"), str):
            document.resolve(thing)
            count += 1
    assert count > 200


def test_every_component_is_used(document: Document) -> None:
    used = {t["$ref"] for t in below(document.root) if isinstance(t.get("$ref"), str)}
    for name in document.root["components"]["schemas"]:
        assert name == "ErrorData" or f"#/components/schemas/{name}" in used, name
    for name in document.root["components"]["errors"]:
        # Two of these errors can belong to no method, and a third to no known method.
        assert name in (*GENERAL, "protocol") or f"#/components/errors/{name}" in used, name


def test_schemas_use_only_known_keywords(document: Document) -> None:
    schemas = [*document.root["components"]["schemas"].values()]
    schemas += [p["schema"] for m in all_methods(document) for p in m["params"]]
    while schemas:
        schema = schemas.pop()
        assert set(schema) <= KEYWORDS, schema
        schemas += schema.get("properties", {}).values()
        schemas += schema.get("oneOf", ())
        schemas += [s for s in (schema.get("items"), schema.get("additionalProperties")) if isinstance(s, dict)]
        assert set(schema.get("required", ())) <= set(schema.get("properties", schema.get("required", ()))), schema


def test_every_example_is_right(document: Document) -> None:
    for method in all_methods(document):
        for example in method["examples"]:
            params = {p["name"]: p["value"] for p in example["params"]}
            assert not list(document.wrong(document.params_schema(method), params)), method["name"]
            if "result" in method:
                wrong = list(document.wrong(method["result"]["schema"], example["result"]["value"]))
                assert not wrong, f"{method['name']}: {wrong}"
            else:
                assert "result" not in example


def test_errors_have_codes_and_names_of_their_own(document: Document) -> None:
    errors = document.root["components"]["errors"]
    assert len({e["code"] for e in errors.values()}) == len(errors)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) and e["message"] for name, e in errors.items())
    # Clients rely on these.
    assert {name: e["code"] for name, e in errors.items()} == {
        "setup": -32000, "usage": -32001, "policy": -32002, "layer": -32003, "not-executable": -32004,
        "not-found": -32005, "missing": -32006, "exists": -32007, "busy": -32008, "limit": -32009, "data": -32010,
        "protocol": -32011, "no-key": -32012, "no-process": -32013, "parse-error": -32700,
        "invalid-request": -32600, "unknown-method": -32601, "invalid-params": -32602,
    }


def test_the_manual_page_lists_the_same_errors(document: Document) -> None:
    page = (PROJECT / "man" / "holt-serve.1.scd").read_text()
    table = {name: int(code) for code, name in re.findall(r"^\|  (-\d+)\n:  (\S+)$", page, re.M)}
    assert table == {name: e["code"] for name, e in document.root["components"]["errors"].items()}


def test_the_reference_for_people_has_the_same_methods(document: Document, sessions: Sessions) -> None:
    reference = json.loads(sessions(["serve", "--methods", "--json"]).ok().out)
    text = sessions(["serve", "--methods"]).ok().out
    assert list(reference) == list(document.methods) and "(null)" not in text
    for name in document.root["components"]["schemas"]:
        if name not in ("ErrorData", "NetworkAnswer", "Policy", "PolicyPart", "ToolValue"):
            assert name in {r["result"] for r in reference.values()} or f"({name})" in text, name


def test_a_policy_has_the_schema_of_policies(document: Document, sessions: Sessions) -> None:
    """The schema is that of a parameter, and of the policy in a denial, which has only the fields that would allow the call."""
    schema = json.loads(sessions(["policy", "schema"]).ok().out)
    schemas = document.root["components"]["schemas"]
    policy, part = ({"$ref": f"#/components/schemas/{name}"} for name in ("Policy", "PolicyPart"))
    (param,) = [p["schema"] for p in document.methods["session.create"]["params"] if p["name"] == "policy"]

    assert param == policy and schemas["Denial"]["properties"]["policy"]["anyOf"][0] == part
    assert schemas["PolicyPart"]["properties"] == schema["properties"] and schemas["Policy"]["required"] == schema["required"]
    limits = {"limits": {"pids": 5, "timeout": "10m", "memory": "none"}, "env": {"set": {"A": "b"}}}
    assert not list(document.wrong(part, limits)) and not list(document.wrong(policy, {"holt": 1, **limits}))
    for wrong in (
        limits, {"holt": 2}, {"holt": 1, "limits": {"pids": "many"}}, {"holt": 1, "limits": {"timeout": "x"}},
        {"holt": 1, "env": {"set": {"1": "b"}}}, {"holt": 1, "filesystem": {"hide": [""]}}, {"holt": 1, "none": 1}, [],
    ):
        assert list(document.wrong(policy, wrong)), wrong


@pytest.mark.parametrize("message", (
    {"id": 1, "result": {}},
    {"id": 1, "result": {"value": 3}},
    {"id": 1, "result": {"value": "v", "more": 1}},
    {"id": 1, "error": {"code": -32000, "message": "", "data": {"name": "usage"}}},
    {"id": 1, "error": {"code": -32007, "message": "", "data": {
        "name": "exists", "kind": "exists", "errno": None, "hint": None}}},
    {"id": 1, "error": {"code": -32602, "message": "", "data": {
        "name": "invalid-params", "kind": "usage", "errno": None, "hint": None}}},
    {"method": "process.exited", "params": {"session": "w", "id": "p1", "cause": "exited"}},
    {"method": "process.exited", "params": {"session": "w", "id": "p1", "cause": "bored", "exit_code": 0}},
    {"method": "process.new", "params": {}},
))
def test_the_checker_finds_what_is_wrong(message: Json, document: Document) -> None:
    checker = Checker(document, alone=False)
    checker.sent(b'{"jsonrpc": "2.0", "id": 1, "method": "kv.get", "params": {"session": "w", "key": "k"}}\n')
    with pytest.raises(Mismatch):
        checker.came({"jsonrpc": "2.0", **message})


@pytest.mark.parametrize("reply, wrong", (({"value": {"any": [1]}}, False), ({}, True), ({"value": 1, "more": 2}, True)))
def test_the_checker_looks_at_replies_of_clients(reply: Json, wrong: bool, document: Document) -> None:
    checker = Checker(document, alone=True)
    params = {"name": "t", "payload": {}, "call": "c1", "exec": "p1", "timeout_ms": 5}
    checker.came({"jsonrpc": "2.0", "id": "c1", "method": "tool.call", "params": params})
    line = json.dumps({"jsonrpc": "2.0", "id": "c1", "result": reply}).encode()
    with pytest.raises(Mismatch, match="reply to tool.call") if wrong else contextlib.nullcontext():
        checker.sent(line)


def call_everything(rpc: Rpc, workspace: Path) -> None:
    """Calls each method at least once, with a result."""
    def call(method: str, fds: Sequence[int] = (), /, **params: Any) -> Json:
        return rpc.call(method, fds, session="w", **params)

    rpc.call("session.create", name="w", workspace=workspace.as_posix())
    assert rpc.call("session.list")["sessions"][0]["state"] == "at rest"
    rpc.call("session.set_tier", session="w", tier="medium")
    rpc.call("session.rebind", session="w")
    call("session.show")  # at rest
    call("session.connect")
    call("session.show")
    call("tools.register", name="t", description="d", input_schema={"type": "object"})
    call("tools.list")
    call_processes(rpc, call)
    call_files(call)
    rpc.call("session.create", name="n", policy={"holt": 1, "network": {"allow": ["example.org:80"], "proxy": True}})
    rpc.call("session.allow", session="n", grants=["net:example.org:443"])
    rpc.call("network.attend", session="n")
    asking = rpc.send("exec", session="n", shell="exec 3<>/dev/tcp/198.18.0.1/3128; printf 'CONNECT a.invalid:443 HTTP/1.1\\r\\n\\r\\n' >&3; timeout 0.3 cat <&3")
    rpc.note("network.ask")
    rpc.result(asking)
    call("python.run", code="import sys; print(1, file=sys.stderr); x = 1; x")
    assert call("python.run", code="1 / 0")["error"]["name"] == "ZeroDivisionError"
    call("python.variables")
    call("python.save", path="state")
    call("python.load", path="state")
    call("python.interrupt")
    call("python.restart")
    call("shell.run", code="echo 1 >&2; cd /tmp", watch=True)
    call("shell.interrupt")
    call("shell.restart")
    call("route.add", route={"name": "acme", "upstream": "http://127.0.0.1:1"})
    call("route.list")
    call("route.remove", name="acme")
    call("tools.unregister", name="t")
    call("kv.set", key="k", value="v")
    call("kv.get", key="k")
    call("kv.keys", limit=1)
    call("kv.delete", key="k")
    call("history.list", limit=2)
    call("audit.list")
    call("session.stop")
    rpc.call("session.remove", session="w")


def call_processes(rpc: Rpc, call: Callable[..., Json]) -> None:
    """Includes a tool call that times out and is cancelled, and a command that is stopped."""
    call("exec", argv=["id"])
    asking = rpc.send("exec", session="w", shell="timeout 0.3 holt-tool t '{}'", timeout_ms=20000)
    rpc.note("tool.call")
    rpc.note("tool.cancel")
    rpc.result(asking)
    process = call(
        "process.spawn", shell="echo out; read line; exit 3", terminal=7, rows=24, columns=80, owned=True
    )["id"]
    call("process.watch", id=process)
    rpc.note("process.output", id=process)
    call("process.resize", id=process, rows=30, columns=90)
    call("process.write", id=process, data="\x1a")
    rpc.note("process.stopped", id=process)
    call("session.start")
    call("process.list")
    call("process.resume", id=process)
    call("process.signal", id=process, signal="WINCH")
    call("process.read", id=process)
    call("process.write", id=process, data="line\n")
    rpc.note("process.exited", id=process, exit_code=3)
    call("process.wait", id=process, output=True)
    call("process.explain", id=process, argv=["cat", "/opt/none"])
    call("process.explain", id=process, running=True)
    call("process.unwatch", id=process)
    other = call("process.spawn", argv=["cat"], input=True)["id"]
    call("process.close_stdin", id=other)
    call("process.wait", id=other)
    call("process.kill", id=other)


def call_files(call: Callable[..., Json]) -> None:
    call("history.begin", name="an act", operands=["a"])
    call("files.write", path="a", content="one\n")
    call("files.append", path="a", content="two\n")
    call("files.read", path="a")
    call("files.open", path="a")
    reader, writer = os.pipe()
    os.write(writer, b"three")
    os.close(writer)
    call("files.receive", [reader], path="b")
    os.close(reader)
    call("files.mkdir", path="d")
    call("files.copy", **{"from": "a", "to": "d/a"})
    call("files.move", **{"from": "d/a", "to": "d/c"})
    call("files.link", path="link", target="a")
    call("files.list", recursive=True, limit=2)
    call("files.glob", pattern="**/c")
    call("files.grep", pattern="t.o")
    call("files.stat", path="link", follow=False)
    call("files.exists", path="none")
    call("files.remove", path="d", recursive=True)
    call("history.end", success=True)
    port = call("ports.forward", port=3000)
    assert call("process.list")["ports"] == [port]
    call("ports.close", port=3000)
    call("mount.upload", path="m.txt", content="text")
    link = call("links.make", path="m.txt", for_ms=60000)
    call("links.make", path="n.txt", upload=True, max_size=1)
    assert call("links.list")["links"][0] == link
    call("links.revoke", id=link["id"])
    call("links.revoke")
    call("mount.list")
    call("mount.download", path="m.txt")
    call("mount.download", path="m.txt", fd=True)
    call("mount.delete", path="m.txt")


@pytest.mark.identities("user", "root")
def test_each_method_answers_as_the_document_says(
    document: Document, sessions: Sessions, mkdir: Callable[[str], Path]
) -> None:
    """The client's checker raises if a message differs. No method is left out."""
    path = sessions.data / "s"
    with sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "it listens")
        with Rpc.of_server(path, sessions.holt.identity) as rpc:
            call_everything(rpc, mkdir("workspace"))
            missing = {*document.methods, *document.notifications, *document.requests} - rpc.checker.seen
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0
    assert not missing
