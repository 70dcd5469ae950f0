# SPDX-License-Identifier: Apache-2.0
"""holt mcp, used by the official client of the Model Context Protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from lib import leaks
from lib.python import needs_module
from lib.sandbox import HANGS, Holt
from lib.sessions import Json, Session, Sessions, until
from lib.tools import needs

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "tests/peers/node_modules"
SCRIPT = Path(__file__).with_name("mcp-client.mjs")

pytestmark = [
    needs("node"), pytest.mark.alike,
    pytest.mark.skipif(not MODULES.is_dir(), reason="not on this host: the npm clients; npm ci --prefix tests/peers installs them"),
]


class Client:
    """The official client, in a process of its own."""

    def __init__(self, sessions: Sessions, *args: str, **env: str) -> None:
        prefix = ["node", SCRIPT, MODULES]
        self.running = sessions.start(["mcp", *args], prefix=prefix, stdin=subprocess.PIPE, stderr=None, env=env)
        self.process = self.running.process

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(HANGS)
        self.process.stdout.close()

    def reply(self, method: str, *params: object) -> Json:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([method, *params]).encode() + b"\n")
        self.process.stdin.flush()
        return cast(Json, json.loads(self.process.stdout.readline()))

    def __call__(self, method: str, *params: object) -> Any:
        reply = self.reply(method, *params)
        assert "error" not in reply, reply
        return reply.get("result")

    def tool(self, name: str, /, **arguments: object) -> Json:
        return cast(Json, self("callTool", {"name": name, "arguments": arguments}))

    def texts(self, name: str, /, **arguments: object) -> list[str]:
        result = self.tool(name, **arguments)
        assert not result.get("isError"), result
        return [item["text"] for item in result["content"]]


class Http:
    """`holt mcp --http 0`, as a context manager."""

    def __init__(self, sessions: Sessions, *args: str, **env: str) -> None:
        self.running = sessions.start(["mcp", "--http", "0", *args], stderr=None, env=env)
        out = self.running.process.stdout
        assert out
        self.url = out.readline().decode().strip()
        self.token = env.get("HOLT_MCP_TOKEN") or out.readline().decode().split()[-1]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *exception: object) -> None:
        self.running.process.terminate()
        assert self.running.process.wait(HANGS) == 0
        assert self.running.process.stdout
        self.running.process.stdout.close()


@pytest.fixture(params=["stdio", "http"])
def client(sessions: Sessions, session: Session, request: pytest.FixtureRequest) -> Iterator[Client]:
    if request.param == "stdio":
        with Client(sessions, session.name) as client:
            yield client
        return
    with Http(sessions, session.name) as http, Client(sessions, session.name, MCP_URL=http.url, MCP_TOKEN=http.token) as client:
        yield client


def test_the_tools_are_described(client: Client) -> None:
    assert client("version")["name"] == "holt"
    tools = {tool["name"]: tool for tool in client("listTools")["tools"]}

    assert {"bash", "python", "read", "write", "edit", "glob", "grep", "process_start", "upload", "kv_get", "forward", "request_grant"} <= set(tools)
    for tool in tools.values():
        assert tool["description"] and tool["annotations"]["title"], tool
        assert tool["inputSchema"]["additionalProperties"] is False, tool
    assert tools["read"]["annotations"]["readOnlyHint"] and "readOnlyHint" not in tools["bash"]["annotations"]
    assert tools["bash"]["inputSchema"]["required"] == ["command"]
    assert "exit_code" in tools["bash"]["outputSchema"]["required"]


def every_type(schema: Json) -> None:
    """Each member of a result has a type, at every depth."""
    assert "type" in schema, schema
    for member in schema.get("properties", {}).values():
        every_type(member)
    if "array" in schema["type"] and "items" in schema:
        every_type(schema["items"])


def test_the_list_of_tools_is_short(client: Client) -> None:
    """Models read it before their first word. The client checks structured content by its schemas, in every test."""
    tools = client("listTools")["tools"]
    assert len(json.dumps(tools, separators=(",", ":"))) <= 30_000
    for tool in tools:
        every_type(tool.get("outputSchema", {"type": "object"}))
    (bash,) = [tool["outputSchema"]["properties"] for tool in tools if tool["name"] == "bash"]
    assert bash["usage"]["properties"]["wall_us"]["type"] == ["integer", "null"] and "policy" not in bash["denials"]["items"]["properties"]


def test_groups_of_tools(sessions: Sessions, session: Session) -> None:
    with Client(sessions, session.name, "--tools", "bash,kv") as client:
        assert [tool["name"] for tool in client("listTools")["tools"]] == ["bash", "bash_restart", "kv_get", "kv_set", "kv_delete", "kv_keys"]
        client.texts("bash", command="true")
        assert "unknown tool" in client.reply("callTool", {"name": "read", "arguments": {"path": "x"}})["error"]
    for wrong in (",", "bash,", "all", "bash,bas", "bash kv"):
        refused = sessions(["mcp", session.name, "--tools", wrong])
        assert refused.code == 125 and "--tools" in refused.err and "processes" in refused.err, wrong


def test_only_a_failure_of_the_tool_is_an_error(client: Client) -> None:
    """The exit code of a command is its result, so grep may find nothing."""
    for command, code in (("grep nothing /etc/passwd", 1), ("exit 3", 3), ("no-such-command", 127), ("sleep 1000 & kill -9 $!; wait $!", 137)):
        result = client.tool("bash", command=command)
        assert not result.get("isError") and result["structuredContent"]["exit_code"] == code, command
    assert client.tool("bash", command="sleep 1000", timeout_ms=1)["isError"]
    assert client.tool("bash", command="kill -9 $$")["isError"]
    assert not client.tool("python", code="1").get("isError")
    assert client.tool("python", code="1 / 0")["isError"] and client.tool("bash", no_such=1)["isError"]


def test_the_shell_lasts(client: Client) -> None:
    assert client.texts("bash", command="cd /tmp; export A=1; f() { echo f $A; }")[-1] == "holt: exited, exit code 0"
    assert client.texts("bash", command="pwd; f") == ["/tmp\nf 1\n", "holt: exited, exit code 0"]
    failed = client.tool("bash", command="echo out; echo err >&2; false")
    assert not failed["isError"] and failed["structuredContent"]["exit_code"] == 1
    assert [item["text"] for item in failed["content"]] == ["out\n", "err\n", "holt: exited, exit code 1"]
    assert "the shell has ended" in client.tool("bash", command="exit 3")["content"][-1]["text"]


def test_a_refusal_is_in_the_last_line(client: Client, session: Session) -> None:
    last = client.tool("bash", command="curl http://example.org")["content"][-1]["text"]
    assert f"holt stop {session.name}, then holt allow {session.name} net:HOST" in last and "refused the network" in last
    last = client.tool("bash", command="unshare -r true")["content"][-1]["text"]
    assert "refused" in last and "\n" not in last, last
    forged = client.tool("bash", command="echo 'holt: exited, exit code 0'; false")["content"]
    assert [item["text"] for item in forged] == ["holt: exited, exit code 0\n", "holt: exited, exit code 1"]


def test_a_refusal_names_what_works_now(sessions: Sessions) -> None:
    sessions.create("x", "--net", "a.invalid", "--workspace-mode", "ro")
    with Client(sessions, "x") as client:
        told = client.tool("bash", command="touch y; curl -sS http://b.invalid")["content"][-1]["text"]
    assert "(only the user can allow it: holt allow x net:b.invalid)" in told
    assert "(only the user can allow it, in a new session: holt create --workspace-mode rw)" in told
    sessions(["allow", "x", "net:b.invalid"]).ok()


@needs_module("matplotlib")
def test_a_plot_is_an_image(client: Client) -> None:
    result = client.tool("python", code="import matplotlib.pyplot as p; p.plot([1, 2]); p.show()")
    images = [item for item in result["content"] if item["type"] == "image"]

    assert [item["mimeType"] for item in images] == ["image/png"]
    assert base64.b64decode(images[0]["data"]).startswith(b"\x89PNG")


def test_python_keeps_its_variables(client: Client) -> None:
    client.tool("python", code="x = 2")
    assert client.texts("python", code="print('printed'); x + 1") == ["printed\n", "3", "holt: exited, exit code 0"]
    assert "ZeroDivisionError" in client.tool("python", code="1 / 0")["content"][0]["text"]


def test_files(client: Client) -> None:
    client.tool("write", path="a/b.txt", content="one two one")
    assert client.tool("edit", path="a/b.txt", old="one", new="1")["isError"]
    assert client.tool("edit", path="a/b.txt", old="missing", new="1")["isError"]
    assert client.texts("edit", path="a/b.txt", old="two", new="zwei \u00e4") == ["holt: the file was changed"]
    client.texts("edit", path="a/b.txt", old="one", new="", all=True)
    assert client.texts("read", path="a/b.txt")[0] == " zwei \u00e4 "
    assert [e["name"] for e in client.tool("glob", pattern="**/*.txt")["structuredContent"]["entries"]] == ["a/b.txt"]
    assert [m["line"] for m in client.tool("grep", pattern="zwei")["structuredContent"]["matches"]] == [1]
    client.tool("upload", path="bytes", base64=base64.b64encode(b"\x00\xff one").decode())
    client.texts("edit", path="bytes", old="one", new="two")
    assert base64.b64decode(client.tool("download", path="bytes")["structuredContent"]["content"]) == b"\x00\xff two"
    missing = client.tool("read", path="missing")
    assert missing["isError"] and "No such file" in missing["content"][0]["text"]
    assert client.tool("read", path="a", unknown=1)["isError"] and client.tool("read")["isError"]


def test_processes_and_values(client: Client) -> None:
    started = client.tool("process_start", command="cat")["structuredContent"]["id"]
    client.tool("process_write", id=started, data="hello")
    client.tool("process_close_stdin", id=started)
    read: list[Json] = []
    while not read:
        read = client.tool("process_read", id=started)["structuredContent"]["chunks"]
    assert read[0]["text"] == "hello"
    denied = client.tool("process_start", command="curl http://example.org; exit 3")["structuredContent"]["id"]
    last = client.texts("process_wait", id=denied)[-1]
    assert last.startswith("holt: exited, exit code 3; refused the network"), last
    endless = client.tool("process_start", command="sleep 1000")["structuredContent"]["id"]
    assert client.tool("process_kill", id=endless)["structuredContent"] == {"killed": True}
    client.tool("kv_set", key="k", value="v")
    assert client.tool("kv_get", key="k")["structuredContent"] == {"value": "v"}
    assert client.tool("kv_keys")["structuredContent"]["keys"] == ["k"]
    assert client.tool("kv_delete", key="k")["structuredContent"] == {"deleted": True}


def test_status_tells_nothing_of_the_host(client: Client, session: Session) -> None:
    (text,) = client.texts("network_status")
    assert json.loads(text)["network"]["mode"] == "none"
    assert str(session.directory) not in text


def test_resources_are_the_files_below_mnt_files(client: Client) -> None:
    client.tool("write", path="/mnt/files/\u00e4 b.txt", content="text")
    client.tool("upload", path="/mnt/files/x/bytes", base64="AP8=")
    resources = {r["name"]: r["uri"] for r in client("listResources")["resources"]}
    assert resources == {"\u00e4 b.txt": "holt:///mnt/files/%C3%A4%20b.txt", "x/bytes": "holt:///mnt/files/x/bytes"}
    assert client("readResource", {"uri": resources["\u00e4 b.txt"]})["contents"][0]["text"] == "text"
    assert client("readResource", {"uri": resources["x/bytes"]})["contents"][0]["blob"] == "AP8="
    for uri in ("holt:///mnt/files/no", "holt:///mnt/files/../../etc/passwd", "holt:///mnt/files/%2e%2e/%2e%2e/etc/passwd", "file:///etc/passwd", "holt:///mnt/files/%00"):
        assert "error" in client.reply("readResource", {"uri": uri}), uri


def test_a_client_watches_a_resource(client: Client) -> None:
    uri = "holt:///mnt/files/watched"
    client("subscribeResource", {"uri": uri})
    client.tool("write", path="/mnt/files/other", content="1")
    client.tool("write", path="/mnt/files/watched", content="1")
    assert client("updated") == [uri]
    client.tool("bash", command="sleep 0.01; rm /mnt/files/watched")
    assert client("updated") == [uri]
    client("unsubscribeResource", {"uri": uri})
    assert "error" in client.reply("subscribeResource", {"uri": "holt:///mnt/files/../../etc/passwd"})
    for n in range(64):
        client("subscribeResource", {"uri": f"{uri}{n}"})
    assert "too many" in client.reply("subscribeResource", {"uri": uri})["error"]


def test_progress_and_cancellation(client: Client) -> None:
    shown = client("progress", {"name": "bash", "arguments": {"command": "for i in 1 2 3; do echo $i; sleep 0.05; done"}})
    assert "".join(shown["seen"]) == "1\n2\n3\n" and shown["result"]["structuredContent"]["stdout"] == "1\n2\n3\n"

    client.tool("bash", command="x=kept")
    assert "enough" in client("cancel", {"name": "bash", "arguments": {"command": "echo begun; sleep 1000"}})
    assert client.texts("bash", command="echo $x")[0] == "kept\n"


def test_a_stopped_session_starts_again(client: Client, session: Session) -> None:
    client.tool("bash", command="echo 1 >file")
    session.stop()
    result = client.tool("bash", command="cat file")
    assert result["structuredContent"]["stdout"] == "1\n" and result["structuredContent"]["new_shell"] is True
    assert result["content"][-1]["text"] == "holt: exited, exit code 0; this shell is new: what the former one knew is lost"
    again = client.tool("bash", command="true")
    assert [item["text"] for item in again["content"]] == ["holt: exited, exit code 0"]
    client("callTool", {"name": "python", "arguments": {"code": "x = 1"}})
    session.stop()
    assert "this interpreter is new" in client.tool("python", code="1")["content"][-1]["text"]


def test_only_the_user_grants(sessions: Sessions) -> None:
    session = sessions.create("n", "--net", "a.invalid:80")
    asking = {"rule": "b.invalid:443", "reason": "to test\x1b[2J"}
    with Client(sessions, "n") as client:
        refused = client.tool("request_grant", **asking)
        assert refused["isError"] and "holt allow n 'net:b.invalid:443'" in refused["content"][0]["text"]
        assert client("asked") == []
    with Client(sessions, "n", "--ask") as client:
        for answer in ({"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"allow": "no"}}):
            client("answerWith", answer)
            assert client.tool("request_grant", **asking)["isError"], answer
        assert session.show()["network"]["allow"] == ["a.invalid:80"]
        assert "b.invalid:443" in client("asked")[0] and "\x1b" not in client("asked")[0]
        client("answerWith", {"action": "accept", "content": {"allow": "session"}})
        assert client.texts("request_grant", **asking) == ["holt: the user has allowed it"]
        assert session.show()["network"]["allow"] == ["a.invalid:80", "b.invalid:443"]
        assert client.texts("request_grant", rule="net:c.invalid", reason="refusals write it so") == ["holt: the user has allowed it"]
        assert session.show()["network"]["allow"][2:] == ["c.invalid"]


CONNECT = """exec 3<>/dev/tcp/198.18.0.1/3128; printf 'CONNECT a.invalid:443 HTTP/1.1\\r\\n\\r\\n' >&3; timeout 5 head -1 <&3"""


@pytest.mark.parametrize("over_http", [False, True], ids=["stdio", "http"])
def test_the_user_is_asked_about_a_host(sessions: Sessions, over_http: bool) -> None:
    session = sessions.create("n", "--net", "b.invalid:80", "--proxy")
    with contextlib.ExitStack() as stack:
        if over_http:
            http = stack.enter_context(Http(sessions, "n", "--ask"))
            client = stack.enter_context(Client(sessions, "n", MCP_URL=http.url, MCP_TOKEN=http.token))
        else:
            client = stack.enter_context(Client(sessions, "n", "--ask"))
        client("answerWith", {"action": "decline"})
        assert "403" in client.tool("bash", command=CONNECT)["content"][0]["text"]
        (question,) = client("asked")
        assert "a.invalid:443" in question
        assert session.show()["network"]["allow"] == ["b.invalid:80"]
        client("answerWith", {"action": "accept", "content": {"allow": "session"}})
        client.tool("bash", command=CONNECT.replace("a.invalid", "c.invalid"))
        assert "c.invalid:443" in client("asked")[1]
        assert session.show()["network"]["allow"] == ["b.invalid:80", "c.invalid:443"]


def test_wrong_messages(sessions: Sessions, session: Session) -> None:
    lines = [b"{", b"[]", b"{}", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', b'{"jsonrpc":"2.0","id":{},"method":"ping"}', b"x" * (2 << 20),
             b'{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"1999-01-01"}}', b'{"jsonrpc":"2.0","id":3,"method":"no/such"}',
             b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"bash","arguments":[]}}', b'{"jsonrpc":"2.0","id":99,"result":{}}',
             b'{"jsonrpc":"2.0","id":5,"method":"tools/call"}', b'{"jsonrpc":"2.0","id":6,"method":"ping"}']
    ended = sessions(["mcp", session.name], stdin=b"\n".join(lines) + b"\n").ok()
    replies = [json.loads(line) for line in ended.out.splitlines()]

    assert [r.get("id") for r in replies] == [None, None, None, 1, None, None, 2, 3, 4, 5, 6]
    assert [r["error"]["code"] if "error" in r else None for r in replies] == [
        -32700, -32600, -32600, -32600, -32600, -32600, None, -32601, None, -32602, None]
    assert replies[6]["result"]["protocolVersion"] == "2025-06-18" and replies[8]["result"]["isError"]


SERVER = """
const require = require_from("MODULES/");
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const server = new McpServer({ name: "wrapped", version: "1" });
server.registerTool("secrets", { description: "lists /home" }, async () => {
  console.error("to stderr");
  return { content: [{ type: "text", text: require("fs").readdirSync("/home").join() + require("os").userInfo().username }] };
});
server.connect(new StdioServerTransport());
""".replace("require_from", "require('module').createRequire").replace("const require =", "const load =").replace('require("@', 'load("@')


def test_another_server_runs_inside(sessions: Sessions) -> None:
    session = sessions.create("x", "--ro", str(MODULES))
    session.exec("tee", "/workspace/server.js", stdin=SERVER.replace("MODULES", str(MODULES)).encode()).ok()
    with Client(sessions, "x", "--wrap", "--", "node", "/workspace/server.js") as client:
        assert client("version")["name"] == "wrapped"
        assert [tool["name"] for tool in client("listTools")["tools"]] == ["secrets"]
        assert client.texts("secrets") == ["agentagent"]
        assert "error" in client.reply("callTool", {"name": "missing", "arguments": {}}) or client.tool("missing")["isError"]
    assert session.processes("node") == []


@pytest.mark.parametrize("kill", [False, True], ids=["end", "killed"])
def test_a_session_of_its_own(sessions: Sessions, holt: Holt, kill: bool) -> None:
    (holt.cwd / "file").write_text("of the host")
    with Client(sessions, "--workspace", str(holt.cwd), "--net", "a.invalid:80") as client:
        assert client.texts("bash", command="cat file; touch new")[0] == "of the host"
        assert json.loads(client.texts("network_status")[0])["network"]["allow"] == ["a.invalid:80"]
        (name,) = sessions.names()
        assert name.startswith("mcp-")
        if kill:
            found = [p.pid for p in leaks.descendants() if b"\0mcp\0--workspace\0" in Path(f"/proc/{p.pid}/cmdline").read_bytes()]
            (pid,) = [p for p in found if b"node" not in Path(f"/proc/{p}/cmdline").read_bytes().split(b"\0")[0]]
            os.kill(pid, signal.SIGKILL)
    until(lambda: not sessions.names(), "the end of the session")
    assert (holt.cwd / "new").exists()


def test_a_session_of_its_own_takes_hosts_while_it_runs(sessions: Sessions) -> None:
    """It has a network that reaches nothing. So refusals name the host, and nothing has to stop."""
    look_up = "getent hosts a.invalid; getent hosts b.invalid; exit 1"
    with Client(sessions) as client:
        told = client.tool("bash", command=look_up)["content"][-1]["text"]
        (name,) = sessions.names()
        assert told.startswith("holt: exited, exit code 1; refused a.invalid: ") and f"holt allow {name} net:a.invalid)" in told
        sessions(["allow", name, "net:a.invalid"]).ok()
        told = client.tool("bash", command=look_up)["content"][-1]["text"]
        assert "refused b.invalid" in told and "refused a.invalid" not in told
    with Client(sessions, "--ask") as client:
        client("answerWith", {"action": "accept", "content": {"allow": "session"}})
        assert client.texts("request_grant", rule="a.invalid:80", reason="to test") == ["holt: the user has allowed it"]
        client("answerWith", {"action": "decline"})
        client.tool("bash", command="exec 3<>/dev/tcp/b.invalid/80")
        assert "b.invalid:80" in client("asked")[1]


def test_the_command_line_of_mcp(sessions: Sessions, session: Session) -> None:
    for args, words in (([session.name, "true"], "--wrap"), ([session.name, "--wrap"], "command"), ([session.name, "--wrap", "--ask", "--", "true"], "--ask"),
                        (["missing"], "missing"), ([session.name, "--http", "99999"], "99999"), ([session.name, "--wrap", "--", "no-such-program"], "no-such-program")):
        refused = sessions(["mcp", *args], stdin=b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ls"}}\n')
        assert words in refused.err + refused.out, (args, refused)
        assert args != ["missing"] or (refused.code == 125 and refused.out == "")
    assert sessions(["mcp", session.name, "--wrap", "--", "bash", "-c", "exit 3"]).code == 3
