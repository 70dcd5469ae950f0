# SPDX-License-Identifier: Apache-2.0
"""The session's lasting interpreter, by JSON-RPC."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.python import run, value
from lib.sessions import Bound, Connect, RpcError, Session, Sessions, until

pytestmark = pytest.mark.alike

# --- values ---


@pytest.mark.alike
@pytest.mark.parametrize("code, result", (
    ("1 + 1", "2"), ("x = 3", None), ("x = 3\nx", "3"), ("None", None), ("'a'", "'a'"), ("5;", None), ("", None),
    ("# a word", None), ("if True:\n    7", None), ("def f():\n    return 1\nf()", "1"), ("'\\0\\ud800é'", r"'\x00\ud800é'"),
    ("import asyncio\nawait asyncio.sleep(0)\n8", "8"), ("[await asyncio.sleep(0, i) for i in range(2)]", "[0, 1]"),
    ("_", None),
))
def test_the_value_of_a_last_expression(code: str, result: str | None, rpc: Bound) -> None:
    run(rpc, "import asyncio; _ = None")

    assert value(rpc, code) == result


def test_state_lasts(rpc: Bound) -> None:
    run(rpc, "import math\nclass A:\n    b = 1\ndef f(n):\n    return A.b + n")
    run(rpc, "A.b = 2")

    assert value(rpc, "f(math.floor(1.5))") == "3"


def test_output_is_apart_and_of_all_that_was_started(rpc: Bound) -> None:
    result = run(rpc, "import os, sys, threading\nprint('out'); print('err', file=sys.stderr)\n"
                      "os.system('echo sub; echo suberr >&2')\nt = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
                      "import multiprocessing\np = multiprocessing.Process(target=print, args=('process',)); p.start(); p.join()\n"
                      "print('end', end='')")

    assert result["stdout"].splitlines() == ["out", "sub", "thread", "process", "end"]
    assert result["stderr"] == "err\nsuberr\n"


@pytest.mark.parametrize("end, code, error", (
    ("raise ValueError('in the child')", 1, "Traceback (most recent call last):\n  File \"<python 1>\", line 5, in <module>\n"
     "    raise ValueError('in the child')\nValueError: in the child\n"),
    ("sys.exit('said')", 1, "said\n"), ("sys.exit(3)", 3, ""), ("sys.exit()", 0, ""), ("pass", 0, ""),
), ids=("error", "text", "number", "exit", "end"))
def test_a_fork_ends_as_a_program_does(rpc: Bound, end: str, code: int, error: str) -> None:
    result = run(rpc, "import os, sys\nstatus = print('once,', end=' ')\nif os.fork() == 0:\n"
                      f"    print('no newline', end='')\n    {end}\nelse:\n    status = os.wait()[1]\nstatus is None or os.waitstatus_to_exitcode(status)")

    assert (result["result"], result["stdout"], result["stderr"]) == (str(code), "once, no newline", error)


def test_the_next_run_has_its_own_output(rpc: Bound) -> None:
    assert run(rpc, "print('one')")["stdout"] == "one\n"
    assert run(rpc, "print('two')")["stdout"] == "two\n"


def test_output_comes_while_it_runs(rpc: Bound) -> None:
    number = rpc.send("python.run", code="print('first', flush=True)\nimport os\nwhile not os.path.exists('/tmp/go'): pass", watch=True)

    assert rpc.note("process.output")["text"] == "first\n"
    rpc.call("files.write", path="/tmp/go", content="")
    assert rpc.result(number)["stdout"] == "first\n"


NO_TEXT = (b"abc\xff", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc3\xa4\xc3", b"\xff", bytes(range(256)))


@pytest.mark.parametrize("fresh", (False, True), ids=("lasting", "fresh"))
def test_bytes_that_are_no_text_are_output(fresh: bool, rpc: Bound) -> None:
    """An incomplete character at the end of a run is output, too."""
    for data in NO_TEXT:
        code = f"import sys; sys.stdout.buffer.write({data!r}); sys.stderr.buffer.write({data!r}); None"
        result = run(rpc, code, fresh=fresh, base64=True)
        assert [base64.b64decode(result[stream]) for stream in ("stdout", "stderr")] == [data, data]
        assert run(rpc, code, fresh=fresh)["stdout"].startswith(data.decode(errors="replace")[:1].replace("\0", "\ufffd"))
        told = run(rpc, code, fresh=fresh, base64=True, watch=True)
        heard = {"stdout": b"", "stderr": b""}
        while any(len(heard[stream]) < len(data) for stream in heard):
            note = rpc.note("process.output", id=told["id"])
            heard[note["stream"]] += base64.b64decode(note["base64"])
        assert heard == {"stdout": data, "stderr": data}


def test_bytes_that_are_no_text_are_output_of_a_crash(rpc: Bound) -> None:
    result = run(rpc, "import os; os.system('sleep 1000 &'); os.write(1, b'a\\xff'); os._exit(0)", base64=True)

    assert base64.b64decode(result["stdout"]) == b"a\xff"


def still(pid: int) -> bool:
    """Returns whether the process waits and uses no processor time."""
    def stat() -> list[str]:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()

    before = stat()
    time.sleep(0.1)
    return before[0] == "S" and stat()[11:13] == before[11:13]


def test_code_that_prints_waits_for_a_slow_watcher(session: Session, connect: Connect) -> None:
    """The code waits for the watcher until it is interrupted. Its output may then be lost, but its variables are kept."""
    reader, other = connect(), connect()
    peak = session.keeper_peak()
    code = ("import sys, os\nx = 7\ntry:\n  for i in range(4000):\n    sys.stdout.write('x' * (1 << 16))\n    if i == 8: open('/tmp/on', 'w').close()\n"
            "finally:\n  print('y' * 100000, flush=True)")
    number = reader.send("python.run", code=code, watch=True)
    until(lambda: other.sh("test -e /tmp/on")["exit_code"] == 0, "it prints")
    pid = next(p.pid for p in session.processes() if p.name.startswith("python3"))
    until(lambda: still(pid), "it waits")
    assert session.keeper_peak() - peak < 16 << 20
    assert other.call("python.interrupt")["interrupted"] is True
    assert value(other, "x") == "7"
    result = reader.result(number)
    assert (result["cause"], result["error"]["name"]) == ("exited", "KeyboardInterrupt")
    assert len(result["stdout"]) + result["stdout_dropped"] < 16 << 20


def test_code_that_prints_does_not_wait_for_a_watcher_that_has_gone(connect: Connect, session: Session) -> None:
    other = connect()
    with session.rpc() as reader:
        reader.send("python.run", code="import sys\nopen('/tmp/on', 'w').close()\nfor i in range(200): sys.stdout.write('x' * (1 << 16))\nx = 7", watch=True)
        until(lambda: other.sh("test -e /tmp/on")["exit_code"] == 0, "it has begun")

    assert value(other, "x") == "7"


@pytest.mark.parametrize("keep", ("head", "tail"))
def test_a_flood_is_cut_and_counted(keep: str, rpc: Bound) -> None:
    result = run(rpc, "for i in range(100000): print(i)", output_max=1000, keep=keep)

    assert len(result["stdout"]) == 1000 and result["stdout_dropped"] == 588890 - 1000
    assert ("99999\n" in result["stdout"]) == (keep == "tail")


def test_cwd_and_env_are_for_the_run(rpc: Bound) -> None:
    assert value(rpc, "import os; os.getcwd(), os.environ.get('A')", cwd="/tmp", env={"A": "ä"}) == "('/tmp', 'ä')"
    assert value(rpc, "os.getcwd(), os.environ.get('A')") == "('/workspace', None)"
    run(rpc, "os.chdir('/usr')")
    assert value(rpc, "os.getcwd()") == "'/usr'"
    assert run(rpc, "1", cwd="/nowhere")["error"]["name"] == "FileNotFoundError"


def test_a_fresh_interpreter_shares_no_variables(rpc: Bound) -> None:
    run(rpc, "x = 1")
    result = run(rpc, "x = 'x' in globals(); x", fresh=True)

    assert result["result"] == "False"
    assert value(rpc, "x") == "1"
    fresh = lambda: [p for p in rpc.call("process.list")["processes"] if p["state"] == "ended"]  # noqa: E731
    until(fresh, "its interpreter has ended")
    assert rpc.call("audit.list")["rows"] == []  # the end of a fresh interpreter is not audited


# --- errors ---


@pytest.mark.parametrize("code, name, words", (
    ("1/0", "ZeroDivisionError", 'File "<python 1>", line 1, in <module>\n    1/0'),
    ("x = 1\n1 +", "SyntaxError", 'File "<python 1>", line 2\n    1 +\n'),
    ("x = 1\nif x:\n  return x", "SyntaxError", 'File "<python 1>", line 3\n    return x\n    ^'),
    ("x = 'a\u2028b\x0c'\n1/0", "ZeroDivisionError", 'line 2, in <module>\n    1/0\n'),
    ("x = 1\nreturn x", "SyntaxError", 'File "<python 1>", line 2\n    return x\n    ^^^^^^^^\n'),
    ("def f():\n  raise ValueError('é')\nf()", "ValueError", 'line 2, in f\n    raise ValueError'),
    ("input()", "EOFError", "has no stdin"),
    ("import sys; sys.stdin.read()", "EOFError", "has no stdin"),
    ("import no_such_module", "ModuleNotFoundError", "python.wheels in its policy"),
    ("class E(Exception):\n  def __str__(self): raise E\nraise E", "E", "raise E\nE: <exception str() failed>\n"),
    ("class E(Exception):\n  def __str__(self): raise SystemExit\nraise E", "E", "<exception str() failed>"),
    ("class E(Exception):\n  def __str__(self): raise KeyboardInterrupt\nraise E", "E", "<exception str() failed>"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt", "KeyboardInterrupt"),
    ("import os\nos.path.dirname = None\n1/0", "ZeroDivisionError", 'File "<python 1>", line 3, in <module>\n    1/0'),
    ("class B:\n  def __repr__(self): raise ValueError\ndisplay(B())", "ValueError",
     'line 3, in <module>\n    display(B())\n  File "<python 1>", line 2, in __repr__'),
    ("import asyncio\nawait asyncio.sleep(0)\nx.y", "NameError", 'last):\n  File "<python 1>", line 3, in <module>\n    x.y'),
))
def test_an_error_is_data(code: str, name: str, words: str, rpc: Bound) -> None:
    result = run(rpc, code)

    assert (result["cause"], result["exit_code"], result["state_kept"]) == ("exited", 1, True)
    assert result["error"]["name"] == name
    assert words in result["error"]["traceback"]
    assert "holt_" not in result["error"]["traceback"]


@pytest.mark.parametrize("code, hint", (
    ("x = 1\n!ls -l", "use the bash tool, or subprocess.run('ls -l', shell=True)"), ("if x:\n    !ls", "subprocess.run('ls', shell=True)"),
    ("files = !ls *.csv", "subprocess.run('ls *.csv', shell=True)"), ("!pip install x", "imports install missing packages"),
    ("%pip install x", "leave %pip out"), ("%matplotlib inline\nx", "leave %matplotlib out"), ("%%time\nx = 1", "leave %%time out"),
    ("t = %timeit -o f()", "leave %timeit out"), ("import os\nos.path?", "use help(os.path)"), ("?print", "use help(print)"),
))
def test_syntax_of_ipython_gets_a_hint(code: str, hint: str, rpc: Bound) -> None:
    error = run(rpc, code)["error"]

    assert error["name"] == "SyntaxError" and hint in error["message"] and hint in error["traceback"]
    assert "without IPython's" in error["message"] and 'File "<python 1>", line ' in error["traceback"]


@pytest.mark.parametrize("code", ("1 +", "x = 5 %", "s = 'a\n%d'", "(1\n% 2", "a b\n%c", "print 'x?'"))
def test_other_syntax_errors_have_no_hint(code: str, rpc: Bound) -> None:
    error = run(rpc, code)["error"]

    assert error["name"] == "SyntaxError" and "IPython" not in error["message"]


@pytest.mark.parametrize("code, exit_code", (("exit()", 0), ("import sys; sys.exit(3)", 3), ("raise SystemExit('no')", 1)))
def test_an_exit_is_the_code_s_own(code: str, exit_code: int, rpc: Bound) -> None:
    result = run(rpc, f"x = 1\n{code}")

    assert result["exit_code"] == exit_code
    assert value(rpc, "x") == "1"


@pytest.mark.parametrize("code", ("exit()", "quit(3)", "import sys; sys.stdin.close()"))
def test_an_exit_leaves_the_interpreter_whole(code: str, rpc: Bound) -> None:
    run(rpc, code)
    result = run(rpc, "import sys; help(len); sys.stdin.closed")

    assert (result["error"], result["result"]) == (None, "False")
    assert "Help on built-in function len" in result["stdout"]


@pytest.mark.parametrize("code, cause, exit_code", (
    ("import os; os._exit(4)", "exited", 4), ("import ctypes; ctypes.string_at(0)", "signaled", 139),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signaled", 137),
))
def test_a_crash_is_a_result_and_the_next_run_goes_on(code: str, cause: str, exit_code: int, rpc: Bound) -> None:
    run(rpc, "x = 1")
    result = run(rpc, f"print('before', flush=True)\n{code}")

    assert (result["cause"], result["exit_code"], result["state_kept"]) == (cause, exit_code, False)
    assert result["stdout"] == "before\n"
    assert run(rpc, "x")["error"]["name"] == "NameError"


def kill_interpreter(rpc: Bound) -> None:
    rpc.sh("pkill -9 -f holt_interpreter.py")
    until(lambda: all(p["state"] == "ended" for p in rpc.call("process.list")["processes"]), "it has ended")


def test_the_next_run_says_that_the_interpreter_ended(rpc: Bound) -> None:
    """Without "lost", the result of the run would not show that the variables are gone."""
    assert run(rpc, "x = 1")["lost"] is None
    kill_interpreter(rpc)
    assert [run(rpc, "1")["lost"] for _ in range(2)] == ["signaled", None]
    rpc.call("python.restart")
    assert run(rpc, "1")["lost"] is None
    assert run(rpc, "import os; os._exit(3)")["lost"] is None
    assert run(rpc, "1")["lost"] is None


def test_the_next_connected_client_learns_that_the_interpreter_ended(session: Session, keeper: Bound) -> None:
    """A run whose client has gone does not get the report."""
    gone = Bound(session.rpc(), {})
    run(keeper, "x = 1")
    kill_interpreter(keeper)
    gone.send("python.run", code="import os\nprint('on')\nwhile not os.path.exists('/tmp/go'): pass", watch=True)
    gone.note("process.output")
    gone.rpc.close()
    keeper.call("files.write", path="/tmp/go", content="")

    assert run(keeper, "1")["lost"] == "signaled"


def test_an_end_is_told_where_variables_were_loaded(rpc: Bound) -> None:
    run(rpc, "x = 1")
    rpc.call("python.save")
    rpc.call("python.restart")
    assert rpc.call("python.load")["loaded"] == ["x"]
    kill_interpreter(rpc)

    assert run(rpc, "1")["lost"] == "signaled"


# The code itself measures the time that it uses, because the rest of a run's usage depends on the machine.
BURN = "import os, time\nstart = time.process_time()\nwhile time.process_time() - start < {}: pass\n"


@pytest.mark.slow
@pytest.mark.parametrize("fresh", (False, True))
@pytest.mark.parametrize("end", ("os._exit(4)", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)"))
def test_a_crash_has_its_usage(end: str, fresh: bool, rpc: Bound) -> None:
    """The usage is the run's own: the lasting interpreter has used more before."""
    before = 1e6 * float(value(rpc, f"{BURN.format(0.6)}time.process_time()"))
    told = "print(start, time.process_time(), flush=True)"
    result = run(rpc, f"{BURN.format(0.2)}x = b'x' * (64 << 20)\n{told}\n{end}", fresh=fresh)
    start, now = (1e6 * float(word) for word in result["stdout"].split())
    usage, own = result["usage"], now - start

    assert own <= usage["user_us"] + usage["system_us"] < own + before
    assert usage["wall_us"] >= 200_000 and usage["max_rss_bytes"] > 64 << 20


