# SPDX-License-Identifier: Apache-2.0
"""Answers of the caller's terminal to the command's output are not typed into the caller's shell."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from lib.sandbox import Holt
from lib.sessions import Session
from lib.terminal import Answering, Terminal

pytestmark = pytest.mark.identities("user", "root", "nested")

ASKED = {
    "title": r"\033[21t",
    "cursor": r"\033[6n",
    "colour": r"\033]10;?\007",
    "type": r"\033Z",
    "answerback": r"\005",
    # holt's own questions: the command hopes that their answers pass for those to holt.
    "title behind many others": r"\033[5n\033[c" * 40 + r"\033[5n" * 40 + r"\033[c" * 40 + r"\033[21t",
}

# The ways in which the caller's shell starts holt, which is "$@".
STARTS = {
    "terminal": '"$@"',
    "no stdin": '"$@" </dev/null',
    "stdin from a pipe": 'echo | "$@"',
    "stderr alone": '"$@" </dev/null 2>&1 >/dev/null',
    "stdin and stderr": '"$@" 2>&1 >/dev/null',
    "output limited": '"$@" </dev/null',
}


def holt_of(session: Session) -> Holt:
    return session.sessions.holt


def environment(session: Session) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(session.sessions.data)}


def start(holt: Holt, script: str, argv: list[object], **options: object) -> Answering:
    """The caller's shell: it runs holt, and goes on afterwards."""
    shell = ["/bin/sh", "-c", script + "\nprintf ended\n", "sh", *map(str, argv)]
    return Answering(holt.identity, shell, cwd=holt.cwd, **options)


def assert_nothing_typed(caller: Answering) -> None:
    with caller:
        caller.wait()
        assert caller.answered > 0, f"nothing was asked: {caller.output!r}"
        assert caller.modes() == caller.initial
        assert caller.typed() == b"", caller.output


def printing(text: str) -> list[str]:
    """A command that prints the text to stdout and stderr."""
    return ["sh", "-c", f"printf %b {shlex.quote(text)} | tee /dev/stderr"]


@pytest.mark.parametrize("asked", ASKED)
def test_the_attack_works_without_holt(asked: str, holt: Holt) -> None:
    with start(holt, '"$@"', printing(ASKED[asked])) as caller:
        caller.wait()
        assert caller.typed() != b""


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("how", STARTS)
def test_an_answer_is_not_typed_into_the_shell(how: str, asked: str, holt: Holt) -> None:
    flags = ["--output", "1M"] if how == "output limited" else []

    assert_nothing_typed(start(holt, STARTS[how], holt.argv(["run", *flags, "--", *printing(ASKED[asked])])))


@pytest.mark.parametrize("how", ("terminal", "no stdin"))
def test_nothing_is_typed_after_a_command_of_a_session(how: str, session: Session) -> None:
    argv = holt_of(session).argv(["exec", session.name, "--", *printing(ASKED["title"])])

    assert_nothing_typed(start(holt_of(session), STARTS[how], argv, env=environment(session)))


@pytest.mark.parametrize("how", ("terminal", "no stdin"))
def test_nothing_is_typed_without_a_controlling_terminal(how: str, holt: Holt) -> None:
    """For example under setsid(1). If root runs holt, only the terminal that it opened at the start is available."""
    argv = holt.argv(["run", "--", *printing(ASKED["title"])])

    assert_nothing_typed(start(holt, STARTS[how], argv, controlling=False))


def test_nothing_is_typed_after_a_kill(holt: Holt) -> None:
    argv = holt.argv(["run", "--timeout", "300ms", "--", "sh", "-c", r"printf '\033[21t'; exec sleep 1000"])

    assert_nothing_typed(start(holt, '"$@" </dev/null', argv))


def test_the_shell_s_output_does_not_complete_a_query(holt: Holt) -> None:
    """The command leaves a sequence open, which the next byte from the shell would complete."""
    with start(holt, '"$@"; printf t', holt.argv(["run", "--", "printf", r"\033[21"])) as caller:
        caller.wait()
        assert caller.typed() == b"", caller.output


