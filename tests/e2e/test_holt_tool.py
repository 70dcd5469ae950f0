# SPDX-License-Identifier: Apache-2.0
"""holt-tool itself: its input, requests and output, which have the form of Python's json, and its behaviour with a fake
bridge."""

from __future__ import annotations

import base64
import json
import pickle
import random
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from lib.bridge import Host
from lib.sessions import Session

pytestmark = pytest.mark.alike

MEBI = 1 << 20
HEAD = '{"id": 1, "token": "a\\"b", "call": "t", "payload": '

# Runs inside: holt-tool once for each case, with a bridge that gives the case's answer, which may be code.
PLAYED = """
import base64, os, pickle, socket, subprocess, sys, tempfile, threading, zlib
path = tempfile.mkdtemp() + "/bridge"
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
def write(client, answer):
    if isinstance(answer, bytes):
        client.sendall(answer)
    else:
        exec(answer, {"client": client})
def play(answer, seen):
    client, _ = server.accept()
    line = b""
    while not line.endswith(b"\\n"):
        more = client.recv(1 << 20)
        if not more:
            break
        line += more
    seen.append(line)
    try:
        write(client, answer)
    except OSError:
        pass
    client.close()
def run(words, stdin, answer, env):
    seen = []
    bridge = threading.Thread(target=play, args=(answer, seen), daemon=True) if answer is not None else None
    if bridge:
        bridge.start()
    env = {"PATH": os.environ["PATH"], "HOLT_BRIDGE": path, "HOLT_BRIDGE_TOKEN": 'a"b', **env}
    env = {name: value for name, value in env.items() if value is not None}
    child = subprocess.Popen(["holt-tool", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    out, err = child.communicate(stdin)
    if bridge and not seen:  # it has not come to asking
        end = socket.socket(socket.AF_UNIX)
        end.connect(path)
        end.close()
    if bridge:
        bridge.join()
    return child.returncode, out, err, seen[0] if seen else b""
cases = pickle.loads(base64.b64decode(sys.stdin.read()))
sys.stdout.write(base64.b64encode(zlib.compress(pickle.dumps([run(*case) for case in cases]), 1)).decode())
"""


class Seen(NamedTuple):
    exit_code: int
    out: str
    err: str
    sent: str  # the line at the bridge


class Played:
    """Plays the bridge for holt-tool, in the session."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def all(self, cases: list[tuple[list[Any], bytes, Any, dict[str, Any]]]) -> list[Seen]:
        stdin = base64.b64encode(pickle.dumps(cases)).decode()
        result = self.host.run("exec", argv=["python3", "-c", PLAYED], stdin=stdin, timeout_ms=120000)
        assert (result["exit_code"], result["stderr"]) == (0, ""), result["stderr"]
        seen = pickle.loads(zlib.decompress(base64.b64decode(result["stdout"])))
        return [Seen(code, out.decode(), err.decode("utf-8", "backslashreplace"), sent.decode()) for code, out, err, sent in seen]

    def one(self, *words: Any, stdin: bytes = b"", answer: Any = b'{"id":1,"value":0}\n', **env: Any) -> Seen:
        return self.all([(list(words), stdin, answer, env)])[0]


@pytest.fixture
def host(session: Session) -> Iterator[Host]:
    with session.rpc() as rpc:
        yield Host(rpc, {})


@pytest.fixture
def played(host: Host) -> Played:
    return Played(host)


def failed(seen: Seen) -> str:
    """Returns the message with which it has failed."""
    assert (seen.exit_code, seen.out) == (1, "") and seen.err.startswith("holt-tool: ") and seen.err.endswith("\n"), seen
    return seen.err[len("holt-tool: ") : -1]


# --- text as Python would write it ---

TEXTS = [
    "{}", "  ", "", "null", "{ }", '{"a" :1 ,\t"b":[ ] , "c":[1,\n[2,{"d":{}}]]}', '{"a": "\\u00e9\\n\\/\\u0001\\ud83d\\ude00\x7fä😀"}',
    '{"a": [true, false, null, "", -0, -0.0, 0.0, 1.50, 1E5, 1e-7, 1e16, 1e15, 123456789012345678901234567890]}', '{"": {"ä": 1}}',
    "[1]", '"x"', "1", "1.5", "true", "{", "[", "[1,", "[1,]", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', "{1:2}", "{'a':1}", '{"a" 1}',
    '{"a":1 "b":2}', "[1 2]", "x", "tru", "nul", "-", "+1", "01", "1.", ".5", "1e", "[1.e5]", '{"a":1}x', '{"a":1}}', '"', '"\\', '"\\x"',
    '"a\nb"', '"\\u12"', '"\\u12', '"\\uzzzz"', '"\\ud800\\u12"', '{\n  "ä": tru\n}', "\ufeff{}", "NaN", '{"a": NaN}', '{"a": [-Infinity]}',
    '{"a": 1e999}', '{"a": NaN', "[[[[]]", "]", ",", ":", '{"a"::1}', "\x00", '{"a": "\x00"}', '{"a": "\\u0000"}', "\r\n{\r\n]", "\u00a0",
]


NO_JSON = "the payload must be JSON, such as '{\"of\": \"tea\"}': "


def expected(text: str) -> tuple[int, str]:
    """Returns the expected exit code, and the payload that is sent, or the message."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        payload = (json.loads(text) if text.strip(" \t\n\r\v\f") else {}) or {}
        if text.strip()[:1] in ("[", '"', "1", "t", "N"):
            return 1, f"the payload must be a dict, not {type(json.loads(text)).__name__}"
        return 0, json.dumps(payload, ensure_ascii=False, allow_nan=False)
    except json.JSONDecodeError as error:
        return 1, NO_JSON + str(error)
    except ValueError as error:
        return 1, str(error)


