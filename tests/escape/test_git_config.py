# SPDX-License-Identifier: Apache-2.0
"""The caller's git configs may lead into the workspace. The command cannot change the files there that git acts on.

Each case is a setting of the caller's own, which no sandbox has written. Examples are hooks among the project's files,
a config that they share, and symlinks from .git to them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.repository import Repository, config, hook
from lib.sandbox import Holt

Setting = Callable[[Repository], str]


@pytest.fixture
def home(place: Path, identity: Identity) -> Path:
    """An empty home directory of the caller's."""
    path = place / "home"
    identity.run(["mkdir", path]).check_returncode()
    return path


# The caller's setting on the host, and the command's attack in the workspace.
LED: dict[str, tuple[str, Setting]] = {
    "hooks path": ("mkdir .husky; git config core.hooksPath .husky", lambda r: hook(r, ".husky/pre-commit")),
    "hooks path that is not there": (
        "git config core.hooksPath .husky", lambda r: f"mkdir .husky; {hook(r, '.husky/pre-commit')}"
    ),
    "absolute hooks path": ("mkdir h; git config core.hooksPath $PWD/h", lambda r: hook(r, "h/pre-commit")),
    "hooks path by a link": (
        "mkdir h; ln -s $PWD ../way; git config core.hooksPath $PWD/../way/h", lambda r: hook(r, "h/pre-commit")
    ),
    "hooks path by a link, not there": (
        "ln -s $PWD ../way; git config core.hooksPath $PWD/../way/h", lambda r: f"mkdir h; {hook(r, 'h/pre-commit')}"
    ),
    "hooks path of husky 9": (
        "mkdir -p .husky/_; printf '#!/bin/sh\\n. ./.husky/pre-commit\\n' >.husky/_/pre-commit;"
        "chmod +x .husky/_/pre-commit; git config core.hooksPath .husky/_",
        lambda r: hook(r, ".husky/pre-commit"),
    ),
    "program of husky 9 that is a link": (
        "mkdir -p .husky/_; printf '#!/bin/sh\\n. ./.husky/pre-commit\\n' >.husky/_/pre-commit; touch x;"
        "ln -s ../x .husky/pre-commit; chmod +x x .husky/_/pre-commit; git config core.hooksPath .husky/_",
        lambda r: hook(r, "x"),
    ),
    "link in a hooks path by a link": (
        "mkdir h ../a ../a/h; ln -s a/h ../way; touch x; chmod +x x; ln -s ../../workspace/x ../a/h/pre-commit;"
        "git config core.hooksPath $PWD/../way",
        lambda r: hook(r, "x"),
    ),
    "hook that is a link": (
        "mkdir s; printf '#!/bin/sh\\n' >s/x; chmod +x s/x; ln -s ../../s/x .git/hooks/pre-commit",
        lambda r: hook(r, "s/x"),
    ),
    "hook that is a link to nothing": (
        "ln -s ../../x .git/hooks/pre-commit", lambda r: hook(r, "x")
    ),
    "link in a hooks path": (
        "mkdir h; printf '#!/bin/sh\\n' >x; chmod +x x; ln -s ../x h/pre-commit; git config core.hooksPath h",
        lambda r: hook(r, "x"),
    ),
    "include": ("git config include.path ../.gitconfig; touch .gitconfig", lambda r: config(r, ".gitconfig")),
    "include that is not there": (
        "git config include.path ../shared/config", lambda r: f"mkdir shared; {config(r, 'shared/config')}"
    ),
    "include on a condition": (
        "git config includeIf.gitdir:$PWD/.path ../c; touch c", lambda r: config(r, "c")
    ),
    "include of an include": (
        "git config include.path ../../c; printf '[include]\\npath = workspace/d\\n' >../c; touch d",
        lambda r: config(r, "d"),
    ),
    "hooks path of an include": (
        "git config include.path ../../c; printf '[core] hooksPath = h' >../c; mkdir h",
        lambda r: hook(r, "h/pre-commit"),
    ),
    "hooks path of the home": (
        "printf '[core]\\nhooksPath = \"h\"\\n' >~/.gitconfig; mkdir h", lambda r: hook(r, "h/pre-commit")
    ),
    "config of the home that is a link": (
        "touch gitconfig; ln -s $PWD/gitconfig ~/.gitconfig", lambda r: config(r, "gitconfig")
    ),
    "config of the home that is a link to nothing": (
        "ln -s $PWD/gitconfig ~/one; ln -s one ~/.gitconfig", lambda r: config(r, "gitconfig")
    ),
    "include of the home": (
        "mkdir -p ~/.config/git; printf '[include]\\npath = ~/../workspace/c\\n' >~/.config/git/config; touch c",
        lambda r: config(r, "c"),
    ),
}


def act(repository: Repository, home: Path, script: str, cwd: Path | None = None) -> None:
    environment = repository.identity.environment({"HOME": str(home)})
    repository.identity.run(["bash", "-c", script], cwd=cwd or repository.path, env=environment)


