# SPDX-License-Identifier: Apache-2.0
"""A process inside keeps exchanging a directory and a symlink that leads out, while the host works on the session's
files. Nothing outside is read or changed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.hostile import Hostile
from lib.identity import Identity
from lib.sandbox import HANGS
from lib.sessions import Rpc, RpcError, Session, Sessions, until

ROUNDS = 300  # Rounds of each call, at least.


class Canary:
    """A directory of the caller's that is in no session, and everything that would show a change in it."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self.path = path
        for directory in (path, path / "sub"):
            directory.mkdir()
            identity.own(directory)
        for name in ("secret", "canary", "sub/secret", "sub/canary"):
            (path / name).write_text("of the host\n")
            identity.own(path / name)
        self.before = self._look()

    def _look(self) -> dict[str, tuple[object, ...]]:
        seen = {}
        for path in (self.path, *sorted(self.path.rglob("*"))):
            st = path.lstat()
            text = path.read_bytes() if path.is_file() else b""
            seen[str(path)] = (st.st_mode, st.st_uid, st.st_nlink, st.st_mtime_ns, st.st_ctime_ns, text)
        return seen

    def assert_untouched(self) -> None:
        assert self._look() == self.before

    def assert_unread(self, answer: object) -> None:
        text = json.dumps(answer)
        assert "of the host" not in text and "canary" not in text, text


@pytest.fixture
def canary(place: Path, identity: Identity) -> Canary:
    return Canary(place / "outside", identity)


def make_tree(script_root: str, link: str) -> str:
    """A script that makes the directory and the symlink to exchange, and a directory to move."""
    return (
        f"cd {script_root} && mkdir -p dir/sub a/b/c e && echo inside | tee dir/secret dir/sub/secret a/b/c/secret >/dev/null"
        f" && ln -sfn {link} link"
    )


def swap(hostile: Hostile) -> list[str]:
    return [str(hostile.path("swap")), "dir", "link", "a/b", "e/b"]


def lead_to(target: Path, directory: Path, way: str) -> str:
    return str(target) if way == "absolute" else os.path.relpath(target, directory)


# --- the control ---


def careless_read(directory: Path) -> str:
    """Checks first whether the directory is a symlink, and then reads in it: that is unsafe."""
    path = directory / "dir"
    return "" if path.is_symlink() else (path / "secret").read_text()


def careless_write(directory: Path) -> None:
    if not (directory / "dir").is_symlink():
        (directory / "dir" / "new").write_text("x")


@pytest.mark.parametrize("way", ("absolute", "relative"))
def test_a_careless_reader_is_led_out_on_the_host(
    way: str, hostile: Hostile, place: Path, identity: Identity, canary: Canary
) -> None:
    """The control: on the host, the exchange fools the careless reader."""
    directory = place / "tree"
    directory.mkdir()
    identity.own(directory)
    script = make_tree(str(directory), lead_to(canary.path, directory, way))
    identity.run(["sh", "-c", script]).check_returncode()
    swapping = subprocess.Popen(identity.as_user(swap(hostile)), cwd=directory, stdout=subprocess.PIPE)
    try:
        assert swapping.stdout and swapping.stdout.readline() == b"ready\n"

        def led_out() -> bool:
            careless_write(directory)
            return "of the host" in careless_read(directory) and (canary.path / "new").exists()

        until(led_out, "the race is won")
    finally:
        swapping.kill()
        swapping.communicate()


# --- files.* and mount.* ---

Call = Callable[[Rpc, str], Any]


def copied(rpc: Rpc, base: str) -> Any:
    try:
        return rpc.call("files.copy", **{"from": f"{base}/dir/sub", "to": f"{base}/copy", "recursive": True})
    finally:
        with_ignored(rpc, "files.remove", path=f"{base}/copy", recursive=True)


def with_ignored(rpc: Rpc, method: str, **params: Any) -> Any:
    try:
        return rpc.call(method, **params)
    except RpcError:
        return None


def uploaded(rpc: Rpc, base: str) -> Any:
    reading, writing = os.pipe()
    os.write(writing, b"x")
    os.close(writing)
    try:
        return rpc.call("files.receive", [reading], path=f"{base}/dir/received")
    finally:
        os.close(reading)


def opened(rpc: Rpc, base: str) -> Any:
    rpc.call("files.open", path=f"{base}/dir/secret")
    with os.fdopen(rpc.fds.pop()) as file:
        return file.read()


def remade(rpc: Rpc, base: str) -> Any:
    """Removes the whole directory and makes it again, unless the symlink was in the way."""
    try:
        return rpc.call("files.remove", path=f"{base}/dir/sub", recursive=True)
    finally:
        with_ignored(rpc, "files.mkdir", path=f"{base}/dir/sub")
        with_ignored(rpc, "files.write", path=f"{base}/dir/sub/secret", content="inside\n")


