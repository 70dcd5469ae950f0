# SPDX-License-Identifier: Apache-2.0
"""A repository that is mounted read-write beside the workspace (--rw) is guarded like the workspace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.repository import AS_A, Repository, config, evil, hook, make
from lib.sandbox import Holt
from lib.sessions import Sessions

PLANTS: dict[str, Callable[[Repository], str]] = {
    "hook": hook,
    "config": lambda r: config(r, ".git/config"),
    "config by a new file": lambda r: config(r, "new") + "; mv new .git/config",
    "a directory in its place": lambda r: "mv .git old; cp -r old .git;" + config(r, ".git/config"),
    "config.worktree": lambda r: "git config extensions.worktreeConfig true;" + config(r, ".git/config.worktree"),
    "commondir": lambda r: "cp -r .git other;" + config(r, "other/config") + "; echo ../other >.git/commondir",
    "a submodule": lambda r: f"{make()}; git add sub;" + evil(r),
}


@pytest.fixture
def beside(place: Path, workspace: Path, identity: Identity) -> Repository:
    """Another repository, which is not below the workspace."""
    path = place / "beside"
    path.mkdir()
    identity.own(path)
    return Repository(path, identity).init()


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("plant", PLANTS)
def test_another_repository_is_guarded(plant: str, sandboxed: bool, holt: Holt, beside: Repository) -> None:
    script = f"cd {beside.path}; {PLANTS[plant](beside)}; exit 0"
    if sandboxed:
        result = holt(["run", "--rw", beside.path, "--", "bash", "-c", script])
        assert result.code == 0, str(result)
    else:
        beside.identity.run(["bash", "-c", script])

    assert beside.use() is not sandboxed


@pytest.mark.identities("user", "root", "nested")
def test_a_session_guards_it_after_each_command(sessions: Sessions, beside: Repository) -> None:
    """The repository is guarded even if the session has a workspace of its own, which has no guards."""
    session = sessions.create("s", "--rw", beside.path)
    assert session.sh(f"cd {beside.path}; {config(beside, '.git/config')}").code != 0
    told = session.sh(f"cd {beside.path}; echo ../x >.git/commondir; ln -s x .git/link", "--json").ok()

    assert sorted(json.loads(told.err.splitlines()[-1])["set_aside"]) == [
        f"{beside.path}/.git/{name}.holt-untrusted" for name in ("commondir", "link")
    ]
    assert not beside.use()


def test_the_message_says_how_to_move_a_file_back(holt: Holt, beside: Repository) -> None:
    made = f"{beside.path}/.git/commondir"
    result = holt(["run", "--rw", beside.path, "--", "bash", "-c", f"echo ../x >{made}"]).ok()

    assert f"mv -T {made}.holt-untrusted {made}\n" in result.err
    assert "  Git on the host would use it. Look at it, then move it back if you trust it:\n" in result.err


def test_a_repository_at_another_path_is_protected(holt: Holt, beside: Repository) -> None:
    result = holt(["run", "--workspace", "none", "--rw", f"{beside.path}:/srv/r", "--", "bash", "-c",
                   f"cd /srv/r; echo >>.git/config; echo x >.git/commondir; {AS_A} commit -qm x --allow-empty"])

    assert "Read-only file system" in result.err
    assert not (beside.path / ".git/commondir").exists()


def test_a_bare_repository_is_protected(holt: Holt, place: Path, workspace: Path, identity: Identity) -> None:
    identity.run(["git", "init", "-q", "--bare", f"{place}/bare"])
    result = holt(["run", "--rw", place / "bare", "--", "bash", "-c", f"cd {place}/bare; echo >hooks/x; echo >>config"])

    assert result.err.count("Read-only file system") == 2, str(result)


def test_git_works_in_a_repository_of_rw(holt: Holt, beside: Repository) -> None:
    holt(["run", "--rw", beside.path, "--", "bash", "-c",
          f"cd {beside.path}; echo x >new; git add new; {AS_A} commit -qm new; git checkout -qb other"]).ok()

    assert "new" in beside.git("log", "-1", "--format=%s", "other")


@pytest.mark.parametrize("option", ("--protect=none", "--ro"))
def test_directories_without_guards(option: str, holt: Holt, beside: Repository) -> None:
    """The caller chose that, or the mount is read-only."""
    mount = ["--ro", beside.path] if option == "--ro" else ["--protect", "none", "--rw", beside.path]
    result = holt(["run", *mount, "--", "bash", "-c", f"echo '# x' >>{beside.path}/.git/config"])

    assert (result.code == 0) is (option != "--ro")


def test_a_directory_that_is_none_is_left_alone(holt: Holt, place: Path, workspace: Path, identity: Identity) -> None:
    (place / "plain").mkdir()
    identity.own(place / "plain")
    holt(["run", "--rw", place / "plain", "--", "bash", "-c", f"cd {place}/plain; git init -q sub; echo x >config"]).ok()

    assert (place / "plain/sub/.git/config").exists()


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("there", (True, False))
def test_holt_s_own_file_at_its_top(there: bool, holt: Holt, place: Path, workspace: Path, identity: Identity) -> None:
    """A run of holt in that directory would obey the file."""
    (place / "plain").mkdir()
    own = place / "plain/.holt.json"
    if there:
        own.write_text('{"holt": 1}')
        identity.own(own)
    identity.own(place / "plain")
    result = holt(["run", "--rw", place / "plain", "--", "bash", "-c", f"echo evil >{own}"])

    assert (own.read_text() == '{"holt": 1}') if there else not own.exists(), str(result)


@pytest.mark.parametrize("which, warned", (("workspace", ".envrc"), ("place", ".git/hooks")))
def test_other_names_of_the_workspace(which: str, warned: str, holt: Holt, repository: Repository, place: Path) -> None:
    """Under every name, the repository's own top is guarded, but other protected paths are not."""
    mount = {"workspace": repository.path, "place": place}[which]
    result = holt(["run", "--protect", ".envrc", "--rw", f"{mount}:/srv/x", "--", "bash", "-c",
                   "echo x >>/srv/x/.git/config || echo refused"])

    assert f"protected paths of the workspace there ({warned} and others)" in result.err
    assert which != "workspace" or result.out == "refused\n"
