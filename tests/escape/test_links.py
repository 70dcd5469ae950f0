# SPDX-License-Identifier: Apache-2.0
"""Symlinks that an attacker has planted at mount points do not lead to the host, and no mount leaves a stub.

The attacker owns a workspace or a root file system that the caller passes to the next run. The victim is a directory of
the host beside it.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from lib.hostile import Hostile, and_without_landlock
from lib.identity import Identity
from lib.sandbox import Holt, Result

State = list[tuple[str, int, int, int]]


def state(path: Path) -> State:
    """Everything in a tree that a mount or a stub in it would change."""
    found = [path, *sorted(path.rglob("*"))]
    return [(str(p), p.lstat().st_mode, p.lstat().st_size, p.lstat().st_mtime_ns) for p in found]


@pytest.fixture
def victim(place: Path, identity: Identity) -> Path:
    """A directory of the host to which the identity could write: only holt prevents that."""
    path = place / "victim"
    identity.run(["mkdir", path]).check_returncode()
    identity.run(["sh", "-c", "echo secret >secret; mkdir sub"], cwd=path).check_returncode()
    return path


def ends_without_harm(result: Result, victim: Path, before: State) -> None:
    """The run was refused with a message about the obstacle, or could not reach the victim."""
    assert result.code in (0, 125), result
    assert "secret" not in result.out
    assert state(victim) == before
    if result.code == 125:
        assert result.err.startswith("holt: ")


# --- a workspace with a link in it ---

@pytest.mark.parametrize("option", (
    ("--tmpfs", "{ws}/link"), ("--tmpfs", "{ws}/link/sub"), ("--tmpfs", "{ws}/link/new"),
    ("--ro", "/etc/hostname:{ws}/link/file"), ("--ro", "/usr/share:{ws}/link/sub"), ("--ro", "/usr/share:{ws}/link"),
    ("--rw", "{ws}/data:{ws}/link/sub"), ("--rw", "{ws}/data:{ws}/link"),
    ("--hide", "link"), ("--hide", "link/secret"), ("--hide", "link/sub"),
    ("--protect", "link"), ("--protect", "link/secret"), ("--protect", "link/new"),
    ("--cwd", "{ws}/link"), ("--cwd", "{ws}/link/sub"),
))
def test_a_link_in_the_workspace_leads_no_mount_out(
    option: tuple[str, str], holt: Holt, workspace: Path, victim: Path
) -> None:
    holt.identity.run(["sh", "-c", f"ln -s {victim} link; mkdir data"], cwd=workspace).check_returncode()
    before = state(victim)
    flags = [part.format(ws=workspace) for part in option]
    result = holt.sh("touch link/planted link/sub/planted 2>/dev/null; cat link/secret 2>/dev/null; true", *flags)

    ends_without_harm(result, victim, before)


@and_without_landlock
@pytest.mark.parametrize("end", ("link", "link/sub/..", "sub/../link"))
def test_a_link_leads_no_working_directory_above_the_root(
    flags: tuple[str, ...], end: str, holt: Holt, workspace: Path, victim: Path
) -> None:
    """".." of the root is the root. While holt enters the root, the host's tree is mounted on it for a moment."""
    holt.identity.run(["sh", "-c", f"ln -s {'../' * 30}{victim} link; mkdir sub"], cwd=workspace).check_returncode()
    before = state(victim)
    result = holt.sh("cat secret ../secret; touch planted ../planted; true", *flags, "--cwd", f"{workspace}/{end}")

    ends_without_harm(result, victim, before)
    assert "--cwd" in result.refusal()


def test_the_root_s_parent_is_the_root_in_the_working_directory(holt: Holt, workspace: Path) -> None:
    holt.identity.run(["ln", "-s", "../" * 30, workspace / "link"]).check_returncode()
    result = holt.sh("pwd -P; ls proc/self/status; stat -c %d:%i . /", "--cwd", f"{workspace}/link").ok()
    here, root = result.out.splitlines()[2:]

    assert result.out.startswith("/\nproc/self/status\n")
    assert here == root


@pytest.mark.parametrize("option", ("--ro", "--rw", "--files"))
@pytest.mark.parametrize("source", ("link", "link/sub", "dir/up"))
def test_a_link_in_the_workspace_is_no_source(
    option: str, source: str, holt: Holt, workspace: Path, victim: Path
) -> None:
    """An earlier run has planted a symlink where the caller has a directory: "--rw build" when build already is ~/.ssh."""
    make = f"ln -s {victim} link; mkdir dir; ln -s ../../victim dir/up"
    holt.identity.run(["sh", "-c", make], cwd=workspace).check_returncode()
    before = state(victim)
    target = "/mnt/files" if option == "--files" else "/mnt/given"
    flag = f"{workspace}/{source}" + ("" if option == "--files" else f":{target}")
    result = holt.sh(f"cat {target}/secret 2>/dev/null; touch {target}/planted; true", option, flag)

    ends_without_harm(result, victim, before)


