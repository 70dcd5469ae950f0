# SPDX-License-Identifier: Apache-2.0
"""Models of pydantic as parameters and results of tools: a fake version 2, and the installed version."""

from __future__ import annotations

import enum
import sys
import types
from typing import Annotated, Any, List, Optional

import pytest

from holt import Sandbox, Tool, ToolError


class Kind(str, enum.Enum):
    A = "a"
    B = "b"


def test_models_of_version_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake pydantic 2, with the used parts of its models."""

    class BaseModel:
        def __init__(self, **values: Any) -> None:
            self.values = values

    class User(BaseModel):
        @classmethod
        def model_json_schema(cls, mode: str) -> Any:
            if mode == "serialization":  # includes computed fields
                return {"title": "User", "type": "object", "properties": {"age": {"title": "Age", "type": "integer"}}}
            assert mode == "validation"
            return {
                "title": "User", "type": "object", "required": ["home"],
                "properties": {"home": {"$ref": "#/$defs/Place", "description": "Where."}, "title": {"type": "string", "title": "Title"}},
                "$defs": {"Place": {"title": "Place", "type": "object", "properties": {
                    "within": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None}}}},
            }

        @classmethod
        def model_validate(cls, value: Any) -> Any:
            if "home" not in value:
                raise ValueError("home is missing")
            return cls(**value)

        def model_dump(self, mode: str, by_alias: bool) -> Any:
            assert mode == "json" and by_alias
            return self.values

    module = types.ModuleType("pydantic")
    module.BaseModel = BaseModel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pydantic", module)

    def show(user: User, more: Optional[User] = None) -> User:
        return user

    show.__annotations__ = {"user": User, "more": Optional[User], "return": User}
    tool = Tool.of(show)
    assert tool.input_schema["properties"]["user"] == {
        "type": "object", "required": ["home"], "additionalProperties": False,
        "properties": {
            "home": {"$ref": "#/$defs/Place", "description": "Where."},
            "title": {"type": "string"},
        },
    }
    assert tool.input_schema["$defs"] == {
        "Place": {"type": "object", "properties": {"within": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None}}}
    }
    assert tool.output_schema == {"type": "object", "properties": {"age": {"type": "integer"}}, "additionalProperties": False}
    assert tool.handler({"user": {"home": {}}}) == {"home": {}}
    with pytest.raises(ToolError, match="missing") as error:
        tool.handler({"user": {}})
    assert error.value.type == "validation_error"


def test_a_real_model_that_takes_more() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Open(pydantic.BaseModel):
        x: int

        class Config:
            extra = "allow"

    def same(given: Open) -> Open: return given

    same.__annotations__ = {"given": Open, "return": Open}
    tool = Tool.of(same)
    for schema in tool.input_schema["properties"]["given"], tool.output_schema or {}:
        assert schema["additionalProperties"] is True
    assert tool.handler({"given": {"x": 1, "y": 2}}) == {"x": 1, "y": 2}


@pytest.mark.usefixtures("bridge")
def test_real_models() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Point(pydantic.BaseModel):
        x: float = pydantic.Field(..., ge=0)

    class Order(pydantic.BaseModel):
        id: int = pydantic.Field(..., gt=0)
        note: Optional[str] = pydantic.Field(None, max_length=5)
        kind: Kind = Kind.A
        points: List[Point] = pydantic.Field([], alias="at")
        before: Optional["Order"] = None

    names = {"Order": Order, "Point": Point}
    if hasattr(Order, "model_rebuild"):
        Order.model_rebuild(_types_namespace=names)
    else:
        Order.update_forward_refs(**names)

    def same(order: Order) -> Order:
        assert isinstance(order, Order) and all(isinstance(each, Point) for each in order.points)
        return order

    same.__annotations__ = {"order": Order, "return": Order}
    refused = {
        "{}": "$.order.id: is missing",
        "{'id': 0}": "$.order.id: must be more than 0",
        "{'id': 1, 'note': 'longer'}": "$.order.note: must have at most 5 characters",
        "{'id': 1, 'kind': 'c'}": '$.order.kind: must be "a" or "b"',
        "{'id': 1, 'at': [{'x': 1}, {'x': -1}]}": "$.order.at[1].x: must be at least 0",
        "{'id': 1, 'before': {'id': 1, 'before': {'id': 0}}}": "$.order.before.before.id: must be more than 0",
    }
    with Sandbox(tools=[same]) as box:
        box.python("from host_tools import call").check()
        code = "call('same', {'order': {'id': 2, 'kind': 'b', 'at': [{'x': 1}], 'before': {'id': 1, 'note': None}}})"
        assert eval(box.python(code).check().result or "") == {
            "id": 2, "note": None, "kind": "b", "at": [{"x": 1}],
            "before": {"id": 1, "note": None, "kind": "a", "at": [], "before": None},
        }
        for order, message in refused.items():
            error = box.python(f"call('same', {{'order': {order}}})").error
            assert error and error.message == f"[validation_error] {message}"


def test_descriptions_of_fields() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Place(pydantic.BaseModel):
        """A place."""

        name: str = pydantic.Field(..., description="As it is called.")

    class Trip(pydantic.BaseModel):
        place: Place = pydantic.Field(..., description="Where to.")

    if hasattr(Trip, "model_rebuild"):
        Trip.model_rebuild(_types_namespace={"Place": Place})
    else:
        Trip.update_forward_refs(Place=Place)

    def go(trip: Trip, days: int, hours: int = 1, how: str = "") -> None:
        """Goes.

        Args:
            trip: Which one.
            days: No.
            hours: No.
            how: Fast.
        """

    go.__annotations__ = {
        "trip": Trip, "days": Annotated[int, pydantic.Field(description="So many.")], "hours": int, "how": str,
    }
    go.__defaults__ = pydantic.Field(1, description="And some."), ""
    properties = Tool.of(go).input_schema["properties"]
    said = [properties[name]["description"] for name in ("trip", "days", "hours", "how")]
    assert said == ["Which one.", "So many.", "And some.", "Fast."]
    place = properties["trip"]["properties"]["place"]
    assert place["description"] == "Where to."
    assert "As it is called." in str(place)
