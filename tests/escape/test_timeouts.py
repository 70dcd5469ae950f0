# SPDX-License-Identifier: Apache-2.0
"""All processes of a killed or timed-out command are gone, however they tried to escape. The same holds if holt itself
is killed at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from lib import leaks
from lib.hostile import Hostile
from lib.sandbox import Holt, Running

KINDS = ("plain", "setsid", "double-fork", "adopted", "stopped", "stubborn", "headless", "sibling")


def start(holt: Holt, hostile: Hostile, kind: str, *flags: str) -> Running:
    argv = [
        "run", "--ro", hostile.directory, *flags, "--", hostile.path("daemon"), kind, holt.cwd / "alive",
    ]
    return holt.start(argv)


def nothing_lives() -> None:
    """This process is the subreaper of all that the suite starts (lib/leaks.py), so nothing can have escaped."""
    assert leaks.until_no_descendants() == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_daemons_outlive_their_parent_without_holt(kind: str, hostile: Hostile) -> None:
    """The control of the tests below."""
    path = hostile.unused_path()
    process = subprocess.Popen(
        hostile.caller.as_user([hostile.path("daemon"), kind, path]), stdout=subprocess.PIPE
    )
    assert process.stdout and process.stdout.readline() == b"ready\n"
    process.kill()
    process.wait()
    process.stdout.close()
    survivors = leaks.descendants()
    while living := leaks.until_no_descendants(0):
        for survivor in living:
            os.kill(survivor.pid, signal.SIGKILL)

    assert [s for s in survivors if s.name == "daemon"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_timeout_takes_daemons_with_it(kind: str, holt: Holt, hostile: Hostile) -> None:
    with start(holt, hostile, kind, "--timeout", "500ms", "--kill-after", "200ms") as running:
        result = running.wait()

    assert result.code == 124
    assert result.cause == "timeout"
    nothing_lives()


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_the_command_takes_daemons_with_it(kind: str, holt: Holt, hostile: Hostile) -> None:
    program = hostile.path("daemon")
    script = f"exec 3< <(exec {program} {kind} alive); read -u 3 line; echo $line; exit 7"
    result = holt.sh(script, "--ro", hostile.directory)

    assert result.code == 7
    assert result.out == "ready\n"
    nothing_lives()


@pytest.mark.parametrize("kind", KINDS)
def test_killing_holt_takes_daemons_with_it(kind: str, holt: Holt, hostile: Hostile) -> None:
    with start(holt, hostile, kind) as running:
        assert running.readline() == "ready"
        running.kill(signal.SIGKILL)

    nothing_lives()


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT), ids=str)
def test_a_signal_to_holt_takes_daemons_with_it(sig: signal.Signals, holt: Holt, hostile: Hostile) -> None:
    with start(holt, hostile, "double-fork") as running:
        assert running.readline() == "ready"
        running.kill(sig)
        result = running.wait()

    # After a SIGINT, holt itself dies of it, so that a loop of the shell ends.
    assert result.code == (-sig if sig == signal.SIGINT else 128 + sig)
    nothing_lives()


def test_a_kill_at_any_moment_leaves_nothing(holt: Holt) -> None:
    """Moments during the launch are included: one run is measured, and then fifty are killed at moments spread over its
    length."""
    begin = time.monotonic()
    holt(["run", "--", "true"]).ok()
    whole = time.monotonic() - begin
    for i in range(50):
        with holt.start(["run", "--", "sleep", "1000"], report=False) as running:
            time.sleep(whole * i / 50)
            running.kill(signal.SIGKILL)
        assert leaks.until_no_descendants() == []


def test_the_end_of_init_is_an_end(holt: Holt) -> None:
    """The host may kill init, as the OOM killer does. Then nobody waits forever, and the result says so."""
    with holt.start(["run", "--", "sh", "-c", "echo ready; sleep 1000"]) as running:
        assert running.readline() == "ready"
        init = next(p for p in leaks.descendants(running.pid) if p.parent == running.pid)
        os.kill(init.pid, signal.SIGKILL)
        result = running.wait()

    assert result.code != 0
    assert result.cause in ("lost", "killed")


def test_a_command_that_keeps_the_output_open_does_not_hold_holt_up(holt: Holt) -> None:
    result = holt.sh("setsid sleep 1000 & disown; echo done").ok()

    assert result.out == "done\n"
