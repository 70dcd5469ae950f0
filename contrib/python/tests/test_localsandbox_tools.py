# SPDX-License-Identifier: Apache-2.0
"""Tools of a LocalSandbox: their schemas, and how arguments and results are converted and checked."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import pathlib
import time
import types
import uuid
from typing import Annotated, Any, Callable, Dict, List, Literal, Optional, Set, Tuple, TypedDict, Union

import pytest

from holt import Tool, ToolError
from holt.localsandbox import (
    LocalSandbox,
    PythonToolset,
    ToolDefinition,
    _convert,
    function_to_tool_definition,
    functions_to_toolset,
)

Handler = Callable[[Any], Any]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 1.5


class Row(TypedDict):
    name: str


@dataclasses.dataclass
class Ge:
    """Like annotated_types.Ge."""

    ge: int


@dataclasses.dataclass
class Le:
    le: int


@dataclasses.dataclass
class Length:
    min_length: int
    max_length: int


@dataclasses.dataclass
class Field:
    """Like a Field of pydantic 2, whose constraints are in metadata."""

    metadata: List[Any]
    description: Optional[str] = None


def same(hint: Any) -> Callable[..., Any]:
    """Returns a tool that returns its argument."""
    def tool(x: Any) -> Any:
        return x

    tool.__annotations__ = {"x": hint, "return": hint}
    return tool


def handler(function: Callable[..., Any]) -> Handler:
    toolset = functions_to_toolset([function])
    return next(iter(toolset.handlers.values()))


def schema(hint: Any) -> Dict[str, Any]:
    properties: Dict[str, Dict[str, Any]] = function_to_tool_definition(same(hint)).input_schema["properties"]
    return properties["x"]


# --- schemas ---


def test_schemas_keep_defaults() -> None:
    def tool(
        name: str, limit: int = 3, color: Color = Color.BLUE, tags: Optional[List[str]] = None, ratio: float = 0.5,
        when: datetime.date = datetime.date(2020, 1, 2), point: Point = Point(1), odd: object = object(),
        inf: float = float("inf"), big: int = 2**60,
    ) -> str:
        return ""

    definition = function_to_tool_definition(tool)
    defaults = {name: each["default"] for name, each in definition.input_schema["properties"].items() if "default" in each}
    assert defaults == {
        "limit": 3, "color": "blue", "tags": None, "ratio": 0.5, "when": "2020-01-02", "point": {"x": 1, "y": 1.5},
    }
    assert definition.input_schema["required"] == ["name"]
    assert schema(Point)["properties"]["y"] == {"type": "number", "default": 1.5}


@pytest.mark.parametrize("hint, expected", [
    (Annotated[int, Ge(1), Le(5)], {"type": "integer", "minimum": 1, "maximum": 5}),
    (Annotated[int, Field([Ge(1), Le(5)], "So many.")], {
        "type": "integer", "minimum": 1, "maximum": 5, "description": "So many."}),
    (Annotated[Optional[int], Ge(1)], {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}),
    (List[Annotated[str, Length(1, 2)]], {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 2}}),
    (Annotated[List[str], Length(1, 2)], {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}),
    (Annotated[Dict[str, int], Length(1, 2)], {
        "type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 2}),
    (Annotated[int, Le(2**63)], {"type": "integer"}),  # too large for a message
    (Annotated[str, Ge(1), "said"], {"type": "string", "description": "said"}),
    (datetime.datetime, {"type": "string", "format": "date-time"}), (uuid.UUID, {"type": "string", "format": "uuid"}),
    (decimal.Decimal, {"anyOf": [{"type": "number"}, {"type": "string"}]}),
])
def test_schemas_keep_constraints(hint: Any, expected: Dict[str, Any]) -> None:
    assert schema(hint) == expected


def test_schemas_of_fields() -> None:
    pydantic = pytest.importorskip("pydantic")
    field = pydantic.Field
    assert schema(Annotated[int, field(ge=1, le=5)]) == {"type": "integer", "minimum": 1, "maximum": 5}
    assert schema(Annotated[float, field(gt=0, lt=1, multiple_of=0.25, description="d")]) == {
        "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.25, "description": "d",
    }
    assert schema(Annotated[str, field(min_length=2, max_length=3)]) == {
        "type": "string", "minLength": 2, "maxLength": 3,
    }
    assert schema(pydantic.conint(ge=1)) == schema(Annotated[int, field(ge=1)])
    assert schema(pydantic.constr(min_length=1)) == {"type": "string", "minLength": 1}

    def tool(a: int = field(3, ge=1), b: int = field(..., le=9), c: List[int] = field(default_factory=list)) -> List[Any]:
        return [a, b, c]

    tool.__annotations__ = {"a": int, "b": int, "c": List[int], "return": List[Any]}
    definition = function_to_tool_definition(tool)
    assert definition.input_schema["required"] == ["b"]
    assert definition.input_schema["properties"]["a"] == {"type": "integer", "minimum": 1, "default": 3}
    for made in (handler(tool), Tool.of(tool).handler):
        assert made({"b": 9}) == [3, 9, []] == made({"b": 9})
        with pytest.raises(ToolError, match="greater than or equal to 1"):
            made({"a": 0, "b": 1})


def test_models_keep_defaults_and_constraints() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Order(pydantic.BaseModel):
        id: int = pydantic.Field(..., ge=1)
        note: str = "none"

    assert schema(Order) == {
        "type": "object", "required": ["id"], "additionalProperties": False,
        "properties": {"id": {"type": "integer", "minimum": 1}, "note": {"type": "string", "default": "none"}},
    }
    assert handler(same(Order))({"x": {"id": "2"}}) == {"id": 2, "note": "none"}
    with pytest.raises(ToolError, match=r"x\.id: .*greater than or equal to 1") as error:
        handler(same(Order))({"x": {"id": 0}})
    assert error.value.type == "validation_error"


# --- arguments and results ---


@pytest.mark.parametrize("hint, given, expected", [
    (int, "5", 5), (int, 5.0, 5), (int, True, 1), (int, " 7 ", 7), (int, "1.0", 1),
    (float, "1.5", 1.5), (float, 2, 2.0), (bool, "yes", True), (bool, 0, False), (bool, "OFF", False),
    (str, "x", "x"), (type(None), None, None), (Any, {"a": 1}, {"a": 1}),
    (List[int], ["1", 2], [1, 2]), (Set[int], ["1", 1], [1]), (Tuple[int, str], ["1", "a"], [1, "a"]),
    (Dict[str, int], {"a": "1"}, {"a": 1}), (Dict[int, str], {"1": "a"}, {"1": "a"}),
    (Optional[int], "5", 5), (Optional[int], None, None), (Union[int, str], "5", "5"), (Union[float, int], 1, 1),
    (Union[int, List[int]], ["1"], [1]), (Literal["a", 1], "a", "a"), (Color, "red", "red"),
    (Point, {"x": "1"}, {"x": 1, "y": 1.5}), (Row, {"name": "n", "more": 1}, {"name": "n"}),
    (pathlib.PurePosixPath, "/a/b", "/a/b"),
    (datetime.datetime, "2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"), (datetime.datetime, 1577934245, "2020-01-02T03:04:05Z"),
    (datetime.date, "2020-01-02", "2020-01-02"), (datetime.timedelta, "PT1.5S", "PT1.5S"),
    (uuid.UUID, "12345678123456781234567812345678", "12345678-1234-5678-1234-567812345678"),
    (decimal.Decimal, "1.50", "1.50"), (decimal.Decimal, 1.5, "1.5"),
    (Annotated[int, Ge(1), Le(5)], "5", 5),
])
def test_values_are_converted(hint: Any, given: Any, expected: Any) -> None:
    made = handler(same(hint))({"x": given})
    assert made == expected and type(made) is type(expected)


@pytest.mark.parametrize("hint, given, words", [
    (int, "x", "x: Input should be a valid integer, unable to parse string as an integer"),
    (int, 1.5, "x: Input should be a valid integer, got a number with a fractional part"),
    (int, None, "x: Input should be a valid integer"), (int, [], "x: Input should be a valid integer"),
    (str, 5, "x: Input should be a valid string"), (float, "x", "x: Input should be a valid number"),
    (bool, "maybe", "x: Input should be a valid boolean, unable to interpret input"),
    (List[int], ["1", "x", None], "x.1: Input should be a valid integer, unable to parse string as an integer; x.2: "),
    (List[int], "12", "x: Input should be a valid list"), (Dict[str, int], [], "x: Input should be a valid dictionary"),
    (Point, {"y": 1}, "x.x: Field required"), (Row, {}, "x.name: Field required"),
    (Color, "green", "x: Input should be 'red' or 'blue'"), (Literal["a", "b", 1], "c", "x: Input should be 'a', 'b' or 1"),
    (Tuple[int, int], [1, 2, 3], "x: Tuple should have at most 2 items after validation, not 3"),
    (Union[int, List[int]], "x", "x.int: Input should be a valid integer"),
    (datetime.date, "x", "x: Input should be a valid date"), (uuid.UUID, "x", "x: Input should be a valid UUID"),
])
def test_values_that_do_not_fit(hint: Any, given: Any, words: str) -> None:
    with pytest.raises(ToolError) as error:
        handler(same(hint))({"x": given})
    assert words in str(error.value) and error.value.type == "validation_error"


@pytest.mark.parametrize("hint, given, words", [
    ("int, ge=1, le=5", 9, "x: Input should be less than or equal to 5"),
    ("int, ge=1, le=5", 0, "x: Input should be greater than or equal to 1"),
    ("int, gt=1, lt=5", 5, "x: Input should be less than 5"), ("int, gt=1", 1, "x: Input should be greater than 1"),
    ("int, multiple_of=3", 4, "x: Input should be a multiple of 3"),
    ("str, min_length=2", "a", "x: String should have at least 2 characters"),
    ("str, max_length=1", "ab", "x: String should have at most 1 character"),
    ("Optional[int], ge=1", 0, "x: Input should be greater than or equal to 1"),
])
def test_constraints_are_checked(hint: str, given: Any, words: str) -> None:
    pydantic = pytest.importorskip("pydantic")
    kind, _, constraints = hint.partition(", ")
    made = same(Annotated[eval(kind), eval(f"pydantic.Field({constraints})")])  # type: ignore[misc]
    for each in (handler(made), Tool.of(made).handler):
        with pytest.raises(ToolError) as error:
            each({"x": given})
        assert words.partition(": ")[2] in str(error.value)


def test_arguments_that_are_missing_or_too_many() -> None:
    def tool(a: int, b: int = 2) -> int:
        return a + b

    made = handler(tool)
    assert made({"a": "1"}) == 3
    for payload, words in (
        ({}, "a: Missing required argument"), (None, "a: Missing required argument"),
        ({"a": 1, "c": 2}, "c: Unexpected keyword argument"),
        ({"b": "x", "c": 2}, "c: Unexpected keyword argument; a: Missing required argument; b: Input should be"),
    ):
        with pytest.raises(ToolError) as error:
            made(payload)
        assert words in str(error.value)


def test_results_are_checked_and_converted() -> None:
    def tool(x: Any) -> List[int]:
        return x  # type: ignore[no-any-return]

    assert handler(tool)({"x": ["1", 2.0]}) == [1, 2] and handler(tool)({"x": []}) == []
    with pytest.raises(ToolError, match="^result: 0: Input should be a valid integer") as error:
        handler(tool)({"x": ["a"]})
    assert error.value.type == "validation_error"

    def none(x: int) -> None:
        return x  # type: ignore[return-value]

    with pytest.raises(ToolError, match="^result: .*None"):
        handler(none)({"x": 1})

    async def later(x: int) -> str:
        return x  # type: ignore[return-value]

    with pytest.raises(ToolError, match="^result: Input should be a valid string"):
        asyncio.run(handler(later)({"x": 1}))

    def untyped(x: int):  # type: ignore[no-untyped-def]
        return {"at": datetime.date(2020, 1, 2), "points": (Point(x),)}

    assert handler(untyped)({"x": 1}) == {"at": "2020-01-02", "points": [{"x": 1, "y": 1.5}]}


def test_a_value_error_of_the_function_is_not_a_validation_error() -> None:
    def tool(x: int) -> int:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="^mine$"):
        handler(tool)({"x": 1})


def test_without_pydantic_the_rules_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_convert._pydantic, "adapter_of", lambda hint: None)
    for check in (test_values_are_converted, test_values_that_do_not_fit):
        (mark,) = check.pytestmark  # type: ignore[attr-defined]
        for arguments in mark.args[1]:
            check(*arguments)
    test_arguments_that_are_missing_or_too_many()
    test_results_are_checked_and_converted()


@dataclasses.dataclass
class Deep:
    below: Union[int, "Deep", None] = None


def test_hostile_values_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads come from inside, and are converted in this program."""
    monkeypatch.setattr(_convert._pydantic, "adapter_of", lambda hint: None)
    deep: Any = "x"
    for _ in range(55):
        deep = {"below": deep}
    for hint, given in ((Deep, deep), (int, "9" * 1_000_000), (int, "_".join("9" * 500_000) + "x"), (datetime.datetime, "1" * 10**6)):
        started = time.monotonic()
        with pytest.raises(ToolError) as error:
            handler(same(hint))({"x": given})
        assert time.monotonic() - started < 20 and error.value.type == "validation_error"