def use(repository: Repository, home: Path) -> bool:
    act(repository, home, "git status; git -c user.name=a -c user.email=a@b commit --allow-empty -qm next")
    return repository.marker.exists()


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("setting, attack", LED.values(), ids=LED.keys())
def test_a_config_that_leads_into_the_workspace_is_not_turned(
    setting: str, attack: Setting, sandboxed: bool, holt: Holt, home: Path, repository: Repository
) -> None:
    act(repository, home, setting)
    if sandboxed:
        holt.sh(attack(repository), env={"HOME": str(home)})
    else:
        act(repository, home, attack(repository))

    assert use(repository, home) is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("setting, attack", (
    ("git config core.hooksPath lib/h", lambda r: f"mkdir -p h; {hook(r, 'h/pre-commit')}"),
    ("git config include.path ../lib/c", lambda r: config(r, "c")),
    ("mv .git/hooks lib; ln -s ../lib/hooks .git/hooks", lambda r: hook(r, "hooks/pre-commit")),
    ("mv .git/config lib; ln -s ../lib/config .git/config", lambda r: config(r, "config")),
), ids=("hooks path", "include", "hooks that are a link", "config that is a link"))
def test_a_config_of_the_repository_above_is_not_turned(
    setting: str, attack: Setting, sandboxed: bool, holt: Holt, home: Path, repository: Repository
) -> None:
    act(repository, home, f"mkdir lib; {setting}")
    cwd = repository.path / "lib"
    if sandboxed:
        holt.sh(attack(repository), cwd=cwd)
    else:
        act(repository, home, attack(repository), cwd)

    assert use(repository, home) is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_config_of_a_submodule_is_not_turned(
    sandboxed: bool, holt: Holt, home: Path, repository: Repository
) -> None:
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
    act(repository, home, f"git init -q sub; (cd sub; {commit}; git config include.path ../../c); git add sub; touch c")
    if sandboxed:
        holt.sh(config(repository, "c"))
    else:
        act(repository, home, config(repository, "c"))

    assert use(repository, home) is not sandboxed


