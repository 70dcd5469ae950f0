# SPDX-License-Identifier: Apache-2.0
"""The default lane runs a test of each file here as each identity (tests/lib/selection.py).

A file has no test in the default lane only if all of its tests are slow.
"""

from __future__ import annotations

import collections
import re
import subprocess
import sys

from lib import identity as identities
from lib.paths import PROJECT

SUITE = PROJECT / "tests" / "e2e"

# Files that start no holt, and README, which speaks to an ordinary user.
EXEMPT = {
    "test_hacking.py", "test_english.py", "test_lanes.py", "test_readme.py", "test_rooms.py",
    # Real peers of an ordinary user. The other files about the network have each identity.
    "test_network_languages.py", "test_network_peers.py",
    # Real programs that call bwrap, which test_bwrap.py calls as each identity.
    "test_bwrap_callers.py",
    # Real agents, whose hook and shell test_agents.py runs as each identity.
    "test_agents_real.py",
    # The calls of a start, which are the same for each identity up to a few.
    "test_start_cost.py",
}  # fmt: skip


def test_each_file_has_a_smoke_test_of_each_identity() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", SUITE]
    listed = subprocess.run(command, cwd=PROJECT, text=True, capture_output=True, timeout=60)
    seen: dict[str, set[str]] = collections.defaultdict(set)
    for name, parameters in re.findall(r"^e2e/(test_\w+\.py)::\w+(?:\[(.*)\])?$", listed.stdout, re.M):
        seen[name] |= set(re.split(r"[-,]", parameters)) & {*identities.applicable()}

    assert listed.returncode == 0, listed.stdout[-2000:]
    assert len(seen) > 40
    assert {name: found for name, found in seen.items() if name not in EXEMPT and found != {*identities.applicable()}} == {}
