# SPDX-License-Identifier: Apache-2.0
"""Settings of sysctl(8) that restrict: either an error names the layer and the cure, or everything works."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.sandbox import Holt, Result

pytestmark = pytest.mark.boots("debian")

Sysctl = Callable[[str, object], None]

USER_NAMESPACES = (("user.max_user_namespaces", 0), ("kernel.unprivileged_userns_clone", 0))

# user, mount and pid are left out, because every sandbox needs them.
GRANTABLE = ("net", "ipc", "uts", "cgroup")

# Settings of hardened hosts, and a core_pattern that would run a program. None of them should affect holt.
HARDENED = (
    ("fs.protected_fifos", 2),
    ("fs.protected_hardlinks", 1),
    ("fs.protected_regular", 2),
    ("fs.protected_symlinks", 1),
    ("fs.suid_dumpable", 0),
    ("kernel.core_pattern", "|/bin/false"),
    ("kernel.dmesg_restrict", 1),
    ("kernel.kptr_restrict", 2),
    ("kernel.perf_event_paranoid", 3),
    ("kernel.randomize_va_space", 0),
    ("kernel.unprivileged_bpf_disabled", 2),
    ("kernel.yama.ptrace_scope", 2),
    ("net.core.bpf_jit_enable", 0),
    ("net.core.bpf_jit_harden", 2),
    ("net.ipv6.conf.default.disable_ipv6", 1),
    ("vm.legacy_va_layout", 1),
    ("vm.max_map_count", 2000),
    ("vm.overcommit_memory", 2),
    ("vm.unprivileged_userfaultfd", 0),
)


def refused(result: Result, layer: str) -> str:
    """Asserts that no command ran and that the error names the layer. Returns the cure."""
    assert (result.code, result.out) == (125, ""), str(result)
    error = (result.report or {})["error"]
    assert error["layer"] == layer, str(result)
    return str(error["cure"])


@pytest.mark.not_nested
@pytest.mark.parametrize(("name", "value"), USER_NAMESPACES)
def test_no_user_namespace_is_an_error_with_its_cure(name: str, value: int, holt: Holt, sysctl: Sysctl) -> None:
    sysctl(name, value)
    result = holt.sh("echo reached")

    assert f"sysctl -w {name}=" in refused(result, "user")
    assert name in result.err


@pytest.mark.not_nested
@pytest.mark.parametrize(("name", "value"), USER_NAMESPACES)
def test_doctor_finds_that_no_user_namespace_can_be_made(name: str, value: int, holt: Holt, sysctl: Sysctl) -> None:
    sysctl(name, value)
    result = holt(["doctor", "--json"])

    found = json.loads(result.out)
    assert result.code == 125 and not found["works"]
    assert f"sysctl -w {name}=" in found["layers"]["user"]["cure"]


@pytest.mark.not_nested
def test_the_user_namespace_can_not_be_let_go(holt: Holt, sysctl: Sysctl) -> None:
    sysctl("user.max_user_namespaces", 0)

    assert holt.sh("echo reached", "--allow-degraded", "user").out == ""


@pytest.fixture
def apparmor_restricts(place: Path, sysctl: Sysctl) -> Iterator[None]:
    """Applies AppArmor's restriction of user namespaces. Ubuntu's kernels since 23.10, and AppArmor 4 on Debian 13, have its
    setting. On older kernels the test imitates it: a directory with that setting covers /proc/sys/kernel, and another setting
    refuses the namespace."""
    name = "apparmor_restrict_unprivileged_userns"
    if Path("/proc/sys/kernel", name).exists():
        sysctl(f"kernel.{name}", 1)
        yield
        return
    sysctl("user.max_user_namespaces", 0)
    played = place / "kernel"
    played.mkdir()
    (played / name).write_text("1\n")
    subprocess.run(["mount", "-n", "--bind", played, "/proc/sys/kernel"], check=True)
    yield
    subprocess.run(["umount", "-n", "/proc/sys/kernel"], check=True)


@pytest.mark.not_nested
def test_apparmor_s_restriction_of_user_namespaces(holt: Holt, apparmor_restricts: None) -> None:
    assert "apparmor_parser -r" in refused(holt.sh("echo reached"), "user")


@pytest.mark.parametrize("layer", ("mount", "pid", *GRANTABLE))
def test_no_namespace_of_a_kind_is_an_error_that_names_it(layer: str, holt: Holt, sysctl: Sysctl) -> None:
    name = f"user.max_{ {'mount': 'mnt'}.get(layer, layer) }_namespaces"
    sysctl(name, 0)

    assert f"sysctl -w {name}=" in refused(holt.sh("echo reached"), layer)


@pytest.mark.parametrize("layer", GRANTABLE)
def test_a_namespace_of_a_kind_can_be_let_go(layer: str, holt: Holt, sysctl: Sysctl) -> None:
    sysctl(f"user.max_{layer}_namespaces", 0)
    result = holt.sh("echo reached", "--allow-degraded", layer).ok()

    assert result.out == "reached\n"
    assert result.layers[layer].startswith("off: ")
    assert [name for name, state in result.layers.items() if state.startswith("off") and name != "idmap"] == [layer]


@pytest.mark.parametrize(("name", "value"), HARDENED)
def test_a_hardened_host_changes_nothing(name: str, value: object, holt: Holt, sysctl: Sysctl) -> None:
    sysctl(name, value)

    assert holt.sh("python3 -c 'print(6 * 7)'").ok().out == "42\n"


def test_too_few_mounts_are_an_error(holt: Holt, sysctl: Sysctl) -> None:
    sysctl("fs.mount-max", 20)
    result = holt.sh("echo reached")

    assert (result.code, result.out) == (125, "")
    assert "ENOSPC" in result.err
