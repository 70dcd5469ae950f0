# SPDX-License-Identifier: Apache-2.0
"""A directory that holds more than one project is not handed over by mistake."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.paths import PROJECT
from lib.sandbox import Arg, Holt

WIDE = (
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/sbin",
    "/srv", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/local", "/usr/local/bin", "/var",
)


@pytest.mark.parametrize("option", ("--workspace", "--rw", "--files"))
@pytest.mark.parametrize("path", [p for p in WIDE if Path(p).is_dir()])
def test_a_wide_root_is_refused(option: str, path: str, holt: Holt) -> None:
    result = holt(["run", option, f"{path}:/x" if option != "--files" else path, "--", "true"])

    assert "too wide" in result.refusal()
    assert "--allow-wide" in result.cure
    assert f"{option} DIR" in result.cure


def test_a_wide_root_of_a_policy_file_is_mended_there(holt: Holt, place: Path, put: Callable[..., Path]) -> None:
    policy = put(place / "policy.json", '{"holt": 1, "filesystem": {"read_write": ["/usr:/x"]}}')
    result = holt(["run", "--policy", policy, "--", "true"])

    assert f"{policy}: $.filesystem.read_write[0]: /usr" in result.refusal()
    assert "--workspace" not in result.cure and "--rw" not in result.cure


@pytest.mark.parametrize("spelling", ("/usr/", "/usr/.", "//usr", "/etc/../usr", "/usr/bin/.."))
def test_a_wide_root_is_refused_in_every_spelling(spelling: str, holt: Holt) -> None:
    assert "too wide" in holt(["run", "--workspace", f"{spelling}:/x", "--", "true"]).refusal()


@pytest.mark.parametrize("path", ("/", "/usr", "/home", "HOME"))
def test_a_link_is_as_wide_as_what_it_leads_to(path: str, holt: Holt, identity: Identity, place: Path) -> None:
    link = place / "link"
    link.symlink_to(identity.home if path == "HOME" else path)

    holt(["run", "--rw", link, "--", "true"]).refusal()
    assert "too wide" in holt(["run", "--workspace", link, "--", "true"]).refusal()


def test_standing_in_a_wide_root_is_refused(holt: Holt, identity: Identity) -> None:
    for directory in (Path("/usr"), identity.home):
        result = holt(["run", "--", "true"], cwd=directory)

        assert "too wide" in result.refusal()
        assert "--workspace" in result.cure
    holt(["run", "--", "true"], cwd=Path("/")).refusal()
    holt(["run", "--allow-wide", "--", "true"], cwd=Path("/")).refusal()


def test_the_home_directory_is_wide_and_so_is_what_is_above_it(holt: Holt, identity: Identity) -> None:
    for path in (identity.home, identity.home.parent):
        assert "too wide" in holt(["run", "--workspace", path, "--", "true"]).refusal()


# Gives the caller an account with a home directory: $0 is a file in the place of /etc/passwd.
WITH_ACCOUNT = 'mount --bind "$0" /etc/passwd && exec "$@"'

# For each identity: the options of unshare(1) that let it mount, its uid afterwards, and the command that gives it that uid.
OWN_MOUNTS: dict[str, tuple[list[str], int, list[str]]] = {
    "user": (["--map-root-user"], 4321, ["unshare", "--map-user=4321", "--map-group=4321", "--"]),
    "root": ([], 0, []),
    "nested": (["--map-root-user"], 0, []),
}


@pytest.fixture
def account(place: Path, identity: Identity) -> tuple[Path, list[Arg]]:
    """Returns the home directory in /etc/passwd of the caller, and a command prefix that sets it."""
    home, passwd = place / "account", place / "passwd"
    (home / "project").mkdir(parents=True)
    for path in (home, home / "project"):
        identity.own(path)
    flags, uid, rest = OWN_MOUNTS[identity.name]
    # More than one read of the file, and no newline at its end.
    others = "".join(f"other{i}:x:{uid + i}:0::/nonexistent:/bin/sh\n" for i in range(1, 300))
    passwd.write_text(f"{others}me:x:{uid}:{uid}:Me:{home}:/bin/sh")
    return home, ["unshare", "--mount", *flags, "--", "sh", "-c", WITH_ACCOUNT, passwd, *rest]


# Services and cron jobs have no HOME.
NO_HOME = (["env", "-u", "HOME"], ["env", "HOME="], ["env", "HOME=relative"])


@pytest.mark.parametrize("no_home", NO_HOME, ids=lambda words: words[-1])
def test_without_a_home_variable_the_account_s_home_counts(
    no_home: list[str], holt: Holt, account: tuple[Path, list[Arg]]
) -> None:
    home, prefix = account
    prefix = [*prefix, *no_home]

    for directory in (home, home.parent):
        assert "too wide" in holt(["run", "--", "true"], cwd=directory, prefix=prefix).refusal()
    holt(["run", "--", "true"], cwd=home / "project", prefix=prefix).ok()


def test_without_home_a_link_to_the_account_s_is_as_wide(
    holt: Holt, place: Path, account: tuple[Path, list[Arg]]
) -> None:
    home, prefix = account
    home.rename(place / "moved")
    home.symlink_to(place / "moved")

    assert "too wide" in holt(["run", "--", "true"], cwd=home, prefix=[*prefix, *NO_HOME[0]]).refusal()


def test_the_account_s_home_is_wide_whatever_the_variable_says(holt: Holt, account: tuple[Path, list[Arg]]) -> None:
    """sudo may leave another user's HOME."""
    home, prefix = account

    result = holt(["run", "--", "true"], cwd=home, prefix=prefix)
    assert result.refusal().startswith(f"the current directory is the workspace, but {home} is too wide")
    assert "--workspace none" in result.cure
    assert "--workspace DIR" in result.cure
    holt(["run", "--", "true"], cwd=home / "project", prefix=prefix).ok()


