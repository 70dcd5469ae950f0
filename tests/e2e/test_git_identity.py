# SPDX-License-Identifier: Apache-2.0
"""--git-identity: commits inside are the caller's, without the caller's git config."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import Sessions

Make = Callable[..., Path]

def git(holt: Holt, *args: str) -> str:
    """Runs git on the host as the caller."""
    return holt.identity.run(["git", *args], cwd=holt.cwd).stdout


# Prints name and address of the author and of the committer, as git finds them.
SCRIPT = """for who in AUTHOR COMMITTER; do git var GIT_${who}_IDENT; done | sed 's/ <\\(.*\\)>.*/|\\1/' | paste -sd '|'"""
SHOW = ["--", "sh", "-c", SCRIPT]


def shown(holt: Holt, env: Mapping[str, str], *flags: str) -> str:
    return holt(["run", "--git-identity", *flags, *SHOW], env=env).ok().out.strip()


@pytest.fixture
def home(program: Make) -> "Callable[..., dict[str, str]]":
    def make(**files: str) -> "dict[str, str]":
        path = program("home/x")
        for name, text in files.items():
            program(f"home/{name.replace('_', '.')}", text)
        return {"HOME": str(path.parent)}

    return make


CONFIG = "[user]\n  name = Ann \"Ö\" Other\n  email = ann@example.org ; work\n"


def test_a_commit_inside_is_the_caller_s(holt: Holt, home: "Callable[..., dict[str, str]]") -> None:
    env = home(_gitconfig=CONFIG)
    git(holt, "init", "--quiet")

    holt(["run", "--git-identity", "--", "git", "commit", "--quiet", "--allow-empty", "-m", "a"], env=env).ok()
    log = git(holt, "log", "--format=%an <%ae> %cn <%ce>")
    assert log == "Ann Ö Other <ann@example.org> Ann Ö Other <ann@example.org>\n"


def test_the_last_value_counts(holt: Holt, home: "Callable[..., dict[str, str]]", program: Make) -> None:
    env = home(_gitconfig=CONFIG + "[include]\n  path = .gitconfig.local\n[includeIf \"gitdir:/\"]\n  path = other\n")
    assert shown(holt, env) == "|".join(["Ann Ö Other", "ann@example.org"] * 2)
    program("home/.gitconfig.local", "[user]\nemail = local@example.org\n")
    program("home/other", "[user]\nemail = other@example.org\n")
    assert shown(holt, env) == "|".join(["Ann Ö Other", "local@example.org"] * 2)

    assert shown(holt, env, "--env", "GIT_AUTHOR_NAME=Set") == "Set|local@example.org|Ann Ö Other|local@example.org"
    own = {**env, "GIT_COMMITTER_EMAIL": "own@example.org"}
    assert shown(holt, own) == "Ann Ö Other|local@example.org|Ann Ö Other|own@example.org"


def test_a_missing_identity_is_an_error(holt: Holt, home: "Callable[..., dict[str, str]]") -> None:
    result = holt(["run", "--git-identity", *SHOW], env=home(_gitconfig="[user]\n  name = Ann\n"))

    assert result.refusal() == "--git-identity: your git config has no user.email"
    assert "git config --global user.email" in result.cure


def test_includes_in_a_circle_end(holt: Holt, home: "Callable[..., dict[str, str]]") -> None:
    env = home(_gitconfig=CONFIG + "[include]\n  path = .gitconfig\n  path = ~/.gitconfig\n")

    assert shown(holt, env, "--protect", "none").startswith("Ann Ö Other|")


def test_git_identity_is_a_field_of_a_policy(sessions: Sessions, home: "Callable[..., dict[str, str]]", put: Make) -> None:
    file = put("policy.json", '{"holt": 1, "env": {"git_identity": true}}')
    env = {**sessions.env, **home(_gitconfig=CONFIG)}
    sessions.create("w", "--policy", str(file), env=env)

    assert sessions(["exec", "w", *SHOW]).ok().out.strip() == "|".join(["Ann Ö Other", "ann@example.org"] * 2)


def test_the_project_s_own_file_cannot_ask_for_it(holt: Holt, home: "Callable[..., dict[str, str]]", put: Make) -> None:
    put(".holt.json", '{"holt": 1, "env": {"git_identity": true}}')

    assert "must not be set in the project's own file" in holt(["run", *SHOW], env=home(_gitconfig=CONFIG)).refusal()


def test_git_is_not_run(holt: Holt, home: "Callable[..., dict[str, str]]", put: Make) -> None:
    """A command may have planted a git in the workspace, which may be in the caller's PATH."""
    put("bin/git", "#!/bin/sh\ntouch $(dirname $0)/../ran\n", 0o755)
    env = home(_gitconfig=CONFIG)

    assert shown(holt, {**env, "PATH": f"{holt.cwd}/bin:{os.environ['PATH']}"}).startswith("Ann")
    assert not (holt.cwd / "ran").exists()