def check(text: str, seen: Seen) -> None:
    code, what = expected(text)
    if code:
        assert failed(seen) == what, text
        assert seen.sent == "", text
    else:
        assert (seen.exit_code, seen.err, seen.sent) == (0, "", f"{HEAD}{what}}}\n"), text


def test_payloads_are_taken_as_by_python(played: Played) -> None:
    answer = b'{"id":1,"value":0}\n'
    for text, seen in zip(TEXTS, played.all([(["t"], text.encode(), answer, {}) for text in TEXTS])):
        check(text, seen)
    words = [text for text in TEXTS if "\0" not in text and "\r" not in text]
    for text, seen in zip(words, played.all([(["t", text], b"[not read]", answer, {}) for text in words])):
        check(text, seen)


def test_answers_are_printed_as_by_python(played: Played) -> None:
    texts = ["0", "-0", "-0.0", "null", '"\\u007f\\u0085\\u0001\\"\\\\\\/\\b\\f\\n\\r\\t"', '"ä\\u00e4😀"', '{"b":1,"a":[{},[],{"c":null}]}', "[]", "{}", "1e400", "NaN"]
    texts += [str(2**53 - 1), "1e+22", "1E22", "0.1", "100", "1e2", "5e-324", "1.7976931348623157e308", "0.0001", "0.00001", "9999999999999998", "1e16", "2.5e-5"]
    seen = played.all([(["t", "{}"], b"", f'{{"id":1,"value":{text}}}\n'.encode(), {}) for text in texts])
    assert [s.out for s in seen] == [json.dumps(json.loads(text), ensure_ascii=False) + "\n" for text in texts]
    assert {(s.exit_code, s.err) for s in seen} == {(0, "")}


def test_numbers_are_printed_as_by_python(played: Played) -> None:
    """Tests random doubles with any number of digits, and the doubles at which the distance to the next one changes."""
    chance = random.Random(7)
    doubles = [struct.unpack("d", struct.pack("Q", chance.getrandbits(64)))[0] for _ in range(3000)]
    doubles += [2.0**power for power in range(-1074, 1024)] + [chance.random() * 10.0**power for power in range(-330, 300) for _ in range(2)]
    texts = [f"{value:.{chance.randrange(30)}e}" for value in doubles if value - value == 0] + [f"{value}.0" for value in range(1 << 60, (1 << 60) + 99)]
    texts += ["0." + "0" * 400 + "1e390", "1" * 900 + "e-880", "9007199254740993.0", "9007199254740993." + "0" * 900 + "1", "4.9e-324", "2e-324", "2.5e-324", "9.999999999999999999e22"]
    seen = played.one("t", "{}", answer=f'{{"id":1,"value":[{",".join(texts)}]}}\n'.encode())
    assert seen.out[1:-2].split(", ") == [json.dumps(json.loads(text)) for text in texts]


