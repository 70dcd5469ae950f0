# SPDX-License-Identifier: Apache-2.0
"""Files of a session: one view for its commands, the methods files.* and mount.*."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sessions import Json, Rpc, Session, Sessions
from lib.terminal import pending_input

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


def test_methods_and_bash_see_the_same_files(session: Session, rpc: Rpc) -> None:
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


def test_read_only_paths_are_read_only_for_methods(rpc: Rpc) -> None:
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
    assert rows[0]["result"]["errno"] == "ECANCELED"
    assert names(rpc("files.list", path="d")) == ["old"]
    assert rpc("files.read", path="d/old")["content"] == "old"


@pytest.mark.parametrize("whom", ("keeper", "client"))
def test_a_killed_transfer_leaves_nothing(whom: str, session: Session, place: Path) -> None:
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
        assert "Make it by files.mkdir with make_parents" in refused.hint
    assert "make" not in rpc.refused("files.write", path="", content="", make_parents=True).hint
    rpc("files.write", path="no/f", content="", make_parents=True)


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


def test_listed_files_can_be_opened_by_their_raw_names(session: Session, rpc: Rpc) -> None:
    session.out(r"""mkdir d; cd d; for c in '\1' a '\351'; do printf "$c" > "$(printf "$c")"; done""")
    entries = rpc("files.list", path="d")["entries"]
    assert [e.get("raw") for e in entries] == ["\1AQ==", None, "\1" + base64.b64encode(b"\xe9").decode()]
    found = rpc("files.glob", pattern="d/*")["entries"]
    raws = [e.get("raw", e["name"]) for e in found]
    assert [rpc("files.read", path=raw, base64=True)["content"] for raw in raws] == ["AQ==", "YQ==", "6Q=="]
    assert rpc("files.grep", pattern="a", path="d")["matches"] == [{"name": "a", "line": 1, "text": "a"}]


@pytest.mark.parametrize("odd", ["\1a", "\1YQ", "\1AA==", "\1L2V0Yw==\n"])
def test_a_path_that_is_no_base64_is_refused(rpc: Rpc, odd: str) -> None:
    assert rpc.refused("files.read", path=odd).kind == "usage"
    assert rpc.refused("files.list", path=odd).kind == "usage"
    assert rpc.refused("files.move", **{"from": "a", "to": odd}).kind == "usage"


def test_a_list_of_proc(rpc: Rpc) -> None:
    """"self" leads nowhere for the keeper, and the keeper cannot read a process's links."""
    entries = {e["name"]: e for e in rpc("files.list", path="/proc")["entries"]}

    assert {"1", "cpuinfo", "self"} <= set(entries)
    assert (entries["self"]["type"], entries["self"]["target"]) == ("link", None)
    assert rpc("files.stat", path="/proc/self", follow=False)["type"] == "link"


def test_an_empty_path_is_told(rpc: Rpc) -> None:
    assert rpc.refused("files.read", path="").message == 'cannot read ""'


def test_a_copy_says_what_it_leaves_out(session: Session) -> None:
    session.out("mkdir -p d; mkfifo d/a d/b")

    assert session("files", "cp", "-r", "d", "copy").ok().err == "holt: special files left out (FIFOs, sockets, devices): 2\n"
    assert session("files", "mv", "d", "moved").ok().err == ""


def test_lists_have_the_facts_of_each_entry(session: Session, rpc: Rpc) -> None:
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


def test_methods_change_the_tree(session: Session, rpc: Rpc) -> None:
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


def test_copying_and_moving_replace_a_file_only_on_request(session: Session, rpc: Rpc) -> None:
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
        assert refused.message == "mount.list: limit must be an integer from 1 to 500"
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


# --- history ---


def test_each_call_is_in_the_history(rpc: Rpc) -> None:
    rpc("files.write", path="a", content="x" * 5000)
    rpc("files.read", path="a")
    rpc.refused("files.read", path="none")
    rpc("mount.list")
    rows = rpc("history.list")["rows"]

    assert [row["name"] for row in rows] == ["mount.list", "files.read", "files.read", "files.write"]
    assert [row["result"]["success"] for row in rows] == [True, False, True, True]
    assert rows[1]["result"]["errno"] == "ENOENT"
    assert rows[1]["params"] == {"path": "none"}
    assert len(rows[3]["params"]["content"]) == 1024
    assert all(0 < row["started_ms"] <= row["ended_ms"] for row in rows)
