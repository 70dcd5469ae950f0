# SPDX-License-Identifier: Apache-2.0
"""The readers of replies: waiting callers, one after another, event loops, and the background thread."""

from __future__ import annotations

import array
import asyncio
import contextlib
import gc
import io
import json
import linecache
import os
import select
import signal
import socket
import sys
import tempfile
import threading
from types import FrameType
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest
from conftest import until

from holt._bytes import Bell
from holt._connection import IN_FLIGHT, Connection, Peer
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


@pytest.fixture(autouse=True)
def place() -> None:
    """These tests make no session."""


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
