# SPDX-License-Identifier: Apache-2.0
"""Basic behaviour that must hold on every boot."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.terminal import Terminal

# Layers that are on in every boot; for Landlock see test_landlock.py.
ALWAYS = (
    "user", "mount", "pid", "net", "ipc", "uts", "cgroup", "proc", "dev", "capabilities", "seccomp", "notify", "limits",
)  # fmt: skip

LOOPBACK = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].sendall(b"to itself")
print(client.recv(9).decode(), [name for _, name in socket.if_nameindex()])
"""


def test_the_guest_has_the_environment_of_run() -> None:
    """Without this environment, a skip would not count as a failure, and a test would not wait longer than elsewhere."""
    told = dict(shlex.split(line)[0].split("=", 1) for line in Path("/run/environment").read_text().splitlines())

    for name in ("CRASH_ROUNDS", "HANGS", "MUST_RUN"):
        assert os.environ.get(name) == told[name]


def test_a_command_runs_and_says_how_it_ended(holt: Holt) -> None:
    result = holt.sh("cat; echo error >&2; exit 7", stdin="input")

    assert (result.out, result.err, result.code, result.cause) == ("input", "error\n", 7, "exited")


def test_every_layer_is_on(holt: Holt, identity: Identity) -> None:
    layers = holt(["run", "--", "true"]).ok().layers

    assert {name: layers[name] for name in ALWAYS} == dict.fromkeys(ALWAYS, "on")
    assert layers["idmap"].startswith("on" if identity.name == "root" else "off: not run by the host's root")


def test_doctor_finds_nothing_wrong(holt: Holt) -> None:
    found = json.loads(holt(["doctor", "--json"]).ok().out)

    assert found["works"]
    assert [name for name, layer in found["layers"].items() if layer["needed"] and not layer["works"]] == []


def test_files_in_the_workspace_belong_to_its_owner(
    holt: Holt, identity: Identity, workspace: Path
) -> None:
    holt.sh("mkdir made && touch made/file && git init -q . && git status --porcelain").ok()

    for path in (workspace / "made", workspace / "made/file", workspace / ".git"):
        assert (path.stat().st_uid, path.stat().st_gid) == (identity.uid, identity.gid)


def test_the_system_is_read_only_and_the_rest_is_not_there(holt: Holt, secret: Path) -> None:
    probes = f"touch /usr/x /etc/x /x; cat {secret}; ls /var/log /boot"
    result = holt.sh(f"{probes}; touch /tmp/x /home/agent/x && id -u")

    assert result.out == "1000\n"


def test_loopback_is_the_only_network(holt: Holt) -> None:
    assert holt(["run", "--", "/usr/bin/python3", "-c", LOOPBACK]).ok().out == "to itself ['lo']\n"


def test_nothing_is_seen_of_the_host_s_cgroups(holt: Holt) -> None:
    result = holt.sh("cut -d: -f3 /proc/self/cgroup; ls -A /sys/fs/cgroup")

    assert set(result.out.split()) <= {"/"}


def test_a_program_is_built_and_run(holt: Holt) -> None:
    source = '#include <stdio.h>\nint main(void) { puts("built"); }\n'

    assert holt.sh("cc -x c -o program - && ./program", stdin=source).ok().out == "built\n"


def test_a_denied_call_is_reported_by_name(holt: Holt) -> None:
    assert "mount" in holt.sh("mount -t tmpfs none /tmp 2>/dev/null; true").ok().denials


def test_a_timeout_takes_daemons_with_it(holt: Holt) -> None:
    result = holt.sh("trap '' TERM; setsid sleep 1000 & wait", "--timeout", "1s", "--kill-after", "100ms")

    # The fixture nothing_left checks that the daemon is gone.
    assert (result.code, result.cause) == (124, "timeout")


# Before Linux 5.14 RLIMIT_NPROC counted a user's processes over all user namespaces.
def test_the_number_of_processes_has_its_limit(holt: Holt) -> None:
    result = holt.sh("for i in $(seq 40); do sleep 60 & done; echo unreached", "--pids", "20", "--timeout", "60s")

    assert "Resource temporarily unavailable" in result.err
    holt.sh("for i in $(seq 10); do sleep 0 & done; wait", "--pids", "20").ok()


def test_an_interactive_shell_has_a_terminal_of_its_own(terminal: Callable[..., Terminal]) -> None:
    shell = terminal(["run"], size=(33, 99))

    shell.expect(r"\$ ")
    shell.send("sh -c 'tty; stty size; sed -u s/typed/read/'\n")
    shell.expect(r"/dev/pts/0\s+33 99")
    shell.send("\x1a")
    shell.expect(r"Stopped[^$]+\$ ")
    shell.send("fg\n")
    shell.expect("sh -c")
    # If the command can read, it is in the foreground.
    shell.send("typed\n")
    shell.expect(r"read\s")
    shell.send("\x03")
    shell.expect(r"\$ ")
    shell.send("exit 3\n")
    assert shell.wait() == 3


@pytest.mark.parametrize("preset", ("strict", "standard", "permissive", "ci"))
def test_every_preset_works(preset: str, holt: Holt) -> None:
    # The strict preset requires Landlock.
    flags = ("--policy", preset, "--allow-degraded", "landlock")
    holt(["run", *flags, "--", "/usr/bin/python3", "-c", "import ssl, sqlite3, multiprocessing"]).ok()
