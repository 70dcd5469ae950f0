# SPDX-License-Identifier: Apache-2.0
"""The report belongs to the caller: no process inside decides its place or its content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.plugin import Make
from lib.sandbox import Holt


@pytest.fixture
def victim(place: Path, put: Make) -> Path:
    """A file that the identity may write, beside the workspace."""
    return put(place / "precious", "precious\n", 0o666)


def untouched(victim: Path) -> None:
    assert victim.read_text() == "precious\n"
    assert sorted(p.name for p in victim.parent.iterdir()) == ["precious", "workspace"]


def test_a_link_planted_before_is_not_followed(holt: Holt, workspace: Path, victim: Path, identity: Identity) -> None:
    identity.run(["ln", "-s", victim, workspace / "report.json"]).check_returncode()
    holt(["run", "--report", workspace / "report.json", "--", "true"])

    untouched(victim)


def test_a_link_to_a_file_that_is_not_there_yet_makes_none(
    holt: Holt, workspace: Path, victim: Path, identity: Identity
) -> None:
    identity.run(["ln", "-s", victim.parent / "new", workspace / "report.json"]).check_returncode()
    holt(["run", "--report", workspace / "report.json", "--", "true"])

    untouched(victim)


@pytest.mark.parametrize("script", (
    "rm -f report.json; ln -s {victim} report.json",
    "mv report.json x; ln -s {victim} report.json",
    "rm -rf out; ln -s {parent} out",
    "mv out gone; ln -s {parent} out",
))
@pytest.mark.parametrize("report", ("report.json", "out/report.json", "out/precious"))
def test_a_link_planted_meanwhile_is_not_followed(
    script: str, report: str, holt: Holt, workspace: Path, victim: Path, identity: Identity
) -> None:
    identity.run(["mkdir", workspace / "out"]).check_returncode()
    holt(["run", "--report", workspace / report, "--", "sh", "-c", script.format(victim=victim, parent=victim.parent)])

    untouched(victim)


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("link, target", (("mine", "workspace/report.json"), ("mine", "workspace/out/report.json")))
def test_a_link_of_the_caller_s_leads_to_no_planted_one(
    link: str, target: str, holt: Holt, place: Path, workspace: Path, victim: Path, identity: Identity
) -> None:
    identity.run(["ln", "-s", victim.parent, workspace / "out"]).check_returncode()
    identity.run(["ln", "-s", victim, workspace / "report.json"]).check_returncode()
    (place / link).symlink_to(target)
    assert holt(["run", "--report", place / link, "--", "true"]).code == 125

    assert victim.read_text() == "precious\n" and not (victim.parent / "report.json").exists()


@pytest.mark.parametrize("way", ("rw", "files", "other name of the workspace"))
def test_the_report_follows_no_link_in_other_writable_mounts(
    way: str, holt: Holt, place: Path, workspace: Path, victim: Path, identity: Identity
) -> None:
    given = workspace.parent / "workspace" if way.startswith("other") else place / "given"
    identity.run(["mkdir", "-p", given]).check_returncode()
    identity.run(["ln", "-s", victim, given / "report.json"]).check_returncode()
    flags = {"rw": ["--rw", given], "files": ["--files", given]}.get(way, [])
    path = given / "report.json"
    if way.startswith("other"):
        (place / "alias").symlink_to(workspace)
        path = place / "alias" / "report.json"
    holt(["run", *flags, "--report", path, "--", "true"])

    assert victim.read_text() == "precious\n"


def test_a_fifo_in_its_place_does_not_hang_holt(holt: Holt, workspace: Path, identity: Identity) -> None:
    identity.run(["mkfifo", workspace / "report.json"]).check_returncode()
    result = holt(["run", "--report", workspace / "report.json", "--", "true"], timeout=30)

    assert result.code in (0, 125)


def test_an_old_report_is_replaced_before_the_run(holt: Holt, workspace: Path, identity: Identity) -> None:
    """An unfinished report must not be mistaken for that of the run before."""
    path = workspace / "report.json"
    path.write_text('{"holt": 1, "exit_code": 0, "padding": "' + "x" * 100000 + '"}')
    identity.own(path)
    holt(["run", "--report", path, "--", "sh", "-c", "exit 3"])

    assert json.loads(path.read_text())["exit_code"] == 3


def test_the_command_can_not_write_in_the_report(holt: Holt, workspace: Path) -> None:
    """Bytes that it writes into the file while it runs are not in the caller's document."""
    path = workspace / "report.json"
    script = 'for i in $(seq 2000); do echo "{\\"exit_code\\": 0}"; done >>report.json; exit 3'
    holt(["run", "--report", path, "--", "sh", "-c", script])

    assert json.loads(path.read_text())["exit_code"] == 3


def test_the_command_can_not_print_a_result_for_holt(holt: Holt) -> None:
    """The command can imitate the text, but neither the exit code nor the report."""
    result = holt.sh('echo "holt: all is well" >&2; exit 9')

    assert result.code == 9
    assert result.report["exit_code"] == 9
    assert result.cause == "exited"


@pytest.mark.parametrize("code", (124, 125, 126, 127, 137))
def test_a_code_of_holt_s_own_is_told_apart_by_the_cause(code: int, holt: Holt) -> None:
    result = holt.sh(f"exit {code}")

    assert result.code == code
    assert result.cause == "exited"
    assert result.report["error"] is None
