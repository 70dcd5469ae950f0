# SPDX-License-Identifier: Apache-2.0
"""Inside, everything belongs to the user agent. Outside, new files belong to the caller, or, if root has run holt, to
the owner of the workspace."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lib import hosts
from lib.identity import Identity
from lib.sandbox import Holt

Make = Callable[..., Path]

MAKE = "echo x > file; mkdir -p dir/sub; ln -s file link; mkfifo fifo; ln file hard; cp -r dir copy"


def owners(path: Path) -> set[tuple[int, int]]:
    return {(st.st_uid, st.st_gid) for st in (os.lstat(p) for p in path.rglob("*"))}


def test_new_files_belong_to_the_caller(holt: Holt, identity: Identity) -> None:
    result = holt.sh(f"{MAKE}; stat -c '%U %G %u %g' . file dir link | sort -u").ok()

    assert result.out == "agent agent 1000 1000\n"
    assert owners(holt.cwd) == {(identity.uid, identity.gid)}


@pytest.mark.parametrize("option", ("--rw", "--files"))
def test_files_in_other_writable_mounts_are_the_caller_s(option: str, holt: Holt, place: Path, identity: Identity) -> None:
    other = place / "other"
    other.mkdir()
    identity.own(other)

    holt.sh(f"cd {'/mnt/files' if option == '--files' else other}; {MAKE}", option, other).ok()

    assert owners(other) == {(identity.uid, identity.gid)}


@pytest.mark.identities("root")
def test_root_works_in_somebody_s_workspace_as_that_somebody(
    holt: Holt, everyone: dict[str, Identity], put: Make
) -> None:
    owner = everyone["user"]
    old = put("old", "old\n", 0o600)
    owner.own(old)
    owner.own(holt.cwd)

    result = holt.sh(f"cat old; echo new >> old; {MAKE}; stat -c '%U %G' . old file | sort -u").ok()

    assert result.out == "old\nagent agent\n"
    assert owners(holt.cwd) == {(owner.uid, owner.gid)}


@pytest.mark.identities("root")
def test_root_in_a_directory_of_its_own_makes_root_s_files_without_being_root(holt: Holt, put: Make) -> None:
    put("old", "old\n", 0o600)

    result = holt.sh(f"cat old; {MAKE}; cat /proc/self/uid_map").ok()
    text, ids = result.out.splitlines()

    assert text == "old"
    inside, outside, count = map(int, ids.split())
    assert (inside, count) == (1000, 1)
    assert outside != 0
    assert owners(holt.cwd) == {(0, 0)}


@pytest.mark.identities("root")
def test_two_owners_of_two_directories(holt: Holt, place: Path, everyone: dict[str, Identity]) -> None:
    """Each directory has its own owner's map."""
    other = place / "other"
    other.mkdir()
    everyone["user"].own(other)

    holt.sh(f"{MAKE}; cd {other}; {MAKE}", "--rw", other).ok()

    assert owners(holt.cwd) == {(0, 0)}
    assert owners(other) == {(everyone["user"].uid, everyone["user"].gid)}


@pytest.mark.identities("root")
def test_a_third_s_file_in_the_workspace_is_not_the_command_s(
    holt: Holt, put: Make, everyone: dict[str, Identity]
) -> None:
    """Root could write the file. A command that root runs cannot."""
    private, public = put("private", "x", 0o600), put("public", "seen\n", 0o644)
    for path in (private, public):
        everyone["user"].own(path)

    result = holt.sh("cat public; cat private; echo x > public; stat -c %U public; chmod 777 public")

    assert result.out == "seen\nnobody\n"
    assert result.err.count("denied") == 2
    assert (public.read_text(), public.stat().st_mode & 0o777) == ("seen\n", 0o644)


