# SPDX-License-Identifier: Apache-2.0
"""Programs of Node that use a package of contrib: its source compiled, and its README's examples."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.paths import PROJECT, reachable_by_all
from lib.sandbox import HANGS, Holt

TYPESCRIPT = PROJECT / "contrib" / "typescript"
COMPILER = TYPESCRIPT / "node_modules" / "typescript/bin/tsc"

WITHIN = 4 * HANGS
"""Seconds for one file of tests."""

NODE_MIN = 20

Node = Callable[..., str]


def node_version() -> int:
    """The major version of the host's node; 0 without one."""
    with contextlib.suppress(OSError, ValueError):
        return int(subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True).stdout.lstrip("v").partition(".")[0])
    return 0


with_node = pytest.mark.skipif(node_version() < NODE_MIN, reason=f"not on this host: node {NODE_MIN} or later")


def tsc(directory: Path, project: Path) -> None:
    """Compiles with the strict settings of tsconfig.json."""
    done = subprocess.run(["node", COMPILER, "-p", project], cwd=directory, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def copy_of_source(source: Path, target: Path, modules: Path) -> Path:
    """A copy of a package's source in which files can be made, with other modules."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("node_modules", "dist", "out", "*.tgz"))
    (target / "node_modules").symlink_to(modules)
    return target


def put_modules(source: Path, names: Iterable[str], target: Path) -> None:
    """Adds modules to a directory of modules, where every identity can read them."""
    for name in names:
        if reachable_by_all(source):
            (target / name).symlink_to(source / name)
        else:
            shutil.copytree(source / name, target / name, symlinks=True)


def put_package(source: Path, target: Path) -> None:
    """Compiles a copy of a package's source, and adds the package to a directory of modules."""
    tsc(source, source)
    shutil.copytree(source / "dist", target / "dist")
    shutil.copy(source / "package.json", target)


def put_program(directory: Path, source: Path) -> Path:
    """Makes a program that has the tests of a package, and returns its empty directory of modules."""
    directory.mkdir()
    (directory / "package.json").write_text('{"type": "module", "private": true}')
    shutil.copy(source / "tsconfig.json", directory)
    shutil.copytree(source / "tests", directory / "tests")
    (directory / "node_modules").mkdir()
    return directory / "node_modules"


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


# --- READMEs ---


def blocks(readme: str) -> "list[tuple[str, str]]":
    """The language and the text of each block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", readme, re.M | re.S)


def shown(example: str) -> "list[str]":
    """Returns the comments behind calls of console.log(), which are the expected output. "..." stands for any lines."""
    return re.findall(r"^ *(?:for .*\) )?console\.log\(.*\); // (.*)$", example, re.M)


def compiled(program: Path, name: str, sources: "dict[str, str]") -> Path:
    """Compiles files of TypeScript with the strict settings, and returns the directory of the result."""
    directory = program / name
    directory.mkdir()
    for file, text in sources.items():
        (directory / file).write_text(text)
    options = {"declaration": False, "rootDir": ".", "outDir": f"../{name}-out"}
    (directory / "tsconfig.json").write_text(json.dumps({"extends": "../tsconfig.json", "compilerOptions": options, "include": ["."]}))
    tsc(program, directory)
    return program / f"{name}-out"
