# SPDX-License-Identifier: Apache-2.0
"""Nothing that a sandbox leaves in a workspace's .git makes the host run code later.

Each attack ends with the caller's own git on the host. The payload writes a file if it runs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.hostile import Attack, Run
from lib.identity import Identity
from lib.repository import Plant, Repository, config, hook
from lib.sandbox import Holt, Result


# Each function makes git on the host run the payload. A program inside would do this from the workspace.
EXISTING: dict[str, Plant] = {
    "hook": lambda r: hook(r),
    "hook by another name": lambda r: f"mkdir h && {hook(r, 'h/pre-commit')} && rm -rf .git/hooks && mv h .git/hooks",
    "hooks renamed away": lambda r: f"mv .git/hooks .git/x; mkdir .git/hooks; {hook(r)}",
    "config": lambda r: config(r, ".git/config"),
    "config by git": lambda r: f"git config core.fsmonitor '{r.payload}; false'",
    "config replaced": lambda r: f"{config(r, '.git/c')}; mv -f .git/c .git/config",
    "config unlinked": lambda r: f"rm -f .git/config; {config(r, '.git/config')}",
    ".git renamed away": lambda r: f"mv .git .gone; cp -r .gone .git; {config(r, '.git/config')}; {hook(r)}",
    ".git removed": lambda r: f"rm -rf .git; git init -q; {config(r, '.git/config')}; {hook(r)}",
    ".git exchanged": lambda r: (
        f"cp -r .git new; rm -rf new/hooks; mkdir new/hooks; {config(r, 'new/config')};"
        "python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\".git\", -100, b\"new\", 2)'"
    ),
    "commondir": lambda r: (
        f"cp -r .git evil; rm -f evil/config; {config(r, 'evil/config')}; echo ../evil >.git/commondir"
    ),
    "config.worktree": lambda r: (
        f"git config extensions.worktreeConfig true; {config(r, '.git/config.worktree')}"
    ),
}

# The same, if the workspace had no .git, or one without these parts.
ABSENT: dict[str, Plant] = {
    "repository": lambda r: f"git init -q; {config(r, '.git/config')}; {hook(r)}",
    "repository elsewhere": lambda r: (
        f"git init -q --separate-git-dir=evil .; {config(r, 'evil/config')}; {hook(r, 'evil/hooks/pre-commit')}"
    ),
    "link": lambda r: (
        f"git init -q; mv .git evil; ln -s evil .git; {config(r, 'evil/config')};"
        f"{hook(r, 'evil/hooks/pre-commit')}"
    ),
}

WITHOUT_HOOKS: dict[str, Plant] = {
    "hooks made": lambda r: f"mkdir .git/hooks; {hook(r)}",
    "hooks made as a link": lambda r: f"mkdir h; {hook(r, 'h/pre-commit')}; ln -s ../h .git/hooks",
}


def check(holt: Holt, repository: Repository, script: str) -> Result:
    """Runs the attack inside, then acts as the caller does."""
    result = holt.sh(script)
    assert not repository.use(), f"the payload ran on the host\n{result}"
    return result


@pytest.mark.parametrize("plant", EXISTING.values(), ids=EXISTING.keys())
def test_a_repository_is_not_turned_against_its_owner(
    plant: Plant, holt: Holt, repository: Repository
) -> None:
    check(holt, repository, plant(repository))


@pytest.mark.parametrize("plant", ABSENT.values(), ids=ABSENT.keys())
def test_a_repository_that_the_sandbox_makes_is_set_aside(
    plant: Plant, holt: Holt, empty: Repository
) -> None:
    result = check(holt, empty, plant(empty))

    assert result.set_aside
    assert "holt-untrusted" in result.err


@pytest.mark.parametrize("plant", WITHOUT_HOOKS.values(), ids=WITHOUT_HOOKS.keys())
def test_hooks_that_the_sandbox_makes_are_set_aside(
    plant: Plant, holt: Holt, repository: Repository
) -> None:
    repository.identity.run(["rm", "-r", ".git/hooks"], cwd=repository.path).check_returncode()
    result = check(holt, repository, plant(repository))

    assert result.set_aside
    assert not (repository.path / ".git" / "hooks").exists()


@pytest.mark.parametrize("plant", EXISTING.values(), ids=EXISTING.keys())
def test_each_way_works_without_holt(plant: Plant, repository: Repository) -> None:
    """The controls."""
    script = plant(repository)
    repository.identity.run(["bash", "-c", script], cwd=repository.path)

    assert repository.use()


@pytest.mark.parametrize("plant", ABSENT.values(), ids=ABSENT.keys())
def test_each_way_to_make_one_works_without_holt(plant: Plant, empty: Repository) -> None:
    empty.identity.run(["bash", "-c", plant(empty)], cwd=empty.path)

    assert empty.use()


@pytest.mark.parametrize("plant", WITHOUT_HOOKS.values(), ids=WITHOUT_HOOKS.keys())
def test_each_way_to_make_hooks_works_without_holt(plant: Plant, repository: Repository) -> None:
    repository.identity.run(["rm", "-r", ".git/hooks"], cwd=repository.path).check_returncode()
    repository.identity.run(["bash", "-c", plant(repository)], cwd=repository.path)

    assert repository.use()


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("remote", ("remotes", "branches"))
def test_a_remote_is_not_what_the_sandbox_says(
    remote: str, sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    """Old versions of git kept remotes in these files, and git still reads them (gitrepository-layout(5))."""
    evil = repository.path / "evil"
    text = {"remotes": f"URL: {evil}", "branches": str(evil)}[remote]
    script = (
        f"git init -q --bare evil; {hook(repository, 'evil/hooks/pre-receive')};"
        f"rm -rf .git/{remote}; mkdir -p .git/{remote}; echo '{text}' >.git/{remote}/origin"
    )
    if sandboxed:
        holt.sh(script)
    else:
        repository.identity.run(["bash", "-c", script], cwd=repository.path)
    repository.git("push", "origin", "main:refs/heads/x")

    assert repository.marker.exists() is not sandboxed


# --- single operations on the guarded paths ---

GUARDED = (".git/hooks", ".git/config")


@pytest.mark.parametrize("path", GUARDED)
def test_a_guarded_path_can_not_be_moved(path: str, holds: Run, repository: Repository) -> None:
    full, aside = str(repository.path / path), str(repository.path / "aside")
    attack = Attack("files", "rename", (full, aside), control="none", why_none="see the ways above")

    assert holds(attack).detail in ("EBUSY", "EROFS", "EACCES", "EXDEV")


def test_the_parent_of_a_guarded_path_can_not_be_moved(holds: Run, repository: Repository) -> None:
    git, aside = str(repository.path / ".git"), str(repository.path / "aside")
    attack = Attack("files", "rename", (git, aside), control="none", why_none="see the ways above")

    assert holds(attack).detail == "EBUSY"


def test_a_guarded_file_has_no_second_name(holds: Run, repository: Repository) -> None:
    full, aside = str(repository.path / ".git/config"), str(repository.path / "aside")
    attack = Attack("files", "link", (full, aside), control="none", why_none="see the ways above")

    holds(attack)


def test_a_parent_of_a_protected_path_made_anew_is_not_trusted(
    holt: Holt, workspace: Path, identity: Identity
) -> None:
    """The directories on the way to a guarded file cannot be moved either."""
    directory = workspace / "conf" / "tool"
    identity.run(["mkdir", "-p", directory]).check_returncode()
    (directory / "run.sh").write_text("good\n")
    identity.own(directory / "run.sh")
    script = "mv conf gone; mkdir -p conf/tool; echo evil >conf/tool/run.sh; exit 0"
    holt.sh(script, "--protect", "conf/tool/run.sh")

    assert (directory / "run.sh").read_text() == "good\n"


def test_ordinary_work_in_a_repository_goes_on(holt: Holt, repository: Repository) -> None:
    """The guard does not stop normal work: an agent may commit, branch and stash."""
    script = (
        "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b;"
        "echo more >>file && git commit -qam second && git checkout -qb topic && git stash list && git log --oneline"
    )
    result = holt.sh(script).ok()

    assert "second" in repository.git("log", "--oneline", "topic")
    assert result.set_aside == []


# --- turning the guard itself ---


def test_a_link_to_a_directory_of_the_host_does_not_move_what_is_there(
    holt: Holt, place: Path, workspace: Path, identity: Identity
) -> None:
    """Setting aside renames files on the host. Through ".git" as a symlink, it would rename the hooks of another
    repository."""
    identity.run(["mkdir", "-p", place / "other" / "hooks"]).check_returncode()
    (place / "other" / "config").write_text("[core]\n")
    result = holt.sh(f"ln -s {place}/other .git").ok()

    assert sorted(p.name for p in (place / "other").iterdir()) == ["config", "hooks"]
    assert result.set_aside
    assert not (workspace / ".git").is_symlink()


@pytest.mark.parametrize("obstacle", ("file", "directory", "link"))
def test_the_name_to_set_aside_may_be_taken(
    obstacle: str, holt: Holt, place: Path, workspace: Path, secret: Path
) -> None:
    aside = ".git/hooks.holt-untrusted"
    make = {"file": f"touch {aside}", "directory": f"mkdir {aside}", "link": f"ln -s {secret} {aside}"}[obstacle]
    before = secret.read_text()
    holt.sh(f"mkdir -p .git/hooks; touch .git/hooks/pre-commit; {make}").ok()

    assert not (workspace / ".git" / "hooks").exists()
    assert secret.read_text() == before


def test_a_directory_that_can_not_be_entered_is_no_hiding_place(
    holt: Holt, workspace: Path, identity: Identity
) -> None:
    result = holt.sh("mkdir -p .git/hooks; touch .git/hooks/pre-commit; chmod 0 .git")

    identity.run(["chmod", "755", workspace / ".git"])
    hooks = workspace / ".git" / "hooks"
    assert not hooks.exists() or "hooks" in result.err


@pytest.mark.parametrize("closed", ("0", "0100", "0500"))
def test_a_workspace_that_can_not_be_entered_is_no_hiding_place(
    closed: str, holt: Holt, empty: Repository
) -> None:
    holt.sh(f"git init -q; {config(empty, '.git/config')}; chmod {closed} .")

    empty.identity.run(["chmod", "755", empty.path]).check_returncode()
    assert not (empty.path / ".git/config").exists()


def test_a_closed_workspace_hides_no_submodule(holt: Holt, repository: Repository) -> None:
    script = "git init -q sub; (cd sub; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x); git add sub"
    holt.sh(f"{script}; {config(repository, 'sub/.git/config')}; chmod 0 .")

    repository.identity.run(["chmod", "755", repository.path]).check_returncode()
    assert not repository.use()


def test_a_read_only_workspace_stays_one(holt: Holt, repository: Repository) -> None:
    """Directories that cannot hide anything keep their mode."""
    repository.path.chmod(0o555)
    holt(["run", "--", "true"]).ok()

    assert repository.path.stat().st_mode & 0o777 == 0o555
    repository.path.chmod(0o755)


@pytest.fixture
def small(place: Path, identity: Identity) -> Iterator[Path]:
    """A workspace on a disk of 8 MiB."""
    path, image = place / "small", place / "image"
    path.mkdir()
    subprocess.run(["truncate", "-s", "8M", image], check=True)
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-b", "1024", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, path], capture_output=True).returncode:
        pytest.skip("no loop device here")
    workspace = path / "ws"
    workspace.mkdir()
    identity.own(workspace)
    yield workspace
    subprocess.run(["umount", "-l", path], check=True)


FILL = """
import os
fd = os.open("fill", os.O_WRONLY | os.O_CREAT)
for size in (65536, 1024, 1):
    try:
        while os.write(fd, b"x" * size): pass
    except OSError: pass
