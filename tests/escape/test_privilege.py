# SPDX-License-Identifier: Apache-2.0
"""Inside, every capability set is empty, no_new_privs is set, and no file gives privilege, neither now nor later to
another user of the host."""

from __future__ import annotations

import os
import shutil
import stat
import struct
from pathlib import Path

import pytest

from lib.hostile import Attack, Hostile, Run
from lib.sandbox import Holt
from lib.sessions import Sessions

STATE = [
    Attack("privilege", "capabilities", ("self",), control="caps"),
    Attack("privilege", "capabilities", ("1",), control="root"),
    Attack("privilege", "new-privs"),
]

RAISES = [
    Attack("privilege", "become-root", control="root"),
    Attack("privilege", "become-root-group", control="root"),
    Attack("privilege", "drop-groups", control="root"),
    Attack("privilege", "raise-caps", control="root"),
    Attack("privilege", "raise-inheritable", control="root"),
    Attack("privilege", "securebits", control="root"),
    Attack("privilege", "raise-limit", control="root"),
    Attack("privilege", "listener"),
]


@pytest.mark.parametrize("attack", STATE, ids=lambda a: f"{a}-{'-'.join(a.args)}")
def test_every_process_inside_is_without_privilege(attack: Attack, holds: Run) -> None:
    holds(attack)


@pytest.mark.parametrize("attack", RAISES, ids=str)
def test_no_privilege_can_be_taken(attack: Attack, holds: Run) -> None:
    holds(attack)


# A file that the sandbox makes belongs to the caller on the host. If a file of root's had the SUID bit, every user who
# can reach the workspace could become root. CVE-2017-1000364 is similar, and Nix refuses the same calls.
MODES = (
    "sgid-open", "sgid-tmpfile",
    "suid-chmod", "suid-fchmod", "suid-fchmodat", "suid-fchmodat2", "suid-high-bit",
    "suid-open", "suid-openat2", "suid-tmpfile", "suid-mknod",
    *(("suid-old-open", "suid-creat", "suid-old-mknod", "suid-old-chmod")
      if os.uname().machine == "x86_64" else ()),
)


@pytest.mark.parametrize("name", MODES)
def test_no_file_of_the_workspace_becomes_suid(
    name: str, assault: Run, hostile: Hostile, workspace: Path
) -> None:
    planted = workspace / "planted"
    control = (hostile.unused_path(),)
    outcome = assault(Attack("privilege", name, (str(planted),), control_args=control))

    assert outcome.verdict == "HOLDS", outcome
    if planted.exists():
        assert planted.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) == 0


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("name", ("sgid-acl", "sgid-acl-link", "sgid-acl-fd", "sgid-acl-at", "default-acl"))
@pytest.mark.parametrize("directory", ("workspace", "/tmp"))
def test_no_acl_changes_a_mode(
    name: str, directory: str, assault: Run, hostile: Hostile, workspace: Path
) -> None:
    """Setting an ACL changes a mode, and seccomp cannot see the mode. Linux 6.13 has a second call for ACLs."""
    planted = f"{workspace if directory == 'workspace' else directory}/planted"
    outcome = assault(Attack("privilege", name, (planted,), control_args=(hostile.unused_path(),)))

    assert outcome.verdict == "HOLDS", outcome
    assert outcome.detail == "EOPNOTSUPP"


@pytest.mark.identities("user", "root")
def test_a_session_changes_no_mode_by_an_acl(
    hostile: Hostile, sessions: Sessions
) -> None:
    session = sessions.create("w", "--ro", hostile.directory)
    attack = Attack("privilege", "sgid-acl", ("/workspace/planted",), control_args=(hostile.unused_path(),))
    hostile.show_that_it_can_succeed(attack)

    assert hostile.attack_in(session, attack).verdict == "HOLDS"


FILES = [
    Attack("privilege", "file-capability", control="root"),
    Attack("privilege", "give-away", control="root"),
    Attack("files", "char-device", control="root"),
    Attack("files", "block-device", control="root"),
]


@pytest.mark.parametrize("attack", FILES, ids=str)
@pytest.mark.parametrize("directory", ("workspace", "/tmp", "/dev/shm", "/home/agent"))
def test_no_privileged_file_can_be_made(
    attack: Attack, directory: str, holds: Run, hostile: Hostile, workspace: Path
) -> None:
    path = f"{workspace if directory == 'workspace' else directory}/planted"
    control = (hostile.unused_path(),)

    holds(Attack(attack.program, attack.name, (path,), attack.control, control))


@pytest.mark.root_host
def test_a_suid_root_program_in_the_workspace_gives_nothing(
    holt: Holt, hostile: Hostile, workspace: Path
) -> None:
    program = hostile.copy("privilege", workspace / "suid", 0o6755)
    control = hostile.caller.run([program, "effective-uid"])
    assert "BROKEN" in control.stdout

    assert "HOLDS" in holt(["run", "--", program, "effective-uid"]).out


@pytest.mark.root_host
def test_a_program_with_file_capabilities_in_the_workspace_gives_nothing(
    holt: Holt, hostile: Hostile, workspace: Path
) -> None:
    program = hostile.copy("privilege", workspace / "capable")
    # VFS_CAP_REVISION_2 with the effective bit, and CAP_NET_RAW as permitted (capabilities(7)).
    os.setxattr(program, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
    control = hostile.caller.run([program, "effective"])
    assert "BROKEN" in control.stdout

    result = holt(["run", "--", program, "effective"])
    # With no_new_privs, the kernel refuses to run it, or ignores the capability.
    assert "BROKEN" not in result.out
    assert "HOLDS" in result.out or result.code == 126


@pytest.mark.root_host
def test_a_device_in_the_workspace_can_not_be_opened(holds: Run, workspace: Path) -> None:
    device = workspace / "zero"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    device.chmod(0o666)

    outcome = holds(Attack("files", "read", (str(device),)))
    assert outcome.detail == "EACCES"


SUID_PROGRAMS = ("su -c true", "sudo -n true", "mount -t tmpfs none /tmp")


# Root needs no password, so each of them works for root.
@pytest.mark.parametrize("command", [command for command in SUID_PROGRAMS if shutil.which(command.split()[0])])
def test_the_system_s_suid_programs_fail(command: str, holt: Holt, hostile: Hostile) -> None:
    if hostile.root:
        hostile.root.run(["unshare", "--mount", "sh", "-c", f"{command} </dev/null"]).check_returncode()

    assert holt.sh(f"{command} </dev/null").code not in (0, 126, 127)


def test_no_limit_is_missing(holt: Holt) -> None:
    """A lowered hard limit stays lowered."""
    result = holt.sh("ulimit -Hn; ulimit -n 1000000 2>&1; ulimit -Hn", "--open-files", "64")

    assert result.out.split()[0] == result.out.split()[-1] == "64"
