# SPDX-License-Identifier: Apache-2.0
"""Runs holt and returns its results."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lib.identity import Identity

# After this many seconds a run counts as hanging on any machine; no test is meant to take that long.
HANGS = float(os.environ.get("HANGS", "120"))

Arg = str | os.PathLike[str]


@dataclass(frozen=True)
class Result:
    """The end of one holt process. code is negative if a signal killed holt itself."""

    argv: tuple[str, ...]
    code: int
    out_bytes: bytes
    err_bytes: bytes
    report_path: Path | None = None
    report: dict[str, Any] | None = field(default=None)

    @cached_property
    def out(self) -> str:
        return self.out_bytes.decode(errors="surrogateescape")

    @cached_property
    def err(self) -> str:
        return self.err_bytes.decode(errors="surrogateescape")

    @property
    def cause(self) -> str:
        """A cause of holt-run(1), such as "exited"; "" without a report."""
        return str((self.report or {}).get("cause", ""))

    @property
    def layers(self) -> dict[str, str]:
        return dict((self.report or {}).get("layers", {}))

    @property
    def denials(self) -> dict[str, dict[str, Any]]:
        """Denials by the denied operation."""
        return {d["what"]: d for d in (self.report or {}).get("denials", [])}

    @property
    def set_aside(self) -> list[Any]:
        return list((self.report or {}).get("set_aside", []))

    def ok(self) -> Result:
        """Returns itself, after asserting that the command exited with 0."""
        assert self.code == 0, str(self)
        return self

    def refusal(self, code: int = 125) -> str:
        """Returns the one line that explains why holt did not run the command. Asserts that the output contains only that line
        and the cure, and that the exit code is the given one."""
        assert self.code == code, str(self)
        assert self.out == "", str(self)
        first, *cure = self.err.splitlines()
        assert re.match(r"holt( [a-z]+)?: ", first), str(self)  # mistakes in a command line name the verb
        assert all(line.startswith("  ") for line in cure), str(self)
        return first.split(": ", 1)[1]

    @property
    def cure(self) -> str:
        """The advice below the first line of the message."""
        return "\n".join(line.strip() for line in self.err.splitlines()[1:])

    def __str__(self) -> str:
        return f"{' '.join(self.argv)}\nended with {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}"


class Running:
    """A running holt. It is a context manager that kills a process still running at the end."""

    def __init__(self, process: subprocess.Popen[bytes], argv: Sequence[str], report: Path | None) -> None:
        self.process, self.argv, self.report_path = process, tuple(argv), report

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream and not stream.closed:
                stream.close()
        if self.report_path:
            self.report_path.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        """The PID of holt on the host."""
        return self.process.pid

    def readline(self) -> str:
        """Returns the next line of the command's output. Most tests wait for such a line."""
        assert self.process.stdout
        return self.process.stdout.readline().decode(errors="surrogateescape").rstrip("\n")

    def send(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def kill(self, sig: int = signal.SIGKILL) -> None:
        self.process.send_signal(sig)

    def wait(self, stdin: bytes | None = None, timeout: float = HANGS) -> Result:
        """Waits for the end. Raises AssertionError if holt hangs."""
        try:
            out, err = self.process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired as hung:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(
                f"holt did not end within {timeout} s: {' '.join(self.argv)}\n"
                f"--- stdout\n{out!r}\n--- stderr\n{err!r}"
            ) from hung
        return Result(
            self.argv, self.process.returncode, out or b"", err or b"", self.report_path, self._take_report()
        )

    def _take_report(self) -> dict[str, Any] | None:
        if not self.report_path or not self.report_path.exists():
            return None
        text = self.report_path.read_bytes()
        self.report_path.unlink()
        return json.loads(text) if text else None


class Holt:
    """Runs holt as one identity, in one directory."""

    def __init__(self, binary: Path, identity: Identity, cwd: Path) -> None:
        self.binary, self.identity, self.cwd = binary, identity, cwd

    def argv(self, args: Sequence[Arg], prefix: Sequence[Arg] = ()) -> list[str]:
        return self.identity.argv([*prefix, self.binary, *args])

    def start(
        self,
        args: Sequence[Arg],
        *,
        stdin: Any = subprocess.DEVNULL,
        stdout: Any = subprocess.PIPE,
        stderr: Any = subprocess.PIPE,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        prefix: Sequence[Arg] = (),
        report: bool = True,
        **options: Any,
    ) -> Running:
        """Starts "holt ARGS".

                env     added to the identity's environment.
                prefix  a command that runs holt, inside the identity: ["unshare", ...].
                report  adds --report to "holt run", unless args contain it.
        """
        args, path = [os.fspath(a) for a in args], None
        if report and args[:1] == ["run"] and "--report" not in args:
            path = self.identity.tmp / f"report-{secrets.token_hex(4)}.json"
            args[1:1] = ["--report", str(path)]
        argv = self.argv(args, prefix)
        process = subprocess.Popen(
            self.identity.as_user(argv), stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd or self.cwd,
            env=self.identity.environment(env), **options,
        )
        return Running(process, argv, path)

    def __call__(
        self,
        args: Sequence[Arg],
        *,
        stdin: bytes | str | int | Any | None = None,
        timeout: float = HANGS,
        **options: Any,
    ) -> Result:
        """Runs "holt ARGS" to its end. stdin is its input (nothing by default), an fd or a file."""
        text = stdin.encode() if isinstance(stdin, str) else stdin
        given = isinstance(text, bytes)
        source = subprocess.PIPE if given else subprocess.DEVNULL if text is None else text
        with self.start(args, stdin=source, **options) as running:
            return running.wait(text if given else None, timeout)

    def sh(self, script: str, *flags: Arg, **options: Any) -> Result:
        """Runs a bash script inside, with "holt run FLAGS"."""
        return self(["run", *flags, "--", "bash", "-c", script], **options)
