# SPDX-License-Identifier: Apache-2.0
"""Tools of the host, called from inside: by host_tools, by holt-tool, and what a client sees of it."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from lib.bridge import LATER, Host, Refused
from lib.openrpc import Mismatch
from lib.sessions import Json, Session, Sessions, until
from lib.tap import Tap

pytestmark = pytest.mark.alike

ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "number"}},
    "required": ["a"],
    "additionalProperties": False,
}

Connect = Callable[[], Host]


@pytest.fixture(params=("serve", "keeper"))
def connect(request: pytest.FixtureRequest, sessions: Sessions, session: Session) -> Iterator[Connect]:
    """Makes clients of the session: of one holt serve each, or of its keeper."""
    opened: list[Host] = []

    def connect() -> Host:
        serve = request.param == "serve"
        opened.append(Host(sessions.serve(), {"session": "w"}) if serve else Host(session.rpc(), {}))
        return opened[-1]

    yield connect
    for host in opened:
        host.rpc.close()


@pytest.fixture
def host(connect: Connect) -> Host:
    return connect()


@pytest.fixture
def keeper(session: Session) -> Iterator[Host]:
    """A client of the keeper, for tests that do not depend on the kind of connection."""
    with session.rpc() as rpc:
        yield Host(rpc, {})


def out(result: Json) -> str:
    """Returns the output of code, and asserts that the code did not fail."""
    assert (result.get("error"), result["exit_code"]) == (None, 0), result
    return result["stdout"].strip()


def failed(result: Json) -> str:
    """Returns the message of the error that ended the code."""
    assert result["error"]["name"] == "RuntimeError", result
    return result["error"]["message"]


# --- a call ---


def test_code_calls_a_tool(host: Host) -> None:
    host.tool("add", lambda p: p["a"] + p.get("b", 0), ADD, timeout_ms=5000)
    assert out(host.python("print(call('add', {'a': 1, 'b': 2.5}))")) == "3.5"
    (call,) = host.calls
    params = call["params"]
    assert params.pop("session", "w") == "w"
    assert params.pop("exec").startswith("p") and params.pop("call") == "c1"
    assert params == {"name": "add", "payload": {"a": 1, "b": 2.5}, "timeout_ms": 5000}


def test_a_shell_calls_a_tool(host: Host) -> None:
    host.tool("add", lambda p: {"sum": p["a"], "ä": None}, ADD, description="Adds.\nNumbers.")
    script = """holt-tool add '{"a": 7}'; echo '{"a": 8}' | holt-tool add; holt-tool --list"""
    assert out(host.sh(script)) == '{"sum": 7, "ä": null}\n{"sum": 8, "ä": null}\nadd\tAdds.'
    wrong = host.sh("""holt-tool add '{"a": "x"}'""")
    assert (wrong["exit_code"], wrong["stderr"]) == (1, "holt-tool: [validation_error] $.a: must be an integer\n")
    assert host.sh("holt-tool add '{'")["exit_code"] == 1
    assert host.sh("holt-tool")["exit_code"] == 2


def test_a_shell_s_call_takes_no_python_of_the_session(host: Host) -> None:
    """holt-tool starts no python3, so code in PYTHONPATH or site-packages cannot change the result."""
    host.tool("t", lambda p: "ä")
    script = """mkdir mine; echo 'raise SystemExit("mine")' | tee mine/json.py > mine/sitecustomize.py
