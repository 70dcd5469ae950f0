# SPDX-License-Identifier: Apache-2.0
"""holt fails closed. If the host refuses a layer, the error names the layer and its cure. Nothing runs with less,
unless the caller said --allow-degraded LAYER.

The tests make hosts that refuse. One is a user namespace whose limits are 0; each namespace has its own
user.max_*_namespaces. Another has a covered /proc, as in containers. A third has a seccomp filter without certain
system calls.
"""

from __future__ import annotations

import errno
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.hostile import Hostile
from lib.hosts import LANDLOCK, NAMESPACES, covered_proc, landlock_abi, limited
from lib.sandbox import Arg, Holt, Result

DEGRADABLE = {"net", "ipc", "uts", "cgroup", "proc", "landlock", "seccomp", "notify"}

Refusal = Callable[[Hostile], list[Arg]]

REFUSALS: dict[str, Refusal] = {
    **{layer: (lambda hostile, flag=flag: hostile.refusing_namespace(flag)) for layer, (_, flag) in NAMESPACES.items()},
    "seccomp": lambda hostile: hostile.refusing("seccomp"),
}


def without_root(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.identities("user", "nested")(test)


LEAVE_A_TRACE = ("--", "sh", "-c", "echo ran; touch ran")


def attempt(holt: Holt, hostile: Hostile, layer: str, *flags: Arg) -> Result:
    """Runs a command that leaves a trace, on a host that refuses the layer."""
    return holt(["run", *flags, *LEAVE_A_TRACE], prefix=REFUSALS[layer](hostile))


def refused(result: Result, layer: str, workspace: Path) -> None:
    """Asserts that nothing ran, and that the error names the layer and a cure."""
    first, _, cure = result.err.partition("\n")

    assert result.code == 125, result
    assert result.out == ""
    assert not (workspace / "ran").exists()
    assert first.startswith("holt: ")
    assert layer in first
    assert cure.strip()
    assert result.report["error"]["kind"] == "layer"
    assert result.report["error"]["layer"] == layer
    assert result.cause == "error"


@pytest.mark.parametrize("layer", REFUSALS)
def test_a_layer_that_is_refused_ends_the_run(layer: str, holt: Holt, hostile: Hostile, workspace: Path) -> None:
    refused(attempt(holt, hostile, layer), layer, workspace)


@without_root
@pytest.mark.parametrize("layer", NAMESPACES)
def test_a_namespace_past_its_limit_ends_the_run(layer: str, holt: Holt, workspace: Path) -> None:
    refused(holt(["run", *LEAVE_A_TRACE], prefix=limited(layer)), layer, workspace)


@without_root
@pytest.mark.parametrize("layer", sorted({"net", "ipc", "uts", "cgroup"}))
def test_the_caller_may_go_on_past_a_limit(layer: str, holt: Holt, workspace: Path) -> None:
    result = holt(["run", "--allow-degraded", layer, *LEAVE_A_TRACE], prefix=limited(layer)).ok()

    assert (workspace / "ran").exists()
    assert result.layers[layer].startswith("off")


@without_root
def test_a_covered_proc_ends_the_run(holt: Holt, workspace: Path) -> None:
    refused(holt(["run", *LEAVE_A_TRACE], prefix=covered_proc()), "proc", workspace)


@without_root
def test_the_caller_may_go_on_with_a_covered_proc(holt: Holt, workspace: Path) -> None:
    result = holt(["run", "--allow-degraded", "proc", *LEAVE_A_TRACE], prefix=covered_proc()).ok()

    assert (workspace / "ran").exists()
    assert result.layers["proc"].startswith("off")


@pytest.mark.parametrize("layer", sorted(DEGRADABLE & set(REFUSALS)))
def test_allow_degraded_continues_without_the_layer(layer: str, holt: Holt, hostile: Hostile, workspace: Path) -> None:
    result = attempt(holt, hostile, layer, "--allow-degraded", layer)

    assert result.code == 0, result
    assert (workspace / "ran").exists()
    assert result.layers[layer].startswith("off")


@pytest.mark.parametrize("layer", sorted(set(REFUSALS)))
def test_allow_degraded_for_other_layers_does_not_help(layer: str, holt: Holt, hostile: Hostile, workspace: Path) -> None:
    others = DEGRADABLE - {layer}
    flags = [part for other in sorted(others) for part in ("--allow-degraded", other)]
    result = attempt(holt, hostile, layer, *flags)

    assert result.code == 125
    assert not (workspace / "ran").exists()


@pytest.mark.parametrize("layer", ("user", "mount", "pid", "dev", "capabilities"))
def test_the_layers_that_carry_the_rest_can_not_be_let_go(layer: str, holt: Holt) -> None:
    result = holt(["run", "--allow-degraded", layer, "--", "true"])

    assert result.code == 125
    assert layer in result.err


def test_allow_degraded_keeps_layers_that_work(holt: Holt) -> None:
    flags = [part for layer in sorted(DEGRADABLE) for part in ("--allow-degraded", layer)]
    usual = holt(["run", "--", "true"]).ok()
    result = holt(["run", *flags, "--", "true"]).ok()

    assert result.layers == usual.layers


def kernel_has_landlock() -> bool:
    """ABI 2 is the first that holt uses."""
    return landlock_abi() >= 2


def in_force(holt: Holt, layers: dict[str, str]) -> bool:
    """Whether every layer is on that this host and this caller can have."""
    on = {name for name, state in layers.items() if state.partition(":")[0] == "on"}
    missing = {"idmap"} if holt.identity.name != "root" else set()
    if not kernel_has_landlock():
        missing.add("landlock")
    return on == set(layers) - missing


def test_every_layer_is_in_force(holt: Holt) -> None:
    assert in_force(holt, holt(["run", "--", "true"]).ok().layers)


# --- Landlock ---

def test_landlock_is_used_where_the_kernel_has_it(holt: Holt) -> None:
    result = holt(["run", "--landlock", "require", "--", "true"])

    assert result.code == (0 if kernel_has_landlock() else 125)


def test_landlock_that_is_required_and_missing_ends_the_run(holt: Holt, hostile: Hostile, workspace: Path) -> None:
    prefix = hostile.refusing(*LANDLOCK)
    result = holt(["run", "--landlock", "require", "--", "touch", "ran"], prefix=prefix)

    assert result.code == 125
    assert "landlock" in result.err.lower()
    assert result.report["error"]["layer"] == "landlock"
    assert not (workspace / "ran").exists()


def test_landlock_that_is_missing_is_told(holt: Holt, hostile: Hostile) -> None:
    result = holt(["run", "--", "true"], prefix=hostile.refusing(*LANDLOCK)).ok()

    assert result.layers["landlock"].startswith("off")


@pytest.mark.parametrize("call", LANDLOCK[1:] if kernel_has_landlock() else ())
def test_landlock_that_fails_half_way_ends_the_run(call: str, holt: Holt, hostile: Hostile, workspace: Path) -> None:
    result = holt(["run", "--", "touch", "ran"], prefix=hostile.refusing(call, error=errno.EPERM))

    assert result.code == 125
    assert not (workspace / "ran").exists()


# --- any call that building and confining need ---

NEEDED = (
    "fsopen", "fsconfig", "fsmount", "open_tree", "move_mount", "mount_setattr", "openat2", "pivot_root",
    "sethostname", "capset", "close_range", "memfd_create", "seccomp",
)


@pytest.mark.parametrize("call", NEEDED)
@pytest.mark.parametrize("error", (errno.ENOSYS, errno.EPERM), ids=("ENOSYS", "EPERM"))
def test_no_failed_call_is_passed_over(
    call: str, error: int, holt: Holt, hostile: Hostile, workspace: Path
) -> None:
    """Whatever a kernel or a container refuses, the command runs with every layer or not at all."""
    result = holt(["run", "--", "sh", "-c", "echo ran; touch ran"], prefix=hostile.refusing(call, error=error))

    if result.code == 0:
        assert in_force(holt, result.layers)
        return
    assert result.code == 125, result
    assert result.err.startswith("holt: ")
    assert not (workspace / "ran").exists()


@pytest.mark.not_sanitized
def test_limits_that_can_not_be_set_end_the_run(holt: Holt, hostile: Hostile, workspace: Path) -> None:
    """C libraries use one call or the other, so both fail here."""
    prefix = hostile.refusing("setrlimit", "prlimit64", error=errno.EPERM)
    result = holt(["run", "--", "touch", "ran"], prefix=prefix)

    assert result.code == 125
    assert not (workspace / "ran").exists()


def test_the_refusing_host_is_one(hostile: Hostile) -> None:
    """The control of the tests above: without holt, the call fails there too."""
    assert platform.machine() in ("x86_64", "aarch64")
    done = hostile.caller.run([*hostile.refusing("unshare"), "/usr/bin/unshare", "--user", "true"])
    assert "Function not implemented" in done.stderr

    done = hostile.caller.run([*hostile.refusing_namespace(0x10000000), "/usr/bin/unshare", "--user", "true"])
    assert "not permitted" in done.stderr

    done = hostile.caller.run([*limited("user"), "unshare", "--user", "true"])
    assert "No space left" in done.stderr

    fresh = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    covered = hostile.caller.run([*covered_proc(), *fresh])
    assert "ermitted" in covered.stderr
