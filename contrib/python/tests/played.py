# SPDX-License-Identifier: Apache-2.0
"""A fake server for one Connection, and callers that wait for its replies."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from conftest import until

from holt._connection import Connection, Peer
from holt._request import Request
from holt.errors import ClosedError, HoltError


class Played(Peer):
    """The fake other end of a connection, and the owner of the connection."""

    def __init__(self) -> None:
        ours, self.socket = socket.socketpair()
        self.lines = self.socket.makefile("rb")
        self.told: List[Dict[str, Any]] = []
        self.wrong = False
        self.connection = Connection(ours, self)

    def on_message(self, connection: Connection, message: Dict[str, Any]) -> None:
        self.told.append(message)
        if self.wrong:
            raise ValueError("a listener fails")

    def on_end(self, connection: Connection, waiting: List[Request], unread: List[Request]) -> None:
        for request in waiting:
            request.settle(None, ClosedError("hung up"))

    def ask(self, method: str = "x") -> Request:
        request = Request(method, {})
        assert self.connection.start(request)
        return request

    def hear(self) -> int:
        return int(json.loads(self.lines.readline())["id"])

    def say(self, **message: Any) -> None:
        self.socket.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


@pytest.fixture
def played() -> Iterator[Played]:
    played = Played()
    yield played
    played.connection.hang_up()
    with contextlib.suppress(OSError):
        played.socket.shutdown(socket.SHUT_RDWR)
    played.lines.close()
    played.socket.close()
    until(lambda: played.connection.socket.fileno() < 0, "it is closed")


def waits(request: Request, got: "List[Any]") -> threading.Thread:
    """Starts a thread that waits for a reply, and puts the result or error into got."""

    def wait() -> None:
        try:
            got.append(request.result())
        except HoltError as error:
            got.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def two_that_wait(played: Played) -> "Tuple[List[Request], List[List[Any]], List[threading.Thread]]":
    """The first is the reader, the second a follower."""
    requests = [played.ask("first"), played.ask("second")]
    got: List[List[Any]] = [[], []]
    threads = [waits(requests[0], got[0])]
    until(lambda: played.connection._reader is requests[0], "the first reads")
    threads.append(waits(requests[1], got[1]))
    until(lambda: requests[1] in played.connection._followers, "the second waits")
    return requests, got, threads
