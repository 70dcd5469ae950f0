# SPDX-License-Identifier: Apache-2.0
"""Workspaces on file systems that can't be id-mapped (tmpfs: before Linux 6.3). Only root needs id maps."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Session, Sessions

pytestmark = pytest.mark.boots("debian")

Mount = Callable[[str], Path]


@pytest.fixture
def mounted(place: Path, identity: Identity) -> Iterator[Mount]:
    """Mounts a new file system of a type, and gives it to the identity: mounted("tmpfs")."""
    points: list[Path] = []

    def mount(kind: str) -> Path:
        names = ("lower", "upper", "work", "mounted")
        lower, upper, work, point = (place / name for name in names)
        for path in (lower, upper, work, point):
            path.mkdir()
        options = {"overlay": f"lowerdir={lower},upperdir={upper},workdir={work}"}.get(kind, "mode=755")
        subprocess.run(["mount", "-n", "-t", kind, "-o", options, "none", point], check=True)
        points.append(point)
        return identity.own(point)

    yield mount
    for point in points:
        subprocess.run(["umount", "-n", point], check=True)


@pytest.mark.parametrize("kind", ("tmpfs", "overlay"))
def test_a_workspace_that_root_can_not_map_is_an_error_with_its_cure(
    kind: str, holt: Holt, identity: Identity, mounted: Mount
) -> None:
    workspace = mounted(kind)
    result = holt.sh("echo kept >file && cat file", "--workspace", workspace)

    if identity.name != "root":
        assert (result.code, result.out) == (0, "kept\n"), str(result)
        return
    assert (result.code, result.out) == (125, "")
    assert (result.report or {})["error"]["layer"] == "idmap"
    assert "--allow-degraded idmap" in result.err
    assert "tmpfs: since Linux 6.3" in result.err


@pytest.mark.parametrize("kind", ("tmpfs", "overlay"))
def test_the_id_map_can_be_let_go_where_the_workspace_is_not_root_s(
    kind: str, holt: Holt, identity: Identity, mounted: Mount
) -> None:
    workspace, owner = mounted(kind), identity.uid
    flags = ("--workspace", workspace, "--allow-degraded", "idmap")
    if identity.name == "root":
        result, owner = holt.sh("echo reached", *flags), 1000
        assert (result.code, result.out) == (125, "")
        assert "belongs to root" in result.err and "chown" in result.err
        os.chown(workspace, owner, owner)

    holt.sh("echo kept >file", *flags).ok()
    assert (workspace / "file").stat().st_uid == owner


@pytest.mark.parametrize("kind", ("tmpfs", "overlay"))
def test_a_session_that_root_can_not_map_is_refused_before_there_is_one(
    kind: str, holt: Holt, identity: Identity, mounted: Mount
) -> None:
    sessions = Sessions(holt, mounted(kind))
    created = sessions(["create", "w"])

    if identity.name == "root":
        assert "XDG_DATA_HOME" in created.cure and "tmpfs: since Linux 6.3" in created.cure, str(created)
        assert sessions.names() == []
        return
    created.ok()
    assert Session(sessions, "w").exec("echo", "reached").ok().out == "reached\n"
    assert sessions.clean_up() == []
