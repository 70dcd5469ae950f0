# SPDX-License-Identifier: Apache-2.0
"""Shared code of the session benches: a place and an ordinary user to run as, sessions, and their keepers."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOLT = HERE.parents[1] / "build" / "runner" / "holt"
ORDINARY_ID = 61234  # no passwd entry needed

Row = tuple[str, str, str]


class Keeper:
    """A connection to a live session."""

    def __init__(self, directory: Path) -> None:
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"/proc/self/fd/{fd}/keeper.sock")
        os.close(fd)
        proof = os.open("/proc/self/ns/user", os.O_RDONLY)
        socket.send_fds(self.socket, [b"\n"], [proof])
        os.close(proof)
        self.lines = self.socket.makefile("rb")

    def send(self, number: int, method: str, **params: object) -> None:
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.socket.sendall(json.dumps(request).encode() + b"\n")

    def call(self, method: str, **params: object) -> dict[str, object]:
        self.send(1, method, **params)
        answer = json.loads(self.lines.readline())
        assert "result" in answer, answer
        return answer["result"]


class Sessions:
    def __init__(self, holt: Path) -> None:
        self.holt, self.base = holt, Path(os.environ["HOME"]) / ".local/share/holt/sessions"

    def run(self, *words: str) -> None:
        subprocess.run([self.holt, *words], check=True, stdout=subprocess.DEVNULL)

    @contextmanager
    def live(self, name: str, *flags: str) -> Iterator[Keeper]:
        self.run("create", name, *flags)
        self.run("exec", name, "--", "true")
        try:
            yield Keeper(self.base / name)
        finally:
            self.run("rm", name)


@contextmanager
def as_root() -> Iterator[bool]:
    """Yields whether root started the bench."""
    ids = os.getresuid()
    if ids[2] == 0:
        os.setresuid(0, 0, 0)
    try:
        yield ids[2] == 0
    finally:
        os.setresuid(*ids)


@contextmanager
def place(holt: Path, programs: tuple[str, ...] = ()) -> Iterator[tuple[Sessions, Path]]:
    """Yields a home with the sessions of a copy of holt, and the directory of that copy and of the compiled programs. Runs as
    an ordinary user."""
    with tempfile.TemporaryDirectory(prefix="holt-bench-", dir="/var/tmp") as directory:
        top = Path(directory)
        build, home = top / "build", top / "home"
        build.mkdir()
        home.mkdir()
        for name in programs:
            subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", build / name, HERE / f"{name}.c"], check=True)
        for name in ("holt", "holt-full", "holt-egress"):
            shutil.copy(holt.parent / name, build / name)
        os.environ["HOME"] = str(home)
        if os.getuid() == 0:
            top.chmod(0o755)
            os.chown(home, ORDINARY_ID, ORDINARY_ID)
            os.setgroups([])
            os.setresgid(ORDINARY_ID, ORDINARY_ID, 0)
            os.setresuid(ORDINARY_ID, ORDINARY_ID, 0)
        os.chdir(home)
        try:
            yield Sessions(build / "holt"), build
        finally:
            if os.getresuid()[2] == 0:
                os.setresuid(0, 0, 0)
            os.chdir("/")


def print_rows(rows: list[Row], runs: int) -> None:
    print(f"Linux {os.uname().release}, {os.cpu_count()} CPUs, ordinary user, {runs} runs each, medians\n")
    for what, measured, budget in rows:
        print(f"{what:<50} {measured:<60} {budget}")
