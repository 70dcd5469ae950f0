# SPDX-License-Identifier: Apache-2.0
"""git on the host runs no code from a repository below the workspace's own, which git enters by itself.

`git status` looks at each gitlink of the index that has a .git, by running git there. The attacks here use git itself
to add to the index. See test_git_index.py for other ways, and test_git_submodules.py for existing submodules.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.plugin import Make
from lib.repository import Plant, Repository, config, evil, hook, make
from lib.sandbox import Holt
from lib.sessions import Sessions

PYTHON = "/usr/bin/python3 -c '{}'"

# Each attack adds a repository to the index, with a config that runs the payload.
ADDED: dict[str, Plant] = {
    "plain": lambda r: f"{make()}; git add sub; {evil(r)}",
    "deep": lambda r: f"mkdir -p a/b; {make('a/b/c')}; git add a; {evil(r, 'a/b/c')}",
    "hook path": lambda r: (
        f"{make()}; git add sub; {hook(r, 'sub/h')}; git -C sub config core.fsmonitor ./h"
    ),
    "two": lambda r: f"{make('one')}; {make('two')}; git add one two; {evil(r, 'two')}",
    "version 4": lambda r: f"{make()}; git add sub; git update-index --index-version 4; {evil(r)}",
    "version 3": lambda r: f"{make()}; touch n; git add -N n; git add sub; {evil(r)}",
    "split": lambda r: f"{make()}; git add sub; git update-index --split-index; {evil(r)}",
    "split, added later": lambda r: f"git update-index --split-index; {make()}; git add sub; {evil(r)}",
    # The file's entry is in the shared part. The entry that replaces it has a mode but no name.
    "split, replacing a file": lambda r: (
        f"git update-index --split-index; rm file; {make('file')}; git add file; {evil(r, 'file')}"
    ),
    "in conflict": lambda r: (
        f"{make()}; id=$(git -C sub rev-parse HEAD);"
        f"printf '160000 %s 2\\tsub\\n160000 %s 3\\tsub\\n' $id $id | git update-index --index-info; {evil(r)}"
    ),
    "many entries": lambda r: (
        "mkdir d; (cd d; seq 30000 | xargs touch); git -c index.threads=2 add d;"
        f"{make()}; git -c index.threads=2 add sub; {evil(r)}"
    ),
    "by a file": lambda r: (
        f"{make('real')}; mv real/.git hidden; rm -r real; mkdir sub; echo 'gitdir: ../hidden' >sub/.git;"
        f"git add sub; {config(r, 'hidden/config', f'worktree = {r.path}/sub')}"
    ),
    "by a link": lambda r: (
        f"{make()}; mv sub/.git hidden; ln -s ../hidden sub/.git; git add sub; {config(r, 'hidden/config')}"
    ),
    "in a closed directory": lambda r: f"{make()}; git add sub; {evil(r)}; chmod 300 sub",
    "with the index a link": lambda r: f"{make()}; git add sub; mv .git/index .git/i; ln -s i .git/index; {evil(r)}",
    "with the old index's times": lambda r: (
        f"cp -p .git/index saved; {make()}; git add sub; touch -r saved .git/index; {evil(r)}"
    ),
    "written in place": lambda r: (
        f"{make()}; cp .git/index i; GIT_INDEX_FILE=i git add sub; cat i >.git/index; {evil(r)}"
    ),
}


@pytest.mark.parametrize("plant", ADDED.values(), ids=ADDED.keys())
def test_a_repository_that_is_added_is_set_aside(plant: Plant, holt: Holt, repository: Repository) -> None:
    result = holt.sh(plant(repository))

    assert not repository.use(), str(result)
    assert result.set_aside
    # holt understands an index that git wrote, so that index stays.
    assert ".git/index.holt-untrusted" not in result.set_aside or (repository.path / ".git/i").exists()


@pytest.mark.parametrize("plant", ADDED.values(), ids=ADDED.keys())
def test_each_way_to_add_one_works_without_holt(plant: Plant, repository: Repository) -> None:
    repository.identity.run(["bash", "-c", plant(repository)], cwd=repository.path)

    assert repository.use()


def test_a_submodule_that_one_run_adds_and_the_next_makes(holt: Holt, repository: Repository) -> None:
    """After the first run, the caller's index has the gitlink, but its .git does not exist yet."""
    holt.sh(f"{make()}; git add sub; rm -rf sub/.git").ok()
    result = holt.sh(f"git init -q sub; {evil(repository)}")

    assert not repository.use(), str(result)
    assert result.set_aside == ["sub/.git.holt-untrusted"]


def test_an_index_that_git_did_not_write_is_set_aside(holt: Holt, repository: Repository) -> None:
    result = holt.sh("head -c 40 .git/index >i; mv i .git/index")

    assert result.set_aside == [".git/index.holt-untrusted"]


def test_a_damaged_index_of_the_caller_is_refused(holt: Holt, repository: Repository) -> None:
    """The index belongs to the caller, so it must not be set aside as if the command had made it."""
    index = repository.path / ".git/index"
    index.write_bytes(index.read_bytes()[:40])
    result = holt(["run", "--", "true"])

    assert ".git/index" in result.refusal()
    assert "rm .git/index && git reset" in result.cure
    index.unlink()
    repository.git("reset")
    holt(["run", "--", "true"]).ok()


