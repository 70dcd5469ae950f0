# SPDX-License-Identifier: Apache-2.0
"""The readers of replies: waiting callers, one after another, event loops, and the background thread."""

from __future__ import annotations

import array
import asyncio
import contextlib
import io
import json
import os
import select
import socket
import threading
from typing import Any, List, Optional

import pytest
from conftest import until
from played import Played, played, two_that_wait, waits

from holt._bytes import Bell
from holt._connection import IN_FLIGHT
from holt._request import Request
from holt.errors import ClosedError

__all__ = ("played",)  # a fixture


@pytest.fixture(autouse=True)
def place() -> None:
    """These tests make no session."""


def test_the_reader_leaves_with_its_reply_and_the_other_takes_over(played: Played) -> None:
    requests, got, threads = two_that_wait(played)
    played.say(id=requests[0].number, result=1)
    threads[0].join(60)
    until(lambda: played.connection._reader is requests[1], "the second reads")
    played.say(id=requests[1].number, result=2)
    threads[1].join(60)
    assert got == [[1], [2]] and played.connection._thread is None


def test_the_reader_hands_over_what_is_another_s(played: Played) -> None:
    requests, got, threads = two_that_wait(played)
    played.say(method="note", params={})
    played.say(id=requests[1].number, result=2)
    threads[1].join(60)
    assert got == [[], [2]] and [each["method"] for each in played.told] == ["note"]
    assert played.connection._reader is requests[0]
    played.say(id=requests[0].number, error={"code": 1, "message": "no"})
    threads[0].join(60)
    assert str(got[0][0]) == "no" and played.connection._thread is None


def test_replies_come_in_pieces_and_with_others(played: Played) -> None:
    requests, got, threads = two_that_wait(played)
    large = "y" * 300_000
    both = "".join(json.dumps({"id": r.number, "result": large + r.method}) + "\n" for r in requests[::-1]).encode()
    for start in range(0, len(both), 70_000):
        played.socket.sendall(both[start : start + 70_000])
    for each in threads:
        each.join(60)
    assert got == [[large + "first"], [large + "second"]]
    alone = played.ask()
    threading.Thread(target=lambda: played.say(id=alone.number, result=large), daemon=True).start()
    assert alone.result() == large and played.connection._thread is None


def test_a_main_thread_that_reads_leaves_others_messages_to_the_background(played: Played) -> None:
    other, got = played.ask("other"), []  # type: Request, List[Any]
    own = played.ask("own")
    played.say(method="note", params={})
    played.say(id=other.number, result="theirs")
    played.say(id=own.number, result="mine")
    assert own.result() == "mine"
    waits(other, got).join(60)
    assert got == ["theirs"] and len(played.told) == 1


def test_messages_arrive_while_no_caller_waits(played: Played) -> None:
    played.connection.want(1)
    for number in range(3):
        played.say(id=number, method="tool.call", params={})
        until(lambda: len(played.told) == number + 1, "it has come")
    played.connection.want(-1)
    played.say(method="later", params={})
    request = played.ask()
    played.say(id=request.number, result=1)
    assert request.result() == 1
    until(lambda: len(played.told) == 4, "the next reader has handed it over")


def test_notifications_between_requests_and_late_replies_arrive(played: Played) -> None:
    played.connection.want(1)
    for number in range(50):
        request = played.ask()
        played.say(id=request.number, result=number)
        assert request.result() == number
        played.say(method="note", params={})
    until(lambda: len(played.told) == 50, "all have come")
    request, got = played.ask(), []  # type: Request, List[Any]
    thread = waits(request, got)
    until(lambda: played.connection._reader is request, "it reads")
    played.say(id=request.number, result=1)
    thread.join(60)
    played.say(method="note", params={})
    until(lambda: len(played.told) == 51, "it has come")


def test_a_callback_that_raises_harms_nobody(played: Played, capfd: pytest.CaptureFixture[str]) -> None:
    played.wrong = True
    requests, got, threads = two_that_wait(played)
    played.say(method="note", params={})
    for request in requests[::-1]:
        played.say(id=request.number, result=request.method)
    for each in threads:
        each.join(60)
    assert got == [["first"], ["second"]] and "a listener fails" in capfd.readouterr().err


