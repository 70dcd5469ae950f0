# SPDX-License-Identifier: Apache-2.0
"""Landlock with the kernel's own ABI, and a kernel without Landlock."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest

from lib.sandbox import Holt

SYS_LANDLOCK_CREATE_RULESET, VERSION = 444, 1

without = pytest.mark.boots("no-landlock")


def kernel_abi() -> int:
    """Returns the ABI, or 0 or less if the kernel has no Landlock."""
    return ctypes.CDLL(None).syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, VERSION)


@pytest.mark.boots("debian")
@pytest.mark.parametrize("mode", ("auto", "require"))
def test_the_kernel_s_abi_is_used(mode: str, holt: Holt) -> None:
    result = holt(["run", "--landlock", mode, "--", "true"]).ok()

    assert result.layers["landlock"] == f"on: ABI {kernel_abi()}"


@pytest.mark.boots("debian")
def test_files_can_be_renamed_between_directories(holt: Holt) -> None:
    """Landlock's first ABI always refuses that. From the second ABI on, it is a right (REFER)."""
    holt.sh("mkdir a b; touch a/f; mv a/f b/f; ln b/f a/f; mv a /tmp/a; mv /tmp/a/f .").ok()


@without
def test_without_landlock_every_other_layer_holds(holt: Holt, secret: Path) -> None:
    result = holt.sh(f"cat {secret}; ls /..")

    assert kernel_abi() < 0
    assert result.layers["landlock"] == "off: this kernel does not have it"
    assert secret.read_text() not in result.out
    assert "vmlinuz" not in result.out and "boot" not in result.out.split()


@without
def test_landlock_that_is_required_is_an_error_with_a_cure(holt: Holt) -> None:
    result = holt.sh("echo reached", "--landlock", "require")

    assert (result.code, result.out) == (125, "")
    assert (result.report or {})["error"]["layer"] == "landlock"
    assert "lsm=landlock" in result.err and "--landlock auto" in result.err


@without
def test_landlock_that_is_required_can_be_let_go(holt: Holt) -> None:
    holt(["run", "--landlock", "require", "--allow-degraded", "landlock", "--", "true"]).ok()


@without
def test_doctor_says_that_landlock_is_missing_and_not_needed(holt: Holt) -> None:
    found = json.loads(holt(["doctor", "--json"]).ok().out)

    assert found["works"] and not found["layers"]["landlock"]["works"]