def test_a_path_in_the_index_leads_nowhere_else(
    holt: Holt, place: Path, repository: Repository, identity: Identity
) -> None:
    """The command chooses the names in the index, and holt renames files by these names."""
    identity.run(["git", "init", "-q", place / "other"]).check_returncode()
    code = (
        'd = open(".git/index", "rb").read(); at = d.index(b"zzzzzzzzzz");'
        'open(".git/index", "wb").write(d.replace(b"zzzzzzzzzz", b"../other//"[:10]))'
    )
    script = f"{make('zzzzzzzzzz')}; git add zzzzzzzzzz; {PYTHON.format(code)}; ln -s ../other link"
    holt.sh(script).ok()

    assert (place / "other" / ".git" / "config").exists()


# --- repositories below a workspace that is none itself ---


@pytest.fixture
def below(holt: Holt, put: Make) -> str:
    """The hook of a repository right below the workspace. It belongs to the identity, because put() makes it."""
    put("r1/.git/HEAD", "ref: refs/heads/main\n", 0o666)
    put("r1/.git/config", "[core]\n", 0o666)
    put("r1/.git/hooks/sample", "", 0o666)
    return "echo evil >r1/.git/hooks/post-checkout; echo evil >>r1/.git/config; mv r1 r2; mv r1/.git r1/g; true"


def planted(holt: Holt) -> bool:
    git = holt.cwd / "r1" / ".git"

    return not git.is_dir() or (git / "hooks" / "post-checkout").exists() or "evil" in (git / "config").read_text()


@pytest.mark.identities("user", "root")
def test_a_repository_below_the_workspace_is_told(holt: Holt, sessions: Sessions, below: str) -> None:
    said = "holt: r1/.git can be written"

    for result in (holt(["run", "--", "true"]), sessions(["create", "a", "--workspace", "."])):
        assert result.ok().err.startswith(said) and "--protect r1/.git, or --workspace ./r1" in result.err
    result = holt(["run", "--protect", "r1/.git/hooks", "--", "true"]).ok()
    assert result.report and len(result.report["warnings"]) == 1


def test_several_repositories_are_counted(holt: Holt, put: Make) -> None:
    for name in ("r1", "r2", "r3"):
        put(f"{name}/.git/HEAD", "x")
    flags: list[str] = []
    for more in (" (and 2 more)", " (and 1 more)", ""):
        (told,) = (line for line in holt(["run", *flags, "--", "true"]).ok().err.splitlines() if "hooks" in line)
        name = told.removeprefix("holt: ").split("/")[0]
        assert told.startswith(f"holt: {name}/.git{more} can be written") and told.endswith(f"--workspace ./{name}")
        flags += ["--protect", f"{name}/.git"]


@pytest.mark.identities("user")
def test_a_loop_is_told_once(holt: Holt, below: str) -> None:
    """Each terminal session gets the warning once. Without keyrings, as in many containers, each run gets it."""
    add_key = {"x86_64": 248, "aarch64": 217}[platform.machine()]
    probe = f"import ctypes; exit(ctypes.CDLL(None).syscall({add_key}, b'user', b'holt: probe', b'x', 1, -4) < 0)"
    loop = ["setsid", "-w", "sh", "-c", 'for i in 1 2 3; do "$0" run -- true; done', holt.binary]
    known = holt.identity.run(["/usr/bin/python3", "-c", probe]).returncode == 0

    for _ in range(2):
        done = holt.identity.run(loop, cwd=holt.cwd)
        assert done.returncode == 0 and done.stderr.count("r1/.git can be written") == (1 if known else 3)
    other = [*loop[:4], 'for i in r1 r2; do "$0" run -- mv $i r2; "$0" run -- true; mv r2 r1; done', holt.binary]
    said = holt.identity.run(other, cwd=holt.cwd).stderr
    assert "r1/.git can be written" in said and "r2/.git can be written" in said


@pytest.mark.identities("user", "root")
def test_the_cures_of_the_warning_protect_it(holt: Holt, sessions: Sessions, below: str) -> None:
    result = holt.sh(below, "--protect", "r1/.git").ok()
    assert "can be written" not in result.err and not planted(holt)

    result = holt.sh(below.replace("r1/.git", ".git"), "--workspace", "r1").ok()
    assert "can be written" not in result.err and not planted(holt)

    session = sessions.create("w", "--workspace", ".", "--protect", "r1/.git")
    session.sh(below)
    assert not planted(holt)


def test_no_repository_below_is_told_where_nothing_is_to_be_said(holt: Holt, put: Make, below: str) -> None:
    for flags in (["--protect", "none"], ["--workspace-mode", "ro"], ["--workspace", "none"]):
        assert holt(["run", *flags, "--", "true"]).ok().err == ""
    put(".git/HEAD", "ref: refs/heads/main\n")
    assert holt(["run", "--", "true"]).ok().err == ""


def test_a_name_of_control_characters_is_told_without_them(holt: Holt, put: Make) -> None:
    put("a\x1b[2Jb/.git/HEAD", "x")
    result = holt(["run", "--", "true"]).ok()

    assert "\x1b" not in result.err and "--protect DIRECTORY/.git" in result.err


def test_no_more_than_a_bounded_number_of_entries_is_looked_at(holt: Holt, put: Make) -> None:
    """Every start takes this time."""
    for i in range(100):
        put(f"d{i}/x")
    names = os.listdir(holt.cwd)
    put(f"{names[70]}/.git/HEAD", "x")
    assert holt(["run", "--", "true"]).ok().err == ""
    put(f"{names[10]}/.git/HEAD", "x")
    assert holt(["run", "--", "true"]).ok().err.startswith(f"holt: {names[10]}/.git can be written")
