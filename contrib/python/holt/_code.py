# SPDX-License-Identifier: Apache-2.0
"""Runs of code that the interpreter and the shell have in common."""

from __future__ import annotations

import secrets
from typing import Any, Callable, Mapping, Optional, TypeVar

from ._face import Part
from ._listeners import ANY
from ._operations import Steps
from ._request import Request
from .process import OnOutput, Output

T = TypeVar("T")


def run_code(
    part: Part, method: str, params: Mapping[str, Any], interrupt: str, result_of: Callable[[Any], T],
    on_output: Optional[OnOutput],
) -> "Steps[T]":
    """Calls the method. If the run is cancelled, or on_output fails, calls the method `interrupt`."""
    params = {**params, "base64": True, "run": secrets.token_hex(8)}

    def finish(asked: Request, output: Optional[Output] = None) -> "Steps[T]":
        if output:
            note = output.note
            asked.add_done_callback(lambda _: note({"exit_code": 0}))  # the reply follows all output
        try:
            if output and on_output:
                yield from output.tell(on_output)
            return result_of((yield asked))
        except BaseException:
            if not asked.done():  # the method also cancels a run that has not started
                part._ask_and_forget(interrupt, run=params["run"])
            raise

    if on_output is None:
        return (yield from finish(part._ask(method, params)))
    turn, output, asked = part._server.turns.begin(part._session), Output(), None
    try:
        yield turn
        part._server.listeners.add("process.output", part._session, ANY, output.note)
        asked = part._ask(method, {**params, "watch": True})
        return (yield from finish(asked, output))
    finally:
        part._server.turns.end(part._session, turn, asked)
