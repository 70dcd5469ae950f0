# SPDX-License-Identifier: Apache-2.0
"""The parts of the host's /etc and /var that are inside contain only files that every user of the host may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lib.sandbox import Holt

pytestmark = pytest.mark.identities("user", "root", "nested")

# Opens every file, and tries to change every file and directory. Prints what it could open.
HOSTILE = r"""
import os
for top in ("/etc", "/var/lib", "/var/cache"):
    for directory, names, files in os.walk(top):
        for change in (lambda: os.mkdir(f"{directory}/new"), lambda: os.chmod(directory, 0o777)):
            try:
                change()
            except OSError:
                continue
            print("changed", directory)
        for name in files:
            path = f"{directory}/{name}"
            for flags, word in ((os.O_RDONLY, "read"), (os.O_WRONLY, "written"), (os.O_RDWR, "written")):
                try:
                    os.close(os.open(path, flags | os.O_NONBLOCK))
                except OSError:
                    continue
                print(word, path)
"""

# holt writes these itself.
OWN = {f"/etc/{name}" for name in ("passwd", "group", "hosts", "nsswitch.conf", "resolv.conf", "gitconfig")}


def is_public(path: str) -> bool:
    """Whether every user of the host may read the file, by the modes on its whole path."""
    real = Path(os.path.realpath(path))
    modes = [parent.stat().st_mode for parent in real.parents]
    return all(mode & stat.S_IXOTH for mode in modes) and bool(real.stat().st_mode & stat.S_IROTH)


@pytest.mark.parametrize("flags", ((), ("--etc", "all")), ids=("default", "all"))
def test_every_readable_file_is_public_on_the_host(flags: tuple[str, ...], holt: Holt) -> None:
    result = holt(["run", *flags, "--", "python3", "-c", HOSTILE]).ok()
    done = [line.split(" ", 1) for line in result.out.splitlines()]
    assert not [path for word, path in done if word != "read"]
    read = {path for word, path in done} - OWN
    assert "/etc/ld.so.cache" in read
    assert not [path for path in read if not path.startswith(("/proc/", "/etc/mtab")) and not is_public(path)]
    secrets = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id")
    assert not [path for path in read if path.startswith(secrets) or path.endswith((".key", "_key"))]
    for path in read:
        if path.endswith(".pem") and os.path.exists(path):
            assert b"PRIVATE KEY" not in Path(path).read_bytes(), path
