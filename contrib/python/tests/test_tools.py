# SPDX-License-Identifier: Apache-2.0
"""Typed callables as tools: schemas and values by their hints, and calls from inside."""

from __future__ import annotations

import asyncio
import enum
import functools
import json
import threading
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Literal, Optional, Tuple, TypedDict, Union

import pytest
from conftest import until

from holt import AsyncSandbox, Sandbox, Server, Tool, UsageError, tools
from holt.schema import from_json, schema_of, to_json
from holt._pool import ALL_THREADS, THREADS, Pool
from holt.tools import Tools


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0
    tags: List[str] = field(default_factory=list)


class Row(TypedDict):
    name: str
    size: float


@pytest.mark.parametrize("hint, schema", [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    (List[int], {"type": "array", "items": {"type": "integer"}}),
    (list, {"type": "array"}),
    (Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (Dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Dict[str, Any], {"type": "object"}),
    (dict, {"type": "object"}),
    (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a", 1], {"enum": ["a", 1]}),
    (Color, {"type": "string", "enum": ["red", "blue"]}),
    (Row, {
        "type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "number"}},
        "required": ["name", "size"], "additionalProperties": False,
    }),
    (Point, {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0},
                       "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["x"], "additionalProperties": False,
    }),
])
def test_schemas(hint: Any, schema: Any) -> None:
    assert schema_of(hint) == schema


def test_values_become_what_the_hint_says() -> None:
    assert from_json({"x": 1, "tags": ["a"]}, Point) == Point(1, 0, ["a"])
    assert from_json([{"x": 1}], List[Point]) == [Point(1)]
    assert from_json("red", Optional[Color]) is Color.RED and from_json(None, Optional[Color]) is None
    assert from_json([1, "a"], Tuple[int, str]) == (1, "a")
    assert from_json({"x": 1}, Union[str, Point]) == Point(1)
    assert to_json({"p": Point(1), "c": [Color.BLUE], "t": (1, 2)}) == {
        "p": {"x": 1, "y": 0, "tags": []}, "c": ["blue"], "t": [1, 2],
    }
    with pytest.raises(ValueError, match="be converted to JSON"):
        to_json(object())
    with pytest.raises(ValueError, match="cannot express"):
        schema_of(bytes)


def add(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    return a + b


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def bump(self, by: int) -> int:
        self.count += by
        return self.count

    def __call__(self, word: str) -> str:
        return word * self.count


async def later(text: str, color: Color = Color.RED) -> Dict[str, str]:
    """Waits before it returns."""
    await asyncio.sleep(0.01)
    return {"text": text, "color": color.value}


def test_a_tool_of_a_function() -> None:
    tool = Tool.of(add)
    assert (tool.name, tool.description, tool.timeout_ms) == ("add", "Adds two numbers.", 30000)
    assert tool.input_schema == {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}}, "required": ["a"],
        "additionalProperties": False,
    }
    assert tool.output_schema == {"type": "integer"} and tool.handler({"a": 1}) == 3
    assert "title" not in json.dumps(tool.input_schema)
    counter = Counter()
    assert Tool.of(counter.bump).handler({"by": 3}) == 3
    assert Tool.of(counter, name="repeat").handler({"word": "ab"}) == "ababab"
    assert Tool.of(functools.partial(add, b=5), name="add5").input_schema["required"] == ["a"]
    assert asyncio.run(Tool.of(later).handler({"text": "x"})) == {"text": "x", "color": "red"}


def test_functions_without_hints_are_refused_as_tools() -> None:
    def untyped(a) -> int:  # type: ignore[no-untyped-def]
        return 1

    def starred(*a: int) -> int:
        return 1

    def keywords(**a: int) -> int:
        return 1

    for function in (untyped, starred, keywords, lambda: 1):
        with pytest.raises(ValueError):
            Tool.of(function)
    with pytest.raises(UsageError, match="two tools"):
        Sandbox(tools=[add, add])
    with pytest.raises(UsageError, match="callable"):
        Sandbox(tools=["add"])  # type: ignore[list-item]


# --- with a real session ---

USE = "from host_tools import call, search\n"