PYTHONPATH=$PWD/mine python3 -c pass; PYTHONPATH=$PWD/mine LC_ALL=C holt-tool t '{}'"""
    result = host.sh(script)
    assert (result["exit_code"], result["stdout"]) == (0, '"ä"\n'), result["stderr"]


def test_values_come_through_as_they_are(host: Host) -> None:
    host.tool("echo", lambda p: p["v"])
    values = [0.1, 1e300, -0.0, 3.3333333333333335e21, 5e-324, 2**53 - 1, -7, "ä\n\"\\\x7f", "", None, True, [], {}, [[{"a": [1.5]}]]]
    code = f"import json\nfor v in json.loads({json.dumps(json.dumps(values))}):\n    print(json.dumps(call('echo', dict(v=v))))"
    assert [json.loads(line) for line in out(host.python(code)).splitlines()] == values
    assert out(host.python("print(repr(call('echo', {'v': -0.0})), type(call('echo', {'v': 1.0})).__name__)")) == "-0.0 int"


def test_payload_and_result_are_checked_by_the_schema(host: Host) -> None:
    host.tool("add", lambda p: p["a"], ADD, output_schema={"type": "integer"})
    host.handlers["add"] = lambda p: "seven" if p["a"] == 7 else p["a"]
    cases = {
        "{'a': '1'}": "[validation_error] $.a: must be an integer",
        "{}": "[validation_error] $.a: is missing",
        "{'a': 1, 'c': 1}": "[validation_error] $.c: is not known",
        "{'a': 7}": "[validation_error] result: $: must be an integer",
    }
    for payload, message in cases.items():
        assert failed(host.python(f"call('add', {payload})")) == message
    assert out(host.python("print(call('add', {'a': 1.0}))")) == "1"


def test_bounds_and_references_are_checked(host: Host) -> None:
    """Pydantic and others write schemas in this way."""
    point = {"type": "object", "properties": {"x": {"type": "number", "minimum": 0}, "next": {"$ref": "#/$defs/Point"}}}
    host.tool("draw", lambda p: 1, {"properties": {"from": {"$ref": "#/$defs/Point"}}, "$defs": {"Point": point}})
    assert out(host.python("print(call('draw', {'from': {'x': 1, 'next': {'x': 2}}}))")) == "1"
    wrong = host.python("call('draw', {'from': {'x': 1, 'next': {'x': -2}}})")
    assert failed(wrong) == "[validation_error] $.from.next.x: must be at least 0"


def test_a_client_that_checks_itself(host: Host) -> None:
    """With checked_by_client, holt passes on payloads and results that do not match the schemas."""
    number: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    for checks in (False, True):
        host.tool("t", lambda p: p.get("n"), number, output_schema={"type": "integer"}, checked_by_client=checks)
        for payload in ("{}", "{'n': 'x'}"):
            result = host.python(f"call('t', {payload})")
            assert result["result"] == {"{}": None, "{'n': 'x'}": "'x'"}[payload] if checks else failed(result)
        assert host.python("call('t', {'n': 1})")["result"] == "1"
        assert out(host.python("print(search('t', 'full')[0]['input_schema']['required'])")) == "['n']"


def test_errors_of_a_handler(host: Host, tap: Tap | None) -> None:
    def fail(payload: Json) -> None:
        raise Refused("it broke", **payload)

    host.tool("fail", fail)
    for kind, seen in {"permission_error": None, "validation_error": None, "timeout": "internal_error", "x": "internal_error"}.items():
        assert failed(host.python(f"call('fail', {{'type': {kind!r}}})")) == f"[{seen or kind}] it broke"
    assert failed(host.python("call('fail')")) == "[internal_error] it broke"
    host.handlers["fail"] = lambda p: LATER
    number = host.send("python.run", code="from host_tools import call\ncall('fail')")
    host.until(lambda: len(host.calls) == 6, "it is asked")
    with pytest.raises(Mismatch, match="has no 'value'"):
        host.answer(host.calls[-1], result={"other": 1})
    assert failed(host.result(number)) == '[internal_error] the tool\'s reply has no value: the client must reply {"value": ...}'
    if tap:
        tap.look()  # holt serve passes the wrong reply on


def test_bad_arguments(keeper: Host) -> None:
    keeper.tool("t", lambda p: 1)
    for line, name in {
        "call(1)": "TypeError", "call('')": "ValueError", "call('t', [1])": "TypeError", "call('t', 'x')": "TypeError",
        "call('t', {'a': object()})": "TypeError", "call('t', {'a': float('nan')})": "ValueError",
        "search(1)": "TypeError", "search('t', 'long')": "ValueError",
        "search('t', 1)": "TypeError", "search('t', limit=0)": "ValueError", "search('t', limit=True)": "TypeError",
    }.items():
        assert keeper.python(line)["error"]["name"] == name, line
    assert keeper.python("search('') + search(' \\n')")["result"] == "[]"
    assert failed(keeper.python("call('t', {'a': '\\0'})")).startswith("[validation_error] request:1:")
    deep = keeper.python("deep = 1\nfor _ in range(10000): deep = {'a': deep}\ncall('t', deep)")["error"]
    assert (deep["name"], deep["message"]) == ("ValueError", "the payload nests objects and arrays too deeply")
    assert failed(keeper.python("call('t', {'a': 2**60})")).startswith("[validation_error] request:1:")
    assert out(keeper.python("print(call('t', {}))")) == "1"


def test_keys_are_found_by_other_spellings(keeper: Host) -> None:
    keeper.tool("t", lambda p: {"api_key": "k", "in": [{"User-Id": 3}], "a_b": 1, "a-b": 2})
    result = keeper.python("r = call('t')\nprint(r['apiKey'], r['in'][0]['user_id'], r['a_b'])\nr['aB']")
    assert (result["stdout"], result["error"]["name"]) == ("k 3 1\n", "KeyError")
    assert result["stderr"] == (
        "host_tools: the result has no 'apiKey'; using 'api_key'\n"
        "host_tools: the result has no 'user_id'; using 'User-Id'\n"
    )


FORMS = """
import contextlib, copy, io, json, pickle
def said(function):
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        try: value = function()
        except KeyError as e: value = e
    return repr(value), err.getvalue().count("; using ")
