# SPDX-License-Identifier: Apache-2.0
"""At a terminal, the command gets a terminal of its own, and a person notices no difference."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lib import leaks
from lib.sandbox import HANGS, Holt
from lib.terminal import Terminal

Put = Callable[..., Path]
Start = Callable[..., Terminal]

CTRL_C, CTRL_D, CTRL_Z, CTRL_BACKSLASH = "\x03", "\x04", "\x1a", "\x1c"

PROMPT = r"holt:[^\n]*\$ "


def python(script: str) -> list[str]:
    return ["run", "--", "python3", "-u", "-c", script]


def by_shell(holt: Holt, script: str, *args: str, **options: bool) -> Terminal:
    """Runs holt ARGS at a terminal by a shell of the caller's: script has it as "$0" "$@"."""
    return Terminal(holt.identity, ["bash", "-c", script, *holt.argv(args)], cwd=holt.cwd, **options)


# --- a terminal of its own ---


def test_the_command_has_a_terminal(terminal: Start) -> None:
    caller = terminal(["run", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty && echo here > /dev/tty"])

    assert caller.wait() == 0
    assert caller.output.split() == ["/dev/pts/0", "here"]


def test_the_terminal_inside_is_another_device(terminal: Start) -> None:
    caller = terminal(["run", "--", "stat", "-L", "-c", "%d:%r", "/dev/fd/0"])
    assert caller.wait() == 0
    theirs = os.fstat(caller.slave)

    assert caller.output.strip() != f"{theirs.st_dev}:{theirs.st_rdev}"
    assert re.fullmatch(r"\d+:\d+", caller.output.strip())


def test_the_terminal_has_the_caller_s_size(terminal: Start) -> None:
    caller = terminal(["run", "--", "stty", "size"], size=(33, 123))

    assert caller.wait() == 0
    assert caller.output.split() == ["33", "123"]


def test_the_terminal_follows_the_caller_s_size(terminal: Start) -> None:
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print('now', *os.get_terminal_size()))\n"
        "print('ready')\n"
        "while True: signal.pause()"
    )
    caller = terminal(python(script))
    caller.expect("ready")
    for rows, columns in ((50, 200), (10, 40)):
        caller.resize(rows, columns)
        caller.expect(f"now {columns} {rows}")


def test_the_terminal_has_the_caller_s_modes(terminal: Start) -> None:
    caller = terminal(["run", "--", "sh", "-c", "stty -a; stty -echo; stty -a"])
    assert caller.wait() == 0
    first, second = re.findall(r"(-?)echo\b", caller.output)

    assert (first, second) == ("", "-")
    assert caller.modes()[3] & termios.ECHO


def test_typing_is_read_and_echoed_once(terminal: Start) -> None:
    caller = terminal(["run", "--", "sh", "-c", "echo ready; read line; echo got $line"])
    caller.expect("ready")
    caller.send("hello\r")

    assert caller.wait() == 0
    assert caller.output.replace("\r\n", "\n") == "\nhello\ngot hello\n"


def test_keys_reach_a_program_as_they_are_typed(terminal: Start) -> None:
    """The terminal is raw, as for an editor: no line editing, no echo, no translation."""
    script = (
        "import os, tty\n"
        "tty.setraw(0); print('ready', end='')\n"
        "got = b''\n"
        "while len(got) < 6: got += os.read(0, 6)\n"
        "print(got)"
    )
    caller = terminal(python(script))
    caller.expect("ready")
    caller.send("\x1b[A\x03\x1a\r")

    assert caller.wait() == 0
    assert caller.output.strip() == r"b'\x1b[A\x03\x1a\r'"


def test_a_megabyte_of_output_arrives(terminal: Start) -> None:
    caller = terminal(["run", "--", "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo the end"])

    assert caller.wait() == 0
    assert caller.output == "x" * 1000000 + "\r\nthe end\r\n"


def test_a_megabyte_of_typing_arrives(terminal: Start) -> None:
    script = (
        "import os, tty\n"
        "tty.setraw(0); print('ready')\n"
        "left = 1000000\n"
        "while left > 0: left -= len(os.read(0, 65536))\n"
        "print('all')"
    )
    caller = terminal(python(script))
    caller.expect("ready")
    for _ in range(1000):
        caller.send("x" * 1000)
    caller.expect("all")

    assert caller.wait() == 0


# --- keys that are signals ---


