# SPDX-License-Identifier: Apache-2.0
"""Hostile code in the session's interpreter: the keeper goes on serving, stays small, and keeps the results of other
runs apart."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.bridge import LATER, Host
from lib.sessions import Json, Session, Sessions, memory, until

MEBI = 1 << 20
LIMIT = 20000  # Milliseconds for code that may hang; the expected result comes much sooner.

pytestmark = pytest.mark.not_sanitized  # The sanitizer keeps freed memory.


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.create("w", "--kill-after", "100ms")


@pytest.fixture
def host(session: Session) -> Iterator[Host]:
    with session.rpc() as rpc:
        yield Host(rpc, {})


def run(host: Host, code: str, **params: object) -> Json:
    return host.run("python.run", code=code, **{"timeout_ms": LIMIT, **params})


class Steady:
    """Asserts that the keeper stays the same and goes on serving during a with block. Its peak memory grows by less
    than `peak`, and its memory at the end by less than `kept`."""

    def __init__(self, host: Host, session: Session, peak: int = 48 * MEBI, kept: int = 8 * MEBI) -> None:
        self.host, self.session, self.peak, self.kept = host, session, peak, kept

    def __enter__(self) -> Steady:
        assert run(self.host, "1 + 1")["result"] == "2"
        self.pid = self.session.keeper()
        self.before, self.peak_before = memory(self.pid), self.session.keeper_peak()
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is not None:
            return
        assert run(self.host, "1 + 1")["result"] == "2"
        assert self.host.sh("echo served")["stdout"] == "served\n"
        assert self.session.keeper() == self.pid
        assert self.session.keeper_peak() - self.peak_before < self.peak
        assert memory(self.pid) - self.before < self.kept


# An answer has at most 16 MiB (INTERPRETER_ANSWER_MAX), and is in memory both as received and as parsed. A client's
# line has at most 1 MiB.


# --- the channel, and every other fd ---

FDS = """
import fcntl, json, os, random, threading
def fds():
    return [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
def write(data):
    for fd in fds():
        try:
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_NONBLOCK)
            os.write(fd, data)
            fcntl.fcntl(fd, fcntl.F_SETFL, flags)
        except OSError:
            pass
def push(data, times):
    for fd in fds():
        try:
            for _ in range(times):
                os.write(fd, data)
        except OSError:
            pass
"""

WRITES = {
    "bytes": "write(random.Random(1).randbytes(100000))",
    "bytes of many lines": "for n in range(200): write(random.Random(n).randbytes(500) + b'\\n')",
    "a line without an end": "push(b'x' * 100000, 4000)",
    "lines of nothing": "for _ in range(100): write(b'\\n' * 10000)",
    "every id": "for n in range(2000): write(json.dumps({'id': n, 'result': 'forged'}).encode() + b'\\n')",
    "ids past all": "for n in (2**53, 2**63, 2**64, 10**400, -1): write(b'{\"id\": %d}\\n' % n)",
    "deep": "write(b'{\"id\": 1, \"result\": ' + b'[' * 10000 + b']' * 10000 + b'}\\n')",
    "deep objects": "write(b'{\"id\":' * 10000 + b'1' + b'}' * 10000 + b'\\n')",
    "much": "push(json.dumps({'id': 10**6, 'result': 'x' * 15000000}).encode() + b'\\n', 1)",
    "all at once": "threads = [threading.Thread(target=lambda: [write(os.urandom(900) + b'\\n') for _ in range(100)]) for _ in range(8)]\n"
                   "for t in threads: t.start()\nfor t in threads: t.join()",
    "ended one way": "import socket\nfor fd in fds():\n  try: socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_WR)\n  except OSError: pass",
    "ended the other": "import socket\nfor fd in fds():\n  try: socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RD)\n  except OSError: pass",
    "closed": "os.closerange(0, 1000)",
    "read by it": "for fd in fds():\n  try: threading.Thread(target=os.read, args=(fd, 1000), daemon=True).start()\n  except OSError: pass",
    "put over each other": "for fd in fds(): os.dup2(1, fd)",
}


@pytest.mark.alike
@pytest.mark.parametrize("code", WRITES.values(), ids=WRITES)
def test_writing_to_the_interpreter_s_descriptors_affects_no_other_run(code: str, host: Host, session: Session) -> None:
    """Such code may only end the interpreter. The runs before and after it get their own answers."""
    with Steady(host, session):
        first, *behind = [host.send("python.run", code=c, timeout_ms=1000) for c in (FDS + code, "0", "1", "2")]
        assert host.result(first)["cause"] in ("exited", "lost", "timeout")
        results = [host.result(number) for number in behind]
        for n, result in enumerate(results):  # None: the interpreter ended during the run, and the result says so.
            assert result["result"] == str(n) or "forged" in code or (result["result"] is None and not result["state_kept"])
        until(lambda: run(host, "'mine'")["result"] == "'mine'", "what was forged is used up")


def test_old_answers_without_end_are_not_read_for_ever(host: Host, session: Session) -> None:
    """A few may arrive, because code has answered in its interpreter's place. If they do not stop, the interpreter is ended."""
    with Steady(host, session):
        result = run(host, FDS + "push(b'{\"id\": 1}\\n', 100)\nwhile True: pass")
        assert (result["cause"], result["state_kept"]) == ("lost", False)


