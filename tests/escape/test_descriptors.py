# SPDX-License-Identifier: Apache-2.0
"""No descriptor except 0, 1 and 2 comes in, and those do not lead out (CVE-2024-21626)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.hostile import Attack, Hostile, Outcome, Run, and_without_landlock
from lib.identity import Identity
from lib.plugin import Make
from lib.sandbox import Holt


@pytest.fixture
def directory_fd(place: Path, secret: Path) -> Iterator[int]:
    """A descriptor of a host directory, left open by a careless caller."""
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_descriptors_of_the_caller_do_not_come_in(
    hostile: Hostile, holt: Holt, directory_fd: int, secret: Path
) -> None:
    secret.chmod(0o666)
    attack = Attack("descriptors", "extra")
    careless = ["bash", "-c", f'exec "$0" "$@" 3<{secret.parent} 9<>{secret} 99<{secret.parent}']
    hostile.show_that_it_can_succeed(attack, pass_fds=(directory_fd,))

    outcome = hostile.attack(holt, attack, prefix=careless, pass_fds=(directory_fd,))
    assert outcome.verdict == "HOLDS", outcome


def test_holt_leaves_no_descriptor_open_for_the_command(holds: Run) -> None:
    attack = Attack("descriptors", "extra", control="none", why_none="see the test above")

    holds(attack)


UPWARD = ("upward", "upward-proc", "upward-chdir")


@and_without_landlock
@pytest.mark.parametrize("name", UPWARD)
@pytest.mark.parametrize("mode", (os.O_RDONLY, os.O_PATH), ids=("read", "path"))
def test_a_directory_as_stdin_is_no_way_out(
    name: str, mode: int, flags: tuple[str, ...], hostile: Hostile, holt: Holt, place: Path, secret: Path
) -> None:
    attack = Attack("descriptors", name, ("0", str(secret).lstrip("/")))
    fd = os.open(place, mode | os.O_DIRECTORY)
    try:
        hostile.show_that_it_can_succeed(attack, stdin=fd)
        result = holt(
            ["run", *flags, "--ro", hostile.directory, "--", hostile.path("descriptors"), name, *attack.args], stdin=fd
        )
    finally:
        os.close(fd)

    refused = result.code == 125
    assert refused or Outcome.of(attack, result.out, str(result)).verdict == "HOLDS"


@and_without_landlock
@pytest.mark.parametrize("name", UPWARD)
def test_a_directory_as_stderr_is_no_way_out(
    name: str, flags: tuple[str, ...], hostile: Hostile, holt: Holt, directory_fd: int, secret: Path
) -> None:
    attack = Attack("descriptors", name, ("2", str(secret).lstrip("/")))
    argv = ["run", *flags, "--ro", hostile.directory, "--", hostile.path("descriptors"), name, *attack.args]
    result = holt(argv, stderr=directory_fd)

    refused = result.code == 125
    assert refused or Outcome.of(attack, result.out, str(result)).verdict == "HOLDS"


@and_without_landlock
def test_a_directory_as_stdin_shows_nothing_below_it(
    flags: tuple[str, ...], hostile: Hostile, holt: Holt, directory_fd: int, secret: Path
) -> None:
    attack = Attack("descriptors", "below", ("0", secret.name))
    hostile.show_that_it_can_succeed(attack, stdin=directory_fd)
    argv = ["run", *flags, "--ro", hostile.directory, "--", hostile.path("descriptors"), "below", *attack.args]
    result = holt(argv, stdin=directory_fd)

    refused = result.code == 125
    assert refused or Outcome.of(attack, result.out, str(result)).verdict == "HOLDS"


def test_a_file_that_is_read_from_can_not_be_reopened_for_writing(
    hostile: Hostile, holt: Holt, secret: Path, identity: Identity
) -> None:
    """In "holt run -- tool <precious", the inode allows writing, but the caller did not."""
    identity.own(secret).chmod(0o666)
    attack = Attack("descriptors", "reopen", ("0",))
    with secret.open() as file:
        hostile.show_that_it_can_succeed(attack, stdin=file)
        outcome = hostile.attack(holt, attack, stdin=file)

    assert outcome.verdict == "HOLDS", outcome


@and_without_landlock
@pytest.mark.parametrize("fd", (*range(3, 12), 20, 99, 1000))
def test_a_working_directory_by_descriptor_is_no_way_out(
    flags: tuple[str, ...], fd: int, hostile: Hostile, holt: Holt, directory_fd: int, secret: Path
) -> None:
    """CVE-2024-21626 itself: --cwd /proc/self/fd/N, where N may be the launcher's own descriptor."""
    attack = Attack("descriptors", "upward-cwd", (str(secret).lstrip("/"),))
    argv = [
        "run", *flags, "--ro", hostile.directory, "--cwd", f"/proc/self/fd/{fd}", "--",
        hostile.path("descriptors"), attack.name, *attack.args,
    ]
    result = holt(argv, pass_fds=(directory_fd,))

    assert result.code == 125 or Outcome.of(attack, result.out, str(result)).verdict == "HOLDS"


@pytest.mark.parametrize("way", ("elsewhere", "link", "deleted"))
def test_a_working_directory_outside_is_no_way_out(
    way: str, hostile: Hostile, holt: Holt, place: Path, workspace: Path, secret: Path, mkdir: Make
) -> None:
    attack = Attack("descriptors", "upward-cwd", (str(secret).lstrip("/"),))
    outside = mkdir(place / "outside")
    link = place / "link"
    link.symlink_to(outside)
    argv: list[str | Path] = [
        "run", "--ro", hostile.directory, "--workspace", workspace, "--",
        hostile.path("descriptors"), attack.name, *attack.args,
    ]
    if way == "deleted":
        argv = ["sh", "-c", 'rmdir ../outside && exec "$0" "$@"', holt.binary, *argv]
        code, out = _run(holt, argv, outside)
    else:
        result = holt(argv, cwd=link if way == "link" else outside)
        code, out = result.code, result.out

    assert code == 125 or Outcome.of(attack, out, out).verdict == "HOLDS"


def _run(holt: Holt, argv: list[str | Path], cwd: Path) -> tuple[int, str]:
    done = holt.identity.run(holt.identity.argv(argv), cwd=cwd)
    return done.returncode, done.stdout
