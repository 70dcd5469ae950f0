# SPDX-License-Identifier: Apache-2.0
"""The classes of results agree with the OpenRPC document. These tests notice fields that holt adds, renames or makes
null."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import typing
from typing import Any, Dict, Mapping, Optional, Tuple, Type

import pytest

from holt import results, rows
from holt.files import FileInfo, Match
from holt.mount import RemoteItem
from holt.process import ProcessInfo
from holt.results import Denial, LimitHit, PythonError, PythonResult, Result, ShellResult, Unreached, Usage, python_result_of, result_of
from holt.rows import AuditRow, HistoryRow, SessionInfo

TEXTS = {"stdout_bytes": "stdout", "stderr_bytes": "stderr"}  # bytes in the class, text in the schema

# Each class, its schema, its fields with another name in the schema, and the members of the schema that it leaves out.
CLASSES: "Tuple[Tuple[Type[Any], str, Mapping[str, str], set[str]], ...]" = (
    (Usage, "Usage", {}, set()),
    (Denial, "Denial", {}, set()),
    (Unreached, "Unreached", {}, set()),
    (LimitHit, "LimitHit", {}, set()),
    # The SDK passes no file of the caller to a command, so it never gets a stream_error.
    (Result, "Result", TEXTS, {"timeout_us", "stdout_bytes", "stderr_bytes", "stream_error"}),
    (PythonError, "PythonError", {}, set()),
    (PythonResult, "PythonResult", TEXTS, {"timeout_us"}),
    (ShellResult, "ShellResult", TEXTS, {"timeout_us"}),
    (FileInfo, "FileEntry", {}, {"raw"}),
    (Match, "MatchingLine", {}, {"raw"}),
    (ProcessInfo, "Process", {}, {"usage"}),
    (RemoteItem, "MountItem", {}, {"raw"}),
    (HistoryRow, "HistoryRow", {}, set()),
    (AuditRow, "AuditRow", {}, set()),
    (SessionInfo, "SessionEntry", {}, set()),
)

PLAIN = {str: "string", bytes: "string", int: "integer", bool: "boolean"}


@pytest.fixture(scope="module")
def document(holt: str) -> Dict[str, Any]:
    return json.loads(subprocess.run([holt, "serve", "--openrpc"], stdout=subprocess.PIPE, check=True).stdout)


def types_of(schema: Mapping[str, Any]) -> "set[str]":
    """Returns the names of JSON types, or the name of a component."""
    if "$ref" in schema:
        return {schema["$ref"].rpartition("/")[2]}
    if "anyOf" in schema:
        return set().union(*(types_of(each) for each in schema["anyOf"]))
    named = schema["type"]
    return {named} if isinstance(named, str) else set(named)


def fits(hint: Any, schema: Mapping[str, Any], has_default: bool) -> bool:
    """Whether a field of that type can hold all values that the schema allows. A default can also stand for null."""
    if hint is Any:
        return True
    wanted, origin = types_of(schema), typing.get_origin(hint)
    if origin is typing.Union:  # Optional
        (hint,) = (each for each in typing.get_args(hint) if each is not type(None))
        origin = typing.get_origin(hint)
        wanted -= {"null"}
    elif has_default:
        wanted -= {"null"}
    if origin is tuple:
        return wanted == {"array"} and fits(typing.get_args(hint)[0], schema["items"], False)
    if origin is not None and typing.get_args(hint)[1] is Any:  # Mapping[str, Any]
        return wanted in ({"object"}, {"PolicyPart"}, {"GrantCall"})
    if origin is not None:  # Mapping[str, str]
        return wanted == {"object"} and types_of(schema["additionalProperties"]) == {"string"}
    if dataclasses.is_dataclass(hint):
        return wanted == {next(name for cls, name, _, _ in CLASSES if cls is hint)}
    return wanted == {PLAIN[hint]}


@pytest.mark.parametrize("cls, name, renamed, left_out", CLASSES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_class_has_the_fields_of_its_schema(
    cls: Any, name: str, renamed: Mapping[str, str], left_out: "set[str]", document: Dict[str, Any]
) -> None:
    schema = document["components"]["schemas"][name]
    hints = typing.get_type_hints(cls)
    names = set()
    for each in dataclasses.fields(cls):
        member = renamed.get(each.name, each.name)
        names.add(member)
        assert member in schema["properties"], f"{cls.__name__}.{each.name}: {name} has no {member}"
        has_default = each.default is not dataclasses.MISSING
        assert fits(hints[each.name], schema["properties"][member], has_default), (
            f"{cls.__name__}.{each.name} is {hints[each.name]}, and by the document {schema['properties'][member]}"
        )
        assert has_default or member in schema["required"] or typing.get_origin(hints[each.name]) is typing.Union, (
            f"{cls.__name__}.{each.name} has no default, and {member} may be missing"
        )
    assert names | left_out == set(schema["properties"]), f"{name} has more or less than {cls.__name__} says"


def test_every_class_of_results_is_compared() -> None:
    compared = {cls for cls, *_ in CLASSES}
    for module in (results, rows):
        for value in vars(module).values():
            if dataclasses.is_dataclass(value) and value.__module__ == module.__name__ and value is not results.Outcome:
                assert value in compared, value


def example_of(document: Dict[str, Any], method: str) -> Dict[str, Any]:
    (example,) = next(each for each in document["methods"] if each["name"] == method)["examples"]
    return {**example["result"]["value"], "stdout": "aGk=", "stderr": ""}


def test_examples_become_results(document: Dict[str, Any]) -> None:
    result: Result = result_of(example_of(document, "exec"))
    assert result.ok and result.stdout == "hi" and result.usage.wall_us and result.signal is None
    run: PythonResult = python_result_of(example_of(document, "python.run"))
    assert run.ok and run.result == "3" and run.state_kept and run.error is None


def test_an_empty_text_is_a_result_and_null_is_none(document: Dict[str, Any]) -> None:
    """An object's __repr__() may return an empty text."""
    answer = example_of(document, "python.run")
    assert python_result_of({**answer, "result": ""}).result == ""
    assert python_result_of({**answer, "result": None}).result is None
    assert python_result_of({**answer, "state_kept": False}).state_kept is False


def test_a_schema_with_an_unknown_type_is_noticed() -> None:
    assert not fits(str, {"type": ["string", "null"]}, False)
    assert fits(Optional[str], {"type": ["string", "null"]}, False)
    assert not fits(int, {"type": "string"}, False)
    assert not fits(Tuple[str, ...], {"type": "array", "items": {"type": "integer"}}, False)


@pytest.mark.parametrize("method, made", [("exec", result_of), ("python.run", python_result_of)])
def test_a_result_is_made_with_all_fields_of_its_class(method: str, made: Any, document: Dict[str, Any]) -> None:
    result = made(example_of(document, method))
    assert list(vars(result)) == [each.name for each in dataclasses.fields(result)]


def test_allowed_hosts_that_were_not_reached_are_in_the_result_and_its_hint() -> None:
    answer = {"id": "p1", "cause": "exited", "exit_code": 7}
    refused = {"what": "a.example:80", "count": 2, "answer": "ECONNREFUSED", "reason": None}
    result = result_of({**answer, "unreached": [refused]})

    assert result.unreached == (Unreached(**refused),) and result_of(answer).unreached == ()
    assert result.hint == "could not reach a.example:80: ECONNREFUSED"
