# SPDX-License-Identifier: Apache-2.0
"""Where the binary under test lies: the one place that knows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

# As Meson builds it. HOLT in the environment names another, for instance that of a sanitizer's build.
BUILT = (PROJECT / "build" / "runner" / "holt", PROJECT / "build" / "holt")

# What holt looks for beside itself.
COMPANIONS = ("holt-full", "holt-init")


class NoBinary(Exception):
    """There is nothing to test; the text says where it was looked for."""


def built_holt() -> Path:
    """The binary under test. Raises NoBinary."""
    named = os.environ.get("HOLT")
    candidates = (Path(named).resolve(),) if named else BUILT
    for path in candidates:
        if path.is_file():
            return path
    raise NoBinary(f"no holt at {' or '.join(map(str, candidates))}: build it first (README.md), or set HOLT")


def reachable_by_all(path: Path) -> bool:
    """Whether every user can execute path: not so below /root, where a checkout of root's often is."""
    return all(p.stat().st_mode & 0o001 for p in (path, *path.parents))


def holt_for_all(scratch: Path) -> Path:
    """The binary under test or, where other users can't reach it, a copy with its companions in scratch."""
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
