# SPDX-License-Identifier: Apache-2.0
"""holt files and holt cp: files of a session on the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Json, Session, Sessions, until
from lib.terminal import Terminal

Make = Callable[..., Path]


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
        (("files", name), "missing VERB"),
        (("files", name, "nonsense"), "unknown verb"),
        (("files", name, "get"), "missing PATH"),
        (("files", name, "cat", "none"), "No such file"),
        (("files", name, "rm", "d"), "not empty"),
        (("files", name, "put", "-"), "no file name"),
        (("files", "nobody", "ls"), 'session "nobody" does not exist'),
        (("cp", "a"), "missing DESTINATION"),
        (("cp", "a", "b"), "names a session"),
        (("cp", f"{name}:a", f"{name}:b"), "either from the host to one session, or from one session to the host"),
        (("cp", "/etc", f"{name}:"), "directory"),
        (("cp", "/etc/hostname", f"{name}:none/"), "does not exist"),
        (("cp", "/etc/hostname", "/etc/passwd", f"{name}:none"), "several"),
        (("cp", f"{name}:d", "x"), "directory"),
        (("cp", f"{name}:d", "none/"), "cannot copy into"),
        (("cp", f"{name}:d", ""), "directory"),
        (("cp", "/etc/hostname", f"{name}:none/a"), "No such file"),
    ):
        assert word in session.sessions(args).refusal(), args


def test_patterns_are_not_expanded(session: Session, place: Path) -> None:
    """A file whose name looks like a pattern can be copied."""
    name = session.name
    session.out("touch a.txt 'b*'; mkdir d")
    session.cp(f"{name}:b*", place).ok()
    assert (place / "b*").exists()
    for pattern in ("*.txt", "a.???", "d/[ab]"):
        told = session.cp(f"{name}:{pattern}", place).err
        assert "\n  holt cp does not expand patterns: name each file, or copy the directory with -r." in told, pattern
        assert "\n  holt files does not expand patterns: " in session("files", "get", pattern, place / "x").err, pattern
    assert "patterns" not in session.cp(f"{name}:none", place).err + session("files", "rm", "none").err


def test_a_repository_that_comes_out_is_told(session: Session, place: Path) -> None:
    """The host's git would run what its config says."""
    session.out("mkdir -p r/a/.git/hooks s/.git; echo gitdir: ../x >r/.git; mkdir t l; touch t/.gitignore; ln -s . l/.git")
    name = session.name

    def told(what: str, to: str) -> str:
        return session.cp("-r", f"{name}:{what}", place / to).ok().err

    assert told("r", "1").startswith("holt: the copy contains a git repository: r/.git\n  Commands may have written its config")
    assert "git repository: s/.git\n" in told("s/.git", "2")
    assert "git repository: s/.git/\n" in told("s/.git/", "3")
    assert "git repository: t\n" in told("t", ".git")
    assert "git repository: r/.git\n" in told("r/.git", "3/.git")
    assert told("t", "4") == ""
    assert "git repository: l/.git\n" in told("l", "5"), "git follows a link"
    assert json.loads(session.cp("-r", "--json", f"{name}:r", place / "4").ok().out)["repository"] == "r/.git"
    assert session.cp("-r", place / "1", f"{name}:back").ok().err == ""


def test_a_repository_is_told_where_something_else_fails(session: Session, place: Path) -> None:
    session.out("mkdir -p r/.git")
    sources = [f"{session.name}:{path}" for path in ("r", "none")]

    assert "git repository: r/.git\n" in session.cp("-r", *sources, place).err
    again = session.cp("-r", *sources, place)
    assert "does not merge" in again.err and "git repository" not in again.err, "it is not there anew"


