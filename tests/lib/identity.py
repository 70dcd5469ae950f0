# SPDX-License-Identifier: Apache-2.0
"""The identities that run holt: an ordinary user, root, and an ordinary user who is root in a user namespace (nested).

If root runs the suite, it plays all three. The ordinary user needs no entry in /etc/passwd: it is an unused uid with its own
home, temporary and runtime directories.
"""

from __future__ import annotations

import atexit
import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("user", "root", "nested")

# Processes that hold a user namespace, by the uid of the nested identity. All commands of the identity use the same one,
# because a keeper serves only its own user namespace.
_holders: dict[int, subprocess.Popen[bytes]] = {}
_helpers: set[int] = set()

# Variables of every identity's environment. The suites add those of the tap (tap.py).
watching: dict[str, str] = {}


def hold_namespace(identity: Identity) -> None:
    """Creates the user namespace of a nested identity. It lasts as long as this process."""
    # The holder echoes only after exec, so that the leak check never sees it under another name. It ends with this process.
    holder = subprocess.Popen(
        identity.as_user(["unshare", "--map-root-user", "--", "cat"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        cwd="/", bufsize=0,
    )
    assert holder.stdin and holder.stdout
    holder.stdin.write(b"ready\n")
    assert holder.stdout.readline() == b"ready\n", "a user namespace cannot be made here"
    _holders[identity.uid] = holder
    atexit.register(holder.kill)


def holders() -> set[int]:
    """PIDs of the processes that hold user namespaces, and of other helpers. They are children of the suite, and no leak."""
    return {holder.pid for holder in _holders.values()} | _helpers


def count_as_helper(pid: int) -> None:
    """Says that a child of the suite lasts longer than a test."""
    _helpers.add(pid)


def is_root() -> bool:
    """Whether the suite itself runs as root, and so can change the host's files and settings."""
    return os.geteuid() == 0


def applicable() -> tuple[str, ...]:
    """The identities that this process can play."""
    return NAMES if os.geteuid() == 0 else ("user", "nested")


def free_uid() -> int:
    """Returns a uid without an account or a process, another one for each run. It is below 65536, the limit of some containers."""
    taken = {int(p.stat().st_uid) for p in Path("/proc").iterdir() if p.name.isdigit() and p.exists()}
    # Suites and their workers start at the same time; the step of 4 leaves room for the uids that neighbours choose.
    uid = 40000 + os.getpid() % 2500 * 4
    while uid in taken or _has_account(uid):
        uid += 1
    return uid


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


@dataclass(frozen=True)
class Identity:
    """One of NAMES. uid and gid are the host's, also for nested, whose processes see themselves as 0."""

    name: str
    uid: int
    gid: int
    base: Path  # the parent of home, tmp and run

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def tmp(self) -> Path:
        return self.base / "tmp"

    @property
    def runtime(self) -> Path:
        return self.base / "run"

    def make_directories(self) -> None:
        self.base.mkdir(mode=0o755)
        for path in (self.home, self.tmp, self.runtime):
            path.mkdir(mode=0o700)
            self.own(path)

    def own(self, path: Path) -> Path:
        """Makes the identity the owner of a file that the suite has created."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        return path

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns the caller's environment, which is small and the same on every machine."""
        passed = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.home),
            "USER": "holt-test",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "TMPDIR": str(self.tmp),
            "XDG_RUNTIME_DIR": str(self.runtime),
            **passed,
            **watching,
            **(extra or {}),
        }

    def argv(self, argv: Sequence[str | os.PathLike[str]]) -> list[str]:
        """Returns the command with which this identity runs argv, for a process that as_user() has already made the user's."""
        enter = ("nsenter", f"--user={self.namespace}", "--preserve-credentials", "--")
        return [*(enter if self.name == "nested" else ()), *(os.fspath(a) for a in argv)]

    @property
    def namespace(self) -> str:
        """The path of its user namespace."""
        return f"/proc/{_holders[self.uid].pid if self.name == 'nested' else 'self'}/ns/user"

    def as_user(self, argv: Sequence[str | os.PathLike[str]]) -> list[str]:
        """Returns the command with which root starts argv as the user. It does not enter the user namespace of nested."""
        words = [os.fspath(a) for a in argv]
        if os.geteuid() != 0 or self.uid == 0:
            return words
        # setpriv(1) is used because Popen(user=...) forks the whole suite, which takes 11 to 20 ms instead of 0.2 ms.
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", "--", *words]

    def run(self, argv: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs a command on the host, without holt, as this identity (not nested)."""
        options.setdefault("env", self.environment())
        options.setdefault("timeout", 60)
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            self.as_user(argv), text=True, errors="surrogateescape", capture_output=True, **options,
        )
