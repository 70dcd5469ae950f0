# SPDX-License-Identifier: Apache-2.0
"""What the tests of this suite have in common beyond lib/plugin.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lib.sandbox import Holt
from lib.terminal import Terminal


@pytest.fixture
def shell(holt: Holt) -> Iterator[Terminal]:
    """The caller's interactive bash, on a terminal, in the workspace; "$HOLT" is a command that runs holt."""
    environment = {"PS1": "outer> ", "TERM": "dumb", "HOLT": " ".join(holt.argv([])), "HISTFILE": ""}
    with Terminal(holt.identity, ["bash", "--norc", "--noprofile", "-i"], cwd=holt.cwd, env=environment) as shell:
        shell.expect("outer> ")
        yield shell
