# SPDX-License-Identifier: Apache-2.0
"""Descriptions of tools and parameters for a model, from docstrings and Annotated."""

from __future__ import annotations

import functools
import json
import textwrap
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Dict, List, Optional, TypedDict

import pytest

from holt import Sandbox, Tool
from holt._docstring import DESCRIPTION_MAX, fitting, parted
from holt.schema import from_json, schema_of
from holt.tools import SCHEMA_MAX

GOOGLE = """\
    The forecast of a city.

    Use it only for cities in Europe:
        Oslo, Rome.

    Args:
        city: Its name,
            in English.

            As an atlas has it.
        lon, lat (Optional[Tuple[int, str]], optional): Degrees.
        days (int):
            How many.
        unit: C or F

    Returns:
        Degrees a day.
    """

NUMPY = """\
    The forecast of a city.

    Use it only for cities in Europe:
        Oslo, Rome.

    Parameters
    ----------
    city : str
        Its name,
        in English.

        As an atlas has it.
    lon, lat : float
        Degrees.
    days
        How many.

    Other Parameters
    ----------------
    unit : C or F

    Returns
    -------
    list of float
        Degrees a day.
    """

SPHINX = """\
    The forecast of a city.

    Use it only for cities in Europe:
        Oslo, Rome.

    :param str city: Its name,
        in English.

        As an atlas has it.
    :param lon: Degrees.
    :type lon: float
    :param lat:
    Degrees.
    :param dict[str, int] days: How many.
    :type unit: C or F
    :returns: Degrees a day.
    """

SAID = {
    "city": "Its name,\nin English.\n\nAs an atlas has it.", "lon": "Degrees.", "lat": "Degrees.", "days": "How many.",
    "unit": "C or F",
}
TOLD = "The forecast of a city.\n\nUse it only for cities in Europe:\n    Oslo, Rome.\n\n"


@pytest.mark.parametrize("doc, returns", [
    (GOOGLE, "Returns:\n    Degrees a day."),
    (NUMPY, "Returns\n-------\nlist of float\n    Degrees a day."),
    (SPHINX, ":returns: Degrees a day."),
], ids=["google", "numpy", "sphinx"])
def test_a_docstring_is_parted(doc: str, returns: str) -> None:
    def forecast(city: str, lon: float, lat: float, days: int = 3, unit: str = "C", more: bool = False) -> List[float]:
        return []

    forecast.__doc__ = doc
    tool = Tool.of(forecast)
    properties = tool.input_schema["properties"]
    assert tool.description == TOLD + returns
    assert {name: each["description"] for name, each in properties.items() if "description" in each} == SAID
    assert properties["more"] == {"type": "boolean", "default": False}
    assert Tool.of(forecast, description="Mine.").description == "Mine."


@pytest.mark.parametrize("doc, description, parameters", [
    ("", "", {}),
    ("Args:", "Args:", {}),
    ("A.\n\nParameters\n    a: one", "A.", {"a": "one"}),
    ("Args:\n    None.", "Args:\n    None.", {}),
    ("Parameters\n---", "Parameters\n---", {}),
    ("Args:\n  a: one\n  b:\nReturns: x", "Returns: x", {"a": "one"}),
    ("A.\n\nParameters:\n- `a` (int): one\n- **b** - two\n\nMore.", "A.\n\nMore.", {"a": "one", "b": "two"}),
    ("A.\n\nArgs:\n    All in SI.\n    a: one", "A.\n\n    All in SI.", {"a": "one"}),
    ("A.\n\nArgs:\n    a: one\n    c: gone\n        on", "A.\n\nArgs:\n    c: gone\n        on", {"a": "one"}),
    ("Parameters\n---\na : int\n  one\n\nc : int\n  gone", "Parameters\n---\n\nc : int\n  gone", {"a": "one"}),
    ("Give a: it is\nArguments: a and b", "Give a: it is\nArguments: a and b", {}),
    (":param a: one\n:param c: gone\n:raises b: no", ":param c: gone\n:raises b: no", {"a": "one"}),
    ("Args:\n  a: one\n\nArguments:\n  a: two", "", {"a": "one"}),
])
def test_sections_that_name_no_parameter_stay_in_the_description(doc: str, description: str, parameters: Dict[str, str]) -> None:
    assert parted(doc, ["a", "b"]) == (description, parameters)