@pytest.mark.parametrize("link", (
    "/dev", "/proc", "/etc", "/", "/home/agent", "/proc/self/root", "..", "/proc/self/fd/3",
))
def test_a_link_to_the_sandbox_s_own_system_hides_nothing(
    link: str, holt: Holt, workspace: Path, identity: Identity
) -> None:
    """A mount that followed it would cover /dev or /proc inside."""
    identity.run(["ln", "-s", link, workspace / "link"]).check_returncode()
    result = holt.sh("test -c /dev/null && test -e /proc/self/status", "--tmpfs", f"{workspace}/link")

    assert result.code in (0, 125)


def test_a_parent_that_is_a_link_leads_no_workspace_elsewhere(
    holt: Holt, place: Path, workspace: Path, victim: Path
) -> None:
    """--workspace DIR:TARGET: the target's parents are inside, where symlinks belong to the system."""
    before = state(victim)
    for target in ("/bin/x", "/lib/x", "/var/run/x", "/dev/fd/x", "/proc/self/cwd/x", "/etc/mtab/x"):
        result = holt(["run", "--workspace", f"{workspace}:{target}", "--", "pwd"])
        assert result.code in (0, 125)
        assert result.code == 125 or result.out.strip() == target
    assert state(victim) == before
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("link", ("/var/tmp", "/var/run", "/var/lock", "/bin", "/lib", "/sbin", "/etc/mtab", "/dev/fd"))
@pytest.mark.parametrize("option", ("--tmpfs", "--ro", "--workspace"))
def test_a_target_below_a_link_of_the_system_makes_nothing_on_the_host(
    option: str, link: str, holt: Holt, workspace: Path
) -> None:
    """An absolute symlink of the new root must not be followed before the root is entered: it would lead to the host's
    directory."""
    name = f"target-{secrets.token_hex(8)}"
    target = f"{link}/{name}/deeper"
    holt(["run", option, target if option == "--tmpfs" else f"{workspace}:{target}", "--", "true"])

    for directory in ("/tmp", "/var/tmp", "/run", "/usr/bin", "/usr/lib", "/usr/sbin", "/var/lock"):
        assert not Path(directory, name).exists()


# --- no stubs ---

STUBS = (
    ("--tmpfs", "{ws}/new"), ("--tmpfs", "{ws}/new/deeper"), ("--ro", "/etc/hostname:{ws}/new"),
    ("--ro", "/usr/share:{ws}/new/deeper"), ("--rw", "{place}/given:{ws}/new"), ("--hide", "new"),
    ("--hide", "new/deeper"), ("--protect", "new"), ("--protect", "new/deeper"), ("--files", "{place}/given"),
    ("--ro", "{place}/given:{place}/given/new"),
)


@pytest.mark.parametrize("option", STUBS)
def test_no_mount_leaves_a_stub_on_the_host(
    option: tuple[str, str], holt: Holt, place: Path, workspace: Path, identity: Identity
) -> None:
    identity.run(["mkdir", place / "given"]).check_returncode()
    (place / "given" / "file").touch()
    before = state(place)
    result = holt(["run", *(part.format(ws=workspace, place=place) for part in option), "--", "true"])

    assert result.code in (0, 125), result
    assert state(place) == before


def test_a_mount_point_that_the_host_has_is_left_as_it_was(holt: Holt, workspace: Path, identity: Identity) -> None:
    identity.run(["sh", "-c", "mkdir dir; touch dir/file"], cwd=workspace).check_returncode()
    before = state(workspace)
    script = "ls -A dir; touch dir/other"
    result = holt(["run", "--tmpfs", f"{workspace}/dir", "--", "sh", "-c", script]).ok()

    assert result.out == ""
    assert state(workspace) == before


# --- a root file system with symlinks in it ---

PLACES = ("dev", "proc", "etc", "tmp", "run", "home", "mnt", "var", "sys", "usr/local", "root", "opt")


@pytest.fixture
def rootfs(place: Path, hostile: Hostile, identity: Identity) -> Path:
    """A system of one static program."""
    path = place / "rootfs"
    identity.run(["mkdir", "-p", path / "usr" / "bin"]).check_returncode()
    hostile.copy("files", path / "usr" / "bin" / "files")
    (path / "bin").symlink_to("usr/bin")
    return path


