# SPDX-License-Identifier: Apache-2.0
"""A stub of a model for agents: Anthropic's streaming messages API on loopback, which plays a script of tool calls.

    python3 model.py SCRIPT RECORD -- AGENT...

SCRIPT is a file with a JSON list of tool calls, each {"name", "input"}. The stub brings loopback up, starts AGENT with
ANTHROPIC_BASE_URL, and answers each request with the next call, and at last with a text. At the end,
it writes a JSON object to the file RECORD. "results" is a list of the results of the calls in their order, and "tools" has the
names of the agent's tools. It runs in a network namespace of its own, so that the agent reaches nothing else.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def loopback_up() -> None:
    with socket.socket() as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if part["type"] == "text")


class Model:
    """The state of the conversation."""

    def __init__(self, script: "list[dict[str, Any]]") -> None:
        self.script, self.results, self.tools, self.lock = script, {}, [], threading.Lock()

    def reply(self, request: "dict[str, Any]") -> "dict[str, Any]":
        """The content block that answers a request."""
        with self.lock:
            names = [tool["name"] for tool in request.get("tools", [])]
            if not {call["name"] for call in self.script} <= set(names):  # a request for a title or a summary
                return {"type": "text", "text": "a title"}
            self.tools = names
            for message in request["messages"]:
                for part in message["content"] if isinstance(message["content"], list) else ():
                    if part["type"] == "tool_result":
                        self.results[part["tool_use_id"]] = {"text": text_of(part.get("content", "")), "error": part.get("is_error", False)}
            number = len(self.results)
            if number >= len(self.script):
                return {"type": "text", "text": "done"}
            return {"type": "tool_use", "id": f"toolu_{number}", **self.script[number]}


def events(block: "dict[str, Any]") -> "list[dict[str, Any]]":
    """The events of a streamed message with one content block."""
    used = block["type"] == "tool_use"
    start = {**block, "input": {}} if used else {"type": "text", "text": ""}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if used else {"type": "text_delta", "text": block["text"]}
    usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stub", "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": usage}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use" if used else "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def handler(model: Model) -> "type[BaseHTTPRequestHandler]":
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.split("?")[0].endswith("/messages"):
                self.answer(404, "application/json", "{}")
                return
            if request.get("stream"):
                text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events(model.reply(request)))
                self.answer(200, "text/event-stream", text)
                return
            block = model.reply(request)
            message = events(block)[0]["message"]
            self.answer(200, "application/json", json.dumps({**message, "content": [block], "stop_reason": "end_turn"}))

        def do_GET(self) -> None:
            self.answer(404, "application/json", "{}")

        do_HEAD = do_GET

        def answer(self, status: int, kind: str, text: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def main() -> int:
    script, record, dashes, *agent = sys.argv[1:]
    assert dashes == "--"
    loopback_up()
    model = Model(json.loads(Path(script).read_text()))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(model)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = {**os.environ, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}"}
        code = subprocess.run(agent, env=environment).returncode
        server.shutdown()
    results = [model.results[key] for key in sorted(model.results, key=lambda key: int(key.rpartition("_")[2]))]
    Path(record).write_text(json.dumps({"results": results, "tools": model.tools}))
    return code


if __name__ == "__main__":
    sys.exit(main())
