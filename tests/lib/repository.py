# SPDX-License-Identifier: Apache-2.0
"""A git repository of the caller's, and ways to have git on the host run something by it."""

from __future__ import annotations

from pathlib import Path

from lib.identity import Identity


class Repository:
    """A workspace that is a git repository of the identity's, and whether a payload ran in it."""

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

    @property
    def payload(self) -> str:
        """A shell command that shows that it ran; it must be one word without quotes for git's sake."""
        return f"touch {self.marker}"

    def use(self, cwd: Path | None = None) -> bool:
        """What a person does next on the host; whether that ran the payload."""
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
