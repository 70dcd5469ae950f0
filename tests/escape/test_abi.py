# SPDX-License-Identifier: Apache-2.0
"""Inside, no syscall ABI but the native one works."""

from __future__ import annotations

import platform

import pytest

from lib.hostile import Attack, Run

FOREIGN = [
    Attack("abi", "int80"),
    Attack("abi", "int80-confused"),
    Attack("abi", "x32"),
    Attack("abi", "x32-gap"),
] if platform.machine() == "x86_64" else []


@pytest.mark.parametrize("attack", FOREIGN, ids=str)
def test_a_call_through_a_foreign_abi_kills(attack: Attack, holds: Run) -> None:
    assert holds(attack).detail == "SIGSYS"


def test_the_number_s_high_bits_do_not_hide_a_call(holds: Run) -> None:
    """The kernel reads 32 bits of it."""
    holds(Attack("abi", "number-high-bit"))
