# SPDX-License-Identifier: Apache-2.0
"""A program that stands in for holt, and notes the messages between a client and `holt serve`.

    noted_serve.py serve            runs `$NOTED_HOLT serve`, and writes its messages to a file in $NOTED_DIRECTORY
    noted_serve.py VERB ...         becomes `$NOTED_HOLT VERB ...`

Each line of the file is a message after ">" (from the client) or "<" (to the client), in their order.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from typing import IO


class Direction:
    """Copies lines from one descriptor to another, and notes each before it is passed on."""

    def __init__(self, mark: bytes, source: int, target: int) -> None:
        self.mark, self.source, self.target = mark, source, target
        self.begun = b""

    def copy(self, notes: IO[bytes]) -> bool:
        """Returns False at the end."""
        data = os.read(self.source, 1 << 20)
        *lines, self.begun = (self.begun + data).split(b"\n")
        notes.writelines(self.mark + line + b"\n" for line in lines)
        notes.flush()
        while data:
            data = data[os.write(self.target, data):]
            if not data:
                return True
        os.close(self.target)
        return False


def serve(holt: str, directory: str) -> int:
    process = subprocess.Popen([holt, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    directions = {
        0: Direction(b">", 0, process.stdin.fileno()), process.stdout.fileno(): Direction(b"<", process.stdout.fileno(), 1),
    }
    poll = select.poll()
    poll.register(1, 0)  # only errors: the client has closed the output
    for source in directions:
        poll.register(source, select.POLLIN)
    with open(os.path.join(directory, f"{os.getpid()}.messages"), "wb") as notes:
        while directions:
            for ready, _ in poll.poll():
                if ready == 1:
                    os.close(process.stdout.fileno())
                    return process.wait()
                if ready in directions and not directions[ready].copy(notes):
                    poll.unregister(ready)
                    del directions[ready]
                    if ready != 0:
                        return process.wait()
    return process.wait()


if __name__ == "__main__":
    real = os.environ["NOTED_HOLT"]
    if sys.argv[1:] != ["serve"]:
        os.execv(real, [real, *sys.argv[1:]])
    sys.exit(serve(real, os.environ["NOTED_DIRECTORY"]))
