# SPDX-License-Identifier: Apache-2.0
"""The connection with a fake server, for events that are rare with a real one."""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
import signal
import socket
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import until

from holt import ClosedError, HoltError, LimitError, ProtocolError, Sandbox, Server, Tool, ToolError, UsageError
from holt import tools
from holt._request import Request
from holt.tools import Tools

Fake = Callable[[str], Server]


def ask(server: Server, method: str, **params: object) -> Any:
    """Fails instead of hanging."""
    return server.submit(method, params).result(60)


def test_errors_have_their_class_and_all_that_was_said(fake: Fake) -> None:
    server = fake(
        "a = hear(); say({'id': a['id'], 'error': {'code': -32011, 'message': 'odd', 'data': {'kind': 'protocol',"
        " 'errno': 'EPROTO', 'hint': 'do this', 'path': '$.x'}}}); a = hear();"
        "say({'id': a['id'], 'error': {'code': -1, 'message': 'new', 'data': {'kind': 'of-a-newer-holt'}}}); hear()"
    )
    with pytest.raises(ProtocolError) as error:
        ask(server, "x")
    e = error.value
    assert (e.code, e.message, e.kind, e.errno, e.hint) == (-32011, "odd", "protocol", "EPROTO", "do this")
    assert e.data == {"path": "$.x"} and "do this" in str(e) and "EPROTO" in str(e)
    with pytest.raises(HoltError) as newer:
        ask(server, "x")
    assert newer.value.kind == "of-a-newer-holt"


def test_a_server_that_dies_fails_what_waits_and_says_why(fake: Fake) -> None:
    server = fake("hear(); sys.stderr.write('holt: it broke'); sys.exit(9)")
    waiting = [server.submit("x", {})]
    with pytest.raises(ClosedError, match="code 9.*it broke"):
        waiting[0].result(60)
    with pytest.raises(ClosedError):
        ask(server, "x")


def test_a_server_ends_with_its_program_despite_a_fork(fake: Fake) -> None:
    program = (
        "import os, signal, sys; from holt import Server; server = Server(sys.argv[1]); server.call('x')\n"
        "print(server._process.pid, flush=True)\n"
        "if os.fork(): os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.read(0, 1)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(fake("echo_forever()").holt)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
    ) as run:
        assert run.stdout
        stat = Path(f"/proc/{int(run.stdout.readline())}/stat")
        until(lambda: not stat.exists() or ") Z " in stat.read_text(), "it has ended")


def test_a_forked_child_does_not_wait_for_threads_of_its_parent(fake: Fake) -> None:
    """Another thread holds the locks of the server during the fork."""
    server = fake("echo_forever()")
    ask(server, "x")
    with server._life_lock, server._lock:
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            try:
                server.submit("x", {})
            except UsageError:
                server.close()
                os._exit(0)
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert ask(server, "next")["method"] == "next"


