# SPDX-License-Identifier: Apache-2.0
"""Files of a session: one view for its commands, the methods files.* and mount.*, holt files and holt cp."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sessions import Json, Rpc, Session, Sessions, until
from lib.terminal import Terminal, pending_input

MIB = 1 << 20

Make = Callable[..., Path]


@pytest.fixture
def rpc(session: Session) -> Rpc:
    return session.rpc()


def names(answer: Json) -> list[str]:
    return [entry["name"] for entry in answer["entries"]]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- one view ---


def test_what_bash_writes_is_read_and_the_other_way_round(session: Session, rpc: Rpc) -> None:
    session.out("mkdir d; echo from bash > d/a; echo mount > /mnt/files/m; echo tmp > /tmp/t; echo home > ~/h")

    assert rpc("files.read", path="d/a") == {"content": "from bash\n", "next": 10, "eof": True, "size": 10}
    assert rpc("files.read", path="/mnt/files/m")["content"] == "mount\n"
    assert rpc("files.read", path="/tmp/t")["content"] == "tmp\n"
    assert rpc("files.read", path="/home/agent/h")["content"] == "home\n"

    assert rpc("files.write", path="new/b", content="from a method\n", make_parents=True) == {"size": 14}
    rpc("files.append", path="new/b", content="and more\n")
    rpc("files.write", path="run", content="#!/bin/sh\necho ran\n", mode=0o755)
    assert session.out("cat new/b; ./run; stat -c '%U %G %a' new new/b run") == (
        "from a method\nand more\nran\nagent agent 755\nagent agent 644\nagent agent 755\n"
    )


def test_files_last_across_stop_and_start(session: Session) -> None:
    session.rpc()("mount.upload", path="kept", content="x")
    session.rpc()("files.write", path="kept", content="y")
    session.stop()

    assert session.out("cat /mnt/files/kept kept") == "xy"
    assert session.rpc()("mount.download", path="/kept")["content"] == "x"


def test_what_is_read_only_inside_is_read_only_here(rpc: Rpc) -> None:
    for method, params in (
        ("files.write", {"path": "/usr/x", "content": "x"}),
        ("files.write", {"path": "/etc/passwd", "content": "x"}),
        ("files.mkdir", {"path": "/usr/d"}),
        ("files.remove", {"path": "/usr/bin/env"}),
    ):
        error = rpc.refused(method, **params)
        assert (error.kind, error.errno) in (("usage", "EROFS"), ("usage", "EBUSY")), (method, error)
        assert error.hint


def test_links_do_not_lead_out(session: Session, rpc: Rpc, secret: Path) -> None:
    session.out(f"ln -s /etc/passwd inside; ln -s {secret} out; ln -s ../../../../../../..{secret} up; "
               f"ln -s / top; ln -s /proc/1/root/etc/passwd magic")

    assert "agent" in rpc("files.read", path="inside")["content"]
    for path in ("out", "up", f"top{secret}"):
        assert rpc.refused("files.read", path=path).kind == "missing"
        assert rpc.refused("files.write", path=path, content="x").kind in ("missing", "usage")
    assert rpc.refused("files.read", path="magic").errno in ("ELOOP", "EACCES")
    assert secret.read_text().startswith("secret-")
    assert rpc("files.stat", path="out", follow=False)["target"] == str(secret)


def test_guarded_places_are_guarded(sessions: Sessions, put: Make, workspace: Path) -> None:
    put(".git/hooks/pre-commit.sample", "old")
    put(".git/config", "[core]\n")
    put(".git/HEAD", "ref: refs/heads/main\n")
    session = sessions.create("w", "--workspace", workspace)
    rpc = session.rpc()

    for path in (".git/hooks/pre-commit", ".git/hooks/pre-commit.sample", ".git/config"):
        assert rpc.refused("files.write", path=path, content="x").errno in ("EROFS", "EBUSY"), path
    assert rpc.refused("files.move", **{"from": ".git/hooks", "to": ".git/old"}).errno == "EBUSY"
    assert rpc.refused("files.remove", path=".git", recursive=True).errno in ("EBUSY", "EROFS")
    assert session.cp("/etc/hostname", f"{session.name}:.git/hooks/pre-commit").code == 125
    assert sorted(p.name for p in (workspace / ".git/hooks").iterdir()) == ["pre-commit.sample"]


# --- contents ---


def test_bytes_of_any_kind(session: Session, rpc: Rpc) -> None:
    data = bytes(range(256)) * 5
    rpc("files.write", path="b", base64=base64.b64encode(data).decode())

    assert base64.b64decode(rpc("files.read", path="b", base64=True)["content"]) == data
    assert session.out("sha256sum < b").split()[0] == sha256(data)
    assert rpc("files.read", path="b")["content"] == data.decode(errors="replace").replace("\0", "\ufffd")
    for wrong in ("a", "YQ", "YQ==\n", "YR==", "Y-=="):
        assert rpc.refused("files.write", path="b", base64=wrong).kind == "usage"
    assert rpc.refused("files.write", path="b").kind == "usage"
    assert rpc.refused("files.write", path="b", content="x", base64="YQ==").kind == "usage"
    assert rpc("files.stat", path="b")["size"] == len(data)


def test_ranges_end_with_whole_characters(rpc: Rpc) -> None:
    text = "añ€😀" * 40
    rpc("files.write", path="t", content=text)

    for length in (1, 3, 5, 7, 64):
        read, at, eof = "", 0, False
        while not eof:
            part = rpc("files.read", path="t", offset=at, length=max(length, 4))
            assert part["next"] > at
            read, at, eof = read + part["content"], part["next"], part["eof"]
        assert read == text
    assert rpc("files.read", path="t", offset=10**9)["eof"]
    assert base64.b64decode(rpc("files.read", path="t", offset=1, length=2, base64=True)["content"]) == "ñ".encode()


def test_large_texts_come_in_lines_that_clients_take(rpc: Rpc) -> None:
    """Control characters take six bytes of JSON each."""
    rpc("files.write", path="c", base64=base64.b64encode(b"\1" * 512 * 1024).decode())
    part = rpc("files.read", path="c")

    assert not part["eof"]
    assert 0 < part["next"] == len(part["content"]) < 200 * 1024
    assert part["size"] == 512 * 1024


def test_fds_in_and_out(session: Session, rpc: Rpc, place: Path) -> None:
    data = os.urandom(9 * MIB)
    source = place / "source"
    source.write_bytes(data)

    with source.open("rb") as file:
        assert rpc("files.receive", [file.fileno()], path="up/a", make_parents=True, mode=0o600) == {"size": len(data)}
    with source.open("rb") as file:
        assert rpc("mount.upload", [file.fileno()], path="/u.bin", fd=True)["size"] == len(data)
    assert session.out("sha256sum < up/a; stat -c %a up/a").split() == [sha256(data), "-", "600"]

    for method, params in (("files.open", {"path": "up/a"}), ("mount.download", {"path": "u.bin", "fd": True})):
        assert rpc(method, **params)["size"] == len(data)
        with os.fdopen(rpc.fds.pop(), "rb") as file:
            assert sha256(file.read()) == sha256(data)
    assert rpc.refused("files.receive", path="x").kind == "usage"
    assert rpc.refused("files.open", path="/dev/zero").kind == "usage"


def test_an_upload_holds_nobody_and_leaves_nothing_when_its_client_goes(session: Session, rpc: Rpc) -> None:
    other, (reading, writing) = session.rpc(), os.pipe()
    rpc("files.write", path="d/old", content="old", make_parents=True)
    other.send("files.receive", [reading], path="d/old")
    os.close(reading)
    os.write(writing, b"half of it")

    while pending_input(writing):
        assert rpc("files.read", path="d/old")["content"] == "old"
    other.close()
    while not (rows := rpc("history.list", name="files.receive")["rows"]):
        pass
    os.close(writing)
    assert json.loads(rows[0]["result"])["errno"] == "ECANCELED"
    assert names(rpc("files.list", path="d")) == ["old"]
    assert rpc("files.read", path="d/old")["content"] == "old"


@pytest.mark.parametrize("whom", ("keeper", "client"))
def test_what_a_kill_cuts_short_leaves_nothing(whom: str, session: Session, place: Path) -> None:
    rpc = session.rpc()
    pid = rpc("session.show")["keeper_pid"]
    rpc("mount.upload", path="old", content="old")
    reading, writing = os.pipe()
    with session.sessions.start(["cp", "-", f"{session.name}:/mnt/files/old"], stdin=reading) as cp:
        os.close(reading)
        os.write(writing, b"half of it")
        while pending_input(writing):
            pass
        if whom == "client":
            cp.kill()
        else:
            os.kill(pid, signal.SIGKILL)
        assert cp.wait().code != 0
    os.close(writing)

    assert session.out("cat /mnt/files/*; ls -A /mnt/files") == "oldold\n"


@pytest.mark.not_sanitized
def test_64_mib_up_and_down_in_little_memory(session: Session, place: Path, identity: Identity) -> None:
    data = os.urandom(64 * MIB)
    source, back = place / "source", place / "back"
    source.write_bytes(data)
    identity.own(source)

    session.cp(source, f"{session.name}:/mnt/files/large").ok()
    session.cp(f"{session.name}:/mnt/files/large", back).ok()
    with source.open("rb") as file:
        session.cp("-", f"{session.name}:streamed", stdin=file).ok()

    assert sha256(back.read_bytes()) == sha256(data)
    assert session.out("sha256sum < streamed; sha256sum < /mnt/files/large").split()[::2] == [sha256(data)] * 2
    assert session.cp(f"{session.name}:streamed", "-").ok().out_bytes == data
    assert session.keeper_peak() < 16 * MIB


# --- lists ---


def test_pages_of_a_list_meet_while_files_come(session: Session, rpc: Rpc) -> None:
    session.out("mkdir d; for i in $(seq 100 199); do echo > d/f$i; done")
    first = rpc("files.list", path="d", limit=30)
    rpc("files.write", path="d/a-before", content="")
    rpc("files.write", path="d/z-behind", content="")
    rpc("files.remove", path=f"d/{first['next']}")

    found, after = names(first), first["next"]
    while after:
        page = rpc("files.list", path="d", limit=30, after=after)
        found, after = found + names(page), page["next"]
    assert found == [*(f"f{i}" for i in range(100, 200)), "z-behind"]


def test_names_of_any_bytes_are_all_listed(session: Session, rpc: Rpc) -> None:
    session.out(r"""mkdir d; cd d; for c in '\1' a '\351' '\352' '\353' '\377' z; do echo > "$(printf "$c")"; done""")

    found, after = [], None
    while page := rpc("files.list", path="d", limit=1, **({"after": after} if after else {})):
        found += names(page)
        if not (after := page["next"]):
            break
    assert found == ["\1", "a", "z", *["�"] * 4]


def test_a_list_of_proc(rpc: Rpc) -> None:
    """Its "self" leads nowhere for the keeper, and the links of a process are not its to read."""
    entries = {e["name"]: e for e in rpc("files.list", path="/proc")["entries"]}

    assert {"1", "cpuinfo", "self"} <= set(entries)
    assert (entries["self"]["type"], entries["self"]["target"]) == ("link", None)
    assert rpc("files.stat", path="/proc/self", follow=False)["type"] == "link"


def test_an_empty_path_is_told(rpc: Rpc) -> None:
    assert rpc.refused("files.read", path="").message == 'cannot read ""'


def test_a_copy_says_what_it_leaves_out(session: Session) -> None:
    session.out("mkdir -p d; mkfifo d/a d/b")

    assert session("files", "cp", "-r", "d", "copy").ok().err == "holt: left out: 2 FIFOs, sockets or devices\n"
    assert session("files", "mv", "d", "moved").ok().err == ""


def test_what_a_list_says(session: Session, rpc: Rpc) -> None:
    session.out("mkdir -p d/sub; echo 12345 > d/file; chmod 640 d/file; ln -s file d/link; mkfifo d/pipe;"
               "echo > d/sub/x; touch -d '2001-02-03 04:05:06 UTC' d/file")
    entries = {e["name"]: e for e in rpc("files.list", path="d", recursive=True)["entries"]}

    assert entries["file"] == {
        "name": "file", "type": "file", "size": 6, "modified_ms": 981173106000, "mode": 0o640, "target": None,
    }
    assert {n: e["type"] for n, e in entries.items()} == {
        "file": "file", "link": "link", "pipe": "other", "sub": "directory", "sub/x": "file",
    }
    assert entries["link"]["target"] == "file"
    assert rpc.refused("files.list", path="d/file").errno == "ENOTDIR"


def test_glob_and_grep(session: Session, rpc: Rpc) -> None:
    session.out("mkdir -p src/lib; echo 'int main' > src/a.c; echo 'int Main' > src/lib/b.c; echo main > src/c.txt")

    assert names(rpc("files.glob", pattern="src/**/*.c")) == ["src/a.c", "src/lib/b.c"]
    assert rpc("files.glob", pattern="**/*.c", limit=1)["more"]
    assert rpc("files.grep", pattern="^int m", path="src") == {
        "matches": [{"name": "a.c", "line": 1, "text": "int main"}], "more": False,
    }
    found = rpc("files.grep", pattern="MAIN", ignore_case=True, glob="*.c")["matches"]
    assert [m["name"] for m in found] == ["src/a.c", "src/lib/b.c"]
    assert rpc.refused("files.grep", pattern="(").kind == "usage"


def test_the_tree_is_changed(session: Session, rpc: Rpc) -> None:
    rpc("files.mkdir", path="a/b", make_parents=True)
    rpc("files.write", path="a/b/f", content="f")
    assert rpc.refused("files.mkdir", path="a").kind == "exists"
    assert rpc.refused("files.remove", path="a").errno == "ENOTEMPTY"
    rpc("files.copy", **{"from": "a", "to": "copy", "recursive": True})
    rpc("files.move", **{"from": "a/b/f", "to": "/mnt/files/f"})
    assert rpc.refused("files.move", **{"from": "copy/b/f", "to": "/mnt/files/f"}).kind == "exists"
    rpc("files.remove", path="a", recursive=True)

    assert rpc("files.exists", path="a") == {"exists": False}
    assert rpc("files.exists", path="a" * 256) == {"exists": False}
    assert session.out("find . /mnt/files -type f | sort") == "./copy/b/f\n/mnt/files/f\n"


def test_what_is_there_is_replaced_where_that_was_asked_for(session: Session, rpc: Rpc) -> None:
    session.out("echo old > there; echo new > file; mkdir dir")
    for method in ("files.copy", "files.move"):
        assert rpc.refused(method, **{"from": "file", "to": "there"}).kind == "exists"
        assert session.out("cat there") == "old\n"
        rpc(method, **{"from": "file", "to": "there", "replace": True})
        assert session.out("cat there; echo old > there; echo new > file") == "new\n"
    for verb in ("cp", "mv"):
        assert "EEXIST" in session("files", verb, "file", "there").refusal()
        session("files", verb, "file", "there", "--replace").ok()
        assert session.out("cat there; echo old > there; echo new > file") == "new\n"


def test_modes_are_as_asked_for(session: Session, rpc: Rpc) -> None:
    rpc("files.mkdir", path="dir", mode=0o750)
    rpc("files.write", path="dir/file", content="", mode=0o640)
    rpc("mount.upload", path="file", content="", mode=0o604)
    for path in ("dir/file", "/mnt/files/file"):
        rpc("files.write", path=path, content="of the same mode")

    assert session.out("stat -c %a dir dir/file /mnt/files/file") == "750\n640\n604\n"


# --- /mnt/files ---


def test_mount_lists_in_pages(session: Session, rpc: Rpc) -> None:
    session.out("cd /mnt/files; mkdir -p out/deep none; for i in $(seq 10 34); do echo $i > out/deep/$i.csv; done;"
               "echo x > report.pdf; ln -s report.pdf link; touch -d '2001-02-03 04:05:06.5 UTC' report.pdf")
    found, cursor, pages = [], None, 0
    while True:
        page = rpc("mount.list", limit=10, **({"cursor": cursor} if cursor else {}))
        found += [item["mount_relative_path"] for item in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
        if pages == 1:
            session.out("echo > /mnt/files/aaa; echo > /mnt/files/zzz")
        if not cursor:
            break
    assert found == [*(f"out/deep/{i}.csv" for i in range(10, 35)), "report.pdf", "zzz"]
    assert pages == 3

    assert rpc("mount.list", prefix="/rep")["items"] == [{
        "mount_relative_path": "report.pdf", "sandbox_mount_prefix": "/mnt/files", "size": 2,
        "last_modified": "2001-02-03T04:05:06.500Z", "mime_type": "application/pdf",
    }]
    assert len(rpc("mount.list", prefix="out/deep/1")["items"]) == 10
    assert rpc("mount.list", prefix="nothing") == {"items": [], "next_cursor": None}
    for limit in (0, 501):
        refused = rpc.refused("mount.list", limit=limit)
        assert refused.message == "mount.list: limit has to be an integer from 1 to 500"
        assert refused.hint.startswith("limit is an integer from 1 to 500")


def test_mount_up_down_and_delete(session: Session, rpc: Rpc) -> None:
    said = {"mount_relative_path": "a/b.txt", "sandbox_mount_prefix": "/mnt/files"}

    assert rpc("mount.upload", path="/a/b.txt", content="text") == {**said, "size": 4}
    assert rpc("mount.upload", path="a/c", base64="AP8=")["size"] == 2
    assert session.out("cat /mnt/files/a/b.txt") == "text"
    assert rpc("mount.download", path="a/b.txt", offset=1, length=2)["content"] == "ex"
    assert rpc("mount.download", path="/a/c", base64=True)["content"] == "AP8="
    assert rpc("mount.delete", path="/a/b.txt") == said
    assert rpc.refused("mount.delete", path="a/b.txt").kind == "missing"
    rpc("mount.delete", path="a")
    assert session.out("ls -A /mnt/files") == ""
    for path in ("", "/", "../etc/passwd", "a/../../x", ".."):
        assert rpc.refused("mount.delete", path=path).kind == "usage", path


def test_mount_paths_may_be_as_inside(session: Session, rpc: Rpc) -> None:
    said = {"mount_relative_path": "a/b", "sandbox_mount_prefix": "/mnt/files"}

    assert rpc("mount.upload", path="/mnt/files/a/b", content="text") == {**said, "size": 4}
    assert session.out("cat /mnt/files/a/b") == "text"
    assert rpc("mount.download", path="/mnt/files/a/b")["content"] == "text"
    for prefix in ("/mnt/files", "/mnt/files/", "/mnt/files/a/", "a/"):
        assert [i["mount_relative_path"] for i in rpc("mount.list", prefix=prefix)["items"]] == ["a/b"], prefix
    assert rpc("mount.list", prefix="/mnt/filesa")["items"] == []
    assert rpc("mount.upload", path="mnt/files/a/b", content="")["mount_relative_path"] == "mnt/files/a/b"
    assert rpc("mount.delete", path="/mnt/files/a/b") == said
    for path in ("/mnt/files", "/mnt/files/", "/mnt/files/../x"):
        assert rpc.refused("mount.delete", path=path).kind == "usage", path


def test_bytes_are_appended(session: Session, rpc: Rpc) -> None:
    rpc("files.append", path="log", base64=base64.b64encode(b"\0\xff").decode())
    rpc("files.append", path="log", base64=base64.b64encode(b"\x80").decode())
    assert session.out("od -An -tx1 log").split() == ["00", "ff", "80"]
    assert rpc.refused("files.append", path="log", content="x", base64="").kind == "usage"


def test_append_says_the_size_that_the_file_has_then(rpc: Rpc) -> None:
    assert rpc("files.append", path="f", content="one")["size"] == 3
    assert rpc("files.append", path="f", content="and")["size"] == 6
    assert rpc("files.append", path="f", content="")["size"] == 6
    assert rpc("files.write", path="f", content="two!")["size"] == 4


def test_a_missing_directory_is_told_how_to_be_made(rpc: Rpc) -> None:
    for method, params in (("files.write", {"content": ""}), ("files.append", {"content": ""}), ("files.mkdir", {})):
        refused = rpc.refused(method, path="no/f", **params)
        assert (refused.kind, refused.errno) == ("missing", "ENOENT")
        assert "files.mkdir with make_parents makes it" in refused.hint
    assert "make" not in rpc.refused("files.write", path="", content="", make_parents=True).hint
    rpc("files.write", path="no/f", content="", make_parents=True)


# --- history ---


def test_each_call_is_in_the_history(rpc: Rpc) -> None:
    rpc("files.write", path="a", content="x" * 5000)
    rpc("files.read", path="a")
    rpc.refused("files.read", path="none")
    rpc("mount.list")
    rows = rpc("history.list")["rows"]

    assert [row["name"] for row in rows] == ["mount.list", "files.read", "files.read", "files.write"]
    assert [json.loads(row["result"])["success"] for row in rows] == [True, False, True, True]
    assert json.loads(rows[1]["result"])["errno"] == "ENOENT"
    assert json.loads(rows[1]["params"]) == {"path": "none"}
    assert len(json.loads(rows[3]["params"])["content"]) == 1024
    assert all(0 < row["started_ms"] <= row["ended_ms"] for row in rows)


# --- the command line ---


def test_files_verbs(session: Session, place: Path, identity: Identity) -> None:
    def files(*args: str | os.PathLike[str], **options: object) -> str:
        return session("files", *args, **options).ok().out

    mine = place / "mine"
    mine.write_text("mine\n")
    identity.own(mine)
    files("mkdir", "-p", "d/e")
    files("put", mine, "d")
    files("put", "-", "d/typed", stdin="typed")
    files("mv", "d/typed", "d/e")
    files("cp", "--recursive", "d", "copy")

    assert files("cat", "d/mine", "copy/e/typed") == "mine\ntyped"
    assert [e["name"] for e in json.loads(files("ls", "-r", "--json", "d"))["entries"]] == ["e", "e/typed", "mine"]
    assert re.fullmatch(r"drwxr-xr-x +\d+ \S+ \S+ e\n-rw-r[w-]-r-- +5 \S+ \S+ mine\n", files("ls", "d"))
    assert json.loads(files("stat", "--json", "d/mine"))["size"] == 5
    files("get", "d/e/typed", place / "got")
    assert (place / "got").read_text() == "typed"
    files("rm", "-r", "d", "copy")
    assert files("ls") == ""


def test_mistakes_are_one_line_and_a_cure(session: Session) -> None:
    name = session.name
    session.out("mkdir -p d/e")
    for args, word in (
        (("files", name), "what to do"),
        (("files", name, "nonsense"), "has no"),
        (("files", name, "get"), "lacks PATH"),
        (("files", name, "cat", "none"), "No such file"),
        (("files", name, "rm", "d"), "not empty"),
        (("files", name, "put", "-"), "no name"),
        (("files", "nobody", "ls"), "no session"),
        (("cp", "a"), "where to"),
        (("cp", "a", "b"), "in a session"),
        (("cp", f"{name}:a", f"{name}:b"), "one side"),
        (("cp", "/etc", f"{name}:"), "directory"),
        (("cp", "/etc/hostname", f"{name}:none/"), "no directory"),
        (("cp", "/etc/hostname", "/etc/passwd", f"{name}:none"), "several"),
        (("cp", f"{name}:d", "x"), "directory"),
        (("cp", f"{name}:d", "none/"), "cannot copy into"),
        (("cp", f"{name}:d", ""), "directory"),
        (("cp", "/etc/hostname", f"{name}:none/a"), "No such file"),
    ):
        assert word in session.sessions(args).refusal(), args


def test_a_repository_that_comes_out_is_told(session: Session, place: Path) -> None:
    """The host's git would run what its config says."""
    session.out("mkdir -p r/a/.git/hooks s/.git; echo gitdir: ../x >r/.git; mkdir t l; touch t/.gitignore; ln -s . l/.git")
    name = session.name

    def told(what: str, to: str) -> str:
        return session.cp("-r", f"{name}:{what}", place / to).ok().err

    assert told("r", "1").startswith("holt: a git repository came along: r/.git\n  Your git runs what its config")
    assert "came along: s/.git\n" in told("s/.git", "2")
    assert "came along: s/.git/\n" in told("s/.git/", "3")
    assert "came along: t\n" in told("t", ".git")
    assert "came along: r/.git\n" in told("r/.git", "3/.git")
    assert told("t", "4") == ""
    assert "came along" not in told("l", "5"), "a link is left out"
    assert json.loads(session.cp("-r", "--json", f"{name}:r", place / "4").ok().out)["repository"] == "r/.git"
    assert session.cp("-r", place / "1", f"{name}:back").ok().err == ""


