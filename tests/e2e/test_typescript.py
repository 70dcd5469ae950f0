# SPDX-License-Identifier: Apache-2.0
"""contrib/typescript: its own tests, its package, its README, and the messages that it exchanges with holt serve."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.node import (  # noqa: F401
    TYPESCRIPT, WITHIN, Node, blocks, compiled, copy_of_source, node, put_modules, put_package, put_program, run_tests, shown, tsc, with_node,
)
from lib.openrpc import Checker, command_words, document_of
from lib.paths import PROJECT
from lib.sandbox import Holt
from lib.tools import needs

SOURCE = TYPESCRIPT
MODULES = SOURCE / "node_modules"
NOTED = PROJECT / "tests" / "lib" / "noted_serve.py"

NOTED_TESTS = ("python", "sandbox", "shell", "tools")
QUICK = ("unit",)
SLOW = ("abort", "hostile", "load", "process", "reconnect", "trees")
"""The files of contrib/typescript/tests. All messages of the noted ones are compared with the OpenRPC document."""

pytestmark = [needs("node"), pytest.mark.alike, with_node]

with_modules = pytest.mark.skipif(
    not MODULES.is_dir(), reason="not on this host: TypeScript and zod; npm ci --prefix contrib/typescript installs them"
)


@pytest.fixture(scope="session")
def program(scratch: Path) -> Path:
    """A program that has installed the package, with the compiled tests in out/."""
    program = scratch / "program"
    modules = put_program(program, SOURCE)
    put_modules(MODULES, ("@types", "undici-types", "zod"), modules)
    put_package(copy_of_source(SOURCE, scratch / "typescript", MODULES), modules / "holt")
    tsc(program, program / "tests")
    return program


@with_modules
@pytest.mark.parametrize("name", QUICK)
def test_the_client_s_own_tests(node: Node, program: Path, name: str) -> None:
    run_tests(node, program, name)


@with_modules
@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_client_s_slow_tests(node: Node, program: Path, name: str) -> None:
    run_tests(node, program, name)


def test_every_file_of_tests_runs() -> None:
    assert sorted((*NOTED_TESTS, *QUICK, *SLOW)) == sorted(path.name.removesuffix(".test.ts") for path in (SOURCE / "tests").glob("*.test.ts"))


def test_the_generated_types_are_those_of_the_document(holt: Holt, place: Path) -> None:
    document = place / "document.json"
    document.write_bytes(subprocess.run([holt.binary, "serve", "--openrpc"], stdout=subprocess.PIPE, check=True).stdout)
    made = subprocess.run(["node", SOURCE / "scripts/generate.mjs", document], stdout=subprocess.PIPE, check=True, text=True).stdout

    assert made == (SOURCE / "src/protocol.ts").read_text(), "run `npm run generate` in contrib/typescript"


# --- messages ---


@pytest.fixture
def noted(holt: Holt, identity: Identity, place: Path) -> Iterator[dict[str, str]]:
    """The environment of a client whose messages are noted. At the end, all messages agree with the document."""
    directory = place / "notes"
    directory.mkdir()
    identity.own(directory)
    program = place / "noted-holt"
    program.write_text(f"#!{sys.executable}\n{NOTED.read_text()}")
    program.chmod(0o755)
    yield {"HOLT": str(program), "NOTED_HOLT": str(holt.binary), "NOTED_DIRECTORY": str(directory)}


def messages(directory: Path) -> Iterator[list[bytes]]:
    for path in sorted(directory.glob("*.messages")):
        yield path.read_bytes().splitlines()


@with_modules
@pytest.mark.parametrize("name", NOTED_TESTS)
def test_all_messages_agree_with_the_document(node: Node, program: Path, noted: dict[str, str], holt: Holt, name: str) -> None:
    run_tests(node, program, name, **noted)
    document, hints, seen = document_of(str(holt.binary)), set(), set()
    for lines in messages(Path(noted["NOTED_DIRECTORY"])):
        checker = Checker(document, alone=False, strict=True)
        for line in lines:
            if line.startswith(b">"):
                checker.sent(line[1:])
            else:
                message = json.loads(line[1:])
                checker.came(message)
                hints.add(((message.get("error") or {}).get("data") or {}).get("hint"))
        seen |= checker.seen

    assert {"python": "python.run", "sandbox": "exec", "shell": "shell.run", "tools": "tools.register"}[name] in seen
    foreign = foreign_words(node, program, sorted(filter(None, hints)))
    assert not foreign, foreign


def foreign_words(node: Node, program: Path, hints: "list[str]") -> "dict[str, list[str]]":
    """Returns hints, in the words of the package, that still have words of the command line or of the protocol."""
    script = """
        import { hintForTypescript } from "./node_modules/holt/dist/hints.js";
        console.log(JSON.stringify(JSON.parse(process.argv[1]).map(hintForTypescript)));
    """
    said: "list[str]" = json.loads(node("--input-type=module", "-e", script, json.dumps(hints), cwd=program))
    words = re.compile(r"(?<![\w./-])(?:session|process|tools|links|ports|route|limits|filesystem|network)\.[a-z_]+\b")
    found = {hint: command_words(hint) + words.findall(hint) for hint in said}
    return {hint: foreign for hint, foreign in found.items() if foreign}


@with_modules
def test_hints_name_methods_that_exist(node: Node, program: Path, holt: Holt) -> None:
    """Every method of the document becomes one of the package, except for those that only other programs call."""
    hints = [f"Use {name}." for name in document_of(str(holt.binary)).methods if "." in name]
    script = """
        import { Files, Kv, Process, Routes, Sandbox, Shell } from "holt";
        import { hintForTypescript } from "./node_modules/holt/dist/hints.js";
        const places = { box: Sandbox, "box.files": Files, "box.kv": Kv, "box.routes": Routes, "box.shell": Shell, process: Process };
        const exists = (hint) => {
            const [, place, name] = /^Use (.*)\\.(\\w+)\\(\\)\\.$/.exec(hint) ?? [];
            return name !== undefined && typeof (place === "Sandbox" ? Sandbox : places[place]?.prototype)?.[name] === "function";
        };
        console.log(JSON.stringify(JSON.parse(process.argv[1]).filter((hint) => !exists(hintForTypescript(hint)))));
    """
    left = {hint[4:-1] for hint in json.loads(node("--input-type=module", "-e", script, json.dumps(hints), cwd=program))}

    assert left == {
        "session.connect", "session.rebind", "session.set_tier", "network.attend", "history.begin", "history.end", "process.watch",
        "process.unwatch", "process.explain", "process.resume", "tools.list",
    }


# --- the Python package ---

OTHERS = {
    "Process.poll": "Process.exitCode", "Files.save": "Files.download", "spawn.rows": "spawn.terminal", "spawn.columns": "spawn.terminal",
    "create.venv": "",
}
"""Members of the Python package with another name here. A program of Node has no virtual environment of Python."""

PYTHON_MEMBERS = """
import inspect, json
from holt import Process, Sandbox
from holt.files import Files
from holt.kv import Kv
from holt.routes import Routes
from holt.shell import Shell
calls = {"bash": Sandbox.bash, "exec": Sandbox.exec, "python": Sandbox.python, "spawn": Sandbox.spawn, "shell.run": Shell.run, "create": Sandbox.__init__}
found = [f"{each.__name__}.{name}" for each in (Sandbox, Files, Kv, Shell, Process, Routes) for name in dir(each) if name[0] != "_"]
for call, function in calls.items():
    found += [f"{call}.{name}" for name, each in inspect.signature(function).parameters.items() if each.kind == each.KEYWORD_ONLY]
