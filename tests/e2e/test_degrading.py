# SPDX-License-Identifier: Apache-2.0
"""If a layer is missing on the host, holt says so before it runs a command. holt names the layer and its cure, unless
the caller has allowed holt to leave the layer out. doctor says the same."""

from __future__ import annotations

import errno
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lib.hostile import Hostile, compile_program
from lib.hosts import LANDLOCK, NAMESPACES, Command, covered_proc, limited
from lib.identity import Identity
from lib.sandbox import Holt, Result
from lib.sessions import Sessions

DEGRADABLE = ("net", "ipc", "uts", "cgroup")


def refused(result: Result, layer: str) -> str:
    """Asserts that the run was refused for the layer, which the message and the report name. Returns the cure."""
    assert f"[layer {layer}]" in result.refusal()
    assert result.report
    assert result.report["error"]["kind"] == "layer"
    assert result.report["error"]["layer"] == layer
    assert result.cure
    return result.cure


def went_on_without(result: Result, *layers: str) -> None:
    assert result.ok().out == "ran\n"
    for name, state in result.layers.items():
        if name in layers:
            assert state.startswith("off: ") and "--allow-degraded" in state, (name, state)
        elif name != "idmap":
            assert state.startswith("on"), (name, state)


ECHO = ["--", "echo", "ran"]


def doctor(holt: Holt, prefix: Command) -> dict[str, Any]:
    """Returns doctor's findings, and asserts that its text for people says the same."""
    result = holt(["doctor", "--json"], prefix=prefix)
    found = json.loads(result.out)
    text = holt(["doctor"], prefix=prefix)

    assert result.err == text.err == ""
    assert result.code == text.code == (0 if found["works"] else 125)
    for name, finding in found["layers"].items():
        line = next(line for line in text.out.splitlines() if line.startswith(f"{name} "))
        word = "ok" if finding["works"] else "FAILS" if finding["needed"] else "not here"
        if name == "idmap" and holt.identity.name != "root":
            assert not finding["needed"]
            word = "not used"
        assert word in line
        assert finding["works"] or finding["message"] in text.out
        assert finding["works"] or finding["cure"].splitlines()[0] in text.out
    return found


def doctor_finds(holt: Holt, prefix: Command, layer: str) -> None:
    found = doctor(holt, prefix)

    assert not found["works"]
    assert not found["layers"][layer]["works"]
    assert found["layers"][layer]["cure"]
    assert not found["layers"]["sandbox"]["works"]


# --- a host that has all ---


def test_every_layer_works_on_this_host(holt: Holt) -> None:
    """If a layer is missing on this host, the other tests of this suite prove little."""
    found = doctor(holt, [])

    assert found["works"]
    assert [name for name, finding in found["layers"].items() if finding["needed"] and not finding["works"]] == []
    assert found["uid"] == (0 if holt.identity.name != "user" else holt.identity.uid)


@pytest.mark.parametrize("layer", (*DEGRADABLE, "proc", "landlock", "seccomp", "notify", "limits"))
def test_a_layer_that_works_is_kept_despite_allow_degraded(layer: str, holt: Holt) -> None:
    went_on_without(holt(["run", "--allow-degraded", layer, *ECHO]))


@pytest.mark.parametrize("layer", ("user", "mount", "pid", "dev", "capabilities", "nonesuch"))
def test_some_layers_cannot_be_left_out(layer: str, holt: Holt) -> None:
    assert layer in holt(["run", "--allow-degraded", layer, *ECHO]).refusal()


# --- namespaces ---


@pytest.mark.identities("user")
@pytest.mark.parametrize("layer", NAMESPACES)
def test_no_namespaces_of_a_kind(layer: str, holt: Holt) -> None:
    cure = refused(holt(["run", *ECHO], prefix=limited(layer)), layer)

    assert f"sysctl -w user.max_{NAMESPACES[layer][0]}_namespaces=" in cure
    assert (f"Or run without it: --allow-degraded {layer}" in cure) == (layer in DEGRADABLE)
    doctor_finds(holt, limited(layer), layer)


@pytest.mark.identities("user")
@pytest.mark.parametrize("layer", DEGRADABLE)
def test_going_on_without_a_namespace(layer: str, holt: Holt) -> None:
    went_on_without(holt(["run", "--allow-degraded", layer, *ECHO], prefix=limited(layer)), layer)


@pytest.mark.identities("user")
def test_allow_degraded_is_for_one_layer(holt: Holt) -> None:
    refused(holt(["run", "--allow-degraded", "ipc", *ECHO], prefix=limited("net")), "net")


# --- system calls ---


def test_without_clone3_there_is_clone(holt: Holt, hostile: Hostile) -> None:
    """Docker's profile answers clone3 with ENOSYS, so that programs fall back to clone. holt does so, and loses
    nothing by it."""
    prefix = hostile.refusing("clone3")

    went_on_without(holt(["run", *ECHO], prefix=prefix))
    assert doctor(holt, prefix)["works"]


