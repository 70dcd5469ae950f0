# SPDX-License-Identifier: Apache-2.0
"""The caller's keys stay out of reach, even if the policy lets a command use keys of its own."""

from __future__ import annotations

import secrets

import pytest

from lib.hostile import Attack, Hostile, Outcome
from lib.sandbox import Holt

# Options with which the calls for keys work in a sandbox.
GRANTS = {
    "keyctl": ("--allow-syscall", "keyctl"),
    "all calls for keys": ("--allow-syscall", "keyctl", "--allow-syscall", "request_key", "--allow-syscall", "add_key"),
    "their group": ("--allow-syscall", "@keyring"),
    "no filter": ("--allow-degraded", "seccomp"),
}


@pytest.fixture
def held_key(hostile: Hostile) -> list[str]:
    """A command that gives the next one a session keyring with a key. Its arguments are the key's name and payload."""
    words = [str(hostile.path("keyring")), f"holt-test-{secrets.token_hex(8)}", f"secret-{secrets.token_hex(8)}"]
    tried = hostile.caller.run([*words, "/bin/true"])
    if tried.returncode == 3:
        pytest.skip(f"this host has no keys: {tried.stderr}")
    assert tried.returncode == 0, tried.stderr
    return words


@pytest.mark.parametrize("grant", GRANTS)
@pytest.mark.parametrize("name", ("search", "request", "by-number", "link-number"))
def test_a_key_of_the_caller_can_not_be_read(
    name: str, grant: str, held_key: list[str], hostile: Hostile, holt: Holt
) -> None:
    attack = Attack("keys", name, ("KEY" if "number" in name else held_key[1],))
    control = hostile.caller.run([*held_key, hostile.path("keys"), name, *attack.args])
    assert Outcome.of(attack, control.stdout, control.stderr) == Outcome("BROKEN", f"read {held_key[2]}")

    prefix = [*held_key, *(hostile.refusing("seccomp") if grant == "no filter" else ())]
    outcome = hostile.attack(holt, attack, *GRANTS[grant], prefix=prefix)
    assert outcome.verdict == "HOLDS", outcome


@pytest.mark.parametrize("grant", ("all calls for keys", "their group"))
def test_a_command_may_have_keys_of_its_own(
    grant: str, holt: Holt, hostile: Hostile, held_key: list[str]
) -> None:
    """The other half: the calls work, so only the caller's keyring is missing."""
    inside = [*held_key, hostile.path("keys"), "search", held_key[1]]
    result = holt(["run", "--ro", hostile.directory, *GRANTS[grant], "--", *inside])

    assert f"BROKEN read {held_key[2]}" in result.out
