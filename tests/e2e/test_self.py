# SPDX-License-Identifier: Apache-2.0
"""holt builds holt: the largest piece of real work that the tests have at hand."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.paths import PROJECT
from lib.sandbox import Holt
from lib.tools import needs


@pytest.fixture
def sources(workspace: Path, identity: Identity) -> Path:
    """A copy in the workspace of the files that git tracks, and of new ones that it does not ignore."""
    if not (PROJECT / ".git").exists():
        pytest.skip("these sources are no git checkout, which says what belongs to them")
    tracked = subprocess.run(
        ["git", "-c", f"safe.directory={PROJECT}", "-C", PROJECT, "ls-files", "-coz", "--exclude-standard"],
        check=True, capture_output=True,
    ).stdout
    archive = subprocess.Popen(
        ["tar", "-C", PROJECT, "--null", "--ignore-failed-read", "-T-", "-c"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    unpack = subprocess.Popen(
        identity.as_user(["tar", "-C", workspace, "--no-same-owner", "-x"]), stdin=archive.stdout
    )
    assert archive.stdin and archive.stdout
    archive.stdin.write(tracked)
    archive.stdin.close()
    assert (unpack.wait(), archive.wait()) == (0, 0)
    archive.stdout.close()
    return workspace


@pytest.mark.slow
@needs("meson", "ninja", "cc")
@pytest.mark.identities("user")
def test_holt_builds_itself_and_passes_its_unit_tests(holt: Holt, sources: Path) -> None:
    result = holt.sh(
        "set -e; meson setup -Doptimization=0 build; ninja -C build; meson test -C build --print-errorlogs; build/runner/holt --version",
        # holt walks trees by openat2(2), which the filter answers with ENOSYS.
        "--allow-syscall", "openat2",
        timeout=600,
    )

    assert result.code == 0, str(result)
    assert int(re.search(r"^Ok:\s+(\d+)", result.out, re.M)[1]) > 0
    assert re.search(r"^holt \d", result.out, re.M)
    assert (sources / "build" / "runner" / "holt").exists()
