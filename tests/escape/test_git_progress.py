# SPDX-License-Identifier: Apache-2.0
"""The caller has begun a rebase, an am or a cherry-pick, and the command changes its state. Continuing it must not make
git run or write anything else. Nor may git take objects from other repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.repository import FSMONITOR, Repository
from lib.sandbox import Holt

NAME = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b GIT_EDITOR=true"

# A program that git starts as a merge strategy called x/p.
STRATEGY = "mkdir git-merge-x; printf '#!/bin/sh\\n{payload}\\n' >git-merge-x/p; chmod +x git-merge-x/p"
REBASE = "git rebase -q other"
PICK = "git cherry-pick other~1 other"
AM = "git format-patch -q -2 other -o ../patches; git am -q ../patches/*"
# A stash with the repository sub as a submodule, whose config runs a program.
STASH = (
    "git init -q sub; git -C sub commit -q --allow-empty -m s; printf '" + FSMONITOR + "' >sub/.git/config;"
    "export GIT_INDEX_FILE=index; git read-tree HEAD; i=$(git commit-tree -p HEAD -m i $(git write-tree));"
    "git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub;"
    "git commit-tree -p HEAD -p $i -m s $(git write-tree) >.git/{state}/autostash; rm index"
)
SOLVE = "echo mine >file; git add file; "

# How the caller begins, what the command writes, how the caller continues, and the files set aside.
IN_PROGRESS: dict[str, tuple[str, str, str, str]] = {
    "a step": (REBASE, "echo exec {payload} >>.git/rebase-merge/git-rebase-todo", "git rebase --continue",
               "rebase-merge/git-rebase-todo"),
    "a short step": (REBASE, "printf ' x\\t{payload}\\r\\n' >>.git/rebase-merge/git-rebase-todo",
                     "git rebase --continue", "rebase-merge/git-rebase-todo"),
    "a step behind much": (
        REBASE, "cd .git/rebase-merge; {{ yes '#' | head -c 3MB | tr -d '\\n'; echo; echo x {payload}; }} >git*todo",
        "git rebase --continue", "rebase-merge/git-rebase-todo",
    ),
    "a strategy": (
        REBASE, "echo x/p >.git/rebase-merge/strategy;"
        "echo pick $(git rev-parse other~1) >>.git/rebase-merge/git-rebase-todo;" + STRATEGY,
        "git rebase --continue", "rebase-merge/strategy",
    ),
    "a strategy of a pick": (PICK, "printf '[Options]\\nStrategy = x/p' >.git/sequencer/opts;" + STRATEGY,
                             "git cherry-pick --continue", "sequencer/opts"),
    "a ref that is another file": (
        REBASE, "printf 'commondir\\n%040d\\n%s\\n' 0 $(git rev-parse HEAD) >.git/rebase-merge/update-refs",
        "git rebase --continue", "rebase-merge/update-refs",
    ),
    "a step that is another file": (
        REBASE, "echo update-ref commondir >>.git/rebase-merge/git-rebase-todo",
        "git rebase --edit-todo; git rebase --continue", "rebase-merge/git-rebase-todo",
    ),
    "a stash": (REBASE, STASH.replace("{state}", "rebase-merge"), "git rebase --continue; git status",
                "rebase-merge/autostash"),
    "a stash of the older kind": (
        REBASE + " --apply", STASH.replace("{state}", "rebase-apply"), "git rebase --abort; git status",
        "rebase-apply/autostash",
    ),
    "an option": (AM, "printf \" '--build-fake=%s'\" {new} >.git/rebase-apply/apply-opt",
                  "git rm -q --cached f; rm f; git am --skip", "rebase-apply/apply-opt"),
}


def caller(repository: Repository, script: str) -> None:
    """Runs a script as the caller; it may fail."""
    repository.identity.run(["bash", "-c", f"{NAME}; {script}"], cwd=repository.path)


def branch_off(repository: Repository) -> None:
    """Two commits of another branch and one of this, which change the same line."""
    caller(repository, (
        "git checkout -qb other; echo o >file; git commit -qam o; echo f >f; git add f; git commit -qm f;"
        "git checkout -q main; echo m >file; git commit -qam m"
    ))


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("begin, script, go_on, aside", IN_PROGRESS.values(), ids=IN_PROGRESS.keys())
def test_continuing_an_operation_of_git_runs_nothing(
    begin: str, script: str, go_on: str, aside: str, sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    new = place / "new"
    branch_off(repository)
    caller(repository, begin)
    script = script.format(payload=repository.payload, new=new)
    if sandboxed:
        assert holt.sh(f"{NAME}; {script}").ok().set_aside == [f".git/{aside}.holt-untrusted"]
    else:
        caller(repository, script)
    caller(repository, SOLVE + go_on)
    made = repository.marker.exists() or new.exists() or (repository.path / ".git/commondir").exists()

    assert made is not sandboxed


# States that only git itself has made.
@pytest.mark.parametrize("begin, done", (
    (f"{REBASE} --update-refs", "git rebase --continue"),
    (f"{REBASE} -r -s ort", "git rebase --continue"),
    (f"{PICK} -X patience -s recursive", "git cherry-pick --continue"),
    (f"{AM} --whitespace=fix --directory=d", "git am --abort"),
))
def test_a_command_may_do_what_git_does(begin: str, done: str, holt: Holt, repository: Repository) -> None:
    branch_off(repository)
    begin = begin.replace("../patches", "patches")

    assert holt.sh(f"{NAME}; {begin}").set_aside == []
    assert holt.sh(f"{NAME}; {SOLVE} {done}").set_aside == []


def test_the_callers_own_steps_stay(holt: Holt, repository: Repository) -> None:
    branch_off(repository)
    caller(repository, f"{REBASE} -x true")
    todo = repository.path / ".git/rebase-merge/git-rebase-todo"
    assert "exec true" in todo.read_text()

    assert holt.sh("true").ok().set_aside == []
    assert holt.sh("echo x false >>.git/rebase-merge/git-rebase-todo").ok().set_aside == [
        ".git/rebase-merge/git-rebase-todo.holt-untrusted"
    ]


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_git_takes_no_objects_from_elsewhere(
    sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    """The next run would read objects of another repository that the caller has checked out."""
    other = Repository(place / "other", repository.identity)
    repository.identity.run(["mkdir", other.path]).check_returncode()
    other.init()
    (other.path / "secret").write_text("mine\n")
    other.git("add", "secret")
    blob = other.git("rev-parse", ":secret").strip()
    script = (
        f"mkdir -p .git/objects/info; echo {other.path}/.git/objects >.git/objects/info/alternates;"
        f"git update-index --add --cacheinfo 100644,{blob},taken"
    )
    if sandboxed:
        assert holt.sh(script).ok().set_aside == [".git/objects/info/alternates.holt-untrusted"]
    else:
        caller(repository, script)
    repository.git("checkout", "-q", ".")

    assert (repository.path / "taken").exists() is not sandboxed


def test_the_callers_alternates_stay(holt: Holt, place: Path, repository: Repository) -> None:
    path = repository.path / ".git/objects/info/alternates"
    caller(repository, f"echo {place} >{path}")

    assert holt.sh("true").ok().set_aside == [] and path.exists()
    assert holt.sh(f"echo /tmp >{path}").ok().set_aside == [".git/objects/info/alternates.holt-untrusted"]


def test_a_workspace_that_is_a_git_directory_takes_none(holt: Holt, empty: Repository) -> None:
    empty.git("init", "-q", "--bare")

    result = holt.sh("echo /tmp >objects/info/alternates; mkdir rebase-merge; echo x/y >rebase-merge/strategy").ok()

    assert sorted(result.set_aside) == [
        "objects/info/alternates.holt-untrusted", "rebase-merge/strategy.holt-untrusted"
    ]
