# SPDX-License-Identifier: Apache-2.0
"""Uploads and downloads of whole directories."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from pathlib import Path

import pytest
from conftest import until

from holt import AsyncSandbox, ExistsError, LimitError, Sandbox, UsageError
from holt._face import in_thread
from holt._trees import link_stays


@pytest.fixture
def tree(place: Path) -> Path:
    top = place / "project"
    (top / "a" / "empty").mkdir(parents=True)
    (top / "a" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (top / "a" / "run.sh").chmod(0o755)
    (top / "large").write_bytes(b"x" * 3_000_000)
    (top / os.fsdecode(b"odd-\xff")).write_text("odd")
    (place / "secret").write_text("secret")
    for name, target in (("in", "a/run.sh"), ("a/up", "../large"), ("dir", "a"), ("dangling", "none")):
        (top / name).symlink_to(target)
    for name, target in (("out", "../secret"), ("absolute", str(place / "secret")), ("a/climbs", "empty/../../../secret")):
        (top / name).symlink_to(target)
    os.mkfifo(top / "fifo")
    return top


OUT = {"out", "absolute", "a/climbs", "fifo"}


def test_a_directory_goes_in_and_out(box: Sandbox, tree: Path, place: Path) -> None:
    done = box.files.upload(tree)
    assert (done.path, set(done.left_out), done.entries) == ("project", OUT, 9)
    assert box.bash("project/in && cat project/dir/up | wc -c && ls -A . && readlink project/dangling").stdout == (
        "ran\n3000000\nproject\nnone\n"
    )
    assert box.files.stat("project/a/empty").type == "directory" and box.files.read(b"project/odd-\xff") == "odd"  # type: ignore[arg-type]
    box.bash("cd project; ln -s /etc/passwd passwd; ln -s ../../x a/x; mkfifo pipe")
    back = box.files.download("project", place / "back")
    assert set(back.left_out) == {"passwd", "a/x", "pipe"} and back.path == str(place / "back")
    assert os.readlink(place / "back" / "a" / "up") == "../large" and (place / "back" / "dir" / "up").stat().st_size == 3_000_000
    assert stat.S_IMODE((place / "back" / "a" / "run.sh").stat().st_mode) & 0o700 == 0o700
    assert not [each for each in os.listdir(place) if each.startswith(".holt-")]
    assert sorted(os.listdir(place / "back")) == sorted(
        ["a", "dangling", "dir", "in", "large", os.fsdecode(b"odd-\xff")]
    )


def test_existing_directories_are_not_replaced(box: Sandbox, tree: Path, place: Path) -> None:
    box.files.upload(tree, "deep/er/copy/")
    assert box.files.exists("deep/er/copy/large")
    with pytest.raises(ExistsError, match="upload.. does not merge"):
        box.files.upload(tree, "deep/er/copy")
    (place / "there").mkdir()
    with pytest.raises(ExistsError, match="download.. does not merge"):
        box.files.download("deep/er/copy", place / "there")
    assert [each.name for each in box.files.list("deep/er")] == ["copy"]


def test_files_go_the_same_way(box: Sandbox, tree: Path, place: Path) -> None:
    assert box.files.upload(tree / "a" / "run.sh").entries == 1 and box.bash("./run.sh").stdout == "ran\n"
    assert box.files.download("run.sh", place / "copy.sh").path == str(place / "copy.sh")
    assert (place / "copy.sh").read_text().startswith("#!/bin/sh")
    with pytest.raises(FileNotFoundError):
        box.files.upload(place / "none")


def test_links_of_a_workspace_are_not_followed(place: Path) -> None:
    """A command inside makes links where the host reads and writes."""
    (place / "ws").mkdir()
    (place / "secret").mkdir()
    (place / "secret" / "key").write_text("key")
    with Sandbox(workspace=place / "ws") as box:
        box.bash(f"ln -s {place}/secret link; mkdir real; ln -s {place}/secret real/link; ln -s {place} up")
        with pytest.raises(UsageError, match="symlink"):
            box.files.upload(place / "ws" / "link", "copy")
        assert box.files.upload(place / "ws" / "real", "copy").left_out == ("link",)
        box.bash("mkdir fresh; echo hi > fresh/f")
        with pytest.raises(UsageError, match="symlink"):
            box.files.download("fresh", place / "ws" / "up" / "planted")
        assert sorted(os.listdir(place)) == ["data", "secret", "ws"]
        with pytest.raises(UsageError, match="into itself"):
            box.files.upload(place / "ws", "inner")
        until(lambda: not any(each.name.startswith(".holt-") for each in box.files.list()), "the rest is removed")


def test_limits(box: Sandbox, place: Path) -> None:
    box.bash("mkdir many; touch many/{1..20}")
    with pytest.raises(LimitError):
        box.files.download("many", place / "many", limit=10)
    assert not (place / "many").exists()


async def _async(tree: Path, place: Path) -> None:
    async with AsyncSandbox() as box:
        assert (await box.files.upload(tree)).entries == 9
        assert (await box.files.download("project", place / "back")).entries == 9
        task = asyncio.ensure_future(box.files.upload(tree, "second"))
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])
        names = {each.name for each in await box.files.list() if not each.name.startswith(".holt-")}
        assert names <= {"project", "second"}


def test_a_directory_goes_in_and_out_with_asyncio(tree: Path, place: Path) -> None:
    asyncio.run(_async(tree, place))


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_cancelled_call_leaves_no_error_in_its_thread() -> None:
    go_on = threading.Event()

    async def cancel() -> None:
        call = asyncio.wrap_future(in_thread(go_on.wait))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.sleep(0.05)
        go_on.set()
        await asyncio.sleep(0.05)

    asyncio.run(cancel())


def test_links_that_stay() -> None:
    for path, target, stays in (
        ("a", "b", True), ("a/b", "../c", True), ("a", "../b", False), ("a/b", "c/../../d", False), ("a", "/b", False),
        ("a/b/c", "../../x/y", True), ("a", ".", True), ("a", "", False), ("a/b", "../../x", False),
    ):
        assert link_stays(path, target) is stays, (path, target)
