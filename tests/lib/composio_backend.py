# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Composio's backend on the host's loopback: the tool router's sessions and their files, with errors and slow
replies."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lib.upstream import KEY, serving

SESSION = "trs_a-session"
MOUNT = f"/api/v3.1/tool_router/session/{SESSION}/mounts/files"
LINK = "/link/"


class Router(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Backend

    def log_message(self, *args: object) -> None:
        pass

    def reply(self, status: int, document: Any, **headers: str) -> None:
        body = json.dumps(document).encode() if not isinstance(document, bytes) else document
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        self.server.seen.append({"path": self.path, "key": self.headers.get("x-api-key"), "id": None, "body": None})
        if url.path.startswith(LINK):
            data = self.server.files.get(urllib.parse.unquote(url.path.removeprefix(LINK)))
            self.reply(200 if data is not None else 404, data if data is not None else {"error": {"message": "File not found"}})
        elif self.headers.get("x-api-key") != KEY:
            self.reply(401, {"error": {"message": "Invalid API key", "slug": "HTTP_Unauthorized"}})
        elif url.path == f"{MOUNT}/items":
            self.items({name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()})
        else:
            self.unknown(None)

    def do_PUT(self) -> None:
        """Takes the bytes of a file at a link, which needs no key."""
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append({"path": self.path, "key": self.headers.get("x-api-key"), "id": None, "body": None})
        if self.path.startswith(LINK):
            self.server.files[urllib.parse.unquote(self.path.removeprefix(LINK))] = data
            self.reply(200, {})
        else:
            self.unknown(None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        self.server.seen.append({"path": self.path, "key": self.headers.get("x-api-key"), "id": self.headers.get("x-request-id"), "body": body})
        start = f"/api/v3/tool_router/session/{SESSION}/"
        if self.headers.get("x-api-key") != KEY:
            self.reply(401, {"error": {"message": "Invalid API key", "slug": "HTTP_Unauthorized"}})
        elif self.path.startswith(f"{MOUNT}/"):
            self.mount(self.path.removeprefix(f"{MOUNT}/"), str(body.get("mount_relative_path", "")).lstrip("/"))
        elif not self.path.startswith(start):
            self.reply(404, {"error": {"message": "Session not found"}})
        else:
            {"execute": self.execute, "proxy_execute": self.proxy_execute}.get(self.path.removeprefix(start), self.unknown)(body)

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
        elif slug == "ACME_DEEP":
            self.reply(200, b"[" * 100_000)
        elif slug == "ACME_LARGE":
            self.envelope({"k" * (1 << 20): 1})
        elif slug == "ACME_BROKEN_OFF":
            self.send_response(500)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"ffff\r\n{")
            self.close_connection = True
        elif slug == "ACME_MOVED":
            self.reply(302, {}, location=f"{self.server.url}/elsewhere")
        elif slug in ("COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"):
            paths = {f"{name}_file_path": None for name in ("results", "stdout", "stderr")}
            self.envelope({"results": "", "stdout": "", "stderr": "", "error": None, **paths,
                           "session": {"id": "s1", "instructions": ""}, "sandbox_id_suffix": "abcd"})
        else:
            self.envelope({"slug": slug, "arguments": arguments, "account": body.get("account"), "items": [{"id": 1}]})

    def envelope(self, data: Any, error: "str | None" = None) -> None:
        self.reply(200, {"data": data, "error": error, "log_id": "log_1"})

    # --- files ---

    def named(self, path: str, **more: Any) -> "dict[str, Any]":
        return {"mount_relative_path": path, "sandbox_mount_prefix": "/mnt/files", **more}

    def items(self, query: "dict[str, str]") -> None:
        names = sorted(name for name in self.server.files if name.startswith(query.get("mount_relative_prefix", "")))
        start, limit = int(query.get("cursor", 0)), int(query.get("limit", 100))
        if not 1 <= limit <= 500:
            self.reply(400, {"error": {"message": "limit must be from 1 to 500"}})
            return
        shown = [self.named(name, size=len(self.server.files[name]), last_modified="2026-01-01T00:00:00.000Z")
                 for name in names[start:start + limit]]
        self.reply(200, {"items": shown, **({"next_cursor": str(start + limit)} if start + limit < len(names) else {})})

    def mount(self, what: str, path: str) -> None:
        """Gives a link to a file, or removes a file or a directory."""
        found = [name for name in self.server.files if name == path or name.startswith(f"{path}/")]
        ends = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + 3600))
        link = {what: f"{self.server.url}{LINK}{urllib.parse.quote(path)}", "expires_at": ends}
        if not path:
            self.reply(400, {"error": {"message": "mount_relative_path is missing"}})
        elif what == "upload_url" or (what == "download_url" and path in found):
            self.reply(201, self.named(path, **link))
        elif what == "delete" and found:
            for name in found:
                del self.server.files[name]
            self.reply(200, self.named(path))
        else:
            self.reply(404, {"error": {"message": "File not found"}})

    # --- requests to other services ---

    def proxy_execute(self, body: Any) -> None:
        if body["toolkit_slug"] == "unconnected":
            self.reply(400, {"error": {"message": "No account is connected for the toolkit unconnected"}})
        elif body["endpoint"] == "/busy" and self.first("/busy"):
            self.reply(429, {"error": {"message": "Too many requests"}})
        elif body["endpoint"] == "/missing":
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
        self.files: dict[str, bytes] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextlib.contextmanager
def backend() -> Iterator[Backend]:
    with serving(Backend()) as server:
        yield server
