# SPDX-License-Identifier: Apache-2.0
"""The variables of a session's interpreter: listed, saved and loaded, kept for as long as it lives."""

from __future__ import annotations

import time

import pytest

from lib.python import run, value
from lib.sessions import Bound, Session, Sessions, alive, until

pytestmark = pytest.mark.alike


def test_variables_are_listed(rpc: Bound) -> None:
    run(rpc, "a = [1, 2]; b = 'x' * 1000; _hidden = 1\nclass Bad:\n  def __repr__(self): raise ValueError\nc = Bad()")
    listed = {v["name"]: v for v in rpc.call("python.variables")["variables"]}

    assert set(listed) == {"a", "b", "c", "Bad"}
    assert (listed["a"]["type"], listed["a"]["size"], listed["a"]["repr"]) == ("list", "2", "[1, 2]")
    assert len(listed["b"]["repr"]) < 300 and listed["c"]["repr"] == "?"


def test_odd_variables_leave_the_others(rpc: Bound) -> None:
    run(rpc, "class Odd:\n  def __repr__(self): return 'a\\0\\ud800'\nodd = Odd(); globals().update({'\\ud800': 1, 5: 2})")
    listed = {v["name"]: v["repr"] for v in rpc.call("python.variables")["variables"]}
    assert (listed["odd"], listed["?"]) == ("a\ufffd?", "1")
    run(rpc, "globals().update({f'v{n}': '中' * 300 for n in range(30000)})")
    assert len(rpc.call("python.variables")["variables"]) == 30003
    assert value(rpc, "odd is None") == "False"


def test_sizes_of_variables(rpc: Bound) -> None:
    run(rpc, "class Table:\n  shape = (2, 3)\nclass Other:\n  shape = len\n  def __getattr__(self, name): raise ValueError(name)\n"
             "class Odd:\n  def __getattr__(self, name): raise ValueError(name)\ntable, other, odd = Table(), Other(), Odd()")
    listed = {v["name"]: v["size"] for v in rpc.call("python.variables")["variables"]}
    assert (listed["table"], listed["other"], listed["odd"]) == ("(2, 3)", None, None)


ENDLESS = "class Endless:\n  def __repr__(self):\n    while True: pass\n  def __reduce__(self):\n    while True: pass\ne = Endless(); n = 5"
STUBBORN = ENDLESS.replace("while", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n    while")


def test_variables_have_the_time_of_a_run(sessions: Sessions) -> None:
    rpc = Bound(sessions.create("w", "--timeout", "500ms", "--kill-after", "60s").rpc(), {})
    run(rpc, ENDLESS)

    assert [v["repr"] for v in rpc.call("python.variables")["variables"] if v["name"] == "e"] == ["?"]
    assert rpc.call("python.save")["saved"] == ["n"]
    assert value(rpc, "n") == "5"


def test_a_listing_ends_even_if_a_variable_ignores_interrupts(sessions: Sessions) -> None:
    rpc = Bound(sessions.create("w", "--timeout", "500ms", "--kill-after", "100ms").rpc(), {})
    run(rpc, STUBBORN)
    assert "stopped after 500ms, the limit of the session's policy" in rpc.refused("python.variables").message
    assert value(rpc, "1") == "1"


@pytest.mark.slow
def test_a_session_with_an_interpreter_does_not_go_to_rest(sessions: Sessions) -> None:
    """The session goes to rest only after the interpreter has ended."""
    session = sessions.create("w", "--idle", "1s")
    keeper = session.keeper()
    session("python", "-c", "x = 1").ok()
    time.sleep(2.5)
    assert alive([keeper])
    assert session("python", "-c", "x").ok().out == "1\n"
    session("python", "--restart").ok()
    until(lambda: not alive([keeper]), "it has gone to rest")


def test_variables_outlive_a_stop(session: Session, keeper: Bound) -> None:
    run(keeper, "import math, datetime\na = {'k': [1]}\nd = datetime.date(2026, 11, 21)\ndef f(): pass\nclass C: pass\nc = C()\ng = (i for i in ())")
    saved = keeper.call("python.save")
    keeper.rpc.close()
    session.stop()
    rpc = Bound(session.rpc(), {})
    loaded = rpc.call("python.load")

    assert saved["saved"] == loaded["loaded"] == ["a", "d", "datetime", "math"]
    assert set(saved["left_out"]) == {"f", "C", "c", "g"} and "defined in the session" in saved["left_out"]["c"]
    assert value(rpc, "a, d.year, math.floor(1.5)") == "({'k': [1]}, 2026, 1)"


def test_variables_that_cannot_be_saved_have_a_reason(rpc: Bound) -> None:
    """If the error has no text, its type is named."""
    run(rpc, "class Shy:\n  def __reduce__(self): raise ValueError\nshy = Shy()")

    assert rpc.call("python.save")["left_out"]["shy"] == "ValueError"


def test_variables_go_into_a_file_and_come_from_one(rpc: Bound) -> None:
    run(rpc, "import os; x = 1; os.mkfifo('fifo'); os.mkdir('d')")

    refused = rpc.refused("python.save", path="d")
    assert "Is a directory: '/workspace/d'" in refused.message
    assert value(rpc, "sorted(os.listdir())") == "['d', 'fifo']"
    assert "not written by python.save" in rpc.refused("python.load", path="fifo").message


def test_loading_refuses_files_without_saved_variables(rpc: Bound) -> None:
    run(rpc, "import pickle; x = 1\nfiles = {'empty': b'', 'text': b'text', 'table': b'country,town\\nFR,Paris\\n', 'other': pickle.dumps([1])}\n"
             "for name, data in files.items(): open(name, 'wb').write(data)")

    missing = rpc.refused("python.load")
    assert (missing.kind, missing.message.partition(" in /")[0]) == ("missing", "the interpreter: no variables were saved")
    for name in ("empty", "text", "table", "other"):
        refused = rpc.refused("python.load", path=name)
        assert refused.kind == "data" and f"/workspace/{name} was not written by python.save" in refused.message
    assert value(rpc, "x") == "1"
