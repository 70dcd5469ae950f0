# SPDX-License-Identifier: Apache-2.0
"""Models of pydantic, of version 1 or 2, where a program has them: never imported for anybody else."""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple

if TYPE_CHECKING:
    from .schema import Definitions, JsonSchema


def is_model(hint: Any) -> bool:
    """A model can't be there before pydantic is."""
    pydantic = sys.modules.get("pydantic")
    return bool(pydantic and isinstance(hint, type) and issubclass(hint, pydantic.BaseModel))


def said_of(default: Any) -> Optional[str]:
    """The description of a Field that is in a default's place."""
    fields = sys.modules.get("pydantic.fields")
    said: Optional[str] = default.description if fields and isinstance(default, fields.FieldInfo) else None
    return said


def from_json(value: Any, model: Any) -> Any:
    return model.model_validate(value) if hasattr(model, "model_validate") else model.parse_obj(value)


def to_json(value: Any) -> Any:
    """By the names that the schema has."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    return json.loads(value.json(by_alias=True))


def _take_null(model: Any, schema: "JsonSchema") -> None:
    """Version 1 takes None for what is Optional, and does not say so."""
    module = importlib.import_module("pydantic.schema")
    parts = schema.get("definitions") or {}
    for each, name in module.get_model_name_map(module.get_flat_models_from_model(model)).items():
        properties = parts.get(name, schema if each is model else {}).get("properties") or {}
        for field in getattr(each, "__fields__", {}).values():
            if field.allow_none and field.alias in properties:
                properties[field.alias] = {"anyOf": [properties[field.alias], {"type": "null"}]}


class _Inlined:
    """A schema without titles, and with what $ref leads to in its place, but for what has itself in it."""

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
        if name in self.named:  # below it has been named
            self.definitions.schemas[self.named[name]] = part
            return {"$ref": f"#/$defs/{self.named[name]}"}
        return part


def schema_of(model: Any, definitions: "Definitions") -> "JsonSchema":
    if hasattr(model, "model_json_schema"):
        schema = model.model_json_schema(mode="serialization" if definitions.given else "validation")
    else:
        schema = json.loads(json.dumps(model.schema()))  # which pydantic keeps
        _take_null(model, schema)
        if model.__config__.extra == "allow":  # which version 2 says
            schema["additionalProperties"] = True
    inlined = _Inlined(model, schema.get("$defs") or schema.get("definitions") or {}, definitions)
    clean: JsonSchema = inlined.whole(schema)
    if "$ref" not in clean:
        clean.setdefault("additionalProperties", False)
    return clean