def test_a_run_has_its_usage(rpc: Bound) -> None:
    """The usage is the run's own, including processes that it has waited for."""
    before = 1e6 * float(value(rpc, f"import subprocess\n{BURN.format(0.6)}time.process_time()"))
    told = f"{BURN.format(0.15)}print(time.process_time() - start)"
    for code in (told, f"subprocess.run(['python3', '-c', {told!r}])"):
        result = run(rpc, code)
        usage, own = result["usage"], 1e6 * float(result["stdout"])
        assert own <= usage["user_us"] + usage["system_us"] < own + before and usage["wall_us"] >= 150_000
        assert usage["max_rss_bytes"] > 1 << 20


def test_a_missing_interpreter_is_an_error(sessions: Sessions) -> None:
    session = sessions.create("w", "--python", "/no/such")

    assert "/no/such" in session("python", "-c", "1").refusal(127)


# --- time ---


def test_a_timeout_interrupts_and_the_state_is_kept(rpc: Bound) -> None:
    result = run(rpc, "x = 1\nimport time\ntry:\n  time.sleep(100)\nfinally:\n  print('at last')", timeout_ms=100)

    assert (result["cause"], result["exit_code"], result["state_kept"]) == ("timeout", 124, True)
    assert result["stdout"] == "at last\n" and result["error"]["name"] == "KeyboardInterrupt"
    assert value(rpc, "x") == "1"


