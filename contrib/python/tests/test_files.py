# SPDX-License-Identifier: Apache-2.0
"""Sandbox.files and Sandbox.mount."""

from __future__ import annotations

import asyncio
import functools
import http.server
import io
import os
import pickle
import resource
import threading
from pathlib import Path, PurePosixPath
from typing import Iterator

import pytest
from conftest import until

from holt import AsyncSandbox, CommandFailed, ExistsError, HoltError, LimitError, MissingError, RemoteFile, Sandbox, UsageError

LARGE = os.urandom(1_500_000)


def test_text_bytes_and_large_files(box: Sandbox) -> None:
    box.files.write("a/b/text", "grün\n")
    assert box.files.read("a/b/text") == "grün\n" and box.bash("cat a/b/text").stdout == "grün\n"
    assert box.files.append("a/b/text", b"more") == 4 and box.files.read("/workspace/a/b/text") == "grün\nmore"
    assert box.files.write("large", LARGE, mode=0o640) == len(LARGE)
    assert box.files.read_bytes("large") == LARGE and box.files.stat("large").mode == 0o640
    box.files.write("large", LARGE[::-1])
    assert box.files.read_bytes("large") == LARGE[::-1] and box.files.stat("large").mode == 0o640
    assert [f.name for f in box.files.list(".")] == ["a", "large"]
    with pytest.raises(UnicodeDecodeError):
        box.files.read("large")
    box.files.append("many", LARGE)
    assert box.files.read_bytes("many") == LARGE


def test_a_large_file_that_can_t_be_written_leaves_nothing(box: Sandbox) -> None:
    box.files.mkdir("d/x")
    with pytest.raises(HoltError):
        box.files.write("d/x", LARGE)
    until(lambda: [f.name for f in box.files.list("d")] == ["x"], "nothing but what was there")


def test_directories(box: Sandbox) -> None:
    for number in range(1200):
        box.files.write(f"d/{number:04}", "")
    assert len(box.files.list("d")) == 1200
    box.files.copy("d", "e", recursive=True)
    box.files.move("e", "f")
    assert box.files.exists("f/0001") and not box.files.exists("e")
    with pytest.raises(ExistsError):
        box.files.move("f/0001", "f/0002")
    box.files.remove("d", recursive=True)
    with pytest.raises(MissingError) as missing:
        box.files.stat("d")
    assert missing.value.errno == "ENOENT"
    box.files.write(PurePosixPath("f/p"), "1")
    assert box.files.read(PurePosixPath("f") / "p") == "1" and box.files.stat(PurePosixPath("f/p")).name == "f/p"
    box.bash("ln -s f link")
    assert box.files.stat("link", follow=False).target == "f" and box.files.stat("link").type == "directory"


def test_finding(box: Sandbox) -> None:
    box.files.write("src/a.py", "import os\nprint(1)\n")
    box.files.write("src/b/c.py", "print(2)\n")
    assert [f.name for f in box.files.glob("**/*.py")] == ["src/a.py", "src/b/c.py"]
    found = box.files.grep("PRINT", ignore_case=True, glob="*.py")
    assert [(m.name, m.line, m.text) for m in found] == [("src/a.py", 2, "print(1)"), ("src/b/c.py", 1, "print(2)")]


# --- /mnt/files ---


@pytest.fixture
def site(place: Path) -> "object":
    """A web server on the loopback interface."""
    (place / "page file.txt").write_text("from the web")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(place))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_upload_of_a_url_obeys_the_network_of_the_session(site: str) -> None:
    port = site.rpartition(":")[2]
    with Sandbox(policy={"network": {"mode": "allow", "import": [port]}}) as box:
        assert box.mount.upload(site + "/page%20file.txt").mount_relative_path == "page file.txt"
        assert box.mount.download("page file.txt").text() == "from the web"
        assert box.mount.upload(site + "/page%20file.txt", "a/b").path == "/mnt/files/a/b"
        for missing in (site + "/missing", "https://other.example/x"):
            with pytest.raises(CommandFailed, match="cannot fetch"):
                box.mount.upload(missing, "a/b")
        assert box.mount.download("a/b").text() == "from the web"
        assert [item.mount_relative_path for item in box.mount.list()] == ["a/b", "page file.txt"]


