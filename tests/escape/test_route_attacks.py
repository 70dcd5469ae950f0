# SPDX-License-Identifier: Apache-2.0
"""Attacks on routes: trees, programs and services that try to get more than a route gives."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.rootfs import make_rootfs
from lib.sandbox import Holt
from lib.tools import needs
from lib.upstream import KEY

pytestmark = needs("curl", "python3")

ENV = {"ACME_KEY": KEY}
HOST = "api.acme.example"
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def policy(place: Path, identity: Identity) -> Callable[..., Path]:
    """Makes a policy with routes: the first one is "acme", the second one "other"."""

    def make(*urls: str, **route: Any) -> Path:
        path = place / "policy.json"
        routes = [{"name": name, "upstream": url, "header": {"authorization": "Bearer {env:ACME_KEY}"},
                   "env": {"T": "{token}", f"{name.upper()}_URL": "{url}"}} for name, url in zip(("acme", "other"), urls)]
        routes[0].update(route)
        path.write_text(json.dumps({"holt": 1, "bridge": {"routes": routes}}))
        return identity.own(path)

    return make


# --- trees of --rootfs ---

@pytest.fixture
def tree(place: Path, identity: Identity) -> Path:
    """A system tree in which the certificates of holt-gateway lead to a file of the host."""
    secret = identity.own(place / "secret") if (place / "secret").write_text("the host's secret\n") else None
    made = make_rootfs(place / "tree", identity)
    for directory in ("etc/holt", "etc/ssl/certs"):
        (made / directory).mkdir(parents=True)
    for name in ("ca.crt", "ca-bundle.crt", "cacerts"):
        (made / "etc/holt" / name).symlink_to(secret or "")
    (made / "etc/ssl/certs/ca-certificates.crt").write_text("old\n")
    return made


@pytest.mark.identities("user", "root", "nested")
@needs("busybox", "openssl")
@pytest.mark.parametrize("etc", (["--etc", "all"], ["--etc", "holt"], []))
def test_a_tree_cannot_show_a_file_of_the_host(etc: list[str], holt: Holt, policy: Callable[..., Path], tree: Path) -> None:
    result = holt(["run", "--rootfs", tree, *etc, "--policy", policy(NOWHERE, terminate_tls=[HOST]), "--", "sh", "-c",
                   "cat /etc/ssl/certs/ca-certificates.crt /etc/holt/*"], env=ENV)
    assert "the host's secret" not in result.out, "the sandbox shows a file of the host"
    assert "BEGIN CERTIFICATE" in result.ok().out


@needs("busybox", "openssl")
@pytest.mark.parametrize("kind", ("directory", "loop", "dangling", "outside", "fifo"))
def test_a_tree_with_odd_certificates(kind: str, holt: Holt, policy: Callable[..., Path], tree: Path, place: Path) -> None:
    path = tree / "etc/ssl/certs/ca-certificates.crt"
    path.unlink()
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"loop": path.name, "dangling": "/nothing", "outside": place / "secret"}[kind])
    result = holt(["run", "--rootfs", tree, "--policy", policy(NOWHERE, terminate_tls=[HOST]), "--", "sh", "-c", "cat /etc/holt/ca.crt"], env=ENV)
    assert "BEGIN CERTIFICATE" in result.ok().out
    assert (place / "secret").read_text() == "the host's secret\n"


# --- programs ---

HALF = """
import socket, time
for _ in range(20):
    s = socket.create_connection(("api.acme.example", 443)); s.sendall(b"\\x16\\x03\\x01\\x02\\x00\\x01"); kept = [s, *globals().get("kept", [])]
print("open", flush=True)
time.sleep(60)
"""


def gateways(pid: int) -> set[int]:
    """The processes of holt-gateway below a process."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        parents[int(path.parent.name)] = (name, int(rest.split()[1]))

    def is_below(child: int) -> bool:
        return child == pid or (child in parents and is_below(parents[child][1]))

    return {child for child, (name, _) in parents.items() if name == "holt-gateway" and is_below(child)}


def ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@needs("openssl")
def test_half_handshakes_keep_no_processor_busy(holt: Holt, policy: Callable[..., Path]) -> None:
    with holt.start(["run", "--policy", policy(NOWHERE, terminate_tls=[HOST]), "--", "python3", "-c", HALF], env=ENV) as running:
        assert running.readline() == "open"
        found = gateways(running.pid)
        before = sum(map(ticks, found))
        time.sleep(1)
        spent = sum(map(ticks, found)) - before
        assert found and spent < 10, f"holt-gateway spins: {spent}"
        running.kill()