for length in (30, 20, 12, 8, 4):
    try:
        for i in range(20000): open(".git/" + str(i).rjust(length, "x"), "x").close()
    except OSError: pass
"""


@pytest.mark.root_host
def test_a_full_disk_is_no_reason_to_run_it(holt: Holt, small: Path, identity: Identity) -> None:
    """The disk has no room for another name, nor for a report."""
    repository = Repository(small, identity)
    report = small / "report.json"
    script = f"git init -q --template= .; {config(repository, '.git/config')}; exec /usr/bin/python3 -c '{FILL}'"
    result = holt(["run", "--report", report, "--", "bash", "-c", script], cwd=small)

    assert result.code == 125
    assert "cannot set aside .git/config" in result.err and "It has mode 0 now" in result.err
    assert f"cannot write the report {report}" in result.err
    assert '"cause": "lost"' in report.read_text()
    assert (small / ".git/config").stat().st_mode & 0o777 == 0
    # Root can read it, as the message says.
    assert identity.uid == 0 or not repository.use()


def test_protected_files_stay_in_a_closed_directory(holt: Holt, repository: Repository) -> None:
    assert holt.sh("chmod 0 .git").ok().set_aside == []
    # An ordinary user must open the directory before looking.
    repository.identity.run(["chmod", "755", repository.path / ".git"]).check_returncode()
    assert (repository.path / ".git/hooks").exists() and (repository.path / ".git/config").exists()


@pytest.mark.parametrize("end", ("exit 1", "kill -KILL $$", "sleep 1000"))
def test_a_repository_is_set_aside_however_the_command_ends(end: str, holt: Holt, empty: Repository) -> None:
    script = f"git init -q; {hook(empty)}; {end}"
    holt.sh(script, "--timeout", "2s")

    assert not empty.use()


@pytest.mark.parametrize("existing", ("link in the workspace", "link out", "file", "file by a link"))
def test_a_git_that_is_a_link_or_a_file_is_guarded_or_refused(
    existing: str, holt: Holt, place: Path, repository: Repository
) -> None:
    """.git is a file, as in worktrees and submodules. It names a directory in the workspace, which is writable."""
    git, elsewhere = repository.path / ".git", repository.path / "real.git"
    if existing == "link out":
        elsewhere = place / "real.git"
    git.rename(elsewhere)
    if existing.startswith("file"):
        way = elsewhere
        if existing == "file by a link":
            (place / "way").symlink_to(repository.path)
            way = place / "way" / elsewhere.name
        git.write_text(f"gitdir: {way}\n")
        repository.identity.own(git)
    else:
        git.symlink_to(elsewhere)
        repository.identity.own(git)
    assert "first" in repository.git("log", "--oneline")

    script = f"{config(repository, f'{elsewhere}/config')}; {hook(repository, f'{elsewhere}/hooks/pre-commit')}"
    holt.sh(script)
    assert not repository.use()


def test_hooks_that_are_a_link_are_guarded(holt: Holt, repository: Repository) -> None:
    """The project keeps its hooks among its files, and .git/hooks is a symlink to them."""
    hooks = repository.path / ".git" / "hooks"
    repository.identity.run(["mv", hooks, repository.path / "githooks"]).check_returncode()
    hooks.symlink_to("../githooks")
    repository.identity.own(hooks)
    holt.sh(hook(repository, "githooks/pre-commit"))

    assert not repository.use()


def test_a_workspace_without_git_is_left_without(holt: Holt, workspace: Path) -> None:
    """holt makes no stubs to mount on: they would be litter, and would change .git/hooks."""
    holt(["run", "--", "true"]).ok()

    assert list(workspace.iterdir()) == []


def test_a_repository_is_left_as_it_was(holt: Holt, repository: Repository) -> None:
    def state() -> list[tuple[str, int, float]]:
        files = sorted(repository.path.rglob("*"))
        return [(str(p), p.lstat().st_mode, p.lstat().st_mtime) for p in files]

    before = state()
    holt(["run", "--", "true"]).ok()
    assert state() == before