def test_the_repository_s_own_identity_wins(holt: Holt, home: "Callable[..., dict[str, str]]") -> None:
    env = home(_gitconfig=CONFIG)
    git(holt, "init", "--quiet")
    git(holt, "config", "user.email", "local@example.org")

    assert shown(holt, env) == "|".join(["Ann Ö Other", "local@example.org"] * 2)
    git(holt, "config", "user.name", "Loc")
    (Path(env["HOME"]) / ".gitconfig").unlink()
    assert shown(holt, env) == "|".join(["Loc", "local@example.org"] * 2)
    (holt.cwd / "sub").mkdir()
    holt.identity.own(holt.cwd / "sub")
    above = holt(["run", "--git-identity", "--workspace", "..", *SHOW], env=env, cwd=holt.cwd / "sub").ok()
    assert above.out.strip() == "|".join(["Loc", "local@example.org"] * 2)


def test_a_session_learns_of_the_repository_s_identity(
    sessions: Sessions, holt: Holt, home: "Callable[..., dict[str, str]]"
) -> None:
    """The config counts even if it is set after the session was created, and in repositories of subdirectories, too."""
    sessions.create("w", "--workspace", holt.cwd, "--git-identity", env={**sessions.env, **home(_gitconfig=CONFIG)})
    git(holt, "init", "--quiet", "sub")
    git(holt, "-C", "sub", "config", "user.name", "Sub")

    assert sessions(["exec", "w", *SHOW]).ok().out.strip() == "|".join(["Ann Ö Other", "ann@example.org"] * 2)
    inside = sessions(["exec", "w", "--cwd", "/workspace/sub", *SHOW]).ok().out.strip()
    assert inside == "|".join(["Sub", "ann@example.org"] * 2)


def test_odd_names_are_quoted(holt: Holt, home: "Callable[..., dict[str, str]]") -> None:
    env = home(_gitconfig='[user]\n name = "A \\"B\\" #; \\\\ C"\n email = a@b\n')
    assert holt(["run", "--git-identity", "--", "git", "config", "user.name"], env=env).ok().out == 'A "B" #; \\ C\n'

    long = home(_gitconfig=f"[user]\n name = {'x' * 2000}\n email = a@b\n")
    assert "user.name is too long" in holt(["run", "--git-identity", *SHOW], env=long).refusal()


COMMIT = ("git", "commit", "--allow-empty", "-m", "x")


def test_a_commit_without_an_identity_gets_a_hint(holt: Holt, sessions: Sessions, place: Path) -> None:
    git(holt, "init", "--quiet")
    session = sessions.create("w", "--workspace", holt.cwd)

    for argv in (COMMIT, ("sh", "-c", " ".join(COMMIT))):
        assert "who you are: --git-identity passes" in holt(["run", "--", *argv]).err
        assert "who you are: holt create --git-identity passes" in session.exec(*argv).err
    with (place / "messages").open("w+") as err:
        holt(["run", "--", "sh", "-c", " ".join(COMMIT) + "; exit 3"], stderr=err)
        err.seek(0)
        assert "who you are: --git-identity passes" in err.read()
    assert "who you are" not in holt(["run", "--", "git", "log"]).err
