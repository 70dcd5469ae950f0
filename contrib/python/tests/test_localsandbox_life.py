# SPDX-License-Identifier: Apache-2.0
"""The life of a LocalSandbox: what its constructor does, snapshots, and destroy() at any time."""

from __future__ import annotations

import asyncio
import builtins
import concurrent.futures
import gzip
import io
import json
import os
import tarfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from conftest import session_names, until

from holt.localsandbox import CommandError, FileNotFoundError, LocalSandbox, LocalSandboxError, TimeoutError, _files, _snapshot

GONE = "LocalSandbox instance has been destroyed"


# --- snapshots before the first call ---


def test_a_snapshot_has_seeds_before_the_first_call() -> None:
    with LocalSandbox(files={"a": "1", "/home/user/b": b"\xff"}) as local:
        snapshot = local.export_snapshot()
    with LocalSandbox(snapshot=snapshot) as again:
        assert again.read_file("a") == "1" and again.read_file_bytes("/home/user/b") == b"\xff"
        assert [e.name for e in again.history()] == ["read_file_bytes", "read_file", "seed"]


def test_a_snapshot_of_a_restored_sandbox_has_its_state() -> None:
    with LocalSandbox() as local:
        local.write_file("a", "1")
        local.kv.set("k", "v")
        snapshot = local.export_snapshot()
    for _ in range(2):
        with LocalSandbox(snapshot=snapshot) as again:
            snapshot = again.export_snapshot()
    with LocalSandbox(snapshot=snapshot) as last:
        assert (last.kv.get("k"), last.read_file("a")) == ("v", "1")
        assert [e.name for e in last.history()] == ["read_file", "write_file"]


def test_a_sandbox_without_anything_has_an_empty_snapshot(holt: str) -> None:
    for arguments in ({}, {"snapshot": b""}, {"files": None, "snapshot": None}):  # type: Dict[str, Any]
        with LocalSandbox(**arguments) as local:
            assert local.export_snapshot() == b"" and session_names(holt) == []
    with LocalSandbox(files={}) as local:
        assert local.export_snapshot() != b""


def test_an_async_program_gets_the_same() -> None:
    async def main() -> None:
        async with LocalSandbox(files={"a": "1"}) as local:
            snapshot = await local.aexport_snapshot()
        async with LocalSandbox(snapshot=snapshot) as again:
            assert await again.aread_file("a") == "1"

    asyncio.run(main())


def test_the_constructor_reports_what_is_wrong(holt: str) -> None:
    with pytest.raises(CommandError):
        LocalSandbox(files={"a": "1", "a/b": "2"})
    with pytest.raises(ValueError, match="not a snapshot"):
        LocalSandbox(snapshot=b"garbage")
    assert session_names(holt) == []


# --- damaged snapshots ---


