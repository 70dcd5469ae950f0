# SPDX-License-Identifier: Apache-2.0
"""Reading from a session at rest does not start it, and reading from a live one goes straight to its keeper."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Callable, Iterator

import pytest

from holt import AsyncSandbox, MissingError, Sandbox, Server, _places


@pytest.fixture
def lasting(holt: str) -> Iterator[Callable[..., Sandbox]]:
    """Makes sandboxes of one lasting session at rest, each with a server of its own."""
    made = []

    def make() -> Sandbox:
        made.append(Sandbox("lasting", server=Server(holt)))
        return made[-1]

    with make() as first:
        first.files.write("notes.txt", "text\n")
        first.files.write("/mnt/files/f", b"\xff")
        first.kv.set("k", "v")
        first.stop()
    yield make
    with make() as last:
        last.remove()
    for each in made:
        each._server.close()


def state(holt: str) -> str:
    return json.loads(subprocess.run([holt, "ls", "--json"], capture_output=True, check=True).stdout)[0]["state"]


def test_the_list_is_that_of_the_server(holt: str) -> None:
    printed = subprocess.run([holt, "serve", "--methods", "--json"], capture_output=True, check=True).stdout
    rows = json.loads(printed).items()
    assert {name for name, row in rows if row["at_rest"]} == {"session.stop", "route.add", *_places.AT_REST}


def read_all(box: Sandbox, place: Path) -> None:
    assert box.files.read("notes.txt") == "text\n" and box.files.exists("notes.txt")
    assert box.files.stat("notes.txt").size == 5 and [e.name for e in box.files.list()] == ["notes.txt"]
    assert box.files.glob("*.txt") and box.files.grep("te.t")
    box.files.save("notes.txt", place / "saved")
    assert (place / "saved").read_text() == "text\n"
    assert [item.path for item in box.mount.list()] == ["/mnt/files/f"] and box.mount.download("f").content == b"\xff"
    assert box.kv.get("k") == "v" and box.history() and box.show()
    with pytest.raises(MissingError):
        box.files.read("missing")


def test_reading_leaves_a_session_at_rest(lasting: Callable[..., Sandbox], holt: str, tmp_path: Path) -> None:
    box = lasting()
    read_all(box, tmp_path)
    assert state(holt) == "at rest" and not box._server._links
    assert box.bash("cat notes.txt").stdout == "text\n"
    assert state(holt) == "live"
    read_all(box, tmp_path)
    box.stop()
    read_all(box, tmp_path)
    assert state(holt) == "at rest"


def test_reading_of_a_live_session_goes_to_its_keeper(lasting: Callable[..., Sandbox]) -> None:
    reader, writer = lasting(), lasting()
    assert reader.kv.get("k") == "v"
    writer.bash("true")
    reader._server._rested.clear()  # in place of a second's wait
    assert reader.kv.get("k") == "v"
    connection = reader._server._links["lasting"].connection
    assert connection and connection.session == "lasting"
    writer.stop()
    assert reader.files.read("notes.txt") == "text\n"


@pytest.mark.usefixtures("lasting")
def test_a_read_and_a_command_at_once() -> None:
    async def main() -> None:
        async with AsyncSandbox("lasting") as box:
            read, run, again = await asyncio.gather(box.files.read("notes.txt"), box.bash("echo in"), box.kv.get("k"))
            assert (read, run.stdout, again) == ("text\n", "in\n", "v")

    asyncio.run(main())


def test_listing_processes_leaves_a_session_at_rest(lasting: Callable[..., Sandbox], holt: str) -> None:
    box = lasting()
    assert box.processes() == []
    with pytest.raises(MissingError, match="'p1' does not exist"):
        box.process("p1")
    assert state(holt) == "at rest"
    box.exec(["true"])
    assert [process.command for process in box.processes()] == ["true"]
