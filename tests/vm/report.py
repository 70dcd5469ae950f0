# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin inside the VM: writes one JSON line for each test to the second serial line, which run reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LINE = Path("/dev/ttyS1")

# Longest text of a failure. A serial line has no flow control that qemu honours, so a long text only delays.
LONGEST = 4000


def _tell(**what: object) -> None:
    with LINE.open("w") as line:
        line.write(json.dumps(what) + "\n")


def _text(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return report.longreprtext[-LONGEST:]


def pytest_collection_finish(session: pytest.Session) -> None:
    _tell(collected=len(session.items))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _tell(test=report.nodeid, outcome="failed", seconds=0, text=_text(report))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or not report.passed:
        _tell(test=report.nodeid, outcome=report.outcome, seconds=round(report.duration, 2), text=_text(report))


def pytest_sessionfinish(exitstatus: int) -> None:
    _tell(ended=int(exitstatus))
