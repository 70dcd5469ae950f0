# SPDX-License-Identifier: Apache-2.0
"""A command that failed because it found no host is told that the sandbox has no network."""

from __future__ import annotations

import pytest

from lib.sandbox import Holt
from lib.sessions import Sessions

HINT = "holt: the sandbox has no network, and in this version no option gives it one\n"
PYTHON = "import socket\nsocket.getaddrinfo('example.invalid', 80)"


@pytest.mark.parametrize(
    "message",
    [
        "curl: (6) Could not resolve host: example.invalid",
        "fatal: unable to access 'https://example.invalid/x/': Could not resolve host: example.invalid",
        "npm error code EAI_AGAIN",
        "E: Temporary failure resolving 'example.invalid'",
        "ERROR: No matching distribution found for x",
        "ssh: connect to host 192.0.2.1 port 22: Network is unreachable",
    ],
)
def test_a_failed_command_is_told_that_there_is_no_network(holt: Holt, message: str) -> None:
    script = f'echo "{message}" >&2; exit'
    assert holt.sh(f"{script} 1").err.count(HINT) == 1
    assert HINT not in holt.sh(f"{script} 0").err


def test_no_hint_for_other_failures(holt: Holt) -> None:
    assert HINT not in holt.sh("echo 'curl: (7) Failed to connect to 127.0.0.1 port 9' >&2; exit 7").err


def test_a_program_that_asks_for_a_host(holt: Holt, sessions: Sessions) -> None:
    session = sessions.create("w")
    for result in (holt(["run", "--", "python3", "-c", PYTHON]), session("python", "-c", PYTHON)):
        assert result.err.count(HINT) == 1, str(result)
    with (holt.cwd.parent / "err").open("w+") as err:
        session.exec("python3", "-c", PYTHON, stderr=err)
        err.seek(0)
        assert err.read().count(HINT) == 1
