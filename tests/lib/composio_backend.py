# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Composio's backend on the host's loopback: the tool router's sessions, with errors and slow replies."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lib.upstream import KEY

SESSION = "trs_a-session"


class Router(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Backend

    def log_message(self, *args: object) -> None:
        pass

    def reply(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode() if not isinstance(document, bytes) else document
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        self.server.seen.append({"path": self.path, "key": self.headers.get("x-api-key"), "id": self.headers.get("x-request-id"), "body": body})
        start = f"/api/v3/tool_router/session/{SESSION}/"
        if self.headers.get("x-api-key") != KEY:
            self.reply(401, {"error": {"message": "Invalid API key", "slug": "HTTP_Unauthorized"}})
        elif not self.path.startswith(start):
            self.reply(404, {"error": {"message": "Session not found"}})
        else:
            getattr(self, self.path.removeprefix(start), self.unknown)(body)

    def unknown(self, body: Any) -> None:
        self.reply(404, {"error": {"message": "no such endpoint"}})

    def first(self, what: str) -> bool:
        """Whether this is the first request of its kind."""
        self.server.counts[what] = self.server.counts.get(what, 0) + 1
        return self.server.counts[what] == 1

    def execute(self, body: Any) -> None:
        slug, arguments = body["tool_slug"], body["arguments"]
        if slug == "COMPOSIO_SEARCH_GROQ_CHAT":
            text = arguments["messages"][0]["content"]
            answer = "```json\n{\"a\": 1}\n```" if text == "json" else f"you said {text} to {arguments['model']}"
            self.envelope({"choices": [{"message": {"role": "assistant", "content": answer}}]})
        elif slug == "COMPOSIO_SEARCH_EXA_ANSWER":
            self.envelope({"answer": f"about {arguments['content']}"} if arguments["content"] else {})
        elif slug == "ACME_BUSY" and self.first(slug):
            self.reply(429, {"error": {"message": "Too many requests"}})
        elif slug == "ACME_LIMITED" and self.first(slug):
            self.envelope({}, "Rate limit exceeded, try later")
        elif slug == "ACME_CUT" and self.first(slug):
            self.close_connection = True
        elif slug == "ACME_ALWAYS_BUSY":
            self.reply(429, {"error": {"message": "Too many requests"}})
        elif slug == "ACME_SLOW":
            time.sleep(1)
            self.envelope({"slow": True})
        elif slug == "ACME_BROKEN":
            self.reply(500, {"error": {"message": "Internal error"}})
        elif slug == "ACME_FAILS":
            self.envelope({}, "the tool has failed")
        elif slug == "ACME_TEXT":
            self.reply(200, b"not JSON")
        else:
            self.envelope({"slug": slug, "arguments": arguments, "account": body.get("account"), "items": [{"id": 1}]})

    def envelope(self, data: Any, error: "str | None" = None) -> None:
        self.reply(200, {"data": data, "error": error, "log_id": "log_1"})

    def proxy_execute(self, body: Any) -> None:
        if body["endpoint"] == "/missing":
            self.reply(200, {"data": {"message": "no such page"}, "status": 404, "headers": {}})
        elif body["endpoint"] == "/image":
            self.reply(200, {"data": None, "binary_data": {"url": "https://files.example/1"}, "status": 200})
        else:
            self.reply(200, {"data": body, "status": 200, "headers": {}})


class Backend(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Router)
        self.seen: list[dict[str, Any]] = []
        self.counts: dict[str, int] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextlib.contextmanager
def backend() -> Iterator[Backend]:
    with Backend() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