def keywords(**named): return named
def match(value):
    match value:
        case {"other": _}: return "other"
        case {"apiKey": key, "nested": {"USER-ID": number}}: return key, number
r = call("t")
forms = {
    "index": lambda: r["apiKey"], "exact": lambda: r["api_key"], "nested": lambda: r["nested"]["userId"],
    "listed": lambda: r["list"][0][0]["userId"], "two fit": lambda: r["aB"], "one of two": lambda: r["a-b"], "none fits": lambda: r["zz"],
    "get": lambda: r.get("apiKey"), "get none": lambda: (r.get("zz"), r.get("zz", 3), r.get("aB", 4), r.get(5), r.get(None, 6)),
    "in": lambda: ("apiKey" in r, "api_key" in r), "pop": lambda: dict(r).pop("apiKey", 1), "not text": lambda: r[5],
    "match": lambda: match(r), "keywords": lambda: keywords(**r) == r, "dict": lambda: (isinstance(r, dict), r == json.loads(json.dumps(r))),
    "copies": lambda: [c["apiKey"] for c in (r.copy(), copy.copy(r), copy.deepcopy(r), pickle.loads(pickle.dumps(r)))],
    "text": lambda: repr(r) == repr(dict(r)), "or": lambda: {**r, "apiKey": 1}["apiKey"],
}
print(json.dumps({name: said(form) for name, form in forms.items()}))
"""


def test_a_result_is_a_dict_in_every_other_way(keeper: Host) -> None:
    keeper.tool("t", lambda p: {"api_key": "k", "nested": {"user_id": 3}, "list": [[{"user-id": 4}]], "a_b": 1, "a-b": 2})
    assert json.loads(out(keeper.python(FORMS))) == {
        "index": ["'k'", 1], "exact": ["'k'", 0], "nested": ["3", 1], "listed": ["4", 1], "two fit": ["KeyError('aB')", 0],
        "one of two": ["2", 0], "none fits": ["KeyError('zz')", 0], "get": ["'k'", 1], "get none": ["(None, 3, 4, None, 6)", 0],
        "in": ["(False, True)", 0], "pop": ["1", 0], "not text": ["KeyError(5)", 0], "match": ["('k', 3)", 2], "keywords": ["True", 0],
        "dict": ["(True, True)", 0], "copies": ["['k', 'k', 'k', 'k']", 4], "text": ["True", 0], "or": ["1", 0],
    }
    for stderr in ("None", "open('/dev/null', 'w'); sys.stderr.close()"):
        result = keeper.python(f"import sys\nown = sys.stderr\nsys.stderr = {stderr}\nr = call('t')\nprint(r['apiKey'])\nsys.stderr = own")
        assert (result["stdout"], result["error"]) == ("k\n", None)


def test_a_saved_result_keeps_its_class(keeper: Host) -> None:
    keeper.tool("t", lambda p: {"api_key": "k"})
    keeper.python("r = call('t')")
    keeper.call("python.save")
    keeper.call("python.restart")
    keeper.call("python.load")
    assert out(keeper.python("print(r['apiKey'])")) == "k"


def test_search_ranks_by_name_then_description_then_schema(keeper: Host) -> None:
    keeper.tool("get_weather", lambda p: 1, description="What the sky does.", timeout_ms=9)
    keeper.tool("forecast", lambda p: 1, description="Tomorrow's weather.")
    keeper.tool("plan", lambda p: 1, {"type": "object", "properties": {"weather": {"type": "string"}}}, description="A trip.")
    keeper.tool("other", lambda p: 1, description="Something else.")
    code = "import json; print(json.dumps([search('weather'), search('weather', 'full', 1), search('getWeather', limit=1), search('zebra')]))"
    brief, full, camel, none = json.loads(out(keeper.python(code)))
    assert [t["name"] for t in brief] == ["get_weather", "forecast", "plan"]
    assert [set(t) for t in brief] == [{"name", "description", "score"}] * 3
    assert brief[0]["score"] > brief[1]["score"] > brief[2]["score"] > 0
    assert [(t["name"], t["timeout_ms"], t["input_schema"], t["output_schema"]) for t in full] == [("get_weather", 9, {"type": "object"}, None)]
    assert [t["name"] for t in camel] == ["get_weather"] and none == []


def test_search_is_brief_with_long_descriptions(keeper: Host) -> None:
    """The whole description is searched, but not the keywords of JSON schemas."""
    long = {"forecast": " What the sky\n does.\n \nOnly in Europe.", "words": "word " * 100, "chars": "\u00e4" * 1000, "none": " \n\n"}
    schema = {"type": "object", "properties": {"properties": {"description": "An atlas's."}}, "$defs": {"Place": {"title": "x"}}}
    for name, description in long.items():
        keeper.tool(name, lambda p: 1, schema, description=description)
    keeper.tool("tell", lambda p: 1, description="Gives a description.")
    code = "import json; print(json.dumps([search(w) for w in ('europe', 'word', 'chars', 'none', 'description', 'title', 'atlas')]))"
    europe, word, chars, none, description, title, atlas = json.loads(out(keeper.python(code)))
    assert [t["description"] for t in europe] == ["What the sky does. \u2026"]
    assert [t["description"] for t in word] == ["word " * 47 + "word\u2026"]
    assert [t["description"] for t in chars + none] == ["\u00e4" * 240 + "\u2026", ""]
    assert [t["name"] for t in description] == ["tell"] and title == [] and len(atlas) == 4
    code = "import json; print(json.dumps([[t['name'] for t in search(w)] for w in ('properties', 'place')]))"
    assert [len(each) for each in json.loads(out(keeper.python(code)))] == [4, 4]
    assert json.loads(out(keeper.python("import json; print(json.dumps(search('sky', 'full')))")))[0]["description"] == long["forecast"]


# --- time, and who goes away ---


def test_a_call_times_out(host: Host) -> None:
    host.tool("slow", lambda p: LATER, timeout_ms=50)
    host.tool("quick", lambda p: 1)
    assert failed(host.python("call('slow')")) == "[timeout] Tool 'slow' timed out after 50 ms"
    host.until(lambda: [n for n in host.rpc.notes if n["method"] == "tool.cancel"], "it is told")
    assert host.rpc.note("tool.cancel")["call"] == host.calls[0]["params"]["call"]
    host.answer(host.calls[0], result={"value": 1})  # late
    assert out(host.python("print(call('quick'))")) == "1"


def test_a_caller_that_goes_cancels(host: Host) -> None:
    host.tool("slow", lambda p: LATER)
    process = host.call("process.spawn", shell="holt-tool slow '{}'")["id"]
    host.until(lambda: host.calls, "it is asked")
    host.call("process.kill", id=process)
    assert host.rpc.note("tool.cancel")["call"] == "c1"
    host.answer(host.calls[0], result={"value": 1})
    rows = host.call("history.list", name="tool.call")["rows"]
    assert [r["result"] for r in rows] == [{"success": False, "errorType": "cancelled"}]


def test_a_run_that_ends_cancels_its_threads_calls(keeper: Host) -> None:
    keeper.tool("slow", lambda p: LATER)
    code = "import threading, time\nt = threading.Thread(target=lambda: call('slow'))\nt.start()"
    keeper.python(code + "\nwhile not t.is_alive(): pass\nfrom host_tools import _current\nimport host_tools\nwhile not (host_tools._current and host_tools._current.slots): time.sleep(.001)\ntime.sleep(.1)")
    keeper.until(lambda: [n for n in keeper.rpc.notes if n["method"] == "tool.cancel"], "it is told")
    assert failed(keeper.python("t.join()\nimport os; os.environ['HOLT_BRIDGE_TOKEN'] = 'x' * 32\ncall('slow')")).startswith("[permission_error]")


def test_a_timeout_of_the_run_interrupts_a_call(keeper: Host) -> None:
    keeper.tool("slow", lambda p: LATER)
    keeper.tool("quick", lambda p: 5)
    result = keeper.python("x = 1\ncall('slow')", timeout_ms=300)
    assert (result["cause"], result["state_kept"]) == ("timeout", True)
    keeper.until(lambda: [n for n in keeper.rpc.notes if n["method"] == "tool.cancel"], "it is told")
    assert out(keeper.python("print(x, call('quick'))")) == "1 5"


def test_a_client_that_vanishes_fails_its_calls(connect: Connect) -> None:
    host, other = connect(), connect()
    other.tool("slow", lambda p: LATER)
    number = host.send("exec", shell="holt-tool slow '{}'", tools=["slow"])
    other.until(lambda: other.calls, "it is asked")
    other.rpc.close()
    result = host.result(number)
    assert (result["exit_code"], result["stderr"]) == (1, "holt-tool: [internal_error] the client has disconnected\n")
    until(lambda: host.call("tools.list")["tools"] == [], "its tools have gone")
    assert "permission_error" in host.sh("holt-tool slow '{}'", tools=["slow"])["stderr"]


# --- permission to call a tool ---


def test_an_exec_calls_only_the_tools_that_were_named(host: Host) -> None:
    for name in ("a", "b"):
        host.tool(name, lambda p, name=name: name)
    script = "holt-tool a '{}'; holt-tool b '{}'; holt-tool --list"
    one = host.sh(script, tools=["b", "not there yet"])
    assert one["stdout"] == '"b"\nb\tThe tool b.\n'
    assert one["stderr"] == "holt-tool: [permission_error] tool 'a' does not exist, or may not be called from here\n"
    assert host.sh(script, tools=[])["stdout"] == ""
    assert host.sh(script)["stdout"].splitlines()[:2] == ['"a"', '"b"']
    assert failed(host.python("call('a')", tools=["b"])).startswith("[permission_error]")
    assert out(host.python("print(call('a'))")) == "a"
    assert failed(host.python("call('a')", fresh=True, tools=[])).startswith("[permission_error]")


def test_an_exec_calls_its_own_client_s_tools(connect: Connect) -> None:
    """An exec can call another client's tool if the exec names that tool."""
    mine, other = connect(), connect()
    mine.tool("mine", lambda p: "mine")
    other.tool("theirs", lambda p: "theirs")
    script = "holt-tool --list; holt-tool theirs '{}'"
    assert mine.sh(script)["stdout"] == "mine\tThe tool mine.\n"
    for params in ({}, {"fresh": True}):
        assert failed(mine.python("call('theirs')", **params)).startswith("[permission_error] tool 'theirs' does not exist")
        assert out(mine.python("print([t['name'] for t in search('theirs tool mine')])", **params)) == "['mine']"
    named = other.send("exec", shell="holt-tool theirs '{}'; holt-tool mine '{}'", tools=["theirs", "mine"])
    mine.until(lambda: other.until(lambda: other.calls, "it is asked") and mine.calls, "both are asked")
    assert out(other.result(named)) == '"theirs"\n"mine"'
    assert [t["name"] for t in mine.call("tools.list")["tools"]] == ["theirs", "mine"]