def test_nothing_is_typed_when_the_command_stops(holt: Holt) -> None:
    """Ctrl-Z from inside: the shell has the terminal while holt is stopped."""
    script = "set -m\n" + '"$@"' + "\nprintf stopped; read -r line; echo \"line $line\"; kill -9 %1"
    argv = holt.argv(["run", "--", "sh", "-c", r"printf '\033[21t'; kill -TSTP $$; sleep 1000"])
    with Answering(holt.identity, ["/bin/bash", "-c", script, "sh", *argv], cwd=holt.cwd) as caller:
        caller.expect("stopped")
        caller.send("typed\n")
        assert caller.expect(r"line ([^\r]*)\r").group(1) == "typed"
        caller.wait()


def test_a_terminal_that_answers_nothing_is_not_waited_for_long(terminal: Callable[..., Terminal]) -> None:
    caller = terminal(["run", "--", "printf", r"\033[21t"])

    assert caller.wait(timeout=10) == 0
    assert caller.output.count("\033[5n") + caller.output.count("\033[c") == 2


def test_a_terminal_that_answers_is_asked_often(holt: Holt) -> None:
    """The command cannot guess the order of 32 questions."""
    with start(holt, '"$@"', holt.argv(["run", "--", *printing(ASKED["title"])])) as caller:
        caller.wait()
        assert caller.output.count("\033[5n") + caller.output.count("\033[c") == 34


@pytest.mark.parametrize(
    ("text", "locale", "asked"),
    (
        (r"\033[1;31mred\033[0m\033[K", "C", False),
        (r"\303\251\342\200\223", "C.UTF-8", False),
        (r"\303\251\342\200\223", "C", True),
        (r"\302\2336n", "C.UTF-8", True),
    ),
    ids=("colours", "UTF-8", "perhaps C1 controls", "C1 in UTF-8"),
)
def test_the_terminal_is_asked_only_if_needed(text: str, locale: str, asked: bool, terminal: Callable[..., Terminal]) -> None:
    """Colours and text get no answer, so holt adds nothing to the command's output."""
    caller = terminal(["run", "--", "printf", text], env={"LC_ALL": locale})
    caller.wait()

    assert ("\033[5n" in caller.output) == asked


# --- holt's own output contains no questions ---

QUESTIONS = r"\033[21t\033[6n\005\233c\302\2336n\033[31mred\033[0m\033]52;c;aGk=\007\033[2"


def shown(session: Session, script: str, argv: list[object]) -> str:
    with start(holt_of(session), script, holt_of(session).argv(argv), env=environment(session)) as caller:
        caller.wait()
        assert caller.answered == 0, caller.output
        assert caller.typed() == b""
        return caller.output


def assert_disarmed(output: str) -> None:
    assert r"\x1b[21t" in output and r"\x05" in output and "\033[31mred\033[0m" in output, output
    assert "\033]" not in output and "\x9b" not in output and "\033[2ended" not in output


def test_a_log_has_no_questions(session: Session) -> None:
    session.exec("sh", "-c", f"printf '{QUESTIONS}'; printf '{QUESTIONS}' >&2", flags=["--keep", "head"]).ok()

    assert_disarmed(shown(session, '"$@"', ["logs", session.name, "p1"]))


def test_output_of_holt_python_asks_nothing(session: Session) -> None:
    code = f"import os, sys; os.write(1, b'{QUESTIONS}'); os.write(2, b'{QUESTIONS}'); '\\033[21t'"

    assert_disarmed(shown(session, '"$@"', ["python", session.name, "-c", code]))
    assert r"\x1b[21t" in shown(session, '"$@"', ["python", session.name, "-c", r"import sys; sys.exit('\033[21t')"])


def test_printed_files_and_values_ask_nothing(session: Session) -> None:
    session.exec("sh", "-c", f"printf '{QUESTIONS}' > asks").ok()
    session("kv", "set", "key", "-", stdin=QUESTIONS.encode().decode("unicode_escape").encode("latin-1"))

    assert_disarmed(shown(session, '"$@"', ["files", session.name, "cat", "asks"]))
    assert_disarmed(shown(session, '"$@"', ["kv", session.name, "get", "key"]))


def test_a_sequence_over_two_streams_is_none(session: Session) -> None:
    session.exec("sh", "-c", r"printf '\033[2'; printf '1t' >&2", flags=["--keep", "head"])

    shown(session, '"$@"', ["logs", session.name, "p1"])