@pytest.mark.parametrize("key, code", ((CTRL_C, -signal.SIGINT), (CTRL_BACKSLASH, 131)), ids=("Ctrl-C", "Ctrl-backslash"))
def test_a_key_ends_the_command(key: str, code: int, terminal: Start) -> None:
    caller = terminal(["run", "--", "sh", "-c", "ulimit -c 0; echo ready; exec sleep 1000"])
    caller.expect("ready")
    caller.send(key)

    assert caller.wait() == code


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("shell", ("bash", "dash", "busybox sh", "zsh"))
def test_ctrl_c_ends_a_loop_of_the_callers_shell(shell: str, holt: Holt) -> None:
    """The key reaches only the command's terminal, so holt signals its own process group, even if it has given up root."""
    if not shutil.which(shell.split()[0]):
        pytest.skip(f"this host has no {shell}")
    script = "for i in 1 2 3; do \"$@\"; echo after $i; done; echo end"
    run = holt.argv(["run", "--", "sh", "-c", "echo ready; exec sleep 1000"])
    with Terminal(holt.identity, [*shell.split(), "-c", script, "-", *run], cwd=holt.cwd) as caller:
        caller.expect("ready")
        caller.send(CTRL_C)
        caller.wait()
        assert not any(word in caller.output for word in ("after", "end", "ready")), caller.output


def test_ctrl_c_ends_the_whole_job_inside(terminal: Start) -> None:
    caller = terminal(["run", "--", "sh", "-c", "(echo ready; sleep 1000) | cat"])
    caller.expect("ready")
    caller.send(CTRL_C)

    assert caller.wait() == -signal.SIGINT


def test_a_command_may_go_on_after_ctrl_c(terminal: Start) -> None:
    script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done"
    caller = terminal(["run", "--", "bash", "-c", script])
    caller.expect("ready")
    caller.send(CTRL_C)
    caller.expect("caught")

    assert caller.wait() == 9


def test_ctrl_d_ends_the_input(terminal: Start) -> None:
    caller = terminal(["run", "--", "sh", "-c", "echo ready; exec cat"])
    caller.expect("ready")
    caller.send("line\r")
    caller.expect("line\r\nline\r\n")
    caller.send(CTRL_D)

    assert caller.wait() == 0


def test_the_report_has_ctrl_c_as_the_command_s_end(terminal: Start) -> None:
    caller = terminal(["run", "--json", "--", "sh", "-c", "echo ready; exec sleep 1000"])
    caller.expect("ready")
    caller.send(CTRL_C)

    assert caller.wait() == -signal.SIGINT
    document = json.loads(caller.output[caller.output.index("{"):])
    assert (document["cause"], document["exit_code"], document["signal"]) == ("signaled", 130, "SIGINT")


# --- the caller's terminal afterwards ---


@pytest.mark.parametrize("command, code", (
    ("true", 0), ("exit 3", 3), ("stty raw -echo", 0), ("kill -KILL $$", 137), ("no-such-program", 127),
))
def test_the_terminal_is_as_it_was(command: str, code: int, terminal: Start) -> None:
    caller = terminal(["run", "--", "sh", "-c", "echo ready; read line; " + command])
    caller.expect("ready")
    assert caller.raw()
    caller.send("\r")

    assert caller.wait() == code
    assert caller.modes() == caller.initial


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGHUP, signal.SIGINT), ids=str)
def test_the_terminal_is_as_it_was_after_a_signal(sig: signal.Signals, terminal: Start) -> None:
    caller = terminal(["run", "--", "sh", "-c", "echo ready; exec sleep 1000"])
    caller.expect("ready")
    caller.interrupt(sig)

    assert caller.wait() == (-sig if sig == signal.SIGINT else 128 + sig)
    assert caller.modes() == caller.initial


def test_the_terminal_is_as_it_was_after_a_timeout(terminal: Start) -> None:
    caller = terminal(["run", "--timeout", "300ms", "--", "sleep", "1000"])

    assert caller.wait() == 124
    assert caller.modes() == caller.initial


def test_messages_of_holt_are_visible_after_hidden_text(terminal: Start) -> None:
    """The command may have left a terminal that shows no text."""
    caller = terminal(["run", "--", "sh", "-c", "printf '\\033[8m'; touch HEAD"])

    assert caller.wait() == 0
    assert "\x1b[8m\x1b[0mholt: set aside a new entry" in caller.output
    caller = terminal(["run", "--", "printf", "x"])
    assert caller.wait() == 0 and caller.output == "x"


def test_a_terminal_that_goes_away_ends_the_command(holt: Holt) -> None:
    """The window is closed. The fixture nothing_left looks for what is left."""
    caller = Terminal(holt.identity, holt.argv(["run", "--", "sh", "-c", "echo ready; exec sleep 1000"]), cwd=holt.cwd)
    caller.expect("ready")
    os.close(caller.slave)
    os.close(caller.controller)

    assert caller.process.wait(60) in (128 + signal.SIGHUP, -signal.SIGHUP)


# --- another user's terminal ---

# root opens it all the same.
ANOTHERS = [pytest.mark.root_host, pytest.mark.identities("user", "nested")]

