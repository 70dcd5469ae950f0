# SPDX-License-Identifier: Apache-2.0
"""Sums up the results that test runs have written, for ./check.

    tally.py FILE              "PASSED FAILED SKIPPED"
    tally.py --slowest FILE... the ten slowest tests of all files

FILE is Meson's testlog.json, whose programs are cmocka's, or pytest's JUnit XML.
"""

from __future__ import annotations

import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

Tally = tuple[int, int, int]

MUST_RUN = os.environ.get("MUST_RUN") == "1"

SLOWEST = 10


def of_program(record: dict) -> Tally:
    """The cmocka tests of one program. A program that ends badly, for example by a crash or a leak, counts as at least one failed
    test."""
    text = f"{record.get('stdout', '')}\n{record.get('stderr', '')}"
    started = len(re.findall(r"^\[ RUN +\]", text, re.M))
    passed = len(re.findall(r"^\[ +OK \]", text, re.M))
    skipped = len(set(re.findall(r"^\[ +SKIPPED \] (\w+)$", text, re.M)))
    failed = started - passed - skipped
    if MUST_RUN:
        failed, skipped = failed + skipped, 0
    if record["returncode"] != 0 or started == 0:
        failed = max(failed, 1)
    return passed, failed, skipped


def meson_records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def of_meson(path: Path) -> Tally:
    tallies = [of_program(record) for record in meson_records(path)]
    passed, failed, skipped = (sum(column) for column in zip((0, 0, 0), *tallies))
    return (passed, failed, skipped) if tallies else (0, 1, 0)


def of_pytest(path: Path) -> Tally:
    suites = list(ElementTree.parse(path).getroot().iter("testsuite"))
    tests, failures, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    if tests == 0:
        return 0, 1, 0
    return max(tests - failures - errors - skipped, 0), failures + errors, skipped


def times(path: Path) -> Iterator[tuple[float, str]]:
    """Seconds and name of each test, or of each program of unit tests."""
    if path.suffix == ".xml":
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            yield float(case.get("time", 0)), f"{case.get('classname', '')}::{case.get('name', '')}"
    else:
        for record in meson_records(path):
            yield float(record["duration"]), str(record["name"])


def print_slowest(paths: list[Path]) -> None:
    everything = sorted((each for path in paths for each in times(path)), reverse=True)
    for seconds, name in everything[:SLOWEST]:
        print(f"{seconds:8.1f} s  {name}")


def main() -> None:
    if sys.argv[1] == "--slowest":
        print_slowest([Path(name) for name in sys.argv[2:]])
        return
    path = Path(sys.argv[1])
    print(*(of_pytest(path) if path.suffix == ".xml" else of_meson(path)))


if __name__ == "__main__":
    main()
