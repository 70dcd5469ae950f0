# SPDX-License-Identifier: Apache-2.0
"""Files that the host's git would run or trust cannot be changed from inside, and git still works."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.tools import needs

pytestmark = needs("git")

Make = Callable[..., Path]

AUTHOR = (
    "--env", "GIT_AUTHOR_NAME=A", "--env", "GIT_AUTHOR_EMAIL=a@example.org",
    "--env", "GIT_COMMITTER_NAME=A", "--env", "GIT_COMMITTER_EMAIL=a@example.org",
)


def git(identity: Identity, directory: Path, *args: str) -> str:
    """Git on the host, as the caller."""
    names = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = identity.run(["git", "-C", directory, *args], env=identity.environment(names))
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(directory: Path) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*")}


@pytest.fixture
def repository(workspace: Path, identity: Identity) -> Path:
    """The workspace, as a repository of the caller's with one commit."""
    git(identity, workspace, "init", "-q", "-b", "main")
    (workspace / "file").write_text("one\n")
    identity.own(workspace / "file")
    git(identity, workspace, "add", "file")
    git(identity, workspace, "commit", "-qm", "the first")
    return workspace


def test_git_commits_branches_and_merges(holt: Holt, identity: Identity, repository: Path) -> None:
    result = holt.sh(
        """
        set -e
        git checkout -qb work
        echo two >> file; git commit -qam 'the second'
        git checkout -q main; git merge -q work
        git stash list; git tag v1; git gc -q; git worktree list | wc -l
        git log --format=%s
        """,
        *AUTHOR,
    ).ok()

    assert result.out == "1\nthe second\nthe first\n"
    assert result.set_aside == []
    assert git(identity, repository, "status", "--porcelain") == ""
    assert git(identity, repository, "log", "--format=%s") == "the second\nthe first\n"


@pytest.mark.parametrize("attack", (
    "echo x >> .git/config",
    "git config core.fsmonitor ./evil",
    "git config core.hooksPath .",
    "echo x > .git/hooks/pre-commit",
    "rm -rf .git/hooks",
    "mv .git/hooks .git/h",
    "mv .git/config .git/c",
    "mv .git .g",
    "rm -rf .git",
    "ln -sf /tmp/x .git/config",
    "cp /dev/null .git/config",
    "truncate -s 0 .git/config",
    "chmod 777 .git/config",
    "sed -i s/bare/evil/ .git/config",
))
def test_existing_protected_paths_cannot_be_changed(attack: str, holt: Holt, identity: Identity, repository: Path) -> None:
    git_directory = repository / ".git"
    config, hooks = (git_directory / "config").read_text(), files(git_directory / "hooks")
    mode = (git_directory / "config").stat().st_mode

    result = holt.sh(f"{attack} && echo changed; ls -d .git .git/hooks .git/config")

    assert "changed" not in result.out
    assert result.out.split() == [".git", ".git/config", ".git/hooks"]
    assert (git_directory / "config").read_text() == config
    assert (git_directory / "config").stat().st_mode == mode
    assert files(git_directory / "hooks") == hooks


@pytest.mark.parametrize("name, making", (
    (".git/hooks", "mkdir .git/hooks; echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"),
    (".git/hooks", "ln -s /tmp .git/hooks"),
    (".git/config.worktree", "echo evil > .git/config.worktree"),
    (".git/commondir", "echo /tmp > .git/commondir"),
    (".git/modules", "mkdir -p .git/modules/x; echo evil > .git/modules/x/config"),
    (".git/remotes", "mkdir .git/remotes; echo 'URL: ../evil' > .git/remotes/origin"),
    (".holt.json", "echo '{}' > .holt.json"),
), ids=("hooks", "a link as hooks", "config.worktree", "commondir", "modules", "remotes", ".holt.json"))
def test_new_files_at_protected_paths_are_set_aside(name: str, making: str, holt: Holt, repository: Path) -> None:
    if name == ".git/hooks":
        subprocess.run(["rm", "-r", repository / ".git" / "hooks"], check=True)

    result = holt.sh(making).ok()

    aside = f"{name}.holt-untrusted"
    assert not (repository / name).exists() and not (repository / name).is_symlink()
    assert (repository / aside).exists() or (repository / aside).is_symlink()
    assert result.set_aside == [aside]
    assert result.err.count("holt: ") == 1
    assert aside in result.err


def test_files_set_aside_later_get_other_names(holt: Holt, repository: Path) -> None:
    for _ in range(3):
        holt.sh("echo evil > .git/commondir").ok()

    assert {p.name for p in (repository / ".git").glob("commondir*")} == {
        "commondir.holt-untrusted", "commondir.holt-untrusted.2", "commondir.holt-untrusted.3",
    }