def test_code_that_ignores_the_interrupt_is_killed(sessions: Sessions) -> None:
    rpc = Bound(sessions.create("w", "--kill-after", "100ms").rpc(), {})
    result = run(rpc, "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('so far', flush=True)\ntime.sleep(100)",
                 timeout_ms=100)

    assert (result["cause"], result["exit_code"], result["state_kept"]) == ("timeout", 124, False)
    assert result["stdout"] == "so far\n"
    assert value(rpc, "2") == "2"


def test_children_of_a_killed_interpreter_are_killed(sessions: Sessions) -> None:
    session = sessions.create("w", "--kill-after", "100ms")
    rpc = Bound(session.rpc(), {})
    run(rpc, "import signal, subprocess\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
             "subprocess.Popen(['setsid', 'sleep', '1000'])\nwhile True: pass", timeout_ms=100)

    until(lambda: not session.processes("sleep"), "its child is gone")


IGNORES = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(100)"


@pytest.mark.parametrize("fresh", (False, True), ids=("lasting", "fresh"))
@pytest.mark.parametrize("code", ("import time; time.sleep(100)", IGNORES, "import signal, os, time\nsignal.signal(2, lambda *_: os._exit(3))\ntime.sleep(100)"),
                         ids=("interrupted", "killed", "exits"))
