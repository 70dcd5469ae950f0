# SPDX-License-Identifier: Apache-2.0
"""A command at a terminal that stops itself stops holt with it, as a job of the caller's shell. The deadline still
holds, and nobody has to run fg."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from lib import leaks
from lib.hostile import Hostile
from lib.sandbox import Holt
from lib.sessions import Sessions, until
from lib.terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.identities("user", "root")]

PROMPT = "outer> "

TIMES = ("--timeout", "1s", "--kill-after", "300ms")

# Scripts for bash, and the way in which each stops holt.
STOPS = {
    "TSTP": "kill -TSTP $$; sleep 3000",
    "STOP": "kill -STOP $$; sleep 3000",
    "stops for ever": "while :; do kill -TSTP $$; done",
    "stops on TERM": 'trap "kill -TSTP \\$\\$" TERM; kill -TSTP $$; while :; do sleep 0.1; done',
    "ignores TERM": 'trap "" TERM; kill -TSTP $$; while :; do sleep 0.1; done',
}

@pytest.fixture(params=("run", "exec --timeout", "exec of the policy"))
def shell(request: pytest.FixtureRequest, holt: Holt, sessions: Sessions) -> Iterator[Terminal]:
    """The caller's interactive bash, in which "$JOB" runs a command with a timeout."""
    job = ["run", *TIMES, "--"]
    if request.param != "run":
        policy = TIMES if "policy" in request.param else TIMES[2:]
        sessions.create("w", "--workspace", holt.cwd, *policy).exec("true").ok()
        job = ["exec", "w", *(() if "policy" in request.param else TIMES[:2]), "--"]
    environment = {**sessions.env, "PS1": PROMPT, "TERM": "dumb", "JOB": " ".join(holt.argv(job)), "HISTFILE": ""}
    with Terminal(holt.identity, ["bash", "--norc", "--noprofile", "-i"], cwd=holt.cwd, env=environment) as shell:
        shell.expect(PROMPT)
        yield shell


def start(shell: Terminal, script: str) -> None:
    shell.send(f"$JOB bash -c '{script}'\n")
    shell.expect(r"\[1\]\+\s+Stopped")
    shell.expect(PROMPT)


def ended(shell: Terminal) -> None:
    """Waits for holt's message. bash itself does not wait for a stopped job."""
    shell.expect("timed out after", timeout=10)
    shell.send("jobs\n")
    while not (code := shell.expect(rf"\[1\]\+\s+Exit (\d+)|{PROMPT}", timeout=10).group(1)):
        time.sleep(0.02)
        shell.send("jobs\n")
    assert code == "124"


@pytest.mark.parametrize("script", STOPS.values(), ids=STOPS)
def test_a_command_that_stops_holt_does_not_stop_its_deadline(script: str, shell: Terminal) -> None:
    start(shell, script)
    ended(shell)
    until(lambda: not [p for p in leaks.descendants() if p.name == "sleep"], "the command is killed", 5)


def test_bg_before_the_deadline_changes_nothing(shell: Terminal) -> None:
    start(shell, STOPS["stops for ever"])
    shell.send("bg\n")
    shell.expect(PROMPT)
    ended(shell)


def test_a_run_that_goes_on_before_its_deadline_is_not_disturbed(shell: Terminal) -> None:
    start(shell, "kill -TSTP $$; exit 7")
    shell.send("fg; echo ended $?\n")
    shell.expect(r"\nended 7\r\n", timeout=15)


@pytest.mark.parametrize("number", (signal.SIGSTOP, signal.SIGTSTP))
def test_a_stop_that_comes_from_outside_does_not_stop_the_deadline(number: signal.Signals, holt: Holt) -> None:
    with holt.start(["run", *TIMES, "--", "bash", "-c", "echo ready; sleep 3000"]) as running:
        assert running.readline() == "ready"
        running.kill(number)
        assert running.wait(timeout=15).code == 124


def test_a_caller_without_a_timer_left_is_not_stopped(holt: Holt, hostile: Hostile) -> None:
    """RLIMIT_SIGPENDING of 0 leaves no room for a timer: then only the command stops."""
    argv = ["prlimit", "--sigpending=0", "--", *holt.argv(["run", *TIMES, "--", "bash", "-c", STOPS["TSTP"]])]
    script = 'set -m; "$@"; echo ended $?'
    with Terminal(holt.identity, ["bash", "-c", script, "sh", *argv], cwd=holt.cwd) as shell:
        shell.expect(r"ended 124\r\n", timeout=15)
