# SPDX-License-Identifier: Apache-2.0
"""JSON schemas from type hints, and values from JSON by the same hints.

Schemas use what the bridge checks: type, properties, required, additionalProperties, items, prefixItems, minItems,
maxItems, enum, anyOf, and $ref to $defs, where a type has itself in it; and description, which is for a model.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import os
import pathlib
import typing
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _pydantic
from ._docstring import fitting

_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LISTS = (
    list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection,
    collections.abc.Set, collections.abc.MutableSequence,
)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_NONE = type(None)
_BYTES = (bytes, bytearray, memoryview)
_OF_FIELDS = ("Required", "NotRequired", "ReadOnly")  # of a TypedDict
_SAYS = ("description", "documentation")  # of a mark in Annotated: pydantic's Field, typing_extensions' Doc

JsonSchema = Dict[str, Any]


def _unions() -> Tuple[Any, ...]:
    return (Union, getattr(__import__("types"), "UnionType", Union))


def _is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def _is_record(hint: Any) -> bool:
    return _is_typed_dict(hint) or (dataclasses.is_dataclass(hint) and isinstance(hint, type))


def _fields(hint: Any, given: bool = False) -> "List[Tuple[str, Any, bool]]":
    """Of a dataclass or TypedDict: name, hint, whether it is required; given: those too that it sets by itself."""
    hints = _hints_of(hint)
    if _is_typed_dict(hint):
        return [(name, each, _is_required(hint, name, each)) for name, each in hints.items()]
    missing = dataclasses.MISSING
    return [
        (f.name, hints[f.name], not f.init or f.default is missing and f.default_factory is missing)
        for f in dataclasses.fields(hint) if f.init or given
    ]


def _is_required(record: Any, name: str, hint: Any) -> bool:
    """Of a TypedDict, which does not know it where hints are text (from __future__ import annotations)."""
    while hasattr(hint, "__metadata__"):
        hint = typing.get_args(hint)[0]
    said = getattr(typing.get_origin(hint), "_name", "")
    return said == "Required" or said != "NotRequired" and name in record.__required_keys__


def _hints_of(record: Any) -> Dict[str, Any]:
    """Raises ValueError."""
    try:
        try:
            return typing.get_type_hints(record, include_extras=True)
        except NameError:  # one that is made in a function is in no module's names, and may have itself in it
            names = {**vars(record), record.__name__: record}
            return typing.get_type_hints(record, localns=names, include_extras=True)
    except NameError as error:
        raise ValueError(f"a hint of {record.__name__} can't be resolved: {error}") from error


def _parted(hint: Any) -> "Tuple[Any, List[Any]]":
    """Without Annotated and what a TypedDict says of a field, of a NewType what it is made of; and Annotated's marks."""
    marks: List[Any] = []
    while True:
        if hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif hasattr(hint, "__metadata__") or getattr(typing.get_origin(hint), "_name", "") in _OF_FIELDS:
            marks += getattr(hint, "__metadata__", ())
            hint = typing.get_args(hint)[0]
        else:
            return hint, marks


def _bare(hint: Any) -> Any:
    return _parted(hint)[0]


def said_of(hint: Any) -> Optional[str]:
    """The description in Annotated: a text, or that of a mark which has one."""
    for mark in _parted(hint)[1]:
        for text in (mark, *(getattr(mark, name, None) for name in _SAYS)):
            if isinstance(text, str) and text.strip():
                return fitting(text)
    return None


def object_schema(properties: Mapping[str, JsonSchema], required: "List[str]") -> JsonSchema:
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def _values_schema(values: "List[Any]") -> JsonSchema:
    """Of Literal and Enum: one type where all have the same."""
    values = [to_json(each) for each in values]
    types = {_SCALARS[type(value)] for value in values if type(value) in _SCALARS}
    return {"type": types.pop(), "enum": values} if len(types) == 1 else {"enum": values}