def test_payloads_that_python_or_the_bridge_refuses(played: Played) -> None:
    def message(text: bytes) -> str:
        return failed(played.one("t", text))

    assert message(b'{"a": "\\ud800"}') == NO_JSON + "a lone surrogate: line 1 column 8 (char 7)"
    assert message(b'{"a": "\\ud800\\ud800"}') == NO_JSON + "a lone surrogate: line 1 column 8 (char 7)"
    assert message(b'{"a": "\\udc00"}') == NO_JSON + "a lone surrogate: line 1 column 8 (char 7)"
    assert message('{"ä": "'.encode() + b'\xff"}') == NO_JSON + "this is not UTF-8: line 1 column 8 (char 7)"
    for wrong in (b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xe2\x82"):
        assert message(b'["' + wrong + b'"]') == NO_JSON + "this is not UTF-8: line 1 column 3 (char 2)"
    assert failed(played.one(b"\xff", "{}")) == "the tool's name must be UTF-8"
    assert failed(played.one("t", "{}", HOLT_BRIDGE_TOKEN=b"\xff")) == "HOLT_BRIDGE_TOKEN is not UTF-8"
    assert "dict" in message(b"[" * 900 + b"]" * 900)
    for opening in (b"[", b'{"a":'):
        assert message(opening * 10000) == "the payload nests objects and arrays too deeply"


# --- the command line ---


def test_the_command_line(host: Host) -> None:
    host.tool("t", lambda p: p)
    usage = host.sh("holt-tool --help")["stdout"]
    assert usage.startswith("usage: holt-tool NAME [JSON]") and "--list" in usage
    for words in ("", "--list x", "--help x", "-x", "--", "a b c"):
        result = host.sh(f"holt-tool {words}")
        assert (result["exit_code"], result["stdout"], result["stderr"]) == (2, "", usage), words
    assert host.sh("holt-tool t ''")["stdout"] == host.sh("holt-tool t </dev/null")["stdout"] == "{}\n"
    assert host.sh("""echo '{"b": 1}' | holt-tool t '{"a": 1}'""")["stdout"] == '{"a": 1}\n'
    assert host.sh("holt-tool ''")["stderr"] == "holt-tool: the tool's name must not be empty\n"
    assert host.sh("holt-tool t <&-")["stderr"] == "holt-tool: cannot read the payload from stdin: [Errno 9] Bad file descriptor\n"
    assert host.sh("holt-tool t '{}' >/dev/full")["stderr"] == "holt-tool: cannot write to stdout: [Errno 28] No space left on device\n"
    assert host.sh("python3 -c 'import pty; pty.spawn([\"holt-tool\", \"t\"])' </dev/null")["stdout"].strip() == "{}"  # stdin is a terminal


def test_the_list(played: Played) -> None:
    tools = {
        "a": "Adds.\nNumbers.", "b": "", "c": " \n\t ", "d": "\n\n First \u2028 second", "e": "One line. ", "f": "ends here \r\nnot here",
        "g": "ä\u00a0b\u3000\x85c", "h": "\u2003x\u200b\u2003", "i": 'q "\\ \x1e', "j": "x \v\n ",
    }
    answer = {"id": 1, "tools": [{"input_schema": {"description": "not this"}, "name": n, "description": d, "z": [1, {"name": 1}]} for n, d in tools.items()]}
    seen = played.one("--list", answer=json.dumps(answer).encode() + b"\n")
    first = {name: text.strip().splitlines()[:1] for name, text in tools.items()}
    assert seen.out == "".join("\t".join([name, *line]) + "\n" for name, line in first.items())
    assert seen.sent == '{"id": 1, "token": "a\\"b", "list": true}\n'
    assert played.one("--list", answer=b'{"id":1,"tools":[]}\n') == (0, "", "", seen.sent)


def test_long_input(host: Host) -> None:
    """Spaces are not sent, so that they don't count for the bridge's limit."""
    host.tool("t", lambda p: len(p.get("a", "")))
    assert host.sh("(echo '{'; head -c 4000000 /dev/zero | tr '\\0' ' '; echo '}') | holt-tool t")["stdout"] == "0\n"
    assert host.sh("""(printf '{"a": "'; head -c 1000000 /dev/zero | tr '\\0' x; echo '"}') | holt-tool t""")["stdout"] == "1000000\n"
    too_long = host.sh("""(printf '{"a": "'; head -c 2000000 /dev/zero | tr '\\0' x; echo '"}') | holt-tool t""")
    assert too_long["stderr"] == "holt-tool: [validation_error] the line is longer than 1 MiB\n"
    assert host.sh("head -c 40000000 /dev/zero | holt-tool t")["stderr"] == "holt-tool: the payload is larger than 32 MiB\n"
    assert "Argument list too long" in host.sh("""holt-tool t "$(head -c 200000 /dev/zero | tr '\\0' ' ')" """)["stderr"]


def test_the_token(host: Host) -> None:
    host.tool("t", lambda p: 1)
    assert host.sh("HOLT_BRIDGE_TOKEN= holt-tool t '{}'")["stderr"] == "holt-tool: [permission_error] the token is unknown, or its exec has ended\n"
    without = "holt-tool: [permission_error] the token is unknown, or its exec has ended\n"
    assert host.sh("unset HOLT_BRIDGE_TOKEN; holt-tool t '{}'")["stderr"] == without
    assert "permission_error" in host.sh("HOLT_BRIDGE_TOKEN='\"}' holt-tool --list")["stderr"]


# --- a bridge that is played ---


def test_a_missing_bridge_is_an_error(played: Played) -> None:
    unset = "[internal_error] HOLT_BRIDGE is not set: tools can be called only inside a session"
    reach = "[internal_error] cannot reach the bridge at "
    paths = {
        None: unset, "": unset, "/nowhere": reach + "/nowhere: [Errno 2] No such file or directory",
        "/etc/hosts/x": reach + "/etc/hosts/x: [Errno 20] Not a directory", "/etc/hosts": reach + "/etc/hosts: [Errno 111] Connection refused",
        "/" + "x" * 107: reach + "/" + "x" * 107 + ": AF_UNIX path too long", "/" + "x" * 106: reach + "/" + "x" * 106 + ": [Errno 2] No such file or directory",
        "/" + "x" * 100000: reach + "/" + "x" * 100000 + ": AF_UNIX path too long",
    }
    seen = played.all([(["t", "{}"], b"", None, {"HOLT_BRIDGE": path}) for path in paths])
    assert [failed(s) for s in seen] == list(paths.values())


ANSWERS = {
    b"": "[internal_error] the bridge is gone: connection closed",
    b'{"id":1,"val': "[internal_error] the bridge is gone: connection closed",
    b"\n": "[internal_error] the bridge's answer is not valid: Expecting value: line 1 column 1 (char 0)",
    b"garbage\n": "[internal_error] the bridge's answer is not valid: Expecting value: line 1 column 1 (char 0)",
    b"\x00\xff\n": "[internal_error] the bridge's answer is not valid: Expecting value: line 1 column 1 (char 0)",
    b'{"id":1,"value":"\xff"}\n': "[internal_error] the bridge's answer is not valid: this is not UTF-8: line 1 column 18 (char 17)",
    b'{"id":1,"value":"a\x00b"}\n': "[internal_error] the bridge's answer is not valid: Invalid control character at: line 1 column 19 (char 18)",
    b'{"id":1,"value":1\n': "[internal_error] the bridge's answer is not valid: Expecting ',' delimiter: line 1 column 18 (char 17)",
    b"[" * 10000 + b"]" * 10000 + b"\n": "[internal_error] the bridge's answer is not valid: objects and arrays are nested too deeply: line 1 column 961 (char 960)",
    b'{"id":1,"value":' + b'{"a":' * 10000 + b"1" + b"}" * 10001 + b"\n": "[internal_error] the bridge's answer is not valid: objects and arrays are nested too deeply: line 1 column 4812 (char 4811)",
    b"[]\n": "[internal_error] the bridge's answer is not an object",
    b"1\n": "[internal_error] the bridge's answer is not an object",
    b'"id"\n': "[internal_error] the bridge's answer is not an object",
    b"{}\n": "[internal_error] the bridge is gone: no answer",
    b'{"id":null,"error":{"message":"too many"}}\n': "[internal_error] the bridge is gone: too many",
    b'{"id":null,"error":7}\n': "[internal_error] the bridge is gone: no answer",
    b'{"id":1}\n': "[internal_error] the bridge's answer has no value",
    b'{"id":1,"error":null}\n': "[internal_error] the bridge's answer has no value",
    b'{"id":1,"error":{}}\n': "[None] None",
    b'{"id":1,"error":[{"type":1}]}\n': "[None] None",
    b'{"id":1,"error":{"type":"a\\u001b\\u0000","message":"\\u00e4\\\\\\n"}}\n': "[a\x1b\0] ä\\\n",
    b'{"id":1,"error":{"type":1,"message":{"a":[]}}}\n': '[1] {"a": []}',
    b'{"id":2,"value":1}\n{"id":"1","value":2}\n{"id":[],"value":2}\n{"id":11,"value":2}\n': "[internal_error] the bridge is gone: connection closed",
}

LISTS = {
    b'{"id":1,"value":[]}\n': "[internal_error] the bridge's answer has no tools",
    b'{"id":1,"tools":{}}\n': "[internal_error] the bridge's answer has no list of tools",
    **{
        b'{"id":1,"tools":[' + tool + b"]}\n": "[internal_error] the bridge's answer has a tool without a name and a description"
        for tool in (b"1", b"[]", b"{}", b'{"name":"a"}', b'{"name":1,"description":""}', b'{"name":"a","description":null}', b'"name"')
    },
}


def test_answers_that_are_none(played: Played) -> None:
    for words, answers in ((["t", "{}"], ANSWERS), (["--list"], LISTS)):
        seen = played.all([(words, b"", answer, {}) for answer in answers])
        assert [failed(s) for s in seen] == list(answers.values())


def test_an_answer_among_others_and_in_pieces(played: Played) -> None:
    answer = b'{"value":"wrong","id":1,"error":null,"value":"right"}'
    other, late = b'{"id":0,"value":"zero"}\n', b'\n{"id":1,"value":"late"}\n'
    others = f"client.sendall({other!r} * 50000 + {answer + late!r})"
    assert played.one("t", "{}", answer=others)[:3] == (0, '"right"\n', "")
    pieces = f"for byte in {answer + bytes([10])!r}: client.sendall(bytes([byte]))"
    assert played.one("t", "{}", answer=pieces)[:3] == (0, '"right"\n', "")


def test_a_long_answer(played: Played) -> None:
    """A reply up to the bridge's limit is printed. Memory is bounded for any length."""
    seen = played.one("t", "{}", answer="client.sendall(b'{\"id\":1,\"value\":\"' + b'x' * 30000000 + b'\"}\\n')")
    assert (seen.exit_code, len(seen.out), seen.err) == (0, 30000003, "")
    for answer in ("client.sendall(b'{\"id\":1,\"value\":\"' + b'x' * 100000000 + b'\"}\\n')", "while True: client.sendall(b'x' * 100000)"):
        assert failed(played.one("t", "{}", answer=answer)) == "[internal_error] the bridge's answer is larger than 32 MiB"


def test_memory_is_bounded(host: Host) -> None:
    """The bound is the memory for the longest reply with the longest printed form."""
    code = """
import os, resource, socket, subprocess, tempfile, threading
path = tempfile.mkdtemp() + "/bridge"
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
def play():
    client, _ = server.accept()
    client.sendall(b'{"id":1,"value":[' + b"1e15," * 6500000 + b"1]}\\n")
threading.Thread(target=play, daemon=True).start()
child = subprocess.run(["holt-tool", "t", "{}"], env={**os.environ, "HOLT_BRIDGE": path}, stdout=subprocess.PIPE)
assert child.stdout[:40] == b"[1000000000000000.0, 1000000000000000.0,", child.stdout[:40]
print(len(child.stdout), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
    result = host.run("exec", argv=["python3", "-c", code], timeout_ms=120000)
    assert result["exit_code"] == 0, result["stderr"]
    length, peak = map(int, result["stdout"].split())
    assert length == 6500000 * 20 + 4
    assert peak < 400 << 10  # KiB


def test_a_request_that_is_not_taken(host: Host) -> None:
    """The bridge's error from before it closed is reported, although the rest of the request could not be sent."""
    code = """
import os, socket, subprocess, tempfile, threading
path = tempfile.mkdtemp() + "/bridge"
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
def run(answer):
    child = subprocess.Popen(["holt-tool", "t"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "HOLT_BRIDGE": path})
    child.stdin.write(b'{"a": "' + b"x" * 8000000 + b'"}')
    child.stdin.close()
    client, _ = server.accept()
    if answer:
        client.sendall(answer)
        client.shutdown(socket.SHUT_RD)  # what has been sent is not lost by that, as it might be by close()
    else:
        client.close()
    return child.wait(), child.stderr.read().decode()
print([run(b'{"id":null,"error":{"message":"too many"}}\\n'), run(b"")])
"""
    result = host.run("exec", argv=["python3", "-c", code])
    assert result["exit_code"] == 0, result["stderr"]
    gone = "holt-tool: [internal_error] the bridge is gone: "
    assert result["stdout"] == f"{[(1, gone + 'too many' + chr(10)), (1, gone + '[Errno 32] Broken pipe' + chr(10))]}\n"
