# SPDX-License-Identifier: Apache-2.0
"""Limits of the SDK for files and listings in memory, so that a sandbox cannot fill the host's memory."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import resource
from pathlib import Path
from typing import Iterator

import pytest
from conftest import until

from holt import AsyncSandbox, LimitError, MissingError, Sandbox, Tool, ToolError, UsageError
from holt.process import BUFFER_MAX, Output

MIB = 1 << 20
HUGE = 600 * MIB
SPARSE = f"truncate -s {HUGE} {{0}}; printf begin | dd of={{0}} conv=notrunc status=none"


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Limits the address space to 512 MiB more than now."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 512 * MIB, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def sparse(box: Sandbox) -> Sandbox:
    box.bash(SPARSE.format("huge") + ";" + SPARSE.format("/mnt/files/huge")).check()
    return box


def check_saved(path: Path, size: int = HUGE) -> None:
    status = path.stat()
    assert status.st_size == size and status.st_blocks * 512 < MIB
    with path.open("rb") as file:
        assert file.read(6) == b"begin\0"


def test_a_huge_file_is_not_read_into_memory(sparse: Sandbox, little_memory: None) -> None:
    for read in (
        lambda: sparse.files.read("huge"),
        lambda: sparse.files.read_bytes("huge"),
        lambda: sparse.mount.download("huge"),
    ):
        with pytest.raises(LimitError) as error:
            read()
        assert error.value.data == {"size": HUGE, "limit": 64 * MIB} and error.value.errno == "EFBIG"
        assert "max_bytes=" in str(error.value) and "stream" in str(error.value)


def test_an_upload_that_a_command_replaced_is_not_read_into_memory(
    box: Sandbox, little_memory: None, tmp_path: Path
) -> None:
    file = box.mount.upload(b"mine", "f")
    assert file.text() == "mine"
    box.bash(SPARSE.format("/mnt/files/f")).check()
    for read in (file.buffer, file.text):
        with pytest.raises(LimitError):
            read()
    assert file.save(tmp_path / "f") == tmp_path / "f"
    check_saved(tmp_path / "f")


@pytest.mark.parametrize("size", (0, 1, 1000, 384 * 1024, 384 * 1024 + 1, 2 * MIB))
def test_the_limit_is_the_last_size_that_is_read(box: Sandbox, size: int) -> None:
    data = os.urandom(size)
    box.files.write("f", data)
    box.mount.upload(data, "f")
    assert box.files.read_bytes("f", max_bytes=size) == box.files.read_bytes("f", max_bytes=None) == data
    assert box.mount.download("f", max_bytes=size).buffer() == data
    if size > 0:
        for read in (box.files.read, box.files.read_bytes, box.mount.download):
            with pytest.raises(LimitError, match=f"{size} bytes; at most {size - 1} are"):
                read("f", max_bytes=size - 1)  # type: ignore[operator]


@pytest.mark.parametrize("wrong", (-1, "1", 1.5, True))
def test_a_limit_is_a_number_of_bytes(box: Sandbox, wrong: object) -> None:
    box.files.write("f", "text")
    with pytest.raises(UsageError, match="max_bytes"):
        box.files.read("f", max_bytes=wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="chunk_size"):
        next(box.files.stream("f", wrong))  # type: ignore[arg-type]


def test_a_file_that_grows_meanwhile_is_bounded(box: Sandbox) -> None:
    """The file grows between the first reply and the read of its descriptor."""
    box.bash(f"truncate -s {MIB} f").check()
    opened = type(box.files)._opened

    def grown(self: object, *args: object) -> object:
        file = yield from opened(self, *args)  # type: ignore
        box.bash(f"truncate -s {HUGE} f").check()
        return file

    box.files._opened = grown.__get__(box.files)  # type: ignore
    with pytest.raises(LimitError, match=str(HUGE)):
        box.files.read_bytes("f", max_bytes=MIB)


def test_a_stream_takes_any_size_in_little_memory(sparse: Sandbox, little_memory: None) -> None:
    total, largest, first = 0, 0, b""
    for chunk in sparse.files.stream("huge", 4 * MIB):
        first = first or chunk[:6]
        total, largest = total + len(chunk), max(largest, len(chunk))
    assert (total, largest, first) == (HUGE, 4 * MIB, b"begin\0")
    with pytest.raises(MissingError):
        next(sparse.files.stream("none"))


def test_a_stream_that_is_left_holds_no_fd(box: Sandbox) -> None:
    box.files.write("f", os.urandom(3 * MIB))
    before = set(os.listdir("/proc/self/fd"))
    streams = [box.files.stream("f") for _ in range(40)]  # more than the limit of concurrent transfers
    assert all(len(next(stream)) == MIB for stream in streams)
    assert box.files.read_bytes("f") == b"".join(box.files.stream("f", 12345))
    for stream in streams:
        stream.close()  # type: ignore[attr-defined]
    until(lambda: set(os.listdir("/proc/self/fd")) <= before, "no fd is left")


def test_a_stream_ends_though_somebody_keeps_adding(box: Sandbox) -> None:
    box.files.write("f", b"x" * 10)
    stream = box.files.stream("f", 4)
    assert next(stream) == b"xxxx"
    box.files.append("f", b"y" * 100)
    assert b"".join(stream) == b"x" * 6


def test_saved_files_keep_their_holes(sparse: Sandbox, little_memory: None, place: Path) -> None:
    assert sparse.files.save("huge", place / "a") == place / "a"
    assert sparse.mount.save("huge", place / "b") == place / "b"
    (place / "directory").mkdir()
    assert sparse.files.save("huge", place / "directory") == place / "directory" / "huge"
    for path in ("a", "b", "directory/huge"):
        check_saved(place / path)
    sparse.files.write("odd", b"\0" * 5000 + b"x" + b"\0" * 100_000)
    (place / "odd").write_bytes(b"old" * 100_000)
    sparse.files.save("odd", place / "odd")
    assert (place / "odd").read_bytes() == sparse.files.read_bytes("odd")
    with pytest.raises(MissingError):
        sparse.files.save("none", place / "none")
    assert not (place / "none").exists()


def test_saving_follows_no_link_of_the_session(place: Path) -> None:
    workspace, secret = place / "workspace", place / "rc"
    workspace.mkdir()
    secret.write_text("mine")
    with Sandbox(workspace=workspace) as box:
        box.bash(f"echo evil >f; ln -s {secret} link; ln -s {place} d").check()
        for target in (workspace / "link", workspace / "d" / "rc"):
            with pytest.raises(UsageError, match="link"):
                box.files.save("f", target)
        box.bash("mkfifo fifo").check()
        assert box.files.save("f", workspace / "fifo").read_text() == "evil\n"
        assert not list(workspace.glob(".holt-*"))
    assert secret.read_text() == "mine"


def test_limits_and_holes_with_asyncio(place: Path, little_memory: None) -> None:
    async def main() -> None:
        async with AsyncSandbox() as box:
            (await box.bash(SPARSE.format("huge"))).check()
            with pytest.raises(LimitError):
                await box.files.read("huge")
            with pytest.raises(LimitError):
                await box.files.read_bytes("huge")
            total = 0
            async for chunk in box.files.stream("huge", 16 * MIB):
                total += len(chunk)
            assert total == HUGE
            check_saved(await box.files.save("huge", place / "saved"))
            await box.files.write("small", b"abc")
            assert [chunk async for chunk in box.files.stream("small", 2)] == [b"ab", b"c"]

    asyncio.run(main())


def test_no_model_sets_the_limits(box: Sandbox) -> None:
    for method, hidden in ((box.files.read, "max_bytes"), (box.files.list, "limit")):
        assert hidden in inspect.signature(method).parameters
        tool = Tool.of(method)
        assert hidden not in json.dumps(tool.input_schema)
        with pytest.raises(ToolError, match=hidden):
            tool.handler({"path": ".", hidden: 1 << 60})


def test_a_listing_is_bounded(box: Sandbox) -> None:
    box.bash("mkdir d; cd d; touch {1..30}").check()
    assert len(box.files.list("d", limit=30)) == 30
    with pytest.raises(LimitError, match="entries"):
        box.files.list("d", limit=29)
    with pytest.raises(UsageError):
        box.files.list("d", limit=0)


DEEP = """
import os
fd = os.open(".", os.O_RDONLY)
for name in ["e"] + ["d"] * {0}:
    os.mkdir(name, dir_fd=fd)
    fd = os.open(name, os.O_RDONLY, dir_fd=fd)
