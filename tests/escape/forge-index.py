# SPDX-License-Identifier: Apache-2.0
"""Writes a .git/index that git itself would not write. Run it inside, at the workspace's top, with the kind as its
argument.

In each kind, git finds a gitlink to the repository at sub (or d/sub), but in bytes where a simpler reader would not
look for it. The kind "file" gives git a program at the path of the second argument.
"""

import hashlib
import os
import struct
import subprocess
import sys

FILE, LINK, DIRECTORY = 0o100644, 0o160000, 0o040000


def git(*args: str, text: str = "") -> str:
    return subprocess.run(["git", *args], input=text, capture_output=True, text=True, check=True).stdout.strip()


def entry(name: str, mode: int, oid: str, length: int | None = None, flags: int | None = None) -> bytes:
    """length is the name's length that the entry claims, and for which it is padded."""
    length = len(name) if length is None else length
    head = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + bytes.fromhex(oid)
    head += struct.pack(">H", length if flags is None else length | 0x4000)
    head += b"" if flags is None else struct.pack(">H", flags)
    return (head + name.encode()).ljust((len(head) + length + 8) & ~7, b"\0")


def index(*entries: bytes, rest: bytes = b"", version: int = 2) -> bytes:
    body = b"DIRC" + struct.pack(">II", version, len(entries)) + b"".join(entries) + rest
    return body + hashlib.sha1(body).digest()


def of_two_hashes(blob: str, link: str) -> bytes:
    """An index that can be read with two lengths of hashes.

    With 20 bytes it has the entries file and sub, and an extension past the end, which git skips. With 32 bytes it has
    two entries; the long name of the first contains all of that.
    """
    body = bytearray(index(entry("file", FILE, blob), entry("sub", LINK, link), rest=b"JUNK\x7f\xff\xff\xff")[:-20])
    length = len(body) - 86 + 40
    body[84:86] = struct.pack(">H", length)
    body = body.ljust(12 + ((74 + length + 40 + 8) & ~7), b"\0")
    body += entry("z", FILE, "02" * 32)
    return bytes(body) + bytes(32)


def sparse(blob: str, link: str, name: str) -> bytes:
    tree = git("mktree", "--missing", text=f"160000 commit {link}\tsub\n")
    directory = entry(name, DIRECTORY, tree, flags=0x4000)
    file = entry("file", FILE, blob)
    return index(*((directory, file) if name < "file" else (file, directory)), rest=b"sdir\0\0\0\0", version=3)


def many_blocks() -> bytes:
    """Each extension makes git's threads, and every check of them, read all entries."""
    entries = [entry(f"f{i:07}", FILE, "01" * 20) for i in range(50000)]
    block = b"IEOT" + struct.pack(">4I", 12, 1, 12, len(entries))
    return index(*entries, rest=block * 100000)


def one_file(path: str) -> bytes:
    blob = git("hash-object", "-w", "--stdin", text="#!/bin/sh\n")
    names = sorted((("file", FILE, git("rev-parse", "HEAD:file")), (path, 0o100755, blob)))
    return index(*(entry(*each) for each in names))


def main() -> None:
    kind = sys.argv[1]
    if kind == "file":
        with open(".git/index", "wb") as out:
            out.write(one_file(sys.argv[2]))
        return
    path = "evil" if kind == "git-directory" else "d/sub" if kind.startswith("sparse") else "sub"
    link, blob = git("-C", path, "rev-parse", "HEAD"), git("rev-parse", "HEAD:file")
    file = entry("file", FILE, blob)
    make = {
        "dot": lambda: index(entry("./sub", LINK, link), file),
        "slash": lambda: index(file, entry("sub/", LINK, link)),
        "slashes": lambda: index(file, entry("sub//.", LINK, link)),
        "up": lambda: index(entry(".git/../sub", LINK, link), file),
        "absolute": lambda: index(entry(os.getcwd() + "/sub", LINK, link), file),
        "git-directory": lambda: index(entry(".git/evil", LINK, link), file),
        "length": lambda: index(file, entry("sub", LINK, link, length=2)),
        "hashes": lambda: of_two_hashes(blob, link),
        "sparse": lambda: sparse(blob, link, "d/"),
        "sparse-below": lambda: sparse(blob, link, "lib/d/"),
        "itself": lambda: index(entry(".", LINK, link), file),
        "long": lambda: index(file, entry("n" * 300, LINK, link)),
        "blocks": many_blocks,
    }[kind]
    with open(".git/index", "wb") as out:
        out.write(make())


main()