def test_each_timeout_is_in_the_audit(code: str, fresh: bool, sessions: Sessions) -> None:
    session = sessions.create("w", "--kill-after", "100ms")
    rpc = Bound(session.rpc(), {})
    process = run(rpc, code, timeout_ms=500, fresh=fresh)["id"]

    assert [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "limit"] == [{"id": process, "cause": "timeout"}]


def test_interrupt_and_restart(keeper: Bound, session: Session) -> None:
    other = Bound(session.rpc(), {})
    number = keeper.send("python.run", code="print('on', flush=True)\nwhile True: pass", watch=True)
    keeper.note("process.output")
    assert other.call("python.interrupt") == {"interrupted": True}
    assert keeper.result(number)["error"]["name"] == "KeyboardInterrupt"
    assert other.call("python.interrupt") == {"interrupted": False}

    run(keeper, "x = 1")
    number = keeper.send("python.run", code="print('on', flush=True)\nwhile True: pass", watch=True)
    keeper.note("process.output")
    waiting = other.send("python.run", code="2")
    until(lambda: other.call("process.list"), "the next waits")
    assert keeper.call("python.restart") == {"killed": True}
    assert keeper.result(number)["cause"] == "killed"
    with pytest.raises(Exception, match="a client killed the interpreter"):
        other.result(waiting)
    assert run(keeper, "x")["error"]["name"] == "NameError"