def test_a_repository_is_told_where_something_else_fails(session: Session, place: Path) -> None:
    session.out("mkdir -p r/.git")
    sources = [f"{session.name}:{path}" for path in ("r", "none")]

    assert "came along: r/.git\n" in session.cp("-r", *sources, place).err
    again = session.cp("-r", *sources, place)
    assert "not mixed" in again.err and "came along" not in again.err, "it is not there anew"


def test_directories_are_copied_whole(session: Session, place: Path, workspace: Path, put: Make) -> None:
    put("t/a/one", "1")
    put("t/run", "#!/bin/sh\n", 0o755)
    put("t/a/deep/er/two", b"\0\xff")
    os.symlink("one", workspace / "t/a/link")
    name = session.name

    told = session.cp("-r", workspace / "t", f"{name}:")
    assert told.ok().err == (
        "holt: left out: 1 that are no files or directories: link a/link\n"
        f"  tar takes links along: tar c DIRECTORY | holt exec {name} -- tar x\n"
    )
    assert session.out("find t -printf '%M %P\\n' | sort -k2") == (
        "drwxr-xr-x \ndrwxr-xr-x a\ndrwxr-xr-x a/deep\ndrwxr-xr-x a/deep/er\n-rw-r--r-- a/deep/er/two\n"
        "-rw-r--r-- a/one\n-rwxr-xr-x run\n"
    )
    assert "exists" in session.cp("-r", workspace / "t", f"{name}:").refusal()

    session.out("for i in 1 2 3; do ln -s /etc/passwd t/l$i; done; mkfifo t/fifo; mkdir t/empty")
    told = session.cp("-r", f"{name}:t", place / "back").ok()
    assert "left out: 4 that are no files or directories: special file fifo, link l1, link l2, ...\n" in told.err
    assert told.err.endswith(f": holt exec {name} -- tar c DIRECTORY | tar x\n")
    back = {str(p.relative_to(place / "back")) for p in (place / "back").rglob("*")}
    assert back == {"a", "a/one", "a/deep", "a/deep/er", "a/deep/er/two", "run", "empty"}
    assert (place / "back/a/deep/er/two").read_bytes() == b"\0\xff"
    assert os.access(place / "back/run", os.X_OK)
    session.cp("-r", f"{name}:t", place / "back").ok()
    assert (place / "back/t/a/one").read_text() == "1"
    assert "exists" in session.cp("-r", f"{name}:t", place / "back").refusal()
    assert session.out("ls -A") == "t\n"
    assert not list(place.glob(".holt-*"))