@pytest.mark.identities("user", "nested")
@pytest.mark.parametrize("clone3", (errno.EPERM, errno.ENOSYS), ids=("EPERM", "ENOSYS"))
@pytest.mark.not_sanitized
def test_a_container_that_forbids_namespaces(clone3: int, holt: Holt, hostile: Hostile) -> None:
    prefix = [*hostile.refusing("clone", error=errno.EPERM), *hostile.refusing("clone3", error=clone3)]

    assert "seccomp" in refused(holt(["run", *ECHO], prefix=prefix), "user")


@pytest.mark.parametrize("call", ("open_tree", "move_mount", "mount_setattr", "fsopen", "fsconfig", "fsmount"))
@pytest.mark.parametrize("error", (errno.EPERM, errno.ENOSYS), ids=("EPERM", "ENOSYS"))
def test_an_old_kernel_s_mounts(call: str, error: int, holt: Holt, hostile: Hostile) -> None:
    prefix = hostile.refusing(call, error=error)
    result = holt(["run", *ECHO], prefix=prefix)
    # The first step that fails depends on the order: root's id-mapped workspace comes before the sandbox's own mounts.
    layer = "idmap" if "[layer idmap]" in result.err and holt.identity.name == "root" else "mount"

    refused(result, layer)
    doctor_finds(holt, prefix, "mount")


@pytest.mark.parametrize("call", ("pivot_root", "openat2", "memfd_create", "close_range", "capset"))
def test_refused_calls_without_a_substitute_are_errors(call: str, holt: Holt, hostile: Hostile) -> None:
    result = holt(["run", *ECHO], prefix=hostile.refusing(call))

    assert "ENOSYS" in result.refusal()


@pytest.mark.identities("user", "nested")
@pytest.mark.parametrize("call, step", (
    ("pivot_root", "enter the root"), ("umount2", "leave the host's tree"), ("unshare", "enter the network"),
    ("seccomp", "load the system call filter"),
))
def test_a_message_names_the_step(call: str, step: str, holt: Holt, hostile: Hostile) -> None:
    result = holt(["run", *ECHO], prefix=hostile.refusing(call, error=errno.EPERM))

    assert f"(to {step}) [layer " in result.refusal()


@pytest.mark.parametrize("call", ("pivot_root", "umount2", "setsid", "unshare", "seccomp"))
def test_a_call_that_kills_its_thread_is_an_error(call: str, holt: Holt, hostile: Hostile) -> None:
    """SECCOMP_RET_KILL_THREAD, the default of older libseccomp profiles, leaves the other thread of the child alone."""
    result = holt(["run", *ECHO], prefix=hostile.killing(call))

    assert result.refusal()


@pytest.mark.parametrize("error", (errno.EPERM, errno.ENOSYS), ids=("EPERM", "ENOSYS"))
def test_no_seccomp(error: int, holt: Holt, hostile: Hostile) -> None:
    prefix = hostile.refusing("seccomp", error=error)

    refused(holt(["run", *ECHO], prefix=prefix), "seccomp")
    went_on_without(holt(["run", "--allow-degraded", "seccomp", *ECHO], prefix=prefix), "seccomp", "notify")
    doctor_finds(holt, prefix, "seccomp")


def test_no_landlock_is_said_and_no_error_where_the_policy_takes_what_there_is(holt: Holt, hostile: Hostile) -> None:
    prefix = hostile.refusing(*LANDLOCK)
    result = holt(["run", *ECHO], prefix=prefix).ok()

    assert result.layers["landlock"].startswith("off: ")
    assert not doctor(holt, prefix)["layers"]["landlock"]["works"]
    assert doctor(holt, prefix)["works"]


@pytest.mark.parametrize("flags", (("--landlock", "require"), ("--policy", "strict")), ids=" ".join)
def test_no_landlock_is_an_error_where_the_policy_requires_it(
    flags: tuple[str, ...], holt: Holt, hostile: Hostile
) -> None:
    prefix = hostile.refusing(*LANDLOCK)

    assert "lsm=landlock" in refused(holt(["run", *flags, *ECHO], prefix=prefix), "landlock")
    went_on_without(holt(["run", *flags, "--allow-degraded", "landlock", *ECHO], prefix=prefix), "landlock")


@pytest.mark.parametrize("call", LANDLOCK[1:])
def test_half_of_landlock_is_an_error(call: str, holt: Holt, hostile: Hostile) -> None:
    refused(holt(["run", *ECHO], prefix=hostile.refusing(call, error=errno.EPERM)), "landlock")


# --- reports of denied calls ---


@pytest.fixture(scope="session")
def listen(scratch: Path) -> Path:
    return compile_program(Path(__file__).with_name("listen.c"), scratch / "listen")


def test_another_listener(holt: Holt, listen: Path) -> None:
    """holt runs in a sandbox that already has a listener. Denied calls stay denied, but are not reported."""
    refused(holt(["run", *ECHO], prefix=[listen]), "notify")
    went_on_without(holt(["run", "--allow-degraded", "notify", *ECHO], prefix=[listen]), "notify")
    doctor_finds(holt, [listen], "notify")

    script = "import ctypes; print(ctypes.CDLL(None).unshare(0))"
    result = holt(["run", "--allow-degraded", "notify", "--", "python3", "-c", script], prefix=[listen]).ok()
    assert result.out == "-1\n"
    assert result.denials == {}


