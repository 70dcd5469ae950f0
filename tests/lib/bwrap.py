# SPDX-License-Identifier: Apache-2.0
"""Runs bubblewrap's command line, by holt or by the host's bubblewrap."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lib.identity import Identity
from lib.sandbox import HANGS, Arg, Result

SYSTEM = ("--ro-bind", "/", "/")  # the whole host, read-only
PRIVATE = (*SYSTEM, "--dev", "/dev", "--proc", "/proc", "--unshare-all")
PEER = shutil.which("bwrap", path="/usr/bin:/usr/local/bin")


class Bwrap:
    """Calls one of the two programs as an identity, in one directory."""

    def __init__(self, words: "list[Arg]", identity: Identity, cwd: Path) -> None:
        self.words, self.identity, self.cwd, self.fds = words, identity, cwd, list[int]()

    def file(self, content: bytes = b"") -> str:
        """Returns the number of a descriptor from which this content can be read."""
        reader = os.memfd_create("bwrap-test", 0)
        os.write(reader, content)
        os.lseek(reader, 0, os.SEEK_SET)
        return self.give(reader)

    def give(self, fd: int) -> str:
        """Passes a descriptor to the next call, under the same number, and takes ownership of it."""
        self.fds.append(fd)
        return str(fd)

    def start(self, *args: Arg, env: "Mapping[str, str] | None" = None, cwd: "Path | None" = None, **options: Any) -> "subprocess.Popen[bytes]":
        words = self.identity.as_user(self.identity.argv([*self.words, *args]))
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen(words, env=self.identity.environment(env), cwd=cwd or self.cwd, pass_fds=self.fds, **options)
        while self.fds:
            os.close(self.fds.pop())
        return process

    def __call__(self, *args: Arg, **options: Any) -> Result:
        with self.start(*args, **options) as process:
            out, err = process.communicate(timeout=HANGS)
        return Result(tuple(map(str, args)), process.returncode, out, err)

    def sh(self, script: str, *args: Arg, **options: Any) -> Result:
        """Runs a shell script, with these options in front."""
        return self(*args, "--", "sh", "-c", script, **options)
