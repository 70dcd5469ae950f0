# SPDX-License-Identifier: Apache-2.0
"""The kernel's own files: no global setting of the host can be changed or read, and init is out of reach."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lib.hostile import Attack, Run
from lib.sandbox import Holt

# Opening them for writing changes nothing, and no test writes.
SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sysrq-trigger",
    "/proc/mtrr",
    "/proc/irq/0/smp_affinity",
    "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/release_agent",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/memory/release_agent",
    "/sys/fs/cgroup/cpu/release_agent",
)

SECRETS = (
    "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug",
    "/proc/latency_stats", "/proc/vmallocinfo", "/proc/pagetypeinfo", "/proc/slabinfo",
    "/proc/kpagecount", "/proc/kpageflags", "/dev/kmsg", "/dev/mem", "/dev/port",
    "/sys/kernel/notes", "/sys/kernel/debug/sched/debug",
)

DIRECTORIES = (
    "/proc/acpi", "/proc/scsi", "/proc/asound", "/sys/firmware", "/sys/kernel",
    "/sys/fs/cgroup", "/sys/class/net", "/sys/devices/virtual/powercap",
)


@pytest.mark.parametrize("path", SETTINGS)
def test_no_setting_of_the_host_can_be_written(path: str, holds: Run) -> None:
    holds(Attack("files", "write", (path,), control="root"))


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("name", ("cpu", "io", "memory", "irq"))
def test_no_pressure_trigger_can_be_made(name: str, holds: Run) -> None:
    """Anyone may write to these files, and each write starts a monitor in the host's kernel."""
    holds(Attack("files", "write", (f"/proc/pressure/{name}",)))


def test_the_limits_of_namespaces_can_not_be_raised(holds: Run) -> None:
    holds(Attack("files", "write", ("/proc/sys/user/max_user_namespaces",), control="caps"))


@pytest.mark.parametrize("path", SECRETS)
def test_no_state_of_the_host_can_be_read(path: str, holds: Run) -> None:
    holds(Attack("files", "read", (path,), control="root"))


def test_the_kernel_s_log_can_not_be_opened(holds: Run) -> None:
    holds(Attack("files", "open", ("/proc/kmsg",), control="root"))


@pytest.mark.parametrize("path", DIRECTORIES)
def test_no_tree_of_the_host_s_hardware_can_be_listed(path: str, holds: Run) -> None:
    holds(Attack("files", "list", (path,), control="root"))


def test_dev_has_only_what_every_program_expects(holt: Holt) -> None:
    expected = {
        "null", "zero", "full", "random", "urandom", "tty", "console", "fd", "stdin", "stdout",
        "stderr", "pts", "ptmx", "shm", "mqueue", "core",
    }
    assert set(holt.sh("ls /dev").ok().out.split()) <= expected


# --- init, PID 1 inside ---


# Yama lets only root attach to a process that is not its own child, so the control needs root.
@pytest.mark.parametrize("name", ("attach", "open-memory", "copy-memory"))
def test_init_can_not_be_taken_over(name: str, holds: Run, stranger: str) -> None:
    holds(Attack("processes", name, ("1",), control="root", control_args=(stranger,)))


@pytest.mark.parametrize("name", ("attach", "copy-memory"))
def test_init_can_not_be_taken_over_with_a_debugger_s_calls_granted(
    name: str, holds: Run, stranger: str
) -> None:
    attack = Attack("processes", name, ("1",), control="root", control_args=(stranger,))
    granted = ("--allow-syscall", "ptrace", "--allow-syscall", "process_vm_readv")

    holds(attack, *granted)


@pytest.mark.parametrize("name", ("root", "cwd", "fd", "map_files"))
def test_nothing_can_be_reached_through_init(name: str, holds: Run, stranger: str) -> None:
    path, control = f"/proc/1/{name}/", f"/proc/{stranger}/{name}/"

    holds(Attack("files", "list", (path,), control="root", control_args=(control,)))


@pytest.mark.parametrize("name", ("environ", "mem", "auxv", "maps"))
def test_init_s_memory_can_not_be_opened(name: str, holds: Run, stranger: str) -> None:
    path, control = f"/proc/1/{name}", f"/proc/{stranger}/{name}"

    holds(Attack("files", "open", (path,), control="root", control_args=(control,)))


def test_init_s_program_can_not_be_overwritten(holds: Run, stranger: str) -> None:
    """CVE-2019-5736."""
    path, control = "/proc/1/exe", f"/proc/{stranger}/exe"

    holds(Attack("files", "overwrite-exe", (path,), control="root", control_args=(control,)))


def test_a_command_that_is_proc_self_exe_does_not_reach_the_host_s_binary(
    holt: Holt, workspace: Path
) -> None:
    """The other half of CVE-2019-5736: the launcher is made to run itself inside, and the attacker waits there for its
    end."""
    trap = workspace / "trap"
    trap.write_text("#!/proc/self/exe\n")
    trap.chmod(0o755)
    before = hashlib.sha256(holt.binary.read_bytes()).digest()
    writer = (
        "for i in $(seq 200); do for exe in /proc/[0-9]*/exe; do"
        " : 2>/dev/null >>$exe && echo opened $exe; done; done"
    )
    for command in (["/proc/self/exe"], ["/proc/1/exe"], ["./trap"], ["sh", "-c", "exec ./trap"]):
        assert holt(["run", "--", *command]).out == ""
    result = holt.sh(f"./trap & ({writer}) 2>/dev/null; exit 0")

    assert "/proc/1/exe" not in result.out
    assert hashlib.sha256(holt.binary.read_bytes()).digest() == before


def test_processes_of_the_host_are_not_there(holt: Holt, stranger: str) -> None:
    result = holt.sh("ls -d /proc/[0-9]* | wc -l; cat /proc/[0-9]*/comm").ok()

    count, *names = result.out.split()
    assert int(count) < 10
    assert "sleep" not in names


