# SPDX-License-Identifier: Apache-2.0
"""Splits docstrings into the descriptions of a function and of its parameters, for a model.

Descriptions of parameters may have the style of Google, NumPy or Sphinx. Only entries that name an existing parameter
are split off. All other text stays in the description of the function.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Pattern, Tuple

DESCRIPTION_MAX = 16 * 1024
"""Maximum bytes of a tool's description that holt accepts."""

_CONTROLS = {n: 0xFFFD for n in (*range(32), 127) if chr(n) not in "\t\n\r"}
_NAMES = r"\s*(?:[-*+] )?[`*]{0,2}(?P<names>\w+(?:, ?\w+)*)[`*]{0,2}"
_GOOGLE = re.compile(_NAMES + r"(?: ?\(.*?\))?[`*]{0,2}(?: ?:| [-\u2013\u2014]+ )(?P<text>.*)")
_NUMPY = re.compile(_NAMES + r"(?: ?: *(?P<type>.+))?$")
_SPHINX = re.compile(r"\s*:(?:param|parameter|arg|argument|key|keyword) (?:[^:]* )?\**(?P<names>\w+) ?:(?P<text>.*)")
_SPHINX_TYPE = re.compile(r"\s*:type (?P<names>\w+) ?:(?P<type>.*)")  # used if :param: has no text
_HEADING = re.compile(r"\s*(?:(?:Other|Keyword) )?(?:Args|Arguments|Params|Parameters):?\s*$", re.IGNORECASE)
_UNDERLINE = re.compile(r"\s*(?:-{3,}|={3,})\s*$")


class Documentation(NamedTuple):
    description: str
    parameters: Dict[str, str]


def docstring_of(function: Any) -> str:
    """Returns the docstring of a callable, or of the function that it calls: that of a partial, or an
    object's __call__."""
    while isinstance(function, functools.partial) and "__doc__" not in vars(function):
        function = function.func
    called = getattr(type(function), "__call__", None)
    said = inspect.getdoc(called) if inspect.isfunction(called) else None
    return said or inspect.getdoc(function) or ""


def documentation_of(function: Any, parameters: Collection[str]) -> Documentation:
    """Returns the parts of a callable's docstring. The result has only the parameters that the docstring describes."""
    return parted(docstring_of(function), parameters)


def parted(doc: str, parameters: Collection[str]) -> Documentation:
    texts: Dict[str, str] = {}
    lines, kept = doc.splitlines(), []  # type: List[str], List[str]
    at = 0
    while at < len(lines):
        section = _section_at(lines, at)
        if section is None:
            kept.append(lines[at])
            at += 1
            continue
        begin, end, entry = section
        left = _taken(lines[begin:end], entry, parameters, texts)
        if len(left) == end - begin or any(entry.match(line) for line in left):
            kept += lines[at:begin]
        kept += left
        at = end
    for entry in (_SPHINX, _SPHINX_TYPE):
        kept = _taken(kept, entry, parameters, texts)
    return Documentation(re.sub(r"\n(?:[ \t]*\n){2,}", "\n\n", "\n".join(kept)).strip(), texts)


def _section_at(lines: "List[str]", at: int) -> "Optional[Tuple[int, int, Pattern[str]]]":
    """If this line is a heading of parameters, returns the range of their lines and the pattern of an entry."""
    begin = at + 1
    if not _HEADING.match(lines[at]):
        return None
    if begin < len(lines) and _UNDERLINE.match(lines[begin]):
        further = (n - 1 for n in range(at + 2, len(lines)) if _UNDERLINE.match(lines[n]))
        return at + 2, next(further, len(lines)), _NUMPY
    end = _below(lines, at)
    if end == begin:  # not indented, so it ends at an empty line
        end = next((n for n in range(begin, len(lines)) if not lines[n].strip()), len(lines))
    return begin, end, _GOOGLE


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _below(lines: "List[str]", at: int) -> int:
    """Returns the end of the lines after this one that are indented deeper."""
    end = at + 1
    for number in range(at + 1, len(lines)):
        if lines[number].strip():
            if _indent(lines[number]) <= _indent(lines[at]):
                break
            end = number + 1
    return end


def _taken(
    lines: "List[str]", entry: "Pattern[str]", parameters: Collection[str], texts: Dict[str, str]
) -> "List[str]":
    """Moves the entries of parameters to texts. Returns the remaining lines."""
    left: List[str] = []
    at = 0
    while at < len(lines):
        match = entry.match(lines[at])
        names = match["names"].replace(",", " ").split() if match else []
        if not match or not set(names) <= set(parameters):
            left.append(lines[at])
            at += 1
            continue
        end, said = _below(lines, at), match.groupdict()
        while entry is _SPHINX and end < len(lines) and lines[end].strip() and not lines[end].lstrip().startswith(":"):
            end += 1  # a Sphinx entry may continue without indentation
        text = inspect.cleandoc("\n".join([said.get("text") or "", *lines[at + 1 : end]])) or said.get("type") or ""
        for name in names if text.strip() else ():
            texts.setdefault(name, text.strip())
        at = end
    return left


def fitting(text: str, room: int = DESCRIPTION_MAX) -> str:
    """Returns a text without control characters, cut to room bytes with an ellipsis."""
    data = text.translate(_CONTROLS).encode(errors="replace")
    return data.decode() if len(data) <= room else data[: room - 3].decode(errors="ignore").rstrip() + "\u2026"