# Settings by which git runs code in a submodule, at `git status` in the repository above.
IN_A_SUBMODULE: dict[str, tuple[str, Setting]] = {
    "hooks path of its own": (
        "git -C sub config core.hooksPath .husky",
        lambda r: f"mkdir sub/.husky; {hook(r, 'sub/.husky/post-index-change')}",
    ),
    "hooks path of the home": (
        "printf '[core]\\nhooksPath = .husky\\n' >~/.gitconfig; mkdir sub/.husky",
        lambda r: hook(r, "sub/.husky/post-index-change"),
    ),
    "hook that is a link": (
        "touch x; chmod +x x; ln -s ../../../x sub/.git/hooks/post-index-change", lambda r: hook(r, "x")
    ),
}


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("setting, attack", IN_A_SUBMODULE.values(), ids=IN_A_SUBMODULE.keys())
def test_hooks_of_a_submodule_are_not_turned(
    setting: str, attack: Setting, sandboxed: bool, holt: Holt, home: Path, repository: Repository
) -> None:
    commit = "git add a; git -c user.name=a -c user.email=a@b commit -q -m x"
    act(repository, home, f"git init -q sub; (cd sub; touch a; {commit}); git add sub; {setting}")
    script = f"{attack(repository)}; touch -d 2001-01-01 sub/a"
    if sandboxed:
        holt.sh(script, env={"HOME": str(home)})
    else:
        act(repository, home, script)
    act(repository, home, "git status")

    assert repository.marker.exists() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("name", ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"))
def test_a_config_that_the_environment_names_is_not_turned(
    name: str, sandboxed: bool, holt: Holt, home: Path, repository: Repository
) -> None:
    path = repository.path / "c"
    act(repository, home, "touch c")
    if sandboxed:
        holt.sh(config(repository, "c"), env={"HOME": str(home), name: str(path)})
    else:
        act(repository, home, config(repository, "c"))
    act(repository, home, f"{name}={path} git status")

    assert repository.marker.exists() is not sandboxed


@pytest.mark.root_host
@pytest.mark.parametrize("owner", ("stranger", "caller"))
def test_a_stranger_s_repository_above_is_ignored(
    owner: str, holt: Holt, place: Path, workspace: Path, identity: Identity
) -> None:
    git = place / ".git"
    git.mkdir()
    (git / "config").write_text("[[broken")
    os.chown(git, identity.uid if owner == "caller" else 54321, -1)
    result = holt(["run", "--", "true"])

    assert result.code == (125 if owner == "caller" else 0), str(result)


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_config_of_the_home_is_guarded_without_a_repository(
    sandboxed: bool, holt: Holt, home: Path, place: Path, workspace: Path, identity: Identity
) -> None:
    """The caller keeps all settings in one project, and they apply to a repository elsewhere."""
    settings, elsewhere = Repository(workspace, identity), place / "elsewhere"
    act(settings, home, f"touch gitconfig; ln -s $PWD/gitconfig ~/.gitconfig; git init -q {elsewhere}")
    if sandboxed:
        holt.sh(config(settings, "gitconfig"), env={"HOME": str(home)})
    else:
        act(settings, home, config(settings, "gitconfig"))
    act(settings, home, "git status", elsewhere)

    assert settings.marker.exists() is not sandboxed


@pytest.mark.parametrize("setting, said", (
    ("git config core.hooksPath .", "the whole workspace"),
    ("git config core.hooksPath '~somebody/h'", "~somebody/h"),
    ("printf '[core' >>.git/config", "git itself could not read it"),
    ("printf '[include]\\npath = c\\n' >.git/c; git config include.path c", "more than holt reads"),
    (
        "(printf '#'; head -c 1000000 /dev/zero | tr '\\0' x) >../c; echo '[include]' >../d;"
        "for i in $(seq 60); do echo path = c >>../d; done;"
        "printf '[include]\\npath = ../../d\\npath = ../../d\\n' >>.git/config",
        "more files and hooks than holt can check",
    ),
    ("mkdir h; ln -s h g; git config core.hooksPath g", "is a symlink"),
    ("mkdir h; ln -s h g; ln -s $PWD/g ../way; git config core.hooksPath $PWD/../way", "is a symlink"),
    ("mkdir ../h; ln -s ../h g; ln -s $PWD/g ../way; git config core.hooksPath $PWD/../way", "is a symlink"),
    ("touch c; ln -s c d; ln -s $PWD/d ../way; git config include.path ../../way", "is a symlink"),
    ("mkdir t h; git config core.hooksPath t/../h", 'followed by ".."'),
    ("git config core.hooksPath no/no/../../h", 'followed by ".."'),
    ("mkdir t; touch c; git config include.path ../t/../c", 'followed by ".."'),
    ("git config core.hooksPath '%(prefix)/../h'", "%(prefix)"),
    ("cp -al .git old.git", "a second name"),
    ("touch .git/hooks/pre-commit; ln .git/hooks/pre-commit hook", "a second name"),
    ("mkdir s; mv .git/config .git/objects .git/refs s; echo ../s >.git/commondir", "commondir leads to"),
))
def test_settings_that_cannot_be_protected_are_an_error(
    setting: str, said: str, holt: Holt, home: Path, repository: Repository
) -> None:
    act(repository, home, setting)
    result = holt(["run", "--", "true"])

    assert said in result.refusal()
    assert "--protect none" in result.cure


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_included_fifos_are_not_opened(sandboxed: bool, holt: Holt, home: Path, repository: Repository) -> None:
    """Opening a FIFO or a device may have an effect: here, a writer goes on."""
    fifo, opened = repository.path.parent / "fifo", repository.path.parent / "opened"
    act(repository, home, f"mkfifo {fifo}; git config include.path {fifo}")
    with subprocess.Popen(["sh", "-c", f"exec 3>{fifo}; echo >{opened}"]) as writer:
        if sandboxed:
            assert "git itself could not read it" in holt(["run", "--", "true"]).refusal()
        with contextlib.suppress(subprocess.TimeoutExpired):
            writer.wait(0.2)
        assert not opened.exists()
        if not sandboxed:
            act(repository, home, f"dd if={fifo} iflag=nonblock of=/dev/null status=none")
            writer.wait(10)
        writer.kill()

    assert opened.exists() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_hooks_that_run_in_gits_own_directory_are_not_turned(
    sandboxed: bool, holt: Holt, home: Path, repository: Repository
) -> None:
    """A push to the workspace runs its hooks there, by a path relative to it."""
    act(repository, home, f"git config core.hooksPath .h; git clone -q . {home}/clone")
    script = f"mkdir .git/.h; {hook(repository, '.git/.h/pre-receive')}"
    if sandboxed:
        holt.sh(script)
    else:
        act(repository, home, script)
    act(repository, home, "git push -q origin HEAD:refs/heads/x", home / "clone")

    assert repository.marker.exists() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_workspace_may_be_named_by_a_link(
    sandboxed: bool, holt: Holt, home: Path, place: Path, repository: Repository
) -> None:
    """If .git is a file, a relative path in its config starts at the real path of the workspace."""
    way, script = place / "d" / "way", f"mkdir .husky; {hook(repository, '.husky/pre-commit')}"
    act(repository, home, "mkdir ../d; mv .git ../real; echo 'gitdir: ../real' >.git; ln -s ../workspace ../d/way")
    act(repository, home, "git config core.hooksPath .husky")
    if sandboxed:
        holt.sh(script, "--workspace", way)
    else:
        act(repository, home, script)

    assert use(repository, home) is not sandboxed


def test_configs_that_lead_out_of_the_workspace_are_accepted(holt: Holt, home: Path, repository: Repository) -> None:
    act(
        repository, home,
        "git config core.hooksPath /dev/null; git config --add core.hooksPath '';"
        "git config --add include.path /dev/null; ln -s /dev/null ~/.gitconfig;"
        "git config --add include.path ../../none; ln -s /bin/true .git/hooks/pre-push",
    )
    result = holt.sh("touch a; mkdir hooks", env={"HOME": str(home)}).ok()

    assert result.set_aside == []
