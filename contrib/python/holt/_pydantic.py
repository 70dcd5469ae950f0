# SPDX-License-Identifier: Apache-2.0
"""Supports models of pydantic 1 and 2. pydantic is imported only by programs that use it."""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple

if TYPE_CHECKING:
    from .schema import Definitions, JsonSchema


def is_model(hint: Any) -> bool:
    """Whether a hint is a model. Before pydantic is imported, none is."""
    pydantic = sys.modules.get("pydantic")
    return bool(pydantic and isinstance(hint, type) and issubclass(hint, pydantic.BaseModel))


def said_of(default: Any) -> Optional[str]:
    """Returns the description of a Field that is used as a default value."""
    fields = sys.modules.get("pydantic.fields")
    said: Optional[str] = default.description if fields and isinstance(default, fields.FieldInfo) else None
    return said


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
            if key in ("$defs", "definitions", "default", "$ref") or (key == "title" and isinstance(value, str)):
                continue
            if key == "properties":
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
