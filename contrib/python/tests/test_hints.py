# SPDX-License-Identifier: Apache-2.0
"""Type hints of tools: their schemas, and values from JSON."""

from __future__ import annotations

import asyncio
import enum
import functools
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Dict, List, Literal, NewType, Optional, Tuple, TypedDict, Union

import pytest

from holt import Sandbox, Tool, ToolError
from holt.schema import from_json, schema_of, to_json


if TYPE_CHECKING or sys.version_info < (3, 11):
    from typing_extensions import NotRequired, Required
else:
    from typing import NotRequired, Required


@dataclass
class Node:
    name: str
    children: List[Node] = field(default_factory=list)


@dataclass
class Twin:
    of: Optional[Twin] = None


Twin.__name__ = "Node"


class Chain(TypedDict):
    link: Node
    next: Optional[Chain]


def test_tuples_have_so_many_items() -> None:
    pair = {
        "type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2,
    }
    assert schema_of(Tuple[int, str]) == pair
    assert schema_of(Tuple[()]) == {"type": "array", "minItems": 0, "maxItems": 0}
    assert schema_of(tuple) == schema_of(Tuple) == {"type": "array"}
    assert from_json([1, "a"], Tuple[int, str]) == (1, "a") and from_json([1, 2], Tuple[int, ...]) == (1, 2)
    assert from_json([1, "a", None], tuple) == (1, "a", None) and from_json([], Tuple[()]) == ()
    wrongs: List[List[Any]] = [[1], [1, "a", 3]]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=f"2 items, not {len(wrong)}"):
            from_json(wrong, Tuple[int, str])
    assert from_json([1, 2], Union[Tuple[int], Tuple[int, int]]) == (1, 2)


@pytest.mark.usefixtures("bridge")
def test_holt_checks_tuples(box: Sandbox) -> None:
    def swap(pair: Tuple[int, str]) -> Tuple[str, int]:
        return pair[1], pair[0]

    box.add_tool(swap)
    call = "from host_tools import call; call('swap', {{'pair': {}}})"
    assert box.python(call.format([1, "a"])).check().result == "['a', 1]"
    for wrong in ([1], ["a", 1], [1, "a", 3, 4]):
        error = box.python(call.format(wrong)).error
        assert error and "[validation_error]" in error.message and "$.pair" in error.message


