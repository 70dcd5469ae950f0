# SPDX-License-Identifier: Apache-2.0
"""Notes the failing tests, and runs only the tests of such a note.

./check runs a suite in parallel, and then runs the failed tests once more, alone: on a busy machine, a test may miss its
deadline. The report names the tests that passed only the second time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_failed: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--note-failed", metavar="FILE", help="write the ids of the tests that fail to FILE, one a line")
    parser.addoption("--only-noted", metavar="FILE", help="run only the tests whose ids are in FILE")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed and report.nodeid not in _failed:
        _failed.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--note-failed")
    if path and not hasattr(session.config, "workerinput"):
        Path(path).write_text("".join(f"{name}\n" for name in _failed))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    path = config.getoption("--only-noted")
    if not path:
        return
    noted = set(Path(path).read_text().splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in noted])
    items[:] = [item for item in items if item.nodeid in noted]
