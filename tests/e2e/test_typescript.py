# SPDX-License-Identifier: Apache-2.0
"""contrib/typescript: its own tests, its package, its README, and the messages that it exchanges with holt serve."""

from __future__ import annotations

import contextlib
import json

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.openrpc import Checker, command_words, document_of
from lib.paths import PROJECT, reachable_by_all
from lib.sandbox import HANGS, Holt
from lib.tools import needs

SOURCE = PROJECT / "contrib" / "typescript"
MODULES = SOURCE / "node_modules"
NOTED = PROJECT / "tests" / "lib" / "noted_serve.py"

WITHIN = 4 * HANGS
"""Seconds for one file of tests."""

NOTED_TESTS = ("python", "sandbox", "shell", "tools")
QUICK = ("unit",)
SLOW = ("abort", "hostile", "load", "process", "reconnect")
"""The files of contrib/typescript/tests. All messages of the noted ones are compared with the OpenRPC document."""

NODE_MIN = 20


def node_version() -> int:
    """The major version of the host's node; 0 without one."""
    with contextlib.suppress(OSError, ValueError):
        return int(subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True).stdout.lstrip("v").partition(".")[0])
    return 0


pytestmark = [
    needs("node"), pytest.mark.alike,
    pytest.mark.skipif(node_version() < NODE_MIN, reason=f"not on this host: node {NODE_MIN} or later"),
]

with_modules = pytest.mark.skipif(
    not MODULES.is_dir(), reason="not on this host: TypeScript and zod; npm ci --prefix contrib/typescript installs them"
)

Node = Callable[..., str]


def tsc(directory: Path, project: Path) -> None:
    """Compiles with the strict settings of tsconfig.json."""
    done = subprocess.run(
        ["node", MODULES / "typescript/bin/tsc", "-p", project], cwd=directory, text=True, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def copy_of_source(target: Path) -> Path:
    """A copy of contrib/typescript in which files can be made. Its modules are those of the checkout."""
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("node_modules", "dist", "out", "*.tgz"))
    (target / "node_modules").symlink_to(MODULES)
    return target


@pytest.fixture(scope="session")
def program(scratch: Path) -> Path:
    """A program that has installed the package, with the compiled tests in out/."""
    source, program = copy_of_source(scratch / "typescript"), scratch / "program"
    tsc(source, source)
    program.mkdir()
    (program / "package.json").write_text('{"type": "module", "private": true}')
    shutil.copy(source / "tsconfig.json", program)
    shutil.copytree(source / "tests", program / "tests")
    (program / "node_modules").mkdir()
    for name in ("@types", "undici-types", "zod"):
        target = program / "node_modules" / name
        target.symlink_to(MODULES / name) if reachable_by_all(MODULES) else shutil.copytree(MODULES / name, target)
    package = program / "node_modules" / "holt"
    shutil.copytree(source / "dist", package / "dist")
    shutil.copy(source / "package.json", package)
    tsc(program, program / "tests")
    return program


@pytest.fixture
def node(holt: Holt, identity: Identity, place: Path) -> Node:
    """Runs node as the identity, with sessions and temporary files of its own. Returns its output."""
    temporary = place / "t"
    temporary.mkdir()
    identity.own(temporary)

    def run(*args: "str | Path", cwd: "Path | None" = None, **env: str) -> str:
        argv = ["/usr/bin/env", "node", *args]
        with (place / "output").open("w+", errors="replace") as output:
            ended: int | None = None
            with contextlib.suppress(subprocess.TimeoutExpired):
                ended = subprocess.run(
                    identity.as_user(identity.argv(argv)), cwd=cwd or holt.cwd, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, timeout=WITHIN,
                    env=identity.environment({
                        "HOLT": str(holt.binary), "TMPDIR": str(temporary), "XDG_DATA_HOME": str(temporary / "data"),
                        "HANGS": str(int(HANGS)), **env,
                    }),
                ).returncode
            output.seek(0)
            text = output.read()
        assert ended is not None, f"still running after {WITHIN} s:\n{text}"
        assert ended == 0, text
        return text

    return run


def run_tests(node: Node, program: Path, name: str, **env: str) -> None:
    text = node("--test", "--test-reporter=spec", program / "out" / f"{name}.test.js", **env)
    assert re.search(r"ℹ pass [1-9]", text) and re.search(r"ℹ (cancelled|skipped|todo) [1-9]", text) is None, text


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


# --- the package and its README ---

README = (SOURCE / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.M | re.S)
EXAMPLES = [text for language, text in BLOCKS if language == "ts"]


@with_modules
@needs("npm")
def test_npm_makes_and_installs_the_package(place: Path, identity: Identity, holt: Holt) -> None:
    """The commands of the README. Only `npm ci` is left out: it needs a network, and whoever runs this test has run it."""
    commands, first = [text for language, text in BLOCKS if language == "sh"]
    (place / "contrib").mkdir()
    copy_of_source(place / "contrib" / "typescript")
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
    assert printed.stdout.startswith("uid=1000(agent) gid=1000(agent)"), printed.stderr

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


def shown(example: str) -> "list[str]":
    """Returns the comments behind calls of console.log(), which are the expected output. "..." stands for any lines."""
    return re.findall(r"^ *(?:for .*\) )?console\.log\(.*\); // (.*)$", example, re.M)


@pytest.fixture(scope="session")
def examples(program: Path) -> Path:
    """The examples of the README, compiled with the strict settings."""
    directory = program / "readme"
    directory.mkdir()
    for number, example in enumerate(EXAMPLES):
        (directory / f"example{number}.ts").write_text(example + "\nexport {};\n")
    options = {"extends": "../tsconfig.json", "compilerOptions": {"declaration": False, "rootDir": ".", "outDir": "../examples"}, "include": ["."]}
    (directory / "tsconfig.json").write_text(json.dumps(options))
    tsc(program, directory)
    return program / "examples"


@with_modules
@needs("npm")
def test_the_example_of_the_main_readme(node: Node, program: Path, holt: Holt) -> None:
    (example,) = re.findall(r"^```ts\n(.*?)^```$", (PROJECT / "README.md").read_text(), re.M | re.S)
    directory = program / "main-readme"
    directory.mkdir()
    (directory / "example.ts").write_text(example)
    options = {"extends": "../tsconfig.json", "compilerOptions": {"declaration": False, "rootDir": ".", "outDir": "../main-example"}, "include": ["."]}
    (directory / "tsconfig.json").write_text(json.dumps(options))
    tsc(program, directory)
    (holt.cwd / "package.json").write_text('{"scripts": {"test": "echo tested; exit 1"}}')

    assert "\ntested\n" in node(program / "main-example" / "example.js")


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
    assert {language for language, _ in BLOCKS} == {"sh", "ts"}
    assert README.count("```") == 2 * len(BLOCKS)
