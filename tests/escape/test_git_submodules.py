# SPDX-License-Identifier: Apache-2.0
"""The caller's own submodules are not turned against the caller."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.repository import Plant, Repository, config, evil, make, with_submodule
from lib.sandbox import Holt


def own(path: str) -> Plant:
    """Replaces a submodule by a repository of the attacker's."""
    return lambda r: f"cp -r .git evil; rm -rf {path}/.git; mv evil {path}/.git; {config(r, f'{path}/.git/config')}"


SUBMODULE: dict[str, Plant] = {
    "config": lambda r: config(r, ".git/modules/sub/config"),
    "by git": lambda r: f"git -C sub config core.fsmonitor '{r.payload}; false'",
    ".git replaced": own("sub"),
    ".git leads elsewhere": lambda r: (
        f"cp -r .git evil; {config(r, 'evil/config')}; echo 'gitdir: ../evil' >sub/new; mv -f sub/new sub/.git"
    ),
    "directory replaced": lambda r: f"mv sub gone; cp -r gone sub; {own('sub')(r)}",
    "directory exchanged": lambda r: (
        f"cp -r sub new; {own('new')(r)};"
        "python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"sub\", -100, b\"new\", 2)'"
    ),
    "commondir": lambda r: f"cp -r .git evil; {config(r, 'evil/config')}; echo ../../../evil >.git/modules/sub/commondir",
}


@pytest.mark.parametrize("plant", SUBMODULE.values(), ids=SUBMODULE.keys())
def test_a_submodule_is_not_turned_against_its_owner(
    plant: Plant, holt: Holt, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place)
    result = holt.sh(plant(repository))

    assert not repository.use(), str(result)
    assert (repository.path / "sub/.git").read_text() == "gitdir: ../.git/modules/sub\n"


@pytest.mark.parametrize("plant", SUBMODULE.values(), ids=SUBMODULE.keys())
def test_each_way_to_turn_a_submodule_works_without_holt(
    plant: Plant, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place)
    repository.identity.run(["bash", "-c", plant(repository)], cwd=repository.path)

    assert repository.use()


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_submodule_of_a_submodule_is_guarded(
    sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place, nested=True)
    script = own("sub/inner")(repository)
    if sandboxed:
        holt.sh(script)
    else:
        repository.identity.run(["bash", "-c", script], cwd=repository.path)

    assert repository.use() is not sandboxed


# The index does not contain the submodule: an earlier run, or one at the same time, took it out.
TAKEN_OUT = {
    "sub": ("git rm -q --cached sub", own("sub")),
    "inner": ("git rm -q --cached sub", own("sub/inner")),
    "no index": ("rm .git/index", own("sub/inner")),
}


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize(("before", "plant"), TAKEN_OUT.values(), ids=TAKEN_OUT.keys())
def test_a_submodule_is_guarded_while_no_index_names_it(
    before: str, plant: Plant, sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place, nested=True)
    for script in (before, plant(repository)):
        if sandboxed:
            holt.sh(script)
        else:
            repository.identity.run(["bash", "-c", script], cwd=repository.path)
    repository.git("reset", "-q")

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_submodule_that_contains_its_repository_is_guarded(
    sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    """A submodule with a .git directory, as before git 1.7.8, or after `git add` of a repository."""
    repository.identity.run(["bash", "-c", f"{make()}; git add sub"], cwd=repository.path)
    if sandboxed:
        assert holt.sh(evil(repository)).set_aside == []
        assert (repository.path / "sub/.git/HEAD").exists()
    else:
        repository.identity.run(["bash", "-c", evil(repository)], cwd=repository.path)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_submodule_that_a_command_initialises_is_set_aside(
    sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place)
    repository.git("submodule", "deinit", "-f", "-q", "sub")
    script = f"git init -q sub; {evil(repository)}"
    if sandboxed:
        assert holt.sh(script).set_aside == ["sub/.git.holt-untrusted"]
    else:
        repository.identity.run(["bash", "-c", script], cwd=repository.path)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_workspace_below_the_top_guards_the_submodules_in_it(
    sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    """The command cannot write that index, which contains the submodule."""
    repository.identity.run(["bash", "-c", f"mkdir -p lib; {make('lib/sub')}; git add lib"], cwd=repository.path)
    script, cwd = evil(repository), repository.path / "lib"
    if sandboxed:
        holt.sh(script, cwd=cwd)
    else:
        repository.identity.run(["bash", "-c", script], cwd=cwd)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("between", ("lib", "lib/deep"))
@pytest.mark.parametrize("first", ("mkdir .git", "git init -q"))
def test_a_git_directory_between_hides_no_submodule(
    first: str, between: str, holt: Holt, repository: Repository
) -> None:
    """git skips a .git that is not a repository and takes the next one above, or is started at the top."""
    script = f"mkdir -p lib/deep; {make('lib/deep/sub')}; git add lib"
    repository.identity.run(["bash", "-c", script], cwd=repository.path)
    holt.sh(first, cwd=repository.path / between).ok()
    holt.sh(evil(repository), cwd=repository.path / "lib/deep")

    assert not repository.use()


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_worktree_guards_the_submodules_in_it(
    sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    """The index of a worktree is in the repository to which it belongs."""
    tree = Repository(place / "tree", repository.identity)
    repository.git("worktree", "add", "-q", str(tree.path))
    repository.identity.run(["bash", "-c", f"{make()}; git add sub"], cwd=tree.path)
    tree.marker = place / "pwned"
    if sandboxed:
        holt.sh(evil(tree), cwd=tree.path)
    else:
        repository.identity.run(["bash", "-c", evil(tree)], cwd=tree.path)

    assert tree.use() is not sandboxed


def test_git_goes_on_in_a_repository_with_submodules(holt: Holt, place: Path, repository: Repository) -> None:
    with_submodule(repository, place, nested=True)
    script = (
        "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b;"
        "echo more >>file && git status --porcelain && git commit -qam second && git -C sub log --oneline"
    )
    result = holt.sh(script).ok()

    assert "first" in result.out
    assert result.set_aside == []
    assert repository.git("status", "--porcelain") == ""