def test_a_home_of_no_account_is_not_wide(holt: Holt, account: tuple[Path, list[Arg]], place: Path) -> None:
    """This control shows that the tests above depend on the account."""
    home, prefix = account
    (place / "passwd").write_text("other:x:12345:0::/nonexistent:/bin/sh\n")

    holt(["run", "--", "true"], cwd=home, prefix=prefix).ok()


@pytest.mark.identities("root")
def test_for_root_the_owner_s_home_is_wide(holt: Holt, account: tuple[Path, list[Arg]], place: Path) -> None:
    """An example is sudo: the command acts as the owner."""
    home, prefix = account
    (place / "passwd").write_text(f"owner:x:4321:4321:Me:{home}:/bin/sh\n")
    holt(["run", "--", "true"], cwd=home, prefix=prefix).ok()
    os.chown(home, 4321, 4321)

    assert "too wide" in holt(["run", "--", "true"], cwd=home, prefix=prefix).refusal()


# Mounts a tmpfs in place of /run, where the user's sockets are.
WITH_RUN = 'mount -t tmpfs none /run && mkdir -p /run/user/1/project && chmod -R 777 /run/user && exec "$0" "$@"'


def test_a_runtime_directory_is_wide(holt: Holt, identity: Identity) -> None:
    flags, _, rest = OWN_MOUNTS[identity.name]
    prefix = ["unshare", "--mount", *flags, "--", "sh", "-c", WITH_RUN, *(rest or ["env"])]

    for path in ("/run/user", "/run/user/1"):
        assert "too wide" in holt(["run", "--rw", f"{path}:/x", "--", "true"], prefix=prefix).refusal()
    holt(["run", "--rw", "/run/user/1/project:/x", "--", "true"], prefix=prefix).ok()


def test_a_directory_in_the_home_directory_is_not_wide(holt: Holt, identity: Identity, nothing_left: None) -> None:
    project = identity.home / "project"
    project.mkdir()
    identity.own(project)
    try:
        assert holt.sh("pwd; ls -A ..", cwd=project).ok().out == f"{project}\nproject\n"
    finally:
        project.rmdir()


def test_allow_wide_is_the_caller_s_own_word(holt: Holt, identity: Identity, nothing_left: None) -> None:
    """The command may write in a home directory, except to holt's store, which is made and hidden. Files that the
    system keeps from the caller stay inaccessible."""
    store, settings = identity.home / ".local/share/holt", identity.home / ".config/holt"
    try:
        holt.sh("echo x > new; ! ls .local/share/holt .config/holt", "--allow-wide", cwd=identity.home).ok()

        assert (identity.home / "new").read_text() == "x\n"
        assert store.is_dir() and settings.is_dir()
    finally:
        (identity.home / "new").unlink(missing_ok=True)
        for path in (store, store.parent, store.parent.parent, settings, settings.parent):
            path.rmdir()


@pytest.mark.identities("user", "nested")
def test_the_whole_host_with_allow_wide(holt: Holt) -> None:
    """Root cannot do this, because parts of the host take no id map."""
    script = f"cat /host/etc/os-release > /dev/null && touch /host{holt.cwd}/made && pwd"
    # The store of this home is made, since the command could make it.
    result = holt.sh(script, "--allow-wide", "--workspace", "/:/host", env={"HOME": str(holt.cwd)}).ok()

    assert result.out == f"/host{holt.cwd}\n"
    assert (holt.cwd / "made").exists()


@pytest.mark.identities("user", "nested")
def test_the_whole_host_read_only(holt: Holt) -> None:
    result = holt.sh(f"ls -A /host; touch /host{holt.cwd}/made", "--ro", "/:/host")

    assert set(result.out.split()) == set(os.listdir("/"))
    assert "Read-only file system" in result.err


def test_a_policy_file_may_allow_wide_directories(holt: Holt, place: Path) -> None:
    policy = place / "policy.json"
    policy.write_text('{"holt": 1, "filesystem": {"allow_wide": true, "read_write": ["/usr/local:/x"]}}')

    holt(["run", "--policy", policy, "--", "true"]).ok()


def test_reading_may_be_wide(holt: Holt) -> None:
    """An example is --ro of /usr at another place."""
    assert "bin" in holt.sh("ls /other", "--ro", "/usr:/other").ok().out.split()


def test_a_bare_name_is_no_wide_root(holt: Holt) -> None:
    os.mkdir(holt.cwd / "usr")
    holt.identity.own(holt.cwd / "usr")

    assert holt.sh("pwd", "--workspace", "usr").ok().out == f"{holt.cwd}/usr\n"


def test_the_first_steps_work_in_a_home_directory(holt: Holt, identity: Identity, nothing_left: None) -> None:
    """These are the commands that the help and README.md name."""
    steps = re.search(r"First steps: (.*)\n", holt(["--help"]).ok().out)
    assert steps
    first = steps[1].split(";")[0].split()[1:]

    assert "uid=1000(agent)" in holt(first, cwd=identity.home).ok().out
    assert f"`holt {' '.join(first)}`" in (PROJECT / "README.md").read_text()


def test_the_help_names_the_default_workspace(holt: Holt) -> None:
    shown = {verb: re.search(r"--workspace DIR.*\(default: (.*)\)", holt([verb, "--help"]).ok().out) for verb in ("run", "create")}

    assert shown["run"] and shown["run"][1] == "the current directory"
    assert shown["create"] and shown["create"][1] == "a directory of the session"
