# SPDX-License-Identifier: Apache-2.0
"""The official npm clients of some services run inside without a change and without a key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.sandbox import Holt, Result
from lib.tools import needs
from lib.upstream import KEY, serving

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "tests/peers/node_modules"

pytestmark = [
    needs("node"), pytest.mark.alike,
    pytest.mark.skipif(not MODULES.is_dir(), reason="not on this host: the npm clients; npm ci --prefix tests/peers installs them"),
]

Run = Callable[..., Result]

CHUNK: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
OPENAI_EVENTS = [
    {**CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": part}, "finish_reason": None}]} for part in ("Hel", "lo")
] + [{**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
ANTHROPIC_EVENTS = [
    {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None,
                                          "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}} for part in ("Hel", "lo")),
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
TOOL = {
    "slug": "ACME_FIND", "name": "Find", "description": "", "toolkit": {"slug": "acme", "name": "Acme", "logo": ""}, "version": "1", "tags": [],
    "available_versions": ["1"], "input_parameters": {}, "output_parameters": {}, "scopes": [], "no_auth": True,
}


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Services

    def log_message(self, *args: object) -> None:
        pass

    def reply(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, events: "list[str]") -> None:
        """Sends each event alone. The client must print it before the next one comes."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in [*events, ""]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event.encode()), event.encode()))
            self.wfile.flush()

    def serve(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        key = self.headers.get("x-api-key") or (self.headers.get("authorization") or "").removeprefix("Bearer ")
        self.server.seen.append((f"{self.command} {self.path.partition('?')[0]}", key, body))
        if key != KEY:
            self.reply(401, {"error": {"type": "authentication_error", "message": "wrong key"}})
        elif self.path == "/v1/chat/completions":
            if body["model"] == "busy" and sum(seen[2].get("model") == "busy" for seen in self.server.seen) == 1:
                self.reply(429, {"error": {"type": "rate_limit", "message": "slow down"}})
            else:
                self.stream([f"data: {json.dumps(event)}\n\n" for event in OPENAI_EVENTS] + ["data: [DONE]\n\n"])
        elif self.path == "/v1/messages":
            self.stream([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in ANTHROPIC_EVENTS])
        elif self.command == "GET":
            self.reply(200, TOOL)
        else:
            self.reply(200, {"data": {"found": body.get("arguments")}, "error": None, "successful": True, "log_id": "l"})

    do_GET = do_POST = serve


class Services(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Api)
        self.seen: list[tuple[str, str, Any]] = []


@pytest.fixture
def services() -> Iterator[Services]:
    with serving(Services()) as server:
        yield server


@pytest.fixture
def run(holt: Holt, services: Services, place: Path, identity: Identity) -> Run:
    """Runs a script of JavaScript with the known provider. Only the address of its upstream is another one."""

    def run(provider: str, script: str) -> Result:
        route = json.loads((ROOT / f"policy/routes/providers/{provider}.json").read_text())
        route["upstream"] = f"http://127.0.0.1:{services.server_address[1]}"
        document = place / "policy.json"
        document.write_text(json.dumps({"holt": 1, "bridge": {"routes": [route]}}))
        (holt.cwd / "agent.mjs").write_text(script)
        (holt.cwd / "node_modules").mkdir()
        identity.own(holt.cwd / "node_modules")
        name = route["header"].get("x-api-key", route["header"].get("authorization")).partition("{env:")[2].rstrip("}")
        return holt(["run", "--policy", identity.own(document), "--ro", f"{MODULES}:{holt.cwd}/node_modules", "--", "node", "agent.mjs"], env={name: KEY})

    return run


def test_openai(run: Run, services: Services) -> None:
    result = run("openai", """
        import OpenAI from "openai";
        const client = new OpenAI();
        for (const model of ["m", "busy"])
            for await (const event of await client.chat.completions.create({ model, messages: [], stream: true }))
                console.log(event.choices[0].delta.content ?? "end");
        console.log(process.env.OPENAI_API_KEY);
    """).ok()
    lines = result.out.split()

    assert lines[:6] == ["Hel", "lo", "end"] * 2 and lines[6] != KEY, result
    assert [seen[:2] for seen in services.seen] == [("POST /v1/chat/completions", KEY)] * 3


def test_anthropic(run: Run, services: Services) -> None:
    result = run("anthropic", """
        import Anthropic from "@anthropic-ai/sdk";
        const client = new Anthropic();
        const stream = client.messages.stream({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] });
        stream.on("text", (text) => console.log(text));
        console.log((await stream.finalMessage()).content[0].text, process.env.ANTHROPIC_API_KEY);
    """).ok()
    lines = result.out.split()

    assert lines[:3] == ["Hel", "lo", "Hello"] and lines[3] != KEY, result
    assert [seen[:2] for seen in services.seen] == [("POST /v1/messages", KEY)]


def test_composio(run: Run, services: Services) -> None:
    result = run("composio", """
        import { Composio } from "@composio/core";
        const client = new Composio();
        const found = await client.tools.execute("ACME_FIND", { userId: "u", arguments: { word: "otter" }, dangerouslySkipVersionCheck: true });
        console.log(JSON.stringify(found.data));
    """).ok()

    assert result.out.startswith('{"found":{"word":"otter"}}'), result
    assert {seen[1] for seen in services.seen} == {KEY} and any(seen[0].endswith("/execute/ACME_FIND") for seen in services.seen)