def test_a_command_calls_no_tool_once_its_client_has_gone(session: Session, keeper: Host) -> None:
    """A later connection may use the same memory in the keeper; the command cannot call its tools, either."""
    gone = [Host(session.rpc(), {}) for _ in range(20)]
    for number, each in enumerate(gone):
        each.tool(f"t{number}", lambda p: 1)
    script = "until [ -e go ]; do sleep .01; done; holt-tool --list; holt-tool t0 '{}'"
    left = [each.call("process.spawn", shell=script)["id"] for each in gone]
    for each in gone:
        each.rpc.close()
    until(lambda: keeper.call("tools.list")["tools"] == [], "they have gone")
    later = [Host(session.rpc(), {}) for _ in gone]
    for number, each in enumerate(later):
        each.tool(f"t{number}", lambda p: 2)
    keeper.call("files.write", path="/workspace/go", content="")
    for process in left:
        result = keeper.call("process.wait", id=process, output=True)
        assert result["stdout"] == "" and "permission_error" in result["stderr"]


def test_the_environment(keeper: Host) -> None:
    shown = "printf '%s\\n' $HOLT_BRIDGE $PYTHONPATH ${PATH##*:} ${#HOLT_BRIDGE_TOKEN} $HOLT_BRIDGE_TOKEN"
    env = {"PYTHONPATH": "/a:/b"}
    first, second = (keeper.sh(shown, env=env)["stdout"].splitlines() for _ in range(2))
    assert first[:4] == ["/run/holt/bridge.sock", "/run/holt/python:/a:/b", "/run/holt/bin", "32"]
    assert first[4] != second[4]


