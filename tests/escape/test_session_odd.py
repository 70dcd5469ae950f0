# SPDX-License-Identifier: Apache-2.0
"""Odd files that commands of a session leave for the host to find. No reader hangs on them or leaves the session
through them, and a terminal gets only text."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sessions import RpcError, Session, Sessions, until
from lib.terminal import Terminal

# --- entries that are not files ---

THINGS = {
    "a fifo": "mkfifo thing",
    "a fifo with a writer": "mkfifo thing; (exec 3<>thing; exec sleep 1000) &",
    "a socket": "python3 -c 'import socket, time; s = socket.socket(socket.AF_UNIX); s.bind(\"thing\"); s.listen()'",
    "a link to a terminal": "ln -s /dev/ptmx thing",
    "a link to a device": "ln -s /dev/zero thing",
    "a link to itself": "ln -s thing thing",
    "a link to a descriptor": "ln -s /proc/1/fd/3 thing",
    "a link to the memory of init": "ln -s /proc/1/mem thing",
    "a link to what has no end": "ln -s /proc/kmsg thing",
}


@pytest.mark.parametrize("what", THINGS)
def test_special_files_are_neither_opened_nor_waited_for(what: str, session: Session, place: Path) -> None:
    session.detach(f"{THINGS[what]}\n echo >made; exec sleep 1000")
    with session.rpc() as rpc:
        until(lambda: rpc.call("files.exists", path="made")["exists"], "it is there")
        for method, params in (
            ("files.read", {}), ("files.open", {}), ("files.write", {"content": "x"}),
            ("files.append", {"content": "x"}), ("files.copy", {"to": "copy"}), ("files.grep", {"pattern": "x"}),
        ):
            path = {"from" if method == "files.copy" else "path": "thing"}
            if method == "files.copy" and "link" in what:
                rpc.call(method, timeout=20, **path, **params)  # The link itself is copied.
                continue
            with pytest.raises(RpcError) as refused:
                rpc.call(method, timeout=20, **path, **params)
            assert refused.value.kind in ("usage", "missing"), (method, refused.value)
        rpc.call("files.list", timeout=20, recursive=True)
        assert rpc.call("files.grep", timeout=20, pattern="x")["matches"] == []
    assert session.cp("w:thing", place / "got", timeout=20).code == 125
    session.cp("-r", "w:", place / "all", timeout=20).ok()
    # A relative link that stays in the tree is copied as a link.
    links = ["copy", "thing"] if what == "a link to itself" else []
    assert sorted(p.name for p in (place / "all").iterdir()) == sorted(["made", *links])
    assert all((place / "all" / name).is_symlink() for name in links)


def test_a_lease_on_a_file_holds_nobody(session: Session) -> None:
    """Opening it would wait until the command gives the lease up (fcntl(2), F_SETLEASE)."""
    script = (
        "import fcntl, signal, time\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nf = open('leased', 'w+')\n"
        "fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nopen('ready', 'w')\ntime.sleep(1000)"
    )
    with session.rpc() as rpc:
        rpc.call("process.spawn", argv=["python3", "-c", script])
        until(lambda: rpc.call("files.exists", path="ready")["exists"], "it is leased")
        assert rpc.refused("files.read", path="leased").errno == "EAGAIN"
        assert rpc.refused("files.append", path="leased", content="x").errno == "EAGAIN"
        rpc.call("files.write", path="leased", content="x", timeout=20)


def test_a_hard_link_gives_nothing_that_was_not_there(session: Session, secret: Path, place: Path) -> None:
    """Only files on the same mount can be linked, and that mount is the session's own."""
    made = session.out(
        "for f in /usr/bin/env /etc/passwd /etc/hostname /mnt/files /proc/1/environ; do ln $f hard 2>/dev/null && echo $f; done; true"
    )
    assert made == ""


# --- mounts and the directories above them ---

REPLACE = {
    "renamed away": "mv {0} {0}.old; mkdir {0}; rmdir {0}.old",
    "removed": "rm -rf {0}",
    "a link over it": "ln -sfn / {0}",
    "another over it": "mkdir /x; mv -T /x {0}",
    "exchanged": "mkdir /x; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"/x\", -100, b\"{0}\", 2)'",
}


@pytest.mark.parametrize("how", REPLACE)
@pytest.mark.parametrize("where", ("/workspace", "/mnt/files", "/proc", "/dev", "/usr", "/etc"))
def test_mounts_stay_where_they_are(where: str, how: str, session: Session) -> None:
    before = session.out("cut -d' ' -f5 /proc/self/mountinfo | sort")
    session.sh(f"cd /; {REPLACE[how].format(where)}")

    assert session.out("cut -d' ' -f5 /proc/self/mountinfo | sort") == before
    with session.rpc() as rpc:
        rpc.call("files.write", path="/workspace/f", content="x")
        rpc.call("mount.upload", path="f", content="x")
    assert session.out("cat /workspace/f /mnt/files/f") == "xx"
    for name in ("workspace", "files"):
        assert (session.directory / name / "f").read_text() == "x"


