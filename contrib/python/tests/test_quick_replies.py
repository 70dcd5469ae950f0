# SPDX-License-Identifier: Apache-2.0
"""A coroutine blocks for a reply if the last one was quick, but only while nothing else in its event loop could go on."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Coroutine, List

import pytest

from holt import AsyncSandbox
from holt._connection import Connection
from holt._request import Request

Blocked = List[str]


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Blocked:
    """The methods for whose replies a coroutine has blocked. Every reply counts as quick, however slow this machine is."""
    methods: Blocked = []
    read_soon = Connection.read_soon

    def noting(connection: Connection, request: Request) -> None:
        methods.append(request.method)
        read_soon(connection, request)

    monkeypatch.setattr(Connection, "read_soon", noting)
    monkeypatch.setattr("holt._request.SOON", 10_000)
    return methods


def run(main: "Callable[[AsyncSandbox], Coroutine[Any, Any, None]]") -> None:
    async def whole() -> None:
        async with AsyncSandbox(timeout=60) as box:
            await box.kv.set("a", "b")
            await box.kv.get("a")
            await main(box)

    asyncio.run(whole())


def test_a_coroutine_that_is_alone_reads_a_quick_reply_itself(blocked: Blocked) -> None:
    async def main(box: AsyncSandbox) -> None:
        assert await box.kv.get("a") == "b"
        assert blocked == ["kv.get"]

    run(main)


def test_nobody_blocks_while_another_task_can_go_on(blocked: Blocked) -> None:
    async def main(box: AsyncSandbox) -> None:
        async def busy() -> None:
            while True:
                await asyncio.sleep(0)

        task = asyncio.ensure_future(busy())
        for _ in range(20):
            await box.kv.get("a")
        task.cancel()
        assert blocked == []

    run(main)


def test_nobody_blocks_while_another_reply_is_awaited(blocked: Blocked) -> None:
    async def main(box: AsyncSandbox) -> None:
        async with AsyncSandbox(timeout=60) as other:
            await other.python("import time")
            slow = asyncio.ensure_future(other.python("time.sleep(0.5)"))
            await asyncio.sleep(0.1)
            blocked.clear()
            for _ in range(20):
                await box.kv.get("a")
            assert not slow.done() and blocked == []
            await slow

    run(main)


def test_after_a_slow_reply_nobody_blocks(blocked: Blocked, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(box: AsyncSandbox) -> None:
        await box.python("import time")
        monkeypatch.setattr("holt._request.SOON", 1)
        for _ in range(3):
            await box.python("time.sleep(0.1)")
        assert blocked == ["python.run"]

    run(main)
