# SPDX-License-Identifier: Apache-2.0
"""Constraints in Annotated[...], such as those of pydantic's Field and of the package annotated-types.

They become keywords of a JSON schema. An error about a value has the same text as pydantic's.
"""

from __future__ import annotations

import datetime
import decimal
import re
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Tuple

from ._message import text_of
from .errors import UsageError

JsonSchema = Dict[str, Any]

_LIMITS = (int, float, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta)

_NAMES = {
    "gt": "gt", "ge": "ge", "lt": "lt", "le": "le", "multiple_of": "multiple_of", "min_length": "min_length",
    "max_length": "max_length", "min_items": "min_length", "max_items": "max_length", "pattern": "pattern",
    "regex": "pattern",
}
"""Attributes of an object in Annotated, and the constraints that they stand for. pydantic 1 has other names."""

_NUMBER = {
    "gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum", "multiple_of": "multipleOf",
}
_KEYWORDS: Dict[str, Dict[str, str]] = {
    "integer": _NUMBER, "number": _NUMBER,
    "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
"""The keyword of each constraint, by the type in the schema."""


def whole(marks: Iterable[Any]) -> Iterator[Any]:
    """Yields the objects in the metadata of Annotated, also those that a Field of pydantic 2 contains."""
    for mark in marks:
        metadata = getattr(mark, "metadata", None)
        if isinstance(metadata, (list, tuple)):
            yield from whole(metadata)
        if not isinstance(mark, (str, int, float)):
            yield mark


def constraints_of(marks: Iterable[Any]) -> Dict[str, Any]:
    """Returns the constraints in the metadata of Annotated. Later ones take precedence."""
    found: Dict[str, Any] = {}
    for mark in whole(marks):
        for name, constraint in _NAMES.items():
            value = getattr(mark, name, None)
            if isinstance(value, re.Pattern):
                value = value.pattern
            if isinstance(value, str if constraint == "pattern" else _LIMITS) and not isinstance(value, bool):
                found[constraint] = value
    return found


def constrained(schema: JsonSchema, constraints: Mapping[str, Any]) -> JsonSchema:
    """Returns a schema with the constraints that JSON schemas can express. Each member of a union gets the
    constraints for its type."""
    if not constraints:
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [constrained(each, constraints) for each in schema["anyOf"]]}
    keywords = _KEYWORDS.get(schema.get("type", ""), {})
    added = {keywords[name]: _number(value) for name, value in constraints.items() if name in keywords}
    return {**schema, **{name: value for name, value in added.items() if is_sendable(value)}}


def _number(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def is_sendable(value: Any) -> bool:
    """Whether a value can be a part of a schema, for example an integer that is not too large."""
    try:
        text_of(value, "a value")
        return True
    except (TypeError, ValueError, RecursionError, UsageError):
        return False


def _things(value: Any) -> Tuple[str, str]:
    """Returns words for a value with a length, and for its parts."""
    if isinstance(value, (str, bytes, bytearray)):
        return ("String" if isinstance(value, str) else "Data"), ("character" if isinstance(value, str) else "byte")
    return type(value).__name__.capitalize() if not isinstance(value, dict) else "Dictionary", "item"


def _too_short(value: Any, least: int) -> str:
    what, part = _things(value)
    after = "" if part != "item" else f" after validation, not {len(value)}"
    return f"{what} should have at least {least} {part}{'' if least == 1 else 's'}{after}"


def _too_long(value: Any, most: int) -> str:
    what, part = _things(value)
    after = "" if part != "item" else f" after validation, not {len(value)}"
    return f"{what} should have at most {most} {part}{'' if most == 1 else 's'}{after}"


_CHECKS: Dict[str, Tuple[Callable[[Any, Any], Any], Callable[[Any, Any], str]]] = {
    "gt": (lambda v, c: v > c, lambda v, c: f"Input should be greater than {c}"),
    "ge": (lambda v, c: v >= c, lambda v, c: f"Input should be greater than or equal to {c}"),
    "lt": (lambda v, c: v < c, lambda v, c: f"Input should be less than {c}"),
    "le": (lambda v, c: v <= c, lambda v, c: f"Input should be less than or equal to {c}"),
    "multiple_of": (lambda v, c: v % c == 0, lambda v, c: f"Input should be a multiple of {c}"),
    "min_length": (lambda v, c: len(v) >= c, _too_short),
    "max_length": (lambda v, c: len(v) <= c, _too_long),
    "pattern": (lambda v, c: bool(re.search(c, v)), lambda v, c: f"String should match pattern '{c}'"),
}


def check(value: Any, constraints: Mapping[str, Any]) -> None:
    """Raises ValueError if a value does not meet a constraint. None meets every constraint: only Optional allows it."""
    if value is None:
        return
    for name, constraint in constraints.items():
        fulfilled, said = _CHECKS[name]
        try:
            if fulfilled(value, constraint):
                continue
        except TypeError as error:
            raise ValueError(f"Unable to apply constraint '{name}' to the value {value!r}") from error
        raise ValueError(said(value, constraint))