def test_methods_follow_a_moved_parent_of_a_mount(session: Session) -> None:
    """/mnt is the session's own; the mount in it moves along."""
    session.sh("cd /; mv mnt old; mkdir -p mnt/files; echo inside >mnt/files/f")
    with session.rpc() as rpc:
        assert rpc.call("files.read", path="/mnt/files/f")["content"] == "inside\n"
        rpc.call("mount.upload", path="g", content="x")
        assert [e["name"] for e in rpc.call("files.list", path="/mnt/files")["entries"]] == ["f", "g"]
    session.stop()
    assert session.exec("true").ok()


# --- many, deep and odd names ---


def test_a_deep_directory_and_one_of_many_names(sessions: Sessions, session: Session, place: Path) -> None:
    """A walk through either comes to an end, and both are removed completely."""
    session.out(
        "python3 -c \"import os\nfor i in range(1500): os.mkdir('d'); os.chdir('d')\";"
        "mkdir many; cd many; seq 50000 | xargs touch"
    )
    with session.rpc() as rpc:
        page = rpc.call("files.list", path="many", limit=10000)
        assert len(page["entries"]) <= 10000 and page["next"]
        assert rpc.call("files.list", recursive=True, limit=1)["next"]
        assert rpc.call("files.glob", pattern="**/nothing")["entries"] == []
        assert rpc.call("files.grep", pattern="nothing")["matches"] == []
        assert rpc.refused("files.copy", **{"from": "d", "to": "e", "recursive": True}).kind == "limit"
        assert not rpc.call("files.exists", path="e")["exists"]
        rpc.call("files.remove", path="d", recursive=True)
        assert not rpc.call("files.exists", path="d")["exists"]
    session.out("python3 -c \"import os\nfor i in range(1500): os.mkdir('d'); os.chdir('d')\"")
    session("rm").ok()
    assert not session.directory.exists()


# Bytes on which a terminal acts, and characters that mislead a reader.
WORDS = ["\x1b]0;owned\x07", "\x1b[2J", "a\nb", "a\rb", "\u202egpj", "\x9b31m", "\x7f"]
HOSTILE = {*"\x1b\x07\r\x7f\x9b\u202e"}


def shown(sessions: Sessions, *args: str) -> str:
    """The output of "holt ARGS" on a terminal."""
    holt = sessions.holt
    with Terminal(holt.identity, holt.argv([*args]), cwd=holt.cwd, env=sessions.env) as terminal:
        terminal.wait()
        return terminal.output.replace("\r\n", "\n")


def test_names_are_text_on_a_terminal(sessions: Sessions, session: Session, place: Path) -> None:
    with session.rpc() as rpc:
        for i, word in enumerate(WORDS):
            rpc.call("files.write", path=f"d/{i}{word}", content="x", make_parents=True)
        rpc.call("kv.set", key=WORDS[0], value="v")
        for word in WORDS:
            rpc.call("exec", argv=["true", word])
    session.out("cd d; touch \"$(printf '9\\377\\033[2Jx')\"; ln -s \"$(printf '\\033[2Jx')\" 8link; mkdir \"$(printf '7\\033[2Jx')\"")
    for args in (
        ("files", "w", "ls", "d"), ("files", "w", "ls", "-r"), ("ps", "w"), ("history", "w"), ("kv", "w", "keys"),
        ("files", "w", "stat", f"d/0{WORDS[0]}"), ("audit", "w"), ("ls",), ("show", "w"),
        ("files", "w", "ls", "--json", "d"), ("history", "w", "--json"), ("ps", "w", "--json"),
        ("kv", "w", "keys", "--json"), ("files", "w", "cat", f"none{WORDS[0]}"), ("files", "w", "rm", f"none{WORDS[1]}"),
        ("kv", "w", "get", f"none{WORDS[0]}"), ("cp", "-r", "w:d", "/proc/none"), ("exec", "w", "--", f"none{WORDS[1]}"),
        ("kill", "w", WORDS[0]), ("logs", "w", WORDS[1]),
    ):
        text = shown(sessions, *args)
        # JSON is for programs, and contains all characters above ASCII unchanged.
        hostile = HOSTILE - {"\u202e"} if "--json" in args else HOSTILE
        assert not hostile & set(text), (args, text)
        assert "\na" not in text and "\nb" not in text, (args, text)


def test_cp_names_failed_files_as_text(sessions: Sessions, session: Session, place: Path, identity: Identity) -> None:
    """The name has a byte that is not UTF-8, and a control sequence."""
    session.out("mkdir d; cd d; touch \"$(printf 'x\\377\\033[2Jx')\"")
    text = shown(sessions, "cp", "-r", "w:d", str(place / "d"))

    assert not HOSTILE & set(text), text


def test_a_command_called_dashes(session: Session) -> None:
    session.out("mkdir -p ~/bin; printf '#!/bin/sh\\necho ran $# $1\\n' >~/bin/--; chmod +x ~/bin/--")
    path = "/home/agent/bin:/usr/bin:/bin"

    assert session.exec("--", "-x", flags=["--env", f"PATH={path}"]).ok().out == "ran 1 -x\n"
    with session.rpc() as rpc:
        assert rpc.call("exec", argv=["--", "--help"], env={"PATH": path})["stdout"] == "ran 1 --help\n"
        assert rpc.call("exec", argv=["/home/agent/bin/--"])["stdout"] == "ran 0\n"
