# SPDX-License-Identifier: Apache-2.0
"""await at the top of code, and the event loop behind it."""

from __future__ import annotations

import pytest

from lib.python import run, value
from lib.sessions import Bound, Sessions


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


def test_who_is_interrupted_while_it_waits_does_not_go_on(rpc: Bound) -> None:
    run(rpc, "import asyncio\nended = []\nasync def wait():\n    try: await asyncio.sleep(0.5)\n    finally: ended.append(1)\n    ended.append(2)\nawait asyncio.sleep(0)")
    result = run(rpc, "await wait()\nended.append(3)", timeout_ms=100)

    assert (result["cause"], result["state_kept"], result["error"]["name"]) == ("timeout", True, "KeyboardInterrupt")
    assert 'File "<python 2>", line 1, in <module>\n    await wait()' in result["error"]["traceback"]
    assert "base_events" not in result["error"]["traceback"]
    assert value(rpc, "await asyncio.sleep(0.6); ended") == "[1]"


def test_who_keeps_waiting_is_killed(sessions: Sessions) -> None:
    rpc = Bound(sessions.create("w", "--kill-after", "100ms").rpc(), {})
    run(rpc, "import asyncio\nawait asyncio.sleep(0)")
    code = "while True:\n  try: await asyncio.sleep(100)\n  except asyncio.CancelledError: pass"

    assert run(rpc, code, timeout_ms=100)["state_kept"] is False
    assert value(rpc, "1") == "1"