def test_an_interrupt_between_runs_keeps_variables(rpc: Bound) -> None:
    run(rpc, "x = 1")
    for _ in range(50):
        number = rpc.send("python.run", code="x")
        rpc.call("python.interrupt")
        rpc.result(number)

    assert value(rpc, "x") == "1"


def test_runs_wait_for_each_other_up_to_a_limit(keeper: Bound) -> None:
    first = keeper.send("python.run", code="import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)")
    numbers = [keeper.send("python.run", code=str(i)) for i in range(63)]
    refused = keeper.refused("python.run", code="1")
    keeper.call("files.write", path="/tmp/go", content="")

    assert refused.kind == "limit" and "64" in refused.message
    keeper.result(first)
    assert [keeper.result(n)["result"] for n in numbers] == [str(i) for i in range(63)]


def test_requests_of_a_client_that_has_gone_do_not_run(session: Session, keeper: Bound) -> None:
    gone = Bound(session.rpc(), {})
    gone.send("python.run", code="import os\nprint('on')\nwhile not os.path.exists('/tmp/go'): pass\nx = 1", watch=True)
    gone.note("process.output")
    gone.send("python.run", code="y = 1")
    gone.call("session.show")
    gone.rpc.close()
    until(lambda: keeper.call("files.write", path="/tmp/go", content="") is not None, "it goes on")

    assert value(keeper, "x, 'y' in globals()") == "(1, False)"


