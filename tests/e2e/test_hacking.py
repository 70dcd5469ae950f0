# SPDX-License-Identifier: Apache-2.0
"""HACKING.md names what exists: files, commands, options, functions, constants and every folder of sources."""

from __future__ import annotations

import re
import subprocess

import pytest

from lib import rooms
from lib.paths import PROJECT

HACKING = (PROJECT / "HACKING.md").read_text()
QUOTED = sorted({" ".join(text.split()) for text in re.findall(r"`([^`]+)`", HACKING)})

# A word in capitals stands for a name: man/holt-NAME.1.scd.
PLACEHOLDER = re.compile(r"NAME|AREA|\*")

PATHS = [text for text in QUOTED if re.fullmatch(r"\.?[\w./-]+", text) and re.search(r"/|\.(c|h|py|scd|build)$", text)]
CODE = [text for text in QUOTED if re.fullmatch(r"\w+\(\)|[A-Z]{3,}\w*_\w+|[A-Z][a-z]+[A-Z]\w+", text)]
COMMANDS = [line for block in re.findall(r"(?:^    .*\n)+", HACKING, re.M) for line in block.replace("\\\n", "").splitlines()]


def sources() -> str:
    paths = [path for top in ("policy", "runner", "helpers", "tests/unit") for path in (PROJECT / top).rglob("*.[ch]")]
    return "".join(path.read_text() for path in [*paths, PROJECT / "tests" / "e2e" / "test_lists.py"])


@pytest.mark.parametrize("path", [path for path in PATHS if not PLACEHOLDER.search(path)])
def test_paths_lead_to_files(path: str) -> None:
    """A file that is named without its folder is in some folder of the sources. The build makes build directories."""
    tops = (PROJECT / name for name in ("policy", "runner", "helpers", "tests"))
    found = (PROJECT / path).exists() if "/" in path else any(each for top in tops for each in top.rglob(path))

    assert found or path.startswith("build")


def test_functions_and_constants_exist() -> None:
    text = sources()

    assert len(CODE) > 10
    for name in CODE:
        assert re.search(rf"\b{name.removesuffix('()')}\b", text) or "cmd_NAME" in name, name


def test_options_of_meson_exist() -> None:
    known = set(re.findall(r"^option\('(\w+)'", (PROJECT / "meson_options.txt").read_text(), re.M))

    assert {name for name in re.findall(r"-D(\w+)=", HACKING)} - {"b_sanitize", "b_lundef"} == known


def test_lanes_exist() -> None:
    usage = subprocess.run([PROJECT / "check", "--help"], text=True, capture_output=True).stderr
    lanes = set(re.search(r"--lane ([\w|]+)", usage)[1].split("|")) - {"gcc"}

    assert {name for name in re.findall(r"`(\w+)`", HACKING.partition("**Lanes.**")[2].partition("\n\n")[0])} == lanes


def test_commands_name_files_that_exist() -> None:
    """Words that begin with build are made by the commands; tests/e2e/test_lists.py knows every fuzzer."""
    assert len(COMMANDS) > 10
    for line in COMMANDS:
        for word in re.split(r"[\s=]+", line.partition("  #")[0].strip()):
            if "/" in word and not word.startswith(("build", "/usr")):
                assert (PROJECT / word).exists(), line


def test_every_folder_is_in_the_tour() -> None:
    table = re.findall(r"^\| `(?:runner/|policy/)?([a-z]+)/` \|", HACKING.partition("## Folders")[2], re.M)

    assert table[: len(rooms.ORDER) - 1] == [room for room in rooms.ORDER if room != "main"]