def moved(rpc: Rpc, base: str) -> Any:
    try:
        return rpc.call("files.move", **{"from": f"{base}/dir/secret", "to": f"{base}/dir/other", "replace": True})
    finally:
        with_ignored(rpc, "files.move", **{"from": f"{base}/dir/other", "to": f"{base}/dir/secret", "replace": True})


CALLS: dict[str, Call] = {
    "read": lambda rpc, base: rpc.call("files.read", path=f"{base}/dir/secret"),
    "open": opened,
    "stat": lambda rpc, base: rpc.call("files.stat", path=f"{base}/dir/secret"),
    "write": lambda rpc, base: rpc.call("files.write", path=f"{base}/dir/new", content="x"),
    "replace": lambda rpc, base: rpc.call("files.write", path=f"{base}/dir/secret", content="inside\n"),
    "append": lambda rpc, base: rpc.call("files.append", path=f"{base}/dir/secret", content="inside\n"),
    "receive": uploaded,
    "list": lambda rpc, base: rpc.call("files.list", path=f"{base}/dir", recursive=True),
    "glob": lambda rpc, base: rpc.call("files.glob", path=f"{base}/dir", pattern="**/*"),
    "grep": lambda rpc, base: rpc.call("files.grep", path=f"{base}/dir", pattern="host|inside"),
    "up": lambda rpc, base: rpc.call("files.read", path=f"{base}/a/b/c/../../../dir/secret"),
    "copy": copied,
    "move": moved,
    "remove": remade,
}
# Calls that make the symlink's target inside, so that it exists from then on.
MAKING: dict[str, Call] = {
    "write with parents": lambda rpc, base: rpc.call(
        "files.write", path=f"{base}/dir/p/q", content="x", make_parents=True
    ),
    "mkdir": lambda rpc, base: rpc.call("files.mkdir", path=f"{base}/dir/made/deep", make_parents=True),
}
MOUNT_MAKING: dict[str, Call] = {
    "mount upload": lambda rpc, base: rpc.call("mount.upload", path="dir/new", content="x"),
}
MOUNT_CALLS: dict[str, Call] = {
    "mount download": lambda rpc, base: rpc.call("mount.download", path="dir/secret"),
    "mount list": lambda rpc, base: rpc.call("mount.list", prefix="dir/"),
    "mount delete": lambda rpc, base: rpc.call("mount.delete", path="dir/sub/canary"),
}


@pytest.fixture(params=("absolute", "relative"))
def racing(
    request: pytest.FixtureRequest, sessions: Sessions, hostile: Hostile, workspace: Path, canary: Canary
) -> Iterator[Session]:
    """A session in which both of its lasting directories are exchanged all the time."""
    session = sessions.create("w", "--workspace", workspace, "--ro", str(hostile.directory))
    for inside, outside in (("/workspace", workspace), ("/mnt/files", session.directory / "files")):
        session.out(make_tree(inside, lead_to(canary.path, outside, request.param)))
        process = session.detach(f"cd {inside} && exec {' '.join(swap(hostile))}")
        until(lambda: session("logs", process).ok().out == "ready\n", "it swaps")
    yield session


def sees_something(answer: Any) -> bool:
    lists = [answer[key] for key in ("entries", "matches", "items") if key in answer] if isinstance(answer, dict) else []
    return all(lists)


def race(rpc: Rpc, name: str, call: Call, base: str, canary: Canary, sides: int) -> None:
    """Repeats the call until it has met this many sides of the exchange: the directory and the symlink are the two sides."""
    met: set[bool] = set()
    deadline, rounds = time.monotonic() + HANGS, 0
    while rounds < ROUNDS or len(met) < sides:
        assert time.monotonic() < deadline, f"{name}: only {met} after {rounds}"
        rounds += 1
        try:
            answer = call(rpc, base)
            met.add(sees_something(answer))
            canary.assert_unread(answer)
        except RpcError as error:
            met.add(False)
            assert error.kind in ("missing", "usage", "busy", "exists"), error
    canary.assert_untouched()


@pytest.mark.parametrize("base", ("/workspace", "/mnt/files"))
def test_a_call_is_not_led_out(base: str, racing: Session, canary: Canary) -> None:
    mount = base == "/mnt/files"
    with racing.rpc() as rpc:
        for name, call in {**(MOUNT_CALLS if mount else {}), **CALLS}.items():
            race(rpc, name, call, base, canary, sides=1 if name == "mount delete" else 2)
        for name, call in {**MAKING, **(MOUNT_MAKING if mount else {})}.items():
            race(rpc, name, call, base, canary, sides=1)
    assert racing.exec("echo", "next").ok().out == "next\n"


# --- holt cp ---

# Takes the partly copied directory away, and puts a symlink in its place.
TAKE = """
import glob, itertools, os, sys
print("ready", flush=True)
for i in itertools.count():
    for path in glob.glob({pattern!r}):
        try:
            os.rename(path, "/workspace/taken%d" % i)
            os.symlink({target!r}, path)
        except OSError:
            pass
"""


def take(session: Session, pattern: str, target: Path) -> str:
    process = session.detach(f"exec python3 -c {shlex.quote(TAKE.format(pattern=pattern, target=str(target)))}")
    until(lambda: session("logs", process).ok().out == "ready\n", "it waits")
    return process