def test_a_token_dies_with_its_exec(keeper: Host) -> None:
    keeper.tool("t", lambda p: 1)
    token = keeper.sh("echo $HOLT_BRIDGE_TOKEN")["stdout"].strip()
    again = "HOLT_BRIDGE_TOKEN=%s holt-tool t '{}'"
    until(lambda: all(p["state"] == "ended" for p in keeper.call("process.list")["processes"]), "it is gone")
    assert "[permission_error] the token is unknown, or its exec has ended" in keeper.sh(again % token)["stderr"]
    # A process that an exec has left running has the exec's token.
    left = keeper.call("process.spawn", shell="echo $HOLT_BRIDGE_TOKEN; sleep 1000 & disown")["id"]
    keeper.call("process.wait", id=left)
    token = keeper.call("process.wait", id=left, output=True)["stdout"].strip()
    assert out(keeper.sh(again % token)) == "1"
    keeper.call("process.kill", id=left)
    until(lambda: keeper.call("process.list")["processes"][1]["state"] == "ended", "it is gone")
    assert "permission_error" in keeper.sh(again % token)["stderr"]
    token = out(keeper.python("import os; print(os.environ['HOLT_BRIDGE_TOKEN'])"))
    assert "permission_error" in keeper.sh(again % token)["stderr"]