def test_uploads_of_every_kind(box: Sandbox, place: Path) -> None:
    path = place / "local.csv"
    path.write_bytes(LARGE)
    up = box.mount.upload
    assert up(str(path)).mount_relative_path == "local.csv"
    assert up(path, "deep/er/copy.csv").path == "/mnt/files/deep/er/copy.csv"
    with open(path, "rb") as stream:
        assert up(stream).mount_relative_path == "local.csv"
    up(b"bytes", "/lead.bin")
    for content in (b"text", LARGE):
        file = up(io.BytesIO(content), "d/f")
        assert file.content is None and file.buffer() == content
        assert pickle.loads(pickle.dumps(file)) == file
    assert up(b"text", "d/f").text() == "text" and up(b"text", "d/f").save(place / "f").read_text() == "text"
    box.mount.delete("d")
    up(io.BytesIO(b"stream"), "stream")
    assert up(path.as_uri(), "by-file-url").mount_relative_path == "by-file-url"
    down = box.mount.download
    assert down("deep/er/copy.csv").buffer() == down("/local.csv").buffer() == LARGE
    assert down("by-file-url").buffer() == LARGE
    assert box.bash("cat /mnt/files/lead.bin /mnt/files/stream").stdout == "bytesstream"
    for content in (b"text", LARGE):
        assert up(content, "/mnt/files/as/inside").mount_relative_path == "as/inside"
        assert down("/mnt/files/as/inside").mount_relative_path == "as/inside"
        assert down("as/inside").buffer() == content
    assert [i.mount_relative_path for i in box.mount.list("/mnt/files/as").items] == ["as/inside"]
    assert box.mount.delete("/mnt/files/as").mount_relative_path == "as"
    with pytest.raises(UsageError, match="name"):
        up(b"bytes")
    with pytest.raises(UsageError, match="mount"):
        up(b"bytes", "x", mount_id="other")
    with pytest.raises(UsageError, match="rb"):
        up(io.StringIO("text"), "x")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        up(place / "none")


def test_a_listing_is_a_sequence_of_its_items(box: Sandbox) -> None:
    for name in ("a", "b", "c"):
        box.mount.upload(b"data", name)
    page = box.mount.list(limit=2)
    assert [item.mount_relative_path for item in page] == ["a", "b"] and len(page) == 2 and page[-1] in page
    assert list(page) == page[:] == page.items and page.next_cursor and not box.mount.list("none")
    box.add_tool(box.mount.list)
    assert box.python("from host_tools import call; len(call('list', {})['items'])").check().result == "3"


def test_listing_page_by_page(box: Sandbox) -> None:
    for number in range(12):
        box.mount.upload(b"x" * number, f"d/{number:02}.txt")
    box.mount.upload(b"", "other")
    names, cursor, pages = [], None, 0
    while True:
        page = box.mount.list("/d/", cursor, limit=5)
        names += [item.mount_relative_path for item in page.items]
        pages, cursor = pages + 1, page.next_cursor
        if cursor is None:
            break
    assert names == [f"d/{n:02}.txt" for n in range(12)] and pages == 3
    item = box.mount.list().items[3]
    assert (item.size, item.sandbox_mount_prefix, item.path) == (3, "/mnt/files", "/mnt/files/d/03.txt")
    assert item.last_modified