def test_what_was_copied_as_json(session: Session, place: Path) -> None:
    name = session.name
    (place / "t/d").mkdir(parents=True)
    (place / "t/one").write_bytes(b"1" * 1000)
    (place / "t/d/two").write_bytes(b"")
    for n in range(4):
        (place / f"t/l{n}").symlink_to("one")

    def copied(*words: object) -> Json:
        result = session.cp("--json", *words).ok()
        assert result.err == ""
        return json.loads(result.out)

    up = copied("-r", place / "t", f"{name}:")
    assert up == {
        "files": 2, "bytes": 1000, "left_out": 4, "repository": None,
        "left_out_first": [{"type": "link", "path": each["path"]} for each in up["left_out_first"]],
    }
    assert len(up["left_out_first"]) == 3 and {e["path"] for e in up["left_out_first"]} < {f"l{n}" for n in range(4)}
    down = copied("-r", f"{name}:t", place / "back")
    assert (down["files"], down["bytes"], down["left_out"], down["left_out_first"]) == (2, 1000, 0, [])
    assert copied(f"{name}:t/one", "/dev/null")["bytes"] == copied(f"{name}:t/one", place / "f")["bytes"] == 1000
    several = copied(place / "t/one", place / "t/d/two", f"{name}:")
    assert (several["files"], several["bytes"]) == (2, 1000)
    refused = session.cp("--json", f"{name}:t/one", "-")
    assert refused.code == 125 and refused.out == ""
    assert json.loads(refused.err)["error"]["message"] == "stdout would have the file, and what --json says"


