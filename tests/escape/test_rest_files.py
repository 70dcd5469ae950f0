# SPDX-License-Identifier: Apache-2.0
"""The host reads the files that hostile commands have left in a session at rest. The host reads nothing outside of the session
and nothing that the policy hides, and no file holds it up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lib.hostile import Hostile
from lib.identity import Identity
from lib.sessions import Json, Rpc, RpcError, Sessions, readers, until

READS = ("files.read", "files.stat", "files.list", "files.exists", "files.grep", "files.glob")
SECRET = "secret of the host"
READERS = 16
SOON = 20  # Seconds; searching may take 10.


def params(method: str, path: str, name: str = "w") -> Json:
    more = {"files.grep": {"pattern": "."}, "files.glob": {"pattern": "**/*"}, "files.list": {"recursive": True}}
    return {"session": name, "path": path, **more.get(method, {})}


def reply(rpc: Rpc, number: int) -> Json:
    try:
        return rpc.result(number, SOON)
    except RpcError as error:
        assert error.kind in ("usage", "missing", "busy"), error
        return {"error": error.errno}


def ask(rpc: Rpc, method: str, path: str) -> Json:
    return reply(rpc, rpc.send(method, **params(method, path)))


def ask_all(rpc: Rpc, paths: Sequence[str]) -> Iterator[tuple[str, str, Json]]:
    """Calls every reading method with each path. One reader answers the requests for a path."""
    for path in paths:
        numbers = rpc.send_together(*((method, params(method, path)) for method in READS))
        yield from ((method, path, reply(rpc, number)) for method, number in zip(READS, numbers))


def states(rpc: Rpc) -> set[str]:
    return {s["state"] for s in rpc.call("session.list")["sessions"]}


@pytest.fixture
def outside(place: Path, identity: Identity) -> Path:
    directory = place / "outside"
    directory.mkdir()
    (directory / "canary").write_text(SECRET)
    identity.own(directory / "canary")
    return identity.own(directory)


def test_no_link_leads_out(sessions: Sessions, workspace: Path, outside: Path) -> None:
    """The links are absolute, relative, through directories, mounts and /proc, in every part of the session."""
    up = "../" * 40
    names = []
    for at in ("/workspace", "/mnt/files", "/opt", "/home/agent"):
        names += [f"{at}/{name}" for name in ("abs", "rel", "absdir/canary", "reldir/canary", "proc", "fd", "deep/abs", "twice")]
    session = sessions.create("w", "--workspace", f"{workspace}:/workspace")
    session.out(
        f"for at in /workspace /mnt/files /opt /home/agent; do cd $at && mkdir -p deep && ln -s {outside}/canary abs &&"
        f" ln -s {up}{outside}/canary rel && ln -s {outside} absdir && ln -s {up}{outside} reldir &&"
        f" ln -s /proc/1/root{outside}/canary proc && ln -s /proc/self/fd/4/../../.. fd && ln -s ../abs deep/abs &&"
        f" ln -s abs twice; done; mkdir /old; mv /opt /old/opt; ln -s {outside.parent} /opt"
    )
    session.stop()
    with sessions.serve() as rpc:
        names += [f"{outside}/canary", f"/workspace/{up}{outside}/canary", f"/old/opt/{up}{outside}", "/opt/outside/canary"]
        for method, name, answer in ask_all(rpc, names):
            assert SECRET not in json.dumps(answer), (method, name)
            assert method != "files.exists" or answer in ({"exists": False}, {"error": "ELOOP"}), name
        assert states(rpc) == {"at rest"}


def test_hidden_files_stay_hidden(sessions: Sessions, workspace: Path, put: Callable[..., Path]) -> None:
    """The files are hidden by name and by pattern, in a directory, and behind links that a command has made."""
    for name in (".env", "a/deep/key.pem", "conf/token", "b.pem"):
        put(name, f"{SECRET}\n")
    session = sessions.create(
        "w", "--workspace", f"{workspace}:/workspace", "--hide", ".env", "--hide", "**/*.pem", "--hide", "conf"
    )
    session.out("ln -s .env near; ln -s /workspace/a/deep/key.pem far; ln -s conf dir; mkdir /x; ln -s /workspace /x/all")
    session.stop()
    paths = (".env", "a/deep/key.pem", "conf/token", "b.pem", "near", "far", "dir/token", "/x/all/.env", "a/../b.pem", ".", "/x")
    with sessions.serve() as rpc:
        for method, path, answer in ask_all(rpc, paths):
            assert SECRET not in json.dumps(answer), (method, path)
        assert states(rpc) == {"at rest"}
    (workspace / "new.pem").write_text(SECRET)
    with sessions.serve() as rpc:
        assert ask(rpc, "files.read", "new.pem") == {"error": "EACCES"}, "a file that came later is hidden by the next request"


def test_nothing_in_the_way_blocks(sessions: Sessions, workspace: Path) -> None:
    session = sessions.create("w", "--workspace", f"{workspace}:/workspace")
    session.out(
        "mkfifo fifo; truncate -s 8E huge 2>/dev/null || truncate -s 8T huge; mkdir many; (cd many; seq 5000 | xargs touch);"
        "ln -s /dev/zero zero; ln -s /dev/tty tty; "
        """python3 -c '
