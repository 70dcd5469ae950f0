# SPDX-License-Identifier: Apache-2.0
"""The end of holt-egress, or of the maker, before its sandbox."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import until


def children(pid: int) -> "list[int]":
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def ended(pid: int) -> bool:
    """Whether a process is gone, or only waits for its parent."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_lost_network_is_told_and_refuses_connections(holt: Holt) -> None:
    script = "echo begin; read line; getent hosts web.example.org || echo refused"
    with holt.start(["run", "--net", "web.example.org:80", "--", "sh", "-c", script], stdin=subprocess.PIPE) as running:
        assert running.readline() == "begin"
        (egress,) = (pid for pid in children(running.pid) if Path(f"/proc/{pid}/comm").read_text() == "holt-egress\n")
        os.kill(egress, signal.SIGKILL)
        result = running.wait(b"go\n")

    assert result.out == "refused\n" and result.report["network"]["lost"] is True
    assert "the sandbox lost its network" in result.err


CONNECTS = """
import errno, json, socket, time
print("begin", flush=True)
input()
started = time.monotonic()
results = []
for host in ("8.8.8.8", "203.0.113.10", "2001:4860::8888", "198.18.1.0", "fd00:686f:6c74::100", "198.18.0.1"):
    try:
        socket.create_connection((host, 80), timeout=20)
        results.append("ok")
    except OSError as error:
        results.append(errno.errorcode.get(error.errno, repr(error)))
print(json.dumps([results, time.monotonic() - started < 5]))
"""


@pytest.mark.parametrize("killed", ("holt-egress", "the maker", "the maker first"))
def test_connects_fail_at_once_without_the_network(killed: str, holt: Holt) -> None:
    """Then nobody reads the queue of level 2, and packets to addresses outside must not vanish in it. If one of the two processes is
    killed, the other one ends."""
    with holt.start(["run", "--net", "web.example.org:80,203.0.113.0/24:80", "--", "python3", "-c", CONNECTS],
                    stdin=subprocess.PIPE) as running:
        assert running.readline() == "begin"
        (egress,) = (pid for pid in children(running.pid) if Path(f"/proc/{pid}/comm").read_text() == "holt-egress\n")
        (maker,) = children(egress)
        if killed == "the maker first":
            os.kill(egress, signal.SIGSTOP)  # So it cannot tell the kernel anything.
        os.kill(egress if killed == "holt-egress" else maker, signal.SIGKILL)
        if killed == "the maker first":
            os.kill(egress, signal.SIGKILL)
        until(lambda: ended(maker) and ended(egress), "both processes end")
        result = running.wait(b"go\n")

    results, at_once = json.loads(result.out)
    other = "ECONNREFUSED" if result.report["network"]["level"] == 2 else "ENETUNREACH"
    assert results == [other, "ECONNREFUSED", other, "ECONNREFUSED", "ECONNREFUSED", "ECONNREFUSED"] and at_once
    assert result.report["network"]["lost"] is True
