# SPDX-License-Identifier: Apache-2.0
"""What the tests of this suite have in common beyond lib/plugin.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.terminal import Terminal

Put = Callable[..., Path]


@pytest.fixture
def put(workspace: Path, identity: Identity) -> Put:
    """Makes a file of the caller's, with the directories above it: put(NAME, TEXT, MODE), NAME relative to the
    workspace."""

    def make(name: str | os.PathLike[str], text: str | bytes = "", mode: int = 0o644) -> Path:
        path = workspace / name
        missing = [p for p in reversed(path.parents) if not p.exists()]
        for parent in missing:
            parent.mkdir(mode=0o755)
            identity.own(parent)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(mode)
        return identity.own(path)

    return make


@pytest.fixture
def mkdir(workspace: Path, identity: Identity) -> Callable[..., Path]:
    """Makes a directory of the caller's, relative to the workspace."""

    def make(name: str | os.PathLike[str], mode: int = 0o755) -> Path:
        path = workspace / name
        path.mkdir(mode=mode)
        return identity.own(path)

    return make


@pytest.fixture
def shell(holt: Holt) -> Iterator[Terminal]:
    """The caller's interactive bash, on a terminal, in the workspace; "$HOLT" is a command that runs holt."""
    environment = {"PS1": "outer> ", "TERM": "dumb", "HOLT": " ".join(holt.argv([])), "HISTFILE": ""}
    with Terminal(holt.identity, ["bash", "--norc", "--noprofile", "-i"], cwd=holt.cwd, env=environment) as shell:
        shell.expect("outer> ")
        yield shell
