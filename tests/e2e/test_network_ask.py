# SPDX-License-Identifier: Apache-2.0
"""holt run --ask: a person at the terminal is asked about each host that no rule names."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sandbox import Holt
from lib.terminal import Terminal
from lib.tools import needs

pytestmark = needs("curl", "python3")

CURL = "curl -sS -m 50 -o /dev/null -w '%{http_code}\\n'"
ONCE = r"holt: allow {}\? \[y\]es once, \[a\]lways in this run, \[n\]o: "


def question(host: str) -> str:
    return ONCE.format(re.escape(host))


def answer(terminal: Terminal, word: str) -> None:
    """Types the word until it is echoed: keys that come at once after the question do not count."""
    for _ in range(200):
        terminal.send(word + "\r")
        try:
            return void(terminal.expect(re.escape(word) + "\r+\n", timeout=0.2))
        except AssertionError:
            pass
    raise AssertionError(f"no answer is taken, but {terminal.output!r}")


def void(_: object) -> None:
    pass


@contextmanager
def asked(holt: Holt, script: str, *flags: str) -> Iterator[Terminal]:
    with Terminal(holt.identity, holt.argv(["run", "--ask", *flags, "--", "bash", "-c", script]), cwd=holt.cwd) as terminal:
        yield terminal


def test_yes_allows_one_connection(holt: Holt) -> None:
    with asked(holt, f"{CURL} http://other.example.org/; {CURL} http://other.example.org/") as terminal:
        terminal.expect(question("other.example.org:80"))
        answer(terminal, "y")
        terminal.expect("200")
        terminal.expect(question("other.example.org:80"))
        answer(terminal, "n")
        assert terminal.wait() != 0
    assert "the answer was no" in terminal.output and "--net other.example.org:80 allows it" in terminal.output


def test_an_allowed_name_that_the_host_cannot_resolve_was_allowed_by_the_answer(holt: Holt) -> None:
    with asked(holt, f"{CURL} http://missing.example.org/") as terminal:
        terminal.expect(question("missing.example.org:80"))
        answer(terminal, "y")
        assert terminal.wait() != 0
    assert "the answer allowed it, but the host found no address for it" in terminal.output and "a rule allows it" not in terminal.output


def test_always_allows_the_rest_of_the_run(holt: Holt) -> None:
    with asked(holt, f"for i in 1 2 3; do {CURL} http://other.example.org/; done") as terminal:
        terminal.expect(question("other.example.org:80"))
        answer(terminal, "always")
        assert terminal.wait() == 0
    assert terminal.output.count("200") == 3 and "allow other" not in terminal.output


def test_no_is_remembered_for_the_name_and_port(holt: Holt) -> None:
    with asked(holt, f"for i in 1 2 3; do {CURL} http://other.example.org/; done; {CURL} http://other.example.org:8080/; false") as terminal:
        terminal.expect(question("other.example.org:80"))
        answer(terminal, "no")
        terminal.expect(question("other.example.org:8080"))
        answer(terminal, "y")
        assert terminal.wait() == 1
    assert terminal.output.count("holt: allow") == 0 and "200" in terminal.output
    assert "refused other.example.org:80 (3x" in terminal.output


def test_rules_come_before_questions(holt: Holt) -> None:
    with asked(holt, f"{CURL} http://web.example.org/; {CURL} http://web.example.org:8080/", "--net", "web.example.org:80") as terminal:
        terminal.expect("200")
        terminal.expect(question("web.example.org:8080"))
        answer(terminal, "y")
        assert terminal.wait() == 0
    assert "200" in terminal.output


def test_nothing_is_looked_up_before_the_answer(holt: Holt, lab: Lab) -> None:
    with asked(holt, f"{CURL} http://other.example.org/") as terminal:
        terminal.expect(question("other.example.org:80"))
        assert not lab.log()
        answer(terminal, "n")
        terminal.wait()
    assert not lab.log()


def test_the_question_ends_at_its_deadline(holt: Holt) -> None:
    with asked(holt, f"{CURL} http://other.example.org/", "--ask-timeout", "1s") as terminal:
        terminal.expect(question("other.example.org:80"))
        assert terminal.wait() != 0 and not terminal.raw()
    assert "nobody answered in time" in terminal.output and "no answer came in time" in terminal.output


def test_the_command_keeps_its_streams(holt: Holt) -> None:
    """The answer comes from the terminal, although stdin is a file and stdout a pipe. The answer must be the name of
    the host, because sed could draw on the terminal."""
    argv = holt.argv(["run", "--ask", "--", "bash", "-c", f"cat; {CURL} http://other.example.org/"])
    with Terminal(holt.identity, ["bash", "-c", '"$0" "$@" < /etc/hostname | sed s/^/out:/', *argv], cwd=holt.cwd) as terminal:
        terminal.expect(r"type other\.example\.org:80 to allow it once")
        answer(terminal, "other.example.org:80")
        assert terminal.wait() == 0, terminal.output
    assert "out:200" in terminal.output


@pytest.mark.parametrize("keys", ("yarn\r", "\x1b[A\ry\x1b\r", "\r"))
def test_another_line_is_no_answer(keys: str, holt: Holt, lab: Lab) -> None:
    with asked(holt, f"{CURL} http://other.example.org/") as terminal:
        terminal.expect(question("other.example.org:80"))
        for _ in range(100):
            terminal.send(keys)
            try:
                terminal.expect("type y, a or n", timeout=0.2)
                break
            except AssertionError:
                continue
        answer(terminal, "n")
        assert terminal.wait() != 0
    assert not lab.log("tcp")


def test_without_a_terminal_nobody_is_asked(holt: Holt, lab: Lab) -> None:
    with Terminal(holt.identity, holt.argv(["run", "--ask", "--", "bash", "-c", f"{CURL} http://other.example.org/"]), cwd=holt.cwd, controlling=False) as terminal:
        assert terminal.wait() != 0
    assert "nobody could be asked, because holt has no terminal to ask on;" in terminal.output
    assert "NXDOMAIN" in terminal.output and not lab.log()


def test_a_policy_can_ask_and_a_project_can_not(holt: Holt, workspace: Path) -> None:
    (workspace / "p.json").write_text(json.dumps({"holt": 1, "network": {"ask": True}}))
    argv = holt.argv(["run", "--policy", "./p.json", "--", "bash", "-c", f"{CURL} http://other.example.org/"])
    with Terminal(holt.identity, argv, cwd=workspace) as terminal:
        terminal.expect(question("other.example.org:80"))
        answer(terminal, "y")
        assert terminal.wait() == 0
    (workspace / ".holt.json").write_text(json.dumps({"holt": 1, "network": {"ask": True}}))
    refused = holt(["run", "--", "true"], cwd=workspace)
    assert refused.code == 125 and "network.ask" in refused.err


@pytest.mark.parametrize("flags", (["--network", "none", "--ask"], ["--ask", "--network", "host"]))
def test_asking_contradicts_other_modes(flags: list[str], holt: Holt) -> None:
    refused = holt(["run", *flags, "--", "true"])

    assert refused.code == 125 and "--ask and --network" in refused.err


@pytest.mark.parametrize("pipe", ["", " < /dev/null | cat"])
def test_ctrl_c_is_a_no_and_interrupts_the_command(pipe: str, holt: Holt) -> None:
    host = "other.example.org:80"
    words = shlex.join(holt.argv(["run", "--ask", "--", "bash", "-c", f"{CURL} http://{host}/; echo went on"]))
    with Terminal(holt.identity, ["bash", "-c", f"{words}{pipe}; echo went on"], cwd=holt.cwd) as terminal:
        terminal.expect(re.escape(host))
        terminal.send("\x03")
        assert terminal.wait() == -signal.SIGINT, terminal.output
    assert "went on" not in terminal.output and "the answer was no" in terminal.output