@pytest.mark.parametrize("target", ("{victim}", "../victim", "../../../../../../../../..{victim}", "/"))
@pytest.mark.parametrize("name", PLACES)
def test_a_link_in_a_root_file_system_leads_nowhere(
    name: str, target: str, holt: Holt, rootfs: Path, victim: Path, secret: Path
) -> None:
    (rootfs / name).symlink_to(target.format(victim=victim))
    before = state(victim)
    for action, path in (("read", f"/{name}/secret"), ("create", f"/{name}/planted"), ("read", f"/{name}{secret}")):
        result = holt(["run", "--rootfs", rootfs, "--", "/usr/bin/files", action, path])
        # /tmp and similar directories may be written: they are the sandbox's own.
        assert "read BROKEN" not in result.out
        assert result.code != 2
    assert state(victim) == before


@pytest.mark.parametrize("name", PLACES)
def test_a_root_file_system_is_left_as_it_was(name: str, holt: Holt, rootfs: Path) -> None:
    """The directories on which holt mounts may exist, be missing, or be files."""
    (rootfs / name).write_text("a file\n")
    before = state(rootfs)
    holt(["run", "--rootfs", rootfs, "--", "/usr/bin/files", "read", "/etc/shadow"])

    assert state(rootfs) == before


@pytest.mark.parametrize("name", ("bin", "lib", "lib64", "sbin", "usr"))
def test_a_system_directory_that_is_a_link_out_shows_nothing(
    name: str, holt: Holt, rootfs: Path, victim: Path
) -> None:
    """"lib -> /etc" on an attacker's file system means its own /etc, never the host's."""
    if name == "usr":
        (rootfs / "usr").rename(rootfs / "real")
    if name == "bin":
        (rootfs / "bin").unlink()
    (rootfs / name).symlink_to(victim)
    before = state(victim)
    program = "/real/bin/files" if name == "usr" else "/usr/bin/files"
    for path in (f"/{name}/secret", str(victim / "secret")):
        assert "BROKEN" not in holt(["run", "--rootfs", rootfs, "--", program, "read", path]).out
    assert state(victim) == before


@pytest.mark.parametrize("name", ("ssl", "fonts", "alternatives", "pki", "terminfo"))
@pytest.mark.parametrize("option", ("--tmpfs", "--ro"))
def test_a_target_below_a_link_of_a_root_file_system_makes_nothing_on_the_host(
    option: str, name: str, holt: Holt, rootfs: Path, victim: Path
) -> None:
    holt.identity.run(["mkdir", rootfs / "etc"]).check_returncode()
    (rootfs / "etc" / name).symlink_to(victim)
    before = state(victim)
    for inside in (f"/etc/{name}/new/deeper", f"/etc/{name}/sub"):
        target = inside if option == "--tmpfs" else f"/usr/share:{inside}"
        command = ["/usr/bin/files", "read", f"/etc/{name}/secret"]
        result = holt(["run", "--rootfs", rootfs, option, target, "--", *command])
        ends_without_harm(result, victim, before)


@pytest.mark.parametrize("name", ("services", "ssl", "python3", "pki", "localtime", "os-release"))
def test_an_etc_that_is_a_link_shows_nothing(name: str, holt: Holt, rootfs: Path, victim: Path) -> None:
    """The link's directory may contain a file with a name that holt takes from /etc."""
    holt.identity.run(["cp", "secret", name], cwd=victim).check_returncode()
    (rootfs / "etc").symlink_to(victim)
    before = state(victim)
    result = holt(["run", "--rootfs", rootfs, "--", "/usr/bin/files", "read", f"/etc/{name}"])

    assert "BROKEN" not in result.out
    assert state(victim) == before


def test_a_file_of_etc_that_is_a_link_shows_nothing(holt: Holt, rootfs: Path, victim: Path) -> None:
    """holt takes files of /etc from the system tree by name: through a symlink there, it would take the host's."""
    (rootfs / "etc").mkdir()
    names = ("localtime", "ld.so.cache", "ssl", "os-release", "services", "alternatives", "passwd")
    for name in names:
        (rootfs / "etc" / name).symlink_to(victim / "secret" if name != "ssl" else victim)
    for name in names:
        for path in (f"/etc/{name}", f"/etc/{name}/secret"):
            result = holt(["run", "--rootfs", rootfs, "--", "/usr/bin/files", "read", path])
            assert "BROKEN" not in result.out or name == "passwd" and path == "/etc/passwd"