import os, socket
socket.socket(socket.AF_UNIX).bind("socket")
os.mkdir("/opt/deep")
os.chdir("/opt/deep")
for _ in range(1100):
    os.mkdir("d")
    os.chdir("d")
'"""
    )
    session.stop()
    start = time.monotonic()
    with sessions.serve() as rpc:
        for path in ("fifo", "socket", "zero", "tty", "/dev/random", "/dev/ptmx", "/proc/kmsg"):
            assert "error" in ask(rpc, "files.read", path), path
        assert rpc.call("files.read", session="w", path="huge", offset=1 << 42, length=3, base64=True)["content"] == "AAAA"
        for method in ("files.list", "files.glob"):
            assert ask(rpc, method, ".") and ask(rpc, method, "/opt/deep")
        assert time.monotonic() - start < SOON
        assert rpc.call("files.grep", session="w", pattern="x", timeout=SOON)["matches"] == []
        assert states(rpc) == {"at rest"}
    until(lambda: not readers(), "no reader is left")


def test_a_directory_that_another_session_swaps(hostile: Hostile, sessions: Sessions, workspace: Path, outside: Path) -> None:
    """Commands of a second session exchange a directory and a link in the workspace of both, while the host reads in the first."""
    (workspace / "dir").mkdir()
    (workspace / "dir" / "canary").write_text("inside")
    (workspace / "link").symlink_to(outside)
    sessions.holt.identity.own(workspace / "dir")
    sessions.create("w", "--workspace", f"{workspace}:/workspace")
    swapper = sessions.create("swapper", "--workspace", f"{workspace}:/workspace", "--ro", hostile.path("swap").parent)
    with sessions.serve() as rpc:
        process = rpc.call("process.spawn", session="swapper", argv=[str(hostile.path("swap")), "dir", "link", "a", "b"])
        seen = set()
        for _ in range(30):
            for path in ("dir/canary", "dir/../dir/canary", "link/canary"):
                answer = ask(rpc, "files.read", path)
                assert SECRET not in json.dumps(answer)
                seen.add(answer.get("content") or answer["error"])
            assert SECRET not in json.dumps(ask(rpc, "files.grep", "."))
        assert seen >= {"inside", "ENOENT"}, "the swapper has run"
        assert states(rpc) == {"at rest", "live"}
        rpc.call("process.signal", session="swapper", id=process["id"], signal="KILL")
    swapper.stop()


def test_a_hidden_file_that_the_host_replaces_during_a_search(sessions: Sessions, workspace: Path, put: Callable[..., Path]) -> None:
    """The replacement would be visible in a tree that was made before. So the reader ends without a reply."""
    for number in range(60):
        put(f"a{number:02}", b"no\n" * 300000)
    put("z.env", f"{SECRET}\n")
    sessions.create("w", "--workspace", f"{workspace}:/workspace", "--hide", "z.env")
    with sessions.serve() as rpc:
        call = rpc.send("files.grep", session="w", pattern="secret")
        until(lambda: any(len(os.listdir(f"/proc/{pid}/task")) > 1 for pid in readers()), "the search runs")
        (workspace / "new").write_text(f"{SECRET}\n")
        os.rename(workspace / "new", workspace / "z.env")
        assert rpc.result(call)["matches"] == []
        rpc.call("session.stop", session="w")


def test_reads_while_the_session_starts_and_stops(sessions: Sessions) -> None:
    session = sessions.create("w")
    session.out("echo inside > file; mkdir -p tmp; echo inside > /opt/file")
    session.stop()

    def read(_: int) -> None:
        with sessions.serve() as rpc:
            for _ in range(40):
                assert rpc.call("files.read", session="w", path="file", timeout=SOON)["content"] == "inside\n"
                assert rpc.call("files.stat", session="w", path="/opt/file", timeout=SOON)["size"] == 7

    with ThreadPoolExecutor(3) as pool:
        reads = [pool.submit(read, i) for i in range(2)]
        while not all(r.done() for r in reads):
            session.out("touch /opt/other")
            session.stop()
        for each in reads:
            each.result()
    until(lambda: not readers(), "no reader is left")


