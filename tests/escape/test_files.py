# SPDX-License-Identifier: Apache-2.0
"""Every path inside leads only to files that the policy gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.hostile import Attack, Hostile, Run, and_without_landlock
from lib.identity import Identity
from lib.plugin import Make
from lib.sandbox import Holt

# Paths to the same file: directly, above the root, and through symlinks of /proc to a root or a directory.
WAYS = (
    "", "/..", "/../..", "/proc/self/root", "/proc/self/root/..", "/proc/1/root", "/proc/1/root/..",
    "/proc/self/cwd/../../../../..", "/proc/1/cwd/../..", "/usr/../..", "/tmp/../..", "/dev/fd/../../..",
)

@and_without_landlock
@pytest.mark.parametrize("way", WAYS)
def test_a_file_of_the_host_can_not_be_read(
    way: str, flags: tuple[str, ...], holds: Run, secret: Path
) -> None:
    holds(Attack("files", "read", (f"{way}{secret}",), control_args=(str(secret),)), *flags)


@and_without_landlock
@pytest.mark.parametrize("way", WAYS)
def test_no_file_can_be_made_on_the_host(
    way: str, flags: tuple[str, ...], holt: Holt, place: Path
) -> None:
    """The sandbox may have a directory of its own with the same name, on the way to its workspace."""
    place.chmod(0o777)
    holt.sh(f"echo planted >{way}{place}/planted; exit 0", *flags).ok()

    assert [p.name for p in place.iterdir()] == ["workspace"]


@and_without_landlock
def test_there_is_nothing_above_the_root(flags: tuple[str, ...], holt: Holt) -> None:
    """Going up always ends at the same directory, as its inode shows."""
    script = "for up in / /.. /../.. /proc/self/root/.. /usr/../../..; do stat -c %d:%i $up; done"

    assert len(set(holt.sh(script, *flags).ok().out.split())) == 1


def test_a_file_of_the_caller_s_home_can_not_be_read(
    holds: Run, identity: Identity, nothing_left: None
) -> None:
    key = identity.home / "key"
    key.write_text("private\n")
    identity.own(key).chmod(0o644)
    try:
        holds(Attack("files", "read", (str(key),), control="root"))
    finally:
        key.unlink()


@and_without_landlock
@pytest.mark.parametrize("path", ("/root", "/home", "/var", "/boot", "/srv", "/media", "/sys"))
def test_directories_of_the_host_are_not_there(
    path: str, flags: tuple[str, ...], holt: Holt, secret: Path
) -> None:
    """The directories contain only the sandbox's own entries.

    These are its home, the way to its workspace, the lists of its processors, and the parts of /var that every user
    may read."""
    script = f"find {path} -xdev -type f -size +0 2>/dev/null"
    own = {f"/sys/devices/system/cpu/{name}" for name in ("online", "possible", "present")}

    assert set(holt.sh(script, *flags).out.splitlines()) <= own


def test_siblings_of_the_workspace_are_not_shown(holt: Holt, place: Path, secret: Path) -> None:
    assert holt.sh("ls -A ..").ok().out.split() == ["workspace"]


@pytest.mark.parametrize("path", ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id"))
def test_secrets_of_the_system_are_not_there(path: str, holds: Run) -> None:
    holds(Attack("files", "read", (path,), control="root"))


def test_accounts_of_the_host_are_not_there(holt: Holt) -> None:
    names = [line.split(":")[0] for line in holt.sh("cat /etc/passwd").ok().out.splitlines()]

    assert "agent" in names
    assert set(names) <= {"root", "agent", "nobody"}


@pytest.mark.parametrize("granted", ((), ("--allow-syscall", "open_by_handle_at")))
def test_no_file_can_be_opened_by_its_inode(
    granted: tuple[str, ...], holds: Run, hostile: Hostile, workspace: Path
) -> None:
    """The "shocker" of Docker's first years: the workspace's file system is the host's."""
    control = (str(hostile.controls),)

    holds(Attack("files", "by-handle", (str(workspace),), "root", control), *granted)


# --- --hide ---


@pytest.fixture
def hidden(put: Make) -> Path:
    return put(".env", "PASSWORD=1\n", 0o666)


def test_a_hidden_file_can_not_be_read(holds: Run, hidden: Path) -> None:
    holds(Attack("files", "read", (str(hidden),)), "--hide", ".env")


@pytest.mark.parametrize("trick", (
    "mv .env seen; cat seen",
    "ln .env seen; cat seen",
    "cp -a . /tmp/copy; cat /tmp/copy/.env",
    "rm -f .env; cat .env",
    "mv .env /tmp/seen; cat /tmp/seen",
    "cat /proc/self/root$PWD/.env /proc/self/cwd/.env",
    "cat /proc/$$/root$PWD/.env",
))
def test_a_hidden_file_stays_hidden(trick: str, holt: Holt, hidden: Path) -> None:
    result = holt.sh(trick, "--hide", ".env")

    assert "PASSWORD" not in result.out
    assert hidden.read_text() == "PASSWORD=1\n"


def test_a_hidden_directory_is_empty(holds: Run, holt: Holt, put: Make) -> None:
    key = put("keys/key", "private\n")

    holds(Attack("files", "list", (str(key.parent),)), "--hide", "keys")
    assert "private" not in holt.sh("mv keys k; cat k/key keys/key", "--hide", "keys").out
    assert key.read_text() == "private\n"


# --- roots that are too wide ---


@pytest.mark.parametrize("flag", ("--workspace", "--rw"))
@pytest.mark.parametrize("path", ("/", "/etc", "/usr", "/home", "/root", "/var", "/tmp", "/dev", "/proc"))
def test_a_system_directory_is_not_given_by_mistake(flag: str, path: str, holt: Holt, place: Path) -> None:
    result = holt(["run", flag, path, "--", "true"])

    assert result.code == 125
    assert path in result.err


@pytest.mark.parametrize("flag", ("--workspace", "--rw"))
def test_the_home_directory_is_not_given_by_mistake(flag: str, holt: Holt, identity: Identity) -> None:
    result = holt(["run", flag, identity.home, "--", "true"])

    assert result.code == 125


def test_the_home_directory_is_not_the_workspace_for_being_the_cwd(holt: Holt, identity: Identity) -> None:
    assert holt(["run", "--", "true"], cwd=identity.home).code == 125


def test_a_link_to_a_wide_root_is_as_wide(holt: Holt, place: Path) -> None:
    link = place / "innocent"
    link.symlink_to("/")

    assert holt(["run", "--workspace", link, "--", "true"]).code == 125
    assert holt(["run", "--workspace", f"{place}/../../../..", "--", "true"]).code == 125


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("options", (
    ("--hide", "own"), ("--hide", "{}/own"), ("--tmpfs", "{}/own"), ("--ro", "other:{}/own"), ("--rw", "other:{}/own"),
))
def test_a_protected_path_below_another_mount_stays(options: tuple[str, str], holt: Holt, put: Make) -> None:
    """The host's own file is in its place at the end of the run. holt must not take it for one of the command's."""
    for name in ("own", "other"):
        put(f"{name}/secret" if "--tmpfs" in options else name, "secret\n")
    flags = (options[0], options[1].format(holt.cwd), "--protect", "own")
    for _ in range(2):
        ran = holt.sh("cat own own/secret own.holt-untrusted; true", *flags).ok()
        assert not ran.set_aside and ("secret\n" in ran.out) == (options[1][:5] == "other")
    assert sorted(path.name for path in holt.cwd.iterdir()) == ["other", "own"]
