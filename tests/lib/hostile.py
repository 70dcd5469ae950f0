# SPDX-License-Identifier: Apache-2.0
"""The hostile programs of tests/escape. Each is compiled once, and runs as a control on the host and as an attack inside.

tests/escape/hostile.h describes their output.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lib import paths
from lib.identity import Identity
from lib.sandbox import Holt, Result
from lib.sessions import Session

SOURCES = Path(__file__).resolve().parents[1] / "escape"

CFLAGS = ("-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-static", "-pthread")

# Runs a command as root of new namespaces: with every capability, and without access to the host.
CAPS = ("unshare", "--map-root-user", "--mount", "--net", "--uts", "--ipc", "--")


# The answers of a host that does not have a call, a family, a file of /proc or a network.
ABSENT = (
    "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENODEV", "EOPNOTSUPP",
    "ENOENT", "ENETUNREACH", "EADDRNOTAVAIL", "empty",
)


def root_is_whole() -> bool:
    """Whether this process has every capability that the kernel knows. Root of a container does not."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"^CapEff:\s*(\w+)", status, re.M)[1], 16) == (1 << last + 1) - 1


# Numbers of the calls that tests make a host refuse.
NEW_SYSCALLS = {
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "pidfd_open": 434, "clone3": 435, "close_range": 436, "openat2": 437, "mount_setattr": 442,
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446,
}
SYSCALLS = {
    "x86_64": {
        **NEW_SYSCALLS, "seccomp": 317, "pivot_root": 155, "sethostname": 170, "unshare": 272,
        "capset": 126, "setrlimit": 160, "prlimit64": 302, "memfd_create": 319, "clone": 56, "socket": 41,
        "sendto": 44, "umount2": 166, "setsid": 112,
    },
    "aarch64": {
        **NEW_SYSCALLS, "seccomp": 277, "pivot_root": 41, "sethostname": 161, "unshare": 97,
        "capset": 91, "setrlimit": 164, "prlimit64": 261, "memfd_create": 279, "clone": 220, "socket": 198,
        "sendto": 206, "umount2": 39, "setsid": 157,
    },
}


def compile_program(source: Path, target: Path) -> Path:
    """Compiles a static program that every identity can run, or takes the build's own if it is newer than its source."""
    built = paths.built_holt().parents[1] / "tests" / "escape" / source.stem
    if built.is_file() and built.stat().st_mtime >= source.stat().st_mtime:
        shutil.copyfile(built, target)
    else:
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run([*compiler, *CFLAGS, source, "-o", target], check=True)
    target.chmod(0o755)
    return target


@dataclass(frozen=True)
class Attack:
    """One row of a program's table, with the control that proves that the attack can succeed.

    control is "user" to run as an ordinary user, "caps" for every capability in new namespaces, or "root" for the host's root.
    "root" is skipped unless root runs the suite. "none" means no control, for the reason in why_none. control_args replaces the
    control's arguments if they differ.
    """

    program: str
    name: str
    args: tuple[str, ...] = ()
    control: str = "user"
    control_args: tuple[str, ...] | None = None
    why_none: str = ""

    def __post_init__(self) -> None:
        assert (self.control == "none") == bool(self.why_none), f"{self}: a missing control names its reason"

    def __str__(self) -> str:
        return f"{self.program}-{self.name}" if self.program != self.name else self.name


@dataclass(frozen=True)
class Outcome:
    """One line of a hostile program: HOLDS, BROKEN or UNTRIED, and the detail."""

    verdict: str
    detail: str

    @classmethod
    def of(cls, attack: Attack, text: str, context: str) -> Outcome:
        # The match need not start a line, because a terminal echoes pushed input in front of it.
        match = re.search(rf"{re.escape(attack.name)} (HOLDS|BROKEN|UNTRIED) ([^\r\n]*)", text)
        if not match:
            return cls("UNTRIED", f"no verdict from {context}")
        return cls(*match.groups())

    def __str__(self) -> str:
        return f"{self.verdict} {self.detail}"


# Older kernels have no Landlock, so the file tree must hold without it.
and_without_landlock = pytest.mark.parametrize(
    "flags", ((), ("--landlock", "off")), ids=("all layers", "without Landlock")
)

# The type of the fixtures assault and holds.
Run = Callable[..., Outcome]