def test_pydantic_2_converts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake pydantic 2, with the used parts of its adapters."""

    class Invalid(ValueError):
        def errors(self) -> List[Dict[str, Any]]:
            return [{"loc": ("a", 0), "msg": "Input should be even"}, {"loc": (), "msg": "and odd"}]

    class TypeAdapter:
        def __init__(self, hint: Any) -> None:
            if hint is not int:
                raise TypeError("unknown")

        def validate_python(self, value: Any) -> Any:
            if value % 2:
                raise Invalid()
            return ("made", value)

        def dump_python(self, value: Any, mode: str, by_alias: bool) -> Any:
            assert mode == "json" and by_alias
            return ["dumped", *value]

    class Other(Exception):
        pass

    fake = types.SimpleNamespace(
        TypeAdapter=TypeAdapter, PydanticUserError=Other, errors=types.SimpleNamespace(PydanticUndefinedAnnotation=Other)
    )
    monkeypatch.setattr(_convert._pydantic, "version_2", lambda: fake)
    known, unknown = _convert.Converter(int), _convert.Converter(str)
    assert known.read(2) == ("made", 2) and known.json_of(2) == ["dumped", "made", 2]
    with pytest.raises(_convert.Mismatch, match="^a.0: Input should be even; and odd$"):
        known.json_of(1)
    assert unknown.json_of(b"text") == "text"


# --- in a sandbox ---


@pytest.mark.usefixtures("bridge")
@pytest.mark.parametrize("runtime", ["pyodide", "monty"])
def test_calls_convert_and_check(runtime: str) -> None:
    def repeat(text: str, times: Annotated[int, Ge(1), Le(5)] = 2) -> List[str]:
        """Repeats."""
        return [text] * times

    repeat.__annotations__ = {"text": str, "times": Annotated[int, Ge(1), Le(5)], "return": List[str]}
    calls = {
        "text='a', times='3'": "['a', 'a', 'a']", "text='a'": "['a', 'a']",
        "text='a', times=9": "[validation_error] times: Input should be less than or equal to 5",
        "text=1": "[validation_error] text: Input should be a valid string",
        "times=1": "[validation_error] text: Missing required argument",
        "text='a', more=1": "[validation_error] more: Unexpected keyword argument",
    }
    with LocalSandbox(python_runtime=runtime) as local:
        start = "" if runtime == "monty" else "from host_tools import call\ndef repeat(**given): return call('repeat', given)\n"
        for arguments, expected in calls.items():
            done = local.execute_python(
                f"{start}try: print(repeat({arguments}))\nexcept RuntimeError as error: print(error)", toolset=[repeat]
            )
            assert (done.stdout, done.error) == (expected + "\n", None)
        look = "search" if runtime == "pyodide" else "tool_search"
        start = "from host_tools import search\n" if runtime == "pyodide" else ""
        done = local.execute_python(f"{start}print({look}('repeat', 'full')[0]['input_schema']['properties'])", toolset=[repeat])
        assert eval(done.stdout)["times"] == {"type": "integer", "minimum": 1, "maximum": 5, "default": 2}
        kinds = {e.result.get("errorType") for e in local.history() if e.name == "python_tool_call" and e.result}
        assert kinds == {None, "validation_error"}


@pytest.mark.usefixtures("bridge")
def test_definitions_of_one_s_own_are_checked_by_their_schemas(local: LocalSandbox) -> None:
    def taken(payload: Any) -> Any:
        return payload

    schema = {
        "type": "object", "required": ["a"], "additionalProperties": False,
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"enum": ["x", "y"]}}},
    }
    toolset = PythonToolset([ToolDefinition("taken", "", schema)], {"taken": taken})
    code = "from host_tools import call\ntry: print(call('taken', {}))\nexcept RuntimeError as error: print(error)"
    for payload, expected in {
        "{'a': 1, 'b': ['x']}": "{'a': 1, 'b': ['x']}", "{'a': '1'}": "[validation_error] $.a: must be an integer",
        "{}": "[validation_error] $.a: is missing", "{'a': 1, 'b': ['z']}": '[validation_error] $.b[0]: must be "x" or "y"',
        "{'a': 1, 'c': 1}": "[validation_error] $.c: ",
    }.items():
        assert local.execute_python(code.replace("{}", payload), toolset=toolset).stdout.startswith(expected)


def test_definitions_can_be_changed() -> None:
    definition = ToolDefinition("a", "", {"type": "object"})
    definition.timeout_ms = 50
    toolset = PythonToolset([definition], {"a": lambda payload: 1})
    assert toolset.tools()[0].timeout_ms == 50 and not toolset.tools()[0].checked_by_client
