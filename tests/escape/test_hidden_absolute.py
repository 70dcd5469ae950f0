# SPDX-License-Identifier: Apache-2.0
"""A file that is hidden by its absolute path on the host is hidden in every mount that shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lib.plugin import Make
from lib.sandbox import Holt
from lib.sessions import Sessions

pytestmark = pytest.mark.identities("user", "root", "nested")

READ = "cat .env sub/key; cat /ro/.env /ro/sub/key /x; true"


@pytest.fixture
def secrets(put: Make) -> list[Path]:
    return [put(".env", "PASSWORD=1\n", 0o666), put("sub/key", "PASSWORD=2\n", 0o666)]


def hide(*paths: Path | str) -> list[str]:
    return [word for path in paths for word in ("--hide", str(path))]


def test_a_workspace_at_another_place(holt: Holt, secrets: list[Path]) -> None:
    flags = ("--workspace", ".:/w")

    assert "PASSWORD" in holt.sh(READ, *flags).out
    result = holt.sh(READ, *flags, *hide(*secrets)).ok()
    assert "PASSWORD" not in result.out and "nothing is hidden" not in result.err


def test_a_policy_file(holt: Holt, put: Make, secrets: list[Path]) -> None:
    put("policy.json", json.dumps({"holt": 1, "filesystem": {"hide": [str(path) for path in secrets]}}))

    assert "PASSWORD" not in holt.sh(READ, "--policy", "policy.json", "--workspace", ".:/w").out


@pytest.mark.parametrize("kind", ("--ro", "--rw", "--files"))
def test_another_mount_of_the_same_directory(kind: str, holt: Holt, secrets: list[Path]) -> None:
    what, at = (".", "/mnt/files") if kind == "--files" else (".:/ro", "/ro")
    read = f"cat {at}/.env {at}/sub/key; true"
    flags = ("--workspace", "none", kind, what)

    assert "PASSWORD" in holt.sh(read, *flags).out
    assert "PASSWORD" not in holt.sh(read, *flags, *hide(*secrets)).out


def test_a_mount_of_the_file_alone(holt: Holt, secrets: list[Path]) -> None:
    flags = ("--workspace", "none", "--ro", f"{secrets[0]}:/x")

    assert "PASSWORD" in holt.sh("cat /x; true", *flags).out
    assert "PASSWORD" not in holt.sh("cat /x; true", *flags, *hide(secrets[0])).out


def test_a_mount_of_a_part_of_the_workspace(holt: Holt, secrets: list[Path]) -> None:
    flags = ("--ro", f"{secrets[1].parent}:/part")

    assert "PASSWORD" not in holt.sh("cat /part/key sub/key; true", *flags, *hide(secrets[1])).out


def test_a_directory_is_hidden_with_all_that_is_in_it(holt: Holt, secrets: list[Path]) -> None:
    result = holt.sh("cat sub/key; mv sub s; cat s/key; true", "--workspace", ".:/w", *hide(secrets[1].parent))

    assert "PASSWORD" not in result.out


def test_a_path_through_a_link_of_the_host(holt: Holt, place: Path, secrets: list[Path]) -> None:
    link = place / "link"
    link.symlink_to(holt.cwd)
    try:
        for path in (link / ".env", link / "sub" / "key"):
            assert "PASSWORD" not in holt.sh(f"cat {path.relative_to(link)}", "--workspace", ".:/w", *hide(path)).out
        result = holt.sh(READ, "--workspace", f"{link}:/w", *hide(*secrets))
        assert "PASSWORD" not in result.out
    finally:
        link.unlink()


def test_a_link_is_hidden_and_so_is_what_it_leads_to(holt: Holt, secrets: list[Path]) -> None:
    link = holt.cwd / "link"
    link.symlink_to(secrets[0])

    assert "PASSWORD" not in holt.sh("cat link .env; true", "--workspace", ".:/w", *hide(link)).out


def test_another_mount_over_the_place_is_not_hidden(holt: Holt, put: Make, secrets: list[Path]) -> None:
    put("sub/name", "covered\n", 0o666)
    put("over/name", "given\n", 0o666)
    flags = ("--workspace", ".:/w", "--ro", "over:/w/sub")

    assert holt.sh("cat sub/name", *flags, *hide(secrets[1].parent / "name")).ok().out == "given\n"


@pytest.mark.identities("user", "root")
def test_a_session(sessions: Sessions, secrets: list[Path]) -> None:
    session = sessions.create("w", "--workspace", ".", *hide(*secrets))

    for _ in range(2):
        assert "PASSWORD" not in session.sh(READ).out
        assert "PASSWORD" not in session("files", "cat", ".env").out
        session("stop").ok()


@pytest.mark.identities("user", "root")
def test_a_session_of_a_policy_file(sessions: Sessions, put: Make, secrets: list[Path]) -> None:
    put("policy.json", json.dumps({"holt": 1, "filesystem": {"hide": [str(path) for path in secrets]}}))
    session = sessions.create("w", "--workspace", ".", "--policy", "policy.json")

    assert "PASSWORD" not in session.sh(READ).out


def test_missing_hidden_paths_are_a_warning(holt: Holt, sessions: Sessions, secrets: list[Path]) -> None:
    absent = [holt.cwd / "none", "/no/such", "/usr/no-such", "/etc/shadow", "/tmp/none", "/home/agent/none"]
    there = [*secrets, "/etc/passwd", "/home/agent"]
    said = sorted(f"holt: --hide {path}: the path does not exist inside, so nothing is hidden" for path in absent)

    assert sorted(holt(["run", "--workspace", ".:/w", *hide(*absent), "--", "true"]).ok().err.splitlines()) == said
    assert holt(["run", "--workspace", ".:/w", *hide(*there), "--", "true"]).ok().err == ""
    assert sorted(sessions(["create", "a", "--workspace", ".", *hide(*absent)]).ok().err.splitlines()) == said