def test_downloaded_files_can_be_saved(box: Sandbox, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    box.bash("mkdir /mnt/files/d; echo made inside > /mnt/files/d/out.txt")
    file = box.mount.download("d/out.txt")
    assert file.save() == Path("out.txt") and Path("out.txt").read_text() == file.text() == "made inside\n"
    assert file.save(place / "new" / "name").read_bytes() == file.buffer()
    with pytest.raises(UsageError, match="download"):
        RemoteFile("x", "/mnt/files").text()
    assert box.mount.delete("/d").mount_relative_path == "d"
    with pytest.raises(MissingError):
        box.mount.download("d/out.txt")


@pytest.fixture
def planted(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """The program runs in the workspace, in which a command has made symlinks to the program's files, and a FIFO."""
    workspace, own = place / "workspace", place / "own"
    for directory in (workspace, own):
        directory.mkdir()
    (own / "rc").write_text("secret")
    (own / "to-workspace").symlink_to(workspace)
    monkeypatch.chdir(workspace)
    with Sandbox(workspace=workspace) as box:
        box.bash(
            f"ln -s {own}/rc r; ln -s {own} d; ln -s {own}/new dangling; mkdir dir; ln -s {own}/rc dir/r; mkfifo fifo;"
            " for f in r dangling fifo rc; do echo evil > /mnt/files/$f; done"
        ).check()
        yield box
    assert {p.name: p.read_text() for p in own.iterdir() if p.is_file()} == {"rc": "secret"}


def test_saving_follows_no_link_of_the_session(planted: Sandbox, place: Path) -> None:
    file = planted.mount.download("r")
    for target in (None, "d", "dir", "d/new", "d/deep/new", "dir/r", place / "workspace" / "r", "../own/to-workspace/r"):
        with pytest.raises(UsageError, match="is a symlink in a directory that the session can write"):
            file.save(target)
    with pytest.raises(UsageError):
        planted.mount.download("dangling").save()
    assert planted.mount.download("fifo").save().read_text() == "evil\n"  # and does not block
    assert file.save("dir/more/x").read_text() == "evil\n" and file.save("dir/more") == Path("dir/more/r")
    assert file.save(place / "own" / "to-workspace" / "y") and Path("y").read_text() == "evil\n"


def test_no_link_is_followed_in_a_workspace_that_was_renamed(planted: Sandbox, place: Path) -> None:
    """Another sandbox can rename the workspace, for example. The program's working directory moves with it."""
    (place / "workspace").rename(place / "moved")
    for target in (None, "d/new", place / "moved" / "d" / "new"):
        with pytest.raises(UsageError, match="is a symlink in a directory that the session can write"):
            planted.mount.download("r").save(target)
    with pytest.raises(UsageError, match="is a symlink in a directory that the session can write"):
        planted.mount.upload("d/rc")


def test_uploading_follows_no_link_of_the_session(planted: Sandbox, place: Path) -> None:
    for source in ("r", "d/rc", Path("dir/r"), (Path.cwd() / "r").as_uri()):
        with pytest.raises(UsageError, match="is a symlink in a directory that the session can write"):
            planted.mount.upload(source)
    with pytest.raises(UsageError, match="not a regular file"):
        planted.mount.upload("fifo")
    Path("plain").write_text("fine")
    for source in ("plain", place / "own" / "to-workspace" / "plain", Path("plain").absolute().as_uri()):
        planted.mount.upload(source)
    assert planted.bash("cat /mnt/files/plain").stdout == "fine"
    with pytest.raises(FileNotFoundError, match="'none/at/all'$"):
        planted.mount.upload("none/at/all")


def test_a_link_of_the_host_s_leads_to_no_link_of_the_session_s(planted: Sandbox, place: Path) -> None:
    links = place / "links"
    links.mkdir()
    (links / "file").symlink_to("../workspace/r")
    (links / "below").symlink_to("../workspace/d")
    (links / "by").symlink_to("file")
    (links / "new").symlink_to("../own/to-workspace/dangling")
    (links / "plain").symlink_to("../own/to-workspace/dir/../plain")
    (links / "loop").symlink_to("loop")
    file = planted.mount.download("r")
    for path in ("file", "by", "below/rc", "new"):
        with pytest.raises(UsageError, match="is a symlink in a directory that the session can write"):
            planted.mount.upload(links / path)
        with pytest.raises(UsageError, match="is a symlink in a directory that the session can write"):
            file.save(links / path)
    Path("plain").write_text("fine")
    planted.mount.upload(links / "plain")
    assert planted.bash("cat /mnt/files/plain").stdout == "fine"
    with pytest.raises(OSError, match="Too many levels"):
        planted.mount.upload(links / "loop")


def test_links_of_proc_lead_where_the_kernel_says(box: Sandbox, place: Path) -> None:
    (place / "file").write_text("fine")
    with (place / "file").open() as file:
        box.mount.upload(f"/dev/fd/{file.fileno()}", "a")
        box.mount.upload(f"/proc/self/fd/{file.fileno()}", "b")
    assert box.bash("cat /mnt/files/a /mnt/files/b").stdout == "finefine"


def test_objects_that_are_no_files_are_not_uploaded(box: Sandbox) -> None:
    for wrong in (5, None, ["a"]):
        with pytest.raises(UsageError, match="a path, bytes, a file object or a URL"):
            box.mount.upload(wrong, "x")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="surrogate"):
        box.files.write("x", "\ud800")


def test_large_files_go_as_fds(box: Sandbox, tmp_path: Path) -> None:
    data = os.urandom(50_000_000)
    (tmp_path / "large").write_bytes(data)
    asked = []
    ask = box._server.ask
    box._server.ask = lambda session, method, *more, **named: (  # type: ignore
        asked.append(method) or ask(session, method, *more, **named)
    )
    box.mount.upload(tmp_path / "large")
    assert box.mount.download("large").save(tmp_path / "back").read_bytes() == data
    assert box.files.write("d/large", data, mode=0o600) == len(data) and box.files.stat("d/large").mode == 0o600
    assert box.files.read_bytes("d/large") == data
    box.mount.upload(data, "bytes")
    assert box.mount.upload("/proc/self/status").text().startswith("Name:")
    assert box.bash("cmp /mnt/files/bytes d/large && cmp /mnt/files/large d/large").ok
    assert len(asked) < 30, asked


def test_many_large_files_at_once(box: Sandbox) -> None:
    before = set(os.listdir("/proc/self/fd"))

    async def main() -> None:
        async with AsyncSandbox() as box:
            names = [f"f{number}" for number in range(400)]
            await asyncio.gather(*(box.files.write(name, name.encode() * 200_000) for name in names))
            back = await asyncio.gather(*(box.files.read_bytes(name) for name in names))
            assert [each[:4] for each in back] == [(name * 4)[:4].encode() for name in names]
            assert all(len(each) == len(name) * 200_000 for each, name in zip(back, names))
            with pytest.raises(MissingError):
                await box.files.read_bytes("none")

    asyncio.run(main())
    until(lambda: set(os.listdir("/proc/self/fd")) <= before, "no fd is left")


def test_a_program_that_has_no_fd_left(box: Sandbox) -> None:
    box.files.write("f", LARGE)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, limit[1]))
    taken = []
    try:
        with pytest.raises(OSError, match="Too many"):
            while True:
                taken.append(os.dup(0))
        with pytest.raises(LimitError, match="EMFILE"):
            box.files.read_bytes("f")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        for fd in taken:
            os.close(fd)
    assert box.files.read_bytes("f") == LARGE
