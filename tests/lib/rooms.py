# SPDX-License-Identifier: Apache-2.0
"""The folders of the C sources and the includes between them.

    python3 tests/lib/rooms.py          prints the graph as a table: how many files of a folder include which other one
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# A folder may include itself and the folders before it in this list. helpers/ holds the protocols with programs inside.
ORDER = (
    "helpers", "base", "net", "syscalls", "routes", "policy", "store", "rpc", "streams", "git", "reach", "network", "wire", "confine", "resolve", "maker", "egress", "gateway", "links", "guards", "child",
    "outcome", "sandbox", "bwrap", "process", "files", "session", "inside", "keeper", "methods", "serve", "mcp", "cli", "main",
)

# A larger folder probably holds two subjects. cli/ has a file for each verb.
FILES_MAX, LINES_MAX, UNBOUNDED = 25, 5000, {"cli", "helpers"}

# A longer file probably holds two subjects, too.
FILE_LINES_MAX = 600

INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)


def room_of(parts: "tuple[str, ...]") -> str:
    """Returns the folder of a source, by the parts of its path."""
    if parts == ("runner", "main.c"):
        return "main"
    inner = parts[0] == "runner" or (parts[0] == "policy" and len(parts) > 2)
    return parts[1] if inner else parts[0]


def sources() -> "dict[str, list[Path]]":
    """Returns the C sources and headers of each folder."""
    found = defaultdict(list)
    for top in ("helpers", "policy", "runner"):
        for path in sorted((ROOT / top).rglob("*.[ch]")):
            found[room_of(path.relative_to(ROOT).parts)].append(path)
    return found


def target(path: Path, name: str) -> "str | None":
    """Returns the folder that an include leads to; None for a header that the build generates."""
    for start in (path.parent, ROOT, ROOT / "runner"):
        if (start / name).is_file():
            return room_of((start / name).resolve().relative_to(ROOT).parts)
    return None


def graph() -> "dict[str, Counter[str]]":
    """Returns the folders that each folder includes, with the number of its files that do."""
    edges: "dict[str, Counter[str]]" = {room: Counter() for room in sources()}
    for room, paths in sources().items():
        for path in paths:
            edges[room].update({target(path, name) for name in INCLUDE.findall(path.read_text())} - {None, room})
    return edges


def main() -> None:
    edges = graph()
    rooms = [room for room in ORDER if room in edges]
    width = max(map(len, rooms))
    print(" " * width, *(f"{room[:7]:>7}" for room in rooms))
    for room in reversed(rooms):
        print(f"{room:{width}}", *(f"{edges[room][other] or '':>7}" for other in rooms))


if __name__ == "__main__":
    sys.exit(main())
