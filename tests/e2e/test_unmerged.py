# SPDX-License-Identifier: Apache-2.0
"""A host whose /bin, /sbin and /lib are directories of their own, as before they were merged into /usr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Arg, Holt

# Makes such a tree from this host's files, and uses it as the root. The path of holt itself must also lead to a file there.
UNMERGED = r"""
set -e
mount -t tmpfs none "$NEW_ROOT"
cd "$NEW_ROOT"
for name in /*; do
        case $name in
        /proc | /dev | /sys) continue ;;
        /bin | /sbin | /lib*) [ -d "$name" ] || continue; from=/usr$name ;;
        *) from=$name ;;
        esac
        [ -d "$from" ] && mkdir ".$name" && mount --rbind "$from" ".$name"
done
for name in proc dev sys; do mkdir $name; mount --rbind /$name $name; done
mkdir .old-root
pivot_root . .old-root
cd /
umount -l /.old-root
rmdir /.old-root
cd "$OLD_CWD"
exec "$@"
"""

# For each identity: the options of unshare(1) that let it mount, and the command that makes it itself again.
OWN_MOUNTS: dict[str, tuple[list[str], list[str]]] = {
    "user": (["--map-root-user"], ["unshare", "--map-user=4321", "--map-group=4321", "--"]),
    "root": ([], []),
    "nested": (["--map-root-user"], []),
}


@pytest.fixture
def unmerged(holt: Holt, identity: Identity, place: Path) -> list[Arg]:
    flags, rest = OWN_MOUNTS[identity.name]
    (place / "root").mkdir()
    variables = [f"NEW_ROOT={place / 'root'}", f"OLD_CWD={holt.cwd}"]
    return ["env", *variables, "unshare", "--mount", *flags, "--", "sh", "-c", UNMERGED, "sh", *rest]


def test_the_host_is_as_this_test_says(unmerged: list[Arg], holt: Holt, identity: Identity) -> None:
    script = "for name in /bin /sbin /lib; do [ -d $name ] && [ ! -L $name ] || exit 1; done; ls /bin/sh"

    assert identity.run([*unmerged, "sh", "-c", script], cwd=holt.cwd).stdout == "/bin/sh\n"


def test_commands_run_and_write_the_workspace_alone(unmerged: list[Arg], holt: Holt) -> None:
    script = (
        "echo made > made; for name in /bin /sbin /lib /usr/bin; do touch $name/x 2>/dev/null && echo $name; done;"
        "[ -L /bin ] || echo apart; /usr/bin/env python3 -c 'print(6 * 7)'"
    )
    result = holt(["run", "--", "/bin/bash", "-c", script], prefix=unmerged).ok()

    assert result.out == "apart\n42\n"
    assert (holt.cwd / "made").read_text() == "made\n"


def test_the_doctor_finds_nothing_wrong(unmerged: list[Arg], holt: Holt) -> None:
    found = json.loads(holt(["doctor", "--json"], prefix=unmerged).ok().out)

    assert found["works"]
