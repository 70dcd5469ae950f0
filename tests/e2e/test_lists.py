# SPDX-License-Identifier: Apache-2.0
"""Lists that no compiler compares. Each test fails if a row is missing; HACKING.md says what an addition needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.openrpc import VERBS
from lib.paths import PROJECT
from lib.sandbox import Holt

MANUAL = PROJECT / "man"
SDK = PROJECT / "contrib" / "python"


def page(name: str) -> str:
    return (MANUAL / f"{name}.scd").read_text()


def section(text: str, heading: str) -> str:
    """The part of a page below a heading, up to the next one of its level."""
    marks = heading.split()[0]
    return re.split(rf"^#{{1,{len(marks)}}} ", text.partition(f"\n{heading}\n")[2], flags=re.M)[0]


def terms(text: str) -> list[str]:
    """The words that a page describes: "*read_only*, *read_write*" are two."""
    return [name for line in re.findall(r"^\*\S.*", text, re.M) for name in re.findall(r"\*([^*]+)\*", line)]


def named(file: Path) -> "set[str]":
    """The words in quotes of a meson.build, comments left out."""
    return set(re.findall(r"'([^'\n]+)'", re.sub(r"#.*", "", file.read_text())))


# --- policies ---


def leaves(schema: "dict[str, Any]", prefix: str = "") -> Iterator[str]:
    """The fields of the schema, an object of free names as one: "limits.pids", "env.set"."""
    for name, each in schema["properties"].items():
        yield from leaves(each, f"{prefix}{name}.") if "properties" in each else [prefix + name]


def test_each_policy_field_is_in_the_manual(holt: Holt) -> None:
    schema = json.loads(holt(["policy", "schema"]).ok().out)
    text = page("holt-policy.5")
    fields = re.split(r"^## (\w+)\n", section(text, "# FIELDS"), flags=re.M)
    described = {f"{group}.{name}" for group, part in zip(fields[1::2], fields[2::2]) for name in terms(part)}

    assert described | set(terms(section(text, "# TOP LEVEL"))) == set(leaves(schema))


def descriptions(schema: "dict[str, Any]") -> Iterator[str]:
    for each in schema["properties"].values():
        yield from descriptions(each) if "properties" in each else [each["description"]]


def test_the_schema_describes_documents_and_no_options(holt: Holt) -> None:
    for text in descriptions(json.loads(holt(["policy", "schema"]).ok().out)):
        assert not re.search(r"--\w|\byours?\b|\bcurrent directory\b", text), text
        assert re.sub(r'only "none"|, or "none"|item "none"', "", text).count("none") == 0, text


def test_each_policy_field_has_an_effect() -> None:
    """Some code beyond the table of fields reads the member of Policy, or the member of LaunchPlan that a row names."""
    paths = [path for folder in ("policy", "runner") for path in (PROJECT / folder).rglob("*.c")]
    text = "".join(path.read_text() for path in paths if path.name != "fields.c")
    rows = (PROJECT / "policy" / "fields.c").read_text().split("{ .path = ")[1:]

    assert len(rows) > 20
    for row in rows:
        planned = re.search(r"\.plan = offsetof\(LaunchPlan, (\w+)\)", row)
        member = planned or re.search(r"AT\((\w+)\)", row)
        name = member[1] if member else ""
        read = rf"plan(->|\.){name}\b|offsetof\(LaunchPlan, {name}\)" if planned else rf"policy(->|\.){name}\b"
        assert re.search(read, text), row.split(",")[0]


# Limits that the launcher or the keeper enforces by itself. All others are rlimits.
KEPT_OUTSIDE = {"timeout", "kill_after", "output"}


def test_each_limit_is_set_in_the_child(holt: Holt) -> None:
    schema = json.loads(holt(["policy", "schema"]).ok().out)
    table = re.findall(r'\{ "(\w+)", RLIMIT_\w+, offsetof', (PROJECT / "runner" / "child" / "limits.c").read_text())

    assert set(table) | KEPT_OUTSIDE == {*schema["properties"]["limits"]["properties"]}


def test_the_fuzzer_of_policies_knows_every_word(holt: Holt) -> None:
    schema = json.loads(holt(["policy", "schema"]).ok().out)
    words = {word for field in leaves(schema) for word in field.split(".")} - {"$schema", "description"}
    known = re.findall(r'^"(.*)"$', (PROJECT / "tests" / "fuzz" / "policy.dict").read_text(), re.M)

    assert words - set(known) == set()


def test_each_group_of_system_calls_is_in_the_manual_and_has_calls(holt: Holt) -> None:
    listed = re.search(r"^  @GROUP .*\n((?: {30}.*\n)+)", holt(["run", "--help"]).ok().out, re.M)
    groups = re.findall(r"@\w+", listed[1]) if listed else []
    calls = [line.split()[1] for line in holt(["policy", "syscalls"]).ok().out.splitlines()]
    described = re.findall(r"@\w+", section(page("holt-policy.5"), "## syscalls").partition("Allowed groups:")[2])

    assert len(groups) > 30 and set(groups) == set(calls) == set(described)


# --- results ---


def test_one_function_writes_how_a_command_ended() -> None:
    """Results, events and history have the cause beside the exit code, so no writer may forget one of them."""
    texts = {path: path.read_text() for path in (PROJECT / "runner").rglob("*.c")}
    writers = [path for path, text in texts.items() if re.search(r'write_\w+\(&?w, "exit_code"', text)]

    assert writers == [PROJECT / "runner" / "outcome" / "outcome.c"]


# --- verbs ---


def test_each_verb_is_in_the_list_of_the_manual(holt: Holt) -> None:
    verbs = re.findall(r"^  ([a-z]+) {2}", holt(["--help"]).ok().out.partition("Options:")[0], re.M)

    assert sorted(terms(section(page("holt.1"), "# VERBS"))) == sorted(verbs)


def test_each_page_is_built_and_named_in_the_list_of_pages() -> None:
    pages = {path.name.removesuffix(".scd") for path in MANUAL.glob("*.scd")}
    see_also = section(page("holt.1"), "# SEE ALSO")
    seen = {f"{name}.{number}" for name, number in re.findall(r"\*(holt-\w+)\*\((\d)\)", see_also)}

    assert pages - named(MANUAL / "meson.build") == set()
    assert pages == seen | {"holt.1"}


# --- limits ---

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


def constants(paths: "list[Path]") -> "dict[str, int]":
    """Members of enums whose values are decimal numbers, or are computed from other members."""
    text = re.sub(r"/\*.*?\*/", "", "".join(path.read_text() for path in paths), flags=re.S)
    left = dict(re.findall(r"\b([A-Z][A-Z_]+) =\s+((?!0[0-7x])[\w\s()*+<]+)(?=[,}])", text))
    found: dict[str, int] = {}
    while ready := {name: value for name, value in left.items() if {*re.findall(r"[A-Za-z_]\w*", value)} <= {*found}}:
        for name, value in ready.items():
            found[name] = eval(" ".join(value.split()), {}, found)
            del left[name]
    return found


def test_each_limit_of_the_manual_on_security_is_that_of_the_sources() -> None:
    text = (PROJECT / "SECURITY.md").read_text()
    known = constants([path for folder in ("helpers", "runner") for path in (PROJECT / folder).rglob("*.[ch]")])
    rows = re.findall(r"^\|.*\| ([\d,]+)(?: (\S+))? \| `(\w+)` \|$", text, re.M)
    rows += re.findall(r"(\d+) (\wiB) \(`(\w+)`\)", text)

    assert len(rows) > 40
    for number, unit, name in rows:
        assert known[name] == int(number.replace(",", "")) * UNITS.get(unit, 1), name


# Places at which clients and code inside can create objects, and those whose limit applies to each request alone.
QUOTAS = ("files", "inside", "process", "rpc", "serve", "session", "store")
NO_QUOTAS = {"RPC_FDS_MAX", "RPC_QUEUE_FDS_MAX", "STORE_STATEMENTS_MAX"}


def test_each_quota_is_in_the_manual_on_security() -> None:
    """The name of a quota is the plural of what it counts, and MAX."""
    known = constants([path for folder in QUOTAS for path in (PROJECT / "runner" / folder).glob("*.h")])
    text = (PROJECT / "SECURITY.md").read_text()

    assert {name for name in known if name.endswith("S_MAX") and f"`{name}`" not in text} == NO_QUOTAS


# --- rows of the audit ---


def test_the_kinds_of_the_audit_are_those_of_the_manual(holt: Holt) -> None:
    kinds = (re.search(r"--kind (\S+)", holt(["audit", "--help"]).ok().out) or ["", ""])[1].split("|")
    described = page("holt-kv.1").partition("## audit\n")[2].partition("\n## ")[0]

    table = re.search(r"audit_kinds\[.*?\{(.*?)\}", (PROJECT / "runner/store/audit.c").read_text(), re.S)

    assert table and kinds == re.findall(r'"(\w+)"', table[1]) == re.findall(r"^\*(\w+)\*$", described, re.M)
    for kind in kinds:
        assert "does not exist" in holt(["audit", "none", "--kind", kind]).err, kind


# --- errors ---


def test_each_kind_of_error_is_in_the_manual_and_a_class_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SDK)
    import holt.errors as errors

    table = re.search(r"kinds\[\] = \{(.*?)^\};", (PROJECT / "runner" / "base" / "error.c").read_text(), re.S | re.M)
    kinds = set(re.findall(r'"([a-z-]+)"', table[1] if table else ""))
    listed = re.search(r"^\*kind\*\n\tOne of (.*?)\.$", page("holt.1"), re.S | re.M)

    assert "not-executable" in kinds
    assert set(re.findall(r"\*([a-z-]+)\*", listed[1] if listed else "")) == kinds
    assert kinds <= set(re.findall(r"^:  ([a-z-]+)$", page("holt-serve.1"), re.M))
    for kind in kinds:
        assert type(errors.error_of({"message": "", "data": {"kind": kind}})).kind == kind


# Verbs without a method, and those of them that hints for clients of holt serve may name.
NO_METHOD = {"bwrap", "doctor", "mcp", "policy", "run", "serve", "sh"}
IN_HINTS = {"doctor", "run"}


def test_the_checker_of_hints_knows_the_words_of_the_command_line() -> None:
    hints = (PROJECT / "runner" / "rpc" / "hints.c").read_text()
    rows = re.findall(r'\{ "(\w+)", ', hints.partition("} verbs[] = {")[2].partition("\n};")[0])
    verbs = re.findall(r"(?:LIGHT|FULL)\((\w+), ", (PROJECT / "runner" / "cli" / "verbs.h").read_text())

    assert len(verbs) > 20
    assert sorted([*VERBS, *IN_HINTS]) == sorted(verbs)
    assert sorted([*rows, *NO_METHOD]) == sorted(verbs)


def test_the_sdk_knows_each_group_of_policy_fields(holt: Holt, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints with a field of an unknown group would reach users of the SDK unchanged."""
    monkeypatch.syspath_prepend(SDK)
    from holt._hints import GROUPS

    schema = json.loads(holt(["policy", "schema"]).ok().out)

    assert set(GROUPS) == {field.partition(".")[0] for field in leaves(schema) if "." in field}