def taken(workspace: Path) -> bool:
    return any(workspace.glob("taken*"))


@pytest.mark.parametrize("pattern", ("/workspace/.holt-*/sub", "/workspace/.holt-*"), ids=("below", "at the top"))
def test_a_directory_that_is_copied_out_to_where_a_command_writes_stays_there(
    pattern: str, sessions: Sessions, workspace: Path, canary: Canary
) -> None:
    """The command can write the workspace too: it takes the partly made file away, and puts a symlink in its place."""
    session = sessions.create("w", "--workspace", workspace)
    session.out("mkdir -p /mnt/files/t/sub; cd /mnt/files/t/sub; for i in $(seq 300); do echo inside >f$i; done; mkdir d")
    take(session, pattern, canary.path)
    deadline = time.monotonic() + HANGS
    while not taken(workspace):
        assert time.monotonic() < deadline, "nothing was taken"
        session.cp("-r", "w:/mnt/files/t", workspace / "out")
        session.out("rm -rf out")
        canary.assert_untouched()


def test_a_directory_of_the_workspace_that_is_copied_in_is_what_is_there(
    sessions: Sessions, hostile: Hostile, workspace: Path, canary: Canary, identity: Identity
) -> None:
    """holt cp reads the directory by its path on the host."""
    session = sessions.create("w", "--workspace", workspace, "--ro", str(hostile.directory))
    session.out(make_tree("/workspace/", str(canary.path)) + " && mkdir t && mv dir link a e t")
    session.detach(f"cd t && exec {' '.join(swap(hostile))}")
    for i in range(30):
        session.cp("-r", workspace / "t", f"w:/mnt/files/{i}")
    canary.assert_untouched()
    assert not [p for p in (session.directory / "files").rglob("*") if p.is_file() and "host" in p.read_text()]


def test_a_fifo_that_is_exchanged_for_a_file_does_not_hold_cp(
    sessions: Sessions, hostile: Hostile, workspace: Path
) -> None:
    """A process inside holds the other end, so the file has no end."""
    session = sessions.create("w", "--workspace", workspace, "--ro", str(hostile.directory))
    session.out("mkdir t && cd t && echo x >dir && mkfifo link && mkdir -p a/b e")
    session.detach("exec 3<>t/link; sleep 1000 & exec 4<>t/dir; sleep 1000")
    session.detach(f"cd t && exec {' '.join(swap(hostile))}")
    for i in range(50):
        assert session.cp("-r", workspace / "t", f"w:/mnt/files/{i}", timeout=20).code in (0, 125)


# --- symlinks that stay ---

LINKS = {"a file": ("report", "report"), "a directory": ("out", "out/secret"), "below": ("out", "out/sub/secret")}


@pytest.mark.parametrize("how", LINKS)
@pytest.mark.parametrize("way", ("absolute", "relative"))
def test_cp_follows_no_link_that_a_command_has_made(
    way: str, how: str, sessions: Sessions, workspace: Path, canary: Canary
) -> None:
    """holt neither writes there, nor reads files for the session from there."""
    name, path = LINKS[how]
    target = canary.path / "secret" if how == "a file" else canary.path
    session = sessions.create("w", "--workspace", workspace)
    session.out(f"echo inside >/mnt/files/secret; mkdir /mnt/files/t; ln -s {lead_to(target, workspace, way)} {name}")

    for verb in (("cp",), ("files", "w", "get")):
        source = "w:/mnt/files/secret" if verb == ("cp",) else "/mnt/files/secret"
        assert "ELOOP" in sessions([*verb, source, workspace / path]).refusal()
    assert "ELOOP" in session.cp(workspace / path, "w:/mnt/files/stolen").refusal()
    assert "ELOOP" in session("files", "put", workspace / path, "/mnt/files/stolen").refusal()
    if how != "a file":
        assert "ELOOP" in session.cp("-r", workspace / name, "w:/mnt/files/stolen").refusal()
        assert "ELOOP" in session.cp("-r", "w:/mnt/files/t", workspace / name).refusal()
    assert not (session.directory / "files" / "stolen").exists()
    canary.assert_untouched()


def test_cp_follows_links_of_the_caller_s(sessions: Sessions, workspace: Path, place: Path, identity: Identity) -> None:
    session = sessions.create("w", "--workspace", workspace)
    session.out("echo new >/mnt/files/f")
    (place / "mine").write_text("old\n")
    identity.own(place / "mine")
    (place / "link").symlink_to("mine")
    (place / "ws").symlink_to(workspace)
    session.cp("w:/mnt/files/f", place / "link").ok()
    session.cp(place / "link", "w:/mnt/files/g").ok()
    session.cp("w:/mnt/files/f", place / "ws" / "h").ok()

    assert (place / "link").is_symlink() and (place / "mine").read_text() == "new\n"
    assert session.out("cat /mnt/files/g h") == "new\nnew\n"