# --- clients that stop waiting ---


ON = "print('on', flush=True)\n"
SLEEPS = f"import subprocess\np = subprocess.Popen(['sleep', '1000'])\n{ON}p.wait()"


def test_a_fresh_run_ends_with_its_client(keeper: Bound, session: Session) -> None:
    gone, other = Bound(session.rpc(), {}), keeper
    run(other, "x = 1")
    gone.send("python.run", code=SLEEPS, fresh=True, watch=True)
    gone.note("process.output")
    assert session.processes("sleep")
    gone.rpc.close()
    until(lambda: not session.processes("sleep"), "it has ended")
    until(lambda: len(session.processes("python3")) == 1, "its interpreter, too")

    assert value(other, "x") == "1"
    noted = [row["result"]["cause"] for row in other.call("history.list", name="python.run")["rows"]]
    assert sorted(noted) == ["exited", "exited", "killed"]


def test_a_fresh_run_that_has_not_begun_leaves_no_interpreter(keeper: Bound, session: Session) -> None:
    gone, other = Bound(session.rpc(), {}), keeper
    for _ in range(8):
        gone.send("python.run", code="1", fresh=True)
    until(lambda: len(other.call("process.list")["processes"]) == 8, "they are started")
    gone.rpc.close()

    until(lambda: session.processes("python3") == [], "they have ended")