# Tests the state after "su USER", with and without setsid(1).
REOPENED = (
    pytest.param({}, id="one's own"),
    pytest.param({"own": False}, id="another's", marks=ANOTHERS),
    pytest.param({"controlling": False}, id="not controlling"),
)
# holt's fd cannot be opened anew, and /dev/tty needs a controlling terminal.
INHERITED = pytest.param({"own": False, "controlling": False}, id="another's, not controlling", marks=ANOTHERS)


@pytest.mark.parametrize("options", (*REOPENED, INHERITED))
def test_all_output_arrives(options: dict[str, bool], terminal: Start) -> None:
    caller = terminal(["run", "--", "seq", "3000"], **options)

    assert caller.wait() == 0
    assert caller.output == "".join(f"{i}\r\n" for i in range(1, 3001))
    assert caller.modes() == caller.initial


@pytest.mark.parametrize("options", (*REOPENED, INHERITED))
def test_typed_text_arrives(options: dict[str, bool], terminal: Start) -> None:
    """If a harness calls only openpty(3) and setsid(2), the terminal is not the controlling one."""
    caller = terminal(["run", "--", "sh", "-c", "echo ready; read line; echo got $line"], **options)
    caller.expect("ready")
    caller.until_raw()
    caller.send("hello\r")

    assert caller.wait() == 0
    assert "got hello" in caller.output


def until_alone(pid: int) -> None:
    """Waits until holt's child, the sandbox, is gone."""
    deadline = time.monotonic() + HANGS
    while leaks.descendants(pid):
        assert time.monotonic() < deadline, "the command runs on"
        time.sleep(0.005)


# If the terminal is not raw, the kernel may take less than it has room for.
modes = pytest.mark.parametrize("script", ('exec "$0" "$@"', 'exec "$0" "$@" < /dev/null'), ids=("raw", "not raw"))

FLOOD = ("run", "--timeout", "500ms", "--", "yes")


@modes
@pytest.mark.parametrize("options", (*REOPENED, INHERITED))
def test_a_terminal_that_nobody_reads_does_not_stop_the_time(script: str, options: dict[str, bool], holt: Holt) -> None:
    with by_shell(holt, script, *FLOOD, **options) as caller:
        caller.expect("y\r\n")
        until_alone(caller.process.pid)

        assert caller.wait() == 124


@modes
@pytest.mark.parametrize("options", (*REOPENED, INHERITED))
def test_a_stopped_terminal_does_not_stop_the_time(script: str, options: dict[str, bool], holt: Holt) -> None:
    """Ctrl-S stops the terminal, also just after it had room for a write."""
    with by_shell(holt, script, *FLOOD, **options) as caller:
        caller.expect("y\r\n")
        termios.tcflow(caller.slave, termios.TCOOFF)
        until_alone(caller.process.pid)
        termios.tcflow(caller.slave, termios.TCOON)

        assert caller.wait() == 124


# --- half a terminal ---


TELL = "for fd in 0 1 2; do test -t $fd && echo $fd is a tty; done; echo the end"


def test_a_pipe_behind_holt_stays_a_pipe(holt: Holt) -> None:
    """"holt run -- ls | cat": ls must write names one a line."""
    with by_shell(holt, '"$0" "$@" | cat', "run", "--", "sh", "-c", TELL) as caller:
        assert caller.wait() == 0
        assert caller.output.split("\r\n")[:-1] == ["0 is a tty", "2 is a tty", "the end"]


def test_a_pipe_before_holt_stays_a_pipe(holt: Holt) -> None:
    with by_shell(holt, 'seq 3 | "$0" "$@"', "run", "--", "sh", "-c", f"cat; {TELL}") as caller:
        assert caller.wait() == 0
        assert caller.output.split("\r\n")[:-1] == ["1", "2", "3", "1 is a tty", "2 is a tty", "the end"]


def test_a_file_behind_holt_gets_no_carriage_returns(holt: Holt) -> None:
    with by_shell(holt, '"$0" "$@" > out 2>&1 < /dev/null', "run", "--", "sh", "-c", TELL) as caller:
        assert caller.wait() == 0

    assert (holt.cwd / "out").read_bytes() == b"the end\n"


def test_output_to_a_pipe_is_unchanged_while_stdin_is_the_terminal(holt: Holt) -> None:
    with by_shell(holt, '"$0" "$@" | sha256sum', "run", "--", "seq", "200000") as caller:
        assert caller.wait() == 0
        got = caller.output.split()[0]
    with by_shell(holt, "seq 200000 | sha256sum") as host:
        assert host.wait() == 0
        assert host.output.split()[0] == got


