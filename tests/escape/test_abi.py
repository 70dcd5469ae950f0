# SPDX-License-Identifier: Apache-2.0
"""Inside, no syscall ABI works except the native one."""

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
    assert holds(attack).detail in ("SIGSYS", "no 32-bit ABI: ENOSYS")


def test_high_bits_of_the_number_do_not_hide_a_call(holds: Run) -> None:
    """The kernel reads only 32 bits of the number."""
    holds(Attack("abi", "number-high-bit"))
