# SPDX-License-Identifier: Apache-2.0
"""Nothing that a sandbox leaves in a workspace's .git makes the host run code later.

The end of each attack is the caller's own: git, on the host, as the caller. The payload says so in a file.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.hostile import Attack, Run
from lib.identity import Identity
from lib.repository import FSMONITOR, Plant, Repository, config, hook
from lib.sandbox import Holt, Result


@pytest.fixture
def empty(workspace: Path, identity: Identity) -> Repository:
    return Repository(workspace, identity)


# Each is a way to have git on the host run the payload: what a program inside would do, from the workspace.
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

# Where the workspace had no .git, or one without these parts.
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
    """Plants inside, then acts as the caller does."""
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
    """By the files that were there before the config had remotes, and git reads still (gitrepository-layout(5))."""
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
    """The guard is on the path, not on the file that was there: neither may go."""
    directory = workspace / "conf" / "tool"
    identity.run(["mkdir", "-p", directory]).check_returncode()
    (directory / "run.sh").write_text("good\n")
    identity.own(directory / "run.sh")
    script = "mv conf gone; mkdir -p conf/tool; echo evil >conf/tool/run.sh; exit 0"
    holt.sh(script, "--protect", "conf/tool/run.sh")

    assert (directory / "run.sh").read_text() == "good\n"


def test_ordinary_work_in_a_repository_goes_on(holt: Holt, repository: Repository) -> None:
    """The guard is no wall: commits, branches and stashes are what an agent is for."""
    script = (
        "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b;"
        "echo more >>file && git commit -qam second && git checkout -qb topic && git stash list && git log --oneline"
    )
    result = holt.sh(script).ok()

    assert "second" in repository.git("log", "--oneline", "topic")
    assert result.set_aside == []


# --- where the guard itself could be turned ---


def test_a_link_to_a_directory_of_the_host_does_not_move_what_is_there(
    holt: Holt, place: Path, workspace: Path, identity: Identity
) -> None:
    """Setting aside renames on the host: through ".git" as a link it would rename somebody else's hooks."""
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
    """What is opened is what would hide something."""
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
    """There is no room for another name, nor for a report."""
    repository = Repository(small, identity)
    report = small / "report.json"
    script = f"git init -q --template= .; {config(repository, '.git/config')}; exec /usr/bin/python3 -c '{FILL}'"
    result = holt(["run", "--report", report, "--", "bash", "-c", script], cwd=small)

    assert result.code == 125
    assert "cannot set aside .git/config" in result.err and "its mode is 0" in result.err
    assert f"cannot write the report {report}" in result.err
    assert '"cause": "lost"' in report.read_text()
    assert (small / ".git/config").stat().st_mode & 0o777 == 0
    # Root reads it, as the message says.
    assert identity.uid == 0 or not repository.use()


def test_what_is_guarded_stays_where_it_is_in_a_closed_directory(holt: Holt, repository: Repository) -> None:
    assert holt.sh("chmod 0 .git").ok().set_aside == []
    # Whoever is no root has to open it before looking.
    repository.identity.run(["chmod", "755", repository.path / ".git"]).check_returncode()
    assert (repository.path / ".git/hooks").exists() and (repository.path / ".git/config").exists()


@pytest.mark.parametrize("end", ("exit 1", "kill -KILL $$", "sleep 1000"))
def test_it_is_set_aside_however_the_command_ends(end: str, holt: Holt, empty: Repository) -> None:
    script = f"git init -q; {hook(empty)}; {end}"
    holt.sh(script, "--timeout", "2s")

    assert not empty.use()


@pytest.mark.parametrize("existing", ("link in the workspace", "link out", "file", "file by a link"))
def test_a_git_that_is_a_link_or_a_file_is_guarded_or_refused(
    existing: str, holt: Holt, place: Path, repository: Repository
) -> None:
    """As worktrees, submodules and some tools have it: what it leads to, inside the workspace, is writable."""
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
    """A project that keeps its hooks among its files and links to them."""
    hooks = repository.path / ".git" / "hooks"
    repository.identity.run(["mv", hooks, repository.path / "githooks"]).check_returncode()
    hooks.symlink_to("../githooks")
    repository.identity.own(hooks)
    holt.sh(hook(repository, "githooks/pre-commit"))

    assert not repository.use()


def test_a_workspace_without_git_is_left_without(holt: Holt, workspace: Path) -> None:
    """Stubs to mount on would be litter, and in .git/hooks a change."""
    holt(["run", "--", "true"]).ok()

    assert list(workspace.iterdir()) == []


def test_a_repository_is_left_as_it_was(holt: Holt, repository: Repository) -> None:
    def state() -> list[tuple[str, int, float]]:
        files = sorted(repository.path.rglob("*"))
        return [(str(p), p.lstat().st_mode, p.lstat().st_mtime) for p in files]

    before = state()
    holt(["run", "--", "true"]).ok()
    assert state() == before


# --- links that git writes through ---

# What each leaves in .git, by which the caller's git writes into the file "precious" above the workspace.
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
def test_what_git_makes_no_links_of_is_set_aside(
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


# What a command writes to files that git goes by, and what the caller does then. Of the paths {precious} is a file of
# the caller's, {new} is not there.
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


def test_what_leads_git_where_it_should_go_stays(holt: Holt, repository: Repository) -> None:
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


# What one command has made, and the next goes by under the name that it has then.
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
def test_what_is_aside_is_no_ref(first: str, second: str, holt: Holt, place: Path, repository: Repository) -> None:
    precious = place / "precious"
    precious.write_text("mine\n")
    repository.identity.own(precious)
    assert holt.sh(first.format(to=precious)).ok().set_aside
    holt.sh(second)
    repository.git("commit", "--allow-empty", "-q", "-m", "next")
    repository.git("reset", "-q")

    assert precious.read_text() == "mine\n" and not (place / "new").exists()


def test_what_is_aside_stays_where_it_is(holt: Holt, repository: Repository) -> None:
    names = (".git/FETCH_HEAD.holt-untrusted", ".git/refs/x.holt-untrusted.lock")
    assert holt.sh(f"ln -s /tmp/x {names[0]}; ln -s /tmp/x {names[1]}").ok().set_aside == []
    assert holt.sh("ln -s /tmp/x .git/refs/x.holt-untrusted").ok().set_aside == [
        ".git/refs/x.holt-untrusted.holt-untrusted.lock"
    ]


def test_two_runs_do_not_give_each_other_a_link(holt: Holt, place: Path, repository: Repository) -> None:
    """The second finds that of the first at its start, and makes it again when it is aside."""
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

    assert result.code == 125 and "do not use it" in result.err
    refused = holt(["run", "--", "true"])
    assert "more in it than holt looks at" in refused.refusal() and "--protect none" in refused.cure


def test_directories_without_end_are_an_error(holt: Holt, repository: Repository) -> None:
    """Each takes as long as its path is, and as much memory."""
    deep = "import os; os.chdir('.git/refs')\nfor i in range(1900): os.mkdir('a'); os.chdir('a')\n"
    many = "for i in range(7500): os.mkdir(str(i))"
    result = holt.sh(f'/usr/bin/python3 -c "{deep}{many}"')
    refused = holt(["run", "--", "true"])
    repository.identity.run(["rm", "-rf", ".git/refs/a"], cwd=repository.path)

    assert result.code == 125 and "do not use it" in result.err
    assert "more in it than holt looks at" in refused.refusal() and "--protect none" in refused.cure