@pytest.mark.usefixtures("bridge")
class TestBridge:
    def test_calls_from_python_and_bash(self) -> None:
        counter = Counter()
        with Sandbox(tools=[add, later, counter.bump]) as box:
            assert box.python(USE + "call('add', {'a': 40})").check().result == "42"
            assert box.python("call('later', {'text': 'x', 'color': 'blue'})").result == "{'text': 'x', 'color': 'blue'}"
            assert box.bash("holt-tool bump '{\"by\": 2}'").check().stdout.strip() == "2"
            assert counter.count == 2
            assert box.python("[t['name'] for t in search('adds numbers')]").result == "['add']"
            assert [row.params["tool"] for row in box.history(name="tool.call")] == ["bump", "later", "add"]

    def test_a_tool_that_is_refused_changes_nothing(self) -> None:
        wrong = replace(Tool.of(add), input_schema={"type": "strnig"}, handler=lambda payload: "wrong")
        other = replace(wrong, name="other")
        with pytest.raises(UsageError, match="^the tool 'other': input_schema: .*strnig") as raised:
            Sandbox(tools=[add, other])
        assert raised.value.args == (raised.value.message,)
        with Sandbox(tools=[add]) as box:
            for tool in (wrong, other):
                with pytest.raises(UsageError, match=f"^the tool '{tool.name}': "):
                    box.add_tool(tool)
            assert box.bash("holt-tool add '{\"a\": 40}'").check().stdout == "42\n"
            assert [name for session, name in Tools.of(box._server)._tools if session == box.name] == ["add"]

    def test_results_that_no_message_can_have(self) -> None:
        values: "dict[str, Any]" = {"nan": float("nan"), "nul": "a\0b", "half": "\ud800", "big": 2**70}

        def give(key: str) -> Any:
            return values[key]

        def fail() -> int:
            raise ValueError("a\0b\udcff")

        with Sandbox(tools=[give, fail]) as box:
            box.python(USE)
            for key, why in (("nan", "JSON has no number nan"), ("nul", "a NUL"), ("half", "half of a surrogate pair"), ("big", "2^53 - 1")):
                error = box.python(f"call('give', {{'key': {key!r}}})").error
                assert error and error.message.startswith("[internal_error] the tool's result: ") and why in error.message
            error = box.python("call('fail', {})").error
            assert error and error.message == "[internal_error] ValueError: a\ufffdb?"

    def test_errors_have_their_type(self) -> None:
        def broken(x: int) -> int:
            raise KeyError("no")

        def wrong(x: int) -> int:
            return "text"  # type: ignore[return-value]

        with Sandbox(tools=[add, broken, wrong]) as box:
            box.python(USE)
            for code, text in (
                ("call('add', {'a': 'x'})", "[validation_error]"),
                ("call('wrong', {'x': 1})", "[validation_error]"),
                ("call('broken', {'x': 1})", "[internal_error] KeyError: 'no'"),
                ("call('none', {})", "[permission_error]"),
            ):
                error = box.python(code).error
                assert error and error.name == "RuntimeError" and error.message.startswith(text)

    def test_a_call_may_use_only_its_own_tools(self) -> None:
        with Sandbox(tools=[add]) as box:
            refused = box.python(USE + "call('add', {'a': 1})", tools=[])
            assert refused.error and "[permission_error]" in refused.error.message
            box.add_tool(later)
            assert box.python("call('later', {'text': 'y'})['text']").result == "'y'"
            box.remove_tool("later")
            assert "[permission_error]" in str(box.python("call('later', {'text': 'y'})").error)

    def test_coroutines_run_in_the_caller_s_loop(self) -> None:
        async def main() -> None:
            loops = []

            async def where(x: int) -> int:
                loops.append(asyncio.get_running_loop())
                return x

            async with AsyncSandbox(tools=[where]) as box:
                assert (await box.python(USE + "call('where', {'x': 1})")).result == "1"
            assert loops == [asyncio.get_running_loop()]

        asyncio.run(main())


def tool_call(number: str, session: str, call: str) -> str:
    """Messages of a fake server."""
    params = {"session": session, "name": "slow", "payload": {}, "call": call, "exec": "p1", "timeout_ms": 30000}
    return f"say({{'id': {number!r}, 'method': 'tool.call', 'params': {params!r}}})"


CANCEL = "say({{'method': 'tool.cancel', 'params': {{'session': {!r}, 'call': {!r}}}}})"
BEGIN = "asked = hear()"
DONE = "say({'id': asked['id'], 'result': {}})"
NEXT_ANSWER = "answered = value(); say({'id': hear()['id'], 'result': answered['id']})"


