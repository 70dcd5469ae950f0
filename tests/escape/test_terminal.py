# SPDX-License-Identifier: Apache-2.0
"""No process inside types into the caller's terminal, which the caller's shell reads after holt has ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.hostile import Attack, Hostile, Outcome
from lib.sandbox import Holt
from lib.terminal import Terminal

TYPES = (
    "tiocsti", "tiocsti-high-bit", "tiocsti-reopened", "tioclinux", "tioclinux-high-bit",
)


def legacy_tiocsti() -> bool:
    """Whether an ordinary user may push input into their own terminal (a setting since Linux 6.2)."""
    setting = Path("/proc/sys/dev/tty/legacy_tiocsti")
    return not setting.exists() or setting.read_text().strip() != "0"


def control(hostile: Hostile, name: str) -> tuple[Outcome, int]:
    """The attack on a terminal of its own, and how many bytes it pushed."""
    who = hostile.caller if legacy_tiocsti() or not hostile.root else hostile.root
    with Terminal(who, [str(hostile.path("terminal")), name], cwd="/") as terminal:
        terminal.wait()
        return Outcome.of(Attack("terminal", name), terminal.output, "the control"), terminal.pushed()


@pytest.mark.parametrize("name", TYPES)
def test_the_attacks_work_on_a_terminal_of_one_s_own(name: str, hostile: Hostile) -> None:
    outcome, pushed = control(hostile, name)

    if not legacy_tiocsti() and not hostile.root:
        hostile.silent[f"terminal-{name}"] = "an ordinary user can't push here: dev.tty.legacy_tiocsti is 0"
        return
    assert outcome.verdict == "BROKEN"
    assert pushed == (1 if "tiocsti" in name else 0)


def shown_and_pushed(name: str, caller: Terminal) -> tuple[Outcome, int]:
    """The outcome of the attack inside after holt has ended, and how many bytes it has pushed into the caller's
    terminal."""
    with caller:
        caller.wait()
        return Outcome.of(Attack("terminal", name), caller.output, caller.output), caller.pushed()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("script", ('exec "$@"', '"$@" 2>&1 | cat'), ids=("terminal", "terminal as stdin alone"))
def test_nothing_is_typed_into_the_caller_s_terminal(
    script: str, name: str, holt: Holt, hostile: Hostile, workspace: Path
) -> None:
    """With "holt run ... | less", no output leads to it."""
    argv = holt.argv(["run", "--ro", hostile.directory, "--", hostile.path("terminal"), name])
    outcome, pushed = shown_and_pushed(
        name, Terminal(holt.identity, ["/bin/sh", "-c", script, "sh", *argv], cwd=workspace)
    )

    assert outcome.verdict == "HOLDS", outcome
    assert pushed == 0


@pytest.mark.parametrize("name", TYPES)
def test_no_terminal_of_the_caller_is_reached_without_seccomp(
    name: str, holt: Holt, hostile: Hostile, workspace: Path
) -> None:
    """The host has no seccomp, and the caller runs without it. The terminal inside is still not the caller's."""
    argv = holt.argv(
        ["run", "--allow-degraded", "seccomp", "--ro", hostile.directory, "--", hostile.path("terminal"), name],
        prefix=hostile.refusing("seccomp"),
    )
    outcome, pushed = shown_and_pushed(name, Terminal(holt.identity, argv, cwd=workspace))

    assert outcome.verdict != "UNTRIED", outcome
    assert pushed == 0


def test_a_pushed_command_does_not_run_after_holt(holt: Holt, workspace: Path) -> None:
    """The whole attack from the caller's view: an interactive shell that has run holt once."""
    script = (
        "import fcntl, termios\n"
        "for c in 'touch pwned\\n':\n"
        "    for request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 31):\n"
        "        try: fcntl.ioctl(0, request, c.encode())\n"
        "        except (OSError, OverflowError): pass\n"
    )
    (workspace / "push.py").write_text(script)
    shell = terminal_shell(holt)
    with shell:
        shell.send(f"{' '.join(holt.argv(['run', '--', 'python3', 'push.py']))}; echo en''ded\n")
        shell.expect("ended")
        shell.send("exit\n")
        shell.wait()

    assert not (workspace / "pwned").exists()


def terminal_shell(holt: Holt) -> Terminal:
    return Terminal(holt.identity, ["/bin/sh", "-i"], cwd=holt.cwd, env={"PS1": "$ "})


def test_the_command_s_terminal_is_not_the_caller_s(terminal: Callable[..., Terminal]) -> None:
    caller = terminal(["run", "--", "stat", "-L", "-c", "device %d:%i:%t:%T", "/dev/fd/0"])
    caller.wait()
    st = os.fstat(caller.slave)

    assert f"device {st.st_dev}:" not in caller.output
    assert "device " in caller.output


def test_the_terminal_of_the_caller_has_no_name_inside(terminal: Callable[..., Terminal]) -> None:
    caller = terminal(["run", "--", "sh", "-c", "ls /dev/pts; tty"])
    caller.wait()

    assert caller.output.split() == ["0", "ptmx", "/dev/pts/0"]