@pytest.mark.identities("root")
@pytest.mark.root_host
@pytest.mark.parametrize("own_mounts", (True, False), ids=("mount-namespace", "host-mounts"))
@pytest.mark.parametrize("owner", (0, 1000), ids=("root-s", "another-s"))
def test_a_rootless_container_works_as_the_owner_of_the_workspace(
    owner: int, own_mounts: bool, holt: Holt, put: Make, place: Path
) -> None:
    """There are no id maps. The uid outside is the owner's, whichever id of the namespace that is."""
    outside = hosts.ROOTLESS_FIRST + owner
    for path in (put("old", "old\n", 0o600), holt.cwd, place):
        os.chown(path, outside, outside)

    result = holt.sh(f"cat old; {MAKE}; cat /proc/self/uid_map", prefix=hosts.rootless(own_mounts), report=False).ok()

    assert result.out.split() == ["old", "1000", str(owner), "1"]
    assert owners(holt.cwd) == {(outside, outside)}


@pytest.mark.identities("root")
@pytest.mark.root_host
def test_a_session_of_a_rootless_container_is_refused_another_s_workspace(holt: Holt, place: Path) -> None:
    """A session's files are root's, and its processes would belong to another user."""
    os.chown(holt.cwd, hosts.ROOTLESS_FIRST + 1000, hosts.ROOTLESS_FIRST + 1000)
    kept = place / "kept"
    kept.mkdir()
    for path in (place, kept):
        os.chown(path, hosts.ROOTLESS_FIRST, hosts.ROOTLESS_FIRST)
    prefix = [*hosts.rootless(), "env", f"XDG_DATA_HOME={kept}"]

    result = holt(["create", "work", "--workspace", str(holt.cwd)], prefix=prefix)

    assert "belongs to uid 1000" in result.refusal() and "as that user" in result.cure
    assert holt(["ls", "--json"], prefix=prefix).ok().out.strip() == "[]"
    # All verbs run in one container, because a keeper serves only its own user namespace.
    script = '"$0" create work && "$0" exec work -- id -un && "$0" stop work && "$0" rm work'
    assert "agent" in holt([], prefix=[*prefix, "bash", "-c", script]).ok().out.splitlines()


@pytest.mark.identities("root")
@pytest.mark.root_host
def test_a_rootless_container_has_no_id_to_give_for_an_owner_that_it_does_not_have(holt: Holt, put: Make) -> None:
    put("old", "old\n", 0o644)

    result = holt.sh("cat old; echo x > old; cat /proc/self/uid_map", prefix=hosts.rootless(), report=False)

    assert result.out.split() == ["old", "1000", "0", "1"]
    assert "denied" in result.err


def test_the_owner_can_not_be_changed(holt: Holt, identity: Identity, put: Make) -> None:
    put("file")
    result = holt.sh("chown 0 file; chown 1000:1000 file && chgrp 1000 file && chmod 640 file && stat -c %a file")

    assert result.out == "640\n"
    assert owners(holt.cwd) == {(identity.uid, identity.gid)}


@pytest.mark.identities("root")
def test_a_workspace_below_private_directories_of_root(holt: Holt, place: Path) -> None:
    """A workspace of root's, below directories that nobody else may enter, such as /root."""
    place.chmod(0o700)
    try:
        assert holt.sh(f"{MAKE}; pwd").ok().out == f"{holt.cwd}\n"
    finally:
        place.chmod(0o755)


def test_modes_and_times_are_kept(holt: Holt) -> None:
    holt.sh("touch -d '2001-02-03 04:05:06 UTC' file; chmod 751 file").ok()
    st = os.stat(holt.cwd / "file")

    assert (st.st_mode & 0o777, int(st.st_mtime)) == (0o751, 981173106)


def test_a_new_directory_of_the_group_keeps_its_group(holt: Holt, identity: Identity, mkdir: Make) -> None:
    shared = mkdir("shared")
    shared.chmod(0o2775)
    holt.sh("touch shared/file && mkdir shared/dir").ok()

    assert owners(holt.cwd) == {(identity.uid, identity.gid)}