# --- files of the tests ---


def test_each_unit_test_is_built() -> None:
    tests = PROJECT / "tests" / "unit"
    names = {path.stem.removeprefix("test-") for path in tests.glob("test-*.c")}

    assert len(names) > 40 and names - named(tests / "meson.build") == set()
    assert {path.name for path in tests.glob("*-fixture.c")} - named(tests / "meson.build") == set()


def test_each_fuzzer_is_built_and_has_a_corpus() -> None:
    tests = PROJECT / "tests" / "fuzz"
    names = {path.stem.removeprefix("fuzz-") for path in tests.glob("fuzz-*.c")}

    assert len(names) > 8 and names - named(tests / "meson.build") == set()
    assert {path.name for path in (tests / "corpus").iterdir()} == names
    assert {path.stem for path in tests.glob("*.dict")} <= names


def test_each_hostile_program_is_built_and_used() -> None:
    suites = (PROJECT / "tests" / "escape", PROJECT / "tests" / "e2e")
    programs = [path for suite in suites for path in suite.glob("*.c")]
    texts = "".join(path.read_text() for suite in (*suites, PROJECT / "tests" / "lib") for path in suite.glob("*.py"))

    for path in programs:
        assert any(Path(name).name == path.name for name in named(PROJECT / "tests" / "escape" / "meson.build")), path
        assert re.search(rf'"{path.stem}(\.c)?"', texts), f"no test starts {path.name}"


# --- files that are put inside ---


def test_each_helper_module_is_put_into_sessions() -> None:
    modules = {path.stem for path in (PROJECT / "helpers" / "python").glob("*.py")}

    assert len(modules) > 5 and modules - named(PROJECT / "helpers" / "meson.build") == set()
