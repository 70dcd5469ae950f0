# SPDX-License-Identifier: Apache-2.0
"""Files of the host's that a session may have had its hands on.

A directory that a session can write, its workspace for one, may have links in it that a command has planted: what is
written to one lands where the command chose, and what is read from one is what it chose. Such links are not followed;
those that lie elsewhere are the host's own.
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
_LINKS_MAX = 40  # as in the kernel


def _is_inside(directory: int, writable: Sequence[str]) -> bool:
    where = os.readlink(f"/proc/self/fd/{directory}")
    roots = [os.path.realpath(each) for each in writable]
    return any(where == root or where.startswith(f"{root.rstrip('/')}/") for root in roots)


def _mode_of(directory: int, name: str, inside: bool) -> int:
    """0 where there is nothing. Raises UsageError at a link that is not followed."""
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=_is_in_proc(directory)).st_mode
    except FileNotFoundError:
        return 0
    if inside and stat.S_ISLNK(mode):
        where = os.readlink(f"/proc/self/fd/{directory}")
        raise UsageError(
            f"{where}/{name} is a link in a directory that the session can write, and not followed",
            hint="Name what it leads to, or a place that the session can't write.",
        )
    return mode


def _is_in_proc(directory: int) -> bool:
    """Whether links there are the kernel's: they may lead where no text can name."""
    where = os.readlink(f"/proc/self/fd/{directory}")
    return where == "/proc" or where.startswith("/proc/")


def _refuse_foreign(directory: int, name: str) -> None:
    """As the kernel does where fs.protected_symlinks is set: somebody else's link in a directory like /tmp."""
    link, above = os.stat(name, dir_fd=directory, follow_symlinks=False), os.stat(f"/proc/self/fd/{directory}")
    shared = stat.S_ISVTX | stat.S_IWOTH
    if above.st_mode & shared == shared and link.st_uid not in (os.geteuid(), above.st_uid):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


def _step(directory: int, name: str, mode: int, make: bool) -> int:
    """The directory below; the one above is closed, unless this fails."""
    if mode == 0 and make:
        os.mkdir(name, dir_fd=directory)
    below = os.open(name, _DIRECTORY | (0 if _is_in_proc(directory) else os.O_NOFOLLOW), dir_fd=directory)
    os.close(directory)
    return below


def _follow(directory: int, name: str, left: "list[str]") -> int:
    """Puts the parts of a link's text in front of those that are left; the directory to go on from."""
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
    """The directory of a file, its name there, and whether the session can write there.

    A link of the host's is taken by its text, since it may lead into a directory that the session can write.
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
    except OSError as error:  # the caller knows it by this name
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _replace(directory: int, name: str, fill: Fill, mode: int) -> None:
    """What is there may be another thing a moment later, so it is not opened."""
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
    """fill writes to the file, which is empty. Makes directories above it. Raises IsADirectoryError."""
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
    """The same, or to the name in a directory that is there; where."""
    try:
        write_file(target, fill, writable)
    except IsADirectoryError:
        target = target / name
        write_file(target, fill, writable)
    return target


def open_file(path: "str | os.PathLike[str]", writable: Sequence[str]) -> BinaryIO:
    """To be read."""
    with _above(Path(path), writable, make=False) as (directory, name, inside):
        if not inside:
            return open(f"/proc/self/fd/{directory}/{name}", "rb")
        _mode_of(directory, name, inside)
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # a FIFO would keep us waiting
        os.close(fd)
        raise UsageError(f"{os.fspath(path)} is no file")
    return os.fdopen(fd, "rb")