def remade(snapshot: bytes, change: "Callable[[Dict[str, Any]], Any]") -> bytes:
    """Returns a snapshot whose state is changed."""
    files, state = _snapshot.unpack_snapshot(snapshot)
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, data in (("state.json", json.dumps(change(state)).encode()), ("files.tar", files)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return whole.getvalue()


@pytest.fixture(scope="module")
def state() -> bytes:
    """A snapshot in which only the state matters."""
    entry = {"id": 1, "name": "bash", "started_at": 1, "completed_at": None, "parameters": {}, "result": None}
    return _snapshot.pack_snapshot(b"", {"kv": {"k": "v"}, "history": [entry]})


@pytest.mark.parametrize("change, words", [
    (lambda s: {**s, "holt_localsandbox": 2}, "its version is 2, and this holt reads version 1"),
    (lambda s: {"kv": {}, "history": []}, "its version is None"),
    (lambda s: [], "its version is None"),
    (lambda s: {**s, "kv": []}, "not text"),
    (lambda s: {**s, "kv": {"k": 1}}, "not text"),
    (lambda s: {**s, "history": None}, "history is invalid"),
    (lambda s: {**s, "history": [{}]}, "history is invalid"),
    (lambda s: {**s, "history": [{**s["history"][0], "id": "1"}]}, "history is invalid"),
])
def test_a_state_that_holt_has_not_made(state: bytes, change: Any, words: str) -> None:
    assert _snapshot.unpack_snapshot(remade(state, lambda s: s))[1]["kv"] == {"k": "v"}
    with pytest.raises(ValueError, match=words):
        _snapshot.unpack_snapshot(remade(state, change))


def test_damaged_snapshots_are_refused(state: bytes) -> None:
    bomb = io.BytesIO()
    with tarfile.open(fileobj=bomb, mode="w:gz") as archive:
        member = tarfile.TarInfo("state.json")
        member.size = 8
        archive.addfile(member, io.BytesIO(b"[" * 8))
    deep = gzip.compress(b"x" * 10)
    for damaged in (state[:-20], state[: len(state) // 2], b"\x1f\x8b" + b"\0" * 50, b"", bomb.getvalue(), deep, b"\0" * 512):
        with pytest.raises(ValueError, match="not a snapshot"):
            _snapshot.unpack_snapshot(damaged)
    for place in range(0, len(state), 7):  # a flipped bit may also do no harm, for example in a time stamp
        flipped = bytearray(state)
        flipped[place] ^= 0x10
        try:
            _snapshot.unpack_snapshot(bytes(flipped))
        except ValueError as error:
            assert "not a snapshot" in str(error)
    with pytest.raises(ValueError, match="reads only its own snapshots"):
        _snapshot.unpack_snapshot(b"SQLite format 3\0" + b"\0" * 100)


def test_files_that_are_damaged(holt: str) -> None:
    with pytest.raises(ValueError, match="the files in this snapshot of a LocalSandbox are damaged"):
        LocalSandbox(snapshot=_snapshot.pack_snapshot(b"no tar archive" * 100, {"kv": {}, "history": []}))
    assert session_names(holt) == []


# --- results ---


def test_results_can_be_changed(local: LocalSandbox) -> None:
    done, ran = local.bash("echo x"), local.execute_python("print(1)")
    done.stdout = done.stdout.strip()
    ran.stderr = "more"
    entry = local.history()[0]
    entry.parameters["mine"] = 1
    entry.name = "other"
    assert (done.stdout, ran.stderr) == ("x", "more")
    assert [(e.name, "mine" in e.parameters) for e in local.history()] == [("python", False), ("bash", False)]
    assert local.history(0) == local.history(-1) == []


# --- destroy() ---


def calls(local: LocalSandbox) -> "Dict[str, Callable[[], Any]]":
    return {
        "bash": lambda: local.bash("sleep 100"),
        "execute_python": lambda: local.execute_python("import time; time.sleep(100)"),
        "files": lambda: [local.write_file(f"f{n % 50}", "x" * 1000) for n in range(10**6)],
        "reads": lambda: [local.exists("/data/none") for n in range(10**6)],
        "export_snapshot": lambda: [local.export_snapshot() for n in range(10**6)],
        "history": lambda: [local.history() for n in range(10**6)],
        "kv": lambda: [local.kv.set("k", "v") for n in range(10**7)],
    }


@pytest.mark.parametrize("name", [*calls(LocalSandbox())])
@pytest.mark.parametrize("runtime", ["pyodide", "monty"])
def test_destroying_during_a_call(name: str, runtime: str, holt: str) -> None:
    if runtime == "monty" and name != "execute_python":
        return
    local = LocalSandbox(files={"f": "x"}, python_runtime=runtime)
    raised: List[BaseException] = []

    def call() -> None:
        try:
            calls(local)[name]()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    local.destroy()
    for thread in threads:
        thread.join(20)
    assert [(type(error), str(error)) for error in raised] == [(RuntimeError, GONE)] * 2
    assert session_names(holt) == []


def test_destroying_in_asyncio(holt: str) -> None:
    async def main() -> None:
        local = LocalSandbox()
        tasks = [asyncio.ensure_future(local.abash("sleep 100")) for _ in range(3)]
        tasks += [asyncio.ensure_future(local.aexecute_python("import time; time.sleep(100)")) for _ in range(3)]  # type: ignore[misc]
        await asyncio.sleep(0.5)
        await asyncio.gather(local.adestroy(), local.adestroy())
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            assert (type(error), str(error)) == (RuntimeError, GONE)

    asyncio.run(main())
    assert session_names(holt) == []


@pytest.mark.parametrize("pause", [0, 0.001, 0.005, 0.02])
def test_destroying_while_it_is_made(pause: float, holt: str) -> None:
    local = LocalSandbox()
    raised: List[BaseException] = []

    def call() -> None:
        try:
            while True:
                local.bash("true")
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    until(lambda: local._opening, "it is being made")
    time.sleep(pause)
    local.destroy()
    thread.join(20)
    assert [(type(error), str(error)) for error in raised] == [(RuntimeError, GONE)]
    assert session_names(holt) == []


# --- files and directories ---


def test_errors_have_the_original_s_texts(local: LocalSandbox) -> None:
    for call in (local.read_file, local.read_file_bytes, local.list_files, local.delete_file):
        with pytest.raises(FileNotFoundError, match="^File not found: /data/x$"):
            call("/data/x")
    with pytest.raises(CommandError, match="^Command failed with exit code 3$"):
        local.bash("exit 3")
    with pytest.raises(CommandError, match="^Command failed with exit code 4: last$"):
        local.bash("echo first >&2; echo last >&2; exit 4")
    with pytest.raises(FileNotFoundError, match="^File not found: nope$"):
        local.bash("cat nope")


def test_text_that_is_not_utf_8(local: LocalSandbox) -> None:
    local.write_file_bytes("x", b"a\xffb\xc3")
    assert local.read_file("x") == "a\ufffdb\ufffd"
    assert asyncio.run(local.aread_file("x")) == "a\ufffdb\ufffd"
    assert local.read_file_bytes(Path("/data/x")) == b"a\xffb\xc3"  # type: ignore[arg-type]


@pytest.mark.parametrize("cwd", ["/data/none", "none/deeper", "/no/such", "file", "file/x"])
def test_a_missing_directory_of_python_becomes_data(cwd: str, local: LocalSandbox) -> None:
    local.write_file("file", "")
    local.write_file("sub/x", "")
    done = local.execute_python("import os; print(os.getcwd())", cwd=cwd)
    assert (done.stdout, done.error) == ("/data\n", None)
    assert local.execute_python("print(os.getcwd())", cwd="sub").stdout == "/data/sub\n"


def test_a_working_directory_that_code_has_removed() -> None:
    with LocalSandbox(cwd="/data/sub") as local:
        local.execute_python("import os; os.rmdir('/data/sub')")
        assert local.execute_python("print(os.getcwd())").stdout == "/data\n"
        assert os.path.basename(local.bash("pwd").stdout.strip()) == "sub"


# --- limits ---


def test_a_snapshot_has_nothing_of_the_host() -> None:
    """Read-only mounts, such as /var/lib/dpkg, are below directories that a snapshot has."""
    with LocalSandbox() as local:
        local.bash("mkdir -p '/var/lib/a[b] c'; echo 1 > '/var/lib/a[b] c/f'; chmod 000 '/var/lib/a[b] c/f'")
        files, _ = _snapshot.unpack_snapshot(local.export_snapshot())
        mounts = local.bash("while read -r a b c d where options e; do [[ ,$options, != *,ro,* ]] || echo \"$where\"; done < /proc/self/mountinfo").stdout
        local.bash("mkdir -p /home/agent/x; echo 1 > /home/agent/x/y")
    names = tarfile.open(fileobj=io.BytesIO(files)).getnames()
    assert "./var/lib/a[b] c/f" in names and not [n for n in names if n.startswith("./home/agent")]
    assert not [name for name in names for mount in mounts.split() if f"{name}/".startswith(f".{mount}/")]


def test_a_snapshot_that_is_too_large(local: LocalSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "SNAPSHOT_MAX", 1 << 20)
    monkeypatch.setattr(_snapshot, "SNAPSHOT_MAX", 1 << 20)
    local.bash("truncate -s 1T sparse; echo end >> sparse")
    snapshot = local.export_snapshot()
    local.bash("head -c 2000000 /dev/urandom > f")
    with pytest.raises(LocalSandboxError, match="the files are too large for a snapshot, which has at most 1 MiB"):
        local.export_snapshot()
    local.delete_file("f")
    local.kv.set("k", "x" * 2_000_000)
    with pytest.raises(LocalSandboxError, match="keys, values and history are too large for a snapshot"):
        local.export_snapshot()
    local.kv.delete("k")
    assert local.export_snapshot()
    with LocalSandbox(snapshot=snapshot) as again:
        assert again.bash("stat -c %s sparse; tail -c 4 sparse").stdout == f"{(1 << 40) + 4}\nend\n"


def test_a_snapshot_while_files_come_and_go(local: LocalSandbox) -> None:
    """The files have symlinks in the root, and are removed meanwhile. tar fails if its arguments name a removed one."""
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            local.bash("touch f{1..200} /g{1..200}; rm -f f* /g*")

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(8):
            assert local.export_snapshot()
    finally:
        done.set()
        thread.join()


def test_a_file_that_is_too_large(local: LocalSandbox) -> None:
    local.bash("truncate -s 100M large; truncate -s 1T larger")
    assert len(local.read_file_bytes("large")) == 100 << 20
    with pytest.raises(CommandError, match="^larger: .*1099511627776 bytes; at most ") as error:
        local.read_file("larger")
    assert type(error.value) is CommandError


def test_code_that_is_too_long_for_a_message(local: LocalSandbox) -> None:
    done = local.execute_python(f"x = '{'ä' * 1_000_000}'\nprint(len(x))\n1/0")
    assert (done.stdout, done.error) == ("1000000\n", "ZeroDivisionError: division by zero")
    assert local.execute_python("print(x[:2])").stdout == "ää\n"
    assert local.list_files("/data") == []


def test_a_limit_s_mark_that_code_has_made(local: LocalSandbox) -> None:
    """The file that tells of a limit is inside, so commands can write anything to it."""
    command = "printf 'command_count x y' > \"$__LOCALSANDBOX_MARK\"; kill -KILL 0"
    with pytest.raises(CommandError) as error:
        local.bash(command)
    assert error.value.exit_code == 137


def test_a_server_that_does_not_reply(local: LocalSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    local.write_file("f", "x")

    def late(*_: object) -> None:
        raise error("60 s")

    for error in (builtins.TimeoutError, concurrent.futures.TimeoutError):
        monkeypatch.setattr(local._names, "read", late)
        with pytest.raises(TimeoutError, match="60 s") as raised:
            local.read_file("f")
        assert raised.value.timeout_ms == 60000


# --- processes ---


def test_a_forked_child_does_not_end_its_parent_s_sandbox(local: LocalSandbox, holt: str) -> None:
    local.write_file("f", "x")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            local.bash("true")
        except LocalSandboxError as error:
            said = str(error)
        finally:
            local.destroy()
            os.write(write, said.encode())
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert b"made before a fork" in os.read(read, 4096)
    assert local.read_file("f") == "x" and len(session_names(holt)) == 1
    os.close(read)
    os.close(write)


@pytest.mark.usefixtures("bridge")
def test_tools_may_use_their_sandbox(local: LocalSandbox) -> None:
    def inner(path: str) -> str:
        return local.read_file(path) + local.bash("echo bash").stdout

    def ends() -> None:
        local.destroy()

    local.write_file("f", "x")
    code = "from host_tools import call\nprint(call({!r}, {}))"
    assert local.execute_python(code.format("inner", {"path": "f"}), toolset=[inner]).stdout == "xbash\n\n"
    with pytest.raises(RuntimeError, match=GONE):
        local.execute_python(code.format("ends", {}), toolset=[ends])


def test_destroy_in_a_loop_does_not_wait_for_itself() -> None:
    async def main() -> None:
        async with LocalSandbox(files={"f": "x"}) as local:
            ends = asyncio.ensure_future(local.adestroy())
            while not local._destroyed:
                await asyncio.sleep(0)
            local.destroy()
            await ends

    asyncio.run(main())