@pytest.mark.parametrize("stopped", (False, True))
def test_a_long_copy_shows_how_far_it_is(
    stopped: bool, sessions: Sessions, workspace: Path, place: Path, terminal: Callable[..., Terminal]
) -> None:
    """And does not wait for a terminal that is stopped."""
    session = sessions.create("w", "--workspace", workspace)
    many = place / "many"
    many.mkdir()
    for n in range(500):
        (many / str(n)).write_text("0123456789")
    keeper = session.keeper()
    copy = terminal(["cp", "-r", str(many), f"{session.name}:"], env={**sessions.env, "TERM": "xterm"})
    until(lambda: len(list(workspace.glob(".holt-*/*"))) > 2, "some are there")
    os.kill(keeper, signal.SIGSTOP)
    files = int(copy.expect(r"\r\x1b\[Kholt: (\d+) files, [\d.]+ K?i?B, \d[\d.]* K?i?B/s")[1])
    assert 2 <= files < 500
    if stopped:
        copy.send("\x13")
        time.sleep(0.5)  # it would have been shown again
    os.kill(keeper, signal.SIGCONT)
    until(lambda: len(list(workspace.glob("many/*"))) == 500, "all are there")
    assert copy.wait() == 0 and copy.output.endswith("\r\x1b[K") != stopped


