# SPDX-License-Identifier: Apache-2.0
"""Writes messages as strict JSON, one per line."""

from __future__ import annotations

import contextlib
import json
import json.encoder
import math
import os
import re
from typing import Any, Callable, Iterable, Mapping

from .errors import LimitError, UsageError

Params = Mapping[str, Any]

LINE_MAX = 1 << 20
"""Maximum bytes of a message that holt serve accepts."""

INTEGER_MAX = 2**53 - 1
"""The largest integer that holt serve accepts in a request; the smallest is its negative."""

DEPTH_MAX = 64
"""Maximum nesting depth of objects and lists in a message."""

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # NUL, as JSON encodes it


def _path(value: Any) -> str:
    """Converts a parameter that JSON has no type for: a path becomes its text."""
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise UsageError(f"{value!r} can't be sent to a sandbox: it is a {type(value).__name__}")


def _encoder() -> "Callable[[Any, int], Iterable[str]]":
    """Returns a function that encodes a value as parts of a JSON text. Its second argument is 0.

    json.JSONEncoder.encode() makes a new encoder in C for each call, which takes longer than a short message. If this
    Python's json has that encoder, this function returns it."""
    with contextlib.suppress(Exception):
        module: Any = json.encoder
        chunks = module.c_make_encoder(None, _path, module.encode_basestring, None, ":", ",", False, False, True)
        if "".join(chunks({"a": ["\n", 1, None]}, 0)) == '{"a":["\\n",1,null]}':
            return chunks  # type: ignore[no-any-return]
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_path)
    return lambda value, _: (encoder.encode(value),)


_encode = _encoder()


_PLAIN = (str, bool, type(None))


def _check(value: Any, what: str, depth: int) -> None:
    """Raises UsageError for a value that json.dumps() accepts and strict JSON does not. The server could not parse it,
    and its error could not name the request."""
    if not isinstance(value, (dict, list, tuple)):
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{what}: JSON has no number {value}")
        if isinstance(value, int) and abs(value) > INTEGER_MAX:
            raise UsageError(
                f"{what}: an integer is past 2^53 - 1, where numbers of JSON lose digits", hint="Pass it as text."
            )
        return
    if depth > DEPTH_MAX:
        raise UsageError(f"{what}: objects and lists are nested more than {DEPTH_MAX} deep")
    for name in value if isinstance(value, dict) else ():
        if not isinstance(name, str):
            raise UsageError(f"{what}: the name {name!r} must be text", hint=f"Write str({name!r}).")
    _check_each(value.values() if isinstance(value, dict) else value, what, depth + 1)


def _check_each(values: Iterable[Any], what: str, depth: int) -> None:
    for each in values:
        if type(each) not in _PLAIN:
            _check(each, what, depth)


def _written(value: Any, what: str) -> str:
    """Returns a checked value as JSON. Raises UsageError."""
    text = "".join(_encode(value, 0))
    # The first test is a hundred times as fast, and nearly always enough.
    if "\\u0000" in text and _NUL.search(text.encode(errors="replace")):
        raise UsageError(f"{what}: a text has a NUL, which messages must not contain")
    return text


def text_of(value: Any, what: str, depth: int = 2) -> str:
    """Returns a value as strict JSON. Raises UsageError.

    what   the method, or another subject for the error
    depth  nesting depth of the value in its message
    """
    _check(value, what, depth)
    return _written(value, what)


def bytes_of(text: str, what: str) -> bytes:
    """Returns the bytes of a message. Raises UsageError."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{what}: a text has half of a surrogate pair, which is no character") from error


def line_of(number: int, method: str, params: Params) -> bytes:
    """Returns the line of a request. Raises UsageError, or LimitError if the line is too long."""
    _check_each(params.values(), method, 3)
    text = _written(params, method)
    line = bytes_of(f'{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{text}}}\n', method)
    if len(line) > LINE_MAX:
        raise LimitError(
            f"{method}: the request has {len(line)} bytes, and may have at most {LINE_MAX}",
            hint="Write the data to a file by files.write().",
        )
    return line
