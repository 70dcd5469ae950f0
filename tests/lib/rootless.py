# SPDX-License-Identifier: Apache-2.0
"""rootless.py FIRST FLAGS COMMAND [ARG...]: runs COMMAND as root of a user namespace with 65536 ids from the host's FIRST on.
The other FLAGS of unshare(2) add new namespaces. See hosts.rootless().
"""

from __future__ import annotations

import ctypes
import os
import sys


def become_root(flags: int, asked: int, mapped: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(flags) < 0:
        sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
    os.write(asked, b".")
    os.read(mapped, 1)
    os.setgroups([])
    os.setgid(0)
    os.setuid(0)


def main() -> None:
    first, flags, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    asked, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        become_root(flags, asked[1], mapped[0])
        os.execvp(command[0], command)
    os.read(asked[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w") as file:
            file.write(f"0 {first} 65536")
    os.write(mapped[1], b".")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


main()
