# SPDX-License-Identifier: Apache-2.0
"""Ports of a sandbox that the host opens."""

from __future__ import annotations

import asyncio
import urllib.request

import pytest
from conftest import until

from holt import AsyncSandbox, BusyError, MissingError, Sandbox, UsageError

SERVE = "echo hello > page; exec python3 -m http.server -b 127.0.0.1 3000"


def fetched(address: str) -> bytes:
    def attempt() -> bytes:
        try:
            with urllib.request.urlopen(f"http://{address}/page", timeout=60) as reply:
                return bytes(reply.read())
        except OSError:
            return b""

    return bytes(until(attempt, "a reply"))


def test_forward_a_port(box: Sandbox) -> None:
    box.spawn(SERVE)
    address = box.forward(3000)

    assert address.startswith("127.0.0.1:") and fetched(address) == b"hello\n"
    assert box.forward(3000) == address and box.ports() == {address: 3000}
    box.close_port(3000)
    assert box.ports() == {}
    with pytest.raises(MissingError, match="port 3000"):
        box.close_port(3000)


def test_mistakes(box: Sandbox) -> None:
    taken = int(box.forward(3000).rpartition(":")[2])

    with pytest.raises(BusyError) as caught:
        box.forward(3001, host_port=taken)
    assert "forward()" in str(caught.value.hint)
    with pytest.raises(UsageError):
        box.forward(3000, address="nowhere")


def test_the_async_twin(holt: str) -> None:
    async def main() -> bytes:
        async with AsyncSandbox(holt=holt) as box:
            await box.spawn(SERVE)
            address = await box.forward(3000)
            assert await box.ports() == {address: 3000}
            reply = await asyncio.to_thread(fetched, address)
            await box.close_port(3000)
            return reply

    assert asyncio.run(main()) == b"hello\n"
