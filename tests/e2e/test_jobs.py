# SPDX-License-Identifier: Apache-2.0
"""holt is a job of the caller's shell like any other: it stops, goes on, and waits in the background. So is a command in
a session."""

from __future__ import annotations

import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib import leaks
from lib.sandbox import Holt
from lib.sessions import Session, Sessions, until
from lib.terminal import Terminal

Put = Callable[..., Path]

PROMPT = "outer> "

CTRL_C, CTRL_D, CTRL_Z = "\x03", "\x04", "\x1a"


@pytest.fixture(params=("run", "exec"))
def shell(request: pytest.FixtureRequest, holt: Holt, sessions: Sessions) -> Iterator[Terminal]:
    """The caller's interactive bash, where "$JOB" runs a command: in a sandbox of its own, or in a session."""
    job = ["run", "--"]
    if request.param == "exec":
        sessions.create("w", "--workspace", holt.cwd)
        job = ["exec", "w", "--"]
    environment = {**sessions.env, "PS1": "outer> ", "TERM": "dumb", "JOB": " ".join(holt.argv(job)), "HISTFILE": ""}
    with Terminal(holt.identity, ["bash", "--norc", "--noprofile", "-i"], cwd=holt.cwd, env=environment) as shell:
        shell.expect(PROMPT)
        yield shell


def settings(shell: Terminal) -> str:
    """The settings of the caller's terminal while a command of the shell runs."""
    shell.send("stty -g\n")
    shown = shell.expect(r"\n([0-9a-f:]{20,})\r\n").group(1)
    shell.expect(PROMPT)
    return shown


def stopped(shell: Terminal) -> None:
    shell.expect(r"\[1\]\+\s+Stopped")
    shell.expect(PROMPT)


def test_ctrl_z_stops_holt_and_fg_goes_on(shell: Terminal) -> None:
    before = settings(shell)
    shell.send("$JOB sh -c 'echo run''ning; exec cat'\n")
    shell.expect("running")
    shell.send("one\n")
    shell.expect("one\r\none\r\n")
    shell.send(CTRL_Z)
    stopped(shell)
    assert settings(shell) == before
    shell.send("jobs\n")
    shell.expect(r"\[1\]\+\s+Stopped.*cat")
    shell.expect(PROMPT)
    shell.send("fg\n")
    shell.until_raw()
    shell.send("two\n")
    shell.expect("two\r\ntwo\r\n")
    shell.send(CTRL_D)
    shell.expect(PROMPT)

    assert settings(shell) == before


@pytest.mark.parametrize("shell", ("exec",), indirect=True)
def test_ps_says_that_it_is_stopped(shell: Terminal, sessions: Sessions) -> None:
    session = Session(sessions, "w")
    shell.send("$JOB sh -c 'echo run''ning; exec cat'\n")
    shell.expect("running")
    assert session.ps()["p1"]["state"] == "running"
    shell.send(CTRL_Z)
    stopped(shell)
    assert session.ps()["p1"]["state"] == "stopped"
    shell.send("fg\n")
    shell.until_raw()
    until(lambda: session.ps()["p1"]["state"] == "running", "it has gone on")
    shell.send(CTRL_D)
    shell.expect(PROMPT)
    until(lambda: session.ps()["p1"]["state"] == "ended", "nothing of it is left")


def test_keys_are_the_command_s_again_after_fg(shell: Terminal) -> None:
    """The terminal is raw again, so Ctrl-C goes to the command."""
    shell.send("$JOB bash -c 'trap \"echo caught\" INT; echo run''ning; while :; do sleep 0.1; done'\n")
    shell.expect("running")
    for _ in range(2):
        shell.send(CTRL_Z)
        stopped(shell)
        shell.send("fg\n")
        shell.until_raw()
        shell.send(CTRL_C)
        shell.expect("caught\r\n")  # "\r\n" distinguishes the output from the command line that fg prints
    shell.send(CTRL_Z)
    stopped(shell)
    shell.send("kill %1; fg\n")
    shell.expect(PROMPT)