def test_the_message_has_the_way_back(holt: Holt, identity: Identity, repository: Path) -> None:
    """The line can be pasted after a look at the file."""
    for _ in range(2):
        result = holt.sh("git worktree add -q tree", *AUTHOR).ok()
        assert result.set_aside[0].startswith(".git/worktrees.holt-untrusted")
        subprocess.run(["rm", "-rf", repository / "tree"], check=True)
    way = [line.strip() for line in result.err.splitlines() if line.startswith("  mv ")]

    assert len(way) == 1 and "worktrees.holt-untrusted.2" in way[0]
    assert identity.run(["sh", "-c", way[0]], cwd=Path("/")).returncode == 0
    assert (repository / ".git" / "worktrees" / "tree").is_dir()


def test_the_mv_command_moves_nothing_into_a_new_directory(holt: Holt, identity: Identity, repository: Path) -> None:
    """A directory that has come there meanwhile stays what it is."""
    result = holt.sh("git worktree add -q tree", *AUTHOR).ok()
    (way,) = [line.strip() for line in result.err.splitlines() if line.startswith("  mv ")]
    identity.run(["mkdir", "-p", repository / ".git" / "worktrees" / "mine"])

    assert identity.run(["sh", "-c", way], cwd=Path("/")).returncode != 0
    assert [p.name for p in (repository / ".git" / "worktrees").iterdir()] == ["mine"]


def test_the_mv_command_quotes_names_for_the_shell(holt: Holt, workspace: Path, identity: Identity) -> None:
    """An earlier command may have chosen the protected name in .holt.json."""
    (workspace / ".holt.json").write_text('{"holt": 1, "filesystem": {"protect": ["x\'; touch ran; \'"]}}')
    identity.own(workspace / ".holt.json")
    result = holt.sh("touch \"x'; touch ran; '\"").ok()
    way = [line for line in result.err.splitlines() if line.startswith("  mv ")]

    assert len(result.set_aside) == 1 and len(way) == 1
    assert identity.run(["sh", "-c", way[0]], cwd=workspace).returncode == 0
    assert files(workspace) == {".holt.json", "x'; touch ran; '"}


def test_an_unsafe_name_gets_no_mv_command(holt: Holt, workspace: Path) -> None:
    """The name is unsafe to paste, so the sentence ends without a command."""
    (workspace / ".holt.json").write_text('{"holt": 1, "filesystem": {"protect": ["a\\u202eb"]}}')
    result = holt.sh("touch $'a\\xe2\\x80\\xaeb'").ok()

    assert len(result.set_aside) == 1
    assert "  mv " not in result.err and result.err.endswith("Look at it before you use it.\n")
    assert "\u202e" not in result.err and "\\xe2\\x80\\xae" in result.err


def test_the_message_names_git_only_for_files_of_git(holt: Holt, workspace: Path) -> None:
    result = holt.sh("touch Makefile", "--protect", "Makefile").ok()

    assert result.set_aside == ["Makefile.holt-untrusted"]
    assert "  mv " in result.err and "git" not in result.err.splitlines()[1]


@pytest.mark.parametrize("end", ("exit 3", "kill -KILL $$", "sleep 1000"))
def test_files_are_set_aside_however_the_run_ends(end: str, holt: Holt, repository: Path) -> None:
    holt.sh(f"echo evil > .git/commondir; {end}", "--timeout", "500ms", "--kill-after", "0")

    assert not (repository / ".git" / "commondir").exists()


def test_a_new_repository_in_the_workspace_needs_a_look(holt: Holt, workspace: Path) -> None:
    """At the top, the host's git would trust the sandbox's files. Further below, git is not run by accident."""
    result = holt.sh("git init -q . && git init -q below && git -C below config user.name x").ok()

    # A template of git's has branches, too.
    assert set(result.set_aside) - {".git/branches.holt-untrusted"} == {
        ".git/config.holt-untrusted", ".git/hooks.holt-untrusted",
    }
    assert (workspace / "below" / ".git" / "config").exists()


def test_nothing_is_left_of_the_guard_on_the_host(holt: Holt, workspace: Path, mkdir: Make) -> None:
    """No stub files are left, whether or not there is a repository with the guarded files."""
    holt(["run", "--", "true"]).ok()
    assert files(workspace) == set()
    mkdir(".git")
    holt(["run", "--", "true"]).ok()
    assert files(workspace) == {".git"}


