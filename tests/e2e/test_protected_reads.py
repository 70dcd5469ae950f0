# SPDX-License-Identifier: Apache-2.0
"""A protected file is read once before the command starts, so that all decisions come from the same bytes."""

from __future__ import annotations

import ctypes
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

from lib.sandbox import Holt
from lib.tools import needs

IN_CLOSE_NOWRITE, IN_OPEN = 0x10, 0x20
EVENT = struct.Struct("iIII")  # An event without a name (inotify(7)).


class Opens:
    """Counts how often files are opened to be read. Opening with O_PATH does not count."""

    def __init__(self, *paths: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        # The kernel joins equal events that follow each other, so closing is watched too.
        self.names = {
            libc.inotify_add_watch(self.fd, os.fsencode(path), IN_OPEN | IN_CLOSE_NOWRITE): path.name for path in paths
        }
        assert self.fd >= 0 and -1 not in self.names, os.strerror(ctypes.get_errno())

    def count(self) -> dict[str, int]:
        counts = dict.fromkeys(self.names.values(), 0)
        for watch, mask, _, _ in EVENT.iter_unpack(os.read(self.fd, 64 << 10)):
            counts[self.names[watch]] += bool(mask & IN_OPEN)
        os.close(self.fd)
        return counts


def test_a_policy_file_is_read_once(holt: Holt, put: Callable[..., Path]) -> None:
    paths = [put(name, json.dumps({"holt": 1, "limits": {"pids": 100}})) for name in (".holt.json", "in.json")]
    opens = Opens(*paths)

    with holt.start(["run", "--policy", "./in.json", "--", "sh", "-c", "echo ready; read x"], stdin=PIPE) as running:
        assert running.readline() == "ready"
        assert opens.count() == {".holt.json": 1, "in.json": 1}
        running.send("\n")
        running.wait().ok()


@needs("git")
def test_a_protected_config_is_read_once(holt: Holt) -> None:
    script = """git init -q; git config extensions.worktreeConfig true; git config --worktree user.name a
        git -c user.email=b@c commit -q --allow-empty -m x; echo '*.x filter=unknown' > .gitattributes"""
    holt.identity.run(["sh", "-ec", script], cwd=holt.cwd).check_returncode()
    opens = Opens(holt.cwd / ".git/config", holt.cwd / ".git/config.worktree")

    with holt.start(["run", "--", "sh", "-c", "echo ready; read x"], stdin=PIPE) as running:
        assert running.readline() == "ready"
        assert opens.count() == {"config": 1, "config.worktree": 1}
        running.send("\n")
        assert 'no filter "unknown"' in running.wait().err
