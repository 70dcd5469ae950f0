# SPDX-License-Identifier: Apache-2.0
"""Routes that come and go while a sandbox lives."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Iterator

import pytest

from holt import AsyncSandbox, ExistsError, MissingError, Route, Sandbox, Server, UsageError

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests"))

from lib.upstream import KEY, Upstream, upstream  # noqa: E402

GET = 'curl -sS -m 20 -H "authorization: Bearer $ACME_TOKEN" $ACME_URL/v1/x'
MEMBERS = {"header": {"authorization": "Bearer {env:ACME_KEY}"}, "env": {"ACME_URL": "{url}", "ACME_TOKEN": "{token}"}}


@pytest.fixture
def service() -> "Iterator[Upstream]":
    with upstream() as made:
        yield made


@pytest.fixture
def server(holt: str, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Server]":
    """A server that has the credential in its environment."""
    monkeypatch.setenv("ACME_KEY", KEY)
    with Server(holt) as made:
        yield made


def test_the_next_command_uses_a_new_route(server: Server, service: Upstream) -> None:
    with Sandbox(routes=[{"name": "first", "upstream": service.url}], server=server) as box:
        box.bash("true")
        assert box.routes.add("acme", upstream=service.url, **MEMBERS) is None
        assert '"path": "/v1/x"' in box.bash(GET).check().stdout
        assert service.seen[0]["headers"]["authorization"] == f"Bearer {KEY}"
        assert box.routes.list()[1] == Route("acme", service.url, ("ACME_URL", "ACME_TOKEN"), True)
        with pytest.raises(ExistsError, match=r"routes\.remove\(\)"):
            box.routes.add({"name": "acme", "upstream": service.url})
        box.routes.remove("acme")
        assert box.bash("env | grep ACME").stdout == ""
        with pytest.raises(MissingError, match="acme"):
            box.routes.remove("acme")


def test_a_sandbox_at_rest(server: Server, service: Upstream) -> None:
    with Sandbox("lasting", server=server) as box:
        box.bash("true")
        box.stop()
        assert box.routes.add("acme", upstream=service.url, **MEMBERS) is None
        assert [route.live for route in box.routes.list()] == [False]
        assert box.show()["state"] == "at rest"
        assert '"path": "/v1/x"' in box.bash(GET).check().stdout
        box.remove()


def test_mistakes(server: Server) -> None:
    with Sandbox(server=server) as box:
        with pytest.raises(UsageError, match="all members"):
            box.routes.add({"name": "acme"}, upstream="http://a.example")
        with pytest.raises(UsageError, match="not a known route"):
            box.routes.add("nope")
        with pytest.raises(UsageError, match="did you mean openai"):
            box.routes.add("opnai")


def test_async(server: Server, service: Upstream) -> None:
    async def main() -> None:
        async with AsyncSandbox(routes=[{"name": "first", "upstream": service.url}], server=server) as box:
            await box.bash("true")
            assert await box.routes.add("acme", upstream=service.url, **MEMBERS) is None
            assert '"path": "/v1/x"' in (await box.bash(GET)).check().stdout
            await box.routes.remove("acme")
            assert [route.name for route in await box.routes.list()] == ["first"]

    asyncio.run(main())