def test_types_that_have_themselves_in_them() -> None:
    node = {
        "type": "object", "required": ["name"], "additionalProperties": False,
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    }
    assert schema_of(Node) == {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    chain: Any = schema_of(Chain)
    assert chain["$ref"] == "#/$defs/Chain" and chain["$defs"]["Node"] == node
    assert chain["$defs"]["Chain"]["properties"]["link"] == {"$ref": "#/$defs/Node"}
    value = {"name": "a", "children": [{"name": "b"}]}
    assert from_json(value, Node) == Node("a", [Node("b")])
    assert to_json(Node("a", [Node("b")])) == {"name": "a", "children": [{"name": "b", "children": []}]}

    @dataclass
    class Local:
        more: Optional[Local] = None

    assert from_json({"more": {}}, Local) == Local(Local()) and "$defs" in schema_of(Local)
    both: Any = schema_of(Tuple[Node, Twin])
    assert both["prefixItems"] == [{"$ref": "#/$defs/Node"}, {"$ref": "#/$defs/Node_"}] and len(both["$defs"]) == 2


@pytest.mark.usefixtures("bridge")
def test_holt_checks_types_that_have_themselves_in_them(box: Sandbox) -> None:
    def count(tree: Node, other: Optional[Node] = None) -> int:
        return 1 + sum(count(each) for each in tree.children)

    def mirror(tree: Node) -> Node:
        return Node(tree.name[::-1], [mirror(each) for each in tree.children])

    schema = Tool.of(count).input_schema
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Node"} and list(schema["$defs"]) == ["Node"]
    box.add_tool(count)
    box.add_tool(mirror)
    call = "from host_tools import call; call({!r}, {!r})"
    tree: Dict[str, Any] = {"name": "ab", "children": [{"name": "cd", "children": [{"name": "ef"}]}]}
    assert box.python(call.format("count", {"tree": tree})).check().result == "3"
    assert "'fe'" in str(box.python(call.format("mirror", {"tree": tree})).check().result)
    tree["children"][0]["children"][0]["name"] = 1
    error = box.python(call.format("count", {"tree": tree})).error
    assert error and "$.tree.children[0].children[0].name" in error.message


def test_paths() -> None:
    assert schema_of(Path) == schema_of(Union[str, Path]) == {"type": "string"}
    assert from_json("a/b", PurePosixPath) == PurePosixPath("a/b") and to_json(Path("a")) == "a"
    assert from_json("a", Union[str, Path]) == "a" and from_json("a", Optional[Path]) == Path("a")


class Part(TypedDict):
    name: str
    note: NotRequired[str]


class Options(TypedDict, total=False):
    name: Required[str]
    size: int


def test_required_keys_of_a_typed_dict() -> None:
    assert schema_of(Part)["required"] == schema_of(Options)["required"] == ["name"]


class Sort(enum.Enum):
    UP = "up"
    DOWN = "down"


@dataclass
class Cat:
    kind: Literal["cat"]
    lives: int


@dataclass
class Dog:
    kind: Literal["dog"]
    lives: int


@dataclass
class Named:
    lives: str


def test_a_member_of_a_union_is_told_by_what_is_in_it() -> None:
    dog = {"kind": "dog", "lives": 1}
    assert from_json(dog, Union[Cat, Dog]) == Dog("dog", 1) and from_json([dog], Union[List[Cat], List[Dog]]) == [Dog("dog", 1)]
    assert from_json({"a": dog}, Union[Dict[str, Cat], Dict[str, Dog]]) == {"a": Dog("dog", 1)}
    assert from_json([dog], Union[Tuple[Cat], Tuple[Dog, ...]]) == (Dog("dog", 1),)
    assert from_json({"lives": "nine"}, Union[Cat, Node, Named]) == Named("nine")


def test_literals_enums_and_new_types_keep_their_values() -> None:
    up = Literal[Sort.UP, "both", 1]
    assert schema_of(up) == {"enum": ["up", "both", 1]} and schema_of(Literal[Sort.UP]) == {"type": "string", "enum": ["up"]}
    assert [from_json(each, up) for each in ("up", "both", 1)] == [Sort.UP, "both", 1]
    assert schema_of(NewType("Id", int)) == {"type": "integer"}
    names = {1: 2}, {Sort.UP: 2}, {"a": 2}
    for value, hint in zip(names, (int, Sort, str)):
        assert from_json(to_json(value), Dict[hint, int]) == value  # type: ignore[valid-type]
    assert to_json({Sort.UP: 2}) == {"up": 2}
    with pytest.raises(ValueError):
        from_json({"one": 2}, Dict[int, int])


@dataclass
class Bill:
    price: int
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = self.price * 2


@pytest.mark.usefixtures("bridge")
def test_a_computed_field_is_in_results_and_not_in_payloads(box: Sandbox) -> None:
    def double(bill: Bill) -> Bill:
        return bill

    box.add_tool(double)
    assert box.python("from host_tools import call; call('double', {'bill': {'price': 2}})").check().result == "{'price': 2, 'total': 4}"
    error = box.python("call('double', {'bill': {'price': 2, 'total': 5}})").error
    assert error and "$.bill.total: is not known" in error.message


def test_arguments_of_partial_cannot_be_set_inside() -> None:
    def read(path: str, root: str) -> str:
        """Reads."""
        return f"{root}/{path}"

    tool = Tool.of(functools.partial(read, root="/mine"))
    assert (tool.name, tool.description, list(tool.input_schema["properties"])) == ("read", "Reads.", ["path"])
    assert tool.handler({"path": "a"}) == "/mine/a"
    with pytest.raises(ToolError, match="parameter 'root' does not exist"):
        tool.handler({"path": "a", "root": "/"})


def test_decorated_functions_are_tools() -> None:
    @functools.lru_cache()
    def double(by: int) -> int:
        return 2 * by

    async def later(by: int) -> Named:
        return Named(str(by))

    @functools.wraps(later)
    def retried(*arguments: Any, **named: Any) -> Any:
        return later(*arguments, **named)

    assert Tool.of(double).handler({"by": 2}) == 4
    assert asyncio.run(Tool.of(retried).handler({"by": 2})) == {"lives": "2"}


def test_a_type_without_a_json_equivalent_names_its_parameter() -> None:
    def store(name: str, content: bytes) -> None: ...
    def fetch(name: str) -> complex: return 0
    def walk(tree: Gone) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ValueError, match="store: parameter content: JSON cannot express bytes; take text"):
        Tool.of(store)
    with pytest.raises(ValueError, match="fetch: the result: JSON cannot express complex"):
        Tool.of(fetch)
    with pytest.raises(ValueError, match="walk: a hint can't be resolved"):
        Tool.of(walk)