# --- many at once, and processes ---


def test_many_calls_at_once(host: Host) -> None:
    host.tool("double", lambda p: 2 * p["n"])
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(1000) as pool:\n"
        "    got = list(pool.map(lambda n: call('double', {'n': n}), range(1000)))\n"
        "print(got == [2 * n for n in range(1000)])"
    )
    assert out(host.python(code)) == "True"
    assert len(host.calls) == 1000


def test_calls_wait_for_a_client_that_answers_late(host: Host) -> None:
    """There are more calls than a client gets at a time: the others follow as it replies."""
    host.tool("later", lambda p: LATER)
    code = (
        "import threading\n"
        "threads = [threading.Thread(target=call, args=('later', {'n': n, 'x': 'x' * 9000})) for n in range(600)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]; print('all')"
    )
    number = host.send("python.run", code=f"from host_tools import call\n{code}")
    host.until(lambda: len(host.calls) == 256, "as many as at a time")
    host.handlers["later"] = lambda p: p["n"]
    for call in host.calls[:256]:
        host.answer(call, result={"value": "y" * 9000})
    assert out(host.result(number)) == "all"
    assert len({c["params"]["payload"]["n"] for c in host.calls}) == 600


def test_large_calls_both_ways(host: Host) -> None:
    """The two sides never wait for each other."""
    host.tool("echo", lambda p: p)
    code = (
        "import socket; socket.setdefaulttimeout(0.01)\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "payload = {'x': 'x' * 900000}\n"
        "with ThreadPoolExecutor(30) as pool:\n"
        "    got = list(pool.map(lambda n: call('echo', payload) == payload, range(30)))\n"
        "socket.setdefaulttimeout(None)\n"
        "print(all(got))"
    )
    assert out(host.python(code)) == "True"


