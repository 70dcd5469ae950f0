# SPDX-License-Identifier: Apache-2.0
"""Reads and writes directory trees of the host, for transfers of whole directories.

Each entry is opened below the descriptor of its directory, and no symlink is followed. A command that can write the
tree cannot make this code read or write elsewhere. Symlinks are copied as such, if they stay inside the tree.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Generator, Iterator, List, Optional, Sequence, Tuple

from ._contents import copy_contents
from ._host import _above, _mode_of
from .errors import ExistsError, LimitError, UsageError

DEPTH_MAX, PATH_MAX, ENTRIES_MAX = 1024, 4095, 10_000_000
"""The limits of holt cp -r: nested directories, bytes of a path below the top, and entries."""

_HERE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def temporary_name() -> str:
    """Returns a new name for a temporary entry. If the transfer is killed, holt removes the entry."""
    return f".holt-{secrets.token_hex(8)}"


def link_stays(path: str, target: str) -> bool:
    """Whether a symlink at path, relative to the top, stays inside the tree. Its target may only climb at its start, so
    that links cannot be combined to lead out; see runner/cli/links.c."""
    depth, named = path.count("/"), False
    if not target or target.startswith("/") or len(os.fsencode(target)) > PATH_MAX:
        return False
    for part in target.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            named = True
        elif named or depth == 0:
            return False
        else:
            depth -= 1
    return True


@dataclass
class Entry:
    """An entry of a tree.

    path    relative to the top
    mode    the value of stat(2)
    fd      the open regular file; the caller closes it. Otherwise -1.
    target  the target of a symlink
    """

    path: str
    mode: int
    fd: int = -1
    target: str = ""


def open_top(source: "str | os.PathLike[str]", writable: Sequence[str]) -> int:
    """Opens a directory of the host. Symlinks that the session can write are refused."""
    with _above(Path(source), writable, make=False) as (directory, name, inside):
        _mode_of(directory, name, inside)
        return os.open(name, _HERE & ~(0 if inside else os.O_NOFOLLOW), dir_fd=directory)


def _opened(directory: int, name: str, path: str) -> "Tuple[Entry, int]":
    """Returns an entry, and the descriptor of a subdirectory or -1."""
    mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        return Entry(path, mode, target=os.readlink(name, dir_fd=directory)), -1
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return Entry(path, mode), -1
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    mode = os.fstat(fd).st_mode  # it may have been replaced meanwhile
    if stat.S_ISDIR(mode):
        return Entry(path, mode), fd
    if stat.S_ISREG(mode):
        return Entry(path, mode, fd), -1
    os.close(fd)
    return Entry(path, mode), -1


def walk(top: int) -> "Generator[Entry, None, None]":
    """Yields all entries below an open directory, each directory before its contents."""
    levels: List[Tuple[int, str, List[str]]] = [(os.dup(top), "", sorted(os.listdir(top), reverse=True))]
    count = 0
    try:
        while levels:
            directory, path, names = levels[-1]
            if not names:
                os.close(levels.pop()[0])
                continue
            name = names.pop()
            below = f"{path}{name}"
            count += 1
            if len(levels) > DEPTH_MAX or len(os.fsencode(below)) > PATH_MAX or count > ENTRIES_MAX:
                raise LimitError(
                    f"cannot copy {below[:200]!r}: a copy may have {DEPTH_MAX} nested directories, paths of {PATH_MAX} bytes "
                    f"and {ENTRIES_MAX} entries", hint="Pack the directory with tar, and upload the archive."
                )
            entry, fd = _opened(directory, name, below)
            if fd >= 0:
                levels.append((fd, f"{below}/", sorted(os.listdir(fd), reverse=True)))
            yield entry
    finally:
        for level in levels:
            os.close(level[0])


class Tree:
    """A new directory of the host, which is filled under a temporary name and then renamed to its own."""

    def __init__(self, target: Path, writable: Sequence[str]) -> None:
        with _above(target, writable, make=True) as (above, self._name, _):
            self._above = os.dup(above)
        self._temporary, self._top = temporary_name(), -1
        try:
            self._check_free()
            os.mkdir(self._temporary, dir_fd=self._above)
            self._top = os.open(self._temporary, _HERE, dir_fd=self._above)
        except BaseException:
            os.close(self._above)
            raise

    @property
    def temporary(self) -> str:
        return self._temporary

    def _check_free(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.stat(self._name, dir_fd=self._above, follow_symlinks=False)
            raise ExistsError(
                f"{self._name!r} already exists", errno="EEXIST",
                hint="download() does not merge directories. Remove it, or choose another target.",
            )

    @contextlib.contextmanager
    def _in(self, path: str) -> "Iterator[Tuple[int, str]]":
        """Yields the directory of an entry, and its name there."""
        *above, name = path.split("/")
        if not name or name in (".", "..") or any(part in ("", ".", "..") for part in above):
            raise UsageError(f"{path!r} is not the path of an entry")
        directory = os.dup(self._top)
        try:
            for part in above:
                below = os.open(part, _HERE, dir_fd=directory)
                os.close(directory)
                directory = below
            yield directory, name
        finally:
            os.close(directory)

    def mkdir(self, path: str, mode: int) -> None:
        with self._in(path) as (directory, name):
            os.mkdir(name, mode & 0o777 | 0o700, dir_fd=directory)

    def link(self, path: str, target: str) -> None:
        with self._in(path) as (directory, name):
            os.symlink(target, name, dir_fd=directory)

    def write(self, path: str, mode: int, file: FileIO) -> None:
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._in(path) as (directory, name):
            with file, os.fdopen(os.open(name, how, mode & 0o777, dir_fd=directory), "wb") as out:
                copy_contents(file, out)

    def finish(self) -> None:
        """Gives the directory its own name. Raises ExistsError."""
        self._check_free()
        os.rename(self._temporary, self._name, src_dir_fd=self._above, dst_dir_fd=self._above)
        self._temporary = ""

    def close(self) -> None:
        """Removes the directory unless it is finished."""
        if self._temporary:
            shutil.rmtree(f"/proc/self/fd/{self._above}/{self._temporary}", ignore_errors=True)
        os.close(self._top)
        os.close(self._above)


def name_of(path: "str | os.PathLike[str]") -> Optional[str]:
    """Returns the last part of a host path, also of "." and "dir/"."""
    return os.path.basename(os.path.abspath(path)) or None


