# SPDX-License-Identifier: Apache-2.0
"""await at the top of code, and the event loop behind it."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from lib.python import pending, run, value
from lib.sessions import Bound, Json, Session, Sessions, until

pytestmark = pytest.mark.alike


@pytest.mark.alike
@pytest.mark.parametrize("code, result", (
    ("t = asyncio.create_task(f(1))\nawait t", "1"), ("a, b = asyncio.create_task(f(1)), f(2)\nawait a + await b", "3"),
    ("async with asyncio.timeout(100):\n    x = await f(5)\nx", "5"), ("async for i in g(): pass\ni", "2"),
    ("await asyncio.gather(*map(f, range(3)))", "[0, 1, 2]"), ("asyncio.run(f(4))", "4"), ("[i async for i in g()]", "[0, 1, 2]"),
    ("q = asyncio.Queue(); await q.put(1)\nlater = asyncio.create_task(q.get())\n0", "0"), ("asyncio.get_running_loop().is_running() if await f(1) else 0", "True"),
))
def test_await_at_the_top(code: str, result: str, rpc: Bound) -> None:
    run(rpc, "import asyncio\nasync def f(n):\n    await asyncio.sleep(0.001)\n    return n\nasync def g():\n    for i in range(3): yield await f(i)")

    assert value(rpc, code) == result
    if "later" in code:
        assert value(rpc, "await later") == "1"


def test_an_interrupt_ends_a_coroutine_that_waits(rpc: Bound) -> None:
    wait = "async def wait():\n    asyncio.get_running_loop().call_soon(lambda: open('/tmp/on', 'w').close())\n    try: await asyncio.sleep(0.5)\n    finally: ended.append(1)\n    ended.append(2)"
    run(rpc, f"import asyncio\nended = []\n{wait}\nawait asyncio.sleep(0)")
    number = rpc.send("python.run", code="await wait()\nended.append(3)")
    until(lambda: rpc.call("files.exists", path="/tmp/on")["exists"], "it waits")
    rpc.call("python.interrupt")
    result = rpc.result(number)

    assert (result["cause"], result["error"]["name"]) == ("exited", "KeyboardInterrupt")
    assert 'File "<python 2>", line 1, in <module>\n    await wait()' in result["error"]["traceback"]
    assert "base_events" not in result["error"]["traceback"]
    assert value(rpc, "await asyncio.sleep(0.6); ended") == "[1]"


def interrupted_before_it_begins(session: Session, rpc: Bound, code: str) -> Json:
    """Starts a run whose time passes while the interpreter stands still, as on a busy host."""
    (interpreter,) = session.processes("python3")
    os.kill(interpreter.pid, signal.SIGSTOP)
    number = rpc.send("python.run", code=code, timeout_ms=100)
    until(lambda: pending(interpreter.pid, signal.SIGINT), "it has been interrupted")
    os.kill(interpreter.pid, signal.SIGCONT)
    return rpc.result(number)


@pytest.mark.parametrize("loop", (False, True))
def test_a_run_interrupted_before_its_start_does_not_run(loop: bool, session: Session) -> None:
    with session.rpc() as client:
        rpc = Bound(client, {})
        run(rpc, "x = 1" + "\nimport asyncio\nawait asyncio.sleep(0)" * loop)
        result = interrupted_before_it_begins(session, rpc, "x = 2")

        assert (result["cause"], result["state_kept"], result["error"]["name"]) == ("timeout", True, "KeyboardInterrupt")
        assert value(rpc, "x") == "1"
        assert value(rpc, "import time; time.sleep(0.2); 5") == "5"  # the next run is not interrupted


def test_a_run_interrupted_before_its_start_does_not_delay_the_next(session: Session) -> None:
    """The interrupt has no further effect."""
    took = []
    with session.rpc() as client:
        rpc = Bound(client, {})
        run(rpc, "1")
        for _ in range(3):
            for _ in range(2):
                assert interrupted_before_it_begins(session, rpc, "2")["error"]["name"] == "KeyboardInterrupt"
            took.append(run(rpc, "3")["usage"]["wall_us"])
    assert min(took) < 1_000_000


def test_an_interrupt_that_comes_with_its_run_is_not_lost(session: Session) -> None:
    """The requests come in one piece, with work that delays the keeper before it passes the code on."""
    calls = (
        ("run", "python.run", {"code": "time.sleep(0.3)", "run": "r"}), ("stop", "python.interrupt", {"run": "r"}),
        ("list", "files.list", {"path": "/usr/lib"}),
    )
    lines = [json.dumps({"jsonrpc": "2.0", "id": i, "method": m, "params": p}).encode() + b"\n" for i, m, p in calls]
    with session.rpc() as client:
        run(Bound(client, {}), "import time")
        for _ in range(20):
            client.raw(b"".join(lines))
            assert client.result("stop") == {"interrupted": True} and client.result("list")
            error = client.result("run")["error"]
            assert error and error["name"] == "KeyboardInterrupt"


def test_code_that_interrupts_itself_interrupts_no_later_run(rpc: Bound) -> None:
    run(rpc, "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt: pass")
    assert run(rpc, "while True: pass", timeout_ms=100)["cause"] == "timeout"
    assert value(rpc, "5") == "5"


def test_an_interrupt_that_comes_too_late_is_not_the_next_run_s(session: Session) -> None:
    """The interrupt goes through init, which is delayed until the run has ended."""
    with session.rpc() as client:
        rpc, init = Bound(client, {}), session.init()
        until_go = "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.001)"
        first = rpc.send("python.run", code=f"open('/tmp/on', 'w').close()\n{until_go}")
        until(lambda: rpc.call("files.exists", path="/tmp/on")["exists"], "it runs")
        os.kill(init, signal.SIGSTOP)
        try:
            rpc.call("python.interrupt")
            rpc.call("files.write", path="/tmp/go", content="")
            assert rpc.result(first)["error"] is None
            second = rpc.send("python.run", code="time.sleep(0.5); 5")
            time.sleep(0.1)
        finally:
            os.kill(init, signal.SIGCONT)
        assert rpc.result(second)["result"] == "5"
        assert value(rpc, "6") == "6"


def test_code_that_ignores_cancellation_is_killed(sessions: Sessions) -> None:
    rpc = Bound(sessions.create("w", "--kill-after", "100ms").rpc(), {})
    run(rpc, "import asyncio\nawait asyncio.sleep(0)")
    code = "while True:\n  try: await asyncio.sleep(100)\n  except asyncio.CancelledError: pass"

    assert run(rpc, code, timeout_ms=100)["state_kept"] is False
    assert value(rpc, "1") == "1"


# --- tasks that a run leaves in the loop ---


LATER = """import asyncio, os
done = []
async def later(n=1):
    while not os.path.exists("/tmp/go"): await asyncio.sleep(0.001)
    done.append(n)
    open(f"/tmp/done{n}", "w").close()