os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
"""


def test_a_listing_loses_nothing_without_a_word(box: Sandbox) -> None:
    box.exec(["python3", "-c", DEEP.format(200)]).check()
    assert box.files.list("e", recursive=True)[-1].name == "d/" * 200 + "f"
    box.exec(["python3", "-c", DEEP.format(1100)], cwd="/mnt/files").check()
    for listing in (lambda: box.files.list("/mnt/files", recursive=True), lambda: box.mount.list()):
        with pytest.raises(LimitError, match="d/d/d/d"):
            listing()
    with pytest.raises(LimitError, match="d/d/d/d"):
        box.files.copy("/mnt/files/e", "e2", recursive=True)
    assert not box.files.exists("e2")


@pytest.mark.parametrize("name", (b"caf\xe9", b"\x01mark", b"\xed\xa0\x80", b"sub\xff/\xfe"))
def test_names_of_any_bytes(box: Sandbox, place: Path, name: bytes) -> None:
    text = os.fsdecode(name)
    box.files.write(text, "old")
    box.files.append(text, b" text")
    assert box.files.read(text) == "old text" and box.files.exists(text)
    found = [f.name for f in box.files.list(recursive=True) if f.type == "file"]
    assert found == [text] == [m.name for m in box.files.grep("old")]
    assert [f.name for f in box.files.glob("**") if f.type == "file"] == [text]
    box.files.move(text, text + "2")
    assert box.files.save(text + "2", place).read_bytes() == b"old text"
    assert os.path.basename(name) + b"2" in os.listdir(os.fsencode(place))
    assert os.fsencode(box.exec(["find", ".", "-type", "f", "-print0"]).stdout_bytes.strip(b"\0./")).endswith(name + b"2")
    box.files.remove(text + "2")
    assert box.mount.upload(b"m", text).text() == "m"
    assert [item.mount_relative_path for item in box.mount.list().items] == [text]
    assert box.mount.download(text).buffer() == b"m"
    assert box.mount.delete(text).mount_relative_path == text


def test_output_of_many_small_chunks_is_bounded() -> None:
    output = Output()
    for number in range(200_000):
        output.note({"id": "p1", "seq": number + 1, "stream": "stdout", "base64": "YQ=="})
    assert len(output._chunks) * 257 <= BUFFER_MAX and output.dropped > 0
    while output._chunks:
        assert output.take()
    assert output._size == 0
