# SPDX-License-Identifier: Apache-2.0
"""A session on a terminal: holt sh, and holt exec where its caller has one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sessions import Session, Sessions, until
from lib.terminal import Terminal


PROMPT = r"\$ "


@pytest.fixture
def sh(sessions: Sessions, session: Session) -> Iterator[Callable[..., Terminal]]:
    """Starts "holt sh w", or "holt ARGS", on a terminal."""
    opened: list[Terminal] = []

    def start(*args: str, **options: object) -> Terminal:
        argv = sessions.holt.argv([*(args or ("sh", "w"))])
        options.setdefault("cwd", sessions.holt.cwd)
        env = {**sessions.env, "TERM": "dumb"}
        opened.append(Terminal(sessions.holt.identity, argv, env=env, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.__exit__()


def test_sh_is_a_shell_on_a_terminal(sh: Callable[..., Terminal]) -> None:
    shell = sh(size=(33, 77))
    shell.expect(PROMPT)
    shell.send("stty size; tty\n")
    shell.expect(r"33 77\r\n/dev/pts/\d+\r\n")
    shell.expect(PROMPT)
    shell.send("exit 9\n")
    assert shell.wait() == 9
    assert shell.modes() == shell.initial


def test_a_resize_goes_in(sh: Callable[..., Terminal]) -> None:
    shell = sh()
    shell.expect(PROMPT)
    shell.until_raw()
    shell.resize(42, 142)
    shell.interrupt(signal.SIGWINCH)

    def size() -> str:
        shell.send("stty size\n")
        return shell.expect(r"\n(\d+ \d+)\r\n").group(1)

    until(lambda: size() == "42 142", "it has gone in")
    shell.expect(PROMPT)
    shell.send("exit\n")
    assert shell.wait() == 0


def test_ctrl_c_ends_a_job_and_not_the_shell(sh: Callable[..., Terminal]) -> None:
    shell = sh()
    shell.expect(PROMPT)
    shell.send("sh -c \"echo run''ning; exec sleep 1000\"\n")
    shell.expect("running")
    shell.send("\x03")
    shell.expect(PROMPT)
    shell.send("echo $?-al''ive\n")
    shell.expect("130-alive")
    shell.expect(PROMPT)
    shell.send("\x04")
    shell.wait()


def test_ctrl_z_and_fg(sh: Callable[..., Terminal]) -> None:
    shell = sh()
    shell.expect(PROMPT)
    shell.send("sh -c \"echo run''ning; exec cat\"\n")
    shell.expect("running")
    shell.send("\x1a")
    shell.expect(r"\[1\]\+\s+Stopped")
    shell.expect(PROMPT)
    shell.send("fg\n")
    shell.expect("exec cat.*\r\n")
    shell.send("back\n")
    shell.expect("back\r\nback\r\n")
    shell.send("\x04")
    shell.expect(PROMPT)
    shell.send("exit 3\n")
    assert shell.wait() == 3


def test_exec_has_a_terminal_where_its_caller_has(sh: Callable[..., Terminal]) -> None:
    shell = sh("exec", "w", "--", "bash", "-c", "test -t 0 && test -t 1 && echo a terminal; exit 4")
    assert shell.wait() == 4
    assert "a terminal" in shell.output


def test_a_terminal_that_goes_ends_its_command(sh: Callable[..., Terminal], session: Session) -> None:
    shell = sh("exec", "w", "--", "sh", "-c", "echo ready; exec sleep 1000")
    shell.expect("ready")
    shell.process.kill()
    shell.process.wait()
    until(lambda: not session.processes("sleep"), "the command has ended")


def test_only_output_is_a_pipe(sh: Callable[..., Terminal], session: Session, place: Path, identity: Identity) -> None:
    """Keys come from the terminal; what is printed goes to a file."""
    target = place / "target"
    target.touch()
    identity.own(target)
    command = f"exec {' '.join(session.sessions.holt.argv(['exec', 'w', '--', 'head', '-n1']))} >{target}"
    env = {**session.sessions.env, "TERM": "dumb"}
    argv = ["sh", "-c", command]
    with Terminal(session.sessions.holt.identity, argv, cwd=session.sessions.holt.cwd, env=env) as terminal:
        terminal.send("typed\n")
        assert terminal.wait(timeout=3) == 0
    assert target.read_text() == "typed\n"


def test_stop_hangs_up_on_a_shell_that_waits_for_keys(sh: Callable[..., Terminal], session: Session) -> None:
    """An interactive shell ignores TERM. Nobody waits until it is killed."""
    shell = sh()
    shell.expect(PROMPT)
    shell.until_raw()
    session.stop()
    assert shell.wait() == 128 + signal.SIGHUP, shell.output
    assert shell.modes() == shell.initial


def test_background_processes_on_a_terminal_outlive_their_command(sh: Callable[..., Terminal], session: Session) -> None:
    """Even a process that prints without end lives on, and the client does not wait for it."""
    shell = sh("exec", "w", "--", "bash", "-c", "sleep 1000 & yes & yes & sleep 0.2; exit 5")
    assert shell.wait() == 5
    until(lambda: session.processes("sleep"), "the process in the background")
    assert next(iter(session.ps().values()))["state"] == "background"


def test_the_terminal_is_the_caller_s(session: Session, place: Path) -> None:
    """Programs read TERM. --env overrides it."""
    holt = session.sessions.holt
    env = {**session.sessions.env, "TERM": "screen-256color"}
    for flags, expected in (((), "screen-256color"), (("--env", "TERM=vt100"), "vt100")):
        argv = holt.argv(["exec", *flags, "w", "--", "sh", "-c", "echo [$TERM]"])
        with Terminal(holt.identity, argv, cwd=holt.cwd, env=env) as terminal:
            terminal.expect(rf"\[{expected}\]")
            assert terminal.wait(timeout=10) == 0
    with Terminal(holt.identity, holt.argv(["sh", "w"]), cwd=holt.cwd, env={**env, "TERM": "dumb"}) as terminal:
        terminal.expect(r"holt:/workspace\$ ")
        terminal.send("exit\n")
        terminal.wait(timeout=10)
    assert session.exec("sh", "-c", "echo $TERM", env={"TERM": "xterm"}).ok().out == "dumb\n"