class Hostile:
    """The compiled programs."""

    def __init__(
        self, directory: Path, controls: Path, caller: Identity, root: Identity | None
    ) -> None:
        """directory is new, and every identity can read it. caller is the ordinary user of the controls; it may write to the
        directory "controls"."""
        self.directory, self.controls = directory, controls
        self.caller, self.root = caller, root
        self.silent: dict[str, str] = {}  # controls that could not show anything on this host, with the reason
        self._controls: dict[Attack, Outcome | None] = {}

    def compile(self) -> None:
        for source in sorted(SOURCES.glob("*.c")):
            compile_program(source, self.directory / source.stem)

    def path(self, program: str) -> Path:
        return self.directory / program

    def unused_path(self) -> str:
        """A path on the host at which a control may create a file."""
        return str(self.controls / secrets.token_hex(8))

    def refusing(self, *calls: str, error: int = errno.ENOSYS) -> list[str | Path]:
        """Returns a prefix for holt that makes this a host without some system calls (SYSCALLS)."""
        numbers = SYSCALLS[platform.machine()]
        return [self.path("refuse"), ",".join(f"{numbers[name]}:{error}:0" for name in calls)]

    def killing(self, *calls: str) -> list[str | Path]:
        """Returns a prefix for holt that makes this a container whose seccomp profile kills a thread for some system calls."""
        return self.refusing(*calls, error=0)

    def refusing_packet_filter(self) -> list[str | Path]:
        """Returns a prefix for holt that makes this a container whose profile forbids sockets of NETLINK_NETFILTER (12), and of
        other rare netlink protocols."""
        return [self.path("refuse"), f"{SYSCALLS[platform.machine()]['socket']}:{errno.EPROTONOSUPPORT}:8:2"]

    def refusing_queue(self) -> list[str | Path]:
        """Returns a prefix for holt that makes this a kernel that cannot queue packets. Among the messages to the kernel, only the
        rules of the queue have 2048 bytes or more."""
        return [self.path("refuse"), f"{SYSCALLS[platform.machine()]['sendto']}:{errno.EOPNOTSUPP}:{2048 | 4096}:2"]

    def refusing_namespace(self, flag: int) -> list[str | Path]:
        """Returns a prefix for holt that makes this a container whose seccomp profile forbids a CLONE_NEW* flag. Like in
        Docker's profile, clone3(2) does not exist, because the filter cannot see its flags."""
        numbers = SYSCALLS[platform.machine()]
        rules = [
            f"{numbers['clone3']}:{errno.ENOSYS}:0", f"{numbers['clone']}:{errno.EPERM}:{flag}",
            f"{numbers['unshare']}:{errno.EPERM}:{flag}",
        ]
        return [self.path("refuse"), ",".join(rules)]

    def copy(self, program: str, target: Path, mode: int = 0o755) -> Path:
        shutil.copy(self.path(program), target)
        target.chmod(mode)
        return target

    def control(self, attack: Attack, **options: object) -> Outcome | None:
        """Returns the attack's outcome on the host, or None if this process cannot run its control."""
        if attack.control == "none" or (attack.control == "root" and not self.root):
            return None
        args = attack.args if attack.control_args is None else attack.control_args
        argv: Sequence[str | Path] = [self.path(attack.program), attack.name, *args]
        who = self.root if attack.control == "root" else self.caller
        assert who
        done = who.run([*(CAPS if attack.control == "caps" else ()), *argv], **options)
        return Outcome.of(attack, done.stdout, f"{argv}: {done.stderr}")

    def show_that_it_can_succeed(self, attack: Attack, **options: object) -> None:
        """Runs the control, once per pytest session unless it has options, and asserts that the attack succeeds there."""
        if options or attack not in self._controls:
            self._controls[attack] = self.control(attack, **options)
        outcome = self._controls[attack]
        if outcome is None:
            return
        # An empty host has nothing to attack, neither inside nor outside.
        label, error = f"{attack} {' '.join(attack.args)}", outcome.detail.split(" ")[-1]
        if outcome.verdict == "HOLDS" and error in ABSENT:
            self.silent[label] = f"not on this host: {outcome.detail}"
        elif attack.control == "root" and error in ("EPERM", "EACCES") and not root_is_whole():
            self.silent[label] = f"root lacks a capability here: {outcome.detail}"
        else:
            assert outcome.verdict == "BROKEN", f"the control of {attack} shows nothing: {outcome}"

    def outcome(self, attack: Attack, result: Result) -> Outcome:
        return Outcome.of(attack, result.out, str(result))

    def attack(self, holt: Holt, attack: Attack, *flags: str | os.PathLike[str], **options: object) -> Outcome:
        """Runs the attack inside "holt run FLAGS"."""
        argv = ["run", "--ro", self.directory, *flags, "--", self.path(attack.program), attack.name, *attack.args]
        return self.outcome(attack, holt(argv, **options))

    def attack_in(self, session: Session, attack: Attack, **options: object) -> Outcome:
        """Runs the attack in a session that has the programs (--ro directory). "$PPID" in an argument becomes the PID of the
        attack's monitor."""
        script = " ".join(["exec", str(self.path(attack.program)), attack.name, *attack.args])
        return self.outcome(attack, session.sh(script, **options))
