# SPDX-License-Identifier: Apache-2.0
"""Converts type hints to JSON schemas, and JSON values to Python values by the same hints.

Schemas use keywords that the bridge checks: type, properties, required, additionalProperties, items, prefixItems, enum,
anyOf, and those of _constraints.py. Recursive types use $ref and $defs. A model reads description, default, format and
pattern, too.
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

from . import _pydantic, _texts
from ._constraints import check, constrained, constraints_of, is_sendable
from ._docstring import fitting

_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
LISTS = (
    list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection,
    collections.abc.Set, collections.abc.MutableSequence,
)
DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_NONE = type(None)
_BYTES = (bytes, bytearray, memoryview)
_OF_FIELDS = ("Required", "NotRequired", "ReadOnly")  # qualifiers of a TypedDict's field
_SAYS = ("description", "documentation")  # attributes of pydantic's Field and of typing_extensions' Doc

JsonSchema = Dict[str, Any]


def unions() -> Tuple[Any, ...]:
    return (Union, getattr(__import__("types"), "UnionType", Union))


def is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def is_record(hint: Any) -> bool:
    return is_typed_dict(hint) or (dataclasses.is_dataclass(hint) and isinstance(hint, type))


def fields_of(hint: Any, given: bool = False) -> "List[Tuple[str, Any, bool]]":
    """Returns the fields of a dataclass or TypedDict as (name, hint, required).

    given  includes fields that the constructor does not take
    """
    hints = _hints_of(hint)
    if is_typed_dict(hint):
        return [(name, each, _is_required(hint, name, each)) for name, each in hints.items()]
    missing = dataclasses.MISSING
    return [
        (f.name, hints[f.name], not f.init or f.default is missing and f.default_factory is missing)
        for f in dataclasses.fields(hint) if f.init or given
    ]


def _is_required(record: Any, name: str, hint: Any) -> bool:
    """Whether a field of a TypedDict is required. __required_keys__ is wrong if hints are text (from __future__ import
    annotations), so the hint is checked first."""
    while hasattr(hint, "__metadata__"):
        hint = typing.get_args(hint)[0]
    said = getattr(typing.get_origin(hint), "_name", "")
    return said == "Required" or said != "NotRequired" and name in record.__required_keys__


def _hints_of(record: Any) -> Dict[str, Any]:
    """Returns the resolved hints of a class. Raises ValueError."""
    try:
        try:
            return typing.get_type_hints(record, include_extras=True)
        except NameError:  # a class made in a function is missing in its module, and may refer to itself
            names = {**vars(record), record.__name__: record}
            return typing.get_type_hints(record, localns=names, include_extras=True)
    except NameError as error:
        raise ValueError(f"a hint of {record.__name__} can't be resolved: {error}") from error


def parted(hint: Any) -> "Tuple[Any, List[Any]]":
    """Returns a hint without Annotated, TypedDict qualifiers and NewType, and the metadata of Annotated."""
    marks: List[Any] = []
    while True:
        if hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif _pydantic.base_of(hint):
            marks.append(hint)
            hint = _pydantic.base_of(hint)
        elif hasattr(hint, "__metadata__") or getattr(typing.get_origin(hint), "_name", "") in _OF_FIELDS:
            marks += getattr(hint, "__metadata__", ())
            hint = typing.get_args(hint)[0]
        else:
            return hint, marks


def _bare(hint: Any) -> Any:
    return parted(hint)[0]


def said_of(hint: Any) -> Optional[str]:
    """Returns the description in Annotated: a text, or the description of an object in its metadata."""
    for mark in parted(hint)[1]:
        for text in (mark, *(getattr(mark, name, None) for name in _SAYS)):
            if isinstance(text, str) and text.strip():
                return fitting(text)
    return None


def object_schema(properties: Mapping[str, JsonSchema], required: "List[str]") -> JsonSchema:
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def said_default(schema: JsonSchema, *defaults: Any) -> JsonSchema:
    """Returns a schema with a default value, if there is one and JSON can express it."""
    try:
        values = [to_json(each) for each in defaults]
    except (TypeError, ValueError, RecursionError):
        return schema
    return {**schema, "default": values[0]} if values and is_sendable(values[0]) else schema


def with_default(schema: JsonSchema, record: Any, name: str) -> JsonSchema:
    """Returns the schema of a field, with the default value of a dataclass's field."""
    field = {} if is_typed_dict(record) else {f.name: f for f in dataclasses.fields(record)}
    default = field[name].default if name in field else dataclasses.MISSING
    return schema if default is dataclasses.MISSING else said_default(schema, default)


def _values_schema(values: "List[Any]") -> JsonSchema:
    """Returns the schema of a Literal or Enum. It has a type if all values have the same."""
    values = [to_json(each) for each in values]
    types = {_SCALARS[type(value)] for value in values if type(value) in _SCALARS}
    return {"type": types.pop(), "enum": values} if len(types) == 1 else {"enum": values}


