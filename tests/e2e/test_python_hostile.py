# SPDX-License-Identifier: Apache-2.0
"""Code that lies to the keeper on its interpreter's channel, or breaks what the interpreter stands on."""

from __future__ import annotations

import pytest

from lib.python import run, value
from lib.sessions import Bound, Json, Session, Sessions, until

pytestmark = pytest.mark.alike

ON_THE_CHANNEL = pytest.mark.parametrize("code", (
    "import os\nfor fd in range(3, 100):\n  try: os.write(fd, b'garbage\\n')\n  except OSError: pass",
    "import os\nfor fd in range(3, 100):\n  try: os.write(fd, b'{\"id\": 0}\\n')\n  except OSError: pass",
    "import os\nfor fd in range(3, 100):\n  try: os.write(fd, b'x' * 20000000)\n  except OSError: pass",
    "import os\nfor fd in range(3, 100):\n  try: os.write(fd, b'[' * 10000 + b'\\n')\n  except OSError: pass",
    "import os\nos.closerange(3, 100)",
), ids=("garbage", "ready again", "long", "deep", "closed"))


@ON_THE_CHANNEL
def test_bad_bytes_on_the_channel_end_only_the_interpreter(code: str, keeper: Bound) -> None:
    result = run(keeper, code)

    assert result["state_kept"] is False
    assert value(keeper, "1 + 1") == "2"


@pytest.mark.not_sanitized  # the sanitizer keeps freed memory
@ON_THE_CHANNEL
def test_bytes_on_the_channel_cost_the_keeper_no_memory(code: str, keeper: Bound, session: Session) -> None:
    peak = session.keeper_peak()
    run(keeper, code)

    assert session.keeper_peak() - peak < 64 << 20


def test_bad_bytes_between_runs_are_not_audited_as_a_client_s_kill(keeper: Bound) -> None:
    run(keeper, "import os, threading\ndef say():\n    while not os.path.exists('/tmp/go'): pass\n    for fd in range(3, 100):\n"
                "        try: os.write(fd, b'garbage\\n')\n        except OSError: pass\nthreading.Thread(target=say).start()")
    keeper.call("files.write", path="/tmp/go", content="")
    until(lambda: all(p["state"] == "ended" for p in keeper.call("process.list")["processes"]), "it has ended")

    assert run(keeper, "1")["lost"] == "lost"


def test_a_forged_answer_forges_its_own_run_alone(rpc: Bound) -> None:
    forge = "import os, json\nfor fd in range(3, 100):\n  try: os.write(fd, json.dumps({'id': 1, 'result': 'forged',"
    forge += " 'displays': [{'a': 1, 'b': [2], 'c': 'text'}], 'exit_code': 7, 'error': 5}).encode() + b'\\n')\n  except OSError: pass"
    result = run(rpc, forge)

    assert (result["result"], result["displays"], result["exit_code"], result["error"]) == ("forged", [{"c": "text"}], 7, None)
    assert value(rpc, "1 + 1") == "2"


# Replaces the interpreter: the code sends all further messages.
TAKE_OVER = """
import sys
f = sys._getframe()
while "DOES" not in f.f_globals:
    f = f.f_back
f.f_globals["DOES"].update(
    variables=lambda r: {"answer": {"variables": [5, {"name": "a\x1b[2J", "type": ["\x1b"], "size": "\x1b[1m"}], "more": 1}},
    save=lambda r: {"answer": {"saved": ["\x1b]0;x\x07", 5], "left_out": {"a\x1b[2J": "b\x1b[2J", "c": 5}}},
    load=lambda r: {"answer": {"loaded": "x", "failed": [], "path": 5}},
)
f.f_globals["run"] = lambda r: {"exit_code": 1, "error": {"name": 5, "more": "x"}, "displays": {}}
"""


def test_forged_answers_have_the_documented_form(rpc: Bound) -> None:
    """Clients can rely on this form."""
    run(rpc, TAKE_OVER)
    empty: Json = {"name": "", "type": "", "repr": "", "size": None}
    forged = {**empty, "name": "a\x1b[2J", "size": "\x1b[1m"}
    assert rpc.call("python.variables") == {"variables": [empty, forged]}
    assert rpc.call("python.save") == {"saved": ["\x1b]0;x\x07"], "left_out": {"a\x1b[2J": "b\x1b[2J"}, "path": ""}
    assert rpc.call("python.load") == {"loaded": [], "failed": {}, "path": ""}
    result = run(rpc, "1")
    assert result["error"] == {"name": "", "message": "", "traceback": ""} and result["displays"] == []


def test_forged_replies_send_no_control_sequences(session: Session) -> None:
    """Returns holt's own messages. The output of code, with its values and errors, is printed unchanged."""
    with session.rpc() as rpc:
        rpc.call("python.run", code=TAKE_OVER)
    for option in ("--variables", "--save", "--load"):
        result = session("python", option).ok()
        assert "\x1b" not in result.out + result.err and (option == "--load" or "\\x1b" in result.out)


@pytest.mark.parametrize("code", (
    "import sys; sys.stdout = sys.stderr = None", "import os; os.close(1); os.close(2)", "import sys; sys.stdout.close()",
    "import os\nif os.fork() == 0:\n  while True: os.write(1, b'')", "import os; os.dup2(os.open('/dev/null', 1), 1)",
    "import os; os.dup2(os.open('/proc/self/fd/1', os.O_RDONLY), 1)",
    "import sys; sys.displayhook = 1; sys.excepthook = 1; del sys.modules['__main__']",
), ids=lambda code: code[:40])
def test_broken_streams_of_a_run_are_repaired_or_replaced(code: str, sessions: Sessions) -> None:
    session = sessions.create("w", "--kill-after", "100ms")
    rpc = Bound(session.rpc(), {})
    run(rpc, code, timeout_ms=20000)

    assert value(rpc, "1 + 1") == "2"
    run(rpc, "import sys; sys.stdout = sys.__stdout__ = open(1, 'w', closefd=False)")
    assert "x" in run(rpc, "print('x', flush=True)")["stdout"]
    rpc.call("python.restart")


@pytest.mark.parametrize("code, error", (
    # An interrupt at any time keeps the output from being written.
    ("class Stuck:\n  def write(self, text): pass\n  def flush(self): raise KeyboardInterrupt\nsys.stdout = Stuck()",
     "KeyboardInterrupt"),
    ("os.close(1)", None), ("os.dup2(os.open('/dev/full', os.O_WRONLY), 1)", None),
), ids=("interrupt", "closed", "full"))
def test_unwritten_output_does_not_appear_in_the_next_run(code: str, error: str | None, rpc: Bound) -> None:
    first = run(rpc, f"import os, sys\nsys.stdout.write('left')\n{code}")
    result = run(rpc, "sys.stdout = sys.__stdout__\nprint('right')")

    assert (first["error"] or {}).get("name") == error
    assert result["stdout"] == "right\n"


def test_an_output_that_a_program_has_made_not_to_block_blocks_again(rpc: Bound) -> None:
    """Some programs set O_NONBLOCK on an inherited descriptor, and do not restore it."""
    run(rpc, "import os\nfor fd in 1, 2: os.set_blocking(fd, False)")
    result = run(rpc, "print('x' * 1000000)")

    assert result["error"] is None and len(result["stdout"]) == 1000001


def test_a_fork_that_comes_back_says_nothing(rpc: Bound) -> None:
    result = run(rpc, "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n'parent' if pid else 'child'")

    assert result["result"] == "'parent'"
    assert value(rpc, "1") == "1"