class Mark:
    def __init__(self, **said: Any) -> None:
        vars(self).update(said)


class Row(TypedDict):
    size: Annotated[int, "Bytes."]


@dataclass
class Point:
    x: Annotated[int, Mark(description="To the right.")]
    row: Annotated[Optional[Row], Mark(documentation="What is there.")] = None


def test_annotated_takes_precedence_over_the_docstring() -> None:
    def show(a: int, b: int, c: int, d: int, e: int, p: List[Point]) -> int:
        """Shows.

        Args:
            a: No.
            b: No.
            c: Three.
            d: Four.
        """
        return a

    show.__annotations__ = {
        "a": Annotated[int, 1, "One."], "b": Annotated[int, Mark(description="Two.")], "c": Annotated[int, " "],
        "d": Annotated[int, Mark(description=None)], "e": Annotated[int, "Five.", "Six."], "p": List[Point],
        "return": Annotated[int, "The sum."],
    }
    tool = Tool.of(show)
    properties = tool.input_schema["properties"]
    assert [properties[name].get("description") for name in "abcde"] == ["One.", "Two.", "Three.", "Four.", "Five."]
    assert tool.output_schema == {"type": "integer", "description": "The sum."}
    point = properties["p"]["items"]["properties"]
    assert point["x"] == {"type": "integer", "description": "To the right."}
    assert point["row"]["description"] == "What is there."
    assert point["row"]["anyOf"][0]["properties"]["size"] == {"type": "integer", "description": "Bytes."}
    assert schema_of(Annotated[int, "a\0" + "b" * 20_000])["description"].startswith("a\ufffdb")

    @dataclass
    class Local:
        more: Annotated[Optional[Local], "Further ones."] = None

    assert "Further ones." in str(schema_of(Local))
    handled = tool.handler({**dict.fromkeys("abcde", 1), "p": [{"x": 1, "row": {"size": 2}}]})
    assert handled == 1 and schema_of(Annotated[int, "text"]) == {"type": "integer", "description": "text"}


def test_annotated_in_what_a_typed_dict_says_of_a_field() -> None:
    """Tests the TypedDict qualifiers that this Python has."""
    said = Annotated[int, "Bytes."]
    forms = [getattr(typing, name) for name in ("Required", "NotRequired", "ReadOnly") if hasattr(typing, name)]
    for hint in (said, *(form[said] for form in forms)):
        fields: Any = TypedDict("fields", {"size": hint})  # type: ignore[misc]
        assert schema_of(fields)["properties"] == {"size": {"type": "integer", "description": "Bytes."}}
        assert from_json({"size": 1}, fields) == {"size": 1}


def test_the_docstring_of_partials_and_callable_objects() -> None:
    def add(a: int, b: int = 2) -> int:
        """Adds.

        Args:
            a: The first.
            b: What partial() gives, which is not for a model.
        """
        return a + b

    class Repeat:
        """Repeats words."""

        def __init__(self, times: int) -> None:
            self.times = times

        def __call__(self, word: str) -> str:
            """Repeats a word.

            Args:
                word: Any.
            """
            return word * self.times

    class Plain:
        """Gives words back."""

        def __call__(self, word: str) -> str:
            return word

    five = functools.partial(functools.partial(add), b=5)
    tool = Tool.of(five, name="five")
    assert tool.description == "Adds."
    assert tool.input_schema["properties"] == {"a": {"type": "integer", "description": "The first."}}
    five.__doc__ = "Adds five."
    assert Tool.of(five, name="five").description == "Adds five."
    tool = Tool.of(Repeat(2), name="repeat")
    assert tool.description == "Repeats a word." and tool.input_schema["properties"]["word"]["description"] == "Any."
    assert Tool.of(Plain(), name="plain").description == "Gives words back."