class Definitions:
    """Types that have themselves in them, which a schema refers to: it can't have them in their place.

    given  it is of what a tool gives, where records have all that they set by themselves, too
    """

    def __init__(self, given: bool = False) -> None:
        self.given = given
        self.schemas: Dict[str, JsonSchema] = {}
        self._names: Dict[Any, str] = {}
        self._open: List[Any] = []

    def record(self, hint: Any) -> JsonSchema:
        if hint in self._names or hint in self._open:
            return {"$ref": f"#/$defs/{self._name_of(hint)}"}
        self._open.append(hint)
        try:
            fields = _fields(hint, self.given)
            schema = object_schema(
                {name: schema_of(each, self) for name, each, _ in fields}, [name for name, _, needed in fields if needed]
            )
        finally:
            self._open.pop()
        if hint not in self._names:  # nothing below has named it
            return schema
        self.schemas[self._names[hint]] = schema
        return self.record(hint)

    def _name_of(self, hint: Any) -> str:
        return self.reserve(hint, str(hint.__name__))

    def reserve(self, key: Any, name: str) -> str:
        """The name in $defs of what key stands for: name, or one like it."""
        if key not in self._names:
            others = set(self._names.values())
            while name in others:
                name += "_"
            self._names[key] = name
        return self._names[key]

    def added_to(self, schema: JsonSchema) -> JsonSchema:
        """What is a whole document then."""
        return {**schema, "$defs": self.schemas} if self.schemas else schema


def _items_of(hint: Any) -> Optional[Tuple[Any, ...]]:
    """Of a tuple of so many items of these types; None where their number is open."""
    arguments = typing.get_args(hint)
    if hint in (tuple, Tuple) or arguments[1:] == (Ellipsis,):
        return None
    return () if arguments == ((),) else arguments  # as Python 3.9 has Tuple[()]


def _tuple_schema(hint: Any, definitions: Definitions) -> JsonSchema:
    items, arguments = _items_of(hint), typing.get_args(hint)
    if items is None:
        return {"type": "array", "items": schema_of(arguments[0], definitions)} if arguments else {"type": "array"}
    schema: JsonSchema = {"type": "array", "minItems": len(items), "maxItems": len(items)}
    if items:
        schema["prefixItems"] = [schema_of(each, definitions) for each in items]
    return schema


def _union_schema(members: Tuple[Any, ...], definitions: Definitions) -> JsonSchema:
    schemas: List[JsonSchema] = []
    for each in members:
        schema = schema_of(each, definitions)
        if schema not in schemas:  # a path is text, too
            schemas.append(schema)
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _is_path(hint: Any) -> bool:
    return hint is os.PathLike or isinstance(hint, type) and issubclass(hint, pathlib.PurePath)


def schema_of(hint: Any, definitions: Optional[Definitions] = None) -> JsonSchema:
    """The JSON schema of a type hint. Raises ValueError where JSON has nothing like it.

    definitions  those of the document that it becomes a part of; without it, it is one itself
    """
    if definitions is None:
        definitions = Definitions()
        return definitions.added_to(schema_of(hint, definitions))
    said = said_of(hint)
    schema = _bare_schema_of(_bare(hint), definitions)
    return schema if said is None else {**schema, "description": said}


def _bare_schema_of(hint: Any, definitions: Definitions) -> JsonSchema:
    if hint is None:
        hint = _NONE
    if hint in (Any, object, inspect.Parameter.empty):
        return {}
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in _SCALARS:
        return {"type": _SCALARS[origin]}
    if origin in _unions():
        return _union_schema(arguments, definitions)
    if origin is typing.Literal:
        return _values_schema(list(arguments))
    if origin is tuple:
        return _tuple_schema(hint, definitions)
    if origin in _LISTS:
        return {"type": "array", "items": schema_of(arguments[0], definitions)} if arguments else {"type": "array"}
    if _is_path(origin):
        return {"type": "string"}
    if _pydantic.is_model(hint):
        return _pydantic.schema_of(hint, definitions)
    if _is_record(hint):
        return definitions.record(hint)
    if origin in _DICTS:
        schema: JsonSchema = {"type": "object"}
        values = schema_of(arguments[1], definitions) if arguments else {}
        return {**schema, "additionalProperties": values} if values else schema
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _values_schema(list(hint))
    if isinstance(hint, typing.TypeVar):
        return schema_of(hint.__bound__, definitions) if hint.__bound__ else {}
    what = hint.__name__ if isinstance(hint, type) else repr(hint)
    raise ValueError(f"JSON has nothing like {what}" + ("; take text, which may be base64" if hint in _BYTES else ""))


def _member_of(members: Any, value: Any) -> Any:
    """Which of an enum or a Literal JSON stands for. Raises ValueError."""
    for each in members:
        known = to_json(each)
        if known == value and isinstance(known, bool) == isinstance(value, bool):
            return each
    raise ValueError(f"{value!r} is none of {[to_json(each) for each in members]}")


def _is_member(members: Any, value: Any) -> bool:
    try:
        _member_of(members, value)
    except ValueError:
        return False
    return True


