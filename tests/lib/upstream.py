# SPDX-License-Identifier: Apache-2.0
"""A service on the host's loopback, to which a route leads. It knows one credential."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

KEY = "sk-a-real-key-0123456789"


def read_head(client: socket.socket) -> None:
    """Reads the head of a request. Raises ConnectionError if the client ends before it."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(65536)
        if not more:
            raise ConnectionError("the client has gone")
        data += more


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def log_message(self, *args: object) -> None:
        pass

    def body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def reply(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **({"set-cookie": self.server.cookie} if self.server.cookie else {}), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def serve(self) -> None:
        body, path = self.body(), self.path.partition("?")[0]
        seen = {"method": self.command, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()},
                "length": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        self.server.seen.append(seen)
        getattr(self, "do" + path.removeprefix("/v1").replace("/", "_"), self.do_other)(seen)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = serve

    def do_other(self, seen: Any) -> None:
        self.reply(json.dumps({name: seen[name] for name in ("method", "path", "length", "sha256")}).encode())

    def do_echo(self, seen: Any) -> None:
        """Repeats the credential in the body, in pieces and in base64, and in a header."""
        key = seen["headers"].get("authorization", "").removeprefix("Bearer ").encode()
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.send_header("x-key", key.decode())
        self.end_headers()
        for data in (b"<" + key[:5], key[5:11], key[11:] + b">", b"<" + base64.b64encode(key) + b">", b"sk-a-real"):
            self.chunk(data)
        self.chunk(b"")

    def do_events(self, seen: Any) -> None:
        """Sends the second event only after the program has got the first one."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.chunk(b"data: one\n\n")
        self.server.went_on.wait(10)
        self.chunk(b"data: two\n\n")
        self.chunk(b"")

    def do_chunks(self, seen: Any) -> None:
        """Sends a body without a length, or its head."""
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if self.command != "HEAD":
            self.chunk(b"chunk")
            self.chunk(b"")

    def do_go_on(self, seen: Any) -> None:
        self.server.went_on.set()
        self.reply(b"")

    def do_big(self, seen: Any) -> None:
        self.reply(b"0123456789abcdef" * (1 << 20))

    def do_gzip(self, seen: Any) -> None:
        self.reply(b"\x1f\x8b", content_encoding="gzip")

    def do_away(self, seen: Any) -> None:
        self.reply(b"", 302, location="http://127.0.0.1:9/elsewhere")

    def do_back(self, seen: Any) -> None:
        self.reply(b"", 302, location=f"{self.server.url}/v1/arrived")

    def do_cut(self, seen: Any) -> None:
        self.send_response(200)
        self.send_header("content-length", "100")
        self.end_headers()
        self.wfile.write(b"half")
        self.close_connection = True

    def do_unauthorized(self, seen: Any) -> None:
        """Refuses a credential until the test sets `went_on`."""
        self.reply(b"", 200 if self.server.went_on.is_set() else 401)

    def do_forbidden(self, seen: Any) -> None:
        self.reply(b"", 403)

    def do_slow(self, seen: Any) -> None:
        self.server.went_on.wait(20)
        self.reply(b"late")


class Upstream(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Service)
        self.seen: list[dict[str, Any]] = []
        self.went_on = threading.Event()
        self.cookie = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is part of some tests."""


S = TypeVar("S", bound=ThreadingHTTPServer)


@contextlib.contextmanager
def serving(server: S) -> Iterator[S]:
    """Lets the server answer in a thread, and ends it."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def upstream() -> Iterator[Upstream]:
    with serving(Upstream()) as service:
        try:
            yield service
        finally:
            service.went_on.set()
