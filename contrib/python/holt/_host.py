# SPDX-License-Identifier: Apache-2.0
"""Opens host files in directories that a session may have changed.

A directory that a session can write, such as its workspace, may have symlinks that a command has planted. Following one
would let the command choose the file that is written or read. So such symlinks are refused. Symlinks elsewhere belong
to the host and are followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Any, BinaryIO, Callable, Iterator, Sequence, Tuple

from .errors import UsageError

Fill = Callable[[BinaryIO], Any]

_DIRECTORY = os.O_PATH | os.O_DIRECTORY
_LINKS_MAX = 40  # the kernel's limit (MAXSYMLINKS)


def _is_inside(directory: int, writable: Sequence[str]) -> bool:
    where = os.readlink(f"/proc/self/fd/{directory}")
    roots = [os.path.realpath(each) for each in writable]
    return any(where == root or where.startswith(f"{root.rstrip('/')}/") for root in roots)


def _mode_of(directory: int, name: str, inside: bool) -> int:
    """Returns the mode of an entry, or 0 if it does not exist. Raises UsageError for a symlink that must not be followed.
    """
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=_is_in_proc(directory)).st_mode
    except FileNotFoundError:
        return 0
    if inside and stat.S_ISLNK(mode):
        where = os.readlink(f"/proc/self/fd/{directory}")
        raise UsageError(
            f"{where}/{name} is a symlink in a directory that the session can write, and is not followed",
            hint="Pass the path that it points to, or a path that the session cannot write.",
        )
    return mode


def _is_in_proc(directory: int) -> bool:
    """Whether a directory is in /proc. Symlinks there may have targets that no path can name."""
    where = os.readlink(f"/proc/self/fd/{directory}")
    return where == "/proc" or where.startswith("/proc/")


def _refuse_foreign(directory: int, name: str) -> None:
    """Refuses another user's symlink in a shared directory such as /tmp, as fs.protected_symlinks does (proc(5))."""
    link, above = os.stat(name, dir_fd=directory, follow_symlinks=False), os.stat(f"/proc/self/fd/{directory}")
    shared = stat.S_ISVTX | stat.S_IWOTH
    if above.st_mode & shared == shared and link.st_uid not in (os.geteuid(), above.st_uid):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


def _step(directory: int, name: str, mode: int, make: bool) -> int:
    """Opens a subdirectory, and closes its parent unless this fails."""
    if mode == 0 and make:
        os.mkdir(name, dir_fd=directory)
    below = os.open(name, _DIRECTORY | (0 if _is_in_proc(directory) else os.O_NOFOLLOW), dir_fd=directory)
    os.close(directory)
    return below


def _follow(directory: int, name: str, left: "list[str]") -> int:
    """Puts the parts of a symlink's target before the parts of the path that are left. Returns the directory to
    continue from."""
    _refuse_foreign(directory, name)
    text = os.readlink(name, dir_fd=directory)
    left.extend(reversed([part for part in text.split("/") if part not in ("", ".")]))
    if not text.startswith("/"):
        return directory
    root = os.open("/", _DIRECTORY)
    os.close(directory)
    return root


@contextlib.contextmanager
def _above(path: Path, writable: Sequence[str], make: bool) -> "Iterator[Tuple[int, str, bool]]":
    """Yields the directory of a file, its name there, and whether the session can write the directory.

    The path is followed step by step, because a symlink of the host may lead into a directory that the session can write.
    """
    left, links = list(reversed(Path(os.path.abspath(path)).parts[1:])), 0
    try:
        directory = os.open("/", _DIRECTORY)
        try:
            while True:
                name = left.pop() if left else "."
                inside = name != ".." and _is_inside(directory, writable)
                mode = _mode_of(directory, name, inside)
                if stat.S_ISLNK(mode):
                    links += 1
                    if links > _LINKS_MAX:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                    directory = _follow(directory, name, left)
                elif left or name == "..":
                    directory = _step(directory, name, mode, make)
                else:
                    break
            yield directory, name, inside
        finally:
            os.close(directory)
    except OSError as error:  # name the path that the caller has passed
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _replace(directory: int, name: str, fill: Fill, mode: int) -> None:
    """Writes a new file and renames it. The existing entry is never opened, since a command may swap it at any time."""
    beside = f".holt-{secrets.token_hex(8)}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(mode) or 0o666, dir_fd=directory)
    try:
        with os.fdopen(fd, "wb") as file:
            fill(file)
        os.replace(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=directory)
        raise


def write_file(path: Path, fill: Fill, writable: Sequence[str]) -> None:
    """Empties or makes the file, and its parent directories, and calls fill to write it. Raises IsADirectoryError."""
    with _above(path, writable, make=True) as (directory, name, inside):
        mode = _mode_of(directory, name, inside)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if inside:
            _replace(directory, name, fill, mode)
        else:
            with open(f"/proc/self/fd/{directory}/{name}", "wb") as file:
                fill(file)


def save_file(target: Path, name: str, fill: Fill, writable: Sequence[str]) -> Path:
    """Writes target like write_file(), or target/name if target is a directory. Returns the path of the file."""
    try:
        write_file(target, fill, writable)
    except IsADirectoryError:
        target = target / name
        write_file(target, fill, writable)
    return target


def open_file(path: "str | os.PathLike[str]", writable: Sequence[str]) -> BinaryIO:
    """Opens a file for reading."""
    with _above(Path(path), writable, make=False) as (directory, name, inside):
        if not inside:
            return open(f"/proc/self/fd/{directory}/{name}", "rb")
        _mode_of(directory, name, inside)
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # reading a FIFO would block
        os.close(fd)
        raise UsageError(f"{os.fspath(path)} is not a regular file")
    return os.fdopen(fd, "rb")
