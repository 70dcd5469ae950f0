# SPDX-License-Identifier: Apache-2.0
"""Finds the program holt, and runs `holt serve` in a process."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from typing import IO, Mapping, Optional, Tuple

from .errors import HoltNotFoundError


def find_holt(holt: Optional[str] = None) -> str:
    """Returns the path of the program: the argument, $HOLT, or holt in the PATH. Raises HoltNotFoundError."""
    named = holt or os.environ.get("HOLT")
    found = shutil.which(named or "holt")
    if found:
        return os.path.abspath(found)
    where = "given" if holt else "of $HOLT" if named else "in the PATH"
    raise HoltNotFoundError(
        f"the program {named or 'holt'} was not found ({where})",
        hint="Build and install holt (see its README.md), or set HOLT to its path: HOLT=~/holt/build/runner/holt",
    )


def start_serve(
    holt: Optional[str], env: Mapping[str, str]
) -> "Tuple[subprocess.Popen[bytes], socket.socket, IO[bytes]]":
    """Starts `holt serve` and returns its process, the socket to its stdin and stdout, and the file of its stderr.

    env  environment variables in addition to this process's. Raises HoltNotFoundError.
    """
    program = find_holt(holt)
    ours, theirs = socket.socketpair()
    stderr = tempfile.TemporaryFile()
    try:
        process = subprocess.Popen(
            [program, "serve"], stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=stderr,
            env={**os.environ, **env}, start_new_session=True,
        )
    except OSError as error:
        ours.close()
        stderr.close()
        raise HoltNotFoundError(f"{program} can't be started: {error.strerror}") from error
    finally:
        theirs.close()
    return process, ours, stderr


def end_serve(process: "subprocess.Popen[bytes]", patience: float = 10) -> None:
    """Waits for the process to end, and kills it after `patience` seconds."""
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_words(stderr: "IO[bytes]") -> str:
    """Reads what the program has written to its stderr, and closes the file."""
    said = ""
    with contextlib.suppress(OSError, ValueError):
        stderr.seek(0)
        said = stderr.read().decode(errors="replace").strip()
    stderr.close()
    return said