def test_a_slow_keeper_gets_all_answers(session: Session, sessions: Sessions) -> None:
    """The client has more answers than holt serve keeps; the rest waits in the client."""
    served = Host(sessions.serve(), {"session": "w"})
    served.tool("echo", lambda p: LATER)
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(30) as pool:\n"
        "    got = list(pool.map(lambda n: len(call('echo', {})), range(30)))\n"
        "print(set(got))"
    )
    keeper = session.keeper()
    number = served.send("python.run", code=f"from host_tools import call\n{code}")
    served.until(lambda: len(served.calls) == 30, "all have come")
    os.kill(keeper, signal.SIGSTOP)
    later = threading.Timer(1, os.kill, (keeper, signal.SIGCONT))
    later.start()
    for call in served.calls:
        served.answer(call, result={"value": "y" * 900000})
    assert out(served.result(number)) == "{900000}"
    later.join()


def test_calls_that_time_out_leave_room(host: Host) -> None:
    """More calls time out than a client gets at a time."""
    host.tool("slow", lambda p: LATER, timeout_ms=1)
    host.tool("quick", lambda p: 5)
    code = "for _ in range(600):\n    try: call('slow')\n    except RuntimeError: pass\nprint(call('quick'))"
    assert out(host.python(code)) == "5"


def test_processes_and_forks_call(keeper: Host) -> None:
    keeper.tool("pid", lambda p: p["pid"])
    code = (
        "import os, multiprocessing, subprocess, sys\n"
        "def ask(_=0): return call('pid', {'pid': os.getpid()}) == os.getpid()\n"
        "ask()\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0 if ask() else 1)\n"
        "print(os.waitpid(pid, 0)[1], ask())\n"
        "with multiprocessing.get_context('fork').Pool(3) as pool: print(all(pool.map(ask, range(9))))\n"
        "print(subprocess.run([sys.executable, '-c', 'import host_tools; print(host_tools.call(\"pid\", {\"pid\": 5}))'],"
        " capture_output=True, text=True).stdout)"
    )
    assert out(keeper.python(code)).split() == ["0", "True", "True", "5"]


# --- registering ---


def test_a_client_of_holt_serve_has_its_tools_in_the_next_keeper(sessions: Sessions) -> None:
    """Removed tools are not registered, nor are any in a later session of the same name."""
    sessions.create("w")
    with sessions.serve() as rpc:
        for name in ("kept", "back"):
            rpc("tools.register", session="w", name=name, description="", input_schema={})
        rpc("tools.unregister", session="w", name="back")
        rpc("session.stop", session="w")
        assert [tool["name"] for tool in rpc("tools.list", session="w")["tools"]] == ["kept"]

        rpc("session.stop", session="w")
        sessions(["rm", "w"]).ok()
        sessions.create("w")
        assert rpc("tools.list", session="w")["tools"] == []