def test_other_programs_can_print_to_the_terminal(holt: Holt) -> None:
    """"holt run ... | less": less writes to the terminal that holt reads from."""
    script = '"$0" "$@" | while read line; do echo "other $line"; done'
    with by_shell(holt, script, "run", "--", "sh", "-c", "echo ready; read line; echo $line") as caller:
        caller.expect("other ready\r\n")
        caller.send("typed\r")
        caller.expect("other typed\r\n")

        assert caller.wait() == 0


def test_without_a_terminal_there_is_none_inside(holt: Holt) -> None:
    result = holt.sh("tty; exec < /dev/tty")

    assert result.out == "not a tty\n"
    assert "/dev/tty" in result.err


def test_the_type_of_the_terminal_is_the_caller_s(terminal: Start) -> None:
    argv = ["run", "--", "sh", "-c", "echo $TERM; tput cols"]
    caller = terminal(argv, env={"TERM": "screen-256color"}, size=(24, 97))

    assert caller.wait() == 0
    assert caller.output.split() == ["screen-256color", "97"]


# --- holt run: a prompt ---


@pytest.fixture
def prompt(terminal: Start) -> Terminal:
    """ "holt run" without a command, after its first prompt."""
    caller = terminal(["run"], env={"TERM": "dumb"})
    caller.expect(PROMPT)
    return caller


def test_holt_run_is_a_prompt(prompt: Terminal, holt: Holt) -> None:
    prompt.send("echo $((6 * 7)); pwd; id -un\r")
    prompt.expect(rf"\n42\r\n{holt.cwd}\r\nagent\r\n")
    prompt.expect(PROMPT)
    prompt.send("exit 3\r")

    assert prompt.wait() == 3


def test_ctrl_d_leaves_the_prompt(prompt: Terminal) -> None:
    prompt.send("true\r")
    prompt.expect(PROMPT)
    prompt.send(CTRL_D)

    assert prompt.wait() == 0


def test_the_prompt_has_job_control(prompt: Terminal) -> None:
    prompt.send("sh -c 'echo run''ning; exec cat'\r")
    prompt.expect("running\r\n")
    prompt.send("one\r")
    prompt.expect("one\r\none\r\n")
    prompt.send(CTRL_Z)
    prompt.expect(r"Stopped\s+sh")
    prompt.expect(PROMPT)
    prompt.send("jobs\r")
    prompt.expect(r"\[1\]\+\s+Stopped\s+sh")
    prompt.expect(PROMPT)
    prompt.send("fg; echo en''ded\r")
    prompt.expect("exec cat'\r\n")
    prompt.send("two\n")
    prompt.expect("two\r\ntwo\r\n")
    prompt.send(CTRL_D)
    prompt.expect("ended")
    prompt.expect(PROMPT)
    prompt.send("exit 0\r")

    assert prompt.wait() == 0


def press_until(terminal: Terminal, key: str, pattern: str) -> None:
    """bash names the job before it hands the terminal over: a key that comes too soon is nobody's."""
    for _ in range(100):
        terminal.send(key)
        try:
            terminal.expect(pattern, 0.3)
            return
        except AssertionError:
            continue
    raise AssertionError(f"{key!r} has no effect: {terminal.output!r}")


def test_a_job_goes_to_the_background_and_comes_back(prompt: Terminal) -> None:
    prompt.send("sh -c 'echo run''ning; exec sleep 1000'\r")
    prompt.expect("running")
    prompt.send(CTRL_Z)
    prompt.expect(r"Stopped\s+sh")
    prompt.expect(PROMPT)
    prompt.send("bg\r")
    prompt.expect(r"\[1\]\+ sh .* &")
    prompt.expect(PROMPT)
    prompt.send("jobs\r")
    prompt.expect(r"Running\s+sh .* &")
    prompt.expect(PROMPT)
    prompt.send("fg\r")
    prompt.expect("sh .*\r\n")
    press_until(prompt, CTRL_C, PROMPT)
    prompt.send("exit 4\r")

    assert prompt.wait() == 4


def test_ctrl_c_ends_the_job_and_not_the_prompt(prompt: Terminal) -> None:
    prompt.send("(echo run''ning; sleep 1000) | cat\r")
    prompt.expect("running")
    prompt.send(CTRL_C)
    prompt.expect(PROMPT)
    prompt.send("echo $?\r")
    prompt.expect("\n130\r\n")
    prompt.expect(PROMPT)
    prompt.send("exit 0\r")

    assert prompt.wait() == 0


def test_no_warning_comes_before_the_prompt(terminal: Start) -> None:
    """bash says "no job control in this shell" where its terminal is not right."""
    caller = terminal(["run"])
    shown = caller.expect(rf"(?s)^.*?{PROMPT}").group()
    caller.send("exit\r")
    caller.wait()

    assert "bash:" not in shown
