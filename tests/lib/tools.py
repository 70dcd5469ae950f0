# SPDX-License-Identifier: Apache-2.0
"""Programs of the host that a test runs inside."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

# The sandbox's own PATH: the host's may contain more.
INSIDE = "/usr/local/bin:/usr/bin:/bin"

# Debian's directory of the programs of PostgreSQL's server.
POSTGRES = ":".join(map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"))))


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips a test if one of these programs is missing on the host."""
    missing = [p for p in programs if not shutil.which(p, path=INSIDE)]
    return pytest.mark.skipif(bool(missing), reason=f"not on this host: {', '.join(missing)}")


def needs_peer(*programs: str) -> pytest.MarkDecorator:
    """The same for servers and big programs. contrib/packages installs them for the purpose "peers"."""
    missing = [p for p in programs if not shutil.which(p, path=f"{INSIDE}:/usr/sbin:/sbin:{POSTGRES}")]
    return pytest.mark.skipif(bool(missing), reason=f"not on this host: {', '.join(missing)}; contrib/packages peers installs it")