def test_a_git_file_is_left_alone(holt: Holt, identity: Identity, repository: Path, place: Path) -> None:
    """A worktree's .git names its repository, which is not inside: git says so, and the file stays."""
    tree = place / "tree"
    git(identity, repository, "worktree", "add", "-q", str(tree))
    text = (tree / ".git").read_text()

    result = holt.sh("cat .git; git status", cwd=tree)

    assert result.code == 128
    assert (tree / ".git").read_text() == text


def test_a_git_file_can_not_be_made_to_name_another_repository(
    holt: Holt, identity: Identity, repository: Path, place: Path
) -> None:
    """The host's git would obey the config of the named repository, and run programs that it names."""
    tree = place / "tree"
    git(identity, repository, "worktree", "add", "-q", str(tree))
    holt.sh("mkdir evil; git init -q --bare evil; rm -f .git; echo 'gitdir: evil' > .git", cwd=tree)
    text = (tree / ".git").read_text() if (tree / ".git").exists() else ""

    assert "evil" not in text


@pytest.mark.parametrize("guarded", (".git", ".git/hooks", ".git/config"))
def test_a_link_is_an_error_with_a_cure(guarded: str, holt: Holt, repository: Path, place: Path) -> None:
    target = place / "elsewhere"
    (repository / guarded).rename(target)
    (repository / guarded).symlink_to(target)

    result = holt(["run", "--", "true"])

    assert guarded in result.refusal()
    assert "--protect none" in result.cure
    holt(["run", "--protect", "none", "--", "true"]).ok()


def test_protect_none_protects_nothing(holt: Holt, repository: Path) -> None:
    holt.sh("git config a.b c && echo x > .git/hooks/x && echo x > .git/commondir", "--protect", "none").ok()

    assert (repository / ".git" / "hooks" / "x").exists()
    assert (repository / ".git" / "commondir").exists()


def test_strict_guards_what_editors_and_agents_act_on(holt: Holt, workspace: Path, put: Make) -> None:
    put(".envrc", "old\n")
    made = (".mcp.json", ".pre-commit-config.yaml", ".vscode")
    result = holt.sh(f"echo x > .envrc; mkdir {' '.join(made)}", "--policy", "strict")

    assert (workspace / ".envrc").read_text() == "old\n"
    assert set(result.set_aside) == {f"{name}.holt-untrusted" for name in made}


def test_another_workspace_is_guarded_too(holt: Holt, repository: Path, place: Path) -> None:
    script = "echo x >> .git/config; echo x > .git/commondir"
    result = holt.sh(script, "--workspace", f"{repository}:/work", cwd=place)

    assert "Read-only file system" in result.err
    assert result.set_aside == [".git/commondir.holt-untrusted"]


def test_git_looks_at_a_worktree_whose_repository_is_given_to_be_read(
    holt: Holt, place: Path, identity: Identity, repository: Path
) -> None:
    """README.md shows this. If root runs holt, read-only files belong to nobody inside."""
    git(identity, repository, "worktree", "add", "-q", place / "tree")
    (place / "tree" / "new").write_text("")
    common = repository / ".git"
    result = holt.sh("git status --porcelain; git log --format=%s", "--ro", common, cwd=place / "tree").ok()

    assert result.out == "?? new\nthe first\n"


def test_a_repository_below_what_is_protected_is_no_work_of_the_command_s(
    holt: Holt, identity: Identity, repository: Path
) -> None:
    """A submodule that the command adds loses its .git. The caller's submodule keeps its .git, because nobody could change it."""
    inner = repository / "vendor" / "lib"
    inner.mkdir(parents=True)
    identity.own(repository / "vendor"), identity.own(inner)
    git(identity, inner, "init", "-q")
    git(identity, inner, "commit", "-q", "--allow-empty", "-m", "theirs")

    result = holt.sh("git add vendor/lib && git ls-files -s", "--protect", "vendor").ok()

    assert "160000" in result.out
    assert "vendor" not in str(result.report["set_aside"])
    assert (inner / ".git").is_dir()


@pytest.mark.parametrize("flags, told", (
    (("--rw", "..:/mnt/all"), True),
    (("--files", "."), False),  # --files has the same guards
    (("--files", ".", "--protect", ".envrc"), True),
    (("--rw", ".git:/mnt/git"), True),
    (("--rw", ".git/objects:/mnt/objects"), False),
    (("--ro", ".:/mnt/all"), False),
    (("--rw", ".:/mnt/all", "--protect", "none"), False),
))
def test_a_warning_if_a_guarded_file_is_mounted_under_another_name(
    flags: tuple[str, ...], told: bool, holt: Holt, repository: Path
) -> None:
    result = holt(["run", *flags, "--", "true"]).ok()

    assert ("protected paths" in result.err) is told