def test_directories_are_copied_whole(session: Session, place: Path, workspace: Path, put: Make) -> None:
    put("t/a/one", "1")
    put("t/run", "#!/bin/sh\n", 0o755)
    put("t/a/deep/er/two", b"\0\xff")
    os.symlink("one", workspace / "t/a/link")
    os.symlink("../../elsewhere", workspace / "t/a/out")
    name = session.name

    told = session.cp("-r", workspace / "t", f"{name}:")
    assert told.ok().err == (
        "holt: left out links that lead out of the directory, and special files: 1: link a/out\n"
        f"  tar copies all links: tar c DIRECTORY | holt exec {name} -- tar x\n"
    )
    assert session.out("find t -printf '%M %P\\n' | sort -k2") == (
        "drwxr-xr-x \ndrwxr-xr-x a\ndrwxr-xr-x a/deep\ndrwxr-xr-x a/deep/er\n-rw-r--r-- a/deep/er/two\n"
        "lrwxrwxrwx a/link\n-rw-r--r-- a/one\n-rwxr-xr-x run\n"
    )
    assert "exists" in session.cp("-r", workspace / "t", f"{name}:").refusal()

    session.out("for i in 1 2 3; do ln -s /etc/passwd t/l$i; done; mkfifo t/fifo; mkdir t/empty")
    told = session.cp("-r", f"{name}:t", place / "back").ok()
    assert "and special files: 4: special file fifo, link l1, link l2, ...\n" in told.err
    assert told.err.endswith(f": holt exec {name} -- tar c DIRECTORY | tar x\n")
    back = {str(p.relative_to(place / "back")) for p in (place / "back").rglob("*")}
    assert back == {"a", "a/link", "a/one", "a/deep", "a/deep/er", "a/deep/er/two", "run", "empty"}
    assert (place / "back/a/deep/er/two").read_bytes() == b"\0\xff"
    assert os.access(place / "back/run", os.X_OK)
    session.cp("-r", f"{name}:t", place / "back").ok()
    assert (place / "back/t/a/one").read_text() == "1"
    assert "exists" in session.cp("-r", f"{name}:t", place / "back").refusal()
    assert session.out("ls -A") == "t\n"
    assert not list(place.glob(".holt-*"))


@pytest.mark.identities("user", "root")
def test_holes_stay_holes_whichever_way_they_go(session: Session, place: Path, identity: Identity) -> None:
    """1 TiB of holes costs a command nothing, and must not cost the host its disk."""
    size = 1 << 40
    session.out(f"truncate -s {size} holes; printf begin | dd of=holes conv=notrunc status=none;"
                f"printf middle | dd of=holes bs=1 seek={size // 2} conv=notrunc status=none; printf x >small")

    def check(path: Path, length: int = size, at: int = 0) -> None:
        status = path.stat()
        assert status.st_size == length and status.st_blocks * 512 < 1 << 20, path
        with path.open("rb") as file:
            assert os.pread(file.fileno(), 6, at) == b"begin\0"
            assert os.pread(file.fileno(), 8, at + size // 2) == b"middle\0\0"

    name = session.name
    session.cp(f"{name}:holes", place / "cp").ok()
    session("files", "get", "holes", place / "get").ok()
    session.out("mkdir d; mv holes d")
    session.cp("-r", f"{name}:d", place / "tree").ok()
    for path in (place / "cp", place / "get", place / "tree/holes"):
        check(path)
    for old, at in (("", 0), ("old", 0), ("0123456789" * 5000, 0)):
        shell = place / "shell"
        shell.write_text(old)
        identity.own(shell)
        fd = os.open(shell, os.O_RDWR)
        try:
            os.lseek(fd, 0, os.SEEK_SET)
            session("files", "cat", "d/holes", "small", stdout=fd).ok()
        finally:
            os.close(fd)
        check(shell, size + 1)
        with shell.open("rb") as file:
            assert os.pread(file.fileno(), 50000, 0) == b"begin".ljust(50000, b"\0"), "what was there is overwritten"
            assert os.pread(file.fileno(), 2, size) == b"x"
    session.cp(place / "cp", f"{name}:again").ok()
    assert int(session.out("stat -c %b again")) < 2048


def make_deep(top: Path, depth: int) -> None:
    """Makes nested directories, each called d and with a file f in it."""
    top.mkdir(parents=True)
    fd = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=below))
        os.close(fd)
        fd = below
    os.close(fd)


DEEP = r"""python3 -c '
import os, sys
fd = os.open(".", os.O_RDONLY)
for name in ["e"] + ["d"] * 1100:
    os.mkdir(name, dir_fd=fd)
    fd = os.open(name, os.O_RDONLY, dir_fd=fd)
'"""


@pytest.mark.identities("user", "root")
def test_a_deep_tree_is_copied_whole_both_ways(session: Session, place: Path, workspace: Path) -> None:
    make_deep(workspace / "deep", 100)
    name = session.name

    session.cp("-r", workspace / "deep", f"{name}:deep").ok()
    assert session.out("find deep -type f | wc -l") == "100\n"
    session("files", "cp", "-r", "deep", "again").ok()
    assert session.out("find again -type f | wc -l") == "100\n"
    session.cp("-r", f"{name}:again", place / "back").ok()
    assert sum(len(files) for _, _, files in os.walk(place / "back")) == 100
    assert session("files", "ls", "-r", "again").ok().out.count("/f\n") == 100
    assert len(json.loads(session("files", "ls", "-r", "--json", "again").ok().out)["entries"]) == 200


