# SPDX-License-Identifier: Apache-2.0
"""Calls that normal programs do not need, and that many escapes began with, are refused and reported. Only the caller
can grant them."""

from __future__ import annotations

import platform

import pytest

from lib.hostile import Attack, Run
from lib.sandbox import Holt

AS_USER = (
    "io_setup",
    "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
    "keyctl", "add_key", "request_key",
    "pidfd_getfd", "clock_settime", "quotactl", "quotactl_fd", "fanotify_init", "personality",
)
# Up to Linux 6.10, open_by_handle_at checks a capability first. So does perf_event_open if kernel.perf_event_paranoid
# is Debian's 3.
AS_ROOT = (
    "open_by_handle_at", "perf_event_open", "bpf", "kcmp", "kexec_load", "init_module", "finit_module",
    "delete_module", "reboot", "swapon", "swapoff", "acct", "settimeofday", "syslog",
)
WITH_CAPABILITIES = ("sethostname", "setdomainname")
ON_X86 = [
    Attack("calls", "personality-32"),
    Attack("calls", "modify_ldt"),
    Attack("calls", "iopl", control="root"),
    Attack("calls", "ioperm", control="root"),
] if platform.machine() == "x86_64" else []

CALLS = [
    *(Attack("calls", name) for name in AS_USER),
    *(Attack("calls", name, control="root") for name in AS_ROOT),
    *(Attack("calls", name, control="caps") for name in WITH_CAPABILITIES),
    Attack(
        "calls", "vhangup", control="none",
        why_none="it would hang up the terminal of whoever runs the suite",
    ),
    *ON_X86,
]


@pytest.mark.parametrize("attack", CALLS, ids=str)
def test_a_dangerous_call_is_refused(attack: Attack, holds: Run) -> None:
    holds(attack)


REPORTED = ("pidfd_getfd", "bpf", "keyctl", "io_uring_setup", "userfaultfd", "perf_event_open")


@pytest.mark.parametrize("name", REPORTED)
def test_a_denial_is_data_in_the_report(name: str, holt: Holt, hostile) -> None:
    result = holt(["run", "--ro", hostile.directory, "--", hostile.path("calls"), name])

    denial = result.denials[name]
    assert denial["layer"] == "seccomp"
    assert denial["count"] == 1
    assert f"HOLDS {denial['answer']}" in result.out
    assert denial["grant"] == f"--allow-syscall {name}" or "this host" in denial["why_not"]


@pytest.mark.parametrize("name", (*AS_USER, *AS_ROOT))
def test_a_grant_comes_from_the_caller_and_helps(name: str, holt: Holt, hostile) -> None:
    """The other half of the test above: no report names a grant that leads nowhere."""
    result = holt(["run", "--ro", hostile.directory, "--", hostile.path("calls"), name])
    denial = result.denials.get(name)
    if not denial or not denial["grant"]:
        return
    assert denial["grant"] == f"--allow-syscall {name}"
    assert hostile.attack(holt, Attack("calls", name), "--allow-syscall", name).verdict == "BROKEN"


def test_nothing_inside_can_flood_the_report(holt: Holt) -> None:
    """Each denial wakes the launcher, but must not take memory."""
    script = "import ctypes\nlibc = ctypes.CDLL(None)\nfor i in range(20000): libc.unshare(0)"
    result = holt(["run", "--", "python3", "-c", script]).ok()

    assert len(result.denials) == 1
    assert result.denials["unshare"]["count"] == 20000