# --- /proc ---


@pytest.mark.identities("user", "nested")
def test_a_proc_that_is_covered(holt: Holt) -> None:
    cure = refused(holt(["run", *ECHO], prefix=covered_proc()), "proc")

    assert "systempaths=unconfined" in cure
    doctor_finds(holt, covered_proc(), "proc")


@pytest.mark.identities("user", "nested")
def test_going_on_without_proc(holt: Holt) -> None:
    went_on_without(holt(["run", "--allow-degraded", "proc", *ECHO], prefix=covered_proc()), "proc")
    assert holt(["run", "--allow-degraded", "proc", "--", "ls", "/proc"], prefix=covered_proc()).ok().out == ""


# --- id maps ---


@pytest.mark.identities("root")
def test_a_directory_that_takes_no_id_map(holt: Holt) -> None:
    """devtmpfs takes no id map."""
    cure = refused(holt(["run", "--allow-wide", "--rw", "/dev:/x", *ECHO]), "idmap")

    assert "ordinary user" in cure


@pytest.mark.identities("root")
def test_going_on_without_id_maps(holt: Holt, everyone: dict[str, Identity]) -> None:
    """The command then has the uid of the workspace's owner: there are no other files it could write."""
    owner = everyone["user"]
    owner.own(holt.cwd)
    flags = ["--allow-degraded", "idmap", "--allow-wide", "--rw", "/dev:/x"]
    result = holt(["run", *flags, "--", "sh", "-c", "echo ran; touch made"])

    assert result.ok().out == "ran\n"
    assert result.layers["idmap"].startswith("off: ")
    assert (holt.cwd / "made").stat().st_uid == owner.uid


def refused_session(result: Result) -> None:
    """A session needs id maps, so the cure does not suggest to leave them out."""
    assert "with an id map" in result.refusal()
    assert "XDG_DATA_HOME" in result.cure and "works without id maps: holt run --allow-degraded idmap" in result.cure


@pytest.mark.identities("root")
@pytest.mark.parametrize("more", ((), ("--allow-degraded", "idmap")))
def test_a_session_without_id_maps_is_refused_at_once(more: tuple[str, ...], sessions: Sessions) -> None:
    refused_session(sessions(["create", "w", "--allow-wide", "--rw", "/dev:/x", *more]))

    assert list(sessions.directory.iterdir()) == []


@pytest.mark.identities("root")
@pytest.mark.root_host
@pytest.mark.parametrize("more", ((), ("--allow-degraded", "idmap")))
def test_a_session_that_is_moved_to_where_there_are_no_id_maps(
    more: tuple[str, ...], sessions: Sessions, place: Path
) -> None:
    session = sessions.create("w", *more)
    lower, upper, work = (place / name for name in ("lower", "upper", "work"))
    for path in (lower, upper, work):
        path.mkdir()
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    files = session.directory / "files"
    subprocess.run(["mount", "-n", "-t", "overlay", "-o", options, "none", files], check=True)
    try:
        refused_session(session.exec("echo", "reached"))
    finally:
        subprocess.run(["umount", "-n", files], check=True)
    assert session.exec("echo", "reached").ok().out == "reached\n"


# --- holt inside holt ---


@pytest.mark.not_sanitized
def test_holt_inside_holt_says_that_it_does_not_nest(holt: Holt, workspace: Path, identity: Identity) -> None:
    """No container is at fault, so no cure for containers is named."""
    inner = workspace / "inner"
    inner.write_bytes(holt.binary.read_bytes())
    inner.chmod(0o755)
    identity.own(inner)
    result = holt(["run", "--", "./inner", "run", "--", "true"])

    assert result.code == 125
    assert "holt does not nest" in result.err
    assert "docker" not in result.err


@pytest.mark.identities("user", "root", "nested")
def test_doctor_tells_the_level_of_the_network(holt: Holt, hostile: Hostile) -> None:
    without = doctor(holt, hostile.refusing_packet_filter())

    assert without["works"] and without["layers"]["network"]["works"] and "level 1" in without["layers"]["network"]["note"]
    assert "cannot redirect ports, so rules may have 512" in without["layers"]["network"]["note"]
    assert "level " in doctor(holt, ())["layers"]["network"]["note"]


@pytest.mark.identities("root")
def test_doctor_tries_the_id_map_where_it_stands(holt: Holt, workspace: Path) -> None:
    """Only the file system itself can tell whether it takes an id map. A ramfs does not."""
    prefix = ["unshare", "--mount", "sh", "-c", 'mount -t ramfs none . && cd "$PWD" && mkdir w && cd w && exec "$0" "$@"']
    for there, works in ((prefix, False), ((), True)):
        layers = json.loads(holt(["doctor", "--json"], prefix=there, cwd=workspace).out)["layers"]

        assert layers["idmap"]["works"] is works
        assert layers["sandbox"]["works"] is works