@pytest.mark.slow
@pytest.mark.identities("user", "root")
def test_a_tree_that_is_too_deep_is_refused_by_name(session: Session, place: Path, workspace: Path) -> None:
    make_deep(workspace / "deep", 1100)
    name = session.name
    session.out(DEEP)

    for told in (
        session.cp("-r", workspace / "deep", f"{name}:deep"),
        session.cp("-r", f"{name}:e", place / "back"),
        session("files", "cp", "-r", "e", "e2"),
    ):
        assert "d/d/d/d/d" in told.refusal() and "1024" in told.err
    assert not (place / "back").exists()
    assert session.out("ls -A") == "e\n", "nothing is left of half a copy"
    assert 'the list is incomplete: cannot read directory "d/d/d' in session("files", "ls", "-r", "e").ok().err
    subprocess.run(["rm", "-rf", workspace / "deep"], check=True)  # pytest's own removal recurses
    session("files", "rm", "-r", "e").ok()


@pytest.mark.identities("user", "root")
def test_copying_names_directories_that_cannot_be_read(session: Session, place: Path) -> None:
    session.out("mkdir -p t/none t/names; echo 1 >t/none/f; echo 1 >t/names/f; chmod 0 t/none; chmod 444 t/names")
    assert 'directory "names"' in session.cp("-r", f"{session.name}:t", place / "back").refusal() + ""
    session.out("chmod 755 t/names")
    assert 'directory "none"' in session.cp("-r", f"{session.name}:t", place / "back").refusal()
    assert not (place / "back").exists()
    assert '"none" (EACCES)' in session("files", "ls", "-r", "t").ok().err


@pytest.mark.identities("user", "root", "nested")
def test_names_of_any_bytes_are_copied_as_they_are(session: Session, place: Path, workspace: Path) -> None:
    odd = os.fsencode(workspace) + b"/odd"
    os.makedirs(odd + b"/sub\xff")
    for path, text in ((b"/caf\xe9", b"1"), (b"/sub\xff/\x01mark", b"2"), (b"/\xed\xa0\x80", b"3"), (b"/ok", b"4")):
        with open(odd + path, "wb") as file:
            file.write(text)
    name = session.name

    session.cp("-r", odd, f"{name}:odd").ok()
    assert session.out(r"""cat odd/*/$'\x01mark' odd/ok odd/$'caf\xe9' odd/$'\xed\xa0\x80'""") == "2413"
    session.cp("-r", f"{name}:odd", place / "back").ok()
    back = os.fsencode(place / "back")
    assert sorted(os.listdir(back)) == sorted(os.listdir(odd))
    with open(back + b"/sub\xff/\x01mark") as file:
        assert file.read() == "2"
    session.cp(odd + b"/caf\xe9", f"{name}:").ok()
    shown = session("files", "ls", "-r", "odd").ok().out
    assert r" caf\xe9" in shown and r" sub\xff/\x01mark" in shown
    assert session("files", "cat", b"caf\xe9").ok().out == "1"
    session("files", "mv", b"caf\xe9", b"caf\xea").ok()
    session("files", "rm", b"caf\xea").ok()
    assert session.out("ls -A") == "odd\n"


def test_cp_prints_its_result_as_json(session: Session, place: Path) -> None:
    name = session.name
    (place / "t/d").mkdir(parents=True)
    (place / "t/one").write_bytes(b"1" * 1000)
    (place / "t/d/two").write_bytes(b"")
    for n in range(4):
        (place / f"t/l{n}").symlink_to("/one")

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
    assert json.loads(refused.err)["error"]["message"] == "--json and the file would both go to stdout"


@pytest.mark.alike
@pytest.mark.parametrize("stopped", (False, True))
def test_a_long_copy_shows_how_far_it_is(
    stopped: bool, sessions: Sessions, workspace: Path, place: Path, terminal: Callable[..., Terminal]
) -> None:
    """The copy does not wait for a stopped terminal."""
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
        time.sleep(0.5)  # in this time, an unstopped terminal would have got the line again
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
    """In a directory that the session can write, such as its workspace, a command may have made it."""
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
    # Both ends are opened by one call, so that it waits for nobody.
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
    """Earlier and later output of other programs is in the file, too."""
    session.out("echo text > file")
    with open(place / "out", "w") as out:
        identity.own(place / "out")
        both = 'echo before; "$@" 2>&1; echo after'
        session.cp(f"{session.name}:file", path, stdout=out, prefix=("sh", "-c", both, "sh")).ok()
        session("files", "get", "file", path, stdout=out, prefix=("sh", "-c", both, "sh")).ok()

    assert (place / "out").read_text() == 2 * "before\ntext\nafter\n"


