# SPDX-License-Identifier: Apache-2.0
"""Converts arguments and results of tools to their type hints, as pydantic 2 does.

If pydantic 2 is installed, it converts. Otherwise, or for a hint that it does not know, this module follows its rules in
lax mode. For example, "5" and 5.0 become the integer 5, and 5.5 is an error. Texts of errors are the same.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import dataclasses
import decimal
import enum
import functools
import os
import pathlib
import re
import typing
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .. import _pydantic, _texts
from .._constraints import check, constraints_of, whole
from ..schema import DICTS, LISTS, fields_of, is_path, is_record, is_typed_dict, items_of, parted, to_json, unions

LAX, STRICT, EXACT = range(3)

DIGITS_MAX = 4300

_fields = functools.lru_cache(maxsize=256)(fields_of)

_NONE = type(None)
_FALSE = ("0", "off", "f", "false", "n", "no")
_TRUE = ("1", "on", "t", "true", "y", "yes")
_INTEGER = re.compile(r"\s*[-+]?\d+(_\d+)*(\.0*)?\s*$")
_ITEMS = (
    range, list, tuple, set, frozenset, collections.deque, collections.abc.KeysView, collections.abc.ValuesView,
    collections.abc.ItemsView, collections.abc.Generator,
)


class Mismatch(ValueError):
    """Values that do not fit. Each text is appended to the path of the value."""

    def __init__(self, errors: "List[Tuple[Tuple[Any, ...], str]]") -> None:
        self.errors = errors
        super().__init__("; ".join(f"{'.'.join(map(str, place))}: {text}" if place else text for place, text in errors))


def _at(place: Any, convert: "Callable[[], Any]", errors: "List[Tuple[Tuple[Any, ...], str]]") -> Any:
    """Returns a converted value. Adds the value's errors to errors, with the place of the value."""
    try:
        return convert()
    except Mismatch as error:
        errors += [((place, *below), text) for below, text in error.errors]
    except ValueError as error:
        errors.append(((place,), str(error)))
    return None


def _raise(errors: "List[Tuple[Tuple[Any, ...], str]]") -> None:
    if errors:
        raise Mismatch(errors)


# --- scalars ---


def _text(value: Any) -> Any:
    """Returns text for bytes."""
    return value.decode(errors="replace") if isinstance(value, (bytes, bytearray)) else value


def _bool(value: Any, strict: int) -> bool:
    if isinstance(value, bool):
        return value
    value = value if strict else _text(value)
    if not strict and isinstance(value, (int, float, decimal.Decimal, str)):
        if value in (0, 1):
            return bool(value)
        if str(value).lower() in _TRUE + _FALSE:
            return str(value).lower() in _TRUE
        raise ValueError("Input should be a valid boolean, unable to interpret input")
    raise ValueError("Input should be a valid boolean")