"""


@pytest.mark.parametrize("code", (
    "task = asyncio.create_task(later()); await asyncio.sleep(0)", "task = asyncio.create_task(later())",
    "tasks = [asyncio.ensure_future(later(n)) for n in range(2)]", "await asyncio.sleep(0)\nasyncio.get_event_loop().call_soon(lambda: asyncio.ensure_future(later()));",
))
def test_a_task_goes_on_between_runs(code: str, rpc: Bound) -> None:
    """The task continues as in a notebook, without any request."""
    result = run(rpc, LATER + code)
    assert (result["error"], result["stderr"]) == (None, "")
    rpc.call("files.write", path="/tmp/go", content="")
    until(lambda: rpc.call("files.exists", path="/tmp/done1")["exists"], "it has ended")

    assert value(rpc, "sorted(done)[-1]") == "1"


def test_a_task_does_not_go_on_below_code_that_does_not_wait(rpc: Bound) -> None:
    run(rpc, LATER + "task = asyncio.create_task(later())")
    assert value(rpc, "open('/tmp/go', 'w').close()\nimport time\ntime.sleep(0.05)\ndone") == "[]"
    assert value(rpc, "await task\ndone") == "[1]"


def test_a_loop_of_the_code_s_own_is_its_own(rpc: Bound) -> None:
    """If code runs its own loop, its tasks belong to that loop."""
    run(rpc, "import asyncio\nasync def f(): return 5")
    own = "loop = asyncio.new_event_loop()\nt = loop.create_task(f())\nloop.run_until_complete(t)"
    assert value(rpc, own) == "5"
    assert value(rpc, "async def g(): return await asyncio.create_task(f())\nasyncio.run(g())") == "5"


def test_a_task_that_holds_the_loop_is_interrupted(rpc: Bound) -> None:
    """The timeout of a waiting run interrupts the task, and that run does not start."""
    hold = "import asyncio, os\nasync def hold():\n    await asyncio.sleep(0)\n    open('/tmp/on', 'w').close()\n    while True: pass\n"
    run(rpc, hold + "x = 1\ntask = asyncio.create_task(hold())")
    until(lambda: rpc.call("files.exists", path="/tmp/on")["exists"], "it holds the loop")
    result = run(rpc, "x = 2", timeout_ms=200)

    assert (result["cause"], result["state_kept"], result["exit_code"]) == ("timeout", True, 124)
    assert result["error"]["name"] == "KeyboardInterrupt" and "blocked this one" in result["error"]["message"]
    assert "in hold\n" in result["error"]["traceback"]
    assert value(rpc, "x, task.done()") == "(1, True)"


@pytest.mark.parametrize("code", (
    "raise SystemExit(3)", "asyncio.get_running_loop().stop()", "asyncio.get_running_loop().close()", "raise ValueError('left')",
    "pid = os.fork()\n    if pid: os.waitpid(pid, 0)", "raise KeyboardInterrupt", "asyncio.get_running_loop()._selector.close()",
))
def test_a_task_that_stops_the_loop_does_not_end_the_interpreter(code: str, rpc: Bound) -> None:
    run(rpc, f"import asyncio, os\nasync def odd():\n    await asyncio.sleep(0)\n    open('/tmp/on', 'w').close()\n    {code}\nx = 1\nt = asyncio.create_task(odd())")
    until(lambda: rpc.call("files.exists", path="/tmp/on")["exists"], "it is on")
    for _ in range(3):
        result = run(rpc, "x")
        assert (result["state_kept"], result["result"]) == (True, "1"), result
