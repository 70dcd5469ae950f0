# SPDX-License-Identifier: Apache-2.0
"""contrib/mastra: its own tests against the real @mastra/core, its package and its README."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.node import (  # noqa: F401
    COMPILER, TYPESCRIPT, WITHIN, Node, blocks, compiled, copy_of_source, node, put_modules, put_package, put_program, run_tests, shown, tsc,
    with_node,
)
from lib.paths import PROJECT
from lib.sandbox import Holt
from lib.tools import needs

SOURCE = PROJECT / "contrib" / "mastra"
MODULES = SOURCE / "node_modules"

QUICK = ("first",)
SLOW = ("agent", "commands", "files", "life", "members", "options")
"""The files of contrib/mastra/tests."""

pytestmark = [
    needs("node"), pytest.mark.alike, with_node,
    pytest.mark.skipif(
        not (MODULES / "@mastra/core").is_dir() or not COMPILER.exists(),
        reason="not on this host: @mastra/core and TypeScript; npm ci --prefix contrib/mastra and contrib/typescript installs them",
    ),
]


INSTALLED = (".bin", *sorted(path.name for path in MODULES.glob("[!.]*") if path.name != "holt"))
"""The modules that npm ci installs, except for the client of holt, which is compiled here."""


@pytest.fixture(scope="session")
def program(scratch: Path) -> Path:
    """A program that has installed both packages, with the compiled tests in out/."""
    program = scratch / "mastra-program"
    modules = put_program(program, SOURCE)
    put_modules(MODULES, INSTALLED, modules)
    put_package(copy_of_source(TYPESCRIPT, scratch / "mastra-client", modules), modules / "holt")
    put_package(copy_of_source(SOURCE, scratch / "mastra-source", modules), modules / "holt-mastra")
    tsc(program, program / "tests")
    return program


@pytest.mark.parametrize("name", QUICK)
def test_the_first_command(node: Node, program: Path, name: str) -> None:
    run_tests(node, program, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_package_s_own_tests(node: Node, program: Path, name: str) -> None:
    run_tests(node, program, name)


def test_every_file_of_tests_runs() -> None:
    assert sorted((*QUICK, *SLOW)) == sorted(path.name.removesuffix(".test.ts") for path in (SOURCE / "tests").glob("*.test.ts"))


# --- the package and its README ---

README = (SOURCE / "README.md").read_text()
BLOCKS = blocks(README)
EXAMPLES = [text for language, text in BLOCKS if language == "ts"]

MODEL = """
import { scripted } from "./lib.js";
export const model = scripted([{ tool: "mastra_workspace_execute_command", input: { command: "touch ran" } }]).model as never;
"""
"""The model of the README's agent: it runs one command."""


@pytest.mark.slow
@needs("npm")
def test_npm_makes_and_installs_the_packages(place: Path, identity: Identity, holt: Holt) -> None:
    """The commands of the README. `npm ci` and the download of Mastra are left out: they need a network."""
    commands, first = [text for language, text in BLOCKS if language == "sh"]
    (place / "contrib").mkdir()
    copy_of_source(TYPESCRIPT, place / "contrib" / "typescript", TYPESCRIPT / "node_modules")
    modules = place / "modules"
    modules.mkdir()
    put_modules(MODULES, INSTALLED, modules)
    (modules / "holt").symlink_to(place / "contrib" / "typescript")
    copy_of_source(SOURCE, place / "contrib" / "mastra", modules)
    environment = {**identity.environment(), "HOME": str(place / "home"), "npm_config_offline": "true", "npm_config_update_notifier": "false"}
    script = commands.replace("npm ci\n", "").replace(" @mastra/core zod", " --legacy-peer-deps")
    done = subprocess.run(["bash", "-euc", script], cwd=place, env=environment, text=True, capture_output=True, timeout=WITHIN)
    assert done.returncode == 0, done.stdout + done.stderr
    installed = place / "home/agent/node_modules"
    names = sorted(str(path.relative_to(installed / "holt-mastra")) for path in (installed / "holt-mastra").rglob("*") if path.is_file())
    assert {"README.md", "package.json", "dist/index.js", "dist/index.d.ts", "LICENSE"} <= set(names)
    assert not [name for name in names if not re.fullmatch(r"(dist/[a-z]+\.(js|d\.ts)|README\.md|LICENSE|package\.json)", name)]
    for path in (installed / "holt-mastra").rglob("*"):
        assert path.is_dir() or str(PROJECT) not in path.read_text(), path

    put_modules(MODULES, ("@mastra", "zod"), installed)
    for directory in (place / "home", place / "home/agent"):
        identity.own(directory)
    printed = identity.run(
        identity.argv(["bash", "-euc", first]), env={**identity.environment(), "HOME": str(place / "home"), "HOLT": str(holt.binary)}
    )
    assert printed.stdout == "agent\n", printed.stderr