def _fits_record(value: Any, hint: Any) -> bool:
    if not isinstance(value, dict):
        return False
    fields = {name: (each, needed) for name, each, needed in _fields(hint)}
    return all(name in fields and _fits(each, fields[name][0]) for name, each in value.items()) and all(
        name in value for name, (_, needed) in fields.items() if needed
    )


def _fits(value: Any, hint: Any) -> bool:
    """Whether JSON is of that hint, models aside; tells the members of a union apart."""
    hint = _bare(hint)
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (Any, object):
        return True
    if origin in _unions():
        return any(_fits(value, each) for each in arguments)
    if origin is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin in (str, bool, _NONE):
        return isinstance(value, origin)
    if _is_path(origin):
        return isinstance(value, str)
    if origin is typing.Literal:
        return _is_member(arguments, value)
    items = _items_of(hint) if origin is tuple else None
    if items is not None:
        return isinstance(value, list) and len(items) == len(value) and all(map(_fits, value, items))
    if origin in _LISTS or origin is tuple:
        return isinstance(value, list) and all(_fits(each, kind) for each in value for kind in arguments[:1])
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return _is_member(origin, value)
    if _is_record(hint):
        return _fits_record(value, hint)
    if origin in _DICTS and arguments:
        return isinstance(value, dict) and all(_fits(each, arguments[1]) for each in value.values())
    return isinstance(value, dict)


def from_json(value: Any, hint: Any) -> Any:
    """A value that has passed the schema of a hint as what the hint says: models, dataclasses, enums, tuples, sets.

    Raises ValueError (pydantic's is one).
    """
    hint = _bare(hint)
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in _unions():
        for each in sorted(arguments, key=lambda h: not _fits(value, h)):
            try:
                return from_json(value, each)
            except (TypeError, ValueError):
                continue
        raise ValueError(f"{value!r} is none of {hint}")
    if _pydantic.is_model(hint):
        return _pydantic.from_json(value, hint)
    if origin is typing.Literal:
        return _member_of(arguments, value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _member_of(hint, value)
    if isinstance(value, str) and _is_path(origin):
        return pathlib.Path(value) if origin is os.PathLike else origin(value)
    if isinstance(value, dict) and _is_record(hint):
        hints = {name: each for name, each, _ in _fields(hint)}
        given = {name: from_json(each, hints[name]) if name in hints else each for name, each in value.items()}
        return given if _is_typed_dict(hint) else hint(**given)
    if isinstance(value, list) and (origin is tuple or origin in _LISTS):
        return _tuple_from_json(value, hint) if origin is tuple else _list_from_json(value, origin, arguments)
    if isinstance(value, dict) and origin in _DICTS and arguments:
        return {_key_from_json(name, arguments[0]): from_json(each, arguments[1]) for name, each in value.items()}
    return float(value) if origin is float and type(value) is int else value


def _key_from_json(name: str, hint: Any) -> Any:
    """JSON has only text for it."""
    hint = _bare(hint)
    if hint in (int, float):
        return hint(name)
    for each in hint if isinstance(hint, type) and issubclass(hint, enum.Enum) else ():
        if _key_to_json(each) == name:
            return each
    return from_json(name, hint)


def _key_to_json(name: Any) -> str:
    return str(name.value if isinstance(name, enum.Enum) else name)


def _tuple_from_json(value: "List[Any]", hint: Any) -> Tuple[Any, ...]:
    items = _items_of(hint)
    if items is None:
        return tuple(_list_from_json(value, list, typing.get_args(hint)))
    if len(items) != len(value):
        raise ValueError(f"there have to be {len(items)} items, not {len(value)}")
    return tuple(from_json(each, kind) for each, kind in zip(value, items))


def _list_from_json(value: "List[Any]", origin: Any, arguments: Tuple[Any, ...]) -> Any:
    items = [from_json(each, arguments[0]) for each in value] if arguments else value
    return origin(items) if origin in (set, frozenset) else set(items) if origin is collections.abc.Set else items


def to_json(value: Any) -> Any:
    """A value as JSON has it. Raises ValueError."""
    if value is None or isinstance(value, (str, bool, int, float)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, enum.Enum):
        return to_json(value.value)
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, collections.abc.Mapping):
        return {_key_to_json(name): to_json(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(each) for each in value]
    if _pydantic.is_model(type(value)):
        return _pydantic.to_json(value)
    raise ValueError(f"{type(value).__name__} has no form in JSON")