def test_long_descriptions_are_cut() -> None:
    assert fitting("abc", 3) == "abc" and fitting("abcdef", 5) == "ab…" and fitting("aä€", 6) == "aä€"
    assert fitting("a\0\x1b\x7fb\n\t\ud800") == "a\ufffd\ufffd\ufffdb\n\t?"
    for room in range(3, 12):
        assert len(fitting("ä€𐍈" * 4, room).encode()) <= room

    def one(a: str, b: Annotated[str, "x" * 100_000]) -> None: ...

    one.__doc__ = "ä" * 100_000 + "\n\nArgs:\n    a: " + "€" * 100_000
    tool = Tool.of(one)
    assert len(tool.description.encode()) in range(DESCRIPTION_MAX - 4, DESCRIPTION_MAX + 1)
    a, b = (tool.input_schema["properties"][name]["description"] for name in "ab")
    assert a.endswith("€…") and b.endswith("x…") and len(a.encode()) > 16_000


def wide(count: int, text: str) -> Any:
    """Makes a function with count parameters, each with the same description."""
    names = [f"a{n}" for n in range(count)]
    space: Dict[str, Any] = {}
    exec(f"def wide({', '.join(f'{name}: int = 0' for name in names)}): ...", space)
    space["wide"].__doc__ = "Wide.\n\nArgs:\n" + "".join(f"    {name}: {text}\n" for name in names)
    return space["wide"]


@pytest.mark.usefixtures("bridge")
class TestBridge:
    def test_no_docstring_is_refused(self, box: Sandbox) -> None:
        """Tests texts that are too long, or have characters that no message may contain."""
        def tool(a: int = 1) -> int:
            return a

        for doc in ("\0", "\ud800", "\x1b\x7f\x85\u2028", "\\" * 50_000, "ä" * 50_000, "\n" * 50_000, "x\n" * 50_000):
            for form in ("{}", "Args:\n    a: {}", "Parameters\n---\na\n    {}", ":param a: {}", ":type a: {}"):
                tool.__doc__ = form.format(doc)
                box.add_tool(tool)
        for count, text in ((60, "\x7f" * 5000), (600, '"' * 5000), (1200, "x" * 5000)):
            box.add_tool(wide(count, text))
        assert box.python("from host_tools import call, search; call('tool', {'a': 7})").check().result == "7"
        found = box.python("len(str(search('wide', 'full')))").check().result
        assert int(found or 0) < SCHEMA_MAX + 1000

    def test_search_finds_what_is_said(self, box: Sandbox) -> None:
        def forecast(city: str, days: int = 3) -> float:
            """The forecast of a city,
            in degrees.

            Use it only for cities in Europe.

            Args:
                city: As an atlas has it.
            """
            return 1

        def other(description: str) -> None:
            """Something else."""

        box.add_tool(forecast)
        box.add_tool(other)
        code = "import json; from host_tools import search; print(json.dumps([search('europe'), search('atlas', 'full')]))"
        (brief,), (full,) = json.loads(box.python(code).check().stdout)
        assert brief["description"] == "The forecast of a city, in degrees. …" and "input_schema" not in brief
        assert full["description"] == textwrap.dedent("""\
            The forecast of a city,
            in degrees.

            Use it only for cities in Europe.""")
        assert full["input_schema"]["properties"]["city"] == {"type": "string", "description": "As an atlas has it."}
        listed = box.bash("holt-tool --list").check().stdout
        assert "forecast\tThe forecast of a city,\n" in listed and len(listed.splitlines()) == 2