def slow_tool(go: threading.Event, called: "list[int]") -> Tool:
    def slow() -> None:
        called.append(1)
        go.wait(60)

    return Tool.of(slow)


def test_each_session_counts_its_own_calls(fake: Callable[..., Server]) -> None:
    """A session, or code in it, can cancel only its own calls."""
    go, called = threading.Event(), []  # type: threading.Event, list[int]
    server = fake("\n".join([
        BEGIN, tool_call("ta", "a", "c1"), tool_call("tb", "b", "c1"), CANCEL.format("a", "c1"), DONE, NEXT_ANSWER,
    ]))
    for session in "ab":
        Tools.of(server).put(session, slow_tool(go, called))
    server.call("x")
    go.set()
    assert server.call("y") == "tb"


def test_calls_that_are_given_up_do_not_pile_up(fake: Callable[..., Server]) -> None:
    """Code inside calls tools and disconnects again and again, while all threads are busy."""
    go, called = threading.Event(), []  # type: threading.Event, list[int]
    server = fake("\n".join([
        BEGIN, *(tool_call(f"t{n}", "a", f"c{n}") for n in range(THREADS)),
        "for n in range(1000, 3000):",
        "    " + tool_call("t%d", "a", "c%d").replace("'t%d'", "f't{n}'").replace("'c%d'", "f'c{n}'"),
        "    " + CANCEL.format("a", "c%d").replace("'c%d'", "f'c{n}'"),
        DONE, f"for _ in range({THREADS}): value()", "say({'id': hear()['id'], 'result': 1})",
        tool_call("t9999", "a", "c9999"), NEXT_ANSWER,
    ]))
    Tools.of(server).put("a", slow_tool(go, called))
    server.call("x")
    go.set()
    server.call("y")
    assert server.call("z") == "t9999"
    assert len(called) == THREADS + 1


class Textless(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_exceptions_without_a_text_do_not_use_up_the_threads() -> None:
    def fail() -> None:
        raise Textless()

    def works() -> str:
        return "still"

    with Sandbox(tools=[fail, works], timeout="60s") as box:
        for _ in range(THREADS + 1):
            assert "[internal_error] Textless" in box.bash("holt-tool fail '{}'").stderr
        assert box.bash("holt-tool works '{}'").stdout == '"still"\n'


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_that_fails_does_not_end_a_thread_of_the_pool() -> None:
    def fail() -> None:
        raise SystemExit

    pool, done = Pool("test"), threading.Event()
    for _ in range(THREADS + 1):
        pool.submit(fail)
    pool.submit(done.set)
    assert done.wait(60)


def test_slow_work_of_one_sandbox_does_not_hold_up_others() -> None:
    pool, go_on, begun, done = Pool("test"), threading.Event(), [], []  # type: Pool, threading.Event, List[str], List[str]

    def work(owner: str) -> None:
        begun.append(owner)
        assert go_on.wait(60)
        done.append(owner)

    for owner in ("a", "b", "c", "d", "e", "f"):
        for _ in range(2 * THREADS):
            pool.submit(lambda owner=owner: work(owner), owner)  # type: ignore[misc]
    until(lambda: len(begun) == ALL_THREADS + 2, "all that may run at once run")
    assert [begun.count(owner) for owner in "abcdef"] == [THREADS] * 4 + [1, 1]
    quick = threading.Event()
    pool.submit(quick.set, "g")
    assert quick.wait(60)
    pool.submit(lambda: None, "a", "late")
    assert pool.withdraw("a", "late") and not pool.withdraw("a", "late")
    go_on.set()
    until(lambda: len(done) == 12 * THREADS, "all have run")
    until(lambda: pool._threads == pool._idle == THREADS, "the others have ended")
    assert not pool._running and not pool._waiting and pool._busy == 0


def test_slow_tools_of_one_sandbox_do_not_hold_up_others() -> None:
    go_on = threading.Event()

    def slow() -> None:
        go_on.wait(60)

    def quick() -> str:
        return "here"

    server = Server()
    with Sandbox(tools=[slow], server=server) as box, Sandbox(tools=[quick], server=server) as other:
        calls = box.spawn(f"for n in $(seq {THREADS}); do holt-tool slow '{{}}' & echo $n; done; wait")
        running = tools._pool._running
        until(lambda: THREADS in running.values(), "each thread of the sandbox is busy")
        assert other.bash("holt-tool quick '{}'", timeout=30).stdout == '"here"\n'
        go_on.set()
        calls.kill()
    server.close()
