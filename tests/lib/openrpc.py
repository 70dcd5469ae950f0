# SPDX-License-Identifier: Apache-2.0
"""Checks messages against the OpenRPC document that `holt serve --openrpc` prints.

Every client of the suites has a Checker (lib/sessions.py, contrib/python/tests/conftest.py). A result with an undocumented
member, or without a documented one, fails the test that received it.

It needs only the standard library, because the Python tests run without any package for JSON Schema.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

# All supported keywords of schemas. Any other keyword in the document is an error of this checker.
KEYWORDS = {
    "$ref", "additionalProperties", "allOf", "anyOf", "const", "description", "enum", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minLength", "minimum", "oneOf", "pattern", "properties", "propertyNames", "required", "title",
    "type",
}

TYPES = {
    "array": list, "boolean": bool, "integer": int, "null": type(None), "number": (int, float), "object": dict,
    "string": str,
}

# Errors of JSON-RPC itself, with which the server may answer any request.
GENERAL = ("parse-error", "invalid-request", "unknown-method", "invalid-params")


# Verbs of the command line, which the texts for clients of holt serve must not name. test_lists.py compares them with verbs.h.
VERBS = (
    "allow", "audit", "bwrap", "cp", "create", "exec", "files", "forward", "history", "kill", "kv", "link", "logs", "ls", "mcp", "policy", "ps", "python", "rebind",
    "rm", "route", "serve", "sh", "shell", "show", "stop", "tier", "wait",
)
COMMAND_WORDS = re.compile(rf"(?<![\w-])--[a-z][a-z-]*|\bholt (?:{'|'.join(VERBS)})\b|\bexec -- ")

# Commands without a method, and other programs. The rest of the line is theirs.
ALLOWED = re.compile(r"\b(?:docker|git|holt doctor|holt run|sudo|unshare|sysctl)\b.*|--security-opt\b")
QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def command_words(text: str) -> list[str]:
    """Returns the words of the command line in a text, except for those in quotes: they come from the client."""
    return COMMAND_WORDS.findall(ALLOWED.sub("", QUOTED.sub('""', text)))


def texts_of(result: Json) -> list[str]:
    """Returns the texts in a result that holt has written for its client. For example, holt writes the hint about a missing
    module."""
    error = result.get("error")
    texts = [error["message"]] if isinstance(error, dict) and error.get("name") == "ModuleNotFoundError" else []
    return [*texts, *result.get("warnings", ())]


class Mismatch(AssertionError):
    """A message differs from the document."""


def _is(value: Any, name: str) -> bool:
    if name in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, TYPES[name])


class Document:
    """An OpenRPC document, with its references resolved on the way."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self.methods: dict[str, Json] = {m["name"]: m for m in root["methods"]}
        self.notifications: dict[str, Json] = {m["name"]: m for m in root["x-notifications"]}
        self.requests: dict[str, Json] = {m["name"]: m for m in root["x-requests"]}
        self.names: dict[int, str] = {e["code"]: name for name, e in root["components"]["errors"].items()}

    def resolve(self, thing: Json) -> Json:
        while "$ref" in thing:
            found: Any = self.root
            start, *parts = thing["$ref"].split("/")
            assert start == "#", thing
            for part in parts:
                found = found[part]
            thing = found
        return thing

    def wrong(self, schema: Json, value: Any, at: str = "$") -> Iterator[str]:
        """Yields a line for each mistake in a value."""
        assert set(schema) <= KEYWORDS, f"the checker does not know {set(schema) - KEYWORDS}"
        schema = self.resolve(schema)
        if set(schema) <= {"title", "description"}:
            return  # any value, which may be huge
        if "oneOf" in schema:
            fitting = [s for s in schema["oneOf"] if not list(self.wrong(s, value, at))]
            if len(fitting) != 1:
                yield f"{at}: fits {len(fitting)} schemas of oneOf: {value!r:.200}"
            return
        for each in schema.get("allOf", ()):
            yield from self.wrong(each, value, at)
        if "anyOf" in schema and all(list(self.wrong(s, value, at)) for s in schema["anyOf"]):
            yield f"{at}: fits no schema of anyOf: {value!r:.200}"
        if "const" in schema and value != schema["const"]:
            yield f"{at}: is not {schema['const']!r}: {value!r:.200}"
        names = schema.get("type", list(TYPES))
        if not any(_is(value, name) for name in ([names] if isinstance(names, str) else names)):
            yield f"{at}: is not of type {names}: {value!r:.200}"
        elif "enum" in schema and value not in schema["enum"]:
            yield f"{at}: is none of {schema['enum']}: {value!r:.200}"
        elif isinstance(value, dict):
            yield from self._wrong_object(schema, value, at)
        elif isinstance(value, list):
            if len(value) > schema.get("maxItems", len(value)):
                yield f"{at}: has {len(value)} items"
            for i, item in enumerate(value):
                yield from self.wrong(schema.get("items", {}), item, f"{at}[{i}]")
        elif isinstance(value, str):
            # holt counts bytes, and each character has at least one.
            if len(value.encode(errors="replace")) > schema.get("maxLength", len(value) * 4):
                yield f"{at}: is too long"
            if len(value) < schema.get("minLength", 0):
                yield f"{at}: is too short"
            if not re.search(schema.get("pattern", ""), value):
                yield f"{at}: does not match {schema['pattern']}: {value!r:.200}"
        elif isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{at}: is out of range: {value}"

    def _wrong_object(self, schema: Json, value: Json, at: str) -> Iterator[str]:
        known = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        if len(value) > schema.get("maxProperties", len(value)):
            yield f"{at}: has {len(value)} members"
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}: has no {name!r}"
        for name, member in value.items():
            yield from self.wrong(schema.get("propertyNames", {}), name, f"{at}.{name} (the name)")
            if name in known:
                yield from self.wrong(known[name], member, f"{at}.{name}")
            elif more is False:
                yield f"{at}: has {name!r}, which the document does not know"
            elif isinstance(more, dict):
                yield from self.wrong(more, member, f"{at}.{name}")

    def params_schema(self, method: Json, without_session: bool = False) -> Json:
        """Returns the schema of all parameters of a method. without_session is for the socket of one session."""
        params = [p for p in method["params"] if not (without_session and p["name"] == "session")]
        return {
            "type": "object",
            "properties": {p["name"]: p["schema"] for p in params},
            "required": [p["name"] for p in params if p["required"]],
            "additionalProperties": False,
        }

    def errors_of(self, method: Json) -> set[int]:
        """Returns the error codes with which a method may answer."""
        general = {self.root["components"]["errors"][name]["code"] for name in GENERAL}
        return general | {self.resolve(e)["code"] for e in method["errors"]}


