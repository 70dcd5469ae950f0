# SPDX-License-Identifier: Apache-2.0
"""Chooses the tests of a lane, and the identities under which each one runs.

In the default lane a test runs as an ordinary user only, because most tests cannot tell identities apart. These run
under other identities:

- A test marked identities("user", "root", "nested") runs under those it names. In the full lane, too, it runs under
  no other.
- A test of tests/escape runs as the user and as root, because holt promises the same to both in different ways.
- A test that does not start holt runs as the user only. Most are controls, which show that an attack works on the host.
- The first unmarked test of each file is its smoke test and runs under every identity.

The full lane adds the tests marked slow. It runs every test that starts holt under every identity, except for those marked
alike, for which the rules of the default lane hold. Tests marked alike check texts that holt parses, code inside, where the
user is always the same, or replies of a live session. If one of them could fail under one identity only, name its identities
instead.
"""

from __future__ import annotations

import functools

import pytest

from lib import identity as identities
from lib import paths

ORDINARY = "user"

# The identities of a suite's unmarked tests in the default lane; ORDINARY for a suite that is not here.
SUITES = {"escape": ("user", "root")}

# The smoke test of each module, which is the first unmarked test with an identity.
_smoke: dict[str, str] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--identity", action="append", choices=identities.NAMES,
        help="run every test as this identity, unless its marker excludes it (default: what the lane says)",
    )
    parser.addoption(
        "--full", action="store_true", help="run slow tests, too, and unmarked tests as every identity that applies",
    )


def pytest_configure(config: pytest.Config) -> None:
    for name in config.getoption("--identity") or ():
        if name not in identities.applicable():
            raise pytest.UsageError(f"--identity {name}: only root can play it")


# --- identities ---


def _unmarked(metafunc: pytest.Metafunc) -> list[str]:
    """Returns the identities of a test that names none."""
    if "holt_binary" not in metafunc.fixturenames:
        return [ORDINARY]
    here = list(identities.applicable())
    name = metafunc.definition.originalname
    slow, alike = (metafunc.definition.get_closest_marker(mark) for mark in ("slow", "alike"))
    smoke = not slow and _smoke.setdefault(metafunc.module.__name__, name) == name
    if smoke or (metafunc.config.getoption("--full") and not alike):
        return here
    suite = metafunc.definition.path.parent.name
    return [name for name in SUITES.get(suite, (ORDINARY,)) if name in here]


def _wanted(metafunc: pytest.Metafunc) -> list[str]:
    chosen = metafunc.config.getoption("--identity")
    mark = metafunc.definition.get_closest_marker("identities")
    if not mark:
        return chosen or _unmarked(metafunc)
    return [name for name in chosen or identities.applicable() if name in mark.args]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "identity" in metafunc.fixturenames:
        metafunc.parametrize("identity", _wanted(metafunc), indirect=True, scope="session")


# --- tests ---


def _has_parameters(item: pytest.Item) -> bool:
    """Returns False if a list of cases is empty on this machine; pytest turns that into one skipped test."""
    return not any("got empty parameter set" in mark.kwargs.get("reason", "") for mark in item.iter_markers("skip"))


@functools.cache
def _is_sanitized() -> bool:
    try:
        return b"__asan_init" in paths.built_holt().read_bytes()
    except paths.NoBinary:
        return False


def _applies(item: pytest.Item) -> bool:
    if not _has_parameters(item) or (_is_sanitized() and item.get_closest_marker("not_sanitized")):
        return False
    if item.get_closest_marker("slow") and not item.config.getoption("--full"):
        return False
    # A parameter of a marked test can have a marker of its own.
    if any(getattr(item, "callspec").params["identity"] not in mark.args for mark in item.iter_markers("identities")):
        return False
    return identities.is_root() or not item.get_closest_marker("root_host")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    applying = [_applies(item) for item in items]
    deselected = [item for item, applies in zip(items, applying) if not applies]
    items[:] = [item for item, applies in zip(items, applying) if applies]
    config.hook.pytest_deselected(items=deselected)