class Definitions:
    """The schemas of recursive types. Other schemas refer to them by $ref, because a recursive type cannot be written out.

    given  the schemas are for results of tools, so they include fields that the constructor does not take
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
            fields = fields_of(hint, self.given)
            schema = object_schema(
                {name: with_default(schema_of(each, self), hint, name) for name, each, _ in fields},
                [name for name, _, needed in fields if needed],
            )
        finally:
            self._open.pop()
        if hint not in self._names:  # not recursive
            return schema
        self.schemas[self._names[hint]] = schema
        return self.record(hint)

    def _name_of(self, hint: Any) -> str:
        return self.reserve(hint, str(hint.__name__))

    def reserve(self, key: Any, name: str) -> str:
        """Returns the unique name of key in $defs: name, perhaps with "_" appended."""
        if key not in self._names:
            others = set(self._names.values())
            while name in others:
                name += "_"
            self._names[key] = name
        return self._names[key]

    def added_to(self, schema: JsonSchema) -> JsonSchema:
        """Returns the schema with its $defs, as a complete document."""
        return {**schema, "$defs": self.schemas} if self.schemas else schema


def items_of(hint: Any) -> Optional[Tuple[Any, ...]]:
    """Returns the item types of a tuple, or None if its length is not fixed."""
    arguments = typing.get_args(hint)
    if hint in (tuple, Tuple) or arguments[1:] == (Ellipsis,):
        return None
    return () if arguments == ((),) else arguments  # Tuple[()] in Python 3.9


def _tuple_schema(hint: Any, definitions: Definitions) -> JsonSchema:
    items, arguments = items_of(hint), typing.get_args(hint)
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
        if schema not in schemas:  # for example, a path has the same schema as text
            schemas.append(schema)
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def is_path(hint: Any) -> bool:
    return hint is os.PathLike or isinstance(hint, type) and issubclass(hint, pathlib.PurePath)


def schema_of(hint: Any, definitions: Optional[Definitions] = None) -> JsonSchema:
    """Returns the JSON schema of a type hint. Raises ValueError for a type without a JSON equivalent.

    definitions  definitions of the document that the schema becomes part of; default: it is a document itself
    """
    if definitions is None:
        definitions = Definitions()
        return definitions.added_to(schema_of(hint, definitions))
    said = said_of(hint)
    bare, marks = parted(hint)
    schema = constrained(_bare_schema_of(bare, definitions), constraints_of(marks))
    return schema if said is None else {**schema, "description": said}


def _bare_schema_of(hint: Any, definitions: Definitions) -> JsonSchema:
    if hint is None:
        hint = _NONE
    if hint in (Any, object, inspect.Parameter.empty):
        return {}
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in _SCALARS:
        return {"type": _SCALARS[origin]}
    if origin in _texts.SCHEMAS:
        return dict(_texts.SCHEMAS[origin])
    if origin in unions():
        return _union_schema(arguments, definitions)
    if origin is typing.Literal:
        return _values_schema(list(arguments))
    if origin is tuple:
        return _tuple_schema(hint, definitions)
    if origin in LISTS:
        return {"type": "array", "items": schema_of(arguments[0], definitions)} if arguments else {"type": "array"}
    if is_path(origin):
        return {"type": "string"}
    if _pydantic.is_model(hint):
        return _pydantic.schema_of(hint, definitions)
    if is_record(hint):
        return definitions.record(hint)
    if origin in DICTS:
        schema: JsonSchema = {"type": "object"}
        values = schema_of(arguments[1], definitions) if arguments else {}
        return {**schema, "additionalProperties": values} if values else schema
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _values_schema(list(hint))
    if isinstance(hint, typing.TypeVar):
        return schema_of(hint.__bound__, definitions) if hint.__bound__ else {}
    what = hint.__name__ if isinstance(hint, type) else repr(hint)
    raise ValueError(f"JSON cannot express {what}" + ("; take text, which may be base64" if hint in _BYTES else ""))


def member_of(members: Any, value: Any) -> Any:
    """Returns the member of an enum or Literal for a JSON value. Raises ValueError."""
    for each in members:
        known = to_json(each)
        if known == value and isinstance(known, bool) == isinstance(value, bool):
            return each
    raise ValueError(f"{value!r} is none of {[to_json(each) for each in members]}")


def _is_member(members: Any, value: Any) -> bool:
    try:
        member_of(members, value)
    except ValueError:
        return False
    return True


def _fits_record(value: Any, hint: Any) -> bool:
    if not isinstance(value, dict):
        return False
    fields = {name: (each, needed) for name, each, needed in fields_of(hint)}
    return all(name in fields and _fits(each, fields[name][0]) for name, each in value.items()) and all(
        name in value for name, (_, needed) in fields.items() if needed
    )


def _fits_text(value: Any, kind: Any) -> bool:
    try:
        _texts.of_json(value, kind)
    except ValueError:
        return False
    return True


def _fits(value: Any, hint: Any) -> bool:
    """Whether a JSON value fits a hint, to choose a member of a union. Models of pydantic are not checked."""
    hint = _bare(hint)
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (Any, object):
        return True
    if origin in unions():
        return any(_fits(value, each) for each in arguments)
    if origin is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin in (str, bool, _NONE):
        return isinstance(value, origin)
    if is_path(origin):
        return isinstance(value, str)
    if origin in _texts.SCHEMAS:
        return _fits_text(value, origin)
    if origin is typing.Literal:
        return _is_member(arguments, value)
    items = items_of(hint) if origin is tuple else None
    if items is not None:
        return isinstance(value, list) and len(items) == len(value) and all(map(_fits, value, items))
    if origin in LISTS or origin is tuple:
        return isinstance(value, list) and all(_fits(each, kind) for each in value for kind in arguments[:1])
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return _is_member(origin, value)
    if is_record(hint):
        return _fits_record(value, hint)
    if origin in DICTS and arguments:
        return isinstance(value, dict) and all(_fits(each, arguments[1]) for each in value.values())
    return isinstance(value, dict)


def from_json(value: Any, hint: Any) -> Any:
    """Converts a JSON value that has passed the schema to the type of the hint: a model, dataclass, enum, tuple or set.

    Raises ValueError; errors of pydantic are subclasses of it.
    """
    hint, marks = parted(hint)
    made = _from_json_bare(value, hint)
    if marks:
        check(made, constraints_of(marks))
    return made


def _from_json_bare(value: Any, hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in unions():
        for each in sorted(arguments, key=lambda h: not _fits(value, h)):
            try:
                return from_json(value, each)
            except (TypeError, ValueError):
                continue
        raise ValueError(f"{value!r} is none of {hint}")
    if _pydantic.is_model(hint):
        return _pydantic.from_json(value, hint)
    if origin in _texts.SCHEMAS:
        return _texts.of_json(value, origin)
    if origin is typing.Literal:
        return member_of(arguments, value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return member_of(hint, value)
    if isinstance(value, str) and is_path(origin):
        return pathlib.Path(value) if origin is os.PathLike else origin(value)
    if isinstance(value, dict) and is_record(hint):
        hints = {name: each for name, each, _ in fields_of(hint)}
        given = {name: from_json(each, hints[name]) if name in hints else each for name, each in value.items()}
        return given if is_typed_dict(hint) else hint(**given)
    if isinstance(value, list) and (origin is tuple or origin in LISTS):
        return _tuple_from_json(value, hint) if origin is tuple else _list_from_json(value, origin, arguments)
    if isinstance(value, dict) and origin in DICTS and arguments:
        return {_key_from_json(name, arguments[0]): from_json(each, arguments[1]) for name, each in value.items()}
    return float(value) if origin is float and type(value) is int else value


def _key_from_json(name: str, hint: Any) -> Any:
    """Converts the key of an object, which is always text in JSON."""
    hint = _bare(hint)
    if hint in (int, float):
        return hint(name)
    members: Any = hint if isinstance(hint, type) and issubclass(hint, enum.Enum) else ()
    for each in members:
        if _key_to_json(each) == name:
            return each
    return from_json(name, hint)


def _key_to_json(name: Any) -> str:
    return str(name.value if isinstance(name, enum.Enum) else name)


def _tuple_from_json(value: "List[Any]", hint: Any) -> Tuple[Any, ...]:
    items = items_of(hint)
    if items is None:
        return tuple(_list_from_json(value, list, typing.get_args(hint)))
    if len(items) != len(value):
        raise ValueError(f"there must be {len(items)} items, not {len(value)}")
    return tuple(from_json(each, kind) for each, kind in zip(value, items))


def _list_from_json(value: "List[Any]", origin: Any, arguments: Tuple[Any, ...]) -> Any:
    items = [from_json(each, arguments[0]) for each in value] if arguments else value
    return origin(items) if origin in (set, frozenset) else set(items) if origin is collections.abc.Set else items


def to_json(value: Any) -> Any:
    """Converts a value to a JSON value. Raises ValueError."""
    if value is None or isinstance(value, (str, bool, int, float)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, enum.Enum):
        return to_json(value.value)
    if isinstance(value, pathlib.PurePath):
        return str(value)
    text = _texts.to_json(value)
    if text is not None:
        return text
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, collections.abc.Mapping):
        return {_key_to_json(name): to_json(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(each) for each in value]
    if _pydantic.is_model(type(value)):
        return _pydantic.to_json(value)
    raise ValueError(f"{type(value).__name__} can't be converted to JSON")
