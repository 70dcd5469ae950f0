# SPDX-License-Identifier: Apache-2.0
"""The end of holt-egress before its sandbox."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from lib.sandbox import Holt


def children(pid: int) -> "list[int]":
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_lost_network_is_told_and_refuses_connections(holt: Holt) -> None:
    script = "echo begin; read line; getent hosts web.example.org || echo refused"
    with holt.start(["run", "--net", "web.example.org:80", "--", "sh", "-c", script], stdin=subprocess.PIPE) as running:
        assert running.readline() == "begin"
        (egress,) = (pid for pid in children(running.pid) if Path(f"/proc/{pid}/comm").read_text() == "holt-egress\n")
        os.kill(egress, signal.SIGKILL)
        result = running.wait(b"go\n")

    assert result.out == "refused\n" and result.report["network"]["lost"] is True
    assert "the sandbox lost its network" in result.err
