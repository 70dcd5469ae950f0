# SPDX-License-Identifier: Apache-2.0
"""Packages of a LocalSandbox: from the host's python3, and from a directory of wheels."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import session_names

from holt.localsandbox import LocalSandbox, LocalSandboxError

HAS_PIP = subprocess.run(
    ["/usr/bin/python3", "-c", "import pip"], stderr=subprocess.DEVNULL, check=False
).returncode == 0 if os.path.exists("/usr/bin/python3") else False

needs_pip = pytest.mark.skipif(not HAS_PIP, reason="the host's python3 has no pip")


@pytest.fixture
def wheels(place: Path) -> Path:
    """A directory with the wheel of a module that needs nothing."""
    directory = place / "wheels"
    directory.mkdir()
    info = "tinypkg-1.0.dist-info"
    with zipfile.ZipFile(directory / "tinypkg-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinypkg/__init__.py", "value = 41\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: holt\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"tinypkg/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return directory


@needs_pip
@pytest.mark.parametrize("package", ["tinypkg", "tinypkg==1.0"])
def test_packages_are_installed_at_the_start(package: str, wheels: Path) -> None:
    with LocalSandbox(packages=[package], wheels=wheels) as local:
        assert local.bash("python3 -c 'import tinypkg; print(tinypkg.value)'").stdout == "41\n"
        done = local.execute_python("import tinypkg; print(tinypkg.value)", preload_packages=["tinypkg"])
        assert (done.stdout, done.stderr) == ("41\n", "")
        assert local.list_files("/data") == [] and local.list_files("/") == []
        snapshot = local.export_snapshot()
    with LocalSandbox(snapshot=snapshot, packages=[package], wheels=wheels) as again:
        assert again.bash("python3 -c 'import tinypkg; print(tinypkg.value)'").stdout == "41\n"


@needs_pip
def test_a_missing_import_is_installed_from_the_wheels(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(wheels.parent)
    with LocalSandbox(wheels="wheels") as local:
        done = local.execute_python("import tinypkg; print(tinypkg.value)")
        assert (done.stdout, done.stderr) == ("41\n", "holt: installed tinypkg\n")
        assert local.bash("python3 -c 'import tinypkg; print(tinypkg.value)'").stdout == "41\n"


@needs_pip
def test_packages_of_the_host_need_no_wheels() -> None:
    with LocalSandbox(packages=["pip"]) as local:
        assert local.execute_python("import pip").error is None


@pytest.mark.parametrize("packages, with_wheels, words", [
    (["no-such-package"], False, "no source of packages(.|\\n)*Pass wheels="),
    pytest.param(["no-such-package"], True, "cannot install the package no-such-package: (.|\\n)*wheels=", marks=needs_pip),
])
def test_a_package_that_is_missing(packages: Any, with_wheels: bool, words: str, wheels: Path, holt: str) -> None:
    with LocalSandbox(packages=packages, wheels=wheels if with_wheels else None) as local:
        with pytest.raises(LocalSandboxError, match=words):
            local.bash("true")
    assert session_names(holt) == []


def test_invalid_arguments_are_refused(place: Path) -> None:
    with pytest.raises(TypeError, match="packages must be a list"):
        LocalSandbox(packages="numpy")
    with pytest.raises(TypeError, match="a package must be str, not int"):
        LocalSandbox(packages=[1])  # type: ignore[list-item]
    for option in ("--index-url=x", ""):
        with pytest.raises(ValueError, match="is not the name of a package"):
            LocalSandbox(packages=[option])
    with pytest.raises(LocalSandboxError, match="none"):
        LocalSandbox(wheels=place / "none").bash("true")
