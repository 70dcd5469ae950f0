# SPDX-License-Identifier: Apache-2.0
"""Hostile code at the bridge: the keeper goes on serving, gives nothing that was not granted, and stays small."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.bridge import LATER, Host
from lib.sessions import Json, Session, until

MEBI = 1 << 20

# Start of each script: a connection, and lines of JSON on it.
BEGIN = """
import json, os, socket, sys, threading, time
token = os.environ.get("HOLT_BRIDGE_TOKEN", "")
def connect(timeout=60):
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/holt/bridge.sock")  # waits where a backlog is full, as with a time it would not
    s.settimeout(timeout)
    return s
def read(s):
    data = b""
    while not data.endswith(b"\\n"):
        more = s.recv(1 << 20)
        if not more:
            return None
        data += more
    return json.loads(data)
def ask(s, line):
    s.sendall(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\\n")
    return read(s)
def call(name="t", n=1, **more):
    return {"id": n, "token": token, "call": name, "payload": {}, **more}
"""


@pytest.fixture
def host(session: Session) -> Iterator[Host]:
    with session.rpc() as rpc:
        host = Host(rpc, {})
        host.tool("t", lambda p: "fine")
        yield host


def run(host: Host, script: str, **params: object) -> str:
    """The output of hostile code; afterwards the bridge must still work."""
    result = host.run("exec", argv=["python3", "-c", BEGIN + script], **params)
    assert result["exit_code"] == 0, result["stderr"]
    assert host.sh("holt-tool t '{}'")["stdout"] == '"fine"\n'
    return result["stdout"]


def memory(session: Session) -> int:
    """The keeper's peak memory in bytes."""
    for line in Path(f"/proc/{session.show()['keeper_pid']}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the keeper has ended")


# --- permission to call ---

TOKENS = {
    "none": "",
    "empty": '"token": "", ',
    "guessed": '"token": "' + "0" * 32 + '", ',
    "short": '"token": "ab", ',
    "long": '"token": "' + "a" * 4000 + '", ',
    "a number": '"token": 5, ',
    "null": '"token": null, ',
    "a list": '"token": ["a"], ',
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_without_a_token_nothing_is_called_or_listed(token: str, host: Host) -> None:
    for what in ('"call": "t"', '"list": true'):
        line = f'{{"id": 1, {token}{what}}}\n'.encode()
        answer = json.loads(run(host, f"print(json.dumps(ask(connect(), {line!r})))"))
        assert (answer["id"], answer["error"]["type"]) == (1, "permission_error")
    assert len(host.calls) == 2  # The calls of run().


def test_a_token_calls_no_more_than_its_exec_was_given(host: Host) -> None:
    host.tool("secret", lambda p: "told")
    names = ["secret", "Secret", "t ", "", "t\0", "../secret", "*", "x" * 5000]
    code = f"print(json.dumps([ask(connect(), call(n)) for n in {names!r}] + [ask(connect(), {{'id': 1, 'token': token, 'list': True}})]))"
    *answers, listed = json.loads(run(host, code, tools=["t"]))
    assert {a["error"]["type"] for a in answers if not a["error"]["message"].endswith("would cut the string")} == {"permission_error"}
    assert [t["name"] for t in listed["tools"]] == ["t"]
    assert {c["params"]["name"] for c in host.calls} == {"t"}


def test_the_token_of_another_exec_ends_with_that(host: Host) -> None:
    host.tool("secret", lambda p: "told")
    other = host.call("process.spawn", shell="echo $HOLT_BRIDGE_TOKEN; exec sleep 1000", tools=["secret"])["id"]
    chunks: list[Json] = []
    until(lambda: chunks.extend(host.call("process.read", id=other)["chunks"]) or chunks, "it has printed its token")
    stolen = chunks[0]["text"].strip()
    use = f"token = {stolen!r}; print(json.dumps([ask(connect(), call(n)) for n in ('t', 'secret')]))"
    refused, told = json.loads(run(host, use, tools=["t"]))
    assert refused["error"]["type"] == "permission_error" and told == {"id": 1, "value": "told"}
    host.call("process.kill", id=other)
    until(lambda: {p["id"]: p for p in host.call("process.list")["processes"]}[other]["state"] == "ended", "it is gone")
    answers = json.loads(run(host, use, tools=["t"]))
    assert [a["error"]["type"] for a in answers] == ["permission_error"] * 2


# --- garbage ---

GARBAGE = {
    "no JSON": b"hello\n",
    "bytes": bytes(range(255, 0, -1)).replace(b"\n", b"") + b"\n",
    "NULs": b"\0" * 1000 + b"\n",
    "nothing": b"\n",
    "no object": b"[1]\n",
    "null": b"null\n",
    "a string": b'"a"\n',
    "no id": b'{"list": true}\n',
    "id 0": b'{"id": 0, "list": true}\n',
    "id -1": b'{"id": -1, "list": true}\n',
    "a fraction": b'{"id": 1.5, "list": true}\n',
    "id 1e999": b'{"id": 1e999, "list": true}\n',
    "neither": b'{"id": 1}\n',
    "both": b'{"id": 1, "call": "t", "list": true}\n',
    "list of what": b'{"id": 1, "list": "yes"}\n',
    "twice": b'{"id": 1, "id": 2, "list": true}\n',
    "deep": b'{"id": 1, "token": "", "call": "t", "payload": ' + b"[" * 10000 + b"]" * 10000 + b"}\n",
    "deep objects": b'{"a":' * 10000 + b"1" + b"}" * 10000 + b"\n",
    "no UTF-8": b'{"id": 1, "call": "\xff"}\n',
    "surrogate": b'{"id": 1, "call": "\\ud800"}\n',
}


def test_garbage_is_answered_and_the_next_line_is_served(host: Host) -> None:
    code = (
        "import base64, pickle\nout = {}\n"
        "for name, line in pickle.loads(base64.b64decode(sys.stdin.read())).items():\n"
        "    s = connect()\n    out[name] = [ask(s, line), ask(s, call(n=9))]\n"
        "print(json.dumps(out))"
    )
    encoded = base64.b64encode(pickle.dumps(GARBAGE)).decode()
    result = json.loads(run(host, code, stdin=encoded))
    for name, (answer, after) in result.items():
        assert answer["error"]["type"] in ("validation_error", "permission_error"), (name, answer)
        assert after == {"id": 9, "value": "fine"}, name
    for line, number in ((b"x", None), (b'{"id":7,"call":"', 7)):
        code = f"s = connect(); print(json.dumps([ask(s, {line!r} + b'x' * (3 << 20) + b'\\n'), ask(s, call(n=9))]))"
        answer, after = json.loads(run(host, code))
        assert answer == {"id": number, "error": {"type": "validation_error", "message": "the line is longer than 1 MiB"}}
        assert after == {"id": 9, "value": "fine"}


def test_payloads_at_the_edge_of_what_is_taken(host: Host) -> None:
    """Both holt and its client parse the payload inside a larger message, which is nested more deeply."""
    code = """
answers = []
for depth in range(50, 70):
    payload = b'{"a":' * depth + b"1" + b"}" * depth
    s = connect()
    answers.append(ask(s, b'{"id": 1, "call": "t", "token": "' + token.encode() + b'", "payload": ' + payload + b"}\\n"))
print(json.dumps(answers))
"""
    answers = json.loads(run(host, code))
    assert [a.get("value") for a in answers] == ["fine"] * 11 + [None] * 9
    assert {a["error"]["type"] for a in answers[11:]} == {"validation_error"}


def test_deep_and_odd_results_of_a_tool(host: Host) -> None:
    """The result may come from another attacker, who knows how the client passes it on."""
    def nested(levels: int) -> object:
        return [nested(levels - 1)] if levels else 1

    host.tool("deep", lambda p: nested(61))
    host.tool("deeper", lambda p: nested(70))
    host.tool("odd", lambda p: {"a\0b": 1})
    code = "print(json.dumps([ask(connect(), call(n)) for n in ('deep', 'deeper', 'odd')]))"
    deep, deeper, odd = json.loads(run(host, code))
    assert deep == {"id": 1, "value": nested(61)}
    assert deeper["error"]["type"] == "internal_error" and "nested more than 64 deep" in deeper["error"]["message"]
    assert odd["error"]["type"] == "internal_error" and "\\u0000" in odd["error"]["message"]


# --- too much ---


def test_many_connections(host: Host) -> None:
    code = """
held, refused = [], 0
for n in range(600):
    s = connect(5)
    held.append(s)
good = 0
for s in held:
    try:
        answer = ask(s, call())
    except (BrokenPipeError, ConnectionResetError):
        answer = None
    good += answer == {"id": 1, "value": "fine"}
print(good)
"""
    assert run(host, code) == "256\n"


@pytest.mark.not_sanitized  # The sanitizer keeps freed memory.
def test_code_that_does_not_read_answers_is_disconnected(host: Host, session: Session) -> None:
    """Answers of 1 MB on many connections that nobody reads."""
    host.tool("big", lambda p: "x" * 1_000_000)
    before = memory(session)
    code = """
held = [connect() for _ in range(100)]
for s in held:
    s.sendall(b"".join(json.dumps(call("big", n)).encode() + b"\\n" for n in range(1, 4)))
ask(connect(), call())  # behind all of them
"""
    run(host, code)
    assert memory(session) < before + 100 * MEBI


@pytest.mark.not_sanitized  # The sanitizer keeps freed memory.
def test_lines_that_do_not_end(host: Host, session: Session) -> None:
    before = memory(session)
    code = """
held = [connect(2) for _ in range(200)]
for s in held:
    try:
        s.sendall(b"x" * 1000000)
    except OSError:
        pass
print([ask(connect(), call()) for _ in range(3)][-1]["value"])
"""
    assert run(host, code) == "fine\n"
    assert memory(session) < before + 60 * MEBI


def test_calls_that_never_end_are_limited(host: Host) -> None:
    """2048 calls are accepted, the rest is refused, and all end with their process."""
    host.tool("never", lambda p: LATER)
    code = """
s = connect()
threading.Thread(target=lambda: s.sendall(b"".join(json.dumps(call("never", n)).encode() + b"\\n" for n in range(1, 2101)))).start()
refused = 0
while refused < 52:
    for line in s.recv(1 << 20).splitlines():
        refused += b"2048 tool calls are open already" in line
print(refused)
"""
    assert run(host, code) == "52\n"
    assert len([c for c in host.calls if c["params"]["name"] == "never"]) <= 256


@pytest.mark.not_sanitized  # The sanitizer keeps freed memory.
def test_payloads_that_wait_are_bounded(host: Host, session: Session) -> None:
    """The payloads wait for a client that does not read."""
    host.tool("never", lambda p: LATER)
    before = memory(session)
    code = """
s = connect(2)
try:
    for n in range(1, 200):
        s.sendall(json.dumps(call("never", n, payload={"x": "x" * 900000})).encode() + b"\\n")
except OSError:
    pass
print("sent")
"""
    process = host.call("process.spawn", argv=["python3", "-c", BEGIN + code])["id"]
    with session.rpc() as other:  # The tool's own client reads nothing.
        other.call("process.wait", id=process)
        assert memory(session) < before + 120 * MEBI
        assert other.call("exec", argv=["true"])["exit_code"] == 0
    host.until(lambda: True, "")
    assert host.sh("holt-tool t '{}'")["stdout"] == '"fine"\n'


def test_a_flood_of_refusals_does_not_push_the_audit_out(host: Host) -> None:
    code = """
s = connect()
for n in range(1, 2001):
    assert "error" in ask(s, call("nothing", n))
"""
    run(host, code)
    rows = host.call("audit.list", kind="tool", limit=1000)["rows"]
    assert len(rows) == 256 + 1  # One of them belongs to run().


def test_a_replaced_bridge_gives_no_calls_to_the_host(host: Host) -> None:
    """The path of the bridge belongs to the command. A process that takes the path answers in the bridge's place
    inside, but the host gets no call."""
    code = """
import subprocess
os.rename("/run/holt/bridge.sock", "/run/holt/old.sock")
s = socket.socket(socket.AF_UNIX)
s.bind("/run/holt/bridge.sock")
s.listen()
asks = subprocess.Popen(["holt-tool", "t", "{}"], stdout=subprocess.PIPE, text=True)
c, _ = s.accept()
read(c)
c.sendall(b'{"id": 1, "value": "forged"}\\n')
print(asks.communicate()[0], end="")
os.rename("/run/holt/old.sock", "/run/holt/bridge.sock")
"""
    assert run(host, code) == '"forged"\n'
    assert len(host.calls) == 1  # The call of run().