@functools.lru_cache(maxsize=None)
def document_of(holt: str) -> Document:
    out = subprocess.run([holt, "serve", "--openrpc"], stdout=subprocess.PIPE, check=True).stdout
    return Document(json.loads(out))


def _may_be_refused(value: Any) -> bool:
    """Whether holt may refuse parameters for a reason that the schemas do not express. Examples are a path with invalid base64
    after U+0001, "=" in a variable's name, and a number past 2^53.
    """
    text = json.dumps(value)
    return "\\u0001" in text or "=" in text or '"": ' in text or any(len(part) > 15 for part in text.split())


class Checker:
    """Checks the messages of one connection, in both directions.

    alone   the connection uses one session's own socket, so no parameter is called session
    strict  the client sends only right messages, and the checker sees all of them
    """

    def __init__(self, document: Document, alone: bool, strict: bool = False) -> None:
        self.document, self.alone, self.strict = document, alone, strict
        self.seen: set[str] = set()  # methods with a result, and received notifications
        self._asked: dict[Any, Json] = {}
        self._asked_by_server: dict[Any, str] = {}  # the methods of the server's requests

    def sent(self, data: bytes) -> None:
        """Records the requests in data, and checks the replies to the server's requests. Raises Mismatch."""
        for line in data.splitlines():
            try:
                message = json.loads(line)
            except (ValueError, RecursionError) as error:
                if self.strict and line:
                    raise Mismatch(f"a client sent no JSON: {line[:300]!r}") from error
                continue
            if self.strict:
                self._strictly(message)
            if not isinstance(message, dict) or not isinstance(message.get("id"), (int, str)):
                continue
            if "method" in message:
                self._asked[message["id"]] = message
            elif "result" in message and (asked := self._asked_by_server.pop(message["id"], None)):
                self._check(self.document.requests[asked]["result"]["schema"], message["result"], f"reply to {asked}")

    def _strictly(self, message: Json) -> None:
        """Checks the envelope of a message that a client sends. A notification gets no reply, so its parameters are checked here."""
        known = {"jsonrpc", "id", "method", "params"} if "method" in message else {"jsonrpc", "id", "result", "error"}
        if message.get("jsonrpc") != "2.0" or not set(message) <= known or ("result" in message) and ("error" in message):
            raise Mismatch(f"a client sent a wrong message: {message!r:.300}")
        if "method" not in message and message.get("id") not in self._asked_by_server:
            raise Mismatch(f"a client answered a request that did not come: {message!r:.300}")
        if "method" in message and "id" not in message:
            method = self.document.methods.get(message["method"])
            if not method:
                raise Mismatch(f"the document has no {message['method']}, which a client sent as a notification")
            self._check(self.document.params_schema(method, self.alone), message.get("params", {}), message["method"])

    def came(self, message: Json) -> None:
        """Raises Mismatch."""
        if "method" in message:
            self._came_by_itself(message)
        elif message.get("id") in self._asked:
            self._answer(self._asked.pop(message["id"]), message)
        elif self.strict and message.get("id") is not None:
            raise Mismatch(f"a reply to no request: {message!r:.300}")

    def _came_by_itself(self, message: Json) -> None:
        known = self.document.requests if "id" in message else self.document.notifications
        method = known.get(message["method"])
        if not method:
            raise Mismatch(f"the document has no {message['method']}")
        self._check(self.document.params_schema(method, self.alone), message["params"], message["method"])
        if "id" in message:
            self._asked_by_server[message["id"]] = message["method"]
        self.seen.add(message["method"])

    def _answer(self, request: Json, message: Json) -> None:
        method = self.document.methods.get(request["method"]) if isinstance(request["method"], str) else None
        if "error" in message:
            self._error(method, request, message["error"])
            return
        if not method:
            raise Mismatch(f"{request['method']} was answered, and is not in the document: {message!r:.300}")
        self._check(self.document.params_schema(method, self.alone), request.get("params", {}), request["method"])
        self._check(method["result"]["schema"], message["result"], f"result of {request['method']}")
        self._words(request["method"], *texts_of(message["result"]))
        self.seen.add(request["method"])

    def _error(self, method: Json | None, request: Json, error: Json) -> None:
        name = self.document.names.get(error["code"])
        if not name or name != error["data"]["name"]:
            raise Mismatch(f"{request['method']}: the document has no such error: {error}")
        self._check({"$ref": "#/components/schemas/ErrorData"}, error["data"], f"error of {request['method']}")
        if "command_hint" in error["data"] and not self.alone:
            raise Mismatch(f"{request['method']}: command_hint is only for the command line: {error}")
        self._words(request["method"], error["message"], error["data"]["hint"] or "")
        if not method:
            return
        if error["code"] not in self.document.errors_of(method):
            raise Mismatch(f"{request['method']}: the document does not say that it answers {name}: {error}")
        params = request.get("params", {})
        schema = self.document.params_schema(method, self.alone)
        if name == "invalid-params" and not list(self.document.wrong(schema, params)) and not _may_be_refused(params):
            raise Mismatch(f"{request['method']}: refused, but right by the document: {params!r:.300}: {error}")

    def _words(self, method: str, *texts: str) -> None:
        for text in texts:
            if command_words(text):
                raise Mismatch(f"{method}: {command_words(text)} is of the command line: {text!r}")

    def _check(self, schema: Json, value: Any, what: str) -> None:
        wrong = list(self.document.wrong(schema, value))
        if wrong:
            raise Mismatch(f"{what}: {'; '.join(wrong)}: {json.dumps(value)[:600]}")


def checker(holt: str | os.PathLike[str], alone: bool = False) -> Checker:
    return Checker(document_of(os.fspath(holt)), alone)
