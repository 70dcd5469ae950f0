# SPDX-License-Identifier: Apache-2.0
"""Clients of signed links (holt link): curl, and sockets for requests that curl does not send."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from typing import NamedTuple

from lib.sandbox import HANGS
from lib.sessions import Json, Session


class Reply(NamedTuple):
    """A response. code is the exit status of curl, or 0."""

    code: int
    status: int
    fields: dict[str, str]
    body: bytes


def reply_of(head: str, body: bytes, code: int = 0) -> Reply:
    lines = head.split("\n")
    words = lines[0].split()
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return Reply(code, int(words[1]) if len(words) > 1 else 0, fields, body)


def curl(url: str, *args: str, stdin: bytes = b"") -> Reply:
    done = subprocess.run(
        ["curl", "-q", "-sS", "--max-time", "60", "--noproxy", "*", "-D", "/dev/stderr", *args, url], input=stdin,
        capture_output=True, check=False,
    )
    heads = done.stderr.decode(errors="replace").replace("\r", "").split("\n\n")
    final = [head for head in heads if head.startswith("HTTP/") and " 100 " not in head.split("\n")[0]]
    return reply_of(final[0] if final else "", done.stdout, done.returncode)


def link(session: Session, *words: str) -> str:
    return session("link", *words).ok().out.strip()


def links(session: Session) -> list[Json]:
    return list(json.loads(session("link", "--list", "--json").ok().out)["links"])


def parts(url: str) -> tuple[int, str]:
    """Returns the port and the target of a URL."""
    host, _, target = url.removeprefix("http://").partition("/")
    return int(host.rpartition(":")[2]), f"/{target}"


class Peer:
    """A connection to the port of a link. A context manager."""

    def __init__(self, url: str) -> None:
        self.port, self.target = parts(url)
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=HANGS)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()

    def ask(self, method: str = "GET", *fields: str, target: str = "", host: str = "", body: bytes = b"") -> None:
        lines = [f"{method} {target or self.target} HTTP/1.1", f"Host: {host or f'127.0.0.1:{self.port}'}", *fields, "", ""]
        self.socket.sendall("\r\n".join(lines).encode("utf-8", "surrogateescape") + body)

    def reply(self) -> Reply:
        """Reads to the end of the connection. The status is 0 if there is no response."""
        pieces = []
        with contextlib.suppress(ConnectionResetError):
            while piece := self.socket.recv(1 << 20):
                pieces.append(piece)
        data = b"".join(pieces).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        head, _, body = data.partition(b"\r\n\r\n")
        return reply_of(head.decode(errors="replace").replace("\r", ""), body)


def status(url: str, method: str = "GET", *fields: str, target: str = "", host: str = "", body: bytes = b"") -> int:
    with Peer(url) as peer:
        peer.ask(method, *fields, target=target, host=host, body=body)
        return peer.reply().status
