# SPDX-License-Identifier: Apache-2.0
"""Finds the program holt, and runs `holt serve` in a process."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from typing import IO, Iterator, Mapping, Optional, Sequence, Tuple

from .errors import HoltNotFoundError


def _trusted(writable: Sequence[str]) -> Iterator[str]:
    """Yields the directories of the PATH in which holt may be searched.

    npm puts node_modules/.bin of a project first. That directory is in the workspace of many sandboxes, so a command
    inside could put another program there."""
    avoided = [os.path.join(os.path.realpath(path), "") for path in writable]
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(directory) and not directory.rstrip("/").endswith("/node_modules/.bin"):
            if not os.path.join(os.path.realpath(directory), "").startswith(tuple(avoided)):
                yield directory


def find_holt(holt: Optional[str] = None, writable: Sequence[str] = ()) -> str:
    """Returns the path of the program: the argument, $HOLT, or holt in the PATH. Raises HoltNotFoundError.

    writable  directories that commands can write; there and below, holt is not searched
    """
    named = holt or os.environ.get("HOLT")
    found = shutil.which(named or "holt", path=os.pathsep.join(_trusted(writable)))
    if found:
        return os.path.abspath(found)
    where = "given" if holt else "of $HOLT" if named else "in the PATH"
    passed_over = shutil.which(named or "holt")
    if passed_over and os.path.isabs(passed_over):
        raise HoltNotFoundError(
            f"the program {passed_over} is not used, because a command could have put it there",
            hint="Commands can write its directory, or it is in a node_modules/.bin. If you trust it, name it: "
            f"HOLT={passed_over}. Otherwise install holt elsewhere, or choose another workspace.",
        )
    raise HoltNotFoundError(
        f"the program {named or 'holt'} was not found ({where})",
        hint="Build and install holt (see its README.md), or set HOLT to its path: HOLT=~/holt/build/runner/holt",
    )


def start_serve(
    holt: Optional[str], env: Mapping[str, str], writable: Sequence[str] = ()
) -> "Tuple[subprocess.Popen[bytes], socket.socket, IO[bytes]]":
    """Starts `holt serve` and returns its process, the socket to its stdin and stdout, and the file of its stderr.

    env       environment variables in addition to this process's
    writable  see find_holt()

    Raises HoltNotFoundError.
    """
    program = find_holt(holt, writable)
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
