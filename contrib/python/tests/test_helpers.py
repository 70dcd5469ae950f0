"""Helpers of a sandbox: files of this program that code inside can import."""

from __future__ import annotations

from pathlib import Path

import pytest

from holt import Sandbox, UsageError


def test_a_helper(tmp_path: Path) -> None:
    path = tmp_path / "acme.py"
    path.write_text("NAME = 'acme'\n")
    with Sandbox(helpers=[path, f"{path}:other"]) as box:
        assert box.python("import acme, other\nprint(acme.NAME, other.__name__)").stdout == "acme other\n"
        assert box.bash("python3 -c 'import acme; print(acme.NAME)'").stdout == "acme\n"


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="helpers must be a list"):
        Sandbox(helpers="a.py")  # type: ignore[arg-type]