def test_tools_are_their_clients(connect: Connect) -> None:
    first, second = connect(), connect()
    first.tool("t", lambda p: 1)
    assert second.refused("tools.register", name="t", description="", input_schema={}).kind == "exists"
    assert second.refused("tools.unregister", name="t").kind == "missing"
    first.tool("t", lambda p: 2, description="Again.", timeout_ms=7)
    assert first.call("tools.list")["tools"] == [
        {"name": "t", "description": "Again.", "input_schema": {"type": "object"}, "output_schema": None, "timeout_ms": 7}
    ]
    first.call("tools.unregister", name="t")
    second.tool("t", lambda p: 3)
    assert second.sh("holt-tool t '{}'")["stdout"] == "3\n"


def test_limits_of_registering(keeper: Host) -> None:
    assert keeper.refused("tools.register", name="a b", description="", input_schema={}).kind == "usage"
    assert keeper.refused("tools.register", name="a", description="", input_schema=[]).code == -32602
    large = {"enum": ["x" * 1000] * 70}
    assert keeper.refused("tools.register", name="a", description="", input_schema=large).kind == "limit"
    for i in range(256):
        keeper.tool(f"t{i}", lambda p: 1)
    assert keeper.refused("tools.register", name="a", description="", input_schema={}).kind == "limit"
    keeper.tool("t7", lambda p: 2)  # replaces the tool of that name


def test_a_schema_that_makes_no_sense_is_refused(keeper: Host) -> None:
    for schemas, said, hint in (
        ({"input_schema": {"properties": {"a": {"type": "intger"}}}},
         'input_schema: $.properties.a.type: no type is called "intger"', 'Did you mean "integer"?'),
        ({"input_schema": {}, "output_schema": {"items": {"$ref": "#/$defs/a"}}},
         "output_schema: $.items.$ref: refers to no schema",
         'Refer to a schema in the same document, such as "#/$defs/NAME" for an entry of "$defs" at its top.'),
    ):
        refused = keeper.refused("tools.register", name="t", description="", **schemas)
        assert (refused.kind, refused.message, refused.hint) == ("usage", said, hint)
    assert keeper.call("tools.list")["tools"] == []


def test_calls_are_noted(host: Host, session: Session) -> None:
    host.tool("t", lambda p: {"r": "ö" * 300}, ADD)
    host.sh("""holt-tool t '{"a": 1}'; holt-tool t '{"a": ""}'; holt-tool u '{}'""")
    rows = [(r["params"], r["result"]) for r in host.call("history.list", name="tool.call")["rows"]]
    exec_id = rows[0][0]["exec"]
    request = {"tool": "t", "exec": exec_id, "requestPreview": '{"a":1}'}
    assert rows[2] == (request, {"success": True, "responsePreview": '{"r":"' + "ö" * 194})
    assert rows[1] == ({**request, "requestPreview": '{"a":""}'}, {"success": False, "errorType": "validation_error"})
    assert rows[0] == ({**request, "tool": "u", "requestPreview": "{}"}, {"success": False, "errorType": "permission_error"})
    audit = [r["detail"] for r in host.call("audit.list", kind="tool")["rows"]]
    assert audit == [{**params, **result} for params, result in rows]


def test_a_result_that_is_too_large_is_an_error_of_its_call(host: Host) -> None:
    host.tool("big", lambda p: "x" * p["n"])
    assert failed(host.python("call('big', {'n': 100_000_000})")) == "[internal_error] the reply is larger than 1 MiB"
    assert out(host.python("print(len(call('big', {'n': 1_000_000})))")) == "1000000"
    assert failed(host.python("call('big', {'n': 'x' * 2_000_000})")) == "[validation_error] the line is longer than 1 MiB"
    assert out(host.python("print(call('big', {'n': 3}))")) == "xxx"