print(json.dumps(found))
"""

TYPESCRIPT_MEMBERS = """
import { Files, Kv, Process, Routes, Sandbox, Shell } from "holt";
import { EXEC, PYTHON, SHELL, SPAWN } from "./node_modules/holt/dist/options.js";
const namesOf = (each) => (each ? [...Object.getOwnPropertyNames(each), ...namesOf(Object.getPrototypeOf(each))] : []);
const found = [Sandbox, Files, Kv, Shell, Process, Routes].flatMap((each) => [...namesOf(each), ...namesOf(each.prototype)].map((name) => `${each.name}.${name}`));
for (const [call, names] of Object.entries({ bash: EXEC, exec: EXEC, python: PYTHON, spawn: SPAWN, "shell.run": SHELL }))
    for (const name of names) found.push(`${call}.${name}`);
const create = (name) => Sandbox.create({ [name]: undefined, create: 0, timeout: "wrong" }).catch((error) => error.message);
for (const name of JSON.parse(process.argv[1])) if (!/has no option/.test(await create(name))) found.push(`create.${name}`);
console.log(JSON.stringify(found));
"""


@with_modules
def test_it_has_the_members_of_the_python_package(node: Node, program: Path) -> None:
    made = subprocess.run([sys.executable, "-c", PYTHON_MEMBERS], cwd=PROJECT / "contrib/python", stdout=subprocess.PIPE, check=True)
    names = {each: re.sub(r"_(\w)", lambda match: match[1].upper(), each) for each in json.loads(made.stdout)}
    options = json.dumps([name.partition(".")[2] for name in names.values() if name.startswith("create.")])
    here = set(json.loads(node("--input-type=module", "-e", TYPESCRIPT_MEMBERS, options, cwd=program)))
    missing = {OTHERS.get(each, name) for each, name in names.items()} - here - {""}

    assert len(names) > 90 and not missing


# --- the package and its README ---

README = (SOURCE / "README.md").read_text()
BLOCKS = blocks(README)
EXAMPLES = [text for language, text in BLOCKS if language == "ts"]


@with_modules
@needs("npm")
def test_npm_makes_and_installs_the_package(place: Path, identity: Identity, holt: Holt) -> None:
    """The commands of the README. Only `npm ci` is left out: it needs a network, and whoever runs this test has run it."""
    commands, first = [text for language, text in BLOCKS if language == "sh"]
    (place / "contrib").mkdir()
    copy_of_source(SOURCE, place / "contrib" / "typescript", MODULES)
    environment = {**identity.environment(), "HOME": str(place / "home"), "npm_config_offline": "true", "npm_config_update_notifier": "false"}
    done = subprocess.run(
        ["bash", "-euc", commands.replace("npm ci\n", "")], cwd=place, env=environment, text=True, capture_output=True, timeout=WITHIN
    )
    assert done.returncode == 0, done.stdout + done.stderr
    installed = place / "home/agent/node_modules/holt"
    for directory in (place / "home", place / "home/agent"):
        identity.own(directory)
    printed = identity.run(
        identity.argv(["bash", "-euc", first]), env={**identity.environment(), "HOME": str(place / "home"), "HOLT": str(holt.binary)}
    )
    assert printed.stdout == "agent\n", printed.stderr

    names = sorted(str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file())
    assert {"README.md", "package.json", "dist/index.js", "dist/index.d.ts", "LICENSE"} <= set(names)
    assert not [name for name in names if not re.fullmatch(r"(dist/[a-z]+\.(js|d\.ts)|README\.md|LICENSE|package\.json)", name)]
    made = json.loads((installed / "package.json").read_text())
    assert not made.get("dependencies") and made["type"] == "module"
    for path in installed.rglob("*"):
        assert path.is_dir() or str(PROJECT) not in path.read_text(), path


def test_the_lock_file_names_no_machine() -> None:
    lock = (SOURCE / "package-lock.json").read_text()
    assert '"resolved"' not in lock and "file:" not in lock and "/root/" not in lock


def test_the_package_has_the_licence() -> None:
    assert (SOURCE / "LICENSE").read_text() == (PROJECT / "LICENSE").read_text()


@pytest.fixture(scope="session")
def examples(program: Path) -> Path:
    """The examples of the README, compiled with the strict settings."""
    return compiled(program, "readme", {f"example{number}.ts": f"{example}\nexport {{}};\n" for number, example in enumerate(EXAMPLES)})


@with_modules
def test_the_settings_of_the_readme_compile_the_examples(program: Path) -> None:
    (settings,) = [text for language, text in BLOCKS if language == "json"]
    directory = program / "settings"
    directory.mkdir()
    (directory / "tsconfig.json").write_text(settings)
    for number, example in enumerate(EXAMPLES):
        (directory / f"example{number}.ts").write_text(example)
    tsc(directory, directory)
    assert {path.stem for path in directory.glob("*.js")} == {f"example{number}" for number in range(len(EXAMPLES))}


@with_modules
@needs("npm")
def test_the_example_of_the_main_readme(node: Node, program: Path, holt: Holt) -> None:
    (example,) = re.findall(r"^```ts\n(.*?)^```$", (PROJECT / "README.md").read_text(), re.M | re.S)
    directory = compiled(program, "main-readme", {"example.ts": example})
    (holt.cwd / "package.json").write_text('{"scripts": {"test": "echo tested; exit 1"}}')

    assert "\ntested\n" in node(directory / "example.js")


@with_modules
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_its_comments_say(node: Node, examples: Path, number: int) -> None:
    out = node(examples / f"example{number}.js", OPENAI_API_KEY="sk-test")
    expected = shown(EXAMPLES[number])
    lines = [line for line in out.splitlines() if line]

    assert expected
    if "..." in expected:
        expected, lines = [line for line in expected if line != "..."], [line for line in lines if not line.startswith("std")]
    assert " ".join(lines) == " ".join(expected), out


def test_every_block_of_the_readme_is_tested() -> None:
    assert {language for language, _ in BLOCKS} == {"json", "sh", "ts"}
    assert README.count("```") == 2 * len(BLOCKS)
