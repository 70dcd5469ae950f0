# SPDX-License-Identifier: Apache-2.0
"""The policy belongs to the caller. No argument of the command, no file of the workspace and no process inside widens
it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.plugin import Make
from lib.sandbox import Holt

# --- arguments ---


@pytest.mark.parametrize("name", ("--rw", "--rw=x", "--workspace", "--allow-wide", "-h", "--help", "--", "--landlock"))
def test_a_program_called_like_an_option_is_a_program(name: str, holt: Holt, workspace: Path, put: Make) -> None:
    put(name, '#!/bin/sh\necho "program $0 $*"\n', 0o755)

    by_name = holt(["run", "--env", f"PATH={workspace}:/usr/bin:/bin", "--", name, "/"])
    by_path = holt(["run", "--", f"./{name}", "/"])

    assert by_name.out == f"program {workspace}/{name} /\n"
    assert by_path.out == f"program ./{name} /\n"


@pytest.mark.parametrize("option", (
    ["--rw", "/"], ["--landlock", "off"], ["--allow-wide"], ["--help"], ["--report", "x"],
), ids=" ".join)
def test_an_option_behind_the_command_is_the_command_s(option: list[str], holt: Holt) -> None:
    """A model that writes the command's arguments cannot write holt's."""
    result = holt(["run", "sh", "-c", 'echo "$*"', "sh", *option]).ok()

    assert result.out == " ".join(option) + "\n"


def test_a_second_separator_is_the_command_s(holt: Holt) -> None:
    assert holt(["run", "--", "echo", "--", "--rw", "/"]).ok().out == "-- --rw /\n"


def test_a_name_can_not_smuggle_a_target(holt: Holt, place: Path, secret: Path, identity: Identity) -> None:
    """The directory is called "x:/etc". However holt treats the colon, the secret beside it stays outside."""
    odd = place / "x:" / "etc"
    identity.run(["mkdir", "-p", odd]).check_returncode()
    result = holt.sh(f"cat {secret}; test -w /etc", "--rw", odd)

    assert result.code != 0
    assert "secret" not in result.out


@pytest.mark.parametrize("target", (
    "/proc", "/proc/self", "/dev", "/dev/null", "/", "/usr/../proc", "//proc", "/./dev",
))
def test_nothing_is_mounted_over_what_holt_stands_on(target: str, holt: Holt, workspace: Path) -> None:
    """A workspace at /proc could fake it for programs that trust /proc."""
    for option in ("--ro", "--rw", "--workspace"):
        assert holt(["run", option, f"{workspace}:{target}", "--", "true"]).code == 125
    assert holt(["run", "--tmpfs", target, "--", "true"]).code == 125


# --- the workspace's own file ---

WIDER = {
    "read-write": {"filesystem": {"read_write": ["/etc"]}},
    "read-only": {"filesystem": {"read_only": ["{place}"]}},
    "workspace": {"filesystem": {"workspace": {"source": "{place}", "target": "/workspace", "mode": "rw"}}},
    "workspace source": {"filesystem": {"workspace": {"source": ".."}}},
    "rootfs": {"filesystem": {"rootfs": "{place}"}},
    "wide": {"filesystem": {"allow_wide": True}},
    "unprotect": {"filesystem": {"protect": []}},
    "tmp size": {"filesystem": {"tmp_size": "1TiB"}},
    "network": {"network": {"mode": "host"}},
    "network allow": {"network": {"mode": "allow", "allow": ["*:*"]}},
    "network rules": {"network": {"allow": ["0.0.0.0/0:*", "*.example.org:*", "@github"]}},
    "network sni": {"network": {"sni": "optional"}},
    "publish": {"network": {"publish": ["0.0.0.0:0:80"]}},
    "import": {"network": {"import": ["22"]}},
    "environment": {"env": {"pass": ["TOKEN"]}},
    "preload": {"env": {"set": {"LD_PRELOAD": "/tmp/x.so"}}},
    "processes": {"limits": {"pids": 1000000}},
    "timeout": {"limits": {"timeout": "none"}},
    "syscalls": {"syscalls": {"preset": "default", "allow": ["unshare"]}},
    "landlock": {"layers": {"landlock": "off"}},
    "extends": {"extends": "permissive"},
}

PROBE = """
cat ../secret 2>/dev/null && echo WIDER secret
test "$TOKEN" && echo WIDER token
test "$LD_PRELOAD" && echo WIDER preload
test -w /etc && echo WIDER etc
test -w /usr && echo WIDER usr
test "$(ls /sys/class/net 2>/dev/null | wc -l)" -gt 1 && echo WIDER net
test "$(ulimit -u)" -gt 4096 && echo WIDER pids
python3 -c 'import ctypes; print("WIDER unshare" if ctypes.CDLL(None).unshare(0) == 0 else "")'
exit 0
"""


@pytest.mark.parametrize("document", WIDER.values(), ids=WIDER.keys())
def test_the_workspace_s_own_file_can_not_widen(
    document: dict[str, object], holt: Holt, place: Path, secret: Path, put: Make
) -> None:
    """A file that would widen the policy is refused, or has no effect."""
    text = json.dumps({"holt": 1, **document}).replace("{place}", str(place))
    put(".holt.json", text)
    result = holt.sh(PROBE, "--policy", "standard", "--landlock", "auto", env={"TOKEN": "secret"})

    assert result.code in (0, 125), result
    assert "WIDER" not in result.out
    if result.code == 0:
        assert result.layers["landlock"].startswith("on") or "none" in result.layers["landlock"]
        assert result.report["limits"]["pids"] <= 4096
        assert result.report["limits"]["tmp_size_bytes"] <= 1 << 30


NARROWED = (
    ("0.0.0.0/0:80", "169.254.169.254:80"),
    ("0.0.0.0/0:80", "127.0.0.1:80"),
    ("169.254.0.0/16:80", "169.254.169.254:80"),
    ("[::]/0:80", "[::1]:80"),
    ("[::]/0:80", "[64:ff9b::7f00:1]:80"),
    ("*.example.org:443", "example.org:443"),
    ("example.org:443", "*.example.org:443"),
    ("example.org:443", "example.org:22"),
    ("*.example.org:443", "*.example.org.evil.example:443"),
    ("*.example.org:443", "x-example.org:443"),
)


@pytest.mark.parametrize("caller, project", NARROWED, ids=lambda rule: rule)
def test_the_workspace_s_own_file_adds_no_host(caller: str, project: str, holt: Holt, put: Make) -> None:
    """A rule of the project is dropped unless a rule of the caller allows it."""
    put(".holt.json", json.dumps({"holt": 1, "network": {"allow": [project]}}))
    network = json.loads(holt(["policy", "show", "--json", "--net", caller]).ok().out)["network"]

    assert network["mode"] == "allow" and "allow" not in network


def test_the_probe_above_notices_a_wider_policy(holt: Holt, place: Path, secret: Path) -> None:
    """The control: the caller uses the same settings."""
    flags = ["--ro", secret, "--env", "TOKEN", "--pids", "5000", "--allow-syscall", "unshare"]
    result = holt.sh(PROBE, *flags, env={"TOKEN": "secret"}).ok()

    for what in ("secret", "token", "pids", "unshare"):
        assert f"WIDER {what}" in result.out


def test_the_command_can_not_write_the_next_run_s_policy(holt: Holt, workspace: Path) -> None:
    holt.sh("echo '{\"holt\": 1, \"limits\": {\"timeout\": \"1ms\"}}' >.holt.json").ok()

    assert holt(["run", "--", "true"]).ok().code == 0
    assert not (workspace / ".holt.json").exists()


@pytest.mark.parametrize("trick", ("link", "fifo", "directory", "huge", "deep", "binary", "link to a device"))
def test_a_workspace_s_own_file_that_is_none_does_no_harm(
    trick: str, holt: Holt, workspace: Path, secret: Path, identity: Identity
) -> None:
    """Such a file does not hang holt. holt neither reads another file of the host in its place, nor quotes one in an error."""
    make = {
        "link": f"ln -s {secret} .holt.json",
        "fifo": "mkfifo .holt.json",
        "directory": "mkdir .holt.json",
        "huge": "head -c 64M /dev/zero | tr '\\0' '[' >.holt.json",
        "deep": "python3 -c 'print(\"[\" * 100000)' >.holt.json",
        "binary": "head -c 4096 /dev/urandom >.holt.json",
        "link to a device": "ln -s /dev/zero .holt.json",
    }[trick]
    identity.run(["sh", "-c", make], cwd=workspace).check_returncode()
    result = holt(["run", "--", "true"], timeout=30)

    assert result.code in (0, 125)
    assert "secret-" not in str(result)


# --- messages to a person ---


def test_an_attacker_s_name_does_not_reach_the_terminal_raw(holt: Holt) -> None:
    """Escape sequences in a message can retitle the window, hide text or answer for the person."""
    evil = "\x1b]0;pwned\x07\x1b[2J"
    results = [
        holt(["run", "--", evil]),
        holt(["run", "--ro", f"/{evil}", "--", "true"]),
        holt(["run", "--cwd", f"/{evil}", "--", "true"]),
        holt(["run", f"--{evil}", "--", "true"]),
        holt(["run", "--policy", evil, "--", "true"]),
        holt(["run", "--policy", f"./{evil}.json", "--", "true"]),
        holt(["run", "--env", f"{evil}=1", "--", "true"]),
        holt(["run", "--protect", evil, "--", "touch", evil]),
        holt([evil]),
    ]
    for result in results:
        assert "\x1b" not in result.err, result.argv
        assert "\x07" not in result.err, result.argv


@pytest.mark.parametrize("name", ('x", "exit_code": 7, "y": "', "x\\", "x\u202e", "x\udcff"))
def test_a_file_s_name_in_the_report_is_only_data(name: str, holt: Holt) -> None:
    result = holt(["run", "--protect", name, "--", "touch", name]).ok()

    assert result.report["exit_code"] == 0
    assert result.set_aside == [f"{name}.holt-untrusted".encode(errors="surrogateescape").decode(errors="replace")]


@pytest.mark.parametrize("name", ("x\x1b[2J", "x\nholt: all is well"))
def test_a_file_s_name_with_a_control_character_is_none_for_the_policy(name: str, holt: Holt) -> None:
    assert "control character" in holt(["run", "--protect", name, "--", "touch", name]).refusal()
