# SPDX-License-Identifier: Apache-2.0
"""Tests that run only in the VMs of run: each names its boots, and may change settings of the kernel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Sysctl = Callable[[str, object], None]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "boots(*names): the boots of boots.py that this is for (default: all)")
    config.addinivalue_line("markers", "not_nested: it takes the user namespace away that the identity nested is in")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    """Deselects everything outside a VM, because the tests would change this machine's settings."""
    boot, here = os.environ.get("BOOT"), Path(__file__).parent
    unwanted = [item for item in items if here in item.path.parents and not _is_for(item, boot)]
    items[:] = [item for item in items if item not in unwanted]
    config.hook.pytest_deselected(items=unwanted)


def _is_for(item: pytest.Function, boot: str | None) -> bool:
    mark = item.get_closest_marker("boots")
    if item.get_closest_marker("not_nested") and item.callspec.params.get("identity") == "nested":
        return False
    return boot is not None and (mark is None or boot in mark.args)


@pytest.fixture
def sysctl() -> Iterator[Sysctl]:
    """Changes a setting of sysctl(8) during a test: sysctl("user.max_user_namespaces", 0). Skips the test if the kernel has no
    such setting."""
    before: dict[Path, str] = {}

    def change(name: str, value: object) -> None:
        path = Path("/proc/sys", name.replace(".", "/"))
        if not path.exists():
            pytest.skip(f"this kernel has no {name}")
        before.setdefault(path, path.read_text())
        path.write_text(f"{value}\n")

    yield change
    for path, value in before.items():
        path.write_text(value)