# Targets of links in the directory a/b of a tree, and whether they stay in the tree.
LINKS = {
    "file": True, "./file": True, "../up": True, "../../top": True, "../..": True, "..//.././/x": True, "deep/er": True,
    "missing/for/now": True, ".hidden/..x": True, "...": True, "ä \\ x": True,
    "/etc/passwd": False, "/": False, "../../..": False, "../../../etc": False, "deep/../file": False, "./x/../../../../y": False,
    "../../c/../../x": False,
}


@pytest.mark.parametrize("into", (True, False), ids=("in", "out"))
def test_links_that_stay_in_the_tree_are_copied(into: bool, session: Session, place: Path, identity: Identity) -> None:
    """Each keeps its target, whether or not that exists. The others are left out, and counted."""
    script = "import os, sys\nos.makedirs('t/a/b')\nfor i, x in enumerate(sys.argv[1:]): os.symlink(x, f't/a/b/{i}')"
    if into:
        identity.run(["python3", "-c", script, *LINKS], cwd=place).check_returncode()
        told = session.cp("-r", place / "t", f"{session.name}:t2").ok()
    else:
        session.exec("python3", "-c", script, *LINKS).ok()
        told = session.cp("-r", f"{session.name}:t", place / "t2").ok()

    show = "import os\nd = 't2/a/b'\nprint(sorted(os.readlink(f'{d}/{n}') for n in os.listdir(d)))"
    if into:
        shown = session.exec("python3", "-c", show).ok().out
    else:
        shown = identity.run(["python3", "-c", show], cwd=place).stdout
    assert shown.strip() == str(sorted(target for target, stays in LINKS.items() if stays))
    assert f"special files: {list(LINKS.values()).count(False)}: link a/b/" in told.err


def test_links_lead_to_the_copies(session: Session, place: Path) -> None:
    session.out("mkdir -p t/bin t/lib; echo one > t/lib/x; ln -s ../lib/x t/bin/x; ln -s lib t/also; ln -s nowhere t/dangling")

    session.cp("-r", f"{session.name}:t", place / "back").ok()
    assert (place / "back/bin/x").read_text() == (place / "back/also/x").read_text() == "one\n"
    session.cp("-r", place / "back", f"{session.name}:again").ok()
    assert session.out("cat again/bin/x again/also/x; readlink again/dangling") == "one\none\nnowhere\n"


def test_a_link_of_the_sandbox_s_is_no_way_to_the_host(session: Session, place: Path, secret: Path) -> None:
    """The links that remain stay inside the tree, even if they are combined."""
    session.out(f"mkdir -p t/a/b; ln -s {place} t/dir; ln -s {secret} t/file; ln -s ../.. t/a/b/up; ln -s a/b/up/../x t/out")

    session.cp("-r", f"{session.name}:t", place / "back").ok()
    links = [path for path in (place / "back").rglob("*") if path.is_symlink()]
    assert links == [place / "back/a/b/up"]
    assert links[0].resolve() == (place / "back").resolve()
    assert session.cp(f"{session.name}:t/file", place / "got").code == 125
    assert not (place / "got").exists()


def test_a_directory_is_not_copied_into_itself(sessions: Sessions, put: Make) -> None:
    put("src/a/file", "x\n")
    session = sessions.create("w", "--workspace", ".")

    for source, target in (("src", "w:src"), ("src", "w:src/a/new"), (".", "w:new")):
        result = session.cp("-r", source, target)
        assert result.code == 125 and "cannot copy a directory into itself" in result.err, str(result)
    assert session.cp("-r", "src", "w:copy").ok().err == ""
    assert session.out("find src copy -name '.holt-*'; cat copy/a/file") == "x\n"


@pytest.mark.parametrize("to", ("new", "src/new"))
def test_a_copy_has_no_temporary_directory_of_holt_s(
    to: str, sessions: Sessions, holt: Holt, put: Make
) -> None:
    put("src/a/file", "x\n")
    session = sessions.create("w", "--workspace", ".")

    session.cp("-r", "w:.", to).ok()
    assert sorted(path.name for path in holt.cwd.rglob("*")) == ["a", "a", "file", "file", "new", "src", "src"]