@pytest.mark.parametrize("fresh", (False, True))
@pytest.mark.parametrize("method, cause, kept", (("interrupt", "exited", True), ("restart", "killed", False)))
def test_a_run_is_ended_by_its_name(method: str, cause: str, kept: bool, fresh: bool, connect: Connect) -> None:
    rpc, other = connect(), connect()
    run(rpc, "x = 1")
    number = rpc.send("python.run", code=SLEEPS, fresh=fresh, watch=True, run="mine")
    rpc.note("process.output")
    for client, name in ((other, "mine"), (rpc, "other")):
        assert list(client.call(f"python.{method}", run=name).values()) == [False]
    assert list(rpc.call(f"python.{method}", run="mine").values()) == [True]
    result = rpc.result(number)

    assert (result["cause"], result["state_kept"]) == (cause, kept)
    assert list(rpc.call(f"python.{method}", run="mine").values()) == [False]
    assert (run(rpc, "x")["result"] == "1") == (fresh or kept)


@pytest.mark.parametrize("method", ("interrupt", "restart"))
def test_a_run_that_waits_is_taken_back(method: str, rpc: Bound) -> None:
    """The run in progress, which may be another client's, continues."""
    first = rpc.send("python.run", code=f"{ON}import os\nwhile not os.path.exists('/tmp/go'): pass\nx = 1", watch=True, run="first")
    rpc.note("process.output")
    second = rpc.send("python.run", code="y = 1", run="second")
    assert list(rpc.call(f"python.{method}", run="second").values()) == [True]
    with pytest.raises(RpcError, match="cancelled before it began"):
        rpc.result(second)
    rpc.call("files.write", path="/tmp/go", content="")

    assert rpc.result(first)["error"] is None
    assert value(rpc, "x, 'y' in globals()") == "(1, False)"


# --- history and audit ---


def test_each_run_is_in_the_history(session: Session) -> None:
    session("python", "-c", "1/0")
    row = session.history()[0]

    assert row["name"] == "python.run" and json.loads(row["params"])["code"] == "1/0"
    assert json.loads(row["result"]) == {"cause": "exited", "exit_code": 1}


def test_the_filter_s_refusals_are_the_run_s(rpc: Bound) -> None:
    result = run(rpc, "import ctypes\nctypes.CDLL(None).unshare(0)")

    assert [d["what"] for d in result["denials"]] == ["unshare"]
    assert run(rpc, "1")["denials"] == []


def test_a_refusal_is_told_where_the_code_fails(session: Session) -> None:
    told = session("python", "-c", "import ctypes, sys\nctypes.CDLL(None).fanotify_init(0, 0)\nsys.exit(3)")

    assert told.code == 3 and "--allow-syscall fanotify_init" in told.err
    assert "fanotify_init" not in session("python", "-c", "import ctypes\nctypes.CDLL(None).fanotify_init(0, 0)").err


PLANT = "open('.git/commondir', 'w').write('../x')"


@pytest.mark.parametrize("end", ("", "; 1/0", "; import os; os._exit(3)"))
def test_a_run_lists_the_files_that_were_set_aside(end: str, sessions: Sessions, workspace: Path, identity: Identity) -> None:
    git = workspace / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    for path in (git, git / "HEAD"):
        identity.own(path)
    session = sessions.create("w", "--workspace", workspace)
    with session.rpc() as rpc:
        assert run(rpc, f"{PLANT}{end}")["set_aside"] == [".git/commondir.holt-untrusted"]
        assert run(rpc, "1")["set_aside"] == []
    told = session("python", "-c", f"{PLANT}{end}")

    assert "it is now .git/commondir.holt-untrusted.2\n" in told.err and f"{workspace}" in told.err
    assert not (workspace / ".git" / "commondir").exists()
