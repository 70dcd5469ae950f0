# SPDX-License-Identifier: Apache-2.0
"""Signed links to files of a sandbox."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request

import pytest

from holt import AsyncSandbox, Link, MissingError, Sandbox, UsageError


def fetched(link: Link, data: "bytes | None" = None) -> bytes:
    method = "GET" if data is None else "PUT"
    request = urllib.request.Request(link.url, data=data, method=method)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return bytes(reply.read())


def test_links(box: Sandbox) -> None:
    box.files.write("/mnt/files/report.txt", "hello")
    link = box.files.link("report.txt", for_="10m")

    assert fetched(link) == b"hello" and str(link) == link.url
    assert not link.upload and link.max_size is None
    assert [each.id for each in box.files.links()] == [link.id]
    assert box.files.revoke_link(link) == 1 and box.files.links() == []
    with pytest.raises(urllib.error.HTTPError, match="410"):
        fetched(link)
    with pytest.raises(MissingError):
        box.files.revoke_link(link)


def test_an_upload(box: Sandbox) -> None:
    link = box.files.link("/mnt/files/data.bin", for_=60, upload=True, max_size=5)

    assert link.upload and link.max_size == 5
    with pytest.raises(urllib.error.HTTPError, match="413"):
        fetched(link, b"123456")
    fetched(link, b"12345")
    assert box.files.read_bytes("/mnt/files/data.bin") == b"12345"
    assert box.files.links()[0].used
    assert box.files.revoke_link() == 1


def test_mistakes(box: Sandbox) -> None:
    with pytest.raises(MissingError):
        box.files.link("none")
    with pytest.raises(UsageError):
        box.files.link("../etc/passwd")


def test_the_async_twin(holt: str) -> None:
    async def main() -> bytes:
        async with AsyncSandbox(holt=holt) as box:
            await box.files.write("/mnt/files/a", "async")
            return await asyncio.to_thread(fetched, await box.files.link("a"))

    assert asyncio.run(main()) == b"async"