def test_a_link_that_is_made_during_close_is_closed(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    server = fake("echo_forever()")
    ask(server, "x")
    ours, theirs = socket.socketpair()
    file = io.FileIO(ours.detach(), "r")

    def result(self: Any, timeout: Any = None) -> Any:
        server.close()
        return {"files": [file]}

    monkeypatch.setattr(Request, "result", result)
    kept = server._connected("s", True)
    theirs.settimeout(60)
    assert theirs.recv(1) == b"" and kept
    theirs.close()


@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_request_leaves_no_half_line(fake: Fake) -> None:
    """Ctrl-C comes while the server does not read."""
    server = fake("import os, signal; answer({}); os.kill(os.getpid(), signal.SIGSTOP); echo_forever()")
    ask(server, "x")
    assert server._process and server._serve
    pid, ours = server._process.pid, server._serve.socket
    until(lambda: ") T " in Path(f"/proc/{pid}/stat").read_text(), "it is stopped")
    main, queued = threading.get_ident(), lambda: fcntl.ioctl(ours, termios.TIOCOUTQ, b"\0" * 4) != b"\0" * 4

    def interrupt() -> None:
        until(queued, "some of the line is on its way")
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        server.submit("x", {"text": "y" * 900_000}).result(60)
    os.kill(pid, signal.SIGCONT)
    assert ask(server, "next")["method"] == "next"


def test_answers_come_in_any_order_and_notes_between(fake: Fake) -> None:
    server = fake(
        "asked = [hear() for _ in range(3)]\n"
        "say({'method': 'process.output', 'params': {'session': 's', 'id': 'p1', 'seq': 1}})\n"
        "for each in reversed(asked): say({'id': each['id'], 'result': each['method']})\n"
        "hear()"
    )
    notes = []
    server.listeners.add("process.output", "s", "p1", notes.append)
    futures = [server.submit(name, {}) for name in ("a", "b", "c")]
    assert [f.result(60) for f in futures] == ["a", "b", "c"]
    assert notes == [{"session": "s", "id": "p1", "seq": 1}]


def test_results_say_what_a_full_disk_could_not_record(fake: Fake) -> None:
    full, ended = "'unrecorded': 'the disk is full'", "'id': 'p1', 'exit_code': 0, 'cause': 'exited'"
    server = fake("\n".join([
        "answer({})",  # session.create
        "answer({'id': 'p1', 'pid': 2})", f"answer({{{ended}, {full}}})",
        "answer({'id': 'p1', 'pid': 2})", f"answer({{{ended}}})",
        f"answer({{{ended}, {full}}})", f"answer({{{ended}}})", "echo_forever()",
    ]))
    with Sandbox("w", server=server) as box:
        lost, noted = box.bash("a"), box.bash("b")
        assert (lost.unrecorded, noted.unrecorded) == ("the disk is full", "")
        assert lost.ok and "unrecorded='the disk is full'" in repr(lost) and "unrecorded" not in repr(noted)
        assert [box.python(code).unrecorded for code in ("a", "b")] == ["the disk is full", ""]


def test_unanswered_requests_are_limited(fake: Fake) -> None:
    """A real server takes at most 256 unanswered requests."""
    server = fake(
        "import os, select\n"
        "asked, buffer, most = [], b'', 0\n"
        "while len(asked) < 1000:\n"
        "    while select.select([0], [], [], 0.2 if len(asked) < 1000 else 0)[0]:\n"
        "        data = os.read(0, 1 << 16)\n"
        "        if not data: sys.exit()\n"
        "        buffer += data\n"
        "    *lines, buffer = buffer.split(b'\\n')\n"
        "    most = max(most, len(lines))\n"
        "    for line in lines:\n"
        "        asked.append(json.loads(line)['id']); say({'id': asked[-1], 'result': most})\n"
    )
    futures = [server.submit("x", {}) for _ in range(1000)]
    assert max(f.result(60) for f in futures) <= 256


def test_requests_that_cannot_be_sent_fail_at_once(fake: Fake) -> None:
    server = fake("echo_forever()")
    with pytest.raises(LimitError, match="1048576"):
        ask(server, "x", text="y" * (1 << 20))
    with pytest.raises(UsageError, match="surrogate"):
        ask(server, "x", text="\ud800")
    nested: Any = 1
    for _ in range(63):
        nested = [nested]
    for wrong, why in (
        ({"a": [float("nan")]}, "JSON has no number nan"), (2**53, "past 2\\^53 - 1"), ({1: 2}, "1 must be text"), (nested, "more than 64"),
    ):
        with pytest.raises(UsageError, match=why):
            ask(server, "x", wrong=wrong)
    deepest = {"n": nested[0], "i": -(2**53) + 1}
    assert ask(server, "fine", **deepest)["params"] == deepest
    assert ask(server, "fine", text="ä")["params"] == {"text": "ä"}


def test_writers_do_not_mix(fake: Fake) -> None:
    server = fake("echo_forever()")
    text, wrong = "z" * 300_000, []

    def write(number: int) -> None:
        if ask(server, "x", n=number, text=text)["params"] != {"n": number, "text": text}:
            wrong.append(number)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(20)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert not wrong


# --- calls of tools ---


def handlers(server: Server, *tools: Tool) -> None:
    for each in tools:
        Tools.of(server).put("s", each)
        server._start().want(1)  # a reply to tools.register does the same


def test_tools_are_called_side_by_side(fake: Fake) -> None:
    server = fake(
        "answer(0)\n"
        "for n in range(3): call('meet', {'n': n}, f't{n}')\n"
        "said = sorted((value() for _ in range(3)), key=lambda m: m['id'])\n"
        "asked = request(); say({'id': asked['id'], 'result': said}); hear()"
    )
    together = threading.Barrier(3)

    def meet(payload: object) -> object:
        together.wait(60)
        return payload

    handlers(server, Tool("meet", "", {}, meet))
    ask(server, "start")
    until_answered = ask(server, "x")
    assert [m["result"]["value"]["n"] for m in until_answered] == [0, 1, 2]


def test_exceptions_of_a_tool_become_errors(fake: Fake) -> None:
    server = fake(
        "answer(0); said = []\n"
        "for n, name in enumerate(('raises', 'denies', 'unknown', 'odd', 'huge')):\n"
        "    call(name, {'x': 1}, f't{n}'); said.append(value())\n"
        "asked = request(); say({'id': asked['id'], 'result': said}); hear()"
    )

    def raises(payload: object) -> None:
        raise KeyError("key")

    def denies(payload: object) -> None:
        raise ToolError("not you", "permission_error")

    handlers(
        server, Tool("raises", "", {}, raises), Tool("denies", "", {}, denies),
        Tool("odd", "", {}, lambda _: object()), Tool("huge", "", {}, lambda _: "x" * (100 << 20)),
    )
    ask(server, "start")
    errors = [m["error"] for m in ask(server, "x")]
    assert [e["data"]["type"] for e in errors] == [
        "internal_error", "permission_error", "permission_error", "internal_error", "internal_error",
    ]
    assert errors[0]["message"] == "KeyError: 'key'" and errors[1]["message"] == "not you"
    assert "be converted to JSON" in errors[3]["message"] and "1048576" in errors[4]["message"]


def test_a_coroutine_is_cancelled(fake: Fake) -> None:
    server = fake(
        "answer(0); call('slow', {}, 't1'); request()\n"
        "say({'method': 'tool.cancel', 'params': {'call': 'ct1', 'session': 's'}}); hear()"
    )
    running, ended = threading.Event(), threading.Event()

    async def slow(_: object) -> None:
        running.set()
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()

    handlers(server, Tool("slow", "", {}, slow))
    ask(server, "start")
    assert running.wait(60)
    server.submit("it runs", {})
    assert ended.wait(60)


def test_a_cancelled_call_s_answer_is_dropped(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_pool", tools.Pool("holt tool"))
    server = fake(
        "answer(0); call('slow', {}, 't1'); request()\n"
        "say({'method': 'tool.cancel', 'params': {'call': 'ct1', 'session': 's'}})\n"
        "call('quick', {}, 't2'); said = value()\n"
        "asked = request(); say({'id': asked['id'], 'result': said})\n"
        "asked = request(); say({'id': asked['id'], 'result': waiting}); hear()"
    )
    running, go_on = threading.Event(), threading.Event()

    def slow(_: object) -> str:
        running.set()
        go_on.wait(60)
        return "late"

    handlers(server, Tool("slow", "", {}, slow), Tool("quick", "", {}, lambda _: "in time"))
    ask(server, "start")
    assert running.wait(60)
    server.submit("it runs", {})
    assert ask(server, "x")["result"]["value"] == "in time"
    go_on.set()
    pool = tools._pool
    until(lambda: pool._idle == pool._threads, "the handlers are through, and have answered if they do")
    assert ask(server, "what else came?") == []