def _int(value: Any, strict: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    value = value if strict else _text(value)
    if strict or not isinstance(value, (int, float, str, decimal.Decimal)):
        raise ValueError("Input should be a valid integer")
    if isinstance(value, str):
        if len(value) > DIGITS_MAX:  # Python before 3.11 would take time that grows with the square of the length
            raise ValueError("Unable to parse input string as an integer, exceeded maximum size")
        if not _INTEGER.match(value):
            raise ValueError("Input should be a valid integer, unable to parse string as an integer")
        return int(value.partition(".")[0])
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("Input should be a finite number")
    if value != int(value):
        raise ValueError("Input should be a valid integer, got a number with a fractional part")
    if isinstance(value, float) and abs(value) >= 2**63:
        raise ValueError("Unable to parse input string as an integer, exceeded maximum size")
    return int(value)


def _float(value: Any, strict: int) -> float:
    value = value if strict else _text(value)
    if isinstance(value, float) or (isinstance(value, int) and strict != EXACT and not (strict and isinstance(value, bool))):
        return float(value)
    if strict or not isinstance(value, (str, decimal.Decimal)):
        raise ValueError("Input should be a valid number")
    try:
        return float(value)
    except ValueError:
        raise ValueError("Input should be a valid number, unable to parse string as a number") from None


def _str(value: Any, strict: int) -> str:
    if isinstance(value, enum.Enum) and isinstance(value, str):
        return str(value.value)
    if isinstance(value, str):
        return value
    if not strict and isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ValueError("Input should be a valid string, unable to parse raw data as a unicode string") from None
    raise ValueError("Input should be a valid string")


def _none(value: Any, strict: int) -> None:
    if value is not None:
        raise ValueError("Input should be None")


_SCALARS: Dict[Any, Callable[[Any, int], Any]] = {bool: _bool, int: _int, float: _float, str: _str, _NONE: _none, None: _none}


# --- other types ---


def _one_of(values: "List[Any]") -> str:
    texts = [repr(each.value if isinstance(each, enum.Enum) else each) for each in values]
    return f"Input should be {' or '.join(filter(None, [', '.join(texts[:-1]), texts[-1]]))}"


def _literal(value: Any, arguments: Tuple[Any, ...]) -> Any:
    for each in arguments:
        known = each.value if isinstance(each, enum.Enum) else each
        if value is each or (value == known and type(value) is type(known)):
            return each
    for each in arguments:
        if isinstance(each, int) and isinstance(value, (int, float, decimal.Decimal)) and value == each:
            return each
    raise ValueError(_one_of(list(arguments)))


def _enum(value: Any, hint: Any) -> Any:
    if isinstance(value, hint):
        return value
    for each in hint:
        if each.value == value and isinstance(each.value, bool) == isinstance(value, bool):
            return each
    if issubclass(hint, int) and not isinstance(value, int):
        with contextlib.suppress(ValueError):
            return hint(_int(value, 0))
    raise ValueError(_one_of(list(hint)))


def _union(value: Any, members: Tuple[Any, ...], strict: int) -> Any:
    """Returns the value as the member that it is already, or else as the first member that it can become."""
    errors: "List[Tuple[Tuple[Any, ...], str]]" = []
    others = [each for each in members if each is not _NONE]
    # A union inside another union tries only the strictness that the outer one has reached. Otherwise deep values would
    # take far too long.
    for each_strict in (EXACT, STRICT, LAX) if strict == LAX else (strict,):
        errors.clear()
        for each in members:
            try:
                return convert(value, each, each_strict)
            except ValueError as error:
                found = error.errors if isinstance(error, Mismatch) else [((), str(error))]
                if each is not _NONE:
                    errors += found if len(others) == 1 else [((_name(each), *place), text) for place, text in found]
    raise Mismatch(errors)


def _name(hint: Any) -> str:
    """Returns the name of a union's member, for the place of an error."""
    bare = parted(hint)[0]
    text = bare.__name__ if isinstance(bare, type) and not typing.get_args(bare) else str(bare).replace("typing.", "")
    return text.replace(", ", ",")


def _items(value: Any, name: str, strict: int) -> List[Any]:
    if not isinstance(value, _ITEMS) or (strict and isinstance(value, collections.abc.Generator)):
        raise ValueError(f"Input should be a valid {name}")
    return list(value)


def _each(items: "List[Any]", hints: "List[Any]", strict: int) -> List[Any]:
    errors: "List[Tuple[Tuple[Any, ...], str]]" = []
    made = [
        _at(n, lambda item=item, hint=hint: convert(item, hint, strict), errors)  # type: ignore[misc]
        for n, (item, hint) in enumerate(zip(items, hints))
    ]
    _raise(errors)
    return made


def _list(value: Any, origin: Any, arguments: Tuple[Any, ...], strict: int) -> Any:
    name = {set: "set", frozenset: "frozenset", collections.abc.Set: "set"}.get(origin, "list")
    items = _items(value, name, strict)
    made = _each(items, [arguments[0] if arguments else Any] * len(items), strict)
    if name == "list":
        return made
    try:
        return frozenset(made) if name == "frozenset" else set(made)
    except TypeError:
        raise ValueError("Set items should be hashable") from None


def _tuple(value: Any, hint: Any, strict: int) -> Any:
    items, kinds = _items(value, "tuple", strict), items_of(hint)
    if kinds is None:
        arguments = typing.get_args(hint)
        return tuple(_each(items, [arguments[0] if arguments else Any] * len(items), strict))
    if len(items) != len(kinds):
        bound = "most" if len(items) > len(kinds) else "least"
        plural = "" if len(kinds) == 1 else "s"
        raise ValueError(f"Tuple should have at {bound} {len(kinds)} item{plural} after validation, not {len(items)}")
    return tuple(_each(items, list(kinds), strict))


def _dict(value: Any, arguments: Tuple[Any, ...], strict: int) -> Any:
    if not isinstance(value, collections.abc.Mapping):
        raise ValueError("Input should be a valid dictionary")
    keys, values = arguments or (Any, Any)
    errors: "List[Tuple[Tuple[Any, ...], str]]" = []
    made = {
        _at(f"{name}.[key]", lambda name=name: convert(name, keys), errors):  # type: ignore[misc]
        _at(name, lambda each=each: convert(each, values, strict), errors)  # type: ignore[misc]
        for name, each in value.items()
    }
    _raise(errors)
    return made


def _record(value: Any, hint: Any, strict: int) -> Any:
    """Returns an instance of a dataclass, or the dict of a TypedDict. Unknown fields are left out."""
    if not is_typed_dict(hint) and isinstance(value, hint):
        return value
    if not isinstance(value, collections.abc.Mapping):
        what = "dictionary" if is_typed_dict(hint) else f"dictionary or an instance of {hint.__name__}"
        raise ValueError(f"Input should be a {'valid ' if is_typed_dict(hint) else ''}{what}")
    errors: "List[Tuple[Tuple[Any, ...], str]]" = []
    given = {}
    for name, each, needed in _fields(hint):
        if name in value:
            given[name] = _at(name, lambda: convert(value[name], each, strict), errors)
        elif needed:
            errors.append(((name,), "Field required"))
    _raise(errors)
    return given if is_typed_dict(hint) else hint(**given)


def _model(value: Any, hint: Any) -> Any:
    if isinstance(value, hint):
        return value
    try:
        return _pydantic.from_json(value, hint)
    except ValueError as error:
        said = getattr(error, "errors", None)
        if not callable(said):
            raise
        raise Mismatch([(tuple(each["loc"]), each["msg"]) for each in said()]) from error


def _path(value: Any, origin: Any) -> Any:
    if not isinstance(value, (str, pathlib.PurePath)):
        raise ValueError("Input is not a valid path")
    return pathlib.Path(value) if origin is os.PathLike else origin(value)


def convert(value: Any, hint: Any, strict: int = LAX) -> Any:
    """Returns a value as its hint says. Raises ValueError.

    strict  LAX, STRICT (scalars keep their types) or EXACT (and an integer is no float)
    """
    bare, marks = parted(hint)
    strict = strict or (STRICT if any(getattr(each, "strict", None) is True for each in whole(marks)) else LAX)
    made = _bare(value, bare, strict)
    if marks:
        check(made, constraints_of(marks))
    return made


def _bare(value: Any, hint: Any, strict: int) -> Any:
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in _SCALARS:
        return _SCALARS[origin](value, strict)
    if origin in unions():
        return _union(value, arguments, strict)
    if origin is typing.Literal:
        return _literal(value, arguments)
    if origin is tuple:
        return _tuple(value, hint, strict)
    if origin in LISTS:
        return _list(value, origin, arguments, strict)
    if origin in DICTS:
        return _dict(value, arguments, strict)
    if origin in _texts.SCHEMAS:
        return _texts.of_json(value, origin)
    if is_path(origin):
        return _path(value, origin)
    if _pydantic.is_model(hint):
        return _model(value, hint)
    if is_record(hint):
        return _record(value, hint, strict)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _enum(value, hint)
    if isinstance(hint, typing.TypeVar):
        return convert(value, hint.__bound__, strict) if hint.__bound__ else value
    return value


# --- both ways ---


class Converter:
    """Converts values of one hint."""

    def __init__(self, hint: Any) -> None:
        self.hint = hint
        self.adapter: Optional[Any] = _pydantic.adapter_of(hint)

    def read(self, value: Any) -> Any:
        """Returns a value as the hint says. Raises ValueError."""
        if self.adapter is None:
            return convert(value, self.hint)
        try:
            return self.adapter.validate_python(value)
        except ValueError as error:
            said = getattr(error, "errors", None)
            if not callable(said):
                raise
            raise Mismatch([(tuple(each["loc"]), each["msg"]) for each in said()]) from error

    def json_of(self, value: Any) -> Any:
        """Checks a result, and returns it as JSON. Raises ValueError."""
        made = self.read(value)
        return to_json(made) if self.adapter is None else self.adapter.dump_python(made, mode="json", by_alias=True)


def arguments_of(
    payload: Mapping[str, Any], converters: Mapping[str, Converter], required: "typing.Collection[str]"
) -> Dict[str, Any]:
    """Returns the arguments of a call. Raises Mismatch with all errors."""
    errors: "List[Tuple[Tuple[Any, ...], str]]" = []
    for name in payload:
        if name not in converters:
            errors.append(((name,), "Unexpected keyword argument"))
    given = {}
    for name, converter in converters.items():
        if name in payload:
            given[name] = _at(name, lambda: converter.read(payload[name]), errors)
        elif name in required:
            errors.append(((name,), "Missing required argument"))
    _raise(errors)
    return given
