# SPDX-License-Identifier: Apache-2.0
"""If git finds no repository in the sandbox, a hint names the option that shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import Sessions
from lib.tools import needs

Make = Callable[..., Path]


@needs("git")
@pytest.mark.parametrize("depth, way", (("sub", ".."), ("sub/deep", "../..")))
def test_git_in_a_subdirectory_gets_a_hint(depth: str, way: str, holt: Holt, mkdir: Make) -> None:
    mkdir("sub")
    mkdir("sub/deep")
    holt.identity.run(["git", "init", "--quiet"], cwd=holt.cwd)
    for command in (["git", "status"], ["sh", "-c", "git log"]):
        result = holt(["run", "--", *command], cwd=holt.cwd / depth)
        assert result.code == 128
        assert f"it is {holt.cwd}, above the workspace" in result.err and f"--workspace {way}\n" in result.err
    result = holt(["run", "--workspace", holt.cwd / depth, "--", "git", "status"], cwd=holt.cwd)
    assert f"--workspace {holt.cwd}\n" in result.err

    assert holt(["run", "--workspace", way, "--", "git", "status"], cwd=holt.cwd / depth).code == 0
    for args in (["--workspace", way, "--", "sh", "-c", "exit 128"], ["--workspace", "none", "--", "git", "status"], ["--", "false"]):
        assert "above the workspace" not in holt(["run", *args], cwd=holt.cwd / depth).err


@needs("git")
def test_git_in_a_subdirectory_gets_a_hint_in_a_session(holt: Holt, sessions: Sessions, mkdir: Make) -> None:
    mkdir("sub")
    holt.identity.run(["git", "init", "--quiet"], cwd=holt.cwd)
    session = sessions.create("w", "--workspace", holt.cwd / "sub")

    result = session.exec("git", "status")
    assert f": holt create --workspace {holt.cwd}\n" in result.err
    assert result.err.count('The mounts and limits of session "w" are fixed when it is created') == 1, str(result)
    assert "above the workspace" not in session.sh("exit 127").err


@pytest.fixture
def linked(holt: Holt, program: Make) -> Path:
    """A linked worktree and, beside it, a repository with a submodule."""
    git = "git -c user.name=a -c user.email=b@c -c protocol.file.allow=always"
    script = f"""{git} init -q main; cd main; {git} commit -q --allow-empty -m x; {git} worktree add -q ../tree
        {git} init -q ../super; cd ../super; {git} submodule --quiet add ../main sub"""
    where = program("linked/x").parent
    holt.identity.run(["bash", "-ec", script], cwd=where).check_returncode()
    return where


@needs("git")
def test_git_add_in_a_linked_worktree_is_for_the_host(holt: Holt, linked: Path) -> None:
    result = holt.sh("echo x > f; git add f", "--ro", f"{linked}/main/.git", cwd=linked / "tree")
    assert "git on the host uses what is there: run this git command outside\n" in result.err, str(result)


def test_a_worktree_outside_the_workspace_is_made_outside(holt: Holt, put: Callable[..., Path]) -> None:
    put(".git/HEAD", "ref: refs/heads/main\n")
    message = "fatal: could not create leading directories of '/opt/tree/.git': Read-only file system"
    result = holt(["run", "--", "sh", "-c", 'echo "$0" >&2; exit 128', message])
    assert "run this git command outside\n" in result.err, str(result)


@needs("git")
def test_git_in_a_linked_worktree_gets_a_hint(holt: Holt, sessions: Sessions, linked: Path) -> None:
    git = linked / "main/.git"
    result = holt(["run", "--", "git", "status"], cwd=linked / "tree")
    assert f"it is {git}/worktrees/tree, outside" in result.err and f": --ro {git}\n" in result.err, str(result)
    assert holt(["run", "--ro", git, "--", "git", "status"], cwd=linked / "tree").ok()

    session = sessions.create("w", "--workspace", linked / "tree")
    assert f": holt create --ro {git}\n" in session.exec("git", "status").err
    assert sessions.create("ro", "--workspace", linked / "tree", "--ro", git).exec("git", "status").ok().err == ""


@needs("git")
def test_git_in_a_submodule_gets_a_hint(holt: Holt, linked: Path) -> None:
    top = linked / "super"
    result = holt(["run", "--", "git", "status"], cwd=top / "sub")
    assert f"it is {top}/.git/modules/sub, outside" in result.err and f": --workspace {top}\n" in result.err, str(result)
    assert holt(["run", "--workspace", top, "--", "git", "status"], cwd=top / "sub").ok()


@needs("git")
def test_a_git_file_that_names_no_repository_gives_no_hint(holt: Holt, linked: Path, put: Make) -> None:
    """An archive may bring such a file, to make people share another directory."""
    for leads in (f"{linked}/super", f"{linked}/x/.git/worktrees/a"):
        put(".git", f"gitdir: {leads}\n")
        result = holt(["run", "--", "git", "status"])
        assert result.code == 128 and "holt:" not in result.err, str(result)