def test_stopping_holt_stops_all_its_processes(shell: Terminal) -> None:
    """Processes in other groups and sessions are stopped, too."""
    shell.send("$JOB sh -c 'setsid sleep 1000 & exec python3 -c \"import time; print(10 * 10, flush=True); time.sleep(1000)\"'\n")
    shell.expect(r"\n100\r\n")
    shell.send(CTRL_Z)
    stopped(shell)
    def states() -> dict[str, str]:
        return {p.name: p.state for p in leaks.descendants() if p.name in ("python3", "sleep")}
    until(lambda: states() == {"python3": "T", "sleep": "T"}, "both are stopped")
    shell.send("bg\n")
    shell.expect(PROMPT)
    shell.send("jobs\n")
    shell.expect(r"Running.*python3")
    shell.expect(PROMPT)
    shell.send("kill %1; wait %1; echo ended $?\n")
    shell.expect(r"\nended 143\r\n")


def test_a_resize_while_stopped_is_seen_after_fg(shell: Terminal) -> None:
    shell.send("$JOB bash -c 'echo run''ning; while read; do stty size; done'\n")
    shell.expect("running")
    shell.send(CTRL_Z)
    stopped(shell)
    shell.resize(42, 142)
    shell.send("fg\n")
    shell.expect("done'\r\n")
    shell.send("\n")
    shell.expect("42 142")
    shell.send(CTRL_D)
    shell.expect(PROMPT)


def until_stopped(shell: Terminal) -> None:
    """Waits until the shell knows of the stop. Otherwise fg would send no SIGCONT."""
    state = ""
    while state != "Stopped":
        shell.send("jobs\n")
        state = shell.expect(r"\[1\]\+\s+(Running|Stopped)").group(1)
        shell.expect(PROMPT)


def test_a_reader_in_the_background_waits_for_fg(shell: Terminal) -> None:
    """The shell gets the keys until fg."""
    before = settings(shell)
    shell.send("$JOB sh -c 'echo run''ning; exec cat' &\n")
    shell.expect("running")
    shell.send("echo the ''shell\n")
    shell.expect("the shell\r\n")
    shell.expect(PROMPT)
    assert settings(shell) == before
    until_stopped(shell)
    shell.send("fg\n")
    shell.expect(r"cat'\r\n")
    shell.send("typed\n")
    shell.expect("typed\r\ntyped\r\n")
    shell.send(CTRL_D)
    shell.expect(PROMPT)

    assert settings(shell) == before


def test_fg_while_holt_is_about_to_stop_for_a_reader(shell: Terminal, put: Put) -> None:
    """The remaining output delays the stop for a second, because the terminal takes nothing."""
    def states(name: str) -> set[str]:
        return {p.state for p in leaks.descendants() if p.name == name}
    shell.send("$JOB sh -c 'setsid sleep 1000 & until [ -e go ]; do sleep 0.01; done; echo said; exec cat' &\n")
    shell.expect(PROMPT)
    shell.send("until [ -e now ]; do :; done; fg > /dev/null\n")
    until(lambda: "sleep" in {p.name for p in leaks.descendants()}, "it runs")
    shell.expect("null\r\n")
    termios.tcflow(shell.slave, termios.TCOOFF)
    put("go")
    until(lambda: states("cat") == states("sleep") == {"T"}, "all inside is stopped")
    put("now")
    shell.until_a_job_has_it()
    termios.tcflow(shell.slave, termios.TCOON)
    shell.expect("said\r?\n")  # without \r if holt did stop, because the second was over
    shell.until_raw()
    shell.send("typed\n")
    shell.expect("typed\r\ntyped\r\n")
    shell.send(CTRL_D)
    shell.expect(PROMPT)


def test_a_writer_in_the_background_writes_and_ends(shell: Terminal) -> None:
    before = settings(shell)
    shell.send("$JOB sh -c 'echo from behind; exit 3' & wait $!; echo en''ded $?\n")
    shell.expect("from behind\r\n")
    shell.expect("ended 3\r\n")
    shell.expect(PROMPT)

    assert settings(shell) == before


def test_two_background_jobs_at_once(shell: Terminal) -> None:
    shell.send("for i in 1 2; do $JOB sh -c \"sleep 0.2; exit $i\" & done; wait -n; wait -n; echo en''ded\n")
    shell.expect("ended")
    shell.expect(PROMPT)


def test_typing_ahead_is_the_shell_s(shell: Terminal) -> None:
    """If the command has no terminal, holt takes no keys."""
    shell.send("$JOB sleep 0.2 < /dev/null > /dev/null 2>&1\necho typed ''ahead\n")
    shell.expect("typed ahead")


