# SPDX-License-Identifier: Apache-2.0
"""Ioctls of file systems change neither flags nor generations of files. test_snapshots.py tests those that make
snapshots."""

from __future__ import annotations

import pytest

from lib.sandbox import Holt

ALL = pytest.mark.identities("user", "root", "nested")

# The result that a program gets: the name of an errno, or "done".
ASK = """
import errno, fcntl, os, sys
file = open(sys.argv[1] + "/file", "w+")
for request in sys.argv[2:]:
    try:
        fcntl.ioctl(file, int(request, 16), bytearray(256))
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


@ALL
@pytest.mark.parametrize("where", ("/tmp", "."))
def test_a_file_keeps_its_flags_and_its_generation(where: str, holt: Holt) -> None:
    """FS_IOC_SETFLAGS can make a directory whose names ignore case (.GIT), if the file system supports it.
    FS_IOC_SETVERSION can forge a file handle."""
    asked = ("0x40086602", "0x40087602", "0x401c5820")
    answers = holt(["run", "--", "python3", "-c", ASK, where, *asked]).ok().out.split()
    assert answers == ["ENOTTY"] * len(asked)


@ALL
def test_file_setattr_cannot_change_flags(holt: Holt) -> None:
    script = (
        "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); open('/tmp/f', 'w')\n"
        "r = libc.syscall(469, -100, b'/tmp/f', ctypes.create_string_buffer(24), 24, 0)\n"
        "print(r, os.strerror(ctypes.get_errno()))"
    )
    assert holt(["run", "--", "python3", "-c", script]).ok().out == "-1 Operation not supported\n"