def test_answers_forged_by_what_a_run_has_left_are_of_no_other_interpreter(host: Host, session: Session) -> None:
    """A process that holds the channel of an ended interpreter cannot answer for the next one."""
    with Steady(host, session):
        left = "\nif os.fork() == 0:\n  while True: [write(json.dumps({'id': n, 'result': 'forged'}).encode() + b'\\n') for n in range(100)]\nos._exit(5)"
        result = run(host, FDS + left)
        assert result["cause"] in ("exited", "lost") and not result["state_kept"]
        assert [run(host, str(n))["result"] for n in range(20)] == [str(n) for n in range(20)]


# --- output ---

FLOODS = {
    "stdout": "import os\nfor _ in range(1000): os.write(1, b'x' * 65536)",
    "both": "import os\nfor _ in range(500): os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)",
    "characters": "import os\nfor _ in range(200000): os.write(1, b'z')",
    "halves of characters": "import os\nfor _ in range(100000): os.write(1, b'\\xf0\\x9f')",
    "a thread that goes on": "import os, threading\ndef flood():\n  while True: os.write(1, b'x' * 4096)\nthreading.Thread(target=flood, daemon=True).start()",
    "a child that goes on": "import os\nif os.fork() == 0:\n  while True: os.write(1, b'x' * 65536)",
    "a result": "'x' * 100_000_000",
    "a message": "raise ValueError('x' * 100_000_000)",
    "a display": "class D:\n  def _repr_html_(self): return 'x' * 30_000_000\n  def __repr__(self): return ''\nfor _ in range(10): display(D())",
    "displays": "for n in range(100000): display(n)",
    "mime types": "class D:\n  def _repr_mimebundle_(self): return {f'x/{n}': 'y' * 1000 for n in range(20000)}\nD()",
    "causes": "e = None\nfor n in range(5000):\n  f = ValueError(n); f.__cause__ = e; e = f\nraise e",
}


@pytest.mark.alike
@pytest.mark.parametrize("code", FLOODS.values(), ids=FLOODS)
@pytest.mark.parametrize("watch", (False, True), ids=("", "watched"))
def test_a_flood(code: str, watch: bool, host: Host, session: Session) -> None:
    """The client of the run reads nothing meanwhile. No more output is kept than was asked for."""
    with Steady(host, session):
        number = host.send("python.run", code=code, output_max=MEBI, watch=watch, timeout_ms=LIMIT)
        with session.rpc() as other:  # Nobody reads the first one's notifications meanwhile.
            assert other.call("exec", argv=["true"])["exit_code"] == 0
        result = host.result(number)
        assert max(len(result[s].encode()) for s in ("stdout", "stderr")) <= MEBI + 3 * 65536
        assert len(json.dumps(result)) < 16 * MEBI
        host.rpc.notes.clear()
        host.call("python.restart")


# --- its own files and processes ---

