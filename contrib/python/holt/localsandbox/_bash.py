# SPDX-License-Identifier: Apache-2.0
"""LocalSandbox.bash()."""

from __future__ import annotations

import secrets
from typing import List

from .._face import WORD_MAX
from .._operations import Steps, drive, drive_async
from ..errors import HoltError
from ..files import FilesApi
from ..results import Outcome, Result
from ..sandbox import SandboxApi
from ._errors import command_error
from ._files import HERE
from ._kv import check_text
from ._life import Life, failure, now
from ._types import BashResult
from .exceptions import ExecutionLimitError, SubprocessCrashed, TimeoutError

BASH_TIMEOUT_MS = 30000
OUTPUT_MAX = 8 << 20


def stderr_of(result: Outcome) -> str:
    """Returns stderr, after a line about dropped output if there is any."""
    dropped = {"stdout": result.stdout_dropped, "stderr": result.stderr_dropped}
    told = [f"holt: {count} more bytes of {stream} were left out\n" for stream, count in dropped.items() if count]
    return "".join(told) + result.stderr


class BashCalls(Life):
    """The part of a LocalSandbox that runs bash."""

    _registered: List[str]

    def _bash(self, command: str) -> "Steps[BashResult]":
        check_text("a command", command)
        yield from self._ready()
        started = now()
        mark = f"{HERE}/limit-{secrets.token_hex(8)}"
        argv = ["bash", f"{HERE}/call.bash", str(self.preset.loop_iterations), str(self.preset.command_count), mark]
        try:
            result = yield from self._exec_line(argv, command)
        except HoltError as error:
            self._note("bash", started, {"command": command, "cwd": self.cwd}, {"exitCode": -1})
            raise failure(error) from error
        self._note("bash", started, {"command": command, "cwd": self.cwd}, {"exitCode": result.exit_code})
        yield from self._check_end(result, mark)
        if result.exit_code != 0:
            raise command_error(result.exit_code, result.stdout, stderr_of(result))
        return BashResult(result.stdout, stderr_of(result), 0, (result.usage.wall_us or 0) / 1000)

    def _exec_line(self, argv: List[str], line: str) -> "Steps[Result]":
        if len(line) * 4 <= WORD_MAX or len(line.encode(errors="replace")) <= WORD_MAX:
            return (yield from self._exec([*argv, line]))
        # The line is longer than an argument may be, for example with a large here-document
        path = f"{HERE}/line-{secrets.token_hex(8)}"
        try:
            yield from FilesApi.write.steps(self._names.files, path, line)
            return (yield from self._exec([*argv, f'eval "$(<{path})"']))
        finally:
            self._box._ask_and_forget("files.remove", path=path)

    def _exec(self, argv: List[str]) -> "Steps[Result]":
        place = yield from self._names.place(self.cwd)
        for again in (False, True):
            try:
                return (yield from SandboxApi._exec(
                    self._box, {"argv": argv}, place, self._names.environment(), None, BASH_TIMEOUT_MS / 1000, OUTPUT_MAX, None,
                    [] if self._registered else None,  # tools are for Python
                ))
            except HoltError:
                # An earlier command has removed the working directory. Every command gets one, so make it again.
                if again or (yield from FilesApi.exists.steps(self._names.files, place)):
                    raise
                yield from FilesApi.mkdir.steps(self._names.files, place)
        raise AssertionError("unreachable")

    def _check_end(self, result: Result, mark: str) -> "Steps[None]":
        """Raises an exception if a limit or a failure of the sandbox ended the command."""
        if result.cause == "exited":
            return
        self._names.links_stale = True  # names.bash has not run at the end of the call
        if result.cause == "timeout":
            raise TimeoutError(f"the command took longer than {BASH_TIMEOUT_MS} ms", BASH_TIMEOUT_MS)
        if result.signal == 9:
            try:
                data = yield from FilesApi.read_bytes.steps(self._names.files, mark, max_bytes=4096)
                kind, limit = data.decode().split()
                value = int(limit)
            except (HoltError, ValueError):  # the file is missing, or the command has written it
                pass
            else:
                self._box._ask_and_forget("process.kill", id=result.id)
                self._box._ask_and_forget("files.remove", path=mark)
                raise ExecutionLimitError(
                    f"{kind.replace('_', ' ')} limit of {value} exceeded", kind, value, result.stdout, result.stderr
                )
        if result.cause in ("oom", "lost"):
            raise SubprocessCrashed(f"the command was ended: {result.cause}", result.signal)

    def bash(self, command: str) -> BashResult:
        """Runs a line in a new bash. If the exit code is not 0, raises CommandError or a subclass of it."""
        return drive(self._guarded(self._bash(command)))

    async def abash(self, command: str) -> BashResult:
        return await drive_async(self._guarded(self._bash(command)))
