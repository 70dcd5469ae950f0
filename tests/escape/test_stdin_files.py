# SPDX-License-Identifier: Apache-2.0
"""A protected or hidden file that the caller passes as stdin, open for reading, cannot be opened again for writing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.repository import Repository
from lib.sandbox import Holt
from lib.sessions import Sessions

ALL = pytest.mark.identities("user", "root", "nested")

# The file shows whether an attack has changed it.
ATTACKS = {
    "written": "exec 3<>/proc/self/fd/0 && echo evil >&3",
    "appended to": "echo evil >>/dev/stdin",
    "cut": ": >/proc/self/fd/0",
    "cut by its path": "/usr/bin/python3 -c 'import os; os.truncate(\"/proc/self/fd/0\", 0)'",
    "given another mode": "/usr/bin/python3 -c 'import os; os.fchmod(0, 0o666)'",
    "given a time": "/usr/bin/python3 -c 'import os; os.utime(0, (1, 1))'",
    "written by its link": "/usr/bin/python3 -c 'import os; open(os.readlink(\"/proc/self/fd/0\"), \"w\").write(\"evil\")'",
}
FILES = {"guarded": ".git/config", "in a guarded directory": ".git/hooks/post-commit", "hidden": ".env"}


@pytest.fixture
def files(repository: Repository) -> Repository:
    for name in (".git/hooks/post-commit", ".env", "plain"):
        path = repository.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("the caller's\n")
        path.chmod(0o644)
        repository.identity.own(path)
    return repository


def state(path: Path) -> tuple[bytes, int, int]:
    stat = path.stat()
    return path.read_bytes(), stat.st_mode, stat.st_mtime_ns


@ALL
@pytest.mark.parametrize("landlock", ("auto", "off"))
@pytest.mark.parametrize("name", FILES.values(), ids=FILES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_run(attack: str, name: str, landlock: str, holt: Holt, files: Repository) -> None:
    path = files.path / name
    before = state(path)
    with path.open() as stdin:
        holt(["run", "--landlock", landlock, "--hide", ".env", "--", "bash", "-c", ATTACKS[attack]], stdin=stdin)

    assert state(path) == before


@ALL
@pytest.mark.parametrize("name", FILES.values(), ids=FILES)
def test_a_session(name: str, sessions: Sessions, files: Repository) -> None:
    session = sessions.create("s", "--workspace", files.path, "--hide", ".env")
    path = files.path / name
    before = state(path)
    for attack in ATTACKS.values():
        with path.open() as stdin:
            session.exec("bash", "-c", attack, stdin=stdin)
        with session.rpc() as rpc, path.open() as stdin:
            process = rpc.call("process.spawn", [stdin.fileno()], argv=["bash", "-c", attack], fds=1)["id"]
            rpc.call("process.wait", id=process)

    assert state(path) == before


@ALL
@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("landlock", ("auto", "off"))
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_file_outside_of_all_mounts_cannot_be_changed(
    attack: str, landlock: str, sandboxed: bool, holt: Holt, place: Path, workspace: Path
) -> None:
    """Landlock protects the content there, but not the mode."""
    path = place / "outside"
    path.write_text("the caller's\n")
    path.chmod(0o644)
    holt.identity.own(path)
    before = state(path)
    with path.open() as stdin:
        if sandboxed:
            holt(["run", "--landlock", landlock, "--", "bash", "-c", ATTACKS[attack]], stdin=stdin)
        else:
            holt.identity.run(["bash", "-c", ATTACKS[attack]], stdin=stdin)

    assert (state(path) == before) is sandboxed


@pytest.mark.identities("user")
def test_a_large_file_outside_of_all_mounts_keeps_its_content(holt: Holt, place: Path, workspace: Path) -> None:
    """Such a file is not copied, but its content is protected."""
    path = place / "outside"
    path.touch()
    os.truncate(path, 32 << 20)
    holt.identity.own(path)
    with path.open() as stdin:
        assert holt(["run", "--", "wc", "-c"], stdin=stdin).ok().out.split() == [str(32 << 20)]
    for attack in ("written", "appended to", "cut", "cut by its path", "written by its link"):
        with path.open() as stdin:
            holt(["run", "--", "bash", "-c", ATTACKS[attack]], stdin=stdin)
        with path.open() as stdin:
            result = holt(["run", "--landlock", "off", "--", "bash", "-c", ATTACKS[attack]], stdin=stdin)
        assert "must not write" in result.refusal()

    assert path.stat().st_size == 32 << 20


@ALL
@pytest.mark.parametrize("name", (*FILES.values(), "plain"))
def test_a_file_as_stdin_can_be_read(name: str, holt: Holt, sessions: Sessions, files: Repository) -> None:
    """Reading goes on at the caller's offset."""
    path = files.path / name
    session = sessions.create("s", "--workspace", files.path, "--hide", ".env")
    for run in (lambda stdin: holt(["run", "--hide", ".env", "--", "cat"], stdin=stdin),
                lambda stdin: session.exec("cat", stdin=stdin)):
        with path.open("rb", buffering=0) as stdin:
            stdin.read(3)
            assert run(stdin).ok().out == path.read_text()[3:]
        with path.open("rb", buffering=0) as stdin:
            assert run(stdin).ok().out == path.read_text()


@pytest.mark.identities("user")
def test_a_writable_file_is_not_copied(holt: Holt, files: Repository) -> None:
    """Without a copy, the caller can go on reading at the command's offset."""
    with (files.path / "plain").open("rb", buffering=0) as stdin:
        holt(["run", "--", "head", "-c1"], stdin=stdin).ok()
        assert stdin.tell() > 0
        stdin.seek(0)
        holt(["run", "--", "bash", "-c", ATTACKS["written"]], stdin=stdin).ok()

    assert (files.path / "plain").read_text().startswith("evil")


@pytest.mark.identities("user")
def test_a_file_too_large_to_copy_is_refused_or_piped(holt: Holt, sessions: Sessions, files: Repository) -> None:
    path = files.path / ".env"
    os.truncate(path, (16 << 20) + 1)
    session = sessions.create("s", "--workspace", files.path, "--hide", ".env")
    with path.open() as stdin:
        result = holt(["run", "--hide", ".env", "--", "cat"], stdin=stdin)
    refusal, cure = result.refusal(), result.cure
    assert "stdin is a file that the command must not write" in refusal and "cat FILE |" in cure
    with path.open() as stdin:
        assert session.exec("sha256sum", stdin=stdin).out.split()[0] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_another_mount_of_the_workspace(holt: Holt, files: Repository, place: Path) -> None:
    """Only root can make one. The kernel names the file by that mount, to which no path in the policy leads."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    alias = place / "alias"
    alias.mkdir()
    os.system(f"mount --bind {files.path} {alias}")
    try:
        path = alias / ".git/config"
        before = state(path)
        for attack in ATTACKS.values():
            with path.open() as stdin:
                holt(["run", "--", "bash", "-c", attack], stdin=stdin)
        assert state(path) == before
    finally:
        os.system(f"umount {alias}")
