# SPDX-License-Identifier: Apache-2.0
"""Finds the binary under test. No other file knows its path."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

# Meson's output paths. HOLT in the environment names another binary, such as one with a sanitizer.
BUILT = (PROJECT / "build" / "runner" / "holt", PROJECT / "build" / "holt")

# The files that holt expects beside itself.
COMPANIONS = ("holt-full", "holt-init", "holt-egress")


class NoBinary(Exception):
    """No binary was found; the text lists the places that were searched."""


def built_holt() -> Path:
    """The binary under test. Raises NoBinary."""
    named = os.environ.get("HOLT")
    candidates = (Path(named).resolve(),) if named else BUILT
    for path in candidates:
        if path.is_file():
            return path
    raise NoBinary(f"no holt at {' or '.join(map(str, candidates))}: build it first (README.md), or set HOLT")


def reachable_by_all(path: Path) -> bool:
    """Whether every user can execute path. That fails below /root, which often contains root's checkout."""
    return all(p.stat().st_mode & 0o001 for p in (path, *path.parents))


def holt_for_all(scratch: Path) -> Path:
    """Returns the binary under test, or a copy with its companions in scratch if other users cannot reach it."""
    holt = built_holt()
    if reachable_by_all(holt):
        return holt
    target = scratch / "holt"
    target.mkdir(mode=0o755)
    for path in (holt, *(holt.parent / name for name in COMPANIONS)):
        if path.is_file():
            shutil.copy(path, target / path.name)
            (target / path.name).chmod(0o755)
    return target / holt.name
