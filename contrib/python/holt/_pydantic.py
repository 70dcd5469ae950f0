# SPDX-License-Identifier: Apache-2.0
"""Supports models of pydantic 1 and 2. pydantic is imported only by programs that use it."""

from __future__ import annotations

import copy
import functools
import importlib
import json
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple

if TYPE_CHECKING:
    from .schema import Definitions, JsonSchema


def is_model(hint: Any) -> bool:
    """Whether a hint is a model. Before pydantic is imported, none is."""
    pydantic = sys.modules.get("pydantic")
    return bool(pydantic and isinstance(hint, type) and issubclass(hint, pydantic.BaseModel))


def is_field(value: Any) -> bool:
    """Whether a value is a Field, which may be a default value or in Annotated."""
    fields = sys.modules.get("pydantic.fields")
    return bool(fields and isinstance(value, fields.FieldInfo))


def default_of(field: Any) -> "Tuple[Any, ...]":
    """Returns the default value of a Field in a tuple, which is empty if there is none."""
    if field.default_factory is not None:
        return (field.default_factory(),)
    undefined = field.default is ... or type(field.default).__name__ in ("UndefinedType", "PydanticUndefinedType")
    return () if undefined else (copy.deepcopy(field.default),)


_BASES = (bool, int, float, str, list, set, frozenset)


def base_of(hint: Any) -> Any:
    """Returns the type that a constrained type of pydantic 1, such as conint(ge=1), stands for; or None."""
    types = sys.modules.get("pydantic.types")
    if types is None or not isinstance(hint, type) or getattr(hint, "__module__", "") != "pydantic.types":
        return None
    base = next((each for each in _BASES if issubclass(hint, each)), None)
    item = getattr(hint, "item_type", None)
    return base if item is None or base is None else base[item]  # type: ignore[index]


@functools.lru_cache(maxsize=None)
def version_2() -> Any:
    """Returns the module pydantic, or None if version 2 is not installed. It does not import version 1."""
    module = sys.modules.get("pydantic")
    try:
        version = getattr(module, "VERSION", "") if module else metadata.version("pydantic")
        return importlib.import_module("pydantic") if int(version.partition(".")[0]) >= 2 else None
    except (ImportError, ValueError, TypeError):
        return None


def adapter_of(hint: Any) -> Any:
    """Returns the adapter of pydantic 2 for a type hint, or None if it is not installed or does not know the hint."""
    module = version_2()
    if module is None or not hasattr(module, "TypeAdapter"):
        return None
    try:
        return module.TypeAdapter(hint)
    except (TypeError, module.PydanticUserError, module.errors.PydanticUndefinedAnnotation):
        return None


def from_json(value: Any, model: Any) -> Any:
    return model.model_validate(value) if hasattr(model, "model_validate") else model.parse_obj(value)


def to_json(value: Any) -> Any:
    """Converts a model to a JSON value, with the field names of the schema."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    return json.loads(value.json(by_alias=True))


def _take_null(model: Any, schema: "JsonSchema") -> None:
    """Adds null to Optional fields: version 1 accepts None for them, and its schema does not say so."""
    module = importlib.import_module("pydantic.schema")
    parts = schema.get("definitions") or {}
    for each, name in module.get_model_name_map(module.get_flat_models_from_model(model)).items():
        properties = parts.get(name, schema if each is model else {}).get("properties") or {}
        for field in getattr(each, "__fields__", {}).values():
            if field.allow_none and field.alias in properties:
                properties[field.alias] = {"anyOf": [properties[field.alias], {"type": "null"}]}


class _Inlined:
    """A schema without titles, in which each $ref is replaced by its target unless that is recursive."""

    def __init__(self, model: Any, parts: Mapping[str, Any], definitions: "Definitions") -> None:
        self.model, self.parts, self.definitions = model, parts, definitions
        self.named: Dict[str, str] = {}

    def whole(self, schema: Any, within: Tuple[str, ...] = ()) -> Any:
        if isinstance(schema, list):
            return [self.whole(each, within) for each in schema]
        if not isinstance(schema, dict):
            return schema
        clean = self._part(schema["$ref"].rsplit("/", 1)[-1], within) if "$ref" in schema else {}
        for key, value in schema.items():
            if key in ("$defs", "definitions", "$ref") or (key == "title" and isinstance(value, str)):
                continue
            if key == "default":
                clean[key] = value
            elif key == "properties":
                clean[key] = {name: self.whole(each, within) for name, each in value.items()}
            else:
                clean[key] = self.whole(value, within)
        return clean

    def _part(self, name: str, within: Tuple[str, ...]) -> "JsonSchema":
        if name in within and name not in self.named:
            self.named[name] = self.definitions.reserve((self.model, name), name)
        if name in self.named:
            return {"$ref": f"#/$defs/{self.named[name]}"}
        part: JsonSchema = self.whole(self.parts[name], (*within, name))
        if name in self.named:  # it is recursive
            self.definitions.schemas[self.named[name]] = part
            return {"$ref": f"#/$defs/{self.named[name]}"}
        return part


def schema_of(model: Any, definitions: "Definitions") -> "JsonSchema":
    if hasattr(model, "model_json_schema"):
        schema = model.model_json_schema(mode="serialization" if definitions.given else "validation")
    else:
        schema = json.loads(json.dumps(model.schema()))  # a copy, because pydantic caches the schema
        _take_null(model, schema)
        if model.__config__.extra == "allow":  # version 2 does this itself
            schema["additionalProperties"] = True
    inlined = _Inlined(model, schema.get("$defs") or schema.get("definitions") or {}, definitions)
    clean: JsonSchema = inlined.whole(schema)
    if "$ref" not in clean:
        clean.setdefault("additionalProperties", False)
    return clean