def test_the_lock_file_names_no_machine() -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text())["packages"]
    assert {name: each["resolved"] for name, each in lock.items() if "resolved" in each} == {"node_modules/holt": "../typescript"}


def test_the_package_has_the_licence() -> None:
    assert (SOURCE / "LICENSE").read_text() == (PROJECT / "LICENSE").read_text()


@pytest.mark.slow
def test_the_types_are_valid_with_the_strictest_settings(program: Path) -> None:
    """The types of Mastra itself have errors without skipLibCheck, which are left out."""
    directory = program / "exact"
    directory.mkdir()
    (directory / "uses.ts").write_text('import { HoltFilesystem, HoltSandbox } from "holt-mastra";\nnew HoltFilesystem({ sandbox: new HoltSandbox({ id: "x" }) });\n')
    options = {"skipLibCheck": False, "exactOptionalPropertyTypes": True, "noEmit": True, "declaration": False, "rootDir": "."}
    (directory / "tsconfig.json").write_text(json.dumps({"extends": "../tsconfig.json", "compilerOptions": options, "include": ["."]}))
    done = subprocess.run(["node", COMPILER, "-p", directory], cwd=program, text=True, capture_output=True, timeout=300)
    errors = re.findall(r"^\S+\.ts\(.*$", done.stdout, re.M)

    assert [line for line in errors if "@mastra/core" in line]  # the compiler has looked into packages
    assert not [line for line in errors if line.startswith("exact/") or "node_modules/holt" in line.partition("(")[0]]


@pytest.fixture(scope="session")
def examples(program: Path) -> Path:
    """The examples of the README, compiled with the strict settings."""
    sources = {f"example{number}.ts": f"{example}\nexport {{}};\n" for number, example in enumerate(EXAMPLES)}
    return compiled(program, "readme", {**sources, "model.ts": MODEL, "lib.ts": (SOURCE / "tests/lib.ts").read_text()})


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_its_comments_say(node: Node, examples: Path, holt: Holt, number: int) -> None:
    out = node(examples / f"example{number}.js")
    expected = shown(EXAMPLES[number])

    assert expected
    assert out.splitlines() == expected
    if "./model.js" in EXAMPLES[number]:
        assert (holt.cwd / "project/ran").exists()


def test_every_block_of_the_readme_is_tested() -> None:
    assert {language for language, _ in BLOCKS} == {"sh", "ts"}
    assert README.count("```") == 2 * len(BLOCKS)


# --- the table of the interface ---

TABLES = (SOURCE / "interface.md").read_text().split("\n## ")[1:]
EXPECTATIONS = TABLES[-1]
DECLARATIONS = MODULES / "@mastra/core/dist/workspace"


def rows_of(table: str) -> "list[list[str]]":
    """The cells of each row below the head of a table."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if line.startswith("|")]
    return rows[2:]


def members_of(name: str) -> "set[str]":
    """The public and protected members of a class or interface of @mastra/core, without those that begin with "_"."""
    for path in DECLARATIONS.rglob("*.d.ts"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        found = re.search(rf"^export (?:declare )?(?:abstract )?(?:class|interface) {name}\b[^{{]*\{{\n(.*?)^\}}", text, re.M | re.S)
        if found:
            words = r"^ {4}(?:(?:abstract|readonly|protected|get|declare) )*([A-Za-z]\w*)\??[(:;]"
            return set(re.findall(words, found[1], re.M)) - {"constructor"}
    raise AssertionError(f"@mastra/core has no {name}")


@pytest.mark.parametrize("table", TABLES[:-1], ids=lambda table: re.search(r"`(\w+)`", table)[1])
def test_the_table_has_each_member_of_the_interface(table: str) -> None:
    heading = table.splitlines()[0]
    names = re.findall(r"`(\w+)`", heading)
    members = set().union(*map(members_of, names))
    before = TABLES[TABLES.index(table) - 1]
    if names[0].startswith("Workspace"):
        members -= set().union(*map(members_of, re.findall(r"`(\w+)`", before.splitlines()[0])))
    listed = [row[0].strip("`") for row in rows_of(table)]

    assert len(members) > 2 and sorted(listed) == sorted(members)


def test_each_row_of_the_tables_names_a_test() -> None:
    titles = {
        path.name.removesuffix(".test.ts"): set(re.findall(r'^test\("((?:[^"\\]|\\.)*)"', path.read_text(), re.M)) for path in (SOURCE / "tests").glob("*.test.ts")
    }
    rows = [row for table in TABLES for row in rows_of(table)]
    wrong = []
    for row in rows:
        file, title = re.fullmatch(r"`(\w+)`: (.*)", row[-1]).groups()
        if title not in titles.get(file, ()):
            wrong.append(row)

    assert len(rows) > 150 and not wrong
    assert all(len(row) == (2 if row in rows_of(EXPECTATIONS) else 3) and all(row) for row in rows)
