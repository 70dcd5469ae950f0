# SPDX-License-Identifier: Apache-2.0
"""A command at a terminal that stops itself stops holt with it, but may have asked the kernel to be continued.
Protected and hidden files are still watched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib import leaks
from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import until
from lib.terminal import Terminal

pytestmark = pytest.mark.identities("user", "root")

PROMPT = "outer> "

# A process of the command that the kernel continues every 20 ms, and that writes a protected file.
WRITER = """
import ctypes, os, signal, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGCONT, lambda *_: None)
    libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
    libc.timer_create(1, (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0), ctypes.byref(timer))
    libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 20000000, 0, 20000000), None)
    while True:
        try: open('.git/config', 'a').write('evil')
        except OSError: time.sleep(0.01)
time.sleep(0.2)
os.kill(os.getpid(), signal.SIGTSTP)
time.sleep(3000)
"""
REPLACE = {
    "git config": ("cp .git/config c; mv c .git/config", ".git/config"),
    "sed -i": ("sed -i s/a/b/ .env", ".env"),
}


@pytest.fixture
def shell(holt: Holt, put: Callable[..., Path]) -> Iterator[Terminal]:
    """The caller's interactive bash, in which "$JOB" has started and has stopped itself."""
    put(".git/HEAD", "ref: refs/heads/main\n")
    put(".git/config", "[core]\n")
    put(".env", "secret a\n")
    put("writer.py", WRITER)
    job = " ".join(holt.argv(["run", "--hide", ".env", "--", "/usr/bin/python3", "writer.py"]))
    environment = {"PS1": PROMPT, "TERM": "dumb", "JOB": job, "HISTFILE": ""}
    with Terminal(holt.identity, ["bash", "--norc", "--noprofile", "-i"], cwd=holt.cwd, env=environment) as shell:
        shell.expect(PROMPT)
        shell.send("$JOB\n")
        shell.expect(r"\[1\]\+\s+Stopped")
        shell.expect(PROMPT)
        yield shell


def running() -> list[object]:
    return [p for p in leaks.descendants() if p.name == "python3"]


@pytest.mark.parametrize("how", REPLACE)
def test_the_sandbox_of_a_stopped_holt_is_killed(how: str, shell: Terminal, holt: Holt, identity: Identity) -> None:
    script, path = REPLACE[how]
    assert running()
    identity.run(["bash", "-c", script], cwd=holt.cwd).check_returncode()
    until(lambda: not running(), "the sandbox is killed", 10)
    shell.send("fg\n")
    shell.expect(f"{path} was replaced or created")


def test_a_job_that_was_stopped_twice_is_watched_still(shell: Terminal, holt: Holt, identity: Identity) -> None:
    """Each time another process takes the signals over, and gives them back."""
    shell.send("bg\n")
    shell.expect(PROMPT)
    shell.send("kill -TSTP %1\n")
    shell.expect(PROMPT)
    shell.send("jobs\n")
    while not shell.expect(rf"\[1\]\+\s+(Stopped)|{PROMPT}").group(1):
        time.sleep(0.02)
        shell.send("jobs\n")
    identity.run(["bash", "-c", "echo > unprotected; rm unprotected"], cwd=holt.cwd).check_returncode()
    assert running()
    shell.send("bg\n")
    shell.expect(PROMPT)
    identity.run(["bash", "-c", REPLACE["sed -i"][0]], cwd=holt.cwd).check_returncode()
    until(lambda: not running(), "the sandbox is killed", 10)
