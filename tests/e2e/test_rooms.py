# SPDX-License-Identifier: Apache-2.0
"""The sources are laid out in folders of one subject, which include each other in one direction only."""

from __future__ import annotations

import re

import pytest

from lib import rooms


def test_every_folder_has_a_place_in_the_order() -> None:
    assert set(rooms.sources()) == set(rooms.ORDER)


@pytest.mark.parametrize("room", rooms.ORDER)
def test_no_folder_includes_one_that_stands_on_it(room: str) -> None:
    """Without such an include there is no cycle either."""
    above = set(rooms.ORDER[rooms.ORDER.index(room) :])
    assert not above & set(rooms.graph()[room])


@pytest.mark.parametrize("room", sorted(set(rooms.ORDER) - rooms.UNBOUNDED))
def test_a_folder_holds_one_subject(room: str) -> None:
    programs = [path for path in rooms.sources()[room] if path.suffix == ".c"]
    lines = sum(len(path.read_text().splitlines()) for path in programs)
    assert len(programs) <= rooms.FILES_MAX and lines <= rooms.LINES_MAX, (len(programs), lines)


def test_every_source_is_built() -> None:
    """A file that no meson.build lists would not be compiled, and nobody would miss it."""
    for paths in rooms.sources().values():
        for path in paths:
            build = path.parent / "meson.build"
            if path.suffix == ".c":
                assert re.search(rf"'{re.escape(path.name)}'", build.read_text()), path


# Sources of the kernel and of SQLite, and files that the build makes.
ELSEWHERE = re.compile(r"^(kernel|fs|linux|sys|xfs|os_unix|presets|syscalls-numbers|syscalls-programs)\b")


def test_comments_name_files_that_exist() -> None:
    every = [path for top in ("helpers", "policy", "runner", "tests") for path in (rooms.ROOT / top).rglob("*.[ch]")]
    known = {name for path in every for name in (path.name, str(path.relative_to(rooms.ROOT)))}
    known |= {name.removeprefix("runner/") for name in known}
    for paths in rooms.sources().values():
        for path in paths:
            for comment in re.findall(r"/\*.*?\*/", path.read_text(), re.DOTALL):
                named = re.findall(r"(?<![\w<./-])([\w/-]+\.[ch])\b", comment)
                assert not [name for name in named if name not in known and not ELSEWHERE.match(name)], path