def test_holt_in_a_pipeline_is_one_job(shell: Terminal) -> None:
    shell.send("$JOB sh -c 'echo run''ning; exec sleep 1000' | cat\n")
    shell.expect("running")
    shell.send(CTRL_Z)
    stopped(shell)
    shell.send("fg\n")
    shell.until_a_job_has_it()
    shell.send(CTRL_C)
    shell.expect(PROMPT)
    shell.send("echo ${PIPESTATUS[0]}\n")
    shell.expect(r"\n130\r\n")


def test_ctrl_c_ends_the_shell_s_loop(shell: Terminal) -> None:
    """bash ends a loop only if SIGINT killed the program in it."""
    shell.send("for i in 1 2 3; do $JOB sh -c \"echo run''ning $i; exec sleep 1000\"; done; echo af''ter\n")
    shell.expect("running 1")
    shell.send(CTRL_C)
    shell.expect(PROMPT)
    shell.send("echo code $?\n")
    shell.expect(r"code 130\r\n")
    assert "running" not in shell.output and "after" not in shell.output


@pytest.mark.identities("user", "nested")
def test_ctrl_c_ends_the_loop_of_a_script(shell: Terminal) -> None:
    """The script and holt are one job, so Ctrl-C means both. Run by root, holt has given up root and cannot signal it."""
    loop = "for i in 1 2 3; do $JOB sh -c \"echo run''ning \\$i; exec sleep 1000\"; done; echo af''ter"
    shell.send(f"bash -c '{loop}' 2>&1\n".replace("''", "'\"\"'"))
    shell.expect("running")
    shell.send(CTRL_C)
    shell.expect(PROMPT)
    shell.send("echo code $?\n")
    shell.expect(r"code 130\r\n")
    assert "running" not in shell.output and "after" not in shell.output


@pytest.mark.parametrize("typed", (CTRL_C, "\n"), ids=("caught", "its own"))
def test_a_loop_goes_on_unless_ctrl_c_ended_the_command(typed: str, shell: Terminal) -> None:
    """The command catches Ctrl-C and exits with 0, or it kills itself with SIGINT although nobody pressed Ctrl-C."""
    script = r"trap \"exit 0\" INT; echo run''ning; read line; trap - INT; kill -INT \$\$"
    shell.send(f"for i in 1 2; do $JOB bash -c \"{script}\"; echo code $?-$i; done\n")
    for number in (1, 2):
        shell.expect("running")
        shell.send(typed)
        shell.expect(rf"code {0 if typed == CTRL_C else 130}-{number}\r\n")


EDITOR = """
import os, signal, termios, tty
saved = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'editing')
while (key := os.read(0, 1)) != b'q':
    if key == b'\\x1a':
        os.kill(0, signal.SIGTSTP)
    os.write(1, b'[%d]' % key[0])
termios.tcsetattr(0, termios.TCSADRAIN, saved)
"""


def test_an_editor_stops_itself_with_its_terminal_raw(shell: Terminal, put: Put) -> None:
    """The caller's terminal is sane meanwhile. Afterwards, the editor finds its terminal unchanged."""
    put("editor.py", EDITOR)
    before = settings(shell)
    shell.send("$JOB python3 editor.py\n")
    shell.expect("editing")
    shell.send("a")
    shell.expect(r"\[97\]")
    shell.send(CTRL_Z)
    stopped(shell)
    assert settings(shell) == before
    shell.send("fg\n")
    shell.expect(r"\[26\]")
    shell.send("b")
    shell.expect(r"\[98\]")
    shell.send("q")
    shell.expect(PROMPT)

    assert settings(shell) == before


def test_a_stopped_holt_can_be_ended(shell: Terminal) -> None:
    shell.send("$JOB sh -c 'echo run''ning; exec sleep 1000'\n")
    shell.expect("running")
    shell.send(CTRL_Z)
    stopped(shell)
    shell.send("kill %1; fg; echo en''ded $?\n")
    shell.expect(r"ended 143")
    shell.expect(PROMPT)


def test_stop_and_go_by_hand(holt: Holt) -> None:
    """Without a terminal, a stopped command can be continued, too."""
    with holt.start(["run", "--", "sh", "-c", "echo ready; read line; echo $line"], stdin=subprocess.PIPE) as running:
        assert running.readline() == "ready"
        running.kill(signal.SIGSTOP)
        running.kill(signal.SIGCONT)
        running.send("through\n")

        assert running.readline() == "through"
        running.wait(b"").ok()
