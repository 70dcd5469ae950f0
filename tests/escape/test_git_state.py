# SPDX-License-Identifier: Apache-2.0
"""Links, refs and states that a command leaves in .git, and by which git on the host would write or read elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.repository import FSMONITOR, Repository
from lib.sandbox import Holt

# --- symlinks through which git writes ---

# Symlinks in .git by which the caller's git writes into the file "precious" above the workspace.
WRITTEN_THROUGH: dict[str, tuple[str, tuple[str, ...]]] = {
    "message": ("ln -sf {to} .git/COMMIT_EDITMSG", ("commit", "--allow-empty", "-qm", "next")),
    "message of a merge": (
        "git checkout -qb o; echo o >file; git commit -qam o; git checkout -q main; echo m >file; git commit -qam m;"
        "ln -s {to} .git/MERGE_MSG",
        ("merge", "o"),
    ),
    "what is fetched": ("ln -s {to} .git/FETCH_HEAD", ("fetch", "-q", ".", "main")),
    "log": ("ln -sf {to} .git/logs/HEAD", ("checkout", "-qb", "other")),
    "log of a branch": (
        "ln -sf {to} .git/logs/refs/heads/main", ("commit", "--allow-empty", "-qm", "next"),
    ),
    "log in a closed directory": (
        "ln -sf {to} .git/logs/refs/heads/main; chmod 0300 .git/logs/refs .git/logs",
        ("commit", "--allow-empty", "-qm", "next"),
    ),
}
COMMITTER = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b"


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("script, use", WRITTEN_THROUGH.values(), ids=WRITTEN_THROUGH.keys())
def test_git_writes_nowhere_else(
    script: str, use: tuple[str, ...], sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    precious = place / "precious"
    precious.write_text("mine\n")
    repository.identity.own(precious)
    script = f"{COMMITTER}; {script.format(to=precious)}"
    if sandboxed:
        assert "holt-untrusted" in holt.sh(script).ok().set_aside[0]
    else:
        repository.identity.run(["bash", "-c", script], cwd=repository.path)
    repository.git(*use)

    assert (precious.read_text() == "mine\n") is sandboxed


@pytest.mark.parametrize("script, aside", (
    ("mkfifo .git/FETCH_HEAD", ".git/FETCH_HEAD"),
    ("mv .git/refs/heads r; ln -s ../../r .git/refs/heads", ".git/refs/heads.holt-untrusted.lock"),
    ("ln -s /tmp .git/rebase-merge", ".git/rebase-merge"),
    ("mkdir .git/rebase-apply; ln -s /tmp/x .git/rebase-apply/patch", ".git/rebase-apply/patch"),
    ("mv .git/objects/info i; ln -s ../../i .git/objects/info", ".git/objects/info"),
    ("mkdir .git/rr-cache; ln -s /tmp .git/rr-cache/x", ".git/rr-cache/x"),
    ("ln -s /tmp .git/objects/ff", ".git/objects/ff"),
), ids=lambda value: value if value.startswith(".git") else "")
def test_links_in_the_place_of_git_s_files_are_set_aside(
    script: str, aside: str, holt: Holt, repository: Repository
) -> None:
    name = aside if aside.endswith(".lock") else f"{aside}.holt-untrusted"

    assert holt.sh(script).ok().set_aside == [name]
    assert holt.sh("true").ok().set_aside == []


def test_a_workspace_that_is_a_git_directory_has_no_new_links(holt: Holt, empty: Repository) -> None:
    empty.git("init", "-q", "--bare")
    result = holt.sh("ln -s /tmp/x FETCH_HEAD; mkdir -p logs tree; ln -s /tmp/x logs/HEAD; ln -s /tmp/x tree/x").ok()

    assert sorted(result.set_aside) == ["FETCH_HEAD.holt-untrusted", "logs/HEAD.holt-untrusted.lock"]


def test_the_callers_links_stay_where_they_lead(holt: Holt, place: Path, repository: Repository) -> None:
    repository.identity.run(["ln", "-s", "../../x", ".git/one"], cwd=repository.path).check_returncode()
    repository.identity.run(["ln", "-s", "../../x", ".git/other"], cwd=repository.path).check_returncode()
    result = holt.sh("ln -sf ../../y .git/other").ok()

    assert result.set_aside == [".git/other.holt-untrusted"]
    assert (repository.path / ".git/one").is_symlink()


RERERE = "mkdir -p .git/rr-cache/{hex}; touch .git/rr-cache/{hex}/preimage; printf '{hex}{path}\\0' >.git/MERGE_RR"
BLANK = "\\t"
COMMIT = ("commit", "--allow-empty", "-qm", "next")


def rerere(path: str) -> str:
    return RERERE.format(hex="0123456789" * 4, path=path)


# The command's changes to files that git follows, and the caller's next action. {precious} is a file of the caller's,
# and {new} does not exist.
LED_ASTRAY: dict[str, tuple[str, tuple[str, ...], str]] = {
    "a ref that is another file": (
        "h=$(git rev-parse HEAD); cp -r .git $h; mv $h .git; {config} >.git/$h/config;"
        "echo 'ref: commondir' >.git/ORIG_HEAD",
        ("reset", "-q"), ".git/ORIG_HEAD",
    ),
    "a ref that goes up": ("echo 'ref: refs/../../../new' >.git/ORIG_HEAD", ("reset", "-q"), ".git/ORIG_HEAD"),
    "a ref of a ref": (
        "printf 'ref:\\t refs/../../../new\\n' >.git/refs/x; echo 'ref: refs/x' >.git/ORIG_HEAD",
        ("reset", "-q"), ".git/refs/x",
    ),
    "a ref by a directory that is set aside": (
        "mkdir .git/x.holt-untrusted; ln -s ../../.. .git/x.holt-untrusted/l;"
        "echo 'ref: x.holt-untrusted/l/new' >.git/ORIG_HEAD",
        ("reset", "-q"), ".git/ORIG_HEAD",
    ),
    "a recorded conflict": (rerere("\\t{precious}"), COMMIT, ".git/MERGE_RR"),
    "a recorded conflict above": (rerere(".0\\t../precious"), COMMIT, ".git/MERGE_RR"),
    "a recorded conflict that is a link": (f"ln -s ../precious l; {rerere(BLANK + 'l')}", COMMIT, ".git/MERGE_RR"),
    "a recorded conflict behind a blank": (rerere(".\\t1\\t{precious}"), COMMIT, ".git/MERGE_RR"),
    "an autostash": (
        "git init -q sub; git -C sub commit -q --allow-empty -m s; git add sub; t=$(git write-tree);"
        "git read-tree HEAD; i=$(git commit-tree -p HEAD -m i $t); git commit-tree -p HEAD -p $i -m s $t >.git/MERGE_AUTOSTASH;"
        "git rev-parse HEAD >.git/MERGE_HEAD; {config} >sub/.git/config",
        COMMIT, ".git/MERGE_AUTOSTASH",
    ),
}


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("script, use, aside", LED_ASTRAY.values(), ids=LED_ASTRAY.keys())
def test_git_is_not_led_astray(
    script: str, use: tuple[str, ...], aside: str, sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    precious, new = place / "precious", place / "new"
    precious.write_text("mine\n")
    repository.identity.own(precious)
    text = "printf '" + FSMONITOR.format(payload=repository.payload) + "'"
    script = f"{COMMITTER}; {script.format(precious=precious, config=text)}"
    if sandboxed:
        assert f"{aside}.holt-untrusted" in [name.removesuffix(".lock") for name in holt.sh(script).ok().set_aside]
    else:
        repository.identity.run(["bash", "-c", script], cwd=repository.path)
    repository.git(*use)
    repository.git("status")
    taken = [path for path in repository.path.glob(".git/rr-cache/*/postimage*") if path.read_text() == "mine\n"]

    assert (bool(taken) or new.exists() or repository.marker.exists()) is not sandboxed


def test_symbolic_refs_of_git_itself_stay(holt: Holt, repository: Repository) -> None:
    script = (
        f"{COMMITTER}; git symbolic-ref refs/heads/alias refs/heads/main; git update-ref refs/remotes/o/main HEAD;"
        "git symbolic-ref refs/remotes/o/HEAD refs/remotes/o/main; mkdir .git/rr-cache; git checkout -qb o;"
        "echo o >file; git commit -qam o; git checkout -q main; echo m >file; git commit -qam m; git merge -q o;"
        "tr '\\0' '\\n' <.git/MERGE_RR"
    )
    result = holt.sh(script)

    assert result.out.endswith("\tfile\n") and result.set_aside == []


def test_the_callers_own_autostash_stays(holt: Holt, repository: Repository) -> None:
    path = repository.path / ".git/MERGE_AUTOSTASH"
    repository.identity.run(["sh", "-c", "git rev-parse HEAD >.git/MERGE_AUTOSTASH"], cwd=repository.path)
    assert holt.sh("true").ok().set_aside == [] and path.exists()
    assert holt.sh("echo >>.git/MERGE_AUTOSTASH").ok().set_aside == [".git/MERGE_AUTOSTASH.holt-untrusted"]


# One command makes a file, and the next command uses it under its new name.
@pytest.mark.parametrize("first, second", (
    ("ln -s {to} .git/logs/refs/heads/x", "git checkout -qb x.holt-untrusted"),
    ("ln -s {to} .git/logs/refs/heads/x", "git checkout -qb x.holt-untrusted.lock"),
    (
        "ln -s ../../../.. .git/refs/heads/x",
        "git symbolic-ref ORIG_HEAD refs/heads/x.holt-untrusted.lock/new; "
        "echo ref: refs/heads/x.holt-untrusted.lock/new >.git/ORIG_HEAD",
    ),
    ("ln -s ../../../.. .git/refs/heads/x", "echo ref: refs/heads/x.holt-untrusted/new >.git/ORIG_HEAD"),
))
def test_files_that_were_set_aside_are_not_refs(first: str, second: str, holt: Holt, place: Path, repository: Repository) -> None:
    precious = place / "precious"
    precious.write_text("mine\n")
    repository.identity.own(precious)
    assert holt.sh(first.format(to=precious)).ok().set_aside
    holt.sh(second)
    repository.git("commit", "--allow-empty", "-q", "-m", "next")
    repository.git("reset", "-q")

    assert precious.read_text() == "mine\n" and not (place / "new").exists()


def test_files_that_were_set_aside_are_not_moved_again(holt: Holt, repository: Repository) -> None:
    names = (".git/FETCH_HEAD.holt-untrusted", ".git/refs/x.holt-untrusted.lock")
    assert holt.sh(f"ln -s /tmp/x {names[0]}; ln -s /tmp/x {names[1]}").ok().set_aside == []
    assert holt.sh("ln -s /tmp/x .git/refs/x.holt-untrusted").ok().set_aside == [
        ".git/refs/x.holt-untrusted.holt-untrusted.lock"
    ]


def test_two_runs_do_not_give_each_other_a_link(holt: Holt, place: Path, repository: Repository) -> None:
    """The second run finds the first one's symlink at its start, and makes it again after it was set aside."""
    link = f"ln -s {place}/precious .git/logs/refs/heads/x"
    await_ = "while {}; do sleep 0.05; done"
    first = f"{link}; echo made; {await_.format('[ ! -e second ]')}"
    second = f"touch second; {await_.format('[ -L .git/logs/refs/heads/x ]')}; "
    for again in (link, "mv .git/logs/refs/heads/x.holt-untrusted.lock .git/logs/refs/heads/x"):
        with holt.start(["run", "--", "bash", "-c", first]) as running:
            assert running.readline() == "made"
            result = holt.sh(second + again).ok()
            running.wait().ok()

        assert not (repository.path / ".git/logs/refs/heads/x").is_symlink(), str(result)
        repository.identity.run(["bash", "-c", "rm second .git/logs/refs/heads/x.*"], cwd=repository.path)


def test_more_links_than_are_looked_at_are_an_error(holt: Holt, repository: Repository) -> None:
    many = "cd .git/refs/heads; /usr/bin/python3 -c 'import os; [os.symlink(\"x\", str(i)) for i in range(2001)]'"
    result = holt.sh(many)

    assert result.code == 125 and "the command has run" in result.err and "do not run git" in result.err
    refused = holt(["run", "--", "true"])
    assert "more than holt can check" in refused.refusal() and "--protect none" in refused.cure


def test_directories_without_end_are_an_error(holt: Holt, repository: Repository) -> None:
    """The time and the memory for each directory grow with its path."""
    deep = "import os; os.chdir('.git/refs')\nfor i in range(1900): os.mkdir('a'); os.chdir('a')\n"
    many = "for i in range(7500): os.mkdir(str(i))"
    result = holt.sh(f'/usr/bin/python3 -c "{deep}{many}"')
    refused = holt(["run", "--", "true"])
    repository.identity.run(["rm", "-rf", ".git/refs/a"], cwd=repository.path)

    assert result.code == 125 and "the command has run" in result.err and "do not run git" in result.err
    assert "more than holt can check" in refused.refusal() and "--protect none" in refused.cure
