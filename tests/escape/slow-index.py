# SPDX-License-Identifier: Apache-2.0
"""Writes a split .git/index that takes long to check. Run it inside, at the workspace's top. Its arguments are the
numbers of gitlinks and sparse directories in each part, and their depth."""

import hashlib
import os
import struct
import subprocess
import sys

LINKS, TREES, DEPTH = map(int, sys.argv[1:])
ABOVE = "a/" * DEPTH
LINK, DIRECTORY = 0o160000, 0o040000


def varint(value: int) -> bytes:
    out = [value & 0x7F]
    value >>= 7
    while value:
        value -= 1
        out.insert(0, 0x80 | (value & 0x7F))
        value >>= 7
    return bytes(out)


def index(names: "list[tuple[str, int]]", oid: bytes, rest: bytes = b"") -> bytes:
    out = [b"DIRC" + struct.pack(">II", 4, len(names))]
    before = ""
    for name, mode in names:
        kept = len(ABOVE) if before.startswith(ABOVE) and name.startswith(ABOVE) else 0
        head = bytes(24) + struct.pack(">I", mode) + bytes(12) + oid + struct.pack(">H", min(len(name), 0xFFF))
        out.append(head + varint(len(before) - kept) + name[kept:].encode() + b"\0")
        before = name
    body = b"".join(out) + rest
    return body + hashlib.sha1(body).digest()


def part(first: int) -> "list[tuple[str, int]]":
    links = [(f"{ABOVE}d{i:05}", LINK) for i in range(first * LINKS, (first + 1) * LINKS)]
    return links + [(f"{ABOVE}t{i:06}/", DIRECTORY) for i in range(first * TREES, (first + 1) * TREES)]


def main() -> None:
    head = subprocess.run(["git", "-C", "zz", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    oid, top = bytes.fromhex(head.strip()), os.getcwd()
    for _ in range(DEPTH):
        os.mkdir("a")
        os.chdir("a")
    for i in range(2 * LINKS):
        os.mkdir(f"d{i:05}")
        os.chmod(f"d{i:05}", 0)
    os.chdir(top)
    shared = b"\xab" * 20
    with open(f".git/sharedindex.{shared.hex()}", "wb") as out:
        out.write(index(part(0), oid))
    with open(".git/index.new", "wb") as out:
        # zz comes after the others, so it would be checked last.
        out.write(index([*part(1), ("zz", LINK)], oid, b"link" + struct.pack(">I", len(shared)) + shared))
    os.rename(".git/index.new", ".git/index")


main()