@pytest.mark.parametrize("line", (b"this is no JSON", b"[1]", b"\1" + bytes(7), b'{"id":null,"error":{"code":1,"message":"no"}}', b"{}"))
def test_a_message_without_its_request_ends_the_connection(
    played: Played, line: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    """It may have been a reply, and whoever waits for it would wait forever."""
    _, got, threads = two_that_wait(played)
    played.socket.sendall(line + b"\n")
    for each in threads:
        each.join(60)
    assert [str(each[0]) for each in got] == ["hung up", "hung up"]
    assert "a message without its request" in capfd.readouterr().err


def test_all_that_waits_fails_when_the_server_hangs_up(played: Played) -> None:
    _, got, threads = two_that_wait(played)
    played.socket.shutdown(socket.SHUT_RDWR)
    for each in threads:
        each.join(60)
    assert [str(each[0]) for each in got] == ["hung up", "hung up"]
    assert not played.connection.start(Request("x", {}))


def test_a_reader_whose_connection_is_closed(played: Played) -> None:
    request, got = played.ask(), []  # type: Request, List[Any]
    thread = waits(request, got)
    until(lambda: played.connection._reader is request, "it reads")
    played.connection.hang_up()
    thread.join(60)
    assert isinstance(got[0], ClosedError)


def test_a_request_does_not_overtake_those_that_are_late(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new request comes when a reply has made room for the delayed one, which is not sent yet."""
    sent = [played.ask() for _ in range(IN_FLIGHT + 1)]
    send_delayed = played.connection._send_delayed

    def send() -> None:
        monkeypatch.undo()
        sent.append(played.ask())
        send_delayed()

    monkeypatch.setattr(played.connection, "_send_delayed", send)
    assert played.hear() == sent[0].number
    for request in sent[:2]:
        played.say(id=request.number, result=None)
        request.result()
    assert [played.hear() for _ in sent[1:]] == [each.number for each in sent[1:]]


def test_an_invalid_reply_does_not_affect_other_requests(played: Played, capfd: pytest.CaptureFixture[str]) -> None:
    """The reply has a directory, which FileIO refuses."""
    requests, got, threads = two_that_wait(played)
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    line = json.dumps({"id": requests[1].number, "result": []}).encode() + b"\n"
    played.socket.sendmsg([line], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [directory]))])
    os.close(directory)
    threads[1].join(60)
    request = played.ask("third")
    played.say(id=request.number)
    played.say(id=requests[0].number, result=1)
    threads[0].join(60)
    assert got == [[1], [[]]] and request.result() is None


class LateBell(io.FileIO):
    """The descriptor of a bell. While a thread writes to it, another thread closes the bell and opens sockets."""

    bell: Bell
    opened: List[socket.socket] = []

    __del__ = io.FileIO.close

    def write(self, data: Any) -> int:
        number = self.fileno()
        self.bell.close()
        self.opened += [each for _ in range(20) for each in socket.socketpair()]
        return os.write(number, data)


def test_a_bell_that_rings_while_it_is_closed_writes_to_no_other_file() -> None:
    """Its bytes reached the socket of the next holt serve. So a reply could not be read, and the caller waited forever."""
    bell: Any = Bell()
    bell._in = bell._out = LateBell(os.dup(bell.fileno()), "r+")
    bell._in.bell = bell
    number, opened = bell.fileno(), LateBell.opened
    bell.ring()
    came = select.select(opened, [], [], 0)[0]
    for each in opened:
        each.close()
    opened.clear()
    assert not came
    with pytest.raises(OSError):
        os.fstat(number)


class LateSocket(socket.socket):
    """The socket of a connection. While a thread shuts it down, another thread ends the connection and opens sockets."""

    played: Optional[Played]
    opened: List[socket.socket] = []

    __del__ = socket.SocketType.close

    def shutdown(self, how: int) -> None:
        number, played, self.played = self.fileno(), self.played, None
        if played:
            played.connection._arrived.append((b"", (), 0, None))
            played.connection._work_off()
            self.opened += [each for _ in range(20) for each in socket.socketpair()]
        with contextlib.closing(socket.socket(fileno=os.dup(number))) as same:
            same.shutdown(how)


def test_a_connection_that_hangs_up_while_it_ends_shuts_no_other_socket_down() -> None:
    played: Any = Played()
    connection, given = played.connection, played.connection.socket
    connection.socket = LateSocket(given.family, given.type, given.proto, given.detach())
    connection.socket.played = played
    connection.hang_up()
    opened = LateSocket.opened
    shut = select.select(opened, [], [], 0)[0]
    for each in (*opened, played.lines, played.socket):
        each.close()
    opened.clear()
    assert connection.socket.fileno() < 0 and not shut


def test_a_default_timeout_of_sockets_does_not_end_a_connection() -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.01)
    try:
        played = Played()
    finally:
        socket.setdefaulttimeout(before)
    played.socket.setblocking(True)
    request = played.ask()
    threading.Timer(0.2, lambda: played.say(id=request.number, result=1)).start()
    assert request.result() == 1
    played.connection.hang_up()
    played.lines.close()
    played.socket.close()


def test_a_connection_that_ends_while_a_loop_begins_to_watch_it_leaves_the_loop(played: Played) -> None:
    """The socket of an ended connection is always readable, so the loop would never rest."""

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        add, connection = loop.add_reader, played.connection  # type: Any, Any

        def add_reader(*arguments: Any) -> None:
            add(*arguments)
            connection.hang_up()
            until(lambda: connection.ended and not connection._thread.is_alive(), "it has ended")

        loop.add_reader = add_reader
        request = played.ask()
        with pytest.raises(ClosedError):
            await asyncio.wait_for(request.in_loop(loop), 60)
        assert connection.socket.fileno() < 0 and connection.watch(loop) is False
        numbers = {key.fd for key in loop._selector.get_map().values()}
        assert len(numbers) == 1, "the loop watches only its own wake-up"

    asyncio.run(main())


def test_an_event_loop_reads_beside_a_thread(played: Played) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        mine, theirs, got = played.ask(), played.ask(), []  # type: Request, Request, List[Any]
        future = mine.in_loop(loop)
        played.say(id=mine.number, result=1)
        assert await asyncio.wait_for(future, 60) == 1 and played.connection._thread is None
        thread = waits(theirs, got)
        await asyncio.get_running_loop().run_in_executor(
            None, until, lambda: played.connection._reader is theirs, "the thread reads"
        )
        again = played.ask()
        future = again.in_loop(loop)
        played.say(id=again.number, result=2)
        played.say(id=theirs.number, result=3)
        assert await asyncio.wait_for(future, 60) == 2
        await loop.run_in_executor(None, thread.join, 60)
        assert got == [3]

    asyncio.run(main())


def test_a_loop_that_is_closed_is_no_reader_any_more(played: Played) -> None:
    for number in range(2):
        async def main() -> Any:
            request = played.ask()
            played.say(id=request.number, result=number)
            return await request.in_loop(asyncio.get_running_loop())

        assert asyncio.run(main()) == number
    request = played.ask()
    played.say(id=request.number, result=2)
    assert request.result(60) == 2


def test_a_timeout_does_not_take_the_reply(played: Played) -> None:
    request = played.ask()
    with pytest.raises(Exception, match="^$"):
        request.result(0.01)
    played.say(id=request.number, result=1)
    assert request.result(60) == 1 and request.future().result(60) == 1


@pytest.mark.parametrize("beside", (False, True))
def test_threads_that_wait_for_the_same_request(played: Played, beside: bool) -> None:
    got: List[Any] = []
    other = waits(played.ask(), []) if beside else None
    until(lambda: not beside or played.connection._reader, "the other reads")
    request = played.ask()
    threads = [waits(request, got) for _ in range(4)]
    until(lambda: request._waits and len(request._callbacks) == 3, "all wait")
    played.say(id=request.number, result=1)
    for each in threads:
        each.join(60)
    assert got == [1] * 4 and (not other or other.is_alive())


def test_threads_that_ask_at_once(played: Played) -> None:
    def serve() -> None:
        for line in played.lines:
            played.say(id=json.loads(line)["id"], result=json.loads(line)["id"])

    threading.Thread(target=serve, daemon=True).start()
    wrong: List[Any] = []

    def many() -> None:
        for _ in range(300):
            request = played.ask()
            if request.result() != request.number:
                wrong.append(request)

    threads = [threading.Thread(target=many, daemon=True) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not wrong and not any(each.is_alive() for each in threads)
