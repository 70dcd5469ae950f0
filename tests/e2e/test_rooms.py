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


def test_a_file_has_one_subject() -> None:
    long = {path: len(path.read_text().splitlines()) for paths in rooms.sources().values() for path in paths}
    assert {path: lines for path, lines in long.items() if lines > rooms.FILE_LINES_MAX} == {}


def test_every_source_is_built() -> None:
    """Each file must be in a meson.build, because nobody would notice that it is not compiled."""
    for paths in rooms.sources().values():
        for path in paths:
            build = path.parent / "meson.build"
            if path.suffix == ".c":
                assert re.search(rf"'{re.escape(path.name)}'", build.read_text()), path


# helpers/ makes programs that run inside, and main.c is one of the programs outside.
@pytest.mark.parametrize("room", sorted(set(rooms.ORDER) - {"helpers", "main"}))
def test_every_folder_makes_a_library(room: str) -> None:
    """Unit tests and fuzzers link it. The sources of a program alone could not be tested."""
    build = rooms.sources()[room][0].parent / "meson.build"
    assert re.search(rf"^{room}_lib = static_library\('{room}', ", build.read_text(), re.M), build


# Sources of the kernel and of SQLite, and files that the build makes.
ELSEWHERE = re.compile(r"^(kernel|fs|linux|sys|xfs|os_unix|presets|net-sets|route-providers|syscalls-numbers|syscalls-programs)\b")


def test_comments_name_files_that_exist() -> None:
    every = [path for top in ("helpers", "policy", "runner", "tests") for path in (rooms.ROOT / top).rglob("*.[ch]")]
    known = {name for path in every for name in (path.name, str(path.relative_to(rooms.ROOT)))}
    known |= {name.removeprefix("runner/") for name in known}
    for paths in rooms.sources().values():
        for path in paths:
            for comment in re.findall(r"/\*.*?\*/", path.read_text(), re.DOTALL):
                named = re.findall(r"(?<![\w<./-])([\w/-]+\.[ch])\b", comment)
                assert not [name for name in named if name not in known and not ELSEWHERE.match(name)], path


def test_code_asks_for_properties_of_mounts_and_never_for_kinds() -> None:
    """A new kind then needs no look at the code of twenty files (plan_mount_traits in policy/plan.h)."""
    for paths in rooms.sources().values():
        for path in paths:
            assert not re.search(r"kind [!=]= PLAN_[A-Z]+|case PLAN_(BIND|PRIVATE|HIDE)", path.read_text()), path


def test_tables_of_steps_are_run_by_the_macro() -> None:
    loop = re.compile(r"for \(size_t i = 0; r == 0 && i < ELEMENTSOF\((\w+)\); i\+\+\)\n\s+r = \1\[i\]\(")
    for paths in rooms.sources().values():
        for path in paths:
            assert not loop.search(path.read_text()), f"{path}: use RUN_STEPS() of base/util.h"


FUNCTION = re.compile(
    r"^((?:_Noreturn )?static )?(?!typedef |struct |enum )\w[\w ]*?[ *]+(\w+)\([^;]*?\)\s*\{", re.MULTILINE
)


# The entry points of programs.
MAINS = {"main", "init_main"}

# Short names that every C programmer can read: a system call with six arguments, a comparison, a free() for _cleanup_.
ONE_WORD = {"sys6", "streq", "freep"}


def test_each_function_has_a_name_of_its_own() -> None:
    """A name in a backtrace or in a search leads to one function. One word alone does not name the object."""
    found: "dict[str, set[str]]" = {}
    for paths in rooms.sources().values():
        # Programs that only the build runs replace functions of other files.
        for path in (path for path in paths if not path.name.startswith("gen-")):
            text = re.sub(r"^#ifdef.*?^#endif", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
            for static, name in FUNCTION.findall(text):
                found.setdefault(name, set()).add(str(path.relative_to(rooms.ROOT)))
                assert not static or "_" in name or name in ONE_WORD, (name, path)
    assert {name: sorted(where) for name, where in found.items() if len(where) > 1 and name not in MAINS} == {}
