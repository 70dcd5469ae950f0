# SPDX-License-Identifier: Apache-2.0
"""A person at a terminal: the test holds the other end of a pty."""

from __future__ import annotations

import array
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from typing import Any

from lib.identity import Identity
from lib.sandbox import HANGS


def pending_input(fd: int) -> int:
    """Returns how many bytes of input wait in the terminal fd (ioctl_tty(2), FIONREAD)."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


class Terminal:
    """A command whose controlling terminal is a pty; a context manager.

    The command itself leads the session, like a program that replaced a shell by exec. output holds everything that it has
    printed, and initial holds the terminal's modes before it started.

        own          False: the terminal stays root's, like under su(1); only if root runs the suite.
        controlling  False: the command's session has no controlling terminal, like under setsid(1).
    """

    def __init__(
        self,
        identity: Identity,
        argv: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (24, 80),
        own: bool = True,
        controlling: bool = True,
    ) -> None:
        self.output = ""
        self.controller, self.slave = pty.openpty()
        self.resize(*size)
        self.initial = self.modes()
        if os.geteuid() == 0 and own:
            os.chown(self.slave, identity.uid, identity.gid)
        slave = self.slave
        # setsid(1) is used because a preexec_fn forks the whole suite.
        leader = ["setsid", "--ctty"] if controlling else []
        self.process = subprocess.Popen(
            [*leader, *identity.as_user(argv)], stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
            env=identity.environment(env), start_new_session=not controlling,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.controller)
        os.close(self.slave)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.controller, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, text: str) -> None:
        """Types text: "\\x03" is Ctrl-C, "\\x1a" Ctrl-Z, "\\x04" the end of input."""
        os.write(self.controller, text.encode())

    def expect(self, pattern: str, timeout: float = HANGS) -> re.Match[str]:
        """Waits until the output contains pattern, and removes it and everything before it from output."""
        deadline = time.monotonic() + timeout
        while not (match := re.search(pattern, self.output)):
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"no {pattern!r} on the terminal, but {self.output!r}")
        self.output = self.output[match.end() :]
        return match

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self.controller], [], [], max(timeout, 0))
        if ready:
            self.output += os.read(self.controller, 65536).decode(errors="replace")
        return bool(ready)

    def wait(self, timeout: float = HANGS) -> int:
        """Returns the command's exit status (negative for a signal). output then holds all of its output."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"still running on the terminal, which shows {self.output!r}")
            self._read(0.02)
        while self._read(0):
            pass
        return self.process.returncode

    def interrupt(self, sig: int = signal.SIGTERM) -> None:
        self.process.send_signal(sig)

    def modes(self) -> list[Any]:
        """All settings that "stty" shows."""
        return termios.tcgetattr(self.slave)

    def raw(self) -> bool:
        """Whether the terminal passes every key on unchanged, even Ctrl-C. A shell's line editor wants Ctrl-C as a signal."""
        return not self.modes()[3] & termios.ISIG

    def until_raw(self, timeout: float = HANGS) -> None:
        deadline = time.monotonic() + timeout
        while not self.raw():
            assert time.monotonic() < deadline, "nobody takes the terminal over"
            time.sleep(0.005)

    def until_a_job_has_it(self, timeout: float = HANGS) -> None:
        """Waits until a job of the shell that leads the session is in the foreground."""
        deadline = time.monotonic() + timeout
        while os.tcgetpgrp(self.controller) == self.process.pid:
            assert time.monotonic() < deadline, "the shell keeps the terminal"
            time.sleep(0.005)

    def pushed(self) -> int:
        """Number of typed bytes that nobody has read."""
        attributes = termios.tcgetattr(self.slave)
        attributes[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        return pending_input(self.slave)


class Answering(Terminal):
    """A terminal that answers queries like xterm, by typing the answers after some time.

    slow  seconds before an answer
    """

    ANSWERS = (
        (rb"\x1b\[5n", b"\x1b[0n"),
        (rb"\x1b\[6n", b"\x1b[1;1R"),
        (rb"\x1b\[0?c|\x1bZ", b"\x1b[?6c"),
        (rb"\x1b\[21t", b"\x1b]l; touch pwned\x1b\\"),
        (rb"\x1b\]10;\?(\x07|\x1b\\)", b"\x1b]10;rgb:0000/0000/0000\x1b\\"),
        (rb"\x05", b"answerback"),
    )
    QUERY = re.compile(rb"|".join(b"(?P<q%d>%s)" % (i, query) for i, (query, _) in enumerate(ANSWERS)))

    def __init__(self, *args: Any, slow: float = 0.05, **options: Any) -> None:
        self.slow = slow
        self.answered = 0
        self._unread = b""
        super().__init__(*args, **options)

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self.controller], [], [], max(timeout, 0))
        if ready:
            data = os.read(self.controller, 65536)
            self.output += data.decode(errors="replace")
            self._answer(data)
        return bool(ready)

    def _answer(self, data: bytes) -> None:
        self._unread += data
        end, answers = 0, b""
        for match in self.QUERY.finditer(self._unread):
            answers += next(self.ANSWERS[int(name[1:])][1] for name, text in match.groupdict().items() if text)
            end = match.end()
        self._unread = self._unread[end:][-32:]
        if answers:
            time.sleep(self.slow)
            os.write(self.controller, answers)
            self.answered += 1

    def typed(self) -> bytes:
        """Removes and returns typed input that nobody has read."""
        attributes = termios.tcgetattr(self.slave)
        attributes[0] &= ~termios.ICRNL
        attributes[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        os.write(self.controller, b"<end>")
        data = b""
        while not data.endswith(b"<end>"):
            data += os.read(self.slave, 4096)
        return data.removesuffix(b"<end>")
