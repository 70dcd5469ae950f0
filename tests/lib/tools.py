# SPDX-License-Identifier: Apache-2.0
"""Programs of the host that a test runs inside."""

from __future__ import annotations

import shutil

import pytest

# The sandbox's own PATH: the host's may contain more.
INSIDE = "/usr/local/bin:/usr/bin:/bin"


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips a test if one of these programs is missing on the host."""
    missing = [p for p in programs if not shutil.which(p, path=INSIDE)]
    return pytest.mark.skipif(bool(missing), reason=f"not on this host: {', '.join(missing)}")