def test_nothing_is_half_written(session: Session, place: Path, identity: Identity) -> None:
    old = place / "old"
    old.write_text("old")
    old.chmod(0o640)
    identity.own(old)
    session.out("echo new > new; mkdir d")
    name = session.name

    assert session.cp(f"{name}:none", old).code == 125
    assert session.cp(f"{name}:d", old).code == 125
    assert old.read_text() == "old"
    session.cp(f"{name}:new", old).ok()
    assert (old.read_text(), old.stat().st_mode & 0o777) == ("new\n", 0o640)
    session.cp(f"{name}:new", "/dev/null").ok()
    assert Path("/dev/null").is_char_device()
    assert not list(place.glob(".holt-*"))


def test_a_fifo_or_socket_by_its_name_is_not_waited_for(session: Session, place: Path, identity: Identity) -> None:
    """Where the session can write, as in its workspace, a command may have made it."""
    name = session.name
    session.out("echo text > file; mkfifo fifo; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'")
    os.mkfifo(place / "fifo")
    identity.own(place / "fifo")
    workspace = session.directory / "workspace"

    for path in (place / "fifo", workspace / "fifo", workspace / "sock"):
        for words in ((f"{name}:file", path), (path, f"{name}:new")):
            told = session.cp(*words)
            assert "ENXIO" in told.refusal() and "FIFO or socket" in told.err, words
    assert "new" not in session.out("ls")


