# SPDX-License-Identifier: Apache-2.0
"""Inside, no namespace can be made or entered: a new user namespace would restore every capability."""

from __future__ import annotations

import pytest

from lib.hostile import Attack, Run

HAS_USER_NAMESPACES = [
    Attack("namespaces", "unshare-user"),
    Attack("namespaces", "unshare-all"),
    Attack("namespaces", "clone-user"),
    Attack("namespaces", "clone-user-high-bit"),
    Attack("namespaces", "clone3-user"),
]

NEEDS_CAPABILITIES = [
    Attack("namespaces", "unshare-mount", control="caps"),
    Attack("namespaces", "unshare-net", control="caps"),
    Attack("namespaces", "unshare-pid", control="caps"),
    Attack("namespaces", "unshare-time", control="caps"),
    Attack("namespaces", "clone-mount", control="caps"),
    Attack("namespaces", "setns-uts", ("self",), control="caps"),
]


@pytest.mark.parametrize("attack", HAS_USER_NAMESPACES, ids=str)
def test_no_user_namespace_can_be_made(attack: Attack, holds: Run) -> None:
    holds(attack)


@pytest.mark.parametrize("attack", NEEDS_CAPABILITIES, ids=str)
def test_no_other_namespace_can_be_made(attack: Attack, holds: Run) -> None:
    holds(attack)


@pytest.mark.parametrize("name", ("setns-uts", "setns-user", "setns-mount"))
@pytest.mark.parametrize("of", ("1", "self"))
def test_no_namespace_can_be_entered(name: str, of: str, holds: Run, stranger: str) -> None:
    """The namespaces of init, or the program's own: the control enters one in which it already is, which changes
    nothing."""
    holds(Attack("namespaces", name, (of,), control="root", control_args=(stranger,)))


def test_clone3_is_missing_rather_than_forbidden(holds: Run) -> None:
    """If clone3 is missing, every C library falls back to clone(2), whose flags can be checked."""
    assert holds(Attack("namespaces", "clone3-user")).detail == "ENOSYS"


@pytest.mark.parametrize("tool", ["unshare --user true", "unshare --map-root-user true"])
def test_unshare_fails(tool: str, holt, hostile) -> None:
    hostile.caller.run(tool.split()).check_returncode()

    assert holt.sh(tool).code != 0


def test_no_identity_map_can_be_written(holds: Run) -> None:
    holds(Attack(
        "namespaces", "write-uid-map", control="none",
        why_none="a map is written once for each namespace, by the parent that made it",
    ))