def test_readers_are_bounded(sessions: Sessions) -> None:
    """A client that asks for the files of many sessions at once waits for some of the replies."""
    names = [f"s{number}" for number in range(40)]
    with sessions.serve() as rpc:
        for name in names:
            rpc.call("session.create", name=name)
        calls = rpc.send_together(*(("files.list", {"session": name, "path": "/"}) for name in names * 3))
        most = 0
        while not all(rpc.answered(call) for call in calls):
            most = max(most, len(readers()))
            rpc.read()
        assert most <= 2 * READERS, "each has a child for a moment"
        assert all("usr" in {e["name"] for e in rpc.result(call)["entries"]} for call in calls)
        assert states(rpc) == {"at rest"}
    until(lambda: not readers(), "no reader is left")


def test_a_client_that_goes_ends_its_reader(sessions: Sessions, put: Callable[..., Path], workspace: Path) -> None:
    for number in range(60):
        put(f"a{number:02}", b"no\n" * 300000)
    sessions.create("w", "--workspace", f"{workspace}:/workspace")
    rpc = sessions.serve()
    rpc.send("files.grep", session="w", pattern="(a|b)*c")
    until(readers, "it has started")
    rpc.close()
    until(lambda: not readers(), "no reader is left", 5)


def test_a_reader_that_hangs_ends_with_its_client(sessions: Sessions) -> None:
    """The readers hang, like on a file system that does not answer. Other clients still get readers."""
    sessions.create("w")
    path = sessions.data / "s"
    with sessions.start(["serve", "--socket", path]) as server:
        until(path.exists, "the server listens")
        with Rpc.of_server(path, sessions.holt.identity) as other:
            for _ in range(READERS + 1):
                with Rpc.of_server(path, sessions.holt.identity) as rpc:
                    rpc.call("files.list", session="w", path="/")
                    for pid in readers():
                        os.kill(pid, signal.SIGSTOP)
                    rpc.send("files.list", session="w", path="/")
            until(lambda: not readers(), "no reader is left")
            assert other.call("files.list", session="w", path="/opt", timeout=SOON)["entries"] == []
        server.kill(signal.SIGTERM)
        assert server.wait().code == 0


def test_a_session_can_be_removed_during_a_read(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        for _ in range(5):
            rpc.call("session.create", name="w")
            rpc.call("files.list", session="w", path="/")
            rpc.call("session.set_tier", session="w", tier="medium")
            rpc.call("session.remove", session="w")
            assert rpc.refused("files.list", session="w", path="/").kind == "missing"
            rpc.call("session.create", name="w")
            assert rpc.call("files.list", session="w")["entries"] == []
            rpc.call("session.remove", session="w")


@pytest.mark.identities("root")
def test_root_reads_with_the_rights_of_the_session(sessions: Sessions, workspace: Path) -> None:
    """Commands of the session cannot read a file of root in a workspace of another user, so the reader cannot, either."""
    os.chown(workspace, 4321, 4321)
    (workspace / "own").write_text("own")
    os.chown(workspace / "own", 4321, 4321)
    (workspace / "of-root").write_text(SECRET)
    for name, mode in (("own", 0o600), ("of-root", 0o600)):
        (workspace / name).chmod(mode)
    session = sessions.create("w", "--workspace", f"{workspace}:/workspace")
    with sessions.serve() as rpc:
        assert ask(rpc, "files.read", "own")["content"] == "own"
        assert ask(rpc, "files.read", "of-root") == {"error": "EACCES"}
        assert SECRET not in json.dumps(ask(rpc, "files.grep", "."))
        assert states(rpc) == {"at rest"}
    assert session.sh("cat of-root").code == 1


@pytest.mark.identities("user")
def test_sessions_of_another_user_are_refused(sessions: Sessions, place: Path) -> None:
    other = sessions.data.parent / "others"
    (other / "holt" / "sessions").mkdir(parents=True)
    subprocess.run(["cp", "-a", str(sessions.create("w").directory), str(other / "holt" / "sessions")], check=True)
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "4321:4321", str(other)], check=True)
        subprocess.run(["chmod", "-R", "a+rwX", str(other)], check=True)
        sessions.env["XDG_DATA_HOME"] = str(other)
        with sessions.serve() as rpc:
            error = rpc.refused("files.list", session="w", path="/")
            assert error.kind == "setup" and "belong" in error.message, error
        sessions.env["XDG_DATA_HOME"] = str(sessions.data)
    assert not readers()
