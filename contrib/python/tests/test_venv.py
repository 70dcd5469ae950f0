# SPDX-License-Identifier: Apache-2.0
"""The packages of a virtual environment inside."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from holt import AsyncSandbox, Sandbox, UsageError
from holt._venv import _version_inside

PACKAGE = str(Path(__file__).resolve().parents[1])


@pytest.fixture
def venv(place: Path) -> Path:
    """An environment with one package, in a directory that has more."""
    top = place / "project" / "env"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", top], check=True)
    (site,) = top.glob("lib/python3.*/site-packages")
    (site / "tea").mkdir()
    (site / "tea" / "__init__.py").write_text("price = 3\n")
    (site / "leak").symlink_to(place / "project" / "secret")
    (place / "project" / "secret").write_text("secret")
    return top


def test_packages_can_be_imported(venv: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        box = Sandbox(venv=venv, env={"PYTHONPATH": "/opt/mine"})
    with box:
        assert box.python("import tea; tea.price").check().result == "3"
        assert box.exec(["python3", "-c", "import tea; print(tea.__file__)"]).stdout.startswith("/opt/venv/lib/python3.")
        assert "/opt/mine:/opt/venv/lib/python3." in box.bash("echo $PYTHONPATH").stdout
        assert not box.bash("echo x > $(python3 -c 'import tea; print(tea.__file__)')").ok
        for path in (venv.parent, venv.parent / "secret", venv / "pyvenv.cfg", "/opt/venv/pyvenv.cfg", "/opt/venv/bin"):
            assert not box.files.exists(path), path
        assert not box.bash("cat /opt/venv/lib/python3.*/site-packages/leak").ok


def test_the_program_s_own_environment(venv: Path) -> None:
    code = "from holt import Sandbox\nwith Sandbox(venv=True) as box: print(box.python('import tea; tea.price').result)"
    done = subprocess.run(
        [venv / "bin" / "python", "-c", code], stdout=subprocess.PIPE, text=True, check=True,
        env={**os.environ, "PYTHONPATH": PACKAGE},
    )
    assert done.stdout == "3\n"


async def _async(venv: Path) -> None:
    async with AsyncSandbox(venv=str(venv)) as box:
        assert (await box.python("import tea; tea.price")).result == "3"


def test_a_venv_with_asyncio(venv: Path) -> None:
    asyncio.run(_async(venv))


def test_another_version_is_a_warning(venv: Path) -> None:
    (lib,) = (venv / "lib").glob("python3.*")
    lib.rename(venv / "lib" / "python3.99")
    with pytest.warns(RuntimeWarning, match=f"for Python 3.99, and the sandbox has Python {_version_inside()}"):
        with Sandbox(venv=venv) as box:
            assert box.python("import tea; tea.price").result == "3"


def test_directories_without_an_environment_are_refused(venv: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no pyvenv.cfg"):
        Sandbox(venv=place)
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(UsageError, match="does not run in one"):
        Sandbox(venv=True)
    (site,) = venv.glob("lib/python3.*/site-packages")
    site.rename(place / "outside")
    site.symlink_to(place / "outside")
    with pytest.raises(UsageError, match="leads out"):
        Sandbox(venv=venv)
