# SPDX-License-Identifier: Apache-2.0
"""A WebSocket service on the host's loopback, and a client that runs inside.

The service answers by the path: /v1/echo returns each message, /v1/key sends its credential, and so on (see `Service`).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

# The client of the tests. It has no library, because the sandbox may have none.
CLIENT = '''
import base64, os, socket, ssl, struct, sys

def connect(path, *headers, key=None, early=b"", extra=b""):
    """Returns the socket as a file, and the head of the response. ACME_TLS: the host whose TLS is terminated."""
    at, tls = os.environ["ACME_AT"], os.environ.get("ACME_TLS")
    host, port = (tls, 443) if tls else at.split(":")
    s = socket.create_connection((host, int(port)), timeout=20)
    if tls:
        s = ssl.create_default_context().wrap_socket(s, server_hostname=tls)
    lines = [("GET " if tls else "GET /acme") + path + " HTTP/1.1", "Host: " + (tls or at), "Connection: keep-alive, Upgrade", "Upgrade: websocket",
             "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + (key or base64.b64encode(os.urandom(16)).decode())]
    lines += headers or ["Authorization: Bearer " + os.environ["ACME_TOKEN"]]
    s.sendall("\\r\\n".join(lines).encode() + b"\\r\\n\\r\\n" + early)
    f = s.makefile("rb")
    head = []
    while (line := f.readline().strip()):
        head.append(line.decode("latin-1"))
    return s, f, head

def frame(kind, data, last=True):
    length = len(data)
    size = bytes([128 | length]) if length < 126 else b"\\xfe" + struct.pack(">H", length) if length < 65536 else b"\\xff" + struct.pack(">Q", length)
    mask = os.urandom(4)
    masked = (int.from_bytes(data, "little") ^ int.from_bytes((mask * (length // 4 + 1))[:length], "little")).to_bytes(length, "little")
    return bytes([kind | (128 if last else 0)]) + size + mask + masked

def read(f):
    """Returns the kind and the data of a frame; (None, b"") at the end."""
    first = f.read(2)
    if len(first) < 2:
        return None, b""
    length = first[1] & 127
    if length > 125:
        length = int.from_bytes(f.read(2 if length == 126 else 8), "big")
    return first[0] & 15, f.read(length)
'''


TLS_HOST = "api.acme.example"

# For a fixture `tls`, and for tests in which the program ends only one direction: Python's TLS cannot do that.
by_tls = pytest.fixture(params=(False, True), ids=("plain", "tls"), name="tls")
only_plain = pytest.mark.parametrize("tls", (False,), indirect=True)


def tls_members(tls: bool) -> "dict[str, Any]":
    """Returns members of the route acme. With tls, the client above uses a host whose TLS is terminated."""
    return {"terminate_tls": [TLS_HOST], "env": {"ACME_TOKEN": "{token}", "ACME_AT": "{address}", "ACME_TLS": TLS_HOST}} if tls else {}


def frame(kind: int, data: bytes) -> bytes:
    length = len(data)
    size = bytes([length]) if length < 126 else b"\x7e" + struct.pack(">H", length) if length < 65536 else b"\x7f" + struct.pack(">Q", length)
    return bytes([kind | 128]) + size + data


class Connection:
    """One connection. The head of its request is in `service.heads`."""

    def __init__(self, service: "Service", client: socket.socket) -> None:
        self.service, self.client, self.file = service, client, client.makefile("rb")

    def read(self) -> tuple[int, bytes]:
        """Returns the opcode and the unmasked data of a message; fragments are put together."""
        kind, data = 0, b""
        while True:
            first = self.file.read(2)
            if len(first) < 2 or not first[1] & 128:
                raise ConnectionError("no masked frame")
            length = first[1] & 127
            if length > 125:
                length = int.from_bytes(self.file.read(2 if length == 126 else 8), "big")
            mask, part = self.file.read(4), self.file.read(length)
            data += (int.from_bytes(part, "little") ^ int.from_bytes((mask * (length // 4 + 1))[:length], "little")).to_bytes(length, "little")
            kind = kind or first[0] & 15
            if first[0] & 128:
                return kind, data

    def serve(self) -> None:
        lines = []
        while line := self.file.readline().strip():
            lines.append(line.decode("latin-1"))
        self.service.heads.append(lines)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        path = lines[0].split()[1].partition("?")[0]
        if path in self.service.answers:
            self.client.sendall(self.service.answers[path])
            return
        accept = base64.b64encode(hashlib.sha1((headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        self.client.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept
                            + b"\r\n" + (b"X-Key: %s\r\n" % headers.get("authorization", "").encode()) + b"\r\n")
        getattr(self, "do_" + path.rpartition("/")[2], self.do_echo)(headers)

    def do_echo(self, headers: dict[str, str]) -> None:
        while True:
            kind, data = self.read()
            self.client.sendall(frame(PONG if kind == PING else kind, data))
            if kind == CLOSE:
                return

    def do_key(self, headers: dict[str, str]) -> None:
        """Sends the credential in one frame that is cut at each byte, and in base64."""
        key = headers["authorization"].removeprefix("Bearer ").encode()
        for byte in frame(TEXT, b"<" + key + b">"):
            self.client.sendall(bytes([byte]))
        self.client.sendall(frame(TEXT, base64.b64encode(key)) + frame(CLOSE, b""))

    def do_flood(self, headers: dict[str, str]) -> None:
        """Sends until the other side goes away. `service.flooded` counts the bytes."""
        data = frame(BINARY, bytes(60000))
        with contextlib.suppress(OSError):
            while self.service.flooded < 1 << 28:
                self.client.sendall(data)
                self.service.flooded += len(data)
        self.service.flood_ended.set()

    def do_silent(self, headers: dict[str, str]) -> None:
        self.client.recv(1)


class Service:
    """answers: a path and the bytes that it sends instead of an upgrade."""

    def __init__(self, context: "ssl.SSLContext | None" = None) -> None:
        self.socket, self.context = socket.create_server(("127.0.0.1", 0)), context
        self.heads: list[list[str]] = []
        self.answers: dict[str, bytes] = {}
        self.flooded, self.flood_ended = 0, threading.Event()

    @property
    def url(self) -> str:
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.socket.getsockname()[1]}"

    def carry(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            client.settimeout(20)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with (self.context.wrap_socket(client, server_side=True) if self.context else client) as wrapped:
                Connection(self, wrapped).serve()
        client.close()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.carry, args=(self.socket.accept()[0],), daemon=True).start()


@contextlib.contextmanager
def websocket(context: "ssl.SSLContext | None" = None) -> Iterator[Service]:
    service = Service(context)
    threading.Thread(target=service.serve, daemon=True).start()
    try:
        yield service
    finally:
        service.socket.shutdown(socket.SHUT_RDWR)
        service.socket.close()
