# SPDX-License-Identifier: Apache-2.0
"""If .git is not a repository, git takes the directory itself for a bare repository. Some workspaces are one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.identity import Identity
from lib.repository import AS_A, FORGE, Repository, config, evil, make
from lib.sandbox import Holt


def bare(r: Repository) -> str:
    return (
        "git init -q --bare tmp.git; mv tmp.git/HEAD tmp.git/objects tmp.git/refs .; rm -f .git/HEAD;"
        + config(r, "config", "\\tbare = false\\n\\tworktree = .\\n")
    )


def test_the_workspace_does_not_become_a_bare_repository(holt: Holt, repository: Repository) -> None:
    result = holt.sh(bare(repository))

    assert not repository.use(), str(result)


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("plant", ("hook", "config"))
def test_a_workspace_that_is_a_bare_repository_is_guarded(
    plant: str, sandboxed: bool, holt: Holt, place: Path, workspace: Path, identity: Identity
) -> None:
    """The protected files of .git are at the top here."""
    identity.run(["git", "init", "-q", "--bare", "."], cwd=workspace).check_returncode()
    marker = place / "pwned"
    where = {"hook": "hooks", "config": f"{workspace}/h"}[plant]
    script = (
        f"mkdir -p {where}; printf '#!/bin/sh\\ntouch {marker}\\n' >{where}/pre-receive;"
        f"chmod +x {where}/pre-receive"
    )
    if plant == "config":
        script += f"; git config core.hooksPath {where}"
    if sandboxed:
        holt.sh(f"{script}; exit 0")
    else:
        identity.run(["bash", "-c", script], cwd=workspace)
    identity.run(["bash", "-c", f"git clone -q {workspace} ../clone; cd ../clone; {AS_A} commit -q --allow-empty -m x;"
                  "git push -q origin HEAD"], cwd=workspace)

    assert marker.exists() is not sandboxed


def test_becoming_a_bare_repository_works_without_holt(repository: Repository) -> None:
    repository.identity.run(["bash", "-c", bare(repository)], cwd=repository.path)

    assert repository.use()


# Parts of a bare repository that may exist; the command makes the rest.
HALVES = {"no refs": "rm -rf refs", "no objects": "rm -rf objects", "only HEAD": "rm -rf refs objects config hooks"}


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES.keys())
def test_half_a_bare_repository_is_not_made_whole(
    half: str, sandboxed: bool, holt: Holt, workspace: Path, identity: Identity
) -> None:
    identity.run(["bash", "-c", f"git init -q --bare -b main .; {half}"], cwd=workspace).check_returncode()
    repository = Repository(workspace, identity)
    script = (
        "git init -q --bare x; mkdir -p refs objects; cp -r x/refs x/objects .; "
        + config(repository, "c", "\\tbare = false\\n\\tworktree = .\\n") + "; mv -f c config"
    )
    if sandboxed:
        holt.sh(script)
    else:
        identity.run(["bash", "-c", script], cwd=workspace)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("there", (True, False), ids=("there", "made"))
def test_a_workspace_that_is_a_git_directory_keeps_its_index(
    there: bool, sandboxed: bool, holt: Holt, repository: Repository, place: Path
) -> None:
    """The work tree is elsewhere, and one of its gitlinks leads back into the workspace."""
    git = repository.path / ".git"
    inner = Repository(git, repository.identity)
    inner.marker = repository.marker
    (git / "forge.py").write_text(FORGE.read_text().replace('open(".git/index"', 'open("index"'))
    repository.identity.own(git / "forge.py")
    if not there:
        (git / "index").unlink()
    script = f"{make('evil')}; /usr/bin/python3 forge.py git-directory; {evil(inner, 'evil')}"
    if sandboxed:
        result = holt.sh(script, cwd=git)
        assert result.set_aside == ([] if there else ["index.holt-untrusted"])
    else:
        repository.identity.run(["bash", "-c", script], cwd=git)

    assert repository.use() is not sandboxed