def test_pipes_that_holt_was_given_are_read_and_written(session: Session, place: Path, identity: Identity) -> None:
    name = session.name
    os.mkfifo(place / "fifo")
    identity.own(place / "fifo")
    # Both ends, so that neither is waited for; as a shell's > fifo has it.
    fd = os.open(place / "fifo", os.O_RDWR)
    try:
        os.write(fd, b"by name\n")
        session.cp(f"{name}:/etc/passwd", "/dev/null").ok()
        session.cp("/dev/null", f"{name}:empty").ok()
        # The pipes are the caller's own, by a shell: /dev/stdin opens them anew.
        session.cp("/dev/stdin", f"{name}:in", prefix=("sh", "-c", 'echo through | "$@"', "sh")).ok()
        for path in ("/dev/stdout", "-"):
            assert session.cp(f"{name}:in", path, prefix=("sh", "-c", '"$@" | cat', "sh")).ok().out == "through\n"
        session.cp(prefix=("bash", "-c", f'"$@" <(echo of bash) {name}:bash', "bash")).ok()
        assert session.out("cat bash") == "of bash\n"
        assert os.read(fd, 100) == b"by name\n"
        session.cp(f"{name}:in", "/dev/stdout", stdout=fd).ok()
        assert os.read(fd, 100) == b"through\n"
    finally:
        os.close(fd)
    assert session.out("stat -c %s empty") == "0\n"


@pytest.mark.parametrize("path", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/stderr"])
def test_a_file_that_is_stdout_is_written_to_and_not_replaced(session: Session, place: Path, identity: Identity, path: str) -> None:
    """What is written to it before and afterwards, by others, is there as well."""
    session.out("echo text > file")
    with open(place / "out", "w") as out:
        identity.own(place / "out")
        both = 'echo before; "$@" 2>&1; echo after'
        session.cp(f"{session.name}:file", path, stdout=out, prefix=("sh", "-c", both, "sh")).ok()
        session("files", "get", "file", path, stdout=out, prefix=("sh", "-c", both, "sh")).ok()

    assert (place / "out").read_text() == 2 * "before\ntext\nafter\n"


def test_a_link_of_the_sandbox_s_is_no_way_to_the_host(session: Session, place: Path, secret: Path) -> None:
    """What is copied out are files and directories; a link would be followed by what is written next."""
    session.out(f"mkdir -p t; ln -s {place} t/dir; ln -s {secret} t/file")

    session.cp("-r", f"{session.name}:t", place / "back").ok()
    assert list((place / "back").iterdir()) == []
    assert session.cp(f"{session.name}:t/file", place / "got").code == 125
    assert not (place / "got").exists()