SELF = {
    "stdout raises": "import sys\nclass Bad:\n  def __getattr__(self, name): raise BaseException\nsys.stdout = sys.stderr = Bad()",
    "stdout exits": "import os, sys\nclass Bad:\n  def flush(self): os._exit(3)\nsys.stdout = Bad()",
    "stdout hangs": "import sys\nclass Bad:\n  def flush(self):\n    while True:\n      try:\n        while True: pass\n      except BaseException: pass\nsys.stdout = Bad()",
    "stdout is no stream": "import sys\nsys.stdout, sys.stderr, sys.stdin = 1, '2', None",
    "json": "import json\njson.dumps = lambda *a, **k: 'forged'\njson.loads = None",
    "its socket": "import socket\nsocket.socket.sendall = lambda *a: None",
    "builtins": "import builtins\nfor name in list(vars(builtins)):\n  if name not in ('vars', 'list', 'delattr', 'builtins'): delattr(builtins, name)",
    "its own names": "import sys\nframe = sys._getframe()\nwhile frame.f_back: frame = frame.f_back\nframe.f_globals.clear()",
    "its signals": "import signal\nfor n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n  except (OSError, ValueError): pass",
    "blocked signals": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
    "its parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "its parent, stopped": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)",
    "everybody": "import os, signal\nos.kill(-1, signal.SIGKILL)",
    "everybody, stopped": "import os, signal\nos.kill(-1, signal.SIGSTOP)",
    "itself, stopped": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "PID 1": "import os, signal\nfor n in range(1, 65):\n  try: os.kill(1, n)\n  except OSError: pass",
    "its file": "import glob, os\nfor f in glob.glob('/run/holt/**', recursive=True):\n  try: os.unlink(f)\n  except OSError: pass",
    "its limits": "import resource\nfor n in range(16):\n  try: resource.setrlimit(n, (0, resource.getrlimit(n)[1]))\n  except (OSError, ValueError): pass",
    "threads": "import threading, time\ntry:\n  while True: threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\nexcept BaseException: pass",
    "recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "atexit": "import atexit\n@atexit.register\ndef f():\n  while True: pass\nimport sys; sys.exit(1)",
}


@pytest.mark.alike
@pytest.mark.parametrize("code", SELF.values(), ids=SELF)
def test_attacks_on_the_interpreter_affect_only_itself(code: str, sessions: Sessions, session: Session, host: Host) -> None:
    """Code may end its own interpreter, and nothing else. Afterwards, or after a restart, everything works as before."""
    pid = session.keeper()
    run(host, code, timeout_ms=2000)
    run(host, "0", timeout_ms=2000)
    assert session.keeper() == pid
    with session.rpc() as other:
        other.call("python.restart")
    if "/run/holt" in code:  # The directory is the session's own; the next sandbox has a new one.
        host.rpc.close()
        session.stop()
        assert session("python", "-c", "1 + 1").ok().out == "2\n"
        return
    assert run(host, "1 + 1")["result"] == "2"
    assert host.sh("echo served")["stdout"] == "served\n"


# --- tools ---


def test_a_run_calls_no_more_than_it_was_given(host: Host) -> None:
    for name in ("given", "secret"):
        host.tool(name, lambda p: "told")
    attempt = "from host_tools import call, search\nimport json\nout = []\nfor name in ('given', 'secret'):\n" \
              "  try: out.append(call(name))\n  except RuntimeError as e: out.append(str(e)[:18])\n"
    for tools, seen in ((["given"], ["told", "[permission_error]"]), ([], ["[permission_error]"] * 2), (["given", "secret"], ["told", "told"])):
        assert run(host, f"{attempt}out, [t['name'] for t in search('given secret')] if 'told' in out else []", tools=tools)["result"] == repr(
            (seen, sorted(tools))
        )
    token = run(host, "import os; os.environ['HOLT_BRIDGE_TOKEN']", tools=["secret"])["result"].strip("'")
    stolen = run(host, f"import os; os.environ['HOLT_BRIDGE_TOKEN'] = {token!r}\n{attempt}out", tools=["given"])["result"]
    assert stolen == repr(["[permission_error]"] * 2)


@pytest.fixture(params=("serve", "keeper"))
def way(request: pytest.FixtureRequest, sessions: Sessions, session: Session) -> Host:
    """A client of the session, by holt serve or by its keeper."""
    serve = request.param == "serve"
    return Host(sessions.serve(), {"session": "w"}) if serve else Host(session.rpc(), {})


