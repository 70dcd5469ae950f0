# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at any moment of a call loses no reply, neither of this call nor of another."""

from __future__ import annotations

import array
import contextlib
import gc
import json
import linecache
import os
import signal
import socket
import sys
import tempfile
import threading
from types import FrameType
from typing import Any, List

import pytest
from conftest import until
from played import Played, played, waits

from holt._request import Request
from holt.errors import HoltError

__all__ = ("played",)  # a fixture


@pytest.fixture(autouse=True)
def place() -> None:
    """These tests make no session."""


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("bytes_before", (0, 20))
def test_a_reader_that_is_interrupted_loses_nothing(played: Played, bytes_before: int) -> None:
    """Ctrl-C interrupts the reader, even between two parts of a message."""
    own, other, got = played.ask("own"), played.ask("other"), []  # type: Request, Request, List[Any]
    reply = json.dumps({"id": other.number, "result": "theirs"}).encode() + b"\n"

    def interrupt() -> None:
        until(lambda: played.connection._reader is own, "it reads")
        played.socket.sendall(reply[:bytes_before])
        until(lambda: bool(played.connection._arrived) == bool(bytes_before), "that has come")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        own.result()
    assert played.connection._reader is not own
    thread = waits(other, got)
    played.socket.sendall(reply[bytes_before:])
    thread.join(60)
    assert got == ["theirs"]
    played.say(id=own.number, result="late")
    assert own.result() == "late"


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_at_any_moment_leaves_the_connection_whole(played: Played) -> None:
    """The server replies at once, while a timer interrupts the caller."""

    def serve() -> None:
        for line in played.lines:
            played.say(method="note", params={})
            played.say(id=json.loads(line)["id"], result=json.loads(line)["id"])

    def on_alarm(*_: object) -> None:
        raise KeyboardInterrupt

    threading.Thread(target=serve, daemon=True).start()
    before, done = signal.signal(signal.SIGALRM, on_alarm), 0
    try:
        for round in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.00005 + round * 1e-6)
                while True:
                    request = played.ask()
                    assert request.result() == request.number
            except KeyboardInterrupt:
                done += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    request, got = played.ask(), []  # type: Request, List[Any]
    waits(request, got).join(60)
    assert done == 300 and got == [request.number]


class InterruptAt:
    """Raises KeyboardInterrupt in this thread, at the line with this number among those that it executes to take a reply."""

    def __init__(self, line: int) -> None:
        self.left, self.done = line, False

    def __call__(self, frame: FrameType, event: str, _: Any) -> "InterruptAt | None":
        if frame.f_code.co_name not in ("_take_own", "files_of"):
            return self if frame.f_code.co_filename.endswith("_connection.py") else None
        self.left -= event == "line"
        if self.left == 0 and event == "line":
            self.done = True
            raise KeyboardInterrupt
        return self


def say_with_file(played: Played, number: int, content: bytes) -> None:
    """A reply with a file."""
    line = json.dumps({"id": number, "result": {}}).encode() + b"\n"
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))]
        played.socket.sendmsg([line], rights)


def test_an_interrupt_at_any_line_leaves_the_file_of_a_reply_one_owner(played: Played) -> None:
    """With two owners, the first one to go would close the file of the second, or a later file with the same number."""
    points = 0
    while True:
        interrupt, request, got = InterruptAt(points + 1), played.ask(), []  # type: InterruptAt, Request, List[Any]
        say_with_file(played, request.number, b"content")
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            got.append(request.result())
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        if not got:
            waits(request, got).join(60)
        gc.collect()
        assert os.read(got[0]["files"][0].fileno(), 99) == b"content", points
        if not interrupt.done:
            break
        points += 1
    assert points > 2


class InterruptIn:
    """Raises KeyboardInterrupt in this thread, at the line with this number among those that it executes for a request.

    It leaves out "with": Python reaches that line again at the end of the block, where no signal handler can run."""

    def __init__(self, line: int) -> None:
        self.left, self.at = line, ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> "InterruptIn | None":
        file = frame.f_code.co_filename
        if not file.endswith(("_connection.py", "_request.py", "_bytes.py")) or file == __file__:
            return None
        if event == "line" and not linecache.getline(file, frame.f_lineno).lstrip().startswith("with self._"):
            self.left -= 1
            if self.left == 0:
                self.at = f"{file}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self


def answer_as(played: Played, how: str) -> None:
    with contextlib.suppress(OSError):
        for line in played.lines:
            number = json.loads(line)["id"]
            if how == "note":
                played.say(method="note", params={})
            if how == "error" and number == 1:
                played.say(id=number, error={"code": 1, "message": "no"})
            elif how == "end" and number == 1:
                played.socket.shutdown(socket.SHUT_RDWR)
            else:
                played.say(id=number, result=number)


@pytest.mark.parametrize("called", (False, True))
@pytest.mark.parametrize("how", ("result", "error", "note", "end"))
def test_an_interrupt_at_any_line_of_a_call_harms_nobody(how: str, called: bool) -> None:
    """Afterwards, the connection answers others, expects nothing that it does not get, and the request itself ends."""
    points = 0
    while True:
        points += 1
        played, interrupt, calls = Played(), InterruptIn(points), []  # type: Played, InterruptIn, List[Any]
        threading.Thread(target=answer_as, args=(played, how), daemon=True).start()
        request, connection, begun = Request("x", {}, then=calls.append if called else None), played.connection, False
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            begun = connection.start(request)
            request.result()
        except (KeyboardInterrupt, HoltError):
            pass
        finally:
            sys.settrace(before)
        other, got = Request("x", {}), []  # type: Request, List[Any]
        asked = [request] * begun + [other] * connection.start(other)
        for each in asked:
            waits(each, got).join(10)
        assert len(got) == len(asked) and (asked or how == "end"), interrupt.at
        until(lambda: len(calls) == called or not begun, interrupt.at)
        until(lambda: not connection._waiting and connection._reader in (None, connection._thread), interrupt.at)
        assert len(calls) <= called and not connection._followers and not connection._wanted, interrupt.at
        assert how == "end" or connection._wants == 0, interrupt.at
        connection.hang_up()
        with contextlib.suppress(OSError):
            played.socket.shutdown(socket.SHUT_RDWR)
        played.socket.close()
        if not interrupt.at:
            break
    assert points > 20
