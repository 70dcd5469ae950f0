# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of ../tests under each identity, in a process of that identity."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.paths import PROJECT, reachable_by_all
from lib.sandbox import Holt

PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else "python3"

WITHIN = 300
"""Seconds for one file of tests."""

ALIKE = """
    localsandbox_bash localsandbox_packages contents localsandbox_monty commands async localsandbox_tools connection docstring
    error_hints hints methods pydantic questions readme results tools
""".split()
"""Files whose tests cannot tell identities apart: they test the client alone, or code inside, where the user is always the same.
The longest one is the first, so that no worker starts it when the others have ended."""

ALL = [path.name.removeprefix("test_").removesuffix(".py") for path in (PROJECT / "contrib/python/tests").glob("test_*.py")]


@pytest.fixture(scope="session")
def package(scratch: Path) -> Path:
    """Copies contrib/python to a place that every identity can read."""
    source = PROJECT / "contrib" / "python"
    if reachable_by_all(source):
        return source
    target = scratch / "python"
    shutil.copytree(source, target)
    shutil.copy(PROJECT / "tests" / "lib" / "openrpc.py", target / "tests")
    return target


def test_the_sdk_reads_and_writes_files(holt: Holt, identity: Identity, package: Path, place: Path) -> None:
    """The smoke test of each identity."""
    run_tests(holt, identity, package, place, "test_files.py")


@pytest.mark.alike
@pytest.mark.parametrize("tests", ALIKE)
def test_files_that_are_alike_for_all(holt: Holt, identity: Identity, package: Path, place: Path, tests: str) -> None:
    run_tests(holt, identity, package, place, f"test_{tests}.py")


@pytest.mark.parametrize("tests", sorted({*ALL} - {*ALIKE, "files"}))
def test_the_sdk_s_own_tests(holt: Holt, identity: Identity, package: Path, place: Path, tests: str) -> None:
    run_tests(holt, identity, package, place, f"test_{tests}.py")


def run_tests(holt: Holt, identity: Identity, package: Path, place: Path, tests: str) -> None:
    temporary = identity.own(_made(place / "t"))
    # With -v, a run that hangs has named its test. pytest.ini makes it print the stacks of its threads, too.
    argv = [PYTHON, "-B", "-m", "pytest", "-v", "--tb=short", "-rfEs", package / "tests" / tests]
    with (place / "output").open("w+", errors="replace") as output:
        ended: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            ended = subprocess.run(
                identity.as_user(identity.argv(argv)), cwd=holt.cwd, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, timeout=WITHIN,
                env=identity.environment({
                    "HOLT": str(holt.binary), "TMPDIR": str(temporary),
                    **{name: os.environ[name] for name in ("MUST_RUN", "HANGS") if name in os.environ},
                }),
            ).returncode
        output.seek(0)
        text = output.read()
    assert ended is not None, f"still running after {WITHIN} s:\n{text}"
    assert ended == 0 and re.search(r"\d+ passed", text), text


def _made(path: Path) -> Path:
    path.mkdir(mode=0o755)
    return path