ANSWERS = {
    "100 MB": ('"' + "x" * 100_000_000 + '"', "the reply is larger than 1 MiB"),
    "100 MB of little": ("[" + "1," * 50_000_000 + "1]", "the reply is larger than 1 MiB"),
    "10,000 deep": ("[" * 10000 + "1" + "]" * 10000, "the reply cannot be parsed"),
    "10,000 objects deep": ('{"a":' * 10000 + "1" + "}" * 10000, "the reply cannot be parsed"),
    "never closed": ("[" * 10000, "the reply cannot be parsed"),
}


@pytest.mark.alike
@pytest.mark.parametrize("value, message", ANSWERS.values(), ids=ANSWERS)
def test_results_of_tools_are_bounded(value: str, message: str, way: Host, host: Host, session: Session) -> None:
    """The client of a tool may pass on the answer of a third party. The call fails at once, and nothing else fails."""
    way.tool("t", lambda p: LATER)
    with Steady(host, session, peak=8 * MEBI):
        number = way.send("python.run", code="from host_tools import call\ncall('t')", timeout_ms=LIMIT)
        way.until(lambda: way.calls, "it is asked")
        way.rpc.raw(b'{"jsonrpc":"2.0","id":%s,"result":{"value":%s}}\n' % (json.dumps(way.calls[0]["id"]).encode(), value.encode()))
        result = way.result(number)
        assert result["error"]["name"] == "RuntimeError" and message in result["error"]["message"]
        way.handlers["t"] = lambda p: "after"
        assert way.run("python.run", code="call('t')")["result"] == "'after'"


@pytest.mark.parametrize("value", (ANSWERS["100 MB"][0], ANSWERS["10,000 deep"][0]), ids=("100 MB", "10,000 deep"))
def test_a_schema_is_bounded(value: str, way: Host, host: Host, session: Session) -> None:
    with Steady(host, session, peak=8 * MEBI):
        more = "".join(f'"{key}":"{text}",' for key, text in way.more.items())
        params = '{%s"name":"t","description":"t","input_schema":{"const":%s}}' % (more, value)
        way.rpc.raw(b'{"jsonrpc":"2.0","id":77,"method":"tools.register","params":%s}\n' % params.encode())
        while not way.rpc._answers:
            way.rpc.read()
        assert "error" in way.rpc._answers.pop(77)
        assert way.call("tools.list")["tools"] == []


@pytest.mark.parametrize("depth, kind", ((40, None), (10000, "validation_error")))
def test_a_payload_that_nests(depth: int, kind: str | None, host: Host, session: Session) -> None:
    """The payload comes in a line that host_tools would not send."""
    host.tool("t", lambda p: "fine")
    code = f"""
import json, os, socket
s = socket.socket(socket.AF_UNIX)
s.connect("/run/holt/bridge.sock")
s.sendall(b'{{"id": 1, "token": "%s", "call": "t", "payload": ' % os.environ["HOLT_BRIDGE_TOKEN"].encode() + b'{{"a":' * {depth} + b'1' + b'}}' * {depth} + b'}}\\n')
answer = json.loads(s.makefile().readline())
answer.get("value"), answer.get("error", {{}}).get("type")
"""
    with Steady(host, session):
        assert run(host, code)["result"] == str((None if kind else "fine", kind))


COMMANDS = {
    "100 MB": "head -c 100000000 /dev/zero | tr '\\0' x",
    "no end": "yes",
    "10,000 deep": "printf '[%.0s' $(seq 10000); printf ']%.0s' $(seq 10000)",
    "no JSON": "echo this is text",
    "nothing": ":",
    "100 MB of complaints": "head -c 100000000 /dev/zero >&2; exit 1",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_output_of_tool_programs_is_bounded(
    command: str, session: Session, host: Host, program: Callable[..., Path]
) -> None:
    script = program("tools/prints", f"#!/bin/sh\n{command}\n")
    code = "from host_tools import call\ntry: call('t')\nexcept RuntimeError as e: print(len(str(e)) < 2000, str(e)[:16])"
    with Steady(host, session):
        result = session("python", "--tool", f"t={script}", "-c", code).ok()
        assert result.out == "True [internal_error]\n"
    assert not [p for p in os.listdir("/proc") if p.isdigit() and _is(p, b"yes\0")]


def _is(pid: str, command: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read() == command
    except OSError:
        return False
